//! The memory of the cells: the shared words of the protocol (`shm/cells.rs` of the job crate), and for each rank a
//! ring for data that does not fit in a cell.
//!
//! `mod.rs` makes the block together with the other ranks, as a region (`region/`). Each rank has one part:
//!
//! ```text
//! part   done | waits, awaits | cells, one cache line each | times, a line for each rank |
//!        decisions, a line for each key | times of calls, half a line each | ring, RING bytes
//! ```
//!
//! Only the decisions in the part of rank 0 are used (`choices.rs`).
//!
//! If a rank has passed more data than a piece of this ring holds, the ranks make another region with a longer ring in
//! a later call. Every rank then uses this ring instead.
//!
//! A rank writes each piece of data behind the piece before it, and its cell names the place. If a rank wrote all
//! pieces to the same place, each store would be slow: the other ranks have read the old data there, so their caches
//! share the lines, and the owner's core must first take each line back. In a ring that is longer than the second-level
//! caches, the lines have left these caches before the rank uses them again. (If ranks share CPUs, a shorter ring is
//! better.) Measured on a Zen 4 with second-level caches of 1 MiB, two ranks on near cores, a broadcast of 64 KiB:
//! 10.4 us in a ring of 256 KiB, 4.9 us in 1 MiB, 3.4 us in 2 MiB, 5.6 us in 4 MiB.
//!
//! A rank remembers in which step it has published each of its last pieces. It writes over a piece only after all other
//! ranks have ended that step ([`Block::needed`]). So a rank with short pieces can be many steps ahead of the others.
//!
//! Invariant: every part has its full size, and stays mapped as long as the block lives. Each rank may write to its own
//! part at any time. So no rank trusts the parts of the others: a reader checks the length of the data, and accepts any
//! bytes as data.

use super::MOST;
use super::choices::{DecisionMemory, ENTRIES, KEYS, TIMES};
use crate::comm::Communicator;
use crate::region::Parts;
use crate::shm::cells::{CELLS, CellMemory};
use crate::transport::link::area::Area;
use crate::{Error, ErrorKind, Result};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering, fence};

/// Size of the first ring in bytes.
const RING: usize = 80 << 10;

/// Size of the longer ring of each rank in bytes, if there are few ranks.
const LONG: usize = 2 << 20;

/// Size of the longer ring of each rank in bytes if the ranks share CPUs. Then the rank that reads a piece often runs
/// on the CPU of the rank that has written the piece, and a ring that fits in the second-level cache is better.
const LONG_SHARED: usize = 640 << 10;

/// Maximum size of the longer rings of all ranks together, in bytes.
const ALL_LONG: usize = 16 << 20;

/// A piece of data is at most one part in `PIECES` of a ring. So a rank can be some pieces ahead of the ranks that
/// read.
const PIECES: usize = 5;

/// Largest piece of the first ring, in bytes.
pub(super) const SHORT: u64 = (RING / PIECES) as u64;

const _: () = assert!(LONG_SHARED <= LONG && RING <= LONG_SHARED && RING <= ALL_LONG / MOST);

/// Size of a cache line in bytes.
const LINE: usize = 64;

/// Offsets of the words and of the first cell in a part, in bytes.
const DONE: usize = 0;
const WAITS: usize = LINE;
const AWAITS: usize = WAITS + size_of::<u64>();
const FIRST_CELL: usize = 2 * LINE;
/// Offset of the times that this rank has measured, one line for each rank that may ask for them (`copies.rs`), in
/// bytes. A line has the number of the step, and the time in nanoseconds.
const FIRST_TIME: usize = FIRST_CELL + CELLS * LINE;
/// Offset of the decisions (`choices.rs`), in bytes.
const FIRST_DECISION: usize = FIRST_TIME + MOST * LINE;
/// Offset of the times of whole calls (`choices.rs`), in bytes.
const FIRST_CALL: usize = FIRST_DECISION + KEYS * LINE;
/// Number of bytes from the times of one call to those of the next one.
const CALL: usize = LINE / 2;
/// Offset of the ring in a part, in bytes: a multiple of eight cache lines.
const FIRST_RING: usize = (FIRST_CALL + TIMES * CALL).next_multiple_of(8 * LINE);
/// The size of each rank's part in bytes.
const BYTES: usize = FIRST_RING + RING;

const _: () = assert!(ENTRIES * size_of::<u64>() == LINE);

/// The parts of all ranks.
pub(super) struct Block {
    /// The address of each rank's part.
    starts: Box<[*mut u8]>,
    _parts: Parts,
    long: Long,
    /// The place in this rank's ring behind the last piece, in bytes.
    next: usize,
    /// The last pieces in this rank's ring, from the oldest one on: at most [`CELLS`].
    pieces: VecDeque<Piece>,
    /// The greatest number of a step with a piece that has been removed from `pieces`.
    removed: u64,
}

/// A piece in this rank's ring.
#[derive(Clone, Copy, Debug)]
struct Piece {
    /// The number of the step in which this rank has published the piece.
    number: u64,
    start: usize,
    end: usize,
}

/// The longer rings.
enum Long {
    NotYet,
    /// A rank had too little memory.
    Denied,
    Made {
        /// The address of each rank's ring.
        starts: Box<[*mut u8]>,
        len: usize,
        _parts: Parts,
    },
}

// SAFETY: a block is a list of addresses of memory that several processes use at the same time. Words are accessed
// by atomics only. The protocol of the cells decides which rank uses which bytes of a ring, and `mod.rs` lets one
// thread of a process at a time take part in it.
unsafe impl Send for Block {}

impl Block {
    /// Makes the block, or returns `None` on all ranks if a rank has too little memory. Collective.
    ///
    /// # Errors
    /// Returns `ErrorKind::NoMemory` if this rank has too little memory for a message to another rank,
    /// `ErrorKind::Other` if a rank has named a part of another size, and `ErrorKind::ProcAborted` if a rank has died.
    pub(super) fn new(comm: &Communicator) -> Result<Option<Self>> {
        let made = allocate(comm, BYTES)?;
        let block = |(starts, parts)| Self {
            starts,
            _parts: parts,
            long: Long::NotYet,
            next: 0,
            pieces: VecDeque::with_capacity(CELLS),
            removed: 0,
        };
        Ok(made.map(block))
    }

    /// Takes part in [`new`](Self::new) as a rank that has too little memory. Collective.
    ///
    /// # Errors
    /// Returns the errors of [`new`](Self::new).
    #[cold]
    pub(super) fn refuse(comm: &Communicator) -> Result<()> {
        allocate(comm, usize::MAX).map(drop)
    }

    /// Makes the longer rings. Collective. If a rank has too little memory, no rank has a longer ring. All ranks pass
    /// the same `share_cpus`: whether they share CPUs.
    ///
    /// # Errors
    /// Returns the errors of [`new`](Self::new). This rank then uses the first ring for ever.
    #[cold]
    pub(super) fn lengthen(&mut self, comm: &Communicator, share_cpus: bool) -> Result<()> {
        let most = if share_cpus { LONG_SHARED } else { LONG };
        let len = most.min(ALL_LONG / comm.size()) / (LINE * PIECES) * (LINE * PIECES);
        self.long = Long::Denied;
        if let Some((starts, parts)) = allocate(comm, len)? {
            self.long = Long::Made { starts, len, _parts: parts };
            self.next = 0;
            self.pieces.clear();
        }
        Ok(())
    }

    /// Returns whether the ranks have not yet tried to make the longer rings.
    #[inline]
    pub(super) fn may_lengthen(&self) -> bool {
        matches!(self.long, Long::NotYet)
    }

    /// Returns whether this rank uses the longer rings.
    #[inline]
    pub(super) fn is_long(&self) -> bool {
        matches!(self.long, Long::Made { .. })
    }

    /// Returns the size of the ring of each rank in bytes.
    #[inline]
    fn len(&self) -> usize {
        match self.long {
            Long::Made { len, .. } => len,
            Long::NotYet | Long::Denied => RING,
        }
    }

    /// Returns the largest number of bytes of a piece.
    #[inline]
    pub(super) fn room(&self) -> u64 {
        (self.len() / PIECES) as u64
    }

    /// Returns the number of a step. When all other ranks have ended it, no rank reads the bytes in which this rank
    /// writes its next piece, which has `bytes` bytes, at most [`room`](Self::room).
    #[inline]
    pub(super) fn needed(&mut self, bytes: u64) -> u64 {
        let (start, end) = self.next_piece(bytes);
        while let Some(oldest) = self.pieces.front() {
            // If the next piece does not fit behind the last one, it goes to the start of the ring, and the pieces at
            // the end of the ring are the oldest ones.
            let passed = start < self.next && oldest.start >= self.next;
            if !passed && (oldest.start >= end || oldest.end <= start) {
                break;
            }
            self.forget();
        }
        self.removed
    }

    /// Returns the place of the next piece of this rank, which has `bytes` bytes and which the rank publishes in step
    /// `number`. All other ranks have ended the step that [`needed`](Self::needed) has returned for the piece.
    #[inline]
    pub(super) fn place(&mut self, number: u64, bytes: u64) -> u64 {
        let (start, end) = self.next_piece(bytes);
        debug_assert!(end - start <= self.len() / PIECES);
        self.next = end;
        if self.pieces.len() == CELLS {
            self.forget();
        }
        self.pieces.push_back(Piece { number, start, end });
        start as u64
    }

    /// Returns the range of the next piece in this rank's ring.
    #[inline]
    fn next_piece(&self, bytes: u64) -> (usize, usize) {
        let bytes = (bytes as usize).next_multiple_of(LINE);
        let start = if self.next + bytes > self.len() { 0 } else { self.next };
        (start, start + bytes)
    }

    /// Removes the oldest piece from the list.
    fn forget(&mut self) {
        if let Some(piece) = self.pieces.pop_front() {
            self.removed = self.removed.max(piece.number);
        }
    }

    /// Returns the address of the `bytes` bytes at a place in the ring of `rank`. If these bytes do not lie within the
    /// ring, the address is that of other bytes of the ring. Then the rank is faulty, and its data are arbitrary.
    ///
    /// # Panics
    /// Panics if no place of the ring has so many bytes. Callers ask for at most [`room`](Self::room) bytes.
    #[inline]
    pub(super) fn piece(&self, rank: usize, place: u64, bytes: u64) -> *mut u8 {
        let at = within(self.len(), place, bytes);
        match &self.long {
            Long::Made { starts, .. } => starts[rank].wrapping_add(at),
            _ => self.starts[rank].wrapping_add(FIRST_RING + at),
        }
    }

    /// Stores the time in nanoseconds in which rank `rank`, this rank, has copied the piece of rank `writer` in step
    /// `number`.
    pub(super) fn measure(&self, rank: usize, writer: usize, number: u64, time: u64) {
        let at = FIRST_TIME + writer * LINE;
        // The stores are Relaxed except the last one, so that a reader that sees the new number also sees the new time.
        self.word(rank, at).store(0, Ordering::Relaxed);
        fence(Ordering::Release);
        self.word(rank, at + size_of::<u64>()).store(time, Ordering::Relaxed);
        self.word(rank, at).store(number, Ordering::Release);
    }

    /// Returns the time in nanoseconds in which rank `reader` has copied the piece of rank `writer`, this rank, in step
    /// `number`, if `reader` has stored it.
    pub(super) fn measured(&self, writer: usize, reader: usize, number: u64) -> Option<u64> {
        let at = FIRST_TIME + writer * LINE;
        let stored = self.word(reader, at).load(Ordering::Acquire) == number;
        stored.then(|| self.word(reader, at + size_of::<u64>()).load(Ordering::Relaxed))
    }

    #[inline]
    fn word(&self, rank: usize, at: usize) -> &AtomicU64 {
        debug_assert!(at < FIRST_RING && at.is_multiple_of(align_of::<AtomicU64>()));
        // SAFETY:
        // - `at` is below `FIRST_RING`, so the word lies within the part, which has `BYTES` bytes (`new`) and
        //   stays mapped as long as `_parts` lives;
        // - a part begins at a multiple of 64 bytes, and `at` is a multiple of 8, so the word is aligned;
        // - all ranks access this word by atomics only.
        unsafe { AtomicU64::from_ptr(self.starts[rank].wrapping_add(at).cast()) }
    }
}

/// The parts of a region, and the address of each rank's part.
type Located = (Box<[*mut u8]>, Parts);

/// Makes a region with a part of `bytes` bytes for each rank, or returns `None` on all ranks if a rank has too little
/// memory. Collective.
fn allocate(comm: &Communicator, bytes: usize) -> Result<Option<Located>> {
    let Ok(parts) = Parts::agree(comm, bytes, false)? else { return Ok(None) };
    let start = |rank| match parts.as_ptr(rank) {
        Some(start) if parts.len(rank) == bytes => Ok(start),
        _ => {
            let detail = format!(
                "rank {rank} has named a part of {} bytes; it must have {bytes} bytes",
                parts.len(rank)
            );
            Err(Error::new(ErrorKind::Other, "comm", detail))
        }
    };
    let starts = (0..comm.size()).map(start).collect::<Result<_>>()?;
    Ok(Some((starts, parts)))
}

impl DecisionMemory for Block {
    #[inline]
    fn entry(&self, key: usize, entry: usize) -> &AtomicU64 {
        self.word(0, FIRST_DECISION + key * LINE + entry * size_of::<AtomicU64>())
    }

    #[inline]
    fn time(&self, rank: usize, place: usize, word: usize) -> &AtomicU64 {
        self.word(rank, FIRST_CALL + place * CALL + word * size_of::<AtomicU64>())
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
    fn awaits(&self, rank: usize) -> &AtomicU64 {
        self.word(rank, AWAITS)
    }

    #[inline]
    fn fence(&self) {
        fence(Ordering::SeqCst);
    }

    #[inline]
    fn claim(&self, rank: usize, cell: usize) {
        Area::claim(self.starts[rank].wrapping_add(FIRST_CELL + cell * LINE));
    }

    #[inline]
    fn fetch(&self, rank: usize, cell: usize) {
        Area::fetch(self.starts[rank].wrapping_add(FIRST_CELL + cell * LINE));
    }
}

/// Returns the offset of `bytes` bytes at a place in a ring of `len` bytes; see [`Block::piece`].
#[inline]
fn within(len: usize, place: u64, bytes: u64) -> usize {
    assert!(bytes <= len as u64, "a piece of {bytes} bytes in a ring of {len} bytes");
    usize::try_from(place).unwrap_or(0).min(len - bytes as usize)
}

#[cfg(test)]
mod tests {
    use crate::coll::flags::block::within;

    /// Whatever place and length are given, the bytes lie within the ring, or there is no address.
    #[test]
    fn a_piece_lies_within_the_ring() {
        for (place, bytes, at) in [
            (0, 64, Some(0)),
            (64, 64, Some(64)),
            (1000, 64, Some(960)),
            (0, 1024, Some(0)),
            (9, 1024, Some(0)),
            (u64::MAX, 1, Some(1023)),
            (0, 1025, None),
            (0, u64::MAX, None),
        ] {
            let found = std::panic::catch_unwind(|| within(1024, place, bytes)).ok();
            assert_eq!(found, at, "{place} {bytes}");
        }
    }
}
