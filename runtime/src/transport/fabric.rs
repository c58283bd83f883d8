//! What connects this rank to the others: areas of pairs, first contact, doorbells, failure.
//!
//! Below is `shm/segment.rs`; above are `peer.rs` and `progress.rs`. A job of one rank has no
//! segment, and nothing here is ever called for another rank then.
//!
//! First contact, from `a` to `b` (README, steps 1 to 3): `a` fills the ring's pages of `(a, b)` and
//! the desk of `b` with memory, writes its name on the desk, knocks, rings. `b` looks at one word,
//! the knock counter, to learn that somebody new writes to it.

use crate::shm::bulk::ChunkMemory;
use crate::shm::pair;
use crate::shm::ring::RingMemory;
use crate::shm::segment::{Segment, atomic_u32, atomic_u64};
use crate::{Error, ErrorKind, Result};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// The mapped area of one ordered pair.
///
/// Invariant: `base` points to `PAIR_BYTES` bytes of a segment that outlives this value: areas
/// live in `peer.rs`, inside the exchange that owns the fabric.
#[derive(Clone, Copy, Debug)]
pub struct Area {
    base: NonNull<u8>,
}

// SAFETY: an area is an address of shared memory that is accessed by atomics and raw copies only;
// which thread holds it makes no difference.
unsafe impl Send for Area {}

impl Area {
    #[inline]
    fn word(&self, offset: usize) -> &AtomicU64 {
        debug_assert!(offset + 8 <= pair::PAIR_BYTES && offset.is_multiple_of(8));
        // SAFETY: every caller's offset is a constant of `pair.rs` plus a masked index, within the
        // area and a multiple of 8; the segment outlives the area (type invariant).
        unsafe { atomic_u64(self.base.as_ptr().add(offset)) }
    }

    /// Address of the payload area's byte `offset`, which is below `PAYLOAD_BYTES`.
    #[inline]
    pub fn payload(&self, offset: usize) -> *mut u8 {
        debug_assert!(offset < pair::PAYLOAD_BYTES);
        self.base.as_ptr().wrapping_add(pair::PAYLOAD_AT + offset)
    }

    /// Address of chunk buffer `index`, which is below `CHUNKS`.
    #[inline]
    pub fn chunk(&self, index: usize) -> *mut u8 {
        debug_assert!(index < pair::CHUNKS);
        self.base.as_ptr().wrapping_add(pair::CHUNKS_AT + index * pair::CHUNK_BYTES)
    }
}

impl RingMemory for Area {
    type Word = AtomicU64;
    const SLOTS: usize = pair::SLOTS;
    const PAYLOAD: usize = pair::PAYLOAD_BYTES;
    #[inline]
    fn slot(&self, slot: usize, word: usize) -> &AtomicU64 {
        self.word(pair::SLOTS_AT + (slot & (pair::SLOTS - 1)) * pair::SLOT_BYTES + word * 8)
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

impl ChunkMemory for Area {
    type Word = AtomicU64;
    const CHUNKS: usize = pair::CHUNKS;
    const BYTES: usize = pair::CHUNK_BYTES;
    #[inline]
    fn stamp(&self, index: usize) -> &AtomicU64 {
        self.word(pair::STAMPS_AT + (index & (pair::CHUNKS - 1)) * pair::LINE)
    }
    #[inline]
    fn length(&self, index: usize) -> &AtomicU64 {
        self.word(pair::STAMPS_AT + (index & (pair::CHUNKS - 1)) * pair::LINE + 8)
    }
    #[inline]
    fn freed(&self) -> &AtomicU64 {
        self.word(pair::CHUNK_CREDITS)
    }
}

/// This rank's place in the job.
#[derive(Clone, Debug)]
pub struct Fabric {
    segment: Option<Arc<Segment>>,
    rank: usize,
    size: usize,
}

impl Fabric {
    /// The only rank of a job without shared memory.
    pub fn alone() -> Self {
        Self { segment: None, rank: 0, size: 1 }
    }

    /// Rank `rank` of the job whose memory is `segment`; fills its own desk with memory.
    ///
    /// # Errors
    /// Out of memory.
    pub fn join(segment: Arc<Segment>, rank: usize) -> Result<Self> {
        let size = segment.ranks();
        let fabric = Self { segment: Some(segment), rank, size };
        fabric.reserve_desk(rank)?;
        Ok(fabric)
    }

    /// This rank.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Number of ranks.
    pub fn size(&self) -> usize {
        self.size
    }

    /// More ranks than CPUs.
    pub fn oversubscribed(&self) -> bool {
        self.segment.as_ref().is_some_and(|segment| segment.flags().oversubscribed)
    }

    fn segment(&self) -> Result<&Segment> {
        self.segment.as_deref().ok_or_else(|| {
            Error::new(ErrorKind::Internal, "transport", "a job of one rank has no other rank")
        })
    }

    fn area(&self, from: usize, to: usize) -> Result<Area> {
        let base = NonNull::new(self.segment()?.pair_area(from, to)).ok_or_else(|| {
            Error::new(ErrorKind::Internal, "transport", "a pair's area is not mapped")
        })?;
        Ok(Area { base })
    }

    fn reserve_desk(&self, rank: usize) -> Result<()> {
        let bytes = pair::NAMES + self.size;
        Ok(self.segment()?.reserve_pair_range(rank, rank, 0, bytes)?)
    }

    fn knocks(&self, rank: usize) -> Result<&AtomicU32> {
        let desk = self.segment()?.pair_area(rank, rank);
        // SAFETY: the desk is a pair area of the segment that `self` holds; the offset is within
        // it and a multiple of 4.
        Ok(unsafe { atomic_u32(desk.wrapping_add(pair::KNOCKS)) })
    }

    fn name(&self, desk: usize, rank: usize) -> Result<&AtomicU8> {
        debug_assert!(rank < self.size && self.size <= pair::MAX_RANKS);
        let at = self.segment()?.pair_area(desk, desk).wrapping_add(pair::NAMES + rank);
        // SAFETY: within the desk's area (`pair.rs` asserts it for MAX_RANKS names), which the
        // segment that `self` holds keeps mapped; any byte is a valid u8.
        Ok(unsafe { AtomicU8::from_ptr(at) })
    }

    /// Makes the way from this rank to `to` usable and tells `to` about it. Once per pair.
    ///
    /// # Errors
    /// Out of memory.
    pub fn contact(&self, to: usize) -> Result<Area> {
        self.segment()?.reserve_pair_range(self.rank, to, 0, pair::STAMPS_AT)?;
        self.reserve_desk(to)?;
        self.name(to, self.rank)?.store(1, Ordering::Relaxed);
        self.knocks(to)?.fetch_add(1, Ordering::Release);
        self.ring(to);
        self.area(self.rank, to)
    }

    /// Fills the chunk buffers on the way to `to` with memory. Once per pair, before the first
    /// bulk transfer.
    ///
    /// # Errors
    /// Out of memory.
    pub fn reserve_chunks(&self, to: usize) -> Result<()> {
        let bytes = pair::PAIR_BYTES - pair::STAMPS_AT;
        Ok(self.segment()?.reserve_pair_range(self.rank, to, pair::STAMPS_AT, bytes)?)
    }

    /// The knock counter of this rank: new ranks have written when it differs from `seen`.
    #[inline]
    pub fn knocked(&self, seen: u32) -> Option<u32> {
        let knocks = self.knocks(self.rank).ok()?.load(Ordering::Acquire);
        (knocks != seen).then_some(knocks)
    }

    /// Whether `from` has written to this rank, and the area it writes to.
    ///
    /// # Errors
    /// None but a bug.
    pub fn written_by(&self, from: usize) -> Result<Option<Area>> {
        if from == self.rank || self.name(self.rank, from)?.load(Ordering::Acquire) == 0 {
            return Ok(None);
        }
        self.area(from, self.rank).map(Some)
    }

    /// Wakes `rank` if it sleeps; called after every publication it may be waiting for.
    #[inline]
    pub fn ring(&self, rank: usize) {
        if let Some(segment) = &self.segment {
            segment.ring(rank);
        }
    }

    /// Announces that this rank is about to sleep; everything must be looked at once more between
    /// this and [`Fabric::sleep`].
    pub fn announce(&self) -> u32 {
        self.segment.as_ref().map_or(0, |segment| segment.prepare_wait(self.rank))
    }

    /// Takes the announcement back.
    pub fn withdraw(&self) {
        if let Some(segment) = &self.segment {
            segment.cancel_wait(self.rank);
        }
    }

    /// Sleeps until somebody rings or the time is over. A job of one rank has nobody to wait for
    /// but its own threads, and only lets time pass.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub fn sleep(&self, seen: u32, timeout: Duration) -> Result<()> {
        match &self.segment {
            Some(segment) => {
                segment.wait(self.rank, seen, Some(timeout))?;
            }
            None => std::thread::sleep(timeout.min(Duration::from_millis(1))),
        }
        Ok(())
    }

    /// Wakes this rank's own poller: another thread of the process has given it work.
    pub fn rouse(&self) {
        self.ring(self.rank);
    }

    /// The error of a job in which a rank has died, if one has.
    #[cold]
    pub fn failure(&self) -> Option<Error> {
        let segment = self.segment.as_ref()?;
        if segment.fail_epoch() == 0 {
            return None;
        }
        let detail = match segment.failure() {
            Some(failure) => failure.to_string(),
            None => "a rank of the job has died".to_owned(),
        };
        Some(Error::new(ErrorKind::ProcAborted, "job", detail))
    }

    /// Tells the launcher that this rank leaves the job in order.
    pub fn finalized(&self) {
        if let Some(segment) = &self.segment {
            segment.mark_finalized(self.rank);
        }
    }
}
