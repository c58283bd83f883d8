//! Compiles the Fortran programs in `f/` with every Fortran compiler that is there, and runs them as jobs of two ranks.
//!
//! A program ends with an error code if one of its checks fails. Without a compiler, a test says so and passes.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use typepack_test_support::skipped::skipped;

/// The names of compilers. Older ones of flang do not know buffers of any rank.
const COMPILERS: [&str; 4] = ["gfortran", "flang-22", "flang-21", "flang-20"];

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
            build.args(["--lib", "--bin", "mpiexec", "--bin", "mpifort", "--bin", "mpicc"]);
            if profile.ends_with("release") {
                build.arg("--release");
            }
            let built = build.current_dir(env!("CARGO_MANIFEST_DIR")).status();
            assert!(built.is_ok_and(|status| status.success()), "the build failed");
        }
        profile
    })
}

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    assert!(output.status.success(), "{command:?}: {}\n{text}", output.status);
    text
}

/// Returns the compilers that are there. If there is none, says so.
fn compilers() -> Vec<&'static str> {
    let there = |name: &&str| Command::new(name).arg("--version").output().is_ok();
    let found: Vec<&str> = COMPILERS.into_iter().filter(there).collect();
    if found.is_empty() {
        skipped(
            "there is no Fortran compiler (gfortran, flang-20 or newer): scripts/setup --tests",
        );
    }
    found
}

/// Returns a directory for what a compiler makes.
fn folder(compiler: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("fortran").join(compiler);
    std::fs::create_dir_all(&folder).expect("a directory");
    folder
}

/// Returns a command of this build. Fortran modules are kept in the tests' directory.
fn command(name: &str, folder: &Path) -> Command {
    let mut command = Command::new(profile().join(name));
    command.current_dir(folder).env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR"));
    // cargo sets the variable to directories that may contain older libraries.
    command.env_remove("LD_LIBRARY_PATH");
    command
}

/// Compiles `f/SOURCE` and `others` with each compiler, and runs the program with `ranks` ranks.
fn program(source: &str, others: &[&str], ranks: usize) {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/f");
    for compiler in compilers() {
        let folder = folder(compiler);
        let name = source.split('.').next().expect("a name");
        let mut objects = Vec::new();
        for other in others {
            let object = format!("{name}-{other}.o");
            run(command("mpicc", &folder).args(["-c", "-o", &object]).arg(sources.join(other)));
            objects.push(object);
        }
        let mut compile = command("mpifort", &folder);
        compile.arg(format!("-fc={compiler}")).args(["-g", "-o", name]).arg(sources.join(source));
        run(compile.args(objects));
        let program = format!("./{name}");
        run(command("mpiexec", &folder).args([
            "-timeout",
            "300",
            "-n",
            &ranks.to_string(),
            &program,
        ]));
    }
}

macro_rules! programs {
    ($($name:ident $source:literal $others:expr;)*) => {
        $(
            #[test]
            fn $name() {
                program($source, &$others, 2);
            }
        )*
    };
}

programs! {
    hello "hello.f90" [];
    messages "messages.f90" [];
    sections "sections.f90" [];
    both_modules "both.f90" [];
    campaign "campaign.f90" [];
    callbacks "callbacks.f90" [];
    the_module_mpi "old_module.f90" [];
    fixed_source_form "fixed.f" [];
    languages "languages.f90" ["languages.c"];
}

/// The program names only `libmpifort_abi.so.1`, which has to find the library of the C functions.
#[test]
fn a_program_starts_without_mpiexec() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/f/hello.f90");
    for compiler in compilers() {
        let folder = folder(compiler);
        let mut compile = command("mpifort", &folder);
        compile.arg(format!("-fc={compiler}")).args(["-Wl,--as-needed", "-o", "alone"]);
        run(compile.arg(&source));
        run(Command::new(folder.join("alone")).env_remove("LD_LIBRARY_PATH"));
    }
}

#[test]
fn options_that_change_kinds_are_refused() {
    if compilers().is_empty() {
        return;
    }
    let folder = folder("refused");
    let output = command("mpifort", &folder).args(["-fdefault-integer-8", "-c", "x.f90"]).output();
    let output = output.expect("mpifort runs");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && text.contains("-fdefault-integer-8: "), "{text}");
    // As part of the compiler's name, the option would make modules that every later program gets.
    let output = command("mpifort", &folder).args(["-fc=gfortran -i8", "-c", "x.f90"]).output();
    let output = output.expect("mpifort runs");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && text.contains("-i8: "), "{text}");
}
