//! The arguments of `typepack-bench io` and `regret files`, and the functions that run these commands and return
//! the text for the terminal.
//!
//! `main.rs` and `command/regret.rs` use this file and print the text.

use super::definition::{Definition, Definitions};
use super::regret;
use super::suite::{Effort, LOOPS, measure};
use crate::load::Load;
use crate::message::arguments::{Fault, PREFIX, PeerArguments, RowArguments, free, own};
use crate::message::command::{programs, sessions};
use crate::message::library::Scratch;
use crate::message::report::{self, Run};
use crate::row::TYPEPACK;
use crate::row::kind::Kind;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Number of ranks of all rows.
const RANKS: usize = 2;

/// The arguments of `typepack-bench io`.
#[derive(clap::Args)]
pub struct FileArguments {
    #[command(flatten)]
    common: RowArguments,
    /// The folder of an installed typepack (`scripts/install --prefix DIR`).
    #[arg(long, value_name = "DIR", default_value = PREFIX)]
    prefix: PathBuf,
    #[command(flatten)]
    peers: PeerArguments,
    /// The folder for the file that the ranks share. The file is removed at the end. By default a new
    /// folder among the temporary files.
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
    /// Size of the file in KiB.
    #[arg(long, value_name = "KIB", default_value_t = 64 << 10,
          value_parser = clap::value_parser!(u64).range(2048..=1 << 19))]
    size: u64,
    /// Time limit in seconds. A turn (usually at least three accesses) that takes longer is given up. A competitor
    /// whose turns in a row have taken longer in total takes no further turns in this row.
    #[arg(long, value_name = "S", default_value_t = 20,
          value_parser = clap::value_parser!(u16).range(1..=3600))]
    limit: u16,
    /// Number of rounds. In each round, the competitors take turns. By default 7, with --quick 3. For `regret
    /// files`, by default 8, with --quick 6.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    rounds: Option<u16>,
    /// Approximate measuring time per turn, in milliseconds.
    #[arg(long, value_name = "MS", default_value_t = 60,
          value_parser = clap::value_parser!(u16).range(1..=10_000))]
    milliseconds: u16,
}

/// The file that the ranks share. It is removed when this value is dropped.
struct Shared(PathBuf);

impl Shared {
    /// Chooses the path of the file in `folder`. The C program makes the file.
    fn new(folder: &Path) -> Result<Self, String> {
        let shown = folder.display();
        let whole = std::fs::canonicalize(folder).map_err(|e| format!("{shown}: {e}"))?;
        let path = whole.join(format!("typepack-bench-{}.data", std::process::id()));
        let sound = |c: char| c.is_ascii_graphic();
        let text = path.to_str().filter(|text| text.len() < 200 && text.chars().all(sound));
        match text {
            Some(_) => Ok(Self(path)),
            None => Err(format!(
                "{shown}: the path must have fewer than 200 printable ASCII characters and no spaces"
            )),
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // The result is ignored: there is no file if no row was measured.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Runs the command and returns the text for the terminal. Calls `progress` with the number of the current
/// row and the total number of rows, and `said` with a line if the machine is too busy.
///
/// # Errors
///
/// Returns a [`Fault`] if the arguments are wrong, if typepack's job does not start, or if a file cannot be written.
/// If a peer fails, or typepack fails in a row, the function returns no error; the text states the fault.
pub fn run(
    arguments: &FileArguments,
    mut progress: impl FnMut(usize, usize),
    said: impl FnMut(&str),
) -> Result<String, Fault> {
    let definitions = arguments.common.definitions(Definitions::built_in, Definitions::parse)?;
    let rows = chosen(&arguments.common, &definitions)?;
    if arguments.common.list {
        return Ok(list(&rows));
    }
    let effort = effort(arguments, [7, 3]);
    let scratch = Scratch::new().map_err(Fault::Failed)?;
    let folder = arguments.folder.as_deref().unwrap_or(scratch.path());
    let shared = Shared::new(folder).map_err(|line| Fault::Usage(format!("--folder {line}")))?;
    let mut libraries = vec![own(TYPEPACK, &arguments.prefix)?];
    arguments.peers.add(&mut libraries, false, false)?;
    let load = Load::begin(RANKS, said);
    let versions = vec![file_system(folder)];
    let mut run = Run { kind: Kind::Files, load: Some(load), versions, ..Run::default() };
    let programs = programs(&mut run, libraries, &scratch)?;
    run.competitors.extend(LOOPS.iter().map(|(name, _)| (*name).to_owned()));
    let mut sessions = sessions(&mut run, &programs, RANKS, (scratch.path(), effort.limit))?;
    for (place, row) in rows.iter().enumerate() {
        progress(place + 1, rows.len());
        let measured = measure(row, &shared.0, &mut sessions, &effort, &mut run.faults);
        run.rows.push(measured);
    }
    arguments.common.write(|| report::csv(&run))?;
    Ok(format!("{}\n{}", report::table(&run), report::summary(&run, &definitions.bars)))
}

/// Runs `typepack-bench regret files`, which has the same arguments but ignores `--peers` and refuses `--library`
/// and `--csv`. Calls `progress` and `said` as [`run`] does. Returns the text for the terminal.
///
/// # Errors
///
/// Returns a [`Fault`] if the arguments are wrong, if `TYPEPACK_IO` or `TYPEPACK_TUNE` is set, if the system allows
/// no new network namespaces, or if a way cannot be measured.
pub fn run_regret(
    arguments: &FileArguments,
    progress: impl FnMut(usize, usize),
    said: impl FnMut(&str),
) -> Result<String, Fault> {
    for (option, given) in [
        ("--csv", arguments.common.csv.is_some()),
        ("--library", !arguments.peers.library.is_empty()),
    ] {
        if given {
            return Err(Fault::Usage(format!(
                "{option}: regret files compares the ways of typepack and prints a text; leave the option out"
            )));
        }
    }
    let definitions = arguments.common.definitions(Definitions::built_in, Definitions::parse)?;
    let mut rows = chosen(&arguments.common, &definitions)?;
    rows.retain(|row| regret::is_judged(row));
    if arguments.common.list {
        return Ok(list(&rows));
    }
    let effort = effort(arguments, [8, 6]);
    let library = free(&arguments.prefix, &["TYPEPACK_IO", "TYPEPACK_TUNE"])?;
    let scratch = Scratch::new().map_err(Fault::Failed)?;
    let folder = arguments.folder.as_deref().unwrap_or(scratch.path());
    let shared = Shared::new(folder).map_err(|line| Fault::Usage(format!("--folder {line}")))?;
    let program = library.compile(None, scratch.path()).map_err(Fault::Failed)?;
    let jobs = (&library, program.as_path(), scratch.path());
    let load = Load::begin(RANKS, said);
    let text = regret::run(&rows, jobs, &shared.0, &effort, progress).map_err(Fault::Failed)?;
    Ok(format!("{text}\n{load}\n"))
}

/// Returns how long to measure. `rounds` has two numbers of rounds: the default, and the one with `--quick`.
fn effort(arguments: &FileArguments, rounds: [u16; 2]) -> Effort {
    Effort {
        rounds: arguments.rounds.unwrap_or(rounds[usize::from(arguments.common.quick)]).into(),
        milliseconds: f64::from(arguments.milliseconds),
        limit: Duration::from_secs(u64::from(arguments.limit)),
        bytes: arguments.size << 10,
    }
}

/// Returns a line that names the file system of `folder`.
fn file_system(folder: &Path) -> String {
    const KNOWN: [(u64, &str); 5] = [
        (0xef53, "ext4"),
        (0x5846_5342, "XFS"),
        (0x9123_683e, "Btrfs"),
        (0x0102_1994, "tmpfs"),
        (0x794c_7630, "overlayfs"),
    ];
    let kind = rustix::fs::statfs(folder).map(|facts| facts.f_type as u64);
    let name = match kind {
        Ok(kind) => KNOWN
            .iter()
            .find(|(number, _)| *number == kind)
            .map_or(format!("of kind {kind:#x}"), |(_, name)| (*name).to_owned()),
        Err(error) => format!("unknown ({error})"),
    };
    format!("file system: {name}")
}

fn list(rows: &[&Definition]) -> String {
    rows.iter().map(|row| format!("{:<34}{}\n", row.name, row.text)).collect()
}

fn chosen<'a>(
    arguments: &RowArguments,
    all: &'a Definitions,
) -> Result<Vec<&'a Definition>, Fault> {
    arguments.check(all.rows.iter().map(|row| row.name.as_str()))?;
    Ok(all.rows.iter().filter(|row| arguments.chooses(&row.name, row.quick)).collect())
}
