//! The Fortran modules for a compiler, which are made once and kept.
//!
//! A module file (`.mod`) can only be read by the compiler that has written it, often only by the same version. So the
//! folder has a name made from the compiler's file, the processor, what the compiler says about its version, and the sources
//! of the modules. Several names of one compiler have one folder.
//! `cache.rs` knows where the folders are.
//!
//! A probe finds out whether the library understands how the compiler passes arrays: `probe.f90`, a program that runs.

use super::cache::{self, Place};
use super::kinds::refuse;
use super::prefix::Places;
use super::{cannot_run, line};
use std::ffi::OsString;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The sources, in the order in which they are compiled.
const SOURCES: [&str; 2] = ["mpi_f08.f90", "mpi.f90"];

/// The source of the probe.
const PROBE: &str = include_str!("probe.f90");

/// Finds the modules for `compiler`, or makes them. Makes them again if something is missing in them and `anew`. Returns
/// what is missing in modules that have just been made.
///
/// # Errors
///
/// Returns a message and an exit code if the compiler cannot be run or refuses a module, or if there is no place for
/// the modules.
pub fn modules(
    compiler: &[OsString],
    places: &mut Places,
    anew: bool,
) -> Result<Option<String>, (String, u8)> {
    let wrong = |message| (message, 1);
    // Options may also be part of the compiler's name (`-fc="gfortran -i8"`).
    refuse(compiler.get(1..).unwrap_or_default()).map_err(wrong)?;
    let version = command(compiler, None)
        .map_err(wrong)?
        .arg("--version")
        .output()
        .map_err(|error| cannot_run(compiler, &error))?;
    let name = key(compiler, version, sources(places)).map_err(wrong)?;
    let stores = cache::places(places.store.as_deref(), |name| std::env::var_os(name));
    let found = stores.iter().find_map(|place| place.complete(&name));
    if let Some(folder) = found.filter(|folder| !anew || cache::missing(folder).is_none()) {
        places.modules = Some(folder);
        return Ok(None);
    }
    let folder = make(compiler, places, &stores, &name).map_err(wrong)?;
    let missing = cache::missing(&folder);
    places.modules = Some(folder);
    Ok(missing)
}

/// Says where the modules for `compiler` are, and what is missing there.
pub fn report(compiler: &[OsString], places: &Places) -> String {
    let folder = places.modules.as_deref().unwrap_or(Path::new(""));
    let mut text = format!("{}: modules in {}\n", shown(compiler), folder.display());
    if let Some(missing) = cache::missing(folder) {
        text += &missing;
        text.push('\n');
    }
    text
}

/// Says of each place for modules whether modules can be made there, and which folders in it are damaged.
pub fn stores(places: &Places) -> String {
    let mut text = String::new();
    for place in cache::places(places.store.as_deref(), |name| std::env::var_os(name)) {
        let word = if place.is_writable() { "writable" } else { "read-only" };
        text += &format!("{word} {}\n", place.folder.display());
        for folder in place.damaged() {
            text += &format!("stale {}\n", folder.display());
        }
    }
    text
}

/// Returns the folder with the sources of the modules.
fn sources(places: &Places) -> &Path {
    places.fortran.as_deref().unwrap_or(&places.include)
}

/// Returns the compiler as the user has named it.
fn shown(compiler: &[OsString]) -> String {
    compiler.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

/// Returns a command that runs the compiler in a folder.
fn command(compiler: &[OsString], folder: Option<&Path>) -> Result<Command, String> {
    let (program, own) = compiler.split_first().ok_or("the name of the compiler is empty")?;
    // The modules are compiled in a directory of their own.
    let path = Path::new(program);
    let is_path = path.is_relative() && path.components().count() > 1;
    let absolute = if is_path { std::path::absolute(path).ok() } else { None };
    let mut command = Command::new(absolute.as_deref().unwrap_or(path));
    command.args(own);
    if let Some(folder) = folder {
        command.current_dir(folder);
    }
    Ok(command)
}

fn run(compiler: &[OsString], arguments: &[OsString], folder: &Path) -> Result<Output, String> {
    let output = command(compiler, Some(folder))?.args(arguments).output();
    output.map_err(|error| cannot_run(compiler, &error).0)
}

/// Returns the name of the directory for the compiler's modules.
fn key(compiler: &[OsString], version: Output, sources: &Path) -> Result<String, String> {
    if !version.status.success() {
        let program = compiler.first().map(|name| name.to_string_lossy()).unwrap_or_default();
        return Err(format!("the compiler '{program}' does not know the option --version"));
    }
    let mut hasher = DefaultHasher::new();
    version.stdout.hash(&mut hasher);
    // What is missing depends on the library, too.
    (env!("CARGO_PKG_VERSION"), PROBE).hash(&mut hasher);
    // An option such as `-m32` changes the modules, too.
    compiler.get(1..).hash(&mut hasher);
    for source in SOURCES {
        let path = sources.join(source);
        let text = std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        text.hash(&mut hasher);
    }
    let program = real(compiler.first().map_or(Path::new(""), Path::new));
    let program = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok(format!("{program}-{}-{:016x}", std::env::consts::ARCH, hasher.finish()))
}

/// Returns the file of a program, through links; what is given if there is none.
fn real(program: &Path) -> PathBuf {
    let is_path = program.components().count() > 1;
    let folders = if is_path { None } else { std::env::var_os("PATH") };
    let found = folders.as_ref().and_then(|folders| {
        std::env::split_paths(folders)
            .map(|folder| folder.join(program))
            .find(|path| path.is_file())
    });
    let path = found.as_deref().unwrap_or(program);
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// Compiles the modules in the first place that can be written and where the probe runs, and returns their folder. If the
/// probe runs nowhere, as with a compiler for other machines, nobody knows whether `mpi_f08` would work, so it is
/// missing.
fn make(
    compiler: &[OsString],
    places: &Places,
    stores: &[Place],
    name: &str,
) -> Result<PathBuf, String> {
    let mut reasons = Vec::new();
    let without_probe = stores.iter().map(|place| (place, true));
    for (place, any) in stores.iter().map(|place| (place, false)).chain(without_probe) {
        let own = match place.begin() {
            Ok(new) => new,
            Err(error) => {
                if !any {
                    reasons.push(format!("{}: {error}", place.folder.display()));
                }
                continue;
            }
        };
        let missing = match compile(compiler, places, own.path()) {
            Ok(Some(Reason::NotTried(_))) if !any => {
                cache::abandon(&own);
                continue;
            }
            Ok(missing) => Ok(missing.map(|reason| reason.line(compiler))),
            Err(error) => Err(error),
        };
        let placed = missing.and_then(|missing| {
            cache::finish(&own, name, missing.as_deref())
                .map_err(|error| format!("{}: {error}", own.path().display()))
        });
        if placed.is_err() {
            cache::abandon(&own);
        }
        return placed;
    }
    Err(format!("there is no place for the Fortran modules ({})", reasons.join("; ")))
}

/// Why there is no module `mpi_f08`.
enum Reason {
    /// The compiler refuses it, or its descriptors are not understood.
    Impossible(String),
    /// The probe has not run to its end, perhaps only here or only now.
    NotTried(String),
}

impl Reason {
    /// Returns the line for the user.
    fn line(self, compiler: &[OsString]) -> String {
        let (Self::Impossible(reason) | Self::NotTried(reason)) = self;
        format!(
            "{}: there is no module mpi_f08 for this compiler, only mpi and mpif.h: {reason}",
            shown(compiler)
        )
    }
}

/// Compiles the modules in the folder `own`. Arrays reach `mpi_f08` by descriptor, so this module goes again if the
/// compiler's descriptors are not understood. The others do without.
fn compile(compiler: &[OsString], places: &Places, own: &Path) -> Result<Option<Reason>, String> {
    let module = |source: &str| {
        let path = sources(places).join(source);
        succeed(run(compiler, &["-c".into(), path.into_os_string()], own)?)
            .map_err(|said| format!("the compiler cannot compile {source}: {said}"))
    };
    let [f08, mpi] = SOURCES;
    let reason = match module(f08) {
        Ok(_) => probe(compiler, places, own),
        Err(said) => Some(Reason::Impossible(said)),
    };
    module(mpi)?;
    if reason.is_some() {
        let _maybe_never_made = std::fs::remove_file(own.join("mpi_f08.mod"));
    }
    Ok(reason)
}

/// Compiles and runs the probe below the folder `own`, where the module `mpi_f08` is.
fn probe(compiler: &[OsString], places: &Places, own: &Path) -> Option<Reason> {
    match look(compiler, places, own) {
        Err(said) => Some(Reason::NotTried(said)),
        Ok(found) if found == "ok" => None,
        Ok(found) => {
            let said = format!("the library does not understand how it passes {found}");
            Some(Reason::Impossible(said))
        }
    }
}

/// Returns the last line of the probe.
fn look(compiler: &[OsString], places: &Places, own: &Path) -> Result<String, String> {
    let failed = |error: std::io::Error| format!("the probe: {error}");
    let folder = own.join("probe");
    std::fs::create_dir(&folder).map_err(failed)?;
    std::fs::write(folder.join("probe.f90"), PROBE).map_err(failed)?;
    let mut places = places.clone();
    places.modules = Some(own.to_owned());
    let mut words = line::compile_words(&places);
    words.extend(["probe.f90", "-o", "probe"].map(OsString::from));
    words.extend(line::link_words(&places));
    succeed(run(compiler, &words, &folder)?)
        .map_err(|said| format!("the compiler cannot compile the probe: {said}"))?;
    // The library of this prefix comes first; the compiler's own libraries may also be found by the variable.
    let mut path = places.lib.into_os_string();
    if let Some(others) = std::env::var_os("LD_LIBRARY_PATH").filter(|value| !value.is_empty()) {
        path.push(":");
        path.push(others);
    }
    let mut command = Command::new(folder.join("probe"));
    command.current_dir(&folder).env("LD_LIBRARY_PATH", path);
    let output = command.output().map_err(failed)?;
    let status = output.status;
    let said = succeed(output).map_err(|said| format!("the probe failed ({status}): {said}"))?;
    let last = said.lines().last().map(|line| line.trim().to_owned());
    last.ok_or_else(|| "the probe printed nothing".into())
}

/// Returns what a program printed.
///
/// # Errors
///
/// If the program failed, returns the most telling line of its errors.
fn succeed(output: Output) -> Result<String, String> {
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = [output.stderr, output.stdout].concat();
    let said = String::from_utf8_lossy(&said);
    let line = said.lines().find(|line| line.to_lowercase().contains("error"));
    let line = line.or_else(|| said.lines().find(|line| !line.trim().is_empty()));
    Err(line.map_or_else(|| output.status.to_string(), |line| line.trim().to_owned()))
}
