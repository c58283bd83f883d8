//! This rank's part of the shared heap: memory that other ranks can read, and write, in place.
//!
//! `mpiexec` makes the heaps as holes at the end of the segment (`layout.rs`), one for each rank
//! and each as large as the machine's memory. `memory.rs` of the runtime gives out pieces of this
//! rank's; `transport/` tells other ranks where in it a message lies, and they map it at first need.
//!
//! Invariants:
//! - Only this rank gives out and takes back pieces of its heap; who else knows an offset has it
//!   from a message.
//! - A range has memory behind it before it is given out, so that running out of memory is an error
//!   here and not a signal later. A cgroup that runs out does not refuse: it ends a process.
//!   Therefore what is left is asked for first (`sys/limits.rs`), one rank at a time when little is.
//! - Free memory goes back to the system, up to 32 MiB (`KEEP`), which makes the next piece cheap.

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

/// Free bytes that keep their memory.
const KEEP: u64 = 32 << 20;

/// Memory is filled in pieces of at least this many bytes: a page at a time costs a look at the
/// limits for each.
const FILL: u64 = 64 << 10;

/// What is left alone of the memory that the limits allow: page tables, the kernel's own, other
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
    /// What has memory behind it: whole pages.
    filled: Ranges,
    /// Start and length of what has been given out.
    pieces: HashMap<u64, u64>,
    /// Pieces given out, ever.
    count: u64,
}

impl Heap {
    /// The heap of `rank`, which is this process, in the segment of its job.
    ///
    /// # Errors
    ///
    /// The kernel's answer to the mapping; a job without heaps.
    pub fn new(segment: Arc<Segment>, rank: usize) -> std::io::Result<Self> {
        let map = segment.map_heap(rank, Inherit::Yes)?;
        let mut free = Ranges::default();
        free.insert(0..map.len() as u64);
        let state = State { free, filled: Ranges::default(), pieces: HashMap::default(), count: 0 };
        Ok(Self { segment, rank, map, state: Mutex::new(state) })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // What a panic could leave half done is memory that is lost, not given out twice: `alloc`
        // takes a range out before it goes on, `free` puts it back last.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// First byte.
    #[inline]
    pub fn base(&self) -> NonNull<u8> {
        self.map.base()
    }

    /// Bytes.
    #[inline]
    #[expect(clippy::len_without_is_empty, reason = "a heap is never empty")]
    pub fn len(&self) -> usize {
        self.map.len()
    }

    /// `len` bytes at a multiple of `align`, a power of two, and of a cache line. Their contents
    /// are zeros if `zeroed`, else anything.
    ///
    /// Large pieces begin at different lines of a page, and at others in each rank: two of them at
    /// equal offsets would meet in the same sets of a cache, and a copy between them would take the
    /// loads of one for the stores to the other.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NoMemory`] when the heap, the machine or a cgroup has too little left;
    /// [`ErrorKind::System`] in a forked child.
    pub fn alloc(&self, len: usize, align: usize, zeroed: bool) -> Result<NonNull<u8>, Error> {
        if fork::is_child() {
            let detail = "the forked child of a rank cannot allocate shared memory";
            return Err(Error::new(ErrorKind::System, detail));
        }
        let refused = || {
            Error::new(
                ErrorKind::NoMemory,
                format!("{len} bytes of shared memory, of which a rank has {}", self.len()),
            )
        };
        let bytes =
            (len.max(1) as u64).checked_next_multiple_of(LINE as u64).ok_or_else(refused)?;
        let align = align.max(LINE) as u64;
        let mut state = self.lock();
        let page = PAGE as u64;
        let colour = (self.rank as u64 * 29 + state.count * 13) * LINE as u64 % page;
        let (step, shift) = if align > page {
            // What is promised is the address, and the mapping begins at some page.
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
        if let Err(error) = self.fill(&mut state, &range, zeroed) {
            state.free.insert(range);
            return Err(error);
        }
        state.pieces.insert(start, bytes);
        state.count += 1;
        // SAFETY: the range is within the heap, which is the length of the mapping.
        Ok(unsafe { self.base().add(start as usize) })
    }

    /// Puts memory behind the pages of `range`, and zeros what has been used before if wanted.
    fn fill(&self, state: &mut State, range: &Range<u64>, zeroed: bool) -> Result<(), Error> {
        let page = PAGE as u64;
        let end = range.end.next_multiple_of(page);
        let end = end.max((range.start + FILL).next_multiple_of(page)).min(self.len() as u64);
        let pages = range.start / page * page..end;
        let gaps = state.filled.gaps(&pages);
        let used = if zeroed { state.filled.within(range) } else { Vec::new() };
        if !gaps.is_empty() {
            self.reserve(&gaps)?;
            for gap in gaps {
                self.map.dump(gap.start as usize, (gap.end - gap.start) as usize, true);
                state.filled.insert(gap);
            }
        }
        for part in used {
            let start = self.base().as_ptr().wrapping_add(part.start as usize);
            // SAFETY: within the range, which is free: nobody else has it.
            unsafe { start.write_bytes(0, (part.end - part.start) as usize) };
        }
        Ok(())
    }

    /// Fills holes, if the limits allow it.
    fn reserve(&self, gaps: &[Range<u64>]) -> Result<(), Error> {
        let bytes: u64 = gaps.iter().map(|gap| gap.end - gap.start).sum();
        let needed = bytes.saturating_add(MARGIN);
        // All ranks may ask at once and find the same bytes left. Where that could be too much,
        // they ask one after the other.
        let ranks = self.segment.ranks() as u64;
        let _turn = if limits::available_memory() < needed.saturating_mul(ranks) {
            let turn = memory::exclusive(self.segment.fd());
            let left = limits::available_memory();
            if left < needed {
                return Err(Error::new(
                    ErrorKind::NoMemory,
                    format!(
                        "{bytes} bytes of shared memory, while {} are left to this rank (out of \
                         memory; in a container, look at its memory limit)",
                        left.saturating_sub(MARGIN)
                    ),
                ));
            }
            // Without the lock (a file system of another kind) the look must do.
            turn.ok()
        } else {
            None
        };
        let at = self.segment.layout().heap_of(self.rank) as u64;
        for (done, gap) in gaps.iter().enumerate() {
            self.map.populate(gap.start as usize, (gap.end - gap.start) as usize);
            let filled = memory::reserve(self.segment.fd(), at + gap.start, gap.end - gap.start);
            if let Err(error) = filled {
                for gap in &gaps[..=done] {
                    self.give_back(gap);
                }
                return Err(Error::system(format!("{bytes} bytes of shared memory"), error));
            }
        }
        Ok(())
    }

    /// Best effort: what the kernel does not take back stays filled.
    fn give_back(&self, range: &Range<u64>) -> bool {
        let at = self.segment.layout().heap_of(self.rank) as u64;
        let len = range.end - range.start;
        self.map.dump(range.start as usize, len as usize, false);
        memory::give_back(self.segment.fd(), at + range.start, len).is_ok()
    }

    /// Takes back what [`Heap::alloc`] gave out at `start`. False, and nothing happens, when it is
    /// no such address, or in a forked child.
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

    /// Bytes that have memory behind them.
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
    /// `len` bytes at `start` are the caller's.
    unsafe fn bytes<'a>(start: NonNull<u8>, len: usize) -> &'a mut [u8] {
        // SAFETY: the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(start.as_ptr(), len) }
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
            // SAFETY: just given out.
            let data = unsafe { bytes(start, len) };
            assert!(i % 2 != 0 || data.iter().all(|&b| b == 0));
            data.fill(i as u8 + 1);
            pieces.push((start, len, i as u8 + 1));
            if i % 3 == 2 {
                let (start, len, mark) = pieces.swap_remove(i % pieces.len());
                // SAFETY: not freed yet.
                assert!(unsafe { bytes(start, len) }.iter().all(|&b| b == mark));
                assert!(heap.free(start.as_ptr()));
                assert!(!heap.free(start.as_ptr()));
            }
        }
        for (start, len, mark) in pieces {
            // SAFETY: not freed yet.
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
        // SAFETY: just given out.
        let again = unsafe { bytes(heap.alloc(1 << 20, 64, true).expect("room"), 1 << 20) };
        assert!(again.iter().all(|&b| b == 0));
    }

    /// Freed memory that is kept adds up to its limit; what is freed then may be part of a page.
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
