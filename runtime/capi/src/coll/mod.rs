//! Collective calls on intracommunicators (MPI-5.0 chapter 6): blocking, nonblocking, persistent.
//!
//! Arguments become one part of memory per rank, checked (`parts.rs`), and one value that says what the call
//! is (`calls.rs`), which the runtime runs, starts or keeps (`way.rs`). `op.rs` has the operations,
//! `duplicate.rs` communicators that are made without waiting. What a rank's role does not look at, such as the
//! receive buffer of a gather elsewhere than at the root, is not looked at.

pub mod calls;
pub mod duplicate;
pub mod op;
mod parts;
mod way;
