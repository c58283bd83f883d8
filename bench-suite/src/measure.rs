//! Times the competitors of one [`Bench`]: interleaved rounds, medians, and how far rounds differ.
//!
//! Comes after `prepare.rs`, which has verified them; `report.rs` prints the [`Row`]s. In every
//! round each competitor takes its turn (A B C D A B C D …), so that a slow spell of the machine
//! hits all of them. A turn is one call to warm the caches, then a few samples; each sample is a
//! batch of calls long enough for the clock, and the turn's value is the median of its samples.

use crate::competitor::JIT;
use crate::prepare::Bench;
use serde::Serialize;
use std::time::Instant;
use typepack_engine::kernel::Direction;

/// Rounds that differ by more than this ratio make a row unsteady: it does not decide.
pub const STEADY: f64 = 1.25;
/// Bytes after which a layout that is worth compiling has mostly been compiled: a kernel that saves
/// 5 ps per byte repays itself (`engine/src/plan/cost/`).
const SETTLED_BYTES: u64 = 48 << 20;
/// Least duration of one sample.
const SAMPLE_NS: f64 = 50_000.0;
/// Samples per turn, fewer when a single call is long.
const SAMPLES: usize = 9;
/// Duration of a turn above which only a few samples are taken.
const TURN_NS: f64 = 20_000_000.0;

/// The figures of one competitor in one row.
#[derive(Clone, Debug, Serialize)]
pub struct Figure {
    /// The competitor.
    pub competitor: String,
    /// What did the work.
    pub executor: String,
    /// Median over the rounds of the duration of one call.
    pub ns: f64,
    /// Packed bytes per second, 10^9 bytes.
    pub gb_per_s: f64,
    /// The slowest round over the fastest.
    pub spread: f64,
}

/// Somebody who is timed elsewhere and takes turns with the competitors of a [`Bench`].
pub trait Guest {
    /// Short name, the same in every row.
    fn name(&self) -> &str;

    /// One turn, like that of a competitor: nanoseconds per call.
    ///
    /// # Errors
    ///
    /// One line; the guest leaves the row.
    fn turn(&mut self, direction: Direction) -> Result<f64, String>;
}

/// One layout at one size in one direction.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The layout's name.
    pub layout: String,
    /// Packed bytes per call.
    pub bytes: u64,
    /// The size that was asked for.
    pub size: u64,
    /// `pack` or `unpack`.
    pub direction: &'static str,
    /// One per competitor, in their order.
    pub figures: Vec<Figure>,
}

impl Row {
    /// The figure of the competitor `name`.
    pub fn figure(&self, name: &str) -> Option<&Figure> {
        self.figures.iter().find(|f| f.competitor == name)
    }

    /// The JIT's bandwidth over that of `name`.
    pub fn ratio(&self, name: &str) -> Option<f64> {
        self.ratio_of(JIT, name)
    }

    /// The bandwidth of `one` over that of `other`.
    pub fn ratio_of(&self, one: &str, other: &str) -> Option<f64> {
        Some(self.figure(one)?.gb_per_s / self.figure(other)?.gb_per_s)
    }

    /// Did the rounds of all competitors agree?
    pub fn is_steady(&self) -> bool {
        self.figures.iter().all(|f| f.spread <= STEADY)
    }
}

/// The name of a direction in rows and arguments.
pub fn direction_name(direction: Direction) -> &'static str {
    match direction {
        Direction::Pack => "pack",
        Direction::Unpack => "unpack",
    }
}

/// Measures `bench` in `direction` with `rounds` rounds (at least 1). `size` is what was asked for.
pub fn measure(bench: &mut Bench, size: u64, direction: Direction, rounds: usize) -> Row {
    measure_with(bench, &mut [], size, direction, rounds).0
}

/// As [`measure`], with guests that take their turns in the same rounds. A guest that fails has no
/// figure; its line is returned, after its name.
pub fn measure_with(
    bench: &mut Bench,
    guests: &mut [&mut dyn Guest],
    size: u64,
    direction: Direction,
    rounds: usize,
) -> (Row, Vec<String>) {
    let competitors = bench.competitors.len();
    let calls: Vec<usize> = (0..competitors).map(|c| calibrate(bench, c, direction)).collect();
    let mut turns = vec![Vec::new(); competitors];
    let mut away: Vec<Result<Vec<f64>, String>> = guests.iter().map(|_| Ok(Vec::new())).collect();
    for _ in 0..rounds.max(1) {
        for (competitor, turns) in turns.iter_mut().enumerate() {
            turns.push(turn(bench, competitor, direction, calls[competitor]));
        }
        for (guest, result) in guests.iter_mut().zip(&mut away) {
            if let Ok(turns) = result {
                match guest.turn(direction) {
                    Ok(ns) => turns.push(ns),
                    Err(line) => *result = Err(format!("{}: {line}", guest.name())),
                }
            }
        }
    }
    let payload = bench.layout.payload;
    let figure = |competitor: &str, executor: String, turns: &mut [f64]| {
        let ns = median(turns);
        Figure {
            competitor: competitor.to_owned(),
            executor,
            ns,
            gb_per_s: payload as f64 / ns,
            spread: turns[turns.len() - 1] / turns[0],
        }
    };
    let own = bench.competitors.iter().zip(&mut turns);
    let mut figures: Vec<Figure> = own
        .map(|(competitor, turns)| figure(competitor.name(), competitor.executor(direction), turns))
        .collect();
    let mut faults = Vec::new();
    for (guest, result) in guests.iter().zip(away) {
        match result {
            Ok(mut turns) => figures.push(figure(guest.name(), String::new(), &mut turns)),
            Err(line) => faults.push(line),
        }
    }
    let layout = bench.layout.name.clone();
    (Row { layout, bytes: payload, size, direction: direction_name(direction), figures }, faults)
}

/// Nanoseconds per call of a batch of `calls`.
fn sample(bench: &mut Bench, competitor: usize, direction: Direction, calls: usize) -> f64 {
    let start = Instant::now();
    for _ in 0..calls {
        bench.call(competitor, direction);
        // The next call must not be merged with this one: its buffers may have been read.
        std::hint::black_box(&mut *bench);
    }
    start.elapsed().as_nanos().max(1) as f64 / calls as f64
}

/// How many calls fill a sample. Before that, as many as a policy needs to make up its mind.
pub(crate) fn calibrate(bench: &mut Bench, competitor: usize, direction: Direction) -> usize {
    let before = (SETTLED_BYTES / bench.layout.payload.max(1)) as usize;
    sample(bench, competitor, direction, before.clamp(2, 1 << 16));
    let mut calls = 1;
    loop {
        let ns = sample(bench, competitor, direction, calls) * calls as f64;
        if ns >= SAMPLE_NS / 2.0 || calls >= 1 << 24 {
            return ((calls as f64 * SAMPLE_NS / ns).ceil() as usize).max(1);
        }
        calls *= 2;
    }
}

/// One turn of a competitor: nanoseconds per call, the median of a few samples.
pub(crate) fn turn(
    bench: &mut Bench,
    competitor: usize,
    direction: Direction,
    calls: usize,
) -> f64 {
    let warm_up = sample(bench, competitor, direction, 1);
    let affordable = (TURN_NS / (warm_up * calls as f64)) as usize;
    let samples = affordable.clamp(3, SAMPLES);
    let mut list: Vec<f64> =
        (0..samples).map(|_| sample(bench, competitor, direction, calls)).collect();
    median(&mut list)
}

/// The median; sorts `values`, which are not empty.
pub(crate) fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len().is_multiple_of(2) {
        (values[middle - 1] + values[middle]) / 2.0
    } else {
        values[middle]
    }
}

#[cfg(test)]
mod tests {
    use super::median;

    #[test]
    fn medians() {
        assert_eq!(median(&mut [3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&mut [4.0, 1.0, 2.0, 3.0]), 2.5);
    }
}
