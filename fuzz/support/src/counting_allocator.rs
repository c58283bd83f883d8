//! Measures the largest amount of memory that is allocated at one moment during a call.
//!
//! The allocator counts for the whole process. So a test program that makes [`Counting`] its global allocator contains
//! one test, and nothing else runs during a measurement.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

static NOW: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

/// The system's allocator, with counters for the allocated bytes.
pub struct Counting;

// SAFETY: every block comes from the system's allocator and returns to it with the layout of its
// allocation. The counters are atomics, so counting neither unwinds nor allocates.
unsafe impl GlobalAlloc for Counting {
    // The default `realloc` calls `alloc` for the new block before it frees the old one. So a block
    // that grows counts with its old length and its new length together.
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let now = NOW.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(now, Ordering::Relaxed);
        // SAFETY: the caller of `alloc` guarantees that `layout` has a size above zero.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller guarantees that `block` came from `alloc` above, thus from `System`, that
        // it is still allocated, and that `layout` is the layout of its allocation.
        unsafe { System.dealloc(block, layout) }
    }
}

/// Returns the result of `call`, and the largest number of bytes that were allocated at one moment
/// during the call. Bytes that were allocated before the call do not count.
pub fn most_allocated<R>(call: impl FnOnce() -> R) -> (R, usize) {
    let before = NOW.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    let result = call();
    (result, PEAK.load(Ordering::Relaxed) - before)
}
