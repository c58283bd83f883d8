//! Programs in C, compiled against `include/mpi.h` and linked with the library: `c/*.c`, each as one
//! process without a launcher and as the ranks of jobs under our `mpiexec`.
//!
//! A program exits with 0 if all its checks hold (`c/check.h`). The library is the one that cargo
//! has built for this test; a job that hangs is killed and fails (`job/`).

#[path = "../../tests/job/mod.rs"]
#[expect(dead_code, reason = "the part that runs bodies in Rust")]
mod job;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, OnceLock};

/// The newest of the two places where cargo leaves a cdylib.
fn cdylib() -> PathBuf {
    let exe = std::env::current_exe().expect("the test binary's path");
    // target/PROFILE/deps/TEST
    let deps = exe.parent().expect("a directory");
    let profile = deps.parent().expect("a profile directory");
    let written = |path: &PathBuf| path.metadata().and_then(|data| data.modified()).ok();
    [deps.join("libmpi_abi.so"), profile.join("libmpi_abi.so")]
        .into_iter()
        .filter(|path| written(path).is_some())
        .max_by_key(written)
        .expect("cargo builds the cdylib before its tests")
}

/// A directory with the library under the names that a linker and a loader look for.
fn library() -> &'static Path {
    static DIRECTORY: OnceLock<PathBuf> = OnceLock::new();
    DIRECTORY.get_or_init(|| {
        let name = format!("lib-{}", std::process::id());
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::create_dir_all(&directory).expect("a directory");
        for name in ["libmpi_abi.so", "libmpi_abi.so.1"] {
            let link = directory.join(name);
            if link.symlink_metadata().is_ok() {
                std::fs::remove_file(&link).expect("an old link");
            }
            std::os::unix::fs::symlink(cdylib(), link).expect("a link");
        }
        directory
    })
}

/// Compiles `c/NAME.c`, once: two tests of one program must not write it under each other's feet.
fn compile(name: &str) -> PathBuf {
    static COMPILED: Mutex<Vec<String>> = Mutex::new(Vec::new());
    let mut compiled = COMPILED.lock().expect("no compilation failed");
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let exe = library().join(name);
    if compiled.iter().any(|other| other == name) {
        return exe;
    }
    let output = Command::new("cc")
        .args(["-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-pthread", "-I"])
        .arg(root.join("include"))
        .arg(root.join(format!("tests/c/{name}.c")))
        .arg("-o")
        .arg(&exe)
        .arg("-L")
        .arg(library())
        .arg(format!("-Wl,-rpath,{}", library().display()))
        .args(["-lmpi_abi", "-lm"])
        .output()
        .expect("a C compiler");
    assert!(output.status.success(), "{name}: {}", job::text(&output));
    compiled.push(name.to_owned());
    exe
}

/// Compiles a program and runs it once for each number of ranks; 0 is one process without a
/// launcher.
fn run(name: &str, sizes: &[usize]) {
    run_with(name, sizes, &[]);
}

/// The same with environment variables.
fn run_with(name: &str, sizes: &[usize], env: &[(&str, &str)]) {
    let exe = compile(name);
    for &size in sizes {
        let mut command = match size {
            0 => Command::new(&exe),
            _ => {
                let mut command = Command::new(job::mpiexec());
                command.args(["-n", &size.to_string()]).arg(&exe);
                command
            }
        };
        // cargo's own search path names directories that may hold an older library.
        command.env("LD_LIBRARY_PATH", library());
        let output = job::run(command, name, env);
        let ended = output.status;
        assert!(ended.success(), "{name}, {size} ranks: {ended}\n{}", job::text(&output));
    }
}

macro_rules! programs {
    ($($name:ident: $sizes:expr;)*) => {
        $(
            #[test]
            fn $name() {
                run(stringify!($name), &$sizes);
            }
        )*
    };
}

programs! {
    environment: [0, 2];
    mpi1: [0];
    groups: [0, 1, 3];
    communicators: [0, 2, 5];
    attributes: [0, 2];
    collectives: [0, 1, 2, 3, 4, 7];
}

// Messages and requests.
programs! {
    modes: [0, 2, 3];
    requests: [0, 2];
    probes: [0, 2];
    buffers: [0, 2];
    generalized: [0];
    layouts: [0, 2];
    threads: [0, 2];
    hostile_messages: [0, 2];
    subsets: [0, 3];
}

#[test]
fn modes_without_eager_messages() {
    run_with("modes", &[2], &[("TYPEPACK_EAGER_LIMIT", "0")]);
}

#[test]
fn requests_without_spinning() {
    run_with("requests", &[2], &[("TYPEPACK_SPIN_US", "0")]);
}
