//! Collective calls on intracommunicators (MPI-5.0 chapter 6): blocking, nonblocking, persistent.
//!
//! `parts.rs` checks the buffers and divides them into one part of memory per rank. `calls.rs` makes one
//! value from the arguments of a call. `way.rs` has the runtime run it, start it, or keep it for later
//! starts. `op.rs` has the reduction operations, `duplicate.rs` the nonblocking duplication of
//! communicators. A call ignores arguments that the rank's role does not need, such as the receive buffer
//! of a gather on a rank that is not the root.

pub mod calls;
pub mod duplicate;
pub mod op;
mod parts;
mod way;
