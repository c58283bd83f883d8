//! Which worlds are connected: between which of them there are communicators.
//!
//! Each rank tells with which other worlds it has communicators (`Bond`), and `mod.rs` passes that on. `deaths.rs` asks
//! which worlds a failure ends. The ranks of one world are always connected.
//!
//! `MPI_Comm_disconnect` ends a bond in two steps, because the members return from it one after the other. Each first
//! tells that the bond is about to end, then waits for the others in a barrier, and then tells that it has ended. So when
//! the first member returns, all of them have told the first step. If a rank dies that has taken the first step only, the
//! others may still wait for it in the barrier, so its bond counts. The first step of the others does not count, because
//! they are past all other use of the communicator.

use std::collections::{BTreeMap, BTreeSet};

use typepack_job::sys::channel::Bond;

/// The bonds of all ranks: by slot of the rank and number of the other world, and whether the bond is about to end.
#[derive(Debug, Default)]
pub struct Bonds(BTreeMap<(usize, usize), bool>);

impl Bonds {
    /// Records what a rank tells about its bond with another world.
    pub fn tell(&mut self, slot: usize, world: usize, bond: Bond) {
        let key = (slot, world);
        match bond {
            Bond::Connected => drop(self.0.insert(key, false)),
            Bond::Ending => {
                self.0.entry(key).and_modify(|ending| *ending = true);
            }
            Bond::Ended => drop(self.0.remove(&key)),
        }
    }

    /// Removes all bonds with a world.
    pub fn forget(&mut self, world: usize, world_of: impl Fn(usize) -> usize) {
        self.0.retain(|(slot, other), _| *other != world && world_of(*slot) != world);
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
        let live = self
            .0
            .iter()
            .filter(|((slot, _), ending)| *slot == failed || !**ending && counts(*slot));
        let pairs: BTreeSet<(usize, usize)> =
            live.map(|((slot, other), _)| (world_of(*slot), *other)).collect();
        let mut next = 0;
        while let Some(&world) = found.get(next) {
            for &(a, b) in &pairs {
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
        bonds.forget(1, world_of);
        assert_eq!(connected(&bonds, 20), [2]);
    }

    #[test]
    fn the_first_step_of_an_end_counts_only_for_the_dead() {
        let mut bonds = Bonds::default();
        bonds.tell(0, 1, Bond::Connected);
        bonds.tell(10, 0, Bond::Connected);
        for (slot, other) in [(0, 1), (10, 0)] {
            bonds.tell(slot, other, Bond::Ending);
        }
        // The rank in slot 10 has not left the barrier, in which the other one may wait for it.
        assert_eq!(connected(&bonds, 10), [1, 0]);
        bonds.tell(10, 0, Bond::Ended);
        assert_eq!(connected(&bonds, 10), [1]);
        // A new communicator while an old one ends.
        bonds.tell(0, 1, Bond::Connected);
        assert_eq!(connected(&bonds, 10), [1, 0]);
    }
}
