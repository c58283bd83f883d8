//! Times competitors in interleaved rounds: those of one [`Bench`], or any calls (`take_turns`).
//!
//! `prepare.rs` has already verified the competitors of a [`Bench`]; `row/` has the [`Row`]s. In every round each
//! competitor takes its turn (A B C D A B C D …), so that a slow phase of the machine slows all of them
//! down. A turn is one call that warms up the caches, and then a few samples. A sample is a batch of calls
//! that takes long enough for the clock. The value of a turn is the median of its samples, and a figure is
//! the median of the turns. The spread of a figure is the ratio of its slowest turn to its fastest one.

use crate::prepare::Bench;
use crate::row::{Figure, Row, STEADY, median};
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
    let own = bench.competitors.len();
    let calls: Vec<usize> = (0..own).map(|c| calibrate(bench, c, direction)).collect();
    let all = own + guests.len();
    let mut turns: Vec<Result<Vec<f64>, String>> = (0..all).map(|_| Ok(Vec::new())).collect();
    in_rounds(rounds, all, |at| {
        let Ok(list) = &mut turns[at] else { return };
        let taken = match calls.get(at) {
            Some(&calls) => Ok(turn(bench, at, direction, calls)),
            None => guests[at - own].turn(direction),
        };
        match taken {
            Ok(ns) => list.push(ns),
            Err(line) => turns[at] = Err(format!("{}: {line}", guests[at - own].name())),
        }
    });
    let (mut figures, mut faults) = (Vec::new(), Vec::new());
    for (at, turns) in turns.into_iter().enumerate() {
        let (name, executor) = match bench.competitors.get(at) {
            Some(competitor) => (competitor.name(), competitor.executor(direction)),
            None => (guests[at - own].name(), String::new()),
        };
        match turns.map(Time::of) {
            Ok(Time { ns, spread }) => {
                figures.push(Figure { executor, ..Figure::new(name, ns, spread) });
            }
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

/// The time of one competitor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Time {
    /// The time per call in nanoseconds: the median of the turns.
    pub ns: f64,
    /// The slowest turn divided by the fastest one.
    pub spread: f64,
}

impl Time {
    /// Returns the time of a competitor from its turns, of which there is at least one.
    pub fn of(mut turns: Vec<f64>) -> Self {
        let ns = median(&mut turns);
        Self { ns, spread: turns[turns.len() - 1] / turns[0] }
    }

    /// Returns whether the turns differ little.
    pub fn is_steady(self) -> bool {
        self.spread <= STEADY
    }
}

/// Calls `turn` for each of `competitors` competitors in each of `rounds` rounds (at least 1).
pub(crate) fn in_rounds(rounds: usize, competitors: usize, mut turn: impl FnMut(usize)) {
    for _ in 0..rounds.max(1) {
        (0..competitors).for_each(&mut turn);
    }
}

/// Times the calls of `competitors` in `rounds` rounds. Returns the time of one call of each competitor.
pub(crate) fn take_turns<const N: usize>(
    rounds: usize,
    mut competitors: [&mut dyn FnMut(); N],
) -> [Time; N] {
    let calls = competitors.each_mut().map(calls_for_sample);
    let mut turns = [const { Vec::new() }; N];
    in_rounds(rounds, N, |at| turns[at].push(take_turn(&mut competitors[at], calls[at])));
    turns.map(Time::of)
}

/// Makes `calls` calls. Returns the nanoseconds per call.
fn sample(call: &mut impl FnMut(), calls: usize) -> f64 {
    let start = Instant::now();
    for _ in 0..calls {
        call();
    }
    start.elapsed().as_nanos().max(1) as f64 / calls as f64
}

/// Returns the number of calls for one sample.
fn calls_for_sample(call: &mut impl FnMut()) -> usize {
    let mut calls = 1;
    loop {
        let ns = sample(call, calls) * calls as f64;
        if ns >= SAMPLE_NS / 2.0 || calls >= 1 << 24 {
            return ((calls as f64 * SAMPLE_NS / ns).ceil() as usize).max(1);
        }
        calls *= 2;
    }
}

/// Takes one turn, with `calls` calls per sample. Returns the nanoseconds per call: the median of the samples.
fn take_turn(call: &mut impl FnMut(), calls: usize) -> f64 {
    let warm_up = sample(call, 1);
    let affordable = (TURN_NS / (warm_up * calls as f64)) as usize;
    let samples = affordable.clamp(3, SAMPLES);
    let mut list: Vec<f64> = (0..samples).map(|_| sample(call, calls)).collect();
    median(&mut list)
}

/// Returns a call of the competitor at the index `competitor`.
fn caller(bench: &mut Bench, competitor: usize, direction: Direction) -> impl FnMut() + '_ {
    move || {
        bench.call(competitor, direction);
        // The compiler must assume that this line reads and changes the buffers. So it cannot merge the calls.
        std::hint::black_box(&mut *bench);
    }
}

/// Makes enough calls for the engine's policy to decide whether to compile a kernel. Then finds and
/// returns the number of calls for one sample.
pub(crate) fn calibrate(bench: &mut Bench, competitor: usize, direction: Direction) -> usize {
    let before = (SETTLED_BYTES / bench.layout.payload.max(1)) as usize;
    let mut call = caller(bench, competitor, direction);
    sample(&mut call, before.clamp(2, 1 << 16));
    calls_for_sample(&mut call)
}

/// Takes one turn of the competitor at the index `competitor`, with `calls` calls per sample. Returns the
/// nanoseconds per call: the median of the samples.
pub(crate) fn turn(
    bench: &mut Bench,
    competitor: usize,
    direction: Direction,
    calls: usize,
) -> f64 {
    take_turn(&mut caller(bench, competitor, direction), calls)
}
