//! Provides the programs of this build, installed as a user installs them, and runs commands with a
//! time limit.

use super::repository;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// Returns the folder of the Cargo profile with which this test was built: `target/debug` or
/// `target/release`.
fn profile() -> PathBuf {
    let exe = std::env::current_exe().expect("the path of the test");
    // The test is the file `target/PROFILE/deps/TEST`.
    exe.ancestors().nth(2).expect("a profile's folder").to_owned()
}

/// Returns the path that `scripts/clients` gives to the mdBook that it builds. The file may be missing.
pub fn mdbook() -> PathBuf {
    profile().with_file_name("clients").join("tools/bin/mdbook")
}

/// Returns the folder of this build: `target/debug` or `target/release`. The first call builds the
/// programs, unless `TEST_BUILT` is set.
pub fn built() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let profile = profile();
        if std::env::var_os("TEST_BUILT").is_none() {
            let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
            let mut build = Command::new(cargo);
            // Builds the whole workspace, because for fewer packages Cargo would choose other features
            // and build crates again.
            build.args([
                "build",
                "--quiet",
                "--offline",
                "--workspace",
                "--lib",
                "--bins",
                "--examples",
            ]);
            build.args(["--features", "typepack/ndarray"]);
            if profile.ends_with("release") {
                build.arg("--release");
            }
            let done = build.current_dir(repository()).status().expect("cargo");
            assert!(done.success(), "cannot build the programs: {done}");
        }
        profile
    })
}

/// Returns the folder of an installation of this build. The first call makes the installation.
pub fn prefix() -> &'static Path {
    static PREFIX: OnceLock<PathBuf> = OnceLock::new();
    PREFIX.get_or_init(|| {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("texts-prefix");
        // An earlier run may have left an installation.
        let _may_be_missing = std::fs::remove_dir_all(&path);
        let mut install = Command::new(repository().join("scripts/install"));
        install.arg("--prefix").arg(&path).arg("--from").arg(built()).env_remove("DESTDIR");
        let done = install.output().expect("scripts/install");
        assert!(done.status.success(), "scripts/install: {done:?}");
        path
    })
}

/// A new folder, which is removed when the value is dropped.
pub struct Scratch(pub PathBuf);

impl Scratch {
    /// Makes a folder.
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("texts-{}-{number}", std::process::id());
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _best_effort = std::fs::remove_dir_all(&self.0);
    }
}

/// The result of a command.
pub struct Done {
    /// The exit code; 124 if the command exceeded the time limit.
    pub code: i32,
    /// Standard output and standard error.
    pub text: String,
}

/// Runs a shell command in `folder` for at most five minutes. `folder` is the command's home. An
/// installation that an earlier command made in `~/opt/typepack` comes first in `PATH`, and the tests' own
/// installation comes next.
pub fn shell(folder: &Path, line: &str) -> Done {
    let path = std::env::var("PATH").unwrap_or_default();
    let own = folder.join("opt/typepack");
    let path =
        format!("{}/bin:{}/bin:{}:{path}", own.display(), prefix().display(), built().display());
    let mut command = Command::new("timeout");
    command.args(["-k", "1", "300", "bash", "-c", line]).current_dir(folder).env("PATH", path);
    command.env("HOME", folder).stdin(Stdio::null());
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("TYPEPACK_")) {
        command.env_remove(name);
    }
    command.env_remove("MPIEXEC_TIMEOUT").env_remove("LD_LIBRARY_PATH");
    let done = command.output().expect("timeout and bash");
    let text = [done.stdout, done.stderr].concat();
    // If a signal ends `timeout` itself, there is no exit code. If a signal ends the command,
    // `timeout` exits with 128 plus the signal's number.
    Done {
        code: done.status.code().unwrap_or(-1),
        text: String::from_utf8_lossy(&text).into_owned(),
    }
}
