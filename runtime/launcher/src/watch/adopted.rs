//! Ranks that another launcher has started (`behind.rs`).
//!
//! They are no children of this process. Each is known from the start by its pidfd; its connection to this process is its
//! control socket. How it has ended tells the kernel, if it does, when the other launcher has reaped it. This process
//! signals only the rank itself and not its process group, which may have processes of the other launcher.

use std::os::fd::OwnedFd;

use rustix::process::Pid;
use typepack_job::sys::channel::LauncherEnd;

use super::{Job, Member, Watched, World};
use crate::args;
use crate::ending::{End, Outcome};
use crate::start;

/// A rank that another launcher has started.
#[derive(Debug)]
pub struct Adopted {
    /// The end of its control socket.
    pub control: LauncherEnd,
    /// Its process.
    pub pid: Pid,
    /// A descriptor that becomes readable when the process has ended.
    pub pidfd: OwnedFd,
    /// A copy of the rank's connection to the other launcher.
    pub starter: Option<OwnedFd>,
}

impl<'a> Job<'a> {
    /// Takes `ranks` as a new world of this job. The memory of the job has slots for them, which follow those of all other
    /// ranks.
    pub fn adopt(&mut self, plan: &'a args::Job, ranks: Vec<Adopted>) {
        let (world, first) = (self.worlds.len(), self.ranks.len());
        self.ranks.extend(ranks.into_iter().map(|rank| Watched {
            rank: start::Rank {
                child: None,
                control: rank.control,
                lifeline: None,
                streams: Vec::new(),
            },
            world,
            member: Some(Member { pid: rank.pid, pidfd: rank.pidfd, gone: false }),
            exit: None,
            failed: false,
            parting: None,
            wrapper_until: None,
            starter: rank.starter,
        }));
        self.worlds.push(World {
            slots: first..self.ranks.len(),
            plan,
            report: None,
            end: End::new(plan.kill_after),
            has_told: false,
        });
    }

    /// Handles the end of rank `index`'s connection to the launcher that has started it. If the rank has not taken leave of
    /// the launcher, the launcher has ended, and so does the job.
    pub(super) fn take_starter(&mut self, index: usize) {
        let watched = &mut self.ranks[index];
        watched.starter = None;
        if !watched.rank.control.has_left() {
            let world = watched.world;
            let why = "the launcher that has started the ranks has ended".to_owned();
            self.decide(world, |end| end.broken(Outcome::Broken(why)));
        }
    }
}
