//! The command line: what it prints, and that faults are one line and a non-zero exit code.

use std::process::{Command, Output};

fn run(arguments: &[&str]) -> Output {
    let binary = env!("CARGO_BIN_EXE_typepack-bench");
    Command::new(binary).args(arguments).output().expect("the command runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("UTF-8")
}

const SHORT: [&str; 7] = ["pack", "--layout", "d1s2", "--size", "1K", "--rounds", "1"];

fn short(more: &[&str]) -> String {
    let output = run(&[&SHORT, more].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout)
}

#[test]
fn the_formats_hold_the_rows() {
    let table = short(&[]);
    assert!(table.contains("JIT/hand") && table.contains("1 KiB"), "{table}");
    assert_eq!(table.lines().filter(|l| l.contains("d1s2")).count(), 2, "{table}");
    let csv = short(&["--format", "csv", "--direction", "pack"]);
    assert_eq!(csv.lines().count(), 5, "{csv}");
    assert!(csv.lines().all(|l| l.split(',').count() >= 11), "{csv}");
    let json = short(&["--format", "json", "--direction", "unpack"]);
    let rows: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(rows[0]["figures"][2]["competitor"], "jit");
}

#[test]
fn the_check_prints_verdicts() {
    let arguments =
        ["pack", "--layout", "d1s2", "--size", "16K", "--rounds", "1", "--direction", "pack"];
    let output = run(&[&arguments[..], &["--check"]].concat());
    assert!(output.status.success());
    let verdicts = text(&output.stderr);
    assert!(verdicts.contains("(at least 5.00)"), "{verdicts}");
    assert!(verdicts.contains("2 verdicts"), "{verdicts}");
}

#[test]
fn faults_are_one_line_naming_the_argument() {
    let faults: [(&[&str], &str); 10] = [
        (&["pack", "--layout", "ring"], "--layout ring: no such layout; known are d1s2, "),
        (&["pack", "--size", "0"], "--size"),
        (&["pack", "--size", "12Q"], "a size is a number"),
        (&["pack", "--size", "99999999999999999999"], "--size"),
        (&["pack", "--size", "-5"], "'-5'"),
        (&["pack", "--layout", "face-x", "--size", "1000"], "layout face-x at 1000 bytes"),
        (&["pack", "--rounds", "0"], "--rounds"),
        (&["pack", "--strict"], "--check"),
        (&["pack", "--definitions", "/nonexistent.toml"], "--definitions /nonexistent.toml: "),
        (&["peck"], "peck"),
    ];
    for (arguments, part) in faults {
        let output = run(arguments);
        let line = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {line}");
        assert!(line.starts_with("typepack-bench: ") && line.contains(part), "{line}");
        assert_eq!(line.trim_end().lines().count(), 1, "{line}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
}

#[test]
fn help_names_every_option() {
    let help = text(&run(&["pack", "--help"]).stdout);
    for option in ["--layout", "--size", "--direction", "--format", "--rounds", "--check"] {
        assert!(help.contains(option), "{option} is missing in:\n{help}");
    }
    assert_eq!(text(&run(&["pack", "--list"]).stdout).lines().count(), 9);
}

#[test]
fn commit_verifies_and_prints_every_bar() {
    let tiny = ["commit", "--rounds", "1", "--entries", "1000", "--size", "32K", "--format"];
    let output = run(&[&tiny[..], &["csv"]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let csv = text(&output.stdout);
    for part in ["create+commit+free", "resident growth", "seek", "pieces", "external32", "fused"] {
        assert!(csv.lines().any(|line| line.contains(part)), "{part} is missing in:\n{csv}");
    }
    let help = text(&run(&["commit", "--help"]).stdout);
    assert!(help.contains("--rounds") && !help.contains("--child"), "{help}");
    let wrong = run(&["commit", "--size", "1K"]);
    assert_eq!(wrong.status.code(), Some(2));
}
