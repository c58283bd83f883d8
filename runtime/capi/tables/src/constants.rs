//! Generates the constants of the ABI as Rust source, which `../../datatype/src/abi.rs` includes.
//!
//! A constant that is a handle or a pointer in C becomes an integer, because the library compares it
//! with the handles and addresses that C passes.

use super::rows::Constant;
use std::fmt::Write;

/// Returns the Rust source of all constants.
pub fn constants(constants: &[Constant]) -> String {
    let mut out = String::new();
    for Constant { name, kind, value, .. } in constants {
        let rust_kind = match kind.split(':').next().unwrap_or(kind) {
            "handle" | "datatype" | "alias" | "pointer" | "callback" | "tool-handle" => "usize",
            _ if name == "MPI_DISPLACEMENT_CURRENT" => "i64",
            _ => "i32",
        };
        // Without the prefix `MPI_`, some names begin with a digit (`2INT`), which Rust does not allow.
        // These names get a leading underscore.
        let short = &name["MPI_".len()..];
        let digit = if short.starts_with(|c: char| c.is_ascii_digit()) { "_" } else { "" };
        let _ = writeln!(out, "/// `{name}`.\npub const {digit}{short}: {rust_kind} = {value};");
    }
    out.push_str(
        "/// The error classes and their names.\npub const ERROR_CLASSES: &[(i32, &str)] = &[\n",
    );
    for Constant { name, value, .. } in constants.iter().filter(|c| c.kind == "error-class") {
        let _ = writeln!(out, "    ({value}, \"{name}\"),");
    }
    out.push_str("];\n");
    out
}
