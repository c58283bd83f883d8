//! Builds the errors for two cases: another rank broke the protocol, or this library has a bug. Also decides what a
//! call does that cannot succeed because the job ends.

use crate::process::Process;
use crate::shm::ring::Violation;
use crate::sys::signal;
use crate::{Error, ErrorKind};
use std::time::Duration;

/// How long a call waits for the end of this process. The launcher sends SIGTERM right after it has announced the
/// death of a rank, so the time matters only if the signal does not reach this process.
const END: Duration = Duration::from_secs(10);

/// Waits for the signal with which the launcher ends this process after the death of another rank. An error of this
/// rank would only hide the reason for the end of the job, so no call returns one. The wait also ends if the launcher
/// dies, because the kernel then kills this process.
///
/// A program that handles, ignores or blocks SIGTERM wants to do something before it ends, such as saving its work.
/// Then the function returns at once.
#[cold]
pub fn await_end() {
    if signal::has_default_action(libc::SIGTERM) {
        std::thread::sleep(END);
    }
}

/// Builds the error for the process in slot `rank`, which broke the protocol.
#[cold]
pub fn broken(rank: usize, violation: Violation) -> Error {
    let detail = format!("{} broke the protocol: {}", Process::new(rank), violation.0);
    Error::new(ErrorKind::Other, "transport", detail)
}

/// Builds the error for a place of data that rank `rank` named and that this rank refused. Normally
/// `rank` is at fault. But if this rank could not make its own plan for raw bytes, the error says so.
#[cold]
pub fn of_place(rank: usize, violation: Violation) -> Error {
    match crate::commit::bytes() {
        Ok(_) => broken(rank, violation),
        Err(error) => {
            let detail = format!("cannot make this rank's plan for raw bytes: {error}");
            Error::new(error.kind(), "transport", detail)
        }
    }
}

/// Builds the error for operation `id`, which is missing from the table of requests or is in a state that it cannot
/// have here. `what` names the operation. The error means a bug of this library.
#[cold]
pub fn lost(what: &'static str, id: u64) -> Error {
    let detail = format!("the runtime lost track of {what} (id {id:#x})");
    Error::new(ErrorKind::Internal, "transport", detail)
}

/// Builds the error for a value that belongs to the process in slot `rank` and should exist but does not, for example the
/// link from this process. `what` names the value and ends with a preposition, because the error text appends
/// the name of the process.
#[cold]
pub fn lost_at(what: &'static str, rank: usize) -> Error {
    let detail = format!("the runtime lost track of {what} {}", Process::new(rank));
    Error::new(ErrorKind::Internal, "transport", detail)
}
