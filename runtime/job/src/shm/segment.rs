//! The mapped segment of a job. The launcher (or a singleton, a process that no launcher started) makes the
//! segment, and each rank opens it.
//!
//! `layout.rs` defines the layout; this file maps the parts of the segment at the offsets of the layout
//! (`contacts.rs` does so for the mailboxes). `attach.rs` opens the segment
//! in a rank, `heap.rs` manages this rank's heap, and `contacts.rs` finds the areas of pairs. The transports
//! use [`Segment::ring`] and the functions for waiting. The launcher writes the header and its part of the
//! slots (`failure.rs`). `segment/room.rs` maps and allocates the memory that ranks take while the job runs.
//!
//! Invariants: references into shared memory point only to atomics. The layout is computed from five numbers
//! in the header. [`Segment::open`] reads these numbers once, checks them against the sealed size of the
//! file, and keeps them in private memory. [`Segment::reserve_area`] allocates the memory of a range before
//! its first use, so that a lack of memory is an error and not a SIGBUS.
//!
//! This file uses the atomics of `std` even in a loom build, because loom's atomics have no defined
//! layout and cannot live in a mapping. The loom tests of `ring.rs`, `bulk.rs`, `cells.rs`, `doorbell.rs`,
//! `withdrawal.rs`, `recall.rs` and `work_split.rs` check the protocols in ordinary memory instead.

mod room;

use std::num::NonZeroU32;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::budget;
use super::doorbell::{Doorbell, Machine};
use super::layout::{
    FLAG_OVERSUBSCRIBED, FLAG_STDERR_TERMINAL, FLAG_STDOUT_TERMINAL, HASH, Header, Layout, MAGIC,
    MAX_CPUS, MAX_RANKS, RankSlot, Room, State, VERSION, VERSION_TEXT,
};
use super::topology::{CpuEntry, CpuInfo, Level, Parts};
use crate::error::{Error, ErrorKind};
use crate::sys::futex::Woken;
use crate::sys::limits;
use crate::sys::memory::{self, Inherit, Mapping};

pub(super) use self::room::unmapped;

/// Properties of a job that the launcher tells the ranks through the header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JobFlags {
    /// True if the job has more ranks than CPUs; waiting ranks must then not spin.
    pub oversubscribed: bool,
    /// True if the output of rank 0 goes to a terminal.
    pub stdout_terminal: bool,
    /// True if the error output of rank 0 goes to a terminal.
    pub stderr_terminal: bool,
}

/// A mapping of the shared memory of a job.
#[derive(Debug)]
pub struct Segment {
    map: Mapping,
    fd: OwnedFd,
    layout: Layout,
    flags: JobFlags,
    machine: Machine,
}

impl Segment {
    /// Makes the segment of a job of `ranks` ranks on a machine with the given CPUs.
    ///
    /// `launcher` is the process id of `mpiexec`, or 0 for a singleton and if the ranks are no descendants of `mpiexec`. CPUs numbered [`MAX_CPUS`] or higher
    /// get no row in the topology table.
    ///
    /// # Errors
    ///
    /// Returns [`ErrorKind::Argument`] if `ranks` is 0 or above [`MAX_RANKS`], [`ErrorKind::NoMemory`]
    /// if there is not enough memory or address space, or if the system does not allow a file of the
    /// necessary size, and [`ErrorKind::System`] if the kernel refuses for another reason.
    pub fn create(
        ranks: usize,
        cpus: &[CpuInfo],
        flags: JobFlags,
        launcher: u32,
    ) -> Result<Self, Error> {
        let cpus = &cpus[..cpus.len().min(MAX_CPUS)];
        let (memory, file) = (limits::machine_memory(), limits::file_size());
        let layout = Layout::for_job(ranks, cpus.len(), memory, file).ok_or_else(|| {
            Error::new(
                ErrorKind::Argument,
                format!("ranks: {ranks} is out of range; it must be between 1 and {MAX_RANKS}"),
            )
        })?;
        if layout.total() as u64 > file {
            let detail = format!(
                "a job of {ranks} ranks needs a file of {} bytes, but ulimit -f limits files to {file} \
                 bytes",
                layout.total()
            );
            return Err(Error::new(ErrorKind::NoMemory, detail));
        }
        let describe =
            || format!("cannot make {} bytes of shared memory for the job", layout.total());
        let fd = memory::create_sealed("typepack-job", layout.total() as u64)
            .map_err(|error| Error::system(describe(), error))?;
        memory::reserve(fd.as_fd(), 0, layout.common() as u64)
            .map_err(|error| Error::system(describe(), error))?;
        let map = Mapping::shared(fd.as_fd(), 0, layout.mapped(), Inherit::No)
            .map_err(|error| unmapped(describe(), layout.mapped() as u64, error))?;
        let segment = Self { map, fd, layout, flags, machine: Machine::default() };
        let budget = budget::at_start(limits::available_memory());
        segment.header().budget.store(budget, Ordering::Relaxed);
        segment.write_header(cpus, launcher);
        Ok(segment)
    }

    /// Opens a segment that another process made.
    ///
    /// # Errors
    ///
    /// Returns [`ErrorKind::NotARank`] if `fd` is not a segment, [`ErrorKind::Mismatch`] if another build
    /// of typepack made the segment or if the segment does not have the size that its header describes,
    /// [`ErrorKind::NoMemory`] if address space has run out, and [`ErrorKind::System`] if the kernel
    /// refuses for another reason.
    pub fn open(fd: OwnedFd) -> Result<Self, Error> {
        let number = fd.as_raw_fd();
        let foreign = || {
            let detail = format!("the inherited descriptor {number} is not a job's segment");
            Error::new(ErrorKind::NotARank, detail)
        };
        let sealed = memory::sealed_len(fd.as_fd())
            .map_err(|error| Error::system("cannot read the size of the inherited segment", error))?
            .and_then(|len| usize::try_from(len).ok())
            .filter(|&len| len >= size_of::<Header>())
            .ok_or_else(foreign)?;
        let map = |bytes: usize| {
            Mapping::shared(fd.as_fd(), 0, bytes, Inherit::No).map_err(|error| {
                let what = format!("cannot map {bytes} bytes of shared memory");
                unmapped(what, bytes as u64, error)
            })
        };
        let first = map(size_of::<Header>())?;
        // SAFETY: `first` begins at a page and is as long as a header. `Header` consists of atomics, so all
        // bit patterns are valid, and concurrent writes by other processes are no data race.
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
                format!(
                    "the job's shared memory has {sealed} bytes, which is not the size that its header \
                     describes: {ranks} ranks, {slots} slots, {} areas, {cpus} CPUs and heaps of {} bytes",
                    room.areas, room.heap
                ),
            )
        })?;
        let flags = JobFlags {
            oversubscribed: bits & FLAG_OVERSUBSCRIBED != 0,
            stdout_terminal: bits & FLAG_STDOUT_TERMINAL != 0,
            stderr_terminal: bits & FLAG_STDERR_TERMINAL != 0,
        };
        let map = map(layout.mapped())?;
        Ok(Self { map, fd, layout, flags, machine: Machine::default() })
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
        // The casts to u32 are exact, because the layout limits the numbers of ranks, CPUs and slots.
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

    /// Gives the slots from `first` on to a world of `ranks` ranks, which the launcher is about to start: the ranks with
    /// which the job begins, or ranks that join later. Only the launcher calls this function. It keeps the number of the
    /// next free slot itself, because every rank can write to the segment. It never gives the slot of a process that has
    /// joined to another one.
    ///
    /// # Errors
    /// Returns [`ErrorKind::NoMemory`] if the job has too few free slots or memory has run out, and
    /// [`ErrorKind::System`] if the kernel refuses for another reason.
    pub fn add_world(&self, first: usize, ranks: usize) -> Result<Range<usize>, Error> {
        let slots = self.layout.room().slots;
        let free = slots.saturating_sub(first);
        if ranks == 0 || ranks > free {
            let detail = format!(
                "{ranks} more ranks: the job has room for {slots} ranks, and {free} places are free"
            );
            return Err(Error::new(ErrorKind::NoMemory, detail));
        }
        let (start, bytes) = (self.layout.slot(first), ranks * size_of::<RankSlot>());
        memory::reserve(self.fd(), start as u64, bytes as u64).map_err(|error| {
            Error::system(format!("cannot reserve memory for {ranks} more ranks"), error)
        })?;
        let world = first..first + ranks;
        for slot in world.clone() {
            // The casts are exact, because the number of slots is at most 2^12.
            self.slot(slot).world.store(first as u32, Ordering::Relaxed);
            self.slot(slot).world_ranks.store(ranks as u32, Ordering::Release);
        }
        self.header().processes.store(world.end as u32, Ordering::Release);
        Ok(world)
    }

    /// Takes back the slots of the last world, of which no process has been able to join the job. Only the launcher
    /// calls this function.
    pub fn remove_world(&self, world: Range<usize>) {
        for slot in world.clone() {
            let RankSlot { group, program, bound_cpu, part_cpu, part_level, .. } = self.slot(slot);
            let RankSlot { world, world_ranks, world_number, parent, heard, .. } = self.slot(slot);
            let of_world = [world_ranks, world, world_number, parent];
            let of_rank = [heard, group, program, bound_cpu, part_cpu, part_level];
            for word in of_world.into_iter().chain(of_rank) {
                word.store(0, Ordering::Relaxed);
            }
        }
        self.header().processes.store(world.start as u32, Ordering::Release);
    }

    /// Returns the slots of the world of the process in `slot`, or `None` if no launcher has given the slot away.
    ///
    /// # Panics
    ///
    /// Panics if the segment has no such slot.
    pub fn world_of(&self, slot: usize) -> Option<Range<usize>> {
        let words = self.slot(slot);
        let ranks = words.world_ranks.load(Ordering::Acquire) as usize;
        let first = words.world.load(Ordering::Relaxed) as usize;
        let world = first..first.checked_add(ranks)?;
        (world.end <= self.layout.room().slots && world.contains(&slot)).then_some(world)
    }

    /// Returns the slot of the process that has asked for the world of `rank`, or `None` if there is none.
    pub fn parent(&self, rank: usize) -> Option<usize> {
        let parent = self.slot(rank).parent.load(Ordering::Acquire).checked_sub(1)? as usize;
        (parent < self.layout.room().slots).then_some(parent)
    }

    /// Tells the ranks whether the job has more ranks than CPUs now. The ranks that have joined the job before read it
    /// when they wait. Only the launcher calls this function.
    pub fn set_oversubscribed(&self, is_crowded: bool) {
        let flags = &self.header().flags;
        match is_crowded {
            true => flags.fetch_or(FLAG_OVERSUBSCRIBED, Ordering::Relaxed),
            false => flags.fetch_and(!FLAG_OVERSUBSCRIBED, Ordering::Relaxed),
        };
    }

    /// Returns whether the job has more ranks than CPUs now. Unlike [`Segment::flags`], which says how it was when this
    /// process joined the job, this reads the header.
    #[inline]
    pub fn is_oversubscribed(&self) -> bool {
        self.header().flags.load(Ordering::Relaxed) & FLAG_OVERSUBSCRIBED != 0
    }

    /// Returns the number of slots that processes have taken so far. The number is at least that of the ranks with
    /// which the job began, and at most that of all slots.
    pub fn processes(&self) -> usize {
        let processes = self.header().processes.load(Ordering::Acquire) as usize;
        processes.clamp(self.layout.ranks(), self.layout.room().slots)
    }

    /// Returns the number of ranks with which the job began.
    pub fn ranks(&self) -> usize {
        self.layout.ranks()
    }

    /// Returns the launcher's flags. [`Segment::open`] reads them from the header once.
    pub fn flags(&self) -> JobFlags {
        self.flags
    }

    /// Returns the layout, from which the offsets of the segment's parts can be computed.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Returns the descriptor of the segment. The descriptor stays open as long as `self` lives.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Returns a number that no other segment of this machine has at the same time: that of its file.
    pub fn identity(&self) -> u64 {
        memory::file_number(self.fd())
    }

    /// Returns the header.
    pub fn header(&self) -> &Header {
        // SAFETY: the mapping begins at a page and lives as long as `self`. It is longer than a header:
        // `open` has checked this, and in `create` the layout ensures it. `Header` consists of atomics, so
        // all bit patterns are valid, and concurrent writes by other processes are no data race.
        unsafe { self.map.base().cast::<Header>().as_ref() }
    }

    /// Returns the slot of `rank`.
    ///
    /// # Panics
    ///
    /// Panics if the segment has no slot `rank`.
    pub fn slot(&self, rank: usize) -> &RankSlot {
        let at = self.layout.slot(rank);
        // SAFETY: all slots of the layout lie within the mapping, and the mapping lives as long as `self`.
        // The mapping begins at a page and `at` is a multiple of 128, as `RankSlot` requires. `RankSlot`
        // consists of atomics.
        unsafe { self.map.base().byte_add(at).cast::<RankSlot>().as_ref() }
    }

    fn cpu_entry(&self, cpu: usize) -> &CpuEntry {
        let at = self.layout.cpu(cpu);
        // SAFETY: all rows of the layout lie within the mapping, and the mapping lives as long as `self`. The
        // mapping begins at a page and `at` is a multiple of 32. `CpuEntry` consists of atomics.
        unsafe { self.map.base().byte_add(at).cast::<CpuEntry>().as_ref() }
    }

    /// Returns what the topology table says about the CPU that the operating system numbers `cpu`. If the
    /// table has no row for that CPU, all indices of the result are unknown, and `allowed` is false.
    pub fn cpu(&self, cpu: usize) -> CpuInfo {
        if cpu < self.layout.cpus() { self.cpu_entry(cpu).load() } else { CpuInfo::default() }
    }

    /// Returns the parts of the machine that contain all CPUs of the job.
    pub fn common_parts(&self) -> Parts {
        let cpus = self.allowed_cpus().map(|(number, cpu)| Parts::of(number, cpu));
        cpus.reduce(Parts::and).unwrap_or_default()
    }

    /// Returns the parts of the machine that contain all CPUs on which `rank` may run, or `None` if `rank` is not
    /// bound. A rank that is not bound may run on all CPUs of the job.
    pub fn bound_parts(&self, rank: usize) -> Option<Parts> {
        let slot = self.slot(rank);
        let first = slot.part_cpu.load(Ordering::Relaxed).checked_sub(1)? as usize;
        let level = Level::from_word(slot.part_level.load(Ordering::Relaxed))?;
        let own = self.cpu(first);
        let part = own.part(level);
        // A CPU whose core is unknown counts as a core of its own.
        let is_alone = level == Level::Thread || level == Level::Core && part.is_none();
        let cpus = self.allowed_cpus().filter(|(_, cpu)| !is_alone && cpu.part(level) == part);
        let cpus = cpus.map(|(number, cpu)| Parts::of(number, cpu));
        Some(cpus.fold(Parts::of(first, own), Parts::and))
    }

    /// Returns the numbers of the CPUs of the job, and what the topology table says about them.
    fn allowed_cpus(&self) -> impl Iterator<Item = (usize, CpuInfo)> {
        let cpus = (0..self.layout.cpus()).map(|number| (number, self.cpu(number)));
        cpus.filter(|(_, cpu)| cpu.allowed)
    }

    /// Returns the process id of the launcher, of which all ranks are descendants, or `None` if there is no such launcher.
    pub fn launcher(&self) -> Option<NonZeroU32> {
        NonZeroU32::new(self.header().launcher.load(Ordering::Relaxed))
    }

    /// Returns the first CPU of the core or hardware thread to which `rank` is bound. Returns `None` if
    /// `rank` is not bound, or is bound to a part of the machine that is larger than a core.
    pub fn bound_cpu(&self, rank: usize) -> Option<usize> {
        let word = self.slot(rank).bound_cpu.load(Ordering::Relaxed);
        word.checked_sub(1).map(|cpu| cpu as usize)
    }

    /// Returns the number of the program that `rank` runs, counted from 0. Returns `None` if no launcher has
    /// started the rank.
    pub fn program(&self, rank: usize) -> Option<u32> {
        self.slot(rank).program.load(Ordering::Relaxed).checked_sub(1)
    }

    /// Returns the state of `rank`.
    pub fn state(&self, rank: usize) -> State {
        State::from_word(self.slot(rank).state.load(Ordering::Acquire))
    }

    /// Returns the word `connects` of `rank` (the caller's rank) if it differs from `seen`, and `None`
    /// otherwise. The word changes when another process begins to write to `rank`.
    #[inline]
    pub fn connected(&self, rank: usize, seen: u32) -> Option<u32> {
        let connects = self.slot(rank).connects.load(Ordering::Acquire);
        (connects != seen).then_some(connects)
    }

    /// Returns an exclusive upper bound on the slot numbers of the processes that have begun to write to
    /// `rank` (the caller's rank). The bound is at most the number of slots.
    pub fn writers(&self, rank: usize) -> usize {
        let writers = self.slot(rank).writers.load(Ordering::Acquire) as usize;
        writers.min(self.layout.room().slots)
    }

    fn doorbell(&self, rank: usize) -> Doorbell<'_, Machine> {
        let slot = self.slot(rank);
        let RankSlot { doorbell: word, sleeping, pays, .. } = slot;
        Doorbell { word, sleeping, pays, kernel: &self.machine }
    }

    /// Asks the kernel to include this process in the barriers of other ranks. Afterwards [`Segment::ring`] needs
    /// no fence for the ranks that have called [`Segment::pay`]. Returns false if the kernel refuses.
    pub fn register_barrier(&self) -> bool {
        self.machine.register()
    }

    /// Makes `rank` (the caller's rank) execute a barrier in all other ranks before it sleeps, so that they need
    /// no fence in [`Segment::ring`]. Only a rank that seldom sleeps should call this function, because each
    /// barrier takes some microseconds. [`Segment::register_barrier`] must have returned true.
    pub fn pay(&self, rank: usize) {
        self.slot(rank).pays.store(1, Ordering::Release);
    }

    /// Wakes `rank` if it sleeps. The caller must publish its data (by a release store) before it calls
    /// this function. If the rank is awake, the function costs two loads, and a fence unless the rank
    /// executes barriers ([`Segment::pay`]).
    #[inline]
    pub fn ring(&self, rank: usize) {
        self.doorbell(rank).ring();
    }

    /// Wakes `rank` without first checking whether it sleeps.
    pub fn call(&self, rank: usize) {
        self.doorbell(rank).call();
    }

    /// Announces that `rank` (the caller's rank) is about to sleep. Returns the value to pass to
    /// [`Segment::wait`]. Before it calls `wait`, the rank must check once more for every event that could
    /// wake it, including a change of [`Segment::failures`]. If the rank finds such an event, it calls
    /// [`Segment::cancel_wait`] instead of `wait`.
    pub fn prepare_wait(&self, rank: usize) -> u32 {
        self.doorbell(rank).prepare()
    }

    /// Cancels the announcement that [`Segment::prepare_wait`] made.
    pub fn cancel_wait(&self, rank: usize) {
        self.doorbell(rank).cancel();
    }

    /// Sleeps until a process wakes `rank` or `timeout` has passed. Returns at once if the doorbell's word
    /// differs from `seen`. The function may also return early without a reason. So the caller must check
    /// for its events again, and prepare another wait if necessary.
    ///
    /// # Errors
    ///
    /// Returns [`ErrorKind::System`] if the kernel refuses the sleep, for example because it has no futexes.
    pub fn wait(&self, rank: usize, seen: u32, timeout: Option<Duration>) -> Result<Woken, Error> {
        self.doorbell(rank)
            .wait(seen, timeout)
            .map_err(|error| Error::system("cannot wait on the doorbell", error))
    }

    /// Records that a rank asks to end the whole job, also if the other ranks would go on after the death of a rank.
    pub fn mark_aborting(&self) {
        self.header().aborting.store(1, Ordering::Release);
    }

    /// Returns whether a rank has asked to end the whole job.
    pub fn is_aborting(&self) -> bool {
        self.header().aborting.load(Ordering::Acquire) != 0
    }

    /// Records that `rank` (the caller's rank) has left the job properly. If its process exits with code 0
    /// afterwards, the launcher does not count that as a failure.
    pub fn mark_finalized(&self, rank: usize) {
        // The launcher may have declared the rank dead, and that state must stay.
        let finalized = |state| (state != State::Dead as u32).then_some(State::Finalized as u32);
        let state = &self.slot(rank).state;
        let _dead = state.fetch_update(Ordering::AcqRel, Ordering::Acquire, finalized);
    }

    /// Records whether `rank` (the caller's rank) leaves the job and has sent everything that it has to send. Returns
    /// whether it was recorded otherwise before. If it was not, writes nothing, so a rank that waits may call this often.
    pub fn mark_leaving(&self, rank: usize, leaving: bool) -> bool {
        let (word, leaving) = (&self.slot(rank).leaving, u32::from(leaving));
        word.load(Ordering::Acquire) != leaving && word.swap(leaving, Ordering::AcqRel) != leaving
    }

    /// Returns whether `rank` leaves the job and has sent everything that it has to send.
    pub fn is_leaving(&self, rank: usize) -> bool {
        self.slot(rank).leaving.load(Ordering::Acquire) == 1
    }

    /// Records that `rank` (the caller's rank) takes part in the job again, after it has left the job properly.
    pub fn mark_returned(&self, rank: usize) {
        // The launcher may have declared the rank dead, and that state must stay.
        let _dead = self.slot(rank).state.compare_exchange(
            State::Finalized as u32,
            State::Registered as u32,
            Ordering::AcqRel,
            Ordering::Acquire,
        );
    }
}

/// Returns the error for a segment that another build made. The function reads only the header fields that
/// have the same offsets in every version of the layout.
fn mismatch(header: &Header) -> Error {
    let mut text = String::new();
    for word in &header.version_text {
        for byte in word.load(Ordering::Relaxed).to_le_bytes() {
            // Keep only printable characters, because the bytes are untrusted and the text may be shown on a
            // terminal.
            if byte.is_ascii_graphic() {
                text.push(char::from(byte));
            }
        }
    }
    Error::new(
        ErrorKind::Mismatch,
        format!(
            "mpiexec is typepack {text} (layout {:016x}); this program was built with typepack {} \
             (layout {HASH:016x}); use the mpiexec of the same build (typepack doctor says which ones are used)",
            header.hash.load(Ordering::Relaxed),
            env!("CARGO_PKG_VERSION"),
        ),
    )
}

/// Returns a reference to an atomic `u64` at the address `at` in an area.
///
/// # Safety
///
/// - `at` is a multiple of 8 and points into an area of a [`Segment`].
/// - The area stays mapped for `'a`.
pub unsafe fn atomic_u64<'a>(at: *mut u8) -> &'a AtomicU64 {
    // SAFETY: the caller guarantees that `at` is a multiple of 8 in an area that stays mapped for `'a` (both
    // conditions of `# Safety`). Any bits are a valid `u64`, and processes access areas only by atomics or raw
    // copies.
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
        opened.mark_returned(2);
        assert_eq!(made.state(2), State::Registered);
        made.slot(2).state.store(State::Dead as u32, Ordering::Release);
        opened.mark_returned(2);
        assert_eq!((made.state(2), made.program(2)), (State::Dead, None));
    }

    #[test]
    fn worlds_take_free_slots_in_turn() {
        let made = small();
        assert_eq!((made.processes(), made.world_of(0)), (3, None));
        assert_eq!(made.add_world(0, 3).expect("room"), 0..3);
        assert_eq!(made.add_world(3, 7).expect("room"), 3..10);
        made.slot(4).bind(1, Level::Core);
        made.slot(4).world_number.store(2, Ordering::Relaxed);
        assert_eq!(made.name_of(4), "rank 1 of world 2");
        made.remove_world(3..10);
        assert_eq!((made.name_of(1), made.name_of(4)), ("rank 1".into(), "rank 4".into()));
        assert!(made.name_of(usize::MAX).contains("which the job does not have"));
        assert_eq!((made.processes(), made.world_of(4), made.bound_cpu(4)), (3, None, None));
        assert_eq!(made.add_world(3, 2).expect("room"), 3..5);
        assert_eq!(
            (made.processes(), made.world_of(1), made.world_of(4)),
            (5, Some(0..3), Some(3..5))
        );
        assert_eq!(made.world_of(5), None);
        for wrong in [0, MAX_SLOTS - 4, usize::MAX] {
            let error = made.add_world(5, wrong).expect_err("no room");
            assert_eq!((error.kind(), made.processes()), (ErrorKind::NoMemory, 5), "{error}");
        }
        assert_eq!(made.add_world(5, MAX_SLOTS - 5).expect("room").end, MAX_SLOTS);
        assert!(made.add_world(MAX_SLOTS, 1).is_err());
        // Words that no launcher would write.
        for (first, ranks) in [(5, 2), (4, 0), (2, 2), (u32::MAX, 7), (0, u32::MAX)] {
            made.slot(4).world.store(first, Ordering::Relaxed);
            made.slot(4).world_ranks.store(ranks, Ordering::Relaxed);
            assert_eq!(made.world_of(4), None, "{first} {ranks}");
        }
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
    fn a_ring_between_announcement_and_sleep_is_not_lost() {
        let made = small();
        let seen = made.prepare_wait(0);
        made.ring(0);
        let woken = made.wait(0, seen, None).expect("futex");
        assert_eq!(woken, Woken::Changed);
        // The rank is awake, so `ring` must not change the doorbell's word.
        let before = made.slot(0).doorbell.load(Ordering::Relaxed);
        made.ring(0);
        assert_eq!(made.slot(0).doorbell.load(Ordering::Relaxed), before);
    }

    #[test]
    fn no_ring_is_lost_between_two_threads() {
        // The published data is a counter in an area. If a wake-up were lost, the sleeper would wait until
        // its timeout, which is much longer than a normal wait. The test checks that no wait times out.
        const ROUNDS: u64 = 20_000;
        let made = small();
        let number = made.take_area().expect("room");
        made.reserve_area(number, 0, 8).expect("room");
        let area = made.map_area(number, 4096).expect("mapped");
        // SAFETY: the first page of the area has memory, is aligned, and stays mapped as long as `area`
        // lives.
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
