//! Messages and halos between two ranks, collectives, and whole jobs: typepack against other MPIs,
//! and against other builds of itself.
//!
//! The flow: `command.rs` (arguments of `typepack-bench pingpong` and `collectives`) -> `definition.rs`
//! (rows and bars from `definitions/message.toml` and `collective.toml`) -> `library.rs` (finds the
//! libraries that take part, and compiles our C program, `message/*.c`, with the mpicc of each;
//! `apart.rs` lets jobs of two builds use the same cores) -> `session.rs` (a job that lives through the
//! run) -> `suite.rs` (rows, round by round) and `whole.rs` (rows about starting, waiting and ending) ->
//! `report.rs` (table, CSV) and `summary.rs` (bars).
//!
//! Invariant: one job works at a time. The ranks of the others sleep in `read`, outside of MPI.

mod apart;
pub mod command;
pub mod definition;
pub mod library;
pub mod report;
pub mod session;
pub mod suite;
pub mod summary;
pub mod whole;
