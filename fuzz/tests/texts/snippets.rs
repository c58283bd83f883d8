//! Tests that each `rust`, `c` and `python` block of the guide is a piece of an example. Other tests run
//! the examples. A `toml` block is a piece of the `Cargo.toml` of a program outside the clone of the
//! repository; Cargo must find the crates that the block names.
//!
//! A block may leave lines out: a line that contains only `…` (after a comment mark) stands for any
//! lines.

use super::programs::Scratch;
use super::{GUIDE, files, markdown, none, repository, text};
use std::process::Command;

/// Returns the lines of a text that are not empty, without their indentation.
fn lines(text: &str) -> Vec<&str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).collect()
}

/// Returns whether the lines of `piece` occur in `whole`, in the same order. A line `…` of `piece`
/// stands for any lines; all other lines of `piece` must be consecutive in `whole`.
fn contains(whole: &[&str], piece: &[&str]) -> bool {
    let gap = |line: &&str| {
        line.trim_start_matches(['/', '*', '#', ' ']).trim_end_matches([' ', '*', '/']) == "…"
    };
    let mut rest = whole;
    for part in piece.split(gap).filter(|part| !part.is_empty()) {
        let Some(at) = rest.windows(part.len()).position(|window| window == part) else {
            return false;
        };
        rest = &rest[at + part.len()..];
    }
    true
}

#[test]
fn the_code_of_the_guide_is_the_code_of_the_examples() {
    let mut faults = Vec::new();
    for page in files(GUIDE, ".md") {
        for block in markdown::read(&text(&page)).blocks {
            let (folder, ending) = match block.language.as_str() {
                "rust" => ("rust", ".rs"),
                "c" => ("c", ".c"),
                "python" => ("python", ".py"),
                "fortran" => ("fortran", ".f90"),
                "sh" | "text" | "" | "none" | "toml" => continue,
                other => {
                    faults.push(format!("{page}:{}: a block of `{other}`", block.line));
                    continue;
                }
            };
            let examples = files(&format!("runtime/examples/{folder}"), ending);
            let piece = lines(&block.text);
            if !examples.iter().any(|example| contains(&lines(&text(example)), &piece)) {
                faults.push(format!(
                    "{page}:{}: no example in runtime/examples/{folder} has these lines:\n{}",
                    block.line, block.text
                ));
            }
        }
    }
    none("blocks of code", &faults);
}

#[test]
fn the_manifests_of_the_guide_resolve() {
    let mut found = 0;
    for page in files(GUIDE, ".md") {
        let blocks = markdown::read(&text(&page)).blocks;
        for block in blocks.iter().filter(|block| block.language == "toml") {
            found += 1;
            // The program's folder is next to the clone, as in the guide. The manifest begins with
            // `[workspace]`, because the folder of the test lies within this repository, but the
            // program is not a member of its workspace.
            let scratch = Scratch::new();
            let program = scratch.0.join("program");
            std::fs::create_dir_all(program.join("src")).expect("a folder");
            std::os::unix::fs::symlink(repository(), scratch.0.join("typepack")).expect("a link");
            let head = "[workspace]\n[package]\nname = \"program\"\nedition = \"2024\"\n";
            std::fs::write(program.join("Cargo.toml"), head.to_owned() + &block.text)
                .expect("a file");
            std::fs::write(program.join("src/main.rs"), "fn main() {}\n").expect("a file");
            let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
            cargo.args(["tree", "--offline", "--quiet", "--depth", "1"]).current_dir(&program);
            let done = cargo.output().expect("cargo");
            let place = format!("{page}:{}", block.line);
            assert!(done.status.success(), "{place}: {done:?}");
            let tree = String::from_utf8_lossy(&done.stdout);
            assert!(tree.contains(" typepack v"), "{place}:\n{tree}");
        }
    }
    assert!(found > 0, "no page has a `toml` block");
}

#[test]
fn pieces_are_found() {
    let whole = ["a", "b", "c", "d"];
    for (piece, wanted) in [
        (&["b", "c"][..], true),
        (&["b", "d"], false),
        (&["a", "// …", "d"], true),
        (&["b", "/* … */", "a"], false),
        (&["# …", "d"], true),
    ] {
        assert_eq!(contains(&whole, piece), wanted, "{piece:?}");
    }
}
