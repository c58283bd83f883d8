//! This rank's heap in the segment: memory that other ranks can read and write in place.
//!
//! `mpiexec` creates one heap for each rank at the end of the segment (`layout.rs`). Each heap is as large as
//! the machine's memory, if the limits on the size of a file and on the total size of all heaps permit. The
//! segment is a file in memory, and a heap is a hole in this file until the heap is used. The runtime's
//! `memory/` folder allocates pieces of this rank's heap. `transport/` tells another rank at which offset
//! of the heap a message lies, and the other rank maps that part of the heap when it first needs it (`extents.rs`).
//!
//! Invariants:
//! - Only this rank allocates and frees pieces of its heap. Another rank learns an offset only from a
//!   message.
//! - A piece lies in one extent of this rank's mapping. There is a gap between the offsets of two extents.
//! - Memory is promised before `alloc` returns a piece, so that a lack of memory is an error here (`budget.rs`). The
//!   kernel takes a page when a rank touches it. A cgroup that is out of memory then does not refuse the page; the
//!   kernel kills a process instead. Promises together stay within the limits, so that happens only if memory that was
//!   not promised (of other programs, or of this program's own allocator) takes what was left.
//! - If more than 32 MiB (`KEEP`) of the promised memory is unused when a piece is freed, the whole free
//!   pages around the piece return to the system. Otherwise the heap keeps the memory, so that later
//!   allocations that fit in it are cheap.

use std::collections::HashMap;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::extents::{self, Extents};
use super::layout::{HUGE_PAGE, PAGE};
use super::pair::LINE;
use super::ranges::Ranges;
use super::segment::Segment;
use crate::error::{Error, ErrorKind};
use crate::sys::fork;
use crate::sys::memory::{self, Inherit};

/// If the heap has more than this number of bytes of unused promised memory when a piece is freed, it returns the
/// whole free pages around the piece to the system.
const KEEP: u64 = 32 << 20;

/// When the heap allocates a piece, it promises memory for at least this number of bytes from the start of
/// the piece, even if the piece is shorter. All ranks count their promises in the same word, so it would cost too much
/// to promise every page on its own.
const FILL: u64 = 64 << 10;

/// A free range that has memory is cleared. From this length on, its pages return to the system instead, and read as
/// zeros when they are touched again.
const PUNCH: u64 = 2 << 20;

/// The heap of this rank.
#[derive(Debug)]
pub struct Heap {
    segment: Arc<Segment>,
    rank: usize,
    maps: Extents,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Free ranges that are mapped.
    free: Ranges,
    /// Ranges in no extent. The last one ends a gap behind the end of the heap.
    outside: Ranges,
    /// The extents. Each is a range in this rank's mapping.
    extents: Vec<Range<u64>>,
    /// Ranges of whole pages that are promised. Only these can have memory.
    promised: Ranges,
    /// The allocated pieces. Maps the offset at which a piece starts to its length in bytes.
    pieces: HashMap<u64, u64>,
    /// Number of pieces allocated so far, including the pieces that have been freed since.
    count: u64,
}

/// The length of the gap between two extents. It keeps `Ranges` from merging free ranges whose addresses are apart.
const GAP: u64 = HUGE_PAGE as u64;

impl Heap {
    /// Makes the heap of `rank` in the job's segment. This process must be rank `rank`. Nothing is mapped yet. Returns
    /// `None` if the job has no heaps.
    ///
    /// # Panics
    ///
    /// Panics if the segment has no slot `rank`.
    pub fn new(segment: Arc<Segment>, rank: usize) -> Option<Self> {
        let maps = Extents::new(segment.clone(), rank, Inherit::ReadOnly);
        if maps.len() == 0 {
            return None;
        }
        let mut outside = Ranges::default();
        outside.insert(0..maps.len() + GAP);
        let state = State {
            free: Ranges::default(),
            outside,
            extents: Vec::new(),
            promised: Ranges::default(),
            pieces: HashMap::default(),
            count: 0,
        };
        Some(Self { segment, rank, maps, state: Mutex::new(state) })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // The state is usable even if a thread has panicked while it held the lock. `alloc` takes a range out
        // of the free ranges first, and `free` puts the range back last. So a panic can leak memory, but no
        // range can be allocated twice.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the parts of the heap that this rank has mapped.
    #[inline]
    pub fn extents(&self) -> &Extents {
        &self.maps
    }

    /// Returns the offset in the heap of `len` bytes at `start`. Returns `None` if they do not lie in one extent of the
    /// heap.
    #[inline]
    pub fn offset_of(&self, start: *const u8, len: u64) -> Option<u64> {
        let start = start as i128;
        self.maps.locate(start, start + i128::from(len))
    }

    /// Allocates `len` bytes and returns the address of the first byte, which is a multiple of `align` (a
    /// power of two) and of the size of a cache line. If `zeroed` is true, the bytes are zero; otherwise
    /// their values are arbitrary. Pages that nobody has touched take no memory.
    ///
    /// The heap varies the offset within a page at which a large allocation (at least one page) begins: the
    /// offset depends on the rank and on the number of earlier allocations. It cannot do so if `align`
    /// exceeds a cache line or if no free range permits the offset. The reason: two allocations that begin
    /// at the same offset use the same sets of a cache. In a copy from one to the other, the processor also
    /// mistakes a load from the source for a load of data that it has just stored to the destination.
    ///
    /// # Errors
    ///
    /// Returns [`ErrorKind::NoMemory`] if the heap, the address space, the machine or a cgroup has too little memory
    /// left (the error names the limit), and
    /// [`ErrorKind::System`] if this process is a forked child of the rank or the kernel refuses for
    /// another reason.
    pub fn alloc(&self, len: usize, align: usize, zeroed: bool) -> Result<NonNull<u8>, Error> {
        if fork::is_child() {
            let detail = "the forked child of a rank cannot allocate shared memory";
            return Err(Error::new(ErrorKind::System, detail));
        }
        let bytes = (len.max(1) as u64).checked_next_multiple_of(LINE as u64);
        let bytes = bytes.ok_or_else(|| self.refused(len as u64))?;
        let align = align.max(LINE) as u64;
        let mut state = self.lock();
        let start = match self.search(&state, bytes, align) {
            Some(start) => start,
            None => {
                self.grow(&mut state, bytes, align)?;
                self.search(&state, bytes, align).ok_or_else(|| self.refused(bytes))?
            }
        };
        let range = start..start + bytes;
        let (address, _map) = self.maps.find(&range).ok_or_else(|| self.refused(bytes))?;
        state.free.remove(range.clone());
        if let Err(error) = self.promise(&mut state, &range, zeroed) {
            state.free.insert(range);
            return Err(error);
        }
        state.pieces.insert(start, bytes);
        state.count += 1;
        Ok(address)
    }

    #[cold]
    fn refused(&self, bytes: u64) -> Error {
        let layout = self.segment.layout();
        let limit = match layout.room().slots == layout.ranks() {
            true => "RLIMIT_FSIZE (ulimit -f) at the start of the job",
            false => "the machine's memory, or 2^44 bytes for all ranks",
        };
        let detail = format!(
            "cannot allocate {bytes} bytes: this rank's shared heap of {} bytes has no free range that is large \
             enough (limit: {limit})",
            self.maps.len()
        );
        Error::new(ErrorKind::NoMemory, detail)
    }

    /// Returns the offset of a free range for a piece.
    fn search(&self, state: &State, bytes: u64, align: u64) -> Option<u64> {
        let page = PAGE as u64;
        if align > page {
            // An extent may begin at any page, so an aligned offset does not give an aligned address.
            let at = state.free.find(bytes.checked_add(align)?, page, 0)?;
            let (address, _map) = self.maps.find(&(at..at + bytes))?;
            return Some(at + ((address.as_ptr() as u64).wrapping_neg() & (align - 1)));
        }
        let coloured = align == LINE as u64 && bytes >= page;
        let colour = (self.rank as u64 * 29 + state.count * 13) * LINE as u64 % page;
        let found = if coloured { state.free.find(bytes, page, colour) } else { None };
        found.or_else(|| state.free.find(bytes, align, 0))
    }

    /// Maps a further extent that has room for a piece.
    fn grow(&self, state: &mut State, bytes: u64, align: u64) -> Result<(), Error> {
        let (huge, page) = (HUGE_PAGE as u64, PAGE as u64);
        // With a page more, the piece can begin at any line of a page.
        let shift = if align > page { align } else { page };
        let most = self.maps.len();
        let least = bytes.checked_add(shift).and_then(|sum| sum.checked_next_multiple_of(huge));
        let least = match least.filter(|least| *least <= most) {
            Some(least) => least,
            // A piece as large as the heap.
            None if bytes <= most && align <= page => most,
            None => return Err(self.refused(bytes)),
        };
        let wanted = least.max(extents::step(state.extents.len()));
        let mut error = self.refused(bytes);
        for again in [true, false] {
            for size in extents::lengths(wanted, least) {
                let Some(at) = state.outside.find(size + GAP, huge, 0) else { continue };
                match self.maps.add(at..at + size) {
                    Ok(()) => {
                        state.outside.remove(at..at + size + GAP);
                        state.extents.push(at..at + size);
                        state.free.insert(at..at + size);
                        return Ok(());
                    }
                    Err(refused) => error = refused,
                }
            }
            if !(again && self.shrink(state)) {
                break;
            }
        }
        Err(error)
    }

    /// Unmaps all extents that have no piece. Returns whether there were any.
    fn shrink(&self, state: &mut State) -> bool {
        let unused = |extent: &&Range<u64>| state.free.within(extent) == [(*extent).clone()];
        let unused: Vec<Range<u64>> = state.extents.iter().filter(unused).cloned().collect();
        for extent in &unused {
            self.give_back(state, extent);
            state.free.remove(extent.clone());
            state.outside.insert(extent.start..extent.end + GAP);
            state.extents.retain(|other| other != extent);
            self.maps.remove(extent);
        }
        !unused.is_empty()
    }

    /// Unmaps the parts of the heap that have no piece. Returns whether there were any.
    pub fn unmap_unused(&self) -> bool {
        !fork::is_child() && self.shrink(&mut self.lock())
    }

    /// Promises memory for the pages of `range` that have no promise. If `zeroed` is true, clears the bytes of
    /// `range` that may have memory.
    fn promise(&self, state: &mut State, range: &Range<u64>, zeroed: bool) -> Result<(), Error> {
        let page = PAGE as u64;
        let last = state.extents.iter().find(|extent| extent.contains(&range.start));
        let last = last.map_or(range.end, |extent| extent.end);
        let end = range.end.max(range.start + FILL).next_multiple_of(page).min(last);
        let pages = range.start / page * page..end;
        let gaps = state.promised.gaps(&pages);
        let used = if zeroed { state.promised.within(range) } else { Vec::new() };
        if !gaps.is_empty() {
            self.segment.promise(gaps.iter().map(|gap| gap.end - gap.start).sum())?;
            for gap in gaps {
                self.maps.dump(&gap, true);
                state.promised.insert(gap);
            }
        }
        used.iter().for_each(|part| self.clear(part));
        Ok(())
    }

    /// Clears a range of the heap that may have memory and was free.
    fn clear(&self, part: &Range<u64>) {
        let page = PAGE as u64;
        let pages = part.start.next_multiple_of(page)..part.end / page * page;
        let store = |part: Range<u64>| {
            self.maps.with(&part, |start| {
                // SAFETY: the range is mapped. It was free, so no one else uses its bytes.
                unsafe { start.as_ptr().write_bytes(0, (part.end - part.start) as usize) }
            });
        };
        if pages.end.saturating_sub(pages.start) >= PUNCH && self.punch(&pages) {
            store(part.start..pages.start);
            store(pages.end..part.end);
        } else {
            store(part.clone());
        }
    }

    /// Makes pages read as zeros, and takes their memory from them. Returns false if the kernel refuses.
    fn punch(&self, pages: &Range<u64>) -> bool {
        let at = self.segment.layout().heap_of(self.rank) as u64;
        let len = pages.end - pages.start;
        memory::give_back(self.segment.fd(), at + pages.start, len).is_ok()
    }

    /// Returns the memory of the pages of a range to the system, and takes the promises back. If the kernel
    /// refuses, the pages stay as they are.
    fn give_back(&self, state: &mut State, pages: &Range<u64>) {
        for part in state.promised.within(pages) {
            if self.punch(&part) {
                self.maps.dump(&part, false);
                self.segment.release(part.end - part.start);
                state.promised.remove(part);
            }
        }
    }

    /// Frees the piece at `start`, an address that [`Heap::alloc`] returned. Does nothing and returns false
    /// if there is no such piece, or if this process is a forked child of the rank.
    pub fn free(&self, start: *mut u8) -> bool {
        if fork::is_child() {
            return false;
        }
        let Some(offset) = self.offset_of(start, 1) else { return false };
        let mut state = self.lock();
        let Some(bytes) = state.pieces.remove(&offset) else { return false };
        let mapped: u64 = state.extents.iter().map(|extent| extent.end - extent.start).sum();
        let given_out = mapped - state.free.total() - bytes;
        let unused = state.promised.total().saturating_sub(given_out);
        let whole = state.free.insert(offset..offset + bytes);
        if unused > KEEP {
            let page = PAGE as u64;
            self.give_back(
                &mut state,
                &(whole.start.next_multiple_of(page)..whole.end / page * page),
            );
        }
        true
    }

    /// Returns the number of bytes of the heap that are promised.
    pub fn promised(&self) -> u64 {
        self.lock().promised.total()
    }
}

impl Drop for Heap {
    fn drop(&mut self) {
        // Only tests drop a heap: a process keeps its own.
        if !fork::is_child() {
            self.segment.release(self.promised());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shm::segment::JobFlags;
    use crate::sys::limits;

    const MIB: u64 = 1 << 20;

    fn heap() -> Heap {
        let segment = Segment::create(2, &[], JobFlags::default(), 0).expect("a segment");
        Heap::new(Arc::new(segment), 1).expect("a heap")
    }

    /// # Safety
    ///
    /// - `start` is the address of an allocated piece of at least `len` bytes, and no other reference to the
    ///   bytes exists.
    unsafe fn bytes<'a>(start: NonNull<u8>, len: usize) -> &'a mut [u8] {
        // SAFETY: the caller guarantees that `start` is a piece of at least `len` bytes to which no other
        // reference exists (the only condition of `# Safety`).
        unsafe { std::slice::from_raw_parts_mut(start.as_ptr(), len) }
    }

    /// Checks that memory is promised when it is allocated, taken when it is touched, and zero when it is used again.
    #[test]
    fn memory_is_taken_when_it_is_touched() {
        const LEN: usize = 256 << 20;
        let segment = Arc::new(Segment::create(2, &[], JobFlags::default(), 0).expect("a segment"));
        let heap = Heap::new(segment.clone(), 1).expect("a heap");
        let taken = || memory::resident(segment.fd());
        // What a few touched pages take at most: the kernel may give huge pages.
        let before = taken() + 5 * MIB;
        for zeroed in [true, false, true] {
            let start = heap.alloc(LEN, 64, zeroed).expect("room");
            assert!(heap.promised() >= LEN as u64 && taken() < before, "{}", taken());
            // SAFETY: the bytes lie in the piece, which only this test uses.
            unsafe {
                assert!(!zeroed || start.as_ptr().add(LEN / 2).read_volatile() == 0);
                start.as_ptr().add(LEN / 2).write_volatile(7);
            }
            assert!(heap.free(start.as_ptr()));
        }
        // A piece that is kept is cleared without touching all of it.
        let start = heap.alloc(20 << 20, 64, true).expect("room");
        assert!(heap.free(start.as_ptr()) && heap.promised() >= 20 << 20);
        let start = heap.alloc(20 << 20, 64, true).expect("room");
        assert!(taken() < before, "{}", taken());
        let offset = heap.offset_of(start.as_ptr(), 1).expect("in the heap");
        heap.extents().populate(&(offset..offset + (20 << 20))).expect("memory");
        assert!(taken() >= before + 15 * MIB);
    }

    /// Checks that heaps promise no more together than the memory that is left, and that small promises need no look.
    #[test]
    fn promises_of_all_ranks_count_together() {
        let segment = Arc::new(Segment::create(2, &[], JobFlags::default(), 0).expect("a segment"));
        let heaps = [0, 1].map(|rank| Heap::new(segment.clone(), rank).expect("a heap"));
        // Other programs take and free memory meanwhile. So what must succeed is small, and what must fail is large.
        let most = || {
            let left = limits::available_memory() as usize;
            left.min(heaps[0].extents().len() as usize)
        };
        let whole = most();
        let first = heaps[0].alloc(whole / 2, 64, true).expect("a promise");
        let error = heaps[1].alloc(whole / 8 * 7, 64, true).expect_err("too much");
        assert_eq!(error.kind(), ErrorKind::NoMemory);
        assert!(error.to_string().contains("(limit: "), "{error}");
        assert!(heaps[0].free(first.as_ptr()));
        let again = heaps[1].alloc(most() / 2, 64, true).expect("a promise");
        assert!(heaps[1].free(again.as_ptr()));
        let _small = heaps[1].alloc(1 << 20, 64, true).expect("a promise");
        let before = limits::READS.get();
        for _ in 0..100 {
            let piece = heaps[0].alloc(50_000, 64, true).expect("a promise");
            assert!(heaps[0].free(piece.as_ptr()));
        }
        assert_eq!(limits::READS.get(), before);
    }

    /// Checks that extents without pieces make room for others, and that no piece lies in two extents.
    #[test]
    fn extents_come_and_go() {
        let heap = heap();
        let most = heap.extents().len() as usize;
        let small: Vec<_> =
            (0..40).map(|_| heap.alloc(3 << 20, 64, false).expect("room")).collect();
        let extents = heap.lock().extents.clone();
        assert!(extents.len() > 1 && extents.len() < 8, "{extents:?}");
        for piece in small {
            let offset = heap.offset_of(piece.as_ptr(), 3 << 20).expect("in one extent");
            assert!(extents.iter().any(|extent| extent.contains(&offset)));
            assert!(heap.free(piece.as_ptr()));
        }
        let state = heap.lock();
        assert!(extents.iter().all(|extent| state.free.within(extent) == [extent.clone()]));
        drop(state);
        assert!(heap.unmap_unused() && !heap.unmap_unused());
        let state = heap.lock();
        assert_eq!((state.free.total(), state.outside.total()), (0, most as u64 + GAP));
        assert_eq!(state.promised.total(), 0);
    }

    #[test]
    fn pieces_are_aligned_apart_and_found_again() {
        let heap = heap();
        let mut pieces: Vec<(NonNull<u8>, usize, u8)> = Vec::new();
        for (i, (len, align)) in [
            (0, 1),
            (1, 64),
            (100, 128),
            (4096, 4096),
            (5000, 64),
            (64, 2 << 20),
            (3 << 20, 64),
            (3 << 20, 1 << 21),
        ]
        .into_iter()
        .cycle()
        .take(40)
        .enumerate()
        {
            let start = heap.alloc(len, align, i % 2 == 0).expect("room");
            assert_eq!(start.as_ptr() as usize % align.max(64), 0);
            // SAFETY: `alloc` has just returned the piece of `len` bytes at `start`, so no other reference to
            // it exists.
            let data = unsafe { bytes(start, len) };
            assert!(i % 2 != 0 || data.iter().all(|&b| b == 0));
            data.fill(i as u8 + 1);
            pieces.push((start, len, i as u8 + 1));
            if i % 3 == 2 {
                let (start, len, mark) = pieces.swap_remove(i % pieces.len());
                // SAFETY: the piece at `start` has `len` bytes, is freed only below, and has no other live
                // reference.
                assert!(unsafe { bytes(start, len) }.iter().all(|&b| b == mark));
                assert!(heap.free(start.as_ptr()));
                assert!(!heap.free(start.as_ptr()));
            }
        }
        for (start, len, mark) in pieces {
            // SAFETY: the piece of `len` bytes at `start` has not been freed, and no other reference to it is
            // live.
            assert!(unsafe { bytes(start, len) }.iter().all(|&b| b == mark));
            assert!(!heap.free(start.as_ptr().wrapping_add(1)));
            assert!(heap.free(start.as_ptr()));
        }
        let state = heap.lock();
        let mapped: u64 = state.extents.iter().map(|extent| extent.end - extent.start).sum();
        assert_eq!((state.free.total(), state.pieces.len()), (mapped, 0));
    }

    #[test]
    fn freed_memory_goes_back_beyond_what_is_kept() {
        let heap = heap();
        let small = heap.alloc(1 << 20, 64, false).expect("room");
        let large = heap.alloc(100 << 20, 64, false).expect("room");
        assert!(heap.promised() >= 101 << 20);
        assert!(heap.free(large.as_ptr()));
        assert!(heap.promised() < 2 << 20);
        assert!(heap.free(small.as_ptr()));
        assert!(heap.promised() >= 1 << 20);
        // SAFETY: `alloc` has just returned a piece of `1 << 20` bytes that no one else uses.
        let again = unsafe { bytes(heap.alloc(1 << 20, 64, true).expect("room"), 1 << 20) };
        assert!(again.iter().all(|&b| b == 0));
    }

    /// Checks that a piece smaller than a page can be freed while the heap has more than `KEEP` bytes of
    /// unused memory.
    #[test]
    fn small_pieces_are_freed_while_much_is_kept() {
        let heap = heap();
        let take = |len| heap.alloc(len, 64, false).expect("room").as_ptr();
        let large = [take(20 << 20), take(64), take(11 << 20)];
        let small: Vec<_> = (0..8000).map(|_| take(1024)).collect();
        assert!(heap.free(large[0]) && heap.free(large[2]));
        assert!(heap.promised() > 38 << 20);
        for piece in small.iter().step_by(2) {
            assert!(heap.free(*piece));
        }
    }

    #[test]
    fn large_pieces_of_two_ranks_lie_at_different_lines() {
        let segment = Segment::create(2, &[], JobFlags::default(), 0).expect("a segment");
        let segment = Arc::new(segment);
        let at = |rank: usize| {
            let heap = Heap::new(segment.clone(), rank).expect("a heap");
            heap.alloc(1 << 20, 64, false).expect("room").as_ptr() as usize % PAGE
        };
        assert_ne!(at(0), at(1));
    }

    #[test]
    fn too_much_is_an_error_and_takes_nothing() {
        let heap = heap();
        let most = heap.extents().len() as usize;
        for len in [usize::MAX, most + 1, most] {
            let error = heap.alloc(len, 64, true).expect_err("refused");
            assert_eq!(error.kind(), ErrorKind::NoMemory, "{error}");
            assert!(error.to_string().contains("(limit: "), "{error}");
        }
        assert!(heap.alloc(8, 1 << 62, false).is_err());
        assert_eq!(heap.promised(), 0);
        assert!(heap.lock().pieces.is_empty());
    }
}
