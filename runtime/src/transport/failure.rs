//! Builds the errors for two cases: another rank broke the protocol, or this library has a bug.

use crate::shm::ring::Violation;
use crate::{Error, ErrorKind};

/// Builds the error for a rank that broke the protocol.
#[cold]
pub fn broken(rank: usize, violation: Violation) -> Error {
    Error::new(
        ErrorKind::Other,
        "transport",
        format!("rank {rank} broke the protocol: {}", violation.0),
    )
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

/// Builds the error for a value that belongs to rank `rank` and should exist but does not, for example the
/// link from rank `rank`. `what` names the value and ends with a preposition, because the error text appends
/// the number of the rank.
#[cold]
pub fn lost_at(what: &'static str, rank: usize) -> Error {
    let detail = format!("the runtime lost track of {what} rank {rank}");
    Error::new(ErrorKind::Internal, "transport", detail)
}
