//! Runs `typepack-bench peers`: measures every layout at every size. All competitors and peers take turns.
//!
//! `layout.rs` makes the layouts, `prepare.rs` verifies the answers, and `peer/` measures the peers.
//! `summary.rs` compares the rows with the bars and prints them; `ablation.rs` compares the kinds of kernels. If a
//! competitor fails, the run adds a line to [`Suite::faults`] and continues without the competitor.

use crate::competitor;
use crate::competitor::hand::Hands;
use crate::definition::Definitions;
use crate::layout::Layout;
use crate::measure::{Guest, measure_with};
use crate::peer::Session;
use crate::prepare::Bench;
use crate::regret::{self, Regret};
use crate::row::{Row, TYPEPACK};
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

/// Returns true if the ratios of typepack to the best peer and to the best hand loop are steady.
pub fn is_steady(row: &Row, peers: &[String]) -> bool {
    let ratios = [row.against(TYPEPACK, peers), row.against_hand(TYPEPACK)];
    ratios.iter().flatten().all(|ratio| ratio.steady)
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
    pub rows: Vec<Row>,
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
            let mut best: Option<Row> = None;
            for _ in 0..=effort.repeats {
                let (row, faults) =
                    measure_with(&mut bench, &mut guests, size, direction, effort.rounds);
                suite.faults.extend(faults.iter().map(|line| format!("{place}: {line}")));
                let row = Row { touched, ..row };
                let steady = is_steady(&row, &suite.peers) || !faults.is_empty();
                best = Some(match best {
                    Some(best) if !steady && best.spread() <= row.spread() => best,
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
