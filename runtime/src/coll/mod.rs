//! Collective calls, listed as schedules of messages in communicator contexts of their own.
//!
//! `collective.rs` is one value for every call and the three ways to do it: run, start, prepare. Then
//! one file per operation: `barrier.rs`, `broadcast.rs`, `gather.rs` (and scatter), `allgather.rs`,
//! `alltoall.rs`, `reduce.rs` and `allreduce.rs` list the steps; `create.rs` makes communicators of
//! communicators; `operator.rs` has what predefined operations do to elements (`extended.rs` those
//! of C's `long double`); `scope.rs` the safe nonblocking and persistent forms. Before this room comes
//! `schedule/`, which does the steps.
//!
//! Types are compared as in other messages (`TYPEPACK_CHECK_TYPES`), also those of a rank's part for
//! itself: [`ErrorKind::Type`](crate::ErrorKind). A rank that fails to get what it was to hand on, for
//! this or another reason, tells those who wait for it, and they fail with
//! [`ErrorKind::Other`](crate::ErrorKind).
//!
//! Every rank of a communicator makes the same collective calls in the same order. The number of a call
//! is the tag of its messages, so that calls may overlap. Persistent operations are numbered when they
//! are made, and have a context of their own. No receive accepts any source.

mod allgather;
mod allreduce;
mod alltoall;
mod barrier;
mod broadcast;
mod collective;
mod create;
#[cfg(target_arch = "x86_64")]
mod extended;
mod gather;
mod operator;
mod reduce;
mod scope;

pub use crate::endpoint::sources::{Combine, Combiner};
pub use crate::schedule::Part;
pub use allreduce::{Op, Reducible};
pub use collective::{Collective, Prepared};
pub use create::Duplicate;
pub use operator::{NoCombiner, Operator};
