//! Runs `typepack halo` as a user would, mostly under `mpiexec`. The tests check that many combinations of
//! decomposition, boundary, stencil, halo width and number of fields give the serial solution, and that bad
//! input gives the right line on stderr.

use crate::tool::{DEADLINE, Folder, bin, refused, run, said, typepack, verified, wait};
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

#[test]
fn every_decomposition_gives_the_serial_solution() {
    for options in [
        "--stencil star",
        "--stencil box",
        "--stencil star --boundary fixed",
        "--stencil box --boundary fixed",
        "--stencil star --halo 2",
        "--stencil box --halo 2 --fields 3",
        "--stencil star --halo 3 --fields 2",
        "--stencil star --halo 3 --boundary fixed --fields 2",
        "--stencil box --halo 3 --boundary fixed",
    ] {
        let options = format!("--grid 11x13x12 --steps 7 {options}");
        let alone = verified(0, &options, &[]);
        for ranks in [1, 2, 3, 4, 6] {
            assert_eq!(verified(ranks, &options, &[]), alone, "{ranks} ranks, {options}");
        }
    }
}

#[test]
fn every_rank_grid_gives_the_serial_solution() {
    for (ranks, grids) in [
        (1, &["1x1x1"][..]),
        (2, &["2x1x1", "1x2x1", "1x1x2"]),
        (3, &["3x1x1", "1x3x1"]),
        (4, &["2x2x1", "2x1x2", "1x4x1"]),
        (6, &["3x2x1", "1x2x3", "6x1x1"]),
    ] {
        for grid in grids {
            for options in ["--stencil box", "--stencil star --halo 2 --fields 2 --boundary fixed"]
            {
                verified(ranks, &format!("--grid 13x10x9 --steps 5 --ranks {grid} {options}"), &[]);
            }
        }
    }
}

#[test]
fn blocks_of_a_single_cell_are_right() {
    for options in ["", "--stencil box", "--boundary fixed", "--stencil box --boundary fixed"] {
        for (ranks, grid) in [(0, "1x1x1"), (2, "2x1x1"), (2, "1x2x1"), (4, "2x1x2"), (3, "7x5x3")]
        {
            verified(ranks, &format!("--grid {grid} --steps 6 {options}"), &[]);
        }
    }
}

#[test]
fn every_executor_gives_the_same_bits() {
    let options = "--grid 20x18x17 --stencil box --halo 2 --fields 3 --steps 9";
    let lazy = verified(4, options, &[]);
    for mode in ["off", "lazy", "eager"] {
        assert_eq!(verified(4, options, &[("TYPEPACK_JIT", mode)]), lazy);
        assert_eq!(verified(4, &format!("{options} --jit {mode}"), &[]), lazy);
    }
}

#[test]
fn every_way_gives_the_same_bits() {
    for options in ["", "--stencil box --halo 2 --fields 3", "--boundary fixed --fields 2"] {
        let options = format!("--grid 12x11x10 --steps 7 {options}");
        let alone = verified(0, &options, &[]);
        for way in ["typepack", "interpreter", "hand"] {
            for ranks in [1, 2, 4] {
                assert_eq!(verified(ranks, &format!("{options} --way {way}"), &[]), alone, "{way}");
            }
        }
    }
    let words = "halo --grid 8x8x8 --steps 2 --way interpreter --verify";
    let interpreted = typepack(2, words, &[]).stdout;
    // No face was packed by a kernel. `memcpy` moved only the data of collective calls, which are contiguous: less than
    // one exchange of faces.
    let (_, moved) = interpreted.split_once("bytes moved on rank 0: ").expect("the bytes");
    let (moved, _) = moved.split_once(")\n").expect("a line");
    let (total, parts) = moved.split_once(" (").expect("parts");
    let part = |text: &str| {
        let (bytes, name) = text.split_once(' ').expect("a number and a name");
        (name.to_owned(), bytes.parse::<u64>().expect("a number"))
    };
    let parts: Vec<_> = parts.split(", ").map(part).collect();
    let sum: u64 = parts.iter().map(|(_, bytes)| bytes).sum();
    assert_eq!(total.parse(), Ok(sum), "{interpreted}");
    for (name, bytes) in &parts {
        let few = name == "memcpy" && *bytes < 4096;
        let plain = name == "interpreter" || name == "fused copies";
        assert!(plain || few, "{interpreted}");
    }
}

#[test]
fn the_demo_compares_three_ways() {
    let folder = Folder::new("demo");
    let path = |name: &str| folder.0.join(name).display().to_string();
    let mut tables = String::new();
    for way in ["interpreter", "hand", "typepack"] {
        let csv = path(way);
        let words = format!("demo --way {way} --csv {csv}");
        let outcome = typepack(2, &words, &[]);
        assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
        // The hand-written loops exchange two of the three cases a second time, as whole cells.
        let verified = if way == "hand" { 5 } else { 3 };
        let said = outcome.stdout.matches("verified bit for bit").count();
        assert_eq!(said, verified, "{}", outcome.stdout);
        let whole = outcome.stdout.matches("verified bit for bit, whole cells").count();
        assert_eq!(whole, verified - 3, "{}", outcome.stdout);
        // The C program that measures MPICH writes the same cases and numbers of bytes (capi/tests/c.rs).
        let table = std::fs::read_to_string(&csv).expect("a table");
        for case in [
            "doubles,\"exchange: x faces, 64^3 doubles\",131072,",
            "structs,\"exchange: x faces, 64^3 {char, int, double}\",212992,",
            "rows,\"exchange: z faces, 64^3 {char, int, double}\",212992,",
        ] {
            assert!(table.contains(&format!("{way},{case}")), "{case} in {table}");
        }
        tables += &format!(" --draw {csv}");
    }
    let svg = path("demo.svg");
    let outcome = typepack(0, &format!("demo{tables} --svg {svg}"), &[]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let picture = std::fs::read_to_string(&svg).expect("a picture");
    for name in [
        "interpreter",
        "hand loops",
        "hand, whole cells",
        "typepack",
        "doubles",
        "char, int, double",
    ] {
        assert!(outcome.stdout.contains(name), "{name} in {}", outcome.stdout);
        assert!(picture.contains(name), "{name}");
    }
    for (ranks, words, line) in [
        (0, "demo", "--way or --draw: one of them is required (see typepack demo --help)"),
        (0, "demo --way hand", "--csv: required argument is missing (see typepack demo --help)"),
        (
            0,
            "demo --way hand --csv a",
            "demo: the number of ranks is 1; it must be 2 (mpiexec -n 2)",
        ),
        (0, "demo --draw /no/such --svg a", "--draw: /no/such: No such file or directory"),
    ] {
        let outcome = typepack(ranks, words, &[]);
        assert!(
            outcome.stderr.starts_with(&format!("typepack: {line}")),
            "{words}: {}",
            outcome.stderr
        );
        assert!(outcome.stdout.is_empty() && outcome.code != Some(0), "{words}");
    }
}

#[test]
fn the_option_wins_over_the_variable() {
    let words = "halo --grid 16x16x16 --steps 3 --ranks 2x1x1";
    let off = typepack(2, &format!("{words} --jit off"), &[("TYPEPACK_JIT", "eager")]);
    assert!(off.stdout.contains("jit of rank 0: 0 kernels"), "{}", off.stdout);
    let eager = typepack(2, &format!("{words} --jit eager"), &[("TYPEPACK_JIT", "off")]);
    // If the system denies executable memory, the JIT refuses to compile, and there are no kernels to check.
    // `scripts/test` also runs the tests in this situation.
    if !eager.stdout.contains(" 0 refusals,") {
        assert!(eager.stdout.contains("jit of rank 0: 0 kernels"), "{}", eager.stdout);
        return;
    }
    assert!(!eager.stdout.contains("jit of rank 0: 0 kernels"), "{}", eager.stdout);
    let x_face = eager.stdout.lines().find(|line| line.starts_with("-x ")).expect("a face");
    assert!(x_face.contains("pack loop") && x_face.contains("unpack loop"), "{x_face}");
}

#[test]
fn messages_larger_than_any_buffer_are_right() {
    verified(2, "--grid 96x96x16 --steps 4 --ranks 1x1x2 --fields 4 --halo 2", &[]);
    verified(2, "--grid 12x160x160 --steps 4 --ranks 2x1x1 --fields 3 --halo 2", &[]);
}

/// Returns the bytes of a cube of shape (z, y, x) = (4, 5, 6), in Fortran order if `fortran` is true, and in
/// C order otherwise.
fn cube(fortran: bool) -> Vec<u8> {
    let value = |z: usize, y: usize, x: usize| ((z * 5 + y) * 6 + x) as f64 * 0.37 - 11.0;
    let mut bytes = Vec::new();
    if fortran {
        for (x, y, z) in (0..120).map(|i| (i / 20, i / 4 % 5, i % 4)) {
            bytes.extend(value(z, y, x).to_le_bytes());
        }
    } else {
        for (z, y, x) in (0..120).map(|i| (i / 30, i / 6 % 5, i % 6)) {
            bytes.extend(value(z, y, x).to_le_bytes());
        }
    }
    bytes
}

fn numpy(version: u8, fortran: bool, shape: &str, values: &[u8]) -> Vec<u8> {
    let order = if fortran { "True" } else { "False" };
    let text = format!("{{'descr': '<f8', 'fortran_order': {order}, 'shape': {shape}, }}\n");
    let mut bytes = b"\x93NUMPY".to_vec();
    bytes.extend([version, 0]);
    if version == 1 {
        bytes.extend((text.len() as u16).to_le_bytes());
    } else {
        bytes.extend((text.len() as u32).to_le_bytes());
    }
    bytes.extend(text.as_bytes());
    bytes.extend(values);
    bytes
}

#[test]
fn initial_files_of_every_kind_give_the_same_result() {
    let folder = Folder::new("init");
    let files = [
        folder.file("cube.raw", &cube(false)),
        folder.file("one.npy", &numpy(1, false, "(4, 5, 6)", &cube(false))),
        folder.file("two.npy", &numpy(2, false, "(4, 5, 6)", &cube(false))),
        folder.file("three.npy", &numpy(3, true, "(4, 5, 6)", &cube(true))),
    ];
    for fields in [1, 3] {
        let options = format!("--grid 6x5x4 --steps 5 --fields {fields} --init");
        let alone = verified(0, &format!("{options} {}", files[0]), &[]);
        for file in &files {
            for ranks in [1, 2, 4] {
                assert_eq!(verified(ranks, &format!("{options} {file}"), &[]), alone);
            }
        }
    }
    let both: Vec<u8> = [cube(false), cube(true)].concat();
    let file = folder.file("four.npy", &numpy(1, false, "(2, 4, 5, 6)", &both));
    verified(2, &format!("--grid 6x5x4 --fields 2 --init {file}"), &[]);
}

#[test]
fn tables_and_pictures_are_written() {
    let folder = Folder::new("out");
    let path = |name: &str| folder.0.join(name).display().to_string();
    let (csv, svg) = (path("off.csv"), path("both.svg"));
    let words = "halo --grid 16x16x16 --steps 4 --halo 2";
    let outcome = typepack(2, &format!("{words} --jit off --csv {csv}"), &[]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let table = std::fs::read_to_string(&csv).expect("a table");
    assert_eq!(table.lines().count(), 1 + 2 * 5 + 3);
    assert!(table.lines().all(|line| line.split(',').count() == 10));
    let outcome = typepack(2, &format!("{words} --jit eager --compare {csv} --svg {svg}"), &[]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let picture = std::fs::read_to_string(&svg).expect("a picture");
    assert!(picture.starts_with("<svg") && picture.ends_with("</svg>\n"));
    for text in ["jit eager, rank 1", "jit off, rank 0", "wait", "GB/s"] {
        assert!(picture.contains(text), "{text}");
    }
}

#[test]
fn every_bad_argument_is_one_line_of_one_rank() {
    let cases = [
        ("", "typepack: no command given (see typepack --help)"),
        ("fly", "typepack: 'fly' is not a command (see typepack --help)"),
        ("halo", "typepack: --grid: required argument is missing (see typepack halo --help)"),
        ("halo --grid", "typepack: --grid: the value is missing"),
        ("halo --grid 8x8", "typepack: --grid: '8x8' is not of the form AxBxC"),
        ("halo --grid 8x0x8", "typepack: --grid: 0 is too small; it must be at least 1"),
        ("halo --grid 8x-8x8", "typepack: --grid: -8 is too small; it must be at least 1"),
        (
            "halo --grid 8x8x99999999999999999999",
            "typepack: --grid: 99999999999999999999 is too large; it must be at most \
             9223372036854775807",
        ),
        ("halo --grid 8x8x8 --halo 0", "typepack: --halo: 0 is too small; it must be at least 1"),
        ("halo --grid 8x8x8 --halo -2", "typepack: --halo: -2 is too small; it must be at least 1"),
        (
            "halo --grid 8x8x8 --fields 0",
            "typepack: --fields: 0 is too small; it must be at least 1",
        ),
        ("halo --grid 8x8x8 --steps ten", "typepack: --steps: 'ten' is not a whole number"),
        ("halo --grid 8x8x8 --jit on", "typepack: --jit: 'on' is not one of off, lazy, eager"),
        ("halo --grid 8x8x8 --ranks 3x1", "typepack: --ranks: '3x1' is not of the form AxBxC"),
        (
            "halo --grid 8x8x8 --wide",
            "typepack: --wide: unknown argument (see typepack halo --help)",
        ),
        ("halo --grid 8x8x8 --halo 9", "typepack: --halo: 9 is too large; it must be at most "),
    ];
    for (words, line) in cases {
        for ranks in [0, 3] {
            if line.ends_with("at most ") {
                let outcome = typepack(ranks, words, &[]);
                assert!(said(&outcome).starts_with(line), "{words}: {}", outcome.stderr);
                assert_eq!(said(&outcome).lines().count(), 1);
                assert_eq!(outcome.code, Some(2), "{words}");
            } else {
                refused(ranks, words, line, 2);
            }
        }
    }
}

#[test]
fn what_does_not_fit_the_job_is_refused() {
    refused(
        4,
        "halo --grid 8x8x8 --ranks 2x2x2",
        "typepack: --ranks: 2x2x2 needs 8 ranks; the job has 4",
        2,
    );
    refused(
        0,
        "halo --grid 8x8x8 --ranks 2x1x1",
        "typepack: --ranks: 2x1x1 needs 2 ranks; the job has 1",
        2,
    );
    refused(
        3,
        "halo --grid 2x8x8 --ranks 3x1x1",
        "typepack: --ranks: the number of ranks along x is 3; it must be at most 2, the grid's extent",
        2,
    );
    refused(
        2,
        "halo --grid 9x8x8 --ranks 2x1x1 --halo 5",
        "typepack: --halo: 5 is too large; it must be at most 4, the smallest extent of a block along x \
         (9x8x8 cells on 2x1x1 ranks)",
        2,
    );
    refused(
        4,
        "halo --grid 1x1x3",
        "typepack: --grid: 1x1x3 cannot be cut into 4 blocks of at least 1 cell each",
        2,
    );
    let huge = typepack(2, "halo --grid 4000000x4000000x4000000 --halo 3", &[]);
    assert_eq!((huge.code, said(&huge).lines().count()), (Some(2), 1), "{}", huge.stderr);
    assert!(huge.stderr.starts_with("typepack: --grid: 4000000x4000000x4000000"));
}

#[test]
fn what_only_rank_0_can_see_ends_all_ranks() {
    let folder = Folder::new("bad");
    let short = folder.file("short.raw", &cube(false)[8..]);
    let shape = folder.file("shape.npy", &numpy(1, false, "(6, 5, 4)", &cube(false)));
    let cut = folder.file("cut.npy", &numpy(1, false, "(4, 5, 6)", &cube(false))[..30]);
    let csv = folder.file("foreign.csv", b"a,b\n");
    let cases = [
        (
            "--init /nonexistent/file".to_owned(),
            "--init: /nonexistent/file: no such file or directory".to_owned(),
        ),
        (
            format!("--init {short}"),
            format!(
                "--init: {short}: too short: the file has 952 bytes of values; the grid needs 960"
            ),
        ),
        (
            format!("--init {shape}"),
            format!("--init: {shape}: the shape is [6, 5, 4]; the grid needs (4, 5, 6)"),
        ),
        (format!("--init {cut}"), format!("--init: {cut}: the file ends inside its .npy header")),
        (
            "--csv /nonexistent/x.csv".to_owned(),
            "--csv: /nonexistent/x.csv: no such file or directory".to_owned(),
        ),
        ("--svg /".to_owned(), "--svg: /: is a directory".to_owned()),
        (
            format!("--svg {}/x.svg --compare {csv}", folder.0.display()),
            format!(
                "--compare: {csv}: the first line is \"a,b\"; the first line of a .csv file of typepack \
                 halo is jit,setup,steps,exchanges,bytes_per_exchange,rank,phase,calls,seconds,us_per_call"
            ),
        ),
    ];
    for (options, line) in cases {
        for ranks in [0, 3] {
            refused(
                ranks,
                &format!("halo --grid 6x5x4 {options}"),
                &format!("typepack: {line}"),
                2,
            );
        }
    }
}

#[test]
fn no_run_destroys_a_file_that_it_was_to_read_or_could_not_write() {
    let folder = Folder::new("kept");
    let init = folder.file("init.raw", &cube(false));
    let old = folder.file("old.csv", b"of an earlier run");
    let cases = [
        (format!("--init {init} --csv {init}"), format!("--csv: {init}: the same file as --init")),
        (format!("--init {init} --svg {init}"), format!("--svg: {init}: the same file as --init")),
        (format!("--csv {old} --svg {old}"), format!("--svg: {old}: the same file as --csv")),
        (
            format!("--csv {old} --init /nonexistent/file"),
            "--init: /nonexistent/file: no such file or directory".to_owned(),
        ),
    ];
    for (options, line) in cases {
        let words = format!("halo --grid 6x5x4 {options}");
        refused(2, &words, &format!("typepack: {line}"), 2);
    }
    assert_eq!(std::fs::read(&init).expect("the initial field"), cube(false));
    assert_eq!(std::fs::read(&old).expect("the old table"), b"of an earlier run");
    // If the old contents of a file are longer than the new text, no part of them may remain.
    let long = folder.file("long.csv", &[b'x'; 100_000]);
    verified(2, &format!("--grid 6x5x4 --steps 2 --csv {long}"), &[]);
    assert!(!std::fs::read_to_string(&long).expect("a table").contains("xxx"));
}

#[test]
fn a_bad_variable_is_one_line_of_one_rank() {
    let tool = env!("CARGO_BIN_EXE_typepack");
    // The ranks cannot join the job and wait for each other. mpiexec asks the others to end 100 ms after the end of the
    // first rank. They ignore that, so that rank 0 speaks, however late it gets the CPU.
    let deaf = "trap '' TERM; exec \"$0\" halo --grid 8x8x8";
    let mut job = Command::new(bin().join("mpiexec"));
    job.args(["-kill-after", "60", "-n", "3", "sh", "-c", deaf, tool]);
    let mut alone = Command::new(tool);
    alone.args(["halo", "--grid", "8x8x8"]);
    for command in [&mut alone, &mut job] {
        let outcome = run(command.env("TYPEPACK_JIT", "sometimes"));
        let said = said(&outcome);
        assert_eq!(outcome.code, Some(2), "{said}");
        assert!(said.starts_with("typepack: TYPEPACK_JIT: "), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
}

#[test]
fn an_output_that_cannot_be_written_ends_all_ranks() {
    for ranks in [0, 3] {
        let words = "halo --grid 6x5x4 --steps 2 --csv /dev/full";
        refused(ranks, words, "typepack: --csv: /dev/full: no space left on device", 1);
    }
}

#[test]
fn a_killed_rank_ends_the_run_with_the_launchers_line_alone() {
    let mut command = Command::new(bin().join("mpiexec"));
    command.args(["-n", "3", env!("CARGO_BIN_EXE_typepack"), "halo", "--grid", "48x48x48"]);
    command.args(["--steps", "100000000"]).stdin(Stdio::null());
    let mut job = command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().expect("a job");
    let children = format!("/proc/{0}/task/{0}/children", job.id());
    let end = Instant::now() + DEADLINE;
    let ranks: Vec<i32> = loop {
        let text = std::fs::read_to_string(&children).expect("a running job");
        let ranks: Vec<i32> = text.split(' ').filter_map(|pid| pid.parse().ok()).collect();
        if ranks.len() >= 3 {
            break ranks;
        }
        assert!(Instant::now() < end, "no ranks");
        thread::sleep(Duration::from_millis(5));
    };
    // After this sleep, the job is in the middle of the computation.
    thread::sleep(Duration::from_millis(200));
    let killed = Command::new("kill").args(["-9", &ranks[1].to_string()]).status();
    assert!(killed.expect("kill").success());
    let code = wait(&mut job, &command);
    let mut said = String::new();
    job.stderr.take().expect("a pipe").read_to_string(&mut said).expect("text");
    assert_eq!((code, said.lines().count()), (Some(137), 1), "{said}");
    assert!(said.starts_with("mpiexec: rank ") && said.contains("signal 9"), "{said}");
    for pid in ranks {
        assert!(!Path::new(&format!("/proc/{pid}")).exists(), "rank {pid} lives on");
    }
}

#[test]
fn help_is_printed_once() {
    for words in ["--help", "halo --help", "--version"] {
        let alone = typepack(0, words, &[]);
        assert_eq!((alone.code, alone.stderr.as_str()), (Some(0), ""));
        let all = typepack(3, words, &[]);
        assert_eq!((all.code, all.stdout), (Some(0), alone.stdout));
    }
    let help = typepack(0, "halo --help", &[]).stdout;
    for option in ["--grid", "--ranks", "--halo", "--stencil", "--boundary", "--fields", "--steps"]
    {
        assert!(help.contains(option), "{option}");
    }
    assert!(help.contains("mpiexec -n 2 typepack halo"));
}
