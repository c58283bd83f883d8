//! What the tests of this folder share: the library under test, its hosts, and jobs.

#![allow(dead_code, unused_imports, reason = "not every test uses everything")]

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
pub use typepack_test_support::skipped::skipped;

/// Lets one test at a time run jobs: waiting ranks of MPICH spin, and would take the CPUs of another job.
pub fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the path of the library under test. cargo puts the cdylib in one of two directories, or in both. This
/// function returns the newer of the two files.
pub fn library() -> PathBuf {
    let exe = std::env::current_exe().expect("the test binary's path");
    // The path of the test binary is `target/PROFILE/deps/TEST`.
    let deps = exe.parent().expect("a directory");
    let profile = deps.parent().expect("a profile directory");
    let written = |path: &PathBuf| path.metadata().and_then(|data| data.modified()).ok();
    let name = "libtypepack_interpose.so";
    [deps.join(name), profile.join(name)]
        .into_iter()
        .filter(|path| written(path).is_some())
        .max_by_key(written)
        .expect("cargo builds the cdylib before its tests")
}

/// Returns the folder of MPICH; `None`, after a report, if it is not there.
pub fn mpich() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mpich = root.join("target/peers/mpich");
    if mpich.join("lib/libmpi_abi.so.1").exists() {
        return Some(mpich);
    }
    skipped("MPICH is not fetched: scripts/setup --tests");
    None
}

/// The time limit of a command, in seconds. It ends only a command that hangs, also on a loaded machine.
const LIMIT: u32 = 900;

/// Returns a command that is killed after [`LIMIT`], and in which no variable changes what the library does.
pub fn limited(program: &Path) -> Command {
    limited_to(LIMIT, program)
}

fn limited_to(seconds: u32, program: &Path) -> Command {
    let mut command = Command::new("timeout");
    command.args(["-k", "1", &seconds.to_string()]).arg(program).stdin(Stdio::null());
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("TYPEPACK_") {
            command.env_remove(name);
        }
    }
    for name in ["LD_PRELOAD", "LD_LIBRARY_PATH"] {
        command.env_remove(name);
    }
    command
}

pub fn run(command: &mut Command) -> Output {
    command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

/// Runs a command that [`limited`] has made until it writes `line` to standard error, and then ends it. Returns what it
/// has written to standard output and to standard error.
#[track_caller]
pub fn until(line: &str, command: &mut Command) -> [String; 2] {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("a job");
    let mut lines = BufReader::new(child.stderr.take().expect("a pipe"));
    let mut err = String::new();
    while !err.contains(line) {
        let bytes = lines.read_line(&mut err).expect("text");
        assert_ne!(bytes, 0, "the job ended without \"{line}\": {err}");
    }
    // `timeout` passes the signal on to the launcher, which ends the ranks.
    let killed = Command::new("kill").arg(child.id().to_string()).status().expect("kill");
    assert!(killed.success(), "{killed}");
    lines.read_to_string(&mut err).expect("text");
    let done = child.wait_with_output().expect("the job's end");
    assert!(!done.status.success(), "{err}");
    [String::from_utf8_lossy(&done.stdout).into_owned(), err]
}

/// Runs a command, checks that it succeeds, and returns its standard output and its standard error.
#[track_caller]
pub fn good(command: &mut Command) -> [String; 2] {
    let done = run(command);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&done.stdout), text(&done.stderr));
    assert!(done.status.success(), "{command:?}: {}\n{out}\n{err}", done.status);
    [out, err]
}

/// Calls `make`, which makes the file or folder `target`, unless this process has done so before.
pub fn once(target: &Path, make: impl FnOnce()) {
    static DONE: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    let mut done = DONE.lock().unwrap_or_else(PoisonError::into_inner);
    if !done.contains(target) {
        make();
        done.insert(target.to_owned());
    }
}

/// Compiles a C program or library of `tests/c` with a compiler of an MPI library in the folder `mpich`, once in this
/// process. Returns its path, which ends in `name`. A name stands for one source and its options.
#[track_caller]
pub fn compiled(mpich: &Path, compiler: &str, source: &str, name: &str, more: &[&str]) -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c").join(source);
    once(&target, || {
        let mut command = limited(&mpich.join("bin").join(compiler));
        command.args(["-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-Werror"]).args(more);
        good(command.arg(source).arg("-o").arg(&target).arg("-ldl"));
    });
    target
}

/// Compiles a Fortran program of `tests/f` with a compiler of an MPI library, as [`compiled`] does.
#[track_caller]
pub fn compiled_fortran(compiler: &Path, source: &str, name: &str) -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/f").join(source);
    // Modules and object files would go into the folder in which the compiler runs.
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    once(&target, || {
        let mut command = limited(compiler);
        command.args(["-O1", "-g"]).arg(&source).arg("-o").arg(&target).current_dir(folder);
        good(&mut command);
    });
    target
}

/// The variables of a rank.
pub type Variables<'a> = &'a [(&'a str, &'a str)];

/// Runs a job of `differential.c` with `pairs` pairs of types, and checks that no call showed a difference. `reports`
/// says whether the rank that reports has the library. The comparison proves something only if the library did the calls.
pub fn compared(job: &mut Command, pairs: &str, reports: bool) {
    let [out, err] = good(job);
    let wanted = format!("{pairs} pairs, ");
    assert!(out.starts_with(&wanted) && out.contains("no difference"), "{out}\n{err}");
    if reports {
        assert!(counted(&err, "types taken over") > 50, "{err}");
        assert!(counted(&err, "calls done by typepack") > 200, "{err}");
    } else {
        assert_eq!(err, "");
    }
}

/// Returns the command of a job of MPICH with one rank for each list of variables. [`LIMIT`] ends the
/// job.
pub fn job(mpich: &Path, ranks: &[Variables], words: &[&str]) -> Command {
    long_job(LIMIT, mpich, ranks, words)
}

/// Returns the command of a job as [`job`] does, with another time limit.
pub fn long_job(seconds: u32, mpich: &Path, ranks: &[Variables], words: &[&str]) -> Command {
    let mut command = limited_to(seconds, &mpich.join("bin/mpiexec"));
    for (at, variables) in ranks.iter().enumerate() {
        if at > 0 {
            command.arg(":");
        }
        command.args(["-n", "1"]);
        for (name, value) in *variables {
            command.args(["-env", name, value]);
        }
        command.args(words);
    }
    command
}

/// Returns a number of the table of `TYPEPACK_REPORT`.
#[track_caller]
pub fn counted(report: &str, what: &str) -> u64 {
    let line = report.lines().find(|line| line.contains(what));
    let line = line.unwrap_or_else(|| panic!("no \"{what}\" in: {report}"));
    line.split_whitespace().last().and_then(|number| number.parse().ok()).expect("a number")
}
