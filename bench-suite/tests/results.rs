//! Checks that `bench-suite/RESULTS.md` matches the records, and that the README shows lines of
//! `RESULTS.md`.

use std::path::{Path, PathBuf};
use std::process::Command;
use typepack_bench::results;

fn suite() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn page() -> String {
    std::fs::read_to_string(suite().join("RESULTS.md")).expect("bench-suite/RESULTS.md")
}

#[test]
fn the_page_is_up_to_date() {
    let sources = results::read(&suite().join("record")).expect("the records");
    let wanted = results::text(&sources, "record");
    let found = page();
    let differs = found.lines().zip(wanted.lines()).position(|(found, wanted)| found != wanted);
    let line = 1 + differs.unwrap_or(found.lines().count().min(wanted.lines().count()));
    assert!(
        found == wanted,
        "bench-suite/RESULTS.md is out of date from line {line} on; run \
         `cargo run --release -p typepack-bench -- results`"
    );
}

/// Checks that every line of the table of results in the README is also a line of the page. Otherwise the
/// table would be out of date.
#[test]
fn the_table_of_the_readme_stands_in_the_page() {
    let readme = std::fs::read_to_string(suite().join("../README.md")).expect("README.md");
    let (_, section) = readme.split_once("\n## Results").expect("a section with results");
    let section = section.split("\n## ").next().expect("the section");
    let page = page();
    let lines: Vec<&str> = section.lines().filter(|line| line.starts_with('|')).collect();
    assert!((5..=12).contains(&lines.len()), "{} lines with at most 10 rows", lines.len());
    for line in &lines {
        assert!(page.lines().any(|known| known == *line), "not a line of RESULTS.md: {line}");
    }
    assert!(lines.iter().any(|line| line.contains("**")), "the table of the README shows no loss");
}

#[test]
fn the_command_writes_and_checks_the_page() {
    let run = |arguments: &[&Path]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_typepack-bench"));
        command.arg("results").args(arguments).output().expect("the command runs")
    };
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("results.md");
    let record = suite().join("record");
    let (dash_record, dash_out, check) =
        (Path::new("--record"), Path::new("--out"), Path::new("--check"));
    let written = run(&[dash_record, &record, dash_out, &out]);
    assert!(written.status.success(), "{written:?}");
    assert!(run(&[dash_record, &record, dash_out, &out, check]).status.success());
    std::fs::write(&out, "old\n").expect("a file");
    let old = run(&[dash_record, &record, dash_out, &out, check]);
    assert_eq!(old.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&old.stderr).contains("out of date"), "{old:?}");
    let missing = run(&[dash_record, Path::new("/nonexistent"), dash_out, &out]);
    assert_eq!(missing.status.code(), Some(2), "{missing:?}");
}
