//! Measures messages and halos between two ranks, collectives, one-sided communication, and whole jobs. Compares
//! typepack with other MPIs, and with other builds of typepack. Compares other MPIs behind typepack's interposer with
//! the same MPIs alone.
//!
//! The flow: `command.rs` (arguments of `typepack-bench pingpong`, `collectives`, `one-sided` and `interpose`; `arguments.rs` has those that files and
//! regret have, too) ->
//! `definition.rs` (rows and bars from `definitions/message.toml` and its relatives) -> `library.rs` (finds the
//! libraries that take part, and compiles the C program, `message/*.c`, with the mpicc of each; `apart.rs`
//! lets jobs of two builds use the same cores) -> `session.rs` (a job that exists for the whole run) ->
//! `suite.rs` (rows, round by round) and `whole.rs` (rows about whole jobs: starting, waiting and ending)
//! -> `report.rs` (table, CSV, bars). `regret/` compares the free choice of the way of a
//! long message with forced ways, in jobs of one library.
//!
//! Invariant: only one job works at a time. The ranks of all other jobs sleep in `read`, outside of MPI.

pub(crate) mod apart;
pub mod arguments;
pub mod command;
pub mod definition;
pub mod library;
pub mod regret;
pub mod report;
pub mod session;
pub mod suite;
pub mod whole;
