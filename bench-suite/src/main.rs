//! The command `typepack-bench`.
//!
//! Reads arguments, runs the flow of `lib.rs` row by row, prints the result on stdout. Faults are
//! one line on stderr, and exit code 2 for arguments, 1 for everything else.

use clap::error::ErrorKind;
use clap::{Parser, Subcommand, ValueEnum};
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use typepack_bench::bars::{self, Verdict};
use typepack_bench::calibrate;
use typepack_bench::commit;
use typepack_bench::definition::{Definitions, LayoutDefinition, MOST_BYTES};
use typepack_bench::face;
use typepack_bench::guidelines;
use typepack_bench::hand::Hands;
use typepack_bench::layout::{Layout, sizes_of};
use typepack_bench::measure::{Row, measure};
use typepack_bench::message;
use typepack_bench::peer::{self, Face, Peer, Session};
use typepack_bench::pin;
use typepack_bench::plot;
use typepack_bench::prepare::Bench;
use typepack_bench::record::Record;
use typepack_bench::suite::Effort;
use typepack_bench::{ablation, report, suite, suite_report, summary};
use typepack_engine::Isa;
use typepack_engine::kernel::Direction;
use typepack_jit::{Jit, Mode, Settings};

/// Measures how fast typepack moves data that is not contiguous.
#[derive(Parser)]
#[command(name = "typepack-bench", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Pack and unpack in one thread: memcpy, interpreter, JIT and a hand-written loop, each
    /// verified against the oracle before it is timed.
    Pack(PackArguments),
    /// Pack and unpack the reference layouts against other MPIs, hand loops and the engine's own
    /// halves, in one run with a summary of the bars.
    Peers(PeersArguments),
    /// Messages and halos between two ranks, and whole jobs: one C program, compiled with each
    /// library's mpicc, their jobs taking turns.
    Pingpong(message::command::PingpongArguments),
    /// Everything else that has a bar: creation, index lists until the first pack, seek, packing in
    /// pieces, external32 and fused copies, each verified and compared with its bar.
    Commit(CommitArguments),
    /// Measure the table of the engine's cost model and print it as Rust source:
    /// engine/src/plan/cost/table.rs.
    Calibrate,
    /// Draw a record of `scripts/bench` as SVG pictures: bandwidth against size, ratios to the best
    /// peer and hand loop, break-even.
    Plot(PlotArguments),
    /// Hold descriptions of one layout against each other and against hand loops, for random types:
    /// performance guidelines and their violations.
    Guidelines(GuidelineArguments),
}

#[derive(clap::Args)]
struct GuidelineArguments {
    /// Which random types.
    #[arg(long, default_value_t = 1, value_name = "S")]
    seed: u64,
    /// How many; 100, or 30 with --quick.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    types: Option<u32>,
    /// Rounds in which the two sides take turns.
    #[arg(long, default_value_t = 5, value_name = "N",
          value_parser = clap::value_parser!(u16).range(1..=10_000))]
    rounds: u16,
    /// Fewer types.
    #[arg(long)]
    quick: bool,
    /// How to print: the summary, or every check.
    #[arg(long, value_enum, default_value_t = GuidelineFormat::Table)]
    format: GuidelineFormat,
    /// Write the summary to this file instead of standard error (standard output with the table).
    #[arg(long, value_name = "FILE")]
    summary: Option<PathBuf>,
    /// The hand loops built for this machine, as `scripts/bench` does it.
    #[arg(long, value_name = "LIBRARY", default_value = "target/hand/release/libtypepack_hand.so")]
    hand: PathBuf,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum GuidelineFormat {
    Table,
    Csv,
}

#[derive(clap::Args)]
struct PlotArguments {
    /// The record's CSV file.
    #[arg(value_name = "RECORD.csv")]
    record: PathBuf,
    /// Where the pictures go; made if it is not there.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

#[derive(clap::Args)]
struct CommitArguments {
    /// How to print the rows.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
    /// Rounds in which the competitors take turns.
    #[arg(long, default_value_t = 7, value_name = "N",
          value_parser = clap::value_parser!(u16).range(1..=10_000))]
    rounds: u16,
    /// Entries of the index lists; the bars are for 10^6.
    #[arg(long, default_value_t = 1_000_000, value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    entries: u32,
    /// Packed bytes of the layouts that are cut into pieces; the bars are for 1 MiB.
    #[arg(long, default_value = "1M", value_name = "BYTES", value_parser = parse_pieces)]
    size: u64,
    /// Measure one part only: create, tables, seek, segments, external32 or fused.
    #[arg(long, value_name = "PART")]
    only: Option<String>,
    /// Measure one index list in this process; what the command runs itself with.
    #[arg(long, hide = true, value_enum)]
    child: Option<ChildList>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ChildList {
    IndexedBlock,
    Indexed,
}

#[derive(clap::Args)]
struct PeersArguments {
    /// Layouts to measure, by name; all of them by default. Separate several by commas.
    #[arg(long, value_delimiter = ',', value_name = "NAME")]
    layout: Vec<String>,
    /// Packed bytes per call; those of the definitions by default. Layouts with sizes of their own
    /// keep them. Separate several by commas.
    #[arg(long, value_delimiter = ',', value_name = "BYTES", value_parser = parse_size)]
    size: Vec<u64>,
    /// What to measure.
    #[arg(long, value_enum, default_value_t = Directions::Both)]
    direction: Directions,
    /// How to print the rows.
    #[arg(long, value_enum, default_value_t = PeersFormat::Table)]
    format: PeersFormat,
    /// Rounds in which the competitors take turns; 7, or 5 with --quick.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=10_000))]
    rounds: Option<u16>,
    /// A subset that takes a few minutes: fewer sizes and rounds, less memory.
    #[arg(long)]
    quick: bool,
    /// A peer's library, libmpi_abi.so.1 or Open MPI's libmpi.so.40: PATH or NAME=PATH. May be
    /// repeated; by default all of --peers.
    #[arg(long, value_name = "PATH", value_parser = Peer::parse)]
    peer: Vec<Peer>,
    /// Where `scripts/bench peers` has put the peers.
    #[arg(long, value_name = "DIR", default_value = "target/peers")]
    peers: PathBuf,
    /// The hand loops built for this machine, as `scripts/bench` does it; without them those of
    /// this command take part.
    #[arg(long, value_name = "LIBRARY", default_value = "target/hand/release/libtypepack_hand.so")]
    hand: PathBuf,
    /// Instruction set of leaf kernels: portable, avx2 or avx512; by default TYPEPACK_ISA, or else
    /// the machine's best. With it there is neither storm nor regret.
    #[arg(long, value_name = "NAME")]
    isa: Option<Isa>,
    /// Write the summary and the ablation table to this file instead of standard error (standard
    /// output with the table).
    #[arg(long, value_name = "FILE")]
    summary: Option<PathBuf>,
    /// Which layouts: the reference layouts, or the 90 of DDTBench.
    #[arg(long, value_enum, default_value_t = Set::Reference)]
    set: Set,
    /// Read layouts and sizes from this TOML file instead.
    #[arg(long, value_name = "FILE", conflicts_with = "set")]
    definitions: Option<PathBuf>,
    /// Only one part of the run.
    #[arg(long, value_enum, conflicts_with_all = ["set", "definitions", "isa"])]
    only: Option<Only>,
    /// List the layouts and stop.
    #[arg(long)]
    list: bool,
    /// Serve one peer on standard input and output; what the command runs itself with.
    #[arg(long, hide = true, value_name = "LIBRARY")]
    child: Option<PathBuf>,
}

/// How `peers` prints.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum PeersFormat {
    Table,
    Csv,
    Json,
    /// The columns of DDTBench: test, method, bytes, phase, microseconds.
    Ddtbench,
}

/// The parts of a run of `peers`.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Only {
    /// The rows of the layouts.
    Rows,
    /// A new type every ten uses.
    Storm,
    /// What the policy loses against the better of compiling at once and never.
    Regret,
}

/// The built-in layouts of `peers`.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Set {
    Reference,
    Ddtbench,
}

#[derive(clap::Args)]
struct PackArguments {
    /// Layouts to measure, by name; all of them by default. Separate several by commas.
    #[arg(long, value_delimiter = ',', value_name = "NAME")]
    layout: Vec<String>,
    /// Packed bytes per call, such as 1000, 16K or 4MiB; those of the definitions by default.
    /// Separate several by commas.
    #[arg(long, value_delimiter = ',', value_name = "BYTES", value_parser = parse_size)]
    size: Vec<u64>,
    /// What to measure.
    #[arg(long, value_enum, default_value_t = Directions::Both)]
    direction: Directions,
    /// How to print the rows.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
    /// Rounds in which the competitors take turns.
    #[arg(long, default_value_t = 7, value_name = "N",
          value_parser = clap::value_parser!(u16).range(1..=10_000))]
    rounds: u16,
    /// typepack's C library (libmpi_abi.so.1), whose calls are compared with the Rust calls in a
    /// second table; by default that of target/prefix, where there is one.
    #[arg(long, value_name = "LIBRARY")]
    face: Option<PathBuf>,
    /// Compare the rows with the bars of the definitions; the verdicts go to stderr.
    #[arg(long)]
    check: bool,
    /// With --check: fail when a steady row misses a bar.
    #[arg(long, requires = "check")]
    strict: bool,
    /// Read layouts, sizes and bars from this TOML file instead of the built-in ones.
    #[arg(long, value_name = "FILE")]
    definitions: Option<PathBuf>,
    /// List the layouts and stop.
    #[arg(long)]
    list: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Directions {
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
enum Format {
    Table,
    Csv,
    Json,
}

/// Largest packed size of a quick run.
const QUICK_MOST_BYTES: u64 = 2 << 20;

/// What ends the command early: its one line, and the exit code.
struct Failure {
    line: String,
    code: u8,
}

fn usage(line: String) -> Failure {
    Failure { line, code: 2 }
}

fn failed(line: String) -> Failure {
    Failure { line, code: 1 }
}

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return refuse(&error),
    };
    let result = match arguments.command {
        Command::Pack(arguments) => pack(&arguments),
        Command::Peers(arguments) => peers(&arguments),
        Command::Pingpong(arguments) => pingpong(&arguments),
        Command::Commit(arguments) => commit(&arguments),
        Command::Calibrate => calibrate(),
        Command::Plot(arguments) => plot(&arguments),
        Command::Guidelines(arguments) => guidelines(&arguments),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure { line, code }) => {
            eprintln!("typepack-bench: {line}");
            ExitCode::from(code)
        }
    }
}

/// Help and version as clap prints them; a fault in one line.
fn refuse(error: &clap::Error) -> ExitCode {
    let text = error.render().to_string();
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            print!("{text}");
            return ExitCode::SUCCESS;
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            eprint!("{text}");
            return ExitCode::from(2);
        }
        _ => {}
    }
    let words = text.split("\n\nUsage:").next().unwrap_or(&text);
    let words = words.split("\n\nFor more").next().unwrap_or(words);
    let line: Vec<&str> = words.split_whitespace().collect();
    eprintln!("typepack-bench: {}", line.join(" ").trim_start_matches("error: "));
    ExitCode::from(2)
}

fn parse_size(text: &str) -> Result<u64, String> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let factor = match unit.trim_start().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        _ => return Err("a size is a number with an optional K, M or G".to_owned()),
    };
    let bytes = number.parse::<u64>().ok().and_then(|n| n.checked_mul(factor));
    match bytes {
        Some(bytes) if (1..=MOST_BYTES).contains(&bytes) => Ok(bytes),
        _ => Err(format!("a size is between 1 and {MOST_BYTES} bytes")),
    }
}

/// A size at which the layouts of `commit` exist and are cut at all.
fn parse_pieces(text: &str) -> Result<u64, String> {
    const LEAST: u64 = 32 << 10;
    const MOST: u64 = 64 << 20;
    match parse_size(text)? {
        bytes if (LEAST..=MOST).contains(&bytes) => Ok(bytes),
        _ => Err(format!("a size is between {LEAST} and {MOST} bytes here")),
    }
}

fn definitions(path: Option<&Path>, built_in: fn() -> Definitions) -> Result<Definitions, Failure> {
    let Some(path) = path else { return Ok(built_in()) };
    let named = |error: String| usage(format!("--definitions {}: {error}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|e| named(e.to_string()))?;
    Definitions::parse(&text).map_err(|e| named(e.to_string()))
}

fn chosen<'a>(
    definitions: &'a Definitions,
    names: &[String],
) -> Result<Vec<&'a LayoutDefinition>, Failure> {
    if names.is_empty() {
        return Ok(definitions.layouts.iter().collect());
    }
    let find = |name: &String| {
        definitions.layouts.iter().find(|layout| layout.name == *name).ok_or_else(|| {
            let known: Vec<&str> = definitions.layouts.iter().map(|l| l.name.as_str()).collect();
            usage(format!("--layout {name}: no such layout; known are {}", known.join(", ")))
        })
    };
    names.iter().map(find).collect()
}

fn pack(arguments: &PackArguments) -> Result<(), Failure> {
    let definitions = definitions(arguments.definitions.as_deref(), Definitions::built_in)?;
    let layouts = chosen(&definitions, &arguments.layout)?;
    if arguments.list {
        for layout in layouts {
            print_out(&format!("{:<10}{}\n", layout.name, layout.text))?;
        }
        return Ok(());
    }
    let sizes = if arguments.size.is_empty() { &definitions.sizes } else { &arguments.size };
    let directions = arguments.direction.list();
    let face = open_face(arguments)?;
    // Found before the first row is measured, not after minutes.
    let mut work = Vec::new();
    for definition in &layouts {
        for &size in sizes {
            let layout = Layout::new(definition, size).map_err(|e| usage(e.to_string()))?;
            work.push((size, layout));
        }
    }
    let jit = Jit::new(Settings { mode: Mode::Eager, ..Settings::default() });
    let (total, mut rows) = (work.len() * directions.len(), Vec::new());
    for (size, layout) in work {
        let mut bench = Bench::new(layout, &jit).map_err(failed)?;
        for &direction in directions {
            progress(rows.len() + 1, total);
            rows.push(measure(&mut bench, size, direction, usize::from(arguments.rounds)));
        }
    }
    progress(0, 0);
    let rounds = usize::from(arguments.rounds);
    let more = match face {
        Some(face) => face::rows(face, &layouts, directions, rounds).map_err(failed)?,
        None => Vec::new(),
    };
    if !more.is_empty() && arguments.format == Format::Table {
        print_out(&format!("{}\n", face::table(&more)))?;
    }
    print_out(&match arguments.format {
        Format::Table => report::table(&rows),
        Format::Csv => report::csv(&rows),
        Format::Json => report::json(&rows).map_err(|e| failed(e.to_string()))?,
    })?;
    if arguments.check { check(&definitions, &rows, arguments.strict) } else { Ok(()) }
}

/// The C face that was asked for, or that of `target/prefix`. Its rows are a table for people: those
/// of the other formats compare bandwidths, and are of one kind.
fn open_face(arguments: &PackArguments) -> Result<Option<Face>, Failure> {
    const USUAL: &str = "target/prefix/lib/libmpi_abi.so.1";
    if arguments.format != Format::Table {
        return match arguments.face {
            Some(_) => Err(usage("--face is for --format table".to_owned())),
            None => Ok(None),
        };
    }
    let path = arguments.face.as_deref().unwrap_or(Path::new(USUAL));
    if arguments.face.is_none() && !path.exists() {
        return Ok(None);
    }
    Face::open(path).map(Some).map_err(|line| usage(format!("--face {line}")))
}

fn peers(arguments: &PeersArguments) -> Result<(), Failure> {
    if let Some(library) = &arguments.child {
        return peer::serve(library).map_err(failed);
    }
    let built_in = match arguments.set {
        Set::Reference => Definitions::reference,
        Set::Ddtbench => Definitions::ddtbench,
    };
    let definitions = definitions(arguments.definitions.as_deref(), built_in)?;
    let layouts = chosen(&definitions, &arguments.layout)?;
    let rows = arguments.only.is_none_or(|only| only == Only::Rows);
    if arguments.list {
        for layout in layouts {
            print_out(&format!("{:<14}{}\n", layout.name, layout.text))?;
        }
        return Ok(());
    }
    let sizes = match () {
        () if !arguments.size.is_empty() => &arguments.size,
        () if arguments.quick && !definitions.quick.is_empty() => &definitions.quick,
        () => &definitions.sizes,
    };
    let most = if arguments.quick { QUICK_MOST_BYTES } else { MOST_BYTES };
    let mut work = Vec::new();
    for definition in layouts.into_iter().filter(|_| rows) {
        for size in sizes_of(definition, sizes).into_iter().filter(|size| *size <= most) {
            let layout = Layout::new(definition, size).map_err(|e| usage(e.to_string()))?;
            work.push((size, layout));
        }
    }
    let mut faults: Vec<String> = pin::pin().err().into_iter().collect();
    let mut sessions = sessions(arguments, &mut faults)?;
    let effort = Effort {
        rounds: usize::from(arguments.rounds.unwrap_or(if arguments.quick { 5 } else { 7 })),
        repeats: if arguments.quick { 1 } else { 3 },
        memory: if arguments.quick { 300 << 20 } else { 1200 << 20 },
        isa: isa(arguments.isa)?,
    };
    let mut suite = suite::run(
        work,
        arguments.direction.list(),
        &mut sessions,
        &Hands::found(&arguments.hand),
        &effort,
        progress,
    );
    // With a choice of layouts only these; the storm and the regret are those of the defaults.
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
    let summary = summary::text(&suite) + "\n" + &ablation::table(&suite);
    print_out(&match arguments.format {
        PeersFormat::Table => suite_report::table(&suite),
        PeersFormat::Csv => suite_report::csv(&suite),
        PeersFormat::Ddtbench => suite_report::ddtbench(&suite),
        PeersFormat::Json => suite_report::json(&suite).map_err(|e| failed(e.to_string()))?,
    })?;
    match &arguments.summary {
        Some(path) => std::fs::write(path, summary)
            .map_err(|e| failed(format!("--summary {}: {e}", path.display()))),
        None if arguments.format == PeersFormat::Table => print_out(&("\n".to_owned() + &summary)),
        None => {
            eprint!("{summary}");
            Ok(())
        }
    }
}

fn pingpong(arguments: &message::command::PingpongArguments) -> Result<(), Failure> {
    use message::command::{Fault, run};
    let text = run(arguments, progress).map_err(|fault| match fault {
        Fault::Usage(line) => usage(line),
        Fault::Failed(line) => failed(line),
    });
    progress(0, 0);
    print_out(&text?)
}

/// The instruction set that was asked for, by the option or else by the environment.
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

/// Starts the peers. One that was asked for by name must start; of the others, those that do not
/// are a line in the summary.
fn sessions(arguments: &PeersArguments, faults: &mut Vec<String>) -> Result<Vec<Session>, Failure> {
    let command = std::env::current_exe().map_err(|e| failed(e.to_string()))?;
    let mut sessions = Vec::new();
    if !arguments.peer.is_empty() {
        for peer in &arguments.peer {
            let named = |line| usage(format!("--peer {}: {line}", peer.library.display()));
            sessions.push(Session::start(peer.clone(), command.clone()).map_err(named)?);
        }
        return Ok(sessions);
    }
    for peer in peer::found(&arguments.peers) {
        let name = peer.name.clone();
        match Session::start(peer, command.clone()) {
            Ok(session) => sessions.push(session),
            Err(line) => faults.push(format!("{name}: {line}")),
        }
    }
    Ok(sessions)
}

fn commit(arguments: &CommitArguments) -> Result<(), Failure> {
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
    let scale = commit::Scale {
        rounds: usize::from(arguments.rounds),
        entries,
        bytes: arguments.size as usize,
    };
    let rows = commit::run(&scale, arguments.only.as_deref(), |part| {
        if std::io::stderr().is_terminal() {
            eprint!("\r\x1b[K{part}");
        }
    });
    progress(0, 0);
    let rows = rows.map_err(failed)?;
    print_out(&match arguments.format {
        Format::Table => commit::table(&rows),
        Format::Csv => commit::csv(&rows),
        Format::Json => commit::json(&rows).map_err(|e| failed(e.to_string()))?,
    })
}

fn calibrate() -> Result<(), Failure> {
    if let Err(line) = pin::pin() {
        eprintln!("typepack-bench: {line}");
    }
    print_out(&calibrate::table().map_err(failed)?)
}

fn plot(arguments: &PlotArguments) -> Result<(), Failure> {
    let path = &arguments.record;
    let named = |error: String| usage(format!("{}: {error}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|e| named(e.to_string()))?;
    let record = Record::parse(&text).map_err(|e| named(e.to_string()))?;
    let pictures = plot::pictures(&record).map_err(failed)?;
    if pictures.is_empty() {
        return Err(named("has nothing to draw".to_owned()));
    }
    let out = &arguments.out;
    let written = |e: std::io::Error| failed(format!("--out {}: {e}", out.display()));
    std::fs::create_dir_all(out).map_err(written)?;
    for picture in pictures {
        let file = out.join(&picture.name);
        std::fs::write(&file, &picture.text).map_err(written)?;
        print_out(&format!("{}\n", file.display()))?;
    }
    Ok(())
}

fn guidelines(arguments: &GuidelineArguments) -> Result<(), Failure> {
    let types = arguments.types.unwrap_or(if arguments.quick { 30 } else { 100 });
    let hands = Hands::found(&arguments.hand);
    let fault = pin::pin().err();
    let jit = Jit::new(Settings { mode: Mode::Lazy, ..Settings::default() });
    let (types, rounds) = (types as usize, usize::from(arguments.rounds));
    let mut checks = guidelines::run(arguments.seed, types, rounds, &jit, &hands.loops, progress);
    progress(0, 0);
    checks.faults.splice(0..0, fault);
    let summary = guidelines::summary(&checks);
    if arguments.format == GuidelineFormat::Csv {
        print_out(&guidelines::csv(&checks))?;
    }
    match &arguments.summary {
        Some(path) => std::fs::write(path, summary)
            .map_err(|e| failed(format!("--summary {}: {e}", path.display()))),
        None if arguments.format == GuidelineFormat::Table => print_out(&summary),
        None => {
            eprint!("{summary}");
            Ok(())
        }
    }
}

fn check(definitions: &Definitions, rows: &[Row], strict: bool) -> Result<(), Failure> {
    let verdicts = bars::verdicts(&definitions.bars, rows);
    for verdict in &verdicts {
        eprintln!("{verdict}");
    }
    let misses = verdicts.iter().filter(|v| v.is_miss()).count();
    let unsteady = verdicts.iter().filter(|v| !v.steady).count();
    let line = format!(
        "{misses} of {} verdicts are misses; {unsteady} rows were too unsteady to decide",
        verdicts.len()
    );
    if strict && verdicts.iter().any(Verdict::is_miss) {
        return Err(failed(line));
    }
    eprintln!("{line}");
    Ok(())
}

fn print_out(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .map_err(|e| failed(format!("standard output: {e}")))
}

/// A line on the terminal that is overwritten; `0` clears it.
fn progress(row: usize, rows: usize) {
    if std::io::stderr().is_terminal() {
        if row == 0 {
            eprint!("\r\x1b[K");
        } else {
            eprint!("\rrow {row} of {rows}");
        }
    }
}
