//! Collective calls, made of messages in a communicator's second context.
//!
//! One file per operation: `barrier.rs`, `broadcast.rs`, `allreduce.rs`; this one has `dup`. They
//! use the scopes of `comm/scope.rs` like any program, in a message space that no user's message
//! can reach. Every rank of a communicator makes the same collective calls in the same order, and
//! messages between two ranks keep their order, so one tag per operation is enough.

mod allreduce;
mod barrier;
mod broadcast;

pub use allreduce::{Op, Reducible};

use crate::comm::Communicator;
use crate::{Error, ErrorKind, Plan, Result};
use std::sync::OnceLock;
use typepack_engine::{Datatype, Named};

const BARRIER: i32 = 0;
const BROADCAST: i32 = 1;
const REDUCE: i32 = 2;

/// The committed byte, in which collective calls count.
fn bytes() -> Result<&'static Plan> {
    static PLAN: OnceLock<std::result::Result<Plan, typepack_engine::Error>> = OnceLock::new();
    PLAN.get_or_init(|| Datatype::named(Named::U8).commit())
        .as_ref()
        .map_err(|error| Error::from(error.clone()))
}

/// The error for a rank whose part has another size than ours.
fn unequal(argument: &'static str, rank: usize, theirs: u64, ours: u64) -> Error {
    let detail = format!("rank {rank} takes part with {theirs} bytes, this rank with {ours}");
    Error::new(ErrorKind::Count, argument, detail)
}

impl Communicator {
    /// The same ranks with a message space of their own. Collective.
    ///
    /// # Errors
    /// [`ErrorKind::ProcAborted`] when a rank has died.
    #[doc(alias = "MPI_Comm_dup")]
    pub fn dup(&self) -> Result<Communicator> {
        // Rank 0 numbers the new communicator: a number of its own is nobody else's, however
        // many threads of however many ranks duplicate other communicators meanwhile.
        let mut number = [self.endpoint().new_context()];
        self.broadcast_slice(&mut number, 0)?;
        Ok(Communicator::new(self.endpoint().clone(), number[0]))
    }
}
