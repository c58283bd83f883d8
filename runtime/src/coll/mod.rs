//! Collective calls. Blocking calls of a few kinds go through memory that the ranks share (`cells/`). Every other call
//! becomes a schedule of messages, and `schedule/` runs the schedule.
//!
//! `collective.rs` has the type [`Collective`], whose values describe calls, and the three ways to make a call: run,
//! start, prepare. One file per operation lists the steps: `barrier.rs`, `broadcast.rs`, `gather.rs` (and scatter),
//! `allgather.rs`, `alltoall.rs`, `reduce.rs`, `allreduce.rs`, `scan.rs` (and exscan), `reduce_scatter.rs` and
//! `neighbors.rs` (exchanges between neighbours). `buffers.rs` orders the steps that use one buffer of a reduction.
//! `create.rs` makes communicators from other communicators, `intercommunicator.rs` makes intercommunicators, merges
//! them, and makes communicators from groups without a parent communicator. `topology/` makes communicators with
//! topologies. `between.rs` lists the steps of the calls on intercommunicators. `operator.rs` has the predefined
//! operations on elements (`extended.rs` has the arithmetic of C's `long double`, `binary128.rs` that of reals of 16
//! bytes, and `pairs.rs` has `MPI_MINLOC` and `MPI_MAXLOC` on pair types that have no predefined name). `values.rs` has
//! the safe reductions of values, and `scope.rs` the safe nonblocking forms.
//!
//! With `TYPEPACK_CHECK_TYPES=1` (which must be set for all ranks or for none), all ranks compare the arguments of a
//! blocking call before it begins, and those of a persistent operation when it is prepared (`check.rs`). Calls on
//! intercommunicators are not compared in this way. The library also compares the types of the sender and the receiver
//! for each message of a collective call, and for the part that a rank sends to itself. If they differ, the call fails
//! with [`ErrorKind::Type`](crate::ErrorKind). A rank that cannot forward data, for this or any other reason, tells the
//! ranks that wait for the data; the calls of these ranks fail with [`ErrorKind::Other`](crate::ErrorKind).
//!
//! Every rank of a communicator makes the same collective calls in the same order. The messages of a call
//! have the number of the call as their tag, so calls may overlap. Collective calls use their own context
//! (one of the message spaces of the communicator), so their messages never match the user's receives.
//! Persistent operations are numbered separately, when they are prepared, and use another context. Every
//! receive of a collective call names its source.

mod allgather;
mod allreduce;
mod alltoall;
mod barrier;
mod between;
mod binary128;
mod broadcast;
mod buffers;
mod cells;
mod check;
mod collective;
mod create;
#[cfg(target_arch = "x86_64")]
mod extended;
mod gather;
mod intercommunicator;
mod neighbors;
mod operator;
mod pairs;
mod reduce;
mod reduce_scatter;
mod scan;
mod scope;
mod topology;
mod values;

pub(crate) use cells::{choices, copies, measured, report};
pub(crate) use values::{Kind as ReductionKind, described};

pub use crate::endpoint::sources::{Combine, Combiner};
pub use collective::{Collective, Prepared, Root};
pub use create::Duplicate;
pub use operator::{Operator, Operator as Op};
pub use topology::Cartesian;
pub use values::{Reducible, Reduction};
