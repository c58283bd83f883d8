//! Runs programs of MPI libraries without the MPI 5 standard ABI, with the library behind a shim that `typepack shim`
//! has compiled: Open MPI 5.0.11, Debian's MPICH and, in Fortran, Debian's Open MPI. `scripts/setup --tests` fetches them
//! into `target/peers`.
//! Without them, the tests that need them are skipped.
//!
//! `INTERPOSE_PAIRS=1000` lets the differential test compare as many pairs of types in each of its jobs.

use crate::support::{
    Variables, alone, compared, compiled, compiled_fortran, counted, good, library, limited, once,
    run, skipped,
};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// An MPI library without the ABI.
struct Host {
    folder: PathBuf,
    name: &'static str,
    /// Options of its launcher.
    options: &'static [&'static str],
    is_mpich: bool,
}

impl Host {
    /// Finds a host; `None`, after a report, if it is not there.
    fn find(name: &'static str, what: &str) -> Option<Self> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/peers").join(name);
        if !folder.join("bin/mpicc").exists() {
            skipped(format!("{what} is not fetched: scripts/setup --tests"));
            return None;
        }
        let is_mpich = name == "debian-mpich";
        let options: &[&str] =
            if is_mpich { &[] } else { &["--allow-run-as-root", "--oversubscribe"] };
        Some(Self { folder, name, options, is_mpich })
    }

    fn open_mpi() -> Option<Self> {
        Self::find("openmpi", "Open MPI")
    }

    /// The only Open MPI here that has Fortran.
    fn debian_open_mpi() -> Option<Self> {
        Self::find("debian-openmpi", "Debian's Open MPI")
    }

    fn debian() -> Option<Self> {
        Self::find("debian-mpich", "Debian's MPICH")
    }

    /// Compiles a program of `tests/c`.
    fn program(&self, source: &str) -> String {
        // Some of the headers declare how large arrays are, and gcc does not see that no array is passed.
        let mut flags = vec!["-Wno-stringop-overread", "-Wno-stringop-overflow"];
        if self.is_mpich {
            flags.push("-DNO_PERSISTENT");
        }
        let name = format!("{}-{}", source.replace('/', "-"), self.name);
        compiled(&self.folder, "mpicc", source, &name, &flags).to_str().expect("UTF-8").to_owned()
    }

    /// Compiles the shim, once in this process. Returns its path.
    fn shim(&self) -> String {
        let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("shim-{}", self.name));
        once(&out, || {
            let mut command = limited(tool());
            command.args(["shim", "--mpicc"]).arg(self.folder.join("bin/mpicc"));
            let command = command.arg("--out").arg(&out).arg("--library").arg(library());
            let [out_text, err] = good(command);
            assert!(out_text.is_empty() && err.contains("is ready"), "{out_text}{err}");
        });
        out.join("libtypepack_shim.so").to_str().expect("UTF-8").to_owned()
    }

    /// Returns the command of a job with one rank for each list of variables.
    fn job(&self, ranks: &[Variables], words: &[&str]) -> Command {
        let mut command = limited(&self.folder.join("bin/mpiexec"));
        command.args(self.options);
        for (at, variables) in ranks.iter().enumerate() {
            if at > 0 {
                command.arg(":");
            }
            command.args(["-n", "1"]);
            for (name, value) in *variables {
                match self.is_mpich {
                    true => command.args(["-env", name, value]),
                    false => command.args(["-x", &format!("{name}={value}")]),
                };
            }
            command.args(words);
        }
        command
    }
}

/// Returns the path of the `typepack` tool, and builds the tool unless a script has done so.
fn tool() -> &'static Path {
    static TOOL: OnceLock<PathBuf> = OnceLock::new();
    TOOL.get_or_init(|| {
        let exe = std::env::current_exe().expect("the test binary's path");
        // The path of the test binary is `target/PROFILE/deps/TEST`.
        let profile = exe.parent().and_then(Path::parent).expect("a profile directory");
        let tool = profile.join("typepack");
        if std::env::var_os("TEST_BUILT").is_none() {
            let mut build = Command::new(env!("CARGO"));
            // The same choice of packages as in the scripts, so that no crate is built with other features.
            build.args(["build", "--quiet", "--offline", "--workspace", "--bin", "typepack"]);
            build.args(["--features", "typepack/ndarray", "--target-dir"]);
            build.arg(profile.parent().expect("the target folder"));
            if profile.ends_with("release") {
                build.arg("--release");
            }
            assert!(build.status().expect("cargo starts").success(), "the tool was not built");
        }
        tool
    })
}

/// Sends pairs of random types through all calls, as in `interpose.rs`.
fn messages(host: &Host) {
    let (program, shim) = (host.program("differential.c"), host.shim());
    let pairs = std::env::var("INTERPOSE_PAIRS").unwrap_or_else(|_| "100".into());
    let (plain, on): (Variables, Variables) =
        (&[], &[("LD_PRELOAD", &shim), ("TYPEPACK_REPORT", "1")]);
    for (ranks, reports) in
        [([plain, plain], false), ([on, on], true), ([on, plain], true), ([plain, on], false)]
    {
        compared(&mut host.job(&ranks, &[&program, "1", &pairs]), &pairs, reports);
    }
}

/// Does collective calls on ranks that have agreed that all are interposed, and on ranks that have not.
///
/// With packed sides in bytes and other sides in the program's types, three ranks of Open MPI once waited forever: they
/// chose different algorithms for `MPI_Allgatherv`.
fn collectives(host: &Host) {
    let (program, shim) = (host.program("collectives.c"), host.shim());
    let all: Variables =
        &[("LD_PRELOAD", &shim), ("TYPEPACK_REPORT", "1"), ("TYPEPACK_INTERPOSE", "all")];
    let on: Variables = &[("LD_PRELOAD", &shim), ("TYPEPACK_REPORT", "1")];
    let (equal, unequal): (&[&str], &[&str]) =
        (&[&program, "1", "10"], &[&program, "1", "10", "unequal"]);
    let mut jobs = vec![(all, 2, true, equal), (all, 3, true, equal), (on, 2, false, equal)];
    if host.is_mpich {
        jobs.push((all, 3, true, unequal));
    }
    for (variables, ranks, calls, words) in jobs {
        let [out, err] = good(&mut host.job(&vec![variables; ranks], words));
        assert!(out.starts_with("10 rounds, ") && out.contains("no difference"), "{out}\n{err}");
        let done = counted(&err, "calls done by typepack");
        assert!(if calls { done > 50 } else { done == 0 }, "{err}");
    }
}

/// Runs the exchanges of applications, and a halo program, with and without the library.
fn halos(host: &Host) {
    let (program, shim) = (host.program("hosts.c"), host.shim());
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("halo-{}", host.name));
    std::fs::create_dir_all(&folder).expect("a folder");
    let all: Variables =
        &[("LD_PRELOAD", &shim), ("TYPEPACK_REPORT", "1"), ("TYPEPACK_INTERPOSE", "all")];
    let plain: Variables = &[];
    let files = |name: &str, variables| {
        let file = folder.join(name);
        let file = file.to_str().expect("UTF-8");
        let [_, err] = good(&mut host.job(&[variables; 3], &[&program, file]));
        let read = |rank| std::fs::read(format!("{file}.{rank}")).expect("what a rank received");
        ([0, 1, 2].map(read), err)
    };
    let (expected, _) = files("plain", plain);
    let (found, err) = files("interposed", all);
    assert!(expected == found, "the ranks received other bytes\n{err}");
    assert!(counted(&err, "calls done by typepack") > 100, "{err}");
    std::fs::remove_dir_all(&folder).expect("the folder");
    let halo = host.program("../../../examples/c/halo.c");
    let on: Variables =
        &[("LD_PRELOAD", &shim), ("TYPEPACK_REPORT", "1"), ("TYPEPACK_TUNE", "off")];
    let [out, err] = good(&mut host.job(&[on; 3], &[&halo]));
    assert_eq!(out.matches(": 0 wrong halo cells").count(), 3, "{out}");
    assert_eq!(counted(&err, "calls done by typepack"), 4, "{err}");
}

#[test]
fn no_call_of_open_mpi_shows_a_difference() {
    let Some(host) = Host::open_mpi() else { return };
    let _alone = alone();
    messages(&host);
    collectives(&host);
}

#[test]
fn no_call_of_debians_mpich_shows_a_difference() {
    let Some(host) = Host::debian() else { return };
    let _alone = alone();
    messages(&host);
    collectives(&host);
}

#[test]
fn halos_of_open_mpi_are_the_same() {
    let Some(host) = Host::open_mpi() else { return };
    let _alone = alone();
    halos(&host);
}

#[test]
fn halos_of_debians_mpich_are_the_same() {
    let Some(host) = Host::debian() else { return };
    let _alone = alone();
    halos(&host);
}

/// Open MPI decodes each part of a type into a new handle. A type of 60 levels, each of which has the level below
/// twice, was once decoded in 2^60 steps.
#[test]
fn deep_types_of_open_mpi_stay_with_the_host() {
    let Some(host) = Host::open_mpi() else { return };
    let _alone = alone();
    let (program, shim) = (host.program("cases.c"), host.shim());
    let on: Variables = &[("LD_PRELOAD", &shim), ("TYPEPACK_REPORT", "1")];
    let [out, err] = good(&mut host.job(&[on; 2], &[&program, "deep"]));
    assert_eq!(out.matches("deep: no difference").count(), 2, "{out}");
    assert_eq!(counted(&err, "types taken over"), 0, "{err}");
}

/// Behind the shim of a host without large counts, a buffer for more than two gigabytes of several basic types once
/// made a receive fail with `MPI_ERR_COUNT`, and a send too, which the host could have done.
#[test]
fn buffers_for_more_than_two_gigabytes_need_no_large_counts() {
    let Some(host) = Host::open_mpi() else { return };
    let _alone = alone();
    let (program, shim) = (host.program("errors.c"), host.shim());
    let all: Variables =
        &[("LD_PRELOAD", &shim), ("TYPEPACK_REPORT", "1"), ("TYPEPACK_INTERPOSE", "all")];
    let [out, err] = good(&mut host.job(&[all; 2], &[&program, "huge"]));
    assert_eq!(out.matches("huge: no difference").count(), 2, "{out}\n{err}");
    assert!(counted(&err, "calls done by typepack") >= 5, "{err}");
}

/// The functions on `MPI_COMM_SELF` that finalize calls: behind a shim, too, the library takes part until the last of
/// them has run.
#[test]
fn messages_end_in_functions_that_finalize_calls_behind_a_shim() {
    for host in [Host::open_mpi(), Host::debian()].into_iter().flatten() {
        let _alone = alone();
        let (program, shim) = (host.program("cases.c"), host.shim());
        let on: Variables =
            &[("LD_PRELOAD", &shim), ("TYPEPACK_REPORT", "1"), ("TYPEPACK_TUNE", "off")];
        let [out, err] = good(&mut host.job(&[on; 2], &[&program, "callbacks"]));
        assert_eq!(out.matches("callbacks: no difference").count(), 2, "{out}\n{err}");
        assert!(counted(&err, "calls done by typepack") >= 3, "{err}");
    }
}

/// Programs in Fortran. The Fortran routines of Open MPI call `PMPI_Send` where a program calls `MPI_SEND`; those of
/// MPICH call `MPI_Send`. Once, the library did none of the calls of a Fortran program of Open MPI but those of requests.
#[test]
fn programs_in_fortran_are_seen() {
    for host in [Host::debian_open_mpi(), Host::debian()].into_iter().flatten() {
        let compiler = host.folder.canonicalize().expect("the host").join("bin/mpifort");
        if run(limited(Path::new("gfortran")).arg("--version")).status.code() != Some(0) {
            skipped("there is no gfortran: scripts/setup --tests");
            return;
        }
        let _alone = alone();
        let program = compiled_fortran(&compiler, "forms.f90", &format!("forms-{}", host.name));
        let (program, shim) = (program.to_str().expect("UTF-8"), host.shim());
        let common = [("LD_PRELOAD", &*shim), ("TYPEPACK_REPORT", "1"), ("TYPEPACK_TUNE", "off")];
        let all = [&common[..], &[("TYPEPACK_INTERPOSE", "all")]].concat();
        for form in ["mpif.h", "mpi", "mpi_f08"] {
            // Rank 0 sends and receives two messages and packs; with `all`, it makes two collective calls, too.
            for (variables, calls) in [(&all[..], 7), (&common[..], 5), (&[][..], 0)] {
                let [out, err] = good(&mut host.job(&[variables; 2], &[program, form]));
                assert_eq!(out.matches("forms: no difference").count(), 2, "{form}: {out}{err}");
                let done = if calls > 0 { counted(&err, "calls done by typepack") } else { 0 };
                assert_eq!(done, calls, "{}, {form}: {err}", host.name);
            }
        }
    }
}

/// A program that loads its MPI library for itself alone, as Python does: the shim is not before that library in any
/// line.
#[test]
fn a_privately_loaded_host_is_found_by_the_shim() {
    let Some(host) = Host::open_mpi() else { return };
    let _alone = alone();
    let shim = host.shim();
    let module = ["-shared", "-fPIC"];
    let source = "../../../examples/c/halo.c";
    let module = compiled(&host.folder, "mpicc", source, "libhalo-private.so", &module);
    // Any compiler will do. That of the host would link the program with the host.
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let load = folder.join("load");
    let mut cc = limited(Path::new("cc"));
    cc.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c/load.c"));
    good(cc.arg("-o").arg(&load).arg("-ldl"));
    let on: Variables =
        &[("LD_PRELOAD", &shim), ("TYPEPACK_REPORT", "1"), ("TYPEPACK_TUNE", "off")];
    let words = [load.to_str().expect("UTF-8"), module.to_str().expect("UTF-8")];
    let [out, err] = good(&mut host.job(&[on; 2], &words));
    assert_eq!(out.matches(": 0 wrong halo cells").count(), 2, "{out}");
    assert_eq!(counted(&err, "calls done by typepack"), 4, "{err}");
    // The shim of another library once loaded that library, and initialised it in place of the program's.
    let Some(other) = Host::debian() else { return };
    let on: Variables = &[("LD_PRELOAD", &other.shim())];
    let [out, err] = good(&mut host.job(&[on; 2], &words));
    assert_eq!(out.matches(": 0 wrong halo cells").count(), 2, "{out}");
    assert!(err.contains("the program uses another MPI library"), "{err}");
}

/// A program without MPI loads no MPI library because of the shim, and a program of another MPI library runs without
/// typepack.
#[test]
fn other_programs_run_as_without_the_shim() {
    let Some(host) = Host::debian() else { return };
    let _alone = alone();
    let shim = host.shim();
    let mut command = limited(Path::new("grep"));
    command.args(["-c", "libmpi", "/proc/self/maps"]).env("LD_PRELOAD", &shim);
    let done = run(&mut command);
    assert_eq!((&*done.stdout, &*done.stderr), (&b"0\n"[..], &b""[..]));

    let Some(other) = Host::open_mpi() else { return };
    let halo = other.program("../../../examples/c/halo.c");
    let on: Variables = &[("LD_PRELOAD", &shim), ("TYPEPACK_REPORT", "1")];
    let [out, err] = good(&mut other.job(&[on; 2], &[&halo]));
    assert_eq!(out.matches(": 0 wrong halo cells").count(), 2, "{out}");
    let line = "the program uses another MPI library than the one for which this shim was compiled; the job goes on \
                without typepack\n";
    // With a report, each rank says why.
    let mut lines: Vec<&str> = err.split_inclusive('\n').collect();
    lines.sort_unstable();
    let wanted = ["rank 1: ", ""].map(|rank| format!("typepack-interpose: {rank}{line}"));
    assert_eq!(lines, wanted, "{err}");
}
