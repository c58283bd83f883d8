//! Generates the tables of constants: those of the ABI and their values in MPICH.

use crate::rows::{Compat, Constant, HANDLES, number};
use std::fmt::Write;

/// The kinds of numbers, and the kinds or the names of their constants in `constants.csv`.
const NUMBERS: [(&str, &[&str]); 25] = [
    ("RANK", &["MPI_ANY_SOURCE", "MPI_PROC_NULL", "MPI_ROOT"]),
    ("TAG", &["MPI_ANY_TAG"]),
    ("CODE", &["error-class"]),
    ("THREAD", &["thread-level"]),
    ("AMODE", &["amode"]),
    ("ASSERT", &["rma-assert"]),
    ("LOCK", &["lock-type"]),
    ("SEEK", &["seek"]),
    ("SPLIT", &["split-type"]),
    ("ORDER", &["array-order"]),
    ("DISTRIBUTION", &["MPI_DISTRIBUTE_NONE", "MPI_DISTRIBUTE_BLOCK", "MPI_DISTRIBUTE_CYCLIC"]),
    ("DARG", &["MPI_DISTRIBUTE_DFLT_DARG"]),
    ("COMBINER", &["combiner"]),
    ("TYPECLASS", &["typeclass"]),
    ("COMPARISON", &["comparison"]),
    ("TOPOLOGY", &["topology"]),
    ("KEYVAL", &["attribute-key"]),
    ("FLAVOR", &["win-flavor"]),
    ("MODEL", &["win-model"]),
    ("VERBOSITY", &["tool-verbosity"]),
    ("BIND", &["tool-bind"]),
    ("SCOPE", &["tool-scope"]),
    ("VAR_CLASS", &["tool-pvar-class"]),
    ("SAFETY", &["tool-callback-safety"]),
    ("ORDERING", &["tool-source-order"]),
];

/// Single constants.
const SINGLE: [&str; 4] =
    ["MPI_MAX_PROCESSOR_NAME", "MPI_MAX_PORT_NAME", "MPI_MAX_INFO_KEY", "MPI_DISPLACEMENT_CURRENT"];

/// Returns the Rust source of the tables.
///
/// # Panics
/// Panics if a constant of a kind has no value in MPICH.
pub fn values(constants: &[Constant], compat: &[Compat], mpich: &[(String, i64)]) -> String {
    let theirs = |name: &str| mpich.iter().find(|(other, _)| other == name).map(|(_, v)| *v);
    let mut out = String::new();
    // The constants that MPI-3.0 removed have no kind.
    let removed = compat.iter().filter(|row| row.kind == "constant" && !row.value.is_empty());
    let removed: Vec<Constant> = removed
        .map(|row| Constant {
            name: row.name.clone(),
            kind: match row.name.starts_with("MPI_COMBINER_") {
                true => "combiner".into(),
                false => format!("handle:{}", row.declaration),
            },
            value: number(&row.value),
            note: String::new(),
        })
        .collect();
    let all = || constants.iter().chain(&removed);
    for (table, kinds) in NUMBERS {
        let _ = writeln!(out, "/// {}.\npub static {table}: Pairs = Pairs(&[", kinds.join(", "));
        for c in all().filter(|c| kinds.contains(&&*c.kind) || kinds.contains(&&*c.name)) {
            let value = theirs(&c.name).unwrap_or_else(|| panic!("mpich.csv lacks {}", c.name));
            let _ = writeln!(out, "    ({}, {}), // {}", c.value, value as i32, c.name);
        }
        out.push_str("]);\n\n");
    }
    for name in SINGLE {
        let ours = constants.iter().find(|c| c.name == name).map(|c| c.value);
        let (Some(ours), Some(theirs)) = (ours, theirs(name)) else {
            panic!("mpich.csv lacks {name}")
        };
        let short = &name["MPI_".len()..];
        let _ = writeln!(
            out,
            "/// `{name}` in the ABI and in MPICH.\npub const {short}: (i64, i64) = ({ours}, {theirs});"
        );
    }
    for handle in HANDLES {
        let kinds = [format!("handle:{handle}")];
        let is_one = |c: &&Constant| {
            kinds.contains(&c.kind)
                || handle == "MPI_Datatype"
                    && (c.kind == "datatype" || c.kind.starts_with("alias:"))
        };
        let _ = writeln!(
            out,
            "\n/// The predefined handles of type `{handle}`.\npub static {}: &[(usize, u32)] = &[",
            handle["MPI_".len()..].to_uppercase()
        );
        for c in all().filter(is_one) {
            if let Some(value) = theirs(&c.name) {
                let _ = writeln!(out, "    ({:#x}, {:#x}), // {}", c.value, value as u32, c.name);
            }
        }
        out.push_str("];\n");
    }
    out
}
