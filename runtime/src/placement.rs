//! The CPUs to which the launcher has bound the ranks of a job. Reports print these CPUs.
//!
//! `world.rs` builds a [`Placement`] from the job's table of CPUs (`typepack_job::shm::topology`). That
//! table is not part of the interface of the library; the transports read it directly.

use crate::shm::segment::Segment;
use crate::shm::topology::{self, CpuInfo, Parts};
use std::ops::Range;

pub use crate::shm::topology::Distance;

/// The CPUs to which the ranks of a job are bound. [`Universe::placement`](crate::Universe::placement)
/// returns this value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    oversubscribed: bool,
    cpus: Vec<Option<Cpu>>,
    /// For each rank, the parts of the machine that contain all CPUs on which the rank may run.
    parts: Vec<Parts>,
}

/// A CPU (hardware thread), and the parts of the machine that contain it. No two parts of one kind in the
/// machine have the same number. A part is `None` if the launcher does not know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Cpu {
    /// The number that the operating system gives to the CPU.
    pub number: usize,
    /// Physical core.
    pub core: Option<u32>,
    /// Level 1 cache of data.
    pub l1: Option<u32>,
    /// Level 2 cache.
    pub l2: Option<u32>,
    /// Level 3 cache.
    pub l3: Option<u32>,
    /// NUMA node.
    pub numa: Option<u32>,
    /// Package (socket).
    pub package: Option<u32>,
}

/// A kind of parts of the machine, by which the ranks of a communicator can be divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Resource {
    /// The whole machine: all ranks of the job share it.
    Machine,
    /// A package (socket).
    Package,
    /// A NUMA node.
    Numa,
    /// A level 3 cache.
    L3,
    /// A level 2 cache.
    L2,
    /// A level 1 cache of data.
    L1,
    /// A physical core.
    Core,
    /// A CPU (hardware thread).
    Pu,
}

impl Resource {
    /// All kinds. In most machines, a part of one kind contains whole parts of the next kinds.
    pub const ALL: [Self; 8] = [
        Self::Machine,
        Self::Package,
        Self::Numa,
        Self::L3,
        Self::L2,
        Self::L1,
        Self::Core,
        Self::Pu,
    ];

    /// Returns the name of the kind as a URI: hwloc's name of the kind after `hwloc://`.
    #[doc(alias = "mpi_hw_resource_type")]
    pub fn uri(self) -> &'static str {
        match self {
            Self::Machine => "hwloc://Machine",
            Self::Package => "hwloc://Package",
            Self::Numa => "hwloc://NUMANode",
            Self::L3 => "hwloc://L3Cache",
            Self::L2 => "hwloc://L2Cache",
            Self::L1 => "hwloc://L1Cache",
            Self::Core => "hwloc://Core",
            Self::Pu => "hwloc://PU",
        }
    }
}

impl Placement {
    /// Returns the placement of the ranks in the slots `world`.
    pub(crate) fn of(segment: &Segment, world: Range<usize>) -> Self {
        let cpus = world.clone().map(|slot| Cpu::of(segment, slot)).collect();
        let common = segment.common_parts();
        let parts = world.map(|slot| segment.bound_parts(slot).unwrap_or(common)).collect();
        Self { oversubscribed: segment.flags().oversubscribed, cpus, parts }
    }

    /// Returns whether the job has more ranks than CPUs. A waiting rank of such a job does not spin, unless
    /// `TYPEPACK_SPIN_US` is set.
    pub fn oversubscribed(&self) -> bool {
        self.oversubscribed
    }

    /// Returns the CPU to which a rank of the world is bound. If the rank is bound to a core with several
    /// CPUs, the result is the first of them. Returns `None` if the rank is not bound or does not exist.
    pub fn cpu(&self, rank: usize) -> Option<Cpu> {
        self.cpus.get(rank).copied().flatten()
    }

    /// Returns the number of the part of the machine of the kind `resource` to which a rank of the world is
    /// restricted: the part that contains all CPUs on which the rank may run. A bound rank may run on the CPUs of the
    /// core, or of the larger part, to which the launcher has bound the rank. Any other rank may run on all CPUs of the
    /// job. Returns `None` if no such part exists, or if the launcher does not know the part.
    pub fn part(&self, rank: usize, resource: Resource) -> Option<u32> {
        part_of(self.parts.get(rank)?, resource)
    }
}

/// Returns the number of the part of the kind `resource` among these parts, or `None` if there is none.
pub(crate) fn part_of(parts: &Parts, resource: Resource) -> Option<u32> {
    let Parts { info, cpu } = parts;
    part(info, cpu.and_then(|cpu| u32::try_from(cpu).ok()), resource)
}

impl Cpu {
    /// Returns the CPU to which the launcher has bound a rank of the world, or `None` if the rank is not
    /// bound.
    pub(crate) fn of(segment: &Segment, rank: usize) -> Option<Self> {
        let number = segment.bound_cpu(rank)?;
        let CpuInfo { core, l1, l2, l3, numa, package, .. } = segment.cpu(number);
        Some(Self { number, core, l1, l2, l3, numa, package })
    }

    /// Returns the number of the part of the machine of the kind `resource` that contains this CPU, or `None` if
    /// the launcher does not know it. The whole machine has the number 0.
    pub fn part(&self, resource: Resource) -> Option<u32> {
        part(&self.info(), u32::try_from(self.number).ok(), resource)
    }

    /// Returns the nearest part of the machine that, as far as the launcher knows, both CPUs share.
    pub fn distance(&self, other: &Self) -> Distance {
        topology::distance(&self.info(), &other.info())
    }

    fn info(&self) -> CpuInfo {
        let Self { core, l1, l2, l3, numa, package, .. } = *self;
        CpuInfo { core, l1, l2, l3, numa, package, allowed: true }
    }
}

/// Returns the number of the part of the kind `resource` among those that `info` names. `cpu` is the number of the CPU.
fn part(info: &CpuInfo, cpu: Option<u32>, resource: Resource) -> Option<u32> {
    match resource {
        Resource::Machine => Some(0),
        Resource::Package => info.package,
        Resource::Numa => info.numa,
        Resource::L3 => info.l3,
        Resource::L2 => info.l2,
        Resource::L1 => info.l1,
        Resource::Core => info.core,
        Resource::Pu => cpu,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shm::segment::JobFlags;
    use crate::shm::topology::Level;

    #[test]
    fn a_placement_says_what_the_segment_says() {
        let cpus =
            [0, 1].map(|core| CpuInfo { core: Some(core), l3: Some(7), ..CpuInfo::default() });
        let flags = JobFlags { oversubscribed: true, ..JobFlags::default() };
        let segment = Segment::create(3, &cpus, flags, 0).expect("a segment");
        for (rank, cpu) in [(0, 0), (2, 1)] {
            segment.slot(rank).bind(cpu, Level::Core);
        }
        let placement = Placement::of(&segment, 0..segment.ranks());
        assert!(placement.oversubscribed());
        let (first, last) = (placement.cpu(0).expect("bound"), placement.cpu(2).expect("bound"));
        assert_eq!((first.number, last.number, last.core, last.l3), (0, 1, Some(1), Some(7)));
        assert_eq!((placement.cpu(1), placement.cpu(3)), (None, None));
        assert_eq!(
            (placement.part(0, Resource::L3), placement.part(0, Resource::L2)),
            (Some(7), None)
        );
        assert_eq!(
            (placement.part(1, Resource::L3), placement.part(1, Resource::Machine)),
            (None, Some(0))
        );
        assert_eq!(placement.part(3, Resource::Machine), None);
        // Rank 1 is not bound, and may use both CPUs, which share their level 3 cache.
        let cpus = cpus.map(|cpu| CpuInfo { allowed: true, ..cpu });
        let segment = Segment::create(3, &cpus, flags, 0).expect("a segment");
        let placement = Placement::of(&segment, 0..segment.ranks());
        let part = |resource| placement.part(1, resource);
        assert_eq!((part(Resource::L3), part(Resource::Core)), (Some(7), None));
        assert_eq!((first.distance(&first), first.distance(&last)), (Distance::Core, Distance::L3));
    }

    /// Checks the parts of ranks that are bound at each level. A core has two CPUs, a level 2 cache two cores, a level
    /// 3 cache two level 2 caches, and a package two NUMA nodes with one level 3 cache each. The last core has only one
    /// CPU that the job may use.
    #[test]
    fn a_rank_is_restricted_to_the_parts_with_all_its_cpus() {
        let cpus: Vec<CpuInfo> = (0..32)
            .map(|cpu: u32| CpuInfo {
                core: Some(cpu / 2),
                l1: Some(cpu / 2),
                l2: Some(cpu / 4),
                l3: Some(cpu / 8),
                numa: Some(cpu / 8),
                package: Some(cpu / 16),
                allowed: cpu < 31,
            })
            .collect();
        let bound = [
            (Level::Thread, 21),
            (Level::Core, 20),
            (Level::L2, 20),
            (Level::L3, 20),
            (Level::Numa, 20),
            (Level::Package, 20),
            (Level::Core, 30),
        ];
        let segment = Segment::create(8, &cpus, JobFlags::default(), 0).expect("a segment");
        for (rank, (level, cpu)) in bound.into_iter().enumerate() {
            segment.slot(rank).bind(cpu, level);
        }
        let placement = Placement::of(&segment, 0..segment.ranks());
        let parts = |rank| Resource::ALL.map(|resource| placement.part(rank, resource));
        let all = [Some(0), Some(1), Some(2), Some(2), Some(5), Some(10), Some(10), Some(21)];
        let known = |kinds: usize| {
            let mut parts = all;
            parts[kinds..].fill(None);
            parts
        };
        assert_eq!([0, 1, 2, 3, 4, 5].map(parts), [8, 7, 5, 4, 4, 2].map(known));
        let last = [Some(0), Some(1), Some(3), Some(3), Some(7), Some(15), Some(15), Some(30)];
        assert_eq!((parts(6), parts(7)), (last, known(1)));
        assert_eq!(
            [0, 1, 2].map(|rank| placement.cpu(rank).map(|cpu| cpu.number)),
            [Some(21), Some(20), None]
        );
    }
}
