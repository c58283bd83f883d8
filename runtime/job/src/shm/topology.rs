//! The topology of the machine: the core, caches, NUMA node and package of each CPU.
//!
//! The launcher reads the topology once (`launcher/src/topology.rs`) and stores it as a plain table in the
//! segment (`segment.rs`). Ranks never load hwloc. `transport/fabric.rs` uses [`distance`] to find out how
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

/// How far apart two CPUs are. The variants are ordered from near to far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Distance {
    /// The CPUs are hardware threads of one core, or are the same CPU.
    Core,
    /// The CPUs share a level 2 cache.
    L2,
    /// The CPUs share a level 3 cache.
    L3,
    /// The CPUs share a NUMA node.
    Numa,
    /// The CPUs share a package.
    Package,
    /// The CPUs are in different packages, or no shared object is known.
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
/// 0  core + 1   4  L2 + 1   8  L3 + 1   12  NUMA + 1   16  package + 1   20  allowed   24  spare
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
    spare: [AtomicU32; 2],
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
