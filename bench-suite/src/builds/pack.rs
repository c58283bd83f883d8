//! Compares the C libraries of two builds: `MPI_Pack`, `MPI_Unpack`, and the creation and release of
//! types.
//!
//! Each library runs in its own process (`../peer/`). Both processes use the same pages and the same CPU,
//! and each takes one turn per round. All answers are verified before the calls are timed.

use super::{Compared, RUNS};
use crate::definition::LayoutDefinition;
use crate::layout::Layout;
use crate::measure::{Guest, measure_with};
use crate::peer::{Peer, Session};
use crate::prepare::Bench;
use crate::storm;
use std::path::Path;
use typepack_engine::kernel::Direction;

/// Layouts that span more bytes of memory than this are left out. `typepack-bench peers --quick` has the
/// same limit.
const MOST_MEMORY: usize = 300 << 20;

/// What to measure: a layout or a storm.
#[derive(Clone, Debug)]
pub enum Work<'a> {
    /// A layout at a size in packed bytes.
    Layout(&'a LayoutDefinition, u64),
    /// A storm (`../storm.rs`): a type that is made, used [`storm::USES`] times and freed. The number is
    /// the type's index in [`storm::LAYOUTS`].
    Storm(usize),
}

impl Work<'_> {
    fn layout(&self) -> Result<Layout, String> {
        match self {
            Self::Layout(definition, size) => {
                Layout::new(definition, *size).map_err(|e| e.to_string())
            }
            Self::Storm(index) => storm::layout(*index),
        }
    }

    fn class(&self) -> String {
        match self {
            Self::Layout(_, size) => format!("{} packed", crate::row::report::size_text(*size)),
            Self::Storm(_) => "a new type every ten uses".to_owned(),
        }
    }

    fn name(&self) -> String {
        match self {
            Self::Layout(definition, size) => {
                format!("{} {}", definition.name, crate::row::report::size_text(*size))
            }
            Self::Storm(index) => format!("storm of {}", storm::LAYOUTS[*index].0),
        }
    }
}

/// Measures `work` in `directions` with both libraries. `peers[0]` is the new build. Returns the rows, and
/// one line for each fault and for each layout that was left out.
///
/// # Errors
///
/// Returns a one-line message if a library does not start.
pub fn run(
    peers: [Peer; 2],
    command: &Path,
    work: &[Work<'_>],
    directions: &[Direction],
    rounds: usize,
    mut progress: impl FnMut(usize, usize),
) -> Result<(Vec<Compared>, Vec<String>), String> {
    let [new, base] = peers;
    let mut sessions =
        [Session::start(new, command.to_owned())?, Session::start(base, command.to_owned())?];
    let (mut rows, mut places, mut faults) = (Vec::new(), Vec::new(), Vec::new());
    for (done, one) in work.iter().enumerate() {
        progress(done + 1, work.len());
        match one.layout() {
            Ok(layout) if layout.memory > MOST_MEMORY => {
                let mib = layout.memory.div_ceil(1 << 20);
                let most = MOST_MEMORY >> 20;
                faults.push(format!(
                    "{}: left out; it needs {mib} MiB of memory, and at most {most} are allowed",
                    one.name()
                ));
                continue;
            }
            Ok(_) => {}
            Err(line) => {
                faults.push(format!("{}: {line}", one.name()));
                continue;
            }
        }
        // A storm is measured in one direction only, packing, because making the type costs the same in
        // both directions.
        let directions = if let Work::Storm(_) = one { &[Direction::Pack][..] } else { directions };
        for &direction in directions {
            match measure(one, direction, &mut sessions, rounds) {
                Ok(run) => {
                    let name =
                        format!("{} {}", one.name(), crate::measure::direction_name(direction));
                    rows.push(Compared { name, class: one.class(), runs: vec![run] });
                    places.push((one, direction));
                }
                Err(line) => faults.push(format!("{}: {line}", one.name())),
            }
        }
    }
    let slower: Vec<usize> = (0..rows.len()).filter(|&row| rows[row].is_slower()).collect();
    for _ in 1..RUNS {
        // Ends the processes, so that every run starts new ones. The placement of a process's memory
        // affects its times but is not a property of the build.
        sessions.iter_mut().for_each(Session::end);
        for &row in &slower {
            let (one, direction) = places[row];
            match measure(one, direction, &mut sessions, rounds) {
                Ok(run) => rows[row].runs.push(run),
                Err(line) => faults.push(format!("{}: {line}", one.name())),
            }
        }
    }
    Ok((rows, faults))
}

/// Measures `work` once. Returns the old build's time divided by the new build's time, and whether both
/// figures are steady.
fn measure(
    work: &Work<'_>,
    direction: Direction,
    sessions: &mut [Session; 2],
    rounds: usize,
) -> Result<(f64, bool), String> {
    let mut bench = Bench::verified(work.layout()?, Vec::new())?;
    for session in &mut *sessions {
        let sent = match work {
            Work::Layout(..) => session.layout(&bench),
            Work::Storm(_) => session.storm(&bench),
        };
        sent.map_err(|line| format!("{}: {line}", session.name()))?;
    }
    let [new, base] = sessions;
    let size = bench.layout.payload;
    let (row, faults) = measure_with(&mut bench, &mut [new, base], size, direction, rounds);
    match &row.figures[..] {
        [new, base] => Ok((base.ns / new.ns, new.is_steady() && base.is_steady())),
        _ => Err(faults.join("; ")),
    }
}
