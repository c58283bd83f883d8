//! Checks that no folders import from each other in a cycle. The folders of a crate form layers: a file
//! may import only from its own folder or from folders before it in the order. `order.toml` beside this
//! file defines the order; every source file has a place in the order. The test reads the imports from
//! the sources themselves (`imports.rs`).
//!
//! Read the files in this order: `source.rs` parses a crate, `resolve.rs` looks names up, `imports.rs`
//! collects the imports of each file, `order.rs` compares the imports with the order, `manifests.rs`
//! compares the dependencies between crates with the order, and `planted.rs` shows that the check finds
//! each kind of cycle.
//!
//! Code of tests may import from anywhere: `#[cfg(test)]` modules, `tests/`, examples and benchmarks.
//! The test writes the layers directly to standard output, because the test runner would hide what
//! `print!` writes.

mod imports;
mod manifests;
mod order;
mod planted;
mod resolve;
mod source;

use std::io::Write;
use std::path::{Path, PathBuf};

use order::List;

/// Returns the folder of the repository.
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
        let sources = source::read(&root.join(&one.path).join("src"));
        let findings = order::check(&format!("{}/src/", one.path), &sources, &one.layers);
        shown += &format!(
            "\n{}: layers, each with the layers from which it imports\n{}",
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
