//! This rank's heap in the segment: memory that other ranks can read and write in place.
//!
//! `mpiexec` creates one heap for each rank at the end of the segment (`layout.rs`). Each heap is as large as
//! the machine's memory, if the limits on the size of a file and on the total size of all heaps permit. The
//! segment is a file in memory, and a heap is a hole in this file until the heap is used. The runtime's
//! `memory/` folder allocates pieces of this rank's heap. `transport/` tells another rank at which offset
//! of the heap a message lies, and the other rank maps the heap when it first needs it.
//!
//! Invariants:
//! - Only this rank allocates and frees pieces of its heap. Another rank learns an offset only from a
//!   message.
//! - The pages of a range get memory before `alloc` returns the range, so that a lack of memory is an error
//!   here and not a signal later. A cgroup that is out of memory does not refuse an allocation; the kernel
//!   kills a process instead. Therefore this file first checks how much memory is left (`sys/limits.rs`). If
//!   little is left, the ranks check and allocate one at a time.
//! - If more than 32 MiB (`KEEP`) of the heap's memory is unused when a piece is freed, the whole free
//!   pages around the piece return to the system. Otherwise the heap keeps the memory, so that later
//!   allocations that fit in it are cheap.

use std::collections::HashMap;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::layout::PAGE;
use super::pair::LINE;
use super::ranges::Ranges;
use super::segment::Segment;
use crate::error::{Error, ErrorKind};
use crate::sys::memory::{self, Inherit, Mapping};
use crate::sys::{fork, limits};

/// If the heap has more than this number of bytes of unused memory when a piece is freed, it returns the
/// whole free pages around the piece to the system.
const KEEP: u64 = 32 << 20;

/// When the heap allocates a piece, it reserves memory for at least this number of bytes from the start of
/// the piece, even if the piece is shorter. The heap checks the memory limits each time it reserves memory,
/// so it would cost too much to reserve every page on its own.
const FILL: u64 = 64 << 10;

/// Number of bytes below each memory limit that the heaps leave free for page tables, the kernel and other
/// programs.
const MARGIN: u64 = 8 << 20;

/// The heap of this rank.
#[derive(Debug)]
pub struct Heap {
    segment: Arc<Segment>,
    rank: usize,
    map: Mapping,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    free: Ranges,
    /// Ranges of whole pages that have memory.
    filled: Ranges,
    /// The allocated pieces. Maps the offset at which a piece starts to its length in bytes.
    pieces: HashMap<u64, u64>,
    /// Number of pieces allocated so far, including the pieces that have been freed since.
    count: u64,
}

impl Heap {
    /// Maps the heap of `rank` in the job's segment. This process must be rank `rank`.
    ///
    /// # Errors
    ///
    /// Returns the kernel's error if the heap cannot be mapped, and `InvalidInput` if the job has no heaps.
    pub fn new(segment: Arc<Segment>, rank: usize) -> std::io::Result<Self> {
        let map = segment.map_heap(rank, Inherit::ReadOnly)?;
        let mut free = Ranges::default();
        free.insert(0..map.len() as u64);
        let state = State { free, filled: Ranges::default(), pieces: HashMap::default(), count: 0 };
        Ok(Self { segment, rank, map, state: Mutex::new(state) })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // The state is usable even if a thread has panicked while it held the lock. `alloc` takes a range out
        // of the free ranges first, and `free` puts the range back last. So a panic can leak memory, but no
        // range can be allocated twice.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the address of the heap's first byte.
    #[inline]
    pub fn base(&self) -> NonNull<u8> {
        self.map.base()
    }

    /// Returns the size of the heap in bytes.
    #[inline]
    #[expect(clippy::len_without_is_empty, reason = "a heap is never empty")]
    pub fn len(&self) -> usize {
        self.map.len()
    }

    /// Allocates `len` bytes and returns the address of the first byte, which is a multiple of `align` (a
    /// power of two) and of the size of a cache line. If `zeroed` is true, the bytes are zero; otherwise
    /// their values are arbitrary.
    ///
    /// The heap varies the offset within a page at which a large allocation (at least one page) begins: the
    /// offset depends on the rank and on the number of earlier allocations. It cannot do so if `align`
    /// exceeds a cache line or if no free range permits the offset. The reason: two allocations that begin
    /// at the same offset use the same sets of a cache. In a copy from one to the other, the processor also
    /// mistakes a load from the source for a load of data that it has just stored to the destination.
    ///
    /// # Errors
    ///
    /// Returns [`ErrorKind::NoMemory`] if the heap, the machine or a cgroup has too little memory left, and
    /// [`ErrorKind::System`] if this process is a forked child of the rank or the kernel refuses for
    /// another reason.
    pub fn alloc(&self, len: usize, align: usize, zeroed: bool) -> Result<NonNull<u8>, Error> {
        self.alloc_partly(len, align, zeroed, len)
    }

    /// Allocates like [`alloc`](Self::alloc), but leaves whole pages behind the first `filled` bytes without memory.
    /// Other ranks give them memory ([`fill_of`](Self::fill_of)), which then comes from their NUMA nodes. Nobody
    /// accesses these pages before that. When all ranks have done so, or one has failed, the caller calls
    /// [`complete`](Self::complete).
    ///
    /// # Errors
    ///
    /// Returns the errors of [`alloc`](Self::alloc).
    pub fn alloc_partly(
        &self,
        len: usize,
        align: usize,
        zeroed: bool,
        filled: usize,
    ) -> Result<NonNull<u8>, Error> {
        if fork::is_child() {
            let detail = "the forked child of a rank cannot allocate shared memory";
            return Err(Error::new(ErrorKind::System, detail));
        }
        let refused = || {
            Error::new(
                ErrorKind::NoMemory,
                format!(
                    "cannot allocate {len} bytes: this rank's shared heap of {} bytes has no free range \
                     that is large enough",
                    self.len()
                ),
            )
        };
        let bytes =
            (len.max(1) as u64).checked_next_multiple_of(LINE as u64).ok_or_else(refused)?;
        let align = align.max(LINE) as u64;
        let mut state = self.lock();
        let page = PAGE as u64;
        let colour = (self.rank as u64 * 29 + state.count * 13) * LINE as u64 % page;
        let (step, shift) = if align > page {
            // The mapping may begin at any page, so an aligned offset does not give an aligned address.
            // Therefore search for an offset that is `shift` more than a multiple of `align`: the address at
            // such an offset is aligned.
            (align, (self.base().as_ptr() as u64).wrapping_neg() & (align - 1))
        } else if align == LINE as u64 && bytes >= page {
            (page, colour)
        } else {
            (align, 0)
        };
        let start = state.free.find(bytes, step, shift);
        let start = start.or_else(|| state.free.find(bytes, align, shift & (align - 1)));
        let start = start.ok_or_else(refused)?;
        let range = start..start + bytes;
        state.free.remove(range.clone());
        let hole = (start + filled.min(len) as u64).next_multiple_of(page)..range.end / page * page;
        let parts = match hole.is_empty() {
            true => [range.clone(), range.end..range.end],
            false => [range.start..hole.start, hole.end..range.end],
        };
        // Pages of the hole that still have memory lose it, so that the other ranks place them. They are zero then.
        for part in state.filled.within(&hole) {
            if self.give_back(&part) {
                state.filled.remove(part);
            } else if zeroed {
                self.clear(&part);
            }
        }
        for part in parts.iter().filter(|part| !part.is_empty()) {
            if let Err(error) = self.fill(&mut state, part, zeroed) {
                state.free.insert(range);
                return Err(error);
            }
        }
        state.pieces.insert(start, bytes);
        state.count += 1;
        // SAFETY: `start..start + bytes` lies within the heap, and the mapping is as long as the heap.
        Ok(unsafe { self.base().add(start as usize) })
    }

    /// Reserves memory for the pages of `range` that have none. If `zeroed` is true, clears the bytes of
    /// `range` that already had memory.
    fn fill(&self, state: &mut State, range: &Range<u64>, zeroed: bool) -> Result<(), Error> {
        let page = PAGE as u64;
        let end = range.end.next_multiple_of(page);
        let end = end.max((range.start + FILL).next_multiple_of(page)).min(self.len() as u64);
        let pages = range.start / page * page..end;
        let gaps = state.filled.gaps(&pages);
        let used = if zeroed { state.filled.within(range) } else { Vec::new() };
        if !gaps.is_empty() {
            self.reserve(self.rank, &self.map, &gaps)?;
            for gap in gaps {
                self.map.dump(gap.start as usize, (gap.end - gap.start) as usize, true);
                state.filled.insert(gap);
            }
        }
        used.iter().for_each(|part| self.clear(part));
        Ok(())
    }

    /// Clears a range of the heap that has memory and was free.
    fn clear(&self, part: &Range<u64>) {
        let start = self.base().as_ptr().wrapping_add(part.start as usize);
        // SAFETY: the range lies within the heap. It was free, so no one else uses its bytes.
        unsafe { start.write_bytes(0, (part.end - part.start) as usize) };
    }

    /// Gives memory to all pages that a range of the heap of another rank touches. `map` is the mapping of that heap.
    /// Pages that have memory keep it.
    ///
    /// # Errors
    ///
    /// Returns [`ErrorKind::NoMemory`] if the machine or a cgroup has too little memory left, and
    /// [`ErrorKind::System`] if the kernel refuses for another reason.
    pub fn fill_of(&self, rank: usize, map: &Mapping, range: Range<u64>) -> Result<(), Error> {
        let page = PAGE as u64;
        let pages =
            range.start / page * page..range.end.next_multiple_of(page).min(map.len() as u64);
        if pages.is_empty() { Ok(()) } else { self.reserve(rank, map, &[pages]) }
    }

    /// Ends the allocation of a piece by [`alloc_partly`](Self::alloc_partly). Other ranks have given memory to all
    /// pages of the first `filled` bytes. The other pages without memory of this rank lose what other ranks have given
    /// them.
    pub fn complete(&self, start: *const u8, filled: usize) {
        let offset = (start as usize).wrapping_sub(self.base().as_ptr() as usize) as u64;
        let mut state = self.lock();
        let Some(bytes) = state.pieces.get(&offset) else { return };
        let page = PAGE as u64;
        let (first, end) = (offset / page * page, (offset + bytes).next_multiple_of(page));
        let middle = match (filled as u64).min(*bytes) {
            0 => first,
            filled => (offset + filled).next_multiple_of(page),
        };
        for gap in state.filled.gaps(&(first..middle)) {
            self.map.dump(gap.start as usize, (gap.end - gap.start) as usize, true);
            state.filled.insert(gap);
        }
        for gap in state.filled.gaps(&(middle..end)) {
            // The kernel does not refuse a range within the file.
            let _given = self.give_back(&gap);
        }
    }

    /// Reserves memory for the ranges `gaps` of the heap of `rank`, whose mapping is `map`, if the memory limits allow
    /// it.
    fn reserve(&self, rank: usize, map: &Mapping, gaps: &[Range<u64>]) -> Result<(), Error> {
        let bytes: u64 = gaps.iter().map(|gap| gap.end - gap.start).sum();
        let needed = bytes.saturating_add(MARGIN);
        // Several ranks may check at the same time, and each of them may count on the same remaining bytes.
        // If allocations of this size by all ranks together could exceed the limit, the ranks check and
        // allocate one at a time.
        let ranks = self.segment.ranks() as u64;
        let _turn = if limits::available_memory() < needed.saturating_mul(ranks) {
            let turn = memory::exclusive(self.segment.fd());
            let left = limits::available_memory();
            if left < needed {
                return Err(Error::new(
                    ErrorKind::NoMemory,
                    format!(
                        "cannot allocate {bytes} bytes of shared memory: this rank can still get {} bytes \
                         (out of memory; in a container, check its memory limit)",
                        left.saturating_sub(MARGIN)
                    ),
                ));
            }
            // If the file system does not support locks, this rank relies on the check alone.
            turn.ok()
        } else {
            None
        };
        let at = self.segment.layout().heap_of(rank) as u64;
        for (done, gap) in gaps.iter().enumerate() {
            map.populate(gap.start as usize, (gap.end - gap.start) as usize);
            let filled = memory::reserve(self.segment.fd(), at + gap.start, gap.end - gap.start);
            if let Err(error) = filled {
                // The owner of another heap gives its pages back.
                for gap in gaps[..=done].iter().filter(|_| rank == self.rank) {
                    self.give_back(gap);
                }
                return Err(Error::system(
                    format!("cannot allocate {bytes} bytes of shared memory"),
                    error,
                ));
            }
        }
        Ok(())
    }

    /// Returns the memory of a range of pages to the system. Returns false if the kernel refuses; the pages
    /// then keep their memory.
    fn give_back(&self, range: &Range<u64>) -> bool {
        let at = self.segment.layout().heap_of(self.rank) as u64;
        let len = range.end - range.start;
        self.map.dump(range.start as usize, len as usize, false);
        memory::give_back(self.segment.fd(), at + range.start, len).is_ok()
    }

    /// Frees the piece at `start`, an address that [`Heap::alloc`] returned. Does nothing and returns false
    /// if there is no such piece, or if this process is a forked child of the rank.
    pub fn free(&self, start: *mut u8) -> bool {
        if fork::is_child() {
            return false;
        }
        let offset = (start as usize).wrapping_sub(self.base().as_ptr() as usize) as u64;
        let mut state = self.lock();
        let Some(bytes) = state.pieces.remove(&offset) else { return false };
        let given_out = self.len() as u64 - state.free.total() - bytes;
        let unused = state.filled.total().saturating_sub(given_out);
        let whole = state.free.insert(offset..offset + bytes);
        if unused > KEEP {
            let page = PAGE as u64;
            let pages = whole.start.next_multiple_of(page)..whole.end / page * page;
            for part in state.filled.within(&pages) {
                if self.give_back(&part) {
                    state.filled.remove(part);
                }
            }
        }
        true
    }

    /// Returns the number of bytes of the heap that have memory.
    pub fn filled(&self) -> u64 {
        self.lock().filled.total()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shm::segment::JobFlags;

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

    /// Checks that another rank gives memory to the pages of a hole, and that a failed allocation keeps none.
    #[test]
    fn another_rank_fills_the_hole_of_a_piece() {
        const LEN: usize = 1 << 20;
        let segment = Arc::new(Segment::create(2, &[], JobFlags::default(), 0).expect("a segment"));
        let heaps = [0, 1].map(|rank| Heap::new(segment.clone(), rank).expect("a heap"));
        let theirs = segment.map_heap(1, Inherit::No).expect("a mapping");
        // The memory has been used, so a hole must not show old bytes.
        let used = heaps[1].alloc(LEN, 64, false).expect("room");
        // SAFETY: `alloc` has just returned the piece, so no other reference to it exists.
        unsafe { bytes(used, LEN) }.fill(7);
        assert!(heaps[1].free(used.as_ptr()));
        for filled in [true, false, true] {
            let before = heaps[1].filled();
            let start = heaps[1].alloc_partly(LEN, 64, true, 100_000).expect("room");
            let hole = heaps[1].filled();
            assert!(hole + (LEN as u64 / 2) < before.max(LEN as u64), "{hole} of {before}");
            let offset = start.as_ptr() as u64 - heaps[1].base().as_ptr() as u64;
            heaps[0].fill_of(1, &theirs, offset + 100_000..offset + LEN as u64).expect("memory");
            heaps[1].complete(start.as_ptr(), if filled { LEN } else { 0 });
            if filled {
                assert!(heaps[1].filled() >= LEN as u64);
                // SAFETY: the piece has `LEN` bytes with memory, and no other reference to it exists.
                let data = unsafe { bytes(start, LEN) };
                assert!(data.iter().all(|byte| *byte == 0));
                data.fill(9);
            } else {
                assert_eq!(heaps[1].filled(), hole);
            }
            assert!(heaps[1].free(start.as_ptr()));
        }
    }

    /// Checks that pages of a piece to which nobody gives memory do not count as pages with memory. A later piece would
    /// get them without a check of the limits.
    #[test]
    fn pages_without_memory_are_not_taken_for_filled_ones() {
        const LEN: usize = 1 << 20;
        let segment = Arc::new(Segment::create(2, &[], JobFlags::default(), 0).expect("a segment"));
        let heaps = [0, 1].map(|rank| Heap::new(segment.clone(), rank).expect("a heap"));
        let theirs = segment.map_heap(1, Inherit::No).expect("a mapping");
        let start = heaps[1].alloc_partly(LEN, 64, true, 0).expect("room");
        let offset = start.as_ptr() as u64 - heaps[1].base().as_ptr() as u64;
        let used = LEN / 2;
        heaps[0].fill_of(1, &theirs, offset..offset + used as u64).expect("memory");
        heaps[1].complete(start.as_ptr(), used);
        let slack = (FILL + 2 * PAGE as u64) as usize;
        assert!((used..used + 2 * slack).contains(&(heaps[1].filled() as usize)));
        // A piece at the same place gets memory for all its pages.
        assert!(heaps[1].free(start.as_ptr()));
        let start = heaps[1].alloc(LEN, 64, true).expect("room");
        assert!(heaps[1].filled() >= LEN as u64);
        assert!(heaps[1].free(start.as_ptr()));
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
        assert_eq!((state.free.total(), state.pieces.len()), (heap.len() as u64, 0));
    }

    #[test]
    fn freed_memory_goes_back_beyond_what_is_kept() {
        let heap = heap();
        let small = heap.alloc(1 << 20, 64, false).expect("room");
        let large = heap.alloc(100 << 20, 64, false).expect("room");
        assert!(heap.filled() >= 101 << 20);
        assert!(heap.free(large.as_ptr()));
        assert!(heap.filled() < 2 << 20);
        assert!(heap.free(small.as_ptr()));
        assert!(heap.filled() >= 1 << 20);
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
        assert!(heap.filled() > 38 << 20);
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
        let free = heap.lock().free.total();
        for len in [usize::MAX, heap.len() + 1, heap.len()] {
            let error = heap.alloc(len, 64, true).expect_err("refused");
            assert_eq!(error.kind(), ErrorKind::NoMemory, "{error}");
            assert!(error.to_string().contains(&len.to_string()), "{error}");
        }
        assert!(heap.alloc(8, 1 << 62, false).is_err());
        assert_eq!(heap.filled(), 0);
        assert_eq!(heap.lock().free.total(), free);
    }
}
