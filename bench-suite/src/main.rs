//! The command `typepack-bench`.
//!
//! Reads the arguments and passes them to the subcommand, which prints its result on stdout. The subcommands are
//! in `command/`, and in `command.rs` of `message/`, `model/` and `files/` in the library. An error is one line on
//! stderr. If the subcommand is missing, the help stands on stderr instead. The exit code is 2 for wrong arguments
//! and 1 for all other errors.

mod command;

use crate::command::commit::CommitArguments;
use crate::command::guidelines::GuidelineArguments;
use crate::command::pack::PackArguments;
use crate::command::peers::PeersArguments;
use crate::command::plot::PlotArguments;
use crate::command::regret::RegretCommand;
use crate::command::results::ResultsArguments;
use crate::command::{Failure, failed, fault, measured, print_out, progress};
use clap::error::ErrorKind;
use clap::{Parser, Subcommand};
use std::process::ExitCode;
use std::sync::OnceLock;
use std::time::Instant;
use typepack_bench::calibrate;
use typepack_bench::files;
use typepack_bench::message;
use typepack_bench::message::arguments::Fault;
use typepack_bench::model;
use typepack_bench::pin;
use typepack_bench::row::kind::Kind;
use typepack_engine::contiguous;

/// Measures how fast typepack moves data that is not contiguous.
#[derive(Parser)]
#[command(name = "typepack-bench", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measure packing and unpacking in one thread: memcpy, a hand-written loop, typepack as an application
    /// gets it, and each strategy forced. Rows are printed as they are measured.
    /// Each answer is verified before the calls are timed.
    Pack(PackArguments),
    /// Compare packing and unpacking of the reference layouts with other MPI libraries and with hand
    /// loops, and with each kind of kernel alone. Print a summary with the bars.
    Peers(PeersArguments),
    /// Measure messages and halos between two ranks, and whole jobs. The command compiles one C program
    /// with the mpicc of each library; the jobs of the libraries take turns.
    #[command(visible_alias = "messages")]
    Pingpong(message::command::MessageArguments),
    /// Measure blocking collective calls of 2 ranks, and of 8 ranks on 2 CPUs. The C program is the same
    /// as for pingpong.
    Collectives(message::command::MessageArguments),
    /// Measure one-sided communication of 2 ranks: put, get, atomic operations, epochs, halos; and locks and a hash
    /// table of 2 ranks, and of 8 ranks on 2 CPUs. The C program is the same as for pingpong.
    #[command(name = "one-sided")]
    OneSided(message::command::MessageArguments),
    /// Measure messages and halos between two ranks of MPICH and of Intel MPI, each alone and behind typepack's
    /// interposer (libtypepack_interpose.so). The C program is the same as for pingpong.
    Interpose(message::command::MessageArguments),
    /// Measure calls from Fortran with array sections between two ranks, beside Debian's MPICH and Open MPI, the same calls
    /// in C, and loops in Fortran. The program is that of pingpong, with a part in Fortran that is compiled with the mpifort
    /// of each library.
    Fortran(message::command::MessageArguments),
    /// Predict how much typepack's interposer gains in a 3-D halo exchange on many ranks, and where packing stops
    /// mattering. The rates of packing are given, or measured with a host library. With --compare, compare
    /// predictions with measured exchanges.
    Model(Box<model::command::ModelArguments>),
    /// Measure accesses of two ranks to one shared file (MPI-IO). Compare them with hand-written loops: over a
    /// mapped file, and with one system call for each piece. The C program is the same as for pingpong.
    Io(files::command::FileArguments),
    /// Measure regret: how much more time a free choice takes than the best of the ways among which it
    /// chooses, each of them forced in turn.
    #[command(subcommand)]
    Regret(RegretCommand),
    /// Measure other costs of a type and compare them with their bars (required limits): creation, index
    /// lists until the first pack, seek, packing in pieces, external32 and fused copies. Each answer is
    /// verified.
    Commit(CommitArguments),
    /// Measure the table of the engine's cost model and print it as Rust source
    /// (engine/src/plan/cost/table.rs).
    Calibrate,
    /// Draw a record of `scripts/bench` as SVG pictures. Packing, messages, collectives, one-sided
    /// communication, the interposer and files have the same two kinds: bandwidth against size, and ratios to
    /// the best peer and to others. A further picture shows the number of uses after which a compilation is repaid.
    Plot(PlotArguments),
    /// Write bench-suite/RESULTS.md from the records. The page says, machine by machine, when typepack is faster,
    /// equally fast or slower than each competitor.
    Results(ResultsArguments),
    /// Check performance guidelines on random types: compare descriptions of one layout with each other
    /// and with hand loops, and print the violations.
    Guidelines(GuidelineArguments),
}

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return refuse(&error),
    };
    // With a clock, the engine times the methods of long copies and picks the fastest one. In a job, the runtime
    // sets the clock; here, the command sets it. `calibrate` sets none: then every long copy uses vector moves, and
    // the table does not depend on what the engine would have picked.
    if !matches!(arguments.command, Command::Calibrate) {
        contiguous::set_clock(nanoseconds, true);
    }
    let result = match arguments.command {
        Command::Pack(arguments) => command::pack::pack(&arguments),
        Command::Peers(arguments) => command::peers::peers(&arguments),
        Command::Pingpong(arguments) => messages(Kind::Messages, &arguments),
        Command::Collectives(arguments) => messages(Kind::Collectives, &arguments),
        Command::OneSided(arguments) => messages(Kind::OneSided, &arguments),
        Command::Interpose(arguments) => messages(Kind::Interpose, &arguments),
        Command::Fortran(arguments) => messages(Kind::Fortran, &arguments),
        Command::Model(arguments) => finish(model::command::run(&arguments, progress)),
        Command::Io(arguments) => io(&arguments),
        Command::Regret(command) => command::regret::run(&command),
        Command::Commit(arguments) => command::commit::run(&arguments),
        Command::Calibrate => calibrate(),
        Command::Plot(arguments) => command::plot::run(&arguments),
        Command::Results(arguments) => command::results::run(&arguments),
        Command::Guidelines(arguments) => command::guidelines::run(&arguments),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure { line, code }) => {
            eprintln!("typepack-bench: {line}");
            ExitCode::from(code)
        }
    }
}

/// Returns the time in nanoseconds since the first call.
fn nanoseconds() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    let start = START.get_or_init(Instant::now);
    u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// Prints help and version as clap renders them, and the help also if the subcommand is missing. Prints every other
/// error as one line. Returns the exit code.
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

fn messages(kind: Kind, arguments: &message::command::MessageArguments) -> Result<(), Failure> {
    finish(message::command::run(kind, arguments, progress, measured))
}

fn io(arguments: &files::command::FileArguments) -> Result<(), Failure> {
    finish(files::command::run(arguments, progress, measured))
}

/// Prints the text of a finished run, or returns its error.
fn finish(result: Result<String, Fault>) -> Result<(), Failure> {
    progress(0, 0);
    print_out(&result.map_err(fault)?)
}

fn calibrate() -> Result<(), Failure> {
    if let Err(line) = pin::pin() {
        eprintln!("typepack-bench: {line}");
    }
    print_out(&calibrate::table().map_err(failed)?)
}
