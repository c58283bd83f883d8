//! Reads the list of layers, and compares a crate's imports with the list. `imports.rs` collects the
//! imports.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

use super::imports::{Import, imports};
use super::source::{Sources, Tree};

/// The contents of `order.toml`.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct List {
    #[serde(rename = "crate")]
    pub crates: Vec<Crate>,
}

/// One crate of the workspace.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Crate {
    /// Folder of the crate.
    pub path: String,
    /// Crates of the workspace on which this crate may depend.
    pub on: Vec<String>,
    /// Layers of the crate below `src/`, in order: files, and folders with a slash at the end.
    pub layers: Vec<String>,
}

impl List {
    /// Reads the list from the file at `path`.
    pub fn read(path: &Path) -> Self {
        let text = std::fs::read_to_string(path).expect("the list of layers");
        toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }
}

/// The result of checking one crate.
pub struct Findings {
    /// The faults, one line each.
    pub faults: Vec<String>,
    /// Text that shows the layers in order, each with the layers from which it imports.
    pub layers: String,
}

/// Returns the index of the layer of `file`: the longest entry of `layers` that covers the file.
fn place(layers: &[String], file: &str) -> Option<usize> {
    let covers = |entry: &str| entry == file || (entry.ends_with('/') && file.starts_with(entry));
    let covering = layers.iter().enumerate().filter(|(_, entry)| covers(entry));
    covering.max_by_key(|(_, entry)| entry.len()).map(|(index, _)| index)
}

/// Checks the imports of `sources` against `layers`. In messages, `prefix` precedes the names of files.
pub fn check(prefix: &str, sources: &Sources, layers: &[String]) -> Findings {
    let tree = Tree::new(sources);
    let mut faults = Vec::new();
    for file in sources.keys().filter(|file| place(layers, file).is_none()) {
        faults.push(format!("{prefix}{file}: this file has no place in the list of layers"));
    }
    for (index, entry) in layers.iter().enumerate() {
        if !sources.keys().any(|file| place(layers, file) == Some(index)) {
            faults.push(format!("{prefix}{entry}: this entry of the list of layers has no file"));
        }
    }
    for file in tree.unreached(sources) {
        faults.push(format!("{prefix}{file}: no `mod` declaration leads to it"));
    }
    for file in &tree.missing {
        faults.push(format!(
            "{prefix}{file}: a `mod` declaration names it, but there is no such file"
        ));
    }

    let mut from: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    let mut against: BTreeMap<(usize, usize, String, String), Vec<Import>> = BTreeMap::new();
    for import in imports(&tree) {
        let above = place(layers, &import.from);
        let below = place(layers, &import.to);
        let (Some(above), Some(below)) = (above, below) else { continue };
        if below > above {
            let key = (above, below, import.from.clone(), import.to.clone());
            against.entry(key).or_default().push(import);
        } else if below < above {
            from.entry(above).or_default().insert(below);
        }
    }
    for ((above, below, importer, imported), imports) in against {
        let more = match imports.len() - 1 {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let Import { line, written, .. } = &imports[0];
        faults.push(format!(
            "{prefix}{importer}:{line}: `{written}`{more}: lives in {prefix}{imported}, \
             but layer {} `{}` comes before layer {} `{}`",
            above + 1,
            layers[above],
            below + 1,
            layers[below],
        ));
    }

    let mut shown = String::new();
    for (index, entry) in layers.iter().enumerate() {
        let below = from.get(&index).into_iter().flatten();
        let below: Vec<&str> = below.map(|&below| layers[below].as_str()).collect();
        let arrow = if below.is_empty() { "" } else { "  <-  " };
        writeln!(shown, "{:>4}  {entry}{arrow}{}", index + 1, below.join(" ")).expect("a string");
    }
    Findings { faults, layers: shown }
}
