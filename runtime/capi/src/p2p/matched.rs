//! Matched messages: probes that take a message out of the queue, and receives of such a message (MPI-5.0
//! section 3.8.2).

use super::nonblocking::received;
use super::{memory, on, origin};
use crate::abi;
use crate::argument::{InOut, Output};
use crate::comm::On;
use crate::count_width::CountWidth;
use crate::error::{Failure, Result};
use crate::handle::Kind;
use crate::handle::table::Table;
use crate::raw;
use crate::request::{self, Outcome, Running};
use crate::status::StatusOutput;
use std::ffi::{c_int, c_void};
use std::sync::{Arc, Mutex, PoisonError};
use typepack::{Matched, Operation};
use typepack_capi_datatype::types;

/// A message that a probe took out of the queue. Receives that search the queue can no longer match it.
#[derive(Debug)]
struct Message {
    on: On,
    /// The runtime's message; `None` once a receive has taken it.
    matched: Mutex<Option<Matched>>,
}

static MESSAGES: Table<Message> = Table::new(Kind::Message);

/// Returns the live handle whose lower 32 bits are `integer`; `None` if there is none.
pub fn from_int(integer: c_int) -> Option<usize> {
    MESSAGES.of_int(integer)
}

/// Takes a matching message out of the queue, writes its status and returns its handle. If there is no such
/// message, waits for one if `wait` is true, and returns `None` if `wait` is false. If `source` is
/// `MPI_PROC_NULL`, returns `MPI_MESSAGE_NO_PROC`.
fn take(
    source: c_int,
    tag: c_int,
    comm: raw::Comm,
    wait: bool,
    status: StatusOutput,
) -> Result<Option<raw::Message>> {
    let on = on(comm)?;
    let Some((source, tag)) = origin(&on.comm, source, tag)? else {
        status.put(&Outcome::from_nobody().status);
        return Ok(Some(raw::Message(abi::MESSAGE_NO_PROC)));
    };
    MESSAGES.make_room()?;
    let Some(matched) = on.comm.messages().take(source, tag, wait)? else { return Ok(None) };
    let said = on.comm.status(matched.status());
    let message = Message { on, matched: Mutex::new(Some(matched)) };
    let handle = MESSAGES.insert(Arc::new(message))?;
    status.put(&said);
    Ok(Some(raw::Message(handle)))
}

/// `MPI_Mprobe`.
pub fn mprobe(
    source: c_int,
    tag: c_int,
    comm: raw::Comm,
    message: Output<raw::Message>,
    status: StatusOutput,
) -> Result {
    crate::comm::check(comm)?;
    let out = message.required("message")?;
    if let Some(found) = take(source, tag, comm, true, status)? {
        out.set(found);
    }
    Ok(())
}

/// `MPI_Improbe`.
pub fn improbe(
    source: c_int,
    tag: c_int,
    comm: raw::Comm,
    flag: Output<c_int>,
    message: Output<raw::Message>,
    status: StatusOutput,
) -> Result {
    crate::comm::check(comm)?;
    let (flag, out) = (flag.required("flag")?, message.required("message")?);
    let found = take(source, tag, comm, false, status)?;
    flag.set(found.is_some().into());
    if let Some(found) = found {
        out.set(found);
    }
    Ok(())
}

#[cold]
fn invalid(message: raw::Message) -> Failure {
    let null = (abi::MESSAGE_NULL, "MPI_MESSAGE_NULL");
    Failure::no_object(abi::ERR_REQUEST, ("message", "message"), message.0, null)
}

/// Starts the receive of a matched message, and sets the handle to null. Returns the communicator and the result of
/// the start. Returns `None` for the handle `MPI_MESSAGE_NO_PROC`, which stands for a message from `MPI_PROC_NULL`.
///
/// # Safety
///
/// - `buf` is writable for `count` elements of `datatype` until the operation has ended.
unsafe fn receive<W: CountWidth>(
    buf: *mut c_void,
    count: W::Count,
    datatype: raw::Datatype,
    message: InOut<raw::Message>,
) -> Result<Option<(On, typepack::Result<Operation>)>> {
    let (handle, out) = message.read("message")?;
    if handle.0 == abi::MESSAGE_NO_PROC {
        types::elements(buf, count, datatype)?;
        out.set(raw::Message::NULL);
        return Ok(None);
    }
    let found = MESSAGES.find(handle.0).ok_or_else(|| invalid(handle))?;
    let on = found.on.clone();
    let elements = types::elements(buf, count, datatype)
        .and_then(|elements| memory(&elements, "buf").map(|()| elements))
        .map_err(|failure| on.raise(failure))?;
    // If two threads pass the same handle, only the thread whose `take` returns the message receives the message.
    let matched = found.matched.lock().unwrap_or_else(PoisonError::into_inner).take();
    let matched = matched.ok_or_else(|| invalid(handle))?;
    MESSAGES.remove(handle.0);
    out.set(raw::Message::NULL);
    // SAFETY: the elements are the `count` elements of `datatype` at `buf`, which are writable until the operation
    // has ended (condition of `# Safety`).
    let started = unsafe { on.comm.messages().receive_matched(elements.view(), matched) };
    Ok(Some((on, started)))
}

/// `MPI_Mrecv`.
///
/// # Safety
///
/// - `buf` is writable for `count` elements of `datatype` until the call returns.
pub unsafe fn mrecv<W: CountWidth>(
    buf: *mut c_void,
    count: W::Count,
    datatype: raw::Datatype,
    message: InOut<raw::Message>,
    status: StatusOutput,
) -> Result {
    // SAFETY: the elements at `buf` are writable until this function returns (condition of `# Safety`), and
    // `finish` returns only when the operation has ended.
    let outcome = match unsafe { receive::<W>(buf, count, datatype, message)? } {
        None => Outcome::from_nobody(),
        Some((on, started)) => {
            let result = started.and_then(|started| on.comm.messages().finish(started));
            Outcome::of_receive(&on, result)
        }
    };
    // If the message was too long, the receive fails, but the status of the message is written too.
    status.put(&outcome.status);
    outcome.failure.map_or(Ok(()), Err)
}

/// `MPI_Imrecv`.
///
/// # Safety
///
/// - `buf` is writable for `count` elements of `datatype` until the request is complete.
pub unsafe fn imrecv<W: CountWidth>(
    buf: *mut c_void,
    count: W::Count,
    datatype: raw::Datatype,
    message: InOut<raw::Message>,
    request: Output<raw::Request>,
) -> Result {
    let out = request.required("request")?;
    // SAFETY: the elements at `buf` are writable until the request is complete (condition of `# Safety`), and
    // the operation has ended before the request is complete.
    let handle = match unsafe { receive::<W>(buf, count, datatype, message)? } {
        None => request::open(None, Running::Finished(Outcome::from_nobody()))?,
        Some((on, started)) => {
            let running = received(&on, started).map_err(|failure| on.raise(failure))?;
            request::open(Some(on), running)?
        }
    };
    out.set(handle);
    Ok(())
}
