//! Installs this build in a folder of the tests.
//!
//! `io.rs`, `pingpong.rs` and `regret.rs` use this file.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use typepack_test_support::skipped::skipped;

/// Returns the bytes as text.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Makes an empty folder for the test `name`.
fn folder(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("installed-{name}"));
    // Removes what an earlier run has left. The result is ignored, because usually there is no such
    // folder.
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).expect("a directory");
    path
}

/// Installs this build and returns the prefix. Returns `None` if a part of this build is missing or if
/// there is no C compiler.
pub fn prefix(name: &str) -> Option<PathBuf> {
    let built = Path::new(env!("CARGO_BIN_EXE_typepack-bench")).parent().expect("a directory");
    let missing =
        ["mpiexec", "mpicc", "mpicxx", "mpifort", "typepack", "libmpi_abi.so", "libmpifort_abi.so"]
            .into_iter()
            .find(|file| !built.join(file).exists());
    if let Some(file) = missing {
        skipped(format_args!("{} is not built", built.join(file).display()));
        return None;
    }
    if Command::new("cc").arg("--version").output().is_err() {
        skipped("cc does not start");
        return None;
    }
    let path = folder(name);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/install");
    let installed =
        Command::new(script).arg("--prefix").arg(&path).arg("--from").arg(built).output();
    let installed = installed.expect("scripts/install");
    assert!(installed.status.success(), "{}", text(&installed.stderr));
    Some(path)
}
