//! Compiles C programs against the `mpi.h` of MPICH's wheel, and runs them with typepack's `libmpi.so.12` and `mpiexec`.
//!
//! A program ends with an error code if one of its checks fails. The wheel is in `target/peers/mpich`
//! (`scripts/setup --peers`); without it, a test says so and passes.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{LazyLock, OnceLock};
use typepack_test_support::skipped::skipped;

/// The folder of MPICH's wheel.
pub struct Peer(OnceLock<Option<PathBuf>>);

/// MPICH's wheel.
pub static PEER: Peer = Peer(OnceLock::new());

impl Peer {
    /// Returns the folder, or says that there is none.
    pub fn get(&self) -> Option<&'static Path> {
        let find = || {
            let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/peers/mpich");
            root.join("include/mpi.h").exists().then_some(root)
        };
        let found = PEER.0.get_or_init(find);
        if found.is_none() {
            skipped("MPICH's mpi.h is not there (target/peers/mpich/include)");
        }
        found.as_deref()
    }
}

/// Returns the directory of the programs and libraries of this build, and builds them first if necessary.
fn profile() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| {
        let exe = std::env::current_exe().expect("the test binary's path");
        let profile = exe.ancestors().nth(2).expect("a profile directory").to_owned();
        if std::env::var_os("TEST_BUILT").is_none() {
            let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
            let mut build = Command::new(cargo);
            build.args(["build", "--quiet", "--workspace", "--features", "typepack/ndarray"]);
            build.args(["--lib", "--bin", "mpiexec"]);
            if profile.ends_with("release") {
                build.arg("--release");
            }
            let built = build.current_dir(env!("CARGO_MANIFEST_DIR")).status();
            assert!(built.is_ok_and(|status| status.success()), "the build failed");
        }
        profile
    })
}

/// Runs a command that succeeds, and returns what it prints.
pub fn run(command: &mut Command) -> String {
    command.env_remove("LD_LIBRARY_PATH");
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    assert!(output.status.success(), "{command:?}: {}\n{text}", output.status);
    text
}

/// Makes programs.
pub mod compile {
    use super::{Command, LazyLock, Path, PathBuf, profile, run};

    /// Returns an installation of its own, with what the tests need: mpiexec, and a directory with both libraries.
    pub fn prefix() -> PathBuf {
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("mpich-{}", std::process::id()))
    }

    /// Returns the directory of [`prefix`] with both libraries under the names that the loader looks for.
    pub fn folder() -> &'static Path {
        static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
            let (folder, bin) = (prefix().join("lib/typepack/mpich"), prefix().join("bin"));
            std::fs::create_dir_all(&folder).expect("a directory");
            std::fs::create_dir_all(&bin).expect("a directory");
            // A copy, because mpiexec looks for the libraries beside the file that runs.
            std::fs::copy(profile().join("mpiexec"), bin.join("mpiexec")).expect("a copy");
            for (file, name) in
                [("libmpi.so", "libmpi.so.12"), ("libmpi_abi.so", "libmpi_abi.so.1")]
            {
                let link = folder.join(name);
                let _none = std::fs::remove_file(&link);
                std::os::unix::fs::symlink(profile().join(file), link).expect("a link");
            }
            folder
        });
        &FOLDER
    }

    /// Compiles a program against MPICH's header, and links it with typepack's library.
    pub fn program(peer: &Path, name: &str, source: &Path, flags: &[&str]) -> PathBuf {
        let exe = folder().join(name);
        let mut compile = Command::new("cc");
        compile.args(["-std=gnu11", "-O1", "-g", "-pthread", "-I"]).arg(peer.join("include"));
        compile.args(flags).arg(source).arg("-o").arg(&exe).arg("-L").arg(folder());
        compile.arg(format!("-Wl,-rpath,{}", folder().display())).args(["-l:libmpi.so.12", "-lm"]);
        run(&mut compile);
        exe
    }
}

/// Compiles a program and runs it as one process (0) and as jobs.
fn program(source: &str, sizes: &[usize], flags: &[&str]) {
    let Some(peer) = PEER.get() else { return };
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(source);
    let name = source.file_stem().expect("a name").to_string_lossy().into_owned();
    let exe = compile::program(peer, &name, &source, flags);
    for &size in sizes {
        let mut command = match size {
            0 => Command::new(&exe),
            _ => {
                let mut command = Command::new(compile::prefix().join("bin/mpiexec"));
                command.args(["-timeout", "300", "-n", &size.to_string()]).arg(&exe);
                command
            }
        };
        // The programs make their files here, not in the tree.
        run(command.current_dir(exe.parent().expect("a folder")));
    }
}

macro_rules! programs {
    ($folder:literal $flags:expr; $($name:ident $sizes:expr;)*) => {
        $(
            #[test]
            fn $name() {
                program(concat!($folder, "/", stringify!($name), ".c"), &$sizes, &$flags);
            }
        )*
    };
}

programs! {
    "c" ["-Wall", "-Wextra", "-Werror"];
    thin [0, 2];
    values_of_mpich [0, 2];
}

// Programs of the C face's tests that say nothing about the standard ABI's own values.
programs! {
    "../../capi/tests/c" ["-w"];
    attributes [0, 2];
    buffers [0, 2];
    campaign [2, 3];
    campaign_neighbors [2, 3];
    cancels [2];
    collectives [0, 3];
    communicators [0, 2];
    creations [2];
    decoding [0, 2];
    files [0, 2];
    generalized [0];
    handlers [0, 2];
    intercommunicators [2, 3];
    languages [0, 2];
    layouts [0, 2];
    memory [0, 2];
    modes [0, 2];
    tool_events [0, 2];
    tools [0, 2];
    neighbors [0, 2];
    odd_arguments [0, 2];
    operations [0, 2];
    packing_units [0, 2];
    probes [0, 2];
    reductions [0, 2];
    representations [0];
    session_worlds [2];
    sessions [0, 2];
    started_collectives [2, 3];
    subsets [0, 3];
    threads [0, 2];
    topologies [0, 2];
    truncated [0, 2];
    window_campaign [2, 3];
    windows [0, 2];
}
