//! Collective calls. Each call becomes a schedule of messages, and `schedule/` runs the schedule.
//!
//! `collective.rs` has the type [`Collective`], whose values describe calls, and the
//! three ways to make a call: run, start, prepare. One file per operation lists the steps: `barrier.rs`,
//! `broadcast.rs`, `gather.rs` (and scatter), `allgather.rs`, `alltoall.rs`, `reduce.rs` and
//! `allreduce.rs`. `create.rs` derives communicators from communicators. `operator.rs` has the predefined
//! operations on elements (`extended.rs` those on C's `long double`). `scope.rs` has the safe nonblocking
//! forms.
//!
//! With `TYPEPACK_CHECK_TYPES=1`, a collective call compares types like any other message, including the
//! types of the part that a rank sends to itself, and fails with [`ErrorKind::Type`](crate::ErrorKind). A
//! rank that cannot forward data, for this or another reason, tells the ranks that wait for the data; their
//! calls fail with [`ErrorKind::Other`](crate::ErrorKind).
//!
//! Every rank of a communicator makes the same collective calls in the same order. The messages of a call
//! carry the number of the call as their tag, so calls may overlap. Collective calls have a context of
//! their own. A persistent operation gets its number when it is prepared; persistent operations have a
//! second context. Every receive of a collective call names its source.

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
