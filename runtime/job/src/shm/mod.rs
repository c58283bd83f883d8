//! The memory that all processes of a job share.
//!
//! `layout.rs` defines the layout; `segment.rs` maps it and gives typed access. `heap.rs` allocates from this
//! rank's part of the shared heap (`ranges.rs` has the free ranges). `topology.rs` is the machine table.
//! `attach.rs` finds the segment that `mpiexec` made. `failure.rs` describes how a rank failed. `doorbell.rs`
//! lets a rank sleep. `contacts.rs` finds the areas in which other processes write to this one. `pair.rs`
//! divides the area of one ordered pair for `ring.rs`, `bulk.rs`, `work_split.rs` and `withdrawal.rs`.
//! `README.md` beside this file describes the protocol between the processes.
//!
//! Invariants: all zeros is a valid state of everything. No process follows an address that it finds in
//! shared memory; addresses of private memory go to the kernel, which checks them. A reader trusts no word
//! that another process can write.

pub mod attach;
pub mod bulk;
pub mod contacts;
mod doorbell;
pub mod failure;
pub mod heap;
pub mod layout;
pub mod pair;
mod ranges;
pub mod ring;
pub mod segment;
pub mod topology;
pub mod withdrawal;
pub mod work_split;

pub use attach::{Attached, attach_from_env};
pub use segment::Segment;
