//! `typepack-bench regret`: measures how much more time a free choice takes than the best forced one. `pack` measures
//! the choice of kernels, `messages` the choice among the ways of long messages, `collectives` the choice among the
//! methods of collective calls, and `files` the choice among the ways of accesses to files.
//!
//! The library measures and judges (`regret/`, `message/regret/`, `files/regret.rs`). This file has the
//! arguments of `regret pack`.

use super::{Directions, Failure, chosen, failed, fault, load, measured, print_out, progress};
use clap::ValueEnum;
use std::fmt::Write;
use std::path::PathBuf;
use typepack_bench::competitor::generators;
use typepack_bench::definition::{Definitions, LayoutDefinition};
use typepack_bench::files::command::{FileArguments, run_regret};
use typepack_bench::layout::{Layout, sizes_of};
use typepack_bench::message::regret::candidate::Choices;
use typepack_bench::message::regret::command::{self as messages, RegretArguments};
use typepack_bench::pin;
use typepack_bench::regret::judge::LEAST_ROUNDS;
use typepack_bench::regret::kernels::{self, QUICK, SIZES};
use typepack_bench::regret::report::{Compared, csv, gains, table, values};
use typepack_bench::regret::verdict::{CHOICE, POLICY, Value, above, heading, lines};
use typepack_bench::regret::{self, Regret};
use typepack_bench::row::report::size_text;
use typepack_bench::row::{JIT, LEAF};

/// The largest memory of a layout that is measured, in bytes.
const MOST_MEMORY: usize = 300 << 20;

#[derive(clap::Subcommand)]
pub(crate) enum RegretCommand {
    /// Measure the choice of kernels, for packing and unpacking in one thread, and the policy that compiles
    /// them. The free choice takes turns with the choice without measurements (TYPEPACK_TUNE=off), forced leaf kernels
    /// and forced compiled kernels (TYPEPACK_KERNEL=leaf and kernel).
    Pack(PackRegretArguments),
    /// Measure the choice of the ways of long messages between two ranks. Jobs of one installed typepack take turns:
    /// the free choice, the static order (TYPEPACK_TUNE=off), and every forced way that is possible for the row on this
    /// machine (TYPEPACK_TRANSPORT, TYPEPACK_COPY). The regret is the time of the free choice divided by the time of
    /// the best forced way. All jobs of a row are new. The second figure, "learning included", is the ratio of the mean
    /// times of all exchanges since these jobs have started: warm-up, verification, and every round.
    Messages(RegretArguments),
    /// Measure the choice of the methods of blocking collective calls (TYPEPACK_COLL), for 2 ranks and for 8 ranks on 2
    /// CPUs. The rows are those of `collectives`; jobs, regret and learning are as for messages.
    Collectives(RegretArguments),
    /// Measure the choice between the mapped window of a file and system calls (TYPEPACK_IO), for accesses of two
    /// ranks to one file. The rows and arguments are those of `io`, without the rows for which only one way makes
    /// sense, and without --peers, --library and --csv.
    Files(FileArguments),
}

#[derive(clap::Args)]
pub(crate) struct PackRegretArguments {
    /// Names of the reference layouts to measure, separated by commas. By default all; with --quick, the layouts
    /// with which the compilation policy is measured, and contig.
    #[arg(long, value_delimiter = ',', value_name = "NAME")]
    layout: Vec<String>,
    /// The direction to measure.
    #[arg(long, value_enum, default_value_t = Directions::Both)]
    direction: Directions,
    /// Number of rounds. In each round, the free choice and the candidates take turns. The even rounds pick
    /// the best candidate, the odd rounds time it. By default 8, with --quick 6.
    #[arg(long, value_name = "N",
          value_parser = clap::value_parser!(u16).range(LEAST_ROUNDS as i64..=1000))]
    rounds: Option<u16>,
    /// Measure fewer layouts, sizes and rounds, in about a minute.
    #[arg(long)]
    quick: bool,
    /// Measure only one part of the run.
    #[arg(long, value_enum)]
    only: Option<Part>,
    /// Write every figure of the kernels to this file, as CSV.
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// The free choice of a kernel against forced leaf kernels and forced compiled kernels, for layouts of 1 KiB
    /// to 256 KiB of packed bytes.
    Kernels,
    /// The compilation policy against "never compile" and "compile at commit". Each time is that of a commit and
    /// 1 to 1000 packs, with the compilation if there is one.
    Policy,
}

/// Runs the command.
pub(crate) fn run(command: &RegretCommand) -> Result<(), Failure> {
    let text = match command {
        RegretCommand::Pack(arguments) => pack(arguments)?,
        RegretCommand::Messages(arguments) => {
            messages::run(arguments, Choices::Messages, progress, measured).map_err(fault)?
        }
        RegretCommand::Collectives(arguments) => {
            messages::run(arguments, Choices::Collectives, progress, measured).map_err(fault)?
        }
        RegretCommand::Files(arguments) => {
            run_regret(arguments, progress, measured).map_err(fault)?
        }
    };
    progress(0, 0);
    print_out(&text)
}

fn pack(arguments: &PackRegretArguments) -> Result<String, Failure> {
    let definitions = Definitions::reference();
    let chosen = chosen(&definitions, &arguments.layout)?;
    let is_wanted = |part| arguments.only.is_none_or(|only| only == part);
    let rounds = usize::from(arguments.rounds.unwrap_or(if arguments.quick { 6 } else { 8 }));
    let load = load(1);
    let mut faults: Vec<String> = pin::pin().err().into_iter().collect();
    let mut work: Vec<(&LayoutDefinition, u64)> = Vec::new();
    if is_wanted(Part::Kernels) {
        let sizes: &[u64] = if arguments.quick { &QUICK } else { &SIZES };
        // Contiguous data have the chooser of copies.
        let is_quick = |name: &str| {
            name == "contig" || regret::LAYOUTS.iter().any(|(layout, _)| *layout == name)
        };
        let all = !arguments.quick || !arguments.layout.is_empty();
        for &layout in chosen.iter().filter(|layout| all || is_quick(&layout.name)) {
            let sizes = sizes_of(layout, sizes).into_iter();
            let fitting = sizes.filter(|size| (SIZES[0]..=SIZES[4]).contains(size));
            work.extend(fitting.map(|size| (layout, size)));
        }
    }
    let policies: Vec<(&LayoutDefinition, u64)> = regret::LAYOUTS
        .iter()
        .filter(|_| is_wanted(Part::Policy))
        .filter_map(|(name, bytes)| {
            chosen.iter().find(|layout| layout.name == *name).map(|&layout| (layout, *bytes))
        })
        .collect();
    let (total, mut done) = (work.len() + policies.len(), 0);
    let [eager, lazy] = generators();
    let mut rows: Vec<Compared> = Vec::new();
    for (definition, size) in work {
        done += 1;
        progress(done, total);
        let made = Layout::new(definition, size).map_err(|e| e.to_string()).and_then(|layout| {
            if layout.memory > MOST_MEMORY {
                return Err(format!("left out; it needs {} MiB of memory", layout.memory >> 20));
            }
            kernels::measure(layout, arguments.direction.list(), rounds, &eager, &lazy)
        });
        match made {
            Ok(measured) => rows.extend(measured),
            Err(line) => faults.push(format!("{} at {size} bytes: {line}", definition.name)),
        }
    }
    let mut policy: Vec<Regret> = Vec::new();
    for (definition, size) in policies {
        done += 1;
        progress(done, total);
        let made = Layout::new(definition, size).map_err(|e| e.to_string());
        match made.and_then(|layout| regret::measure(&layout, rounds)) {
            Ok(measured) => policy.extend(measured),
            Err(line) => faults.push(format!("policy, {}: {line}", definition.name)),
        }
    }
    if let Some(path) = &arguments.csv {
        std::fs::write(path, csv(&rows))
            .map_err(|e| failed(format!("--csv {}: {e}", path.display())))?;
    }
    Ok(format!("{}\n{load}\n", report(&rows, &policy, is_wanted, &faults)))
}

fn report(
    rows: &[Compared],
    policy: &[Regret],
    is_wanted: impl Fn(Part) -> bool,
    faults: &[String],
) -> String {
    let mut out = String::new();
    if is_wanted(Part::Kernels) {
        out.push_str(&table(rows, &[LEAF, JIT].map(str::to_owned), "one call"));
    }
    let _ =
        write!(out, "\nRegret of free choices for packing (steady rows decide)\n\n{}", heading());
    let mut lists = String::new();
    let mut part = |title: &str, rows: &[Value], bars| {
        out.push_str(&lines(title, rows, bars));
        lists.push_str(&above(title, rows, bars));
    };
    if is_wanted(Part::Kernels) {
        part("kernels", &values(rows.iter())[0], CHOICE);
    }
    if is_wanted(Part::Policy) {
        let value = |row: &Regret| Value {
            name: format!("{} {}, {} uses", row.layout, size_text(row.bytes), row.uses),
            ratio: row.ratio(),
            steady: row.steady,
        };
        part("policy", &policy.iter().map(value).collect::<Vec<_>>(), POLICY);
    }
    out.push_str(&gains(rows));
    let same = rows.iter().filter(|row| row.judged.is_none()).count();
    if same > 0 {
        let _ = writeln!(out, "\n{same} rows have no choice: both candidates ran the same kernel.");
    }
    out.push_str(&lists);
    if !faults.is_empty() {
        out.push_str("\nFaults\n");
        faults.iter().for_each(|line| out.push_str(&format!("  {line}\n")));
    }
    out
}
