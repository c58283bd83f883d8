//! Tests that the top level of the repository has exactly the entries that this file lists, and that
//! the README is short.

use super::{none, repository, text};
use std::process::Command;
use typepack_test_support::skipped::skipped;

/// All entries of the top level except names that begin with a dot.
const TOP: &[&str] = &[
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "Cargo.lock",
    "Cargo.toml",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "README.md",
    "bench-suite",
    "engine",
    "fuzz",
    "jit",
    "runtime",
    "scripts",
];

/// Maximum number of lines of the README.
const README_LINES: usize = 130;

#[test]
fn the_top_level_is_that_of_the_design() {
    // The test ignores files that git does not track, such as a picture that a command has written.
    let mut git = Command::new("git");
    let listed = git.args(["ls-files", "-z"]).current_dir(repository()).output();
    let listed = match listed {
        Ok(done) if done.status.success() && !done.stdout.is_empty() => done.stdout,
        _ => {
            skipped("this folder is not a git repository, so the list of its files is unknown");
            return;
        }
    };
    let listed = String::from_utf8(listed).expect("names in UTF-8");
    let mut found: Vec<&str> = listed
        .split_terminator('\0')
        .map(|path| path.split('/').next().unwrap_or(path))
        .filter(|name| !name.starts_with('.'))
        .collect();
    found.dedup();
    let mut faults: Vec<String> = Vec::new();
    faults.extend(found.iter().filter(|n| !TOP.contains(n)).map(|n| format!("{n} is too many")));
    faults.extend(TOP.iter().filter(|n| !found.contains(n)).map(|n| format!("{n} is missing")));
    none("entries of the top level", &faults);
}

#[test]
fn the_readme_is_short() {
    let lines = text("README.md").lines().count();
    assert!(
        lines <= README_LINES,
        "README.md has {lines} lines; at most {README_LINES} are allowed"
    );
}
