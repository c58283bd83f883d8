//! The CPUs to which the launcher has bound the ranks of a job. Reports print these CPUs.
//!
//! `world.rs` builds a [`Placement`] from the job's table of CPUs (`typepack_job::shm::topology`). That
//! table is not part of the interface of the library; the transports read it directly.

use crate::shm::segment::Segment;
use crate::shm::topology::{self, CpuInfo};

/// The CPUs to which the ranks of a job are bound. [`Universe::placement`](crate::Universe::placement)
/// returns this value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    oversubscribed: bool,
    cpus: Vec<Option<Cpu>>,
    /// The parts of the machine that contain all CPUs of the job.
    common: Cpu,
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
    /// Level 2 cache.
    pub l2: Option<u32>,
    /// Level 3 cache.
    pub l3: Option<u32>,
    /// NUMA node.
    pub numa: Option<u32>,
    /// Package (socket).
    pub package: Option<u32>,
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
    /// A physical core.
    Core,
}

impl Resource {
    /// All kinds. In most machines, a part of one kind contains whole parts of the next kinds.
    pub const ALL: [Self; 6] =
        [Self::Machine, Self::Package, Self::Numa, Self::L3, Self::L2, Self::Core];

    /// Returns the name of the kind as a URI: hwloc's name of the kind after `hwloc://`.
    #[doc(alias = "mpi_hw_resource_type")]
    pub fn uri(self) -> &'static str {
        match self {
            Self::Machine => "hwloc://Machine",
            Self::Package => "hwloc://Package",
            Self::Numa => "hwloc://NUMANode",
            Self::L3 => "hwloc://L3Cache",
            Self::L2 => "hwloc://L2Cache",
            Self::Core => "hwloc://Core",
        }
    }
}

impl Placement {
    pub(crate) fn of(segment: &Segment) -> Self {
        let cpus = (0..segment.ranks()).map(|rank| Cpu::of(segment, rank)).collect();
        let CpuInfo { core, l2, l3, numa, package, .. } = segment.common_parts();
        let common = Cpu { number: 0, core, l2, l3, numa, package };
        Self { oversubscribed: segment.flags().oversubscribed, cpus, common }
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
    /// restricted: the part with the rank's CPU, or the part that contains all CPUs of the job. Returns `None` if there
    /// is no such part, or if the launcher does not know it.
    pub fn part(&self, rank: usize, resource: Resource) -> Option<u32> {
        self.cpus.get(rank)?.unwrap_or(self.common).part(resource)
    }
}

impl Cpu {
    /// Returns the CPU to which the launcher has bound a rank of the world, or `None` if the rank is not
    /// bound.
    pub(crate) fn of(segment: &Segment, rank: usize) -> Option<Self> {
        let number = segment.bound_cpu(rank)?;
        let CpuInfo { core, l2, l3, numa, package, .. } = segment.cpu(number);
        Some(Self { number, core, l2, l3, numa, package })
    }

    /// Returns the number of the part of the machine of the kind `resource` that contains this CPU, or `None` if
    /// the launcher does not know it. The whole machine has the number 0.
    pub fn part(&self, resource: Resource) -> Option<u32> {
        match resource {
            Resource::Machine => Some(0),
            Resource::Package => self.package,
            Resource::Numa => self.numa,
            Resource::L3 => self.l3,
            Resource::L2 => self.l2,
            Resource::Core => self.core,
        }
    }

    /// Returns the nearest part of the machine that, as far as the launcher knows, both CPUs share.
    pub fn distance(&self, other: &Self) -> Distance {
        match topology::distance(&self.info(), &other.info()) {
            topology::Distance::Core => Distance::Core,
            topology::Distance::L2 => Distance::L2,
            topology::Distance::L3 => Distance::L3,
            topology::Distance::Numa => Distance::Numa,
            topology::Distance::Package => Distance::Package,
            topology::Distance::Machine => Distance::Machine,
        }
    }

    fn info(&self) -> CpuInfo {
        let Self { core, l2, l3, numa, package, .. } = *self;
        CpuInfo { core, l2, l3, numa, package, allowed: true }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shm::segment::JobFlags;

    #[test]
    fn a_placement_says_what_the_segment_says() {
        let cpus =
            [0, 1].map(|core| CpuInfo { core: Some(core), l3: Some(7), ..CpuInfo::default() });
        let flags = JobFlags { oversubscribed: true, ..JobFlags::default() };
        let segment = Segment::create(3, &cpus, flags, 0).expect("a segment");
        for (rank, bound) in [(0, 1), (2, 2)] {
            segment.slot(rank).bound_cpu.store(bound, std::sync::atomic::Ordering::Relaxed);
        }
        let placement = Placement::of(&segment);
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
        let placement = Placement::of(&segment);
        let part = |resource| placement.part(1, resource);
        assert_eq!((part(Resource::L3), part(Resource::Core)), (Some(7), None));
        assert_eq!((first.distance(&first), first.distance(&last)), (Distance::Core, Distance::L3));
    }
}
