//! The two errors of the transport: another rank broke the protocol, or this library has a bug.

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

/// Builds the error for an operation that is in a queue but not in the table of requests.
#[cold]
pub fn lost(what: &str) -> Error {
    Error::new(ErrorKind::Internal, "transport", format!("the runtime lost track of {what}"))
}
