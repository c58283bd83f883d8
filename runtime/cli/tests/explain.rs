//! Runs `typepack explain` as a user would, and checks its reports, drawings, files, and answers to bad
//! arguments.

use std::path::PathBuf;
use std::process::{Command, Output};
use typepack_test_support::skipped::skipped;

fn explain(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_typepack")).arg("explain").args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn scratch(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name)
}

#[test]
fn a_report_has_all_its_parts() {
    let words = ["vector(4, 2, 5, double)", "--count", "2"];
    let brief = text(&explain(&words).stdout);
    let sentence = brief.lines().next().expect("a first line").to_owned();
    assert!(sentence.starts_with("packed by ") && sentence.ends_with(": fast"), "{brief}");
    assert!(brief.contains("Layout") && !brief.contains("Execution"), "{brief}");
    let done = explain(&[&words[..], &["--verbose"]].concat());
    assert!(done.status.success(), "{done:?}");
    let report = text(&done.stdout);
    assert_eq!(report.lines().next(), Some(&*sentence), "{report}");
    for part in ["Tree", "Bounds (bytes)", "Signature", "8 x double", "Layout", "Execution"] {
        assert!(report.contains(part), "{part} in {report}");
    }
    assert!(report.contains("loop 4 x 40 @0\n        block 16 @0"), "{report}");
}

/// Checks the table of `--time`, and not its times.
#[test]
fn times_are_measured() {
    let report = text(&explain(&["vector(64, 1, 2, double)", "--time"]).stdout);
    let (_, table) = report.split_once("GB/s of packed bytes").expect(&report);
    let rows: Vec<_> = table.lines().skip(2).collect();
    assert_eq!(rows.len(), 6, "{report}");
    for (row, bytes) in rows.iter().zip([1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20])
    {
        let numbers: Vec<f64> = row.split_whitespace().map(|word| word.parse().unwrap()).collect();
        assert!(numbers[0] == f64::from(bytes) && numbers.len() == 4, "{report}");
        assert!(numbers.iter().all(|number| *number > 0.0), "{report}");
    }
    let far = text(&explain(&["vector(2, 1, 200000000, double)", "--time"]).stdout);
    assert!(far.contains("bytes: not measured"), "{far}");
    // A type with a negative lower bound, whose elements go backwards.
    let back = explain(&["resized(0, -64, vector(4, 1, -2, double))", "--time"]);
    assert!(back.status.success(), "{back:?}");
    let empty = explain(&["contiguous(0, double)", "--time"]);
    assert_eq!(text(&empty.stderr), "typepack: --time: the type has no data\n");
}

#[test]
fn a_type_of_a_file_is_drawn() {
    let (file, svg) = (scratch("explain.toml"), scratch("explain.svg"));
    std::fs::write(&file, "[types]\ncolumn = \"vector(4, 1, 6, double)\"\n").unwrap();
    let words = ["column", "--file", file.to_str().unwrap(), "--svg", svg.to_str().unwrap()];
    let done = explain(&words);
    assert!(done.status.success(), "{done:?}");
    let drawing = std::fs::read_to_string(svg).unwrap();
    assert!(drawing.starts_with("<svg") && drawing.trim_end().ends_with("</svg>"));
}

#[test]
fn a_file_view_is_drawn_for_each_rank() {
    let svg = scratch("file_view.svg");
    let quarters = "subarray([4, 6], [2, 3], [{0|0|2|2}, {0|3|0|3}], C, double)";
    let done = explain(&["--file-view", quarters, "--svg", svg.to_str().unwrap()]);
    assert!(done.status.success(), "{done:?}");
    let report = text(&done.stdout);
    assert!(report.contains("A rank 0   B rank 1   C rank 2   D rank 3"), "{report}");
    assert!(report.contains("each of the 192 bytes belongs to exactly one rank"), "{report}");
    let picture = std::fs::read_to_string(svg).unwrap();
    assert!(picture.starts_with("<svg") && picture.contains(">rank 3<"), "{picture}");
    let words =
        ["--file-view", "resized(0, 24, double)", "--displacement", "{0|8}", "--count", "4"];
    let report = text(&explain(&words).stdout);
    assert!(
        report.contains("of 88 bytes, 24 belong to no rank and 0 to several views"),
        "{report}"
    );
    let file = scratch("file_view.toml");
    std::fs::write(&file, "[types]\nleft = \"vector(2, 1, 2, int)\"\nright = \"left\"\n").unwrap();
    let file = file.to_str().unwrap();
    let words = ["--file-view", "{left|right}", "--displacement", "{0|4}", "--file", file];
    let report = text(&explain(&words).stdout);
    assert!(report.contains("each of the 16 bytes belongs to exactly one rank"), "{report}");
}

#[test]
fn a_fortran_section_is_drawn() {
    let done = explain(&["--section", "real(8) a(64,64) (1:63:2, 3:40)"]);
    assert!(done.status.success(), "{done:?}");
    let report = text(&done.stdout);
    let ty = "hvector(38, 1, 512, vector(32, 1, 2, real8))";
    assert!(report.contains(ty), "{report}");
    assert!(report.contains("9728 bytes of data, extent 32768"), "{report}");
    assert!(report.contains("one row = 512 B"), "{report}");
    let back = text(&explain(&["--section", "integer a(0:5) (5:0:-2)"]).stdout);
    assert!(back.contains("12 bytes of data, extent 24"), "{back}");
    for (words, line) in [
        (
            &["--section", "real a(4) (2:5)"][..],
            "--section: '2:5': 5 is outside of the bounds 1:4 of the array",
        ),
        (&["--section", "real a(4)", "--file", "x"], "--section: cannot be combined with --file"),
        (&["--section", "double"], "--section: 'double ' is not a type; write 'double precision'"),
    ] {
        let done = explain(words);
        assert_eq!(done.status.code(), Some(2), "{words:?}: {done:?}");
        assert_eq!(text(&done.stderr), format!("typepack: {line}\n"), "{words:?}");
        assert!(done.stdout.is_empty(), "{words:?}: {done:?}");
    }
}

#[test]
fn bad_file_views_are_refused() {
    for (words, line) in [
        (&["int", "--displacement", "8"][..], "--displacement: needs --file-view"),
        (&["int", "--file-view", "--asm"], "--file-view: cannot be combined with --clif or --asm"),
        (&["{int", "--file-view"], "TYPE: '{' has no '}' in '{int'"),
        (
            &["{int|int}", "--file-view", "--displacement", "{0|1|2}"],
            "--displacement: the list has 3 alternatives; the lists of the type have 2",
        ),
        (
            &["int", "--file-view", "--displacement", "{0|-8}"],
            "--displacement: '-8' is not a position in a file; it must be a whole number from 0 to 2^63 - 1",
        ),
        (&["{int|inte}", "--file-view"], "1:1: "),
        (&["hindexed([1, 1], [8, 0], int)", "--file-view"], "filetype: "),
    ] {
        let done = explain(words);
        assert_eq!(done.status.code(), Some(2), "{words:?}: {done:?}");
        assert!(
            text(&done.stderr).starts_with(&format!("typepack: {line}")),
            "{words:?}: {done:?}"
        );
        assert!(done.stdout.is_empty(), "{words:?}: {done:?}");
    }
}

#[test]
fn refusals_say_where_and_leave_nothing() {
    for (words, line) in [
        (
            &["vector(4, 2"][..],
            "typepack: 1:12: expected `,` and then `stride`, found the end of the text",
        ),
        (&["contiguous(-1, int)"], "-1 is negative"),
        (&["int", "--file", "no such file"], "typepack: --file: no such file:"),
        (&["int", "--count", "x"], "--count"),
    ] {
        let done = explain(words);
        assert_eq!(done.status.code(), Some(2), "{words:?}: {done:?}");
        assert!(text(&done.stderr).contains(line), "{words:?}: {done:?}");
        assert!(done.stdout.is_empty(), "{words:?}: {done:?}");
    }
    let done = explain(&["int", "--svg", "/no such folder/x.svg"]);
    assert_eq!(done.status.code(), Some(1), "{done:?}");
    assert!(text(&done.stderr).starts_with("typepack: --svg: /no such folder/x.svg:"), "{done:?}");
}

/// Runs `typepack explain` with `TYPEPACK_KERNEL` set to `strategy`, and returns its output.
fn kernel(arguments: &[&str], strategy: &str) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_typepack"));
    let done =
        command.arg("explain").args(arguments).env("TYPEPACK_KERNEL", strategy).output().unwrap();
    assert!(done.status.success() && done.stderr.is_empty(), "{done:?}");
    text(&done.stdout)
}

#[test]
fn a_kernel_is_shown() {
    let ty = "indexed_block(3, [0, 7, 4, 19, 30], int)";
    let pack = kernel(&[ty, "--clif", "--asm"], "kernel");
    if pack.starts_with("no kernel") {
        assert!(pack.contains("memory"), "there is no kernel, but not for lack of memory: {pack}");
        return;
    }
    for part in
        ["kernel pack ", "bytes of code, compiled in", "level 0: count", "\nCLIF\n", "\nInstr"]
    {
        assert!(pack.contains(part), "{part} in {pack}");
    }
    assert!(pack.contains("function u0:0") && pack.contains("ret"), "{pack}");
    let unpack = kernel(&[ty, "--asm", "--direction", "unpack"], "kernel");
    assert!(unpack.starts_with("kernel unpack ") && !unpack.contains("CLIF"), "{unpack}");
    let two = "struct([1, 1], [0, 100000], [vector(20, 1, 2, int), vector(20, 1, 3, double)])";
    let second = kernel(&[two, "--clif", "--nest", "1"], "kernel");
    assert!(second.contains("nest 1 of 2") && !second.contains("Instructions"), "{second}");
}

/// Checks that the report shows a kernel that handles only short calls. (An earlier version reported that
/// there was no kernel.) Which kernels handle only short calls depends on the engine's table of costs. At the
/// time of writing, these are kernels that unpack long blocks on machines with AVX-512.
#[test]
fn a_kernel_of_short_calls_is_shown() {
    let reports = ["portable", "sse4", "avx2", "avx512"].into_iter().flat_map(|isa| {
        (1..=16).map(move |doubles| {
            let ty = format!("vector(100, {doubles}, {}, double)", doubles + 1);
            let mut command = Command::new(env!("CARGO_BIN_EXE_typepack"));
            command.args(["explain", &ty, "--asm", "--direction", "unpack"]);
            let done = command.env("TYPEPACK_ISA", isa).output().unwrap();
            (isa, text(&done.stdout).to_owned())
        })
    });
    let limited = reports.filter(|(_, report)| report.contains("takes calls up to"));
    let mut seen = 0;
    for (isa, report) in limited {
        let lines: Vec<&str> = report.lines().collect();
        assert!(lines[0].starts_with("kernel unpack loop loop b"), "{report}");
        assert!(lines[2].starts_with("  takes calls up to "), "{report}");
        let other = format!(" B; longer calls go to leaf row {isa}");
        assert!(lines[2].ends_with(&other), "{report}");
        seen += 1;
    }
    if seen == 0 {
        skipped("no kernel on this machine takes short calls only");
    }
}

#[test]
fn where_nothing_is_compiled_it_says_what_runs() {
    for (ty, strategy, line) in [
        ("contiguous(4, int)", "auto", "one memcpy"),
        ("contiguous(0, int)", "auto", "nothing to move"),
        ("vector(10, 2000, 3000, double)", "auto", "runs as one memcpy per row"),
        ("vector(1000, 1, 2, double)", "leaf", "runs as leaf "),
        ("vector(1000, 1, 2, double)", "interpreter", "runs as interpreter"),
    ] {
        let report = kernel(&[ty, "--clif"], strategy);
        assert!(report.starts_with("no kernel") && report.contains(line), "{ty}: {report}");
        assert_eq!(report.lines().count(), 1, "{report}");
    }
}

#[test]
fn bad_requests_for_kernels_are_refused() {
    let ty = "vector(1000, 1, 2, double)";
    for (words, line) in [
        (&[ty, "--clif", "--svg", "x.svg"][..], "typepack: --svg: cannot be combined with --clif"),
        (&[ty, "--nest", "0"], "typepack: --nest: needs --clif or --asm"),
        (&[ty, "--direction", "pack"], "typepack: --direction: needs --clif or --asm"),
    ] {
        let done = explain(words);
        assert_eq!(done.status.code(), Some(2), "{words:?}: {done:?}");
        assert!(text(&done.stderr).contains(line), "{words:?}: {done:?}");
        assert!(done.stdout.is_empty(), "{words:?}: {done:?}");
    }
    let done = explain(&[ty, "--asm", "--nest", "7"]);
    assert_eq!(done.status.code(), Some(1), "{done:?}");
    assert_eq!(text(&done.stderr), "typepack: --nest: 7 is too large; it must be at most 0\n");
}
