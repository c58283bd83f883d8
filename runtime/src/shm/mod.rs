//! The one piece of memory that all processes of a job share.
//!
//! `layout.rs` says what lies where, `segment.rs` maps it and gives typed access, `topology.rs` is
//! the machine table in it, `attach.rs` is how a rank finds the segment that `mpiexec` made,
//! `failure.rs` how one failed, `pair.rs` divides the area of one ordered pair of ranks for `ring.rs`
//! and `bulk.rs`. The protocol between the processes is told in `README.md` beside this file.
//!
//! Invariants: zero-filled memory is a valid state of everything; no address is ever stored in it;
//! a reader trusts nothing that another process can write.

pub mod attach;
pub(crate) mod bulk;
pub mod failure;
pub mod layout;
pub mod pair;
pub(crate) mod ring;
pub mod segment;
pub mod topology;

mod error;

pub use attach::{Attached, attach_from_env};
pub use error::{SegmentError, SegmentErrorKind};
pub use segment::Segment;
