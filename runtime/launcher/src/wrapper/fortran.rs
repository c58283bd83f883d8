//! The Fortran modules for a compiler, which are made once and kept in the user's cache.
//!
//! A module file (`.mod`) can only be read by the compiler that has written it, often only by the same version. So the
//! directory has a name made from what the compiler says about its version, and from the sources of the modules.

use super::prefix::Places;
use std::ffi::OsString;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The sources, in the order in which they are compiled.
const SOURCES: [&str; 2] = ["mpi_f08.f90", "mpi.f90"];

/// The beginnings of options that change the kind of INTEGER or REAL.
const KINDS: [&str; 8] = [
    "-fdefault-integer-",
    "-fdefault-real-",
    "-fdefault-double-",
    "-finteger-4-integer-",
    "-freal-",
    "-i8",
    "-r8",
    "-r16",
];

/// Refuses options that change the kind of INTEGER or REAL.
///
/// # Errors
///
/// Returns a one-line message about the first such option.
pub fn refuse(arguments: &[OsString]) -> Result<(), String> {
    let text = |argument: &OsString| argument.to_str().unwrap_or_default().to_owned();
    match arguments.iter().map(text).find(|text| KINDS.iter().any(|kind| text.starts_with(kind))) {
        None => Ok(()),
        Some(option) => Err(format!(
            "{option}: the MPI library has the default kinds of INTEGER and REAL; declare the kinds in the program"
        )),
    }
}

/// Finds the modules for `compiler`, or makes them.
///
/// # Errors
///
/// Returns a message if the compiler cannot be run or refuses a module, or if there is no place for the modules.
pub fn modules(compiler: &[OsString], places: &mut Places) -> Result<(), String> {
    // Options may also be part of the compiler's name (`-fc="gfortran -i8"`).
    refuse(compiler.get(1..).unwrap_or_default())?;
    let sources = places.fortran.clone().unwrap_or_else(|| places.include.clone());
    let name = key(compiler, &sources)?;
    let cache = cache()?;
    let folder = cache.join(&name);
    if !folder.join("mpi_f08.mod").exists() || !folder.join("mpi.mod").exists() {
        make(compiler, &sources, &cache, &folder)?;
    }
    places.modules = Some(folder);
    Ok(())
}

fn run(
    compiler: &[OsString],
    arguments: &[OsString],
    folder: Option<&Path>,
) -> Result<Output, String> {
    let (program, own) = compiler.split_first().ok_or("the name of the compiler is empty")?;
    // The modules are compiled in a directory of their own.
    let path = Path::new(program);
    let is_path = path.is_relative() && path.components().count() > 1;
    let absolute = if is_path { std::path::absolute(path).ok() } else { None };
    let mut command = Command::new(absolute.as_deref().unwrap_or(path));
    command.args(own).args(arguments);
    if let Some(folder) = folder {
        command.current_dir(folder);
    }
    command.output().map_err(|error| {
        format!("cannot run the compiler '{}': {error}", program.to_string_lossy())
    })
}

/// Returns the name of the directory for the compiler's modules.
fn key(compiler: &[OsString], sources: &Path) -> Result<String, String> {
    let version = run(compiler, &["--version".into()], None)?;
    if !version.status.success() {
        let program = compiler.first().map(|name| name.to_string_lossy()).unwrap_or_default();
        return Err(format!("the compiler '{program}' does not know the option --version"));
    }
    let mut hasher = DefaultHasher::new();
    version.stdout.hash(&mut hasher);
    // An option such as `-m32` changes the modules, too.
    compiler.hash(&mut hasher);
    for source in SOURCES {
        let path = sources.join(source);
        let text = std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        text.hash(&mut hasher);
    }
    let program = compiler.first().map(PathBuf::from).unwrap_or_default();
    let program = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok(format!("{program}-{:016x}", hasher.finish()))
}

/// Returns the directory that contains those of all compilers.
fn cache() -> Result<PathBuf, String> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let base = set("XDG_CACHE_HOME").map(PathBuf::from);
    let base = base.or_else(|| set("HOME").map(|home| Path::new(&home).join(".cache")));
    match base {
        Some(base) => Ok(base.join("typepack/fortran")),
        None => Err("there is no place for the Fortran modules: set HOME or XDG_CACHE_HOME".into()),
    }
}

/// Compiles the modules in a directory of their own, which then gets its name. So a directory with that name is
/// complete, also if several wrappers make it at the same time.
fn make(compiler: &[OsString], sources: &Path, cache: &Path, folder: &Path) -> Result<(), String> {
    let failed = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
    let own = cache.join(format!("new-{}", std::process::id()));
    std::fs::create_dir_all(&own).map_err(|error| failed(&own, error))?;
    let made = SOURCES.iter().try_for_each(|source| {
        let arguments = ["-c".into(), sources.join(source).into_os_string()];
        let output = run(compiler, &arguments, Some(&own))?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        Err(format!("the compiler cannot compile the module {source}: {said}"))
    });
    let placed = made.and_then(|()| match std::fs::rename(&own, folder) {
        Err(error) if !folder.join("mpi.mod").exists() => Err(failed(folder, error)),
        _ => Ok(()),
    });
    // If another wrapper was faster, the own directory is still there.
    let _gone = std::fs::remove_dir_all(&own);
    placed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_that_change_kinds_are_refused() {
        for option in ["-fdefault-integer-8", "-fdefault-real-8", "-freal-4-real-8", "-i8"] {
            let error = refuse(&["-O2".into(), option.into()]).expect_err(option);
            assert!(error.starts_with(option), "{error}");
        }
        assert_eq!(refuse(&["-O2".into(), "-fdefault-x".into(), "-ffree-form".into()]), Ok(()));
    }
}
