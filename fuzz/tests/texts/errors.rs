//! Tests that programs really print the lines that the page on troubleshooting quotes.
//!
//! Each heading of `running/troubleshooting.md` that is inline code is such a line. A word in angle
//! brackets stands for text that differs from job to job. The parts between these words must occur in
//! the string literals of the crates that print.

use super::{GUIDE, files, none, text};
use typepack_test_support::source_texts;

/// The folders of the code that prints lines for users, except that of the command `typepack`.
const FOLDERS: &[&str] = &[
    "engine/leaf/src",
    "engine/src",
    "runtime/job/src",
    "runtime/launcher/src",
    "runtime/src",
    "runtime/capi/src",
];

/// The minimum number of letters that a quoted line must have outside angle brackets. With fewer,
/// almost any line would match.
const FIXED: usize = 12;

/// Returns the parts of a quoted line that are the same in all jobs.
fn parts(line: &str) -> Vec<String> {
    let mut parts = Vec::new();
    for piece in line.split('<') {
        let fixed = piece.split_once('>').map_or(piece, |(_, after)| after);
        parts.push(source_texts::words(fixed));
    }
    // The test removes the prefixes `mpiexec:` and `typepack:`, which other literals contain. It
    // ignores parts of at most 3 letters, because these occur in almost any literal.
    let bare = |part: &String| {
        let part = part.trim_start_matches("mpiexec: ").trim_start_matches("typepack: ");
        part.trim_matches([' ', ':', '(', ')', '\'', '"', ',']).to_owned()
    };
    parts.iter().map(bare).filter(|part| part.len() > 3).collect()
}

#[test]
fn quoted_lines_are_printed() {
    let mut literals = String::new();
    for folder in FOLDERS {
        for file in files(folder, ".rs") {
            for literal in source_texts::read(&text(&file)).literals {
                literals += &literal.words;
                literals.push('\n');
            }
        }
    }
    let page = format!("{GUIDE}/running/troubleshooting.md");
    let mut faults = Vec::new();
    let mut quoted = 0;
    for (number, line) in text(&page).lines().enumerate() {
        let Some(quote) = line.strip_prefix("### `").and_then(|rest| rest.strip_suffix('`')) else {
            continue;
        };
        quoted += 1;
        let fixed: usize = parts(quote).iter().map(String::len).sum();
        if fixed < FIXED {
            faults.push(format!("{page}:{}: only {fixed} letters are fixed", number + 1));
        }
        let missing: Vec<String> =
            parts(quote).into_iter().filter(|part| !literals.contains(part.as_str())).collect();
        if !missing.is_empty() {
            faults.push(format!("{page}:{}: no program prints {missing:?}", number + 1));
        }
    }
    assert!(quoted > 10, "{page} quotes {quoted} lines");
    none("quoted lines", &faults);
}

#[test]
fn fixed_parts_are_found() {
    let line = "mpiexec: rank <R> (pid <P>) killed by signal <S> (<NAME>)";
    assert_eq!(parts(line), ["rank", "killed by signal"]);
}
