//! Measures accesses of two ranks to one shared file (MPI-IO). Compares typepack with other MPIs, and with
//! loops over a mapped file and system calls for each piece.
//!
//! The flow: `command.rs` (arguments of `typepack-bench io`) -> `definition.rs` (rows and bars from
//! `definitions/io.toml`) -> `suite.rs` (rounds: every competitor takes its turn in the jobs of
//! `../message/session.rs`, whose C program has the accesses in `message/file.c`) -> `report.rs` (table, CSV
//! and reading the CSV of a record) and `summary.rs` (bars).
//!
//! `regret.rs` compares the free choice of the way of an access with forced ways.
//!
//! A figure is the best of the interleaved rounds, because the system writes dirty pages to disk while others
//! run, and that disturbs single rounds.

pub mod command;
pub mod definition;
pub mod regret;
pub mod report;
pub mod suite;
pub mod summary;
