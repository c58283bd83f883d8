//! The one piece of memory that all processes of a job share.
//!
//! `layout.rs` says what lies where, `segment.rs` maps it and gives typed access, `heap.rs` gives
//! out what this rank has of the shared heap (`ranges.rs` keeps the books), `topology.rs` is
//! the machine table, `attach.rs` is how a rank finds the segment that `mpiexec` made,
//! `failure.rs` how one failed, `doorbell.rs` how one sleeps, `contacts.rs` how one finds the areas in which
//! others write to it, `pair.rs` divides the area of one ordered pair of ranks for `ring.rs`, `bulk.rs`, `work_split.rs` and `withdrawal.rs`. The protocol between the
//! processes is told in `README.md` beside this file.
//!
//! Invariants: zero-filled memory is a valid state of everything; no address that
//! stands in it is ever followed (those of private memories go to the kernel, which checks them); a
//! reader trusts nothing that another process can write.

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
