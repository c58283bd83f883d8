//! The memory that all processes of a job share.
//!
//! `layout.rs` defines the layout of the segment. `segment.rs` maps the segment and gives typed access to its
//! parts. `heap.rs` allocates from this rank's heap, and `ranges.rs` implements the sets of byte ranges in
//! which `heap.rs` records which bytes are free and which bytes have memory. `topology.rs` describes the
//! machine's CPUs. `attach.rs` finds the segment that `mpiexec` made. `failure.rs` describes how a rank
//! failed. `doorbell.rs` lets a rank sleep until another rank wakes it. `waiting.rs` tells mpiexec what a rank
//! waits for. `contacts.rs` finds the areas in
//! which other processes write to this process, and `budget.rs` limits the memory that the job takes for them.
//! `pair.rs` divides the area of one ordered pair of ranks into the parts that `ring.rs`, `bulk.rs`,
//! `work_split.rs`, `withdrawal.rs` and `recall.rs` use. `cells.rs` passes data of collective calls from
//! each rank of a communicator to all others. `README.md` beside this file describes the protocol
//! between the processes.
//!
//! Invariants: memory of zeros is a valid state of every part. No process dereferences an address that it
//! finds in shared memory. Such addresses refer to the private memory of other processes; a process does
//! nothing with them except pass them to the kernel, which checks them. A reader trusts no word that another
//! process can write.

pub mod attach;
pub mod budget;
pub mod bulk;
pub mod cells;
pub mod contacts;
mod doorbell;
pub mod extents;
pub mod failure;
pub mod heap;
pub mod layout;
pub mod pair;
mod ranges;
pub mod recall;
pub mod ring;
pub mod segment;
pub mod topology;
pub mod waiting;
pub mod withdrawal;
pub mod work_split;

pub use attach::{Attached, attach_from_env};
pub use segment::Segment;
