//! Persistent sends and receives (MPI-5.0 section 3.9). The calls here check the arguments once and make a
//! request. `MPI_Start` and `MPI_Startall` (`request/manage.rs`) start the operation each time the program
//! calls one of them.

use super::nonblocking::received;
use super::{destination, memory, on, origin, start_send};
use crate::argument::Output;
use crate::comm::{Comm, On};
use crate::count_width::{CountWidth, Number};
use crate::error::Result;
use crate::raw;
use crate::request::{self, Outcome, Running, Start};
use std::ffi::{c_int, c_void};
use typepack::engine::Elements;
use typepack::{Operation, Plan, SendMode, Source, Tag};
use typepack_capi_datatype::types;

/// A send that can be started repeatedly.
#[derive(Debug)]
struct Send {
    on: On,
    mode: SendMode,
    elements: Elements<Plan>,
    /// `None` for `MPI_PROC_NULL`.
    dest: Option<usize>,
    tag: c_int,
}

impl Start for Send {
    fn start(&self) -> Result<Running> {
        let Some(dest) = self.dest else { return Ok(Running::Finished(Outcome::empty())) };
        let elements = self.elements.view();
        // SAFETY: `prepare` made this request. Its caller guaranteed that the elements are readable from each
        // start to the completion (condition of the `# Safety` of `prepare`), and this call is such a start.
        // `prepare` has checked the rank and the tag.
        let started = unsafe { start_send(&self.on, self.mode, elements, dest, self.tag)? };
        Ok(match started {
            // In buffered mode, the message is in the attached buffer now, so the request is complete
            // although the runtime is still sending the message.
            Operation::Pending(id) if !matches!(self.mode, SendMode::Buffered(_)) => {
                Running::Send(id)
            }
            Operation::Pending(_) | Operation::Done(_) => Running::Finished(Outcome::empty()),
        })
    }
}

/// A receive that can be started repeatedly.
#[derive(Debug)]
struct Receive {
    on: On,
    elements: Elements<Plan>,
    /// `None` for `MPI_PROC_NULL`.
    from: Option<(Source, Tag)>,
}

impl Start for Receive {
    fn start(&self) -> Result<Running> {
        let Some((source, tag)) = self.from else {
            return Ok(Running::Finished(Outcome::from_nobody()));
        };
        // SAFETY: `recv_init` made this request. Its caller guaranteed that the elements are writable from
        // each start to the completion (condition of the `# Safety` of `recv_init`), and this call is such a
        // start. `recv_init` has checked the source and the tag.
        let started = unsafe { self.on.comm.messages().receive(self.elements.view(), source, tag) };
        received(&self.on, started)
    }
}

/// Checks the arguments of a call and makes its persistent request. `peer` checks the rank and the tag, and
/// returns `None` for `MPI_PROC_NULL`. `start` returns the send or receive that the request starts.
fn persistent<N: Number, P, S: Start + 'static>(
    (buf, count, datatype): (*const c_void, N, raw::Datatype),
    comm: raw::Comm,
    request: Output<raw::Request>,
    peer: impl FnOnce(&Comm) -> Result<Option<P>>,
    start: impl FnOnce(On, Elements<Plan>, Option<P>) -> S,
) -> Result {
    let on = on(comm)?;
    let out = request.required("request")?;
    let elements = types::elements(buf, count, datatype)?;
    let peer = peer(&on.comm)?;
    if peer.is_some() {
        memory(&elements, "buf")?;
    }
    let start = start(on.clone(), elements, peer);
    out.set(request::persistent(on, Box::new(start))?);
    Ok(())
}

/// Makes a request for a send that can be started repeatedly.
///
/// # Safety
///
/// - `buf` is readable for `count` elements of `datatype` from each start of the request to its completion.
#[expect(clippy::too_many_arguments, reason = "the argument list of the standard")]
unsafe fn prepare(
    mode: SendMode,
    buf: *const c_void,
    count: impl Number,
    datatype: raw::Datatype,
    dest: c_int,
    tag: c_int,
    comm: raw::Comm,
    request: Output<raw::Request>,
) -> Result {
    let peer = |comm: &Comm| destination(comm, dest, tag);
    let start = |on, elements, dest| Send { on, mode, elements, dest, tag };
    persistent((buf, count, datatype), comm, request, peer, start)
}

send_family! {
    prepare (request: Output<raw::Request>);
    send_init, SendMode::Standard, "MPI_Send_init";
    ssend_init, SendMode::Synchronous, "MPI_Ssend_init";
    bsend_init, SendMode::Buffered(None), "MPI_Bsend_init";
    rsend_init, SendMode::Ready, "MPI_Rsend_init";
}

/// `MPI_Recv_init`.
///
/// # Safety
///
/// - `buf` is writable for `count` elements of `datatype` from each start of the request to its completion.
pub unsafe fn recv_init<W: CountWidth>(
    buf: *mut c_void,
    count: W::Count,
    datatype: raw::Datatype,
    source: c_int,
    tag: c_int,
    comm: raw::Comm,
    request: Output<raw::Request>,
) -> Result {
    let peer = |comm: &Comm| origin(comm, source, tag);
    let start = |on, elements, from| Receive { on, elements, from };
    persistent((buf.cast_const(), count, datatype), comm, request, peer, start)
}
