//! Tests of an installed prefix with Fortran: modules, wrappers, build systems, and a machine without a compiler.

use crate::prefix::{
    Scratch, all_installed, built, call, good, installed, names, output, prefix, says_hello,
    script, search_path, text,
};
use std::path::{Path, PathBuf};
use std::process::Command;
use typepack_test_support::skipped::skipped;

/// A program in free form, for `use mpi_f08` and `use mpi`. `USE` stands for one of them.
const HELLO: &str = "\
program hello
  USE
  implicit none
  integer :: rank, ranks, code
  call MPI_Init(code)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, code)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, code)
  print '(a,i0,a,i0)', 'hello ', rank, ' of ', ranks
  call MPI_Finalize(code)
end program
";

/// The same in fixed form, with `mpif.h`.
const FIXED: &str = "      PROGRAM HELLO
      INCLUDE 'mpif.h'
      INTEGER RANK, RANKS, IERR
      CALL MPI_INIT(IERR)
      CALL MPI_COMM_RANK(MPI_COMM_WORLD, RANK, IERR)
      CALL MPI_COMM_SIZE(MPI_COMM_WORLD, RANKS, IERR)
      PRINT '(A,I0,A,I0)', 'hello ', RANK, ' of ', RANKS
      CALL MPI_FINALIZE(IERR)
      END
";

/// Returns the compilers that are there. If there is none, says so.
fn compilers() -> Vec<&'static str> {
    let there = |name: &&str| Command::new(name).arg("--version").output().is_ok();
    let found: Vec<&str> = ["gfortran", "flang-22"].into_iter().filter(there).collect();
    if found.is_empty() {
        skipped("there is no Fortran compiler (gfortran, flang-22): scripts/setup --tests");
    }
    found
}

fn wrapper(name: &str) -> PathBuf {
    prefix().join("bin").join(name)
}

/// The installation has made the modules, so that the wrappers need no place to write to.
#[test]
fn the_prefix_has_the_modules() {
    let scratch = Scratch::new();
    let file = scratch.file("file", "");
    let source = scratch.file("hello.f90", &HELLO.replace("USE", "use mpi_f08"));
    let old = scratch.file("hello.f", FIXED);
    let program = scratch.0.join("hello");
    for compiler in compilers() {
        let chosen = format!("-fc={compiler}");
        let without_a_cache = |words: &[&str]| {
            let mut command = call(wrapper("mpifort"), words);
            command.arg(&chosen).env("XDG_CACHE_HOME", &file).env("TMPDIR", &file);
            good(command)
        };
        let modules = without_a_cache(&["-showme:incdirs"]);
        // The folder has the name of the compiler's file, to which other names lead, and of the processor.
        let file = good(call("sh", &["-c", &format!("readlink -f \"$(command -v {compiler})\"")]));
        let name = Path::new(file.trim()).file_name().and_then(|name| name.to_str());
        let name = format!("{}-{}-", name.expect("a name"), std::env::consts::ARCH);
        let place = format!("{}/lib/typepack/fortran/{name}", text(prefix()));
        assert!(modules.starts_with(&place), "{modules}");
        let other = scratch.0.join(format!("other-{compiler}"));
        std::os::unix::fs::symlink(file.trim(), &other).expect("a link");
        let other = format!("-fc={}", text(&other));
        assert_eq!(good(call(wrapper("mpifort"), &[&other, "-showme:incdirs"])), modules);
        for name in ["mpifort", "mpif90", "mpif77", "mpifort_abi"] {
            good(call(wrapper(name), &[&chosen, text(&source), "-o", text(&program)]));
            says_hello(prefix(), &program, None);
        }
        good(call(wrapper("mpif77"), &[&chosen, text(&old), "-o", text(&program)]));
        says_hello(prefix(), &program, None);
        // Without mpiexec, nothing but the program says where the libraries are.
        assert_eq!(good(call(&program, &[])).trim(), "hello 0 of 1");
        let tool = good(call(wrapper("typepack"), &["fortran", "--fc", compiler]));
        assert!(tool.starts_with(&format!("{compiler}: modules in {place}")), "{tool}");
        assert_eq!(tool.lines().count(), 1, "{tool}");
    }
}

/// A compiler with two of the known names is taken once.
#[test]
fn two_names_of_a_compiler_are_one_compiler() {
    let scratch = Scratch::new();
    let Some(compiler) = compilers().first().copied() else { return };
    let file = good(call("sh", &["-c", &format!("command -v {compiler}")]));
    for name in ["gfortran", "flang"] {
        std::os::unix::fs::symlink(file.trim(), scratch.0.join(name)).expect("a link");
    }
    let mut command = call(wrapper("typepack"), &["fortran"]);
    let path = std::env::var("PATH").expect("PATH");
    command.env("PATH", format!("{}:{path}", text(&scratch.0)));
    let said = good(command);
    let folders: Vec<&str> = said.lines().filter_map(|line| line.split(" in ").nth(1)).collect();
    let distinct: std::collections::BTreeSet<&str> = folders.iter().copied().collect();
    assert!(!folders.is_empty() && folders.len() == distinct.len(), "{said}");
}

/// A compiler that passes arrays in another way gets the modules that do without descriptors, and one line says so.
/// Later calls find what was made. The compiler here is one whose programs print something else.
#[test]
fn a_compiler_with_strange_descriptors_has_no_mpi_f08() {
    let scratch = Scratch::new();
    let cache = scratch.0.join("cache");
    for compiler in compilers() {
        // Compiles the probe with an array of another shape.
        let strange = format!(
            "#!/bin/sh\ncase \"$*\" in *probe.f90*) sed -i 's/a(1:63:2,3:40)/a(1:63:3,3:40)/' probe.f90;; esac\n\
             exec {compiler} \"$@\"\n"
        );
        let strange = scratch.file(&format!("strange-{compiler}"), &strange);
        good(call("chmod", &["+x", text(&strange)]));
        let source = scratch.file("hello.f90", &HELLO.replace("USE", "use mpi"));
        let program = scratch.0.join("hello");
        let compile = || {
            let mut command = call(built().join("mpifort"), &[text(&source), "-o", text(&program)]);
            command.env("TYPEPACK_FC", &strange).env("XDG_CACHE_HOME", &cache);
            let done = output(command);
            assert!(done.status.success(), "{done:?}");
            String::from_utf8_lossy(&done.stderr).into_owned()
        };
        let line = format!(
            "{}: there is no module mpi_f08 for this compiler, only mpi and mpif.h: the library does not understand \
             how it passes a section of an array\n",
            text(&strange)
        );
        assert_eq!(compile(), format!("mpifort: {line}"));
        assert_eq!(compile(), "");
        let mut command = call(built().join("typepack"), &["fortran", "--fc", text(&strange)]);
        command.env("XDG_CACHE_HOME", &cache);
        let said = good(command);
        let (first, second) = said.split_once('\n').expect("two lines");
        assert!(first.contains(text(&cache)), "{said}");
        assert_eq!(second, line);
        let folder = first.split(" in ").last().expect("a folder");
        assert!(!Path::new(folder).join("mpi_f08.mod").exists());
    }
}

/// Without a compiler for Fortran, everything else is installed, and one line says what is missing.
#[test]
fn without_a_compiler_the_rest_is_installed() {
    let scratch = Scratch::new();
    let tools = scratch.0.join("tools");
    std::fs::create_dir(&tools).expect("a directory");
    let words = "bash cat chmod dirname env install ln mkdir mv rm rmdir sed timeout true";
    for tool in words.split(' ') {
        let found = good(call("sh", &["-c", &format!("command -v {tool}")]));
        let found =
            if found.starts_with('/') { found.trim().to_owned() } else { format!("/bin/{tool}") };
        std::os::unix::fs::symlink(found, tools.join(tool)).expect("a link");
    }
    let new = scratch.0.join("new");
    let mut command = script(&["--prefix", text(&new), "--from", text(built())]);
    command.env("PATH", &tools);
    let said = good(command);
    assert!(said.contains("install: fortran: no compiler in PATH (gfortran, flang, "), "{said}");
    assert_eq!(names(&new), all_installed());
    let modules = new.join("lib/typepack/fortran");
    assert_eq!(std::fs::read_dir(&modules).expect("the directory").count(), 0);
    let mpifort = |words: &[&str]| {
        let mut command = call(new.join("bin/mpifort"), words);
        command.env("PATH", &tools);
        output(command)
    };
    let done = mpifort(&["-c", "x.f90"]);
    let line = String::from_utf8_lossy(&done.stderr).into_owned();
    assert_eq!((done.status.code(), line.lines().count()), (Some(127), 1), "{line}");
    assert!(line.starts_with("mpifort: cannot run the compiler 'gfortran': "), "{line}");
    assert!(mpifort(&["-showme:link"]).status.success());
    // The modules of a compiler that comes later are found, and go with the rest.
    for compiler in compilers() {
        good(call(new.join("bin/typepack"), &["fortran", "--fc", compiler]));
    }
    good(script(&["--prefix", text(&new), "--uninstall"]));
    assert!(!new.exists());
}

#[test]
fn cmake_finds_fortran() {
    if !installed("cmake") {
        return;
    }
    for compiler in compilers() {
        let scratch = Scratch::new();
        scratch.file("f08.f90", &HELLO.replace("USE", "use mpi_f08"));
        scratch.file("old.f90", &HELLO.replace("USE", "use mpi"));
        scratch.file("fixed.f", FIXED);
        scratch.file(
            "CMakeLists.txt",
            "cmake_minimum_required(VERSION 3.13)\n\
             project(hello C Fortran)\n\
             find_package(MPI REQUIRED COMPONENTS Fortran)\n\
             message(STATUS \"typepack: ${MPI_Fortran_HAVE_F77_HEADER} ${MPI_Fortran_HAVE_F90_MODULE} \
             ${MPI_Fortran_HAVE_F08_MODULE} ${MPI_Fortran_VERSION} ${MPI_mpifort_abi_LIBRARY}\")\n\
             foreach(name f08.f90 old.f90 fixed.f)\n\
             add_executable(${name}.out ${name})\n\
             target_link_libraries(${name}.out MPI::MPI_Fortran)\n\
             endforeach()\n",
        );
        let build = scratch.0.join("build");
        let run = |arguments: &[&str]| {
            let mut command = call("cmake", arguments);
            command.env("PATH", search_path()).env("TYPEPACK_FC", compiler).env("FC", compiler);
            good(command)
        };
        let words = run(&["-S", text(&scratch.0), "-B", text(&build)]);
        let line = format!("typepack: TRUE TRUE TRUE 5.0 {}/lib/libmpifort_abi.so", text(prefix()));
        assert!(words.contains(&line), "{line}: {words}");
        run(&["--build", text(&build)]);
        for name in ["f08.f90", "old.f90", "fixed.f"] {
            says_hello(prefix(), &build.join(format!("{name}.out")), None);
        }
    }
}

#[test]
fn meson_finds_fortran() {
    if !installed("meson") || !installed("ninja") {
        return;
    }
    // Meson 1.0 takes flang for the compiler of that name by PGI.
    for compiler in compilers().into_iter().filter(|name| *name == "gfortran") {
        let scratch = Scratch::new();
        scratch.file("f08.f90", &HELLO.replace("USE", "use mpi_f08"));
        scratch.file(
            "meson.build",
            "project('hello', 'fortran')\n\
             executable('hello', 'f08.f90', dependencies: dependency('mpi', language: 'fortran'))\n",
        );
        let build = scratch.0.join("build");
        for arguments in
            [&["setup", text(&build), text(&scratch.0)][..], &["compile", "-C", text(&build)]]
        {
            let mut command = call("meson", arguments);
            command.env("PATH", search_path()).env("TYPEPACK_FC", compiler).env("FC", compiler);
            good(command);
        }
        says_hello(prefix(), &build.join("hello"), None);
    }
}

#[test]
fn pkg_config_finds_fortran() {
    if !installed("pkg-config") {
        return;
    }
    let scratch = Scratch::new();
    let source = scratch.file("fixed.f", FIXED);
    let program = scratch.0.join("hello");
    for compiler in compilers() {
        let mut command = call("pkg-config", &["--cflags", "--libs", "mpifort_abi"]);
        command.env("PKG_CONFIG_PATH", prefix().join("lib/pkgconfig"));
        let words = good(command);
        let mut command = call(compiler, &[text(&source), "-o", text(&program)]);
        command.args(words.split_whitespace());
        good(command);
        says_hello(prefix(), &program, None);
    }
}

/// The names that are installed for Fortran are links to one program.
#[test]
fn all_wrappers_are_one() {
    for name in ["mpif77", "mpif90", "mpifort_abi"] {
        let link = std::fs::read_link(wrapper(name)).expect("a link");
        assert_eq!(link, Path::new("mpifort"), "{name}");
    }
}
