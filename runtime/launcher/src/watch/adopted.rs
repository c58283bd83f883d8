//! Ranks that this process has not started: another launcher has, or a user has started a program by itself (`behind.rs`).
//!
//! They are no children of this process. Each is known from the start by its pidfd; its connection to this process is its
//! control socket. How it has ended tells the kernel, if it does, when the other launcher has reaped it. This process
//! signals only the rank itself and not its process group, which may have processes of the other launcher.

use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;
use std::time::Instant;

use rustix::process::Pid;
use typepack_job::sys::channel::LauncherEnd;
use typepack_job::sys::process;

use super::ended::Left;
use super::{Job, Member, Watched, World};
use crate::args;
use crate::core_reservation::Reservation;
use crate::ending::{End, Outcome};
use crate::start;

/// A rank that this process has not started.
#[derive(Debug)]
pub struct Adopted {
    /// The end of its control socket.
    pub control: LauncherEnd,
    /// Its process.
    pub pid: Pid,
    /// A descriptor that becomes readable when the process has ended.
    pub pidfd: OwnedFd,
    /// A copy of the rank's connection to the other launcher, if there is one.
    pub starter: Option<OwnedFd>,
}

impl Job<'_> {
    /// Takes `ranks` as a new world of this job. The memory of the job has slots for them, which follow those of all other
    /// ranks. `cores` are the cores on which they run.
    pub fn adopt(&mut self, plan: Rc<args::Job>, ranks: Vec<Adopted>, cores: Reservation) {
        let (world, first) = (self.worlds.len(), self.ranks.len());
        self.ranks.extend(ranks.into_iter().map(|rank| Watched {
            pid: None,
            process: Some(start::Started { child: None, control: rank.control, lifeline: None }),
            streams: Vec::new(),
            world,
            member: Some(Member { pid: rank.pid, pidfd: rank.pidfd, gone: false }),
            exit: None,
            failed: false,
            parting: None,
            wrapper_until: None,
            starter: rank.starter,
            is_deaf: false,
        }));
        self.worlds.push(World {
            slots: first..self.ranks.len(),
            end: End::new(plan.kill_after),
            plan,
            report: None,
            has_told: false,
            shares_cores: start::shares_cores(&cores),
            cores: Some(cores),
            asked: None,
            is_later: false,
            is_refused: false,
            left: Left::default(),
        });
    }

    /// Handles the end of rank `index`'s connection to the launcher that has started it. If the rank has not taken leave of
    /// the launcher, the launcher has ended, and so does the job.
    pub(super) fn take_starter(&mut self, index: usize, now: Instant) {
        // The rank tells of its leave before it leaves.
        self.take_messages(index, now);
        if self.ranks[index].starter.take().is_none() {
            return;
        }
        // A launcher ends, too, because one of its ranks has ended. This process learns of both at once, in any order, and the
        // rank is the reason then. Its end is judged when its time is over, and ends the world.
        let world = self.ranks[index].world;
        let slots = self.worlds[world].slots.clone();
        for rank in slots.clone() {
            let has_ended =
                |member: &Member| !member.gone && process::has_ended(member.pidfd.as_fd());
            if self.ranks[rank].member.as_ref().is_some_and(has_ended) {
                self.take_member(rank, now);
            }
        }
        if self.ranks[slots].iter().any(|watched| watched.wrapper_until.is_some()) {
            return;
        }
        let why = "the launcher that has started the ranks has ended".to_owned();
        self.decide(world, |end| end.broken(Outcome::Broken(why)));
    }

    /// Tells why a world ends whose ranks this process has not started, before they end: nobody waits for this process.
    pub(super) fn tell_adopted(&mut self, number: usize) {
        let first = self.worlds[number].slots.start;
        if self.ranks[first].pid.is_none() {
            self.tell_outcome(number);
            self.flush(Instant::now());
        }
    }

    /// Returns whether nobody misses the rank `index`: this process has not started it, and nothing that runs is connected
    /// with it. `connected` are the worlds that are.
    pub(super) fn is_by_itself(&self, index: usize, connected: &[usize]) -> bool {
        let watched = &self.ranks[index];
        let is_alone = self.worlds[watched.world].slots.len() == 1;
        watched.pid.is_none() && is_alone && connected == [watched.world]
    }
}
