//! The topology of the machine: the core, caches, NUMA node and package of each CPU.
//!
//! The launcher reads the topology once (`launcher/src/topology.rs`) and stores it as a plain table in the
//! segment (`segment.rs`). Ranks never load hwloc. `transport/link/fabric.rs` uses [`distance`] to find out how
//! far apart the cores of two ranks are, and `transport/choice.rs` chooses protocols by this distance.
//!
//! Invariant: an index has no meaning except as a label. CPUs that share an object (a core, a cache, a node
//! or a package) have the same index for it. An unknown index is `None` here and 0 in the shared table, so
//! that zeroed memory means "unknown". The table stores a known index `i` as `i + 1`.

use std::sync::atomic::{AtomicU32, Ordering};

/// What is known about one CPU (hardware thread). A table of CPUs is indexed by the numbers that the
/// operating system gives the CPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuInfo {
    /// Index of the physical core. Cores are numbered over the whole machine.
    pub core: Option<u32>,
    /// Index of the level 1 cache of data.
    pub l1: Option<u32>,
    /// Index of the level 2 cache.
    pub l2: Option<u32>,
    /// Index of the level 3 cache.
    pub l3: Option<u32>,
    /// Index of the NUMA node.
    pub numa: Option<u32>,
    /// Index of the package (socket).
    pub package: Option<u32>,
    /// True if this job may run on the CPU.
    pub allowed: bool,
}

/// A level of the parts of the machine to which a rank may be bound, from small parts to large parts. Shared memory
/// stores the level as a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
pub enum Level {
    /// One CPU (hardware thread).
    Thread = 1,
    /// The CPUs of one core.
    Core = 2,
    /// The CPUs of one level 2 cache.
    L2 = 3,
    /// The CPUs of one level 3 cache.
    L3 = 4,
    /// The CPUs of one NUMA node.
    Numa = 5,
    /// The CPUs of one package.
    Package = 6,
}

impl Level {
    /// All levels, from small parts to large parts.
    pub const ALL: [Self; 6] =
        [Self::Thread, Self::Core, Self::L2, Self::L3, Self::Numa, Self::Package];

    /// Returns the level that `word` stores, or `None` if it stores none.
    pub fn from_word(word: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|level| *level as u32 == word)
    }
}

impl CpuInfo {
    /// Returns the index of the part at `level` that contains this CPU, or `None` if the index is unknown. The table
    /// has no index for a thread, so a thread has the index of its core.
    pub fn part(&self, level: Level) -> Option<u32> {
        match level {
            Level::Thread | Level::Core => self.core,
            Level::L2 => self.l2,
            Level::L3 => self.l3,
            Level::Numa => self.numa,
            Level::Package => self.package,
        }
    }
}

/// The parts of the machine that contain all CPUs of a set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    /// The parts. An index is unknown if the CPUs are in different parts of this kind, or if the part of one of them is
    /// unknown.
    pub info: CpuInfo,
    /// The number of the CPU, if the set has only one.
    pub cpu: Option<usize>,
}

impl Parts {
    /// Returns the parts that contain one CPU, whose number is `cpu`.
    pub fn of(cpu: usize, info: CpuInfo) -> Self {
        Self { info, cpu: Some(cpu) }
    }

    /// Returns the parts that contain the CPUs of both sets.
    pub fn and(self, other: Self) -> Self {
        let both = |a: Option<u32>, b: Option<u32>| a.filter(|_| a == b);
        let (a, b) = (self.info, other.info);
        let info = CpuInfo {
            core: both(a.core, b.core),
            l1: both(a.l1, b.l1),
            l2: both(a.l2, b.l2),
            l3: both(a.l3, b.l3),
            numa: both(a.numa, b.numa),
            package: both(a.package, b.package),
            allowed: a.allowed && b.allowed,
        };
        Self { info, cpu: self.cpu.filter(|_| self.cpu == other.cpu) }
    }
}

/// The nearest part of the machine that two CPUs share. The variants are ordered from the nearest to the
/// farthest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Distance {
    /// One core.
    Core,
    /// One level 2 cache.
    L2,
    /// One level 3 cache.
    L3,
    /// One NUMA node.
    Numa,
    /// One package.
    Package,
    /// The CPUs are in different packages, or the launcher does not know where they are.
    Machine,
}

/// Returns the distance between `a` and `b`, which depends on the innermost object that they are known to
/// share.
pub fn distance(a: &CpuInfo, b: &CpuInfo) -> Distance {
    let same = |x: Option<u32>, y: Option<u32>| x.is_some() && x == y;
    if same(a.core, b.core) {
        Distance::Core
    } else if same(a.l2, b.l2) {
        Distance::L2
    } else if same(a.l3, b.l3) {
        Distance::L3
    } else if same(a.numa, b.numa) {
        Distance::Numa
    } else if same(a.package, b.package) {
        Distance::Package
    } else {
        Distance::Machine
    }
}

/// One row of the shared table. The number before each word is the word's offset in bytes:
///
/// ```text
/// 0  core + 1   4  L2 + 1   8  L3 + 1   12  NUMA + 1   16  package + 1   20  allowed   24  L1 + 1   28  spare
/// ```
#[repr(C)]
#[derive(Debug, Default)]
pub struct CpuEntry {
    core: AtomicU32,
    l2: AtomicU32,
    l3: AtomicU32,
    numa: AtomicU32,
    package: AtomicU32,
    allowed: AtomicU32,
    l1: AtomicU32,
    spare: AtomicU32,
}

const _: () = assert!(size_of::<CpuEntry>() == 32 && align_of::<CpuEntry>() == 4);

impl CpuEntry {
    /// Writes what is known about `cpu` into the row. The launcher calls this function before any rank
    /// exists.
    pub fn store(&self, cpu: &CpuInfo) {
        let put = |word: &AtomicU32, index: Option<u32>| {
            // The addition would turn the index u32::MAX into "unknown", but no machine has that many
            // objects.
            word.store(index.map_or(0, |i| i.wrapping_add(1)), Ordering::Relaxed);
        };
        put(&self.core, cpu.core);
        put(&self.l1, cpu.l1);
        put(&self.l2, cpu.l2);
        put(&self.l3, cpu.l3);
        put(&self.numa, cpu.numa);
        put(&self.package, cpu.package);
        self.allowed.store(u32::from(cpu.allowed), Ordering::Relaxed);
    }

    /// Reads the row. Any bit pattern gives a valid value.
    pub fn load(&self) -> CpuInfo {
        let get = |word: &AtomicU32| word.load(Ordering::Relaxed).checked_sub(1);
        CpuInfo {
            core: get(&self.core),
            l1: get(&self.l1),
            l2: get(&self.l2),
            l3: get(&self.l3),
            numa: get(&self.numa),
            package: get(&self.package),
            allowed: self.allowed.load(Ordering::Relaxed) != 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cpu(core: u32, l2: u32, l3: u32, numa: u32, package: u32) -> CpuInfo {
        CpuInfo {
            core: Some(core),
            l1: Some(core),
            l2: Some(l2),
            l3: Some(l3),
            numa: Some(numa),
            package: Some(package),
            allowed: true,
        }
    }

    #[test]
    fn rows_keep_what_was_stored() {
        let row = CpuEntry::default();
        assert_eq!(row.load(), CpuInfo::default());
        let known = cpu(3, 2, 1, 0, 0);
        row.store(&known);
        assert_eq!(row.load(), known);
        let partly = CpuInfo { l3: None, numa: None, allowed: false, ..known };
        row.store(&partly);
        assert_eq!(row.load(), partly);
    }

    #[test]
    fn parts_contain_all_cpus() {
        let (a, b) = (Parts::of(4, cpu(0, 0, 0, 0, 0)), Parts::of(5, cpu(1, 1, 0, 0, 0)));
        assert_eq!((a.and(a), a.cpu), (a, Some(4)));
        let both = a.and(b);
        assert_eq!(
            (both.cpu, both.info.core, both.info.l1, both.info.l2),
            (None, None, None, None)
        );
        assert_eq!((both.info.l3, both.info.numa, both.info.package), (Some(0), Some(0), Some(0)));
        let unknown = Parts::of(6, CpuInfo { numa: Some(0), ..CpuInfo::default() });
        assert_eq!(both.and(unknown).info, CpuInfo { numa: Some(0), ..CpuInfo::default() });
    }

    #[test]
    fn levels_have_numbers() {
        for level in [Level::Thread, Level::Core, Level::L2, Level::L3, Level::Numa, Level::Package]
        {
            assert_eq!(Level::from_word(level as u32), Some(level));
        }
        assert_eq!((Level::from_word(0), Level::from_word(7)), (None, None));
    }

    #[test]
    fn distance_is_the_nearest_shared_thing() {
        let a = cpu(0, 0, 0, 0, 0);
        assert_eq!(distance(&a, &a), Distance::Core);
        assert_eq!(distance(&a, &cpu(1, 0, 0, 0, 0)), Distance::L2);
        assert_eq!(distance(&a, &cpu(1, 1, 0, 0, 0)), Distance::L3);
        assert_eq!(distance(&a, &cpu(1, 1, 1, 0, 0)), Distance::Numa);
        assert_eq!(distance(&a, &cpu(1, 1, 1, 1, 0)), Distance::Package);
        assert_eq!(distance(&a, &cpu(1, 1, 1, 1, 1)), Distance::Machine);
        let unknown = CpuInfo::default();
        assert_eq!(distance(&unknown, &unknown), Distance::Machine);
    }
}
