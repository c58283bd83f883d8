//! The extents of one heap: the parts of it that this process has mapped.
//!
//! A heap is as large as the machine's memory, but address space may be limited (`ulimit -v`), and a process maps the
//! heaps of many ranks. So a process maps a part of a heap when it first uses an address there. `heap.rs` decides which
//! parts of this rank's own heap are mapped; this file decides it for the heaps of other ranks: at first 16 MiB around
//! the address, and more with every further extent.
//!
//! Invariants: an extent is one mapping, so a range of the heap within an extent has adjacent addresses. Extents of
//! another rank's heap may overlap. An extent stays mapped while anybody has its mapping.

use std::ops::Range;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::layout::HUGE_PAGE;
use super::segment::{Segment, unmapped};
use crate::error::{Error, ErrorKind};
use crate::sys::memory::{self, Inherit, Mapping};

/// The least length of an extent, unless address space is short.
pub(super) const STEP: u64 = 16 << 20;

/// Returns the length in bytes of the next extent if there are `count` extents: a power of two.
pub(super) fn step(count: usize) -> u64 {
    STEP << count.min(16)
}

/// Returns the lengths to try for an extent, because address space may be short: `wanted` first, then half as much each
/// time, in whole huge pages, and `least` last. `wanted` must not be below `least`.
pub(super) fn lengths(wanted: u64, least: u64) -> impl Iterator<Item = u64> {
    let huge = HUGE_PAGE as u64;
    let next = move |len: &u64| (*len > least).then(|| (len / 2 / huge * huge).max(least));
    std::iter::successors(Some(wanted), next)
}

/// An extent.
#[derive(Debug)]
struct Extent {
    /// Offsets within the heap.
    range: Range<u64>,
    map: Arc<Mapping>,
}

impl Extent {
    fn at(&self, offset: u64) -> NonNull<u8> {
        // SAFETY: every caller has checked that `offset` lies in `range`, which is as long as the mapping.
        unsafe { self.map.base().add((offset - self.range.start) as usize) }
    }
}

/// The most extents of which [`Snapshot`] has a copy. Extents double in length, so a heap seldom has more.
const COPIED: usize = 8;

/// A copy of the table of extents, which readers use without its lock. Writers hold the lock.
///
/// Every message asks for the offset of its data. The lock of the table costs two atomic changes, which also wait until
/// all earlier stores are done.
#[derive(Debug, Default)]
struct Snapshot {
    /// The number of changes, twice. The number is odd while a writer changes the copy.
    version: AtomicU64,
    /// The number of extents in the table, which may be more than [`COPIED`].
    count: AtomicU64,
    /// For each extent: its address, its length in bytes, and its offset in the heap.
    extents: [[AtomicU64; 3]; COPIED],
}

impl Snapshot {
    /// Makes this the copy of `list`. The caller holds the lock of the table for writing.
    fn set(&self, list: &[Extent]) {
        let version = self.version.load(Ordering::Relaxed);
        self.version.store(version.wrapping_add(1), Ordering::Relaxed);
        // A reader that sees one of the changes below also sees that the number is odd, or a later number.
        fence(Ordering::Release);
        self.count.store(list.len() as u64, Ordering::Relaxed);
        for (copy, extent) in self.extents.iter().zip(list) {
            let base = extent.map.base().as_ptr().addr() as u64;
            let of_extent = [base, extent.map.len() as u64, extent.range.start];
            copy.iter().zip(of_extent).for_each(|(to, from)| to.store(from, Ordering::Relaxed));
        }
        self.version.store(version.wrapping_add(2), Ordering::Release);
    }

    /// Returns the offset in the heap of the bytes at the addresses `start..end`, or `None` if no extent has them.
    /// Addresses may come from a computation and need not exist. Returns an error if the copy cannot tell that, because it
    /// is being changed or does not hold all extents.
    #[inline]
    fn locate(&self, start: i128, end: i128) -> Result<Option<u64>, ()> {
        let (Ok(start), Ok(bytes)) = (u64::try_from(start), u64::try_from(end - start)) else {
            return Ok(None);
        };
        let version = self.version.load(Ordering::Acquire);
        let count = self.count.load(Ordering::Relaxed) as usize;
        let mut found = None;
        for [base, len, offset] in self.extents.iter().take(count) {
            let at = start.wrapping_sub(base.load(Ordering::Relaxed));
            let len = len.load(Ordering::Relaxed);
            if at <= len && bytes <= len - at {
                found = Some(offset.load(Ordering::Relaxed).wrapping_add(at));
                break;
            }
        }
        fence(Ordering::Acquire);
        let is_whole = version.is_multiple_of(2) && self.version.load(Ordering::Relaxed) == version;
        if is_whole && (found.is_some() || count <= COPIED) { Ok(found) } else { Err(()) }
    }
}

/// The table of extents, locked for changes. The copy is made anew when the lock is given back.
struct Changes<'a> {
    list: RwLockWriteGuard<'a, Vec<Extent>>,
    snapshot: &'a Snapshot,
}

impl Drop for Changes<'_> {
    fn drop(&mut self) {
        self.snapshot.set(&self.list);
    }
}

/// The extents of the heap of one rank.
#[derive(Debug)]
pub struct Extents {
    segment: Arc<Segment>,
    rank: usize,
    inherit: Inherit,
    list: RwLock<Vec<Extent>>,
    snapshot: Snapshot,
}

fn find<'a>(list: &'a [Extent], range: &Range<u64>) -> Option<&'a Extent> {
    let holds = |extent: &&Extent| {
        extent.range.start <= range.start
            && range.end <= extent.range.end
            && range.start < extent.range.end
    };
    list.iter().find(holds)
}

impl Extents {
    /// Makes the table of the heap of `rank`, without any extent.
    pub fn new(segment: Arc<Segment>, rank: usize, inherit: Inherit) -> Self {
        let (list, snapshot) = (RwLock::new(Vec::new()), Snapshot::default());
        Self { segment, rank, inherit, list, snapshot }
    }

    // The list is usable even if a thread has panicked while it held the lock: it changes by whole extents.
    fn read(&self) -> RwLockReadGuard<'_, Vec<Extent>> {
        self.list.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> Changes<'_> {
        let list = self.list.write().unwrap_or_else(PoisonError::into_inner);
        Changes { list, snapshot: &self.snapshot }
    }

    /// Returns the length of the heap in bytes.
    #[expect(clippy::len_without_is_empty, reason = "a heap is never empty")]
    pub fn len(&self) -> u64 {
        self.segment.layout().heap() as u64
    }

    /// Calls `work` with the address of a range of the heap. The range stays mapped until `work` returns. Returns
    /// `None` if no extent holds the range.
    #[inline]
    pub fn with<R>(&self, range: &Range<u64>, work: impl FnOnce(NonNull<u8>) -> R) -> Option<R> {
        let list = self.read();
        let extent = find(&list, range)?;
        Some(work(extent.at(range.start)))
    }

    /// Returns the address of a range of the heap, and the mapping that must live as long as the address is used.
    /// Returns `None` if no extent holds the range.
    pub fn find(&self, range: &Range<u64>) -> Option<(NonNull<u8>, Arc<Mapping>)> {
        let list = self.read();
        let extent = find(&list, range)?;
        Some((extent.at(range.start), extent.map.clone()))
    }

    /// Returns the address of a range of the heap like [`find`](Self::find), and maps the range first if necessary.
    ///
    /// # Errors
    ///
    /// Returns [`ErrorKind::Argument`] if the range does not lie within the heap, [`ErrorKind::NoMemory`] if address
    /// space has run out, and [`ErrorKind::System`] if the kernel refuses for another reason.
    pub fn map(&self, range: &Range<u64>) -> Result<(NonNull<u8>, Arc<Mapping>), Error> {
        let len = self.len();
        if range.start >= len || range.end > len || range.start > range.end {
            let detail = format!(
                "bytes {}..{} do not lie within the shared heap of rank {}, which has {len} bytes",
                range.start, range.end, self.rank
            );
            return Err(Error::new(ErrorKind::Argument, detail));
        }
        if let Some(found) = self.find(range) {
            return Ok(found);
        }
        let mut changes = self.write();
        let list = &mut changes.list;
        let around = |size: u64| {
            let end = range.end.max(range.start + 1).next_multiple_of(size);
            range.start / size * size..end.min(len)
        };
        if find(list, range).is_none() {
            let wanted = step(list.len());
            let smaller = lengths(wanted, HUGE_PAGE as u64).skip(1);
            let first = self.mapped(around(wanted));
            list.push(smaller.fold(first, |got, len| got.or_else(|_| self.mapped(around(len))))?);
        }
        let extent = find(list, range).ok_or_else(|| {
            Error::new(ErrorKind::System, "a new extent does not hold the range for which it is")
        })?;
        Ok((extent.at(range.start), extent.map.clone()))
    }

    fn mapped(&self, range: Range<u64>) -> Result<Extent, Error> {
        let bytes = range.end - range.start;
        let map = self.segment.map_heap(self.rank, &range, self.inherit).map_err(|error| {
            let what = format!("cannot map {bytes} bytes of the shared heap of rank {}", self.rank);
            unmapped(what, bytes, error)
        })?;
        Ok(Extent { range, map: Arc::new(map) })
    }

    /// Maps a range as an extent.
    ///
    /// # Errors
    ///
    /// Returns [`ErrorKind::NoMemory`] if address space has run out, and [`ErrorKind::System`] if the kernel refuses
    /// for another reason.
    pub(super) fn add(&self, range: Range<u64>) -> Result<(), Error> {
        let extent = self.mapped(range)?;
        self.write().list.push(extent);
        Ok(())
    }

    /// Takes the extents out of the table for which `is_over` is true. Returns whether there were any. They are unmapped
    /// only when no reader finds them any more: the system may give their addresses away at once.
    fn take_out(&self, is_over: impl Fn(&Extent) -> bool) -> bool {
        let mut changes = self.write();
        let out: Vec<Extent> = changes.list.extract_if(.., |extent| is_over(extent)).collect();
        drop(changes);
        !out.is_empty()
    }

    /// Removes the extent with this range.
    pub(super) fn remove(&self, range: &Range<u64>) {
        self.take_out(|extent| extent.range == *range);
    }

    /// Removes all extents whose mappings nobody has. Returns whether there were any.
    pub fn remove_unused(&self) -> bool {
        self.take_out(|extent| Arc::strong_count(&extent.map) == 1)
    }

    /// Returns the offset in the heap of the bytes at the addresses `start..end`. Returns `None` if no extent has
    /// them.
    #[inline]
    pub fn locate(&self, start: i128, end: i128) -> Option<u64> {
        self.snapshot.locate(start, end).unwrap_or_else(|()| self.locate_locked(start, end))
    }

    #[cold]
    fn locate_locked(&self, start: i128, end: i128) -> Option<u64> {
        let list = self.read();
        list.iter().find_map(|extent| {
            let base = extent.map.base().as_ptr() as i128;
            let within = start >= base && end <= base + extent.map.len() as i128;
            within.then(|| extent.range.start + (start - base) as u64)
        })
    }

    /// Sets whether core files of the process contain a range, in whole pages, which lies in one extent.
    pub(super) fn dump(&self, range: &Range<u64>, wanted: bool) {
        let list = self.read();
        if let Some(extent) = find(&list, range) {
            let at = range.start - extent.range.start;
            extent.map.dump(at as usize, (range.end - range.start) as usize, wanted);
        }
    }

    /// Gives memory to all pages that a range touches, from the NUMA node of the caller. Pages that have memory keep
    /// it.
    ///
    /// # Errors
    ///
    /// Returns [`ErrorKind::NoMemory`] if memory has run out, and [`ErrorKind::System`] if the kernel refuses for
    /// another reason.
    pub fn populate(&self, range: &Range<u64>) -> Result<(), Error> {
        if range.is_empty() {
            return Ok(());
        }
        // This takes long, so the list is not locked meanwhile.
        if let Some((start, map)) = self.find(range) {
            let at = start.as_ptr().addr() - map.base().as_ptr().addr();
            map.populate(at, (range.end - range.start) as usize);
        }
        let (at, len) = (self.segment.layout().heap_of(self.rank) as u64, range.end - range.start);
        memory::reserve(self.segment.fd(), at + range.start, len).map_err(|error| {
            Error::system(format!("cannot give memory to {len} bytes of shared memory"), error)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shm::segment::JobFlags;

    fn extents() -> Extents {
        let segment = Segment::create(2, &[], JobFlags::default(), 0).expect("a segment");
        Extents::new(Arc::new(segment), 1, Inherit::No)
    }

    #[test]
    fn lengths_fall_by_halves() {
        const MIB: u64 = 1 << 20;
        let all = |wanted, least| lengths(wanted * MIB, least * MIB).map(|len| len / MIB).collect();
        let (few, many): (Vec<u64>, Vec<u64>) = (all(16, 2), all(50, 6));
        assert_eq!((few, many), (vec![16, 8, 4, 2], vec![50, 24, 12, 6]));
        assert_eq!((all(7, 7), all(16, 7)), (vec![7], vec![16, 8, 7]));
    }

    #[test]
    fn offsets_are_found_with_and_without_the_lock() {
        let extents = extents();
        let ranges = (0..2 * COPIED as u64).map(|at| 2 * at * STEP..(2 * at + 1) * STEP);
        let ranges: Vec<_> = ranges.filter(|range| range.end <= extents.len()).collect();
        for (at, range) in ranges.iter().enumerate() {
            extents.add(range.clone()).expect("address space");
            for known in &ranges[..=at] {
                let (start, map) = extents.find(known).expect("mapped");
                let (start, len) = (start.as_ptr() as i128, map.len() as i128);
                assert_eq!(extents.locate(start, start + len), Some(known.start));
                assert_eq!(extents.locate_locked(start, start + len), Some(known.start));
                assert_ne!(extents.locate(start, start + len + 1), Some(known.start));
            }
            assert_eq!(extents.locate(16, 24), None);
            assert_eq!(extents.snapshot.locate(16, 24).is_ok(), at < COPIED);
        }
        assert!(extents.remove_unused());
        assert_eq!(extents.snapshot.locate(16, 24), Ok(None));
    }

    #[test]
    fn readers_see_no_copy_that_is_half_changed() {
        let extents = extents();
        let (start, map) = extents.map(&(0..8)).expect("address space");
        let at = start.as_ptr() as i128;
        let other = STEP..2 * STEP;
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| {
                (0..20_000).all(|_| extents.locate(at, at + map.len() as i128) == Some(0))
            });
            while !reader.is_finished() {
                // The further extent is the second, and it is the first while the reader's is left out.
                extents.add(other.clone()).expect("address space");
                extents.write().list.reverse();
                extents.remove(&other);
            }
            assert!(reader.join().expect("no panic"));
        });
    }

    #[test]
    fn a_heap_is_mapped_where_it_is_used() {
        let extents = extents();
        let len = extents.len();
        assert!(extents.find(&(0..8)).is_none() && extents.with(&(0..8), |_| ()).is_none());
        let (low, first) = extents.map(&(100..200)).expect("address space");
        assert_eq!(first.len() as u64, STEP.min(len));
        let (same, again) = extents.map(&(0..STEP)).expect("mapped already");
        assert!(Arc::ptr_eq(&first, &again));
        assert_eq!(same.as_ptr().wrapping_add(100), low.as_ptr());
        // A range across the end of the extent gets an extent of its own, with the same bytes.
        let (both, second) = extents.map(&(STEP - 8..STEP + 8)).expect("address space");
        assert!(!Arc::ptr_eq(&first, &second));
        // SAFETY: both addresses are those of the mapped byte at offset `STEP - 1`, which only this test uses.
        unsafe {
            both.as_ptr().add(7).write_volatile(9);
            assert_eq!(same.as_ptr().add(STEP as usize - 1).read_volatile(), 9);
        }
        let at = low.as_ptr() as i128;
        assert_eq!(extents.locate(at, at + 100), Some(100));
        assert_eq!(extents.locate(at - 101, at), None);
        drop((first, again));
        // The second mapping is still in use.
        assert!(extents.remove_unused() && !extents.remove_unused());
        assert!(extents.find(&(0..8)).is_some());
        drop(second);
        assert!(extents.remove_unused() && extents.find(&(0..8)).is_none());
        let backwards = Range { start: 8, end: 7 };
        for range in [len - 1..len + 1, len..len, u64::MAX - 1..u64::MAX, backwards] {
            assert!(extents.map(&range).is_err(), "{range:?}");
        }
        assert!(extents.map(&(len - 1..len)).is_ok());
    }
}
