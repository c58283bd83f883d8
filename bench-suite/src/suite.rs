//! Runs `typepack-bench peers`: measures every layout at every size. All competitors and peers take turns.
//!
//! `layout.rs` makes the layouts, `prepare.rs` verifies the answers, and `peer/` measures the peers.
//! `summary.rs` compares the rows with the bars; `ablation.rs` and `suite_report.rs` print them. If a
//! competitor fails, the run adds a line to [`Suite::faults`] and continues without the competitor.

use crate::competitor::hand::Hands;
use crate::competitor::{self, HAND, HAND_C, TYPEPACK};
use crate::definition::{Class, Definitions};
use crate::layout::Layout;
use crate::measure::{Figure, Guest, Row, STEADY, measure_with};
use crate::peer::Session;
use crate::prepare::Bench;
use crate::regret::{self, Regret};
use crate::storm::{self, Storm};
use crate::touched::touched;
use serde::Serialize;
use typepack_engine::Isa;
use typepack_engine::kernel::Direction;
use typepack_jit::{Jit, Mode, Settings};

/// How long a run measures, and what it leaves out.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Number of rounds. In each round, the competitors take turns.
    pub rounds: usize,
    /// The maximum number of times that an unsteady row is measured again.
    pub repeats: usize,
    /// The largest number of bytes of memory that a layout may span. The run leaves out larger layouts.
    /// The verification of a layout temporarily needs up to three times as much memory as the layout.
    pub memory: u64,
    /// The instruction set of leaf kernels. `None` stands for the best set that this machine supports.
    pub isa: Option<Isa>,
}

/// The row of one layout at one size in one direction, with the data that the bars need.
#[derive(Clone, Debug, Serialize)]
pub struct SuiteRow {
    /// The row with its figures.
    #[serde(flatten)]
    pub row: Row,
    /// The class of the layout.
    pub class: Class,
    /// Total size, in bytes, of the cache lines of memory that a call touches, plus the number of packed
    /// bytes.
    pub touched: u64,
}

impl SuiteRow {
    /// Returns the figure of the fastest of `peers`, or `None` if none of them has a figure.
    pub fn best_peer(&self, peers: &[String]) -> Option<&Figure> {
        let figures = self.row.figures.iter().filter(|f| peers.contains(&f.competitor));
        figures.max_by(|a, b| a.gb_per_s.total_cmp(&b.gb_per_s))
    }

    /// Returns typepack's bandwidth divided by the bandwidth of the fastest of `peers`, and whether both
    /// figures are steady. Returns `None` if one of the two figures is missing.
    pub fn against_peer(&self, peers: &[String]) -> Option<(f64, bool)> {
        self.against(self.best_peer(peers)?)
    }

    /// Returns the figure of the fastest hand loop, or `None` if no hand loop has a figure.
    pub fn best_hand(&self) -> Option<&Figure> {
        let figures = [HAND, HAND_C].into_iter().filter_map(|name| self.row.figure(name));
        figures.max_by(|a, b| a.gb_per_s.total_cmp(&b.gb_per_s))
    }

    /// Returns typepack's bandwidth divided by the bandwidth of the fastest hand loop, and whether both
    /// figures are steady. Returns `None` if one of the two figures is missing.
    pub fn against_hand(&self) -> Option<(f64, bool)> {
        self.against(self.best_hand()?)
    }

    fn against(&self, other: &Figure) -> Option<(f64, bool)> {
        let own = self.row.figure(TYPEPACK)?;
        let steady = own.spread <= STEADY && other.spread <= STEADY;
        Some((own.gb_per_s / other.gb_per_s, steady))
    }

    /// Returns true if the ratios to the best peer and to the best hand loop are steady.
    pub fn is_steady(&self, peers: &[String]) -> bool {
        [self.against_peer(peers), self.against_hand()].into_iter().flatten().all(|(_, s)| s)
    }
}

/// The results of a run.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Suite {
    /// The names of the peers that took part.
    pub peers: Vec<String>,
    /// The versions of the peers, in the order of `peers`.
    pub versions: Vec<String>,
    /// One line for each build of the hand loops: how it was built, or why it is missing.
    pub hands: Vec<String>,
    /// The rows.
    pub rows: Vec<SuiteRow>,
    /// The rows of the storm. A call makes one type and uses it [`storm::USES`] times.
    pub storm: Vec<Row>,
    /// The rows of the regret: how much more time a program takes with the compilation policy than with the
    /// better of two fixed choices (`regret/policy.rs`).
    pub regret: Vec<Regret>,
    /// One line for each fault: a wrong answer, a crash, or a refused layout.
    pub faults: Vec<String>,
    /// One line for each layout that the run has left out because it spans too much memory.
    pub skipped: Vec<String>,
}

/// Measures `work` in `directions`. Each entry of `work` is a requested size and the layout at this size.
/// Calls `progress` with the number of the current layout and the total number of layouts.
pub fn run(
    work: Vec<(u64, Layout)>,
    directions: &[Direction],
    sessions: &mut [Session],
    hands: &Hands,
    effort: &Effort,
    mut progress: impl FnMut(usize, usize),
) -> Suite {
    let jits = competitor::generators();
    let mut suite = Suite {
        peers: sessions.iter().map(|s| s.name().to_owned()).collect(),
        versions: sessions.iter().map(|s| s.version().to_owned()).collect(),
        hands: hands.notes.clone(),
        ..Suite::default()
    };
    let total = work.len();
    for (done, (size, layout)) in work.into_iter().enumerate() {
        progress(done + 1, total);
        let place = format!("{} at {size} bytes", layout.name);
        if layout.memory as u64 > effort.memory {
            let mib = layout.memory >> 20;
            suite.skipped.push(format!("{place}: {mib} MiB of memory"));
            continue;
        }
        let plan = layout.datatype.commit();
        let made = plan.and_then(|plan| {
            let touched = touched(&layout, &plan)?;
            Ok((touched, competitor::all(&layout, &jits, &hands.loops, effort.isa)?))
        });
        let (touched, competitors) = match made {
            Ok(made) => made,
            Err(error) => {
                suite.faults.push(format!("{place}: {error}"));
                continue;
            }
        };
        let class = layout.class;
        let (memory, packed) = match Bench::buffers(&layout) {
            Ok(buffers) => buffers,
            Err(line) => {
                suite.faults.push(format!("{place}: {line}"));
                continue;
            }
        };
        let (mut bench, faults) = Bench::sound(layout, competitors, memory, packed);
        suite.faults.extend(faults);
        let mut guests: Vec<&mut dyn Guest> = Vec::new();
        for session in &mut *sessions {
            match session.layout(&bench) {
                Ok(()) => guests.push(session),
                Err(line) => suite.faults.push(format!("{place}: {}: {line}", session.name())),
            }
        }
        for &direction in directions {
            let mut best: Option<SuiteRow> = None;
            for _ in 0..=effort.repeats {
                let (row, faults) =
                    measure_with(&mut bench, &mut guests, size, direction, effort.rounds);
                suite.faults.extend(faults.iter().map(|line| format!("{place}: {line}")));
                let row = SuiteRow { row, class, touched };
                let steady = row.is_steady(&suite.peers) || !faults.is_empty();
                best = Some(match best {
                    Some(best) if !steady && restless(&best) <= restless(&row) => best,
                    _ => row,
                });
                if steady {
                    break;
                }
            }
            suite.rows.extend(best);
        }
    }
    suite
}

/// Measures the storm (`storm.rs`) in one direction, packing, and adds its rows to `suite`.
pub fn storm(suite: &mut Suite, sessions: &mut [Session], effort: &Effort) {
    let jit = Jit::new(Settings { mode: Mode::Lazy, ..Settings::default() });
    for (index, (name, _)) in storm::LAYOUTS.iter().enumerate() {
        let made = storm::layout(index).and_then(|layout| {
            let storm = Storm::new(&layout, &jit)?;
            Bench::verified(layout, vec![Box::new(storm)])
        });
        let mut bench = match made {
            Ok(bench) => bench,
            Err(line) => {
                suite.faults.push(format!("storm of {name}: {line}"));
                continue;
            }
        };
        let mut guests: Vec<&mut dyn Guest> = Vec::new();
        for session in &mut *sessions {
            match session.storm(&bench) {
                Ok(()) => guests.push(session),
                Err(line) => {
                    suite.faults.push(format!("storm of {name}: {}: {line}", session.name()));
                }
            }
        }
        let (size, rounds) = (bench.layout.payload, effort.rounds);
        let (row, faults) = measure_with(&mut bench, &mut guests, size, Direction::Pack, rounds);
        suite.faults.extend(faults.iter().map(|line| format!("storm of {name}: {line}")));
        suite.storm.push(row);
    }
}

/// Measures the regret of the compilation policy (`regret/policy.rs`) and adds its rows to `suite`.
pub fn regret(suite: &mut Suite, effort: &Effort) {
    let definitions = Definitions::reference();
    for (name, bytes) in regret::LAYOUTS {
        let found = definitions.layouts.iter().find(|layout| layout.name == name);
        let layout =
            found.ok_or_else(|| "the reference layouts have no layout of this name".to_owned());
        let layout = layout.and_then(|l| Layout::new(l, bytes).map_err(|e| e.to_string()));
        match layout.and_then(|layout| regret::measure(&layout, effort.rounds)) {
            Ok(rows) => suite.regret.extend(rows),
            Err(line) => suite.faults.push(format!("regret of {name}: {line}")),
        }
    }
}

/// Returns the greatest spread among the figures of a row.
fn restless(row: &SuiteRow) -> f64 {
    row.row.figures.iter().map(|f| f.spread).fold(1.0, f64::max)
}
