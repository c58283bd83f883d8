//! Which worlds are connected: between which of them there are communicators.
//!
//! Each rank tells with which other worlds it has communicators (`Bond`), and `messages.rs` passes that on. `deaths.rs`
//! asks which worlds a failure ends. The ranks of one world are always connected.
//! mpiexec may read of a bond after a failure has ended the other world; then the same failure ends what is connected with
//! the rank that tells.
//!
//! Two ranks that meet at a port (`ports.rs`) are connected from then on, because each waits for the other until both have
//! a communicator. mpiexec itself knows of such a *meeting*, and the rank tells when it is over (`Bond::Settled`). Nothing
//! else ends it: another thread of the rank may give back its last communicator with the same world meanwhile.
//!
//! The members of a communicator that disconnect ask for it (`Request::Disconnect`). When all of them have asked, their
//! bonds end at once, and only then do they get the answer. So before that a death ends all of them, and none of them waits
//! for a dead one; and a member that has left the call is connected no more, whatever the others do.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use typepack_job::service::{Answer, Refused};
use typepack_job::shm::layout::State;
use typepack_job::sys::channel::Bond;

use super::requests::{Asked, Refusal};
use super::{Job, Watched, World};
use crate::ending::Outcome;

/// The bonds of all ranks: by slot of the rank and number of the other world.
#[derive(Debug, Default)]
pub struct Bonds {
    bonds: BTreeSet<(usize, usize)>,
    /// The number of meetings that are not over, by slot of the rank and number of the other world.
    meetings: BTreeMap<(usize, usize), usize>,
    /// The members of communicators that wait until the others disconnect, too: by the number of the communicator.
    leaving: BTreeMap<[u32; 2], Vec<Leaving>>,
}

/// A rank that disconnects a communicator, and the worlds with which it has no other one.
#[derive(Debug)]
struct Leaving {
    asked: Asked,
    worlds: Vec<usize>,
}

impl Bonds {
    /// Records what a rank tells about its bond with another world.
    pub fn tell(&mut self, slot: usize, world: usize, bond: Bond) {
        match bond {
            Bond::Connected => self.bonds.insert((slot, world)),
            Bond::Ended => self.bonds.remove(&(slot, world)),
            Bond::Settled => match self.meetings.get_mut(&(slot, world)) {
                Some(count) if *count > 1 => {
                    *count -= 1;
                    true
                }
                _ => self.meetings.remove(&(slot, world)).is_some(),
            },
        };
    }

    /// Records that the rank in `slot` has met a rank of another world.
    pub fn meet(&mut self, slot: usize, world: usize) {
        *self.meetings.entry((slot, world)).or_default() += 1;
    }

    /// Removes all bonds with a world.
    pub fn forget(&mut self, world: usize, world_of: impl Fn(usize) -> usize) {
        let is_other = |(slot, other): (usize, usize)| other != world && world_of(slot) != world;
        self.bonds.retain(|bond| is_other(*bond));
        self.meetings.retain(|meeting, _| is_other(*meeting));
    }

    /// Returns the worlds that are connected with the rank in slot `failed` of the world `own`, which comes first. Only
    /// the bonds of ranks for which `counts` returns true count, and those of `failed`.
    pub fn connected(
        &self,
        (failed, own): (usize, usize),
        world_of: impl Fn(usize) -> usize,
        counts: impl Fn(usize) -> bool,
    ) -> Vec<usize> {
        let mut found = vec![own];
        let all = self.bonds.iter().chain(self.meetings.keys());
        let live = all.filter(|(slot, _)| *slot == failed || counts(*slot));
        let linked: BTreeSet<(usize, usize)> =
            live.map(|(slot, other)| (world_of(*slot), *other)).collect();
        let mut next = 0;
        while let Some(&world) = found.get(next) {
            for &(a, b) in &linked {
                for (here, there) in [(a, b), (b, a)] {
                    if here == world && !found.contains(&there) {
                        found.push(there);
                    }
                }
            }
            next += 1;
        }
        found
    }
}

impl Job<'_> {
    /// Handles what the rank `index` tells about its bond with the world whose first slot is `first`.
    pub(super) fn take_bond(&mut self, index: usize, (bond, first): (Bond, u32), now: Instant) {
        let own = self.ranks[index].world;
        let starts = |world: &World| world.slots.start == first as usize;
        let Some(other) = self.worlds.iter().position(starts).filter(|other| *other != own) else {
            return;
        };
        // A bond with a world that is cleared away connects nothing. But a world counts as long as `fail` has not decided
        // what the death of its last rank ends, although all its ranks have ended.
        if bond != Bond::Connected || !self.worlds[other].left.is_cleared() {
            self.bonds.tell(index, other, bond);
        }
        if bond == Bond::Connected {
            self.catch_up(index, other, now);
        }
    }

    /// If the world `other` ends, ends for the same reason the worlds that are connected with the rank `index`: this rank
    /// has told of its bond with `other` after mpiexec has decided that. It may wait for a rank that is dead.
    pub(super) fn catch_up(&mut self, index: usize, other: usize, now: Instant) {
        let world = &self.worlds[other];
        let state = self.segment.state(index);
        // Nobody knows the ranks of a refused world. A rank that has finalized waits for nobody. If the ranks of a world go
        // on after a failure (`survive`), its end is natural.
        if world.is_refused || world.end.is_natural() || state == State::Finalized {
            return;
        }
        let died = |slot: usize| self.ranks[slot].failed && self.ranks[slot].parting.is_none();
        let orderly = world.end.is_settling();
        match world.end.outcome().cloned() {
            // A rank that has finalized is connected with no other world, but those that its failure has ended are.
            Some(Outcome::Failed(failure, pid))
                if died(failure.slot) || (self.is_over(world) && world.slots.clone().any(died)) =>
            {
                for number in self.connected(index, state) {
                    self.decide(number, |end| end.failed(failure, pid, orderly, now));
                }
            }
            Some(outcome @ (Outcome::Broken(_) | Outcome::NotStarted(..))) => {
                for number in self.connected(index, state) {
                    self.decide(number, |end| end.broken(outcome.clone()));
                }
            }
            // The other reasons to end are reasons for all worlds.
            _ => {}
        }
    }

    /// Handles the request of a rank to disconnect a communicator of `members` members. `firsts` are the first slots of
    /// the worlds with which the rank has no other communicator.
    pub(super) fn disconnect(
        &mut self,
        asked: Asked,
        communicator: [u32; 2],
        members: u32,
        firsts: &[u32],
    ) {
        let number =
            |first: &u32| self.worlds.iter().position(|world| world.slots.start == *first as usize);
        let worlds = firsts.iter().filter_map(number).collect();
        let leaving = self.bonds.leaving.entry(communicator).or_default();
        if leaving.iter().any(|other| other.asked.slot == asked.slot) {
            let why: Refusal = (Refused::Other, "the rank disconnects already".to_owned());
            return self.refuse(asked, why);
        }
        leaving.push(Leaving { asked, worlds });
        if leaving.len() < members as usize {
            return;
        }
        let leaving = self.bonds.leaving.remove(&communicator).unwrap_or_default();
        for Leaving { asked, worlds } in &leaving {
            for world in worlds {
                self.bonds.tell(asked.slot, *world, Bond::Ended);
            }
        }
        leaving.into_iter().for_each(|left| self.answer(left.asked, &Answer::Done));
    }

    /// Forgets ranks that have ended while they waited for others to disconnect.
    pub(super) fn clear_leaving(&mut self) {
        let ended = |slot: usize| self.ranks.get(slot).is_none_or(Watched::is_gone);
        self.bonds.leaving.retain(|_, leaving| {
            leaving.retain(|left| !ended(left.asked.slot));
            !leaving.is_empty()
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten slots per world.
    fn world_of(slot: usize) -> usize {
        slot / 10
    }

    fn connected(bonds: &Bonds, failed: usize) -> Vec<usize> {
        bonds.connected((failed, world_of(failed)), world_of, |slot| slot != 99)
    }

    #[test]
    fn a_bond_of_one_side_connects_both() {
        let mut bonds = Bonds::default();
        bonds.tell(0, 1, Bond::Connected);
        bonds.tell(21, 1, Bond::Connected);
        assert_eq!(connected(&bonds, 1), [0, 1, 2]);
        assert_eq!(connected(&bonds, 12), [1, 0, 2]);
        assert_eq!(connected(&bonds, 30), [3]);
        bonds.tell(0, 1, Bond::Ended);
        assert_eq!(connected(&bonds, 1), [0]);
        assert_eq!(connected(&bonds, 12), [1, 2]);
        bonds.tell(99, 2, Bond::Connected);
        assert_eq!(connected(&bonds, 20), [2, 1], "a rank that has left the job has no bonds");
        assert_eq!(connected(&bonds, 99), [9, 2, 1], "but those of the dead count");
        bonds.forget(1, world_of);
        assert_eq!(connected(&bonds, 20), [2]);
    }

    /// A thread of a rank disconnects its last communicator with a world, while another thread meets a rank of the same
    /// world at a port. The end of the bond is not the end of the meeting.
    #[test]
    fn a_meeting_outlives_the_end_of_the_bond() {
        let mut bonds = Bonds::default();
        bonds.tell(0, 1, Bond::Connected);
        bonds.meet(0, 1);
        bonds.meet(0, 1);
        bonds.tell(0, 1, Bond::Ended);
        assert_eq!(connected(&bonds, 10), [1, 0]);
        bonds.tell(0, 1, Bond::Settled);
        assert_eq!(connected(&bonds, 10), [1, 0], "one of two meetings is over");
        bonds.tell(0, 1, Bond::Connected);
        bonds.tell(0, 1, Bond::Settled);
        assert_eq!(connected(&bonds, 10), [1, 0], "the communicator is made");
        bonds.tell(0, 1, Bond::Ended);
        bonds.tell(0, 1, Bond::Settled);
        assert_eq!(connected(&bonds, 10), [1]);
        bonds.meet(0, 1);
        bonds.forget(1, world_of);
        assert_eq!(connected(&bonds, 0), [0]);
    }
}
