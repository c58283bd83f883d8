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
        let folders = path.iter().map(|folder| self.root.join(folder));
        let mut command = Command::new(self.files().join("bin/typepack"));
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
    let cure = format!("cure: python3 -m venv {}", place.root.join("env").display());
    place.has(GOOD, &[], &["moved-environment"], &["/old/env", &cure]);
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
