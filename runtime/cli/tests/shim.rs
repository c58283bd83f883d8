//! Runs `typepack shim` as a user would, with compilers that cannot make a shim. The tests of the interposer make shims.

use std::path::Path;
use std::process::Command;

/// Runs the command with a compiler. Returns the exit code and the only line on standard error.
fn shim(mpicc: &str, name: &str) -> (Option<i32>, String) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&folder).unwrap();
    let library = folder.join("library.so");
    std::fs::write(&library, "").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_typepack"));
    command.args(["shim", "--mpicc", mpicc, "--library"]).arg(&library);
    let done = command.arg("--out").arg(folder.join("out")).output().unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    let error = String::from_utf8_lossy(&done.stderr).into_owned();
    assert_eq!((done.stdout.len(), error.lines().count()), (0, 1), "{error}");
    (done.status.code(), error)
}

#[test]
fn compilers_without_mpi_are_refused_with_one_line() {
    let (code, line) = shim("/no/such/mpicc", "shim-missing");
    assert_eq!(code, Some(1), "{line}");
    assert!(line.starts_with("typepack: shim: --mpicc /no/such/mpicc: "), "{line}");
    let (code, line) = shim("false", "shim-false");
    assert_eq!(code, Some(1), "{line}");
    assert!(line.contains("the compiler failed"), "{line}");
}

#[test]
fn a_compiler_with_the_abi_needs_no_shim() {
    // The header of this repository has the ABI.
    let include = concat!(env!("CARGO_MANIFEST_DIR"), "/../capi/include");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("shim-compiler");
    std::fs::create_dir_all(&folder).unwrap();
    let mpicc = folder.join("mpicc");
    std::fs::write(&mpicc, format!("#!/bin/sh\nexec cc -I'{include}' \"$@\"\n")).unwrap();
    let sh =
        |words: &[&str]| assert!(Command::new("chmod").args(words).status().unwrap().success());
    let path = mpicc.to_str().unwrap();
    sh(&["+x", path]);
    let (code, line) = shim(path, "shim-abi");
    assert_eq!(code, Some(1), "{line}");
    assert!(line.contains("has the MPI 5 standard ABI, so no shim is needed"), "{line}");
}

#[test]
fn wrong_arguments_are_named() {
    let done = Command::new(env!("CARGO_BIN_EXE_typepack")).arg("shim").output().unwrap();
    let error = String::from_utf8_lossy(&done.stderr).into_owned();
    assert_eq!(done.status.code(), Some(2), "{error}");
    assert!(error.contains("--mpicc"), "{error}");
}
