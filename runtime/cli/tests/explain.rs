//! Runs `typepack explain` as a user would, and checks its reports, drawings, files, and answers to bad
//! arguments.

#[path = "../../../fuzz/support/skipped.rs"]
mod skipped;

use skipped::skipped;
use std::path::PathBuf;
use std::process::{Command, Output};

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
    let done = explain(&["vector(4, 2, 5, double)", "--count", "2"]);
    assert!(done.status.success(), "{done:?}");
    let report = text(&done.stdout);
    for part in ["Tree", "Bounds (bytes)", "Signature", "8 x double", "Layout", "Execution"] {
        assert!(report.contains(part), "{part} in {report}");
    }
    assert!(report.contains("loop 4 x 40 @0\n        block 16 @0"), "{report}");
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
    let reports = ["portable", "avx2", "avx512"].into_iter().flat_map(|isa| {
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
        assert!(lines[2].ends_with(&format!(" B, leaf row {isa} beyond")), "{report}");
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
