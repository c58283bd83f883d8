//! Makes installations that are broken in one way each, and checks that `typepack doctor` names the fault and its cure,
//! and that it finds nothing in good ones.
//!
//! The tool and the wrappers are those of this build, under another path. The library is a file with the text by which the
//! doctor knows it.

use crate::tool;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

const VERSION: &str = env!("CARGO_PKG_VERSION");
const PROGRAMS: [&str; 5] = ["typepack", "mpiexec", "mpicc", "mpicxx", "mpifort"];

/// An installation for one test, which goes with the value.
struct Place {
    root: PathBuf,
    wheel: bool,
}

impl Place {
    /// Makes a good one.
    fn new(name: &str, wheel: bool) -> Self {
        let name = format!("doctor-{name}-{}", std::process::id());
        let place = Self { root: Path::new(env!("CARGO_TARGET_TMPDIR")).join(name), wheel };
        let built = tool::bin();
        for program in PROGRAMS {
            let path = place.files().join("bin").join(program);
            parents(&path);
            if fs::hard_link(built.join(program), &path).is_err() {
                fs::copy(built.join(program), &path).unwrap();
            }
            if wheel {
                let text =
                    format!("#!/bin/sh\nexec \"${{0%/*}}/../lib/typepack/bin/{program}\" \"$@\"\n");
                place.script(&format!("env/bin/{program}"), &text);
            }
        }
        place.write(&place.inside("lib/libmpi_abi.so.1"), &library(VERSION));
        let header = Path::new(env!("CARGO_MANIFEST_DIR")).join("../capi/include/mpi.h");
        place.write(&place.inside("include/mpi.h"), &fs::read_to_string(header).unwrap());
        if wheel {
            place.write("env/lib/libmpi_abi.so.1", "thin");
            let active = format!("VIRTUAL_ENV='{}'\n", place.root.join("env").display());
            place.write("env/bin/activate", &active);
            place.package("typepack", VERSION, &["bin/mpiexec", "lib/libmpi_abi.so.1"]);
        }
        // The compilers of the machine, under names that no other MPI has.
        for name in ["cc", "gfortran"] {
            place.script(&format!("tools/{name}"), "#!/bin/sh\n");
        }
        place
    }

    /// The folder of the installed files.
    fn files(&self) -> PathBuf {
        self.root.join(if self.wheel { "env/lib/typepack" } else { "env" })
    }

    /// The path of an installed file, relative to the test's folder.
    fn inside(&self, name: &str) -> String {
        let folder = if self.wheel { "env/lib/typepack" } else { "env" };
        format!("{folder}/{name}")
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.root.join(name);
        parents(&path);
        // A new file, because the old one may be a hard link to a program of the build.
        let _absent = fs::remove_file(&path);
        fs::write(path, text).unwrap();
    }

    fn script(&self, name: &str, text: &str) {
        self.write(name, text);
        fs::set_permissions(self.root.join(name), fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn remove(&self, name: &str) {
        fs::remove_file(self.root.join(name)).unwrap();
    }

    /// Writes the RECORD of a package whose files are there. Python computes the hashes independently.
    fn package(&self, name: &str, version: &str, files: &[&str]) {
        let site = self.root.join("env/lib/python3.11/site-packages");
        let mut record = String::new();
        for file in files {
            let path = self.root.join("env").join(file);
            let hash = match Command::new("sha256sum").arg(&path).output() {
                Ok(done) if done.status.success() => base64(&done.stdout[..64]),
                _ => panic!("sha256sum cannot read {}", path.display()),
            };
            record += &format!("../../../{file},sha256={hash},1\n");
        }
        let folder = site.join(format!("{name}-{version}.dist-info"));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("RECORD"), record).unwrap();
    }

    /// Runs the doctor. `path` has the folders of `PATH`, relative to the test's folder.
    fn examine(&self, path: &[&str], variables: &[(&str, &str)]) -> (Option<i32>, String) {
        self.examine_in(if self.wheel { "env/lib/typepack" } else { "env" }, path, variables)
    }

    /// The same, of the tool in another folder.
    fn examine_in(
        &self,
        files: &str,
        path: &[&str],
        variables: &[(&str, &str)],
    ) -> (Option<i32>, String) {
        let folders = path.iter().map(|folder| self.root.join(folder));
        let mut command = Command::new(self.root.join(files).join("bin/typepack"));
        command.arg("doctor").env_clear().envs(variables.iter().copied());
        command.env("PATH", std::env::join_paths(folders).unwrap()).env("HOME", &self.root);
        command.env("TMPDIR", &self.root);
        let done = tool::run(&mut command);
        assert_eq!(done.stderr, "");
        (done.code, done.stdout)
    }

    /// Checks that the doctor finds the faults of these names and no other, and that the text has all `words`.
    fn has(&self, path: &[&str], variables: &[(&str, &str)], faults: &[&str], words: &[&str]) {
        let (code, text) = self.examine(path, variables);
        assert_eq!(found(&text, "Faults"), faults, "{text}");
        assert_eq!(code, Some(i32::from(!faults.is_empty())), "{text}");
        assert_eq!(text.contains("no faults found"), faults.is_empty(), "{text}");
        for word in words {
            assert!(text.contains(word), "'{word}' is missing in:\n{text}");
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _left_behind = fs::remove_dir_all(&self.root);
    }
}

fn parents(path: &Path) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
}

fn library(version: &str) -> String {
    format!("\0typepack {version}, MPI 5\0")
}

/// Converts 64 hexadecimal digits to base64 for URLs.
fn base64(digits: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let value = |digit: &u8| char::from(*digit).to_digit(16).unwrap();
    let bits: Vec<u32> = digits
        .iter()
        .flat_map(|digit| (0..4).rev().map(move |bit| value(digit) >> bit & 1))
        .collect();
    let six = bits.chunks(6).map(|bits| {
        let value = bits.iter().fold(0, |sum, bit| sum * 2 + bit) << (6 - bits.len());
        char::from(ALPHABET[value as usize])
    });
    six.collect()
}

/// Returns the names of the findings under a title.
fn found<'a>(text: &'a str, title: &str) -> Vec<&'a str> {
    let lines = text.lines().skip_while(|line| *line != title).skip(1);
    let lines = lines.take_while(|line| !line.is_empty());
    lines
        .filter_map(|line| line.strip_prefix("  ")?.split_once(": "))
        .map(|(name, _)| name)
        .filter(|name| !name.starts_with(' '))
        .collect()
}

const GOOD: &[&str] = &["env/bin", "tools"];

#[test]
fn good_installations_have_no_fault() {
    for wheel in [false, true] {
        let place = Place::new(&format!("good-{wheel}"), wheel);
        place.has(GOOD, &[], &[], &["mpiexec (typepack)", "header"]);
        // Its own folder of libraries does no harm, and neither does a folder without a library.
        let own = place.root.join("env/lib").display().to_string();
        place.has(GOOD, &[("LD_LIBRARY_PATH", &format!("/nowhere:{own}"))], &[], &[]);
        // Other programs may come first, if they are no programs of an MPI.
        place.has(&["tools", "env/bin"], &[], &[], &[]);
        // A symbolic link to the launcher is the launcher.
        fs::create_dir_all(place.root.join("home")).unwrap();
        symlink(place.files().join("bin/mpiexec"), place.root.join("home/mpiexec")).unwrap();
        place.has(&["home", "env/bin", "tools"], &[], &[], &[]);
        let (_, text) = place.examine(GOOD, &[]);
        assert_eq!(found(&text, "Notes"), [""; 0], "{text}");
    }
}

#[test]
fn what_path_finds_first_is_judged() {
    let place = Place::new("path", true);
    let bin = place.root.join("env/bin").display().to_string();
    let cure = format!("cure: export PATH={bin}:$PATH");
    place.has(&["tools"], &[], &["not-in-path"], &[&cure]);
    place.script("mpich/mpiexec", "#!/bin/sh\necho HYDRA build details:\n");
    let path = &["mpich", "env/bin", "tools"];
    place.has(path, &[], &["foreign-launcher"], &[&cure, "HYDRA", "typepack-mpiexec"]);
    place.script("mpich/mpicc", "#!/bin/sh\n");
    place.has(path, &[], &["foreign-launcher", "foreign-wrapper"], &["mpich/mpicc"]);
    place.script("other/mpiexec", "#!/bin/sh\necho 'mpiexec (typepack) 0.0.1'\n");
    place.has(&["other", "env/bin", "tools"], &[], &["other-installation"], &[&cure, "0.0.1"]);
}

#[test]
fn programs_that_are_broken_are_named() {
    let place = Place::new("programs", false);
    place.script("env/bin/mpicxx", "#!/bin/sh\necho 'mpicxx: typepack 0.0.1 (Language: C++)'\n");
    place.has(GOOD, &[], &["other-version"], &["0.0.1", "cure: scripts/install --prefix "]);
    place.script("env/bin/mpicxx", "#!/bin/sh\necho 'gcc 12'\n");
    place.has(GOOD, &[], &["overwritten-program"], &["gcc 12"]);
    place.remove("env/bin/mpicxx");
    place.has(GOOD, &[], &["missing-program"], &["mpicxx of this installation is missing"]);
    let place = Place::new("permission", true);
    let thin = place.root.join("env/bin/mpiexec");
    fs::set_permissions(&thin, fs::Permissions::from_mode(0o644)).unwrap();
    let cure = format!("cure: chmod +x {}", thin.display());
    place.has(GOOD, &[], &["not-executable"], &[&cure]);
}

#[test]
fn libraries_that_do_not_belong_are_named() {
    let place = Place::new("library", false);
    place.write("foreign/libmpi_abi.so.1", "MPICH");
    let foreign = place.root.join("foreign").display().to_string();
    let variables = [("LD_LIBRARY_PATH", foreign.as_str())];
    let cure = format!("cure: take {foreign} out of LD_LIBRARY_PATH");
    place.has(GOOD, &variables, &["library-path"], &[&cure]);
    place.write("env/lib/libmpi_abi.so.1", &library("0.0.1"));
    place.has(GOOD, &[], &["other-library-version"], &["0.0.1"]);
    place.write("env/lib/libmpi_abi.so.1", "MPICH Version: 5.0");
    place.has(GOOD, &[], &["overwritten-library"], &["is not typepack's library"]);
    place.remove("env/lib/libmpi_abi.so.1");
    place.has(GOOD, &[], &["missing-library"], &["cure: scripts/install --prefix "]);
}

#[test]
fn headers_that_do_not_belong_are_named() {
    let place = Place::new("header", false);
    place.write("env/include/mpi.h", "/* mpi.h: the MPI 5 standard ABI, from typepack. */\n");
    place.has(GOOD, &[], &["other-header"], &["of another version"]);
    place.write("env/include/mpi.h", "/* MPICH */\n");
    place.has(GOOD, &[], &["other-header"], &["of another MPI"]);
    place.remove("env/include/mpi.h");
    place.has(GOOD, &[], &["missing-header"], &["cure: scripts/install --prefix "]);
}

#[test]
fn two_wheels_in_one_environment_are_named() {
    let place = Place::new("wheels", true);
    // The other wheel comes later and overwrites the library.
    place.write("env/lib/libmpi_abi.so.1", "MPICH");
    place.package("mpich", "5.0.2", &["lib/libmpi_abi.so.1"]);
    let faults = ["overwritten-files", "two-mpi-wheels"];
    let cure = "pip uninstall -y mpich && ";
    place.has(GOOD, &[], &faults, &[cure, "mpich 5.0.2", "--force-reinstall --no-deps typepack"]);
    place.script("env/bin/mpiexec", "#!/bin/sh\necho HYDRA build details:\n");
    place.script("env/bin/mpicc", "#!/bin/sh\n");
    let faults =
        ["overwritten-program", "overwritten-wrapper", "overwritten-files", "two-mpi-wheels"];
    place.has(GOOD, &[], &faults, &[cure, "HYDRA", "another MPI has overwritten"]);
    // Its removal takes the names that both have.
    place.remove("env/bin/mpiexec");
    place.remove("env/bin/mpicc");
    place.remove("env/lib/libmpi_abi.so.1");
    fs::remove_dir_all(place.root.join("env/lib/python3.11/site-packages/mpich-5.0.2.dist-info"))
        .unwrap();
    place.has(GOOD, &[], &["missing-program", "removed-files"], &["env/lib/libmpi_abi.so.1"]);
    place.script("env/bin/mpiexec", "#!/bin/sh\nexec ${0%/*}/../lib/typepack/bin/mpiexec \"$@\"\n");
    // Somebody else has written it.
    place.write("env/lib/libmpi_abi.so.1", "?");
    place.has(GOOD, &[], &["overwritten-files"], &["no package says"]);
}

#[test]
fn an_environment_that_was_moved_is_named() {
    let place = Place::new("moved", true);
    place.write(
        "env/bin/activate",
        "# comment\n    VIRTUAL_ENV=$(cygpath \"$x\")\nexport VIRTUAL_ENV=\"/old/env\"\n",
    );
    let env = place.root.join("env").display().to_string();
    let cure = format!("cure: python3 -m venv {env}\n");
    place.has(GOOD, &[], &["moved-environment"], &["/old/env", &cure]);
    // Python writes activate anew, but not the programs of packages.
    place.script("env/bin/pip", "#!/old/env/bin/python3\nimport pip\n");
    let long = "#!/bin/sh\n'''exec' /old/env/bin/python3.11 \"$0\" \"$@\"\n' '''\n";
    place.script("env/bin/wheel", long);
    place.script("env/bin/other", "#!/bin/sh\n: /other\n: /old/env/bin/python3\n");
    let (_, text) = place.examine(GOOD, &[]);
    let cure = text.lines().find_map(|line| line.trim().strip_prefix("cure: ")).unwrap();
    let (made, mended) = cure.split_once(" && ").unwrap();
    assert_eq!(made, format!("python3 -m venv {env}"));
    assert!(Command::new("sh").arg("-c").arg(mended).status().unwrap().success(), "{mended}");
    let read = |name: &str| fs::read_to_string(place.root.join("env/bin").join(name)).unwrap();
    assert_eq!(read("pip"), format!("#!{env}/bin/python3\nimport pip\n"));
    assert!(read("wheel").contains(&format!("'''exec' {env}/bin/python3.11 ")), "{mended}");
    assert!(read("other").contains("/old/env"), "{mended}");
    // A space cannot stand in a first line.
    let place = Place::new("moved to a place", true);
    place.write("env/bin/activate", "VIRTUAL_ENV=/old/env\n");
    place.script("env/bin/pip", "#!/old/env/bin/python3\n");
    place.has(GOOD, &[], &["moved-environment"], &["cure: python3 -m venv --clear '/"]);
}

#[test]
fn mpi4py_for_another_mpi_is_named() {
    let place = Place::new("mpi4py", true);
    let module =
        "env/lib/python3.11/site-packages/mpi4py/MPI.mpich.cpython-311-x86_64-linux-gnu.so";
    let compile = |needed: &str| {
        let source = place.root.join("empty.c");
        fs::write(&source, "int nothing;\n").unwrap();
        let library = place.root.join("libneeded.so");
        let cc = |words: &[&str]| {
            let mut command = Command::new("cc");
            let done =
                command.args(["-shared", "-fPIC"]).arg(&source).args(words).output().unwrap();
            assert!(done.status.success(), "{done:?}");
        };
        let (to, from) = (place.root.join(module), library.display().to_string());
        parents(&to);
        cc(&["-o", &from, &format!("-Wl,-soname,{needed}")]);
        cc(&["-o", to.to_str().unwrap(), "-Wl,--no-as-needed", &from]);
    };
    compile("libmpi.so.12");
    place.package("mpi4py", "4.1.2", &[]);
    let words = ["mpi4py 4.1.2", "libmpi.so.12", "cure: MPI4PY_BUILD_MPIABI=1 MPI4PY_BUILD_MPICC="];
    place.has(GOOD, &[], &["mpi4py-for-another-mpi"], &words);
    place.write("env/lib/typepack/lib/typepack/mpich/libmpi.so.12", "");
    place.has(GOOD, &[], &[], &["loads typepack's library of MPICH's ABI under mpiexec"]);
    compile("libmpi_abi.so.1");
    place.has(GOOD, &[], &[], &["loads libmpi_abi.so.1"]);
}

#[test]
fn modules_and_compilers_that_lack_are_named() {
    let place = Place::new("compilers", false);
    let (code, text) = place.examine(&["env/bin"], &[]);
    assert_eq!(
        (code, found(&text, "Notes")),
        (Some(0), vec!["no-c-compiler", "no-fortran-compiler"]),
        "{text}"
    );
    assert!(text.contains("mpifort -fc=COMPILER"), "{text}");
    // `mpifort` asks for files that Fortran programs need.
    place.write("env/lib/libmpi_abi.so", "");
    place.write("env/lib/libmpifort_abi.so", "");
    place.write("env/include/mpif.h", "");
    let place_of_modules = "env/lib/typepack/fortran/gfortran-1";
    place.write(&format!("{place_of_modules}/mpi.mod"), "cut");
    place.write(&format!("{place_of_modules}/complete"), "1000 mpi.mod\n");
    let cure = format!("cure: rm -r {}", place.root.join(place_of_modules).display());
    let (code, text) = place.examine(GOOD, &[]);
    assert_eq!((code, found(&text, "Notes")), (Some(0), vec!["stale-modules"]), "{text}");
    assert!(text.contains(&cure), "{text}");
    place.write(&format!("{place_of_modules}/complete"), "3 mpi.mod\n");
    place.has(GOOD, &[], &[], &[]);
    let store = place.root.join("env/lib/typepack/fortran");
    fs::set_permissions(&store, fs::Permissions::from_mode(0o555)).unwrap();
    let (code, text) = place.examine(GOOD, &[]);
    fs::set_permissions(&store, fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!((code, found(&text, "Notes")), (Some(0), vec!["read-only"]), "{text}");
    assert!(text.contains(".cache/typepack/fortran"), "{text}");
}

/// The tool alone, in the folder `files` of a test's folder.
fn alone(name: &str, files: &str) -> Place {
    let place = Place::new(name, false);
    let path = place.root.join(files).join("bin/typepack");
    parents(&path);
    fs::copy(tool::bin().join("typepack"), path).unwrap();
    place
}

#[test]
fn an_interposer_in_the_prefix_of_another_mpi_is_good() {
    let place = alone("interposer", "mpich");
    place.script("mpich/bin/mpiexec", "#!/bin/sh\necho HYDRA build details:\n");
    place.script("mpich/bin/mpicc", "#!/bin/sh\n");
    place.write("mpich/lib/libmpi_abi.so.1", "MPICH Version: 5.0");
    place.write("mpich/include/mpi.h", "/* MPICH */\n");
    place.write("mpich/lib/libtypepack_interpose.so", "");
    place.write(
        "mpich/share/typepack/installed",
        "bin/typepack\nlib/libtypepack_interpose.so\nshare/typepack/installed\n",
    );
    let examine = || place.examine_in("mpich", &["mpich/bin", "tools"], &[]);
    let (code, text) = examine();
    assert_eq!((code, found(&text, "Faults")), (Some(0), vec![]), "{text}");
    assert!(text.contains("the interposer alone"), "{text}");
    place.remove("mpich/lib/libtypepack_interpose.so");
    let (code, text) = examine();
    assert_eq!((code, found(&text, "Faults")), (Some(1), vec!["missing-library"]), "{text}");
    assert!(text.contains("--interposer-only"), "{text}");
}

#[test]
fn what_cargo_installs_is_good() {
    let place = alone("cargo", ".cargo");
    place.write(".cargo/.crates.toml", "[v1]\n");
    let notes = |wanted: &[&str]| {
        let (code, text) = place.examine_in(".cargo", &[".cargo/bin", "tools"], &[]);
        assert_eq!((code, found(&text, "Notes")), (Some(0), wanted.to_vec()), "{text}");
        text
    };
    assert!(notes(&["no-launcher"]).contains("cargo install --root "));
    fs::copy(tool::bin().join("mpiexec"), place.root.join(".cargo/bin/mpiexec")).unwrap();
    notes(&["no-wrappers"]);
}

#[test]
fn debian_packages_without_wrappers_are_good() {
    let tree = "usr/lib/x86_64-linux-gnu/typepack";
    let place = alone("debian", tree);
    fs::copy(tool::bin().join("mpiexec"), place.root.join(tree).join("bin/mpiexec")).unwrap();
    place.write(&format!("{tree}/lib/libmpi_abi.so.1"), &library(VERSION));
    // The wrapper of another MPI compiles for that one, and says nothing about these packages.
    place.script("usr/bin/mpicc", "#!/bin/sh\n");
    symlink(place.root.join(tree).join("bin/mpiexec"), place.root.join("usr/bin/mpiexec")).unwrap();
    let libraries = place.root.join("usr/lib/x86_64-linux-gnu").display().to_string();
    place.write("usr/lib/x86_64-linux-gnu/libmpi_abi.so.1", "a name");
    let variables = [("LD_LIBRARY_PATH", libraries.as_str())];
    let (code, text) = place.examine_in(tree, &["usr/bin", "tools"], &variables);
    assert_eq!((code, found(&text, "Faults")), (Some(0), vec![]), "{text}");
    assert_eq!(found(&text, "Notes"), ["no-wrappers"], "{text}");
    assert!(text.contains("cure: apt-get install libtypepack-dev"), "{text}");
    // With them, the alternative of another MPI is a fault, and its cure is Debian's.
    for name in ["mpicc", "mpicxx", "mpifort"] {
        fs::copy(tool::bin().join(name), place.root.join(tree).join("bin").join(name)).unwrap();
    }
    let header = Path::new(env!("CARGO_MANIFEST_DIR")).join("../capi/include/mpi.h");
    place.write(&format!("{tree}/include/mpi.h"), &fs::read_to_string(header).unwrap());
    let (code, text) = place.examine_in(tree, &["usr/bin", "tools"], &[]);
    assert_eq!((code, found(&text, "Faults")), (Some(1), vec!["foreign-wrapper"]), "{text}");
    assert!(text.contains("cure: update-alternatives --set mpi "), "{text}");
}

#[test]
fn pipes_under_the_names_of_files_hold_nobody_up() {
    let place = Place::new("pipes", true);
    for (name, fault) in [
        ("env/lib/typepack/include/mpi.h", "missing-header"),
        ("env/lib/typepack/lib/libmpi_abi.so.1", "missing-library"),
    ] {
        let kept = fs::read(place.root.join(name)).unwrap();
        place.remove(name);
        make_pipe(&place.root.join(name));
        place.has(GOOD, &[], &[fault], &["not a regular file"]);
        place.remove(name);
        fs::write(place.root.join(name), kept).unwrap();
    }
    place.remove("env/bin/activate");
    make_pipe(&place.root.join("env/bin/activate"));
    make_pipe(&place.root.join("env/bin/pip"));
    place.has(GOOD, &[], &[], &[]);
    place.remove("env/lib/libmpi_abi.so.1");
    make_pipe(&place.root.join("env/lib/libmpi_abi.so.1"));
    place.has(GOOD, &[], &["removed-files"], &["env/lib/libmpi_abi.so.1"]);
}

fn make_pipe(path: &Path) {
    let made = Command::new("mkfifo").arg(path).status();
    assert!(made.is_ok_and(|status| status.success()), "{}", path.display());
}

#[test]
fn a_foreign_launcher_that_waits_for_ever_is_named() {
    let place = Place::new("waits", true);
    // The script waits for a writer of the pipe.
    place.script("mpich/mpiexec", "#!/bin/sh\nread line <\"${0%/*}/../pipe\"\n");
    make_pipe(&place.root.join("pipe"));
    let path = &["mpich", "env/bin", "tools"];
    place.has(path, &[], &["foreign-launcher"], &["no end within 10s"]);
}

#[test]
fn profilers_are_no_fault() {
    let place = Place::new("profilers", false);
    place.write("empty.c", "int nothing;\n");
    let library = |name: &str| {
        let path = place.root.join(name);
        let mut compile = Command::new("cc");
        compile.args(["-shared", "-fPIC"]).arg(place.root.join("empty.c")).arg("-o").arg(&path);
        assert!(compile.status().unwrap().success());
        path.display().to_string()
    };
    let both = format!("{} {}", library("libmpiP.so"), library("libmpitrace.so"));
    place.has(GOOD, &[("LD_PRELOAD", &both)], &[], &[]);
    let other = library("libmpi.so.40");
    let variables = [("LD_PRELOAD", other.as_str())];
    place.has(GOOD, &variables, &["preloaded-library"], &["cure: unset LD_PRELOAD"]);
}

#[test]
fn cures_are_commands_for_a_shell() {
    let place = Place::new("it's a place", true);
    let (code, text) = place.examine(&["tools"], &[]);
    assert_eq!((code, found(&text, "Faults")), (Some(1), vec!["not-in-path"]), "{text}");
    let cure = text.lines().find_map(|line| line.trim().strip_prefix("cure: ")).unwrap();
    let shell = Command::new("sh").arg("-c").arg(format!("{cure}; command -v mpiexec")).output();
    let bin = place.root.join("env/bin/mpiexec").display().to_string();
    assert_eq!(String::from_utf8(shell.unwrap().stdout).unwrap().trim(), bin);
}
