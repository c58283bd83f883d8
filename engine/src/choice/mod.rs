//! The chooser: picks one of several ways to do a job, by the times that they took so far.
//!
//! A [`Chooser`] serves one kind of job, for example copies of 1 to 2 MiB between near cores. Its user calls
//! [`Chooser::pick`] before a job and [`Chooser::report`] with the job's cost afterwards. The chooser knows
//! neither a clock nor the ways themselves: a way is a number, and a cost is a number that is proportional to
//! time.
//!
//! The chooser usually picks the *present* way. A *look* at another way is the measurement of `SAMPLES` jobs
//! that are done in this other way. The rules:
//!
//! - The first present way is the static choice. Another way becomes the present way if the median of its
//!   last `SAMPLES` costs is lower than the present way's median by more than one part in `MARGIN`.
//! - Looks cost at most one part in `BUDGET` of the time of all jobs so far, and second looks at most one part in
//!   `BUDGET_AGAIN`. The cost of one job of a look is its time minus the median of the present way. The chooser
//!   estimates this cost before the job. If no cost of the other way is recorded, it expects this way to take twice as
//!   long as the present way; before a second look, as long as in the look before, but not longer than that.
//! - The first job in each way is not recorded, because it may touch memory for the first time.
//! - A look ends early if at least two costs are recorded and the way's median is more than `HOPELESS` times
//!   the present way's median. If the last look at this way ended so, the first cost is enough. A look also ends early
//!   if `BEHIND` costs are recorded and the lowest of them is higher than the present way's median.
//! - A *second look* forgets the earlier costs of a way. Second looks begin when the number of jobs reaches
//!   `LOOK_FIRST`, then each time the number has doubled, and in the end after every `LOOK_AGAIN` jobs. The
//!   ways take turns; there is no second look if it is the turn of the present way. The early second looks
//!   correct measurements of jobs that touched memory for the first time. The later ones notice that a
//!   virtual machine has moved between processors, so that near cores have become far ones. If the present
//!   way's own median rises by more than one part in `DRIFT`, all other ways get a look without waiting for their
//!   turns, and these looks count as first looks. If another way then replaces the present one, the way that has
//!   been replaced gets such a look, too.
//! - Single outliers, such as a page fault, stolen time or the wait for a late rank, do not move a median. In the sums,
//!   a cost counts as at most `OUTLIER` medians, and a cost before any median as nothing.
//!
//! `shared.rs` has choosers that several threads share, `form.rs` the keys of choices, `store.rs` what is known about
//! them, `candidates.rs` joins a chooser with both, and `tune.rs` says which choosers measure. So a user brings a table
//! of ways and one function that returns the key of a call. `contiguous/own.rs`, `plan/contest.rs`, the runtime
//! (transports, collective calls, waits, files) and the interposer use choosers.

mod candidates;
mod form;
mod shared;
mod store;
#[cfg(test)]
mod tests;
mod tune;

pub use candidates::{Candidate, Choice, Measured, TimedWay};
pub use form::{Form, Key, Remembered, Sizes, Word};
pub(crate) use shared::SharedChooser;
#[cfg(test)]
pub(crate) use shared::{Shared, choose};
pub use store::{Store, store};
pub use tune::{CHOOSERS, HOST, KERNELS, SHORT, Tune, WAITS};

use std::time::Duration;

/// Returns the cost of a job that took `time` for `bytes` bytes: the time per byte, in 2^-20 ns, because jobs of one
/// class have different lengths.
pub fn cost(time: Duration, bytes: u64) -> u64 {
    u64::try_from((time.as_nanos() << 20) / u128::from(bytes.max(1))).unwrap_or(u64::MAX)
}

/// Returns the time of a [`cost`] in nanoseconds per byte.
pub fn ns_per_byte(cost: u64) -> f64 {
    cost as f64 / f64::from(1 << 20)
}

/// Maximum number of ways of a chooser.
pub const WAYS: usize = 10;

/// Number of latest costs by whose median a way is judged.
pub const SAMPLES: usize = 7;

/// Looks may cost at most one part in `BUDGET` of the time of all jobs.
pub const BUDGET: u64 = 20;

/// Second looks may cost at most one part in `BUDGET_AGAIN` of the time of all jobs. A job that is done often pays for
/// second looks as long as the process runs, and they rarely change the choice.
pub const BUDGET_AGAIN: u64 = 100;

/// The median of another way must be lower than that of the present way by more than one part in `MARGIN`.
const MARGIN: u64 = 40;

/// A look ends early if the median of the way is more than `HOPELESS` times that of the present way.
const HOPELESS: u64 = 2;

/// A look ends early if this number of costs is recorded and all of them are higher than the median of the present way.
/// If the two ways are equal, one look in eight ends so; then nothing is lost.
const BEHIND: u8 = 3;

/// Number of jobs after which the chooser gives a way a second look for the first time.
const LOOK_FIRST: u64 = 64;

/// Maximum number of jobs from the turn of one way to the turn of the next way.
const LOOK_AGAIN: u64 = 512;

/// The present way has drifted if its median has risen by more than one part in `DRIFT`.
const DRIFT: u64 = 3;

/// Number of jobs after which only one job in [`EVERY`] of the present way is timed.
const SETTLED: u64 = 64;

/// See [`SETTLED`].
const EVERY: u64 = 8;

/// In the sums, a cost counts as at most this number of medians of its way, or of the present way if that is slower.
/// One job that waited for seconds would pay for looks of minutes, or would use up the budget of all looks.
const OUTLIER: u64 = 8;

/// The same for the first cost of a way, for which there is no median yet.
const FIRST_OUTLIER: u64 = 64;

/// The costs of one way.
#[derive(Clone, Copy, Debug, Default)]
struct Way {
    /// The latest costs; the first `filled` entries are valid.
    costs: [u64; SAMPLES],
    filled: u8,
    next: u8,
    /// The median of `costs`.
    median: u64,
    /// The median of the costs before the present second look.
    before: Option<u64>,
    /// The way has been used once. The cost of that first job is not among the costs.
    begun: bool,
    /// The way has been dropped until the next second look, because it is slower.
    dropped: bool,
    /// The way has been dropped because it is much slower.
    hopeless: bool,
    /// The last look at the way ended because the way is much slower.
    was_hopeless: bool,
    /// The way has been judged before, so the next look at it is a second look.
    again: bool,
    /// The way does not work on this machine or between these ranks.
    failed: bool,
}

impl Way {
    fn push(&mut self, cost: u64) {
        self.costs[usize::from(self.next)] = cost;
        self.next = (self.next + 1) % SAMPLES as u8;
        self.filled = (self.filled + 1).min(SAMPLES as u8);
        let filled = usize::from(self.filled);
        let mut costs = self.costs;
        costs[..filled].sort_unstable();
        self.median = costs[(filled - 1) / 2];
    }

    /// Returns the median of the latest costs; `None` if there are none.
    #[inline]
    fn median(&self) -> Option<u64> {
        (self.filled > 0).then_some(self.median)
    }

    /// Like [`Way::median`]. At the beginning of a second look, returns the median of the costs before it.
    #[inline]
    fn known(&self) -> Option<u64> {
        self.median().or(self.before)
    }

    /// Returns whether the latest look at the way is over.
    fn is_judged(&self) -> bool {
        self.dropped || usize::from(self.filled) >= SAMPLES
    }

    /// Forgets the costs, so that the way gets a second look. The look counts as a first one if the way has not been
    /// judged yet.
    fn look_again(&mut self) {
        *self = Self {
            failed: self.failed,
            begun: self.begun,
            was_hopeless: self.hopeless,
            again: self.again || self.is_judged(),
            before: self.known(),
            ..Self::default()
        };
    }

    /// Forgets the costs and the judgement, so that the next look at the way is a first look.
    fn forget(&mut self) {
        *self = Self { failed: self.failed, begun: self.begun, ..Self::default() };
    }
}

/// What [`Chooser::pick`] has picked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pick {
    /// Number of the way.
    pub way: u8,
    /// True if the chooser wants to know the cost of this job.
    pub timed: bool,
}

/// Picks one of several ways; see the documentation of the module.
#[derive(Clone, Debug)]
pub struct Chooser {
    ways: Vec<Way>,
    len: u8,
    /// The present way.
    best: u8,
    /// The lowest median of the present way since it was chosen or last drifted; 0 if there is none yet.
    reference: u64,
    /// Number of picks.
    jobs: u64,
    /// Number of jobs at which the next second look begins.
    again: u64,
    /// The way whose turn came last. If it was the present way, no second look took place.
    turn: u8,
    /// The cost of all jobs. A job that was not timed counts as the median of the present way.
    spent: u64,
    /// The cost of all looks together.
    lost: u64,
    /// The cost of all second looks together.
    lost_again: u64,
    /// True if the present way has drifted and no other way has replaced it since.
    drifted: bool,
}

impl Chooser {
    /// Creates a chooser over the ways `0..len`, of which `first` is the static choice. `len` must be at
    /// least 1 and at most [`WAYS`]; a value outside this domain counts as the nearest value in it.
    pub fn new(len: usize, first: u8) -> Self {
        let len = len.clamp(1, WAYS) as u8;
        Self {
            ways: vec![Way::default(); usize::from(len)],
            len,
            best: first.min(len - 1),
            reference: 0,
            jobs: 0,
            again: LOOK_FIRST,
            turn: 0,
            spent: 0,
            lost: 0,
            lost_again: 0,
            drifted: false,
        }
    }

    /// Returns the present way.
    #[inline]
    pub fn best(&self) -> u8 {
        self.best
    }

    /// Returns the number of ways.
    #[inline]
    pub fn ways(&self) -> usize {
        usize::from(self.len)
    }

    /// Returns the number of jobs so far.
    pub fn jobs(&self) -> u64 {
        self.jobs
    }

    /// Returns the median of the latest costs of a way, or `None` if no cost of the way is recorded. At the beginning
    /// of a second look, these are the costs before it.
    pub fn median(&self, way: u8) -> Option<u64> {
        self.ways.get(usize::from(way)).and_then(Way::known)
    }

    /// Returns whether the present way has been compared with all other ways that work. A second look under way changes
    /// nothing about this.
    pub fn is_settled(&self) -> bool {
        let compared = |way: u8| self.is_judged(way) || self.ways[usize::from(way)].again;
        self.others().all(compared) && self.median(self.best).is_some()
    }

    /// Returns two sums: the cost of all looks, and the cost of all jobs.
    pub fn lost_and_spent(&self) -> (u64, u64) {
        (self.lost, self.spent)
    }

    /// Picks the way for the next job. A job that is not timed counts as the median of the present way.
    pub fn pick(&mut self) -> Pick {
        let pick = self.pick_uncharged();
        if !pick.timed {
            self.charge_untimed();
        }
        pick
    }

    /// Picks the way for the next job, for a caller that decides which jobs it times. The caller must call
    /// [`charge_untimed`](Self::charge_untimed) for each job that it does not time.
    pub fn pick_uncharged(&mut self) -> Pick {
        self.jobs = self.jobs.saturating_add(1);
        if self.len == 1 {
            return Pick { way: self.best, timed: false };
        }
        if let Some(way) = self.due() {
            return Pick { way, timed: true };
        }
        let timed = self.jobs <= SETTLED || self.jobs.is_multiple_of(EVERY);
        Pick { way: self.best, timed }
    }

    /// Adds the cost of a job in the present way that nobody times.
    pub fn charge_untimed(&mut self) {
        self.spent = self.spent.saturating_add(self.median(self.best).unwrap_or(0));
    }

    /// Returns how much of the cost of a job in the way `way` goes into the sums.
    fn counted(&self, way: u8, cost: u64) -> u64 {
        let Some(present) = self.median(self.best) else { return 0 };
        let most = match self.median(way) {
            Some(own) => own.max(present).saturating_mul(OUTLIER),
            None => present.saturating_mul(FIRST_OUTLIER),
        };
        cost.min(most)
    }

    /// Records the cost of a job that was done in the way `way`. The caller chooses the unit of the costs,
    /// which must be the same for all jobs of one chooser.
    pub fn report(&mut self, way: u8, cost: u64) {
        if way >= self.len {
            return;
        }
        let present = self.median(self.best);
        let counted = self.counted(way, cost);
        self.spent = self.spent.saturating_add(counted);
        if !std::mem::replace(&mut self.ways[usize::from(way)].begun, true) {
            return;
        }
        if way == self.best {
            self.ways[usize::from(way)].push(cost);
            return self.watch();
        }
        // Before there is a cost of the present way, another way cannot be judged.
        let Some(present) = present else { return };
        self.ways[usize::from(way)].push(cost);
        let lost = counted.saturating_sub(present);
        self.lost = self.lost.saturating_add(lost);
        let seen = &mut self.ways[usize::from(way)];
        if seen.again {
            self.lost_again = self.lost_again.saturating_add(lost);
        }
        let Some(median) = seen.median() else { return };
        let enough = if seen.was_hopeless { 1 } else { 2 };
        let lowest = seen.costs[..usize::from(seen.filled)].iter().min();
        if seen.filled >= enough && median > HOPELESS.saturating_mul(present) {
            (seen.dropped, seen.hopeless) = (true, true);
        } else if seen.filled == BEHIND && lowest.is_some_and(|cost| *cost > present) {
            seen.dropped = true;
        } else if usize::from(seen.filled) == SAMPLES && median < present - present / MARGIN {
            let replaced = std::mem::replace(&mut self.best, way);
            self.reference = median;
            if std::mem::take(&mut self.drifted) {
                // The costs that have risen may be outliers.
                self.ways[usize::from(replaced)].forget();
            }
        }
    }

    /// Adds the cost of a job in the way `way` to the sums, and does not judge the way by it. The jobs after a change
    /// of way may be slower than later ones.
    pub fn charge(&mut self, way: u8, cost: u64) {
        let cost = self.counted(way, cost);
        self.spent = self.spent.saturating_add(cost);
        if let Some(seen) = self.ways.get(usize::from(way))
            && way != self.best
        {
            let lost = cost.saturating_sub(self.median(self.best).unwrap_or(cost));
            self.lost = self.lost.saturating_add(lost);
            if seen.again {
                self.lost_again = self.lost_again.saturating_add(lost);
            }
        }
    }

    /// Returns whether the budgets pay for `jobs` jobs of a look at `way`.
    pub fn affords(&self, way: u8, jobs: u64) -> bool {
        let present = self.median(self.best).unwrap_or(0);
        way < self.len && self.pays_for(way, present, jobs)
    }

    /// Records that a way does not work. It is not picked again, unless no way works: then the present way
    /// stays.
    pub fn fail(&mut self, way: u8) {
        if way >= self.len {
            return;
        }
        self.ways[usize::from(way)].failed = true;
        if way == self.best
            && let Some(other) = (0..self.len).find(|&way| !self.ways[usize::from(way)].failed)
        {
            (self.best, self.reference) = (other, self.median(other).unwrap_or(0));
        }
    }

    /// Lets the other ways get a second look if the median of the present way has drifted.
    fn watch(&mut self) {
        let Some(median) = self.median(self.best) else { return };
        if usize::from(self.ways[usize::from(self.best)].filled) < SAMPLES {
            return;
        }
        if self.reference == 0 || median < self.reference {
            self.reference = median;
        } else if median > self.reference.saturating_add(self.reference / DRIFT) {
            (self.reference, self.drifted) = (median, true);
            // This runs while short messages move, so it must not allocate.
            for way in (0..).zip(&mut self.ways).filter(|(way, _)| *way != self.best) {
                if !way.1.failed {
                    way.1.forget();
                }
            }
        }
    }

    /// Returns the other way that the next job looks at, or `None` if the next job uses the present way.
    fn due(&mut self) -> Option<u8> {
        if self.jobs >= self.again {
            self.again = self.jobs.saturating_add(self.jobs.min(LOOK_AGAIN));
            self.turn = (self.turn + 1) % self.len;
            if self.turn != self.best {
                self.ways[usize::from(self.turn)].look_again();
            }
        }
        let present = &self.ways[usize::from(self.best)];
        if usize::from(present.filled) < SAMPLES {
            return None;
        }
        let median = present.median()?;
        self.others().find(|&way| !self.is_judged(way) && self.pays(way, median))
    }

    /// Returns whether the budgets pay for one job of a look at `way`. `present` is the median of the present way.
    fn pays(&self, way: u8, present: u64) -> bool {
        self.pays_for(way, present, 1)
    }

    fn pays_for(&self, way: u8, present: u64, jobs: u64) -> bool {
        // The earlier costs of a way may be those of a bad beginning, so they count as twice the present way's at most.
        let expected =
            self.median(way).map_or(present, |cost| cost.saturating_sub(present).min(present));
        let expected = expected.saturating_mul(jobs);
        let again = self.ways[usize::from(way)].again;
        self.lost.saturating_add(expected) <= self.spent / BUDGET
            && (!again || self.lost_again.saturating_add(expected) <= self.spent / BUDGET_AGAIN)
    }

    /// Returns whether the latest look at a way is over.
    fn is_judged(&self, way: u8) -> bool {
        self.ways[usize::from(way)].is_judged()
    }

    /// Returns the ways that work, without the present one.
    fn others(&self) -> impl Iterator<Item = u8> + use<'_> {
        (0..self.len).filter(|&way| way != self.best && !self.ways[usize::from(way)].failed)
    }
}
