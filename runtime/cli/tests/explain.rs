//! `typepack explain` as a user calls it: reports, drawings, files, and what it refuses.

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
