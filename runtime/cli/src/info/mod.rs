//! `typepack info`: describes this installation and the job.
//!
//! `main.rs` calls [`about_the_installation`] before it joins the job. An environment variable with a bad
//! value keeps the process from joining the job, and `typepack info` must show the user that value. `main.rs`
//! calls [`about_the_job`] after it has joined the job. With `--measure`, `measure.rs` then measures the ways of
//! copying long messages.

mod measure;
mod problems;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::Args;
use typepack::variables::{collectives, variables};
use typepack::{Cpu, Distance, Placement, Universe};

use crate::agree::{FAILURE, Stop, agree};

/// The arguments. `typepack info --help` prints the comments of the fields and that of `Command::Info` in
/// `main.rs`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  typepack info
  typepack info --all
  typepack info --functions
  mpiexec -n 2 typepack info
  mpiexec -n 2 typepack info --measure
  TYPEPACK_TUNE_FILE=tuned mpiexec -n 2 typepack info --measure=60")]
pub struct Options {
    /// Show everything: all variables, the methods of collective calls, functions, protocols between ranks
    #[arg(long)]
    pub all: bool,

    /// List every function of the MPI ABI, with + before each implemented function and - before the others
    #[arg(long)]
    pub functions: bool,

    /// Measure for about SECONDS (20 by default) which way is best for long messages between the ranks, and show
    /// the time of each way. Keeps the choices in the file of TYPEPACK_TUNE_FILE, if the variable is set
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, require_equals = true,
          default_missing_value = "20", value_parser = clap::value_parser!(u16).range(1..=3600))]
    pub measure: Option<u16>,
}

/// The table of all functions of the MPI ABI.
const FUNCTIONS: &str = include_str!(concat!(env!("OUT_DIR"), "/functions.csv"));
const BUILT: &str = include_str!(concat!(env!("OUT_DIR"), "/built.csv"));

fn print(text: &str) -> Result<(), String> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .map_err(|error| format!("standard output: {error}"))
}

/// Prints the versions, paths, variables and functions of this installation, and the choices in the tune file.
pub fn about_the_installation(options: &Options) -> Result<(), String> {
    let mut text = format!("typepack {}: MPI 5.0, ABI 1.0\n", env!("CARGO_PKG_VERSION"));
    let exe = std::env::current_exe()
        .map_err(|error| format!("cannot find the path of this program: {error}"))?;
    line(&mut text, &format!("  program  {}", exe.display()));
    let library = library(&exe);
    match &library {
        Some(path) => line(&mut text, &format!("  library  {}", path.display())),
        None => line(&mut text, "  library  libmpi_abi.so.1 is not installed with this program"),
    }
    line(&mut text, &format!("  CPU      {}", processor()));
    let in_job = std::env::var_os("TYPEPACK_JOB_FD").is_some();
    match &problems::problems(in_job, library.is_some())[..] {
        [] => text.push_str("  no problems found\n"),
        found => {
            text.push_str("\nProblems\n");
            found.iter().for_each(|words| line(&mut text, &format!("  {words}")));
        }
    }
    let shown: Vec<_> =
        variables().into_iter().filter(|v| options.all || v.value.is_some()).collect();
    if !shown.is_empty() {
        text.push_str(if options.all { "\nVariables\n" } else { "\nVariables that are set\n" });
    }
    for v in shown {
        let (value, source) = match &v.value {
            Some(value) => (value.as_str(), "environment"),
            None => (v.default.as_str(), "default"),
        };
        line(&mut text, &format!("  {:<24} {value:<32} {source:<12} {}", v.name, v.domain));
    }
    if options.all {
        text.push_str("\nBlocking collective calls (TYPEPACK_COLL)\n");
        match collectives() {
            Ok(lines) => lines.iter().for_each(|words| line(&mut text, &format!("  {words}"))),
            Err(error) => line(&mut text, &format!("  {error}")),
        }
    }
    text.push_str(&file());
    if options.all || options.functions {
        text.push_str("\nFunctions of the MPI ABI (each also as PMPI_)\n");
        text.push_str(&coverage(options.functions)?);
    }
    if !options.all {
        text.push_str(
            "\n(typepack info --all shows all variables, methods, functions and protocols)\n",
        );
    }
    print(&text)
}

/// Returns the name of this machine's processor, the number of CPUs that this process may use, and the instruction set of
/// the kernels.
fn processor() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |name: &str| {
        let line =
            text.lines().find(|line| line.split(':').next().is_some_and(|n| n.trim() == name));
        line.and_then(|line| line.split_once(':')).map(|(_, value)| value.trim().to_owned())
    };
    let cpus = std::thread::available_parallelism().map_or(1, |cpus| cpus.get());
    let name = field("model name").unwrap_or_else(|| std::env::consts::ARCH.to_owned());
    format!("{name}, {cpus} CPUs, kernels for {}", typepack::engine::Isa::best())
}

/// Returns the choices in the tune file, or an empty text if no variable names one.
fn file() -> String {
    let value = std::env::var_os("TYPEPACK_TUNE_FILE").filter(|path| !path.is_empty());
    let Some(path) = value else { return String::new() };
    let mut text = format!("\nChoices in {} (TYPEPACK_TUNE_FILE)\n", Path::new(&path).display());
    match typepack::tuned::file(Path::new(&path)) {
        Ok(None) => line(&mut text, "  there is no such file yet; the next job writes one"),
        Ok(Some(lines)) if lines.is_empty() => line(&mut text, "  none"),
        Ok(Some(lines)) => lines.iter().for_each(|words| line(&mut text, &format!("  {words}"))),
        Err(reason) => line(&mut text, &format!("  the file is ignored: {reason}")),
    }
    text
}

/// Appends `words` as a line, without trailing blanks.
fn line(text: &mut String, words: &str) {
    text.push_str(words.trim_end());
    text.push('\n');
}

/// Returns the path of the C library that belongs to the program `exe`, in an installation or in a build
/// folder of cargo.
fn library(exe: &Path) -> Option<PathBuf> {
    let folder = exe.parent()?;
    let installed = folder.parent()?.join("lib/libmpi_abi.so.1");
    [installed, folder.join("libmpi_abi.so")].into_iter().find(|path| path.exists())
}

/// Returns one line per group of functions, with the number of functions that are implemented. If `list` is
/// true, also returns the names of all functions.
fn coverage(list: bool) -> Result<String, String> {
    let rows = |table: &'static str| csv::Reader::from_reader(table.as_bytes()).into_records();
    let wrong = |error: csv::Error| format!("cannot read the built-in table of functions: {error}");
    let mut built = Vec::new();
    for row in rows(BUILT) {
        built.push(row.map_err(wrong)?.get(0).unwrap_or_default().to_owned());
    }
    let mut groups: BTreeMap<String, Vec<(String, bool)>> = BTreeMap::new();
    for row in rows(FUNCTIONS) {
        let row = row.map_err(wrong)?;
        let (name, group) = (row.get(0).unwrap_or_default(), row.get(3).unwrap_or_default());
        // A row of `BUILT` also stands for the large-count form of the function (`_c`).
        let base = name.strip_suffix("_c").unwrap_or(name);
        let is_built = built.iter().any(|row| row == name || row == base);
        groups.entry(group.to_owned()).or_default().push((name.to_owned(), is_built));
    }
    let mut text = String::new();
    let (mut all, mut done) = (0, 0);
    for (group, functions) in &groups {
        let count = functions.iter().filter(|(_, built)| *built).count();
        (all, done) = (all + functions.len(), done + count);
        let _infallible = writeln!(text, "  {group:<24} {count:>3} of {:>3}", functions.len());
        for (name, built) in functions.iter().filter(|_| list) {
            let _infallible = writeln!(text, "    {} {name}", if *built { '+' } else { '-' });
        }
    }
    let _infallible = writeln!(text, "  {:<24} {done:>3} of {all:>3}", "together");
    Ok(text)
}

/// Prints the ranks, the CPUs of the ranks and the protocols between the ranks. Only rank 0 prints. With `--measure`,
/// also measures and prints the choices.
pub fn about_the_job(options: &Options, universe: &Universe) -> Result<(), Stop> {
    let world = universe.world();
    let printed = if world.rank() == 0 {
        let (transports, windows) = (universe.transports()?, universe.window_access());
        let placement = universe.placement();
        match (options.all, &placement) {
            (true, _) => print(&job(placement.as_ref(), world.size(), &transports, &windows)),
            (false, Some(_)) => print(&job(placement.as_ref(), world.size(), &[], &[])),
            (false, None) => Ok(()),
        }
    } else {
        Ok(())
    };
    agree(&world, printed, FAILURE)?;
    options.measure.map_or(Ok(()), |seconds| measure::run(universe, seconds))
}

fn job(
    placement: Option<&Placement>,
    size: usize,
    transports: &[String],
    windows: &[String],
) -> String {
    let mut text = String::from("\nJob\n");
    match placement {
        None => line(&mut text, "  1 rank without mpiexec (mpiexec -n 2 typepack info shows more)"),
        Some(placement) => {
            let crowded = placement.oversubscribed();
            let ranks = if size == 1 { "1 rank".to_owned() } else { format!("{size} ranks") };
            let spin =
                if crowded { ", more ranks than CPUs: a waiting rank does not spin" } else { "" };
            line(&mut text, &format!("  {ranks}{spin}"));
            for rank in 0..size {
                line(&mut text, &format!("  rank {rank:<4} {}", place(placement, rank)));
            }
            if let Some(words) = distances(placement, size) {
                line(&mut text, &format!("  pairs of ranks: {words}"));
            }
        }
    }
    let parts = [("Transports", transports), ("Windows", windows)];
    for (title, sentences) in parts.into_iter().filter(|(_, sentences)| !sentences.is_empty()) {
        let _infallible = writeln!(text, "\n{title}");
        sentences.iter().for_each(|sentence| line(&mut text, &format!("  {sentence}")));
    }
    text
}

fn place(placement: &Placement, rank: usize) -> String {
    let Some(cpu) = placement.cpu(rank) else { return "not bound to one core".into() };
    let Cpu { number, core, l2, l3, numa, package, .. } = cpu;
    let parts = [("core", core), ("L2", l2), ("L3", l3), ("NUMA node", numa), ("package", package)];
    let mut text = format!("cpu {number}");
    for (name, index) in parts.iter().filter_map(|(name, index)| Some((name, (*index)?))) {
        let _infallible = write!(text, ", {name} {index}");
    }
    text
}

/// Returns a text with the number of pairs of ranks at each distance. Includes only ranks that are bound to a
/// CPU. Returns `None` if there is no pair of such ranks.
fn distances(placement: &Placement, size: usize) -> Option<String> {
    let cpus: Vec<Cpu> = (0..size).filter_map(|rank| placement.cpu(rank)).collect();
    let mut counts: BTreeMap<Distance, usize> = BTreeMap::new();
    for (index, a) in cpus.iter().enumerate() {
        for b in &cpus[index + 1..] {
            *counts.entry(a.distance(b)).or_default() += 1;
        }
    }
    let words: Vec<String> =
        counts.iter().map(|(distance, count)| format!("{count} {}", name(*distance))).collect();
    (!words.is_empty()).then(|| words.join(", "))
}

fn name(distance: Distance) -> &'static str {
    match distance {
        Distance::Core => "on one core",
        Distance::L2 => "sharing a level 2 cache",
        Distance::L3 => "sharing a level 3 cache",
        Distance::Numa => "on one NUMA node",
        Distance::Package => "in one package",
        _ => "with no common part known",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_function_of_the_table_is_counted() {
        let text = coverage(true).expect("good tables");
        assert_eq!(text.lines().filter(|line| line.starts_with("    ")).count(), 664);
        assert!(text.contains(" 664 of 664\n"), "{text}");
        assert!(text.contains("+ MPI_Init\n"), "{text}");
        // The table has no row for `MPI_Type_vector_c`, but the row for `MPI_Type_vector` also stands for it.
        assert!(text.contains("+ MPI_Type_vector_c\n"), "{text}");
    }
}
