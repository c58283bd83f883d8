//! Measures rows in rounds. In each round, the job of every library takes its turn.
//!
//! `session.rs` runs the jobs; `report.rs` prints the rows. A figure is the median over the
//! rounds. Every turn begins and ends with a probe, which measures how long a cache line takes from one CPU
//! to the other. The probes show how far apart the CPUs of the row were.

use super::definition::{Definition, Memory};
use super::session::{Extent, Session, Turn};
use crate::row::{Figure, Row, median};
use std::time::{Duration, Instant};

/// A library whose turn takes longer than this takes no further turns in the row. If there are more ranks than
/// CPUs, some libraries need seconds for one collective call, and a run of all rows would take hours.
const SLOW: Duration = Duration::from_secs(2);

/// How long a run measures each row.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Number of rounds. In each round, the libraries take turns.
    pub rounds: usize,
    /// The approximate measuring time per turn, in milliseconds.
    pub milliseconds: f64,
}

/// Measures `row` with buffers in the kind of memory `memory`. For each library that fails, adds a line
/// with the names of the row and the library to `faults`.
pub fn measure(
    row: &Definition,
    memory: Memory,
    sessions: &mut [Session],
    effort: &Effort,
    faults: &mut Vec<String>,
) -> Row {
    let jobs = rounds(row, memory, sessions, effort, 1, faults);
    let extent = jobs.iter().flatten().last().map_or_else(Extent::default, |(extent, _)| *extent);
    let mut measured = Row {
        name: row.name.clone(),
        part: memory.name().to_owned(),
        class: row.class.clone(),
        bytes: extent.payload,
        touched: extent.touched,
        line: probes(jobs.iter().flatten().flat_map(|(_, turns)| turns)),
        ..Row::default()
    };
    for (session, job) in sessions.iter().zip(&jobs) {
        let turns = job.iter().map(|(_, turns)| turns);
        measured.figures.extend(turns.filter_map(|turns| figure(&session.library().name, turns)));
    }
    if let Some(name) = row.beside() {
        measured.figures.iter_mut().for_each(|figure| figure.pack = None);
        let turns = jobs.first().into_iter().flatten().flat_map(|(_, turns)| turns);
        let others: Vec<Turn> = turns.map(|turn| Turn { ns: turn.pack, ..*turn }).collect();
        measured.figures.extend(figure(name, &others).map(|other| Figure { pack: None, ..other }));
    }
    measured
}

/// Returns the median of the probes of all turns, and the longest probe divided by the shortest.
pub(super) fn probes<'a>(turns: impl Iterator<Item = &'a Turn>) -> Option<[f64; 2]> {
    let mut probes: Vec<f64> = turns.flat_map(|turn| turn.probes).collect();
    if probes.is_empty() {
        return None;
    }
    let middle = median(&mut probes);
    Some([middle, probes[probes.len() - 1] / probes[0].max(1.0)])
}

/// Prepares `row` in every job and lets the jobs take their turns. Returns, for each job, the sizes of the row
/// and the turns; `None` for a job that has failed, whose fault is a new line of `faults`. A job that took longer
/// than [`SLOW`] for a turn has fewer turns, but at least `least`, unless `effort` asks for fewer.
pub(super) fn rounds(
    row: &Definition,
    memory: Memory,
    sessions: &mut [Session],
    effort: &Effort,
    least: usize,
    faults: &mut Vec<String>,
) -> Vec<Option<(Extent, Vec<Turn>)>> {
    let command = row.command(memory);
    let mut fault = |session: &Session, line: String| {
        let (name, memory) = (&row.name, memory.name());
        faults.push(format!("{name} {memory}: {}: {line}", session.library().name));
    };
    let mut jobs: Vec<Option<(Extent, Vec<Turn>)>> = Vec::new();
    for session in sessions.iter_mut() {
        jobs.push(match session.row(&command) {
            Ok(extent) => Some((extent, Vec::new())),
            Err(line) => {
                fault(session, line);
                None
            }
        });
    }
    let mut slow: Vec<String> = Vec::new();
    for _ in 0..effort.rounds.max(1) {
        for (session, job) in sessions.iter_mut().zip(&mut jobs) {
            let Some((_, turns)) = job else { continue };
            if slow.contains(&session.library().name) {
                continue;
            }
            let start = Instant::now();
            match session.turn(effort.milliseconds) {
                Ok(turn) => {
                    turns.push(turn);
                    if start.elapsed() > SLOW && turns.len() >= least {
                        slow.push(session.library().name.clone());
                    }
                }
                Err(line) => {
                    fault(session, line);
                    *job = None;
                    session.end();
                }
            }
        }
    }
    for (session, job) in sessions.iter_mut().zip(&jobs) {
        if job.is_some() {
            session.end();
        }
    }
    jobs
}

fn figure(library: &str, turns: &[Turn]) -> Option<Figure> {
    let mut ns: Vec<f64> = turns.iter().map(|turn| turn.ns).collect();
    let mut packs: Vec<f64> = turns.iter().map(|t| t.pack).filter(|ns| *ns > 0.0).collect();
    if ns.is_empty() {
        return None;
    }
    let middle = median(&mut ns);
    // A single turn does not show whether the figure is steady, so it counts as unsteady.
    let spread = if ns.len() > 1 { ns[ns.len() - 1] / ns[0] } else { f64::INFINITY };
    let pack = (!packs.is_empty()).then(|| median(&mut packs));
    Some(Figure { pack, ..Figure::new(library, middle, spread) })
}

#[cfg(test)]
mod tests {
    use super::{Turn, figure};
    use crate::message::session::Spent;

    #[test]
    fn figures_are_medians_of_turns() {
        let turn = |ns, pack| Turn { ns, pack, probes: [60.0, 60.0], spent: Spent::default() };
        let made = figure("a", &[turn(3.0, 2.0), turn(1.0, 4.0), turn(2.0, 0.0)]).expect("turns");
        assert_eq!((made.ns, made.spread, made.pack), (2.0, 3.0, Some(3.0)));
        assert_eq!(figure("a", &[turn(3.0, 0.0)]).expect("a turn").pack, None);
        assert_eq!(figure("a", &[]), None);
    }
}
