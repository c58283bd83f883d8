//! Collective calls (MPI-5.0 chapter 6): blocking, nonblocking, persistent.
//!
//! `parts.rs` checks the buffers and divides each buffer into one part of memory per rank. `calls.rs` turns
//! the arguments of a call into a `Collective`. `call_mode.rs` passes the `Collective` to the runtime, which runs
//! the operation, starts it, or prepares it so that the program can start it repeatedly. `op.rs` has the
//! reduction operations, `neighbor.rs` the neighbourhood collectives, and `duplicate.rs` the nonblocking
//! duplication of communicators. A call ignores the arguments that are significant only on other ranks, such
//! as the receive buffer of a gather on a rank that is not the root.

mod call_mode;
#[macro_use]
pub mod calls;
pub mod duplicate;
pub mod neighbor;
pub mod op;
mod parts;
