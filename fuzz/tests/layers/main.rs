//! No import circles: the folders of a crate form layers, and a file imports from its own folder or
//! from folders before it. `order.toml` beside this file is the order; every source file has its
//! place there. The imports are read from the sources themselves, see `imports.rs`.
//!
//! In the order of reading: `source.rs` parses a crate, `resolve.rs` looks names up, `imports.rs`
//! collects what a file takes from others, `order.rs` holds that against the list, `manifests.rs` does the
//! same between crates, and `planted.rs` shows that each kind of circle is found.
//!
//! Tests are exempt: `#[cfg(test)]` modules, `tests/`, examples and benchmarks.
//! The layers are printed, past the test runner, which would keep them to itself.

mod imports;
mod manifests;
mod order;
mod planted;
mod resolve;
mod source;

use std::io::Write;
use std::path::{Path, PathBuf};

use order::List;

/// The repository.
fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().expect("the repository")
}

fn list() -> List {
    List::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/layers/order.toml"))
}

#[test]
fn every_import_goes_down() {
    let root = repository();
    let mut faults = Vec::new();
    let mut shown = String::new();
    for one in &list().crates {
        let Some(layers) = &one.layers else { continue };
        let sources = source::read(&root.join(&one.path).join("src"));
        let findings = order::check(&format!("{}/src/", one.path), &sources, layers);
        shown += &format!(
            "\n{}: layers, each with those it imports from\n{}",
            one.path, findings.layers
        );
        faults.extend(findings.faults);
    }
    std::io::stdout().lock().write_all(shown.as_bytes()).expect("standard output");
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn every_dependency_of_a_crate_is_allowed() {
    let faults = manifests::check(&repository(), &list());
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}
