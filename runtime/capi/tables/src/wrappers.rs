//! Generates the source of a library that is loaded in front of another MPI library (`runtime/interpose`).
//!
//! A table (`Wrapped`) lists the functions that the library takes over, and those that it calls. From the table
//! and `abi/functions.csv` come two files: the table of the other library's functions (`Next`), and the
//! exported functions. An exported function asks the Rust function of its row to do the call. If that function
//! returns `None`, the exported function calls the other library with unchanged arguments.
//!
//! A function of the table can be taken over under both of its names, `MPI_X` and `PMPI_X`. Then the Rust function is
//! the same, but it gets another table of the other library's functions, in which `MPI_X` is the function `PMPI_X`.
//! Where only `MPI_X` is taken over, the second function is exported as `typepack_PMPI_X`, for a shim: Fortran routines of
//! some libraries call `PMPI_X` for a program that called `MPI_X`.

use super::ctype::rust;
use super::rows::{Callback, Function, Parameter, records};
use std::fmt::Write;
use std::path::Path;

/// One function that is taken over or called.
#[derive(Clone, Debug)]
pub struct Wrapped {
    /// The name of the function, for example `MPI_Send`.
    pub name: String,
    /// The path of the Rust function that does the call; empty if the function is only called.
    pub path: String,
    /// When the Rust function is asked.
    pub when: When,
    /// True if the name that begins with `PMPI_` is taken over too.
    pub both: bool,
}

/// When a wrapper asks the Rust function of its row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// In every call.
    Always,
    /// Only while the library takes part.
    Active,
    /// Before each call, without the arguments. The Rust function has no result.
    Before,
    /// There is no wrapper: the library only calls the function, by the name that begins with `PMPI_`.
    Called,
}

impl Wrapped {
    /// Reads the table `file`, whose columns are `name`, `path`, `when` and `names`.
    ///
    /// # Panics
    /// Panics if the table cannot be read or has a malformed row.
    pub fn read(file: &Path) -> Vec<Self> {
        let wrong = |row: &csv::StringRecord, column: &str, value: &str, allowed: &str| -> ! {
            panic!(
                "{}: {}: the column `{column}` has \"{value}\"; it must have {allowed}",
                file.display(),
                &row[0]
            )
        };
        let row = |row: &csv::StringRecord| Self {
            name: row[0].to_owned(),
            path: row[1].to_owned(),
            when: match &row[2] {
                "always" => When::Always,
                "active" => When::Active,
                "before" => When::Before,
                "called" => When::Called,
                other => {
                    wrong(row, "when", other, "\"always\", \"active\", \"before\" or \"called\"")
                }
            },
            both: match &row[3] {
                "MPI" | "" => false,
                "both" => true,
                other => wrong(row, "names", other, "\"MPI\", \"both\" or nothing"),
            },
        };
        records(file).iter().map(row).collect()
    }
}

/// The generated source.
#[derive(Clone, Debug)]
pub struct Wrappers {
    /// The table of the other library's functions.
    pub next: String,
    /// The exported functions.
    pub exports: String,
}

/// Returns the name of a parameter in Rust. A name that is a Rust keyword becomes a raw identifier.
fn name(parameter: &Parameter) -> String {
    match parameter.name.as_str() {
        "type" | "in" | "ref" => format!("r#{}", parameter.name),
        name => name.to_owned(),
    }
}

/// One symbol of the other library.
struct Symbol {
    /// The name of the symbol.
    name: String,
    /// The parameters as Rust source, with names and without.
    named: String,
    types: String,
    /// The names of the parameters.
    arguments: String,
}

impl Symbol {
    fn new(function: &Function, prefix: &str, callbacks: &[String]) -> Self {
        assert_eq!(
            function.returns, "int",
            "{}: only functions that return an error code",
            function.name
        );
        let list: Vec<(String, String)> =
            function.parameters.iter().map(|p| (name(p), rust(&p.c_type, callbacks))).collect();
        let join = |each: &dyn Fn(&(String, String)) -> String| {
            list.iter().map(each).collect::<Vec<_>>().join(", ")
        };
        Self {
            name: format!("{prefix}{}", function.name),
            named: join(&|(name, kind)| format!("{name}: {kind}")),
            types: join(&|(_, kind)| kind.clone()),
            arguments: join(&|(name, _)| name.clone()),
        }
    }
}

/// Returns the source for the functions in `list`. A function that has a form with large counts stands for both
/// forms, unless it is only called.
///
/// # Panics
/// Panics if the list names a function that `functions` does not have.
pub fn wrappers(functions: &[Function], list: &[Wrapped], callbacks: &[Callback]) -> Wrappers {
    let callbacks: Vec<String> = callbacks.iter().map(|c| c.name.clone()).collect();
    let find = |name: &str| {
        let found = functions.iter().find(|f| f.name == name);
        found.unwrap_or_else(|| panic!("functions.csv does not have {name}"))
    };
    let (mut symbols, mut exports) = (Vec::new(), String::new());
    for row in list {
        let function = find(&row.name);
        if row.when == When::Called {
            symbols.push(Symbol::new(function, "P", &callbacks));
            continue;
        }
        let large = function.has_large.then(|| find(&format!("{}_c", row.name)));
        for function in std::iter::once(function).chain(large) {
            let symbol = Symbol::new(function, "", &callbacks);
            export(&mut exports, &symbol, row, "");
            export(&mut exports, &symbol, row, "P");
            symbols.push(symbol);
        }
    }
    Wrappers { next: table(&symbols), exports }
}

/// Returns the source of the table `Next`.
fn table(symbols: &[Symbol]) -> String {
    let mut out = String::new();
    out.push_str("/// The functions of the library behind this one. A function that was not found is `None`.\n");
    out.push_str("#[allow(non_snake_case, clippy::type_complexity, clippy::too_many_arguments)]\npub struct Next {\n");
    for Symbol { name, types, .. } in symbols {
        let _ = writeln!(out, "    {name}: Option<unsafe extern \"C\" fn({types}) -> c_int>,");
    }
    out.push_str("}\n\n#[allow(non_snake_case, clippy::type_complexity, clippy::too_many_arguments)]\nimpl Next {\n");
    out.push_str("    /// Looks up all functions. `find` returns the address of a symbol, or null.\n    ///\n");
    out.push_str("    /// # Safety\n    ///\n    /// - Each address that `find` returns is null, or the address of the C function that\n");
    out.push_str("    ///   the MPI 5 standard ABI declares under this name.\n");
    out.push_str(
        "    unsafe fn resolve(find: impl Fn(&CStr) -> *mut c_void) -> Self {\n        Self {\n",
    );
    for Symbol { name, types, .. } in symbols {
        let _ = writeln!(
            out,
            "            // SAFETY: the address is null, which is `None`, or that of a C function of this type (`# Safety`).\n            \
             {name}: unsafe {{ std::mem::transmute::<*mut c_void, Option<unsafe extern \"C\" fn({types}) -> c_int>>(find(c\"{name}\")) }},"
        );
    }
    out.push_str("        }\n    }\n\n    /// Returns the name of a function that was not found; `None` if all were found.\n");
    out.push_str("    pub fn missing(&self) -> Option<&'static str> {\n        [\n");
    for Symbol { name, .. } in symbols {
        let _ = writeln!(out, "            (\"{name}\", self.{name}.is_none()),");
    }
    out.push_str(
        "        ].into_iter().find(|(_, missing)| *missing).map(|(name, _)| name)\n    }\n",
    );
    for Symbol { name, named, arguments, .. } in symbols {
        let _ = write!(
            out,
            "\n    /// Calls `{name}`.\n    ///\n    /// # Safety\n    ///\n    /// - The arguments are what the standard asks of a \
             caller of this function.\n    #[inline(always)]\n    pub unsafe fn {name}(&self, {named}) -> c_int {{\n        \
             match self.{name} {{\n            // SAFETY: the caller passes what the standard asks for (`# Safety`).\n            \
             Some(function) => unsafe {{ function({arguments}) }},\n            \
             None => absent(\"{name}\"),\n        }}\n    }}\n"
        );
    }
    out.push_str("}\n");
    out
}

/// Appends the source of one exported function to `out`. `prefix` is `P` or nothing.
fn export(out: &mut String, symbol: &Symbol, row: &Wrapped, prefix: &str) {
    let Symbol { name, named, arguments, .. } = symbol;
    let next = if prefix.is_empty() { "next" } else { "profiled" };
    let prefix = if row.both || prefix.is_empty() { prefix } else { "typepack_P" };
    let attempt = if row.when == When::Always { "always" } else { "active" };
    let rest = if arguments.is_empty() { String::new() } else { format!(", {arguments}") };
    if row.when == When::Before {
        let _ = write!(
            out,
            "/// `{prefix}{name}`.\n///\n/// # Safety\n///\n/// - The arguments are those of a call of this function.\n\
             #[unsafe(no_mangle)]\npub unsafe extern \"C\" fn {prefix}{name}({named}) -> c_int {{\n    crate::{}();\n    \
             // SAFETY: the arguments are unchanged (`# Safety`).\n    \
             unsafe {{ crate::host::{next}().{name}({arguments}) }}\n}}\n\n",
            row.path
        );
        return;
    }
    let _ = write!(
        out,
        "/// `{prefix}{name}`.\n///\n/// # Safety\n///\n/// - Each argument is what the standard asks for, or is wrong in a way that \
         the host library detects.\n#[unsafe(no_mangle)]\npub unsafe extern \"C\" fn {prefix}{name}({named}) -> c_int {{\n    \
         let next = crate::host::{next}();\n    \
         // SAFETY: the caller of this function promises what the standard asks for (`# Safety`).\n    \
         let done = crate::entry::{attempt}(\"{name}\", || unsafe {{ crate::{}(next{rest}) }});\n    \
         match done {{\n        Some(code) => code,\n        \
         // SAFETY: the caller promises what the standard asks for (`# Safety`), and the arguments are unchanged.\n        \
         None => unsafe {{ next.{name}({arguments}) }},\n    }}\n}}\n\n",
        row.path
    );
}
