//! Parses the command line of `mpiexec`.
//!
//! This is the first step of `main.rs`; afterwards `program.rs` finds the programs. `options.rs` has the
//! table of options. `places.rs` reads the values of the options about cores, `hosts.rs` checks the names of
//! machines, and `words.rs` reads the file of `-configfile`.
//! The parser is written by hand for two reasons: everything after a program's name belongs to the program,
//! and MPI's options have one dash and several letters (MPI-5.0 section 11.5).

mod hosts;
pub mod options;
mod places;
mod words;

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::num::IntErrorKind;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use memchr::{memchr, memchr_iter};
use typepack_job::shm::layout::MAX_RANKS;
use typepack_job::shm::topology::Level;
use typepack_job::sys::named::{TEXT_MAX, read_text};

use options::Id;
pub use places::{Bind, Map};

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
    /// Name of the error handler that communicators have initially, if it differs from that of the job.
    pub errhandler: Option<&'static str>,
}

impl App {
    /// Returns a program without a name and without ranks.
    pub fn none() -> Self {
        Self {
            ranks: 0,
            program: OsString::new(),
            arguments: Vec::new(),
            directory: None,
            path: None,
            environment: Environment::default(),
            errhandler: None,
        }
    }
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
    /// Number of cores (or hardware threads) to which each rank is bound, if ranks are bound to these.
    pub width: usize,
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
    /// Time between SIGTERM and SIGKILL, if the command line gives one.
    pub kill_after: Option<Duration>,
    /// True if the other ranks go on after a rank has failed.
    pub goes_on: bool,
    /// The options without effect that mpiexec names in one line, each once.
    pub ignored: Vec<String>,
    /// True if mpiexec does not print that line.
    pub quiet: bool,
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

/// The names of the error handlers that communicators may have initially (MPI-5.0 section 9.3).
pub const ERRHANDLERS: [&str; 3] =
    ["mpi_errors_are_fatal", "mpi_errors_abort", "mpi_errors_return"];

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
    Run(Box<Job>),
}

/// Input of the parser that is not on the command line.
#[derive(Clone, Copy, Debug)]
pub struct Surroundings<'a> {
    /// Value of the environment variable `TYPEPACK_BIND`.
    pub bind: Option<&'a str>,
    /// Value of the environment variable `MPIEXEC_TIMEOUT`.
    pub timeout: Option<&'a str>,
    /// Name of this machine.
    pub host: &'a str,
    /// Returns the number of parts of the machine at a level, as far as this process may use them. Without a level,
    /// returns the number of ranks of a program for which the command line gives no number.
    pub parts: fn(Option<Level>) -> usize,
}

/// The state of the parser: what it has read about the job so far.
struct Reading<'a> {
    surroundings: Surroundings<'a>,
    bind: Option<Bind>,
    timeout: Option<Option<Duration>>,
    /// Number of ranks on this machine, if an option such as `-ppn` gives it.
    per_node: Option<usize>,
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
        per_node: None,
        job: Job {
            apps: Vec::new(),
            label: false,
            bind: Bind::To(Level::Core),
            map: Map::Blocks,
            width: 1,
            report_bindings: false,
            environment: Environment::default(),
            universe: None,
            errhandler: None,
            files: [None, None],
            exit_codes: false,
            timeout: None,
            kill_after: None,
            goes_on: false,
            ignored: Vec::new(),
            quiet: false,
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
            Next::End => return reading.finish().map(|job| Request::Run(job.into())),
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
                return Err("program: missing after the options (try mpiexec --help)".into());
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
            let (entry, joined) =
                options::find(text).ok_or_else(|| match options::nearest(text) {
                    Some(name) => {
                        format!("{text}: unknown option; did you mean {name}? (try mpiexec --help)")
                    }
                    None => format!("{text}: unknown option (try mpiexec --help)"),
                })?;
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
                let is_variable = matches!(entry.id, Id::Env | Id::Genv);
                if is_variable && memchr(b'=', values[0].as_bytes()).is_some() {
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
        // The number 0 stands for a number that `finish` decides.
        let ranks = section.ranks.unwrap_or(0);
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
        let app = App { ranks, program, arguments, directory, path, environment, ..App::none() };
        self.job.apps.push(app);
        self.check_ranks()?;
        Ok(next)
    }

    fn check_ranks(&self) -> Result<(), String> {
        match self.job.ranks() {
            ..=MAX_RANKS => Ok(()),
            all => Err(format!("-n: {all} ranks are too many (at most {MAX_RANKS})")),
        }
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
                let known = ERRHANDLERS;
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
            Id::NoCleanup => job.goes_on = true,
            Id::Bind => {
                let (bind, width, ignored) = Bind::parse(flag, &word)?;
                self.bind = Some(bind);
                job.width = width.unwrap_or(job.width);
                ignored.iter().for_each(|modifier| self.ignore(format!("{flag} :{modifier}")));
            }
            Id::BindAs => {
                let what = flag.rsplit('-').next().unwrap_or_default();
                self.bind = Some(Bind::parse(flag, what)?.0);
            }
            Id::Map => {
                let (map, width, ignored) = Map::parse(flag, &word)?;
                job.map = map;
                job.width = width.unwrap_or(job.width);
                ignored.iter().for_each(|modifier| self.ignore(format!("{flag} :{modifier}")));
            }
            Id::ReportBindings => job.report_bindings = true,
            Id::PerNode => self.per_node = Some(rank_count(flag, &word)?),
            Id::Launcher if word == "fork" => {}
            Id::Launcher => self.ignore(format!("{flag} {word}")),
            Id::Quiet => job.quiet = true,
            // A setting of Open MPI is named with its own name.
            Id::Ignored if values.len() == 2 => self.ignore(format!("{flag} {word}")),
            Id::Ignored => self.ignore(flag.to_owned()),
            Id::IgnoredWord => {}
            // `section` has already handled these options.
            Id::ConfigFile | Id::Help | Id::Version | Id::Info => {}
        }
        Ok(())
    }

    /// Notes an option without effect.
    fn ignore(&mut self, option: String) {
        if !self.job.ignored.contains(&option) {
            self.job.ignored.push(option);
        }
    }

    /// Returns the job. Settings that are not on the command line come from the environment or have default
    /// values.
    fn finish(mut self) -> Result<Job, String> {
        self.job.bind = match (self.bind.take(), self.surroundings.bind) {
            (Some(bind), _) => bind,
            (None, Some(value)) => {
                let (bind, width, _) = Bind::parse("TYPEPACK_BIND", value)?;
                // A number of cores on the command line is not the default.
                self.job.width = width.filter(|_| self.job.width == 1).unwrap_or(self.job.width);
                bind
            }
            (None, None) => Bind::To(Level::Core),
        };
        match &mut self.job.apps[..] {
            [app] if app.ranks == 0 => {
                let parts = self.surroundings.parts;
                app.ranks = match (self.per_node, self.job.map) {
                    (_, Map::PerPart { level, ranks }) => {
                        ranks * level.map_or(1, |at| parts(Some(at)))
                    }
                    (Some(ranks), _) => ranks,
                    (None, _) => parts(None),
                }
                .max(1);
            }
            apps if apps.iter().any(|app| app.ranks == 0) => return Err(NO_RANKS.into()),
            _ => {}
        }
        self.check_ranks()?;
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

const NO_RANKS: &str =
    "-n: the number of ranks is missing; each of several programs needs it (try mpiexec --help)";

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

/// Parses a time limit in seconds. Zero means that there is no limit.
fn seconds(what: &str, value: &str) -> Result<Option<Duration>, String> {
    let number = value.trim().parse::<f64>().ok().filter(|number| *number >= 0.0);
    let number = number.ok_or_else(|| {
        format!("{what}: '{value}' is not a number of seconds; it must be 0 (no limit) or more")
    })?;
    if number == 0.0 {
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
