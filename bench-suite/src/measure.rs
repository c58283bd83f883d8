//! Times the competitors of one [`Bench`] in interleaved rounds.
//!
//! `prepare.rs` has already verified the competitors; `row/` has the [`Row`]s. In every round each
//! competitor takes its turn (A B C D A B C D …), so that a slow phase of the machine slows all of them
//! down. A turn is one call that warms up the caches, and then a few samples. A sample is a batch of calls
//! that takes long enough for the clock. The value of a turn is the median of its samples, and a figure is
//! the median of the turns. The spread of a figure is the ratio of its slowest turn to its fastest one.

use crate::prepare::Bench;
use crate::row::{Figure, Row, median};
use std::time::Instant;
use typepack_engine::kernel::Direction;

/// The number of packed bytes that are moved before a measurement, except that at least 2 and at most 65536
/// calls are made. When this many bytes have been moved, the engine has compiled kernels for most of the
/// layouts for which compilation pays: by then, even a kernel that saves only 5 ps per byte would have
/// repaid its compilation (`engine/src/plan/cost/`).
const SETTLED_BYTES: u64 = 48 << 20;
/// The intended duration of a sample, in nanoseconds.
const SAMPLE_NS: f64 = 50_000.0;
/// The number of samples per turn. A turn of long calls has fewer.
const SAMPLES: usize = 9;
/// The longest intended duration of a turn, in nanoseconds. A turn that would take longer has fewer
/// samples, but at least three.
const TURN_NS: f64 = 20_000_000.0;

/// A competitor in another process. That process times the calls. A guest takes turns with the
/// competitors of a [`Bench`].
pub trait Guest {
    /// Returns the short name of the guest, which is the same in every row.
    fn name(&self) -> &str;

    /// Takes one turn as a competitor does. Returns the nanoseconds per call.
    ///
    /// # Errors
    ///
    /// Returns a one-line message if the guest fails. The guest then has no figure in this row.
    fn turn(&mut self, direction: Direction) -> Result<f64, String>;
}

/// Returns the name that a direction has in rows and arguments.
pub fn direction_name(direction: Direction) -> &'static str {
    match direction {
        Direction::Pack => "pack",
        Direction::Unpack => "unpack",
    }
}

/// Measures all competitors of `bench` in `direction` with `rounds` rounds (at least 1). `size` is the
/// requested size, which the row states.
pub fn measure(bench: &mut Bench, size: u64, direction: Direction, rounds: usize) -> Row {
    measure_with(bench, &mut [], size, direction, rounds).0
}

/// Measures like [`measure`]; in every round, the guests take their turns after the competitors. Also
/// returns one line for each guest that failed. The line begins with the name of the guest. Such a guest
/// has no figure in the row.
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
    let figure = |competitor: &str, executor: String, turns: &mut [f64]| {
        let ns = median(turns);
        Figure { executor, ..Figure::new(competitor, ns, turns[turns.len() - 1] / turns[0]) }
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
    let row = Row {
        name: bench.layout.name.clone(),
        part: direction_name(direction).to_owned(),
        class: bench.layout.class.name(),
        size: Some(size),
        bytes: bench.layout.payload,
        figures,
        ..Row::default()
    };
    (row, faults)
}

/// Makes `calls` calls. Returns the nanoseconds per call.
fn sample(bench: &mut Bench, competitor: usize, direction: Direction, calls: usize) -> f64 {
    let start = Instant::now();
    for _ in 0..calls {
        bench.call(competitor, direction);
        // The compiler must assume that this line reads and changes the buffers. So it cannot merge the
        // calls.
        std::hint::black_box(&mut *bench);
    }
    start.elapsed().as_nanos().max(1) as f64 / calls as f64
}

/// Makes enough calls for the engine's policy to decide whether to compile a kernel. Then finds and
/// returns the number of calls for one sample.
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

/// Takes one turn of the competitor at the index `competitor`, with `calls` calls per sample. Returns the
/// nanoseconds per call: the median of the samples.
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
