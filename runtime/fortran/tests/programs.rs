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

/// Compiles `PLACE/SOURCE` and `others` with each compiler, and runs the program with each number of ranks. The programs
/// of different places have different directories, because their names may be equal.
fn program(place: &str, source: &str, others: &[&str], sizes: &[usize]) {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join(place);
    for compiler in compilers() {
        let folder = folder(&format!("{compiler}-{}", place.replace(['/', '.'], "")));
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
        for ranks in sizes {
            let ranks = ranks.to_string();
            run(command("mpiexec", &folder).args(["-timeout", "300", "-n", &ranks, &program]));
        }
    }
}

macro_rules! programs {
    ($place:literal: $($name:ident $source:literal $others:expr, $sizes:expr;)*) => {
        $(
            #[test]
            fn $name() {
                program($place, $source, &$others, &$sizes);
            }
        )*
    };
}

programs! {
    "tests/f":
    hello "hello.f90" [], [2];
    messages "messages.f90" [], [2];
    sections "sections.f90" [], [2];
    both_modules "both.f90" [], [2];
    campaign "campaign.f90" [], [2];
    odd_datatypes "edges.f90" [], [2];
    callbacks "callbacks.f90" [], [2];
    the_module_mpi "old_module.f90" [], [2];
    fixed_source_form "fixed.f" [], [2];
    languages "languages.f90" ["languages.c"], [2];
}

programs! {
    "../examples/fortran":
    example_halo "halo.f90" [], [1, 2, 3, 4];
    example_array "array.f90" [], [1, 2, 3, 4];
    example_neighbors "neighbors.f90" [], [1, 2, 3, 4];
    example_languages "languages.f90" ["languages.c"], [2];
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
