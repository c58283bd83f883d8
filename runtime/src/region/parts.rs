//! The parts of a region: where a part is in this process, which ranks have left it, and when its memory is
//! freed.
//!
//! `mod.rs` makes regions from these parts, and ends the regions.
//!
//! ```text
//! part   notes: one byte per rank of the communicator, 1 = that rank has left   (whole cache lines)
//!        data
//! ```
//!
//! Invariants: each rank writes only its own note, and the owner of the part reads the notes. A part goes
//! back to the heap when its owner has left and every other rank has left or is dead.

use crate::memory::heaps::Heaps;
use crate::memory::{self, Block};
use crate::process::Process;
use crate::shm::layout::State;
use crate::sys::fork;
use crate::sys::memory::Mapping;
use crate::{Error, ErrorKind, Result};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Size of a cache line in bytes. Each part and its data begin at the start of a cache line.
pub(super) const LINE: usize = 64;

/// Parts that this process owns and has left, and that other ranks may not have left yet.
static WAITING: Mutex<Vec<OwnPart>> = Mutex::new(Vec::new());

/// Returns the size of the notes of `members` ranks, in bytes.
pub(super) fn notes(members: usize) -> usize {
    members.next_multiple_of(LINE)
}

/// A part of a region, as one rank sees it. Every rank of the region has such a value for every part.
pub(super) struct Part {
    /// Address of the first note.
    start: NonNull<u8>,
    members: usize,
    len: usize,
    /// If the part is in another rank's heap, this value keeps it mapped.
    _heap: Option<Arc<Mapping>>,
}

// SAFETY: a part is an address of memory that several processes use at the same time. This file accesses
// the memory only by atomics, so several threads may use a part too.
unsafe impl Send for Part {}
// SAFETY: all methods take `&self` and access the shared memory only by atomics, so threads may call them
// at the same time.
unsafe impl Sync for Part {}

impl Part {
    /// Returns a part of `bytes` bytes at `offset` of the heap of world rank `world`, and maps it if necessary.
    ///
    /// # Errors
    /// Returns [`ErrorKind::Other`] if the part does not lie within the heap, and `SHARED` if it cannot be mapped.
    pub(super) fn of(
        heaps: &Heaps,
        world: usize,
        members: usize,
        offset: u64,
        bytes: u64,
    ) -> Result<Self> {
        let end = offset.checked_add(notes(members) as u64).and_then(|end| end.checked_add(bytes));
        let end = end.filter(|end| *end <= heaps.bytes() && offset.is_multiple_of(LINE as u64));
        let (Some(end), Ok(len)) = (end, usize::try_from(bytes)) else {
            let detail = format!(
                "{} named {bytes} bytes at offset {offset} as its part of the region, but its shared heap does not contain \
                 these bytes",
                Process::new(world)
            );
            return Err(Error::new(ErrorKind::Other, "bytes", detail));
        };
        let mapped = heaps.map(world, &(offset..end));
        let (start, map) =
            mapped.map_err(|error| Error::new(super::SHARED, "bytes", error.to_string()))?;
        Ok(Self { start, members, len, _heap: Some(map) })
    }

    /// Returns the length of the data in bytes.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Returns the address of the first byte of the data.
    pub(super) fn as_ptr(&self) -> *mut u8 {
        self.start.as_ptr().wrapping_add(notes(self.members))
    }

    /// Returns the word at byte `offset` of the data. Returns `None` if the word does not lie within the
    /// data, or if `offset` is not a multiple of 8.
    pub(super) fn atomic(&self, offset: usize) -> Option<&AtomicU64> {
        let end = offset.checked_add(size_of::<AtomicU64>())?;
        if end > self.len || !offset.is_multiple_of(align_of::<AtomicU64>()) {
            return None;
        }
        // SAFETY:
        // - the eight bytes lie within the data, which stays mapped as long as `self` lives: in a heap that
        //   `self` holds, or in a block that its owner keeps until this rank has left;
        // - the data begins at a multiple of 64 bytes of the heap, and the heap begins at a page boundary, so
        //   the word is aligned;
        // - all ranks access the word through atomics; a program that uses the pointer instead must itself
        //   order the accesses (`SharedRegion::as_ptr`).
        Some(unsafe { AtomicU64::from_ptr(self.as_ptr().wrapping_add(offset).cast()) })
    }

    /// Sets the note that this process has left. `rank` is the rank of this process in the communicator.
    pub(super) fn leave(&self, rank: usize) {
        // A forked child is not a rank and maps no other rank's heap, so it must not write to a part.
        if !fork::is_child() {
            // The order is Release, so that all accesses of this rank to the part come before the note.
            note(self.start, rank).store(1, Ordering::Release);
        }
    }
}

/// Returns the note of rank `rank` in the part that begins at `start`.
fn note<'a>(start: NonNull<u8>, rank: usize) -> &'a AtomicU8 {
    // SAFETY: `start` is the start of a part that the caller has. The part has one byte of notes per rank,
    // which is mapped for as long as the part lives, and `rank` is a rank of the part's communicator. All
    // accesses to notes are atomic.
    unsafe { AtomicU8::from_ptr(start.as_ptr().wrapping_add(rank)) }
}

/// A part that this process owns.
pub(super) struct OwnPart {
    block: Block,
    /// World rank of each rank of the communicator.
    members: Vec<usize>,
    /// Rank of this process in the communicator.
    rank: usize,
}

impl OwnPart {
    /// Makes this process's part from a zeroed block that has room for the notes and the data.
    pub(super) fn new(block: Block, members: Vec<usize>, rank: usize) -> Self {
        Self { block, members, rank }
    }

    fn start(&self) -> Result<NonNull<u8>> {
        NonNull::new(self.block.as_ptr()).ok_or_else(|| {
            let detail = format!("the block of rank {} has a null address", self.rank);
            Error::new(ErrorKind::Internal, "region", detail)
        })
    }

    /// Returns the offset of the part in this rank's heap, in bytes. If the part is not in a heap, the
    /// result has no meaning.
    pub(super) fn offset(&self) -> u64 {
        self.block.offset().unwrap_or(0)
    }

    /// Returns this memory as a [`Part`], the form in which every rank of the region uses it.
    pub(super) fn part(&self, members: usize, len: usize) -> Result<Part> {
        Ok(Part { start: self.start()?, members, len, _heap: None })
    }

    /// Sets the note that this rank has left. The part is freed after all other ranks have left or died.
    pub(super) fn leave(self) {
        if let (Ok(start), false) = (self.start(), fork::is_child()) {
            note(start, self.rank).store(1, Ordering::Release);
        }
        WAITING.lock().unwrap_or_else(PoisonError::into_inner).push(self);
    }

    /// Returns whether all ranks have left or are dead, so that no rank can use the part any more.
    fn is_left(&self) -> bool {
        let Ok(start) = self.start() else { return false };
        // The order is Acquire, so that all accesses of the other ranks to the part come before their
        // notes.
        let left = |rank| note(start, rank).load(Ordering::Acquire) != 0;
        let dead = |world| memory::heaps().is_some_and(|heaps| heaps.state(world) == State::Dead);
        self.members.iter().enumerate().all(|(rank, &world)| left(rank) || dead(world))
    }
}

/// Frees the parts in `WAITING` that no rank can use any more.
pub(super) fn sweep() {
    if fork::is_child() {
        return;
    }
    let mut waiting = WAITING.lock().unwrap_or_else(PoisonError::into_inner);
    waiting.retain(|part| !part.is_left());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_goes_back_when_the_last_has_left() {
        let block = Block::new(notes(3) + 100, LINE, true).expect("room");
        let own = OwnPart::new(block, vec![4, 0, 7], 1);
        let part = own.part(3, 100).expect("an address");
        let start = own.start().expect("an address");
        assert_eq!(part.as_ptr() as usize - start.as_ptr() as usize, LINE);
        assert!(!own.is_left());
        for rank in [1, 0] {
            part.leave(rank);
            assert!(!own.is_left(), "{rank}");
        }
        part.leave(2);
        assert!(own.is_left());
    }

    #[test]
    fn words_are_within_the_data() {
        let block = Block::new(notes(65) + 20, LINE, true).expect("room");
        let own = OwnPart::new(block, (0..65).collect(), 0);
        let part = own.part(65, 20).expect("an address");
        assert_eq!(part.as_ptr() as usize - own.block.as_ptr() as usize, 2 * LINE);
        for offset in [0, 8] {
            part.atomic(offset).expect("a word").store(1, Ordering::Relaxed);
        }
        for offset in [4, 13, 16, 20, 24, usize::MAX, usize::MAX - 7] {
            assert!(part.atomic(offset).is_none(), "{offset}");
        }
    }

    /// Checks that a part outside the heap is refused. A faulty rank could name such a part.
    #[test]
    fn places_outside_the_heap_are_refused() {
        use crate::shm::segment::{JobFlags, Segment};
        let segment = Segment::create(2, &[], JobFlags::default(), 0).expect("a segment");
        let heaps = Heaps::new(Arc::new(segment), 1);
        let len = heaps.bytes();
        let part = |offset, bytes| Part::of(&heaps, 0, 2, offset, bytes);
        assert_eq!(part(64, 100).expect("within").len(), 100);
        assert!(part(0, len - 64).is_ok() && part(len - 64, 0).is_ok());
        for (offset, bytes) in [
            (8, 8),
            (0, len - 63),
            (len, 0),
            (len - 64, 1),
            (64, u64::MAX - 64),
            (u64::MAX - 63, 64),
        ] {
            assert!(part(offset, bytes).is_err(), "{offset} {bytes}");
        }
    }
}
