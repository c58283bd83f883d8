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
        compile
            .arg(format!("-fc={compiler}"))
            .args(["-g", "-O1", "-o", name])
            .arg(sources.join(source));
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
    the_nine_pairs_of_attributes "attributes.f90" ["attributes.c"], [1, 2];
    c_completes_operations_over_sections "completed.f90" ["completed.c"], [2];
    a_refused_section_lets_no_rank_wait "refused.f90" [], [2];
    strings_of_processes "spawned.f90" [], [1, 2];
}

programs! {
    "../examples/fortran":
    example_halo "halo.f90" [], [1, 2, 3, 4];
    example_array "array.f90" [], [1, 2, 3, 4];
    example_neighbors "neighbors.f90" [], [1, 2, 3, 4];
    example_languages "languages.f90" ["languages.c"], [2];
}

/// A program that was compiled with modules of another version says so in one line when it starts, in all three forms,
/// and also if only C initialises MPI. The modules here are those of this version with the name of another version.
#[test]
fn modules_of_another_version_are_named() {
    let folder = folder("versions");
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("include");
    let others = folder.join("others");
    std::fs::create_dir_all(&others).expect("a directory");
    for name in ["mpi_f08.f90", "mpi.f90", "mpif.h"] {
        let text = std::fs::read_to_string(include.join(name)).expect("a source");
        assert!(text.contains("/TYPEPACKMODULES1/"), "{name}");
        let other = text.replace("/TYPEPACKMODULES1/", "/TYPEPACKMODULES2/");
        std::fs::write(others.join(name), other).expect("the file is written");
    }
    let start = "#include <mpi.h>\nvoid start_in_c(void) { MPI_Init(0, 0); }\n";
    std::fs::write(folder.join("start.c"), start).expect("the file is written");
    run(command("mpicc", &folder).args(["-c", "start.c"]));
    let program = |form: &str| {
        if form == "C" {
            let c = "      interface\n      subroutine start_in_c() bind(C)\n      end\n      end interface\n";
            let text = "      integer :: code\n      call start_in_c()\n      call MPI_Finalize(code)\n      end\n";
            return format!(
                "      program short\n      use mpi_f08, only : MPI_Finalize\n{c}{text}"
            );
        }
        let form = match form {
            "mpif.h" => "      implicit none\n      include 'mpif.h'\n".to_owned(),
            module => format!("      use {module}, only : MPI_Init, MPI_Finalize\n"),
        };
        let text = "      integer :: code\n      call MPI_Init(code)\n      call MPI_Finalize(code)\n      end\n";
        format!("      program short\n{form}{text}")
    };
    for compiler in compilers() {
        let chosen = format!("-fc={compiler}");
        let modules = folder.join(compiler);
        std::fs::create_dir_all(&modules).expect("a directory");
        for source in ["mpi_f08.f90", "mpi.f90"] {
            let mut compile = Command::new(compiler);
            run(compile.current_dir(&modules).arg("-c").arg(others.join(source)));
        }
        for form in ["mpi_f08", "mpi", "mpif.h", "C"] {
            std::fs::write(folder.join("short.f90"), program(form)).expect("the file is written");
            for (other, lines) in [(false, 0), (true, 1)] {
                let mut compile = command("mpifort", &folder);
                compile.args([&chosen, "short.f90", "start.o", "-o", "short"]);
                if other {
                    compile.arg(format!("-I{}", modules.display()));
                    compile.arg(format!("-I{}", others.display()));
                }
                // The wrapper's folders come first.
                let said = run(compile.arg("-show"));
                let mut words: Vec<&str> = said.split_whitespace().collect();
                if other {
                    let is_own = |word: &&str| word.starts_with("-I");
                    let first = words.iter().take_while(|word| !word.ends_with(".f90")).count();
                    let own = words[..first].iter().filter(|word| is_own(word)).count();
                    words.drain(1..=own);
                }
                run(Command::new(words[0]).current_dir(&folder).args(&words[1..]));
                let mut start = command("mpiexec", &folder);
                let said = run(start.args(["-n", "2", "./short"]).env_remove("TYPEPACK_QUIET"));
                assert_eq!(said.lines().count(), lines, "{compiler} {form}: {said}");
                assert_eq!(said.contains("Fortran modules of version 2, but"), other, "{said}");
                let mut quiet = command("mpiexec", &folder);
                let said = run(quiet.args(["-n", "2", "./short"]).env("TYPEPACK_QUIET", "1"));
                assert_eq!(said, "", "{compiler} {form}");
            }
        }
    }
}

/// Without a compiler, each test here passes, and says that it is skipped.
#[test]
fn without_a_compiler_tests_are_skipped() {
    let folder = folder("skipped");
    let (file, empty) = (folder.join("list"), folder.join("empty"));
    std::fs::create_dir_all(&empty).expect("a directory");
    let _from_an_earlier_run = std::fs::remove_file(&file);
    let tests =
        ["programs::sections", "programs::fixed_source_form", "programs::modules_need_no_cache"];
    let exe = std::env::current_exe().expect("the path of this program");
    let mut again = Command::new(exe);
    again.arg("--exact").args(tests).env("PATH", &empty).env("TEST_SKIPPED", &file);
    run(&mut again);
    let list = std::fs::read_to_string(&file).expect("a list");
    for test in tests {
        let line = format!(" {test}: there is no Fortran compiler ");
        assert!(list.contains(&line), "{test}: {list}");
    }
}

/// Runs `mpifort`, and checks that it fails with one line. Returns the line.
fn refusal(command: &mut Command) -> String {
    let output = command.output().expect("mpifort runs");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(1) && text.lines().count() == 1, "{output:?}");
    text
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
    let mpifort = |words: &[&str]| refusal(command("mpifort", &folder).args(words));
    let line = mpifort(&["-fdefault-integer-8", "-c", "x.f90"]);
    assert!(line.contains("-fdefault-integer-8: "), "{line}");
    let line = mpifort(&["-fc=ifx", "-real-size", "64", "-c", "x.f90"]);
    assert!(line.contains("-real-size 64: "), "{line}");
    let line = mpifort(&["-fc=nvfortran", "-Mr8", "-c", "x.f90"]);
    assert!(line.contains("-Mr8: "), "{line}");
    // As part of the compiler's name, the option would make modules that every later program gets.
    let line = mpifort(&["-fc=gfortran -i8", "-c", "x.f90"]);
    assert!(line.contains("-i8: "), "{line}");
}

/// Without a cache that can be written, the modules go to a private folder among the temporary files. Without that,
/// one line says what was tried.
#[test]
fn modules_need_no_cache() {
    let folder = folder("without-cache");
    let file = folder.join("file");
    std::fs::write(&file, "").expect("the file is written");
    for compiler in compilers() {
        let temporary = folder.join(compiler);
        let _from_an_earlier_run = std::fs::remove_dir_all(&temporary);
        std::fs::create_dir(&temporary).expect("a directory");
        let mpifort = |temporary: &Path| {
            let mut mpifort = command("mpifort", &folder);
            mpifort.arg(format!("-fc={compiler}")).arg("-showme:compile");
            mpifort.env("XDG_CACHE_HOME", &file).env("TMPDIR", temporary);
            mpifort
        };
        let said = run(&mut mpifort(&temporary));
        let place = format!("-I{}/typepack-fortran-", temporary.display());
        assert!(said.starts_with(&place), "{said}");
        // The second call finds what the first one has made.
        assert_eq!(run(&mut mpifort(&temporary)), said);
        let line = refusal(&mut mpifort(&file));
        let (start, cache) =
            ("mpifort: there is no place for the Fortran modules (", file.display());
        assert!(line.starts_with(&format!("{start}{cache}/typepack/fortran: ")), "{line}");
        assert!(line.contains(&format!("; {cache}/typepack-fortran-")), "{line}");
    }
}

/// If a module has gone from the cache, `mpifort` makes it again.
#[test]
fn a_lost_module_is_made_again() {
    let folder = folder("lost");
    for compiler in compilers() {
        let mpifort = || {
            let mut mpifort = command("mpifort", &folder);
            mpifort.arg(format!("-fc={compiler}")).arg("-showme:incdirs");
            mpifort.env("XDG_CACHE_HOME", folder.join("cache"));
            run(&mut mpifort)
        };
        let said = mpifort();
        let modules = Path::new(said.split(' ').next().expect("a directory"));
        for name in ["mpi.mod", "mpi_f08.mod"] {
            std::fs::remove_file(modules.join(name)).expect("the module was there");
            assert_eq!(mpifort(), said);
            assert!(modules.join(name).exists(), "{compiler}: {name}");
        }
    }
}
