//! Parses the command line of `mpiexec`.
//!
//! This is the first step of `main.rs`; afterwards `program.rs` finds the programs. `options.rs` has the
//! table of options. `hosts.rs` checks the names of machines, and `words.rs` reads the file of `-configfile`.
//! The parser is written by hand for two reasons: everything after a program's name belongs to the program,
//! and MPI's options have one dash and several letters (MPI-5.0 section 11.5).

mod hosts;
pub mod options;
mod words;

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::num::IntErrorKind;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use memchr::{memchr, memchr_iter};
use typepack_job::shm::layout::MAX_RANKS;
use typepack_job::shm::topology;
use typepack_job::sys::named::{TEXT_MAX, read_text};

use options::Id;

/// A level of the machine's hierarchy, such as cores or NUMA nodes. Ranks are bound to the parts of the
/// machine at one level, or distributed over them. The levels are ordered from small parts to large parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// One hardware thread.
    Thread,
    /// One core with all its threads.
    Core,
    /// The cores of one level 2 cache.
    L2,
    /// The cores of one level 3 cache.
    L3,
    /// The cores of one NUMA node.
    Numa,
    /// The cores of one package.
    Socket,
}

impl From<Level> for topology::Level {
    fn from(level: Level) -> Self {
        match level {
            Level::Thread => Self::Thread,
            Level::Core => Self::Core,
            Level::L2 => Self::L2,
            Level::L3 => Self::L3,
            Level::Numa => Self::Numa,
            Level::Socket => Self::Package,
        }
    }
}

impl Level {
    fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "hwthread" | "hwt" => Self::Thread,
            "core" => Self::Core,
            "l2cache" | "l2" => Self::L2,
            "l3cache" | "l3" => Self::L3,
            "numa" => Self::Numa,
            "socket" | "package" => Self::Socket,
            _ => return None,
        })
    }
}

/// The CPUs on which a rank may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bind {
    /// The CPUs of one part of the machine at this level. If the parts are threads or cores, each rank gets a
    /// part of its own, provided that there are enough parts. If the parts are larger, ranks may share a
    /// part, and a rank may run on all cores of its part.
    To(Level),
    /// All CPUs: the ranks are not bound.
    None,
}

impl Bind {
    fn parse(what: &str, value: &str) -> Result<Self, String> {
        // In Open MPI, these modifiers say what to do if there are too few cores. Accept and ignore them.
        let name = without_modifiers(value, &["overload-allowed", "if-supported"]);
        match name.and_then(Level::parse) {
            Some(level) => Ok(Self::To(level)),
            None if name == Some("none") => Ok(Self::None),
            None => Err(format!(
                "{what}: '{value}' is not one of none, hwthread, core, l2cache, l3cache, numa, socket"
            )),
        }
    }
}

/// The order in which parts of the machine get ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Map {
    /// Each NUMA node gets a block of consecutive ranks, in proportion to the number of its cores.
    Blocks,
    /// The cores (or hardware threads) get one rank each, in order. If ranks may share parts of the machine
    /// and there are more ranks than cores, the next rank goes to the first core again.
    Fill,
    /// Round-robin over the parts at this level: each part gets one rank in turn.
    InTurn(Level),
}

impl Map {
    fn parse(what: &str, value: &str) -> Result<Self, String> {
        match without_modifiers(value, &["oversubscribe", "nooversubscribe"]) {
            Some("slot" | "node" | "core" | "hwthread") => Ok(Self::Fill),
            Some(name) if Level::parse(name).is_some_and(|level| level > Level::Core) => {
                Ok(Self::InTurn(Level::parse(name).unwrap_or(Level::Core)))
            }
            _ => Err(format!(
                "{what}: '{value}' is not one of slot, node, core, hwthread, l2cache, l3cache, numa, \
                 socket"
            )),
        }
    }
}

/// Returns the text of `value` before the first colon. The words after the colons are modifiers. Returns
/// `None` if any modifier is not in `known`.
fn without_modifiers<'a>(value: &'a str, known: &[&str]) -> Option<&'a str> {
    let mut parts = value.split(':');
    let name = parts.next()?;
    parts.all(|part| known.iter().any(|k| k.eq_ignore_ascii_case(part))).then_some(name)
}

/// Which variables of mpiexec's environment the ranks inherit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Inherit {
    /// All variables.
    All,
    /// Only these variables.
    Only(BTreeSet<OsString>),
}

/// The environment options given for the whole job or for one program. Later options override earlier ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment {
    /// Which variables the ranks inherit, or `None` if no option says so.
    pub inherit: Option<Inherit>,
    /// The variables to set, in the order of the options. If the value is `None`, the variable gets the value
    /// that it has in mpiexec's environment.
    pub set: Vec<(OsString, Option<OsString>)>,
}

/// One program of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct App {
    /// Number of ranks, 1 to [`MAX_RANKS`].
    pub ranks: usize,
    /// Name of the program, as given on the command line.
    pub program: OsString,
    /// Arguments of the program.
    pub arguments: Vec<OsString>,
    /// Working directory of the program's ranks, if the command line gives one.
    pub directory: Option<PathBuf>,
    /// List of directories in which to search for the program instead of `PATH`, if the command line gives
    /// one.
    pub path: Option<OsString>,
    /// Environment options of this program. They are applied after the options of the job.
    pub environment: Environment,
}

/// A job to run, as described by the command line and the environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// The programs, in the order of their ranks. The list is not empty.
    pub apps: Vec<App>,
    /// True if mpiexec puts the rank's number before each line of output.
    pub label: bool,
    /// The CPUs on which a rank may run.
    pub bind: Bind,
    /// The order in which parts of the machine get ranks.
    pub map: Map,
    /// True if mpiexec prints the CPUs to which the ranks are bound.
    pub report_bindings: bool,
    /// Environment options for all programs.
    pub environment: Environment,
    /// Value of the attribute `MPI_UNIVERSE_SIZE`, if the command line gives one.
    pub universe: Option<u32>,
    /// Name of the error handler that communicators have initially, if the command line gives one.
    pub errhandler: Option<&'static str>,
    /// Patterns for the names of the files for standard output and standard error. In a pattern, marks such
    /// as `%r` (the rank's number) are replaced (see `start.rs`).
    pub files: [Option<OsString>; 2],
    /// True if mpiexec prints the exit codes of all ranks.
    pub exit_codes: bool,
    /// Time limit of the job, if there is one.
    pub timeout: Option<Duration>,
    /// Time between SIGTERM and SIGKILL for the other ranks after a rank has failed, if the command line gives one.
    pub kill_after: Option<Duration>,
}

impl Job {
    /// Returns the number of ranks of all programs together.
    pub fn ranks(&self) -> usize {
        self.apps.iter().map(|app| app.ranks).sum()
    }

    /// Returns the index in `apps` of the program that `rank` runs.
    pub fn app_of(&self, rank: usize) -> usize {
        let mut first = 0;
        let found = self.apps.iter().position(|app| {
            first += app.ranks;
            rank < first
        });
        found.unwrap_or(self.apps.len() - 1)
    }
}

/// What the command line asks mpiexec to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Print the help text.
    Help,
    /// Print the version.
    Version,
    /// Print the version, paths, and what is known about the machine.
    Info,
    /// Run a job.
    Run(Job),
}

/// Input of the parser that is not on the command line.
#[derive(Clone, Copy, Debug, Default)]
pub struct Surroundings<'a> {
    /// Value of the environment variable `TYPEPACK_BIND`.
    pub bind: Option<&'a str>,
    /// Value of the environment variable `MPIEXEC_TIMEOUT`.
    pub timeout: Option<&'a str>,
    /// Name of this machine.
    pub host: &'a str,
}

/// The state of the parser: what it has read about the job so far.
struct Reading<'a> {
    surroundings: Surroundings<'a>,
    bind: Option<Bind>,
    timeout: Option<Option<Duration>>,
    job: Job,
}

/// The options of one program, collected until the parser reaches the program's name.
#[derive(Default)]
struct Section {
    ranks: Option<usize>,
    directory: Option<PathBuf>,
    path: Option<OsString>,
    environment: Environment,
}

/// Parses the arguments of mpiexec, without the name of the command itself.
///
/// # Errors
///
/// Returns a one-line message that begins with the name of the bad argument.
pub fn parse(
    arguments: impl IntoIterator<Item = OsString>,
    surroundings: Surroundings<'_>,
) -> Result<Request, String> {
    let mut words: Vec<OsString> = arguments.into_iter().collect();
    let mut reading = Reading {
        surroundings,
        bind: None,
        timeout: None,
        job: Job {
            apps: Vec::new(),
            label: false,
            bind: Bind::To(Level::Core),
            map: Map::Blocks,
            report_bindings: false,
            environment: Environment::default(),
            universe: None,
            errhandler: None,
            files: [None, None],
            exit_codes: false,
            timeout: None,
            kill_after: None,
        },
    };
    let mut from_file = false;
    loop {
        let mut rest = words.into_iter();
        match reading.section(&mut rest, from_file)? {
            Next::Answer(request) => return Ok(request),
            Next::File(more) => {
                from_file = true;
                words = more;
            }
            Next::Section => words = rest.collect(),
            Next::End => return reading.finish().map(Request::Run),
        }
    }
}

/// What follows after one program and its options.
enum Next {
    /// No program: the command line asks mpiexec to print a text, such as the help text.
    Answer(Request),
    /// The words of a file given by `-configfile`.
    File(Vec<OsString>),
    /// Another program with its options.
    Section,
    /// The end of the command line.
    End,
}

impl Reading<'_> {
    /// Reads one program with its options.
    fn section(
        &mut self,
        rest: &mut std::vec::IntoIter<OsString>,
        from_file: bool,
    ) -> Result<Next, String> {
        let mut section = Section::default();
        let program = loop {
            let Some(argument) = rest.next() else {
                // The message names the first missing argument: the number of ranks if it was not given,
                // otherwise the program.
                return Err(match section.ranks {
                    None => NO_RANKS.into(),
                    Some(_) => "program: missing after the options (try mpiexec --help)".into(),
                });
            };
            let Some(text) = argument.to_str() else { break argument };
            if text == "--" {
                break rest.next().ok_or("program: missing after '--'")?;
            }
            if text == ":" {
                return Err("':': there is no program before it".into());
            }
            if !text.starts_with('-') {
                break argument;
            }
            let (entry, joined) = options::find(text)
                .ok_or_else(|| format!("{text}: unknown option (try mpiexec --help)"))?;
            let flag = text.split('=').next().unwrap_or(text);
            let mut values = Vec::new();
            if let Some(value) = joined {
                values.push(OsString::from(value));
            }
            while values.len() < entry.values.len() {
                let value = rest
                    .next()
                    .ok_or_else(|| format!("{flag}: {} is missing", entry.values[values.len()]))?;
                values.push(value);
                // Accept "-env NAME=VALUE" as another form of "-env NAME VALUE".
                if entry.values.len() == 2 && memchr(b'=', values[0].as_bytes()).is_some() {
                    break;
                }
            }
            match entry.id {
                Id::Help => return Ok(Next::Answer(Request::Help)),
                Id::Version => return Ok(Next::Answer(Request::Version)),
                Id::Info => return Ok(Next::Answer(Request::Info)),
                Id::ConfigFile if from_file => {
                    return Err(format!("{flag}: not allowed in a file that -configfile names"));
                }
                Id::ConfigFile => {
                    let file = shown(&values[0]);
                    let text = read_text(Path::new(&values[0]), TEXT_MAX)
                        .map_err(|error| format!("{flag}: '{file}': {error}"))?;
                    if rest.next().is_some() || section.ranks.is_some() || !self.job.apps.is_empty()
                    {
                        return Err(format!(
                            "{flag}: all programs must be in the file; only options for the job may \
                             stand before {flag}, and nothing may follow the file's name"
                        ));
                    }
                    let words = words::of_file(&text);
                    return words.map(Next::File).map_err(|e| format!("{flag}: '{file}': {e}"));
                }
                id => self.option(id, flag, &values, &mut section)?,
            }
        };
        let ranks = section.ranks.ok_or(NO_RANKS)?;
        if program.is_empty() {
            return Err("program: the name is empty".into());
        }
        let mut arguments = Vec::new();
        let mut next = Next::End;
        for argument in rest {
            if argument == ":" {
                next = Next::Section;
                break;
            }
            arguments.push(argument);
        }
        let Section { directory, path, environment, .. } = section;
        self.job.apps.push(App { ranks, program, arguments, directory, path, environment });
        if self.job.ranks() > MAX_RANKS {
            let all = self.job.ranks();
            return Err(format!("-n: {all} ranks are too many (at most {MAX_RANKS})"));
        }
        Ok(next)
    }

    /// Applies the option `id` with its values. `flag` is the option as the user wrote it.
    fn option(
        &mut self,
        id: Id,
        flag: &str,
        values: &[OsString],
        section: &mut Section,
    ) -> Result<(), String> {
        let word = values.first().map(|value| value.to_string_lossy()).unwrap_or_default();
        let job = &mut self.job;
        match id {
            Id::Ranks => {
                if section.ranks.is_some() {
                    return Err(format!("{flag}: the number of ranks is given twice"));
                }
                section.ranks = Some(rank_count(flag, &word)?);
            }
            Id::Directory => section.directory = Some(PathBuf::from(filled(flag, &values[0])?)),
            Id::Path => section.path = Some(filled(flag, &values[0])?),
            Id::Env => section.environment.set.push(variable(flag, values)?),
            Id::Genv => job.environment.set.push(variable(flag, values)?),
            Id::Export => section.environment.set.push(exported(flag, &values[0])?),
            Id::EnvList => section.environment.inherit = Some(only(&values[0])),
            Id::EnvNone => section.environment.inherit = Some(Inherit::Only(BTreeSet::new())),
            Id::EnvAll => section.environment.inherit = Some(Inherit::All),
            Id::GenvList => job.environment.inherit = Some(only(&values[0])),
            Id::GenvNone => job.environment.inherit = Some(Inherit::Only(BTreeSet::new())),
            Id::GenvAll => job.environment.inherit = Some(Inherit::All),
            Id::Hosts => hosts::check_list(flag, &word, self.surroundings.host)?,
            Id::HostFile => {
                let text = read_text(Path::new(&values[0]), TEXT_MAX)
                    .map_err(|error| format!("{flag}: '{word}': {error}"))?;
                hosts::check_file(flag, &text, self.surroundings.host)?;
            }
            Id::Universe => job.universe = Some(positive(flag, &word)?),
            Id::InitialErrhandler => {
                let known = ["mpi_errors_are_fatal", "mpi_errors_abort", "mpi_errors_return"];
                let found = known.into_iter().find(|name| name.eq_ignore_ascii_case(&word));
                job.errhandler = Some(found.ok_or_else(|| {
                    format!("{flag}: '{word}' is not one of {}", known.join(", "))
                })?);
            }
            Id::Label => job.label = true,
            Id::OutPattern => job.files[0] = Some(filled(flag, &values[0])?),
            Id::ErrPattern => job.files[1] = Some(filled(flag, &values[0])?),
            Id::ExitCodes => job.exit_codes = true,
            Id::Timeout => self.timeout = Some(seconds(flag, &word)?),
            Id::KillAfter => job.kill_after = Some(delay(flag, &word)?),
            Id::Bind => self.bind = Some(Bind::parse(flag, &word)?),
            Id::Map => job.map = Map::parse(flag, &word)?,
            Id::ReportBindings => job.report_bindings = true,
            Id::IgnoredNumber => drop(positive(flag, &word)?),
            Id::IgnoredWord | Id::Ignored => {}
            // `section` has already handled these options.
            Id::ConfigFile | Id::Help | Id::Version | Id::Info => {}
        }
        Ok(())
    }

    /// Returns the job. Settings that are not on the command line come from the environment or have default
    /// values.
    fn finish(mut self) -> Result<Job, String> {
        self.job.bind = match (self.bind, self.surroundings.bind) {
            (Some(bind), _) => bind,
            (None, Some(value)) => Bind::parse("TYPEPACK_BIND", value)?,
            (None, None) => Bind::To(Level::Core),
        };
        self.job.timeout = match (self.timeout, self.surroundings.timeout) {
            (Some(timeout), _) => timeout,
            (None, Some(value)) => seconds("MPIEXEC_TIMEOUT", value)?,
            (None, None) => None,
        };
        Ok(self.job)
    }
}

/// The longest time that `-kill-after` allows: a day.
const LONGEST_DELAY: Duration = Duration::from_secs(24 * 60 * 60);

const NO_RANKS: &str = "-n: the number of ranks is missing (try mpiexec --help)";

fn shown(word: &OsStr) -> String {
    word.to_string_lossy().into_owned()
}

fn rank_count(flag: &str, value: &str) -> Result<usize, String> {
    let too_many = || format!("{flag}: {value} ranks are too many (at most {MAX_RANKS})");
    match value.parse::<i64>() {
        Ok(n) => match usize::try_from(n) {
            Ok(1..=MAX_RANKS) => usize::try_from(n).map_err(|_| too_many()),
            Ok(0) | Err(_) => {
                Err(format!("{flag}: {value} is not a valid number of ranks; it must be 1 or more"))
            }
            Ok(_) => Err(too_many()),
        },
        Err(error) if *error.kind() == IntErrorKind::PosOverflow => Err(too_many()),
        Err(_) => {
            Err(format!("{flag}: '{value}' is not a valid number of ranks; it must be 1 or more"))
        }
    }
}

/// Parses a positive number that fits in a C `int`.
fn positive(flag: &str, value: &str) -> Result<u32, String> {
    let number = value.parse::<u32>().ok().filter(|n| (1..=i32::MAX.unsigned_abs()).contains(n));
    number.ok_or_else(|| {
        format!("{flag}: '{value}' is not a valid number; it must be between 1 and {}", i32::MAX)
    })
}

/// Parses a time limit in seconds. As in MPICH, zero or a negative number means that there is no limit.
fn seconds(what: &str, value: &str) -> Result<Option<Duration>, String> {
    let wrong = || format!("{what}: '{value}' is not a number of seconds");
    let number: f64 = value.trim().parse().map_err(|_| wrong())?;
    if number.is_nan() {
        return Err(wrong());
    }
    if number <= 0.0 {
        return Ok(None);
    }
    // A limit of 2^32 seconds (more than a century) or longer counts as no limit.
    Ok(Duration::try_from_secs_f64(number).ok().filter(|d| d.as_secs() < 1 << 32))
}

/// Parses a time in seconds, of at most [`LONGEST_DELAY`].
fn delay(what: &str, value: &str) -> Result<Duration, String> {
    let time =
        value.trim().parse().ok().and_then(|number| Duration::try_from_secs_f64(number).ok());
    time.filter(|time| *time <= LONGEST_DELAY).ok_or_else(|| {
        let most = LONGEST_DELAY.as_secs();
        format!("{what}: '{value}' is not a number of seconds from 0 to {most}")
    })
}

fn filled(flag: &str, value: &OsStr) -> Result<OsString, String> {
    if value.is_empty() {
        return Err(format!("{flag}: the value is empty"));
    }
    Ok(value.to_owned())
}

/// Parses the values of `-env`: a name and a value, or one word `NAME=VALUE`.
fn variable(flag: &str, values: &[OsString]) -> Result<(OsString, Option<OsString>), String> {
    match values {
        [name, value] => named(flag, name.clone(), Some(value.clone())),
        _ => exported(flag, &values[0]),
    }
}

/// Parses a word `NAME=VALUE`, or a word `NAME`. For `NAME` alone, the value is `None`, and the variable gets
/// the value that it has in mpiexec's environment.
fn exported(flag: &str, word: &OsStr) -> Result<(OsString, Option<OsString>), String> {
    let bytes = word.as_bytes();
    match memchr(b'=', bytes) {
        Some(at) => {
            let part = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
            named(flag, part(&bytes[..at]), Some(part(&bytes[at + 1..])))
        }
        None => named(flag, word.to_owned(), None),
    }
}

fn named(
    flag: &str,
    name: OsString,
    value: Option<OsString>,
) -> Result<(OsString, Option<OsString>), String> {
    if name.is_empty() {
        return Err(format!("{flag}: the name of the variable is empty"));
    }
    Ok((name, value))
}

fn only(list: &OsStr) -> Inherit {
    let list = list.as_bytes();
    let starts = std::iter::once(0).chain(memchr_iter(b',', list).map(|comma| comma + 1));
    let ends = memchr_iter(b',', list).chain(std::iter::once(list.len()));
    let names = starts.zip(ends).map(|(start, end)| &list[start..end]);
    let names = names.filter(|name| !name.is_empty());
    Inherit::Only(names.map(|name| OsString::from_vec(name.to_vec())).collect())
}

#[cfg(test)]
mod tests;
