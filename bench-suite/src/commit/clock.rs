//! Measures calls in interleaved rounds. In every round, each competitor takes its turn; the result of a
//! competitor is the median over the rounds.
//!
//! The files of this folder that measure something use this file. The median, and the limit up to which a
//! spread counts as steady, come from `../measure.rs`.

use crate::row::{STEADY, median};
use std::time::Instant;

/// The intended duration of a sample (a batch of calls that is timed as a whole), in nanoseconds.
const SAMPLE_NS: f64 = 50_000.0;
/// Samples per turn.
const SAMPLES: usize = 5;

/// The time of one competitor.
#[derive(Clone, Copy, Debug)]
pub(super) struct Time {
    /// The time per call in nanoseconds: the median of the rounds.
    pub(super) ns: f64,
    /// True if the slowest round takes at most [`STEADY`] times as long as the fastest one.
    pub(super) steady: bool,
}

/// Returns the median of `values`, which holds one value per round, and whether the values are steady.
pub(super) fn of_rounds(mut values: Vec<f64>) -> Time {
    let ns = median(&mut values);
    Time { ns, steady: values[values.len() - 1] / values[0] <= STEADY }
}

/// Times the calls of `competitors` in `rounds` rounds. Returns the time of one call of each competitor.
pub(super) fn take_turns<const N: usize>(
    rounds: usize,
    mut competitors: [&mut dyn FnMut(); N],
) -> [Time; N] {
    let calls: Vec<usize> = competitors.iter_mut().map(|call| calibrate(*call)).collect();
    let mut turns = [const { Vec::new() }; N];
    for _ in 0..rounds.max(1) {
        for (i, call) in competitors.iter_mut().enumerate() {
            call();
            let mut samples: Vec<f64> = (0..SAMPLES).map(|_| sample(*call, calls[i])).collect();
            turns[i].push(median(&mut samples));
        }
    }
    turns.map(of_rounds)
}

/// Makes `calls` calls. Returns the nanoseconds per call.
fn sample(call: &mut dyn FnMut(), calls: usize) -> f64 {
    let start = Instant::now();
    for _ in 0..calls {
        call();
    }
    start.elapsed().as_nanos().max(1) as f64 / calls as f64
}

fn calibrate(call: &mut dyn FnMut()) -> usize {
    let mut calls = 1;
    loop {
        let ns = sample(call, calls) * calls as f64;
        if ns >= SAMPLE_NS / 2.0 || calls >= 1 << 20 {
            return ((calls as f64 * SAMPLE_NS / ns).ceil() as usize).max(1);
        }
        calls *= 2;
    }
}
