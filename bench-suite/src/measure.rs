//! Times the competitors of one [`Bench`] in interleaved rounds.
//!
//! `prepare.rs` has already verified the competitors; `report.rs` prints the [`Row`]s. In every round
//! each competitor takes its turn (A B C D A B C D …), so that a slow phase of the machine slows all of
//! them down. A turn is one call that warms up the caches, and then a few samples. Each sample is a batch
//! of calls that is long enough for the clock. The value of a turn is the median of its samples, a figure
//! is the median of the turns, and the spread says how far the turns differ.

use crate::competitor::JIT;
use crate::prepare::Bench;
use serde::Serialize;
use std::time::Instant;
use typepack_engine::kernel::Direction;

/// A row whose rounds differ by more than this ratio is unsteady. An unsteady row neither passes nor
/// misses a bar.
pub const STEADY: f64 = 1.25;
/// After this many bytes the engine has compiled a kernel for most layouts that are worth one: a kernel
/// that saves 5 ps per byte has repaid its compilation (`engine/src/plan/cost/`).
const SETTLED_BYTES: u64 = 48 << 20;
/// The shortest duration of a sample.
const SAMPLE_NS: f64 = 50_000.0;
/// Samples per turn; a turn of long calls has fewer.
const SAMPLES: usize = 9;
/// A turn that would take longer than this has only a few samples.
const TURN_NS: f64 = 20_000_000.0;

/// The figures of one competitor in one row.
#[derive(Clone, Debug, Serialize)]
pub struct Figure {
    /// The competitor.
    pub competitor: String,
    /// The name of the kernel or loop that has moved the bytes.
    pub executor: String,
    /// The duration of one call: median over the rounds.
    pub ns: f64,
    /// Packed data in 10^9 bytes per second.
    pub gb_per_s: f64,
    /// The time of the slowest round divided by the time of the fastest round.
    pub spread: f64,
}

/// A competitor that another process times, and that takes turns with the competitors of a [`Bench`].
pub trait Guest {
    /// Returns a short name, which is the same in every row.
    fn name(&self) -> &str;

    /// Takes one turn, like that of a competitor. Returns nanoseconds per call.
    ///
    /// # Errors
    ///
    /// Returns a one-line message if the guest fails. The guest then has no figure in this row.
    fn turn(&mut self, direction: Direction) -> Result<f64, String>;
}

/// One layout at one size in one direction.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The layout's name.
    pub layout: String,
    /// Packed bytes per call.
    pub bytes: u64,
    /// The requested size.
    pub size: u64,
    /// `pack` or `unpack`.
    pub direction: &'static str,
    /// One figure per competitor, in the order of the turns.
    pub figures: Vec<Figure>,
}

impl Row {
    /// Returns the figure of the competitor `name`.
    pub fn figure(&self, name: &str) -> Option<&Figure> {
        self.figures.iter().find(|f| f.competitor == name)
    }

    /// Returns the JIT's bandwidth divided by that of `name`.
    pub fn ratio(&self, name: &str) -> Option<f64> {
        self.ratio_of(JIT, name)
    }

    /// Returns the bandwidth of `one` divided by that of `other`.
    pub fn ratio_of(&self, one: &str, other: &str) -> Option<f64> {
        Some(self.figure(one)?.gb_per_s / self.figure(other)?.gb_per_s)
    }

    /// Is every figure steady?
    pub fn is_steady(&self) -> bool {
        self.figures.iter().all(|f| f.spread <= STEADY)
    }
}

/// Returns the name of a direction in rows and arguments.
pub fn direction_name(direction: Direction) -> &'static str {
    match direction {
        Direction::Pack => "pack",
        Direction::Unpack => "unpack",
    }
}

/// Measures `bench` in `direction` with `rounds` rounds (at least 1). `size` is the requested size.
pub fn measure(bench: &mut Bench, size: u64, direction: Direction, rounds: usize) -> Row {
    measure_with(bench, &mut [], size, direction, rounds).0
}

/// Measures like [`measure`], with guests that take their turns in the same rounds. A guest that fails
/// has no figure. The second returned value has a line for each such guest, which begins with the guest's
/// name.
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

/// Returns the nanoseconds per call of a batch of `calls`.
fn sample(bench: &mut Bench, competitor: usize, direction: Direction, calls: usize) -> f64 {
    let start = Instant::now();
    for _ in 0..calls {
        bench.call(competitor, direction);
        // Keeps the compiler from merging the calls: the buffers count as read and changed.
        std::hint::black_box(&mut *bench);
    }
    start.elapsed().as_nanos().max(1) as f64 / calls as f64
}

/// Makes enough calls for the engine's policy to decide whether to compile a kernel. Then measures and
/// returns the number of calls that fill a sample.
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

/// Takes one turn of a competitor. Returns nanoseconds per call: the median of a few samples.
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

/// Sorts `values`, which must not be empty, and returns their median.
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
