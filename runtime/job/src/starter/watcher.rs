//! Starts the process that watches ranks which `mpiexec` has not started: `mpiexec --behind`.
//!
//! `mod.rs` calls [`start`] in the first rank, or in a process by itself. `launcher/src/behind.rs` is the other side; `messages.rs` says what they tell
//! each other. The watcher is no child of the rank, so a program that waits for all of its children does not see it.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::messages::{ARGUMENT, Greeting, MESSAGE_MAX, Process, parse_refusal, setup};
use crate::error::{Error, ErrorKind};
use crate::sys::helper::{self, Helper};
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

/// The beginnings of the names of variables by which launchers tell a process which of their ranks it is.
const LAUNCHERS_VARIABLES: [&str; 3] = ["PMI_", "PMIX_", "HYDI_"];

/// Starts the watcher of the ranks with these processes.
///
/// # Errors
///
/// Returns [`ErrorKind::Mismatch`] if every `mpiexec` that this function finds is of another build,
/// [`ErrorKind::NotARank`] if it finds none, if the watcher does not answer in time, or if it refuses, and
/// [`ErrorKind::System`] or [`ErrorKind::NoMemory`] if the system refuses a call.
pub fn start(ranks: &[Process]) -> Result<Watcher, Error> {
    let library = detach::own_library();
    let owner = library.as_deref().and_then(helper::owner);
    let mut tried: Vec<PathBuf> = Vec::new();
    // Why the first file is not the watcher that could have been it.
    let mut problem = None;
    for file in places(library.as_deref()).iter().filter_map(|file| fs::canonicalize(file).ok()) {
        if !file.is_file() || tried.contains(&file) {
            continue;
        }
        let trouble = if helper::is_trusted(&file, owner) {
            match call(&file, ranks)? {
                Answer::Ours(watcher) => return Ok(watcher),
                Answer::Stranger => None,
                Answer::OtherBuild(greeting) => Some(other_build(&file, &greeting)),
                Answer::Silent => Some(silent(&file, "does not say who it is")),
                Answer::NotStarted(error) => Some(not_started(&file, error)),
            }
        } else {
            Some(Error::new(
                ErrorKind::NotARank,
                format!(
                    "{} is not executed to watch this job, because another user owns it or its folder, or can write to them",
                    file.display()
                ),
            ))
        };
        problem = problem.or(trouble);
        tried.push(file);
    }
    Err(problem.unwrap_or_else(|| {
        Error::new(
            ErrorKind::NotARank,
            "mpiexec, which watches ranks that it has not started, is neither beside the library nor beside the program \
             nor in PATH (typepack doctor says where it is)",
        )
    }))
}

/// Returns where `mpiexec` may be, the likely places first. `library` is the file of the library, if the program does not
/// contain it.
fn places(library: Option<&Path>) -> Vec<PathBuf> {
    let mut files = library.map_or_else(Vec::new, near_library);
    // A stranger may have chosen the program and the variables.
    if helper::has_more_rights() {
        return files;
    }
    files.extend(env::current_exe().iter().flat_map(|file| near_program(file)));
    if let Some(list) = env::var_os("PATH") {
        let folders = env::split_paths(&list).filter(|folder| folder.is_absolute());
        files.extend(folders.flat_map(|folder| NAMES.map(|name| folder.join(name))));
    }
    files
}

/// Returns where `mpiexec` may be in the installation or the build of a library: in a build, beside it; in packages, in a folder
/// `bin` beside that of the library, which may have folders of its own there.
fn near_library(file: &Path) -> Vec<PathBuf> {
    let Some(folder) = file.parent() else { return Vec::new() };
    let places = ["mpiexec", "../bin/mpiexec", "../../bin/mpiexec", "../../../bin/mpiexec"];
    places.iter().map(|place| folder.join(place)).collect()
}

/// Returns where `mpiexec` may be if `file` is a program that contains the library: beside it; for examples and tests in a
/// build of Cargo, in the folder of the build.
fn near_program(file: &Path) -> Vec<PathBuf> {
    let Some(folder) = file.parent() else { return Vec::new() };
    let mut places = vec![folder.join("mpiexec")];
    let is_inner = folder.file_name().is_some_and(|name| name == "examples" || name == "deps");
    if let Some(build) =
        folder.parent().filter(|build| is_inner && build.join(".cargo-lock").exists())
    {
        places.push(build.join("mpiexec"));
    }
    places
}

enum Answer {
    Ours(Watcher),
    OtherBuild(Greeting),
    /// The program is not typepack's.
    Stranger,
    /// The program has said nothing for [`ANSWER_TIME`].
    Silent,
    /// The system does not execute the file.
    NotStarted(io::Error),
}

fn other_build(file: &Path, greeting: &Greeting) -> Error {
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
    Error::new(ErrorKind::Mismatch, detail)
}

fn silent(file: &Path, what: &str) -> Error {
    let seconds = ANSWER_TIME.as_secs();
    let detail = format!("{} {ARGUMENT} runs, but it {what} within {seconds} s", file.display());
    Error::new(ErrorKind::NotARank, detail)
}

fn not_started(file: &Path, error: io::Error) -> Error {
    Error::system(format!("cannot start {} {ARGUMENT}", file.display()), error)
}

/// Executes `file`, and asks it to watch the processes `ranks` if it is `mpiexec` of this build.
fn call(file: &Path, ranks: &[Process]) -> Result<Answer, Error> {
    let failed =
        |error| Error::system(format!("cannot talk to {} {ARGUMENT}", file.display()), error);
    let refused = |detail| Err(Error::new(ErrorKind::NotARank, detail));
    // The processes that the ranks start later have the environment of mpiexec. They do not belong to the other launcher.
    let is_launchers = |name: &OsString| {
        LAUNCHERS_VARIABLES
            .iter()
            .any(|start| name.as_encoded_bytes().starts_with(start.as_bytes()))
    };
    let removed: Vec<OsString> =
        env::vars_os().map(|(name, _)| name).filter(is_launchers).collect();
    let (mut helper, ours) = match Helper::start(file, OsStr::new(ARGUMENT), &removed) {
        Ok(started) => started,
        Err(error) => return Ok(Answer::NotStarted(error)),
    };
    let until = Instant::now() + ANSWER_TIME;
    let mut buffer = [0; MESSAGE_MAX];
    // An error drops the helper, which ends it.
    if !helper::wait(ours.as_fd(), until).map_err(failed)? {
        return Ok(Answer::Silent);
    }
    let (len, _) = match local_socket::receive(ours.as_fd(), &mut buffer) {
        Err(error) if error.kind() == io::ErrorKind::InvalidData => return Ok(Answer::Stranger),
        received => received.map_err(failed)?,
    };
    let Some(greeting) = Greeting::parse(&buffer[..len]) else { return Ok(Answer::Stranger) };
    if greeting != Greeting::own() {
        return Ok(Answer::OtherBuild(greeting));
    }
    // The child has forked the watcher, which has sent the greeting, and ends.
    helper.leave();
    drop(helper);
    let outputs = helper::outputs().map_err(failed)?;
    for (number, message) in setup(ranks).enumerate() {
        let outputs = outputs.each_ref().map(AsFd::as_fd);
        let with = if number == 0 { &outputs[..] } else { &[] };
        // If the watcher has refused the ranks, it has said why, and listens no longer.
        match local_socket::send(ours.as_fd(), &message, with) {
            Err(error) if is_gone(&error) => break,
            sent => sent.map_err(failed)?,
        }
    }
    if !helper::wait(ours.as_fd(), until).map_err(failed)? {
        return Err(silent(file, "does not watch the ranks"));
    }
    let (len, _) = local_socket::receive(ours.as_fd(), &mut buffer).map_err(failed)?;
    let message = &buffer[..len];
    if let Some(reason) = parse_refusal(message) {
        return refused(format!("mpiexec {ARGUMENT}: {reason}"));
    }
    match std::str::from_utf8(message) {
        Ok(name) if !name.is_empty() => {
            Ok(Answer::Ours(Watcher { name: name.to_owned(), lifeline: ours }))
        }
        _ => refused(format!("{} {ARGUMENT} has ended early", file.display())),
    }
}

/// Returns true if the error says that the other end of a connection is closed.
fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    /// A program that stands in `/tmp/job` must not execute `/tmp/mpiexec`.
    #[test]
    fn no_file_above_a_program_is_executed() {
        assert_eq!(near_program(Path::new("/tmp/job/prog")), [Path::new("/tmp/job/mpiexec")]);
        let up: Vec<PathBuf> = near_library(Path::new("/usr/lib/libmpi_abi.so"));
        assert!(up.contains(&"/usr/lib/../bin/mpiexec".into()), "{up:?}");
        assert!(!up.contains(&"/usr/lib/../mpiexec".into()), "{up:?}");
    }

    /// Asks a script that has these lines.
    fn ask(name: &str, lines: &str) -> Result<Answer, Error> {
        let folder = env::temp_dir().join(format!("watcher-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let file = folder.join("mpiexec");
        fs::write(
            &file,
            format!(
                "#!/usr/bin/env python3\nimport os, socket\ns = socket.socket(fileno=0)\n{lines}\n"
            ),
        )
        .expect("a file");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o700)).expect("our file");
        let answer = call(&file, &[Process { pid: 1, started: 0 }]);
        fs::remove_dir_all(&folder).expect("our folder");
        answer
    }

    #[test]
    fn an_mpiexec_of_another_build_and_strangers_are_told_apart() {
        let other = ask("other", "s.send(b'typepack' + bytes(8) + b'0.0.1')");
        match other.expect("an answer") {
            Answer::OtherBuild(greeting) => {
                let error = other_build(Path::new("/x/mpiexec"), &greeting);
                assert_eq!(error.kind(), ErrorKind::Mismatch);
                assert!(error.to_string().contains("/x/mpiexec is typepack 0.0.1"), "{error}");
            }
            _ => panic!("another build"),
        }
        for (name, lines) in [
            ("mute", "pass"),
            ("odd", "s.send(b'usage: mpiexec')"),
            ("long", "s.send(bytes(5000))"),
        ] {
            assert!(matches!(ask(name, lines), Ok(Answer::Stranger)), "{name}");
        }
    }

    #[test]
    fn reasons_of_the_watcher_reach_the_rank() {
        let own = Greeting::own();
        let greet = format!(
            "s.send(b'typepack' + ({}).to_bytes(8, 'little') + b'{}')\n",
            own.hash, own.version
        );
        let refusal = ask("refusal", &format!("{greet}s.send(b'!no descriptors')"));
        let text = refusal.err().expect("refused").to_string();
        assert_eq!(text, "mpiexec --behind: no descriptors");
        let early = ask("early", &greet).err().expect("refused").to_string();
        assert!(early.ends_with("mpiexec --behind has ended early"), "{early}");
    }
}
