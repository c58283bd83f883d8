//! Partitioned messages (MPI-5.0 chapter 4): persistent sends whose parts become ready one by one, and persistent
//! receives whose parts arrive one by one. `README.md` says how they work.
//!
//! The files before this folder: `comm/` has the communicators, `endpoint/` the messages that carry the partitions.

mod calls;
mod guard;
mod hello;
mod marks;
mod receive;
mod round;
mod send;
mod table;

pub(crate) use calls::register;
// For the C library.
#[doc(hidden)]
pub use calls::{RawReceive, RawSend};
pub use guard::{Incoming, Partition, PartitionedReceive, PartitionedSend, Partitions};

use crate::{Error, ErrorKind};

#[cold]
fn no_partition(partition: i64, partitions: usize, argument: &'static str) -> Error {
    let detail = format!("there is no partition {partition}; the operation has {partitions}");
    Error::new(ErrorKind::Argument, argument, detail)
}
