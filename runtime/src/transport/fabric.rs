//! What connects this rank to the others: areas of pairs, first contact, doorbells, failure.
//!
//! Below is `shm/segment.rs`; above are `link.rs` and `progress.rs`. A job of one rank has no
//! segment, and nothing here is ever called for another rank then.
//!
//! How `a` first writes to `b` is told in the job crate's `shm/contacts.rs`: it takes an area, fills the ring's
//! pages with memory, tells `b`, calls it.

use super::area::Area;
use crate::memory::heaps::Heaps;
use crate::shm::contacts::Contacts;
use crate::shm::heap::Heap;
use crate::shm::layout::State;
use crate::shm::pair;
use crate::shm::segment::Segment;
use crate::shm::topology::{Distance, distance};
use crate::sys::cma;
use crate::sys::memory::Mapping;
use crate::{Error, ErrorKind, Result};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Chunk buffers that get memory at a time.
const CHUNKS_AT_ONCE: usize = 8;

/// An error of the job crate about what rank `rank` and this one know of each other.
#[cold]
fn of_contact(rank: usize, error: typepack_job::Error) -> Error {
    match error.kind() {
        // A number that this rank has not written.
        typepack_job::ErrorKind::Argument => {
            let detail = format!("rank {rank} broke the protocol: {error}");
            Error::new(ErrorKind::Other, "transport", detail)
        }
        _ => error.into(),
    }
}

/// This rank's place in the job.
#[derive(Clone, Debug)]
pub struct Fabric {
    segment: Option<Arc<Segment>>,
    rank: usize,
    size: usize,
    /// `None` in a job of one rank.
    heaps: Option<Arc<Heaps>>,
    /// The areas of pairs; `None` in a job of one rank.
    contacts: Option<Arc<Contacts>>,
}

impl Fabric {
    /// The only rank of a job without shared memory.
    pub fn alone() -> Self {
        Self { segment: None, rank: 0, size: 1, heaps: None, contacts: None }
    }

    /// Rank `rank` of the job whose memory is `segment`; fills its own mailbox with memory.
    ///
    /// # Errors
    /// Out of memory.
    pub fn join(segment: Arc<Segment>, rank: usize) -> Result<Self> {
        let size = segment.ranks();
        let heaps = Some(Arc::new(Heaps::new(segment.clone(), rank)));
        let contacts = Some(Arc::new(Contacts::new(segment.clone(), rank)?));
        Ok(Self { segment: Some(segment), rank, size, heaps, contacts })
    }

    /// This rank.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Number of ranks.
    pub fn size(&self) -> usize {
        self.size
    }

    /// This rank's part of the shared heap, mapped now if it has not been; `None` in a job without
    /// one, or where the address space is too small.
    pub fn heap(&self) -> Option<&Heap> {
        self.heaps.as_ref()?.own()
    }

    /// This rank's part of the shared heap, if anything was ever allocated from it.
    #[inline]
    pub fn used_heap(&self) -> Option<&Heap> {
        self.heaps.as_ref()?.used()
    }

    /// Bytes of the heap of each rank.
    pub fn heap_bytes(&self) -> u64 {
        self.heaps.as_ref().map_or(0, |heaps| heaps.bytes())
    }

    /// The heap of another rank, mapped once for this process; `None` where the address space is too
    /// small.
    pub fn heap_of(&self, rank: usize) -> Option<&Arc<Mapping>> {
        self.heaps.as_ref()?.of(rank)
    }

    /// The table of heaps; `None` in a job of one rank.
    pub fn heaps(&self) -> Option<&Arc<Heaps>> {
        self.heaps.as_ref()
    }

    /// How far this rank's core is from that of `rank`; as far as can be when either is not bound.
    pub fn distance(&self, rank: usize) -> Distance {
        let Some(segment) = &self.segment else { return Distance::Core };
        match (segment.bound_cpu(self.rank), segment.bound_cpu(rank)) {
            (Some(a), Some(b)) => distance(&segment.cpu(a), &segment.cpu(b)),
            _ => Distance::Machine,
        }
    }

    /// Lets the other ranks of the job access the memory of this process, as far as the system does:
    /// `number` is what they find in the slot and at the address `at`.
    pub fn open_memory(&self, at: u64, number: u64) {
        let Some(segment) = &self.segment else { return };
        if let Some(launcher) = segment.launcher() {
            cma::permit(launcher);
        }
        let halves = |value: u64| [value as u32, (value >> 32) as u32];
        let slot = segment.slot(self.rank);
        for (word, half) in slot.probe.iter().zip(halves(number)) {
            word.store(half, Ordering::Relaxed);
        }
        for (word, half) in slot.probe_at.iter().zip(halves(at)) {
            word.store(half, Ordering::Release);
        }
    }

    /// The slot of a rank.
    #[cfg(test)]
    pub fn slot_of(&self, rank: usize) -> &crate::shm::layout::RankSlot {
        self.segment.as_ref().expect("a job").slot(rank)
    }

    /// Whether this rank takes part in copies between private memories.
    #[inline]
    pub fn memory_is_open(&self) -> bool {
        let slot = self.segment.as_ref().map(|segment| segment.slot(self.rank));
        slot.is_some_and(|slot| slot.probe_at[0].load(Ordering::Relaxed) != 0)
    }

    /// The process of `rank`, and where in its memory it says that which number stands; `None` when
    /// either side takes no part in such copies.
    pub fn probe_of(&self, rank: usize) -> Option<(NonZeroU32, u64, u64)> {
        let slot = self.segment.as_ref()?.slot(rank);
        let whole = |words: &[AtomicU32; 2]| {
            let half = |word: &AtomicU32| u64::from(word.load(Ordering::Acquire));
            half(&words[0]) | half(&words[1]) << 32
        };
        let (at, number) = (whole(&slot.probe_at), whole(&slot.probe));
        let process = NonZeroU32::new(slot.pid.load(Ordering::Relaxed))?;
        (self.memory_is_open() && at as u32 != 0).then_some((process, at, number))
    }

    /// More ranks than CPUs.
    pub fn oversubscribed(&self) -> bool {
        self.segment.as_ref().is_some_and(|segment| segment.flags().oversubscribed)
    }

    /// The areas that this rank has to do with.
    ///
    /// # Errors
    /// A job of one rank has none, and nobody asks for them.
    pub fn contacts(&self) -> Result<&Contacts> {
        self.contacts.as_deref().ok_or_else(|| {
            Error::new(ErrorKind::Internal, "transport", "a job of one rank has no other rank")
        })
    }

    /// Makes the way from this rank to `to` usable and tells `to` about it. Once per pair.
    ///
    /// # Errors
    /// Out of memory.
    pub fn contact(&self, to: usize) -> Result<Area> {
        let base = self.contacts()?.connect(to, pair::STAMPS_AT).map_err(|e| of_contact(to, e))?;
        // SAFETY: an area that the contacts of `self` keep mapped; who uses it holds the fabric, too.
        Ok(unsafe { Area::new(base) })
    }

    /// Chunks that every pair of this job uses.
    pub fn window(&self) -> usize {
        pair::window(self.size)
    }

    /// Fills chunk buffers on the way to `to` with memory, from chunk `first` on, and gives the first
    /// one that has none yet. In order, before the first transfer that uses them: who sends little
    /// never needs all.
    ///
    /// # Errors
    /// Out of memory.
    pub fn reserve_chunks(&self, to: usize, first: usize) -> Result<usize> {
        let end = (first + CHUNKS_AT_ONCE).min(self.window());
        let at = |chunk: usize| pair::CHUNKS_AT + chunk * pair::CHUNK_BYTES;
        let start = if first == 0 { pair::STAMPS_AT } else { at(first) };
        self.contacts()?.reserve(to, start, at(end) - start)?;
        Ok(end)
    }

    /// The counter of connects of this rank: new ranks have written when it differs from `seen`.
    #[inline]
    pub fn connected(&self, seen: u32) -> Option<u32> {
        self.segment.as_ref()?.connected(self.rank, seen)
    }

    /// Whether `from` has written to this rank, and the area it writes to.
    ///
    /// # Errors
    /// `from` has named an area that there is not; out of address space.
    pub fn written_by(&self, from: usize) -> Result<Option<Area>> {
        let found = self.contacts()?.written_by(from).map_err(|e| of_contact(from, e))?;
        // SAFETY: an area that the contacts of `self` keep mapped; who uses it holds the fabric, too.
        Ok(found.map(|base| unsafe { Area::new(base) }))
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

    /// Waits while `rank` has a piece of somebody's memory in hand. Its own death ends that; the death
    /// of any other rank does not.
    pub fn wait_for_piece(&self, rank: usize, mut in_hand: impl FnMut() -> bool) {
        let mut looks = 0_u32;
        while in_hand() && !self.has_died(rank) {
            looks += 1;
            if looks.is_multiple_of(64) {
                std::thread::yield_now();
            } else {
                std::hint::spin_loop();
            }
        }
    }

    /// Whether `rank` has died: it is not in the middle of anything.
    #[cold]
    fn has_died(&self, rank: usize) -> bool {
        self.segment.as_ref().is_some_and(|segment| segment.state(rank) == State::Dead)
    }

    /// Tells the launcher that this rank leaves the job in order.
    pub fn finalized(&self) {
        if let Some(segment) = &self.segment {
            segment.mark_finalized(self.rank);
        }
    }
}
