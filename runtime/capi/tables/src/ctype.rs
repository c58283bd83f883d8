//! What a C type of the ABI is in Rust.
//!
//! Handles are a type each (`crate::raw`), so that a communicator cannot be passed for a datatype;
//! pointers stay pointers; callbacks are opaque addresses until `capi/src/callback.rs` has compared them
//! with the sentinels.

use super::rows::HANDLES;

/// The Rust spelling of a C type; `callbacks` are the names of callback types.
pub fn rust(c_type: &str, callbacks: &[String]) -> String {
    if c_type == "int(*)[3]" {
        return "*mut [c_int; 3]".to_owned();
    }
    if let Some(inner) = c_type.strip_suffix('*') {
        if callbacks.iter().any(|name| name == inner) {
            return "raw::Callback".to_owned();
        }
        // `const T *` is a constant pointer, `T **` a pointer to a mutable one.
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
        other => panic!("no Rust type for {other}"),
    }
    .to_owned()
}
