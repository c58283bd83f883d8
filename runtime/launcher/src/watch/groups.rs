//! Signals to the processes of ranks, and the end of their process groups.
//!
//! `mod.rs` and `deaths.rs` decide when a world gets which signal. When all ranks have ended, `mod.rs` calls
//! [`Job::end_groups`], after which mpiexec no longer uses the ids of the groups.

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::process::Pid;
use typepack_job::sys::process::{self, Child};
use typepack_job::sys::{channel, inspect};

use super::{Job, World};

/// Interval at which mpiexec checks whether processes remain in the process groups of ranks that have ended.
const GROUP_POLL: Duration = Duration::from_millis(5);

/// How long mpiexec waits, after SIGKILL, for the remaining processes in the process groups of the ranks to
/// end. It does not wait for ever, because a process may be stuck in the kernel.
const KILLED_DELAY: Duration = Duration::from_millis(500);

impl Job<'_> {
    /// Sends `signal` to the processes of all worlds.
    pub(super) fn signal_all(&self, signal: i32) {
        (0..self.worlds.len()).for_each(|number| self.signal_world(number, signal));
    }

    /// Sends `signal` to the process groups of all ranks of a world, and to its members outside these groups.
    pub(super) fn signal_world(&self, number: usize, signal: i32) {
        if self.groups_ended {
            return;
        }
        for watched in &self.ranks[self.worlds[number].slots.clone()] {
            // Ignore errors: sending fails only if the processes run as another user, and mpiexec can do
            // nothing about that.
            if let Some(child) = &watched.rank.child {
                let _ = process::signal_group(child.pid(), signal);
            }
            match &watched.member {
                // The member may be in another process group, made by itself or by a wrapper.
                Some(member) if !member.gone && watched.is_wrapped() => {
                    let _ = process::signal_process(member.pidfd.as_fd(), signal);
                }
                _ => {}
            }
        }
    }

    /// Sends `signal` to the ranks whose processes handle it, so that it ends none of them.
    pub(super) fn signal_handlers(&self, signal: i32) {
        if self.groups_ended {
            return;
        }
        for watched in &self.ranks {
            // Other processes of the group need not handle the signal, so each process gets its own.
            let survives = |pid: Pid| inspect::survives(pid.as_raw_nonzero().get(), signal);
            if let Some(child) = watched.rank.child.as_ref().filter(|child| survives(child.pid())) {
                let _ = process::signal_process(child.pidfd(), signal);
            }
            if let Some(member) = &watched.member
                && watched.is_wrapped()
                && !member.gone
                && survives(member.pid)
            {
                let _ = process::signal_process(member.pidfd.as_fd(), signal);
            }
        }
    }

    /// Deals with the process groups after all ranks have ended. If a world failed, waits until the processes
    /// that remain in its groups have ended, and kills them when the grace time is over. If a world did not
    /// fail, such processes may go on running.
    pub(super) fn end_groups(&mut self) {
        self.input.close();
        for watched in &self.ranks {
            if self.worlds[watched.world].end.is_natural()
                && let Some(lifeline) = &watched.rank.lifeline
            {
                // Processes that a rank has left behind must not be killed when mpiexec ends. This call never
                // fails for an open descriptor.
                let _ = channel::disarm(lifeline.as_fd());
            }
            // mpiexec has the exit code of the child already, so the result of `reap` is not needed.
            let _ = watched.rank.child.as_ref().map(Child::reap);
        }
        let mut give_up = None;
        loop {
            let mut running =
                self.worlds.iter().filter(|w| !w.end.is_natural() && self.groups_run(w)).peekable();
            let now = Instant::now();
            if running.peek().is_none() {
                break;
            }
            let all_killed = running.all(|world| world.end.is_killing());
            if all_killed && *give_up.get_or_insert(now + KILLED_DELAY) <= now {
                break;
            }
            self.turn_ended(Some(now + GROUP_POLL), now);
            let now = Instant::now();
            self.decide_all(|end| end.tick(now));
        }
        self.groups_ended = true;
    }

    /// Returns true if a process runs in the group of any rank of a world. As long as a group has processes, the kernel
    /// does not reuse the group's id.
    fn groups_run(&self, world: &World) -> bool {
        let ranks = self.ranks[world.slots.clone()].iter();
        process::any_group_runs(
            ranks.filter_map(|watched| Some(watched.rank.child.as_ref()?.pid())),
        )
    }
}
