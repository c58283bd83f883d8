//! Generates the exported functions as Rust source: `MPI_X` and `PMPI_X` for every row of
//! `abi/functions.csv`.
//!
//! Each function calls a function of `crate::entry`, which checks that the call is allowed at this stage of
//! the process, catches panics and calls error handlers. An exported function converts each pointer to the parameter type
//! of its implementation (`abi/built.csv`, `crate::argument`) and passes the arguments on. The conversion relies on what
//! the C caller promises about the pointer. A function with a short way first tries that. `MPI_X` and `PMPI_X` each have the whole
//! body, so that a tool that replaces `MPI_X` still reaches the library through `PMPI_X`.

use super::ctype::rust;
use super::rows::{Built, Callback, Function, Handled, Parameter};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The SAFETY comment of the unsafe blocks in the exported functions. Only these blocks rely on the promises
/// of the C caller without a check.
const TRUST: &str = concat!(
    "        // SAFETY: the C caller promises what the standard asks for: each pointer is null or what the type\n",
    "        // of its parameter says (`argument/`), and buffers have the elements that counts and datatypes say.\n",
);

/// Returns the name of a parameter in Rust. A name that is a Rust keyword becomes a raw identifier.
fn name(parameter: &Parameter) -> String {
    match parameter.name.as_str() {
        "type" | "in" | "ref" => format!("r#{}", parameter.name),
        name => name.to_owned(),
    }
}

/// Returns the Rust expression for the object whose error handler is called if the function fails. This is
/// the first communicator, file, window or session among the arguments, or `At::Nothing` if there is none.
/// For the functions on files without the handle of a file (`handlers.csv`) it is `MPI_FILE_NULL` (MPI-5.0 section
/// 14.7).
fn object(function: &Function, handlers: &[Handled]) -> String {
    let name_of = |row: &&Handled| row.handler == "MPI_FILE_NULL";
    let base = function.name.strip_suffix("_c").unwrap_or(&function.name);
    if handlers.iter().filter(name_of).any(|row| row.name == base || row.name == function.name) {
        return "At::File(raw::File::NULL)".to_owned();
    }
    function
        .parameters
        .iter()
        .find_map(|p| match p.c_type.as_str() {
            "MPI_Comm" => Some(format!("At::Comm({})", name(p))),
            kind @ ("MPI_File" | "MPI_Win" | "MPI_Session") => {
                Some(format!("At::{}({})", &kind["MPI_".len()..], name(p)))
            }
            _ => None,
        })
        .unwrap_or_else(|| "At::Nothing".to_owned())
}

/// Appends the source of one exported function to `out`.
fn export(
    out: &mut String,
    f: &Function,
    symbol: &str,
    call: Option<&(Built, bool)>,
    types: &[String],
    handlers: &[Handled],
) {
    let parameters: Vec<&Parameter> = f.parameters.iter().filter(|p| p.name != "...").collect();
    let is_pointer = |p: &Parameter| rust(&p.c_type, types).starts_with('*');
    let has_pointers = parameters.iter().any(|p| is_pointer(p));
    let argument = |p: &Parameter| {
        if is_pointer(p) { format!("FromC::from_c({})", name(p)) } else { name(p) }
    };
    let list: Vec<String> =
        parameters.iter().map(|p| format!("{}: {}", name(p), rust(&p.c_type, types))).collect();
    let arguments: Vec<String> = parameters.iter().map(|p| argument(p)).collect();
    let (list, arguments) = (list.join(", "), arguments.join(", "));
    let returns = rust(&f.returns, types);
    // A function that converts a handle to an integer returns that integer, not an error code.
    let fixed = f.returns != "int" || f.group == "handle-conversion";
    let body = match call {
        Some((built, generic)) => {
            let width = match (generic, f.name.ends_with("_c")) {
                (false, _) => "",
                (true, false) => "::<crate::count_width::Int>",
                (true, true) => "::<crate::count_width::Large>",
            };
            let path = format!("crate::{}{width}", built.path);
            if fixed {
                format!(
                    "    crate::entry::infallible(\"{}\", move || {{ {path}({arguments}) }})\n",
                    f.name
                )
            } else {
                // `enter` and `always` store the name of the call, as one word.
                let (entry, by) = match (f.group.as_str(), built.always) {
                    ("tools", _) if f.name.starts_with("MPI_T_") => ("tool", ""),
                    (_, true) => ("always", "&"),
                    (_, false) => ("enter", "&"),
                };
                let call = format!("{path}({arguments})");
                let call = if has_pointers {
                    format!("{TRUST}        unsafe {{ {call} }}")
                } else {
                    format!("        {call}")
                };
                let body = format!(
                    "    crate::entry::{entry}({by}\"{}\", {}, || {{\n{call}\n    }})\n",
                    f.name,
                    object(f, handlers)
                );
                match built.short() {
                    Some(short) => {
                        let names: Vec<String> = parameters.iter().map(|p| name(p)).collect();
                        assert!(
                            entry == "enter",
                            "{}: a function has a short way only if it may be called from init to finalize",
                            f.name
                        );
                        let short = format!("crate::{short}{width}({arguments})");
                        let short = match has_pointers {
                            true => format!("{{\n{TRUST}        unsafe {{ {short} }}\n    }}"),
                            false => short,
                        };
                        // The rest is a function of its own, so that the short way saves no registers for it.
                        format!(
                            "    #[inline(never)]\n    unsafe extern \"C\" fn rest({list}) -> {returns} {{\n{body}    }}\n\
                             if crate::entry::short(|| {short}) {{\n        return crate::abi::SUCCESS;\n    }}\n    \
                             // SAFETY: the C caller promises for this function what it promises for `rest`.\n    unsafe {{ rest({}) }}\n",
                            names.join(", ")
                        )
                    }
                    None => body,
                }
            }
        }
        None => panic!("built.csv has no row for {}", f.name),
    };
    let _ = write!(
        out,
        "/// `{symbol}`.\n///\n/// # Safety\n///\n/// - Each argument is what the standard asks for, or is detectably wrong: a null pointer, an invalid handle, a number\n///   out of range.\n#[unsafe(no_mangle)]\npub unsafe extern \"C\" fn {symbol}({list}) -> {returns} {{\n{body}}}\n\n"
    );
}

/// Returns the Rust source of all exported functions.
pub fn exports(
    functions: &[Function],
    built: &[Built],
    callbacks: &[Callback],
    handlers: &[Handled],
) -> String {
    let types: Vec<String> = callbacks.iter().map(|c| c.name.clone()).collect();
    let mut rows: BTreeMap<String, (Built, bool)> = BTreeMap::new();
    for row in built {
        let function = functions.iter().find(|f| f.name == row.name);
        let function = function.unwrap_or_else(|| {
            panic!("built.csv names {}, which functions.csv does not have", row.name)
        });
        // A function and its large-count form share a row of `built.csv`, unless the large-count form has
        // other arguments and therefore a row of its own.
        let large = format!("{}_c", row.name);
        let generic = function.has_large && !built.iter().any(|other| other.name == large);
        let again = rows.insert(row.name.clone(), (row.clone(), generic));
        assert!(again.is_none(), "built.csv: two rows for {}", row.name);
        if generic {
            rows.insert(large, (row.clone(), true));
        }
    }
    let mut out = String::new();
    for function in functions {
        let call = rows.get(&function.name);
        for symbol in [function.name.clone(), format!("P{}", function.name)] {
            export(&mut out, function, &symbol, call, &types, handlers);
        }
    }
    out
}
