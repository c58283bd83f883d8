//! Runs `typepack-bench commit` of two builds alternately and compares the rows that the two programs
//! print.
//!
//! The rows are about Rust calls, so each build must measure them with its own program. For each part of
//! `commit` (such as `create` or `seek`), the two programs run alternately, three times each (A B A B A B).
//! The value of a row for one build is the median over these three runs of its program.

use super::{Compared, RUNS};
use crate::commit::{Limit, PARTS, Row};
use crate::row::{STEADY, median};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

/// The number of times that each program runs when a part is measured.
const TURNS: usize = 3;

/// Measures the parts of `typepack-bench commit` (such as `create` or `seek`) with both programs, or only
/// the part `only`. `programs[0]` is the program of the new build. Both programs get `arguments` as
/// additional arguments. If the ratio of a row is below `SLOWER` at the first measurement of its part, the
/// part is measured [`RUNS`] times in all. Returns the rows that both builds have, and the names of the
/// rows that only one build has.
///
/// # Errors
///
/// Returns a one-line message if a program does not start or fails, or if its output is not a JSON array
/// of rows.
pub fn run(
    programs: [&Path; 2],
    only: Option<&str>,
    arguments: &[String],
    mut progress: impl FnMut(&str),
) -> Result<(Vec<Compared>, Vec<String>), String> {
    let (mut rows, mut alone) = (Vec::new(), Vec::new());
    for part in PARTS.into_iter().filter(|part| only.is_none_or(|only| only == *part)) {
        progress(part);
        let mut found: Vec<Compared> = Vec::new();
        for run in 0..RUNS {
            let (values, single) = turns(programs, part, arguments)?;
            if run == 0 {
                alone.extend(single);
                let row =
                    |(name, value)| Compared { name, class: part.to_owned(), runs: vec![value] };
                found = values.into_iter().map(row).collect();
            } else {
                for row in found.iter_mut().filter(|row| row.is_slower()) {
                    row.runs.extend(values.get(&row.name));
                }
            }
            if !found.iter().any(Compared::is_slower) {
                break;
            }
        }
        rows.extend(found);
    }
    Ok((rows, alone))
}

type Ratios = BTreeMap<String, (f64, bool)>;

/// Runs one part of `typepack-bench commit` [`TURNS`] times with each program, alternately. For each row
/// that both builds have, returns the ratio (above 1 if the new build is better), and true if both values
/// are steady. Also returns the names of the other rows.
fn turns(
    programs: [&Path; 2],
    part: &str,
    arguments: &[String],
) -> Result<(Ratios, Vec<String>), String> {
    let mut values: BTreeMap<String, [Vec<f64>; 2]> = BTreeMap::new();
    let mut limits: BTreeMap<String, Limit> = BTreeMap::new();
    for _ in 0..TURNS {
        for (side, program) in programs.iter().enumerate() {
            for row in rows_of(program, part, arguments)? {
                values.entry(row.what.clone()).or_default()[side].push(row.value);
                limits.insert(row.what, row.bar);
            }
        }
    }
    let (mut ratios, mut alone) = (Ratios::new(), Vec::new());
    for (name, mut both) in values {
        if both.iter().any(Vec::is_empty) {
            alone.push(name);
            continue;
        }
        let [new, base] = [0, 1].map(|side| median(&mut both[side]));
        let steady = both.iter().all(|list| list[list.len() - 1] / list[0] <= STEADY);
        // A ratio above 1 means that the new build is better. For times and sizes, a small value is
        // better; for values with a lower limit, a large value is.
        let ratio = match limits[&name] {
            Limit::AtMost(_) => base / new,
            Limit::AtLeast(_) => new / base,
        };
        ratios.insert(name, (ratio, steady));
    }
    Ok((ratios, alone))
}

fn rows_of(program: &Path, part: &str, arguments: &[String]) -> Result<Vec<Row>, String> {
    let shown = program.display();
    let mut command = Command::new(program);
    command.args(["commit", "--format", "json", "--only", part]).args(arguments);
    let output = command.stdin(Stdio::null()).output().map_err(|e| format!("{shown}: {e}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let line = said.lines().last().unwrap_or("it said nothing");
        return Err(format!("{shown} commit: {}: {line}", output.status));
    }
    serde_json::from_slice(&output.stdout).map_err(|e| format!("{shown} commit: {e}"))
}
