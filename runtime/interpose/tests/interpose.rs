//! Runs programs with the library in front of MPICH 5.0.2 and of Intel MPI, and programs without MPI.
//!
//! MPICH is the wheel that `scripts/setup --tests` fetches into `target/peers`. Without it, the tests that need it
//! are skipped, and `scripts/test` fails in CI. `INTERPOSE_PAIRS=10000` lets the differential test
//! compare as many pairs of types in each of its jobs.

use crate::support::{
    Variables, alone, compared, compiled, counted, good, job, library, limited, long_job, mpich,
    run, skipped, until,
};
use std::path::{Path, PathBuf};

#[test]
fn programs_without_mpi_do_not_notice() {
    let library = library();
    let programs: [&[&str]; 3] =
        [&["true"], &["sh", "-c", "echo $((6 * 7))"], &["sh", "-c", "exec sort </dev/null"]];
    for words in programs {
        let mut plain = limited(Path::new(words[0]));
        plain.args(&words[1..]);
        let expected = good(&mut plain);
        let found = good(plain.env("LD_PRELOAD", &library).env("TYPEPACK_REPORT", "1"));
        assert_eq!(found, expected, "{words:?}");
    }
    // Python loads libraries itself. Not every machine has Python.
    let mut python = limited(Path::new("python3"));
    python.args(["-c", "import ctypes; print(ctypes.CDLL(None).getpid() > 0)"]);
    python.env("LD_PRELOAD", &library);
    let done = run(&mut python);
    if done.status.success() {
        assert_eq!((&*done.stdout, &*done.stderr), (&b"True\n"[..], &b""[..]));
    }
}

/// Sends pairs of random types with equal signature and different layouts through all calls, in jobs in which both
/// ranks are interposed, or only one of them.
#[test]
fn no_call_shows_a_difference() {
    let Some(mpich) = mpich() else { return };
    let _alone = alone();
    let library = library();
    let library = library.to_str().expect("UTF-8");
    let program = compiled(&mpich, "mpicc_abi", "differential.c", "differential", &[]);
    let program = program.to_str().expect("UTF-8");
    let pairs = std::env::var("INTERPOSE_PAIRS").unwrap_or_else(|_| "60".into());
    // The limit ends a job that hangs. The time of a pair grows with what else runs on the machine.
    let seconds = 900 + pairs.parse::<u32>().expect("INTERPOSE_PAIRS is a number");
    let (plain, on): (Variables, Variables) =
        (&[], &[("LD_PRELOAD", library), ("TYPEPACK_REPORT", "1")]);
    let eager: Variables =
        &[("LD_PRELOAD", library), ("TYPEPACK_REPORT", "1"), ("TYPEPACK_JIT", "eager")];
    let all: Variables = &[
        ("LD_PRELOAD", library),
        ("TYPEPACK_REPORT", "1"),
        ("TYPEPACK_INTERPOSE", "all"),
        ("TYPEPACK_TUNE", "off"),
    ];
    let jobs: [(&str, [Variables; 2], bool); 6] = [
        ("1", [plain, plain], false),
        ("1", [on, on], true),
        ("2", [on, plain], true),
        ("3", [plain, on], false),
        ("4", [eager, eager], true),
        ("5", [all, all], true),
    ];
    for (seed, ranks, reports) in jobs {
        let mut job = long_job(seconds, &mpich, &ranks, &[program, seed, &pairs]);
        compared(&mut job, &pairs, reports);
    }
}

/// Does collective calls both ways, on ranks that have agreed that all are interposed.
#[test]
fn no_collective_call_shows_a_difference() {
    let Some(mpich) = mpich() else { return };
    let _alone = alone();
    let library = library();
    let library = library.to_str().expect("UTF-8");
    let program = compiled(&mpich, "mpicc_abi", "collectives.c", "collectives", &[]);
    let program = program.to_str().expect("UTF-8");
    let rounds = "10";
    let all: Variables =
        &[("LD_PRELOAD", library), ("TYPEPACK_REPORT", "1"), ("TYPEPACK_INTERPOSE", "all")];
    // Without the agreement, collective calls are the host's.
    let on: Variables = &[("LD_PRELOAD", library), ("TYPEPACK_REPORT", "1")];
    let (equal, unequal): (&[&str], &[&str]) =
        (&[program, "1", rounds], &[program, "1", rounds, "unequal"]);
    for (variables, ranks, calls, words) in [
        (all, 2, true, equal),
        (all, 3, true, equal),
        (all, 3, true, unequal),
        (all, 4, true, unequal),
        (on, 2, false, equal),
    ] {
        let ranks = vec![variables; ranks];
        let [out, err] = good(&mut job(&mpich, &ranks, words));
        assert!(out.starts_with("10 rounds, ") && out.contains("no difference"), "{out}\n{err}");
        assert!(counted(&err, "types taken over") > 100, "{err}");
        let done = counted(&err, "calls done by typepack");
        assert!(if calls { done > 50 } else { done == 0 }, "{err}");
    }
}

/// Does the same under Intel MPI, another host with the ABI.
#[test]
fn intel_mpi_is_a_host_too() {
    let Some(mpich) = mpich() else { return };
    let _alone = alone();
    let intel = mpich.join("../impi-rt");
    if !intel.join("lib/libmpi_abi.so.1").exists() {
        skipped("Intel MPI is not fetched: scripts/bench peers impi-rt");
        return;
    }
    let library = library();
    let flags = ["-DERRORS_RETURN=((MPI_Errhandler)0x142)", "-DNO_PERSISTENT"];
    for (source, words) in [("differential.c", ["1", "25"]), ("collectives.c", ["1", "6"])] {
        // MPICH's compiler is only a compiler here: the library path selects the library.
        let name = format!("intel-{source}.exe");
        let program = compiled(&mpich, "mpicc_abi", source, &name, &flags);
        let mut command = limited(&intel.join("bin/mpiexec.hydra"));
        command.env("LD_LIBRARY_PATH", intel.join("lib")).env("I_MPI_FABRICS", "shm");
        command.args(["-n", "2", "-env", "LD_PRELOAD"]).arg(&library);
        command.args(["-env", "TYPEPACK_INTERPOSE", "all", "-env", "TYPEPACK_REPORT", "1"]);
        let [out, err] = good(command.arg(program).args(words));
        assert!(out.contains("no difference"), "{out}\n{err}");
        // Intel's launcher passes the standard error of the ranks on in its own way.
        assert!(counted(&format!("{out}{err}"), "calls done by typepack") > 20, "{out}\n{err}");
    }
}

/// A rank that cannot take part does not make the others wait: the ranks compare their versions in every case. One line
/// of the job says why. It was once that of rank 0, which did not know the reason.
#[test]
fn all_ranks_take_part_or_none() {
    let Some(mpich) = mpich() else { return };
    let _alone = alone();
    let library = library();
    let library = library.to_str().expect("UTF-8");
    let program = compiled(&mpich, "mpicc_abi", "collectives.c", "collectives", &[]);
    let program = program.to_str().expect("UTF-8");
    let all: Variables =
        &[("LD_PRELOAD", library), ("TYPEPACK_REPORT", "1"), ("TYPEPACK_INTERPOSE", "all")];
    let wrong: Variables =
        &[("LD_PRELOAD", library), ("TYPEPACK_INTERPOSE", "all"), ("TYPEPACK_JIT", "fast")];
    // A rank whose host is unfit once took no part in the agreement, so that the others waited for ever.
    let shared = ["-shared", "-fPIC", "-DUNFIT"];
    let tool = compiled(&mpich, "mpicc_abi", "tool.c", "libtool-unfit.so", &shared);
    let both = format!("{library} {}", tool.display());
    let unfit: Variables = &[("LD_PRELOAD", &both), ("TYPEPACK_INTERPOSE", "all")];
    let other = of_another_version(Path::new(library));
    let other = other.to_str().expect("UTF-8");
    let other: Variables = &[("LD_PRELOAD", other), ("TYPEPACK_INTERPOSE", "all")];
    let bad = "TYPEPACK_JIT: JIT mode: \"fast\" is not one of off, lazy, eager";
    let own = "the MPI library is typepack's own, which packs by itself";
    let versions = "not all ranks have the same version of typepack-interpose";
    for (ranks, line) in [
        (vec![all, wrong], format!("rank 1: {bad}")),
        (vec![wrong, all], bad.to_owned()),
        (vec![all, unfit, wrong], format!("rank 1: {own}")),
        (vec![unfit, unfit], own.to_owned()),
        (vec![all, other], versions.to_owned()),
        (vec![other, all, all], versions.to_owned()),
    ] {
        let [out, err] = good(&mut job(&mpich, &ranks, &[program, "1", "3"]));
        assert!(out.starts_with("3 rounds, "), "{out}");
        assert_eq!(err, format!("typepack-interpose: {line}; the job goes on without typepack\n"));
    }
    // Ranks of the other version agree among themselves.
    let [out, err] = good(&mut job(&mpich, &[other, other], &[program, "1", "3"]));
    assert!(out.starts_with("3 rounds, "), "{out}");
    assert_eq!(err, "");
}

/// Makes a copy of the library that has another version.
fn of_another_version(library: &Path) -> PathBuf {
    let mut bytes = std::fs::read(library).expect("the library");
    let (version, other) = (b"0.1.0\0", b"0.2.0\0");
    let places: Vec<usize> =
        (0..bytes.len() - 6).filter(|&at| bytes[at..at + 6] == version[..]).collect();
    assert!(!places.is_empty(), "the version stands in the library");
    for at in places {
        bytes[at..at + 6].copy_from_slice(other);
    }
    let copy = Path::new(env!("CARGO_TARGET_TMPDIR")).join("libother-version.so");
    std::fs::write(&copy, bytes).expect("a copy");
    copy
}

/// Without `TYPEPACK_INTERPOSE=all` on a rank, the first collective call of that rank once met the agreement of the
/// other ranks, and both got wrong data. Now the other ranks wait, and a line says so.
#[test]
fn ranks_with_all_wait_for_the_others() {
    let Some(mpich) = mpich() else { return };
    let _alone = alone();
    let library = library();
    let library = library.to_str().expect("UTF-8");
    let program = compiled(&mpich, "mpicc_abi", "collectives.c", "collectives", &[]);
    let words = [program.to_str().expect("UTF-8"), "1", "3"];
    let soon = ("TYPEPACK_WATCHDOG", "1");
    let all: Variables = &[("LD_PRELOAD", library), ("TYPEPACK_INTERPOSE", "all"), soon];
    let on: Variables = &[("LD_PRELOAD", library), soon];
    for (ranks, place) in [([all, on], 0), ([all, &[]], 0), ([on, all], 1)] {
        let line = format!(
            "typepack-interpose: rank {place} waits in MPI_Init for ranks without TYPEPACK_INTERPOSE=all"
        );
        let [out, err] = until(&line, &mut long_job(300, &mpich, &ranks, &words));
        assert!(!out.contains("expected"), "{out}\n{err}");
        assert_eq!(err.matches(&line).count(), 1, "{out}\n{err}");
    }
}

/// A reason that only another rank than rank 0 had was once never printed.
#[test]
fn each_rank_says_why_if_a_report_is_wanted() {
    let Some(mpich) = mpich() else { return };
    let _alone = alone();
    let library = library();
    let library = library.to_str().expect("UTF-8");
    let program = compiled(&mpich, "mpicc_abi", "differential.c", "differential", &[]);
    let words = [program.to_str().expect("UTF-8"), "6", "5"];
    let wrong = [("LD_PRELOAD", library), ("TYPEPACK_JIT", "fast"), ("TYPEPACK_REPORT", "1")];
    let line = "TYPEPACK_JIT: JIT mode: \"fast\" is not one of off, lazy, eager; the job goes on without typepack\n";
    for (variables, lines) in [(&wrong[..2], String::new()), (&wrong, format!("rank 1: {line}"))] {
        let on: Variables = &[("LD_PRELOAD", library), ("TYPEPACK_QUIET", "1")];
        let [out, err] = good(&mut job(&mpich, &[on, variables], &words));
        assert!(out.starts_with("5 pairs, "), "{out}");
        let wanted = lines.lines().map(|line| format!("typepack-interpose: {line}\n"));
        assert_eq!(err, wanted.collect::<String>());
    }
}

/// Runs `faults.c` with `word`, with `tool.c` between the library and MPICH. Returns what it prints.
fn faults(mpich: &Path, word: &str, variables: Variables) -> [String; 2] {
    let more = match word {
        "external" => "-DNATIVE",
        "looks" => "-DLOOKS",
        _ => "-UNATIVE",
    };
    let shared = ["-shared", "-fPIC", more];
    let tool = compiled(mpich, "mpicc_abi", "tool.c", &format!("libtool-{word}.so"), &shared);
    let program = compiled(mpich, "mpicc_abi", "faults.c", "faults", &[]);
    let mut command = limited(&program);
    command.env("LD_PRELOAD", format!("{} {}", library().display(), tool.display()));
    command.env("TYPEPACK_REPORT", "1").env("TYPEPACK_TUNE", "off");
    let [out, err] = good(command.envs(variables.iter().copied()).arg(word));
    assert_eq!(out, format!("{word}: no difference\n"), "{err}");
    [out, err]
}

/// A call that fails without completing an operation once dropped the operation's buffer and its data. A test of a
/// persistent send that ended in an error once made the next start send the data of the start before.
#[test]
fn failing_calls_complete_what_the_host_has_completed() {
    let Some(mpich) = mpich() else { return };
    let _alone = alone();
    let [_, err] = faults(&mpich, "requests", &[]);
    assert!(counted(&err, "calls done by typepack") > 0, "{err}");
}

/// A call that started some of its requests, and failed, once left them inactive, so that their data were lost.
#[test]
fn a_start_that_fails_in_part_delivers_what_was_started() {
    let Some(mpich) = mpich() else { return };
    let _alone = alone();
    faults(&mpich, "startall", &[]);
}

/// What a buffer of the library had from an earlier message could once overwrite the program's memory after a message
/// that was too long.
#[test]
fn a_message_that_is_too_long_brings_no_other_data() {
    let Some(mpich) = mpich() else { return };
    let _alone = alone();
    faults(&mpich, "cut", &[]);
}

/// Each call with a known layout once took a lock of the dynamic linker.
#[test]
fn few_calls_look_at_the_loaded_objects() {
    let Some(mpich) = mpich() else { return };
    let _alone = alone();
    let [_, err] = faults(&mpich, "looks", &[]);
    assert_eq!(counted(&err, "calls done by typepack"), 20000, "{err}");
}

/// Contiguous blocks in the memory of a device were once copied by the CPU, if another block of the call had to be
/// packed.
#[test]
fn the_host_copies_to_the_memory_of_devices() {
    let Some(mpich) = mpich() else { return };
    let _alone = alone();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("device-blocks");
    std::fs::create_dir_all(&folder).expect("a folder");
    let (source, object) = (folder.join("empty.c"), folder.join("libcuda.so.1"));
    std::fs::write(&source, "typedef int nothing;\n").expect("a file");
    let shared = ["-shared", "-fPIC", "-DDEVICE"];
    good(limited(Path::new("cc")).args(shared).arg(&source).arg("-o").arg(&object));
    let tool = compiled(&mpich, "mpicc_abi", "tool.c", "libtool-device.so", &shared);
    let program = compiled(&mpich, "mpicc_abi", "faults.c", "faults", &[]);
    let mut command = limited(&program);
    command.env("LD_PRELOAD", format!("{} {}", library().display(), tool.display()));
    command.env("TYPEPACK_REPORT", "1").env("TYPEPACK_INTERPOSE", "all");
    let [out, err] = good(command.arg("device").arg(&object));
    assert_eq!(out, "device: no difference\n", "{err}");
    assert_eq!(counted(&err, "calls done by typepack"), 1, "{err}");
}

/// Two integers in reverse order have the size and the extent of two integers. A type like that, which the library did
/// not know, was once copied as a run of bytes.
#[test]
fn integers_in_reverse_order_are_no_run_of_bytes() {
    let Some(mpich) = mpich() else { return };
    let _alone = alone();
    let [_, err] = faults(&mpich, "order", &[("TYPEPACK_INTERPOSE", "all")]);
    // The library did the calls whose types it knows, and no others.
    assert_eq!(counted(&err, "calls done by typepack"), 2, "{err}");
}

/// The byte order of external32 was once judged by the program's own data, and zeros do not show a byte order.
#[test]
fn zeros_do_not_tell_the_byte_order_of_external32() {
    let Some(mpich) = mpich() else { return };
    let _alone = alone();
    let [_, err] = faults(&mpich, "external", &[]);
    assert_eq!(counted(&err, "calls done by typepack"), 0, "{err}");
}

/// `MPI_Neighbor_alltoallv` once read what would be sent to neighbours that do not exist.
#[test]
fn nothing_is_read_for_neighbours_that_do_not_exist() {
    let Some(mpich) = mpich() else { return };
    let _alone = alone();
    let [_, err] = faults(&mpich, "edge", &[("TYPEPACK_INTERPOSE", "all")]);
    assert_eq!(counted(&err, "calls done by typepack"), 1, "{err}");
}

/// The runtime of a GPU was once looked for only when a type was committed, and under names without a version.
#[test]
fn calls_pass_through_once_a_device_runtime_is_loaded() {
    let Some(mpich) = mpich() else { return };
    let _alone = alone();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("devices");
    std::fs::create_dir_all(&folder).expect("a folder");
    let source = folder.join("empty.c");
    std::fs::write(&source, "typedef int nothing;\n").expect("a file");
    let program = compiled(&mpich, "mpicc_abi", "faults.c", "faults", &[]);
    let shared = ["-shared", "-fPIC"];
    let tool = compiled(&mpich, "mpicc_abi", "tool.c", "libtool-devices.so", &shared);
    let names = ["libamdhip64.so.6", "libcuda.so", "libhsa-runtime64.so.1", "libze_loader.so.1"];
    for (name, calls) in names.map(|name| (name, 2)).into_iter().chain([("libcudart.so", 4)]) {
        let object = folder.join(name);
        good(limited(Path::new("cc")).args(shared).arg(&source).arg("-o").arg(&object));
        let mut command = limited(&program);
        command.env("LD_PRELOAD", format!("{} {}", library().display(), tool.display()));
        command.env("TYPEPACK_REPORT", "1").env("TYPEPACK_TUNE", "off");
        let [out, err] = good(command.arg(&object));
        assert!(out.ends_with("no difference\n"), "{out}");
        assert_eq!(counted(&err, "calls done by typepack"), calls, "{name}: {err}");
    }
}

#[test]
fn a_privately_loaded_host_is_found() {
    let Some(mpich) = mpich() else { return };
    let _alone = alone();
    let shared = ["-DLIBRARY", "-shared", "-fPIC"];
    let inner = compiled(&mpich, "mpicc_abi", "private.c", "libprivate.so", &shared);
    // The main program knows nothing of MPI.
    let outer = Path::new(env!("CARGO_TARGET_TMPDIR")).join("private");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c/private.c");
    good(limited(Path::new("cc")).arg(source).arg("-o").arg(&outer).arg("-ldl"));
    for report in [false, true] {
        let mut command = limited(&outer);
        command.arg(&inner);
        if report {
            command.env("LD_PRELOAD", library()).env("TYPEPACK_REPORT", "1");
        }
        let [out, err] = good(&mut command);
        assert_eq!(out, "count 1, wrong 0\n");
        if report {
            assert_eq!(counted(&err, "types taken over"), 1, "{err}");
            assert_eq!(counted(&err, "calls done by typepack"), 2, "{err}");
        }
    }
}

#[test]
fn where_the_library_cannot_work_one_line_says_so() {
    let Some(mpich) = mpich() else { return };
    let _alone = alone();
    let library = library();
    let copy = Path::new(env!("CARGO_TARGET_TMPDIR")).join("libcopy.so");
    std::fs::copy(&library, &copy).expect("a copy");
    let library = library.to_str().expect("UTF-8");
    let both = format!("{library} {}", copy.display());
    let abi = compiled(&mpich, "mpicc_abi", "differential.c", "differential", &[]);
    let native = compiled(&mpich, "mpicc", "differential.c", "differential-native", &[]);
    let cases: [(&Path, Variables, &str); 6] = [
        (&abi, &[("LD_PRELOAD", library), ("TYPEPACK_INTERPOSE", "off")], ""),
        (
            &abi,
            &[("LD_PRELOAD", library), ("TYPEPACK_INTERPOSE", "maybe")],
            "typepack-interpose: TYPEPACK_INTERPOSE: \"maybe\" is not one of on, off, all; \
             the job goes on without typepack\n",
        ),
        (
            &abi,
            &[("LD_PRELOAD", &both)],
            "typepack-interpose: another typepack-interpose is loaded behind this one; \
             this one hands every call on to it\n",
        ),
        (
            &abi,
            &[("LD_PRELOAD", &both), ("TYPEPACK_INTERPOSE", "all")],
            "typepack-interpose: another typepack-interpose is loaded behind this one; \
             this one hands every call on to it\n",
        ),
        (
            &native,
            &[("LD_PRELOAD", library)],
            "typepack-interpose: the MPI library does not have the MPI 5 standard ABI; \
             the job goes on without typepack\n",
        ),
        (&native, &[("LD_PRELOAD", library), ("TYPEPACK_QUIET", "1")], ""),
    ];
    for (program, variables, line) in cases {
        let program = program.to_str().expect("UTF-8");
        let words = [program, "6", "5"];
        let [out, err] = good(&mut job(&mpich, &[variables, variables], &words));
        assert!(out.starts_with("5 pairs, "), "{out}");
        assert_eq!(err, line, "{variables:?}");
    }
}
