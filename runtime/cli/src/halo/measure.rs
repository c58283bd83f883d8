//! The measurements of a run and their .csv form. Every rank has the measurements of all ranks.
//!
//! `job.rs` makes a [`Measurement`], `report.rs` prints it, and `plot.rs` draws it. `plot.rs` can also draw
//! it beside the measurement of an earlier run, which [`Measurement::from_csv`] reads.

use std::fmt::Write;
use std::time::{Duration, Instant};

use typepack::{Communicator, Op};

use super::solver::Phases;

/// The names of the phases, in the order of the times in [`Measurement::phases`].
pub const PHASES: [&str; 5] = ["start", "interior", "wait", "rim", "plain"];

/// Times of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct Measurement {
    /// The mode of the JIT, for example `lazy`.
    pub jit: String,
    /// The other options in words, for the caption of a picture.
    pub setup: String,
    /// Number of time steps.
    pub steps: u64,
    /// Number of halo exchanges in these steps.
    pub exchanges: u64,
    /// Number of bytes that all ranks together send in one exchange.
    pub bytes: u64,
    /// For each rank, the time that it spent in each phase in all steps together, in seconds.
    pub phases: Vec<[f64; 5]>,
    /// The time of an exchange without computation, in seconds: 10th percentile, median, 90th percentile.
    pub exchange: [f64; 3],
    /// Number of exchanges that were measured for `exchange`.
    pub samples: u64,
}

impl Measurement {
    /// Returns, for each phase, the time of the rank that spent the most time in this phase, in seconds.
    pub fn slowest(&self) -> [f64; 5] {
        std::array::from_fn(|phase| {
            self.phases.iter().map(|times| times[phase]).fold(0.0, f64::max)
        })
    }

    /// Returns how many times the phase with index `phase` ran.
    pub fn calls(&self, phase: usize) -> u64 {
        if phase < 4 { self.exchanges } else { self.steps - self.exchanges }
    }

    /// Returns the .csv text: a header, one row per rank and phase, and three rows for the exchange without
    /// computation.
    pub fn to_csv(&self) -> String {
        let mut text = format!("{HEADER}\n");
        let mut row = |rank: &str, phase: &str, calls: u64, seconds: f64| {
            let each = if calls == 0 { 0.0 } else { seconds / calls as f64 * 1e6 };
            // Writing to a string cannot fail, so the result is ignored.
            let _infallible = writeln!(
                text,
                "{},{},{},{},{},{rank},{phase},{calls},{seconds:.9},{each:.3}",
                self.jit, self.setup, self.steps, self.exchanges, self.bytes
            );
        };
        for (rank, times) in self.phases.iter().enumerate() {
            for (phase, &seconds) in times.iter().enumerate() {
                row(&rank.to_string(), PHASES[phase], self.calls(phase), seconds);
            }
        }
        for (name, seconds) in EXCHANGE.into_iter().zip(self.exchange) {
            row("all", name, self.samples, seconds * self.samples as f64);
        }
        text
    }

    /// Parses a text that [`to_csv`](Measurement::to_csv) has written.
    pub fn from_csv(text: &str) -> Result<Self, String> {
        let mut lines = text.lines();
        let first = lines.next().unwrap_or_default();
        if first != HEADER {
            let found: String = first.chars().take(80).collect();
            return Err(format!(
                "the first line is {found:?}; the first line of a .csv file of typepack halo is {HEADER}"
            ));
        }
        let mut result: Option<Self> = None;
        for (number, line) in lines.enumerate() {
            let bad = || {
                format!("line {} is {line:?}, which does not fit the columns {HEADER}", number + 2)
            };
            let cells: Vec<&str> = line.split(',').collect();
            let [jit, setup, steps, exchanges, bytes, rank, phase, calls, seconds, _] = cells[..]
            else {
                return Err(bad());
            };
            let whole = |text: &str| text.parse::<u64>().map_err(|_| bad());
            let (steps, exchanges) = (whole(steps)?, whole(exchanges)?);
            if exchanges > steps {
                return Err(bad());
            }
            let seconds: f64 = seconds.parse().map_err(|_| bad())?;
            if !(0.0..1e9).contains(&seconds) {
                return Err(bad());
            }
            let result = result.get_or_insert(Self {
                jit: jit.to_owned(),
                setup: setup.to_owned(),
                steps,
                exchanges,
                bytes: whole(bytes)?,
                phases: Vec::new(),
                exchange: [0.0; 3],
                samples: 0,
            });
            if let Some(place) = EXCHANGE.iter().position(|&name| name == phase) {
                result.samples = whole(calls)?;
                result.exchange[place] = seconds / result.samples.max(1) as f64;
                continue;
            }
            let place = PHASES.iter().position(|&name| name == phase).ok_or_else(bad)?;
            let rank = whole(rank)?;
            // The rows are ordered by rank, so a rank without a row so far must be the next rank.
            if rank == result.phases.len() as u64 {
                result.phases.push([0.0; 5]);
            }
            let times = usize::try_from(rank).ok().and_then(|rank| result.phases.get_mut(rank));
            times.ok_or_else(bad)?[place] = seconds;
        }
        result
            .filter(|result| !result.phases.is_empty())
            .ok_or("the file has no measurement".into())
    }
}

const HEADER: &str =
    "jit,setup,steps,exchanges,bytes_per_exchange,rank,phase,calls,seconds,us_per_call";
const EXCHANGE: [&str; 3] = ["exchange_p10", "exchange_median", "exchange_p90"];

/// Returns the time of each phase in seconds, with one entry per rank. Every rank calls this function and
/// gets the same result.
pub fn gather_phases(comm: &Communicator, phases: Phases) -> typepack::Result<Vec<[f64; 5]>> {
    let own = [phases.start, phases.interior, phases.wait, phases.rim, phases.plain];
    let mut all = vec![0.0; comm.size() * own.len()];
    for (slot, time) in all[comm.rank() * own.len()..].iter_mut().zip(own) {
        *slot = time.as_secs_f64();
    }
    // In each slot, one rank stores its time and the other ranks store zero, so the sum over the ranks is the
    // time of that one rank.
    comm.all_reduce_in_place(&mut all, Op::Sum)?;
    Ok(all.as_chunks().0.to_vec())
}

/// Measures exchanges without computation. Every exchange begins after a barrier, and its time is that of the
/// slowest rank. Returns the sorted times in seconds. Every rank gets the same times.
pub fn exchange_alone(
    comm: &Communicator,
    mut exchange: impl FnMut() -> typepack::Result<Duration>,
) -> typepack::Result<Vec<f64>> {
    const WARM_UP: usize = 5;
    const SAMPLES: usize = 501;
    const BUDGET: f64 = 0.2;
    let mut times = Vec::with_capacity(WARM_UP + SAMPLES);
    let mut spent = 0.0;
    // `spent` has the same value on every rank, because it sums the times of the slowest rank. So all ranks
    // stop after the same number of exchanges.
    while times.len() < WARM_UP + 11 || (spent < BUDGET && times.len() < WARM_UP + SAMPLES) {
        let begin = Instant::now();
        comm.barrier()?;
        let exchange = exchange()?.as_secs_f64();
        let mut slowest = [exchange, begin.elapsed().as_secs_f64()];
        comm.all_reduce_in_place(&mut slowest, Op::Max)?;
        times.push(slowest[0]);
        spent += slowest[1];
    }
    let mut times = times.split_off(WARM_UP);
    times.sort_by(f64::total_cmp);
    Ok(times)
}

/// Returns the 10th percentile, the median and the 90th percentile of sorted times.
pub fn percentiles(sorted: &[f64]) -> [f64; 3] {
    [10, 50, 90].map(|percent| sorted[(sorted.len() - 1) * percent / 100])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measurement() -> Measurement {
        Measurement {
            jit: "lazy".into(),
            setup: "16x16x16 on 2x1x1; star".into(),
            steps: 10,
            exchanges: 5,
            bytes: 4096,
            phases: vec![[0.5, 1.0, 0.25, 2.0, 0.0], [0.25, 2.0, 0.5, 1.0, 3.0]],
            exchange: [0.001, 0.002, 0.003],
            samples: 100,
        }
    }

    #[test]
    fn csv_is_read_back() {
        let text = measurement().to_csv();
        assert_eq!(text.lines().count(), 1 + 10 + 3);
        let back = Measurement::from_csv(&text).expect("our own text");
        assert_eq!(back.phases, measurement().phases);
        assert!((back.exchange[1] - 0.002).abs() < 1e-12);
        assert_eq!(back.slowest(), [0.5, 2.0, 0.5, 2.0, 3.0]);
    }

    #[test]
    fn foreign_and_damaged_csv_is_refused() {
        let good = measurement().to_csv();
        let refused = |text: &str| Measurement::from_csv(text).expect_err("must be refused");
        let error = refused("a,b\n1,2\n");
        assert!(error.contains("\"a,b\"") && error.ends_with(HEADER), "{error}");
        assert!(refused(HEADER).contains("no measurement"));
        assert!(refused(&good.replace("interior", "exterior")).contains("line 3 is \""));
        assert!(refused(&good.replace("0.500000000", "NaN")).contains("line 2 is \""));
        assert!(refused(&format!("{good}1,2\n")).contains("line 15 is \""));
        assert!(refused(&good.replace(",1,start", ",7,start")).contains("line 7 is \""));
    }

    #[test]
    fn percentiles_come_from_sorted_times() {
        let times: Vec<f64> = (0..101).map(f64::from).collect();
        assert_eq!(percentiles(&times), [10.0, 50.0, 90.0]);
        assert_eq!(percentiles(&[3.0]), [3.0; 3]);
    }
}
