//! The two errors of this room: another rank broke the protocol, or there is a bug of ours.

use crate::shm::ring::Violation;
use crate::{Error, ErrorKind};

/// The error for a rank that broke the protocol.
#[cold]
pub fn broken(rank: usize, violation: Violation) -> Error {
    Error::new(
        ErrorKind::Other,
        "transport",
        format!("rank {rank} broke the protocol: {}", violation.0),
    )
}

/// The error for an operation that a queue names and the table of requests does not have.
#[cold]
pub fn lost(what: &str) -> Error {
    Error::new(ErrorKind::Internal, "transport", format!("{what} was lost"))
}
