//! The layout of a job's segment: which parts the segment has, and at which offsets they begin.
//!
//! `segment.rs` maps the segment; `attach.rs` and the launcher access the segment through `segment.rs`. The
//! layout is computed from the numbers of ranks, slots, areas and CPUs and from the size of a heap. Every
//! process computes the offsets itself and never reads an offset from shared memory. In the list below, a
//! hole is a part of the file that has no memory yet.
//!
//! ```text
//!        0  Header            magic, hash, version | sizes, flags, launcher | areas taken
//!     4096  CpuEntry[cpus]    32 B each, by the operating system's CPU number
//!        .  RankSlot[slots]   384 B each: doorbell and failures, record, what the rank waits for
//!        .  (to the next page)
//! mailboxes mailbox 0  mailbox 1 ...  one per slot: numbers of the areas in which others write to the slot
//!    areas  area 0  area 1 ...   of one size, page aligned, taken at first contact, all holes
//!    pools  pool 0  pool 1 ...   one per slot: the chunks that the slot lends to its pairs, all holes
//!        .  (to the next huge page)
//!    heaps  heap 0  heap 1 ...   one per slot, each of the same number of huge pages, all holes
//! ```
//!
//! Invariants: a segment of zeros is valid, and is the initial state. All words are atomics. Words that
//! different processes write often are in different cache lines. Every change of the layout must change
//! [`HASH`], if necessary through [`VERSION`]. A rank compares the launcher's hash with its own, and so
//! detects that the launcher comes from another build.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::pair::{self, MAX_RANKS as PAIR_MAX_RANKS, PAIR_BYTES};
use super::topology::{CpuEntry, Level};
use super::waiting::Waiting;

/// The first word of a segment: `"typepack"` in ASCII, with the first character in the lowest byte.
pub const MAGIC: u64 = u64::from_le_bytes(*b"typepack");

/// Version of this layout. Raise the version if a word keeps its place but changes its meaning; [`HASH`] does
/// not detect such a change by itself.
pub const VERSION: u32 = 15;

/// Maximum number of ranks of one job.
pub const MAX_RANKS: usize = PAIR_MAX_RANKS;

/// Maximum number of slots of a job. Each slot is for one process: a rank from the start, or a process that
/// joins later. A job has fewer slots if the system limits the size of files.
pub const MAX_SLOTS: usize = MAX_RANKS;
const _: () = assert!(MAX_SLOTS == crate::service::MOST_PROCESSES);

/// Maximum number of CPUs in the topology table. The ranks know nothing about CPUs with this number or a
/// higher one.
pub const MAX_CPUS: usize = 1 << 16;

/// Size of a page in bytes. The offset and the size of an area are multiples of it.
pub const PAGE: usize = 4096;

/// Size in bytes of a huge page on most machines. The offset and the size of a heap are multiples of it.
pub const HUGE_PAGE: usize = 2 << 20;

/// Maximum total size in bytes of the heaps of the ranks with which a job begins. This is an eighth of a
/// process's address space on x86-64, so that each of these ranks can map the heaps of all of them.
pub const HEAPS_MAX: usize = 1 << 44;

/// Number of bytes in the header for the text of the package version.
pub const VERSION_TEXT: usize = 24;

/// The header of the segment, at offset 0. The segment reserves a whole page for it.
///
/// The fields up to `version_text` have the same offsets in every version of the layout, so that a program
/// from another build can read them and report the mismatch.
#[repr(C)]
#[derive(Debug)]
pub struct Header {
    /// [`MAGIC`]. The launcher stores this word last, with release ordering.
    pub magic: AtomicU64,
    /// [`HASH`] of the launcher.
    pub hash: AtomicU64,
    /// [`VERSION`] of the launcher.
    pub version: AtomicU32,
    /// Unused, 0.
    pub reserved: AtomicU32,
    /// Version of the launcher's package, in ASCII, padded with zeros; eight characters per word.
    pub version_text: [AtomicU64; VERSION_TEXT / 8],
    /// Number of ranks with which the job began.
    pub ranks: AtomicU32,
    /// Number of rows of the CPU table.
    pub cpus: AtomicU32,
    /// `FLAG_*` bits.
    pub flags: AtomicU32,
    /// Process id of the launcher, of which all ranks are descendants; 0 if they are not, and in a singleton, a job of one
    /// process that no launcher started.
    pub launcher: AtomicU32,
    /// Size of the heap of one slot in bytes; a multiple of [`HUGE_PAGE`].
    pub heap: AtomicU64,
    /// Number of areas for which the segment has room.
    pub areas: AtomicU64,
    /// Number of slots. Each process of the job needs one slot, and the ranks at the start have the first
    /// slots.
    pub slots: AtomicU32,
    /// 1 once a rank has asked to end the whole job (`MPI_Abort`).
    pub aborting: AtomicU32,
    /// Number of slots that processes have taken so far: the ranks, and the processes that have joined later. Written
    /// by the launcher.
    pub processes: AtomicU32,
    /// Fills the header up to byte 128, so that the words below, which change often, do not share a
    /// cache line with the words above.
    pub spare: [AtomicU32; 9],
    /// Number of areas taken so far. A process adds one before it writes to another process for the first
    /// time.
    pub areas_taken: AtomicU64,
    /// Number of bytes that the processes of the job have reserved for rings and chunks (`budget.rs`).
    pub taken: AtomicU64,
    /// Value of `taken` up to which no process has to look how much memory is left.
    pub checked: AtomicU64,
    /// Maximum value of `taken`. Written by the launcher.
    pub budget: AtomicU64,
    /// Number of bytes that the heaps have promised to the programs (`budget.rs`).
    pub promised: AtomicU64,
    /// Number of bytes that heaps may promise before a process has to look how much memory is left.
    pub credit: AtomicU64,
}

/// Flag: the job has more ranks than CPUs, so waiting ranks should not spin.
pub const FLAG_OVERSUBSCRIBED: u32 = 1;
/// Flag: the launcher's standard output is a terminal. The output of rank 0 goes there.
pub const FLAG_STDOUT_TERMINAL: u32 = 2;
/// Flag: the launcher's standard error is a terminal.
pub const FLAG_STDERR_TERMINAL: u32 = 4;

/// The slot of one rank: two cache lines and a record. Any process may write the first line. The rank and the launcher
/// write the second line; a process that contacts the rank changes no words there except `connects` and
/// `writers`. Only the rank writes the record.
#[repr(C, align(128))]
#[derive(Debug)]
pub struct RankSlot {
    /// Futex word of the doorbell. Every call that wakes this rank changes the word.
    pub doorbell: AtomicU32,
    /// 1 while the rank sleeps or is about to sleep.
    pub sleeping: AtomicU32,
    /// 1 if this rank executes a barrier in all other ranks before it sleeps, so that they need no fence before
    /// they read `sleeping`. Written by the rank.
    pub pays: AtomicU32,
    /// Number of failures of which the launcher has told this rank: failures of processes that share a communicator
    /// with it. Written by the launcher.
    pub failures: AtomicU32,
    /// Slot of the process that failed first among these, plus 1; 0 while `failures` is 0. Written by the launcher.
    pub first_failure: AtomicU32,
    /// How this rank failed: `0x100 | code` if it exited, `0x200 | signal` if a signal killed it, `0x300` if it
    /// ended without finalizing, `0x400` if it ended without joining the job; 0 if it has not failed. Written by the
    /// launcher.
    pub ending: AtomicU32,
    /// Number of messages that the launcher has read from this rank's control socket. Written by the launcher.
    pub heard: AtomicU32,
    /// Slot of the process that has asked for this rank's world (`MPI_Comm_spawn`), plus 1; 0 if the ranks are those of
    /// the command line. Written by the launcher.
    pub parent: AtomicU32,
    /// 1 while this rank leaves the job, has sent everything that it has to send, and waits only for messages that
    /// others may still send to it. Written by the rank.
    pub leaving: AtomicU32,
    /// Number of this rank's world in the order in which the worlds have started; that of the command line has the number
    /// 0. Messages name it. Written by the launcher.
    pub world_number: AtomicU32,
    /// Fills the cache line.
    pub spare: [AtomicU32; 6],
    /// Process id of the rank as the launcher sees it; 0 until the rank has registered. Written by the
    /// launcher.
    pub pid: AtomicU32,
    /// Number of the process group that the launcher made for this rank. Written by the launcher.
    pub group: AtomicU32,
    /// The rank's [`State`] as a number. Written by the rank; the launcher writes only [`State::Dead`].
    pub state: AtomicU32,
    /// 1 once the launcher watches the registered process. Written by the launcher.
    pub watched: AtomicU32,
    /// Number of the first CPU to which this rank is bound, plus 1; 0 if the rank is not bound, or is bound
    /// to a part of the machine that is larger than a core. Written by the launcher.
    pub bound_cpu: AtomicU32,
    /// Address of the rank's test number, low half first; 0 if other ranks must not access the rank's private
    /// memory. The test number lies in that memory. Another rank tries to read it, to find out whether it can
    /// access the memory. Written by the rank.
    pub probe_at: [AtomicU32; 2],
    /// The value of the test number at the address `probe_at`, low half first. Written by the rank.
    pub probe: [AtomicU32; 2],
    /// Number of first contacts with this rank. A process that begins to write to this rank adds 1.
    pub connects: AtomicU32,
    /// 1 more than the highest slot number of a process that has begun to write to this rank; 0 if there is
    /// none. Each such process raises this word if necessary, before it changes `connects`.
    pub writers: AtomicU32,
    /// Number of the program that this rank runs, plus 1; 0 in a singleton. Written by the launcher.
    pub program: AtomicU32,
    /// Number of a CPU of the part of the machine to which this rank is bound, plus 1; 0 if the rank is not bound.
    /// Written by the launcher.
    pub part_cpu: AtomicU32,
    /// The [`Level`] of this part as a number; 0 if the rank is not bound. Written by the launcher.
    pub part_level: AtomicU32,
    /// Slot of the first rank of this rank's world: of the ranks that the launcher has started together. Written by the
    /// launcher.
    pub world: AtomicU32,
    /// Number of ranks of this rank's world; 0 if the slot is free. Written by the launcher.
    pub world_ranks: AtomicU32,
    /// What the rank waits for.
    pub waiting: Waiting,
}

impl RankSlot {
    /// Records that the rank is bound to the part at `level` that contains the CPU with the number `cpu`. `cpu` is less
    /// than [`MAX_CPUS`]. If the part is a core, `cpu` is its first CPU. The launcher calls this function before the
    /// rank registers.
    pub fn bind(&self, cpu: usize, level: Level) {
        let number = cpu as u32 + 1;
        // Within a larger part the rank may move between cores.
        if level <= Level::Core {
            self.bound_cpu.store(number, Ordering::Relaxed);
        }
        self.part_cpu.store(number, Ordering::Relaxed);
        self.part_level.store(level as u32, Ordering::Relaxed);
    }
}

/// The state of a rank. Shared memory stores the state as a number; see [`State::from_word`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
pub enum State {
    /// No process has joined the job as this rank yet. mpiexec has started the rank's process, or a wrapper
    /// such as a shell that will start it, or is about to do so.
    Started = 0,
    /// A process has joined the job as this rank.
    Registered = 1,
    /// The rank has left the job properly, by finalizing MPI.
    Finalized = 2,
    /// The rank's process has ended.
    Dead = 3,
}

impl State {
    /// Returns the state that `word` encodes. A word that encodes no state counts as [`State::Dead`].
    pub fn from_word(word: u32) -> Self {
        match word {
            0 => Self::Started,
            1 => Self::Registered,
            2 => Self::Finalized,
            _ => Self::Dead,
        }
    }
}

const _: () = {
    use std::mem::offset_of;
    assert!(offset_of!(Header, magic) == 0);
    assert!(offset_of!(Header, hash) == 8);
    assert!(offset_of!(Header, version) == 16);
    assert!(offset_of!(Header, version_text) == 24);
    assert!(offset_of!(Header, ranks) == 48);
    assert!(offset_of!(Header, launcher) == 60);
    assert!(offset_of!(Header, heap) == 64);
    assert!(offset_of!(Header, areas_taken) == 128);
    assert!(size_of::<Header>() <= PAGE);
    assert!(size_of::<RankSlot>() == 384);
    assert!(offset_of!(RankSlot, waiting) == 128);
    assert!(offset_of!(RankSlot, doorbell) == 0);
    assert!(offset_of!(RankSlot, pid) == 64);
    assert!(offset_of!(RankSlot, bound_cpu) == 80);
    assert!(PAIR_BYTES > 0 && PAIR_BYTES.is_multiple_of(PAGE));
};

/// Hash over the layout and the build. Two processes with equal hashes agree on every offset.
pub const HASH: u64 = {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let words = [
        VERSION as u64,
        size_of::<Header>() as u64,
        size_of::<RankSlot>() as u64,
        size_of::<CpuEntry>() as u64,
        PAIR_BYTES as u64,
        super::pair::LARGEST_PAIR_BYTES as u64,
        super::pair::first_level(2) as u64,
        super::pair::first_level(3) as u64,
        super::pair::first_level(4) as u64,
        super::pair::first_level(5) as u64,
        MAX_SLOTS as u64,
        super::pair::POOL_BYTES as u64,
        super::pair::pool(MAX_RANKS / 16) as u64,
        super::pair::first_level(16) as u64,
        super::pair::SLOTS as u64,
        super::pair::SLOTS_AT as u64,
        super::pair::PAYLOAD_AT as u64,
        super::pair::CHUNKS as u64,
        super::pair::CHUNK_BYTES as u64,
        super::pair::STAMPS_AT as u64,
        super::pair::Geometry::of(MAX_RANKS).to_word(),
        super::pair::GEOMETRY as u64,
        super::pair::READING as u64,
        super::pair::WITHDRAWN as u64,
        super::pair::HEAP_CLAIMS as u64,
        super::pair::HEAP_PUSHED as u64,
        super::pair::CREDIT as u64,
        super::pair::RECALLS_AT as u64,
        size_of::<usize>() as u64,
    ];
    let mut i = 0;
    while i < words.len() {
        hash = (hash ^ words[i]).wrapping_mul(0x0000_0100_0000_01b3);
        i += 1;
    }
    let text = env!("CARGO_PKG_VERSION").as_bytes();
    let mut i = 0;
    while i < text.len() {
        hash = (hash ^ text[i] as u64).wrapping_mul(0x0000_0100_0000_01b3);
        i += 1;
    }
    hash
};

/// The offsets of the parts of a segment. They are computed from the numbers of slots, areas and CPUs and from the
/// sizes of an area and of a heap. An area has room for every pair, unless all slots belong to the ranks: then it has
/// room for the pairs of a job of so many processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    ranks: usize,
    room: Room,
    slots: usize,
    mailboxes: usize,
    areas: usize,
    pools: usize,
    heaps: usize,
    total: usize,
}

/// How many objects of each kind a segment has room for, and the size of a heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Number of slots, and therefore the maximum number of processes.
    pub slots: usize,
    /// Number of areas: one for each ordered pair of slots.
    pub areas: usize,
    /// Number of rows of the CPU table.
    pub cpus: usize,
    /// Size of the heap of each slot in bytes.
    pub heap: usize,
}

impl Layout {
    /// Computes the layout for a job that begins with `ranks` ranks. Returns `None` if one of the numbers is
    /// not allowed or the segment would not fit in the address space.
    pub fn new(ranks: usize, room: Room) -> Option<Self> {
        let Room { slots, areas, cpus, heap } = room;
        let fits = (1..=MAX_SLOTS).contains(&slots) && (1..=slots).contains(&ranks);
        if !fits || areas != slots * slots || cpus > MAX_CPUS {
            return None;
        }
        if !heap.is_multiple_of(HUGE_PAGE) || heap.checked_mul(ranks)? > HEAPS_MAX {
            return None;
        }
        let first = PAGE + cpus * size_of::<CpuEntry>();
        let first = first.next_multiple_of(align_of::<RankSlot>());
        let mailboxes = (first + slots * size_of::<RankSlot>()).next_multiple_of(PAGE);
        let at = mailboxes + slots * mailbox_bytes(slots);
        let pools = at.checked_add(areas.checked_mul(area_bytes(ranks, slots))?)?;
        let mapped = pools.checked_add(slots.checked_mul(pair::POOL_BYTES)?)?;
        let heaps = mapped.checked_next_multiple_of(HUGE_PAGE)?;
        let all = heap.checked_mul(slots)?;
        let total = if all == 0 { mapped } else { heaps.checked_add(all)? };
        isize::try_from(total).ok()?;
        Some(Self { ranks, room, slots: first, mailboxes, areas: at, pools, heaps, total })
    }

    /// Computes the layout for a job of `ranks` ranks on a machine with `cpus` CPUs and `memory` bytes of
    /// memory. `file` is the maximum size of a file in bytes. Returns `None` if `ranks` is 0 or above
    /// [`MAX_RANKS`], or if `cpus` is above [`MAX_CPUS`].
    ///
    /// Holes in the file cost nothing. So the layout has slots for as many processes as a job can ever have,
    /// areas for all pairs of these processes, and heaps as large as the machine's memory. The heaps of the
    /// ranks at the start together have at most [`HEAPS_MAX`] bytes.
    ///
    /// If such a layout is larger than `file`, the result has slots only for the ranks at the start and areas
    /// only for pairs of these ranks, and the heaps of these ranks share the rest of the file. If not even
    /// the areas fit in the file, the result is larger than `file`, and creating the segment fails.
    pub fn for_job(ranks: usize, cpus: usize, memory: u64, file: u64) -> Option<Self> {
        if ranks == 0 || ranks > MAX_RANKS {
            return None;
        }
        let wanted = memory.checked_next_multiple_of(HUGE_PAGE as u64).unwrap_or(u64::MAX);
        let whole =
            |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX) / HUGE_PAGE * HUGE_PAGE;
        let heap = whole(wanted.min((HEAPS_MAX / ranks) as u64));
        let all = Room { slots: MAX_SLOTS, areas: MAX_SLOTS * MAX_SLOTS, cpus, heap };
        let most = Self::new(ranks, all).filter(|layout| layout.total as u64 <= file);
        if most.is_some() {
            return most;
        }
        // The job needs an area for every pair, because with fewer areas some ranks could not contact each
        // other later.
        let (slots, areas) = (ranks, ranks * ranks);
        let rest = Self::new(ranks, Room { slots, areas, heap: 0, ..all })?;
        let left = file.saturating_sub(rest.heaps as u64) / ranks as u64;
        Self::new(ranks, Room { heap: heap.min(whole(left)), ..rest.room })
    }

    /// Returns the number of ranks with which the job begins.
    pub fn ranks(&self) -> usize {
        self.ranks
    }

    /// Returns how many objects of each kind the segment has room for, and the size of a heap.
    pub fn room(&self) -> Room {
        self.room
    }

    /// Returns the number of rows of the CPU table.
    pub fn cpus(&self) -> usize {
        self.room.cpus
    }

    /// Returns the size of the whole segment in bytes.
    pub fn total(&self) -> usize {
        self.total
    }

    /// Returns the number of bytes before the mailboxes. Every process maps these bytes at the start.
    pub fn mapped(&self) -> usize {
        self.mailboxes
    }

    /// Returns the size of the heap of one slot in bytes.
    pub fn heap(&self) -> usize {
        self.room.heap
    }

    /// Returns the offset of the heap of `slot`. The heap has [`Layout::heap`] bytes.
    ///
    /// # Panics
    ///
    /// Panics if there is no such slot.
    pub fn heap_of(&self, slot: usize) -> usize {
        self.check(slot);
        self.heaps + slot * self.room.heap
    }

    /// Returns the offset at which the slot of the last rank ends. All processes use the bytes of the segment
    /// below this offset.
    pub fn common(&self) -> usize {
        self.slots + self.ranks * size_of::<RankSlot>()
    }

    /// Returns the offset of a slot.
    ///
    /// # Panics
    ///
    /// Panics if there is no such slot.
    pub fn slot(&self, slot: usize) -> usize {
        self.check(slot);
        self.slots + slot * size_of::<RankSlot>()
    }

    /// Returns the offset of the row of `cpu` in the topology table.
    ///
    /// # Panics
    ///
    /// Panics if there is no such row.
    pub fn cpu(&self, cpu: usize) -> usize {
        assert!(cpu < self.room.cpus, "cpu {cpu} is not below {}", self.room.cpus);
        PAGE + cpu * size_of::<CpuEntry>()
    }

    /// Returns the offset of the mailbox of `slot`. The mailbox has [`Layout::mailbox_bytes`] bytes, which
    /// hold one 32-bit word per slot of the job. The word for a slot `s` is 0 at first, and later 1 plus the
    /// number of the area in which the process in slot `s` writes to the process in `slot`.
    ///
    /// # Panics
    ///
    /// Panics if there is no such slot.
    pub fn mailbox(&self, slot: usize) -> usize {
        self.check(slot);
        self.mailboxes + slot * self.mailbox_bytes()
    }

    /// Returns the size of a mailbox in bytes. A mailbox takes up whole pages.
    pub fn mailbox_bytes(&self) -> usize {
        mailbox_bytes(self.room.slots)
    }

    /// Returns the offset of area `number`, or `None` if there is no such area.
    pub fn area(&self, number: usize) -> Option<usize> {
        (number < self.room.areas).then(|| self.areas + number * self.area_bytes())
    }

    /// Returns the size of an area in bytes.
    pub fn area_bytes(&self) -> usize {
        area_bytes(self.ranks, self.room.slots)
    }

    /// Returns the offset of the pool of `slot`. The pool has [`pair::POOL_BYTES`] bytes.
    ///
    /// # Panics
    ///
    /// Panics if there is no such slot.
    pub fn pool(&self, slot: usize) -> usize {
        self.check(slot);
        self.pools + slot * pair::POOL_BYTES
    }

    fn check(&self, slot: usize) {
        assert!(slot < self.room.slots, "slot {slot} is not below {}", self.room.slots);
    }
}

const fn mailbox_bytes(slots: usize) -> usize {
    (slots * size_of::<AtomicU32>()).next_multiple_of(PAGE)
}

const fn area_bytes(ranks: usize, slots: usize) -> usize {
    if slots > ranks { pair::LARGEST_PAIR_BYTES } else { pair::Geometry::of(ranks).bytes() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNLIMITED: u64 = u64::MAX;

    fn room(slots: usize, cpus: usize) -> Room {
        Room { slots, areas: slots * slots, cpus, heap: 2 * HUGE_PAGE }
    }

    #[test]
    fn parts_follow_each_other_without_overlap() {
        for slots in [1, 2, 3, 17, 256, MAX_SLOTS] {
            for cpus in [0, 1, 2, 127, 128, 1024] {
                let layout = Layout::new(1, room(slots, cpus)).expect("in range");
                let mut end = size_of::<Header>();
                if cpus > 0 {
                    assert!(layout.cpu(0) >= end);
                    end = layout.cpu(cpus - 1) + size_of::<CpuEntry>();
                }
                assert!(layout.slot(0) >= end && layout.slot(0).is_multiple_of(128));
                assert_eq!(layout.common(), layout.slot(0) + size_of::<RankSlot>());
                let end = layout.slot(slots - 1) + size_of::<RankSlot>();
                assert!(layout.mapped() >= end && layout.mapped() - end < PAGE);
                assert_eq!((layout.mailbox(0), layout.mailbox(0) % PAGE), (layout.mapped(), 0));
                assert!(
                    layout.mailbox_bytes() >= 4 * slots
                        && layout.mailbox_bytes().is_multiple_of(PAGE)
                );
                let end = layout.mailbox(slots - 1) + layout.mailbox_bytes();
                assert_eq!(layout.area(0), Some(end));
                let last = layout.area(slots * slots - 1).expect("the last area");
                assert_eq!(layout.area(slots * slots), None);
                assert_eq!(last, end + (slots * slots - 1) * layout.area_bytes());
                assert_eq!(layout.pool(0), last + layout.area_bytes());
                let end = layout.pool(slots - 1) + pair::POOL_BYTES;
                assert!(layout.heap_of(0) >= end && layout.heap_of(0) - end < HUGE_PAGE);
                assert_eq!(layout.heap_of(0) % HUGE_PAGE, 0);
                assert_eq!(layout.heap_of(slots - 1) + 2 * HUGE_PAGE, layout.total());
            }
        }
    }

    /// Checks that two jobs that have free slots have all parts of the segment at the same offsets, whatever their
    /// numbers of ranks.
    #[test]
    fn the_number_of_ranks_moves_nothing() {
        let few = Layout::new(5, room(64, 8)).expect("in range");
        let many = Layout::new(60, room(64, 8)).expect("in range");
        let places = |layout: &Layout| {
            let slot = 40;
            (layout.slot(slot), layout.mailbox(slot), layout.area(4000), layout.heap_of(slot))
        };
        assert_eq!(places(&few), places(&many));
        assert_eq!((few.mapped(), few.total()), (many.mapped(), many.total()));
        let job = |ranks| Layout::for_job(ranks, 8, 1 << 30, UNLIMITED).expect("a job");
        assert_eq!(places(&job(1)), places(&job(2)));
        assert_eq!(places(&job(1)), places(&job(4095)));
        assert_eq!(job(2).room().slots, MAX_SLOTS);
    }

    #[test]
    fn numbers_out_of_range_are_refused() {
        let good = room(2, 2);
        let new = |ranks, room| Layout::new(ranks, room).is_some();
        assert!(new(2, good) && !new(0, good) && !new(3, good) && !new(usize::MAX, good));
        for slots in [0, MAX_SLOTS + 1, usize::MAX] {
            assert!(!new(1, Room { slots, ..good }));
        }
        assert!(!new(2, Room { cpus: MAX_CPUS + 1, ..good }));
        assert!(!new(2, Room { areas: MAX_SLOTS * MAX_SLOTS + 1, ..good }));
        for heap in [PAGE, HEAPS_MAX, usize::MAX / HUGE_PAGE * HUGE_PAGE] {
            assert!(!new(2, Room { heap, ..good }));
        }
        let most = Room { slots: MAX_SLOTS, areas: MAX_SLOTS * MAX_SLOTS, cpus: MAX_CPUS, heap: 0 };
        assert!(new(MAX_RANKS, most));
    }

    #[test]
    fn heaps_hold_the_machine_and_fit_the_address_space() {
        const GIB: u64 = 1 << 30;
        let job = |ranks, memory, file| Layout::for_job(ranks, 8, memory, file).expect("a job");
        let of = |ranks, memory, file| job(ranks, memory, file).heap() as u64;
        assert_eq!(of(2, 24 * GIB, UNLIMITED), 24 * GIB);
        assert_eq!(of(2, 24 * GIB - 1, UNLIMITED), 24 * GIB);
        assert_eq!(of(MAX_RANKS, 1 << 42, UNLIMITED), 4 * GIB);
        assert_eq!(of(1, u64::MAX, UNLIMITED), HEAPS_MAX as u64);
        assert!(Layout::for_job(0, 8, GIB, UNLIMITED).is_none());
        for ranks in [1, 2, 64, MAX_RANKS] {
            assert!(Layout::for_job(ranks, MAX_CPUS, u64::MAX, UNLIMITED).is_some(), "{ranks}");
        }
    }

    #[test]
    fn a_limited_file_has_room_for_the_ranks() {
        const GIB: u64 = 1 << 30;
        let job = |ranks, file| Layout::for_job(ranks, 8, 24 * GIB, file).expect("a job");
        // The heaps get the rest of the file after four areas of 2176 KiB and two pools of 8 MiB.
        let small = job(2, GIB);
        assert_eq!((small.room().slots, small.room().areas, small.heap()), (2, 4, 498 << 20));
        assert!(small.total() as u64 <= GIB);
        // Even if the file is too small, the layout has an area for every pair, and creating the segment
        // fails.
        let crowded = job(96, GIB);
        assert_eq!((crowded.room().areas, crowded.heap()), (96 * 96, 0));
        assert!(crowded.total() as u64 > GIB);
        assert_eq!((job(2, 0).heap(), job(2, 0).room().areas), (0, 4));
    }

    #[test]
    fn unknown_states_count_as_dead() {
        assert_eq!(State::from_word(State::Finalized as u32), State::Finalized);
        assert_eq!(State::from_word(0), State::Started);
        assert_eq!(State::from_word(77), State::Dead);
    }
}
