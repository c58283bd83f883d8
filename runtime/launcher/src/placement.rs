//! Which rank runs where: a pure function of the topology table.
//!
//! After `topology.rs`, before `start.rs`, which turns the answer into affinity masks.
//!
//! Rules: one rank per core, on all of the core's allowed hardware threads, when there are enough
//! cores, else no binding at all. Ranks are dealt to NUMA nodes in consecutive blocks, in
//! proportion to the nodes' cores (every memory controller works, neighbours in rank order stay
//! neighbours), and within a node packed so that they share caches.

use typepack::shm::topology::CpuInfo;

/// A core that a rank may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Core {
    /// Its allowed CPUs, ascending; at least one.
    pub cpus: Vec<usize>,
    /// What is known of the first of them.
    pub info: CpuInfo,
}

/// The cores with at least one allowed CPU, nearest beside each other.
pub fn cores(table: &[CpuInfo]) -> Vec<Core> {
    let mut cores: Vec<Core> = Vec::new();
    for (cpu, &info) in table.iter().enumerate().filter(|(_, info)| info.allowed) {
        // An unknown core is a core of its own.
        let known =
            cores.iter_mut().find(|core| info.core.is_some() && core.info.core == info.core);
        match known {
            Some(core) => core.cpus.push(cpu),
            None => cores.push(Core { cpus: vec![cpu], info }),
        }
    }
    let key = |core: &Core| {
        let i = core.info;
        (i.package, i.numa, i.l3, i.l2, i.core, core.cpus[0])
    };
    cores.sort_by_key(key);
    cores
}

/// The core of each rank, `None` when there are fewer cores than ranks.
pub fn place(table: &[CpuInfo], ranks: usize) -> Option<Vec<Core>> {
    let cores = cores(table);
    if ranks == 0 || ranks > cores.len() {
        return None;
    }
    let mut placed = Vec::with_capacity(ranks);
    let mut before = 0;
    for node in
        cores.chunk_by(|a, b| (a.info.package, a.info.numa) == (b.info.package, b.info.numa))
    {
        // Rounded up, so that few ranks begin with the first node; the difference of two such
        // roundings never exceeds the node's cores.
        let share = |upto: usize| (ranks * upto).div_ceil(cores.len());
        let here = share(before + node.len()) - share(before);
        placed.extend_from_slice(&node[..here]);
        before += node.len();
    }
    Some(placed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::{Hwloc, Source};

    fn machine(description: &str) -> Vec<CpuInfo> {
        Hwloc::synthetic(description).table().expect("a table")
    }

    fn firsts(placed: &[Core]) -> Vec<usize> {
        placed.iter().map(|core| core.cpus[0]).collect()
    }

    #[test]
    fn a_full_machine_is_filled_in_order() {
        let table = machine("package:2 numa:2 core:4 pu:1");
        let placed = place(&table, 16).expect("fits");
        assert_eq!(firsts(&placed), (0..16).collect::<Vec<_>>());
    }

    #[test]
    fn few_ranks_use_all_nodes_in_consecutive_blocks() {
        // 2 packages, 4 NUMA nodes of 4 cores.
        let table = machine("package:2 numa:2 l3:1 core:4 pu:2");
        let nodes = |ranks| -> Vec<_> {
            let placed = place(&table, ranks).expect("fits");
            placed.iter().map(|core| core.info.numa.expect("known")).collect()
        };
        assert_eq!(nodes(1), [0]);
        assert_eq!(nodes(2), [0, 2]);
        assert_eq!(nodes(4), [0, 1, 2, 3]);
        assert_eq!(nodes(6), [0, 0, 1, 2, 2, 3]);
        assert_eq!(nodes(8), [0, 0, 1, 1, 2, 2, 3, 3]);
    }

    #[test]
    fn ranks_of_one_node_share_caches() {
        let table = machine("package:1 l3:2 core:4 pu:1");
        let placed = place(&table, 4).expect("fits");
        assert!(placed.iter().all(|core| core.info.l3 == Some(0)));
    }

    #[test]
    fn a_core_is_one_place_with_all_its_threads() {
        let table = machine("package:1 core:2 pu:2");
        let placed = place(&table, 2).expect("fits");
        assert_eq!(placed[0].cpus, [0, 1]);
        assert_eq!(placed[1].cpus, [2, 3]);
        assert!(place(&table, 3).is_none());
    }

    #[test]
    fn only_allowed_threads_count() {
        let mut table = machine("package:1 core:4 pu:2");
        for cpu in [0, 4, 5] {
            table[cpu].allowed = false;
        }
        let placed = place(&table, 3).expect("three cores are left");
        assert_eq!(
            placed.iter().map(|c| c.cpus.clone()).collect::<Vec<_>>(),
            [vec![1], vec![2, 3], vec![6, 7]]
        );
        assert!(place(&table, 4).is_none());
    }

    #[test]
    fn nodes_of_different_size_get_their_share() {
        let mut table = machine("package:2 core:4 pu:1");
        table[6].allowed = false;
        table[7].allowed = false;
        let placed = place(&table, 3).expect("fits");
        assert_eq!(firsts(&placed), [0, 1, 4]);
        for ranks in 1..=6 {
            let placed = place(&table, ranks).expect("fits");
            assert_eq!(placed.len(), ranks);
            let mut cpus = firsts(&placed);
            cpus.dedup();
            assert_eq!(cpus.len(), ranks);
        }
    }

    #[test]
    fn an_unknown_machine_still_has_cores() {
        let table = vec![CpuInfo { allowed: true, ..CpuInfo::default() }; 2];
        assert_eq!(firsts(&place(&table, 2).expect("fits")), [0, 1]);
        assert!(place(&[], 1).is_none());
    }
}
