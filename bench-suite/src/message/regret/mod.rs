//! `typepack-bench regret messages` and `regret collectives`: compares the free choice of the library, which picks the
//! way of each long message and the method of each collective call, with forced ones.
//!
//! The flow: `command.rs` (arguments) -> `candidate.rs` (the forced ways that are possible for a row, and the
//! environment variables that force them) -> this file (jobs of one installed typepack, one for each way, one for the
//! static order, and one without each chooser, that take turns) -> `report.rs` (table, CSV, summary). `../../regret/`
//! computes regrets and verdicts.
//!
//! Invariant: every row is measured with new jobs. So the free choice has learned nothing when a row
//! begins, and the time of all exchanges of its job includes the learning.

pub mod candidate;
pub mod command;
pub mod report;

use self::candidate::{Candidate, choosers};
use super::definition::{Definition, Memory};
use super::library::Library;
use super::session::{Extent, PATIENCE, Session, Spent, Turn, UserMemory, cpus};
use super::suite::{Effort, probes, rounds};
use crate::regret::judge::{LEAST_ROUNDS, Tried, judge};
use crate::regret::report::{Compared, FREE, OFF, STATIC};
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// After this many rows in which the job of a candidate has failed, the candidate is left out.
const FAILURES: usize = 3;

/// The jobs of a run: one installed typepack and its compiled program.
pub struct Jobs<'a> {
    library: Library,
    program: PathBuf,
    folder: &'a Path,
    /// The user memory of the jobs, for each number of ranks.
    memory: Vec<Rc<UserMemory>>,
    /// The version that the library reports.
    pub version: String,
    /// For each candidate that has failed: its name, and the number of rows in which it has failed.
    failures: Vec<(String, usize)>,
    /// How many times ranks woke up while another job was measured.
    pub woken: u64,
}

impl<'a> Jobs<'a> {
    /// Prepares jobs of `program`, which `library` has compiled. Sockets and outputs of the jobs are in
    /// `folder`.
    pub fn new(library: Library, program: PathBuf, folder: &'a Path) -> Self {
        let (memory, version, failures) = (Vec::new(), String::new(), Vec::new());
        Self { library, program, folder, memory, version, failures, woken: 0 }
    }

    /// Returns the user memory of jobs of `ranks` ranks.
    ///
    /// # Errors
    ///
    /// Returns a one-line message if there is not enough memory.
    fn memory(&mut self, ranks: usize) -> Result<Rc<UserMemory>, String> {
        if let Some(memory) = self.memory.iter().find(|memory| memory.ranks() == ranks) {
            return Ok(Rc::clone(memory));
        }
        let memory = UserMemory::new(ranks)?;
        self.memory.push(Rc::clone(&memory));
        Ok(memory)
    }

    /// Starts a new job of `ranks` ranks in which `candidate` is forced.
    fn start(&mut self, candidate: &Candidate, ranks: usize) -> Result<Session, String> {
        let memory = self.memory(ranks)?;
        let mut library = self.library.clone();
        library.name.clone_from(&candidate.name);
        library.environment.extend(candidate.environment());
        let program = self.program.clone();
        let session = Session::start(library, program, self.folder, &cpus(), &memory, PATIENCE)?;
        session.version().clone_into(&mut self.version);
        Ok(session)
    }

    /// Measures `row` with new jobs: one for the free choice, one for the static order, one for each of `candidates`,
    /// and one without each chooser that acts in the row. Adds a line to `faults` for each job that fails, and a line
    /// if the row cannot be judged.
    ///
    /// # Errors
    ///
    /// Returns a one-line message if the job of the free choice does not start.
    pub fn measure(
        &mut self,
        row: &Definition,
        memory: Memory,
        candidates: &[Candidate],
        effort: &Effort,
        faults: &mut Vec<String>,
    ) -> Result<Compared, String> {
        let title = format!("{} {}", row.name, memory.name());
        let mut sessions = vec![self.start(&Candidate::free(), row.ranks)?];
        let without = choosers(row, memory).into_iter().map(Candidate::without);
        let others = [Candidate::unmeasured()].into_iter().chain(candidates.iter().cloned());
        for candidate in &others.chain(without).collect::<Vec<_>>() {
            let name = &candidate.name;
            if self.failures.iter().any(|(other, count)| other == name && *count >= FAILURES) {
                let line = format!("{title}: {name}: not tried again after {FAILURES} faults");
                faults.push(line);
                continue;
            }
            match self.start(candidate, row.ranks) {
                Ok(session) => sessions.push(session),
                Err(line) => {
                    faults.push(format!("{title}: {name}: {line}"));
                    self.failed(name);
                }
            }
        }
        let jobs = rounds(row, memory, &mut sessions, effort, LEAST_ROUNDS, faults);
        for (session, job) in sessions.iter().zip(&jobs) {
            self.woken += session.woken();
            if job.is_none() {
                self.failed(&session.library().name);
            }
        }
        let names = sessions.iter().map(|session| session.library().name.as_str());
        let possible = candidates.iter().map(|candidate| candidate.name.clone()).collect();
        let compared = compared(row, memory, possible, names.zip(&jobs));
        let (compared, fault) = compared;
        faults.extend(fault.map(|line| format!("{title}: {line}")));
        Ok(compared)
    }

    fn failed(&mut self, name: &str) {
        match self.failures.iter_mut().find(|(other, _)| other == name) {
            Some((_, count)) => *count += 1,
            None => self.failures.push((name.to_owned(), 1)),
        }
    }
}

/// Judges a row. `jobs` are the names of the jobs with their results.
/// Returns the row and, if it cannot be judged, a line that says why.
fn compared<'a>(
    row: &Definition,
    memory: Memory,
    possible: Vec<String>,
    jobs: impl Iterator<Item = (&'a str, &'a Option<(Extent, Vec<Turn>)>)>,
) -> (Compared, Option<String>) {
    let mut made = Compared {
        name: row.name.clone(),
        part: memory.name().to_owned(),
        possible,
        ..Compared::default()
    };
    let mut all: Vec<&Turn> = Vec::new();
    for (name, job) in jobs {
        let Some((extent, turns)) = job else { continue };
        made.bytes = extent.payload;
        all.extend(turns);
        let tried = tried(name, extent, turns);
        match name {
            FREE => made.free = Some(tried),
            STATIC => made.unmeasured = Some(tried),
            _ if name.starts_with(OFF) => made.without.push(tried),
            _ => made.candidates.push(tried),
        }
    }
    made.line = probes(all.into_iter());
    let Some(free) = &made.free else {
        return (made, Some("the free choice was not measured".to_owned()));
    };
    match judge(free, &made.candidates) {
        Ok(judged) => {
            made.judged = Some(judged);
            (made, None)
        }
        Err(line) => (made, Some(line)),
    }
}

/// Returns the times of one job. The mean with learning is the time of all exchanges since the job has started,
/// divided by their number.
fn tried(name: &str, extent: &Extent, turns: &[Turn]) -> Tried {
    let all = turns.iter().map(|turn| turn.spent).chain([extent.spent]);
    let sum = all.fold(Spent::default(), |sum, spent| Spent {
        ns: sum.ns.saturating_add(spent.ns),
        calls: sum.calls.saturating_add(spent.calls),
    });
    Tried {
        name: name.to_owned(),
        rounds: turns.iter().map(|turn| turn.ns).collect(),
        whole: (sum.calls > 0).then(|| sum.ns as f64 / sum.calls as f64),
    }
}

#[cfg(test)]
mod tests {
    use super::{Extent, Spent, Turn, compared};
    use crate::message::definition::{Definitions, Memory};

    fn job(ns: [f64; 4], first: (u64, u64), each: (u64, u64)) -> Option<(Extent, Vec<Turn>)> {
        let spent = |(ns, calls)| Spent { ns, calls };
        let turn = |ns| Turn { ns, pack: 0.0, probes: [200.0, 210.0], spent: spent(each) };
        let extent = Extent { payload: 64, touched: 128, spent: spent(first) };
        Some((extent, ns.map(turn).to_vec()))
    }

    #[test]
    fn the_warm_up_is_part_of_the_time_with_learning() {
        let definitions = Definitions::regret();
        let row = &definitions.rows[0];
        let free = job([9.0, 30.0, 9.0, 30.0], (1000, 10), (100, 10));
        let good = job([10.0, 20.0, 10.0, 20.0], (200, 10), (100, 10));
        let poor = job([11.0, 10.0, 11.0, 10.0], (1, 1), (1, 1));
        let jobs = [("free", &free), ("a", &good), ("b", &poor), ("c", &None)];
        let (made, fault) = compared(row, Memory::User, vec!["a".into()], jobs.into_iter());
        assert_eq!(fault, None);
        let judged = made.judged.clone().expect("a regret");
        assert_eq!((judged.best.as_str(), judged.ratio), ("a", 1.5));
        // 1400 ns of 50 exchanges against 600 ns of 50 exchanges.
        assert!((judged.learning.expect("times") - 14.0 / 6.0).abs() < 1e-9);
        assert_eq!((made.bytes, made.distance().name()), (64, "far"));
    }

    #[test]
    fn a_row_without_choice_is_not_judged() {
        let definitions = Definitions::regret();
        let row = &definitions.rows[0];
        let one = job([9.0, 30.0, 9.0, 30.0], (1, 1), (1, 1));
        let jobs = [("free", &one), ("a", &one), ("b", &None)];
        let (made, line) = compared(row, Memory::User, Vec::new(), jobs.into_iter());
        let line = line.expect("a fault");
        assert!(line.contains("are: a;") && made.judged.is_none(), "{line}");
        let jobs = [("free", &None), ("a", &one), ("b", &one)];
        let (made, line) = compared(row, Memory::User, Vec::new(), jobs.into_iter());
        assert_eq!(line.as_deref(), Some("the free choice was not measured"));
        assert!(made.judged.is_none() && made.candidates.len() == 2);
    }
}
