//! The connection of this rank to the other ranks: the areas of pairs, the first contact, the doorbells,
//! and the news of failures.
//!
//! This file uses `shm/segment.rs`; `link.rs` and `progress.rs` use this file. A process that no launcher has started
//! has no segment ([`Fabric::alone`]), and there no code asks this file for another rank. When such a process starts others,
//! it gets one ([`Fabric::found`]), and from then on nothing differs from the only rank of `mpiexec -n 1`.
//!
//! The job crate's `shm/contacts.rs` describes how a rank `a` first writes to a rank `b`: `a` takes an
//! area, allocates the memory of the ring's pages, writes the area's number into the mailbox of `b`, and
//! rings `b`.

use super::area::Area;
use super::failure::await_end;
use super::pool::Pool;
use crate::memory;
use crate::memory::heaps::{Heaps, Mapped};
use crate::placement::Cpu;
use crate::process::Process;
use crate::request::private::{Probe, Reader, Readers};
use crate::shm::budget::Need;
use crate::shm::contacts::Contacts;
use crate::shm::heap::Heap;
use crate::shm::layout::State;
use crate::shm::pair;
use crate::shm::segment::Segment;
use crate::shm::topology::{Distance, Parts, distance};
use crate::shm::waiting::Waiting;
use crate::sys::cma;
use crate::sys::futex::Woken;
use crate::{Error, ErrorKind, Result};
use std::num::NonZeroU32;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering, fence};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Converts an error of the job crate that concerns the contact with rank `rank`.
#[cold]
fn of_contact(rank: usize, error: typepack_job::Error) -> Error {
    match error.kind() {
        // This error means that `rank` has written a wrong area number.
        typepack_job::ErrorKind::Argument => {
            let detail = format!("{} broke the protocol: {error}", Process::new(rank));
            Error::new(ErrorKind::Other, "transport", detail)
        }
        _ => error.into(),
    }
}

/// Builds the error for another rank, if no launcher has started this process. No caller asks for one.
#[cold]
fn none() -> Error {
    let detail = "a process that no launcher has started has no other rank";
    Error::new(ErrorKind::Internal, "transport", detail)
}

/// The probe number of this process. Other ranks try to read it from this process's memory. If they succeed,
/// they know that they can access the memory of this process, and that they have the right process.
static PROBE: OnceLock<u64> = OnceLock::new();

/// Returns a random number. It is very unlikely that another process has the same number at the same
/// address.
fn probe_number() -> u64 {
    use std::hash::BuildHasher;
    std::hash::RandomState::new().hash_one(std::process::id())
}

/// This rank's connection to the other ranks of the job.
#[derive(Clone, Debug)]
pub struct Fabric {
    /// The slot of this process.
    rank: usize,
    /// The slots of the ranks of the world of this process.
    world: Range<usize>,
    /// What the job shares; `None` if no launcher has started this process.
    job: Option<Job>,
    /// What the job shares that this process has made later. All copies of this value share it.
    later: Arc<OnceLock<Job>>,
    /// How this rank reads the private memory of other ranks.
    readers: Arc<Readers>,
}

/// What this rank and the other processes of its job share.
#[derive(Clone, Debug)]
struct Job {
    segment: Arc<Segment>,
    heaps: Arc<Heaps>,
    /// The areas through which this rank communicates with other ranks.
    contacts: Arc<Contacts>,
    /// The chunks that this rank lends to its pairs.
    pool: Arc<Pool>,
}

impl Job {
    /// Returns what the process in slot `rank` shares with the others.
    fn of(segment: Arc<Segment>, rank: usize) -> Result<Self> {
        let heaps = Arc::new(Heaps::new(segment.clone(), rank));
        let contacts = Arc::new(Contacts::new(segment.clone(), rank)?);
        let pool = Arc::new(Pool::new(contacts.clone(), rank, segment.processes()));
        Ok(Self { segment, heaps, contacts, pool })
    }
}

impl Fabric {
    /// Returns the fabric of a process that no launcher has started, without shared memory. As long as nobody can join
    /// such a process, nothing here needs a segment. To make one would cost more system calls than all the rest of
    /// [`init`](crate::init).
    pub fn alone() -> Self {
        let (later, readers) = (Arc::default(), Arc::default());
        Self { rank: 0, world: 0..1, job: None, later, readers }
    }

    /// Gives the fabric of [`Fabric::alone`], and all its copies, the shared memory `segment` of a job whose only rank so far
    /// is this process, in the slot `rank`. Later calls do nothing.
    ///
    /// Peers keep what they have found in the fabric when they were made. Before this call there is only the peer of this
    /// process itself, whose messages need no chunks of the pool; those of other processes are made afterwards.
    ///
    /// # Errors
    /// Returns the errors of [`Fabric::join`], and `ErrorKind::Internal` if the slot is not that of this fabric.
    pub fn found(&self, segment: Arc<Segment>, rank: usize) -> Result<()> {
        if rank != self.rank || segment.world_of(rank) != Some(self.world()) {
            let detail = format!("slot {rank} is not that of a process by itself");
            return Err(Error::new(ErrorKind::Internal, "transport", detail));
        }
        if self.job().is_none() {
            let job = Job::of(segment, rank)?;
            self.later.get_or_init(|| job);
        }
        Ok(())
    }

    #[inline]
    fn job(&self) -> Option<&Job> {
        match &self.job {
            Some(job) => Some(job),
            None => self.later.get(),
        }
    }

    #[inline]
    fn segment(&self) -> Option<&Segment> {
        self.job().map(|job| &*job.segment)
    }

    /// Joins the job whose shared memory is `segment`. This process gets the slot `rank`, and the function allocates
    /// the memory of this rank's mailbox. Its world consists of the ranks that the launcher has started with it.
    ///
    /// # Errors
    /// Returns `ErrorKind::NoMemory` if memory ran out, and `ErrorKind::Other` if the system refuses for another
    /// reason.
    pub fn join(segment: Arc<Segment>, rank: usize) -> Result<Self> {
        let world = segment.world_of(rank).unwrap_or(0..segment.ranks());
        let job = Some(Job::of(segment, rank)?);
        Ok(Self { rank, world, job, later: Arc::default(), readers: Arc::default() })
    }

    /// Returns the slot of this rank.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Returns the slots of the ranks of this rank's world, in the order of the ranks.
    pub fn world(&self) -> Range<usize> {
        self.world.clone()
    }

    /// Returns the number of slots that processes of the job have taken so far.
    pub fn processes(&self) -> usize {
        self.segment().map_or(1, |segment| segment.processes())
    }

    /// Returns the slots of the world of the process in slot `rank`, or `None` if there is none.
    pub fn world_of(&self, rank: usize) -> Option<Range<usize>> {
        self.segment()?.world_of(rank)
    }

    /// Returns a number that no other job of this machine has, or `None` if no launcher has started this process.
    pub fn job_number(&self) -> Option<u64> {
        self.segment().map(Segment::identity)
    }

    /// Returns the slot of the process that has asked for this rank's world, or `None` if there is none.
    pub fn parent(&self) -> Option<usize> {
        self.segment()?.parent(self.rank)
    }

    /// Lets other ranks use memory of this one: memory that the program allocates from now on comes from this rank's
    /// heap, and, if `cma`, other ranks may read its private memory. A rank calls this function before it has a
    /// communicator with another rank. As long as nobody could read this memory, private memory serves: on a Zen 4, a
    /// page of a heap took 0.7 us when it was first touched, and a private page 0.4 us.
    pub fn share_memory(&self, cma: bool) {
        static SHARED: OnceLock<()> = OnceLock::new();
        SHARED.get_or_init(|| {
            self.heaps().into_iter().for_each(memory::join);
            if cma {
                let number = PROBE.get_or_init(probe_number);
                self.open_memory(std::ptr::from_ref(number) as u64, *number);
            }
        });
    }

    /// Returns this rank's part of the shared heap. Returns `None` in a job without a shared heap.
    pub fn heap(&self) -> Option<&Heap> {
        self.heaps()?.own()
    }

    /// Returns this rank's part of the shared heap if this process has already used the part. The process
    /// does so before it first allocates from the heap.
    #[inline]
    pub fn used_heap(&self) -> Option<&Heap> {
        self.heaps()?.used()
    }

    /// Returns whether the byte at `address` lies in this rank's heap.
    #[inline]
    pub fn holds(&self, address: *const u8) -> bool {
        self.used_heap().is_some_and(|heap| heap.offset_of(address, 1).is_some())
    }

    /// Returns the size of each rank's heap in bytes, or 0 if no launcher has started this process.
    pub fn heap_bytes(&self) -> u64 {
        self.heaps().map_or(0, |heaps| heaps.bytes())
    }

    /// Returns the memory of a range of another rank's heap, and maps it first if necessary. Returns `None` in a job
    /// without a shared heap, if the range cannot be mapped or lies outside the heap, or if
    /// `rank` is this rank or no rank of the job.
    #[inline]
    pub fn heap_at(&self, rank: usize, range: &Range<u64>) -> Option<Mapped> {
        let heaps = self.heaps()?;
        heaps.of(rank)?.find(range).or_else(|| heaps.map(rank, range).ok())
    }

    /// Returns whether address space may run short, so that nobody should keep memory of [`heap_at`](Self::heap_at)
    /// without need.
    pub fn addresses_are_scarce(&self) -> bool {
        self.heaps().is_none_or(|heaps| heaps.is_scarce())
    }

    /// Returns the table of heaps, or `None` if no launcher has started this process.
    #[inline]
    pub fn heaps(&self) -> Option<&Arc<Heaps>> {
        self.job().map(|job| &job.heaps)
    }

    /// Returns the distance between the core of this rank and the core of `rank`. If one of the two ranks
    /// is not bound to a core, returns the largest distance.
    pub fn distance(&self, rank: usize) -> Distance {
        let Some(segment) = self.segment() else { return Distance::Core };
        match (segment.bound_cpu(self.rank), segment.bound_cpu(rank)) {
            (Some(a), Some(b)) => distance(&segment.cpu(a), &segment.cpu(b)),
            _ => Distance::Machine,
        }
    }

    /// Returns the CPU to which `rank` is bound. Returns `None` if the rank is not bound to a CPU.
    pub fn cpu_of(&self, rank: usize) -> Option<Cpu> {
        Cpu::of(self.segment()?, rank)
    }

    /// Returns whether the core of this rank and the core of `rank` share no cache.
    pub fn is_far(&self, rank: usize) -> bool {
        self.distance(rank) > Distance::L3
    }

    /// Permits the other ranks of the job to access the memory of this process, as far as the system allows
    /// it. Publishes `number` (this rank's probe number) and `at` in this rank's slot. The memory of this
    /// process contains the same number at address `at`. So a rank that can read the number there knows
    /// that it can access this process's memory.
    pub fn open_memory(&self, at: u64, number: u64) {
        let Some(segment) = self.segment() else { return };
        match segment.launcher() {
            Some(launcher) => cma::permit(launcher),
            // Another launcher has started the ranks, and mpiexec only watches them.
            None => cma::permit_user(),
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

    /// Returns the slot of a rank.
    #[cfg(test)]
    pub fn slot_of(&self, rank: usize) -> &crate::shm::layout::RankSlot {
        self.segment().expect("this process has no job").slot(rank)
    }

    /// Returns whether this rank takes part in copies between private memories.
    #[inline]
    pub fn memory_is_open(&self) -> bool {
        let slot = self.segment().map(|segment| segment.slot(self.rank));
        slot.is_some_and(|slot| slot.probe_at[0].load(Ordering::Relaxed) != 0)
    }

    /// Returns how this rank reads the private memory of `rank`. Returns `None` if the system or `TYPEPACK_CMA` does
    /// not permit it, or if an earlier read has failed.
    pub fn reader_of(&self, rank: usize) -> Option<Reader> {
        self.readers.of(rank, || self.probe_of(rank))
    }

    /// Finds out whether this rank can still read the private memory of `rank`, because a get has failed.
    pub fn doubt_reads(&self, rank: usize) {
        self.readers.doubt(rank, || self.probe_of(rank));
    }

    /// From now on, this rank does not read the private memory of `rank`, because a read has failed.
    pub fn refuse_reads(&self, rank: usize) {
        self.readers.refuse(rank);
    }

    /// Returns what `rank` has published for a test access to its memory (see `open_memory`). Returns `None` if this
    /// rank or `rank` takes no part in copies between private memories.
    fn probe_of(&self, rank: usize) -> Option<Probe> {
        let slot = self.segment()?.slot(rank);
        let whole = |words: &[AtomicU32; 2]| {
            let half = |word: &AtomicU32| u64::from(word.load(Ordering::Acquire));
            half(&words[0]) | half(&words[1]) << 32
        };
        let (at, number) = (whole(&slot.probe_at), whole(&slot.probe));
        let process = NonZeroU32::new(slot.pid.load(Ordering::Relaxed))?;
        (self.memory_is_open() && at as u32 != 0).then_some((process, at, number))
    }

    /// Returns whether the job has more ranks than CPUs.
    pub fn oversubscribed(&self) -> bool {
        self.segment().is_some_and(|segment| segment.flags().oversubscribed)
    }

    /// Returns the parts of the machine that contain all CPUs on which the process in slot `rank` may run, or `None` if no
    /// launcher has started this process.
    pub fn bound_parts(&self, rank: usize) -> Option<Parts> {
        let segment = self.segment()?;
        segment.bound_parts(rank).or_else(|| Some(segment.common_parts()))
    }

    /// Returns whether the job has more ranks than CPUs now; ranks may have joined since this process did.
    #[inline]
    pub fn is_crowded(&self) -> bool {
        self.segment().is_some_and(Segment::is_oversubscribed)
    }

    /// Returns the table of the areas in which this rank reads or writes.
    ///
    /// # Errors
    /// Returns `ErrorKind::Internal` if no launcher has started this process. No caller asks for areas then.
    pub fn contacts(&self) -> Result<&Contacts> {
        self.job().map(|job| &*job.contacts).ok_or_else(none)
    }

    /// Returns the area in which this rank writes to `to`. The first call for `to` also makes the first
    /// contact: it chooses the geometry of the pair, and writes the number of the area into the mailbox of `to`.
    ///
    /// # Errors
    /// Returns `ErrorKind::NoMemory` if memory ran out, and `ErrorKind::Other` if the system refuses for another
    /// reason.
    pub fn contact(&self, to: usize) -> Result<Area> {
        let Some(Job { segment, contacts, pool, .. }) = self.job() else { return Err(none()) };
        let wanted = pool.geometry(segment.processes());
        let found = contacts.connect(to, wanted).map_err(|e| of_contact(to, e))?;
        let (base, geometry) = found;
        let (at, bytes) = pair::LEVELS[geometry.first_level()].pages();
        if bytes > 0 {
            contacts.reserve(to, at, bytes, Need::Must)?;
        }
        // SAFETY: `connect` returns the base of a mapped area of this geometry, and `self.contacts` keeps the area
        // mapped. The link that stores the returned value lives in the message engine, which owns `self`.
        Ok(unsafe { Area::new(base, geometry) })
    }

    /// Allocates the memory of a ring in which this rank will write to `to`. Returns false if memory is short.
    pub fn reserve_ring(&self, to: usize, level: pair::Level) -> bool {
        let (at, bytes) = level.pages();
        self.contacts().is_ok_and(|contacts| contacts.reserve(to, at, bytes, Need::Wish).is_ok())
    }

    /// Returns the chunks that this rank lends to its pairs, or `None` if no launcher has started this process.
    pub fn pool(&self) -> Option<&Arc<Pool>> {
        self.job().map(|job| &job.pool)
    }

    /// Allocates the memory of the chunk stamps and of the small chunk in the direction to `to`, whose area is `area`.
    ///
    /// # Errors
    /// Returns `ErrorKind::NoMemory` if memory ran out, and `ErrorKind::Other` if the system refuses for another
    /// reason.
    pub fn reserve_stamps(&self, to: usize, area: &Area) -> Result<()> {
        let end = area.geometry().small_chunk() + pair::SMALL_CHUNK_BYTES;
        let bytes = end - pair::STAMPS_AT;
        Ok(self.contacts()?.reserve(to, pair::STAMPS_AT, bytes, Need::Must)?)
    }

    /// Returns the number of connections that other ranks have made to this rank, or `None` if this number
    /// is still `seen`. If the number has changed, another rank has begun to write to this rank since the
    /// caller read `seen`.
    #[inline]
    pub fn connected(&self, seen: u32) -> Option<u32> {
        self.segment()?.connected(self.rank, seen)
    }

    /// Returns a number that is greater than the number of every rank that has begun to write to this
    /// rank.
    pub fn writers(&self) -> usize {
        self.segment().map_or(0, |segment| segment.writers(self.rank))
    }

    /// Returns the area in which `from` writes to this rank, or `None` if `from` has not written to this
    /// rank yet.
    ///
    /// # Errors
    /// Returns `ErrorKind::Other` if `from` has named an area that does not exist or has no valid geometry, or the
    /// system refuses to map the area, and `ErrorKind::NoMemory` if the address space is too small.
    pub fn written_by(&self, from: usize) -> Result<Option<Area>> {
        let found = self.contacts()?.written_by(from).map_err(|e| of_contact(from, e))?;
        // SAFETY: `written_by` checks what `from` wrote, and returns the base of a mapped area of this geometry.
        // `self.contacts` keeps the area mapped, and the link that stores the returned value lives beside
        // `self` in the engine.
        Ok(found.map(|(base, geometry)| unsafe { Area::new(base, geometry) }))
    }

    /// Wakes `rank` if it sleeps. The caller must do this after it has published anything for which `rank`
    /// may be waiting.
    #[inline]
    pub fn ring(&self, rank: usize) {
        if let Some(segment) = self.segment() {
            segment.ring(rank);
        }
    }

    /// Asks the kernel to include this process in the memory barriers of other ranks (`shm/doorbell.rs`).
    /// This rank then needs no fence when it wakes a rank that executes such a barrier before it sleeps.
    /// If `pays` is true, this rank executes a barrier before it sleeps, too. If the kernel refuses,
    /// every wake-up still costs a fence.
    pub fn register_barrier(&self, pays: bool) {
        if let Some(segment) = self.segment()
            && segment.register_barrier()
            && pays
        {
            segment.pay(self.rank);
        }
    }

    /// Announces that this rank is about to sleep. Returns the value that the caller passes to
    /// [`Fabric::sleep`] as `seen`. Between this call and [`Fabric::sleep`], the caller must check once
    /// more for every event that could wake this rank.
    pub fn announce(&self) -> u32 {
        self.segment().map_or(0, |segment| segment.prepare_wait(self.rank))
    }

    /// Cancels the announcement of [`Fabric::announce`].
    pub fn cancel_wait(&self) {
        if let Some(segment) = self.segment() {
            segment.cancel_wait(self.rank);
        }
    }

    /// Sleeps until another rank or thread rings this rank's doorbell, or until `timeout` has passed. Returns at once
    /// if the doorbell has rung since [`Fabric::announce`] returned `seen`. If no launcher has started this process,
    /// nobody can ring, so the call sleeps for `timeout`, but at most for 1 ms. Returns why the sleep has ended.
    ///
    /// # Errors
    /// Returns `ErrorKind::Other` if the kernel refuses to sleep.
    pub fn sleep(&self, seen: u32, timeout: Duration) -> Result<Woken> {
        let Some(segment) = self.segment() else {
            std::thread::sleep(timeout.min(Duration::from_millis(1)));
            return Ok(Woken::Changed);
        };
        Ok(segment.wait(self.rank, seen, Some(timeout))?)
    }

    /// Returns the record of what this rank waits for, which mpiexec reads.
    pub fn waiting(&self) -> Option<&Waiting> {
        self.segment().map(|segment| &segment.slot(self.rank).waiting)
    }

    /// Returns the record of what a rank of the world waits for.
    pub fn waiting_of(&self, rank: usize) -> Option<&Waiting> {
        self.segment().map(|segment| &segment.slot(rank).waiting)
    }

    /// Wakes the thread of this process that sleeps on the doorbell. Another thread calls this function after it has
    /// given that thread work.
    pub fn wake_waiting(&self) {
        self.ring(self.rank);
    }

    /// Returns an error if a rank that shares a communicator with this rank has died, and otherwise `None`. The
    /// launcher then ends this rank. Unless this program handles SIGTERM itself, the function does not return in this
    /// case.
    #[cold]
    pub fn failure(&self) -> Option<Error> {
        let segment = self.segment()?;
        if segment.failures(self.rank) == 0 {
            return None;
        }
        if segment.is_ended(self.rank) {
            await_end();
        }
        let detail = match segment.first_failure(self.rank) {
            Some(failure) => failure.to_string(),
            None => "another rank has died".to_owned(),
        };
        Some(Error::new(ErrorKind::ProcAborted, "job", detail))
    }

    /// Waits until `in_hand` returns false. `in_hand` returns true while `rank` copies a piece. The wait
    /// ends early if `rank` dies, but not if another rank dies.
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

    /// Returns whether `rank` has died. A dead rank no longer copies anything.
    #[cold]
    pub fn has_died(&self, rank: usize) -> bool {
        self.segment().is_some_and(|segment| segment.state(rank) == State::Dead)
    }

    /// Returns whether `rank` has left the job, properly or by its death. (A rank can return to the job.)
    #[cold]
    pub fn has_left(&self, rank: usize) -> bool {
        let left = |state| matches!(state, State::Finalized | State::Dead);
        self.segment().is_some_and(|segment| left(segment.state(rank)))
    }

    /// Returns whether `rank` has left the job, or leaves it and sends nothing more.
    #[cold]
    pub fn sends_no_more(&self, rank: usize) -> bool {
        self.has_left(rank) || self.segment().is_some_and(|segment| segment.is_leaving(rank))
    }

    /// Tells the other ranks whether this rank leaves the job and sends nothing more. If it does, and they have not been
    /// told yet, wakes those that may wait for this. Returns whether they had been told otherwise before; a rank that waits has
    /// to look at the records of the others again then.
    #[cold]
    pub fn leaves(&self, leaving: bool) -> bool {
        let Some(segment) = self.segment() else { return false };
        let is_new = segment.mark_leaving(self.rank, leaving);
        if is_new && leaving {
            self.wake_leaving(segment);
        }
        is_new
    }

    /// Wakes the other ranks that leave the job, because one of them may wait until this rank has left or leaves too. The
    /// caller has recorded that this rank does.
    ///
    /// A rank that waits for this has recorded that it leaves, and looked at this rank's record only then. Between its own
    /// record and its look at the records of others, each of the two has a fence. So the one whose fence comes last sees
    /// the record of the other: either the rank that waits sees that this one leaves, or it is woken here.
    fn wake_leaving(&self, segment: &Segment) {
        fence(Ordering::SeqCst);
        let others = (0..segment.processes()).filter(|rank| *rank != self.rank);
        others.filter(|rank| segment.is_leaving(*rank)).for_each(|rank| segment.ring(rank));
    }

    /// Tells the launcher, and the ranks that wait for it, that this rank leaves the job normally.
    pub fn finalized(&self) {
        if let Some(segment) = self.segment() {
            segment.mark_finalized(self.rank);
            self.wake_leaving(segment);
        }
    }

    /// Tells the launcher that this rank takes part in the job again.
    pub fn returned(&self) {
        if let Some(segment) = self.segment() {
            segment.mark_returned(self.rank);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shm::segment::JobFlags;

    /// Rank 0 waits until rank 1 leaves. Rank 1 waits for nobody, so it says only that it has left, and once did not wake
    /// rank 0, which slept on for a while. Nobody wakes rank 2, which does not leave.
    #[test]
    fn a_rank_that_leaves_wakes_those_that_leave() {
        let segment = Segment::create(3, &[], JobFlags::default(), 0).expect("a segment");
        let segment = Arc::new(segment);
        let fabrics = [0, 1, 2].map(|rank| Fabric::join(segment.clone(), rank).expect("a rank"));
        type Leave = fn(&Fabric);
        let ways: [Leave; 2] = [Fabric::finalized, |fabric| assert!(fabric.leaves(true))];
        for leave in ways {
            assert!(fabrics[0].leaves(true) && !fabrics[0].leaves(true));
            let seen = [0, 2].map(|rank| fabrics[rank].announce());
            leave(&fabrics[1]);
            assert!(fabrics[0].sends_no_more(1));
            assert_ne!(fabrics[0].announce(), seen[0]);
            assert_eq!(fabrics[2].announce(), seen[1]);
            fabrics[1].returned();
            assert!(fabrics[0].leaves(false) && !fabrics[0].leaves(false));
            fabrics[1].leaves(false);
            assert!(!fabrics[0].sends_no_more(1));
        }
    }
}
