//! Finds out which CPUs the machine has, and returns a table of them.
//!
//! `main.rs` calls [`discover`] once per job. `placement.rs` uses the table to place ranks, and the segment
//! passes the table to the ranks. The trait [`Source`] has two implementations: `Hwloc` (the feature `hwloc`), and
//! [`Sysfs`] for machines on which hwloc fails, or without the feature. mpiexec calls hwloc only before it forks the first
//! rank.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

#[cfg(feature = "hwloc")]
use hwlocality::Topology;
#[cfg(feature = "hwloc")]
use hwlocality::object::TopologyObject;
#[cfg(feature = "hwloc")]
use hwlocality::object::types::ObjectType;
use typepack_job::shm::layout::MAX_CPUS;
use typepack_job::shm::topology::CpuInfo;
use typepack_job::sys::process::CpuSet;
#[cfg(feature = "hwloc")]
use typepack_job::sys::stream;

/// A source of information about the machine.
pub trait Source {
    /// Returns a table with one row per CPU, indexed by the operating system's CPU numbers, or `None` if
    /// the source has no information. The field `allowed` of a row says whether this source considers the
    /// CPU allowed. If no CPU has the number of a row, the row is empty and not allowed.
    fn table(&self) -> Option<Vec<CpuInfo>>;
}

/// Returns the table of this machine. `allowed` is the set of CPUs that this process may use; in the
/// result, only the rows of these CPUs are marked as allowed. If `allowed` is `None`, the source of the
/// table decides which CPUs are marked.
pub fn discover(allowed: Option<&CpuSet>) -> Vec<CpuInfo> {
    let sources: &[&dyn Source] = &[
        #[cfg(feature = "hwloc")]
        &Hwloc::of_this_machine(),
        &Sysfs::default(),
    ];
    let mut table = sources.iter().find_map(|source| source.table()).unwrap_or_default();
    if let Some(allowed) = allowed {
        for (cpu, row) in table.iter_mut().enumerate() {
            row.allowed &= allowed.contains(cpu);
        }
        // A source may omit CPUs that the scheduler allows. Add these CPUs.
        for cpu in allowed.iter().filter(|&cpu| cpu < MAX_CPUS) {
            if table.len() <= cpu {
                table.resize(cpu + 1, CpuInfo::default());
            }
            table[cpu].allowed = true;
        }
    }
    table
}

/// What mpiexec prints if nothing is known about the parts of the machine.
pub const UNKNOWN: &str = "the cores and caches of this machine are unknown (/sys cannot be read): every CPU counts as a core";

/// Returns true if the table says nothing about the parts of the machine.
pub fn is_unknown(table: &[CpuInfo]) -> bool {
    table.iter().filter(|info| info.allowed).all(|info| info.core.is_none())
}

/// The source that asks hwloc, through the crate hwlocality.
#[cfg(feature = "hwloc")]
pub struct Hwloc {
    topology: Option<Topology>,
}

#[cfg(feature = "hwloc")]
impl Hwloc {
    /// Loads the topology of this machine.
    pub fn of_this_machine() -> Self {
        // hwloc prints lines of its own if it does not understand the machine. What this means for the job, mpiexec says
        // itself where it matters (`-info`, `--report-bindings`).
        Self { topology: stream::without_stderr(|| Topology::new().ok()) }
    }

    /// Makes the topology of an imaginary machine from a description, such as
    /// `"package:2 numa:2 l3:1 core:4 pu:2"`.
    #[cfg(test)]
    pub fn synthetic(description: &str) -> Self {
        let builder =
            Topology::builder().from_synthetic(description).expect("hwloc accepts the description");
        Self { topology: Some(builder.build().expect("hwloc builds the topology")) }
    }
}

#[cfg(feature = "hwloc")]
impl Source for Hwloc {
    fn table(&self) -> Option<Vec<CpuInfo>> {
        let topology = self.topology.as_ref()?;
        let index = |object: Option<&TopologyObject>| {
            object.and_then(|object| u32::try_from(object.logical_index()).ok())
        };
        let mut table = Vec::new();
        for unit in topology.objects_with_type(ObjectType::PU) {
            let Some(cpu) = unit.os_index().filter(|&cpu| cpu < MAX_CPUS) else { continue };
            let above = |kind| index(unit.first_ancestor_with_type(kind));
            // In hwloc's tree, NUMA nodes are not ancestors of CPUs. So find the node whose set of CPUs
            // contains this CPU.
            let numa = topology
                .objects_with_type(ObjectType::NUMANode)
                .find(|node| node.cpuset().is_some_and(|set| unit.is_inside_cpuset(set)));
            let allowed = unit.cpuset().is_some_and(|set| topology.allowed_cpuset().includes(set));
            if table.len() <= cpu {
                table.resize(cpu + 1, CpuInfo::default());
            }
            table[cpu] = CpuInfo {
                core: above(ObjectType::Core),
                l1: above(ObjectType::L1Cache),
                l2: above(ObjectType::L2Cache),
                l3: above(ObjectType::L3Cache),
                numa: index(numa),
                package: above(ObjectType::Package),
                allowed,
            };
        }
        (!table.is_empty()).then_some(table)
    }
}

/// The source that reads the kernel's files in `/sys`. It numbers a core, a cache or a package by the lowest
/// CPU that belongs to it.
pub struct Sysfs {
    root: PathBuf,
}

impl Default for Sysfs {
    fn default() -> Self {
        Self { root: "/sys/devices/system".into() }
    }
}

impl Source for Sysfs {
    fn table(&self) -> Option<Vec<CpuInfo>> {
        let online = list(&self.root.join("cpu/online"))?;
        let mut numa = BTreeMap::new();
        for entry in fs::read_dir(self.root.join("node")).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let Some(node) = name.to_str().and_then(|n| n.strip_prefix("node")?.parse().ok())
            else {
                continue;
            };
            for cpu in list(&entry.path().join("cpulist")).into_iter().flatten() {
                numa.insert(cpu, node);
            }
        }
        let mut table = vec![CpuInfo::default(); online.iter().max()? + 1];
        for &cpu in &online {
            let folder = self.root.join(format!("cpu/cpu{cpu}"));
            let lowest = |path: PathBuf| {
                list(&path).and_then(|cpus| u32::try_from(*cpus.iter().min()?).ok())
            };
            let cache = |level: &str| {
                (0..8).map(|i| folder.join(format!("cache/index{i}"))).find_map(|index| {
                    let is = |file: &str| fs::read_to_string(index.join(file)).ok();
                    (is("level")?.trim() == level && is("type")?.trim() != "Instruction")
                        .then(|| lowest(index.join("shared_cpu_list")))?
                })
            };
            table[cpu] = CpuInfo {
                core: lowest(folder.join("topology/thread_siblings_list")),
                l1: cache("1"),
                l2: cache("2"),
                l3: cache("3"),
                numa: numa.get(&cpu).copied(),
                package: lowest(folder.join("topology/core_siblings_list")),
                allowed: true,
            };
        }
        Some(table)
    }
}

/// Reads a file with a list of CPUs such as `0-3,8`. Returns `None` if the file is missing or does not
/// contain such a list.
fn list(path: &Path) -> Option<Vec<usize>> {
    parse_list(&fs::read_to_string(path).ok()?)
}

fn parse_list(text: &str) -> Option<Vec<usize>> {
    let mut cpus = Vec::new();
    for part in text.trim().split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (first.parse::<usize>().ok()?, last.parse::<usize>().ok()?);
        if last >= MAX_CPUS {
            return None;
        }
        cpus.extend(first..=last);
    }
    (!cpus.is_empty()).then_some(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(feature = "hwloc")]
    #[test]
    fn a_synthetic_machine_becomes_a_table() {
        let table = Hwloc::synthetic("package:2 numa:2 l3:1 l2:2 l1:2 core:1 pu:2").table();
        let table = table.expect("hwloc returns a table");
        assert_eq!(table.len(), 2 * 2 * 4 * 2);
        let last = table[31];
        assert_eq!(
            last,
            CpuInfo {
                core: Some(15),
                l1: Some(15),
                l2: Some(7),
                l3: Some(3),
                numa: Some(3),
                package: Some(1),
                allowed: true,
            }
        );
        assert_eq!(table[0].core, table[1].core);
        assert_ne!(table[1].core, table[2].core);
        assert_eq!(table[7].numa, Some(0));
        assert_eq!(table[8].numa, Some(1));
    }

    #[test]
    fn this_machine_is_known_to_both_sources() {
        #[cfg(feature = "hwloc")]
        {
            let hwloc = Hwloc::of_this_machine().table().expect("hwloc works here");
            assert!(hwloc.iter().any(|cpu| cpu.allowed && cpu.core.is_some()));
        }
        let sysfs = Sysfs::default().table().expect("/sys is here");
        assert!(sysfs.iter().any(|cpu| cpu.core.is_some()));
    }

    #[test]
    fn allowed_is_cut_down() {
        let all =
            typepack_job::sys::process::allowed_cpus().expect("the affinity mask can be read");
        let one = all.iter().next().expect("at least one CPU is allowed");
        let table = discover(Some(&CpuSet::new(&[one])));
        let allowed: Vec<_> = (0..table.len()).filter(|&cpu| table[cpu].allowed).collect();
        assert_eq!(allowed, [one]);
    }

    #[test]
    fn lists() {
        assert_eq!(parse_list("0-2,5\n"), Some(vec![0, 1, 2, 5]));
        assert_eq!(parse_list("\n"), None);
        assert_eq!(parse_list("0-999999999"), None);
        assert_eq!(parse_list("a"), None);
    }
}
