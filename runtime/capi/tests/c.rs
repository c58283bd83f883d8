//! Runs the C programs in `c/`. The tests here compile each program against `include/mpi.h`, link it with
//! the library, and run it as one process without a launcher and as jobs under typepack's `mpiexec`.
//!
//! A program exits with code 0 if all its checks hold (`c/check.h`). The programs use the library that cargo
//! has built for these tests. If a job hangs, the test kills it and fails (`job/`).

use crate::program::library;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use typepack_test_support::skipped::skipped;

/// Compiles `c/NAME.c` unless an earlier call has compiled it. Several tests run the same program, and they
/// must not write the executable at the same time.
pub fn compile(name: &str) -> PathBuf {
    static COMPILED: Mutex<Vec<String>> = Mutex::new(Vec::new());
    let mut compiled = COMPILED.lock().expect("no compilation failed");
    if !compiled.iter().any(|other| other == name) {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        crate::program::compile(name, &[root.join(format!("tests/c/{name}.c"))]);
        compiled.push(name.to_owned());
    }
    library().join(name)
}

/// Compiles a program and runs it once for each number of ranks in `sizes`. 0 stands for one process without
/// a launcher.
fn run(name: &str, sizes: &[usize]) {
    run_with(name, sizes, &[]);
}

/// Compiles a program and runs it like [`run`], with the environment variables `env`.
fn run_with(name: &str, sizes: &[usize], env: &[(&str, &str)]) {
    let exe = compile(name);
    for &size in sizes {
        let mut command = match size {
            0 => Command::new(&exe),
            _ => {
                let mut command = Command::new(crate::job::mpiexec());
                command.args(["-n", &size.to_string()]).arg(&exe);
                command
            }
        };
        // cargo sets `LD_LIBRARY_PATH` to directories that may contain an older library, so this line
        // replaces it.
        command.env("LD_LIBRARY_PATH", library());
        let output = crate::job::run(command, name, env);
        let ended = output.status;
        assert!(ended.success(), "{name}, {size} ranks: {ended}\n{}", crate::job::text(&output));
    }
}

macro_rules! programs {
    ($($name:ident: $sizes:expr;)*) => {
        $(
            #[test]
            fn $name() {
                run(stringify!($name), &$sizes);
            }
        )*
    };
}

programs! {
    environment: [0, 2];
    mpi1: [0];
    fortran: [0];
    groups: [0, 1, 3];
    communicators: [0, 2, 5];
    intercommunicators: [0, 1, 2, 3, 5];
    sessions: [0, 1, 2, 3, 5];
    session_worlds: [0, 1, 2, 3, 5];
    session_threads: [2, 3];
    creations: [0, 1, 2, 3, 5];
    attributes: [0, 2];
    handlers: [0, 2];
    objects: [0, 2];
    collectives: [0, 1, 2, 3, 4, 7];
    started_collectives: [0, 1, 2, 3, 5, 9];
    operations: [0, 2, 3];
    reductions: [0, 1, 2, 3, 4, 7];
    campaign: [0, 1, 2, 3, 4, 5, 6, 7, 8];
    campaign_between: [2, 3, 4, 5, 8];
    campaign_neighbors: [0, 1, 2, 3, 4, 6, 8];
    topologies: [0, 1, 2, 3, 5, 8];
    neighbors: [0, 1, 2, 3, 5, 8];
    partitions: [0, 1, 2, 3];
    partition_threads: [0, 2, 3];
    windows: [0, 1, 2, 3, 5];
    attached_windows: [0, 1, 2, 3, 5];
    window_campaign: [0, 1, 2, 3, 4, 5];
    window_starts: [0, 1, 2, 3, 5];
}

// The programs below test messages and requests.
programs! {
    modes: [0, 2, 3];
    requests: [0, 2];
    cancels: [0, 2];
    probes: [0, 2];
    buffers: [0, 2];
    generalized: [0];
    layouts: [0, 2];
    forked: [0, 1, 2, 3];
    threads: [0, 2];
    packing_threads: [0, 2];
    hostile_messages: [0, 2];
    hostile_packing: [0];
    subsets: [0, 3];
    truncated: [0, 2];
    memory: [0, 1, 2, 5];
    odd_arguments: [0, 2, 3];
    tools: [0, 1, 2, 3];
    tool_events: [0, 1, 2, 3];
    tool_freed: [0, 1, 2];
}

// Together, these programs test every example of five texts (lecture notes and parts of the MPI standard).
// `README.md` in this folder lists the texts.
programs! {
    lecture: [0, 2];
    packing_units: [0, 1, 2, 5, 8];
    decoding: [0, 2];
    languages: [0, 2];
}

/// Returns the text that a program prints with the environment variables `env`, and whether it succeeds.
fn printed(name: &str, env: &[(&str, &str)]) -> (String, bool) {
    let mut command = Command::new(compile(name));
    command.env("LD_LIBRARY_PATH", library());
    let output = crate::job::run(command, name, env);
    (crate::job::text(&output), output.status.success())
}

#[test]
fn errors_that_a_program_ignores_are_printed() {
    let (text, good) = printed("handlers", &[("TYPEPACK_ERRORS", "all")]);
    let found = |line: &str| {
        line.starts_with("typepack: rank 0: MPI_Send: ")
            && line.contains("777")
            && line.ends_with("(MPI_ERR_RANK: invalid rank)")
    };
    assert!(good && text.lines().filter(|line| found(line)).count() == 1, "{text}");
    let (text, good) = printed("handlers", &[]);
    assert!(good && !text.contains("MPI_Send"), "{text}");
}

#[test]
fn an_exception_out_of_a_callback_is_one_line() {
    let (text, good) = printed("thrown", &[]);
    let line = "typepack: rank 0: an exception has left the function of an operation; ";
    assert!(!good && text.lines().filter(|other| other.starts_with(line)).count() == 1, "{text}");
}

/// The short way of a call must not serve a program that has left MPI.
#[test]
fn a_short_call_after_finalize_is_one_line() {
    let (text, good) = printed("finalized", &[]);
    let told = |line: &&str| line.contains("MPI_Put") && line.contains("after MPI_Finalize");
    assert!(!good && text.lines().filter(told).count() == 1, "{text}");
}

/// Tests neighbourhood collectives with two transports, with the check of types, and without spinning.
#[test]
fn neighbors_every_way() {
    for (name, value) in [
        ("TYPEPACK_TRANSPORT", "pipeline"),
        ("TYPEPACK_TRANSPORT", "heap"),
        ("TYPEPACK_CHECK_TYPES", "1"),
        ("TYPEPACK_SPIN_US", "0"),
    ] {
        run_with("neighbors", &[2, 3], &[(name, value)]);
    }
}

/// Passes topologies that differ between ranks, with the check of types, also if all ranks sleep at once.
#[test]
fn differing_topologies() {
    const CHECKED: (&str, &str) = ("TYPEPACK_CHECK_TYPES", "1");
    run_with("differing_topologies", &[0, 1, 2, 3, 5], &[CHECKED]);
    run_with("differing_topologies", &[3], &[CHECKED, ("TYPEPACK_SPIN_US", "0")]);
}

/// Splits communicators of ranks that are bound to parts of the machine of different sizes.
#[test]
fn resources_by_binding() {
    for part in ["hwthread", "core", "l2", "l3", "numa", "socket", "none"] {
        run_with("session_worlds", &[1, 2, 3], &[("TYPEPACK_BIND", part)]);
    }
}

/// Splits communicators of ranks that are not bound. Whether mpiexec can bind the ranks of the other jobs depends on
/// the jobs that run at the same time, so only here the answers are known.
#[test]
fn communicators_unbound() {
    let env = [("TYPEPACK_BIND", "none"), ("COMMUNICATORS_UNBOUND", "1")];
    run_with("communicators", &[1, 2], &env);
}

/// Tests files: every call that reads or writes, on 1, 2 and 3 ranks and more.
#[test]
fn files() {
    run("files", &[0, 1, 2, 3, 5]);
    run_with("files", &[2], &[("TYPEPACK_SPIN_US", "0")]);
    run("representations", &[0, 1, 2, 3]);
    for method in ["mmap", "pwrite"] {
        run_with("representations", &[2], &[("TYPEPACK_IO", method)]);
        run_with("files", &[1, 2, 3], &[("TYPEPACK_IO", method)]);
    }
}

/// Runs the program that counts the library's calls of `memcpy` and `memmove`, with the default settings and
/// with several others that change how messages move.
#[test]
fn copies() {
    run("copies", &[2, 3]);
    for (name, value) in [
        ("TYPEPACK_TRANSPORT", "pipeline"),
        ("TYPEPACK_TRANSPORT", "eager"),
        ("TYPEPACK_TRANSPORT", "heap"),
        ("TYPEPACK_TUNE", "off"),
        ("TYPEPACK_COPY", "vector"),
        ("TYPEPACK_KERNEL", "interpreter"),
        ("TYPEPACK_ISA", "portable"),
    ] {
        run_with("copies", &[2], &[(name, value)]);
    }
}

/// Runs the program that counts the library's allocations while short messages move.
#[test]
fn allocations() {
    run("allocations", &[2]);
    run_with("allocations", &[2], &[("TYPEPACK_SPIN_US", "0")]);
}

/// Runs the program that lets allocations fail in every kind of call, also if kernels are made at once. With
/// `FAIL_EVERY_ALLOCATION=1` in the environment, the program lets every allocation fail, otherwise a part of them.
#[test]
fn failing_memory() {
    run("failing_memory", &[0, 2]);
    run_with("failing_memory", &[0], &[("TYPEPACK_JIT", "eager"), ("TYPEPACK_KERNEL", "kernel")]);
}

/// Runs the program whose ranks make different calls, with one thread and with several.
#[test]
fn mismatches() {
    run("mismatches", &[2]);
    run_with("mismatches", &[2], &[("SEVERAL_THREADS", "1")]);
}

/// Runs the program that lets allocations fail in calls that move data between two ranks or make objects of both.
#[test]
fn failing_pairs() {
    run("failing_pairs", &[2]);
    run_with("failing_pairs", &[2], &[("TYPEPACK_SPIN_US", "0")]);
    run_with("failing_pairs", &[2], &[("TYPEPACK_COLL", "all:messages")]);
    run_with("failing_pairs", &[2], &[("TYPEPACK_CHECK_TYPES", "1")]);
}

/// Uses up the address space with each of several kinds of calls.
#[test]
fn short_memory() {
    run("short_memory", &[0]);
}

/// Runs the program that counts the allocations and the system calls of small collective calls. The program says what
/// it cannot count on this machine.
#[test]
fn small_collectives() {
    let mut command = Command::new(crate::job::mpiexec());
    command.args(["-n", "2"]).arg(compile("small_collectives"));
    // No rank sleeps within ten minutes, so the calls need no system call even if a rank gets the CPU late.
    command.env("LD_LIBRARY_PATH", library()).env("TYPEPACK_SPIN_US", "600000000");
    let output = crate::job::run(command, "small_collectives", &[]);
    assert!(output.status.success(), "{}", crate::job::text(&output));
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        skipped(line.strip_prefix("SKIPPED: ").unwrap_or(line));
    }
}

/// Returns why valgrind cannot run here; `None` if it can. A run of these tests denies executable memory, which
/// valgrind needs.
fn no_valgrind() -> Option<String> {
    match Command::new("valgrind").args(["-q", "--tool=none", "true"]).output() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Some("valgrind is not installed".to_owned())
        }
        Err(error) => Some(format!("valgrind cannot start: {error}")),
        Ok(output) if output.status.success() => None,
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            let first =
                said.lines().find(|line| !line.trim().is_empty()).unwrap_or("it says nothing");
            Some(format!(
                "valgrind is installed, but cannot run `true` ({}): {first}",
                output.status
            ))
        }
    }
}

/// valgrind does not know the instructions of AVX-512. It hides them from programs that ask the CPU, but code for the
/// CPU of this machine may have been chosen in another way.
const NO_AVX512: (&str, &str) = ("TYPEPACK_ISA", "avx2");

/// Runs a program under valgrind. The library once read the address of the kernel's vDSO from the kernel, where
/// valgrind does not hide it, and crashed in the first call of `MPI_Wtime`.
#[test]
fn a_program_runs_under_valgrind() {
    if let Some(reason) = no_valgrind() {
        return skipped(reason);
    }
    let mut command = Command::new(crate::job::mpiexec());
    command.args(["-n", "2", "valgrind", "-q", "--tool=none"]).arg(compile("lecture"));
    command.env("LD_LIBRARY_PATH", library());
    let output = crate::job::run(command, "lecture", &[NO_AVX512]);
    assert!(output.status.success(), "{}", crate::job::text(&output));
}

/// Checks that the cost of each object and list grows with the work: four times as many objects must not take more
/// than six times as many instructions. callgrind counts the instructions of the thread that makes the calls, so the
/// machine's load does not matter. Rare events, such as the first use of a table, count only in one of two runs.
#[test]
fn costs_grow_with_the_work() {
    if let Some(reason) = no_valgrind() {
        return skipped(reason);
    }
    let exe = compile("growth");
    let counts = library().join("growth.counts");
    let mut command = Command::new("valgrind");
    command.args(["-q", "--tool=callgrind", "--zero-before=measured", "--dump-after=measured"]);
    command.args(["--separate-threads=yes", "--dump-line=no"]);
    command.arg(format!("--callgrind-out-file={}", counts.display()));
    command.arg(exe).env("LD_LIBRARY_PATH", library());
    let output = crate::job::run(command, "growth", &[NO_AVX512, ("TYPEPACK_TUNE", "off")]);
    assert!(output.status.success(), "{}", crate::job::text(&output));
    // The program prints one line for each call of `measured`, and callgrind writes one file for each call and thread.
    let instructions = |call: usize| {
        let file = format!("{}.{}-01", counts.display(), call + 1);
        let text = std::fs::read_to_string(&file).expect("a file of callgrind");
        let total = text.lines().find_map(|line| line.strip_prefix("totals: "));
        total.and_then(|total| total.trim().parse::<u64>().ok()).expect("a total")
    };
    let said = String::from_utf8_lossy(&output.stdout);
    let mut wrong = String::new();
    for (group, name) in said.lines().step_by(4).enumerate() {
        let least = |call| instructions(4 * group + call).min(instructions(4 * group + call + 2));
        let (few, many) = (least(0), least(1));
        println!("{name}: {few} and {many} instructions");
        if many > 6 * few {
            wrong += &format!("{name}: {few} instructions, but {many} for 4 times the work\n");
        }
    }
    assert!(!said.is_empty() && wrong.is_empty(), "{wrong}");
}

/// Runs the program that tests the type check, with the default settings and with several others that
/// change how messages move.
#[test]
fn types() {
    const CHECKED: (&str, &str) = ("TYPEPACK_CHECK_TYPES", "1");
    run_with("types", &[0, 1, 2, 3, 5], &[CHECKED]);
    for (name, value) in [
        ("TYPEPACK_EAGER_LIMIT", "0"),
        ("TYPEPACK_TRANSPORT", "pipeline"),
        ("TYPEPACK_TRANSPORT", "cma"),
        ("TYPEPACK_SPIN_US", "0"),
    ] {
        run_with("types", &[2], &[CHECKED, (name, value)]);
    }
    // Programs whose types match must still work if the type check is on.
    for name in
        ["collectives", "reductions", "layouts", "modes", "requests", "packing_units", "truncated"]
    {
        run_with(name, &[0, 2], &[CHECKED]);
    }
}

/// Runs a program that loads and unloads the library at run time.
#[test]
fn reloaded() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c/reloaded.c");
    let exe = crate::program::compile_with("reloaded", &[source], &["-ldl"]);
    let mut command = Command::new(exe);
    command.env("LD_LIBRARY_PATH", library());
    let output = crate::job::run(command, "reloaded", &[]);
    assert!(output.status.success(), "{}", crate::job::text(&output));
}

/// Runs random collective calls with settings that change how messages move and who waits.
#[test]
fn campaign_with_settings() {
    for (name, value) in [
        ("TYPEPACK_EAGER_LIMIT", "0"),
        ("TYPEPACK_TRANSPORT", "pipeline"),
        ("TYPEPACK_CHECK_TYPES", "1"),
        ("TYPEPACK_SPIN_US", "0"),
        ("TYPEPACK_COLL", "all:messages"),
        ("TYPEPACK_COLL", "all:cells,all:slices"),
        ("TYPEPACK_COLL", "all:cells,all:whole"),
        ("TYPEPACK_COLL", "all:cells,all:pieces"),
        ("TYPEPACK_COLL", "reduce:messages,bcast:messages,gather:messages,alltoallv:messages"),
    ] {
        run_with("campaign", &[3, 6], &[(name, value), ("CAMPAIGN_SEED", "500")]);
        run_with("campaign_between", &[3, 6], &[(name, value), ("CAMPAIGN_SEED", "500")]);
        run_with("campaign_neighbors", &[2, 6], &[(name, value), ("CAMPAIGN_SEED", "500")]);
    }
}

/// Runs one-sided calls without system calls that read the memory of other ranks, and without spinning.
#[test]
fn windows_with_settings() {
    for (name, value) in [("TYPEPACK_CMA", "off"), ("TYPEPACK_SPIN_US", "0")] {
        run_with("windows", &[2, 3], &[(name, value)]);
        run_with("attached_windows", &[2, 3], &[(name, value)]);
        run_with("window_starts", &[2, 3], &[(name, value)]);
        run_with("window_campaign", &[2, 3, 5], &[(name, value), ("CAMPAIGN_SEED", "500")]);
    }
}

/// Runs random collective calls from several threads of each rank at once.
#[test]
fn campaign_with_threads() {
    for (threads, sizes) in [("2", &[1, 2, 3, 5][..]), ("4", &[2, 3]), ("8", &[2])] {
        run_with("campaign", sizes, &[("CAMPAIGN_THREADS", threads), ("CAMPAIGN_SEED", "900")]);
        let sizes = &sizes[..1];
        run_with(
            "campaign_neighbors",
            sizes,
            &[("CAMPAIGN_THREADS", threads), ("CAMPAIGN_SEED", "900")],
        );
    }
    let env = [("CAMPAIGN_THREADS", "3"), ("CAMPAIGN_SEED", "900"), ("TYPEPACK_SPIN_US", "0")];
    run_with("campaign", &[3], &env);
}

/// Checks messages between all ranks, on up to 8 ranks and with several settings that change how messages
/// move.
#[test]
fn stress() {
    run("stress", &[0, 2, 4, 8]);
    for (name, value) in [
        ("TYPEPACK_EAGER_LIMIT", "0"),
        ("TYPEPACK_EAGER_LIMIT", "16384"),
        ("TYPEPACK_TRANSPORT", "pipeline"),
        ("TYPEPACK_TRANSPORT", "heap"),
        ("TYPEPACK_TRANSPORT", "cma"),
        ("TYPEPACK_SPIN_US", "0"),
        ("TYPEPACK_JIT", "off"),
    ] {
        run_with("stress", &[4, 8], &[(name, value)]);
    }
}

/// Runs the program `memory` with each of three transports in turn.
#[test]
fn memory_by_one_way() {
    for way in ["heap", "ring", "pipeline"] {
        run_with("memory", &[2], &[("TYPEPACK_TRANSPORT", way)]);
    }
}

#[test]
fn modes_out_of_shared_memory() {
    for way in ["auto", "heap"] {
        run_with("modes", &[0, 2, 3], &[("TYPEPACK_TRANSPORT", way), ("FROM_MPI", "1")]);
    }
}

/// Floods a rank whose bound for unexpected messages is small.
#[test]
fn flow() {
    run_with("flow", &[2], &[("TYPEPACK_UNEXPECTED_MAX", "1048576")]);
}

/// Cancels sends with three transports, without spinning, and with the check of types.
#[test]
fn cancels_by_one_way() {
    for (name, value) in [
        ("TYPEPACK_TRANSPORT", "pipeline"),
        ("TYPEPACK_TRANSPORT", "heap"),
        ("TYPEPACK_TRANSPORT", "cma"),
        ("TYPEPACK_SPIN_US", "0"),
        ("TYPEPACK_CHECK_TYPES", "1"),
    ] {
        run_with("cancels", &[2], &[(name, value)]);
    }
}

#[test]
fn modes_without_eager_messages() {
    run_with("modes", &[2], &[("TYPEPACK_EAGER_LIMIT", "0")]);
}

#[test]
fn requests_without_spinning() {
    run_with("requests", &[2], &[("TYPEPACK_SPIN_US", "0")]);
}

/// `scripts/demo` runs this program with MPICH. Its table must have the cases of `typepack demo`
/// (cli/tests/halo.rs).
#[test]
fn the_demo_for_mpich_exchanges_the_cases_of_the_demo() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cli/src/demo/datatypes.c");
    crate::program::compile("datatypes", &[source]);
    let table = library().join("datatypes.csv");
    let mut command = Command::new(crate::job::mpiexec());
    command.args(["-n", "2"]).arg(library().join("datatypes")).arg("mpich").arg(&table);
    command.env("LD_LIBRARY_PATH", library());
    let output = crate::job::run(command, "datatypes", &[]);
    assert!(output.status.success(), "{}", crate::job::text(&output));
    let table = std::fs::read_to_string(table).expect("a table");
    let wanted = [
        "bar,case,what,bytes,us,probe_ns",
        "mpich,doubles,\"exchange: x faces, 64^3 doubles\",131072,",
        "mpich,structs,\"exchange: x faces, 64^3 {char, int, double}\",212992,",
        "mpich,rows,\"exchange: z faces, 64^3 {char, int, double}\",212992,",
    ];
    let mut lines = table.lines();
    for begin in wanted {
        assert!(lines.next().is_some_and(|line| line.starts_with(begin)), "{begin} in {table}");
    }
    assert_eq!(lines.next(), None, "{table}");
}
