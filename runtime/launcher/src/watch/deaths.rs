//! The deaths of processes: how a rank has ended, and who learns of it.
//!
//! `watch/` calls these functions when a process has ended or a delay is over. `ending.rs` decides what follows.

use std::os::fd::AsFd;
use std::time::Instant;

use typepack_job::shm::failure::{Ending, Failure};
use typepack_job::shm::layout::State;
use typepack_job::sys::process::{self, Child, Exit};

use super::{Job, WRAPPER_DELAY, World};
use crate::ending::{Outcome, judge};

impl Job<'_> {
    /// Handles the end of the process that mpiexec has started for rank `index`.
    pub(super) fn take_child(&mut self, index: usize, now: Instant) {
        // The child may have registered before it ended, so look for messages first.
        self.take_messages(index, now);
        // No error is expected, because nobody but mpiexec can reap its children. If there is an error
        // anyway, the exit code is unknown; use 1.
        let process = self.ranks[index].process.as_ref();
        let exit = match process.and_then(|process| process.child.as_ref()).map(Child::ended) {
            None | Some(Ok(None)) => return,
            Some(Ok(Some(exit))) => exit,
            Some(Err(_)) => Exit::Code(1),
        };
        let watched = &mut self.ranks[index];
        watched.exit = Some(exit);
        if index == 0 && !watched.is_wrapped() {
            self.input.close();
        }
        if watched.is_wrapped() {
            // If the wrapper failed because the member failed, the end of the member decides how the rank has
            // ended. mpiexec may see the end of the wrapper first, so give the event for the member's end a
            // moment to arrive.
            if watched.wrapper_until.is_some() || watched.member.as_ref().is_some_and(|m| m.gone) {
                self.judge_wrapped(index, now);
            } else if exit != Exit::Code(0) {
                watched.wrapper_until = Some(now + WRAPPER_DELAY);
            }
            return;
        }
        if let Some(member) = &mut watched.member {
            member.gone = true;
        }
        let unfinished = self.segment.state(index) == State::Registered;
        if let Some(ending) = judge(exit, unfinished) {
            self.fail(index, ending, now);
        }
    }

    /// Handles the end of the process that has joined as rank `index`, if mpiexec did not start it.
    pub(super) fn take_member(&mut self, index: usize, now: Instant) {
        let watched = &mut self.ranks[index];
        if let Some(member) = &mut watched.member {
            member.gone = true;
        }
        watched.starter = None;
        if watched.exit.is_some() {
            self.judge_wrapped(index, now);
        } else if self.is_unfinished(index) {
            // The wrapper knows how the process ended, and will probably exit soon with a code that says so.
            // So give the wrapper a moment to exit.
            self.ranks[index].wrapper_until = Some(now + WRAPPER_DELAY);
        }
    }

    /// Returns whether the rank has joined the job and has not left it. A rank that another launcher has started has joined
    /// when it is here.
    fn is_unfinished(&self, index: usize) -> bool {
        match self.segment.state(index) {
            State::Registered => true,
            State::Started => self.ranks[index].pid.is_none(),
            State::Finalized | State::Dead => false,
        }
    }

    /// Decides how a rank inside a wrapper, or one that another launcher has started, has ended.
    pub(super) fn judge_wrapped(&mut self, index: usize, now: Instant) {
        let watched = &mut self.ranks[index];
        watched.wrapper_until = None;
        let unfinished = self.is_unfinished(index);
        let watched = &self.ranks[index];
        let told = watched.member.as_ref().and_then(|m| process::exit_of(m.pidfd.as_fd()));
        let ending = match (told, watched.exit) {
            (Some(exit), _) if unfinished => judge(exit, true),
            // If a signal killed a command, shells exit with 128 + the signal's number.
            (None, Some(Exit::Code(code @ 129..=192))) if unfinished => {
                Some(Ending::Killed(code - 128))
            }
            (_, Some(exit)) => judge(exit, unfinished),
            (_, None) => judge(Exit::Code(0), unfinished),
        };
        if let Some(ending) = ending {
            self.fail(index, ending, now);
        }
    }

    /// Looks for a rank that exited with code 0 without joining the job although another rank of its world has joined, or
    /// a rank of another world has asked for this one. These could wait for the missing rank for ever, so the missing rank
    /// counts as failed.
    pub(super) fn check_strangers(&mut self, now: Instant) {
        let of_world = |world: &World| {
            let mut ranks = self.ranks[world.slots.clone()].iter();
            // A world that goes on after a failure has no need of this rank either.
            let is_awaited = world.is_later || ranks.clone().any(|w| w.member.is_some());
            if world.end.outcome().is_some() || world.left.is_cleared() || !is_awaited {
                return None;
            }
            let stranger =
                ranks.position(|w| w.exit == Some(Exit::Code(0)) && w.member.is_none())?;
            Some(world.slots.start + stranger)
        };
        let strangers: Vec<usize> = self.worlds.iter().filter_map(of_world).collect();
        for index in strangers {
            self.fail(index, Ending::NeverJoined, now);
        }
    }

    fn fail(&mut self, index: usize, ending: Ending, now: Instant) {
        let watched = &mut self.ranks[index];
        if watched.failed {
            return;
        }
        watched.failed = true;
        let (pid, number) = (watched.pid(), watched.world);
        // All that ranks have said before this death counts, and whether the programs of the world could be executed. The
        // world may have no other rank; `take_bond` records a bond with it nevertheless.
        (0..self.ranks.len()).for_each(|rank| self.take_messages(rank, now));
        if self.worlds[number].asked.is_some() {
            self.take_report(number);
        }
        let watched = &mut self.ranks[index];
        let state = self.segment.state(index);
        if let (Ending::Exited(code), State::Finalized) = (ending, state) {
            watched.parting = Some(code);
        }
        // A failure is orderly if the rank exited either before it joined the job or after it left the job,
        // because then no other rank can be in the middle of a message exchange with it.
        let orderly = state != State::Registered && matches!(ending, Ending::Exited(_));
        let world = &self.worlds[number];
        let failure =
            Failure { slot: index, rank: index - world.slots.start, world: number, ending };
        // Nobody knows the ranks of a refused world.
        if world.is_refused {
            return;
        }
        self.segment.record_failure(failure);
        let is_ending = world.end.is_ending();
        if world.plan.goes_on && !is_ending && !self.segment.is_aborting() {
            return self.survive(number, failure, pid);
        }
        if is_ending {
            // The ranks may be cleaning up after SIGTERM. Tell them about the failure, so that they do not
            // wait for the dead rank.
            self.tell_failure(number, failure);
        }
        let all = self.connected(index, state);
        if self.is_by_itself(index, &all) {
            return;
        }
        for connected in all {
            self.decide(connected, |end| end.failed(failure, pid, orderly, now));
        }
    }

    /// Returns the numbers of the worlds that are connected with the rank `index`, its own first. `state` is the state in
    /// which the rank has ended: a rank that has finalized is connected with no other world.
    pub(super) fn connected(&self, index: usize, state: State) -> Vec<usize> {
        let own = self.ranks[index].world;
        if state == State::Finalized {
            return vec![own];
        }
        let counts = |slot: usize| self.segment.state(slot) != State::Finalized;
        let found = self.bonds.connected((index, own), |slot| self.ranks[slot].world, counts);
        let runs = |number: &usize| *number == own || !self.is_over(&self.worlds[*number]);
        found.into_iter().filter(runs).collect()
    }

    /// Tells the ranks of a world, which share communicators with a rank that has failed, of this failure.
    pub(super) fn tell_failure(&mut self, number: usize, failure: Failure) {
        let world = &mut self.worlds[number];
        world.has_told = true;
        self.segment.tell_failure(failure.slot, world.slots.clone());
    }

    /// Handles the failure of a rank in a world whose other ranks go on. The other ranks do not learn of the failure:
    /// their calls go on, and a call that needs the dead rank waits until the user ends the job.
    fn survive(&mut self, number: usize, failure: Failure, pid: i32) {
        let why = Outcome::Failed(failure, pid);
        if let Some(line) = self.line(&why) {
            self.outputs.tell(&format!("{line}; the other ranks go on"));
        }
        self.decide(number, |end| {
            end.survived(failure, pid);
            None
        });
    }
}
