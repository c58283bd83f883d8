//! The mapped segment of a job: made by the launcher (or a singleton), opened by each rank.
//!
//! `layout.rs` says what lies where; this file is the only one that turns offsets into pointers.
//! `attach.rs` opens it in a rank; `heap.rs` divides this rank's heap; `contacts.rs` finds the areas of pairs; the transports use
//! [`Segment::ring`] and the waiting calls; the launcher writes the header, the slots and the failure.
//!
//! Invariants: only atomics are ever borrowed from shared memory, never a plain `&T`; the sizes of
//! the layout come from five numbers that are checked against the sealed size of the file at
//! [`Segment::open`] and kept in private memory from then on; a range is filled by
//! [`Segment::reserve_area`] before it is touched, so that running out of memory is an error and
//! not a SIGBUS.
//!
//! The atomics are those of `core`, also in a loom build: loom's have no defined layout and cannot
//! live in a mapping. What loom checks is the protocol (`pair.rs` and its users), over its own.

use std::num::NonZeroU32;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::doorbell::{Doorbell, Machine};
use super::failure::{Ending, Failure};
use super::layout::{
    FLAG_OVERSUBSCRIBED, FLAG_STDERR_TERMINAL, FLAG_STDOUT_TERMINAL, HASH, Header, Layout, MAGIC,
    MAX_CPUS, MAX_RANKS, RankSlot, Room, State, VERSION, VERSION_TEXT,
};
use super::topology::{CpuEntry, CpuInfo};
use crate::error::{Error, ErrorKind};
use crate::sys::futex::Woken;
use crate::sys::limits;
use crate::sys::memory::{self, Inherit, Mapping};

/// What the launcher knows about the job as a whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JobFlags {
    /// More ranks than CPUs: waiting ranks must not spin.
    pub oversubscribed: bool,
    /// The output of rank 0 ends on a terminal.
    pub stdout_terminal: bool,
    /// The error output of rank 0 ends on a terminal.
    pub stderr_terminal: bool,
}

/// The shared memory of a job, mapped.
#[derive(Debug)]
pub struct Segment {
    map: Mapping,
    fd: OwnedFd,
    layout: Layout,
    flags: JobFlags,
}

impl Segment {
    /// Makes the segment of a job of `ranks` ranks on a machine with the given CPUs.
    ///
    /// `launcher` is the process id of `mpiexec`, 0 for a singleton. CPUs beyond [`MAX_CPUS`] are
    /// left out.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Argument`] for 0 ranks or more than [`MAX_RANKS`];
    /// [`ErrorKind::NoMemory`] when memory or address space has run out.
    pub fn create(
        ranks: usize,
        cpus: &[CpuInfo],
        flags: JobFlags,
        launcher: u32,
    ) -> Result<Self, Error> {
        let cpus = &cpus[..cpus.len().min(MAX_CPUS)];
        let (memory, file) = (limits::machine_memory(), limits::file_size());
        let layout = Layout::for_job(ranks, cpus.len(), memory, file).ok_or_else(|| {
            Error::new(ErrorKind::Argument, format!("ranks: {ranks} is outside 1 to {MAX_RANKS}"))
        })?;
        if layout.total() as u64 > file {
            let detail = format!(
                "a job of {ranks} ranks needs a file of {} bytes, and files of this process may have \
                 {file} (ulimit -f)",
                layout.total()
            );
            return Err(Error::new(ErrorKind::NoMemory, detail));
        }
        let describe = || format!("shared memory of {} bytes for {ranks} ranks", layout.total());
        let fd = memory::create_sealed("typepack-job", layout.total() as u64)
            .map_err(|error| Error::system(describe(), error))?;
        memory::reserve(fd.as_fd(), 0, layout.common() as u64)
            .map_err(|error| Error::system(describe(), error))?;
        let map = Mapping::shared(fd.as_fd(), 0, layout.mapped(), Inherit::No)
            .map_err(|error| Error::system(describe(), error))?;
        let segment = Self { map, fd, layout, flags };
        segment.write_header(cpus, launcher);
        Ok(segment)
    }

    /// Opens a segment that another process made.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotARank`] when `fd` is no such segment,
    /// [`ErrorKind::Mismatch`] when another build of typepack made it, else as
    /// [`Segment::create`].
    pub fn open(fd: OwnedFd) -> Result<Self, Error> {
        let foreign =
            || Error::new(ErrorKind::NotARank, "the inherited descriptor is no typepack segment");
        let sealed = memory::sealed_len(fd.as_fd())
            .map_err(|error| Error::system("the inherited segment", error))?
            .and_then(|len| usize::try_from(len).ok())
            .filter(|&len| len >= size_of::<Header>())
            .ok_or_else(foreign)?;
        let map = |bytes: usize| {
            Mapping::shared(fd.as_fd(), 0, bytes, Inherit::No).map_err(|error| {
                Error::system(format!("mapping {bytes} bytes of shared memory"), error)
            })
        };
        let first = map(size_of::<Header>())?;
        // SAFETY: the mapping is page aligned and as long as a header; atomics only.
        let header = unsafe { first.base().cast::<Header>().as_ref() };
        if header.magic.load(Ordering::Acquire) != MAGIC {
            return Err(foreign());
        }
        if header.hash.load(Ordering::Relaxed) != HASH {
            return Err(mismatch(header));
        }
        let ranks = header.ranks.load(Ordering::Relaxed) as usize;
        let cpus = header.cpus.load(Ordering::Relaxed) as usize;
        let bits = header.flags.load(Ordering::Relaxed);
        let size =
            |word: &AtomicU64| usize::try_from(word.load(Ordering::Relaxed)).unwrap_or(usize::MAX);
        let slots = header.slots.load(Ordering::Relaxed) as usize;
        let room = Room { slots, areas: size(&header.areas), cpus, heap: size(&header.heap) };
        let layout = Layout::new(ranks, room).filter(|l| l.total() == sealed).ok_or_else(|| {
            Error::new(
                ErrorKind::Mismatch,
                format!("a segment of {sealed} bytes does not fit {ranks} ranks and {room:?}"),
            )
        })?;
        let flags = JobFlags {
            oversubscribed: bits & FLAG_OVERSUBSCRIBED != 0,
            stdout_terminal: bits & FLAG_STDOUT_TERMINAL != 0,
            stderr_terminal: bits & FLAG_STDERR_TERMINAL != 0,
        };
        let map = map(layout.mapped())?;
        Ok(Self { map, fd, layout, flags })
    }

    fn write_header(&self, cpus: &[CpuInfo], launcher: u32) {
        let header = self.header();
        for (row, cpu) in cpus.iter().enumerate() {
            self.cpu_entry(row).store(cpu);
        }
        let mut text = [0_u8; VERSION_TEXT];
        for (to, from) in text.iter_mut().zip(env!("CARGO_PKG_VERSION").bytes()) {
            *to = from;
        }
        for (word, bytes) in header.version_text.iter().zip(text.chunks_exact(8)) {
            let mut eight = [0_u8; 8];
            eight.copy_from_slice(bytes);
            word.store(u64::from_le_bytes(eight), Ordering::Relaxed);
        }
        let mut bits = 0;
        for (on, bit) in [
            (self.flags.oversubscribed, FLAG_OVERSUBSCRIBED),
            (self.flags.stdout_terminal, FLAG_STDOUT_TERMINAL),
            (self.flags.stderr_terminal, FLAG_STDERR_TERMINAL),
        ] {
            bits |= if on { bit } else { 0 };
        }
        header.hash.store(HASH, Ordering::Relaxed);
        header.version.store(VERSION, Ordering::Relaxed);
        // Both fit: the layout has limited them.
        header.ranks.store(self.layout.ranks() as u32, Ordering::Relaxed);
        header.cpus.store(self.layout.cpus() as u32, Ordering::Relaxed);
        header.flags.store(bits, Ordering::Relaxed);
        let room = self.layout.room();
        header.heap.store(room.heap as u64, Ordering::Relaxed);
        header.areas.store(room.areas as u64, Ordering::Relaxed);
        header.slots.store(room.slots as u32, Ordering::Relaxed);
        header.launcher.store(launcher, Ordering::Relaxed);
        header.magic.store(MAGIC, Ordering::Release);
    }

    /// Number of ranks of the job.
    pub fn ranks(&self) -> usize {
        self.layout.ranks()
    }

    /// What the launcher knows about the job, as read once at the start.
    pub fn flags(&self) -> JobFlags {
        self.flags
    }

    /// Offsets of the parts.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Maps the heap of `rank`, at first need; the mapping need not be kept as long as `self`.
    ///
    /// This rank's own heap is inherited by `fork`, so that a child can read its parent's data;
    /// other ranks' heaps are not.
    ///
    /// # Errors
    ///
    /// The kernel's answer (`ENOMEM` under a limit on the address space); `EINVAL` for a job
    /// without heaps.
    ///
    /// # Panics
    ///
    /// When there is no such rank.
    pub fn map_heap(&self, rank: usize, inherit: Inherit) -> std::io::Result<Mapping> {
        let at = self.layout.heap_of(rank) as u64;
        Mapping::shared(self.fd.as_fd(), at, self.layout.heap(), inherit)
    }

    /// The descriptor of the segment; stays open for [`Segment::reserve_area`].
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// The header.
    pub fn header(&self) -> &Header {
        // SAFETY: the mapping is page aligned, longer than a header (checked in `open`, given by
        // the layout in `create`) and lives as long as `self`; `Header` consists of atomics only,
        // for which any bits are valid and concurrent writes are no data race.
        unsafe { self.map.base().cast::<Header>().as_ref() }
    }

    /// The slot of `rank`.
    ///
    /// # Panics
    ///
    /// When there is no such rank.
    pub fn slot(&self, rank: usize) -> &RankSlot {
        let at = self.layout.slot(rank);
        // SAFETY: the layout's total is the mapping's length and `at` leaves room for a slot, at a
        // multiple of 128 from a page; atomics only, as above.
        unsafe { self.map.base().byte_add(at).cast::<RankSlot>().as_ref() }
    }

    fn cpu_entry(&self, cpu: usize) -> &CpuEntry {
        let at = self.layout.cpu(cpu);
        // SAFETY: as in `slot`, at a multiple of 32 from a page.
        unsafe { self.map.base().byte_add(at).cast::<CpuEntry>().as_ref() }
    }

    /// What is known of a CPU by its operating system number; all unknown beyond the table.
    pub fn cpu(&self, cpu: usize) -> CpuInfo {
        if cpu < self.layout.cpus() { self.cpu_entry(cpu).load() } else { CpuInfo::default() }
    }

    /// The process of the launcher, `None` in a job without one.
    pub fn launcher(&self) -> Option<NonZeroU32> {
        NonZeroU32::new(self.header().launcher.load(Ordering::Relaxed))
    }

    /// The CPU that `rank` is bound to (the first of its core), `None` when it is not bound.
    pub fn bound_cpu(&self, rank: usize) -> Option<usize> {
        let word = self.slot(rank).bound_cpu.load(Ordering::Relaxed);
        word.checked_sub(1).map(|cpu| cpu as usize)
    }

    /// Where `rank` is in its life.
    pub fn state(&self, rank: usize) -> State {
        State::from_word(self.slot(rank).state.load(Ordering::Acquire))
    }

    /// The connects of `rank` (the caller): somebody has begun to write to it when they differ from `seen`.
    #[inline]
    pub fn connected(&self, rank: usize, seen: u32) -> Option<u32> {
        let connects = self.slot(rank).connects.load(Ordering::Acquire);
        (connects != seen).then_some(connects)
    }

    /// Takes an area that nobody has taken: its number.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NoMemory`] when the file has room for no more.
    pub fn take_area(&self) -> Result<usize, Error> {
        let room = self.layout.room().areas;
        let next = |taken: u64| (taken < room as u64).then_some(taken + 1);
        let words = &self.header().areas_taken;
        match words.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next) {
            Ok(number) => Ok(number as usize),
            Err(_) => Err(Error::new(
                ErrorKind::NoMemory,
                format!("shared memory has room for {room} ways between ranks, which are taken"),
            )),
        }
    }

    /// Maps an area: [`Layout::area_bytes`] bytes, zero at the start of the job. It need not be kept as
    /// long as `self`.
    ///
    /// Other processes write there at any time: access goes through atomics, or through raw copies
    /// into private memory that tolerate any content. [`Segment::reserve_area`] comes first.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Argument`] when there is no such area, [`ErrorKind::NoMemory`] when address space has run
    /// out.
    pub fn map_area(&self, number: usize) -> Result<Mapping, Error> {
        let at = self.area(number)? as u64;
        Mapping::shared(self.fd.as_fd(), at, self.layout.area_bytes(), Inherit::No)
            .map_err(|error| Error::system(format!("mapping area {number}"), error))
    }

    /// Fills `len` bytes at `offset` of an area with memory, before the first touch; whole pages.
    ///
    /// The pages come from the NUMA node of the caller, so the rank that writes an area reserves it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Argument`] when the range is not within the area, [`ErrorKind::NoMemory`] when there is
    /// none left.
    pub fn reserve_area(&self, number: usize, offset: usize, len: usize) -> Result<(), Error> {
        let area = self.layout.area_bytes();
        let end = offset.checked_add(len).filter(|&end| end <= area && len > 0);
        if end.is_none() {
            return Err(Error::new(
                ErrorKind::Argument,
                format!("range: {len} bytes at {offset} are not within {area}"),
            ));
        }
        let at = self.area(number)? + offset;
        memory::reserve(self.fd.as_fd(), at as u64, len as u64).map_err(|error| {
            Error::system(format!("{len} bytes of shared memory between two ranks"), error)
        })
    }

    fn area(&self, number: usize) -> Result<usize, Error> {
        self.layout.area(number).ok_or_else(|| {
            let room = self.layout.room().areas;
            Error::new(ErrorKind::Argument, format!("area: {number} is not below {room}"))
        })
    }

    fn doorbell(&self, rank: usize) -> Doorbell<'_, Machine> {
        let slot = self.slot(rank);
        Doorbell { word: &slot.doorbell, sleeping: &slot.sleeping, kernel: &Machine }
    }

    /// Calls `rank` if it sleeps. Comes after the publication (release store) of what it is to
    /// see. Costs a fence and a load when the rank is awake.
    pub fn ring(&self, rank: usize) {
        self.doorbell(rank).ring();
    }

    /// Calls `rank` whether it sleeps or not.
    pub fn call(&self, rank: usize) {
        self.doorbell(rank).call();
    }

    /// Announces that `rank` (the caller) is about to sleep and returns what to pass to
    /// [`Segment::wait`]. Look once more at everything that could wake it between the two,
    /// [`Segment::fail_epoch`] included, and take [`Segment::cancel_wait`] if there is something.
    pub fn prepare_wait(&self, rank: usize) -> u32 {
        self.doorbell(rank).prepare()
    }

    /// Takes the announcement back.
    pub fn cancel_wait(&self, rank: usize) {
        self.doorbell(rank).cancel();
    }

    /// Sleeps until somebody rings, the doorbell is not `seen` any more, or the time runs out.
    /// May return for no reason; the caller looks again and, if need be, prepares again.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::System`] on a kernel without futexes.
    pub fn wait(&self, rank: usize, seen: u32, timeout: Option<Duration>) -> Result<Woken, Error> {
        self.doorbell(rank)
            .wait(seen, timeout)
            .map_err(|error| Error::system("waiting on the doorbell", error))
    }

    /// 0 while nothing has failed; read on slow paths and before every sleep.
    pub fn fail_epoch(&self) -> u32 {
        self.header().fail_epoch.load(Ordering::Acquire)
    }

    /// The first failure, once [`Segment::fail_epoch`] is not 0.
    pub fn failure(&self) -> Option<Failure> {
        if self.fail_epoch() == 0 {
            return None;
        }
        let header = self.header();
        let rank = header.failed_rank.load(Ordering::Relaxed).checked_sub(1)? as usize;
        let ending = Ending::from_word(header.failed_how.load(Ordering::Relaxed));
        (rank < self.ranks()).then_some(Failure { rank, ending })
    }

    /// The launcher's side of a failure: writes it down and calls every rank.
    pub fn declare_failure(&self, failure: Failure) {
        let header = self.header();
        if header.fail_epoch.load(Ordering::Relaxed) == 0 {
            header.failed_how.store(failure.ending.to_word(), Ordering::Relaxed);
            header.failed_rank.store(failure.rank as u32 + 1, Ordering::Relaxed);
        }
        header.fail_epoch.fetch_add(1, Ordering::SeqCst);
        for rank in 0..self.ranks() {
            self.call(rank);
        }
    }

    /// Marks `rank` (the caller) as having left the job in order; its end is then no failure.
    pub fn mark_finalized(&self, rank: usize) {
        self.slot(rank).state.store(State::Finalized as u32, Ordering::Release);
    }
}

/// The error for a segment of another build, from the fields that never move.
fn mismatch(header: &Header) -> Error {
    let mut text = String::new();
    for word in &header.version_text {
        for byte in word.load(Ordering::Relaxed).to_le_bytes() {
            // Untrusted, and it goes to a terminal.
            if byte.is_ascii_graphic() {
                text.push(char::from(byte));
            }
        }
    }
    Error::new(
        ErrorKind::Mismatch,
        format!(
            "mpiexec is typepack {text} (layout {:016x}), this program was built with typepack {} \
             (layout {HASH:016x}); use the mpiexec of the same build",
            header.hash.load(Ordering::Relaxed),
            env!("CARGO_PKG_VERSION"),
        ),
    )
}

/// A `u64` in an area as an atomic.
///
/// # Safety
///
/// - `at` points into an area of a [`Segment`] that is mapped for `'a`, and is 8-aligned.
pub unsafe fn atomic_u64<'a>(at: *mut u8) -> &'a AtomicU64 {
    // SAFETY: valid, aligned and alive by the contract; any bits are a valid u64, and shared
    // memory is accessed by atomics or raw copies only.
    unsafe { AtomicU64::from_ptr(at.cast()) }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::super::layout::MAX_SLOTS;
    use super::*;

    fn machine() -> Vec<CpuInfo> {
        (0..4).map(|c| CpuInfo { core: Some(c / 2), allowed: true, ..CpuInfo::default() }).collect()
    }

    fn small() -> Segment {
        Segment::create(3, &machine(), JobFlags::default(), 42).expect("segment")
    }

    #[test]
    fn what_the_launcher_wrote_is_what_a_rank_reads() {
        let flags =
            JobFlags { oversubscribed: true, stdout_terminal: false, stderr_terminal: true };
        let made = Segment::create(3, &machine(), flags, 42).expect("segment");
        let fd = made.fd().try_clone_to_owned().expect("dup");
        let opened = Segment::open(fd).expect("open");
        assert_eq!(opened.ranks(), 3);
        assert_eq!(opened.flags(), flags);
        assert_eq!(opened.layout(), made.layout());
        assert_eq!(opened.header().launcher.load(Ordering::Relaxed), 42);
        assert_eq!(opened.cpu(3), machine()[3]);
        assert_eq!(opened.cpu(4), CpuInfo::default());
        assert_eq!(opened.state(2), State::Started);
        assert_eq!(opened.bound_cpu(0), None);
        opened.mark_finalized(2);
        assert_eq!(made.state(2), State::Finalized);
    }

    #[test]
    fn rank_counts_out_of_range_are_arguments() {
        for ranks in [0, MAX_RANKS + 1, usize::MAX] {
            let error = Segment::create(ranks, &[], JobFlags::default(), 0).expect_err("refused");
            assert_eq!(error.kind(), ErrorKind::Argument);
            assert!(error.to_string().contains("ranks"), "{error}");
        }
    }

    #[test]
    fn foreign_files_are_refused() {
        let short = memory::create_sealed("typepack-test", 16).expect("memfd");
        let zero = memory::create_sealed("typepack-test", 1 << 16).expect("memfd");
        let plain = OwnedFd::from(std::fs::File::open("/dev/null").expect("null"));
        for fd in [short, zero, plain] {
            let error = Segment::open(fd).expect_err("refused");
            assert_eq!(error.kind(), ErrorKind::NotARank, "{error}");
        }
    }

    #[test]
    fn another_build_is_refused_with_its_version() {
        let made = small();
        made.header().hash.store(1, Ordering::Relaxed);
        made.header().version_text[0]
            .store(u64::from_le_bytes(*b"9.8\x1b[2J\0"), Ordering::Relaxed);
        let fd = made.fd().try_clone_to_owned().expect("dup");
        let error = Segment::open(fd).expect_err("refused");
        assert_eq!(error.kind(), ErrorKind::Mismatch);
        let text = error.to_string();
        assert!(text.contains("typepack 9.8[2J ") && !text.contains('\u{1b}'), "{text}");
    }

    #[test]
    fn counts_that_do_not_fit_the_file_are_refused() {
        let refused = |made: Segment, what: &str| {
            let fd = made.fd().try_clone_to_owned().expect("dup");
            let error = Segment::open(fd).expect_err("refused");
            assert_eq!(error.kind(), ErrorKind::Mismatch, "{what}");
        };
        let many = MAX_RANKS as u32 + 1;
        for (ranks, cpus) in [(0, 4), (many, 4), (u32::MAX, 4), (3, 1 << 16), (3, u32::MAX)] {
            let made = small();
            made.header().ranks.store(ranks, Ordering::Relaxed);
            made.header().cpus.store(cpus, Ordering::Relaxed);
            refused(made, &format!("{ranks} ranks, {cpus} CPUs"));
        }
        let slots = MAX_SLOTS as u32;
        for wrong in [0, 2, 3, slots - 1, slots + 1, u32::MAX] {
            let made = small();
            made.header().slots.store(wrong, Ordering::Relaxed);
            refused(made, &format!("{wrong} slots"));
        }
        let areas = (MAX_SLOTS * MAX_SLOTS) as u64;
        for wrong in [0, areas - 1, areas + 1, u64::MAX] {
            let made = small();
            made.header().areas.store(wrong, Ordering::Relaxed);
            refused(made, &format!("{wrong} areas"));
        }
    }

    #[test]
    fn the_first_failure_is_kept() {
        let made = small();
        assert_eq!((made.fail_epoch(), made.failure()), (0, None));
        let first = Failure { rank: 1, ending: Ending::Killed(9) };
        made.declare_failure(first);
        made.declare_failure(Failure { rank: 2, ending: Ending::Exited(3) });
        assert_eq!((made.fail_epoch(), made.failure()), (2, Some(first)));
    }

    #[test]
    fn a_ring_between_announcement_and_sleep_is_not_lost() {
        let made = small();
        let seen = made.prepare_wait(0);
        made.ring(0);
        let woken = made.wait(0, seen, None).expect("futex");
        assert_eq!(woken, Woken::Changed);
        // Awake: a ring costs nothing and leaves no trace.
        let before = made.slot(0).doorbell.load(Ordering::Relaxed);
        made.ring(0);
        assert_eq!(made.slot(0).doorbell.load(Ordering::Relaxed), before);
    }

    #[test]
    fn no_ring_is_lost_between_two_threads() {
        // The publication is a counter in an area; a lost wake-up would run into the
        // timeout, which is made long enough to be told from success.
        const ROUNDS: u64 = 20_000;
        let made = small();
        let number = made.take_area().expect("room");
        made.reserve_area(number, 0, 8).expect("room");
        let area = made.map_area(number).expect("mapped");
        // SAFETY: the area is reserved, page aligned, and lives as long as `area`.
        let word = unsafe { std::sync::atomic::AtomicU64::from_ptr(area.base().as_ptr().cast()) };
        let started = Instant::now();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for round in 1..=ROUNDS {
                    word.store(round, Ordering::Release);
                    made.ring(1);
                    if round % 64 == 0 {
                        std::thread::yield_now();
                    }
                }
            });
            scope.spawn(|| {
                let mut last = 0;
                while last < ROUNDS {
                    let seen = made.prepare_wait(1);
                    let now = word.load(Ordering::Acquire);
                    if now != last {
                        made.cancel_wait(1);
                        last = now;
                        continue;
                    }
                    let woken = made.wait(1, seen, Some(Duration::from_secs(60))).expect("futex");
                    assert_ne!(woken, Woken::TimedOut, "after {last} in {:?}", started.elapsed());
                }
            });
        });
    }
}
