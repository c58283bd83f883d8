//! Starts the process that watches ranks which `mpiexec` has not started: `mpiexec --behind`.
//!
//! `mod.rs` calls [`start`] in the first rank, or in a process by itself. `launcher/src/behind.rs` is the other side; `messages.rs` says what they tell
//! each other. The watcher is no child of the rank, so a program that waits for all of its children does not see it.

use std::env;
use std::fs;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::messages::{ARGUMENT, Greeting, MESSAGE_MAX, parse_refusal, setup};
use super::{PMI_FD, PMI_RANK, PMI_SIZE};
use crate::error::{Error, ErrorKind};
use crate::sys::poll::{self, PollFd, PollFlags};
use crate::sys::{detach, local_socket};

/// How long a program may take that is asked whether it is typepack's `mpiexec`.
const ANSWER_TIME: Duration = Duration::from_secs(10);

/// The names of `mpiexec` in the folders of `PATH`: those of packages come first, because `mpiexec` may be another MPI's.
const NAMES: [&str; 3] = ["mpiexec.typepack", "typepack-mpiexec", "mpiexec"];

/// A watcher that runs.
#[derive(Debug)]
pub struct Watcher {
    /// The name at which it listens for ranks.
    pub name: String,
    /// If this descriptor closes before all ranks are there, the watcher ends.
    pub lifeline: OwnedFd,
}

/// Starts the watcher of the ranks with these processes.
///
/// # Errors
///
/// Returns [`ErrorKind::Mismatch`] if every `mpiexec` that this function finds is of another build,
/// [`ErrorKind::NotARank`] if it finds none or if the watcher refuses, and [`ErrorKind::System`] if the system refuses a
/// call.
pub fn start(pids: &[u32]) -> Result<Watcher, Error> {
    let own = [detach::own_file(), env::current_exe().ok()];
    let mut files: Vec<PathBuf> = own.iter().flatten().flat_map(|file| near(file)).collect();
    if let Some(list) = env::var_os("PATH") {
        files
            .extend(env::split_paths(&list).flat_map(|folder| NAMES.map(|name| folder.join(name))));
    }
    let mut tried: Vec<PathBuf> = Vec::new();
    let mut other = None;
    for file in
        files.iter().filter_map(|file| fs::canonicalize(file).ok()).filter(|file| file.is_file())
    {
        if tried.contains(&file) {
            continue;
        }
        match call(&file, pids) {
            Ok(Answer::Ours(watcher)) => return Ok(watcher),
            Ok(Answer::OtherBuild(greeting)) => {
                other.get_or_insert((file.clone(), greeting));
            }
            Ok(Answer::Stranger) => {}
            Err(error) if error.kind() == ErrorKind::System => {
                // A file that cannot be executed is no answer.
                other.get_or_insert((
                    file.clone(),
                    Greeting { hash: 0, version: format!("unknown ({error})") },
                ));
            }
            Err(error) => return Err(error),
        }
        tried.push(file);
    }
    if let Some((file, greeting)) = other {
        let own = Greeting::own();
        let detail = format!(
            "{} is typepack {} (layout {:016x}); this program was built with typepack {} (layout {:016x}); ranks that \
             mpiexec has not started need the mpiexec of the same build beside the library or in PATH",
            file.display(),
            greeting.version,
            greeting.hash,
            own.version,
            own.hash
        );
        return Err(Error::new(ErrorKind::Mismatch, detail));
    }
    Err(Error::new(
        ErrorKind::NotARank,
        "typepack's mpiexec, which watches ranks that it has not started, is neither beside the library nor beside the program \
         nor in PATH (typepack doctor says where it is)",
    ))
}

/// Returns where `mpiexec` may be if `file` is a library or a program of the same installation or build.
fn near(file: &Path) -> Vec<PathBuf> {
    let Some(folder) = file.parent() else { return Vec::new() };
    let places =
        ["mpiexec", "../mpiexec", "../bin/mpiexec", "../../bin/mpiexec", "../../../bin/mpiexec"];
    places.iter().map(|place| folder.join(place)).collect()
}

enum Answer {
    Ours(Watcher),
    OtherBuild(Greeting),
    /// The program is not typepack's.
    Stranger,
}

/// Executes `file`, and asks it to watch the processes `pids` if it is `mpiexec` of this build.
fn call(file: &Path, pids: &[u32]) -> Result<Answer, Error> {
    let failed =
        |error| Error::system(format!("cannot start {} {ARGUMENT}", file.display()), error);
    let (ours, theirs) = local_socket::pair().map_err(failed)?;
    let mut command = Command::new(file);
    command.arg(ARGUMENT).stdin(theirs).stdout(Stdio::null()).stderr(Stdio::null());
    // The processes that the ranks start later have the environment of mpiexec. They do not belong to the other launcher.
    for name in [PMI_FD, PMI_RANK, PMI_SIZE] {
        command.env_remove(name);
    }
    let mut child = command.spawn().map_err(failed)?;
    // The command owns the other end until here.
    drop(command);
    let mut fds = [PollFd::from_borrowed_fd(ours.as_fd(), PollFlags::IN)];
    let until = Instant::now() + ANSWER_TIME;
    // A signal handler of the program may end a wait early.
    while fds[0].revents().is_empty() && Instant::now() < until {
        let left = until.saturating_duration_since(Instant::now());
        poll::wait(&mut fds, Some(left)).map_err(failed)?;
    }
    let mut buffer = [0; MESSAGE_MAX];
    let greeting = if fds[0].revents().is_empty() {
        let _ended = child.kill();
        None
    } else {
        let (len, _) = local_socket::receive(ours.as_fd(), &mut buffer).map_err(failed)?;
        Greeting::parse(&buffer[..len])
    };
    // The child has forked the watcher, and has ended. The program may have taken its exit code itself.
    let _reaped = child.wait();
    let Some(greeting) = greeting else { return Ok(Answer::Stranger) };
    if greeting != Greeting::own() {
        return Ok(Answer::OtherBuild(greeting));
    }
    // The program may have closed them.
    let null = OwnedFd::from(fs::File::open("/dev/null").map_err(failed)?);
    let copies = [
        std::io::stdout().as_fd().try_clone_to_owned(),
        std::io::stderr().as_fd().try_clone_to_owned(),
    ];
    let outputs = copies.each_ref().map(|copy| copy.as_ref().unwrap_or(&null).as_fd());
    for (number, message) in setup(pids).enumerate() {
        let with = if number == 0 { &outputs[..] } else { &[] };
        local_socket::send(ours.as_fd(), &message, with).map_err(failed)?;
    }
    let (len, _) = local_socket::receive(ours.as_fd(), &mut buffer).map_err(failed)?;
    let message = &buffer[..len];
    if let Some(reason) = parse_refusal(message) {
        return Err(Error::new(ErrorKind::NotARank, format!("mpiexec {ARGUMENT}: {reason}")));
    }
    match std::str::from_utf8(message) {
        Ok(name) if !name.is_empty() => {
            Ok(Answer::Ours(Watcher { name: name.to_owned(), lifeline: ours }))
        }
        _ => Err(Error::new(ErrorKind::NotARank, format!("mpiexec {ARGUMENT} has ended early"))),
    }
}
