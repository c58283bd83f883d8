//! Measures rows of files in rounds. In each round, every competitor takes its turn.
//!
//! `../message/session.rs` runs the jobs. A competitor is a library, or one of the loops of `message/file.c`,
//! which run in typepack's job. `report.rs` and `summary.rs` print the rows.

use super::definition::{Calls, Direction, Row};
use crate::message::library::TYPEPACK;
use crate::message::session::Session;
use std::path::Path;
use std::time::{Duration, Instant};

/// The name of the loop over a mapping of the file that stays from access to access.
pub const KEPT: &str = "loop-kept";
/// The name of the loop that maps the file in each access.
pub const MAPPED: &str = "loop-mapped";
/// The name of the loop that makes one system call for each piece.
pub const CALLS: &str = "loop-calls";
/// The loops: the name in rows, and the name in the lines for the C program.
pub const LOOPS: [(&str, &str); 3] = [(KEPT, "kept"), (MAPPED, "mapped"), (CALLS, "calls")];

/// The least time of several turns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Best {
    /// The time in nanoseconds.
    pub ns: f64,
    /// The second-best time divided by the best one; infinite if there is only one turn.
    pub spread: f64,
}

impl Best {
    /// Returns the best of `times`; `None` if there are none.
    pub fn of(mut times: Vec<f64>) -> Option<Self> {
        times.sort_by(f64::total_cmp);
        let ns = *times.first()?;
        Some(Self { ns, spread: times.get(1).map_or(f64::INFINITY, |next| next / ns) })
    }
}

/// What is known about one competitor in one row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Outcome {
    /// The competitor was measured.
    Measured {
        /// The first access after opening.
        first: Best,
        /// The fastest access.
        best: Best,
        /// The number of turns.
        turns: usize,
        /// The number of bytes by which the process grew in the first access: the least over all turns.
        growth: u64,
    },
    /// The competitor has not finished a turn in this number of seconds.
    Over(u64),
    /// The competitor failed; the run has a line about the fault.
    Failed,
}

/// The result of one competitor in one row.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// The name of the library or of the loop.
    pub competitor: String,
    /// The result.
    pub outcome: Outcome,
}

impl Figure {
    /// Returns the fastest access; `None` if the competitor was not measured.
    pub fn best(&self) -> Option<Best> {
        match self.outcome {
            Outcome::Measured { best, .. } => Some(best),
            _ => None,
        }
    }

    /// Returns the first access after opening; `None` if the competitor was not measured.
    pub fn first(&self) -> Option<Best> {
        match self.outcome {
            Outcome::Measured { first, .. } => Some(first),
            _ => None,
        }
    }
}

/// A measured row.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// The name of the row.
    pub name: String,
    /// The class of the row.
    pub class: String,
    /// The number of bytes of one piece; `None` if the row is in no picture.
    pub block: Option<u64>,
    /// Whether the row writes or reads.
    pub direction: Direction,
    /// Whether all ranks make one collective call, or each rank calls on its own.
    pub calls: Calls,
    /// The number of bytes that all ranks access together.
    pub bytes: u64,
    /// The results.
    pub figures: Vec<Figure>,
}

impl Measured {
    /// Returns the result of a competitor.
    pub fn figure(&self, competitor: &str) -> Option<&Figure> {
        self.figures.iter().find(|figure| figure.competitor == competitor)
    }
}

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
    ended: Option<Outcome>,
}

/// Measures `row` on the file at `path`. The first session is typepack's. For each competitor that fails,
/// adds a line to `faults`.
pub fn measure(
    row: &Row,
    path: &Path,
    sessions: &mut [Session],
    effort: &Effort,
    faults: &mut Vec<String>,
) -> Measured {
    let command = row.command(&path.display().to_string(), effort.bytes);
    let mut measured = Measured {
        name: row.name.clone(),
        class: row.class.clone(),
        block: row.block,
        direction: row.direction,
        calls: row.calls,
        bytes: 0,
        figures: Vec::new(),
    };
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
                Some(Outcome::Failed)
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
                    competitor.ended = Some(Outcome::Over(effort.limit.as_secs()));
                    continue;
                }
                Err(line) => line,
            };
            faults.push(format!("{}: {}: {fault}", row.name, competitor.name));
            competitor.ended = Some(Outcome::Failed);
        }
    }
    for session in sessions {
        session.end();
        // A library that crashes with one pattern may work with the next one.
        session.forgive();
    }
    measured.figures = all.into_iter().map(figure).collect();
    measured
}

/// Returns the result of a competitor. A competitor that was late or failed in any round has no times, even if it
/// was measured in earlier rounds.
fn figure(competitor: Competitor) -> Figure {
    let turns = &competitor.turns;
    let best = |of: fn(&Turn) -> f64| Best::of(turns.iter().map(of).collect());
    let measured = || {
        Some(Outcome::Measured {
            first: best(|turn| turn.first)?,
            best: best(|turn| turn.best)?,
            turns: turns.len(),
            growth: turns.iter().map(|turn| turn.growth).min()?,
        })
    };
    let outcome = competitor.ended.or_else(measured).unwrap_or(Outcome::Failed);
    Figure { competitor: competitor.name, outcome }
}

/// Returns whether a competitor is a peer: a library that is not typepack.
pub fn is_peer(competitor: &str) -> bool {
    competitor != TYPEPACK && !LOOPS.iter().any(|(name, _)| *name == competitor)
}

#[cfg(test)]
mod tests {
    use super::{Best, Competitor, Outcome, Turn, figure, is_peer, parse};
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
        assert_eq!(Best::of(vec![3.0, 2.0, 9.0]), Some(Best { ns: 2.0, spread: 1.5 }));
        assert_eq!(Best::of(vec![3.0]), Some(Best { ns: 3.0, spread: f64::INFINITY }));
        assert_eq!(Best::of(Vec::new()), None);
        let of = |turns: &[(f64, f64, u64)], ended| {
            let turn =
                |&(first, best, growth): &(f64, f64, u64)| Turn { first, best, mean: best, growth };
            let turns = turns.iter().map(turn).collect();
            let name = "a".to_owned();
            let spent = Duration::ZERO;
            figure(Competitor {
                name,
                session: 0,
                method: "mpi",
                turns,
                spent,
                verified: true,
                ended,
            })
            .outcome
        };
        let Outcome::Measured { first, best, turns, growth } =
            of(&[(9.0, 5.0, 70), (8.0, 6.0, 60)], None)
        else {
            panic!("not measured");
        };
        assert_eq!((first.ns, best.ns, turns, growth), (8.0, 5.0, 2, 60));
        assert_eq!(of(&[(9.0, 5.0, 70)], Some(Outcome::Over(7))), Outcome::Over(7));
        assert_eq!(of(&[], None), Outcome::Failed);
    }

    #[test]
    fn peers_are_told_from_loops() {
        assert!(is_peer("mpich") && !is_peer("typepack") && !is_peer("loop-calls"));
    }
}
