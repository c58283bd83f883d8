//! Matched messages: probes that take a message out of the queue, and receives of that message (MPI-5.0
//! section 3.8.2).

use super::nonblocking::received;
use super::{Elements, on, origin};
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

/// A message that was taken out of the queue, so that no other receive can match it.
#[derive(Debug)]
struct Message {
    on: On,
    /// `None` when the message is being received.
    matched: Mutex<Option<Matched>>,
}

static MESSAGES: Table<Message> = Table::new(Kind::Message);

/// Returns the live handle with this integer.
pub fn from_int(integer: c_int) -> Option<usize> {
    MESSAGES.of_int(integer)
}

/// Looks for a message, or waits for one. Returns the handle of the message, if there is one.
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

/// Starts the receive of a message, and sets the handle to null. Returns `None` for a message from
/// `MPI_PROC_NULL`.
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
        Elements::new(buf, count, datatype)?;
        out.set(raw::Message::NULL);
        return Ok(None);
    }
    let found = MESSAGES.find(handle.0).ok_or_else(|| invalid(handle))?;
    let on = found.on.clone();
    let elements = Elements::new(buf, count, datatype)
        .and_then(|elements| elements.memory("buf").map(|()| elements))
        .map_err(|failure| on.raise(failure))?;
    // If two threads pass the same handle, the one that takes the message out receives it.
    let matched = found.matched.lock().unwrap_or_else(PoisonError::into_inner).take();
    let matched = matched.ok_or_else(|| invalid(handle))?;
    MESSAGES.remove(handle.0);
    out.set(raw::Message::NULL);
    let Elements { origin, plan, count } = &elements;
    // SAFETY: `origin` is `buf`, and `plan` and `count` are those of the call, so the elements are writable
    // until the operation has ended (condition of `# Safety`).
    let started = unsafe { on.comm.messages().receive_matched(*origin, plan, *count, matched) };
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
    // SAFETY: the elements are writable until this returns (condition of `# Safety`). `finish` returns when
    // the operation has ended.
    let outcome = match unsafe { receive::<W>(buf, count, datatype, message)? } {
        None => Outcome::from_nobody(),
        Some((on, started)) => {
            let result = started.and_then(|started| on.comm.messages().finish(started));
            Outcome::of_receive(&on, result)
        }
    };
    // A message that was too long has a status too.
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
    // SAFETY: the elements are writable until the request is complete (condition of `# Safety`).
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
