//! What lies where in the segment of a job.
//!
//! `segment.rs` maps it; `attach.rs` and the launcher reach it through there. The layout follows
//! from three numbers, ranks, CPUs and bytes of a heap; offsets are computed by every process for
//! itself and never read from shared memory.
//!
//! ```text
//!        0  Header            magic, version, hash | ranks, cpus, flags, launcher | failure
//!     4096  RankSlot[ranks]   128 B each: doorbell line, record line
//!        .  CpuEntry[cpus]    32 B each, by the operating system's CPU number
//!        .  (to the next page)
//!    pairs  pair (0,0)  pair (0,1) ... pair (P-1,P-1)    of one size, page aligned, all holes
//!        .  (to the next huge page)
//!    heaps  heap 0  heap 1 ... heap P-1   the same number of huge pages each, all holes
//! ```
//!
//! Invariants: zero-filled is the valid initial state of everything; all words are atomics; what
//! different processes write lies on different cache lines; a change of anything here changes
//! [`HASH`], by which launcher and library recognise that they do not fit.

use std::sync::atomic::{AtomicU32, AtomicU64};

use super::pair::{self, MAX_RANKS as PAIR_MAX_RANKS, PAIR_BYTES};
use super::topology::CpuEntry;

/// `"typepack"` in ASCII, first byte lowest.
pub const MAGIC: u64 = u64::from_le_bytes(*b"typepack");

/// Number of this layout; raised when the meaning of a word changes without its place.
pub const VERSION: u32 = 3;

/// Most ranks of one job.
pub const MAX_RANKS: usize = PAIR_MAX_RANKS;

/// Most CPUs in the topology table; beyond, a CPU counts as unknown.
pub const MAX_CPUS: usize = 1 << 16;

/// Granularity of the pair areas, in bytes.
pub const PAGE: usize = 4096;

/// Granularity of the heaps, in bytes: a page of the size that the machine may have besides.
pub const HUGE_PAGE: usize = 2 << 20;

/// Most bytes of all heaps together: an eighth of the address space that a process has on x86-64,
/// so that each rank could map all of them.
pub const HEAPS_MAX: usize = 1 << 44;

/// Bytes reserved for the package version in the header.
pub const VERSION_TEXT: usize = 24;

/// The header, at offset 0; padded to a page.
///
/// The first four fields never move, in any version: they are what a foreign build reads to say
/// that it does not fit.
#[repr(C)]
#[derive(Debug)]
pub struct Header {
    /// [`MAGIC`]; stored last, with release ordering.
    pub magic: AtomicU64,
    /// [`HASH`] of the launcher.
    pub hash: AtomicU64,
    /// [`VERSION`] of the launcher.
    pub version: AtomicU32,
    /// Spare, 0.
    pub reserved: AtomicU32,
    /// Version of the launcher's package, ASCII, zero padded, eight bytes to a word.
    pub version_text: [AtomicU64; VERSION_TEXT / 8],
    /// Number of ranks.
    pub ranks: AtomicU32,
    /// Rows of the CPU table.
    pub cpus: AtomicU32,
    /// `FLAG_*` bits.
    pub flags: AtomicU32,
    /// Process id of the launcher, 0 in a singleton.
    pub launcher: AtomicU32,
    /// Bytes of the heap of one rank, a multiple of [`HUGE_PAGE`].
    pub heap: AtomicU64,
    /// Fills up to byte 128, so that what changes during the job has lines of its own.
    pub spare: [AtomicU64; 7],
    /// 0 while all is well; else raised by one for every failure. Written by the launcher only.
    pub fail_epoch: AtomicU32,
    /// The first rank that failed, plus 1.
    pub failed_rank: AtomicU32,
    /// How it failed: `0x100 | code` for an exit, `0x200 | signal`, `0x300` for an end without
    /// finalize, `0x400` for an end without having joined.
    pub failed_how: AtomicU32,
}

/// More ranks than CPUs: nobody should spin.
pub const FLAG_OVERSUBSCRIBED: u32 = 1;
/// The launcher's standard output, where rank 0's goes, is a terminal.
pub const FLAG_STDOUT_TERMINAL: u32 = 2;
/// The launcher's standard error is a terminal.
pub const FLAG_STDERR_TERMINAL: u32 = 4;

/// The slot of one rank: two cache lines, the first written by everybody, the second by the rank
/// and the launcher.
#[repr(C, align(128))]
#[derive(Debug)]
pub struct RankSlot {
    /// Futex word: changes whenever somebody calls this rank out of its sleep.
    pub doorbell: AtomicU32,
    /// 1 while the rank sleeps or is about to.
    pub sleeping: AtomicU32,
    /// Fills the line.
    pub spare: [AtomicU32; 14],
    /// Process id of the rank as the launcher sees it, 0 before it registered. Launcher.
    pub pid: AtomicU32,
    /// Process group that the launcher made for this rank. Launcher.
    pub group: AtomicU32,
    /// A [`State`]. The rank, and [`State::Dead`] by the launcher.
    pub state: AtomicU32,
    /// 1 once the launcher watches the registered process. Launcher.
    pub watched: AtomicU32,
    /// First CPU this rank is bound to, plus 1; 0 when unbound. Launcher.
    pub bound_cpu: AtomicU32,
    /// Where in the memory of the rank a number stands that others may read to find out whether
    /// they can, low half first; 0 if they must not. The rank.
    pub probe_at: [AtomicU32; 2],
    /// The number, low half first. The rank.
    pub probe: [AtomicU32; 2],
    /// Fills the line.
    pub spare2: [AtomicU32; 7],
}

/// Where a rank is in its life. Stored as a number in shared memory; see [`State::from_word`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
pub enum State {
    /// Its process (or the shell before it) exists or will; nobody has joined the job yet.
    Started = 0,
    /// A process has joined the job as this rank.
    Registered = 1,
    /// It has left the job in order.
    Finalized = 2,
    /// It is gone.
    Dead = 3,
}

impl State {
    /// The state that `word` stands for; what nobody writes counts as dead.
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
    assert!(offset_of!(Header, fail_epoch) == 128);
    assert!(size_of::<Header>() <= PAGE);
    assert!(size_of::<RankSlot>() == 128);
    assert!(offset_of!(RankSlot, doorbell) == 0);
    assert!(offset_of!(RankSlot, pid) == 64);
    assert!(offset_of!(RankSlot, bound_cpu) == 80);
    assert!(PAIR_BYTES > 0 && PAIR_BYTES.is_multiple_of(PAGE));
};

/// Fingerprint of layout and build: two processes with equal hashes agree on every offset.
pub const HASH: u64 = {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let words = [
        VERSION as u64,
        size_of::<Header>() as u64,
        size_of::<RankSlot>() as u64,
        size_of::<CpuEntry>() as u64,
        PAIR_BYTES as u64,
        super::pair::WINDOWS_BYTES as u64,
        super::pair::PRIVATE_CLAIMS as u64,
        super::pair::PRIVATE_PUSHED as u64,
        super::pair::SLOTS as u64,
        super::pair::SLOTS_AT as u64,
        super::pair::PAYLOAD_AT as u64,
        super::pair::CHUNKS as u64,
        super::pair::CHUNK_BYTES as u64,
        super::pair::CHUNKS_AT as u64,
        super::pair::READING as u64,
        super::pair::WITHDRAWN as u64,
        super::pair::HEAP_CLAIMS as u64,
        super::pair::HEAP_PUSHED as u64,
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

/// Offsets of a segment for a number of ranks and CPUs and a size of heaps, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    ranks: usize,
    cpus: usize,
    topology: usize,
    pairs: usize,
    mapped: usize,
    heap: usize,
    heaps: usize,
    total: usize,
}

impl Layout {
    /// The layout for `ranks` ranks with heaps of `heap` bytes each, on a machine whose CPU numbers
    /// are below `cpus`; `None` when one of them is out of range or the address space too small.
    pub fn new(ranks: usize, cpus: usize, heap: usize) -> Option<Self> {
        if ranks == 0 || ranks > MAX_RANKS || cpus > MAX_CPUS || !heap.is_multiple_of(HUGE_PAGE) {
            return None;
        }
        let topology = PAGE + ranks * size_of::<RankSlot>();
        let pairs = (topology + cpus * size_of::<CpuEntry>()).next_multiple_of(PAGE);
        let areas = ranks.checked_mul(ranks)?.checked_mul(pair::bytes(ranks))?;
        let mapped = pairs.checked_add(areas)?;
        let heaps = mapped.checked_next_multiple_of(HUGE_PAGE)?;
        let all = heap.checked_mul(ranks).filter(|&bytes| bytes <= HEAPS_MAX)?;
        let total = if all == 0 { mapped } else { heaps.checked_add(all)? };
        isize::try_from(total).ok()?;
        Some(Self { ranks, cpus, topology, pairs, mapped, heap, heaps, total })
    }

    /// Bytes of a heap for each of `ranks` ranks on a machine with `memory` bytes, where a file may
    /// have `file` bytes: each could hold all of the memory, up to what the address space has room
    /// for; less, down to nothing, where the file's limit is near.
    pub fn heap_bytes(ranks: usize, cpus: usize, memory: u64, file: u64) -> usize {
        let Some(rest) = Self::new(ranks, cpus, 0) else { return 0 };
        let left = file.saturating_sub(rest.mapped.next_multiple_of(HUGE_PAGE) as u64);
        let share = (HEAPS_MAX as u64).min(left) / ranks as u64;
        let wanted = memory.checked_next_multiple_of(HUGE_PAGE as u64).unwrap_or(share);
        usize::try_from(share.min(wanted)).map_or(0, |bytes| bytes / HUGE_PAGE * HUGE_PAGE)
    }

    /// Number of ranks.
    pub fn ranks(&self) -> usize {
        self.ranks
    }

    /// Rows of the CPU table.
    pub fn cpus(&self) -> usize {
        self.cpus
    }

    /// Bytes of the whole segment.
    pub fn total(&self) -> usize {
        self.total
    }

    /// Bytes before the heaps: what every process maps at the start.
    pub fn mapped(&self) -> usize {
        self.mapped
    }

    /// Bytes of the heap of one rank.
    pub fn heap(&self) -> usize {
        self.heap
    }

    /// Offset of the heap of `rank`, [`Layout::heap`] bytes long.
    ///
    /// # Panics
    ///
    /// When there is no such rank.
    pub fn heap_of(&self, rank: usize) -> usize {
        assert!(rank < self.ranks, "rank {rank} of {}", self.ranks);
        self.heaps + rank * self.heap
    }

    /// Bytes before the pair areas: what everybody uses from the start.
    pub fn common(&self) -> usize {
        self.pairs
    }

    /// Offset of the slot of `rank`.
    ///
    /// # Panics
    ///
    /// When there is no such rank.
    pub fn slot(&self, rank: usize) -> usize {
        assert!(rank < self.ranks, "rank {rank} of {}", self.ranks);
        PAGE + rank * size_of::<RankSlot>()
    }

    /// Offset of the row of `cpu` in the topology table.
    ///
    /// # Panics
    ///
    /// When there is no such row.
    pub fn cpu(&self, cpu: usize) -> usize {
        assert!(cpu < self.cpus, "cpu {cpu} of {}", self.cpus);
        self.topology + cpu * size_of::<CpuEntry>()
    }

    /// Offset of the area of the ordered pair `(from, to)`, [`Layout::pair_bytes`] long.
    ///
    /// # Panics
    ///
    /// When there is no such rank.
    pub fn pair(&self, from: usize, to: usize) -> usize {
        assert!(from < self.ranks && to < self.ranks, "pair ({from}, {to}) of {}", self.ranks);
        self.pairs + (from * self.ranks + to) * self.pair_bytes()
    }

    /// Bytes of the area of an ordered pair.
    pub fn pair_bytes(&self) -> usize {
        pair::bytes(self.ranks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_follow_each_other_without_overlap() {
        for ranks in [1, 2, 3, 17, 256] {
            for cpus in [0, 1, 2, 127, 128, 1024] {
                let layout = Layout::new(ranks, cpus, 2 * HUGE_PAGE).expect("in range");
                assert_eq!(layout.slot(0), PAGE);
                assert!(layout.slot(0) >= size_of::<Header>());
                let slots_end = layout.slot(ranks - 1) + size_of::<RankSlot>();
                let mut end = slots_end;
                if cpus > 0 {
                    assert_eq!(layout.cpu(0), slots_end);
                    end = layout.cpu(cpus - 1) + size_of::<CpuEntry>();
                }
                assert!(layout.common() >= end && layout.common() - end < PAGE);
                assert_eq!(layout.pair(0, 0), layout.common());
                assert_eq!(layout.pair(0, 0) % PAGE, 0);
                let last = layout.pair(ranks - 1, ranks - 1);
                assert_eq!(last + layout.pair_bytes(), layout.mapped());
                assert!(layout.heap_of(0) >= layout.mapped());
                assert!(layout.heap_of(0) - layout.mapped() < HUGE_PAGE);
                assert_eq!(layout.heap_of(0) % HUGE_PAGE, 0);
                assert_eq!(layout.heap_of(ranks - 1) + 2 * HUGE_PAGE, layout.total());
                if ranks > 1 {
                    assert_eq!(layout.pair(0, 1) - layout.pair(0, 0), layout.pair_bytes());
                    assert_eq!(layout.pair(1, 0) - layout.pair(0, 0), ranks * layout.pair_bytes());
                }
            }
        }
    }

    #[test]
    fn numbers_out_of_range_are_refused() {
        assert!(Layout::new(0, 2, 0).is_none());
        assert!(Layout::new(MAX_RANKS + 1, 2, 0).is_none());
        assert!(Layout::new(usize::MAX, 2, 0).is_none());
        assert!(Layout::new(2, MAX_CPUS + 1, 0).is_none());
        assert!(Layout::new(2, 2, PAGE).is_none());
        assert!(Layout::new(2, 2, HEAPS_MAX).is_none());
        assert!(Layout::new(2, 2, usize::MAX / HUGE_PAGE * HUGE_PAGE).is_none());
        assert!(Layout::new(MAX_RANKS, MAX_CPUS, 0).is_some());
    }

    #[test]
    fn heaps_hold_the_machine_and_fit_the_address_space() {
        const GIB: u64 = 1 << 30;
        let of = |ranks, memory, file| Layout::heap_bytes(ranks, 8, memory, file) as u64;
        assert_eq!(of(2, 24 * GIB, u64::MAX), 24 * GIB);
        assert_eq!(of(2, 24 * GIB - 1, u64::MAX), 24 * GIB);
        assert_eq!(of(MAX_RANKS, 1 << 42, u64::MAX), 4 * GIB);
        assert_eq!(of(1, u64::MAX, u64::MAX), HEAPS_MAX as u64);
        // Four areas of 2.1 MiB come first.
        assert_eq!(of(2, 24 * GIB, GIB), 506 << 20);
        assert_eq!(of(2, 24 * GIB, 0), 0);
        assert_eq!(of(0, GIB, u64::MAX), 0);
        for ranks in [1, 2, 64, MAX_RANKS] {
            let heap = Layout::heap_bytes(ranks, MAX_CPUS, u64::MAX, u64::MAX);
            assert!(Layout::new(ranks, MAX_CPUS, heap).is_some(), "{ranks}");
        }
    }

    #[test]
    fn unknown_states_count_as_dead() {
        assert_eq!(State::from_word(State::Finalized as u32), State::Finalized);
        assert_eq!(State::from_word(0), State::Started);
        assert_eq!(State::from_word(77), State::Dead);
    }
}
