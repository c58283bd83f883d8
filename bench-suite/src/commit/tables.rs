//! Measures index lists of 10^6 entries: the time and the memory that create, commit and the first pack
//! take together.
//!
//! Every measurement runs in a new process. A process that has already measured a list has free memory in
//! its heap, so the next list would seem to need less memory. For each measurement, the command starts
//! itself with the hidden argument `--child`; the new process prints a [`Child`]. The arrays of arguments,
//! the application's memory and the packed buffer are allocated and written before the measurement starts.

use super::{Limit, Numbers, Row, Scale, line, settings};
use crate::measure::Time;
use serde::{Deserialize, Serialize};
use std::hint::black_box;
use std::process::Command;
use std::time::Instant;
use typepack_engine::{Datatype, Named, pack};
use typepack_jit::Mode;

/// The kind of list that a child process measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    /// `indexed_block` of single doubles at random places.
    IndexedBlock,
    /// `indexed` of 1 to 8 doubles with random gaps.
    Indexed,
}

/// The result of a child process, which prints it as one line of JSON on standard output.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Child {
    /// Milliseconds from the beginning of create to the end of the first pack.
    pub ms: f64,
    /// Growth of the resident memory in this time, in MiB.
    pub mib: f64,
}

impl Child {
    /// Measures `table` with `entries` entries in this process.
    ///
    /// # Errors
    ///
    /// Returns a one-line message if the engine refuses a type or a call, if a packed byte is wrong, or if
    /// `/proc/self/smaps_rollup` cannot be read.
    pub fn measure(table: Table, entries: usize) -> Result<Self, String> {
        let mut numbers = Numbers(0x1234_5678_9abc_def1);
        let mut lengths = vec![1i64; entries];
        let mut at: Vec<i64> = Vec::with_capacity(2 * entries);
        match table {
            Table::IndexedBlock => {
                at.extend(0..2 * entries as i64);
                for i in 0..entries {
                    at.swap(i, i + numbers.below((2 * entries - i) as u64) as usize);
                }
                at.truncate(entries);
            }
            Table::Indexed => {
                let mut next = 0;
                for length in &mut lengths {
                    *length = 1 + numbers.below(8) as i64;
                    at.push(next);
                    next += *length + 1 + numbers.below(8) as i64;
                }
            }
        }
        let end = lengths.iter().zip(&at).map(|(length, at)| at + length).max().unwrap_or(0);
        let memory: Vec<u64> = (0..end as u64).map(|i| i.wrapping_mul(0x9e37_79b9)).collect();
        let total: i64 = lengths.iter().sum();
        let mut packed = vec![0xa5u8; 8 * total as usize];
        let double = Datatype::named(Named::DOUBLE);
        let settings = settings(Mode::Lazy);

        let before = resident()?;
        let start = Instant::now();
        let made = match table {
            Table::IndexedBlock => Datatype::indexed_block(1, &at, &double),
            Table::Indexed => Datatype::indexed(&lengths, &at, &double),
        };
        let plan = made.and_then(|ty| ty.commit_with(&settings)).map_err(line)?;
        pack(&plan, 1, black_box(&memory), &mut packed).map_err(line)?;
        let ms = start.elapsed().as_secs_f64() * 1e3;
        let after = resident()?;

        let mut words = packed.chunks_exact(8);
        for (length, at) in lengths.iter().zip(&at) {
            for i in *at..at + length {
                let word = words.next().unwrap_or(&[]);
                let expected = memory[i as usize].to_ne_bytes();
                if word != expected {
                    return Err(format!(
                        "{table:?}: double {i} of memory is packed as the bytes {word:?}; expected \
                         {expected:?}"
                    ));
                }
            }
        }
        Ok(Self { ms, mib: after.saturating_sub(before) as f64 / 1024.0 })
    }
}

/// Returns the resident memory of this process in KiB. Reads `smaps_rollup`, which counts the pages; the
/// number in `statm` can lag behind by up to 64 pages.
fn resident() -> Result<u64, String> {
    let path = "/proc/self/smaps_rollup";
    let text = std::fs::read_to_string(path).map_err(|e| format!("{path}: {e}"))?;
    let rss = text.lines().find_map(|line| line.strip_prefix("Rss:"));
    rss.and_then(|rest| rest.trim().trim_end_matches(" kB").trim().parse().ok())
        .ok_or_else(|| format!("{path}: the file has no line of the form Rss: NUMBER kB"))
}

pub(super) fn run(scale: &Scale) -> Result<Vec<Row>, String> {
    let tables = [("indexed-block", 8.0, 12.0), ("indexed", 15.0, 16.0)];
    let mut found = [const { (Vec::new(), Vec::new()) }; 2];
    for _ in 0..scale.rounds.max(1) {
        for ((name, ..), (ms, mib)) in tables.iter().zip(&mut found) {
            let child = child(name, scale.entries)?;
            ms.push(child.ms);
            mib.push(child.mib);
        }
    }
    let mut rows = Vec::new();
    for ((name, most_ms, most_mib), (ms, mib)) in tables.into_iter().zip(found) {
        let (ms, mib) = (Time::of(ms), Time::of(mib));
        let what = format!("{name} of {} entries until the first pack is done", scale.entries);
        rows.push(Row::new(&what, ms.ns, "ms", Limit::AtMost(most_ms)).steady(ms.is_steady()));
        let what = format!("{what}: resident growth");
        rows.push(Row::new(what, mib.ns, "MiB", Limit::AtMost(most_mib)).steady(mib.is_steady()));
    }
    Ok(rows)
}

fn child(name: &str, entries: usize) -> Result<Child, String> {
    let command = std::env::current_exe().map_err(line)?;
    let entries = entries.to_string();
    let output = Command::new(command)
        .args(["commit", "--child", name, "--entries", &entries])
        .output()
        .map_err(line)?;
    if !output.status.success() {
        return Err(format!("{name}: {}", String::from_utf8_lossy(&output.stderr).trim()));
    }
    serde_json::from_slice(&output.stdout).map_err(|e| format!("{name}: {e}"))
}

#[cfg(test)]
mod tests {
    use super::{Child, Table};

    #[test]
    fn small_lists_are_packed_right() {
        for table in [Table::IndexedBlock, Table::Indexed] {
            for entries in [1, 2, 1000] {
                assert!(Child::measure(table, entries).expect("right bytes").ms > 0.0);
            }
        }
    }
}
