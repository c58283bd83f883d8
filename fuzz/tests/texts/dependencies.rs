//! Tests that the crates of `Cargo.lock` have the licences and sources that `.deny.toml` allows, and that none is banned.
//!
//! The file is that of cargo-deny, which takes minutes to build. This test needs only Cargo: `cargo tree` prints the
//! licences, and `Cargo.lock` has the sources.

use super::{none, repository, text};
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use toml::{Table, Value};

/// Returns the texts of an array of the rules.
fn listed(rules: &Table, section: &str, key: &str) -> BTreeSet<String> {
    let array = rules[section][key].as_array().expect("an array");
    array.iter().map(|one| one.as_str().expect("a text").to_owned()).collect()
}

/// Returns true if the licence expression offers a choice that consists of allowed licences.
fn allows(allowed: &BTreeSet<String>, expression: &str) -> bool {
    /// Reads `a OR b`, `a AND b` (which binds more tightly), `a WITH e` and parentheses.
    fn choice(words: &mut std::slice::Iter<'_, String>, allowed: &BTreeSet<String>) -> bool {
        let (mut any, mut all, mut last) = (false, true, String::new());
        loop {
            let word = words.next().map_or("", String::as_str);
            match word {
                "(" => all &= choice(words, allowed),
                "AND" | "OR" | ")" | "" => {
                    all &= last.is_empty() || allowed.contains(last.trim());
                    last.clear();
                    if word != "AND" {
                        any |= std::mem::replace(&mut all, true);
                    }
                    if word == ")" || word.is_empty() {
                        return any;
                    }
                }
                // A licence, or the parts of `a WITH e`.
                word => last = format!("{last} {word}"),
            }
        }
    }
    // Old manifests write a slash for OR.
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<String> = spaced.split_whitespace().map(str::to_owned).collect();
    !words.is_empty() && choice(&mut words.iter(), allowed)
}

/// Returns the licence of each crate that some choice of features, targets and tests needs.
fn licences() -> BTreeMap<String, String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut tree = Command::new(cargo);
    tree.args([
        "tree",
        "--workspace",
        "--all-features",
        "--target",
        "all",
        "--offline",
        "--locked",
    ]);
    tree.args(["--edges", "normal,build,dev", "--prefix", "none", "--format", "{p}\t{l}"]);
    let done = tree.current_dir(repository()).output().expect("cargo runs");
    let errors = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "cargo tree: {}: {errors}", done.status);
    let lines = String::from_utf8(done.stdout).expect("text");
    lines
        .lines()
        .filter_map(|line| line.split_once('\t'))
        // Cargo marks a crate that it has shown before.
        .map(|(name, licence)| (name.to_owned(), licence.trim_end_matches(" (*)").to_owned()))
        .collect()
}

#[test]
fn licences_and_sources_are_allowed() {
    let rules: Table = text(".deny.toml").parse().expect(".deny.toml is TOML");
    let allowed = listed(&rules, "licenses", "allow");
    let mut faults = Vec::new();
    let licences = licences();
    assert!(licences.len() > 100, "cargo tree shows {} crates", licences.len());
    for (name, licence) in &licences {
        if !allows(&allowed, licence) {
            faults.push(format!("{name}: the licence \"{licence}\" is not allowed"));
        }
    }
    let (banned, registries) =
        (listed(&rules, "bans", "deny"), listed(&rules, "sources", "allow-registry"));
    let lock: Table = text("Cargo.lock").parse().expect("Cargo.lock is TOML");
    for package in lock["package"].as_array().expect("packages") {
        let name = package["name"].as_str().expect("a name");
        if banned.contains(name) {
            faults.push(format!("{name} is banned"));
        }
        // The crates of the workspace have no source.
        let source = package.get("source").and_then(Value::as_str);
        let known = source.is_none_or(|source| {
            source.strip_prefix("registry+").is_some_and(|url| registries.contains(url))
        });
        if !known {
            faults.push(format!("{name}: the source {source:?} is not allowed"));
        }
    }
    none("crates that .deny.toml does not allow", &faults);
}

#[test]
fn choices_of_licences_are_read() {
    let allowed = ["MIT", "Zlib", "Apache-2.0 WITH LLVM-exception"].map(str::to_owned).into();
    for good in [
        "MIT",
        "GPL-3.0 OR MIT",
        "Apache-2.0/MIT",
        "(MIT OR GPL-3.0) AND Zlib",
        "Zlib AND (GPL-3.0 OR MIT)",
        "Apache-2.0 WITH LLVM-exception",
        "GPL-3.0 AND X OR MIT",
    ] {
        assert!(allows(&allowed, good), "{good}");
    }
    for bad in [
        "",
        "GPL-3.0",
        "Apache-2.0",
        "MIT AND GPL-3.0",
        "(MIT OR Zlib) AND GPL-3.0",
        "GPL-3.0 AND (MIT)",
    ] {
        assert!(!allows(&allowed, bad), "{bad}");
    }
}
