//! Reserves cores for this job, so that two typepack jobs on one machine do not bind ranks to the same core.
//!
//! `placement.rs` chooses cores, this file reserves them, and `start.rs` binds the ranks to them. Without
//! reservations, two jobs would both bind their first rank to the first core, and the two ranks would share
//! that core while other cores are idle. A reservation is a lock on a name that contains the number of the
//! core (`sys/name_lock.rs`). The kernel releases the lock when mpiexec ends.
//!
//! Only jobs of the same user take cores away from each other. Any user can claim every core, also without a
//! job. So this job avoids cores that other users claim as long as enough other cores are free, and otherwise
//! uses them as if there were no such claims.

use std::collections::BTreeSet;

use typepack_job::shm::topology::CpuInfo;
use typepack_job::sys::name_lock::{self, Claim, NameLock};

use crate::placement::{Core, Plan, place, widened};

/// The cores of a job's ranks. They stay reserved until this value is dropped.
#[derive(Debug, Default)]
pub struct Reservation {
    /// The cores to which the ranks are bound, indexed by rank, or `None` if the ranks are not bound.
    pub cores: Option<Vec<Core>>,
    /// True if another job of this user held a core that was chosen for this job at first, even if this job then
    /// got other cores.
    pub crowded: bool,
    /// True if this job has reserved the cores of all its ranks, and no other job or user claims any of them.
    pub exclusive: bool,
    locks: Vec<(usize, NameLock)>,
}

/// Reserves the cores that the user has named for the ranks, as far as nobody else has reserved them.
pub fn reserve_listed(table: &[CpuInfo], cores: Vec<Core>) -> Reservation {
    listed_with(table, cores, lock_core)
}

fn listed_with(
    table: &[CpuInfo],
    cores: Vec<Core>,
    mut lock: impl FnMut(usize) -> Answer,
) -> Reservation {
    let mut reserved = Reservation { exclusive: true, ..Reservation::default() };
    let names: BTreeSet<usize> = cores.iter().flat_map(|core| names_of(table, core)).collect();
    for name in names {
        match lock(name) {
            Answer::Ours(lock) => reserved.locks.push((name, lock)),
            Answer::Shared(lock) => {
                reserved.locks.push((name, lock));
                reserved.exclusive = false;
            }
            Answer::Unknown => reserved.exclusive = false,
            Answer::Taken => {
                reserved.crowded = true;
                reserved.exclusive = false;
            }
        }
    }
    reserved.cores = Some(cores);
    reserved
}

/// Tries to place `ranks` ranks on cores that no other job of this user has reserved, and to reserve
/// these cores. If too few cores are free, no core is reserved. The ranks are then not bound, unless
/// `plan` lets several ranks share a part of the machine.
pub fn place_and_reserve(table: &[CpuInfo], ranks: usize, plan: Plan) -> Reservation {
    place_with(table, ranks, plan, lock_core)
}

/// Tries to reserve the core with the number `cpu` ([`name_of`]).
fn lock_core(cpu: usize) -> Answer {
    match name_lock::lock(&format!("typepack-cpu-{cpu}")) {
        Ok(Claim::Alone(lock)) => Answer::Ours(lock),
        Ok(Claim::BesideOthers(lock)) => Answer::Shared(lock),
        Ok(Claim::Taken) => Answer::Taken,
        // If the lock cannot be made at all, this job cannot find out which cores other jobs have reserved.
        // So it binds its ranks as if there were no other jobs.
        Err(_) => Answer::Unknown,
    }
}

/// Widens the binding of each rank from a core to the larger part of the machine that the plan asks for. If
/// too few cores were free, this function first places the ranks on all cores, reserved or not, because
/// several ranks may share a larger part.
fn shared(table: &[CpuInfo], ranks: usize, plan: Plan, mut reserved: Reservation) -> Reservation {
    let cores = reserved.cores.take().or_else(|| place(table, ranks, plan));
    reserved.cores =
        cores.map(|cores| cores.iter().map(|core| widened(table, core, plan.level)).collect());
    reserved
}

enum Answer {
    /// This job has reserved the core.
    Ours(NameLock),
    /// This job has reserved the core, which another user claims too.
    Shared(NameLock),
    /// Another job of this user has reserved the core.
    Taken,
    /// No reservation is possible.
    Unknown,
}

/// How a job treats cores that other users claim.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Others {
    Avoid,
    Ignore,
}

/// Does the work of [`place_and_reserve`]. The function `lock` gets the number of a core ([`name_of`])
/// and tries to reserve that core.
fn place_with(
    table: &[CpuInfo],
    ranks: usize,
    plan: Plan,
    mut lock: impl FnMut(usize) -> Answer,
) -> Reservation {
    let mut reserved = reserve_cores(table, ranks, plan, Others::Avoid, &mut lock);
    if reserved.cores.is_none() {
        reserved = reserve_cores(table, ranks, plan, Others::Ignore, &mut lock);
    }
    if plan.is_shared() { shared(table, ranks, plan, reserved) } else { reserved }
}

/// Chooses cores for the ranks and reserves them. If another job of this user holds one of the chosen cores,
/// or if another user claims it and `others` is [`Others::Avoid`], the function removes that core from its
/// copy of the table and places all ranks again on the remaining cores. It repeats this until it has reserved
/// all chosen cores or too few cores remain; in the second case it reserves no core. The loop ends, because
/// each repetition starts with fewer cores.
fn reserve_cores(
    table: &[CpuInfo],
    ranks: usize,
    plan: Plan,
    others: Others,
    lock: &mut impl FnMut(usize) -> Answer,
) -> Reservation {
    let mut free = table.to_vec();
    let mut reserved = Reservation::default();
    // The cores of this job that another job may use, too.
    let mut uncertain = Vec::new();
    while let Some(cores) = place(&free, ranks, plan) {
        // If the ranks may share parts and there are fewer free cores than ranks, not every rank can have its
        // own core. Stop in this case and reserve no core.
        if plan.is_shared() && crate::placement::cores(&free).len() < ranks * plan.width {
            break;
        }
        let names: BTreeSet<usize> = cores.iter().flat_map(|core| names_of(table, core)).collect();
        let taken = names.iter().copied().find(|&name| {
            if uncertain.contains(&name) || reserved.locks.iter().any(|(held, _)| *held == name) {
                return false;
            }
            match lock(name) {
                Answer::Ours(lock) => reserved.locks.push((name, lock)),
                Answer::Shared(_) if others == Others::Avoid => return true,
                Answer::Shared(lock) => {
                    reserved.locks.push((name, lock));
                    uncertain.push(name);
                }
                Answer::Unknown => uncertain.push(name),
                Answer::Taken => {
                    reserved.crowded = true;
                    return true;
                }
            }
            false
        });
        let Some(taken) = taken else {
            reserved.locks.retain(|(held, _)| names.contains(held));
            reserved.exclusive = !names.iter().any(|name| uncertain.contains(name));
            reserved.cores = Some(cores);
            return reserved;
        };
        for (cpu, info) in free.iter_mut().enumerate() {
            // Remove the whole core, even if only one of its threads was chosen.
            info.allowed &= name_of(table, cpu) != taken;
        }
    }
    reserved.locks.clear();
    reserved
}

/// Returns the numbers of the cores to which a place belongs.
fn names_of(table: &[CpuInfo], place: &Core) -> BTreeSet<usize> {
    place.cpus.iter().map(|&cpu| name_of(table, cpu)).collect()
}

/// Returns the number under which all jobs reserve the core of a CPU: the lowest CPU of the core. The lowest CPU counts
/// even if this job may not use it, so that jobs with different allowed CPUs get the same number.
fn name_of(table: &[CpuInfo], cpu: usize) -> usize {
    let core = table[cpu].core;
    let same = |info: &CpuInfo| info.core.is_some() && info.core == core;
    table.iter().position(same).unwrap_or(cpu)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Map;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use typepack_job::shm::topology::Level;

    const CORES: Plan = Plan { level: Level::Core, map: Map::Blocks, width: 1 };

    fn machine(cores: u32) -> Vec<CpuInfo> {
        let cpu = |n| CpuInfo { core: Some(n / 2), allowed: true, ..CpuInfo::default() };
        (0..cores * 2).map(cpu).collect()
    }

    fn firsts(reserved: &Reservation) -> Option<Vec<usize>> {
        reserved.cores.as_ref().map(|cores| cores.iter().map(|core| core.cpus[0]).collect())
    }

    fn with_taken(ranks: usize, taken: &[usize]) -> Reservation {
        planned(ranks, taken, CORES)
    }

    fn planned(ranks: usize, taken: &[usize], plan: Plan) -> Reservation {
        place_with(&machine(4), ranks, plan, |cpu| {
            if taken.contains(&cpu) { Answer::Taken } else { Answer::Ours(some_lock()) }
        })
    }

    /// Returns a lock on a name that only this test uses.
    fn some_lock() -> NameLock {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("typepack-test-core-{}-{number}", std::process::id());
        match name_lock::lock(&name).expect("the system has sockets") {
            Claim::Alone(lock) => lock,
            other => panic!("{other:?}"),
        }
    }

    /// Checks that the claims of other users move a job to other cores, but deny the job no core.
    #[test]
    fn other_users_deny_no_core() {
        let with = |ranks, claimed: &[usize]| {
            place_with(&machine(4), ranks, CORES, |cpu| {
                let lock = some_lock();
                if claimed.contains(&cpu) { Answer::Shared(lock) } else { Answer::Ours(lock) }
            })
        };
        for (ranks, claimed, cores, exclusive) in [
            (2, &[0][..], vec![2, 4], true),
            (3, &[0, 4], vec![0, 2, 4], false),
            (4, &[0, 2, 4, 6], vec![0, 2, 4, 6], false),
        ] {
            let reserved = with(ranks, claimed);
            assert_eq!(firsts(&reserved), Some(cores), "{claimed:?}");
            assert_eq!((reserved.crowded, reserved.exclusive), (false, exclusive), "{claimed:?}");
            assert_eq!(reserved.locks.len(), ranks);
        }
    }

    /// Whoever takes all names of cores before a job, which any process may do, ends no job. A job whose user holds them
    /// already runs without binding; if another user does, or if there are no names, the job is bound as if nobody did.
    #[test]
    fn whoever_takes_all_names_first_stops_no_job() {
        let all = |answer: fn() -> Answer| place_with(&machine(4), 2, CORES, |_| answer());
        let taken = all(|| Answer::Taken);
        assert_eq!((firsts(&taken), taken.crowded, taken.locks.len()), (None, true, 0));
        for answer in [|| Answer::Shared(some_lock()), || Answer::Unknown] {
            let bound = all(answer);
            assert_eq!((firsts(&bound), bound.crowded), (Some(vec![0, 2]), false));
            assert!(!bound.exclusive);
        }
        // The cores that the user has named are not asked for: the job is bound to them in each case.
        let cores = || vec![Core { cpus: vec![0], info: machine(1)[0] }];
        for answer in [|| Answer::Taken, || Answer::Shared(some_lock()), || Answer::Unknown] {
            let listed = listed_with(&machine(4), cores(), |_| answer());
            assert_eq!((firsts(&listed), listed.exclusive), (Some(vec![0]), false));
        }
    }

    /// Checks that ranks are bound where no reservation can be made, but that their cores do not count as
    /// exclusive.
    #[test]
    fn without_locks_nothing_is_exclusive() {
        let reserved = place_with(&machine(4), 2, CORES, |_| Answer::Unknown);
        assert_eq!(firsts(&reserved), Some(vec![0, 2]));
        assert_eq!((reserved.crowded, reserved.exclusive), (false, false));
    }

    #[test]
    fn a_job_moves_out_of_the_way_of_another() {
        let reserved = with_taken(2, &[0]);
        assert_eq!((firsts(&reserved), reserved.crowded), (Some(vec![2, 4]), true));
        assert_eq!(firsts(&with_taken(4, &[])), Some(vec![0, 2, 4, 6]));
        assert!(!with_taken(4, &[]).crowded);
    }

    #[test]
    fn a_job_that_does_not_fit_the_rest_is_not_bound() {
        let reserved = with_taken(3, &[2, 4]);
        assert_eq!((firsts(&reserved), reserved.crowded), (None, true));
        assert!(!with_taken(5, &[]).crowded, "a job larger than the machine counts as crowded");
    }

    #[test]
    fn a_core_has_one_name_for_all() {
        let mut table = machine(2);
        table[0].allowed = false;
        let core = Core { cpus: vec![1], info: table[1] };
        assert_eq!(names_of(&table, &core), [0].into());
    }

    #[test]
    fn threads_of_one_core_are_claimed_as_one() {
        let threads = Plan { level: Level::Thread, map: Map::Fill, width: 1 };
        let reserved = planned(4, &[], threads);
        assert_eq!(firsts(&reserved), Some(vec![0, 1, 2, 3]));
        let reserved = planned(3, &[0], threads);
        assert_eq!((firsts(&reserved), reserved.exclusive), (Some(vec![2, 3, 4]), true));
        assert_eq!(firsts(&planned(7, &[0], threads)), None);
    }

    /// A rank with several cores reserves all of them.
    #[test]
    fn wide_places_are_reserved_as_a_whole() {
        let wide = Plan { level: Level::Core, map: Map::Fill, width: 2 };
        let reserved = planned(2, &[], wide);
        assert_eq!((firsts(&reserved), reserved.locks.len()), (Some(vec![0, 4]), 4));
        let reserved = planned(1, &[2], wide);
        assert_eq!((firsts(&reserved), reserved.crowded), (Some(vec![0]), true));
        assert_eq!(reserved.cores.expect("bound")[0].cpus, [0, 1, 4, 5]);
        assert_eq!(firsts(&planned(2, &[2], wide)), None);
    }

    /// The CPUs that the user names are used, also if another job holds them.
    #[test]
    fn listed_cores_are_used_in_any_case() {
        let table = machine(2);
        let cores =
            vec![Core { cpus: vec![0], info: table[0] }, Core { cpus: vec![2, 3], info: table[2] }];
        for (taken, crowded) in [(9, false), (2, true)] {
            let reserved = listed_with(&table, cores.clone(), |cpu| {
                if cpu == taken { Answer::Taken } else { Answer::Ours(some_lock()) }
            });
            assert_eq!(firsts(&reserved), Some(vec![0, 2]));
            assert_eq!((reserved.crowded, reserved.exclusive), (crowded, !crowded));
        }
    }

    #[test]
    fn larger_parts_are_bound_to_in_any_case() {
        let nodes = Plan { level: Level::Numa, map: Map::Blocks, width: 1 };
        for (ranks, taken, exclusive) in
            [(2, &[][..], true), (2, &[0], true), (4, &[2], false), (9, &[], false)]
        {
            let reserved = planned(ranks, taken, nodes);
            let cores = reserved.cores.expect("the ranks are bound");
            assert_eq!((cores.len(), reserved.exclusive), (ranks, exclusive), "{ranks} {taken:?}");
            assert!(cores.iter().all(|core| core.cpus == [0, 1, 2, 3, 4, 5, 6, 7]));
        }
    }
}
