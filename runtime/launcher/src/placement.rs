//! Chooses the cores of the ranks. The functions have no side effects: they use only the topology table and
//! the options.
//!
//! `topology.rs` makes the table. `core_reservation.rs` calls [`place`], and prevents two jobs from using the
//! same cores. `start.rs` turns the cores into affinity masks.
//!
//! Rules:
//! - If there are enough cores, each rank gets one core, that is, those hardware threads of the core that the
//!   job may use. Otherwise no rank is bound.
//! - Each NUMA node gets a block of consecutive ranks, in proportion to the number of its cores. So the job
//!   uses all memory controllers, and ranks with consecutive numbers are near each other. Within a node, the
//!   ranks get the first cores, so that they share caches.
//! - The command line can choose another order, and parts of the machine that are smaller or larger than a
//!   core. If ranks are bound to larger parts, each rank first gets a core, and may then run on the whole
//!   part that contains the core. In this case there may be more ranks than cores.
//! - A rank can get several cores, which lie in one NUMA node if there are enough such groups of cores.
//! - The user can name the CPUs of each rank. Then no other rule holds.

use std::collections::{BTreeMap, BTreeSet};

use typepack_job::shm::topology::{CpuInfo, Level};

use crate::args::Map;

/// A place to which a rank may be bound: a core, a hardware thread, or a larger part of the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Core {
    /// The CPUs of the place that the job may use, in ascending order. There is at least one.
    pub cpus: Vec<usize>,
    /// The row in the topology table of the first CPU of the core or hardware thread that was chosen for
    /// the rank. A larger part keeps the row of this core.
    pub info: CpuInfo,
}

/// The options of the command line about placement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The level of the parts to which ranks are bound.
    pub level: Level,
    /// The order in which parts of the machine get ranks.
    pub map: Map,
    /// Number of cores or hardware threads that each rank gets.
    pub width: usize,
}

impl Plan {
    /// Returns true if several ranks may share a part of the machine, so that there may be any number of
    /// ranks.
    pub fn is_shared(self) -> bool {
        self.level > Level::Core
    }
}

/// Returns the cores that have at least one allowed CPU. Cores that are near each other in the machine are
/// next to each other in the result.
pub fn cores(table: &[CpuInfo]) -> Vec<Core> {
    let mut cores: Vec<Core> = Vec::new();
    for (cpu, &info) in table.iter().enumerate().filter(|(_, info)| info.allowed) {
        // A CPU whose core is unknown counts as a core of its own.
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

/// Returns the places to which single ranks can be bound: the hardware threads if `level` is
/// [`Level::Thread`], and the cores otherwise. They are in the order of [`cores`].
pub fn units(table: &[CpuInfo], level: Level) -> Vec<Core> {
    let cores = cores(table);
    if level != Level::Thread {
        return cores;
    }
    let threads = cores.iter().flat_map(|core| &core.cpus);
    threads.map(|&cpu| Core { cpus: vec![cpu], info: table[cpu] }).collect()
}

/// Returns the number of parts of the machine at `level`, as far as this job may use them.
pub fn parts(table: &[CpuInfo], level: Level) -> usize {
    let units = units(table, level);
    if level <= Level::Core {
        return units.len();
    }
    let labels: BTreeSet<_> = units.iter().map(|unit| unit.info.part(level)).collect();
    labels.len()
}

/// Returns the cores or the hardware threads of each rank. Returns `None` if there are more ranks than cores or
/// threads and the plan does not let ranks share them. Also returns `None` if there is no rank or no core.
pub fn place(table: &[CpuInfo], ranks: usize, plan: Plan) -> Option<Vec<Core>> {
    let units = bundles(units(table, plan.level), plan.width, ranks);
    if ranks == 0 || units.is_empty() || ranks > units.len() && !plan.is_shared() {
        return None;
    }
    Some(match plan.map {
        Map::Blocks if ranks <= units.len() => blocks(&units, ranks),
        // There are more ranks than cores, so each core gets a block of consecutive ranks.
        Map::Blocks => (0..ranks).map(|rank| units[rank * units.len() / ranks].clone()).collect(),
        Map::Fill => (0..ranks).map(|rank| units[rank % units.len()].clone()).collect(),
        Map::InTurn(level) => {
            let units = in_turn(&units, level);
            (0..ranks).map(|rank| units[rank % units.len()].clone()).collect()
        }
        Map::PerPart { level, ranks: each } => {
            let units = per_part(&units, level, each, plan.is_shared())?;
            if ranks > units.len() && !plan.is_shared() {
                return None;
            }
            (0..ranks).map(|rank| units[rank % units.len()].clone()).collect()
        }
    })
}

/// Joins each `width` consecutive units to one. The units of one NUMA node are joined with each other, unless this
/// gives fewer than `ranks` places.
fn bundles(units: Vec<Core>, width: usize, ranks: usize) -> Vec<Core> {
    if width <= 1 {
        return units;
    }
    let join = |units: &[Core]| {
        let mut cpus: Vec<usize> = units.iter().flat_map(|unit| &unit.cpus).copied().collect();
        cpus.sort_unstable();
        Core { cpus, info: units[0].info }
    };
    let nodes = units.chunk_by(on_one_node);
    let near: Vec<Core> = nodes.flat_map(|node| node.chunks_exact(width).map(join)).collect();
    let all = units.chunks_exact(width);
    if near.len() >= ranks || near.len() == all.len() { near } else { all.map(join).collect() }
}

fn on_one_node(a: &Core, b: &Core) -> bool {
    (a.info.package, a.info.numa) == (b.info.package, b.info.numa)
}

/// Returns the first `each` units of each part at `level`, or of the machine if there is no level. If a part has fewer
/// units, its ranks share them, or the result is `None` if they must not.
fn per_part(
    units: &[Core],
    level: Option<Level>,
    each: usize,
    is_shared: bool,
) -> Option<Vec<Core>> {
    let is_one = |a: &Core, b: &Core| {
        level.is_none_or(|level| match level {
            Level::Thread => false,
            level => a.info.part(level).is_some_and(|part| b.info.part(level) == Some(part)),
        })
    };
    let mut placed = Vec::new();
    for part in units.chunk_by(is_one) {
        if each > part.len() && !is_shared {
            return None;
        }
        placed.extend((0..each).map(|rank| part[rank % part.len()].clone()));
    }
    Some(placed)
}

/// Returns the places of ranks whose CPUs the user names: each rank gets an entry of `lists`, and after the last entry
/// the first one again.
///
/// # Errors
/// Returns the number of a CPU that this job may not use.
pub fn listed(table: &[CpuInfo], ranks: usize, lists: &[Vec<usize>]) -> Result<Vec<Core>, usize> {
    let is_usable = |cpu: usize| table.get(cpu).is_some_and(|info| info.allowed);
    if let Some(&cpu) = lists.iter().flatten().find(|&&cpu| !is_usable(cpu)) {
        return Err(cpu);
    }
    let places = lists.iter().map(|cpus| Core { cpus: cpus.clone(), info: table[cpus[0]] });
    let places: Vec<Core> = places.collect();
    Ok((0..ranks).map(|rank| places[rank % places.len()].clone()).collect())
}

/// Returns the smallest part of the machine that contains all CPUs of a place: its level, or `None` if there is no such
/// part.
pub fn level_of(table: &[CpuInfo], place: &Core) -> Option<Level> {
    Level::ALL.into_iter().find(|&level| match level {
        Level::Thread => place.cpus.len() == 1,
        level => common(table, place, level).is_some(),
    })
}

/// Returns the number of the part at `level` that contains all CPUs of a place, or `None` if there is no such part.
pub fn common(table: &[CpuInfo], place: &Core, level: Level) -> Option<u32> {
    let part = table[place.cpus[0]].part(level)?;
    place.cpus.iter().all(|&cpu| table[cpu].part(level) == Some(part)).then_some(part)
}

/// Returns whether some of the ranks have fewer CPUs than there are such ranks.
pub fn is_crowded(placed: &[Core]) -> bool {
    let mut sets: BTreeMap<&[usize], usize> = BTreeMap::new();
    for place in placed {
        *sets.entry(&place.cpus).or_default() += 1;
    }
    sets.keys().any(|cpus| {
        let within = |set: &[usize]| set.iter().all(|cpu| cpus.contains(cpu));
        let ranks: usize = sets.iter().filter(|(set, _)| within(set)).map(|(_, ranks)| ranks).sum();
        ranks > cpus.len()
    })
}

fn blocks(units: &[Core], ranks: usize) -> Vec<Core> {
    let mut placed = Vec::with_capacity(ranks);
    let mut before = 0;
    for node in units.chunk_by(on_one_node) {
        // `share` returns how many ranks belong on the first `upto` cores. It rounds up, so that a single
        // rank goes to the first node. A node gets the difference between the share up to its last core and
        // the share before its first core. This difference never exceeds the number of the node's cores.
        let share = |upto: usize| (ranks * upto).div_ceil(units.len());
        let here = share(before + node.len()) - share(before);
        placed.extend_from_slice(&node[..here]);
        before += node.len();
    }
    placed
}

/// Returns all units (cores or hardware threads) in round-robin order: the first unit of each part at level
/// `level`, then the second unit of each part, and so on.
fn in_turn(units: &[Core], level: Level) -> Vec<Core> {
    let parts: Vec<&[Core]> =
        units.chunk_by(|a, b| a.info.part(level) == b.info.part(level)).collect();
    let longest = parts.iter().map(|part| part.len()).max().unwrap_or(0);
    let turns = (0..longest).flat_map(|turn| parts.iter().filter_map(move |part| part.get(turn)));
    turns.cloned().collect()
}

/// Returns the part at level `level` that contains `core`, with all allowed CPUs of the part.
pub fn widened(table: &[CpuInfo], core: &Core, level: Level) -> Core {
    let same = |info: &CpuInfo| info.allowed && info.part(level) == core.info.part(level);
    let cpus = table.iter().enumerate().filter(|(_, info)| same(info)).map(|(cpu, _)| cpu);
    Core { cpus: cpus.collect(), info: core.info }
}

// hwloc makes the imaginary machines of these tests.
#[cfg(all(test, feature = "hwloc"))]
mod tests {
    use typepack_job::shm::topology::{Distance, distance};

    use super::*;
    use crate::topology::{Hwloc, Source};

    fn machine(description: &str) -> Vec<CpuInfo> {
        Hwloc::synthetic(description).table().expect("hwloc returns a table")
    }

    /// Places `ranks` ranks with the default options.
    fn place(table: &[CpuInfo], ranks: usize) -> Option<Vec<Core>> {
        super::place(table, ranks, Plan { level: Level::Core, map: Map::Blocks, width: 1 })
    }

    fn placed(table: &[CpuInfo], ranks: usize, level: Level, map: Map) -> Option<Vec<usize>> {
        super::place(table, ranks, Plan { level, map, width: 1 }).map(|placed| firsts(&placed))
    }

    fn firsts(placed: &[Core]) -> Vec<usize> {
        placed.iter().map(|core| core.cpus[0]).collect()
    }

    #[test]
    fn a_full_machine_is_filled_in_order() {
        let table = machine("package:2 numa:2 core:4 pu:1");
        let placed = place(&table, 16).expect("the ranks fit");
        assert_eq!(firsts(&placed), (0..16).collect::<Vec<_>>());
    }

    #[test]
    fn few_ranks_use_all_nodes_in_consecutive_blocks() {
        // The machine has 2 packages with 2 NUMA nodes each. Each node has 4 cores.
        let table = machine("package:2 numa:2 l3:1 core:4 pu:2");
        let nodes = |ranks| -> Vec<_> {
            let placed = place(&table, ranks).expect("the ranks fit");
            placed.iter().map(|core| core.info.numa.expect("the node is known")).collect()
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
        let placed = place(&table, 4).expect("the ranks fit");
        assert!(placed.iter().all(|core| core.info.l3 == Some(0)));
    }

    /// Checks, for several kinds of machines, how far apart the cores of ranks with consecutive numbers are.
    /// Ranks choose their protocols by these distances.
    #[test]
    fn neighbours_are_as_near_as_the_machine_lets_them() {
        use Distance::{Core, L2, L3, Machine, Numa, Package};
        let steps = |table: &[CpuInfo], ranks, level| -> Vec<Distance> {
            let placed = super::place(table, ranks, Plan { level, map: Map::Blocks, width: 1 });
            let placed = placed.expect("the ranks fit");
            placed.windows(2).map(|pair| distance(&pair[0].info, &pair[1].info)).collect()
        };
        // The machine has 2 packages with 2 NUMA nodes each. Each node has 4 cores with a common level 3
        // cache.
        let large = machine("package:2 numa:2 l3:1 core:4 pu:2");
        assert_eq!(steps(&large, 4, Level::Core), [Package, Machine, Package]);
        assert_eq!(steps(&large, 8, Level::Core), [L3, Package, L3, Machine, L3, Package, L3]);
        assert_eq!(steps(&large, 16, Level::Core)[..4], [L3, L3, L3, Package]);
        assert_eq!(steps(&large, 32, Level::Thread)[..3], [Core, L3, Core]);
        // The machine has one NUMA node with two level 3 caches. Each pair of cores shares a level 2 cache.
        let mixed = machine("package:1 numa:1 l3:2 l2:2 core:2 pu:1");
        assert_eq!(steps(&mixed, 8, Level::Core), [L2, L3, L2, Numa, L2, L3, L2]);
        // The same node, but only every second core is allowed, so no two allowed cores share a level 2
        // cache.
        let mut half = mixed.clone();
        half.iter_mut().step_by(2).for_each(|cpu| cpu.allowed = false);
        assert_eq!(steps(&half, 4, Level::Core), [L3, Numa, L3]);
        // A hybrid chip: each large core has its own level 2 cache, and the small cores share one level 2
        // cache.
        let mut hybrid = machine("package:1 l3:1 l2:4 core:1 pu:1");
        for cpu in &mut hybrid[2..] {
            cpu.l2 = Some(2);
        }
        assert_eq!(steps(&hybrid, 4, Level::Core), [L3, L3, L2]);
        // First a machine whose caches are unknown, then a machine about which nothing is known.
        let plain = machine("package:1 numa:2 core:2 pu:1");
        assert_eq!(steps(&plain, 4, Level::Core), [Numa, Package, Numa]);
        let unknown = vec![CpuInfo { allowed: true, ..CpuInfo::default() }; 2];
        assert_eq!(steps(&unknown, 2, Level::Core), [Machine]);
    }

    #[test]
    fn a_core_is_one_place_with_all_its_threads() {
        let table = machine("package:1 core:2 pu:2");
        let placed = place(&table, 2).expect("the ranks fit");
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
        let placed = place(&table, 3).expect("the ranks fit");
        assert_eq!(firsts(&placed), [0, 1, 4]);
        for ranks in 1..=6 {
            let placed = place(&table, ranks).expect("the ranks fit");
            assert_eq!(placed.len(), ranks);
            let mut cpus = firsts(&placed);
            cpus.dedup();
            assert_eq!(cpus.len(), ranks);
        }
    }

    #[test]
    fn an_unknown_machine_still_has_cores() {
        let table = vec![CpuInfo { allowed: true, ..CpuInfo::default() }; 2];
        assert_eq!(firsts(&place(&table, 2).expect("the ranks fit")), [0, 1]);
        assert!(place(&[], 1).is_none());
    }

    #[test]
    fn other_orders() {
        // The machine has 2 packages with 2 NUMA nodes each. Each node has 2 cores with 2 hardware threads
        // each.
        let table = machine("package:2 numa:2 l3:1 core:2 pu:2");
        let core = |ranks, map| placed(&table, ranks, Level::Core, map).expect("the ranks fit");
        assert_eq!(core(3, Map::Fill), [0, 2, 4]);
        assert_eq!(core(4, Map::InTurn(Level::Package)), [0, 8, 2, 10]);
        assert_eq!(core(6, Map::InTurn(Level::Numa)), [0, 4, 8, 12, 2, 6]);
        assert_eq!(placed(&table, 3, Level::Thread, Map::Fill), Some(vec![0, 1, 2]));
        let threads = placed(&table, 16, Level::Thread, Map::Blocks).expect("the ranks fit");
        assert_eq!(threads, (0..16).collect::<Vec<_>>());
        assert_eq!(placed(&table, 17, Level::Thread, Map::Blocks), None);
    }

    #[test]
    fn parts_of_different_size_take_their_turns() {
        let mut table = machine("package:2 core:3 pu:1");
        table[4].allowed = false;
        table[5].allowed = false;
        let ranks = placed(&table, 4, Level::Core, Map::InTurn(Level::Package));
        assert_eq!(ranks, Some(vec![0, 3, 1, 2]));
    }

    #[test]
    fn a_number_of_ranks_per_part() {
        // The machine has 2 packages with 2 NUMA nodes each. Each node has 2 cores with 2 hardware threads each.
        let table = machine("package:2 numa:2 l3:1 core:2 pu:2");
        let per = |level, ranks| Map::PerPart { level, ranks };
        let core = |ranks, map| placed(&table, ranks, Level::Core, map);
        assert_eq!(core(4, per(Some(Level::Package), 2)), Some(vec![0, 2, 8, 10]));
        assert_eq!(core(4, per(Some(Level::Numa), 1)), Some(vec![0, 4, 8, 12]));
        assert_eq!(core(3, per(None, 3)), Some(vec![0, 2, 4]));
        assert_eq!(core(8, per(Some(Level::Core), 1)), core(8, Map::Fill));
        // Two ranks for each core fit only if each rank gets a hardware thread.
        assert_eq!(core(16, per(Some(Level::Core), 2)), None);
        let threads = placed(&table, 16, Level::Thread, per(Some(Level::Core), 2));
        assert_eq!(threads, Some((0..16).collect()));
        assert_eq!(
            placed(&table, 3, Level::Thread, per(Some(Level::Core), 1)),
            Some(vec![0, 2, 4])
        );
        // Ranks that are bound to larger parts share them.
        let shared = placed(&table, 12, Level::Numa, per(Some(Level::Numa), 3));
        assert_eq!(shared, Some(vec![0, 2, 0, 4, 6, 4, 8, 10, 8, 12, 14, 12]));
        // The user asks for more ranks than the parts get.
        assert_eq!(core(5, per(Some(Level::Numa), 1)), None);
        let count = |level| parts(&table, level);
        assert_eq!(
            [Level::Thread, Level::Core, Level::L3, Level::Package].map(count),
            [16, 8, 4, 2]
        );
    }

    #[test]
    fn several_cores_for_each_rank() {
        let table = machine("package:2 numa:1 core:3 pu:2");
        let wide = |ranks, map, width| {
            let placed = super::place(&table, ranks, Plan { level: Level::Core, map, width })?;
            Some(placed.into_iter().map(|place| place.cpus).collect::<Vec<_>>())
        };
        // Each package has room for one rank with two cores. Three ranks need a core of each package.
        let near = vec![vec![0, 1, 2, 3], vec![6, 7, 8, 9]];
        assert_eq!(wide(2, Map::Fill, 2), Some(near.clone()));
        assert_eq!(wide(2, Map::Blocks, 2), Some(near));
        let all = vec![vec![0, 1, 2, 3], vec![4, 5, 6, 7], vec![8, 9, 10, 11]];
        assert_eq!(wide(3, Map::Fill, 2), Some(all));
        assert_eq!(wide(1, Map::Fill, 6).map(|ranks| ranks[0].len()), Some(12));
        assert_eq!(wide(4, Map::Fill, 2), None);
        assert_eq!(wide(1, Map::Fill, 7), None);
        let of =
            |cpus: &[usize]| level_of(&table, &Core { cpus: cpus.into(), info: table[cpus[0]] });
        assert_eq!(of(&[1]), Some(Level::Thread));
        assert_eq!(of(&[0, 1]), Some(Level::Core));
        assert_eq!(of(&[0, 1, 2, 3]), Some(Level::Numa));
        assert_eq!(of(&[4, 5, 6, 7]), None);
    }

    #[test]
    fn cpus_that_the_user_names() {
        let mut table = machine("package:1 core:4 pu:1");
        table[3].allowed = false;
        let lists = [vec![0], vec![1, 2]];
        let places = listed(&table, 3, &lists).expect("the CPUs are usable");
        assert_eq!(
            places.iter().map(|place| place.cpus.clone()).collect::<Vec<_>>(),
            [vec![0], vec![1, 2], vec![0]]
        );
        assert!(is_crowded(&places) && !is_crowded(&places[..2]));
        assert_eq!(listed(&table, 1, &[vec![0], vec![3]]), Err(3));
        assert_eq!(listed(&table, 1, &[vec![9]]), Err(9));
    }

    #[test]
    fn larger_parts_are_shared() {
        let table = machine("package:2 numa:1 core:2 pu:2");
        let nodes = |ranks, map| -> Vec<_> {
            let plan = Plan { level: Level::Package, map, width: 1 };
            let placed = super::place(&table, ranks, plan).expect("any number fits");
            placed.iter().map(|core| core.info.package.expect("the package is known")).collect()
        };
        assert_eq!(nodes(8, Map::Blocks), [0, 0, 0, 0, 1, 1, 1, 1]);
        assert_eq!(nodes(6, Map::InTurn(Level::Package)), [0, 1, 0, 1, 0, 1]);
        let core = &cores(&table)[2];
        assert_eq!(widened(&table, core, Level::Package).cpus, [4, 5, 6, 7]);
        assert_eq!(widened(&table, core, Level::Core).cpus, [4, 5]);
    }
}
