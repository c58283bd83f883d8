//! Starting, cancelling and freeing requests (MPI-5.0 sections 3.7.3, 3.8.4, 3.9).

use super::{Outcome, REQUESTS, Request, Running, find, messages};
use crate::abi;
use crate::argument::{Array, InOut, Place, room};
use crate::error::{Failure, Result};
use crate::raw;
use std::ffi::c_int;
use std::sync::Arc;

/// Returns the place of a handle, the handle and its request.
fn handle(
    request: InOut<raw::Request>,
) -> Result<(Place<raw::Request>, raw::Request, Arc<Request>)> {
    let (handle, place) = request.read("request")?;
    Ok((place, handle, find(handle)?))
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
pub fn start(request: InOut<raw::Request>) -> Result {
    let (_, _, request) = handle(request)?;
    begin(&request)
}

/// `MPI_Startall`: nothing is started unless all can be.
pub fn startall(count: c_int, requests: Array<raw::Request>) -> Result {
    let Ok(count) = usize::try_from(count) else {
        return Err(Failure::new(abi::ERR_COUNT, "count", format!("{count} is negative")));
    };
    // SAFETY: `MPI_Startall` gives the array `count` handles, which are read before it returns.
    let requests = unsafe { requests.entries(count, "array_of_requests")? };
    let mut found = room(count, "array_of_requests")?;
    for handle in requests {
        let request = find(handle)?;
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
pub fn cancel(request: InOut<raw::Request>) -> Result {
    let (_, _, request) = handle(request)?;
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
                if ongoing.withdraw(*id) {
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
pub fn free(request: InOut<raw::Request>) -> Result {
    let (out, handle, request) = handle(request)?;
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
