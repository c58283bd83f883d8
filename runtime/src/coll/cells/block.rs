//! The memory of the cells: the shared words of the protocol (`shm/cells.rs` of the job crate), and beside each
//! cell a buffer for data that does not fit in the cell.
//!
//! `mod.rs` makes the block together with the other ranks, as a region (`region/`). Each rank has one part:
//!
//! ```text
//! part   done | waits | cells, one cache line each | buffers, LENGTH bytes each
//! ```
//!
//! Invariant: every part has `BYTES` bytes, and stays mapped as long as the block lives. Each rank may write to its own
//! part at any time. So no rank trusts the parts of the others: a reader checks the length of the data, and accepts any
//! bytes as data.

use crate::comm::Communicator;
use crate::region::Parts;
use crate::shm::cells::{CELLS, CellMemory, Seat};
use crate::{Error, ErrorKind, Result};
use std::sync::atomic::{AtomicU64, Ordering, fence};

/// Maximum number of bytes of data that a rank passes through its cell or its buffer in one call.
pub(super) const LENGTH: usize = 16 << 10;

/// Size of a cache line in bytes.
const LINE: usize = 64;

/// Offsets of the words and of the first cell in a part, in bytes.
const DONE: usize = 0;
const WAITS: usize = LINE;
const FIRST_CELL: usize = 2 * LINE;
/// Offset of the first buffer in a part, in bytes: a multiple of eight cache lines.
const FIRST_BUFFER: usize = (FIRST_CELL + CELLS * LINE).next_multiple_of(8 * LINE);
/// The size of each rank's part in bytes.
const BYTES: usize = FIRST_BUFFER + CELLS * LENGTH;

/// The parts of all ranks.
pub(super) struct Block {
    /// The address of each rank's part.
    starts: Box<[*mut u8]>,
    _parts: Parts,
}

// SAFETY: a block is a list of addresses of memory that several processes use at the same time. Words are accessed
// by atomics only. The protocol of the cells decides which rank uses a buffer, and `mod.rs` lets one thread of a
// process at a time take part in it.
unsafe impl Send for Block {}

impl Block {
    /// Makes the block. Collective.
    ///
    /// # Errors
    /// Returns `ErrorKind::NoMemory` on all ranks if a rank has too little memory, `ErrorKind::Other` if a rank has
    /// named a part of another size, and `ErrorKind::ProcAborted` if a rank has died.
    pub(super) fn new(comm: &Communicator) -> Result<Self> {
        let parts = Parts::allocate(comm, BYTES)?;
        let start = |rank| match parts.as_ptr(rank) {
            Some(start) if parts.len(rank) == BYTES => Ok(start),
            _ => {
                let detail = format!(
                    "rank {rank} has named a part of {} bytes; it must have {BYTES} bytes",
                    parts.len(rank)
                );
                Err(Error::new(ErrorKind::Other, "comm", detail))
            }
        };
        let starts = (0..comm.size()).map(start).collect::<Result<_>>()?;
        Ok(Self { starts, _parts: parts })
    }

    /// Returns the address of the buffer beside the cell of `rank` in call `number`. It has [`LENGTH`] bytes.
    #[inline]
    pub(super) fn buffer(&self, rank: usize, number: u64) -> *mut u8 {
        self.starts[rank].wrapping_add(FIRST_BUFFER + Seat::cell(number) * LENGTH)
    }

    #[inline]
    fn word(&self, rank: usize, at: usize) -> &AtomicU64 {
        debug_assert!(at < FIRST_BUFFER && at.is_multiple_of(align_of::<AtomicU64>()));
        // SAFETY:
        // - `at` is below `FIRST_BUFFER`, so the word lies within the part, which has `BYTES` bytes (`new`) and
        //   stays mapped as long as `_parts` lives;
        // - a part begins at a multiple of 64 bytes, and `at` is a multiple of 8, so the word is aligned;
        // - all ranks access this word by atomics only.
        unsafe { AtomicU64::from_ptr(self.starts[rank].wrapping_add(at).cast()) }
    }
}

impl CellMemory for Block {
    type Word = AtomicU64;

    #[inline]
    fn cell(&self, rank: usize, cell: usize, word: usize) -> &AtomicU64 {
        self.word(rank, FIRST_CELL + cell * LINE + word * size_of::<AtomicU64>())
    }

    #[inline]
    fn done(&self, rank: usize) -> &AtomicU64 {
        self.word(rank, DONE)
    }

    #[inline]
    fn waits(&self, rank: usize) -> &AtomicU64 {
        self.word(rank, WAITS)
    }

    #[inline]
    fn fence(&self) {
        fence(Ordering::SeqCst);
    }
}
