//! `typepack-bench peers`: compares packing with other MPI libraries and with hand loops.

use super::{
    Directions, Failure, QUICK_MOST_BYTES, chosen, definitions, failed, list, measured, parse_size,
    print_out, progress, usage,
};
use clap::ValueEnum;
use std::path::{Path, PathBuf};
use typepack_bench::competitor::hand::Hands;
use typepack_bench::definition::{Definitions, MOST_BYTES, legend};
use typepack_bench::layout::{Layout, sizes_of};
use typepack_bench::load::Load;
use typepack_bench::peer::{self, Peer, Session};
use typepack_bench::pin;
use typepack_bench::row::kind::Kind;
use typepack_bench::row::report::json;
use typepack_bench::suite::Effort;
use typepack_bench::{ablation, suite, summary};
use typepack_engine::Isa;

#[derive(clap::Args)]
pub(crate) struct PeersArguments {
    /// Names of the layouts to measure, separated by commas; by default all.
    #[arg(long, value_delimiter = ',', value_name = "NAME")]
    layout: Vec<String>,
    /// Packed bytes per call, separated by commas; by default the sizes in the definitions. A layout
    /// whose definition states its own sizes is measured only at those sizes.
    #[arg(long, value_delimiter = ',', value_name = "BYTES", value_parser = parse_size)]
    size: Vec<u64>,
    /// The direction to measure.
    #[arg(long, value_enum, default_value_t = Directions::Both)]
    direction: Directions,
    /// How to print the rows.
    #[arg(long, value_enum, default_value_t = PeersFormat::Table)]
    format: PeersFormat,
    /// Number of rounds. In each round, the competitors take turns. By default 7, with --quick 5.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=10_000))]
    rounds: Option<u16>,
    /// Measure a subset in a few minutes: fewer sizes and rounds, and no layouts that span much memory.
    #[arg(long)]
    quick: bool,
    /// The library of a peer, as PATH or NAME=PATH: libmpi_abi.so.1, or libmpi.so.40 of Open MPI. May be
    /// repeated. By default all peers in the folder of --peers.
    #[arg(long, value_name = "PATH", value_parser = Peer::parse)]
    peer: Vec<Peer>,
    /// The folder into which `scripts/bench peers` has put the peers.
    #[arg(long, value_name = "DIR", default_value = "target/peers")]
    peers: PathBuf,
    /// The library with the hand loops that `scripts/bench` has built for this machine. If it is missing,
    /// the hand loops of this command take part.
    #[arg(long, value_name = "LIBRARY", default_value = "target/hand/release/libtypepack_hand.so")]
    hand: PathBuf,
    /// The instruction set of leaf kernels: portable, sse4, avx2 or avx512. By default the set that
    /// TYPEPACK_ISA names, or else the best set that this machine supports. If this option or TYPEPACK_ISA
    /// names a set, the run measures neither the storm nor the regret.
    #[arg(long, value_name = "NAME")]
    isa: Option<Isa>,
    /// Write the summary and the ablation table to this file. By default they go to standard output with
    /// --format table, and to standard error with the other formats.
    #[arg(long, value_name = "FILE")]
    summary: Option<PathBuf>,
    /// The set of layouts to measure: the reference layouts, or the 90 layouts of DDTBench.
    #[arg(long, value_enum, default_value_t = Set::Reference)]
    set: Set,
    /// Read the layouts and sizes from this TOML file instead of using a built-in set.
    #[arg(long, value_name = "FILE", conflicts_with = "set")]
    definitions: Option<PathBuf>,
    /// Measure only one part of the run.
    #[arg(long, value_enum, conflicts_with_all = ["set", "definitions", "isa"])]
    only: Option<Only>,
    /// Print the names of the layouts and measure nothing.
    #[arg(long)]
    list: bool,
    /// Load the library of one peer, read requests from standard input, and answer them. The command starts
    /// itself with this option for each peer.
    #[arg(long, hide = true, value_name = "LIBRARY")]
    child: Option<PathBuf>,
}

/// The output formats of `peers`.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum PeersFormat {
    Table,
    Csv,
    Json,
    /// The columns of DDTBench: test, method, bytes, phase, microseconds.
    Ddtbench,
}

/// The parts of a run from which `--only` selects one.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Only {
    /// The rows of the layouts.
    Rows,
    /// The storm: a new type every ten uses.
    Storm,
    /// The regret: how much more time a program takes with the compilation policy than with the better of
    /// two fixed choices, never compiling and compiling at commit.
    Regret,
}

/// The built-in sets of layouts.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Set {
    Reference,
    Ddtbench,
}

/// Runs the command.
pub(crate) fn peers(arguments: &PeersArguments) -> Result<(), Failure> {
    if let Some(library) = &arguments.child {
        return peer::serve(library).map_err(failed);
    }
    let built_in = match arguments.set {
        Set::Reference => Definitions::reference,
        Set::Ddtbench => Definitions::ddtbench,
    };
    let part = match arguments.set {
        Set::Reference => Kind::Packing.table(),
        Set::Ddtbench => Kind::Ddtbench.table(),
    };
    let definitions = definitions(arguments.definitions.as_deref(), built_in)?;
    let layouts = chosen(&definitions, &arguments.layout)?;
    let rows = arguments.only.is_none_or(|only| only == Only::Rows);
    if arguments.list {
        return list(&layouts);
    }
    let sizes = match () {
        () if !arguments.size.is_empty() => &arguments.size,
        () if arguments.quick && !definitions.quick.is_empty() => &definitions.quick,
        () => &definitions.sizes,
    };
    let most = if arguments.quick { QUICK_MOST_BYTES } else { MOST_BYTES };
    let mut work = Vec::new();
    let names = layouts.iter().map(|layout| (layout.name.as_str(), layout.text.as_str()));
    let described = legend(names) + "\n";
    for definition in layouts.into_iter().filter(|_| rows) {
        for size in sizes_of(definition, sizes).into_iter().filter(|size| *size <= most) {
            let layout = Layout::new(definition, size).map_err(|e| usage(e.to_string()))?;
            work.push((size, layout));
        }
    }
    // After `pin` the process may run on one CPU only, on which another program may happen to run. Wrong arguments are
    // refused before the load is told.
    let load = Load::probe(1);
    let mut faults: Vec<String> = pin::pin().err().into_iter().collect();
    let mut sessions = sessions(&arguments.peer, &arguments.peers, &mut faults)?;
    let effort = Effort {
        rounds: usize::from(arguments.rounds.unwrap_or(if arguments.quick { 5 } else { 7 })),
        repeats: if arguments.quick { 1 } else { 3 },
        memory: if arguments.quick { 300 << 20 } else { 1200 << 20 },
        isa: isa(arguments.isa)?,
    };
    if load.is_too_high() {
        measured(&load.to_string());
    }
    let mut suite = suite::run(
        work,
        arguments.direction.list(),
        &mut sessions,
        &Hands::found(&arguments.hand),
        &effort,
        progress,
    );
    // The storm and the regret have layouts of their own and always use the default instruction set. So
    // they run only if the user has chosen neither layouts nor an instruction set.
    let other = arguments.definitions.is_some() || arguments.set != Set::Reference;
    if arguments.layout.is_empty() && !other && effort.isa.is_none() {
        let wanted = |part| arguments.only.is_none_or(|only| only == part);
        if wanted(Only::Storm) {
            suite::storm(&mut suite, &mut sessions, &effort);
        }
        if wanted(Only::Regret) {
            suite::regret(&mut suite, &effort);
        }
    }
    progress(0, 0);
    suite.faults.splice(0..0, faults);
    let text = format!("{load}\n\n{}\n{}", summary::text(&suite), ablation::table(&suite));
    print_out(&match arguments.format {
        PeersFormat::Table => described + &summary::table(&suite),
        PeersFormat::Csv => load.comment(part) + &summary::csv(&suite),
        PeersFormat::Ddtbench => summary::ddtbench(&suite),
        PeersFormat::Json => json(&suite).map_err(|e| failed(e.to_string()))?,
    })?;
    match &arguments.summary {
        Some(path) => std::fs::write(path, text)
            .map_err(|e| failed(format!("--summary {}: {e}", path.display()))),
        None if arguments.format == PeersFormat::Table => print_out(&("\n".to_owned() + &text)),
        None => {
            eprint!("{text}");
            Ok(())
        }
    }
}

/// Returns the instruction set that `option` names, or else the set that the environment variable
/// `TYPEPACK_ISA` names. Returns `None` if both are absent, and an error if the variable names no
/// instruction set.
fn isa(option: Option<Isa>) -> Result<Option<Isa>, Failure> {
    match std::env::var_os("TYPEPACK_ISA").filter(|name| !name.is_empty()) {
        Some(name) if option.is_none() => {
            let name = name.to_string_lossy();
            let isa = name.parse::<Isa>();
            isa.map(Some).map_err(|e| usage(format!("TYPEPACK_ISA={name}: {e}")))
        }
        _ => Ok(option),
    }
}

/// Starts the peers. If the user has named peers with `--peer` (`named`), starts only these, and fails if
/// one of them does not start. Otherwise starts the peers in `folder`, the folder of `--peers`, and adds a
/// line to `faults` for each one that does not start.
pub(super) fn sessions(
    named: &[Peer],
    folder: &Path,
    faults: &mut Vec<String>,
) -> Result<Vec<Session>, Failure> {
    let command = std::env::current_exe().map_err(|e| failed(e.to_string()))?;
    let mut sessions = Vec::new();
    if !named.is_empty() {
        for peer in named {
            let named = |line| usage(format!("--peer {}: {line}", peer.library.display()));
            sessions.push(Session::start(peer.clone(), command.clone()).map_err(named)?);
        }
        return Ok(sessions);
    }
    for peer in peer::found(folder) {
        let name = peer.name.clone();
        match Session::start(peer, command.clone()) {
            Ok(session) => sessions.push(session),
            Err(line) => faults.push(format!("{name}: {line}")),
        }
    }
    Ok(sessions)
}
