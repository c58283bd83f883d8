//! Checks, with the crates' `Cargo.toml` files, that the crates of the workspace depend on each other
//! only as the list of layers allows.
//!
//! `[dev-dependencies]` are exempt: a test may depend on any crate.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use toml::{Table, Value};

use super::order::List;

/// Returns the folders of the workspace's crates, and a map from the name of each crate to its folder.
fn members(root: &Path) -> (Vec<String>, BTreeMap<String, String>) {
    let manifest = read(&root.join("Cargo.toml"));
    let workspace = manifest["workspace"].as_table().expect("[workspace]");
    let members = workspace["members"].as_array().expect("members");
    let members = members.iter().map(|member| member.as_str().expect("a folder").to_owned());
    let mut names = BTreeMap::new();
    let members: Vec<String> = members.collect();
    for member in &members {
        let manifest = read(&root.join(member).join("Cargo.toml"));
        let name = manifest["package"]["name"].as_str().expect("the package's name");
        names.insert(name.to_owned(), member.clone());
    }
    (members, names)
}

fn read(path: &Path) -> Table {
    let text = std::fs::read_to_string(path);
    let text = text.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.parse().unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns the crates on which a manifest depends outside `[dev-dependencies]`, for any target.
fn dependencies(manifest: &Table) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut take = |section: &Table| {
        for kind in ["dependencies", "build-dependencies"] {
            for (name, what) in section.get(kind).and_then(Value::as_table).into_iter().flatten() {
                let renamed = what.get("package").and_then(Value::as_str);
                names.insert(renamed.unwrap_or(name).to_owned());
            }
        }
    };
    take(manifest);
    for (_, target) in manifest.get("target").and_then(Value::as_table).into_iter().flatten() {
        target.as_table().into_iter().for_each(&mut take);
    }
    names
}

/// Compares the manifests of the workspace at `root` with the list. Returns the faults, one line each.
pub fn check(root: &Path, list: &List) -> Vec<String> {
    let (members, names) = members(root);
    let mut faults = Vec::new();
    for member in &members {
        if !list.crates.iter().any(|one| one.path == *member) {
            faults.push(format!("{member}: the list of layers lacks this member of the workspace"));
        }
    }
    for one in &list.crates {
        if !members.contains(&one.path) {
            faults.push(format!(
                "{}: this entry of the list of layers is not a member of the workspace",
                one.path
            ));
            continue;
        }
        for name in &one.on {
            if !names.contains_key(name) {
                faults.push(format!(
                    "{}: `on` names {name}, which is not a crate of the workspace",
                    one.path
                ));
            }
        }
        let manifest = read(&root.join(&one.path).join("Cargo.toml"));
        for name in dependencies(&manifest).iter().filter(|name| names.contains_key(*name)) {
            if !one.on.contains(name) {
                faults.push(format!(
                    "{}/Cargo.toml: depends on {name}, which the list does not allow",
                    one.path
                ));
            }
        }
    }
    // Checks that the list itself allows no cycle, because Cargo does not refuse all cycles.
    faults.extend(circle(list, &names));
    faults
}

/// Returns a message about a dependency cycle that the list allows, if there is one.
fn circle(list: &List, names: &BTreeMap<String, String>) -> Option<String> {
    let mut left: Vec<_> = list.crates.iter().collect();
    loop {
        let before = left.len();
        let waiting: BTreeSet<&str> = left.iter().map(|one| one.path.as_str()).collect();
        left.retain(|one| {
            one.on
                .iter()
                .any(|name| names.get(name).is_some_and(|path| waiting.contains(path.as_str())))
        });
        if left.is_empty() {
            return None;
        }
        if left.len() == before {
            let paths: Vec<&str> = left.iter().map(|one| one.path.as_str()).collect();
            return Some(format!(
                "the list lets these crates depend on each other in a circle: {}",
                paths.join(", ")
            ));
        }
    }
}
