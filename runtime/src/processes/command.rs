//! A command that starts processes, and the hints of the standard about it (MPI-5.0 section 11.8.4).

use crate::shm::layout::MAX_SLOTS;
use crate::sys::{machine, named};
use crate::{Error, ErrorKind, ProcessErrorKind, Result};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use typepack_job::service;

/// A program to start, its arguments, and how many processes run it. See [`Communicator::spawn`].
///
/// [`Communicator::spawn`]: crate::Communicator::spawn
///
/// ```
/// use typepack::Command;
/// let mut command = Command::new("./worker").arg("--verbose").processes(4);
/// command.hint("soft", "1:4")?;
/// # Ok::<(), typepack::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Command {
    program: OsString,
    arguments: Vec<OsString>,
    processes: u64,
    directory: Option<PathBuf>,
    path: Option<OsString>,
    soft: Option<Vec<Triplet>>,
    errhandler: String,
    /// Why the command cannot start, if a hint asks for another machine.
    elsewhere: Option<String>,
}

/// Numbers `first`, `first + step`, … up to `last`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Triplet {
    first: i64,
    last: i64,
    step: i64,
}

impl Triplet {
    fn parse(text: &str) -> Option<Self> {
        let numbers: Vec<i64> =
            text.split(':').map(|part| part.trim().parse().ok()).collect::<Option<_>>()?;
        let (first, last, step) = match *numbers.as_slice() {
            [first] => (first, first, 1),
            [first, last] => (first, last, 1),
            [first, last, step] => (first, last, step),
            _ => return None,
        };
        let is_right = if last >= first { step > 0 } else { step < 0 };
        is_right.then_some(Self { first, last, step })
    }

    fn contains(self, number: i64) -> bool {
        let (low, high) = (self.first.min(self.last), self.first.max(self.last));
        (low..=high).contains(&number)
            && (i128::from(number) - i128::from(self.first)) % i128::from(self.step) == 0
    }
}

/// The names of the error handlers that communicators may have initially.
const ERRHANDLERS: [&str; 3] = ["mpi_errors_are_fatal", "mpi_errors_abort", "mpi_errors_return"];

fn wrong(detail: String) -> Error {
    Error::new(ErrorKind::Process(ProcessErrorKind::HintValue), "info", detail)
}

impl Command {
    /// Makes a command that starts one process of `program` without arguments. A name without a slash is searched for in
    /// `PATH`, as a shell does. The processes start in the working directory of the root, which makes the call, and get
    /// the environment of `mpiexec`.
    pub fn new(program: impl AsRef<OsStr>) -> Self {
        Self {
            program: program.as_ref().to_owned(),
            arguments: Vec::new(),
            processes: 1,
            directory: None,
            path: None,
            soft: None,
            errhandler: String::new(),
            elsewhere: None,
        }
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.arguments.push(argument.as_ref().to_owned());
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args(mut self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        self.arguments.extend(arguments.into_iter().map(|argument| argument.as_ref().to_owned()));
        self
    }

    /// Sets the number of processes, which is 1 otherwise.
    #[must_use]
    pub fn processes(mut self, processes: usize) -> Self {
        self.processes = processes as u64;
        self
    }

    /// Sets the working directory of the processes.
    #[must_use]
    pub fn directory(mut self, directory: impl AsRef<Path>) -> Self {
        self.directory = Some(directory.as_ref().to_owned());
        self
    }

    /// Takes a hint into account, as `MPI_Comm_spawn` does for a key of its info object: `wdir` (the working directory),
    /// `path` (directories in which to search for the program), `host`, `arch`, `file` (a file with further hints, a line
    /// `key = value` for each), `soft` (the numbers of processes that are allowed) and `mpi_initial_errhandler`. Other
    /// keys have no effect.
    ///
    /// # Errors
    /// Returns `ErrorKind::Process` if the value is not valid, or if the file cannot be read.
    pub fn hint(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.take_hint(key.as_ref(), value.as_ref(), true)
    }

    fn take_hint(&mut self, key: &[u8], value: &[u8], may_read: bool) -> Result<()> {
        let text = String::from_utf8_lossy(value);
        let os = || OsString::from_vec(value.to_vec());
        match key {
            b"wdir" => self.directory = Some(os().into()),
            b"path" => self.path = Some(os()),
            b"soft" => {
                let triplets = text.split(',').map(Triplet::parse).collect::<Option<Vec<_>>>();
                self.soft = Some(triplets.ok_or_else(|| {
                    wrong(format!(
                        "soft is \"{text}\"; it must be a list of triplets like 1:4 or 0:8:2"
                    ))
                })?);
            }
            b"mpi_initial_errhandler" => {
                let known = ERRHANDLERS.iter().find(|known| **known == text);
                let known = known.ok_or_else(|| {
                    let list = ERRHANDLERS.join(", ");
                    wrong(format!("mpi_initial_errhandler is \"{text}\"; it must be one of {list}"))
                })?;
                self.errhandler = (*known).to_owned();
            }
            b"host" => {
                let own = machine::host_name();
                let own = String::from_utf8_lossy(&own);
                if !text.split(',').any(|name| is_here(name.trim(), &own)) {
                    self.elsewhere = Some(format!(
                        "host \"{text}\" is not this machine, '{own}'; a typepack job runs on one machine"
                    ));
                }
            }
            b"arch" => {
                let own = std::env::consts::ARCH;
                if !text.trim().eq_ignore_ascii_case(own) {
                    self.elsewhere =
                        Some(format!("arch \"{text}\" is not that of this machine, {own}"));
                }
            }
            b"file" if may_read => {
                let failed = |why: String| wrong(format!("file \"{text}\": {why}"));
                let read = named::read_text(Path::new(&os()), named::TEXT_MAX);
                let read = read.map_err(|error| failed(error.to_string()))?;
                for line in read.lines().map(str::trim) {
                    if line.is_empty() || line.starts_with('#') {
                        continue;
                    }
                    let (key, value) = line.split_once('=').ok_or_else(|| {
                        failed(format!("the line '{line}' is not of the form key = value"))
                    })?;
                    self.take_hint(key.trim().as_bytes(), value.trim().as_bytes(), false)?;
                }
            }
            b"file" => return Err(wrong("file: a file of hints names another one".to_owned())),
            _ => {}
        }
        Ok(())
    }

    /// Returns the numbers of processes that are allowed, largest first.
    fn counts(&self) -> Result<Vec<u32>> {
        let too_many = || {
            let detail = format!(
                "{} processes are too many; a job has room for {MAX_SLOTS}",
                self.processes
            );
            Error::new(ErrorKind::Process(ProcessErrorKind::Spawn), "maxprocs", detail)
        };
        let Some(soft) = &self.soft else {
            return Ok(vec![u32::try_from(self.processes).map_err(|_| too_many())?]);
        };
        let most = self.processes.min(MAX_SLOTS as u64) as i64;
        let is_allowed = |number: &i64| soft.iter().any(|triplet| triplet.contains(*number));
        let counts: Vec<u32> = (0..=most).rev().filter(is_allowed).map(|n| n as u32).collect();
        if counts.is_empty() {
            let detail = format!("soft allows no number from 0 to {}", self.processes);
            return Err(Error::new(ErrorKind::Process(ProcessErrorKind::Spawn), "info", detail));
        }
        Ok(counts)
    }

    /// Returns what the launcher needs to know. `here` is the working directory of this process.
    pub(super) fn to_service(&self, here: &Path) -> Result<service::Command> {
        let spawn = ErrorKind::Process(ProcessErrorKind::Spawn);
        if let Some(why) = &self.elsewhere {
            return Err(Error::new(spawn, "info", why.clone()));
        }
        let bytes = |text: &OsStr| text.as_bytes().to_vec();
        let all = std::iter::once(&self.program).chain(&self.arguments);
        if all.clone().any(|text| text.as_bytes().contains(&0)) {
            return Err(Error::new(spawn, "command", "a name or an argument contains a NUL byte"));
        }
        let directory = self.directory.as_deref().map_or(here.to_owned(), |given| here.join(given));
        Ok(service::Command {
            program: bytes(&self.program),
            arguments: self.arguments.iter().map(|argument| bytes(argument)).collect(),
            counts: self.counts()?,
            directory: bytes(directory.as_os_str()),
            path: self.path.as_deref().map(bytes).unwrap_or_default(),
            errhandler: self.errhandler.clone().into_bytes(),
        })
    }
}

/// Returns whether `name` is a name of this machine, whose own name is `own`.
fn is_here(name: &str, own: &str) -> bool {
    let short = |name: &str| name.split('.').next().unwrap_or_default().to_ascii_lowercase();
    ["localhost", "127.0.0.1", "::1"].contains(&name)
        || name.eq_ignore_ascii_case(own)
        || name.parse::<std::net::Ipv4Addr>().is_err() && short(name) == short(own)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(processes: usize, soft: Option<&str>) -> Result<Vec<u32>> {
        let mut command = Command::new("x").processes(processes);
        soft.into_iter().try_for_each(|soft| command.hint("soft", soft))?;
        command.counts()
    }

    #[test]
    fn soft_numbers() {
        assert_eq!(counts(4, None), Ok(vec![4]));
        assert_eq!(counts(4, Some("2")), Ok(vec![2]));
        assert_eq!(counts(4, Some("1:9")), Ok(vec![4, 3, 2, 1]));
        assert_eq!(counts(9, Some("0:8:4,3, -5:1")), Ok(vec![8, 4, 3, 1, 0]));
        assert_eq!(counts(9, Some("7:1:-3")), Ok(vec![7, 4, 1]));
        let edges = format!("{}:{}", i64::MIN, i64::MAX);
        assert_eq!(counts(2, Some(&edges)), Ok(vec![2, 1, 0]));
        for wrong in ["", "x", "1:", "1:2:0", "2:1", "1:2:-1", "1:2:3:4", "1,,2"] {
            let error = counts(4, Some(wrong)).expect_err(wrong);
            assert_eq!(error.kind(), ErrorKind::Process(ProcessErrorKind::HintValue));
            assert!(error.to_string().contains(wrong), "{error}");
        }
        let none = counts(4, Some("5:9")).expect_err("no number");
        assert_eq!(none.kind(), ErrorKind::Process(ProcessErrorKind::Spawn));
    }

    #[test]
    fn other_machines_are_refused() {
        for (key, value, is_here) in [
            ("host", "localhost", true),
            ("host", "no-such-host.example.org", false),
            ("arch", std::env::consts::ARCH, true),
            ("arch", "pdp11", false),
            ("unknown", "x", true),
        ] {
            let mut command = Command::new("x");
            command.hint(key, value).expect("a hint");
            let made = command.to_service(Path::new("/here"));
            assert_eq!(made.is_ok(), is_here, "{key} {value}: {made:?}");
        }
    }

    #[test]
    fn directories_are_absolute() {
        let directory = |command: Command| {
            let made = command.to_service(Path::new("/here")).expect("a command");
            String::from_utf8(made.directory).expect("text")
        };
        assert_eq!(directory(Command::new("x")), "/here");
        assert_eq!(directory(Command::new("x").directory("sub")), "/here/sub");
        assert_eq!(directory(Command::new("x").directory("/tmp")), "/tmp");
        assert!(Command::new("a\0b").to_service(Path::new("/")).is_err());
    }
}
