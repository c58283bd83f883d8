//! Messages and halos between two ranks, and whole jobs: typepack against other MPIs.
//!
//! The flow: `command.rs` (arguments of `typepack-bench pingpong`) -> `definition.rs` (rows and
//! bars from `definitions/message.toml`) -> `library.rs` (who takes part; compiles our C program,
//! `message/*.c`, with each one's mpicc) -> `session.rs` (a job of two ranks that lives through the
//! run) -> `suite.rs` (rows, round by round) and `whole.rs` (rows about starting, waiting and
//! ending) -> `report.rs` (table, CSV) and `summary.rs` (bars).
//!
//! Invariant: one job works at a time. The ranks of the others sleep in `read`, outside of MPI.

pub mod command;
pub mod definition;
pub mod library;
pub mod report;
pub mod session;
pub mod suite;
pub mod summary;
pub mod whole;
