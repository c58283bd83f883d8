//! Access to the area of one ordered pair of ranks: the ring, the stamps of the chunks, the small chunk, and
//! the words beside them.
//!
//! `fabric.rs` finds the area, and `link.rs` keeps one area for each direction. `shm/pair.rs` defines the
//! layout of an area. Only this file accesses memory at the offsets of that layout. `fabric.rs` uses them
//! to allocate memory.

use crate::shm::bulk::ChunkMemory;
use crate::shm::pair::{self, Geometry};
use crate::shm::ring::RingMemory;
use crate::shm::segment::atomic_u64;
use crate::shm::withdrawal::ReadingMemory;
use crate::shm::work_split::WorkSplit;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering, fence};

/// The mapped area of one ordered pair.
///
/// Invariant: `base` points to an area that the contacts of the fabric keep mapped as long as this value is
/// used. The reason is that `link.rs` keeps areas inside the message engine, the engine owns the fabric, and
/// dropping an area accesses no memory. `pool.rs` keeps areas too, together with a reference to the contacts.
#[derive(Clone, Copy, Debug)]
pub struct Area {
    base: NonNull<u8>,
    geometry: Geometry,
}

/// The number of a pair's small chunk. The chunks of the sender's pool have smaller numbers
/// (`shm/bulk.rs`).
pub const SMALL: u64 = pair::POOL_CHUNKS as u64;

// SAFETY: an area is only an address of shared memory. All threads access this memory only by atomics and
// raw copies, and no access depends on the thread that holds the address.
unsafe impl Send for Area {}

impl Area {
    /// Wraps the area of a pair whose first byte is at `base`.
    ///
    /// # Safety
    ///
    /// - [`Geometry::bytes`] bytes from `base` on are a mapped area of the segment.
    /// - The area stays mapped for as long as the returned value is used.
    pub(in crate::transport) unsafe fn new(base: NonNull<u8>, geometry: Geometry) -> Self {
        Self { base, geometry }
    }

    /// Returns the sizes of the parts of the pair.
    #[inline]
    pub fn geometry(&self) -> Geometry {
        self.geometry
    }

    #[inline]
    fn word(&self, offset: usize) -> &AtomicU64 {
        debug_assert!(offset + 8 <= pair::LARGEST_PAIR_BYTES && offset.is_multiple_of(8));
        // SAFETY: each caller's offset is a constant of `pair.rs`, plus a masked index, the number of a slot
        // of a ring (condition of `RingMemory::slot`), or the number of a recall word (below `RECALLS`,
        // because `Recalls::take` lends and `Offer::decode` accepts no other). So it is a multiple of 8 and
        // lies within the area (asserted above in debug builds). The area stays mapped for as long as `self`
        // is used (type invariant).
        unsafe { atomic_u64(self.base.as_ptr().add(offset)) }
    }

    /// Returns the words through which two ranks share the work of a copy between their heaps.
    #[inline]
    pub fn split(&self) -> WorkSplit<'_, AtomicU64> {
        WorkSplit { claims: self.word(pair::HEAP_CLAIMS), pushed: self.word(pair::HEAP_PUSHED) }
    }

    /// Returns the first word of line `line` of the area.
    #[cfg(test)]
    pub fn line(&self, line: usize) -> &AtomicU64 {
        self.word(line * pair::LINE)
    }

    /// Returns recall word number `word`. It says whether the message to which it was lent is matched or
    /// recalled.
    #[inline]
    pub fn recall(&self, word: u8) -> &AtomicU64 {
        self.word(pair::RECALLS_AT + usize::from(word) * 8)
    }

    /// Returns the word with the receiver's [`Credit`](super::credit::Credit).
    #[inline]
    pub fn credit(&self) -> &AtomicU64 {
        self.word(pair::CREDIT)
    }

    /// Returns the word with the receiver's answer to a mark (`short_choice.rs`).
    #[inline]
    pub fn measured(&self) -> &AtomicU64 {
        self.word(pair::MEASURED)
    }

    /// Returns the address of a byte of the payload areas. `offset` counts from the first byte of the
    /// smallest ring's payload area.
    #[inline]
    pub fn payload(&self, offset: usize) -> *mut u8 {
        let within = |level: &pair::Level| {
            (level.first_byte..level.first_byte + level.payload).contains(&offset)
        };
        debug_assert!(pair::LEVELS.iter().any(within), "{offset}");
        self.base.as_ptr().wrapping_add(pair::PAYLOAD_AT + offset)
    }

    /// Fetches a cache line of the payload area or of a chunk into this core's cache for writing. The
    /// instruction is only a hint; machines that do not support it ignore it.
    #[inline]
    pub fn claim(address: *mut u8) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: `prefetchw` is a hint. It changes no memory and cannot fault at any address, and CPUs
        // without the instruction execute it as a no-op.
        unsafe {
            std::arch::asm!(
                "prefetchw [{address}]",
                address = in(reg) address,
                options(nostack, preserves_flags, readonly)
            );
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = address;
    }

    /// Fetches the cache line of a slot of the ring into this core's cache, for writing.
    #[inline]
    pub fn claim_slot(&self, slot: usize) {
        Self::claim(self.base.as_ptr().wrapping_add(pair::SLOTS_AT + slot * pair::SLOT_BYTES));
    }

    /// Fetches the cache line of a slot of the ring into this core's cache, for reading.
    #[inline]
    pub fn fetch_slot(&self, slot: usize) {
        Self::fetch(self.base.as_ptr().wrapping_add(pair::SLOTS_AT + slot * pair::SLOT_BYTES));
    }

    /// Fetches a cache line into this core's cache for reading. The instruction is only a hint.
    #[inline]
    pub fn fetch(address: *const u8) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: `prefetcht0` is a hint. It changes no memory and cannot fault at any address.
        unsafe {
            std::arch::asm!(
                "prefetcht0 [{address}]",
                address = in(reg) address,
                options(nostack, preserves_flags, readonly)
            );
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = address;
    }

    /// Returns the address of the small chunk, which has `SMALL_CHUNK_BYTES` bytes.
    #[inline]
    pub fn small_chunk(&self) -> *mut u8 {
        self.base.as_ptr().wrapping_add(self.geometry.small_chunk())
    }
}

impl RingMemory for Area {
    type Word = AtomicU64;
    const LEVELS: &'static [pair::Level] = &pair::LEVELS;
    const GROWS: usize = pair::GROWS;
    #[inline]
    fn slot(&self, slot: usize, word: usize) -> &AtomicU64 {
        self.word(pair::SLOTS_AT + slot * pair::SLOT_BYTES + word * 8)
    }
    #[inline]
    fn slots_freed(&self) -> &AtomicU64 {
        self.word(pair::CREDITS)
    }
    #[inline]
    fn bytes_freed(&self) -> &AtomicU64 {
        self.word(pair::CREDITS + 8)
    }
}

impl ReadingMemory for Area {
    type Word = AtomicU64;
    #[inline]
    fn reading(&self) -> &AtomicU64 {
        self.word(pair::READING)
    }
    #[inline]
    fn withdrawn(&self) -> &AtomicU64 {
        self.word(pair::WITHDRAWN)
    }
    #[inline]
    fn fence(&self) {
        fence(Ordering::SeqCst);
    }
}

impl ChunkMemory for Area {
    type Word = AtomicU64;
    #[inline]
    fn window(&self) -> u64 {
        self.geometry.window() as u64
    }
    #[inline]
    fn size(&self, place: u64) -> u64 {
        let small = pair::SMALL_CHUNK_BYTES as u64;
        if place < self.geometry.pool() as u64 {
            pair::CHUNK_BYTES as u64
        } else if place == SMALL {
            small
        } else {
            0
        }
    }
    #[inline]
    fn place(&self, index: usize) -> &AtomicU64 {
        self.word(pair::STAMPS_AT + (index & (pair::CHUNKS - 1)) * pair::LINE + 16)
    }
    #[inline]
    fn stamp(&self, index: usize) -> &AtomicU64 {
        self.word(pair::STAMPS_AT + (index & (pair::CHUNKS - 1)) * pair::LINE)
    }
    #[inline]
    fn length(&self, index: usize) -> &AtomicU64 {
        self.word(pair::STAMPS_AT + (index & (pair::CHUNKS - 1)) * pair::LINE + 8)
    }
    #[inline]
    fn message(&self, index: usize) -> &AtomicU64 {
        self.word(pair::STAMPS_AT + (index & (pair::CHUNKS - 1)) * pair::LINE + 24)
    }
    #[inline]
    fn freed(&self) -> &AtomicU64 {
        self.word(pair::CHUNK_CREDITS)
    }
}
