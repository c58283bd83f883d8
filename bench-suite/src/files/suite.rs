//! Measures rows of files in rounds. In each round, every competitor takes its turn.
//!
//! `../message/session.rs` runs the jobs. A competitor is a library, or one of the loops of `message/file.c`,
//! which run in typepack's job. `../message/report.rs` prints the rows.

use super::definition::Definition;
use crate::message::session::Session;
use crate::row::{Figure, KEPT, MAPPED, Row, TYPEPACK};
use std::path::Path;
use std::time::{Duration, Instant};

/// The name of the loop that makes one system call for each piece.
pub const CALLS: &str = "loop-calls";
/// The loops: the name in rows, and the name in the lines for the C program.
pub const LOOPS: [(&str, &str); 3] = [(KEPT, "kept"), (MAPPED, "mapped"), (CALLS, "calls")];

/// How long a run measures each row.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Number of rounds. In each round, the competitors take turns.
    pub rounds: usize,
    /// The approximate total time of the accesses of a turn after the first one, in milliseconds.
    pub milliseconds: f64,
    /// A turn that takes longer than this is given up. If the turns of a competitor in one row have taken longer
    /// than this in total, the competitor takes no further turns in this row.
    pub limit: Duration,
    /// The size of the file in bytes.
    pub bytes: u64,
}

/// The times of one turn, in nanoseconds.
pub(super) struct Turn {
    /// The first access after opening.
    pub(super) first: f64,
    /// The fastest access.
    pub(super) best: f64,
    /// The mean of the accesses after the first one; the first one if there are no others.
    pub(super) mean: f64,
    growth: u64,
}

/// Reads the answer to a turn (`message/file.c`). Returns `None` if the answer has the wrong form.
pub(super) fn parse(answer: &str) -> Option<Turn> {
    let words: Vec<&str> = answer.strip_prefix("file ")?.split(' ').collect();
    let [first, best, mean, accesses, growth] = words[..] else { return None };
    let turn = Turn {
        first: first.parse().ok()?,
        best: best.parse().ok()?,
        mean: mean.parse().ok()?,
        growth: growth.parse().ok()?,
    };
    let sound = turn.best > 0.0 && turn.first.min(turn.mean) >= turn.best && turn.first.is_finite();
    (sound && accesses.parse::<u64>().ok()? > 0).then_some(turn)
}

/// One competitor while a row is measured.
struct Competitor {
    name: String,
    /// The index of the competitor's job in the list of sessions.
    session: usize,
    method: &'static str,
    turns: Vec<Turn>,
    spent: Duration,
    /// True if an access that is not timed has given the right answer.
    verified: bool,
    ended: Option<Ended>,
}

/// Why a competitor takes no further turns in a row.
#[derive(Clone, Copy, PartialEq)]
enum Ended {
    /// It has not finished a turn in this number of seconds.
    Over(u64),
    /// It failed; the run has a line about the fault.
    Failed,
}

/// Measures `row` on the file at `path`. The first session is typepack's. For each competitor that fails,
/// adds a line to `faults`.
pub fn measure(
    row: &Definition,
    path: &Path,
    sessions: &mut [Session],
    effort: &Effort,
    faults: &mut Vec<String>,
) -> Row {
    let command = row.command(&path.display().to_string(), effort.bytes);
    let mut measured = row.measured(0);
    let mut all: Vec<Competitor> = Vec::new();
    for (place, session) in sessions.iter_mut().enumerate() {
        let name = session.library().name.clone();
        let new = |name: &str, method, ended| Competitor {
            name: name.to_owned(),
            session: place,
            method,
            turns: Vec::new(),
            spent: Duration::ZERO,
            verified: false,
            ended,
        };
        let ended = match session.row(&command) {
            Ok(extent) => {
                measured.bytes = extent.payload;
                None
            }
            Err(line) => {
                faults.push(format!("{}: {name}: {line}", row.name));
                Some(Ended::Failed)
            }
        };
        let loops = LOOPS.iter().filter(|_| place == 0);
        all.extend(loops.map(|&(name, method)| new(name, method, ended)));
        all.push(new(&name, "mpi", ended));
    }
    let long = effort.limit.as_secs_f64() * 1000.0 / 8.0;
    for _ in 0..effort.rounds.max(1) {
        for competitor in &mut all {
            if competitor.ended.is_some() || competitor.spent > effort.limit {
                continue;
            }
            let session = &mut sessions[competitor.session];
            let line = format!("turn {} {} {long}", competitor.method, effort.milliseconds);
            let begin = Instant::now();
            // A job that was given up in this row starts again.
            let answer = match session.is_prepared() {
                true => Ok(()),
                false => session.row(&command).map(|_| ()),
            };
            // The result of a competitor is verified before its first timed turn. The verification has the same time
            // limit as a turn.
            let answer = match competitor.verified {
                true => answer,
                false => answer.and_then(|()| {
                    session.line(&format!("turn {} verify", competitor.method))?;
                    competitor.verified = true;
                    Ok(())
                }),
            };
            let verified = begin.elapsed();
            let answer = answer.and_then(|()| session.line(&line));
            competitor.spent += begin.elapsed() - verified;
            let fault = match answer.map(|answer| parse(&answer).ok_or(answer)) {
                Ok(Ok(turn)) => {
                    competitor.turns.push(turn);
                    continue;
                }
                Ok(Err(answer)) => format!("gave the unexpected answer {answer:?}"),
                Err(_) if session.was_late() => {
                    competitor.ended = Some(Ended::Over(effort.limit.as_secs()));
                    continue;
                }
                Err(line) => line,
            };
            faults.push(format!("{}: {}: {fault}", row.name, competitor.name));
            competitor.ended = Some(Ended::Failed);
        }
    }
    for session in sessions {
        session.end();
        // A library that crashes with one pattern may work with the next one.
        session.forgive();
    }
    measured.figures = all.iter().filter_map(figure).collect();
    measured
}

/// Returns the result of a competitor. A competitor that was late or failed in any round has no times, even if it
/// was measured in earlier rounds.
fn figure(competitor: &Competitor) -> Option<Figure> {
    let (name, turns) = (&competitor.name, &competitor.turns);
    match competitor.ended {
        Some(Ended::Failed) => return None,
        Some(Ended::Over(seconds)) => return Some(Figure::over(name, seconds)),
        None => {}
    }
    let [ns, spread] = best(turns.iter().map(|turn| turn.best))?;
    Some(Figure {
        first: best(turns.iter().map(|turn| turn.first)),
        growth: turns.iter().map(|turn| turn.growth).min(),
        ..Figure::new(name, ns, spread)
    })
}

/// Returns the least of `times`, and the second-best time divided by it, which is infinite if there is only one time.
fn best(times: impl Iterator<Item = f64>) -> Option<[f64; 2]> {
    let mut times: Vec<f64> = times.collect();
    times.sort_by(f64::total_cmp);
    let ns = *times.first()?;
    Some([ns, times.get(1).map_or(f64::INFINITY, |next| next / ns)])
}

/// Returns whether a competitor is a peer: a library that is not typepack.
pub fn is_peer(competitor: &str) -> bool {
    competitor != TYPEPACK && !LOOPS.iter().any(|(name, _)| *name == competitor)
}

#[cfg(test)]
mod tests {
    use super::{Competitor, Ended, Turn, best, figure, is_peer, parse};
    use std::time::Duration;

    #[test]
    fn answers_are_read() {
        let turn = parse("file 900 700 710 12 4096").expect("a turn");
        assert_eq!((turn.first, turn.best, turn.mean, turn.growth), (900.0, 700.0, 710.0, 4096));
        // In a right answer, no access is faster than the best one, and there is at least one access.
        for wrong in
            ["file 1 2 2 3 4", "file 2 1 1 0 4", "file 2 0 1 1 4", "file 2 1 1 1", "ok", ""]
        {
            assert!(parse(wrong).is_none(), "{wrong}");
        }
    }

    #[test]
    fn figures_are_the_best_of_the_turns() {
        assert_eq!(best([3.0, 2.0, 9.0].into_iter()), Some([2.0, 1.5]));
        assert_eq!(best([3.0].into_iter()), Some([3.0, f64::INFINITY]));
        assert_eq!(best(std::iter::empty()), None);
        let of = |turns: &[(f64, f64, u64)], ended| {
            let turn =
                |&(first, best, growth): &(f64, f64, u64)| Turn { first, best, mean: best, growth };
            let turns = turns.iter().map(turn).collect();
            let (name, method, spent) = ("a".to_owned(), "mpi", Duration::ZERO);
            figure(&Competitor { name, session: 0, method, turns, spent, verified: true, ended })
        };
        let made = of(&[(9.0, 5.0, 70), (8.0, 6.0, 60)], None).expect("a figure");
        assert_eq!((made.ns, made.first, made.growth), (5.0, Some([8.0, 1.125]), Some(60)));
        let over = of(&[(9.0, 5.0, 70)], Some(Ended::Over(7))).expect("a figure");
        assert!(over.over && over.ns == 7e9);
        assert_eq!(of(&[(9.0, 5.0, 70)], Some(Ended::Failed)), None);
        assert_eq!(of(&[], None), None);
    }

    #[test]
    fn peers_are_told_from_loops() {
        assert!(is_peer("mpich") && !is_peer("typepack") && !is_peer("loop-calls"));
    }
}
