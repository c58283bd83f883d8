//! Starting, cancelling and freeing requests (MPI-5.0 sections 3.7.3, 3.8.4, 3.9).

use super::{Outcome, REQUESTS, Request, Running, find, messages};
use crate::abi;
use crate::array;
use crate::error::{Failure, Result};
use crate::out::Out;
use crate::raw;
use std::ffi::c_int;
use std::sync::Arc;

/// A handle that is an argument of both directions, and its request.
///
/// # Safety
///
/// - `request` is null, or readable and writable.
unsafe fn handle(
    request: *mut raw::Request,
) -> Result<(Out<raw::Request>, raw::Request, Arc<Request>)> {
    // SAFETY: passed on.
    let out = unsafe { Out::new(request, "request")? };
    // SAFETY: not null, hence readable.
    let handle = unsafe { request.read_unaligned() };
    Ok((out, handle, find(handle)?))
}

/// A request that can be started now.
fn startable(request: &Request) -> Result {
    let detail = match (&request.persistent, request.is_inactive()) {
        (Some(_), true) => return Ok(()),
        (Some(_), false) => "it has been started and not completed",
        (None, _) => "it is not persistent",
    };
    Err(Failure::new(abi::ERR_REQUEST, "request", detail))
}

fn begin(request: &Request) -> Result {
    startable(request)?;
    let Some(persistent) = &request.persistent else { return Ok(()) };
    // The runtime's lock is taken by the start, so the request's own must be free.
    *request.lock() = Running::Starting;
    let started = persistent.start();
    let mut running = request.lock();
    match started {
        Ok(started) => {
            *running = started;
            Ok(())
        }
        Err(failure) => {
            *running = Running::Inactive;
            Err(match &request.on {
                Some(on) => on.raise(failure),
                None => failure,
            })
        }
    }
}

/// `MPI_Start`.
///
/// # Safety
/// As the C function.
pub unsafe fn start(request: *mut raw::Request) -> Result {
    // SAFETY: passed on.
    let (_, _, request) = unsafe { handle(request)? };
    begin(&request)
}

/// `MPI_Startall`: nothing is started unless all can be.
///
/// # Safety
/// As the C function.
pub unsafe fn startall(count: c_int, requests: *mut raw::Request) -> Result {
    let Ok(count) = usize::try_from(count) else {
        return Err(Failure::new(abi::ERR_COUNT, "count", format!("{count} is negative")));
    };
    if requests.is_null() && count > 0 {
        return Err(Failure::null("array_of_requests"));
    }
    let mut found = array::room(count, "array_of_requests")?;
    for at in 0..count {
        // SAFETY: not null, hence an array of so many handles (C's promise).
        let (_, handle, request) = unsafe { handle(requests.add(at))? };
        startable(&request)?;
        if found.iter().any(|(other, _)| *other == handle) {
            return Err(Failure::new(abi::ERR_REQUEST, "request", "it is in the array twice"));
        }
        found.push((handle, request));
    }
    found.iter().try_for_each(|(_, request)| begin(request))
}

/// The failure of a call that collective operations do not take (MPI-5.0 sections 6.12 and 6.13); their
/// communicator hears of it.
#[cold]
fn of_collective(request: &Request, what: &str) -> Failure {
    let detail = format!("a collective operation cannot be {what}");
    let failure = Failure::new(abi::ERR_REQUEST, "request", detail);
    match &request.on {
        Some(on) => on.raise(failure),
        None => failure,
    }
}

/// `MPI_Cancel`: a receive that no message has matched is cancelled; a send never is.
///
/// # Safety
/// As the C function.
pub unsafe fn cancel(request: *mut raw::Request) -> Result {
    // SAFETY: passed on.
    let (_, _, request) = unsafe { handle(request)? };
    if request.collective {
        return Err(of_collective(&request, "cancelled"));
    }
    let user = messages()?.change(|ongoing| {
        let mut running = request.lock();
        match &*running {
            Running::Inactive => {
                Err(Failure::new(abi::ERR_REQUEST, "request", "it has not been started"))
            }
            Running::Receive(id) => {
                if ongoing.cancel_receive(*id) {
                    let mut outcome = Outcome::empty();
                    outcome.status.set_cancelled(true);
                    *running = Running::Finished(outcome);
                }
                Ok(None)
            }
            Running::User(functions, complete) => Ok(Some((*functions, *complete))),
            _ => Ok(None),
        }
    })??;
    // The user's function is called without any lock.
    match user.map(|(functions, complete)| functions.cancel(complete)) {
        None | Some(0) => Ok(()),
        Some(code) => Err(Failure::of_callback(code, "cancel_fn")),
    }
}

/// `MPI_Request_free`: an operation in flight goes on, and completes unseen.
///
/// # Safety
/// As the C function.
pub unsafe fn free(request: *mut raw::Request) -> Result {
    // SAFETY: passed on.
    let (out, handle, request) = unsafe { handle(request)? };
    if request.collective && (request.persistent.is_none() || !request.is_inactive()) {
        return Err(of_collective(&request, "freed before it is complete"));
    }
    let mut done = None;
    let keep = messages()?.change(|ongoing| {
        let mut running = request.lock();
        match &*running {
            Running::Send(id) | Running::Receive(id) => ongoing.forget(*id),
            Running::Both(send, receive, _) => {
                for id in [*send, *receive].into_iter().flatten() {
                    ongoing.forget(id);
                }
            }
            // Its handle stays valid for `MPI_Grequest_complete`, which frees it.
            Running::User(functions, false) => {
                *running = Running::Freed(*functions);
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
