//! The arguments of `typepack-bench pingpong`, `collectives`, `one-sided` and `interpose`, and the function that runs
//! these commands and returns the text for the terminal.
//!
//! `main.rs` uses this file and prints the text.

use super::apart;
use super::arguments::{Fault, PREFIX, PeerArguments, RowArguments, own};
use super::definition::{Definition, Definitions, Memory};
use super::library::{Library, Scratch};
use super::report::{self, BEHIND, Run};
use super::session::{PATIENCE, QUICK_PATIENCE, Session, UserMemory, cpus};
use super::suite::{Effort, measure};
use super::whole::{self, ROWS, What};
use crate::builds::{self, Compared};
use crate::load::Load;
use crate::row::kind::Kind;
use crate::row::{Row, TYPEPACK};
use crate::split;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The arguments of `typepack-bench pingpong`, `collectives`, `one-sided` and `interpose`.
#[derive(clap::Args)]
pub struct MessageArguments {
    #[command(flatten)]
    common: RowArguments,
    /// The kind of memory of the buffers, or of the windows. By default both kinds; for collectives and the
    /// interposer, only user memory.
    #[arg(long, value_enum)]
    memory: Option<Memory>,
    /// The folder of an installed typepack (`scripts/install --prefix DIR`), as DIR or NAME=DIR, followed
    /// by environment variables for its jobs, as in NAME=DIR,TYPEPACK_COPY=vector. May be repeated. The
    /// tables show the ratios of the first one. The run also compares the first one with each of the others
    /// and prints a summary of each comparison; rows with a ratio below 0.9 are measured three times.
    #[arg(long, value_name = "DIR", default_value = PREFIX)]
    prefix: Vec<String>,
    #[command(flatten)]
    peers: PeerArguments,
    /// Number of rounds. In each round, the libraries take turns. By default 7, with --quick 5.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    rounds: Option<u16>,
    /// Approximate measuring time per turn, in milliseconds.
    #[arg(long, value_name = "MS", default_value_t = 15,
          value_parser = clap::value_parser!(u16).range(1..=10_000))]
    milliseconds: u16,
}

/// Runs the command and returns the text for the terminal. Calls `progress` with the number of the current
/// row and the total number of rows, and `measured` with a line about each row when the row has been measured.
///
/// # Errors
///
/// Returns a [`Fault`] if the arguments are wrong, if the program cannot be compiled for typepack, if a job of
/// typepack does not start, or if a file cannot be written. Before slow rows of a comparison are measured again, it
/// also returns a [`Fault`] if the job of a peer does not start again. If a library fails in a row, the function
/// returns no error; the text states the fault.
pub fn run(
    kind: Kind,
    arguments: &MessageArguments,
    mut progress: impl FnMut(usize, usize),
    mut measured: impl FnMut(&str),
) -> Result<String, Fault> {
    let common = &arguments.common;
    let definitions = common.definitions(|| Definitions::of(kind), Definitions::parse)?;
    let (rows, jobs) = chosen(kind, common, &definitions)?;
    if arguments.common.list {
        let rows = rows.iter().map(|row| format!("{:<20}{}\n", row.name, row.text));
        let jobs = jobs.iter().map(|job| format!("{:<20}{}\n", job.name, job.text));
        return Ok(rows.chain(jobs).collect());
    }
    let libraries = libraries(kind, arguments)?;
    let scratch = Scratch::new().map_err(Fault::Failed)?;
    let load = Load::begin(2, &mut measured);
    let mut families: Vec<(String, String)> = Vec::new();
    for row in &rows {
        if !families.iter().any(|(family, _)| *family == row.family) {
            families.push((row.family.clone(), row.about.clone()));
        }
    }
    let mut run = Run { kind, load: Some(load), families, ..Run::default() };
    let programs = programs(&mut run, libraries, &scratch)?;
    let effort = Effort {
        rounds: usize::from(arguments.rounds.unwrap_or(if arguments.common.quick { 5 } else { 7 })),
        milliseconds: f64::from(arguments.milliseconds),
    };
    let memories = match (arguments.memory, kind) {
        (Some(memory), _) => vec![memory],
        (None, Kind::Messages | Kind::OneSided) => vec![Memory::User, Memory::Alloc],
        (None, _) => vec![Memory::User],
    };
    let each = |row| memories.iter().map(move |memory| (row, *memory));
    let has = |(row, memory): &(&Definition, Memory)| row.memory.is_none_or(|only| only == *memory);
    let work: Vec<(&Definition, Memory)> = rows.iter().flat_map(each).filter(has).collect();
    let total = work.len() + jobs.len();
    let mut ranks: Vec<usize> = rows.iter().map(|row| row.ranks).collect();
    ranks.sort_unstable();
    ranks.dedup();
    for ranks in ranks {
        let own = work.iter().filter(|(row, _)| row.ranks == ranks);
        let work: Vec<(&Definition, Memory)> = own.copied().collect();
        let patience = if arguments.common.quick { QUICK_PATIENCE } else { PATIENCE };
        let mut sessions = sessions(&mut run, &programs, ranks, (scratch.path(), patience))?;
        let first = run.rows.len();
        for (row, memory) in &work {
            progress(run.rows.len() + 1, total);
            let (start, faults) = (Instant::now(), run.faults.len());
            let row = measure(row, *memory, &mut sessions, &effort, &mut run.faults);
            measured(&report::line(&run, &row, start.elapsed()));
            run.faults[faults..].iter().for_each(|line| measured(line));
            run.rows.push(row);
        }
        compare(&mut run, first, &work, &mut sessions, &effort)?;
        for session in &sessions {
            if session.woken() > 0 {
                run.versions.push(format!(
                    "{}: its {ranks} ranks woke up {} times while other jobs were measured",
                    session.library().name,
                    session.woken()
                ));
            }
        }
    }
    let programs: Vec<whole::Program<'_>> = programs.iter().map(|(l, p)| (l, p)).collect();
    for job in jobs {
        progress(run.rows.len() + run.jobs.len() + 1, total);
        let measured = whole::measure(job, &programs, arguments.common.quick, &mut run.faults);
        run.jobs.push(measured);
    }
    arguments.common.write(|| report::csv(&run))?;
    Ok(format!("{}\n{}", report::table(&run), report::summary(&run, &definitions.bars)))
}

/// Compiles the C program for each of `libraries`. Sets the competitors, peers and other builds of `run`, and adds a
/// fault for each peer for which the program cannot be compiled. In a run of the interposer, each host takes part
/// behind it, too, and no job of typepack's own runtime.
pub(crate) fn programs(
    run: &mut Run,
    libraries: Vec<Library>,
    scratch: &Scratch,
) -> Result<Vec<(Library, PathBuf)>, Fault> {
    let mut programs: Vec<(Library, PathBuf)> = Vec::new();
    let standard = libraries.iter().find(|library| !library.is_peer()).cloned();
    let hosts = run.kind == Kind::Interpose;
    for library in libraries.into_iter().filter(|library| !hosts || library.is_peer()) {
        let compiled = match run.kind {
            Kind::Fortran => library.compile_fortran(scratch.path()),
            _ => library.compile(standard.as_ref(), scratch.path()),
        };
        match compiled {
            Ok(program) => {
                if let Some(typepack) = standard.as_ref().filter(|_| hosts) {
                    programs.push((behind(&library, typepack)?, program.clone()));
                }
                programs.push((library, program));
            }
            Err(line) => fault(run, &library, line)?,
        }
    }
    let names = |peers: [bool; 2]| {
        let some = programs.iter().filter(move |(library, _)| peers.contains(&library.is_peer()));
        some.map(|(library, _)| library.name.clone()).collect::<Vec<_>>()
    };
    run.competitors = names([true, false]);
    run.peers = names([true, true]);
    let builds = names([false, false]).into_iter().skip(1);
    run.builds = builds.map(|name| (name, Vec::new())).collect();
    Ok(programs)
}

/// Starts a job of `ranks` ranks for every library. If an answer of a job takes longer than `patience`, the job
/// counts as hanging. Returns the jobs that have started. Returns an error if a job of typepack does not start.
pub(crate) fn sessions(
    run: &mut Run,
    programs: &[(Library, PathBuf)],
    ranks: usize,
    (folder, patience): (&Path, Duration),
) -> Result<Vec<Session>, Fault> {
    let memory = UserMemory::new(ranks).map_err(Fault::Failed)?;
    let mut sessions = Vec::new();
    for (library, program) in programs {
        let (own, program) = (library.clone(), program.clone());
        match Session::start(own, program, folder, &cpus(), &memory, patience) {
            Ok(session) => {
                let line = format!("{}: {}", library.name, session.version());
                if !run.versions.contains(&line) {
                    run.versions.push(line);
                }
                // The interposer says one line if it does not take part.
                if library.name.ends_with(BEHIND)
                    && let Some(line) = session.said("typepack")
                {
                    fault(run, library, format!("not measured, because it said: {line}"))?;
                    continue;
                }
                sessions.push(session);
            }
            Err(line) => fault(run, library, line)?,
        }
    }
    Ok(sessions)
}

/// Compares this build (the first typepack) with each other build in the rows of `work`. The results of these
/// rows begin at index `first` of `run.rows`. If the ratio of a row is below [`builds::SLOWER`], new jobs
/// measure the row again until it has [`builds::RUNS`] ratios.
fn compare(
    run: &mut Run,
    first: usize,
    work: &[(&Definition, Memory)],
    sessions: &mut [Session],
    effort: &Effort,
) -> Result<(), Fault> {
    let own = run.own().to_owned();
    let mut found: Vec<Vec<Option<Compared>>> = Vec::new();
    for (base, _) in &run.builds {
        let of = |row: &Row| row.against(&own, &[base]).map(|ratio| Compared::of(row, ratio));
        found.push(run.rows[first..].iter().map(of).collect());
    }
    let is_slower = |row: usize, found: &[Vec<Option<Compared>>]| {
        found.iter().any(|rows| rows[row].as_ref().is_some_and(Compared::is_slower))
    };
    let slower: Vec<usize> = (0..work.len()).filter(|row| is_slower(*row, &found)).collect();
    for _ in 1..builds::RUNS {
        if slower.is_empty() {
            break;
        }
        for session in &mut *sessions {
            session.restart().map_err(Fault::Failed)?;
        }
        for &row in &slower {
            let (definition, memory) = work[row];
            let again = measure(definition, memory, sessions, effort, &mut run.faults);
            for ((base, _), rows) in run.builds.iter().zip(&mut found) {
                if let (Some(compared), Some(ratio)) =
                    (&mut rows[row], again.against(&own, &[base]))
                {
                    compared.runs.push((ratio.value, ratio.steady));
                }
            }
        }
    }
    for ((_, all), rows) in run.builds.iter_mut().zip(found) {
        all.extend(rows.into_iter().flatten());
    }
    Ok(())
}

/// Handles the fault of a library. Adds the fault of a peer to the run. Returns the fault of typepack as
/// an error, because without typepack there is nothing to compare.
fn fault(run: &mut Run, library: &Library, line: String) -> Result<(), Fault> {
    let line = format!("{}: {line}", library.name);
    if library.is_peer() {
        run.faults.push(line);
        Ok(())
    } else {
        Err(Fault::Failed(line))
    }
}

fn chosen(
    kind: Kind,
    arguments: &RowArguments,
    definitions: &Definitions,
) -> Result<(Vec<Definition>, Vec<What>), Fault> {
    let all: &[What] = if kind == Kind::Messages { &ROWS } else { &[] };
    let names = definitions.rows.iter().map(|row| row.name.as_str());
    arguments.check(names.chain(all.iter().map(|job| job.name)))?;
    let rows = definitions.rows.iter().filter(|row| arguments.chooses(&row.name, row.quick));
    let jobs = all.iter().filter(|job| arguments.chooses(job.name, true));
    Ok((rows.cloned().collect(), jobs.copied().collect()))
}

/// Returns `host` behind the interposer of `typepack`. Its jobs have the variables of `typepack`, which come after
/// that of this function.
pub(crate) fn behind(host: &Library, typepack: &Library) -> Result<Library, Fault> {
    let path = typepack.prefix.join("lib/libtypepack_interpose.so");
    if !path.exists() {
        let line = format!("--prefix {}: {} is missing", typepack.prefix.display(), path.display());
        return Err(Fault::Usage(line));
    }
    let mut library = Library { name: format!("{}{BEHIND}", host.name), ..host.clone() };
    // Both ranks have the interposer, so it may pack messages of several basic types.
    library.environment.push(("TYPEPACK_INTERPOSE".to_owned(), "all".to_owned()));
    library.environment.extend(typepack.environment.iter().cloned());
    library.environment.push(("LD_PRELOAD".to_owned(), path.display().to_string()));
    Ok(library)
}

/// Returns the libraries that take part: first typepack's prefixes, and then the peers. For the interposer, the only
/// peers are its hosts.
fn libraries(kind: Kind, arguments: &MessageArguments) -> Result<Vec<Library>, Fault> {
    let mut list: Vec<Library> = Vec::new();
    for text in &arguments.prefix {
        let number = list.len();
        let mut parts = text.split(',');
        let folder = parts.next().unwrap_or_default();
        let (name, path) = match split::once(folder, b'=') {
            Some((name, path)) => (name.to_owned(), path),
            None if number == 0 => (TYPEPACK.to_owned(), folder),
            None => (format!("{TYPEPACK}-{}", number + 1), folder),
        };
        let named = |line| Fault::Usage(format!("--prefix {text}: {line}"));
        let sound = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
        if name.is_empty() || !name.chars().all(sound) {
            return Err(named(format!(
                "the name is '{name}'; it must be one or more letters, digits, dots, dashes or \
                 underscores"
            )));
        }
        let mut library = own(&name, Path::new(path))?;
        for part in parts {
            let variable = split::once(part, b'=').filter(|(name, _)| !name.is_empty());
            let Some((name, value)) = variable else {
                return Err(named(format!(
                    "'{part}' after the folder is not an environment variable of the form \
                     VARIABLE=VALUE"
                )));
            };
            library.environment.push((name.to_owned(), value.to_owned()));
        }
        list.push(library);
    }
    let hosts = kind == Kind::Interpose;
    if hosts && list.len() > 1 {
        let line = "--prefix is given more than once; the interposer of one prefix is measured";
        return Err(Fault::Usage(line.to_owned()));
    }
    if list.len() > 1 {
        apart::check().map_err(Fault::Failed)?;
        list.iter_mut().for_each(|library| library.apart = true);
    }
    arguments.peers.add(&mut list, hosts, kind == Kind::Fortran)?;
    Ok(list)
}
