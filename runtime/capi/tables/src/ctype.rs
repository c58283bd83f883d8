//! The Rust types for the C types of the ABI.
//!
//! Each kind of handle is a separate Rust type (`../../datatype/src/raw.rs`), so that a function cannot pass
//! a communicator for a datatype by mistake. A C pointer becomes a Rust pointer. A callback becomes an opaque
//! address, because its value may be a sentinel, which `capi/src/callback.rs` checks.

use super::rows::HANDLES;

/// Returns the Rust type for a C type. `callbacks` contains the names of the callback types.
///
/// # Panics
/// Panics if the table has a type that this function does not know.
pub fn rust(c_type: &str, callbacks: &[String]) -> String {
    if c_type == "int(*)[3]" {
        return "*mut [c_int; 3]".to_owned();
    }
    if let Some(inner) = c_type.strip_suffix('*') {
        if callbacks.iter().any(|name| name == inner) {
            return "raw::Callback".to_owned();
        }
        // In `const T *`, the pointer points to a constant `T`. In `const T **`, only the inner pointer
        // points to a constant, so the outer pointer becomes a `*mut`.
        return match inner.strip_prefix("const ") {
            Some(inner) if !inner.ends_with('*') => format!("*const {}", rust(inner, callbacks)),
            _ => format!("*mut {}", rust(inner, callbacks)),
        };
    }
    if HANDLES.contains(&c_type) {
        return format!("raw::{}", &c_type["MPI_".len()..]);
    }
    if callbacks.iter().any(|name| name == c_type) {
        return "raw::Callback".to_owned();
    }
    match c_type {
        "int" | "const int" | "MPI_T_cb_safety" | "MPI_T_source_order" => "c_int",
        "char" => "c_char",
        "void" => "c_void",
        "double" => "c_double",
        "MPI_Aint" => "raw::Aint",
        "MPI_Count" => "raw::Count",
        "MPI_Offset" => "raw::Offset",
        "MPI_Status" => "raw::Status",
        tool if tool.starts_with("MPI_T_") => "raw::Tool",
        other => panic!("functions.csv: no Rust type is known for the C type {other}"),
    }
    .to_owned()
}
