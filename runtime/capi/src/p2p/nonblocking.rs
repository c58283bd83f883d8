//! Nonblocking sends and receives (MPI-5.0 sections 3.7.2 and 3.11).
//!
//! All sends that are complete when their call returns share one request. If an operation fails after it has
//! been started, the error is returned by the call that completes its request, such as `MPI_Wait`.

use super::{checked, copied, destination, memory, on, origin, receive, start_both, start_send};
use crate::argument::Output;
use crate::comm::{self, On};
use crate::count_width::{CountWidth, Number};
use crate::error::{Failure, Result};
use crate::raw;
use crate::request::plain::{self, State};
use crate::request::{self, Outcome, Running};
use std::ffi::{c_int, c_void};
use typepack::engine::Elements;
use typepack::{Operation, SendMode};
use typepack_capi_datatype::types;

/// Starts a send and writes the handle of its request to `request`.
///
/// # Safety
///
/// - `buf` is readable for `count` elements of `datatype` until the request is complete.
#[inline]
#[expect(clippy::too_many_arguments, reason = "the argument list of the standard")]
unsafe fn nonblocking(
    mode: SendMode,
    buf: *const c_void,
    count: impl Number,
    datatype: raw::Datatype,
    dest: c_int,
    tag: c_int,
    comm: raw::Comm,
    request: Output<raw::Request>,
) -> Result {
    // Most sends are complete when this call returns. So the call counts a reference to the communicator only if
    // the request needs one.
    comm::with(comm, |here| {
        let out = request.required("request")?;
        plain::check_memory()?;
        let count = checked(count, "count")?;
        let ty = types::hold(datatype)?;
        let elements = Elements::new(buf, ty.plan()?, count);
        let started = match destination(here, dest, tag)? {
            None => None,
            Some(dest) => {
                memory(&elements, "buf")?;
                if let SendMode::Buffered(_) = mode {
                    // SAFETY: the elements at `buf` are readable until the request is complete (condition of
                    // `# Safety`), so they are readable until this function returns. `destination` has checked the rank
                    // and the tag.
                    let sent = unsafe { start_send(&on(comm)?, mode, elements, dest, tag)? };
                    // The request is complete, because the message is in the attached buffer now. The runtime may still
                    // be sending the message, and ends this operation by itself.
                    let _: Operation = sent;
                    None
                } else {
                    // SAFETY: the elements at `buf` are readable until the request is complete (condition of
                    // `# Safety`), and the operation has ended before the request is complete. `destination` has
                    // checked the rank and the tag. The mode is not buffered, so the runtime gets no memory for a copy.
                    unsafe { here.messages().start_send(mode, elements, dest, tag)? }
                }
            }
        };
        out.set(match started {
            None => request::sent()?,
            Some(id) => match comm::keep(comm) {
                Ok(kept) => plain::open(kept, comm, State::Send(id))?,
                Err(failure) => {
                    // Another thread has freed the communicator during this call.
                    here.messages().abandon(Operation::Pending(id));
                    return Err(failure);
                }
            },
        });
        Ok(())
    })
}

send_family! {
    nonblocking (request: Output<raw::Request>);
    isend, SendMode::Standard, "MPI_Isend";
    issend, SendMode::Synchronous, "MPI_Issend";
    ibsend, SendMode::Buffered(None), "MPI_Ibsend";
    irsend, SendMode::Ready, "MPI_Irsend";
}

/// Returns the state of the request for a receive that has just been started.
///
/// # Errors
/// Returns the runtime's errors, except those of a receive that has already matched a message. Such an error
/// belongs to the operation, and is part of the returned state.
pub fn received(on: &On, result: typepack::Result<Operation>) -> Result<Running> {
    Ok(match result {
        Ok(Operation::Pending(id)) => Running::Receive(id),
        Ok(Operation::Done(status)) => Running::Finished(Outcome::of_receive(on, Ok(status))),
        // The receive has matched a message, but the message is too long or its types do not match. The call
        // that completes the request will return this error.
        Err(error) if error.received().is_some() => {
            Running::Finished(Outcome::of_receive(on, Err(error)))
        }
        Err(error) => return Err(Failure::from(error)),
    })
}

/// `MPI_Irecv`.
///
/// # Safety
///
/// - `buf` is writable for `count` elements of `datatype` until the request is complete.
pub unsafe fn irecv<W: CountWidth>(
    buf: *mut c_void,
    count: W::Count,
    datatype: raw::Datatype,
    source: c_int,
    tag: c_int,
    comm: raw::Comm,
    request: Output<raw::Request>,
) -> Result {
    let here = comm::keep(comm)?;
    let out = request.required("request")?;
    plain::check_memory()?;
    let count = checked(count, "count")?;
    let ty = types::hold(datatype)?;
    let elements = Elements::new(buf, ty.plan()?, count);
    let state = match origin(&here, source, tag)? {
        None => Outcome::from_nobody().into(),
        Some((source, tag)) => {
            memory(&elements, "buf")?;
            // SAFETY: the elements at `buf` are writable until the request is complete (condition of `# Safety`),
            // and the receive has ended before the request is complete. `origin` has checked the source and the tag.
            match unsafe { here.messages().receive(elements, source, tag) } {
                Ok(Operation::Pending(id)) => State::Receive(id),
                Ok(Operation::Done(status)) => State::Done(here.status(status)),
                Err(error) if error.received().is_some() => {
                    Outcome::of_receive_in(&here, comm, Err(error)).into()
                }
                Err(error) => return Err(Failure::from(error)),
            }
        }
    };
    out.set(plain::open(here, comm, state)?);
    Ok(())
}

/// Makes one request for the send and the receive of a call that does both.
fn pair(
    on: On,
    sent: Option<Operation>,
    received: typepack::Result<Option<Operation>>,
) -> Result<raw::Request> {
    let send = match sent {
        Some(Operation::Pending(id)) => Some(id),
        Some(Operation::Done(_)) | None => None,
    };
    let (receive, outcome) = match received {
        Ok(None) => (None, Outcome::from_nobody()),
        Ok(Some(Operation::Pending(id))) => (Some(id), Outcome::empty()),
        Ok(Some(Operation::Done(status))) => (None, Outcome::of_receive(&on, Ok(status))),
        Err(error) => (None, Outcome::of_receive(&on, Err(error))),
    };
    request::open(Some(on), Running::Both(send, receive, outcome))
}

/// `MPI_Isendrecv`.
///
/// # Safety
///
/// - `sendbuf` is readable for `sendcount` elements of `sendtype` until the request is complete.
/// - `recvbuf` is writable for `recvcount` elements of `recvtype` until the request is complete, and these
///   elements do not overlap those at `sendbuf`.
#[expect(clippy::too_many_arguments, reason = "the argument list of the standard")]
pub unsafe fn isendrecv<W: CountWidth>(
    sendbuf: *const c_void,
    sendcount: W::Count,
    sendtype: raw::Datatype,
    dest: c_int,
    sendtag: c_int,
    recvbuf: *mut c_void,
    recvcount: W::Count,
    recvtype: raw::Datatype,
    source: c_int,
    recvtag: c_int,
    comm: raw::Comm,
    request: Output<raw::Request>,
) -> Result {
    let on = on(comm)?;
    let out = request.required("request")?;
    let outgoing = (sendbuf, sendcount, sendtype, dest, sendtag);
    let incoming = (recvbuf, recvcount, recvtype, source, recvtag);
    // SAFETY: until the request is complete, the elements at `sendbuf` are readable and those at `recvbuf`
    // are writable (both conditions of `# Safety`). The request is complete only when both operations have
    // ended.
    let (sent, received) = unsafe { start_both::<W>(&on, outgoing, incoming)? };
    if let (Err(_), Ok(Some(receive))) = (&sent, &received) {
        on.comm.messages().abandon(*receive);
    }
    out.set(pair(on, sent?, received)?);
    Ok(())
}

/// `MPI_Isendrecv_replace`. If the outgoing message cannot be sent at once, the runtime copies it before the
/// receive starts.
///
/// # Safety
///
/// - `buf` is readable and writable for `count` elements of `datatype` until the request is complete.
#[expect(clippy::too_many_arguments, reason = "the argument list of the standard")]
pub unsafe fn isendrecv_replace<W: CountWidth>(
    buf: *mut c_void,
    count: W::Count,
    datatype: raw::Datatype,
    dest: c_int,
    sendtag: c_int,
    source: c_int,
    recvtag: c_int,
    comm: raw::Comm,
    request: Output<raw::Request>,
) -> Result {
    let on = on(comm)?;
    let out = request.required("request")?;
    let elements = types::elements(buf, count, datatype)?;
    let dest = destination(&on.comm, dest, sendtag)?;
    let from = origin(&on.comm, source, recvtag)?;
    if dest.is_some() || from.is_some() {
        memory(&elements, "buf")?;
    }
    // SAFETY: the elements at `buf` are readable and writable until the request is complete (condition of
    // `# Safety`). The send no longer reads them when `copied` returns, and the receive has ended before the
    // request is complete. `destination` and `origin` have checked the ranks and the tags.
    let (sent, received) = unsafe {
        let sent = copied(&on, &elements, dest, sendtag)?;
        (sent, receive(&on, &elements, from))
    };
    out.set(pair(on, sent, received)?);
    Ok(())
}
