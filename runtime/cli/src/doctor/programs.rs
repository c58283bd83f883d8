//! The launcher, the compiler wrappers, the library and the header: are they there, of this version, and the ones that
//! the system finds first?

use super::ask::{self, says};
use super::installation::{INTERPOSER, Installation, Kind, LIBRARY};
use super::{Report, VERSION};
use crate::run::executable;
use std::env;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use typepack_job::quote::quoted;

/// The compiler wrappers.
const WRAPPERS: [&str; 3] = ["mpicc", "mpicxx", "mpifort"];

/// The text of this version's `mpi.h`.
const HEADER: &str = include_str!(concat!(env!("OUT_DIR"), "/mpi.h"));

/// Looks at everything that is no part of Python.
pub fn examine(own: &Installation, report: &mut Report) {
    if own.kind == Kind::Cargo && !own.bin.join("mpiexec").exists() {
        let what = "Cargo has installed this tool without mpiexec, so its jobs have one process; an mpiexec of another \
                    MPI would start each process as rank 0 of 1";
        return report.note("no-launcher", what.into(), own.again());
    }
    files(own, report);
    launcher(own, report);
    if own.is_for_developers() {
        wrappers(own, report);
    }
    if own.kind != Kind::Cargo {
        library(own, report);
    }
    if own.is_for_developers() {
        header(own, report);
        compilers(own, report);
    } else {
        let (what, cure) = match own.kind {
            Kind::Debian => (
                "the compiler wrappers and the header are in a package of their own",
                "apt-get install libtypepack-dev",
            ),
            _ => (
                "Cargo installs no library for C, Fortran and Python, and no mpicc; programs in Rust need neither",
                "scripts/install --prefix DIR",
            ),
        };
        report.note("no-wrappers", what.into(), cure.into());
    }
}

/// Looks at an installation that has only the library for clusters.
pub fn interposer(own: &Installation, report: &mut Report) {
    let path = own.lib.join(INTERPOSER);
    if path.exists() {
        report.part("library", path.display().to_string());
    } else {
        let what = format!("the library {} of this installation is missing", path.display());
        report.fault("missing-library", what, own.again());
    }
}

/// Returns the programs that the installation must have.
fn expected(own: &Installation) -> impl Iterator<Item = &'static str> {
    let wrappers = if own.is_for_developers() { &WRAPPERS[..] } else { &[] };
    ["mpiexec"].into_iter().chain(wrappers.iter().copied())
}

/// Returns the version in a line of a program of typepack, such as `mpicc: typepack 0.1.0 (Language: C)`.
fn version(line: &str) -> Option<&str> {
    let rest = line.split("typepack").nth(1)?.trim_start_matches([')', ' ']);
    let version = rest.split([' ', ',']).next()?;
    version.starts_with(|letter: char| letter.is_ascii_digit()).then_some(version)
}

/// The programs that are missing or cannot be executed, and those of another version.
fn files(own: &Installation, report: &mut Report) {
    let (mut missing, mut refused) = (Vec::new(), Vec::new());
    let mut paths: Vec<PathBuf> = expected(own).map(|name| own.bin.join(name)).collect();
    if own.kind == Kind::Wheel {
        // The RECORD of the wheel says whether thin names are missing.
        let folder = own.prefix.join("bin");
        let thin = ["mpiexec", "typepack"].iter().chain(&WRAPPERS).map(|name| folder.join(name));
        paths.extend(thin.filter(|path| path.exists()));
    }
    for path in &paths {
        match fs::metadata(path) {
            Err(_) => missing.push(path.display().to_string()),
            Ok(facts) if facts.permissions().mode() & 0o111 == 0 => {
                refused.push(path.display().to_string());
            }
            Ok(_) => {}
        }
    }
    if !missing.is_empty() {
        let what = format!("{} of this installation is missing", missing.join(", "));
        report.fault("missing-program", what, own.again());
    }
    if !refused.is_empty() {
        let what = format!("nobody has the permission to execute {}", refused.join(", "));
        let words: Vec<String> = refused.iter().map(quoted).collect();
        report.fault("not-executable", what, format!("chmod +x {}", words.join(" ")));
    }
    for name in expected(own) {
        let path = own.bin.join(name);
        let argument = if name == "mpiexec" { "--version" } else { "-showme:version" };
        let Some(line) = says(&path, argument) else { continue };
        match version(&line) {
            Some(VERSION) => {}
            Some(other) => {
                let what =
                    format!("{} is of version {other}, and this tool of {VERSION}", path.display());
                report.fault("other-version", what, own.again());
            }
            None => {
                let what =
                    format!("{} is no program of typepack: it says '{line}'", path.display());
                report.fault("overwritten-program", what, own.again());
            }
        }
    }
}

/// Returns the line that puts the installation in front of all others.
fn cure_path(own: &Installation) -> String {
    match own.kind {
        Kind::Debian => "update-alternatives --set mpirun /usr/bin/mpirun.typepack".into(),
        _ => format!("export PATH={}:$PATH", quoted(own.path_folder())),
    }
}

/// Returns the line that puts the wrappers of this installation in front of all others.
fn cure_wrappers(own: &Installation) -> String {
    match own.kind {
        Kind::Debian => "update-alternatives --set mpi /usr/bin/mpicc.typepack".into(),
        _ => cure_path(own),
    }
}

/// Returns whether a program lies in the folder of this installation that belongs into `PATH`.
fn in_own_folder(own: &Installation, program: &Path) -> bool {
    let folder = program.parent().and_then(|folder| folder.canonicalize().ok());
    folder.is_some() && folder == own.path_folder().canonicalize().ok()
}

/// The `mpiexec` that a user gets.
fn launcher(own: &Installation, report: &mut Report) {
    let Some(first) = executable(OsStr::new("mpiexec"), true) else {
        // That the own one cannot be executed has been said.
        if own.bin.join("mpiexec").exists() && !report.has("not-executable") {
            let folder = own.path_folder();
            let path = env::var_os("PATH").unwrap_or_default();
            let is_in_path =
                env::split_paths(&path).any(|one| in_own_folder(own, &one.join("mpiexec")));
            if is_in_path {
                let what = format!("{} is missing", folder.join("mpiexec").display());
                report.fault("missing-program", what, own.again());
            } else {
                let what = "there is no mpiexec in PATH".to_owned();
                report.fault("not-in-path", what, cure_path(own));
            }
        }
        return;
    };
    let line = says(&first, "--version").unwrap_or_else(|| "does not start".into());
    report.part("mpiexec", format!("{}: {line}", first.display()));
    if own.has_program(&first) {
        return;
    }
    let shown = first.display();
    if in_own_folder(own, &first) {
        let what = format!("{shown} is not typepack's ({line}): another MPI has overwritten it");
        report.fault("overwritten-program", what, own.again());
    } else if version(&line).is_some() {
        let what = format!("the first mpiexec in PATH is {shown} of another installation ({line})");
        report.fault("other-installation", what, cure_path(own));
    } else {
        let what = format!(
            "the first mpiexec in PATH is {shown} of another MPI ({line}); with it, each process of a program with \
             typepack's library is rank 0 of 1"
        );
        let cure = match own.kind {
            Kind::Wheel => format!(
                "{}, or start programs with {}",
                cure_path(own),
                quoted(own.prefix.join("bin/typepack-mpiexec"))
            ),
            _ => cure_path(own),
        };
        report.fault("foreign-launcher", what, cure);
    }
}

/// The wrappers that a user gets.
fn wrappers(own: &Installation, report: &mut Report) {
    let (mut foreign, mut overwritten) = (Vec::new(), Vec::new());
    for name in WRAPPERS {
        let Some(first) = executable(OsStr::new(name), true) else { continue };
        report.part(name, first.display().to_string());
        if !own.has_program(&first) {
            let list = if in_own_folder(own, &first) { &mut overwritten } else { &mut foreign };
            list.push(first.display().to_string());
        }
    }
    if !foreign.is_empty() {
        let what = format!(
            "the first compiler wrappers in PATH are not those of this installation: {}",
            foreign.join(", ")
        );
        report.fault("foreign-wrapper", what, cure_wrappers(own));
    }
    if !overwritten.is_empty() {
        let what = format!("another MPI has overwritten {}", overwritten.join(", "));
        report.fault("overwritten-wrapper", what, own.again());
    }
}

/// The library, and others that the loader finds before it.
fn library(own: &Installation, report: &mut Report) {
    let path = own.library();
    let shown = path.display();
    match ask::contents(&path) {
        Err(error) => {
            let what = format!("the library {shown} cannot be read: {error}");
            report.fault("missing-library", what, own.again());
        }
        Ok(bytes) => match library_version(&bytes) {
            Some(version) => {
                report.part("library", format!("{shown}: typepack {version}"));
                if version != VERSION {
                    let what =
                        format!("{shown} is of version {version}, and this tool of {VERSION}");
                    report.fault("other-library-version", what, own.again());
                }
            }
            None => {
                let what = format!("{shown} is not typepack's library");
                report.fault("overwritten-library", what, own.again());
            }
        },
    }
    let folders = env::var_os("LD_LIBRARY_PATH").filter(|list| !list.is_empty());
    let folders = folders.iter().flat_map(env::split_paths);
    let first = folders.into_iter().find(|folder| folder.join(LIBRARY).exists());
    if let Some(folder) = first.filter(|folder| !own.has_library_folder(folder)) {
        let what = format!(
            "LD_LIBRARY_PATH names {}, whose {LIBRARY} is found before that of this installation",
            folder.display()
        );
        let cure =
            format!("take {} out of LD_LIBRARY_PATH, or: unset LD_LIBRARY_PATH", folder.display());
        report.fault("library-path", what, cure);
    }
    let preloaded = env::var_os("LD_PRELOAD").unwrap_or_default();
    let preloaded = preloaded.to_string_lossy();
    let names = preloaded.split([' ', ':']).filter(|name| {
        Path::new(name).file_name().is_some_and(|file| is_mpi(&file.to_string_lossy()))
    });
    for name in
        names.filter(|name| !Path::new(name).parent().is_some_and(|f| own.has_library_folder(f)))
    {
        let what =
            format!("LD_PRELOAD loads {name} into every program, in front of typepack's library");
        report.fault("preloaded-library", what, "unset LD_PRELOAD".into());
    }
}

/// Says whether a file name is that of an MPI library. Profilers have names such as `libmpiP.so` and `libmpitrace.so`.
fn is_mpi(file: &str) -> bool {
    let name = file.split_once(".so").map_or("", |(name, _)| name);
    ["libmpi", "libmpi_abi", "libmpich", "libmpifort", "libmpifort_abi", "libmpicxx"]
        .contains(&name)
        || ["libmpi_mpifh", "libmpi_usempi", "libmpi_cxx"]
            .iter()
            .any(|start| name.starts_with(start))
}

/// Returns the version in the text that `MPI_Get_library_version` returns, from the bytes of the library.
fn library_version(bytes: &[u8]) -> Option<String> {
    const BEFORE: &[u8] = b"typepack ";
    const AFTER: &[u8] = b", MPI ";
    memchr::memmem::find_iter(bytes, BEFORE).find_map(|at| {
        let rest = &bytes[at + BEFORE.len()..];
        let rest = &rest[..rest.len().min(32)];
        let end = memchr::memmem::find(rest, AFTER)?;
        let version = std::str::from_utf8(&rest[..end]).ok()?;
        version.starts_with(|letter: char| letter.is_ascii_digit()).then(|| version.to_owned())
    })
}

/// The header.
fn header(own: &Installation, report: &mut Report) {
    let path = own.include.join("mpi.h");
    let shown = path.display();
    match ask::contents(&path) {
        Err(error) => {
            let what = format!("the header {shown} cannot be read: {error}");
            report.fault("missing-header", what, own.again());
        }
        Ok(bytes) if bytes == HEADER.as_bytes() => report.part("header", shown.to_string()),
        Ok(bytes) => {
            let text = String::from_utf8_lossy(&bytes);
            let whose = if text.contains("from typepack") {
                "of another version"
            } else {
                "of another MPI"
            };
            let what = format!("the header {shown} is {whose}, and the library of {VERSION}");
            report.fault("other-header", what, own.again());
        }
    }
}

/// The compilers, which not everybody needs, and the Fortran modules.
fn compilers(own: &Installation, report: &mut Report) {
    if executable(OsStr::new("cc"), true).is_none() {
        let what = "there is no C compiler in PATH (cc), so mpicc cannot compile".to_owned();
        report.note(
            "no-c-compiler",
            what,
            "install one (Debian: gcc), or name it: mpicc -cc=COMPILER".into(),
        );
    }
    if !crate::fortran::NAMES.into_iter().any(|name| executable(OsStr::new(name), true).is_some()) {
        let what = format!(
            "there is no Fortran compiler in PATH ({}), so mpifort cannot compile",
            crate::fortran::NAMES.join(", ")
        );
        let cure = "install one (Debian: gfortran), or name it: mpifort -fc=COMPILER".to_owned();
        report.note("no-fortran-compiler", what, cure);
    }
    let mpifort = own.bin.join("mpifort");
    let Some(places) = ask::output(&mpifort, "-typepack-stores") else { return };
    let of = |word: &str| -> Vec<&str> {
        places.lines().filter_map(|line| line.strip_prefix(word)?.strip_prefix(' ')).collect()
    };
    let stale = of("stale");
    if !stale.is_empty() {
        // They harm nobody, because mpifort makes such modules anew.
        let what = format!(
            "{} folders of Fortran modules are damaged or from an earlier version, such as {}",
            stale.len(),
            stale[0]
        );
        let words: Vec<String> = stale.iter().map(quoted).collect();
        report.note("stale-modules", what, format!("rm -r {}", words.join(" ")));
    }
    let (prefix, writable) = (own.lib.display().to_string(), of("writable"));
    if of("read-only").iter().any(|place| place.starts_with(&prefix)) {
        let place = writable.first().copied().unwrap_or("no other place");
        let what = format!(
            "{prefix} cannot be written to; everything works, and mpifort keeps the modules of new compilers in {place}"
        );
        let cure = format!("as its owner: {} fortran", quoted(own.path_folder().join("typepack")));
        report.note("read-only", what, cure);
    }
}

#[cfg(test)]
mod tests {
    use super::{is_mpi, library_version, version};

    #[test]
    fn profilers_are_no_mpi() {
        for name in [
            "libmpi.so.40",
            "libmpi.so",
            "libmpi_abi.so.1",
            "libmpich.so.12",
            "libmpi_usempif08.so",
        ] {
            assert!(is_mpi(name), "{name}");
        }
        for name in ["libmpiP.so", "libmpitrace.so", "libmpi", "libmpi_stub.so", "libmpip.so.3.5"] {
            assert!(!is_mpi(name), "{name}");
        }
    }

    #[test]
    fn versions_are_found() {
        for (line, wanted) in [
            ("mpiexec (typepack) 0.1.0", Some("0.1.0")),
            ("mpicc: typepack 1.2.3-beta (Language: C)", Some("1.2.3-beta")),
            ("mpiexec (OpenRTE) 4.1.4", None),
            ("typepack", None),
        ] {
            assert_eq!(version(line), wanted, "{line}");
        }
        let bytes = b"\0typepack bug, MPI\0typepack 0.1.0, MPI 5\0";
        assert_eq!(library_version(bytes).as_deref(), Some("0.1.0"));
        assert_eq!(library_version(b"MPICH Version: 5.0"), None);
    }
}
