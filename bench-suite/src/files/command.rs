//! The arguments of `typepack-bench io` and `regret files`, and the functions that run these commands and return
//! the text for the terminal.
//!
//! `main.rs` and `command/regret.rs` use this file and print the text.

use super::definition::{Definitions, Row};
use super::regret;
use super::report::{self, Run};
use super::suite::{Effort, measure};
use super::summary;
use crate::load::Load;
use crate::message::apart;
use crate::message::arguments::RowArguments;
use crate::message::command::{Fault, PREFIX};
use crate::message::library::{Library, Scratch, TYPEPACK};
use crate::message::session::{Session, UserMemory, cpus};
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
    /// The folder into which `scripts/bench peers` has put the peers.
    #[arg(long, value_name = "DIR", default_value = "target/peers")]
    peers: PathBuf,
    /// Names of the installed peers that take part, separated by commas; by default all.
    #[arg(long, value_delimiter = ',', value_name = "NAME")]
    library: Vec<String>,
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
        let line = |row: &&Row| format!("{:<34}{}\n", row.name, row.text);
        return Ok(rows.iter().map(line).collect());
    }
    let effort = effort(arguments, [7, 3]);
    let scratch = Scratch::new().map_err(Fault::Failed)?;
    let folder = arguments.folder.as_deref().unwrap_or(scratch.path());
    let shared = Shared::new(folder).map_err(|line| Fault::Usage(format!("--folder {line}")))?;
    let libraries = libraries(arguments)?;
    let load = Load::begin(RANKS, said);
    let versions = vec![file_system(folder)];
    let mut run = Run { load: Some(load), versions, ..Run::default() };
    let mut sessions = sessions(libraries, &effort, &scratch, &mut run)?;
    for (place, row) in rows.iter().enumerate() {
        progress(place + 1, rows.len());
        let measured = measure(row, &shared.0, &mut sessions, &effort, &mut run.faults);
        run.rows.push(measured);
    }
    arguments.common.write(|| report::csv(&run))?;
    Ok(format!("{}\n{}", report::table(&run), summary::text(&run, &definitions.bars)))
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
    for (option, given) in
        [("--csv", arguments.common.csv.is_some()), ("--library", !arguments.library.is_empty())]
    {
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
        return Ok(rows.iter().map(|row| format!("{:<34}{}\n", row.name, row.text)).collect());
    }
    for name in ["TYPEPACK_IO", "TYPEPACK_TUNE"] {
        if let Some(value) = std::env::var_os(name) {
            return Err(Fault::Usage(format!(
                "{name} is set to {value:?}; it must not be set, because the free choice is measured"
            )));
        }
    }
    let effort = effort(arguments, [8, 6]);
    let mut library = own(arguments)?;
    apart::check().map_err(Fault::Failed)?;
    library.apart = true;
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

/// Returns the installed typepack.
fn own(arguments: &FileArguments) -> Result<Library, Fault> {
    Library::at(TYPEPACK, &arguments.prefix).map_err(|line| {
        let default = arguments.prefix == Path::new(PREFIX);
        let hint = if default { "; scripts/install --prefix makes one" } else { "" };
        Fault::Usage(format!("--prefix {line}{hint}"))
    })
}

/// Returns the libraries that take part: typepack, and then the peers.
fn libraries(arguments: &FileArguments) -> Result<Vec<Library>, Fault> {
    let mut libraries = vec![own(arguments)?];
    libraries.extend(Library::peers(&arguments.peers));
    for name in &arguments.library {
        if !libraries.iter().any(|library| library.name == *name) {
            let known: Vec<&str> = libraries.iter().map(|library| library.name.as_str()).collect();
            let line = format!("no such library; it must be one of {}", known.join(", "));
            return Err(Fault::Usage(format!("--library {name}: {line}")));
        }
    }
    if !arguments.library.is_empty() {
        libraries.retain(|l| l.name == TYPEPACK || arguments.library.contains(&l.name));
    }
    Ok(libraries)
}

/// Compiles the C program for each of `libraries`, of which typepack is the first, and starts a job of each. Returns the
/// jobs that have started, and adds the fault of each peer whose job did not start to `run`.
fn sessions(
    libraries: Vec<Library>,
    effort: &Effort,
    scratch: &Scratch,
    run: &mut Run,
) -> Result<Vec<Session>, Fault> {
    let own = libraries[0].clone();
    let memory = UserMemory::new(RANKS).map_err(Fault::Failed)?;
    let mut sessions = Vec::new();
    for library in libraries {
        let (name, is_own) = (library.name.clone(), library.name == TYPEPACK);
        let started = library.compile(Some(&own), scratch.path()).and_then(|program| {
            Session::start(library, program, scratch.path(), &cpus(), &memory, effort.limit)
        });
        match started {
            Ok(session) => {
                run.versions.push(format!("{name}: {}", session.version()));
                run.libraries.push(name);
                sessions.push(session);
            }
            Err(line) if is_own => return Err(Fault::Failed(format!("{name}: {line}"))),
            Err(line) => run.faults.push(format!("{name}: {line}")),
        }
    }
    Ok(sessions)
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

fn chosen<'a>(arguments: &RowArguments, all: &'a Definitions) -> Result<Vec<&'a Row>, Fault> {
    arguments.check(all.rows.iter().map(|row| row.name.as_str()))?;
    Ok(all.rows.iter().filter(|row| arguments.chooses(&row.name, row.quick)).collect())
}
