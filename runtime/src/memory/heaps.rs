//! The table of heaps: this rank's own heap, and the heaps of other ranks that this process uses.
//!
//! The process has one table, and `transport/link/fabric.rs` holds it. Messages that are copied in place
//! (`transport/`) and regions that ranks share (`region/`) use this table. The process maps a part of a heap when it
//! first uses an address there (`shm/extents.rs`). If address space is short, parts that nobody uses make room for
//! others.

use crate::process::Process;
use crate::shm::Segment;
use crate::shm::extents::Extents;
use crate::shm::heap::Heap;
use crate::shm::layout::State;
use crate::sys::limits::limits_addresses;
use crate::sys::memory::{Inherit, Mapping};
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::{Arc, OnceLock};
use typepack_job::{Error, ErrorKind};

/// Memory of a heap in this process: the address, and the mapping that must live as long as the address is used.
pub(crate) type Mapped = (NonNull<u8>, Arc<Mapping>);

/// Number of slots of a row.
const ROW: usize = 64;

type Row = Box<[OnceLock<Extents>; ROW]>;

/// The heaps that this rank uses: its own, and those of other ranks of the job.
#[derive(Debug)]
pub(crate) struct Heaps {
    segment: Arc<Segment>,
    rank: usize,
    own: OnceLock<Option<Heap>>,
    /// The heaps of the other processes, by slot, in rows of [`ROW`] slots. The entry of this process stays empty. A
    /// row without heaps takes no memory, because most slots stay free.
    others: Box<[OnceLock<Row>]>,
    /// True if the address space of this process is limited.
    scarce: bool,
}

impl Heaps {
    /// Creates a table in which no heap is mapped yet. This process is rank `rank`.
    pub(crate) fn new(segment: Arc<Segment>, rank: usize) -> Self {
        let rows = segment.layout().room().slots.div_ceil(ROW);
        let others = (0..rows).map(|_| OnceLock::new()).collect();
        Self { segment, rank, own: OnceLock::new(), others, scarce: limits_addresses() }
    }

    /// Returns whether address space may run short, so that nobody should keep a part of a heap mapped without need.
    pub(crate) fn is_scarce(&self) -> bool {
        self.scarce
    }

    /// Returns this rank's heap. Returns `None` in a job without heaps.
    pub(crate) fn own(&self) -> Option<&Heap> {
        self.own.get_or_init(|| Heap::new(self.segment.clone(), self.rank)).as_ref()
    }

    /// Returns this rank's heap if this process has already used it. The process does so before it
    /// first allocates from the heap.
    #[inline]
    pub(crate) fn used(&self) -> Option<&Heap> {
        self.own.get()?.as_ref()
    }

    /// Allocates memory in this rank's heap ([`Heap::alloc`]). Returns `None` in a job without heaps.
    pub(crate) fn alloc(
        &self,
        len: usize,
        align: usize,
        zeroed: bool,
    ) -> Option<Result<NonNull<u8>, Error>> {
        let heap = self.own()?;
        let first = heap.alloc(len, align, zeroed);
        let no_room = first.as_ref().is_err_and(|error| error.kind() == ErrorKind::NoMemory);
        Some(if no_room && self.unmap_unused() { heap.alloc(len, align, zeroed) } else { first })
    }

    /// Returns the heap of another rank. Returns `None` if the job has no heaps, or if `rank` is this rank or no
    /// process has its slot.
    #[inline]
    pub(crate) fn of(&self, rank: usize) -> Option<&Extents> {
        let known = self.others.get(rank / ROW).and_then(OnceLock::get);
        match known.and_then(|row| row[rank % ROW].get()) {
            Some(extents) => Some(extents),
            None => self.begin(rank),
        }
    }

    /// Enters the heap of another rank into the table.
    #[cold]
    fn begin(&self, rank: usize) -> Option<&Extents> {
        if rank == self.rank || self.bytes() == 0 || rank >= self.ranks() {
            return None;
        }
        let row = self.others.get(rank / ROW)?;
        let row = row.get_or_init(|| Box::new([const { OnceLock::new() }; ROW]));
        let new = || Extents::new(self.segment.clone(), rank, Inherit::No);
        Some(row[rank % ROW].get_or_init(new))
    }

    /// Returns the heaps of other ranks that this process has used, and the ranks.
    fn others(&self) -> impl Iterator<Item = (usize, &Extents)> {
        let rows = self.others.iter().enumerate().filter_map(|(at, row)| Some((at, row.get()?)));
        rows.flat_map(|(at, row)| {
            row.iter()
                .enumerate()
                .filter_map(move |(column, extents)| Some((at * ROW + column, extents.get()?)))
        })
    }

    /// Returns the memory of a range of the heap of another rank or of this one, and maps it first if necessary.
    ///
    /// # Errors
    /// Returns the errors of [`Extents::map`], and [`ErrorKind::Argument`] if there is no such heap.
    pub(crate) fn map(&self, rank: usize, range: &Range<u64>) -> Result<Mapped, Error> {
        let none = || {
            Error::new(ErrorKind::Argument, format!("{} has no shared heap", Process::new(rank)))
        };
        if rank == self.rank {
            let own = self.used().ok_or_else(none)?;
            return own.extents().find(range).ok_or_else(none);
        }
        let extents = self.of(rank).ok_or_else(none)?;
        let first = extents.map(range);
        let no_room = first.as_ref().is_err_and(|error| error.kind() == ErrorKind::NoMemory);
        if no_room && self.unmap_unused() { extents.map(range) } else { first }
    }

    /// Unmaps the parts of all heaps that nobody uses. Returns whether there were any.
    #[cold]
    fn unmap_unused(&self) -> bool {
        let own = self.used().is_some_and(Heap::unmap_unused);
        self.others().fold(own, |any, (_, extents)| extents.remove_unused() || any)
    }

    /// Gives memory to all pages that a range of a heap touches, from the NUMA node of this process.
    ///
    /// # Errors
    /// Returns the errors of [`Extents::populate`].
    pub(crate) fn populate(&self, rank: usize, range: &Range<u64>) -> Result<(), Error> {
        let own = self.used().filter(|_| rank == self.rank).map(Heap::extents);
        own.or_else(|| self.of(rank)).map_or(Ok(()), |extents| extents.populate(range))
    }

    /// Returns this rank.
    pub(crate) fn rank(&self) -> usize {
        self.rank
    }

    /// Returns the number of ranks of the job, with those that have joined later.
    pub(crate) fn ranks(&self) -> usize {
        self.segment.processes()
    }

    /// Returns the rank in whose heap `bytes` bytes at address `at` of this process lie, and the offset of these bytes
    /// in that heap. Returns `None` if the bytes do not lie in one mapped part of a heap.
    pub(crate) fn locate(&self, at: usize, bytes: u64) -> Option<(usize, u64)> {
        let (start, end) = (at as i128, at as i128 + i128::from(bytes));
        if let Some(offset) = self.used().and_then(|own| own.extents().locate(start, end)) {
            return Some((self.rank, offset));
        }
        self.others().find_map(|(rank, extents)| Some((rank, extents.locate(start, end)?)))
    }

    /// Returns the state of another rank.
    pub(crate) fn state(&self, rank: usize) -> State {
        self.segment.state(rank)
    }

    /// Returns whether the launcher ends this rank because another rank has died.
    pub(crate) fn job_ends(&self) -> bool {
        self.segment.is_ended(self.rank)
    }

    /// Returns the size of each rank's heap in bytes.
    #[inline]
    pub(crate) fn bytes(&self) -> u64 {
        self.segment.layout().heap() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shm::segment::JobFlags;

    #[test]
    fn a_part_of_a_heap_is_mapped_once_for_the_process() {
        let segment = Segment::create(2, &[], JobFlags::default(), 0).expect("a segment");
        let segment = Arc::new(segment);
        let [here, there] = [0, 1].map(|rank| Heaps::new(segment.clone(), rank));
        assert!(here.used().is_none());
        let piece = here.alloc(64, 64, true).expect("a heap").expect("room");
        let offset = here.used().expect("a heap").offset_of(piece.as_ptr(), 64).expect("within");
        // `of` returns `None` for the rank's own heap and for rank 2, which the job does not have.
        assert!(here.of(0).is_none() && here.of(2).is_none());
        // A process that joins later has a heap, too.
        segment.add_world(0, 2).expect("room");
        segment.add_world(2, 100).expect("room");
        assert!(here.of(100).is_some() && here.of(102).is_none() && here.of(usize::MAX).is_none());
        assert_eq!(here.others().map(|(rank, _)| rank).collect::<Vec<_>>(), [100]);
        let range = offset..offset + 64;
        let (theirs, map) = there.map(0, &range).expect("address space");
        assert!(Arc::ptr_eq(&map, &there.map(0, &range).expect("mapped").1));
        assert!(there.map(0, &(0..there.bytes() + 1)).is_err() && there.map(1, &range).is_err());
        assert_eq!(here.locate(piece.as_ptr() as usize, 64), Some((0, offset)));
        assert_eq!(there.locate(theirs.as_ptr() as usize, 64), Some((0, offset)));
        // SAFETY: the piece is 64 bytes of the heap of rank 0. Both mappings cover it, and only this test
        // uses it.
        unsafe {
            piece.as_ptr().write(7);
            assert_eq!(theirs.as_ptr().read(), 7);
        }
        // `map` keeps its mapping after the table is dropped.
        drop(there);
        // SAFETY: `map` still maps the piece, whose first byte was written above.
        assert_eq!(unsafe { theirs.as_ptr().read() }, 7);
    }
}
