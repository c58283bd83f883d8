//! Tests of an installed prefix. `scripts/install` installs typepack into a directory. The tests compile C
//! and C++ programs with the `mpicc` and `mpicxx` of that prefix, and run them with its `mpiexec`. They also
//! move, stage and remove the prefix, and let CMake, Meson and pkg-config find it. If a test needs a tool
//! that is not installed, the test says so and passes.
//!
//! The tests install the build to which they belong, debug or release (`scripts/install --from`).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use typepack_test_support::skipped::skipped;

const HELLO: &str = r#"
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    printf("hello %d of %d\n", rank, size);
    MPI_Finalize();
    return 0;
}
"#;

/// Returns the root directory of the repository.
pub fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// Returns the build directory of these tests. Builds the library and the command-line tool there first.
pub fn built() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let folder =
            Path::new(env!("CARGO_BIN_EXE_mpiexec")).parent().expect("the program has a folder");
        // If TEST_BUILT is set, the script `scripts/test` or `scripts/clients` has already built the library
        // and the tool.
        if std::env::var_os("TEST_BUILT").is_none() {
            let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
            let mut build = Command::new(cargo);
            // Build the whole workspace. A build of fewer packages would enable other features, so cargo
            // would have to compile more.
            build.args(["build", "--quiet", "--offline", "--workspace", "--lib", "--bins"]);
            build.args(["--features", "typepack/ndarray"]);
            if folder.ends_with("release") {
                build.arg("--release");
            }
            let built = build.current_dir(root()).status().expect("cargo runs");
            assert!(built.success(), "cannot build the library and the tool: {built}");
        }
        folder.to_owned()
    })
}

/// A directory for one test. Dropping the value removes the directory.
pub struct Scratch(pub PathBuf);

impl Scratch {
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("prefix-{}-{number}", std::process::id());
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::create_dir_all(&path).expect("the directory is made");
        Self(path)
    }

    /// Writes `text` to a new file in the directory, and returns the file's path.
    pub fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, text).expect("the file is written");
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _best_effort = fs::remove_dir_all(&self.0);
    }
}

/// Returns a command that runs `program` and is killed after two minutes. The command does not inherit the
/// environment variables that could change where MPI or the compilers are found.
fn limited(program: impl AsRef<Path>) -> Command {
    let mut command = Command::new("timeout");
    command.args(["-k", "1", "900"]).arg(program.as_ref()).stdin(Stdio::null());
    for name in ["DESTDIR", "LD_LIBRARY_PATH", "PKG_CONFIG_PATH", "MPI_HOME", "CC", "CXX", "CFLAGS"]
    {
        command.env_remove(name);
    }
    for name in ["TYPEPACK_CC", "TYPEPACK_CXX", "MPICH_CC", "MPICH_CXX", "OMPI_CC", "OMPI_CXX"] {
        command.env_remove(name);
    }
    for name in ["TYPEPACK_FC", "MPICH_FC", "OMPI_FC", "FC", "FFLAGS", "MPIFC", "MPIFORT"] {
        command.env_remove(name);
    }
    for name in ["CPPFLAGS", "CXXFLAGS", "LDFLAGS", "MPICC", "MPICXX", "MPIEXEC_TIMEOUT"] {
        command.env_remove(name);
    }
    command
}

pub fn output(mut command: Command) -> Output {
    command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

/// Runs a command, checks that it succeeds, and returns its standard output.
pub fn good(command: Command) -> String {
    let shown = format!("{command:?}");
    let done = output(command);
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(
        done.status.success(),
        "{shown}: {}\n{text}\n{}",
        done.status,
        String::from_utf8_lossy(&done.stderr)
    );
    text
}

/// Returns a command that runs `program` with these arguments, made by [`limited`].
pub fn call(program: impl AsRef<Path>, arguments: &[&str]) -> Command {
    let mut command = limited(program);
    command.args(arguments);
    command
}

pub fn script(arguments: &[&str]) -> Command {
    call(root().join("scripts/install"), arguments)
}

pub fn text(path: &Path) -> &str {
    path.to_str().expect("the path is UTF-8")
}

fn install(prefix: &Path) {
    good(script(&["--prefix", text(prefix), "--from", text(built())]));
}

/// Returns an installed prefix that several tests share. None of these tests may change the prefix.
pub fn prefix() -> &'static Path {
    static PREFIX: OnceLock<PathBuf> = OnceLock::new();
    PREFIX.get_or_init(|| {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("prefix");
        // Remove the prefix that an earlier run of the tests has left.
        let _may_be_missing = fs::remove_dir_all(&path);
        install(&path);
        path.canonicalize().expect("the prefix has a path")
    })
}

/// Runs `program` on two ranks with the `mpiexec` of `prefix`, and checks that each rank prints its greeting.
pub fn says_hello(prefix: &Path, program: &Path, library_path: Option<&Path>) {
    let mut command = call(prefix.join("bin/mpiexec"), &["-n", "2", text(program)]);
    if let Some(path) = library_path {
        command.env("LD_LIBRARY_PATH", path);
    }
    let out = good(command);
    let mut lines: Vec<_> = out.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["hello 0 of 2", "hello 1 of 2"]);
}

/// Returns true if `tool` is installed. Otherwise prints that the test is skipped, and returns false.
pub fn installed(tool: &str) -> bool {
    let found = Command::new(tool).arg("--version").output().is_ok();
    if !found {
        skipped(format_args!("{tool} is not installed (scripts/setup --tests installs it)"));
    }
    found
}

/// Returns a value of PATH in which the shared prefix comes first.
pub fn search_path() -> String {
    format!("{}/bin:{}", text(prefix()), std::env::var("PATH").unwrap_or_default())
}

/// Returns the names of all files and directories below `folder`. The names of directories end in a slash. Which Fortran
/// modules there are depends on the compilers of the machine.
pub fn names(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(&next).expect("the directory can be read") {
            let entry = entry.expect("the entry can be read");
            let name = entry.path();
            let name =
                text(name.strip_prefix(folder).expect("the path is below the folder")).to_owned();
            if name.starts_with("lib/typepack/fortran/") {
                continue;
            }
            if entry.file_type().expect("the entry has a type").is_dir() {
                open.push(entry.path());
                found.push(format!("{name}/"));
            } else {
                found.push(name);
            }
        }
    }
    found.sort();
    found
}

/// What is installed, except for the examples.
const INSTALLED: [&str; 65] = [
    "bin/",
    "bin/mpiCC",
    "bin/mpic++",
    "bin/mpicc",
    "bin/mpicc_abi",
    "bin/mpicxx",
    "bin/mpiexec",
    "bin/mpif77",
    "bin/mpif90",
    "bin/mpifort",
    "bin/mpifort_abi",
    "bin/mpirun",
    "bin/typepack",
    "include/",
    "include/mpi.f90",
    "include/mpi.h",
    "include/mpicxx.h",
    "include/mpi_f08.f90",
    "include/mpif.h",
    "lib/",
    "lib/libmpi_abi.so",
    "lib/libmpi_abi.so.1",
    "lib/libmpifort_abi.so",
    "lib/libmpifort_abi.so.1",
    "lib/libtypepack_interpose.so",
    "lib/pkgconfig/",
    "lib/pkgconfig/mpi_abi.pc",
    "lib/pkgconfig/mpifort_abi.pc",
    "lib/pkgconfig/typepack.pc",
    "lib/typepack/",
    "lib/typepack/fortran/",
    "lib/typepack/mpich/",
    "lib/typepack/mpich/libmpi.so.12",
    "lib/typepack/mpich/libmpich.so.12",
    "share/",
    "share/man/",
    "share/man/man1/",
    "share/man/man1/mpiCC.1",
    "share/man/man1/mpic++.1",
    "share/man/man1/mpicc.1",
    "share/man/man1/mpicc_abi.1",
    "share/man/man1/mpicxx.1",
    "share/man/man1/mpiexec.1",
    "share/man/man1/mpif77.1",
    "share/man/man1/mpif90.1",
    "share/man/man1/mpifort.1",
    "share/man/man1/mpifort_abi.1",
    "share/man/man1/mpirun.1",
    "share/typepack/",
    "share/typepack/examples/",
    "share/typepack/examples/c/",
    "share/typepack/examples/fortran/",
    "share/typepack/examples/python/",
    "share/typepack/gdb/",
    "share/typepack/gdb/typepack.py",
    "share/typepack/installed",
    "share/typepack/mpi-sys/",
    "share/typepack/mpi-sys/Cargo.toml",
    "share/typepack/mpi-sys/LICENSE-APACHE",
    "share/typepack/mpi-sys/LICENSE-MIT",
    "share/typepack/mpi-sys/build.rs",
    "share/typepack/mpi-sys/src/",
    "share/typepack/mpi-sys/src/abi.rs",
    "share/typepack/mpi-sys/src/lib.rs",
    "share/typepack/mpi-sys/src/rsmpi.rs",
];

/// Returns all installed names: those of [`INSTALLED`] and the examples.
pub fn all_installed() -> Vec<String> {
    let mut found: Vec<String> = INSTALLED.map(String::from).into();
    for folder in ["c", "fortran", "python"] {
        let sources = fs::read_dir(root().join("runtime/examples").join(folder)).expect(folder);
        for file in sources {
            let name = file.expect(folder).file_name().into_string().expect("a name in UTF-8");
            if [".c", ".f90", ".py"].iter().any(|ending| name.ends_with(ending)) {
                found.push(format!("share/typepack/examples/{folder}/{name}"));
            }
        }
    }
    found.sort();
    found
}

#[test]
fn a_program_runs_also_after_a_move() {
    let scratch = Scratch::new();
    let (first, second) = (scratch.0.join("first"), scratch.0.join("second place"));
    install(&first);
    let source = scratch.file("hello.c", HELLO);
    let program = scratch.0.join("hello");
    good(call(first.join("bin/mpicc"), &["-Wall", "-Werror", text(&source), "-o", text(&program)]));
    says_hello(&first, &program, None);
    fs::rename(&first, &second).expect("the prefix is moved");
    // The program was compiled before the move, so LD_LIBRARY_PATH has to name the new folder of the library.
    says_hello(&second, &program, Some(&second.join("lib")));
    let again = scratch.0.join("again");
    good(call(second.join("bin/mpicc_abi"), &["-c", text(&source), "-o", "/dev/null"]));
    good(call(second.join("bin/mpicc"), &[text(&source), "-o", text(&again)]));
    says_hello(&second, &again, None);
    let out = good(call(second.join("bin/mpirun"), &["-n", "1", text(&again)]));
    assert_eq!(out, "hello 0 of 1\n");
}

#[test]
fn a_program_without_mpiexec_is_one_rank() {
    let scratch = Scratch::new();
    let source = scratch.file("hello.c", HELLO);
    let program = scratch.0.join("hello");
    good(call(prefix().join("bin/mpicc"), &[text(&source), "-o", text(&program)]));
    assert_eq!(good(limited(&program)), "hello 0 of 1\n");
    // If the program finds environment variables of another launcher, it must print a warning.
    let mut command = limited(&program);
    command.env("OMPI_COMM_WORLD_SIZE", "2");
    let done = output(command);
    assert_eq!(String::from_utf8_lossy(&done.stdout), "hello 0 of 1\n");
    let err = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(err.contains("OMPI_COMM_WORLD_SIZE") && err.contains("mpiexec"), "{err}");
}

#[test]
fn cxx_programs_use_the_c_functions() {
    let scratch = Scratch::new();
    let source = scratch.file("hello.cc", &HELLO.replace("stdio.h", "cstdio"));
    let program = scratch.0.join("hello");
    let words = ["-std=c++11", "-Wall", "-Wextra", "-Werror", text(&source), "-o", text(&program)];
    for wrapper in ["mpicxx", "mpic++", "mpiCC"] {
        good(call(prefix().join("bin").join(wrapper), &words));
        says_hello(prefix(), &program, None);
    }
}

/// Checks that the variables of typepack, MPICH and Open MPI switch the compiler, in this order, and that the command
/// line comes before them.
#[test]
fn variables_switch_the_compiler() {
    let shown = |wrapper: &str, set: &[(&str, &str)], option: &str| {
        let arguments: Vec<&str> =
            [option, "-showme:command"].into_iter().filter(|a| !a.is_empty()).collect();
        let mut command = call(prefix().join("bin").join(wrapper), &arguments);
        command.envs(set.iter().copied());
        good(command).trim().to_owned()
    };
    let set = [("OMPI_CC", "a"), ("MPICH_CC", "b c"), ("TYPEPACK_CC", "d"), ("OMPI_CXX", "e")];
    assert_eq!(shown("mpicc", &[], ""), "cc");
    assert_eq!(shown("mpicc", &set[..1], ""), "a");
    assert_eq!(shown("mpicc", &set[..2], ""), "b c");
    assert_eq!(shown("mpicc", &set, ""), "d");
    assert_eq!(shown("mpicc_abi", &set, "-cc=f"), "f");
    assert_eq!(shown("mpic++", &set, ""), "e");
}

/// Checks that a program of another MPI is named and not run as several jobs of one rank. As the only rank of its job,
/// the program runs.
#[test]
fn programs_of_other_mpis_are_named() {
    let scratch = Scratch::new();
    let library = scratch.0.join("libmpi.so.40");
    let source = scratch.file("other.c", "int other(void) { return 0; }");
    let soname = "-Wl,-soname,libmpi.so.40";
    good(call("cc", &["-shared", "-fPIC", soname, text(&source), "-o", text(&library)]));
    let source = scratch.file("main.c", "int other(void); int main(void) { return other(); }");
    let (program, rpath) = (scratch.0.join("program"), format!("-Wl,-rpath,{}", text(&scratch.0)));
    good(call("cc", &[text(&source), text(&library), &rpath, "-o", text(&program)]));
    let mpiexec = prefix().join("bin/mpiexec");
    let done = output(call(&mpiexec, &["-n", "2", text(&program)]));
    let err = String::from_utf8_lossy(&done.stderr).into_owned();
    assert_eq!((done.status.code(), err.lines().count()), (Some(126), 1), "{err}");
    assert!(err.contains("is linked with libmpi.so.40 (Open MPI)"), "{err}");
    good(call(&mpiexec, &["-n", "1", text(&program)]));
}

/// Checks that a program of MPICH's ABI gets typepack's library of that name, although its run path names another.
#[test]
fn programs_of_mpich_run_as_they_are() {
    // The second name is that of Debian's library.
    for name in ["libmpi.so.12", "libmpich.so.12"] {
        let scratch = Scratch::new();
        let library = scratch.0.join(name);
        let source = scratch.file("theirs.c", "int MPI_Initialized(int *on) { return *on = 7; }");
        let soname = format!("-Wl,-soname,{name}");
        good(call("cc", &["-shared", "-fPIC", &soname, text(&source), "-o", text(&library)]));
        let main = "int MPI_Initialized(int *); int main(void) { int on = 3; MPI_Initialized(&on); return on; }";
        let source = scratch.file("main.c", main);
        let program = scratch.0.join("program");
        let rpath = format!("-Wl,--enable-new-dtags,-rpath,{}", text(&scratch.0));
        good(call("cc", &[text(&source), text(&library), &rpath, "-o", text(&program)]));
        assert_eq!(output(call(&program, &[])).status.code(), Some(7));
        good(call(prefix().join("bin/mpiexec"), &["-n", "2", text(&program)]));
    }
}

#[test]
fn the_build_tree_compiles_too() {
    let scratch = Scratch::new();
    let source = scratch.file("hello.c", HELLO);
    let program = scratch.0.join("hello");
    good(call(built().join("mpicc"), &[text(&source), "-o", text(&program)]));
    let out = good(call(built().join("mpiexec"), &["-n", "1", text(&program)]));
    assert_eq!(out, "hello 0 of 1\n");
}

#[test]
fn programs_name_the_library_and_where_it_was() {
    if !installed("readelf") {
        return;
    }
    let scratch = Scratch::new();
    let source = scratch.file("hello.c", HELLO);
    let program = scratch.0.join("hello");
    good(call(prefix().join("bin/mpicc"), &[text(&source), "-o", text(&program)]));
    let dynamic = good(call("readelf", &["-d", text(&program)]));
    let line = |tag: &str| {
        let found = dynamic.lines().find(|line| line.contains(tag) && line.contains('['));
        found.unwrap_or_else(|| panic!("no {tag}: {dynamic}")).to_owned()
    };
    assert!(dynamic.contains("(NEEDED)") && dynamic.contains("[libmpi_abi.so.1]"), "{dynamic}");
    let lib = format!("[{}/lib]", text(prefix()));
    assert!(line("(RUNPATH)").ends_with(&lib), "{dynamic}");
    // No installed file except the launcher may need hwloc.
    for (file, needs) in
        [("bin/mpiexec", true), ("lib/libmpi_abi.so.1", false), ("bin/mpicc", false)]
    {
        let dynamic = good(call("readelf", &["-d", text(&prefix().join(file))]));
        assert_eq!(dynamic.contains("libhwloc"), needs, "{file}: {dynamic}");
    }
    let dynamic = good(call("readelf", &["-d", text(&prefix().join("lib/libmpi_abi.so.1"))]));
    assert!(dynamic.contains("soname: [libmpi_abi.so.1]"), "{dynamic}");
}

/// Debug information is three quarters of a library's size. The tables of symbols stay, for backtraces.
#[test]
fn installed_files_have_symbols_but_no_debug_information() {
    if !installed("readelf") || !installed("strip") {
        return;
    }
    for file in [
        "bin/mpiexec",
        "bin/mpicc",
        "bin/typepack",
        "lib/libmpi_abi.so.1",
        "lib/libtypepack_interpose.so",
    ] {
        let sections = good(call("readelf", &["-SW", text(&prefix().join(file))]));
        // The programs keep .debug_gdb_scripts, a section of 34 bytes.
        let has_debug = sections.contains(" .debug_info") || sections.contains(" .debug_line");
        assert!(!has_debug, "{file}: {sections}");
        assert!(sections.contains(" .symtab "), "{file}: {sections}");
    }
}

/// Checks that mpiexec can start a program that names the library but has no run path to the library's
/// folder. Cargo and CMake may link programs in this way.
#[test]
fn a_program_without_a_run_path_starts() {
    let scratch = Scratch::new();
    let source = scratch.file("hello.c", HELLO);
    let program = scratch.0.join("hello");
    let p = text(prefix());
    let (include, lib) = (format!("-I{p}/include"), format!("-L{p}/lib"));
    good(call("cc", &[text(&source), "-o", text(&program), &include, &lib, "-lmpi_abi"]));
    let alone = output(call(&program, &[]));
    assert!(String::from_utf8_lossy(&alone.stderr).contains("libmpi_abi.so.1"), "{alone:?}");
    says_hello(prefix(), &program, None);
    says_hello(prefix(), &program, Some(Path::new("/no/such")));
    // The user's folders must come before that of the library, even if an option of mpiexec sets the variable. Only the
    // folder of the library with MPICH's ABI comes first, here for a shell, which may start such a program.
    let mpich = format!("{p}/lib/typepack/mpich");
    let mpiexec = prefix().join("bin/mpiexec");
    let say = ["-n", "1", "sh", "-c", "echo $LD_LIBRARY_PATH"];
    for (options, wanted) in [
        (&[][..], format!("{mpich}:/a:/b:{p}/lib\n")),
        (&["-genv", "LD_LIBRARY_PATH", "/c"], format!("{mpich}:/c:{p}/lib\n")),
        (&["-genvnone", "-path", "/bin:/usr/bin"], format!("{mpich}:{p}/lib\n")),
    ] {
        let mut command = call(&mpiexec, &[options, &say].concat());
        command.env("LD_LIBRARY_PATH", "/a:/b");
        assert_eq!(good(command), wanted, "{options:?}");
    }
}

#[test]
fn queries_are_answered_from_the_wrappers_place() {
    let p = text(prefix());
    let link = format!("-L{p}/lib -Wl,-rpath,{p}/lib -Wl,--enable-new-dtags -lmpi_abi");
    let ask = |wrapper: &Path, query: &str| good(call(wrapper, &[query])).trim_end().to_owned();
    let mpicc = prefix().join("bin/mpicc");
    assert_eq!(ask(&mpicc, "-show"), format!("cc -I{p}/include {link}"));
    assert_eq!(ask(&prefix().join("bin/mpicxx"), "-show"), format!("c++ -I{p}/include {link}"));
    assert_eq!(ask(&mpicc, "-showme:compile"), format!("-I{p}/include"));
    assert_eq!(ask(&mpicc, "-showme:link"), link);
    assert_eq!(ask(&mpicc, "-showme:incdirs"), format!("{p}/include"));
    assert_eq!(ask(&mpicc, "-showme:libdirs"), format!("{p}/lib"));
    assert_eq!(ask(&mpicc, "-showme:libs"), "mpi_abi");
    assert!(ask(&mpicc, "--showme:version").starts_with("mpicc: typepack "));
    assert_eq!(ask(&mpicc, "-compile-info"), format!("cc -I{p}/include"));
    assert_eq!(ask(&mpicc, "-link_info"), format!("cc {link}"));
    // The wrapper must also work through a symbolic link in another directory.
    let scratch = Scratch::new();
    let far = scratch.0.join("my-mpicc");
    std::os::unix::fs::symlink(&mpicc, &far).expect("the link is made");
    assert_eq!(ask(&far, "-show"), ask(&mpicc, "-show"));
    // Unknown queries must fail, because CMake tries the queries of several vendors and trusts the exit
    // codes.
    for query in ["-showme:nothing", "-show-all", "--cray-print-opts=cflags", "-link_flags"] {
        let done = output(call(&mpicc, &[query]));
        assert!(!done.status.success(), "{query}: {done:?}");
        assert!(done.stdout.is_empty(), "{query}: {done:?}");
    }
    // The wrapper must pass queries about the compiler itself on to the compiler.
    let done = good(call(&mpicc, &["-dumpmachine"]));
    assert_eq!(done, good(call("cc", &["-dumpmachine"])));
    let done = output(call(&mpicc, &["-cc=no-such-compiler", "-c", "x.c"]));
    assert_eq!(done.status.code(), Some(127), "{done:?}");
    let line = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(line.starts_with("mpicc: cannot run the compiler 'no-such-compiler'"), "{line}");
}

#[test]
fn cmake_finds_us() {
    if !installed("cmake") {
        return;
    }
    let scratch = Scratch::new();
    scratch.file("hello.c", HELLO);
    scratch.file("hello.cc", HELLO);
    scratch.file(
        "CMakeLists.txt",
        "cmake_minimum_required(VERSION 3.13)\n\
         project(hello C CXX)\n\
         find_package(MPI REQUIRED COMPONENTS C CXX)\n\
         message(STATUS \"typepack: ${MPI_C_VERSION} ${MPI_C_LIBRARIES} ${MPIEXEC_EXECUTABLE}\")\n\
         add_executable(hello hello.c)\n\
         target_link_libraries(hello MPI::MPI_C)\n\
         add_executable(hellocc hello.cc)\n\
         target_link_libraries(hellocc MPI::MPI_CXX)\n\
         enable_testing()\n\
         add_test(NAME hello COMMAND ${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG} 2 ./hello)\n",
    );
    let build = scratch.0.join("build");
    let run = |arguments: &[&str]| {
        let mut command = call("cmake", arguments);
        command.env("PATH", search_path());
        good(command)
    };
    let words = run(&["-S", text(&scratch.0), "-B", text(&build)]);
    let p = text(prefix());
    let line = format!("typepack: 5.0 {p}/lib/libmpi_abi.so {p}/bin/mpiexec");
    assert!(words.contains(&line), "{line}: {words}");
    run(&["--build", text(&build)]);
    says_hello(prefix(), &build.join("hello"), None);
    says_hello(prefix(), &build.join("hellocc"), None);
    let mut command = limited("ctest");
    command.current_dir(&build);
    good(command);
}

#[test]
fn meson_finds_us() {
    if !installed("meson") || !installed("ninja") {
        return;
    }
    let scratch = Scratch::new();
    scratch.file("hello.c", HELLO);
    scratch.file("hello.cc", HELLO);
    scratch.file(
        "meson.build",
        "project('hello', 'c', 'cpp')\n\
         executable('hello', 'hello.c', dependencies: dependency('mpi', language: 'c'))\n\
         executable('hellocc', 'hello.cc', dependencies: dependency('mpi', language: 'cpp'))\n",
    );
    let build = scratch.0.join("build");
    for arguments in
        [&["setup", text(&build), text(&scratch.0)][..], &["compile", "-C", text(&build)]]
    {
        let mut command = call("meson", arguments);
        command.env("PATH", search_path());
        good(command);
    }
    says_hello(prefix(), &build.join("hello"), None);
    says_hello(prefix(), &build.join("hellocc"), None);
}

#[test]
fn pkg_config_finds_us() {
    if !installed("pkg-config") {
        return;
    }
    let scratch = Scratch::new();
    let source = scratch.file("hello.c", HELLO);
    let program = scratch.0.join("hello");
    for name in ["mpi_abi", "typepack"] {
        let ask = |query: &[&str]| {
            let mut command = call("pkg-config", query);
            command.arg(name).env("PKG_CONFIG_PATH", prefix().join("lib/pkgconfig"));
            good(command)
        };
        assert_eq!(ask(&["--modversion"]).trim(), env!("CARGO_PKG_VERSION"));
        let words = ask(&["--cflags", "--libs"]);
        assert!(!words.contains("-D") && !words.contains(".."), "{words}");
        assert!(words.contains(&format!("-I{}/include", text(prefix()))), "{words}");
        let mut command = call("cc", &[text(&source), "-o", text(&program)]);
        command.args(words.split_whitespace());
        good(command);
        says_hello(prefix(), &program, None);
    }
}

#[test]
fn uninstalling_leaves_nothing() {
    let scratch = Scratch::new();
    let prefix = scratch.0.join("new");
    install(&prefix);
    assert_eq!(names(&prefix), all_installed());
    // Install a second time into the same prefix.
    install(&prefix);
    assert_eq!(names(&prefix), all_installed());
    good(script(&["--prefix", text(&prefix), "--uninstall"]));
    assert!(!prefix.exists(), "{:?}", names(&prefix));
    let done = output(script(&["--prefix", text(&prefix), "--uninstall"]));
    assert_eq!(done.status.code(), Some(1), "{done:?}");
}

/// Checks that the interposer can be installed alone.
#[test]
fn the_interposer_is_installed_alone() {
    let scratch = Scratch::new();
    let folder = scratch.0.join("tool");
    let words = ["--prefix", text(&folder), "--interposer-only", "--from", text(built())];
    good(script(&words));
    let list = fs::read_to_string(folder.join("share/typepack/installed")).expect("a list");
    let files: Vec<_> = list.lines().filter(|name| !name.ends_with('/')).collect();
    let wanted = ["bin/typepack", "lib/libtypepack_interpose.so", "share/typepack/installed"];
    assert_eq!(files, wanted);
    good(script(&["--prefix", text(&folder), "--uninstall"]));
    assert!(!folder.exists());
}

/// Checks that every user can read the installed files, even if the user who installs them has a strict
/// umask.
#[test]
fn what_is_installed_can_be_read_by_all() {
    use std::os::unix::fs::PermissionsExt;
    let scratch = Scratch::new();
    let prefix = scratch.0.join("new");
    let line = format!("umask 077; exec \"$0\" --prefix {} --from {}", "\"$1\"", "\"$2\"");
    let script = root().join("scripts/install");
    good(call("sh", &["-c", &line, text(&script), text(&prefix), text(built())]));
    for name in all_installed() {
        let mode = fs::metadata(prefix.join(&name)).expect(&name).permissions().mode();
        let wanted = if name.ends_with('/') || name.starts_with("bin/") { 0o755 } else { 0o644 };
        assert_eq!(mode & 0o777 & wanted, wanted, "{name}: {mode:o}");
    }
}

#[test]
fn what_was_there_before_stays() {
    let scratch = Scratch::new();
    fs::create_dir_all(scratch.0.join("share/man")).expect("the directory is made");
    fs::create_dir_all(scratch.0.join("bin")).expect("the directory is made");
    scratch.file("bin/other", "");
    let before = names(&scratch.0);
    install(&scratch.0);
    scratch.file("lib/other", "");
    good(script(&["--prefix", text(&scratch.0), "--uninstall"]));
    let mut wanted = [before, vec!["lib/".into(), "lib/other".into()]].concat();
    wanted.sort();
    assert_eq!(names(&scratch.0), wanted);
}

#[test]
fn destdir_is_honoured() {
    let scratch = Scratch::new();
    let stage = scratch.0.join("stage");
    let mut command = script(&["--prefix=/opt/typepack", "--from", text(built())]);
    command.env("DESTDIR", &stage);
    good(command);
    let prefix = stage.join("opt/typepack");
    assert_eq!(names(&prefix), all_installed());
    // The wrappers and the launcher must also work while they are still in the staging directory.
    let source = scratch.file("hello.c", HELLO);
    let program = scratch.0.join("hello");
    good(call(prefix.join("bin/mpicc"), &[text(&source), "-o", text(&program)]));
    says_hello(&prefix, &program, None);
    let mut command = script(&["--prefix", "/opt/typepack", "--uninstall"]);
    command.env("DESTDIR", &stage);
    good(command);
    assert!(!prefix.exists());
}

#[test]
fn bad_arguments_of_the_script() {
    let scratch = Scratch::new();
    let empty = text(&scratch.0);
    for (arguments, code, part) in [
        (&[][..], 2, "--prefix is missing"),
        (&["--prefix"], 2, "--prefix: a directory must follow"),
        (&["--prefix", "here"], 2, "'here' is not an absolute path"),
        (&["--prefix", "/x", "--frob"], 2, "unknown argument '--frob'"),
        (&["--prefix", "/x", "--from", "/", "--uninstall"], 2, "exclude each other"),
        (&["--prefix", empty, "--from", empty], 1, "is missing; build it first"),
        (&["--prefix", empty, "--uninstall"], 1, "typepack is not installed in"),
    ] {
        let done = output(script(arguments));
        let line = String::from_utf8_lossy(&done.stderr).into_owned();
        assert_eq!(done.status.code(), Some(code), "{arguments:?}: {line}");
        assert!(line.starts_with("install: ") && line.contains(part), "{arguments:?}: {line}");
    }
    // A list of installed files that was tampered with must not make the script remove a file outside the
    // prefix.
    let victim = scratch.file("victim", "");
    let prefix = scratch.0.join("prefix/share/typepack");
    fs::create_dir_all(&prefix).expect("the directory is made");
    for line in ["../victim", "a/../../victim", "..", text(&victim)] {
        fs::write(prefix.join("installed"), format!("{line}\n")).expect("the list is written");
        let done = output(script(&["--prefix", &format!("{empty}/prefix"), "--uninstall"]));
        assert_eq!(done.status.code(), Some(1), "{line}: {done:?}");
        assert!(victim.exists());
    }
}

/// Checks that libraries of the same ABI are exchangeable. A program that was linked with MPICH's library
/// must run with typepack's library when nothing but the library path changes, and vice versa.
#[test]
fn libraries_of_the_same_abi_are_exchangeable() {
    let mpich = root().join("target/peers/mpich");
    if !mpich.join("lib/libmpi_abi.so.1").exists() {
        skipped("MPICH is not fetched: scripts/setup --tests");
        return;
    }
    let scratch = Scratch::new();
    let source = scratch.file("hello.c", HELLO);
    let (ours, theirs) = (scratch.0.join("ours"), scratch.0.join("theirs"));
    good(call(prefix().join("bin/mpicc"), &[text(&source), "-o", text(&ours)]));
    good(call(mpich.join("bin/mpicc_abi"), &[text(&source), "-o", text(&theirs)]));
    says_hello(prefix(), &theirs, Some(&prefix().join("lib")));
    says_hello(&mpich, &ours, Some(&mpich.join("lib")));
    // Each program must also run with the library that it was linked with.
    says_hello(prefix(), &ours, None);
    says_hello(&mpich, &theirs, None);
}

#[test]
fn the_initial_error_handler_is_that_of_the_command_line() {
    let scratch = Scratch::new();
    let source = scratch.file(
        "wrong.c",
        "#include <mpi.h>\n#include <stdio.h>\n\
         int main(void)\n{\n    MPI_Init(NULL, NULL);\n\
         \x20   int code = MPI_Comm_rank(MPI_COMM_WORLD, NULL);\n\
         \x20   printf(\"returned %d\\n\", code != MPI_SUCCESS);\n\
         \x20   MPI_Finalize();\n    return 0;\n}\n",
    );
    let program = scratch.0.join("wrong");
    good(call(prefix().join("bin/mpicc"), &[text(&source), "-o", text(&program)]));
    let mpiexec = prefix().join("bin/mpiexec");
    let words = ["-initial-errhandler", "mpi_errors_return", "-n", "1", text(&program)];
    assert_eq!(good(call(&mpiexec, &words)), "returned 1\n");
    let done = output(call(&mpiexec, &["-n", "1", text(&program)]));
    assert!(!done.status.success() && done.stdout.is_empty(), "{done:?}");
}

#[test]
fn the_tool_tells_about_installation_and_job() {
    let p = text(prefix());
    let alone = good(call(prefix().join("bin/typepack"), &["info"]));
    let library = format!("library  {p}/lib/libmpi_abi.so.1");
    assert!(alone.contains(&library), "{alone}");
    let tool = format!("{p}/bin/typepack");
    let both = good(call(prefix().join("bin/mpiexec"), &["-n", "2", &tool, "info", "--all"]));
    for part in ["2 ranks", "  rank 0 ", "  rank 1 ", "Transports", "ring of the pair"] {
        assert!(both.contains(part), "{part} in {both}");
    }
    assert_eq!(both.matches("Functions of the MPI ABI").count(), 1, "{both}");
}
