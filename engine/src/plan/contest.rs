//! Measures which executor of a nest is the faster one for long calls: the leaf kernel or the compiled kernel.
//!
//! The cost model (`cost/`) makes the first choice, from times that were measured on one machine. For calls of at least
//! [`LEAST`] bytes, a chooser then compares the two executors on real calls, with the clock of
//! [`set_clock`](crate::contiguous::set_clock). Without a clock, and for shorter calls, the choice of the cost model
//! stays. If the cost model wants no kernel, there is none to compare, so the nest requests one when it has moved so
//! many bytes that the compilation costs only a small part of the time spent ([`begins_after`]).
//!
//! `nest_plan.rs` keeps one contest per direction of a nest, and `exec/nest.rs` runs the calls.

use crate::choice::{SharedChooser, Sizes};
use crate::contiguous::Clock;

/// Calls of fewer bytes take the choice of the cost model. They are so short that two readings of a clock would take
/// longer than the call.
pub(crate) const LEAST: u64 = 8 << 10;

/// Calls of at least this number of bytes ask the chooser each time: they take so long that the question, about 50 ns,
/// does not matter.
const OFTEN: u64 = 1 << 20;

/// Of the calls below [`OFTEN`] bytes, one in this number asks the chooser. The first number is for calls of less than
/// four times [`LEAST`] bytes.
const TURNS: [u32; 2] = [64, 16];

/// The size classes. The data of the classes lie in different caches, so different executors may be the best.
const SIZES: Sizes = Sizes { first: LEAST, step: 3, count: CLASSES };

const CLASSES: usize = 4;

/// The cost model's unwanted kernel is compiled for a contest when the long calls of a nest have taken about this
/// number of times as long as the compilation takes.
const SPENT: u64 = 20;

/// The least time, in picoseconds, in which a leaf kernel moves one packed byte in a long call.
const FASTEST: u64 = 20;

/// Returns the number of packed bytes that a nest moves in long calls before its contest begins. A compilation takes
/// `price` picoseconds.
pub(super) fn begins_after(price: u64) -> u64 {
    (price / FASTEST).saturating_mul(SPENT)
}

/// The number of the leaf kernel in the choosers. It is 0, the way that a call takes while another thread uses the
/// chooser, because there is always a leaf kernel.
pub(crate) const LEAF: u8 = 0;

/// The number of the compiled kernel in the choosers.
pub(crate) const KERNEL: u8 = 1;

/// The contest of the two executors of a nest in one direction.
#[derive(Debug)]
pub(crate) struct Contest {
    clock: Clock,
    classes: [SharedChooser; CLASSES],
}

impl Contest {
    /// Creates a contest. The kernel is the first choice for calls of at most `most` bytes.
    pub(super) fn new(clock: Clock, most: u64) -> Self {
        let class = |number: usize| {
            let first = if SIZES.least(number) <= most { KERNEL } else { LEAF };
            SharedChooser::new(2, first)
        };
        Self { clock, classes: std::array::from_fn(class) }
    }

    /// Calls `job` once, with the number of the executor that runs a call of `bytes` bytes.
    #[inline]
    pub(crate) fn run(&self, bytes: u64, job: impl FnOnce(u8)) {
        let class = &self.classes[SIZES.class(bytes)];
        let turns = if bytes < OFTEN { TURNS[usize::from(bytes >= 4 * LEAST)] } else { 1 };
        class.run(turns, bytes, self.clock, job);
    }

    /// Returns the least number of bytes of each size class that has had calls, and the number of the best executor.
    pub(super) fn standing(&self) -> impl Iterator<Item = (u64, u8)> + '_ {
        let classes = (0..).zip(&self.classes);
        classes.filter_map(|(number, class)| Some((SIZES.least(number), class.used()?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    thread_local! {
        static NOW: Cell<u64> = const { Cell::new(0) };
    }

    fn now() -> u64 {
        NOW.get()
    }

    /// Runs `calls` calls of `bytes` bytes. The leaf kernel takes `times[0]` and the compiled kernel `times[1]`.
    /// Returns how many calls each of them has run.
    fn run(contest: &Contest, calls: u64, bytes: u64, times: [u64; 2]) -> [u64; 2] {
        let mut runs = [0, 0];
        for call in 0..calls {
            contest.run(bytes, |way| {
                runs[usize::from(way)] += 1;
                // Some calls are interrupted.
                let late = if call % 97 == 5 { 10_000 } else { 0 };
                NOW.set(NOW.get() + times[usize::from(way)] + late);
            });
        }
        runs
    }

    /// Checks that the faster executor wins, whatever the cost model has said, and that the slower one costs little.
    #[test]
    fn the_faster_executor_wins() {
        for most in [0, u64::MAX] {
            for times in [[300, 450], [450, 300]] {
                for bytes in [16 << 10, 1 << 20] {
                    let contest = Contest::new(now, most);
                    run(&contest, 20_000, bytes, times);
                    let faster = if times[0] < times[1] { LEAF } else { KERNEL };
                    assert_eq!(
                        contest.standing().collect::<Vec<_>>(),
                        [(SIZES.least(SIZES.class(bytes)), faster)]
                    );
                    let runs = run(&contest, 20_000, bytes, times);
                    assert!(runs[usize::from(1 - faster)] < 600, "{runs:?} with {times:?}");
                }
            }
        }
    }

    /// Checks that each size class has its own result.
    #[test]
    fn classes_are_independent() {
        let contest = Contest::new(now, 0);
        run(&contest, 20_000, 16 << 10, [300, 200]);
        run(&contest, 20_000, 4 << 20, [9000, 12_000]);
        let standing: Vec<_> = contest.standing().collect();
        assert_eq!(standing, [(SIZES.least(0), KERNEL), (SIZES.least(3), LEAF)]);
    }
}
