//! Generates the bindings of the crate `typepack-mpi-sys` (`../../sys/src/abi.rs`), through which Rust programs call the
//! C functions of any library of the ABI.
//!
//! Names and types are those that bindgen makes for the crate `mpi-sys`: handles are structs around a pointer,
//! constants that are numbers have the type `u32`, or `i32` if they are negative, and a callback is an `Option` of a
//! function. In addition, constants that are handles and addresses have their values; bindgen leaves them out.

use super::header::{ENUMS, TOOLS, fold};
use super::rows::{Callback, Constant, Function, HANDLES, Parameter, parameters};
use std::fmt::Write;

const HEAD: &str = "\
//! The types, constants and functions of the MPI 5 standard ABI. Generated from `runtime/capi/abi`; do not edit.

use core::ffi::{c_char, c_double, c_int, c_uint, c_void};

pub type MPI_Aint = isize;
pub type MPI_Offset = i64;
pub type MPI_Count = i64;
/// A Fortran `INTEGER`.
pub type MPI_Fint = c_int;

/// What a call tells about a message.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MPI_Status {
    pub MPI_SOURCE: c_int,
    pub MPI_TAG: c_int,
    pub MPI_ERROR: c_int,
    pub MPI_internal: [c_int; 5],
}
";

/// Returns the Rust type for a C type.
fn rust(c_type: &str, callbacks: &[Callback]) -> String {
    if c_type == "int(*)[3]" {
        return "*mut [c_int; 3]".to_owned();
    }
    if let Some(inner) = c_type.strip_suffix('*') {
        let inner = inner.trim_end();
        // The Rust type of a callback is a pointer already.
        if callbacks.iter().any(|callback| callback.name == inner) {
            return inner.to_owned();
        }
        return match inner.strip_prefix("const ") {
            Some(inner) if !inner.ends_with('*') => format!("*const {}", rust(inner, callbacks)),
            _ => format!("*mut {}", rust(inner, callbacks)),
        };
    }
    match c_type.strip_prefix("const ").unwrap_or(c_type) {
        "int" => "c_int",
        "char" => "c_char",
        "double" => "c_double",
        "void" => "c_void",
        name => name,
    }
    .to_owned()
}

/// Returns the parameters of a function as Rust source.
fn list(parameters: &[Parameter], callbacks: &[Callback]) -> String {
    let one = |p: &Parameter| match p.name.as_str() {
        "..." => "...".to_owned(),
        "type" | "in" | "ref" => format!("r#{}: {}", p.name, rust(&p.c_type, callbacks)),
        name => format!("{name}: {}", rust(&p.c_type, callbacks)),
    };
    parameters.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// Returns `-> T` for a C type, or nothing for `void`.
fn result(c_type: &str, callbacks: &[Callback]) -> String {
    match c_type {
        "void" => String::new(),
        other => format!(" -> {}", rust(other, callbacks)),
    }
}

/// Returns the Rust type and the value of a constant. Returns `None` for the functions that a library provides under
/// addresses that no function has, such as `MPI_COMM_DUP_FN`: a function pointer of Rust cannot have such a value.
fn constant(constant: &Constant, callbacks: &[Callback]) -> Option<(String, String)> {
    let Constant { name, kind, value, .. } = constant;
    let (class, of) = kind.split_once(':').unwrap_or((kind, ""));
    let address = match value {
        0 => "core::ptr::null_mut()".to_owned(),
        value => format!("core::ptr::without_provenance_mut({value:#x})"),
    };
    Some(match class {
        "handle" if of == "MPI_File" => (of.to_owned(), address),
        "handle" => (of.to_owned(), format!("{of}({address})")),
        "datatype" => ("MPI_Datatype".to_owned(), format!("MPI_Datatype({address})")),
        "alias" => ("MPI_Datatype".to_owned(), of.to_owned()),
        "tool-handle" => (of.to_owned(), address),
        "pointer" => (rust(of, callbacks), address),
        "callback" => return None,
        _ if name == "MPI_DISPLACEMENT_CURRENT" => ("MPI_Offset".to_owned(), value.to_string()),
        _ => match ENUMS.iter().find(|(enumeration, _)| enumeration == kind) {
            Some((_, kind)) => ((*kind).to_owned(), value.to_string()),
            None => ((if *value < 0 { "i32" } else { "u32" }).to_owned(), value.to_string()),
        },
    })
}

/// Returns the Rust source of the bindings.
pub fn bindings(functions: &[Function], constants: &[Constant], callbacks: &[Callback]) -> String {
    let mut out = HEAD.to_owned();
    for kind in HANDLES.iter().chain(&TOOLS) {
        let pointed = format!("MPI_ABI_{}", &kind["MPI_".len()..]);
        let _ = write!(
            out,
            "\n#[repr(C)]\n#[derive(Debug)]\npub struct {pointed} {{\n    _private: [u8; 0],\n}}\n"
        );
        // These are plain pointers in the bindings of `mpi-sys`.
        if *kind == "MPI_File" || TOOLS.contains(kind) {
            let _ = writeln!(out, "pub type {kind} = *mut {pointed};");
        } else {
            let _ = writeln!(
                out,
                "#[repr(transparent)]\n#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]\n\
                 pub struct {kind}(pub *mut {pointed});"
            );
        }
    }
    out.push('\n');
    for (_, name) in ENUMS {
        let _ = writeln!(out, "pub type {name} = c_uint;");
    }
    for Callback { name, returns, parameters: text, .. } in callbacks {
        let line = match returns.as_str() {
            "alias" => format!("pub type {name} = {text};"),
            returns => format!(
                "pub type {name} = Option<unsafe extern \"C\" fn({}){}>;",
                list(&parameters(text), callbacks),
                result(returns, callbacks)
            ),
        };
        let _ = writeln!(out, "{}", fold(&line));
    }
    out.push('\n');
    for one in constants {
        if let Some((kind, value)) = constant(one, callbacks) {
            let _ = writeln!(out, "pub const {}: {kind} = {value};", one.name);
        }
    }
    out.push_str("\nunsafe extern \"C\" {\n");
    for prefix in ["", "P"] {
        for Function { name, returns, parameters, .. } in functions {
            let line = format!(
                "    pub fn {prefix}{name}({}){};",
                list(parameters, callbacks),
                result(returns, callbacks)
            );
            let _ = writeln!(out, "{}", fold(&line));
        }
    }
    out.push_str("}\n");
    out
}
