//! Compiles the C programs of tests against `include/mpi.h` and the library that cargo has built.
//!
//! The variable `FACE_TEST_LIBRARY` names another library to use, and `FACE_TEST_CFLAGS` has additional
//! arguments for the compiler. `scripts/asan` sets both to run the programs with AddressSanitizer.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Returns the path of the library under test. cargo puts the cdylib in one of two directories, or in both.
/// This function returns the newer of the two files.
fn cdylib() -> PathBuf {
    if let Some(other) = std::env::var_os("FACE_TEST_LIBRARY") {
        return other.into();
    }
    let exe = std::env::current_exe().expect("the test binary's path");
    // The path of the test binary is `target/PROFILE/deps/TEST`.
    let deps = exe.parent().expect("a directory");
    let profile = deps.parent().expect("a profile directory");
    let written = |path: &PathBuf| path.metadata().and_then(|data| data.modified()).ok();
    [deps.join("libmpi_abi.so"), profile.join("libmpi_abi.so")]
        .into_iter()
        .filter(|path| written(path).is_some())
        .max_by_key(written)
        .expect("cargo builds the cdylib before its tests")
}

/// Returns a directory that contains the library under the file names that the linker and the dynamic loader
/// look for.
pub fn library() -> &'static Path {
    static DIRECTORY: OnceLock<PathBuf> = OnceLock::new();
    DIRECTORY.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        // Earlier processes have left their directories, which another process of this test program may remove, too.
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let process = name.strip_prefix("lib-").and_then(|pid| pid.parse::<u32>().ok());
            if process.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
                let _ = std::fs::remove_dir_all(entry.path());
            }
        }
        let directory = folder.join(format!("lib-{}", std::process::id()));
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

/// Compiles a program from `sources`. Writes the executable into the directory of the library, and returns
/// the path of the executable.
pub fn compile(name: &str, sources: &[PathBuf]) -> PathBuf {
    compile_with(name, sources, &["-lmpi_abi", "-lm"])
}

/// Compiles a program like [`compile`], but links it with `libraries`.
pub fn compile_with(name: &str, sources: &[PathBuf], libraries: &[&str]) -> PathBuf {
    build("cc", "-std=gnu11", name, sources, libraries)
}

/// Compiles a program in C++, in which MPI has the C++ functions of MPI-2.2.
pub fn cxx(name: &str, standard: &str, sources: &[PathBuf]) -> PathBuf {
    let libraries = ["-DTYPEPACK_CXX", "-lmpi_abi"];
    build("c++", &format!("-std={standard}"), name, sources, &libraries)
}

fn build(
    compiler: &str,
    standard: &str,
    name: &str,
    sources: &[PathBuf],
    libraries: &[&str],
) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let exe = library().join(name);
    let more = std::env::var("FACE_TEST_CFLAGS").unwrap_or_default();
    let output = Command::new(compiler)
        .args([standard, "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-pthread", "-I"])
        .arg(root.join("include"))
        .args(sources)
        .arg("-o")
        .arg(&exe)
        .arg("-L")
        .arg(library())
        .arg(format!("-Wl,-rpath,{}", library().display()))
        .args(libraries)
        .args(more.split_whitespace())
        .output()
        .unwrap_or_else(|error| panic!("{compiler}: {error}"));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}: {text}");
    exe
}
