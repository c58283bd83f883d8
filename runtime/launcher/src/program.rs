//! Finds the file that a program's name stands for, before mpiexec starts any process.
//!
//! The names come from `args/`, and `start.rs` uses the resulting paths. The rules are those of `execvp`: a
//! name with a slash is a path, and any other name is looked up in `PATH`.

use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::{env, fs, io};
use typepack_job::program::Program;

/// Why a program cannot be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unusable {
    /// A one-line message that begins with `program: `.
    pub message: String,
    /// The exit code, as shells use it: 127 if there is no such file, 126 if the file cannot be executed.
    pub exit_code: u8,
}

/// Returns the path of the file that `name` stands for. A name without a slash is looked up in the
/// directories of `search` (the value of `PATH`). Relative paths are relative to `directory`, in which the
/// program will run. If `directory` is absolute, the result is absolute.
///
/// # Errors
///
/// Returns [`Unusable`] if no suitable file can be executed. The message names the program.
pub fn find(
    name: &OsStr,
    search: Option<OsString>,
    directory: Option<&Path>,
) -> Result<PathBuf, Unusable> {
    // If `path` is absolute, `join` ignores `from` and returns `path`.
    let seen = |path: &Path| directory.map_or_else(|| path.to_owned(), |from| from.join(path));
    let shown = name.to_string_lossy();
    let missing = || Unusable { message: format!("program: '{shown}' not found"), exit_code: 127 };
    let here = || {
        let path = Path::new(".").join(name);
        let is_here = check(&seen(&path)).is_ok();
        if is_here { format!("; did you mean '{}'?", path.display()) } else { String::new() }
    };
    if memchr::memchr(b'/', name.as_encoded_bytes()).is_some() {
        let path = seen(Path::new(name));
        return match check(&path) {
            Ok(()) => Ok(path),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(missing()),
            Err(error) => Err(refused(&shown, &error)),
        };
    }
    // If PATH is not set, use the same directories as shells do.
    let search = search.unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
    let mut first_refusal = None;
    for folder in env::split_paths(&search) {
        // An empty entry of PATH stands for the working directory.
        let folder = if folder.as_os_str().is_empty() { PathBuf::from(".") } else { folder };
        let path = seen(&folder.join(name));
        match check(&path) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                first_refusal.get_or_insert(error);
            }
            Err(_) => {}
        }
    }
    Err(match first_refusal {
        Some(error) => refused(&shown, &error),
        None => {
            let Unusable { message, exit_code } = missing();
            Unusable { message: message + &here(), exit_code }
        }
    })
}

/// Returns why a program cannot be one of several ranks: it is linked with an MPI library that knows nothing of this
/// launcher, so each process would be rank 0 of a job of its own. `name` is the name that the user gave, and `has_mpich`
/// says whether typepack's library with MPICH's ABI is there, which takes the place of MPICH's.
pub fn foreign(name: &OsStr, linked: Option<&Program>, has_mpich: bool) -> Option<Unusable> {
    let (library, owner) = linked?.other_mpi(has_mpich)?;
    let shown = name.to_string_lossy();
    let message = format!(
        "program: '{shown}' is linked with {library} ({owner}), so each process would be rank 0 of 1; compile it with \
         typepack's mpicc, or start it with the mpiexec of that MPI (typepack doctor says what is mixed)"
    );
    Some(Unusable { message, exit_code: 126 })
}

fn refused(shown: &str, error: &io::Error) -> Unusable {
    Unusable { message: format!("program: '{shown}' cannot be run: {error}"), exit_code: 126 }
}

/// Checks that `path` is a file that at least one user may execute. Whether this user may execute it is not
/// known until `execve` is called.
fn check(path: &Path) -> io::Result<()> {
    let meta = fs::metadata(path)?;
    if meta.is_dir() {
        return Err(io::Error::from(io::ErrorKind::IsADirectory));
    }
    if meta.permissions().mode() & 0o111 == 0 {
        return Err(io::Error::from(io::ErrorKind::PermissionDenied));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_searched_for() {
        let path =
            find(OsStr::new("sh"), Some("/nowhere::/bin".into()), None).expect("there is a shell");
        assert_eq!(path, Path::new("/bin/sh"));
        assert!(find(OsStr::new("sh"), None, None).is_ok());
    }

    #[test]
    fn a_path_is_taken_as_it_is() {
        assert_eq!(find(OsStr::new("/bin/sh"), None, None).as_deref(), Ok(Path::new("/bin/sh")));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let error = find(OsStr::new("no-such-thing"), Some("/bin".into()), None)
            .expect_err("a missing program is an error");
        assert_eq!(
            (error.message.as_str(), error.exit_code),
            ("program: 'no-such-thing' not found", 127)
        );
        let error =
            find(OsStr::new("./no-such"), None, None).expect_err("a missing program is an error");
        assert_eq!(error.exit_code, 127);
        let error = find(OsStr::new("/etc/passwd"), None, None)
            .expect_err("a file that is not executable is an error");
        assert_eq!(error.exit_code, 126);
        let error = find(OsStr::new("/etc"), None, None).expect_err("a directory is not a program");
        assert_eq!(error.exit_code, 126);
        let error = find(OsStr::new("passwd"), Some("/etc".into()), None)
            .expect_err("a file that is not executable is an error");
        assert_eq!(error.exit_code, 126);
    }

    #[test]
    fn paths_are_seen_from_where_the_program_runs() {
        let bin = Some(Path::new("/bin"));
        assert_eq!(find(OsStr::new("./sh"), None, bin).as_deref(), Ok(Path::new("/bin/./sh")));
        let relative = find(OsStr::new("sh"), Some("bin".into()), Some(Path::new("/")));
        assert_eq!(relative.as_deref(), Ok(Path::new("/bin/sh")));
        assert_eq!(find(OsStr::new("/bin/sh"), None, bin).as_deref(), Ok(Path::new("/bin/sh")));
    }
}
