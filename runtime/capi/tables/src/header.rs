//! Generates `include/mpi.h` from the tables.
//!
//! The test `capi/tests/header.rs` compares the file in the repository with the result of [`header`]. With
//! `TYPEPACK_BLESS=1`, the test writes the file instead. The names, values and prototypes come from the ABI;
//! the comments of the header are typepack's own text. If a program defines `TYPEPACK_NO_COMPAT`, the header
//! declares only names of the ABI.

use super::rows::{Callback, Compat, Constant, Function, HANDLES, Parameter};
use std::fmt::Write;

const HEAD: &str = "\
/* mpi.h: the MPI 5 standard ABI, from typepack.
 *
 * Generated from runtime/capi/abi; do not edit. A program compiled with this header runs with every
 * library that has the ABI. If TYPEPACK_NO_COMPAT is defined before this file is included, the names
 * outside the ABI at its end are left out.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef MPI_H_TYPEPACK
#define MPI_H_TYPEPACK

#include <stdint.h>

#ifdef __cplusplus
extern \"C\" {
#endif

typedef intptr_t MPI_Aint;
typedef int64_t MPI_Offset;
typedef int64_t MPI_Count;

typedef struct {
    int MPI_SOURCE;
    int MPI_TAG;
    int MPI_ERROR;
    int MPI_internal[5];
} MPI_Status;
";

/// The handles of the tool interface.
pub(crate) const TOOLS: [&str; 6] = [
    "MPI_T_enum",
    "MPI_T_cvar_handle",
    "MPI_T_pvar_handle",
    "MPI_T_pvar_session",
    "MPI_T_event_registration",
    "MPI_T_event_instance",
];

/// The two enumerations of the tool interface. Each entry has the kind that the table gives to the constants
/// of the enumeration, and the name of its C type.
pub(crate) const ENUMS: [(&str, &str); 2] =
    [("tool-callback-safety", "MPI_T_cb_safety"), ("tool-source-order", "MPI_T_source_order")];

fn hex(value: i64) -> String {
    format!("{value:#x}")
}

/// Returns the value of a constant as C source. Returns `None` if the constant belongs to an enumeration,
/// because such a constant is not a macro.
fn value(constant: &Constant) -> Option<String> {
    let Constant { name, kind, value, .. } = constant;
    let (class, of) = kind.split_once(':').unwrap_or((kind, ""));
    Some(match class {
        "handle" | "tool-handle" => format!("(({of}){})", hex(*value)),
        "datatype" => format!("((MPI_Datatype){})", hex(*value)),
        "alias" => of.to_owned(),
        "pointer" | "callback" => {
            let pointed = of.trim_end_matches('*');
            let stars = &of[pointed.len()..];
            format!("(({pointed} {stars}){})", hex(*value))
        }
        _ if ENUMS.iter().any(|(enumeration, _)| enumeration == kind) => return None,
        _ if name == "MPI_DISPLACEMENT_CURRENT" => format!("((MPI_Offset){value})"),
        _ if *value < 0 => format!("({value})"),
        _ => value.to_string(),
    })
}

/// Returns the declaration of a parameter as C source. An array of weights is declared as a pointer: gcc warns
/// if `MPI_UNWEIGHTED`, which is not the address of an object, is passed for an array.
fn parameter(p: &Parameter) -> String {
    let declaration = p.declaration.replace("** *", "***");
    match declaration.strip_suffix(&format!("{}[]", p.name)) {
        Some(kind) if p.name.ends_with("weights") => format!("{kind}*{}", p.name),
        _ => declaration,
    }
}

fn prototype(f: &Function, prefix: &str) -> String {
    let list: Vec<String> = f.parameters.iter().map(parameter).collect();
    let list = if list.is_empty() { "void".to_owned() } else { list.join(", ") };
    format!("{} {prefix}{}({list});", f.returns, f.name)
}

/// Breaks a line after commas, so that each resulting line has at most 97 characters. A part without a
/// comma may be longer.
pub(crate) fn fold(line: &str) -> String {
    let mut out = String::new();
    let mut length = 0;
    for (i, part) in line.split(", ").enumerate() {
        if i > 0 {
            out.push(',');
            if length + part.len() > 96 {
                out.push_str("\n    ");
                length = 4;
            } else {
                out.push(' ');
            }
        }
        out.push_str(part);
        length += part.len() + 2;
    }
    out
}

fn heading(out: &mut String, text: &str) {
    let _ = write!(out, "\n/* {text} */\n\n");
}

/// Appends the functions outside the ABI, such as `MPI_Address` and `MPI_Comm_c2f`. All of them are inline
/// functions, except `MPI_Type_struct`. An inline function whose name has a replacement in the ABI calls
/// the replacement.
fn inline_names(compat: &[Compat], out: &mut String) {
    let body = |name: &str| -> Option<&'static str> {
        Some(match name {
            "MPI_Address" => "return MPI_Get_address(location, address);",
            "MPI_Type_hvector" => {
                "return MPI_Type_create_hvector(count, blocklength, stride, oldtype, newtype);"
            }
            "MPI_Type_hindexed" => {
                "return MPI_Type_create_hindexed(count, array_of_blocklengths,\n        array_of_displacements, oldtype, newtype);"
            }
            "MPI_Type_extent" => {
                "MPI_Aint lb;\n    return MPI_Type_get_extent(datatype, &lb, extent);"
            }
            "MPI_Type_lb" => {
                "MPI_Aint extent;\n    return MPI_Type_get_extent(datatype, displacement, &extent);"
            }
            "MPI_Type_ub" => {
                "MPI_Aint lb = 0, extent = 0;\n    int code = MPI_Type_get_extent(datatype, &lb, displacement ? &extent : 0);\n    if (code == MPI_SUCCESS) *displacement = MPI_Aint_add(lb, extent);\n    return code;"
            }
            "MPI_Errhandler_create" => "return MPI_Comm_create_errhandler(function, errhandler);",
            "MPI_Errhandler_get" => "return MPI_Comm_get_errhandler(comm, errhandler);",
            "MPI_Errhandler_set" => "return MPI_Comm_set_errhandler(comm, errhandler);",
            _ => return None,
        })
    };
    for row in compat.iter().filter(|row| row.kind == "function") {
        let declaration = fold(&row.declaration);
        let conversion =
            row.replacement.strip_suffix("_toint").or(row.replacement.strip_suffix("_fromint"));
        let text = if conversion.is_some_and(|kind| HANDLES.contains(&kind) || kind == "MPI_Type") {
            let argument = row.declaration.trim_end_matches(')').rsplit(' ').next().unwrap_or("");
            format!(
                "static inline {declaration}\n{{\n    return {}({argument});\n}}\n",
                row.replacement
            )
        } else if row.name.starts_with("MPI_Status_") {
            let list = row.declaration.split_once('(').map_or("", |(_, list)| list);
            let names: Vec<&str> = list
                .trim_end_matches(')')
                .split(',')
                .filter_map(|p| p.rsplit('*').next())
                .collect();
            format!(
                "static inline {declaration}\n{{\n    return typepack_copy_status({}, {});\n}}\n",
                names[0], names[1]
            )
        } else if let Some(body) = body(&row.name) {
            format!("static inline {declaration}\n{{\n    {body}\n}}\n")
        } else {
            // `MPI_Type_struct` is a function of the library, because programs are linked with it.
            format!("{declaration};\n")
        };
        let _ = writeln!(out, "{text}");
        if text.starts_with("static") {
            let _ = writeln!(out, "#define P{0} {0}\n", row.name);
        }
    }
}

/// Returns the text of `mpi.h`.
pub fn header(
    functions: &[Function],
    constants: &[Constant],
    callbacks: &[Callback],
    compat: &[Compat],
) -> String {
    let mut out = HEAD.to_owned();
    heading(&mut out, "Handles");
    for kind in HANDLES {
        let _ = writeln!(out, "typedef struct MPI_ABI_{} *{kind};", &kind["MPI_".len()..]);
    }
    for kind in TOOLS {
        let _ = writeln!(out, "typedef struct MPI_ABI_{} *{kind};", &kind["MPI_".len()..]);
    }
    for (kind, name) in ENUMS {
        let _ = writeln!(out, "\ntypedef enum {{");
        for constant in constants.iter().filter(|constant| constant.kind == kind) {
            let _ = writeln!(out, "    {} = {},", constant.name, constant.value);
        }
        // The header must be valid C90, which does not allow a comma after the last constant.
        out.truncate(out.trim_end_matches(",\n").len());
        let _ = writeln!(out, "\n}} {name};");
    }
    heading(&mut out, "Callbacks");
    for callback in callbacks {
        let line = match callback.returns.as_str() {
            "alias" => format!("typedef {} {};", callback.parameters, callback.name),
            returns if callback.name.starts_with("MPI_T_") => {
                format!("typedef {returns} (*{})({});", callback.name, callback.parameters)
            }
            returns => format!("typedef {returns} ({})({});", callback.name, callback.parameters),
        };
        let _ = writeln!(out, "{}", fold(&line));
    }
    let mut last = "";
    for constant in constants {
        let Some(value) = value(constant) else { continue };
        if constant.kind != last
            && !(constant.kind.starts_with("alias") || last.starts_with("alias"))
        {
            heading(&mut out, &constant.kind.replace(':', ": "));
        }
        last = &constant.kind;
        let _ = writeln!(out, "#define {} {value}", constant.name);
    }
    for (prefix, text) in
        [("", "Functions"), ("P", "The same functions for tools that replace the names above")]
    {
        heading(&mut out, text);
        for function in functions {
            let _ = writeln!(out, "{}", fold(&prototype(function, prefix)));
        }
    }
    out.push_str("\n/* Names outside the ABI */\n\n#ifndef TYPEPACK_NO_COMPAT\n\n");
    for row in compat.iter().filter(|row| row.kind == "type") {
        let _ = writeln!(out, "{}", fold(&row.declaration));
    }
    out.push('\n');
    for row in compat.iter().filter(|row| row.kind == "constant") {
        match row.declaration.as_str() {
            "int" => {
                let _ = writeln!(out, "#define {} {}", row.name, row.value);
            }
            "MPI_Datatype" => {
                let _ = writeln!(out, "#define {} ((MPI_Datatype){})", row.name, row.value);
            }
            pointer => {
                let _ = writeln!(out, "extern {pointer}{};", row.name);
            }
        }
    }
    out.push_str(
        "\n/* The addresses below 8192 are not statuses: null, and the ignored statuses of C and Fortran. */\n\
         static inline int typepack_copy_status(const void *from, void *to)\n{\n    \
         const int *source = (const int *)from;\n    int *target = (int *)to;\n    int i;\n    \
         if ((uintptr_t)from < 8192 || (uintptr_t)to < 8192) return MPI_ERR_ARG;\n    \
         for (i = 0; i < 8; i++) target[i] = source[i];\n    return MPI_SUCCESS;\n}\n\n",
    );
    inline_names(compat, &mut out);
    for row in compat.iter().filter(|row| row.kind == "alias") {
        let line = format!("#define {} {}", row.name, row.replacement);
        let _ = writeln!(out, "{}", line.trim_end());
    }
    out.push_str("\n#endif\n\n#ifdef __cplusplus\n}\n#endif\n\n");
    out.push_str("/* The C++ functions of MPI-2.2, if the program asks for them */\n\n");
    out.push_str("#if defined(__cplusplus) && defined(TYPEPACK_CXX)\nextern \"C++\" {\n#include \"mpicxx.h\"\n}\n#endif\n\n#endif\n");
    out
}
