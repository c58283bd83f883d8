//! The arguments of `typepack-bench regret messages` and `regret collectives`, and the function that runs the commands
//! and returns the text for the terminal.
//!
//! `command/regret.rs` of the program uses this file.

use super::candidate::{Choices, VARIABLES, possible};
use super::report::{self, Run};
use super::{Jobs, candidate};
use crate::message::apart;
use crate::message::command::{Fault, PREFIX};
use crate::message::definition::{Definitions, Memory, Row};
use crate::message::library::{Library, Scratch};
use crate::message::suite::Effort;
use crate::regret::judge::LEAST_ROUNDS;
use std::path::PathBuf;

/// The number of rounds by default, and with `--quick`.
const ROUNDS: [u16; 2] = [8, 6];

/// The arguments of `typepack-bench regret messages` and `regret collectives`.
#[derive(clap::Args)]
pub struct RegretArguments {
    /// Names of the rows to measure, or parts of names between dashes, such as contig, d1s8-64K or 1M.
    /// Separated by commas; by default all rows.
    #[arg(long, value_delimiter = ',', value_name = "NAME")]
    only: Vec<String>,
    /// The kind of memory of the buffers. By default both kinds; for collectives, user memory.
    #[arg(long, value_enum)]
    memory: Option<Memory>,
    /// The folder of an installed typepack (`scripts/install --prefix DIR`).
    #[arg(long, value_name = "DIR", default_value = PREFIX)]
    prefix: PathBuf,
    /// Measure fewer rows and rounds, in one or two minutes.
    #[arg(long)]
    quick: bool,
    /// Number of rounds. In each round, the free choice and the candidates take turns. The even rounds pick
    /// the best candidate, the odd rounds time it. By default 8, with --quick 6.
    #[arg(long, value_name = "N",
          value_parser = clap::value_parser!(u16).range(LEAST_ROUNDS as i64..=1000))]
    rounds: Option<u16>,
    /// Approximate measuring time per turn, in milliseconds.
    #[arg(long, value_name = "MS", default_value_t = 15,
          value_parser = clap::value_parser!(u16).range(1..=10_000))]
    milliseconds: u16,
    /// Write every figure to this file, as CSV.
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Read the rows from this TOML file instead of using the built-in ones. Bars in the file are not used.
    #[arg(long, value_name = "FILE")]
    rows: Option<PathBuf>,
    /// Print the names of the rows with their candidates and measure nothing.
    #[arg(long)]
    pub list: bool,
}

/// Runs the command and returns the text for the terminal. Calls `progress` with the number of the current row
/// and the total number of rows.
///
/// # Errors
///
/// Returns a [`Fault`] if the arguments are wrong, if one of `VARIABLES` is set, if the system allows no new network
/// namespaces, if the program cannot be compiled, if a job of the free choice does not start, or if a file cannot be
/// written. If another job fails, the function returns no error; the text states the fault.
pub fn run(
    arguments: &RegretArguments,
    choices: Choices,
    mut progress: impl FnMut(usize, usize),
) -> Result<String, Fault> {
    let rows = chosen(arguments, choices).map_err(Fault::Usage)?;
    let memories = arguments.memory.map_or(choices.memories(), |one| vec![one]);
    if arguments.list {
        return Ok(list(&rows, &memories));
    }
    if let Some((name, value)) =
        VARIABLES.iter().find_map(|name| std::env::var_os(name).map(|value| (name, value)))
    {
        return Err(Fault::Usage(format!(
            "{name} is set to {value:?}; it must not be set, because the free choice is measured"
        )));
    }
    let shown = arguments.prefix.display();
    let named = |line: String| Fault::Usage(format!("--prefix {shown}: {line}"));
    let mut library = Library::at(candidate::FREE, &arguments.prefix).map_err(|line| {
        let hint = if arguments.prefix.as_os_str() == PREFIX {
            "; scripts/install --prefix makes one"
        } else {
            ""
        };
        named(format!("{line}{hint}"))
    })?;
    if library.is_peer() {
        return Err(named(format!("the library is {:?}; it must be typepack", library.kind)));
    }
    apart::check().map_err(Fault::Failed)?;
    library.apart = true;
    let scratch = Scratch::new().map_err(Fault::Failed)?;
    let program = library.compile(None, scratch.path()).map_err(Fault::Failed)?;
    let mut jobs = Jobs::new(library, program, scratch.path());
    let effort = Effort {
        rounds: arguments.rounds.unwrap_or(ROUNDS[usize::from(arguments.quick)]).into(),
        milliseconds: f64::from(arguments.milliseconds),
    };
    let mut run = Run { choices, ..Run::default() };
    let total = rows.len() * memories.len();
    for row in &rows {
        for &memory in &memories {
            progress(run.rows.len() + 1, total);
            let candidates = possible(row, memory);
            let measured = jobs.measure(row, memory, &candidates, &effort, &mut run.faults);
            run.rows.push(
                measured.map_err(|line| Fault::Failed(format!("{}: {line}", candidate::FREE)))?,
            );
        }
    }
    run.versions.push(jobs.version.clone());
    if jobs.woken > 0 {
        let line = format!("ranks woke up {} times while other jobs were measured", jobs.woken);
        run.versions.push(line);
    }
    if let Some(path) = &arguments.csv {
        std::fs::write(path, report::csv(&run))
            .map_err(|e| Fault::Failed(format!("--csv {}: {e}", path.display())))?;
    }
    Ok(format!("{}\n{}", report::table(&run), report::summary(&run)))
}

fn chosen(arguments: &RegretArguments, choices: Choices) -> Result<Vec<Row>, String> {
    let definitions = match &arguments.rows {
        None => choices.definitions(),
        Some(path) => {
            let named = |error: String| format!("--rows {}: {error}", path.display());
            let text = std::fs::read_to_string(path).map_err(|e| named(e.to_string()))?;
            Definitions::parse(&text).map_err(named)?
        }
    };
    let only = &arguments.only;
    let unknown = |pattern: &&String| !definitions.rows.iter().any(|row| row.is_named(pattern));
    if let Some(pattern) = only.iter().find(unknown) {
        return Err(format!("--only {pattern}: no such row; --list names them"));
    }
    let is_other = |row: &&Row| match choices {
        Choices::Messages => row.collective().is_some() || row.ranks != 2,
        Choices::Collectives => row.collective().is_none(),
    };
    if let Some(row) = definitions.rows.iter().find(is_other) {
        let wanted = match choices {
            Choices::Messages => "measures no message between 2 ranks",
            Choices::Collectives => "measures no collective call",
        };
        return Err(format!("--rows: row {} {wanted}", row.name));
    }
    // `--only` also selects rows that do not belong to a quick run.
    let rows = definitions.rows.into_iter().filter(|row| match only.is_empty() {
        true => row.quick || !arguments.quick,
        false => only.iter().any(|pattern| row.is_named(pattern)),
    });
    Ok(rows.collect())
}

fn list(rows: &[Row], memories: &[Memory]) -> String {
    let lines = rows.iter().flat_map(|row| {
        memories.iter().map(move |&memory| {
            let names: Vec<String> =
                possible(row, memory).into_iter().map(|candidate| candidate.name).collect();
            format!("{:<20}{:<8}{}\n", row.name, memory.name(), names.join(", "))
        })
    });
    lines.collect()
}
