//! The heads of cells: what a rank says about the data that it passes on, and the errors if it does not say what the
//! reader expects.

use super::block::Block;
use super::turn::LONGEST;
use crate::schedule::sizes::COMPARE;
use crate::{Error, ErrorKind, Result};

/// Stands for the head of a cell that will never come, because its owner has ended the call. Any other head is the
/// number of bytes of data that the owner passes on in this call.
pub(super) const LEFT: u64 = u64::MAX;

/// The values from here on stand for failures: [`LEFT`] and [`OTHER_RING`].
pub(super) const FAILURES: u64 = OTHER_RING;

/// Stands for the head of a rank that uses another ring than this rank ([`Block::is_long`]). One of the two ranks has
/// made the longer ring. The other had too little memory for the messages by which the ranks make the longer ring.
pub(super) const OTHER_RING: u64 = u64::MAX - 1;

/// The bit of a head that says that the rank makes this call by messages, although its data would fit in cells. The
/// lower bits have the number of bytes.
pub(super) const BY_MESSAGES: u64 = 1 << 61;

/// The bit of a head that says that each rank combines a slice of the data. A rank passes no data of its own slice on,
/// so no other rank may read them.
pub(super) const IN_SLICES: u64 = 1 << 60;

const _: () = assert!(LONGEST < IN_SLICES);

/// The bit of a head in a cell that says that the owner uses the longer ring.
pub(super) const LONG: u64 = 1 << 62;

/// Returns the number of bytes of data that a head in a cell says, or [`OTHER_RING`].
#[inline]
pub(super) fn checked(block: &Block, head: u64) -> u64 {
    if (head & LONG != 0) == block.is_long() { head & !LONG } else { OTHER_RING }
}

/// Checks that rank `from`, whose cell has this head, passes `bytes` bytes on.
#[inline]
pub(super) fn check(from: usize, head: u64, bytes: u64) -> Result<()> {
    if head == bytes { Ok(()) } else { Err(unexpected(from, head, bytes)) }
}

#[cold]
fn unexpected(from: usize, head: u64, bytes: u64) -> Error {
    match head {
        LEFT => {
            let detail = format!(
                "rank {from} has ended the call without data for this rank; either it has failed, and its error has \
                 the reason, or it does not send to this rank; {COMPARE}"
            );
            Error::new(ErrorKind::Other, "message", detail)
        }
        OTHER_RING => {
            let detail = format!(
                "rank {from} uses other shared memory than this rank, because memory ran out"
            );
            Error::new(ErrorKind::NoMemory, "memory", detail)
        }
        _ if (head | bytes) & BY_MESSAGES != 0 || (head ^ bytes) & IN_SLICES != 0 => {
            let detail = format!(
                "rank {from} passes another number of bytes than this rank, or makes another call; {COMPARE}"
            );
            Error::new(ErrorKind::Count, "count", detail)
        }
        _ if head > bytes => {
            let [head, bytes] = [head, bytes].map(|head| head & !IN_SLICES);
            let detail = format!(
                "rank {from} passes {head} bytes, but at most {bytes} bytes fit; {COMPARE}"
            );
            Error::new(ErrorKind::Truncated, "count", detail)
        }
        _ => {
            let [head, bytes] = [head, bytes].map(|head| head & !IN_SLICES);
            let detail = format!(
                "part sizes differ: rank {from} has {head} bytes, but this rank has {bytes} bytes; {COMPARE}"
            );
            Error::new(ErrorKind::Count, "count", detail)
        }
    }
}
