//! What a request is, for a debugger that has stopped the process (`debugger.rs`). Nothing here waits for a lock
//! of the library.

use super::plain::{self, State};
use super::{Partitions, REQUESTS, Request, Running, messages};
use crate::comm::Comm;
use crate::handle::table::Busy;
use crate::raw;
use std::sync::TryLockError;

/// What is said of a handle if the process has not joined a job.
pub const NOT_INITIALISED: &str = "MPI is not initialised";

/// Describes a request. Returns `None` if the handle is not valid.
///
/// # Errors
/// Returns [`Busy`] if a thread holds a lock that the description needs.
pub fn described(request: raw::Request) -> Result<Option<String>, Busy> {
    if plain::is_plain(request) {
        return plain::described(request);
    }
    let Some(found) = REQUESTS.try_find(request.0)? else { return Ok(None) };
    if found.shared {
        return Ok(Some("a send that was complete when its call returned".to_owned()));
    }
    let kind = match (found.partitions(), &found.persistent, found.collective) {
        (Some(Partitions::Send(_)), ..) => "partitioned send, ",
        (Some(Partitions::Receive(_)), ..) => "partitioned receive, ",
        (None, Some(_), false) => "persistent request, ",
        (None, Some(_), true) => "persistent collective operation, ",
        (None, None, _) => "",
    };
    Ok(Some(format!("{kind}{}", of_state(&found)?)))
}

fn of_state(request: &Request) -> Result<String, Busy> {
    let running = match request.running.try_lock() {
        Ok(running) => running,
        Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
        Err(TryLockError::WouldBlock) => return Err(Busy),
    };
    let of = |id: u64| match &request.on {
        Some(on) => operation(id, &on.comm),
        None => Ok("under way".to_owned()),
    };
    Ok(match &*running {
        Running::Inactive => "inactive".to_owned(),
        Running::Starting => "starting".to_owned(),
        Running::Finished(outcome) if outcome.failure.is_some() => "failed".to_owned(),
        Running::Finished(_) => "complete".to_owned(),
        Running::Send(id) => format!("Isend {}", of(*id)?),
        Running::Receive(id) => format!("Irecv {}", of(*id)?),
        Running::Collective(id) => format!("collective operation, {}", of(*id)?),
        Running::Access(..) => "access to a file, under way".to_owned(),
        Running::Both(send, receive, _) => {
            let parts = [("Isend", *send), ("Irecv", *receive)];
            let left = parts.into_iter().filter_map(|(name, id)| Some((name, id?)));
            let texts: Result<Vec<String>, Busy> =
                left.map(|(name, id)| Ok(format!("{name} {}", of(id)?))).collect();
            texts?.join(" and ")
        }
        Running::Window(ids, ..) => format!("operation on a window, {} parts under way", ids.len()),
        Running::Flush(ids) => format!("flush of a buffer, {} sends under way", ids.len()),
        Running::User(_, true) => "generalized request, complete".to_owned(),
        Running::User(_, false) | Running::Freed(_) => "generalized request".to_owned(),
    })
}

/// Describes an operation of the runtime on a communicator.
pub fn operation(id: u64, comm: &Comm) -> Result<String, Busy> {
    let Ok(messages) = messages() else { return Ok(NOT_INITIALISED.to_owned()) };
    messages.described(id, |process| comm.rank_of_peer(process)).ok_or(Busy)
}

/// Describes the state of a plain request.
pub fn of_plain(state: &State, comm: &Comm) -> Result<String, Busy> {
    Ok(match state {
        State::Send(id) => format!("Isend {}", operation(*id, comm)?),
        State::Receive(id) => format!("Irecv {}", operation(*id, comm)?),
        State::Done(status) => {
            format!("complete, from {}, tag {}", status.source, status.tag)
        }
        State::Failed(_) => "failed".to_owned(),
    })
}
