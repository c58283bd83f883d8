//! Tests the statements in the project's documentation: no link is dead, the commands of the README, of
//! CONTRIBUTING and of the guide run, the code in the guide is the code of the examples, and the guide
//! renders.
//!
//! In the order of reading: `markdown.rs` reads a page; `links.rs`, `snippets.rs` and `errors.rs`
//! compare pages with the tree; `commands.rs` and `examples.rs` run programs, which `programs.rs`
//! builds and installs; `book.rs` renders the guide; `sources.rs` checks the comments of the sources; `top.rs`
//! checks the top level of the tree; `dependencies.rs` checks the licences of all crates.
//!
//! A check that cannot run on this machine calls `skipped`, and `scripts/test` lists the reason at its
//! end.

mod book;
mod commands;
mod dependencies;
mod errors;
mod examples;
mod links;
mod markdown;
mod programs;
mod snippets;
mod sources;
mod top;

use std::path::{Path, PathBuf};

/// Returns the folder of the repository.
fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().expect("the repository")
}

/// The folder of the guide, relative to the repository.
const GUIDE: &str = "runtime/guide";

/// Returns all files below `folder` of the repository whose names end in `ending`. All paths are
/// relative to the repository.
fn files(folder: &str, ending: &str) -> Vec<String> {
    fn visit(root: &Path, folder: &str, ending: &str, found: &mut Vec<String>) {
        let path = root.join(folder);
        let entries =
            std::fs::read_dir(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        for entry in entries {
            let entry = entry.expect("an entry of a folder");
            let name = entry.file_name().into_string().expect("a name in UTF-8");
            let place = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
            if entry.file_type().expect("the type of an entry").is_dir() {
                if name != "target" && name != ".git" {
                    visit(root, &place, ending, found);
                }
            } else if name.ends_with(ending) {
                found.push(place);
            }
        }
    }
    let mut found = Vec::new();
    visit(&repository(), folder, ending, &mut found);
    found.sort();
    found
}

/// Returns the text of a file of the repository.
fn text(path: &str) -> String {
    std::fs::read_to_string(repository().join(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// Fails with the list of `faults` unless the list is empty.
fn none(what: &str, faults: &[String]) {
    assert!(faults.is_empty(), "{} {what}:\n{}", faults.len(), faults.join("\n"));
}
