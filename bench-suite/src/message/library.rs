//! Finds the MPI libraries that take part, and compiles the C program (`message/*.c`) for each of them, for rows of
//! Fortran with the part in Fortran (`message/section.f90`).
//!
//! `session.rs` and `whole.rs` start the compiled programs. For each library, the mpicc in the library's
//! own prefix compiles the program. Intel's package for Python has no mpicc, but its library has the
//! standard ABI. For this library, typepack's mpicc compiles the program, because typepack has the same
//! ABI.

use super::apart;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The names and contents of the C program's source files.
const SOURCES: [(&str, &str); 16] = [
    ("bench.h", include_str!("../../message/bench.h")),
    ("main.c", include_str!("../../message/main.c")),
    ("link.c", include_str!("../../message/link.c")),
    ("shared.c", include_str!("../../message/shared.c")),
    ("layout.c", include_str!("../../message/layout.c")),
    ("pingpong.c", include_str!("../../message/pingpong.c")),
    ("section.c", include_str!("../../message/section.c")),
    ("section.f90", include_str!("../../message/section.f90")),
    ("burst.c", include_str!("../../message/burst.c")),
    ("halo.c", include_str!("../../message/halo.c")),
    ("collective.c", include_str!("../../message/collective.c")),
    ("window.c", include_str!("../../message/window.c")),
    ("file.c", include_str!("../../message/file.c")),
    ("job.c", include_str!("../../message/job.c")),
    ("partition.c", include_str!("../../message/partition.c")),
    ("spawn.c", include_str!("../../message/spawn.c")),
];
const FLAGS: [&str; 5] = ["-std=gnu11", "-O2", "-Wall", "-Wextra", "-o"];
/// The options of the Fortran compiler: its loops are hand-written loops, as those of `../competitor/hand_c.rs`.
const FORTRAN_FLAGS: [&str; 2] = ["-O3", "-march=native"];

/// The kinds of libraries. They differ in the options of the launcher and in the environment variables
/// that they need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// typepack.
    Typepack,
    /// MPICH.
    Mpich,
    /// Intel MPI.
    Intel,
    /// Open MPI.
    OpenMpi,
}

/// An installed MPI.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Library {
    /// The short name of the library in rows.
    pub name: String,
    /// The absolute path of the folder that holds `bin` and `lib`.
    pub prefix: PathBuf,
    /// The kind of the library.
    pub kind: Kind,
    /// Environment variables that the library's jobs get in addition, with their values.
    pub environment: Vec<(String, String)>,
    /// True if each job of the library starts in a network namespace of its own (`apart.rs`), so that it
    /// ignores the cores that other jobs have reserved.
    pub apart: bool,
    /// True if programs for this library are compiled against the standard ABI.
    pub standard: bool,
    /// True if this is a library of Debian that `runtime/interpose/tests/debian.sh` has unpacked.
    pub unpacked: bool,
}

impl Library {
    /// Finds out which kind of MPI is installed in `prefix`.
    ///
    /// # Errors
    ///
    /// Returns a one-line message if `prefix` is empty or has no `bin/mpiexec`.
    pub fn at(name: &str, prefix: &Path) -> Result<Self, String> {
        let shown = prefix.display();
        let prefix = std::path::absolute(prefix).map_err(|e| format!("{shown}: {e}"))?;
        let has = |file: &str| prefix.join(file).exists();
        if !has("bin/mpiexec") {
            return Err(format!("{shown}: bin/mpiexec is missing"));
        }
        let kind = match () {
            () if has("lib/libmpi.so.40") || has("root/usr/bin/ompi_info") => Kind::OpenMpi,
            () if has("root/usr/bin/hydra_pmi_proxy") => Kind::Mpich,
            () if has("bin/hydra_bstrap_proxy") => Kind::Intel,
            () if has("bin/hydra_pmi_proxy") => Kind::Mpich,
            () => Kind::Typepack,
        };
        let environment = Vec::new();
        let unpacked = has("root/usr/bin");
        let name = name.to_owned();
        Ok(Self { name, prefix, kind, environment, apart: false, standard: false, unpacked })
    }

    /// Returns true if this is a library with which typepack is compared.
    pub fn is_peer(&self) -> bool {
        self.kind != Kind::Typepack
    }

    /// Returns the peers that `scripts/bench peers` has put under `directory`, sorted by name. Debian's libraries
    /// there have the mark `unpacked`.
    pub fn peers(directory: &Path) -> Vec<Self> {
        let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
        let mut peers: Vec<Self> = entries
            .flatten()
            .filter_map(|entry| {
                let name = entry.file_name().to_string_lossy().into_owned();
                Self::at(&name, &entry.path()).ok().filter(Self::is_peer)
            })
            .collect();
        peers.sort_by(|a, b| a.name.cmp(&b.name));
        peers
    }

    /// Returns the path of the compiler for this library: its own mpicc (mpicc_abi for the standard ABI), or else the
    /// mpicc of `other` if this library has the standard ABI.
    ///
    /// # Errors
    ///
    /// Returns a one-line message if neither mpicc can be used.
    pub fn compiler(&self, other: Option<&Self>) -> Result<PathBuf, String> {
        let own = self.prefix.join(if self.standard { "bin/mpicc_abi" } else { "bin/mpicc" });
        if own.exists() {
            return Ok(own);
        }
        match other.map(|other| other.prefix.join("bin/mpicc")) {
            Some(path) if path.exists() && self.prefix.join("lib/libmpi_abi.so.1").exists() => {
                Ok(path)
            }
            _ => Err("has no mpicc".to_owned()),
        }
    }

    /// Compiles the C program for this library in `folder`, and returns the path of the compiled program.
    /// If this library has no mpicc, uses the mpicc of `other`, as [`Library::compiler`] does.
    ///
    /// # Errors
    ///
    /// Returns a one-line message if there is no compiler, if a source file cannot be written, or if the
    /// compiler fails. In the last case, the message has a line of the compiler's output.
    pub fn compile(&self, other: Option<&Self>, folder: &Path) -> Result<PathBuf, String> {
        let compiler = self.compiler(other)?;
        let program = folder.join(format!("bench-{}", self.name));
        let mut command = Command::new(&compiler);
        self.surround(&mut command);
        command.args(FLAGS).arg(&program);
        for (name, text) in SOURCES {
            let path = folder.join(name);
            std::fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()))?;
            if Path::new(name).extension().is_some_and(|e| e == "c") {
                command.arg(path);
            }
        }
        made(&mut command, "mpicc")?;
        Ok(program)
    }

    /// Compiles the program with its part in Fortran for this library in `folder`, with the library's mpicc and mpifort, and
    /// returns the path of the compiled program.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Library::compile`], and a one-line message if the library has no mpifort.
    pub fn compile_fortran(&self, folder: &Path) -> Result<PathBuf, String> {
        let fortran = self.prefix.join("bin/mpifort");
        if !fortran.exists() {
            return Err("has no mpifort, so nothing from Fortran is measured".to_owned());
        }
        let folder = folder.join(format!("fortran-{}", self.name));
        let shown = |e: std::io::Error| format!("{}: {e}", folder.display());
        std::fs::create_dir_all(&folder).map_err(shown)?;
        let mut c = Command::new(self.compiler(None)?);
        c.args(&FLAGS[..FLAGS.len() - 1]).args(["-DBENCH_FORTRAN", "-c"]);
        let mut link = Command::new(fortran);
        link.args(FORTRAN_FLAGS);
        for (name, text) in SOURCES {
            std::fs::write(folder.join(name), text).map_err(shown)?;
            if let Some(stem) = name.strip_suffix(".c") {
                c.arg(name);
                link.arg(format!("{stem}.o"));
            } else if name.ends_with(".f90") {
                link.arg(name);
            }
        }
        let program = folder.join("bench");
        link.arg("-o").arg(&program);
        for (command, tool) in [(&mut c, "mpicc"), (&mut link, "mpifort")] {
            self.surround(command);
            made(command.current_dir(&folder), tool)?;
        }
        Ok(program)
    }

    /// Returns a command that starts the library's launcher for a job of `ranks` ranks. The caller appends
    /// the program and its arguments. If `bound` is true, the launcher gives each rank a core of its own.
    pub fn launcher(&self, ranks: usize, bound: bool) -> Command {
        let mut command = Command::new(self.prefix.join("bin/mpiexec"));
        self.surround(&mut command);
        let ranks = ranks.to_string();
        let place = if bound { "core" } else { "none" };
        match self.kind {
            Kind::Typepack => command.args(["--bind-to", place]),
            Kind::Mpich => command.args(["-bind-to", place]),
            Kind::Intel => command.env("I_MPI_PIN", if bound { "1" } else { "0" }),
            Kind::OpenMpi if bound => command.args(["--bind-to", place]),
            Kind::OpenMpi => command.args(["--bind-to", place, "--oversubscribe"]),
        };
        command.args(["-n", &ranks]);
        if self.apart {
            apart::reserve_apart(&mut command);
        }
        command
    }

    /// Returns a command that runs the program without a launcher.
    pub fn alone(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        self.surround(&mut command);
        command
    }

    /// Sets the environment variables that the user has given for the library, and those with which the
    /// library finds its own files, even if it is not installed in the folder for which it was built.
    fn surround(&self, command: &mut Command) {
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        match self.kind {
            Kind::Typepack | Kind::Mpich => {}
            Kind::Intel => {
                let lib = self.prefix.join("lib");
                command.env("I_MPI_ROOT", &self.prefix).env("LD_LIBRARY_PATH", lib);
            }
            Kind::OpenMpi => {
                command
                    .env("OPAL_PREFIX", &self.prefix)
                    .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
                    .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
            }
        }
    }
}

/// Runs the compiler `command`, which is a library's `tool`. Returns a one-line message if it fails.
fn made(command: &mut Command, tool: &str) -> Result<(), String> {
    let made = command.stdin(Stdio::null()).output();
    let made = made.map_err(|e| format!("{}: {e}", command.get_program().display()))?;
    if made.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&made.stderr);
    let line =
        said.lines().find(|l| l.to_ascii_lowercase().contains("error")).or(said.lines().last());
    Err(format!("{tool} failed: {}", line.unwrap_or("it said nothing")))
}

/// A folder that is removed when this value is dropped.
pub struct Scratch(PathBuf);

impl Scratch {
    /// Makes a new folder among the system's temporary files.
    ///
    /// # Errors
    ///
    /// Returns a one-line message if the folder cannot be made.
    pub fn new() -> Result<Self, String> {
        // The name contains the process id and the thread id, because processes and, in tests, threads
        // make such folders at the same time.
        let id = format!("{}-{:?}", std::process::id(), std::thread::current().id());
        let id: String = id.chars().filter(|c| c.is_ascii_digit() || *c == '-').collect();
        let path = std::env::temp_dir().join(format!("typepack-message-{id}"));
        std::fs::create_dir_all(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        Ok(Self(path))
    }

    /// Returns the path of the folder.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // The result is ignored: a folder that stays behind in the system's temporary folder does no harm.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::{Kind, Library, Scratch};

    #[test]
    fn kinds_are_told_by_files() {
        let scratch = Scratch::new().expect("a directory");
        let at = |name: &str, files: &[&str]| {
            let prefix = scratch.path().join(name);
            for file in files {
                let path = prefix.join(file);
                std::fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
                std::fs::write(path, "").expect("a file");
            }
            Library::at(name, &prefix)
        };
        let kind = |name: &str, files: &[&str]| at(name, files).expect(name).kind;
        assert_eq!(kind("a", &["bin/mpiexec", "lib/libmpi.so.40"]), Kind::OpenMpi);
        assert_eq!(kind("b", &["bin/mpiexec", "bin/hydra_pmi_proxy"]), Kind::Mpich);
        let intel = ["bin/mpiexec", "bin/hydra_pmi_proxy", "bin/hydra_bstrap_proxy"];
        assert_eq!(kind("c", &intel), Kind::Intel);
        assert_eq!(kind("d", &["bin/mpiexec", "bin/mpicc"]), Kind::Typepack);
        assert!(at("e", &["lib/libmpi_abi.so.1"]).expect_err("no mpiexec").contains("mpiexec"));
        let found = Library::peers(scratch.path());
        // An unknown library, as in the folder `d`, is no peer.
        assert_eq!(found.iter().map(|peer| &*peer.name).collect::<Vec<_>>(), ["a", "b", "c"]);
        // The folder `c` has neither an mpicc nor a library with the standard ABI, so not even the mpicc of
        // `own` (folder `d`) can compile for it.
        let own = &at("d", &[]).expect("d");
        assert!(found[2].compiler(Some(own)).is_err() && found[2].compiler(None).is_err());
        assert!(own.compiler(None).expect("its own").ends_with("d/bin/mpicc"));
    }
}
