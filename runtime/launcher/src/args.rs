//! The command line of `mpiexec`, as data.
//!
//! First step of `main.rs`; `program.rs` looks the program up afterwards. Written by hand because
//! everything after the program's name belongs to the program, and because MPI's flags have one
//! dash and several letters (MPI-5.0 section 11.5).

use std::ffi::OsString;
use std::num::IntErrorKind;

use typepack::shm::layout::MAX_RANKS;

/// What `--help` prints.
pub const HELP: &str = "\
Starts a program as the ranks of one job on this machine and watches over them.

usage: mpiexec -n N [options] program [arguments...]

  -n N, -np N         number of ranks (required, 1 or more)
  -l                  put \"[rank] \" before every line of output
  --bind-to core      one rank per core where the cores suffice, else no binding (default)
  --bind-to none      leave the ranks where the system puts them
  --report-bindings   say on standard error where the ranks are bound
  -h, --help          this text
  --version           the version

Standard input goes to rank 0; output comes out by whole lines. When a rank fails the others are
ended, one line says which and why, and the exit code is that rank's (128 + signal). Ctrl-C ends
the job after a grace period of 2 seconds, a second Ctrl-C at once.

Variables: TYPEPACK_BIND=core|none is the default for --bind-to.

examples:
  mpiexec -n 2 ./halo
  mpiexec -n 4 -l sh -c 'echo rank $TYPEPACK_RANK of $TYPEPACK_SIZE'
";

/// Where ranks may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bind {
    /// Each rank on a core of its own, if there are enough.
    Core,
    /// Anywhere.
    None,
}

impl Bind {
    fn parse(what: &str, value: &str) -> Result<Self, String> {
        match value {
            "core" => Ok(Self::Core),
            "none" => Ok(Self::None),
            _ => Err(format!("{what}: '{value}' is neither 'core' nor 'none'")),
        }
    }
}

/// A job to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// Number of ranks, 1 to [`MAX_RANKS`].
    pub ranks: usize,
    /// Put the rank before each line.
    pub label: bool,
    /// Binding.
    pub bind: Bind,
    /// Print the bindings.
    pub report_bindings: bool,
    /// The program as given.
    pub program: OsString,
    /// Its arguments.
    pub arguments: Vec<OsString>,
}

/// What the command line asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Print [`HELP`].
    Help,
    /// Print the version.
    Version,
    /// Run a job.
    Run(Job),
}

/// Parses the arguments after the command's name; `bind_default` is the value of `TYPEPACK_BIND`.
///
/// # Errors
///
/// One sentence that begins with the name of the argument that is wrong.
pub fn parse(
    arguments: impl IntoIterator<Item = OsString>,
    bind_default: Option<&str>,
) -> Result<Request, String> {
    let mut rest = arguments.into_iter();
    let mut ranks = None;
    let mut label = false;
    let mut bind = None;
    let mut report_bindings = false;
    let program = loop {
        let Some(argument) = rest.next() else {
            // The first thing that is missing is the one to name.
            return Err(match ranks {
                None => "-n: the number of ranks is missing (try mpiexec --help)".into(),
                Some(_) => "program: missing after the options (try mpiexec --help)".into(),
            });
        };
        let Some(text) = argument.to_str() else { break argument };
        match text {
            "-h" | "--help" => return Ok(Request::Help),
            "--version" => return Ok(Request::Version),
            "-n" | "-np" => {
                let value = rest.next().ok_or_else(|| format!("{text}: a number must follow"))?;
                if ranks.is_some() {
                    return Err(format!("{text}: the number of ranks is given twice"));
                }
                ranks = Some(rank_count(text, &value.to_string_lossy())?);
            }
            "-l" => label = true,
            "--report-bindings" => report_bindings = true,
            "--bind-to" => {
                let value =
                    rest.next().ok_or_else(|| format!("{text}: 'core' or 'none' must follow"))?;
                bind = Some(Bind::parse(text, &value.to_string_lossy())?);
            }
            "--" => match rest.next() {
                Some(program) => break program,
                None => return Err("program: missing after '--'".into()),
            },
            ":" => return Err(SEVERAL.into()),
            _ => match text.strip_prefix("--bind-to=") {
                Some(value) => bind = Some(Bind::parse("--bind-to", value)?),
                None if text.starts_with('-') => {
                    return Err(format!("{text}: unknown option (try mpiexec --help)"));
                }
                None => break argument,
            },
        }
    };
    let ranks = ranks.ok_or("-n: the number of ranks is missing (try mpiexec --help)")?;
    if program.is_empty() {
        return Err("program: the name is empty".into());
    }
    let arguments: Vec<OsString> = rest.collect();
    if arguments.iter().any(|argument| argument == ":") {
        return Err(SEVERAL.into());
    }
    let bind = match (bind, bind_default) {
        (Some(bind), _) => bind,
        (None, Some(value)) => Bind::parse("TYPEPACK_BIND", value)?,
        (None, None) => Bind::Core,
    };
    Ok(Request::Run(Job { ranks, label, bind, report_bindings, program, arguments }))
}

const SEVERAL: &str = "':': unknown option; one program per job, several are not supported";

fn rank_count(flag: &str, value: &str) -> Result<usize, String> {
    let too_many = || format!("{flag}: {value} ranks are too many (at most {MAX_RANKS})");
    match value.parse::<i64>() {
        Ok(n) => match usize::try_from(n) {
            Ok(1..=MAX_RANKS) => usize::try_from(n).map_err(|_| too_many()),
            Ok(0) | Err(_) => Err(format!("{flag}: {value} is not a number of ranks (1 or more)")),
            Ok(_) => Err(too_many()),
        },
        Err(error) if *error.kind() == IntErrorKind::PosOverflow => Err(too_many()),
        Err(_) => Err(format!("{flag}: '{value}' is not a number of ranks (1 or more)")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(line: &str) -> Result<Request, String> {
        parse(line.split_whitespace().map(OsString::from), None)
    }

    fn job(line: &str) -> Job {
        match run(line) {
            Ok(Request::Run(job)) => job,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn options_end_at_the_program() {
        let job = job("-n 4 -l prog -n 7 --help -x");
        assert_eq!((job.ranks, job.label, job.bind), (4, true, Bind::Core));
        assert_eq!(job.program, "prog");
        assert_eq!(job.arguments, ["-n", "7", "--help", "-x"]);
    }

    #[test]
    fn all_options() {
        let job = job("-np 2 --bind-to none --report-bindings -- -odd-name");
        assert_eq!((job.ranks, job.bind, job.report_bindings), (2, Bind::None, true));
        assert_eq!(job.program, "-odd-name");
        assert_eq!(run("--help"), Ok(Request::Help));
        assert_eq!(run("-n 2 -h"), Ok(Request::Help));
        assert_eq!(run("--version"), Ok(Request::Version));
    }

    #[test]
    fn the_variable_is_a_default_only() {
        let parse = |line: &str, bind| parse(line.split(' ').map(OsString::from), Some(bind));
        let bound = |line: &str, bind| match parse(line, bind) {
            Ok(Request::Run(job)) => job.bind,
            other => panic!("{other:?}"),
        };
        assert_eq!(bound("-n 1 p", "none"), Bind::None);
        assert_eq!(bound("-n 1 --bind-to=core p", "none"), Bind::Core);
        let error = parse("-n 1 p", "socket").expect_err("refused");
        assert!(error.starts_with("TYPEPACK_BIND: 'socket'"), "{error}");
    }

    #[test]
    fn bad_input_names_the_argument() {
        for (line, start) in [
            ("", "-n: "),
            ("prog", "-n: "),
            ("-n", "-n: "),
            ("-n 0 p", "-n: 0 "),
            ("-n -3 p", "-n: -3 "),
            ("-np x p", "-np: 'x' "),
            ("-n 2.5 p", "-n: '2.5' "),
            ("-n 99999999999999999999 p", "-n: 99999999999999999999 ranks are too many"),
            ("-n -99999999999999999999 p", "-n: '-99999999999999999999' "),
            ("-n 1000000 p", "-n: 1000000 ranks are too many"),
            ("-n 2 -n 3 p", "-n: the number of ranks is given twice"),
            ("-n 2", "program: "),
            ("-n 2 --", "program: "),
            ("-n 2 --frobnicate p", "--frobnicate: unknown option"),
            ("-n 2 -host a p", "-host: unknown option"),
            ("-n 2 --bind-to", "--bind-to: "),
            ("-n 2 --bind-to socket p", "--bind-to: 'socket' "),
            ("-n 2 p : -n 2 q", "':': unknown"),
        ] {
            let error = run(line).expect_err(line);
            assert!(error.starts_with(start), "{line}: {error}");
            assert!(!error.contains('\n'), "{line}: {error}");
        }
    }
}
