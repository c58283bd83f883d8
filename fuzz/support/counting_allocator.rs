//! How much memory a call has at most.
//!
//! The allocator counts for the whole process: a file that takes this in is a test of its own, and
//! nothing else runs beside what it measures.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

static NOW: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

/// The system's allocator, with numbers kept beside it.
struct Counting;

// SAFETY: every block comes from the system's allocator and goes back to it with the layout that
// it was asked for with; counting neither unwinds nor allocates.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let now = NOW.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(now, Ordering::Relaxed);
        // SAFETY: the layout has a size above zero, as the caller of this function guarantees. The
        // default `realloc` comes here for the new block before it frees the old one, so that
        // growth counts in full.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the block is one of `alloc` above, thus of `System`, and still allocated; the
        // layout is the one it was allocated with. The caller guarantees both.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// What `call` returns, and the most bytes that were allocated at one moment of it, beyond those
/// that were when it began.
pub fn most_allocated<R>(call: impl FnOnce() -> R) -> (R, usize) {
    let before = NOW.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    let result = call();
    (result, PEAK.load(Ordering::Relaxed) - before)
}
