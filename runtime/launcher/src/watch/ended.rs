//! Clears away what is left of worlds whose ranks have all ended: their cores, ports and requests at once, and their
//! processes, descriptors and numbers when no process runs in their groups. So a job that starts one world after another
//! holds nothing for those that have ended, except their slots, which no later world gets (`shm/layout.rs`).
//!
//! `mod.rs` calls [`Job::clear_worlds`] in each turn, and [`Job::end_groups`] when all ranks of the job have ended.
//!
//! A process that a rank has left behind may go on if the world has not failed. If the world has failed, it gets the
//! signals of the state machine (`ending.rs`), and mpiexec keeps the children as zombies meanwhile, so that the kernel
//! gives the number of their group to no other process.

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use typepack_job::sys::channel;
use typepack_job::sys::process::{self, Child};

use super::{Job, World};
use crate::start;

/// Interval at which mpiexec checks whether processes remain in the process groups of ranks that have ended.
const GROUP_POLL: Duration = Duration::from_millis(5);

/// The same interval while ranks of other worlds run. The check reads `/proc`.
const OTHERS_POLL: Duration = Duration::from_millis(50);

/// How long mpiexec waits, after SIGKILL, for the remaining processes in the process groups of the ranks to
/// end. It does not wait for ever, because a process may be stuck in the kernel.
const KILLED_DELAY: Duration = Duration::from_millis(500);

/// What is left of a world after all its ranks have ended.
#[derive(Debug, Default)]
pub(super) struct Left {
    /// When mpiexec looks again whether a process of the world runs; `None` if it need not look.
    look: Option<Instant>,
    /// When mpiexec stops waiting for processes that it has killed.
    give_up: Option<Instant>,
    /// True if nothing is left.
    is_cleared: bool,
}

impl Left {
    /// Returns when [`Job::clear_worlds`] must be called for this world, or `None` if no call is due.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.look
    }

    /// Returns true if nothing is left of the world.
    pub(super) fn is_cleared(&self) -> bool {
        self.is_cleared
    }
}

impl Job<'_> {
    /// Forgets what ranks that have ended hold. If other worlds go on, tells why a world has ended.
    pub(super) fn clear_worlds(&mut self, now: Instant) {
        let mut has_ended = false;
        for number in 0..self.worlds.len() {
            let world = &self.worlds[number];
            if world.left.is_cleared || !self.is_over(world) {
                continue;
            }
            if self.worlds[number].cores.take().is_some() {
                has_ended = true;
                let goes_on = |world: &World| !self.is_over(world) && !world.end.is_ending();
                if self.decided.contains(&number) && self.worlds.iter().any(goes_on) {
                    self.tell_outcome(number);
                }
            }
            self.clear_world(number, now);
        }
        self.clear_ports();
        self.clear_leaving();
        if has_ended {
            self.remove_refused_worlds();
            self.count_ranks();
        }
    }

    /// Removes the processes and descriptors of a world whose ranks have all ended, unless a process still runs that must
    /// end. If no other world runs, leaves that to [`Job::end_groups`].
    fn clear_world(&mut self, number: usize, now: Instant) {
        let world = &self.worlds[number];
        let is_natural = world.end.is_natural();
        if !is_natural {
            if world.left.look.is_some_and(|at| now < at)
                || self.worlds.iter().all(|w| self.is_over(w))
            {
                return;
            }
            let (is_killing, runs) = (world.end.is_killing(), self.groups_run(world));
            let left = &mut self.worlds[number].left;
            let gives_up = is_killing && *left.give_up.get_or_insert(now + KILLED_DELAY) <= now;
            left.look = Some(now + OTHERS_POLL).filter(|_| runs && !gives_up);
            if left.look.is_some() {
                return;
            }
        }
        for slot in self.worlds[number].slots.clone() {
            let watched = &mut self.ranks[slot];
            if let Some(process) = watched.process.take() {
                release(&process, is_natural);
            }
            watched.member = None;
        }
        self.worlds[number].left.is_cleared = true;
        // Ranks that have finalized without freeing their communicators connect nothing.
        self.bonds.forget(number, |slot| self.ranks[slot].world);
    }

    /// Tells the ranks whether they are more than the CPUs, or share CPUs.
    pub(super) fn count_ranks(&self) {
        let running = self.ranks.iter().filter(|watched| !watched.is_gone()).count();
        let shares = |world: &World| world.shares_cores && world.cores.is_some();
        let is_crowded = running > start::usable_cpus(self.machine.table);
        self.segment.set_oversubscribed(is_crowded || self.worlds.iter().any(shares));
    }

    /// Deals with the process groups after all ranks have ended. If a world failed, waits until the processes
    /// that remain in its groups have ended, and kills them when the grace time is over. If a world did not
    /// fail, such processes may go on running.
    pub(super) fn end_groups(&mut self) {
        self.input.close();
        self.release_all(true);
        loop {
            let now = Instant::now();
            // mpiexec may have killed a world some time ago, and has waited for its processes since then.
            let mut waits = false;
            for number in 0..self.worlds.len() {
                let world = &self.worlds[number];
                if !world.end.is_natural() && self.groups_run(world) {
                    let is_killing = world.end.is_killing();
                    let give_up = &mut self.worlds[number].left.give_up;
                    waits |= !is_killing || *give_up.get_or_insert(now + KILLED_DELAY) > now;
                }
            }
            if !waits {
                break;
            }
            self.turn_ended(Some(now + GROUP_POLL), now);
            let now = Instant::now();
            self.decide_all(|end| end.tick(now));
        }
        // Until now the kernel has given the numbers of the groups of failed worlds to no other process.
        self.groups_ended = true;
        self.release_all(false);
    }

    /// Releases the processes of the worlds that have not failed, or of those that have.
    fn release_all(&mut self, is_natural: bool) {
        for watched in &mut self.ranks {
            if self.worlds[watched.world].end.is_natural() == is_natural
                && let Some(process) = watched.process.take()
            {
                release(&process, is_natural);
            }
        }
    }

    /// Returns true if a process runs in the group of any rank of a world that is not cleared. As long as a group has
    /// processes, the kernel does not reuse the group's id.
    fn groups_run(&self, world: &World) -> bool {
        let ranks =
            self.ranks[world.slots.clone()].iter().filter(|watched| watched.process.is_some());
        process::any_group_runs(ranks.filter_map(|watched| watched.pid))
    }
}

/// Removes a process that has ended from the table of processes. If its world has not failed, lets live what the process
/// has left behind: it must not be killed when mpiexec closes the control socket.
fn release(process: &start::Started, is_natural: bool) {
    if is_natural {
        // This call never fails for an open descriptor.
        let _ = process.lifeline.as_ref().map(|lifeline| channel::disarm(lifeline.as_fd()));
    }
    // mpiexec has the exit code of the child already, so the result of `reap` is not needed.
    let _ = process.child.as_ref().map(Child::reap);
}
