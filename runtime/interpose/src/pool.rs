//! Buffers for packed data.
//!
//! A buffer that is returned is kept for the next message of about the same length, because fresh memory costs a
//! page fault for every 4 KiB. The buffers in use are bounded by [`LIMIT`] and the kept ones by [`KEPT`]. A message
//! for which there is no buffer goes to the host, which then packs.

use std::alloc::{Layout, alloc, dealloc};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// How many bytes of buffers may be in use.
pub const LIMIT: usize = 512 << 20;

/// How many bytes of unused buffers are kept.
const KEPT: usize = 64 << 20;

/// The length of the shortest buffer.
const SHORTEST: usize = 256;

/// Alignment of the buffers: that of the widest moves, and of cache lines.
const ALIGN: usize = 64;

/// Number of classes.
const CLASSES: usize = 55;

/// Bytes of the buffers in use.
static USED: AtomicUsize = AtomicUsize::new(0);

/// The kept buffers of each class, and the sum of their bytes. Class `c` has buffers of `SHORTEST << c` bytes.
struct Kept {
    classes: [Vec<Memory>; CLASSES],
    bytes: usize,
}

static POOL: Mutex<Kept> = Mutex::new(Kept { classes: [const { Vec::new() }; CLASSES], bytes: 0 });

/// Memory of a buffer.
struct Memory(NonNull<u8>);

// SAFETY: the memory is owned, and has no connection to the thread that allocated it.
unsafe impl Send for Memory {}

/// A buffer for packed data. Its bytes are not initialised. Dropping it returns it to the pool.
pub struct Buffer {
    memory: Memory,
    class: usize,
    len: usize,
}

fn layout(class: usize) -> Layout {
    // Cannot fail: the alignment is a power of two, and `class` is at most 54.
    Layout::from_size_align(SHORTEST << class, ALIGN).unwrap_or(Layout::new::<u64>())
}

impl Buffer {
    /// Returns a buffer of `len` bytes; `None` if too many bytes are in use, or the system has no memory.
    pub fn new(len: u64) -> Option<Self> {
        Self::within(len, LIMIT)
    }

    /// Returns a buffer of `len` bytes even if more than [`LIMIT`] bytes are in use then; `None` if the system has no
    /// memory.
    pub fn beyond(len: u64) -> Option<Self> {
        Self::within(len, isize::MAX as usize / 2)
    }

    fn within(len: u64, limit: usize) -> Option<Self> {
        let len = usize::try_from(len).ok().filter(|&len| len > 0 && len <= limit)?;
        let class =
            len.next_power_of_two().max(SHORTEST).ilog2() as usize - SHORTEST.ilog2() as usize;
        let room = SHORTEST << class;
        if USED.fetch_add(room, Ordering::Relaxed) + room > limit {
            USED.fetch_sub(room, Ordering::Relaxed);
            return None;
        }
        let kept = {
            let mut pool = POOL.lock().unwrap_or_else(PoisonError::into_inner);
            let kept = pool.classes[class].pop();
            pool.bytes -= if kept.is_some() { room } else { 0 };
            kept
        };
        // SAFETY: the layout has a size of at least `SHORTEST` bytes.
        let memory = kept.or_else(|| NonNull::new(unsafe { alloc(layout(class)) }).map(Memory));
        if memory.is_none() {
            USED.fetch_sub(room, Ordering::Relaxed);
        }
        Some(Self { memory: memory?, class, len })
    }

    /// Returns the address of the buffer.
    pub fn address(&self) -> *mut u8 {
        self.memory.0.as_ptr()
    }

    /// Returns the number of bytes that were asked for.
    pub fn len(&self) -> usize {
        self.len
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // After a bug of this library, the host may still send from the buffers of requests whose entries are lost, or
        // receive there.
        if std::thread::panicking() {
            return;
        }
        let room = SHORTEST << self.class;
        USED.fetch_sub(room, Ordering::Relaxed);
        let mut pool = POOL.lock().unwrap_or_else(PoisonError::into_inner);
        if pool.bytes + room <= KEPT {
            pool.bytes += room;
            pool.classes[self.class].push(Memory(self.memory.0));
            return;
        }
        drop(pool);
        // SAFETY: the memory was allocated with this layout, and nothing uses it any more: this is its only owner.
        unsafe { dealloc(self.memory.0.as_ptr(), layout(self.class)) };
    }
}

/// Frees the kept buffers.
pub fn clear() {
    let mut pool = POOL.lock().unwrap_or_else(PoisonError::into_inner);
    for class in 0..pool.classes.len() {
        for memory in std::mem::take(&mut pool.classes[class]) {
            // SAFETY: as in `drop`: the pool was the only owner of the memory of this class.
            unsafe { dealloc(memory.0.as_ptr(), layout(class)) };
        }
    }
    pool.bytes = 0;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_kept_and_bounded() {
        assert!(Buffer::new(0).is_none() && Buffer::new(u64::MAX).is_none());
        assert!(Buffer::new(LIMIT as u64 + 1).is_none());
        let first = Buffer::new(300).unwrap();
        assert_eq!((first.len(), first.class, first.address() as usize % ALIGN), (300, 1, 0));
        let whole = Buffer::new(LIMIT as u64);
        assert!(whole.is_none(), "the first buffer is in use");
        drop(first);
        assert!(Buffer::new(512).is_some());
        clear();
    }
}
