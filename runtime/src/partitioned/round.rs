//! What the two sides of a partitioned operation have in common: what a side knows from the beginning, and the round that
//! runs. `send.rs` and `receive.rs` have the sides, and `table.rs` the table of them.

use crate::commit::bytes;
use crate::endpoint::engine::MessageEngine;
use crate::message::Status;
use crate::message::label::Label;
use crate::message::typecheck::UNKNOWN;
use crate::process::Process;
use crate::{Error, ErrorKind, Plan, Result};
use typepack_engine::Elements;

/// Stands in a token where the number of a partition stands otherwise: the hello has arrived.
pub(super) const HELLO: u32 = u32::MAX;

/// The token of a result that nobody counts.
pub(super) const IGNORED: u64 = u64::MAX;

/// What both ends of an operation know from the beginning.
#[derive(Clone, Debug)]
pub(super) struct End {
    /// All elements of all partitions.
    pub elements: Elements<Plan>,
    /// Number of partitions of this end.
    pub partitions: u32,
    /// The context of the hello.
    pub context: u64,
    /// The program's tag.
    pub tag: i32,
    /// The other end.
    pub peer: Process,
}

impl End {
    /// Returns the number of packed bytes of all partitions.
    pub fn total(&self) -> Result<u64> {
        Ok(self.elements.bytes()?)
    }
}

/// A round of an operation.
#[derive(Debug, Default)]
pub(super) struct Round {
    /// The request of the round; `None` if no round runs.
    pub request: Option<u64>,
    /// Number of the sender's partitions that are not over.
    pub left: u32,
    /// The first failure of a partition.
    pub failure: Option<Error>,
}

impl Round {
    /// Begins a round with the request `request`.
    pub fn begin(&mut self, request: u64, partitions: u32) {
        *self = Self { request: Some(request), left: partitions, failure: None };
    }

    /// Ends the round if no partition is left.
    pub fn end(&mut self, engine: &mut MessageEngine, status: Status) -> bool {
        if self.left > 0 {
            return false;
        }
        let Some(id) = self.request.take() else { return false };
        engine.requests().complete(id, self.failure.take().map_or(Ok(status), Err));
        true
    }
}

/// Calls `call` with the plan of the type of one byte.
pub(super) fn commit<R>(call: impl FnOnce(&Plan) -> Result<R>) -> Result<R> {
    call(bytes()?)
}

pub(super) fn label(context: u64, tag: i32, bytes: u64) -> Label {
    Label { context, tag, bytes, types: UNKNOWN }
}

#[cold]
pub(super) fn no_memory(what: &str) -> Error {
    Error::new(ErrorKind::NoMemory, "memory", format!("there is no memory for {what}"))
}

#[cold]
pub(super) fn lost(what: &str) -> Error {
    Error::new(ErrorKind::Internal, "partitions", format!("{what} does not exist"))
}
