//! Measures accesses of two ranks to one shared file (MPI-IO). Compares typepack with other MPIs, and with
//! hand-written loops: over a mapped file, and with one system call for each piece.
//!
//! The flow: `command.rs` (arguments of `typepack-bench io`) -> `definition.rs` (rows and bars from
//! `definitions/io.toml`) -> `suite.rs` (rounds: every competitor takes its turn in the jobs of
//! `../message/session.rs`, whose C program has the accesses in `message/file.c`) ->
//! `../message/report.rs` (table, CSV, bars).
//!
//! `regret.rs` compares the free choice of the way of an access with forced ways.
//!
//! A figure is the best of the interleaved rounds, because the operating system may write dirty pages to disk
//! at any time, which makes single rounds slower.

pub mod command;
pub mod definition;
pub mod regret;
pub mod suite;
