//! `typepack-bench commit`: measures the costs of a type apart from packing in one call, such as creation,
//! packing in pieces and fused copies, and compares them with their bars (limits that the project requires).

use super::{Failure, Format, failed, load, parse_size, print_out, progress};
use clap::ValueEnum;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use typepack_bench::{builds, commit};

#[derive(clap::Args)]
pub(crate) struct CommitArguments {
    /// How to print the rows.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
    /// Number of rounds. In each round, the competitors take turns.
    #[arg(long, default_value_t = 7, value_name = "N",
          value_parser = clap::value_parser!(u16).range(1..=10_000))]
    rounds: u16,
    /// Number of entries of the index lists; the bars are for 10^6.
    #[arg(long, default_value_t = 1_000_000, value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    entries: u32,
    /// Size of the layouts that are packed in pieces, in packed bytes; the bars are for 1 MiB. Also the
    /// largest size of the layouts that are converted to external32.
    #[arg(long, default_value = "1M", value_name = "BYTES", value_parser = parse_pieces)]
    size: u64,
    /// Measure one part only: create, tables, seek, segments, external32 or fused.
    #[arg(long, value_name = "PART")]
    only: Option<String>,
    /// The typepack-bench program of another build. The two builds take turns; the table shows the speed
    /// of this build divided by the speed of the other build.
    #[arg(long, value_name = "PROGRAM", conflicts_with_all = ["format", "child"])]
    against: Option<PathBuf>,
    /// Measure one index list in this process. The command starts itself with this option for each
    /// measurement.
    #[arg(long, hide = true, value_enum)]
    child: Option<ChildList>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ChildList {
    IndexedBlock,
    Indexed,
}

/// Parses a packed size. Accepts only sizes at which the layouts of `commit` exist and are long enough to
/// be packed in pieces.
fn parse_pieces(text: &str) -> Result<u64, String> {
    const LEAST: u64 = 32 << 10;
    const MOST: u64 = 64 << 20;
    match parse_size(text)? {
        bytes if (LEAST..=MOST).contains(&bytes) => Ok(bytes),
        _ => Err(format!("the size must be between {LEAST} and {MOST} bytes")),
    }
}

/// Runs the command.
pub(crate) fn run(arguments: &CommitArguments) -> Result<(), Failure> {
    let entries = arguments.entries as usize;
    if let Some(child) = arguments.child {
        let table = match child {
            ChildList::IndexedBlock => commit::Table::IndexedBlock,
            ChildList::Indexed => commit::Table::Indexed,
        };
        let child = commit::Child::measure(table, entries).map_err(failed)?;
        let line = serde_json::to_string(&child).map_err(|e| failed(e.to_string()))?;
        return print_out(&(line + "\n"));
    }
    let load = load(1);
    if let Some(base) = &arguments.against {
        return compare(arguments, base);
    }
    let scale = commit::Scale {
        rounds: usize::from(arguments.rounds),
        entries,
        bytes: arguments.size as usize,
    };
    let rows = commit::run(&scale, arguments.only.as_deref(), tell);
    progress(0, 0);
    let rows = rows.map_err(failed)?;
    print_out(&match arguments.format {
        Format::Table => format!("{}\n{load}\n", commit::table(&rows)),
        Format::Csv => commit::csv(&rows),
        Format::Json => commit::json(&rows).map_err(|e| failed(e.to_string()))?,
    })
}

/// Measures this build and the build of the program `base` alternately, and prints their comparison.
fn compare(arguments: &CommitArguments, base: &Path) -> Result<(), Failure> {
    let own = std::env::current_exe().map_err(|e| failed(e.to_string()))?;
    let same = [
        format!("--rounds={}", arguments.rounds),
        format!("--entries={}", arguments.entries),
        format!("--size={}", arguments.size),
    ];
    let compared = builds::commit::run([&own, base], arguments.only.as_deref(), &same, tell);
    progress(0, 0);
    let (rows, alone) = compared.map_err(failed)?;
    print_out(&builds::text("this build", &base.display().to_string(), &rows))?;
    alone.iter().try_for_each(|name| print_out(&format!("only one build has the row: {name}\n")))
}

/// If stderr is a terminal, shows the name of the part that is being measured.
fn tell(part: &str) {
    if std::io::stderr().is_terminal() {
        eprint!("\r\x1b[K{part}");
    }
}
