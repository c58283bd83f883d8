//! The table of heaps: this rank's own heap, and the heaps of other ranks that this process has mapped.
//!
//! The process has one table, and `transport/fabric.rs` holds it. Messages that are copied in place
//! (`transport/`) and regions that ranks share (`region/`) use this table. The process maps a heap when it
//! first uses the heap. The heap then stays mapped as long as the table, or a clone of the mapping, lives.
//!
//! Invariant: a mapping covers a whole heap. So every byte whose offset is below the length of the heap is
//! mapped.

use crate::shm::Segment;
use crate::shm::heap::Heap;
use crate::shm::layout::State;
use crate::sys::memory::{Inherit, Mapping};
use std::sync::{Arc, OnceLock};

/// The result of the first attempt to map a heap: the mapping, or `None` if the attempt failed, because the
/// job has no heaps or the address space is too small. The table does not repeat a failed attempt.
type Asked<T> = OnceLock<Option<T>>;

/// The heaps that this rank has mapped: its own, and those of other ranks of the job.
#[derive(Debug)]
pub(crate) struct Heaps {
    segment: Arc<Segment>,
    rank: usize,
    own: Asked<Heap>,
    /// The heaps of the other ranks, indexed by rank. The entry of this rank stays empty.
    others: Box<[Asked<Arc<Mapping>>]>,
}

impl Heaps {
    /// Creates a table in which no heap is mapped yet. This process is rank `rank`.
    pub(crate) fn new(segment: Arc<Segment>, rank: usize) -> Self {
        let others = (0..segment.ranks()).map(|_| OnceLock::new()).collect();
        Self { segment, rank, own: OnceLock::new(), others }
    }

    /// Returns this rank's heap, and maps the heap first if necessary. Returns `None` in a job without
    /// heaps, or if the address space is too small.
    pub(crate) fn own(&self) -> Option<&Heap> {
        self.own.get_or_init(|| Heap::new(self.segment.clone(), self.rank).ok()).as_ref()
    }

    /// Returns this rank's heap if this process has already mapped the heap. The process does so before it
    /// first allocates from the heap.
    #[inline]
    pub(crate) fn used(&self) -> Option<&Heap> {
        self.own.get()?.as_ref()
    }

    /// Returns the heap of another rank, and maps the heap first if necessary. Returns `None` if the address
    /// space is too small, if the job has no heaps, or if `rank` is this rank or does not exist.
    pub(crate) fn of(&self, rank: usize) -> Option<&Arc<Mapping>> {
        let asked = self.others.get(rank).filter(|_| rank != self.rank)?;
        let map = || self.segment.map_heap(rank, Inherit::No).ok().map(Arc::new);
        asked.get_or_init(map).as_ref()
    }

    /// Returns this rank.
    pub(crate) fn rank(&self) -> usize {
        self.rank
    }

    /// Returns the number of ranks of the job.
    pub(crate) fn ranks(&self) -> usize {
        self.others.len()
    }

    /// Returns the rank in whose heap `bytes` bytes at address `at` of this process lie, and the offset of these bytes
    /// in that heap. Returns `None` if the bytes do not lie in a heap that this process has mapped.
    pub(crate) fn locate(&self, at: usize, bytes: u64) -> Option<(usize, u64)> {
        let within = |base: usize, len: usize| {
            let offset = at.checked_sub(base)? as u64;
            (offset.checked_add(bytes)? <= len as u64).then_some(offset)
        };
        if let Some(own) = self.used()
            && let Some(offset) = within(own.base().as_ptr() as usize, own.len())
        {
            return Some((self.rank, offset));
        }
        self.others.iter().enumerate().find_map(|(rank, asked)| {
            let map = asked.get()?.as_ref()?;
            Some((rank, within(map.base().as_ptr() as usize, map.len())?))
        })
    }

    /// Returns the state of another rank.
    pub(crate) fn state(&self, rank: usize) -> State {
        self.segment.state(rank)
    }

    /// Returns whether the launcher ends the job because a rank has died.
    pub(crate) fn job_ends(&self) -> bool {
        self.segment.job_ends()
    }

    /// Returns the size of each rank's heap in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.segment.layout().heap() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shm::segment::JobFlags;

    #[test]
    fn every_heap_is_mapped_once_for_the_process() {
        let segment = Segment::create(2, &[], JobFlags::default(), 0).expect("a segment");
        let segment = Arc::new(segment);
        let [here, there] = [0, 1].map(|rank| Heaps::new(segment.clone(), rank));
        assert!(here.used().is_none());
        let piece = here.own().expect("a heap").alloc(64, 64, true).expect("room");
        assert!(here.used().is_some());
        // `of` returns `None` for the rank's own heap and for rank 2, which the job does not have.
        assert!(here.of(0).is_none() && here.of(2).is_none());
        let theirs = there.of(0).expect("mapped").clone();
        assert!(Arc::ptr_eq(&theirs, there.of(0).expect("mapped")));
        assert_eq!(theirs.len() as u64, there.bytes());
        let at = piece.as_ptr() as usize - here.own().expect("a heap").base().as_ptr() as usize;
        // SAFETY: the piece is 64 bytes of the heap of rank 0. Both mappings cover it, and only this test
        // uses it.
        unsafe {
            piece.as_ptr().write(7);
            assert_eq!(theirs.base().as_ptr().add(at).read(), 7);
        }
        // `theirs` keeps its mapping after the table is dropped.
        drop(there);
        // SAFETY: `theirs` still maps the piece, whose first byte was written above.
        assert_eq!(unsafe { theirs.base().as_ptr().add(at).read() }, 7);
    }
}
