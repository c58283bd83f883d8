//! The table of heaps: this rank's own, and every other rank's that this process has mapped.
//!
//! One table for the process, whoever maps: messages that are copied in place (`transport/`) and
//! regions that ranks share (`region/`). `transport/fabric.rs` holds it. A heap is mapped at first need
//! and stays mapped as long as the table, or as long as somebody holds the mapping.
//!
//! Invariant: a mapping covers all of a heap, so that every place in it which was checked against the
//! length of a heap is mapped.

use crate::shm::Segment;
use crate::shm::heap::Heap;
use crate::shm::layout::State;
use crate::sys::memory::{Inherit, Mapping};
use std::sync::{Arc, OnceLock};

/// A heap that has been asked for: `None` where the address space is too small for it, which is not
/// tried again.
type Asked<T> = OnceLock<Option<T>>;

/// The heaps of a job, as one of its ranks has them.
#[derive(Debug)]
pub(crate) struct Heaps {
    segment: Arc<Segment>,
    rank: usize,
    own: Asked<Heap>,
    /// By rank; the own place stays empty.
    others: Box<[Asked<Arc<Mapping>>]>,
}

impl Heaps {
    /// Nothing is mapped yet. This process is `rank`.
    pub(crate) fn new(segment: Arc<Segment>, rank: usize) -> Self {
        let others = (0..segment.ranks()).map(|_| OnceLock::new()).collect();
        Self { segment, rank, own: OnceLock::new(), others }
    }

    /// This rank's heap, mapped now if it has not been; `None` in a job without heaps, or where the
    /// address space is too small.
    pub(crate) fn own(&self) -> Option<&Heap> {
        // Whoever gets nothing takes ordinary memory, whose messages are packed.
        self.own.get_or_init(|| Heap::new(self.segment.clone(), self.rank).ok()).as_ref()
    }

    /// This rank's heap, if anything was ever allocated from it.
    #[inline]
    pub(crate) fn used(&self) -> Option<&Heap> {
        self.own.get()?.as_ref()
    }

    /// The heap of another rank, mapped now if it has not been; `None` where the address space is too
    /// small, in a job without heaps, and for a rank that there is not.
    pub(crate) fn of(&self, rank: usize) -> Option<&Arc<Mapping>> {
        let asked = self.others.get(rank).filter(|_| rank != self.rank)?;
        let map = || self.segment.map_heap(rank, Inherit::No).ok().map(Arc::new);
        asked.get_or_init(map).as_ref()
    }

    /// Where another rank is in its life.
    pub(crate) fn state(&self, rank: usize) -> State {
        self.segment.state(rank)
    }

    /// Bytes of the heap of each rank.
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
        // Its own heap is no other rank's, and there is no third rank.
        assert!(here.of(0).is_none() && here.of(2).is_none());
        let theirs = there.of(0).expect("mapped").clone();
        assert!(Arc::ptr_eq(&theirs, there.of(0).expect("mapped")));
        assert_eq!(theirs.len() as u64, there.bytes());
        let at = piece.as_ptr() as usize - here.own().expect("a heap").base().as_ptr() as usize;
        // SAFETY: the piece is 64 bytes of the heap of rank 0, which both mappings cover, and of this
        // test alone.
        unsafe {
            piece.as_ptr().write(7);
            assert_eq!(theirs.base().as_ptr().add(at).read(), 7);
        }
        // Whoever holds a mapping keeps it.
        drop(there);
        // SAFETY: as above; the mapping is held here.
        assert_eq!(unsafe { theirs.base().as_ptr().add(at).read() }, 7);
    }
}
