//! Signals to the processes of ranks.
//!
//! `mod.rs` and `deaths.rs` decide when a world gets which signal. When all ranks have ended, `ended.rs` deals with what is
//! left in their process groups.

use std::os::fd::AsFd;

use rustix::process::Pid;
use typepack_job::sys::inspect;
use typepack_job::sys::process;

use super::Job;

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
            if watched.process.is_none() {
                continue;
            }
            // Ignore errors: sending fails only if the processes run as another user, and mpiexec can do
            // nothing about that.
            if let Some(pid) = watched.pid {
                let _ = process::signal_group(pid, signal);
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
            let Some(process) = &watched.process else { continue };
            if let Some(child) = process.child.as_ref().filter(|child| survives(child.pid())) {
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
}
