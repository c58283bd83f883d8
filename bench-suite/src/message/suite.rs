//! Measures rows in rounds. In each round, the job of every library takes its turn.
//!
//! `session.rs` runs the jobs; `report.rs` and `summary.rs` print the rows. A figure is the median over the
//! rounds. Every turn begins and ends with a probe, which measures how long a cache line takes from one CPU
//! to the other. The probes show how far apart the CPUs of the row were.

use super::definition::{Memory, Row};
use super::session::{Extent, Session, Turn};
use crate::builds::Compared;
use crate::measure::{STEADY, median};
use crate::summary::{FAR_TIE, IN_CACHE, TIE};
use serde::Serialize;
use std::time::{Duration, Instant};

/// How far apart the CPUs of the first two ranks were.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Distance {
    /// A cache line took less than `NEAR` nanoseconds from one CPU to the other.
    Near,
    /// A cache line took between `NEAR` and `FAR` nanoseconds.
    Between,
    /// A cache line took more than `FAR` nanoseconds.
    Far,
}

/// CPUs are near if a cache line takes fewer nanoseconds than this from one to the other; about 60 is
/// usual.
const NEAR: f64 = 110.0;
/// CPUs are far if a cache line takes more nanoseconds than this from one to the other.
const FAR: f64 = 170.0;

impl Distance {
    /// Returns the distance of two CPUs if a cache line takes `ns` nanoseconds from one to the other.
    pub fn of(ns: f64) -> Self {
        match ns {
            ns if ns < NEAR => Self::Near,
            ns if ns > FAR => Self::Far,
            _ => Self::Between,
        }
    }

    /// Returns the name that this distance has in rows.
    pub fn name(self) -> &'static str {
        match self {
            Self::Near => "near",
            Self::Between => "between",
            Self::Far => "far",
        }
    }
}

/// The result of one library in one row.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// The name of the library.
    pub library: String,
    /// The time of the row in nanoseconds: the median over the rounds.
    pub ns: f64,
    /// The time of the slowest round divided by the time of the fastest round.
    pub spread: f64,
    /// The time of a single `MPI_Pack` of the message in nanoseconds: the median over the rounds. `None`
    /// if the row does not measure this.
    pub pack: Option<f64>,
}

/// A measured row.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Measured {
    /// The name of the row.
    pub name: String,
    /// The row's class. The bars (required limits) of this class apply to the row.
    pub class: String,
    /// The kind of memory of the buffers.
    pub memory: &'static str,
    /// Number of packed bytes of one message, of all faces of one rank, or of one block of a collective.
    pub bytes: u64,
    /// Total size, in bytes, of all cache lines that a rank sends from and receives into.
    pub touched: u64,
    /// The nanoseconds that a cache line takes from one CPU to the other: the median of all probes (one
    /// before and one after each turn). NaN if every library failed.
    pub probe: f64,
    /// The longest time of a probe divided by the shortest time of a probe.
    pub probe_spread: f64,
    /// The figures of the libraries that did not fail.
    pub figures: Vec<Figure>,
}

impl Measured {
    /// Returns how far apart the CPUs of the first two ranks were.
    pub fn distance(&self) -> Distance {
        Distance::of(self.probe)
    }

    /// Returns the smallest ratio that still counts as a tie for this row.
    pub fn tie(&self) -> f64 {
        if self.touched > IN_CACHE { FAR_TIE } else { TIE }
    }

    /// Returns the figure of the library with the name `library`.
    pub fn figure(&self, library: &str) -> Option<&Figure> {
        self.figures.iter().find(|f| f.library == library)
    }

    /// Returns the figure of the fastest of `peers`, or `None` if all of them failed.
    pub fn best(&self, peers: &[String]) -> Option<&Figure> {
        let figures = self.figures.iter().filter(|f| peers.contains(&f.library));
        figures.min_by(|a, b| a.ns.total_cmp(&b.ns))
    }

    /// Returns the best peer's time divided by the time of `own`, and whether both figures are steady.
    /// Returns `None` if `own` or all peers failed.
    pub fn against(&self, own: &str, peers: &[String]) -> Option<(f64, bool)> {
        let (own, best) = (self.figure(own)?, self.best(peers)?);
        Some((best.ns / own.ns, own.spread <= STEADY && best.spread <= STEADY))
    }

    /// Returns the time of the fastest of `peers` for a single `MPI_Pack` divided by the time of `own`, and whether
    /// the times for the message are steady. Returns `None` if `own` or all peers failed, or if the row does not
    /// measure `MPI_Pack`.
    pub fn packing_against(&self, own: &str, peers: &[String]) -> Option<(f64, bool)> {
        let own = self.figure(own)?;
        let packs = self.figures.iter().filter(|f| peers.contains(&f.library));
        let packs = packs.filter_map(|f| Some((f.pack?, f.spread)));
        let (best, spread) = packs.min_by(|a, b| a.0.total_cmp(&b.0))?;
        Some((best / own.pack?, own.spread <= STEADY && spread <= STEADY))
    }

    /// Returns by how many nanoseconds the time of `own` exceeds the time of the fastest of `peers`, and whether both
    /// figures are steady. Returns `None` if `own` or all peers failed.
    pub fn added(&self, own: &str, peers: &[String]) -> Option<(f64, bool)> {
        let (_, steady) = self.against(own, peers)?;
        Some((self.figure(own)?.ns - self.best(peers)?.ns, steady))
    }

    /// Returns the time of the build `base` divided by the time of the build `own`, and whether both
    /// figures are steady. Returns `None` if one of the builds failed.
    pub fn against_build(&self, own: &str, base: &str) -> Option<(f64, bool)> {
        let (own, base) = (self.figure(own)?, self.figure(base)?);
        Some((base.ns / own.ns, own.spread <= STEADY && base.spread <= STEADY))
    }

    /// Returns this row as the first run of a comparison of two builds. `ratio` is the result of
    /// [`Measured::against_build`].
    pub fn compared(&self, ratio: (f64, bool)) -> Compared {
        let class = if self.class.is_empty() { "others" } else { &self.class };
        Compared {
            name: format!("{} {}", self.name, self.memory),
            class: format!("{class}, {}", self.memory),
            runs: vec![ratio],
        }
    }

    /// Returns the time of the library `own` for the message divided by its time for a single `MPI_Pack`,
    /// and whether the time for the message is steady. Returns `None` if `own` failed or if the row does
    /// not measure `MPI_Pack`.
    pub fn over_pack(&self, own: &str) -> Option<(f64, bool)> {
        let own = self.figure(own)?;
        Some((own.ns / own.pack?, own.spread <= STEADY))
    }
}

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
    row: &Row,
    memory: Memory,
    sessions: &mut [Session],
    effort: &Effort,
    faults: &mut Vec<String>,
) -> Measured {
    let raw = rounds(row, memory, sessions, effort, 1, faults);
    let extent = raw.iter().flatten().last().map_or_else(Extent::default, |(extent, _)| *extent);
    let turns: Vec<Option<Vec<Turn>>> =
        raw.into_iter().map(|job| job.map(|(_, turns)| turns)).collect();
    let mut measured = Measured {
        name: row.name.clone(),
        class: row.class.clone(),
        memory: memory.name(),
        bytes: extent.payload,
        touched: extent.touched,
        probe: f64::NAN,
        probe_spread: 1.0,
        figures: Vec::new(),
    };
    let mut probes: Vec<f64> = turns.iter().flatten().flatten().flat_map(|t| t.probes).collect();
    if !probes.is_empty() {
        measured.probe = median(&mut probes);
        measured.probe_spread = probes[probes.len() - 1] / probes[0].max(1.0);
    }
    for (session, turns) in sessions.iter().zip(turns) {
        if let Some(turns) = turns {
            measured.figures.extend(figure(&session.library().name, &turns));
        }
    }
    measured
}

/// Prepares `row` in every job and lets the jobs take their turns. Returns, for each job, the sizes of the row
/// and the turns; `None` for a job that has failed, whose fault is a new line of `faults`. A job that took longer
/// than [`SLOW`] for a turn has fewer turns, but at least `least`, unless `effort` asks for fewer.
pub(super) fn rounds(
    row: &Row,
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
    Some(Figure { library: library.to_owned(), ns: middle, spread, pack })
}

#[cfg(test)]
mod tests {
    use super::{Distance, Turn, figure};
    use crate::message::session::Spent;

    #[test]
    fn figures_are_medians_of_turns() {
        let turn = |ns, pack| Turn { ns, pack, probes: [60.0, 60.0], spent: Spent::default() };
        let made = figure("a", &[turn(3.0, 2.0), turn(1.0, 4.0), turn(2.0, 0.0)]).expect("turns");
        assert_eq!((made.ns, made.spread, made.pack), (2.0, 3.0, Some(3.0)));
        assert_eq!(figure("a", &[turn(3.0, 0.0)]).expect("a turn").pack, None);
        assert_eq!(figure("a", &[]), None);
    }

    #[test]
    fn distances() {
        let of = [59.0, 120.0, 225.0].map(Distance::of);
        assert_eq!(of, [Distance::Near, Distance::Between, Distance::Far]);
    }
}
