//! Process sets: groups of the job's ranks that have names (MPI-5.0 section 11.3.2).
//!
//! The sets follow from the job's segment, so all ranks find the same sets without communication. `world.rs` returns
//! the sets to programs. Programs make communicators of the groups (`coll/create/intercommunicator.rs`).

use crate::comm::Group;
use crate::shm::segment::Segment;
use std::collections::BTreeMap;
use std::ops::Range;

/// A group of ranks with a name; see [`Universe::process_sets`](crate::Universe::process_sets).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProcessSet {
    /// The name, a URI.
    pub name: String,
    /// The ranks, in the order of their numbers in the world.
    pub group: Group,
}

impl ProcessSet {
    /// Returns whether the set has this name. As in other URIs of this kind, the case of ASCII letters has no meaning.
    pub fn is_named(&self, name: impl AsRef<[u8]>) -> bool {
        self.name.as_bytes().eq_ignore_ascii_case(name.as_ref())
    }
}

/// Returns the process sets of the ranks in the slots `world`, as the process in the slot `own` sees them. Without a
/// segment, the job has only this rank.
pub(crate) fn process_sets(
    world: Range<usize>,
    own: usize,
    segment: Option<&Segment>,
) -> Vec<ProcessSet> {
    let mut sets = vec![
        ProcessSet { name: "mpi://WORLD".into(), group: Group::of_slots(world.clone()) },
        ProcessSet { name: "mpi://SELF".into(), group: Group::single(own) },
    ];
    let Some(segment) = segment else { return sets };
    let program = |rank| segment.program(rank);
    // A rank is in a node if all CPUs on which the rank may run are in this node.
    let common = segment.common_parts();
    let node = |rank| segment.bound_parts(rank).unwrap_or(common).info.numa;
    let programs = divided(world.clone(), program);
    // If all ranks run the same program, its set would equal `mpi://WORLD`, so leave it out.
    if programs.len() > 1 {
        sets.extend(named("program", programs));
    }
    sets.extend(named("numa", divided(world, node)));
    sets
}

/// Divides the processes in `slots` by the numbers that `number` returns for them. One without a number is left out.
fn divided(slots: Range<usize>, number: impl Fn(usize) -> Option<u32>) -> BTreeMap<u32, Vec<i64>> {
    let mut sets = BTreeMap::<u32, Vec<i64>>::new();
    for rank in slots {
        if let Some(number) = number(rank) {
            sets.entry(number).or_default().push(rank as i64);
        }
    }
    sets
}

fn named(what: &'static str, sets: BTreeMap<u32, Vec<i64>>) -> impl Iterator<Item = ProcessSet> {
    sets.into_iter().filter_map(move |(number, ranks)| {
        let most = ranks.last().copied()?;
        let group = Group::of_slots(0..most as usize + 1).include(ranks).ok()?;
        Some(ProcessSet { name: format!("typepack://{what}/{number}"), group })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shm::segment::JobFlags;
    use crate::shm::topology::{CpuInfo, Level};
    use std::sync::atomic::Ordering;

    fn names(sets: &[ProcessSet]) -> Vec<(&str, Vec<usize>)> {
        let ranks = |set: &ProcessSet| {
            (0..set.group.size()).filter_map(|r| set.group.world_rank(r)).collect()
        };
        sets.iter().map(|set| (set.name.as_str(), ranks(set))).collect()
    }

    #[test]
    fn sets_follow_from_programs_and_nodes() {
        let cpus = [Some(1), None, Some(0)].map(|numa| CpuInfo { numa, ..CpuInfo::default() });
        let segment = Segment::create(4, &cpus, JobFlags::default(), 0).expect("a segment");
        for (rank, program, bound) in
            [(0, 1, Some(0)), (1, 1, Some(1)), (2, 2, None), (3, 2, Some(2))]
        {
            segment.slot(rank).program.store(program, Ordering::Relaxed);
            if let Some(cpu) = bound {
                segment.slot(rank).bind(cpu, Level::Core);
            }
        }
        let sets = process_sets(0..4, 2, Some(&segment));
        assert!(sets[1].is_named("mpi://self") && !sets[1].is_named("mpi://WORLD"));
        let wanted = [
            ("mpi://WORLD", vec![0, 1, 2, 3]),
            ("mpi://SELF", vec![2]),
            ("typepack://program/0", vec![0, 1]),
            ("typepack://program/1", vec![2, 3]),
            ("typepack://numa/0", vec![3]),
            ("typepack://numa/1", vec![0]),
        ];
        assert_eq!(names(&sets), wanted);
        let one = CpuInfo { numa: Some(5), allowed: true, ..CpuInfo::default() };
        let two = CpuInfo { numa: Some(6), ..one };
        for (cpus, node) in [([one, one], vec![0, 1, 2]), ([one, two], vec![1])] {
            let segment = Segment::create(3, &cpus, JobFlags::default(), 0).expect("a segment");
            // Only rank 1 is bound.
            segment.slot(1).bind(0, Level::Numa);
            let sets = process_sets(0..3, 0, Some(&segment));
            assert_eq!(names(&sets)[2..], [("typepack://numa/5", node)]);
        }
        for rank in 0..4 {
            segment.slot(rank).program.store(1, Ordering::Relaxed);
        }
        assert_eq!(process_sets(0..4, 2, Some(&segment)).len(), 4);
        assert_eq!(
            names(&process_sets(0..1, 0, None)),
            [("mpi://WORLD", vec![0]), ("mpi://SELF", vec![0])]
        );
    }
}
