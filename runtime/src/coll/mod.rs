//! Collective calls. Blocking calls of a few kinds go through memory that the ranks share (`flags/`). Every other call
//! becomes a schedule of messages, and `schedule/` runs the schedule.
//!
//! `collective.rs` has the type [`Collective`], whose values describe calls, and the three ways to make a call: run,
//! start, prepare. In `schedule/`, one file per operation lists the steps. `create.rs` makes communicators from other
//! communicators; `create/` makes intercommunicators, merges them, makes communicators from groups without a parent
//! communicator, and communicators with topologies. `operator.rs` has the predefined operations on elements,
//! `operator/` the arithmetic of types that Rust does not have. `values.rs` has the safe reductions of values, and
//! `scope.rs` the safe nonblocking forms. `README.md` follows one call through the files.
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

mod check;
mod collective;
mod create;
mod flags;
mod operator;
mod schedule;
mod scope;
mod values;

pub(crate) use flags::{choices, copies, measured, report};
pub(crate) use values::{Kind as ReductionKind, described};

pub use crate::endpoint::sources::{Combine, Combiner};
pub use collective::{Collective, Prepared, Root};
pub use create::Duplicate;
pub use create::topology::Cartesian;
pub use operator::{Operator, Operator as Op};
pub use values::{Reducible, Reduction};
