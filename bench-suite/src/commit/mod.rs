//! Measures what a layout costs apart from packing in one call: creation, first use, finding positions,
//! packing in pieces, conversion to external32, and fused copies.
//!
//! `typepack-bench commit` runs these benchmarks. Each of the following files measures one operation and
//! checks its results: `create.rs` (create, commit and free), `tables.rs` (index lists of
//! 10^6 entries, from creation to the first pack, in new processes), `seek.rs` (finding a packed byte),
//! `segments.rs` (packing in pieces), `external.rs` (external32), `fused.rs` (copies from layout to
//! layout). `../measure.rs` lets the competitors take turns. `row.rs` compares values with bars and prints them.
//! A bar is a limit that the project requires.

mod create;
mod external;
mod fused;
mod row;
mod seek;
mod segments;
mod tables;

pub use row::{Limit, Row, csv, json, table};
pub use tables::{Child, Table};

use std::sync::Arc;
use typepack_engine::{Plan, Settings};
use typepack_jit::{Jit, Mode};

/// The parameters of a run.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    /// Number of rounds. In each round, the competitors take turns.
    pub rounds: usize,
    /// Number of entries of the index lists; the bars are for 10^6.
    pub entries: usize,
    /// Size of the layouts that are packed in pieces, in packed bytes; the bars are for 1 MiB. Also the
    /// largest size of the layouts that are converted to external32.
    pub bytes: usize,
}

/// The names of the parts, in the order of a run.
pub const PARTS: [&str; 6] = ["create", "tables", "seek", "segments", "external32", "fused"];

/// Measures all parts, or only the part `only`.
///
/// # Errors
///
/// Returns a one-line message if the engine refuses a type or a call, if an answer is wrong, if the system
/// refuses memory, if a child process fails, or if there is no part with the name `only`.
pub fn run(
    scale: &Scale,
    only: Option<&str>,
    mut progress: impl FnMut(&str),
) -> Result<Vec<Row>, String> {
    type Part = fn(&Scale) -> Result<Vec<Row>, String>;
    let parts: [Part; PARTS.len()] =
        [create::run, tables::run, seek::run, segments::run, external::run, fused::run];
    if let Some(only) = only
        && !PARTS.contains(&only)
    {
        return Err(format!("there is no part \"{only}\"; the parts are {}", PARTS.join(", ")));
    }
    let mut rows = Vec::new();
    for (name, part) in
        PARTS.into_iter().zip(parts).filter(|(name, _)| only.is_none_or(|only| only == *name))
    {
        progress(name);
        rows.extend(part(scale)?);
    }
    Ok(rows)
}

/// Returns the engine's default settings with a code generator. `mode` determines whether a kernel is
/// compiled at commit, or only when the calls so far would have repaid its compilation.
fn settings(mode: Mode) -> Settings {
    let jit = Jit::new(typepack_jit::Settings { mode, ..typepack_jit::Settings::default() });
    Settings { compiler: Some(Arc::new(jit)), ..Settings::default() }
}

/// Returns the number of bytes from the origin to the end of the data of the last of `count` elements. No
/// displacement of the type may be negative.
fn reach(plan: &Plan, count: u64) -> usize {
    let place = plan.footprint();
    (place.extent * (count as i64 - 1) + place.true_ub).max(0) as usize
}

/// Turns an error of the engine into a one-line message.
fn line(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// A generator of random numbers (xorshift). With a constant seed, the numbers are the same in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }

    fn bytes(&mut self, length: usize) -> Vec<u8> {
        (0..length).map(|_| self.below(251) as u8).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that every part measures rows with positive values. Leaves out `tables.rs`, which would
    /// start the test program as a child.
    #[test]
    fn tiny_runs_verify_and_measure() {
        let scale = Scale { rounds: 1, entries: 100, bytes: 32 << 10 };
        for part in [create::run, seek::run, segments::run, external::run, fused::run] {
            let rows = part(&scale).expect("verified answers");
            assert!(!rows.is_empty());
            assert!(rows.iter().all(|row| row.value.is_finite() && row.value > 0.0), "{rows:?}");
        }
    }
}
