//! `typepack run`: starts a command with `libtypepack_interpose.so` in front of the MPI library of a cluster.
//!
//! The command is usually a launcher (`mpiexec`, `srun`) with its arguments. This file finds the library, sets
//! `LD_PRELOAD`, and becomes the command. Before that, it looks at the files that the words of the command name, and
//! says what keeps the library from working: an ELF file that needs another MPI library, is linked statically, or
//! changes the user (`typepack_job::program` reads the files). The command runs in every case, because a launcher may
//! start programs
//! that no word names.

use crate::agree::{FAILURE, USAGE, say};
use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use typepack_job::program::{Program, read};

/// The arguments of `typepack run`.
#[derive(clap::Args, Debug)]
pub struct Options {
    /// All ranks of the job are started by this command: take over collective calls too
    ///
    /// Sets TYPEPACK_INTERPOSE=all. The ranks wait for each other at the end of MPI_Init, so do not use
    /// this option if a rank runs without the library.
    #[arg(long)]
    pub all: bool,
    /// Print a table about what typepack did when rank 0 finalizes
    ///
    /// Sets TYPEPACK_REPORT=1.
    #[arg(long)]
    pub report: bool,
    /// The library, if it is not installed beside this program
    #[arg(long, value_name = "FILE")]
    pub library: Option<PathBuf>,
    /// The command and its arguments, such as mpiexec -n 4 ./app
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "COMMAND"
    )]
    pub command: Vec<OsString>,
}

/// The name of the library.
const LIBRARY: &str = "libtypepack_interpose.so";

/// The name of the library that `typepack shim` compiles, and that is preloaded in place of the other one.
pub const SHIM: &str = "libtypepack_shim.so";

/// The longest static program that is searched for `MPI_Init`, in bytes.
const LONGEST: u64 = 1 << 30;

/// Runs the command in place of this program. Returns the exit code if that is not possible.
pub fn run(options: &Options) -> u8 {
    let library = match library("run", options.library.as_deref()) {
        Ok(library) => library,
        Err(line) => {
            say(line);
            return USAGE;
        }
    };
    let Some((program, arguments)) = options.command.split_first() else { return USAGE };
    let is_shim = library.file_name().is_some_and(|name| name == SHIM);
    for line in reasons(&options.command, is_shim) {
        say(line);
    }
    let mut command = Command::new(program);
    command.args(arguments).env("LD_PRELOAD", preload(&library, env::var_os("LD_PRELOAD")));
    if options.all {
        command.env("TYPEPACK_INTERPOSE", "all");
    }
    if options.report {
        command.env("TYPEPACK_REPORT", "1");
    }
    // `exec` returns only if it fails.
    let error = command.exec();
    say(format_args!("run: {}: {error}", program.display()));
    FAILURE
}

/// Returns the absolute path of the library: `named`, or the one that is installed beside this program. `command` is
/// the command of this program that needs the library.
///
/// # Errors
/// Returns a one-line message if the library cannot be preloaded from there.
pub fn library(command: &str, named: Option<&Path>) -> Result<PathBuf, String> {
    let found = match named {
        Some(path) => path.to_owned(),
        None => {
            let exe = env::current_exe()
                .map_err(|e| format!("{command}: the path of this program: {e}"))?;
            let folder = exe.parent().unwrap_or(Path::new("/")).to_owned();
            // Installed, and in a build tree.
            let places = [folder.join("../lib").join(LIBRARY), folder.join(LIBRARY)];
            places.into_iter().find(|path| path.exists()).ok_or_else(|| {
                format!("{command}: {LIBRARY} is not installed with this program; name it with --library")
            })?
        }
    };
    let path = found
        .canonicalize()
        .map_err(|e| format!("{command}: --library {}: {e}", found.display()))?;
    // The dynamic linker separates the names in LD_PRELOAD at spaces and colons.
    let bytes = path.as_os_str().as_encoded_bytes();
    match bytes.iter().find(|byte| b" :".contains(byte)) {
        Some(b' ') => {
            Err(format!("{command}: {}: LD_PRELOAD allows no spaces in a path", path.display()))
        }
        Some(_) => {
            Err(format!("{command}: {}: LD_PRELOAD allows no colons in a path", path.display()))
        }
        None => Ok(path),
    }
}

/// Returns the value of `LD_PRELOAD` with the library before all others. The library calls the next function in line by
/// the name that the program called, so other tools still see the calls. Most tools call the functions whose names
/// begin with `PMPI_`, which the library does not take over.
fn preload(library: &Path, before: Option<OsString>) -> OsString {
    let mut value = library.as_os_str().to_owned();
    if let Some(before) = before.filter(|before| !before.is_empty()) {
        value.push(" ");
        value.push(before);
    }
    value
}

/// Returns one line for each file among the words of a command with which the library cannot work, which may be a shim.
fn reasons(command: &[OsString], is_shim: bool) -> Vec<String> {
    let mut lines = Vec::new();
    for (at, word) in command.iter().enumerate() {
        let Some(path) = executable(word, at == 0) else { continue };
        if let Some(reason) = reason(&path, is_shim) {
            let line = format!("run: {}: {reason}", word.display());
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
    }
    lines
}

/// Returns the executable file that a word names. The first word of a command is looked for in `PATH`, as the system
/// does; so is no other word, because most of them are no commands.
pub fn executable(word: &OsStr, first: bool) -> Option<PathBuf> {
    let is_executable = |path: &Path| {
        path.metadata().is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
    };
    let path = Path::new(word);
    let is_path = word.as_encoded_bytes().contains(&b'/');
    if !is_path && first {
        let folders = env::var_os("PATH")?;
        return env::split_paths(&folders).map(|f| f.join(path)).find(|path| is_executable(path));
    }
    (is_path && is_executable(path)).then(|| path.to_owned())
}

/// Returns why the library does not work in a program; `None` if nothing is known against it.
fn reason(path: &Path, is_shim: bool) -> Option<String> {
    let mode = path.metadata().ok()?.permissions().mode();
    if mode & 0o6000 != 0 {
        return Some(
            "the program changes its user or group, so the system ignores LD_PRELOAD".into(),
        );
    }
    if is_own_launcher(path) {
        return Some(
            "this is typepack's own launcher, whose library has the kernels itself".into(),
        );
    }
    let program = read(path)?;
    if program == Program::Static {
        // A static launcher starts other programs; only a static MPI program is of interest.
        return is_mpi(path).then(|| {
            "the program is linked statically, so no library can be loaded before MPI".into()
        });
    }
    if program.has_the_standard_abi() {
        return is_shim.then(|| {
            "the program is linked with a library that has the MPI 5 standard ABI, so it needs no shim".into()
        });
    }
    if is_shim {
        return None;
    }
    let (name, owner) = program.other_mpi(false)?;
    Some(format!(
        "the program is linked with {name} ({owner}), which lacks the MPI 5 standard ABI; link it with libmpi_abi.so.1 \
         (MPICH: mpicc_abi), or make a shim with `typepack shim`"
    ))
}

/// Returns whether a program that is linked statically defines `MPI_Init`.
fn is_mpi(path: &Path) -> bool {
    let is_read = path.metadata().is_ok_and(|data| data.len() <= LONGEST);
    let bytes = if is_read { std::fs::read(path).unwrap_or_default() } else { Vec::new() };
    // A name in the table of symbols is surrounded by zeros.
    memchr::memmem::find(&bytes, b"\0MPI_Init\0").is_some()
}

/// Returns whether a file is the `mpiexec` that is installed with this program.
fn is_own_launcher(path: &Path) -> bool {
    let own = env::current_exe().ok().and_then(|exe| Some(exe.parent()?.join("mpiexec")));
    let own = own.and_then(|own| own.canonicalize().ok());
    own.is_some() && own == path.canonicalize().ok()
}

#[cfg(test)]
mod tests {
    use super::{library, preload};
    use std::path::Path;

    #[test]
    fn the_library_comes_before_other_tools() {
        let path = Path::new("/a/lib.so");
        assert_eq!(preload(path, None), "/a/lib.so");
        assert_eq!(preload(path, Some("".into())), "/a/lib.so");
        assert_eq!(preload(path, Some("/tool.so".into())), "/a/lib.so /tool.so");
    }

    #[test]
    fn paths_that_the_linker_would_cut_are_refused() {
        let folder = std::env::temp_dir().join(format!("typepack run {}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("library.so");
        std::fs::write(&file, "").unwrap();
        assert!(library("run", Some(&file)).unwrap_err().contains("no spaces"));
        assert!(
            library("run", Some(Path::new("/no/such"))).unwrap_err().contains("--library /no/such")
        );
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
