//! The `typepack` tool. It parses the command line, joins the job, and runs the command.
//!
//! Invariants: after a bad argument, one rank prints exactly one line on stderr, and all ranks end with a
//! non-zero exit code. No input makes this program panic.

use std::error::Error as _;
use std::process::ExitCode;

use clap::builder::styling::Styles;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Parser, Subcommand};

mod agree;
mod demo;
mod doctor;
mod explain;
mod fortran;
mod halo;
mod info;
mod progress;
mod run;
mod shim;

use agree::{Stop, USAGE, agree, say};

/// Moves data that is not contiguous: halo exchanges through compiled MPI datatypes.
#[derive(Parser, Debug)]
#[command(
    name = "typepack",
    version,
    styles = Styles::plain(),
    after_help = "\
Examples:
  typepack halo --grid 64x64x64 --verify
  mpiexec -n 2 typepack halo --grid 128x128x128 --ranks 2x1x1 --verify
  typepack run -- mpiexec -n 4 ./app
  typepack shim --mpicc /usr/bin/mpicc --out shim
  typepack fortran --fc gfortran-13
  typepack doctor
  typepack halo --help"
)]
pub struct Cli {
    /// The command
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Solve the 3-D heat equation with halo exchanges, measure and verify them
    ///
    /// The command cuts the grid into one block per rank of `mpiexec -n N` (without mpiexec: one
    /// block). Every W steps the blocks exchange a halo of W cells, through datatypes that typepack
    /// compiles. Each rank computes the interior of its block meanwhile. At the end, the output
    /// shows how long each phase took and which kernel packed each face.
    Halo(Box<halo::Options>),
    /// Exchange the same halos in three ways, and compare them
    ///
    /// The ways: datatypes with typepack's kernels; the same datatypes interpreted; no datatypes, but
    /// loops that pack into contiguous messages. Measures single exchanges and a solver, all verified
    /// bit for bit. A run measures one way; --draw puts the tables of several runs side by side. This is
    /// what scripts/demo runs.
    Demo(Box<demo::Options>),
    /// Explain a datatype: how it is packed, how fast, and how it lies in memory
    ///
    /// The type is one expression of constructor calls. The first line says how the type is packed and
    /// whether that is fast; the rest shows its layout in memory (as rows of one stride each) and advice.
    /// --verbose adds the tree, the bounds, the program after each pass, and the kernels that execute it.
    /// --time measures.
    Explain(Box<explain::Options>),
    /// Show this installation: versions, CPU, library, and problems
    ///
    /// Says what is wrong with the machine or the environment, for example that another job holds the CPUs.
    /// Lists the variables that are set. If TYPEPACK_TUNE_FILE names a file, shows the choices in the file.
    /// Under mpiexec, also shows the CPU of each rank. --all adds all variables, the methods of collective
    /// calls, how many functions of the MPI ABI are built, and the protocols between ranks.
    Info(info::Options),
    /// Run a command with typepack's kernels in front of the MPI library of a cluster
    ///
    /// Sets LD_PRELOAD to libtypepack_interpose.so and becomes the command. The MPI library must have the
    /// MPI 5 standard ABI (libmpi_abi.so.1). If a file that the command names cannot work with the library,
    /// one line says why, and the command runs anyway.
    Run(run::Options),
    /// Compile what `typepack run` needs for an MPI library without the MPI 5 standard ABI
    ///
    /// The compiler of the MPI library, such as that of Open MPI or of Debian's MPICH, compiles a small C
    /// library, the shim. `typepack run --library FOLDER/libtypepack_shim.so -- COMMAND` starts programs of
    /// that MPI library with typepack's kernels. The shim is for this MPI library and this typepack.
    Shim(shim::Options),
    /// Make the Fortran modules for a compiler
    ///
    /// `mpifort` does this when a compiler is first used, so this command is for what comes later than the
    /// installation and before the first user: it puts the modules into the prefix if that is writable, else into
    /// the user's cache. One line says where they are, and another one what the compiler lacks.
    Fortran(fortran::Options),
    /// Find out what is mixed up: launcher, wrappers, library, header and mpi4py that do not belong together
    ///
    /// Says which ones are used, from where, and whether they belong to this installation. Each fault has a name, a
    /// sentence, and the command that mends it. The exit code is 0 if there is no fault, and 1 otherwise. The command
    /// changes nothing.
    Doctor,
}

fn main() -> ExitCode {
    let command = match Cli::try_parse() {
        Ok(cli) => Ok(cli.command),
        Err(error) if !error.use_stderr() => return help(&error),
        Err(error) => Err(line(&error)),
    };
    // These commands join no job. The first one starts a job of another MPI library.
    if let Ok(Command::Run(options)) = &command {
        return ExitCode::from(run::run(options));
    }
    if let Ok(Command::Shim(options)) = &command {
        return ExitCode::from(shim::run(options));
    }
    if let Ok(Command::Fortran(options)) = &command {
        return ExitCode::from(fortran::run(options));
    }
    if let Ok(Command::Doctor) = &command {
        return ExitCode::from(doctor::run());
    }
    let mode = match &command {
        Ok(Command::Halo(options)) => options.jit.map(|jit| jit.to_string()),
        // The report names the kernels, so the JIT must compile them at commit. In its default mode,
        // `lazy`, the JIT would compile them only after the type has moved enough bytes.
        Ok(Command::Explain(_)) if std::env::var_os("TYPEPACK_JIT").is_none() => {
            Some("eager".into())
        }
        _ => None,
    };
    if let Some(mode) = mode {
        // SAFETY: `main` has not started a thread yet, so no other thread can read the environment at the
        // same time.
        unsafe { std::env::set_var("TYPEPACK_JIT", mode) };
    }
    let way = match &command {
        Ok(Command::Halo(options)) => Some(options.way),
        Ok(Command::Demo(options)) => options.way,
        _ => None,
    };
    if way == Some(halo::Way::Interpreter) {
        // SAFETY: the process still has only one thread, so no other thread can read the environment at the
        // same time.
        unsafe { std::env::set_var("TYPEPACK_KERNEL", "interpreter") };
    }
    if let Ok(Command::Info(options)) = &command
        && is_first()
        && let Err(error) = info::about_the_installation(options)
    {
        // Despite this failure, the rank joins the job, because the other ranks wait until it has joined.
        say(error);
    }
    ExitCode::from(joined(command).map_or_else(Stop::report, |()| 0))
}

/// Joins the job and runs the command. If the command line is wrong, one rank prints the error.
fn joined(command: Result<Command, String>) -> Result<(), Stop> {
    let universe = match typepack::init() {
        Ok(universe) => universe,
        // An environment variable has a bad value, and all ranks get this error. They have not joined the
        // job, so they cannot use `agree`. Instead, only rank 0 prints the error.
        Err(error) if error.kind() == typepack::ErrorKind::Argument => {
            if is_first() {
                say(error);
            }
            return Err(Stop::Agreed(USAGE));
        }
        Err(error) => return Err(error.into()),
    };
    match agree(&universe.world(), command, USAGE)? {
        Command::Halo(options) => halo::run(&options, &universe),
        Command::Demo(options) => demo::run(&options, &universe),
        Command::Explain(options) => explain::run(&options, &universe),
        Command::Info(options) => info::about_the_job(&options, &universe),
        // `main` runs these commands before it joins a job.
        Command::Run(options) => Err(Stop::Agreed(run::run(&options))),
        Command::Shim(options) => Err(Stop::Agreed(shim::run(&options))),
        Command::Fortran(options) => Err(Stop::Agreed(fortran::run(&options))),
        Command::Doctor => Err(Stop::Agreed(doctor::run())),
    }
}

/// Returns whether this process is rank 0 or runs without other ranks. The answer comes from the
/// environment, so it is available before the process joins the job.
fn is_first() -> bool {
    std::env::var_os("TYPEPACK_RANK").is_none_or(|rank| rank == "0")
}

/// Prints a help text or the version, but only on rank 0.
fn help(error: &clap::Error) -> ExitCode {
    if is_first()
        && let Err(error) = error.print()
    {
        say(format_args!("standard output: {error}"));
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

/// Converts an error of the command line parser to one line. If the error is about an argument, the line
/// begins with the argument's name.
fn line(error: &clap::Error) -> String {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        Some(ContextValue::Strings(texts)) => Some(texts.join(", ")),
        _ => None,
    };
    // Cuts a name like "--grid <NXxNYxNZ>" to "--grid".
    let name = |text: String| text.split([' ', '=', '[']).next().unwrap_or_default().to_owned();
    let argument = text(ContextKind::InvalidArg);
    let value = text(ContextKind::InvalidValue).unwrap_or_default();
    let usage = match error.get(ContextKind::Usage) {
        Some(ContextValue::StyledStr(usage)) => usage.to_string(),
        _ => String::new(),
    };
    let others = ["explain", "info", "demo", "run", "shim", "fortran", "doctor"];
    let is_of = |command: &&str| usage.contains(&format!("typepack {command}"));
    let command = others.into_iter().find(is_of).unwrap_or("halo");
    match (error.kind(), argument) {
        (ErrorKind::ValueValidation, Some(argument)) => {
            let why =
                error.source().map_or_else(|| format!("'{value}' is wrong"), |why| why.to_string());
            format!("{}: {why}", name(argument))
        }
        (ErrorKind::InvalidValue, Some(argument)) if value.is_empty() => {
            format!("{}: the value is missing", name(argument))
        }
        (ErrorKind::InvalidValue, Some(argument)) => {
            let valid = text(ContextKind::ValidValue).unwrap_or_default();
            format!("{}: '{value}' is not one of {valid}", name(argument))
        }
        (ErrorKind::UnknownArgument, Some(argument)) => {
            format!("{argument}: unknown argument (see typepack {command} --help)")
        }
        (ErrorKind::MissingRequiredArgument, Some(argument)) => {
            format!(
                "{}: required argument is missing (see typepack {command} --help)",
                name(argument)
            )
        }
        (ErrorKind::ArgumentConflict, Some(argument)) => format!("{}: given twice", name(argument)),
        (ErrorKind::InvalidSubcommand, _) => {
            let command = text(ContextKind::InvalidSubcommand).unwrap_or_default();
            format!("'{command}' is not a command (see typepack --help)")
        }
        (ErrorKind::MissingSubcommand | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand, _) => {
            "no command given (see typepack --help)".to_owned()
        }
        _ => {
            let text = error.to_string();
            let first = text.lines().next().unwrap_or_default();
            first.strip_prefix("error: ").unwrap_or(first).to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn refused(arguments: &str) -> String {
        let words = std::iter::once("typepack").chain(arguments.split_whitespace());
        line(&Cli::try_parse_from(words).expect_err("must be refused"))
    }

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_bad_argument_is_one_line_that_names_it() {
        let cases = [
            ("", "no command given (see typepack --help)"),
            ("hola", "'hola' is not a command (see typepack --help)"),
            ("halo", "--grid: required argument is missing (see typepack halo --help)"),
            ("halo --grid", "--grid: the value is missing"),
            ("halo --grid 4x4", "--grid: '4x4' is not of the form AxBxC"),
            ("halo --grid 4x0x4", "--grid: 0 is too small; it must be at least 1"),
            ("halo --grid 4x4x4 --halo -1", "--halo: -1 is too small; it must be at least 1"),
            ("halo --grid 4x4x4 --halo 1.5", "--halo: '1.5' is not a whole number"),
            ("halo --grid 4x4x4 --steps 0", "--steps: 0 is too small; it must be at least 1"),
            ("halo --grid 4x4x4 --fields x", "--fields: 'x' is not a whole number"),
            ("halo --grid 4x4x4 --jit never", "--jit: 'never' is not one of off, lazy, eager"),
            ("halo --grid 4x4x4 --stencil round", "--stencil: 'round' is not one of star, box"),
            (
                "halo --grid 4x4x4 --boundary open",
                "--boundary: 'open' is not one of periodic, fixed",
            ),
            ("halo --grid 4x4x4 --frob", "--frob: unknown argument (see typepack halo --help)"),
            ("halo --grid 4x4x4 --grid 5x5x5", "--grid: given twice"),
            (
                "halo --grid 4x4x4 --compare a",
                "--svg: required argument is missing (see typepack halo --help)",
            ),
            ("halo --grid 4x4x4 9", "9: unknown argument (see typepack halo --help)"),
            ("explain", "<TYPE>: required argument is missing (see typepack explain --help)"),
            ("explain double int", "int: unknown argument (see typepack explain --help)"),
            (
                "explain double --count -1",
                "--count: '-1' is not a number of elements; it must be a whole number from 0 to 2^64 - 1",
            ),
            (
                "explain double --clif --nest x",
                "--nest: 'x' is not a nest number; it must be a whole number from 0 to 2^64 - 1",
            ),
            ("explain double --asm --direction up", "--direction: 'up' is not one of pack, unpack"),
            ("info --measure=0", "--measure: 0 is not in 1..=3600"),
            ("fortran --fc", "--fc: the value is missing"),
            ("fortran gfortran", "gfortran: unknown argument (see typepack fortran --help)"),
            ("info --frob", "--frob: unknown argument (see typepack info --help)"),
            (
                "explain double --count few",
                "--count: 'few' is not a number of elements; it must be a whole number from 0 to 2^64 - 1",
            ),
        ];
        for (arguments, wanted) in cases {
            assert_eq!(refused(arguments), wanted, "{arguments}");
        }
    }
}
