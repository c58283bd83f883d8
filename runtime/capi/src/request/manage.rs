//! Starting, cancelling and freeing requests (MPI-5.0 sections 3.7.3, 3.8.4, 3.9).

use super::{Outcome, REQUESTS, Request, Running, find, messages, plain};
use crate::abi;
use crate::argument::{Array, InOut, room};
use crate::callback::Moment;
use crate::error::{Failure, Result};
use crate::raw;
use std::ffi::c_int;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use typepack::Cancelled;

const NOT_PERSISTENT: &str = "the handle belongs to a request that is not a persistent request";

#[cold]
fn not_startable(detail: &str) -> Failure {
    Failure::new(abi::ERR_REQUEST, "request", detail)
}

/// Returns the request of a handle that the program wants to start.
///
/// # Errors
/// Returns `MPI_ERR_REQUEST` if the handle is not valid, or if the request is not persistent.
fn to_start(handle: raw::Request) -> Result<Arc<Request>> {
    if plain::is_live(handle) {
        return Err(not_startable(NOT_PERSISTENT));
    }
    let request = find(handle)?;
    if request.persistent.is_none() {
        return Err(not_startable(NOT_PERSISTENT));
    }
    Ok(request)
}

/// Reserves an inactive request for this thread, which then calls [`begin`] or [`release`]. Until then, no other
/// thread can start the request, and neither can a second entry of the same call.
///
/// # Errors
/// Returns `MPI_ERR_REQUEST` if the request is active.
fn reserve(request: &Request) -> Result {
    let mut running = request.lock();
    match *running {
        Running::Inactive => {
            *running = Running::Starting;
            Ok(())
        }
        _ => Err(not_startable(
            "the persistent request is active: it has been started and not completed",
        )),
    }
}

/// Gives back requests that [`reserve`] has reserved, without starting them.
#[cold]
fn release(reserved: &[Reserved]) {
    for (_, request) in reserved {
        *request.lock() = Running::Inactive;
    }
}

/// Starts a request that [`reserve`] has reserved.
fn begin(request: &Request) -> Result {
    let Some(persistent) = &request.persistent else { return Ok(()) };
    request.tell(Moment::Start);
    // `start` takes the runtime's lock, so this thread must not hold the lock of the request.
    let started = persistent.start();
    let mut running = request.lock();
    match started {
        Ok(started) => {
            *running = started;
            Ok(())
        }
        Err(failure) => {
            *running = Running::Inactive;
            Err(request.raise(failure))
        }
    }
}

/// `MPI_Start`.
pub fn start(request: InOut<raw::Request>) -> Result {
    let (handle, _) = request.read("request")?;
    let request = to_start(handle)?;
    reserve(&request)?;
    begin(&request)
}

/// A request that `MPI_Startall` has reserved, and its handle.
type Reserved = (raw::Request, Arc<Request>);

/// `MPI_Startall`. It first reserves all requests, and starts none if one of them cannot be started. A request that
/// occurs twice cannot be reserved for the second entry, so the call needs no search for duplicates.
pub fn startall(count: c_int, requests: Array<raw::Request>) -> Result {
    let Ok(count) = usize::try_from(count) else {
        return Err(Failure::new(abi::ERR_COUNT, "count", format!("{count} is negative")));
    };
    // SAFETY: the caller of `MPI_Startall` passes an array of `count` handles. This function drops the
    // iterator before it returns.
    let requests = unsafe { requests.entries(count, "array_of_requests")? };
    let mut reserved: Vec<Reserved> = room(count, "array_of_requests")?;
    for handle in requests {
        match to_start(handle).and_then(|request| reserve(&request).map(|()| request)) {
            Ok(request) => reserved.push((handle, request)),
            Err(failure) => {
                release(&reserved);
                return Err(twice(handle, &reserved).unwrap_or(failure));
            }
        }
    }
    for (at, (_, request)) in reserved.iter().enumerate() {
        begin(request).inspect_err(|_| release(&reserved[at + 1..]))?;
    }
    Ok(())
}

/// Returns the failure for a request that already has an entry in `reserved`; `None` if it has none.
#[cold]
fn twice(handle: raw::Request, reserved: &[Reserved]) -> Option<Failure> {
    let first = reserved.iter().position(|(other, _)| *other == handle)?;
    let detail = format!(
        "entries {first} and {} are the same request; each request may appear once",
        reserved.len()
    );
    Some(Failure::new(abi::ERR_REQUEST, "array_of_requests", detail))
}

/// Returns the failure for a call that must not be made on a request of a collective operation (MPI-5.0
/// sections 6.12 and 6.13). The failure names the error handler of the operation's communicator. If the
/// operation is an access to a file, it has no communicator, and the failure names no error handler.
#[cold]
fn of_collective(request: &Request, what: &str) -> Failure {
    let detail = format!("a collective operation cannot be {what}");
    request.raise(Failure::new(abi::ERR_REQUEST, "request", detail))
}

/// Returns the failure for a call that must not be made on a request of a partitioned operation (MPI-5.0 section 4.2).
#[cold]
fn of_partitioned(request: &Request, what: &str) -> Failure {
    let detail = format!("a partitioned operation cannot be {what}");
    request.raise(Failure::new(abi::ERR_REQUEST, "request", detail))
}

/// `MPI_Cancel`: cancels a receive if no message has matched it, cancels a send if no receive has matched its
/// message, and calls the user's cancel function for a generalized request. If a receive may have matched the
/// message of a send, the send completes from a copy. So the request of a send is complete afterwards, whatever
/// the other rank does (MPI-5.0 section 3.8.4). If there is no memory for the copy, the send continues.
pub fn cancel(request: InOut<raw::Request>) -> Result {
    let (handle, _) = request.read("request")?;
    if plain::is_plain(handle) {
        return plain::cancel(handle);
    }
    let request = find(handle)?;
    if request.collective {
        return Err(of_collective(&request, "cancelled"));
    }
    if request.partitions().is_some() {
        return Err(of_partitioned(&request, "cancelled"));
    }
    let user = messages()?.change(|ongoing| {
        let mut running = request.lock();
        match &*running {
            Running::Inactive => Err(Failure::new(
                abi::ERR_REQUEST,
                "request",
                "the persistent request has not been started",
            )),
            Running::Receive(id) => {
                if ongoing.cancel_receive(*id) {
                    *running = Running::Finished(Outcome::of_cancel(true));
                }
                Ok(None)
            }
            Running::Send(id) => {
                let cancelled = ongoing.cancel_send(*id);
                if cancelled != Cancelled::No {
                    let outcome = Outcome::of_cancel(cancelled == Cancelled::Recalled);
                    *running = Running::Finished(outcome);
                }
                Ok(None)
            }
            Running::User(functions, complete) => Ok(Some((*functions, *complete))),
            _ => Ok(None),
        }
    })??;
    // The user's cancel function may call the library, so it is called only here, after this thread has
    // released its locks.
    match user.map(|(functions, complete)| functions.cancel(complete)) {
        None | Some(0) => Ok(()),
        Some(code) => Err(Failure::of_callback(code, "cancel_fn")),
    }
}

/// `MPI_Request_free`. A pending operation continues, but the program can no longer learn when it completes.
pub fn free(request: InOut<raw::Request>) -> Result {
    let (handle, out) = request.read("request")?;
    if plain::is_plain(handle) {
        plain::free(handle)?;
        out.set(raw::Request::NULL);
        return Ok(());
    }
    let request = find(handle)?;
    if request.collective && (request.persistent.is_none() || !request.is_inactive()) {
        return Err(of_collective(&request, "freed before it is complete"));
    }
    if request.partitions().is_some() && !request.is_inactive() {
        return Err(of_partitioned(&request, "freed before it is complete"));
    }
    let mut done = None;
    let keep = messages()?.change(|ongoing| {
        let mut running = request.lock();
        match &*running {
            Running::Send(id) | Running::Receive(id) | Running::Access(id, _) => {
                ongoing.forget(*id);
            }
            Running::Window(ids, ..) => ids.iter().for_each(|id| ongoing.forget(*id)),
            Running::Both(send, receive, _) => {
                for id in [*send, *receive].into_iter().flatten() {
                    ongoing.forget(id);
                }
            }
            // The user has not completed the operation yet. The handle of the request stays valid for
            // `MPI_Grequest_complete`, which then frees the request.
            Running::User(functions, false) => {
                *running = Running::Freed(*functions);
                request.freed.store(true, Ordering::Release);
                return true;
            }
            Running::User(functions, true) => done = Some(*functions),
            Running::Freed(_) => return true,
            _ => {}
        }
        if !request.shared {
            *running = Running::Inactive;
        }
        false
    })?;
    if !keep && !request.shared {
        REQUESTS.remove(handle.0);
    }
    out.set(raw::Request::NULL);
    match done.map(|functions| functions.free()) {
        None | Some(0) => Ok(()),
        Some(code) => Err(Failure::of_callback(code, "free_fn")),
    }
}
