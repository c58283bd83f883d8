//! Checks the two generated pages of the guide's reference. `runtime/guide/reference/variables.md` is
//! generated from the runtime's list of variables, and `runtime/guide/reference/functions.md` from the tables
//! of the C library.
//!
//! `TYPEPACK_BLESS=1 cargo test -p typepack-cli --test cli reference::` writes the two pages.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use typepack::variables::variables;
use typepack_test_support::blessed::blessed;

/// The table of all functions of the MPI ABI.
const FUNCTIONS: &str = include_str!("../../capi/abi/functions.csv");
const BUILT: &str = include_str!("../../capi/abi/built.csv");

/// Returns the path of a page of the reference.
fn page(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../guide/reference").join(name)
}

#[test]
fn the_page_of_variables_is_the_list_of_the_runtime() {
    let mut text = String::from(
        "# Variables\n\n\
         <!-- Generated from runtime/src/variables.rs by runtime/cli/tests/reference.rs. Do not edit. -->\n\n\
         Every rank reads these variables of the environment once, when it joins the job. `mpiexec` passes\n\
         its own environment on to the ranks. A value outside its domain is an error that names the variable\n\
         and the value. `typepack info --all` prints the same list with the values that hold.\n\n\
         [Variables](../running/variables.md) says which one to use when.\n\n\
         | variable | values | default | meaning |\n|---|---|---|---|\n",
    );
    for v in variables().iter().filter(|v| !v.domain.is_empty()) {
        assert!(!v.meaning().is_empty(), "{} has no meaning in variables.rs", v.name);
        let _infallible = writeln!(
            text,
            "| `{}` | {} | {} | {} |",
            v.name,
            v.domain.replace('|', "\\|"),
            v.default,
            v.meaning()
        );
    }
    blessed(&page("variables.md"), &text);
}

#[test]
fn the_page_of_functions_is_what_is_built() {
    let rows = |table: &'static str| {
        csv::Reader::from_reader(table.as_bytes())
            .into_records()
            .map(|row| row.expect("a table of the library"))
            .collect::<Vec<_>>()
    };
    let built: Vec<String> = rows(BUILT).iter().map(|row| row[0].to_owned()).collect();
    // Maps each group to its functions, and the name of each function (without `_c`) to two flags: whether
    // the function also has a form with large counts, and whether it is implemented.
    let mut groups: BTreeMap<String, BTreeMap<String, (bool, bool)>> = BTreeMap::new();
    let (mut all, mut done) = (0, 0);
    for row in rows(FUNCTIONS) {
        let (name, group) = (&row[0], &row[3]);
        let base = name.strip_suffix("_c").unwrap_or(name);
        let is_built = built.iter().any(|built| built == name || built == base);
        (all, done) = (all + 1, done + u32::from(is_built));
        let entry = groups.entry(group.to_owned()).or_default().entry(base.to_owned());
        let entry = entry.or_insert((false, is_built));
        entry.0 |= base != name;
        assert_eq!(entry.1, is_built, "{name}: one of the two widths is built, the other is not");
    }
    let mut text = format!(
        "# Functions of the MPI ABI\n\n\
         <!-- Generated from runtime/capi/abi by runtime/cli/tests/reference.rs. Do not edit. -->\n\n\
         `libmpi_abi.so.1` exports all {all} functions of the MPI 5.0 ABI, each as `MPI_…` and as `PMPI_…`.\n\
         {done} of them are built.\n\
         A star marks functions that have a form with large counts too (`MPI_Send*` is `MPI_Send` and\n\
         `MPI_Send_c`). `typepack info --functions` prints the same list.\n\n\
         | group | built |\n|---|---|\n"
    );
    let total = |functions: &BTreeMap<String, (bool, bool)>, wanted: fn(bool) -> bool| {
        functions.values().filter(|(_, built)| wanted(*built)).map(|(c, _)| 1 + u32::from(*c)).sum()
    };
    for (group, functions) in &groups {
        let (built, all): (u32, u32) =
            (total(functions, |built| built), total(functions, |_| true));
        let _infallible = writeln!(text, "| [{group}](#{group}) | {built} of {all} |");
    }
    for (group, functions) in &groups {
        let _infallible = writeln!(text, "\n## {group}");
        for (title, wanted) in [("Built", true), ("Not built", false)] {
            let names: Vec<String> = functions
                .iter()
                .filter(|(_, (_, built))| *built == wanted)
                .map(|(name, (twin, _))| format!("`{name}`{}", if *twin { "\\*" } else { "" }))
                .collect();
            if !names.is_empty() {
                let _infallible =
                    writeln!(text, "\n{}", wrapped(&format!("{title}: {}.", names.join(", "))));
            }
        }
    }
    blessed(&page("functions.md"), &text);
}

/// Breaks `text` into lines of at most 105 characters.
fn wrapped(text: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last().map_or(0, String::len);
        if line > 0 && line + 1 + word.len() > 105 {
            lines.push(String::new());
        }
        if let Some(line) = lines.last_mut() {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines.join("\n")
}
