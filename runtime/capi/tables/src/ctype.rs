//! The Rust types for the C types of the ABI.
//!
//! Each kind of handle has a type of its own (`../../datatype/src/raw.rs`), so that a communicator
//! cannot be passed for a datatype. Pointers stay pointers. Callbacks are opaque addresses until
//! `capi/src/callback.rs` has compared them with the sentinels.

use super::rows::HANDLES;

/// Returns the Rust type for a C type. `callbacks` are the names of callback types.
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
        // `const T *` is a pointer to a constant. `const T **` would be a mutable pointer to a pointer to a
        // constant.
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
