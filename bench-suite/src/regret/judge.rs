//! Computes the regret of one row from the times of the free choice and of the forced candidates.
//!
//! `kernels.rs`, `../message/regret/` and `../files/regret.rs` measure the times; `verdict.rs` judges many
//! rows.
//!
//! The rounds have two halves, so that luck does not count twice. If the best candidate were picked and
//! timed on the same rounds, the minimum over several noisy figures would be too small, and the regret too
//! large. So the best candidate is the one with the least median over the even rounds (the first round has
//! the number 0). Its time, and the time of the free choice, are medians over the odd rounds.

use crate::row::{STEADY, median};

/// The least number of candidates of a row. With one candidate there is no choice.
pub const LEAST_CANDIDATES: usize = 2;
/// The least number of rounds: one to pick the best candidate, and one to time it.
pub const LEAST_ROUNDS: usize = 2;

/// A row can be steady only if it has at least this number of rounds, because the spread of a half with a single
/// round says nothing.
pub const STEADY_ROUNDS: usize = 4;

/// The times of the free choice, or of one forced candidate.
#[derive(Clone, Debug, PartialEq)]
pub struct Tried {
    /// The name of the candidate.
    pub name: String,
    /// The time of each round in nanoseconds.
    pub rounds: Vec<f64>,
    /// The mean time in nanoseconds over everything since the first use, warm-up included. `None` if it was
    /// not measured.
    pub whole: Option<f64>,
}

impl Tried {
    /// Returns the median over the even rounds.
    pub fn picked_ns(&self) -> f64 {
        median(&mut self.half(0))
    }

    /// Returns the median over the odd rounds.
    pub fn timed_ns(&self) -> f64 {
        median(&mut self.half(1))
    }

    /// Returns the time of the slowest odd round divided by the time of the fastest odd round.
    pub fn spread(&self) -> f64 {
        let half = self.half(1);
        let greatest = half.iter().copied().fold(f64::MIN, f64::max);
        greatest / half.iter().copied().fold(f64::MAX, f64::min)
    }

    fn half(&self, first: usize) -> Vec<f64> {
        self.rounds.iter().copied().skip(first).step_by(2).collect()
    }
}

/// How much the measuring choice gains over the static order in one row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gain {
    /// The time of the static order divided by the time of the free choice, over the odd rounds.
    pub ratio: f64,
    /// True if the odd rounds of both times are steady, and if there are at least [`STEADY_ROUNDS`] rounds.
    pub steady: bool,
}

/// Compares the free choice with the static order. Returns `None` if one of them lacks rounds.
pub fn gain(free: &Tried, unmeasured: &Tried) -> Option<Gain> {
    let rounds = free.rounds.len();
    let is_whole = rounds >= LEAST_ROUNDS && unmeasured.rounds.len() == rounds;
    is_whole.then(|| Gain {
        ratio: unmeasured.timed_ns() / free.timed_ns(),
        steady: rounds >= STEADY_ROUNDS && free.spread() <= STEADY && unmeasured.spread() <= STEADY,
    })
}

/// The regret of one row.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// The name of the best candidate.
    pub best: String,
    /// The times of the free choice and of the best candidate in nanoseconds, over the odd rounds.
    pub ns: [f64; 2],
    /// The regret: the first of the two times divided by the second.
    pub ratio: f64,
    /// True if the odd rounds of both times are steady, and if there are at least [`STEADY_ROUNDS`] rounds.
    pub steady: bool,
    /// The regret with learning: the same ratio of the mean times since the first use. `None` if these were
    /// not measured.
    pub learning: Option<f64>,
}

/// Computes the regret of the free choice `free` against `candidates`.
///
/// # Errors
///
/// Returns a one-line message if there are fewer than [`LEAST_CANDIDATES`] candidates, if there are fewer than
/// [`LEAST_ROUNDS`] rounds, or if a candidate does not have as many rounds as the free choice.
pub fn judge(free: &Tried, candidates: &[Tried]) -> Result<Judged, String> {
    let names: Vec<&str> = candidates.iter().map(|tried| tried.name.as_str()).collect();
    if names.len() < LEAST_CANDIDATES {
        let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        return Err(format!(
            "the measured candidates are: {names}; a row needs at least {LEAST_CANDIDATES}"
        ));
    }
    let rounds = free.rounds.len();
    if rounds < LEAST_ROUNDS {
        return Err(format!("{rounds} rounds were measured; a row needs at least {LEAST_ROUNDS}"));
    }
    if let Some(other) = candidates.iter().find(|tried| tried.rounds.len() != rounds) {
        let (name, found) = (&other.name, other.rounds.len());
        return Err(format!("{name} has {found} rounds; the free choice has {rounds}"));
    }
    let best = candidates.iter().min_by(|a, b| a.picked_ns().total_cmp(&b.picked_ns()));
    let Some(best) = best else { return Err("there are no candidates".to_owned()) };
    let ns = [free.timed_ns(), best.timed_ns()];
    Ok(Judged {
        best: best.name.clone(),
        ns,
        ratio: ns[0] / ns[1],
        steady: rounds >= STEADY_ROUNDS && free.spread() <= STEADY && best.spread() <= STEADY,
        learning: free.whole.zip(best.whole).map(|(free, best)| free / best),
    })
}

#[cfg(test)]
mod tests {
    use super::{Gain, Tried, gain, judge};

    fn tried(name: &str, rounds: &[f64], whole: Option<f64>) -> Tried {
        Tried { name: name.to_owned(), rounds: rounds.to_vec(), whole }
    }

    #[test]
    fn the_best_is_picked_on_even_rounds_and_timed_on_odd_ones() {
        // `lucky` is best over the odd rounds, but not over the even ones.
        let lucky = tried("lucky", &[12.0, 1.0, 12.0, 1.0, 12.0], Some(6.0));
        let good = tried("good", &[10.0, 20.0, 11.0, 22.0, 9.0], Some(30.0));
        let free = tried("free", &[1.0, 40.0, 2.0, 44.0, 3.0], Some(45.0));
        let found = judge(&free, &[lucky, good]).expect("two candidates");
        assert_eq!((found.best.as_str(), found.ns), ("good", [42.0, 21.0]));
        assert_eq!((found.ratio, found.learning, found.steady), (2.0, Some(1.5), true));
    }

    #[test]
    fn only_the_timed_half_of_the_free_choice_and_of_the_best_decides_what_is_steady() {
        let best = tried("best", &[1.0, 10.0, 9.0, 12.0], None);
        let wild = tried("wild", &[20.0, 1.0, 20.0, 9.0], None);
        let free = tried("free", &[1.0, 10.0, 50.0, 10.0], None);
        let both = [best.clone(), wild];
        assert!(judge(&free, &both).expect("a row").steady);
        assert_eq!(judge(&free, &both).expect("a row").learning, None);
        let restless = tried("free", &[10.0, 10.0, 10.0, 13.0], None);
        assert!(!judge(&restless, &both).expect("a row").steady);
        let swapped = [tried("best", &[1.0, 10.0, 1.0, 13.0], None), best.clone()];
        assert!(!judge(&free, &swapped).expect("a row").steady);
        // One odd round has no spread.
        let few = tried("few", &[1.0, 10.0, 1.0], None);
        assert!(!judge(&few, &[few.clone(), few.clone()]).expect("a row").steady);
    }

    #[test]
    fn the_gain_is_that_of_the_odd_rounds() {
        let free = tried("free", &[1.0, 10.0, 1.0, 11.0], None);
        let fixed = tried("static", &[1.0, 22.0, 1.0, 20.0], None);
        assert_eq!(gain(&free, &fixed), Some(Gain { ratio: 2.0, steady: true }));
        let few = tried("static", &[1.0, 20.0], None);
        assert_eq!(gain(&free, &few), None);
        let wild = tried("static", &[1.0, 20.0, 1.0, 40.0], None);
        assert!(gain(&free, &wild).is_some_and(|gain| !gain.steady));
    }

    #[test]
    fn a_row_needs_two_candidates_and_two_rounds() {
        let [free, one] = ["free", "one"].map(|name| tried(name, &[1.0, 2.0], None));
        let fault =
            |free: &Tried, candidates: &[Tried]| judge(free, candidates).expect_err("a fault");
        let line = fault(&free, std::slice::from_ref(&one));
        assert_eq!(line, "the measured candidates are: one; a row needs at least 2");
        assert!(fault(&free, &[]).contains("are: none;"));
        let short = tried("short", &[1.0], None);
        assert_eq!(
            fault(&short, &[one.clone(), one.clone()]),
            "1 rounds were measured; a row needs at least 2"
        );
        let line = fault(&free, &[one, short]);
        assert_eq!(line, "short has 1 rounds; the free choice has 2");
    }
}
