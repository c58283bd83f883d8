//! The subcommands of `typepack-bench`. Each file defines the arguments of one subcommand and then the
//! function that runs it.
//!
//! `../main.rs` calls these functions. This file has what several subcommands share: errors, output,
//! progress, and common arguments.

pub(super) mod commit;
pub(super) mod guidelines;
pub(super) mod pack;
pub(super) mod peers;
pub(super) mod plot;
pub(super) mod regret;
pub(super) mod results;

use clap::ValueEnum;
use std::io::{IsTerminal, Write};
use std::path::Path;
use typepack_bench::definition::{Definitions, LayoutDefinition, MOST_BYTES, legend};
use typepack_bench::load::Load;
use typepack_bench::message::arguments::Fault;
use typepack_engine::kernel::Direction;

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Directions {
    Pack,
    Unpack,
    Both,
}

impl Directions {
    fn list(self) -> &'static [Direction] {
        match self {
            Self::Pack => &[Direction::Pack],
            Self::Unpack => &[Direction::Unpack],
            Self::Both => &[Direction::Pack, Direction::Unpack],
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    Table,
    Csv,
    Json,
}

/// The largest packed size of a quick run, in bytes.
pub(super) const QUICK_MOST_BYTES: u64 = 2 << 20;

/// An error that ends the command: a one-line message and the exit code.
pub(super) struct Failure {
    pub(super) line: String,
    pub(super) code: u8,
}

pub(super) fn usage(line: String) -> Failure {
    Failure { line, code: 2 }
}

pub(super) fn failed(line: String) -> Failure {
    Failure { line, code: 1 }
}

pub(super) fn fault(fault: Fault) -> Failure {
    match fault {
        Fault::Usage(line) => usage(line),
        Fault::Failed(line) => failed(line),
    }
}

pub(super) fn parse_size(text: &str) -> Result<u64, String> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let factor = match unit.trim_start().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        _ => return Err("a size must be a number, optionally followed by K, M or G".to_owned()),
    };
    let bytes = number.parse::<u64>().ok().and_then(|n| n.checked_mul(factor));
    match bytes {
        Some(bytes) if (1..=MOST_BYTES).contains(&bytes) => Ok(bytes),
        _ => Err(format!("the size must be between 1 and {MOST_BYTES} bytes")),
    }
}

pub(super) fn definitions(
    path: Option<&Path>,
    built_in: fn() -> Definitions,
) -> Result<Definitions, Failure> {
    let Some(path) = path else { return Ok(built_in()) };
    let named = |error: String| usage(format!("--definitions {}: {error}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|e| named(e.to_string()))?;
    Definitions::parse(&text).map_err(|e| named(e.to_string()))
}

pub(super) fn chosen<'a>(
    definitions: &'a Definitions,
    names: &[String],
) -> Result<Vec<&'a LayoutDefinition>, Failure> {
    if names.is_empty() {
        return Ok(definitions.layouts.iter().collect());
    }
    let find = |name: &String| {
        definitions.layouts.iter().find(|layout| layout.name == *name).ok_or_else(|| {
            let known: Vec<&str> = definitions.layouts.iter().map(|l| l.name.as_str()).collect();
            usage(format!(
                "--layout {name}: no such layout; it must be one of {}",
                known.join(", ")
            ))
        })
    };
    names.iter().map(find).collect()
}

pub(super) fn print_out(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .map_err(|e| failed(format!("standard output: {e}")))
}

/// If stderr is a terminal, overwrites its last line with the number of the row that is being measured. If
/// `row` is 0, clears this line instead.
pub(super) fn progress(row: usize, rows: usize) {
    if std::io::stderr().is_terminal() {
        if row == 0 {
            eprint!("\r\x1b[K");
        } else {
            eprint!("\rrow {row} of {rows}");
        }
    }
}

/// Looks at what other programs do on this machine. If they leave fewer than the `needed` CPUs, says so on stderr: the
/// run goes on, but its figures are not usable. The caller states the load again in its summary and in its record.
pub(super) fn load(needed: usize) -> Load {
    Load::begin(needed, measured)
}

/// Prints the names of `layouts` with their descriptions.
pub(super) fn list(layouts: &[&LayoutDefinition]) -> Result<(), Failure> {
    let names = layouts.iter().map(|layout| (layout.name.as_str(), layout.text.as_str()));
    print_out(&legend(names))
}

/// Prints a line about a row that has been measured to stderr, so that a long run shows how far it is and which row or
/// library takes long.
pub(super) fn measured(line: &str) {
    progress(0, 0);
    eprintln!("{line}");
}
