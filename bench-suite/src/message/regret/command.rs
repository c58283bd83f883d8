//! The arguments of `typepack-bench regret messages` and `regret collectives`, and the function that runs the commands
//! and returns the text for the terminal.
//!
//! `command/regret.rs` of the program uses this file.

use super::Jobs;
use super::candidate::{Choices, VARIABLES, possible};
use super::report::{self, Run};
use crate::load::Load;
use crate::message::arguments::{Fault, PREFIX, RowArguments, free};
use crate::message::definition::{Definition, Definitions, Memory};
use crate::message::library::{Library, Scratch};
use crate::message::suite::Effort;
use crate::regret::judge::LEAST_ROUNDS;
use crate::regret::report::{FREE, csv};
use std::path::PathBuf;

/// The number of rounds by default, and with `--quick`.
const ROUNDS: [u16; 2] = [8, 6];

/// The arguments of `typepack-bench regret messages` and `regret collectives`.
#[derive(clap::Args)]
pub struct RegretArguments {
    #[command(flatten)]
    common: RowArguments,
    /// The kind of memory of the buffers. By default both kinds; for collectives, user memory.
    #[arg(long, value_enum)]
    memory: Option<Memory>,
    /// The folder of an installed typepack (`scripts/install --prefix DIR`).
    #[arg(long, value_name = "DIR", default_value = PREFIX)]
    prefix: PathBuf,
    /// Number of rounds. In each round, the free choice and the candidates take turns. The even rounds pick
    /// the best candidate, the odd rounds time it. By default 8, with --quick 6.
    #[arg(long, value_name = "N",
          value_parser = clap::value_parser!(u16).range(LEAST_ROUNDS as i64..=1000))]
    rounds: Option<u16>,
    /// Approximate measuring time per turn, in milliseconds.
    #[arg(long, value_name = "MS", default_value_t = 15,
          value_parser = clap::value_parser!(u16).range(1..=10_000))]
    milliseconds: u16,
}

/// Runs the command and returns the text for the terminal. Calls `progress` with the number of the current row
/// and the total number of rows, and `said` with a line if the machine is too busy.
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
    said: impl FnMut(&str),
) -> Result<String, Fault> {
    let rows = chosen(&arguments.common, choices)?;
    let memories = arguments.memory.map_or(choices.memories(), |one| vec![one]);
    if arguments.common.list {
        return Ok(list(&rows, &memories));
    }
    let library = Library { name: FREE.to_owned(), ..free(&arguments.prefix, &VARIABLES)? };
    let scratch = Scratch::new().map_err(Fault::Failed)?;
    let program = library.compile(None, scratch.path()).map_err(Fault::Failed)?;
    let mut jobs = Jobs::new(library, program, scratch.path());
    let effort = Effort {
        rounds: arguments.rounds.unwrap_or(ROUNDS[usize::from(arguments.common.quick)]).into(),
        milliseconds: f64::from(arguments.milliseconds),
    };
    let load = Load::begin(2, said);
    let mut run = Run { choices, ..Run::default() };
    let total = rows.len() * memories.len();
    for row in &rows {
        for &memory in &memories {
            progress(run.rows.len() + 1, total);
            let candidates = possible(row, memory);
            let measured = jobs.measure(row, memory, &candidates, &effort, &mut run.faults);
            run.rows.push(measured.map_err(|line| Fault::Failed(format!("{}: {line}", FREE)))?);
        }
    }
    run.versions.push(jobs.version.clone());
    if jobs.woken > 0 {
        let line = format!("ranks woke up {} times while other jobs were measured", jobs.woken);
        run.versions.push(line);
    }
    arguments.common.write(|| csv(&run.rows))?;
    Ok(format!("{}\n{}\n{load}\n", report::table(&run), report::summary(&run)))
}

fn chosen(arguments: &RowArguments, choices: Choices) -> Result<Vec<Definition>, Fault> {
    let definitions = arguments.definitions(|| choices.definitions(), Definitions::parse)?;
    arguments.check(definitions.rows.iter().map(|row| row.name.as_str()))?;
    let is_other = |row: &&Definition| match choices {
        Choices::Messages => row.collective().is_some() || row.ranks != 2,
        Choices::Collectives => row.collective().is_none(),
    };
    if let Some(row) = definitions.rows.iter().find(is_other) {
        let wanted = match choices {
            Choices::Messages => "measures no message between 2 ranks",
            Choices::Collectives => "measures no collective call",
        };
        return Err(Fault::Usage(format!("--rows: row {} {wanted}", row.name)));
    }
    let rows = definitions.rows.into_iter();
    Ok(rows.filter(|row| arguments.chooses(&row.name, row.quick)).collect())
}

fn list(rows: &[Definition], memories: &[Memory]) -> String {
    let lines = rows.iter().flat_map(|row| {
        memories.iter().map(move |&memory| {
            let names: Vec<String> =
                possible(row, memory).into_iter().map(|candidate| candidate.name).collect();
            format!("{:<20}{:<8}{}\n", row.name, memory.name(), names.join(", "))
        })
    });
    lines.collect()
}
