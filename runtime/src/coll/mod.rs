//! Collective calls, made of messages in a communicator's second context.
//!
//! One file per operation: `barrier.rs`, `broadcast.rs`, `gather.rs` (and scatter), `allgather.rs`,
//! `alltoall.rs`, `reduce.rs` and `allreduce.rs`; `operator.rs` has what predefined operations do
//! to elements (`extended.rs` those of C's `long double`), `raw.rs` the buffers and the batch of messages that all of them use. A communicator
//! is made of another in `comm/create.rs`.
//!
//! Types are compared as in other messages (`TYPEPACK_CHECK_TYPES`), also those of a rank's part for
//! itself: [`ErrorKind::Type`](crate::ErrorKind). A rank that fails to get what it was to hand on, for
//! this or another reason, tells those who wait for it, and they fail with
//! [`ErrorKind::Other`](crate::ErrorKind).
//!
//! Every rank of a communicator makes the same collective calls in the same order, and messages
//! between two ranks keep their order, so one tag per operation is enough. No receive accepts any
//! source.

mod allgather;
mod allreduce;
mod alltoall;
mod barrier;
mod broadcast;
#[cfg(target_arch = "x86_64")]
mod extended;
mod gather;
mod operator;
pub(crate) mod raw;
mod reduce;

pub use allreduce::{Op, Reducible};
pub use operator::{Combine, Combiner, NoCombiner, Operator};
pub use raw::Part;

const BARRIER: i32 = 0;
const BROADCAST: i32 = 1;
const REDUCE: i32 = 2;
const GATHER: i32 = 3;
const SCATTER: i32 = 4;
const ALLGATHER: i32 = 5;
const ALLTOALL: i32 = 6;
/// Of `comm/create.rs`.
pub(crate) const CREATE: i32 = 7;
