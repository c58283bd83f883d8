//! Generates the functions of the library with MPICH's ABI, as Rust source.
//!
//! Each function converts its arguments with the functions of `runtime/mpich/src`, calls the C function through the
//! table of entries (`../entries.rs`), and converts the results back. `MPI_X` and `PMPI_X` each have the whole body.

use super::class::{Class, Mpich, Way};
use crate::ctype::rust;
use crate::rows::{Function, HANDLES, Parameter};
use std::collections::BTreeMap;
use std::fmt::Write;

/// What one argument adds to a function.
#[derive(Default)]
struct Code {
    /// Statements before the call. Those of handles come first, because others use them.
    first: String,
    /// Statements before the call.
    before: String,
    /// The argument of the C function.
    argument: String,
    /// Statements after the call.
    after: String,
}

fn identifier(name: &str) -> String {
    match name {
        "type" | "in" | "ref" => format!("r#{name}"),
        name => name.to_owned(),
    }
}

/// Returns the Rust type of a parameter as MPICH has it.
fn theirs(c_type: &str, types: &[String]) -> String {
    let mut text = rust(c_type, types);
    for handle in HANDLES.iter().filter(|handle| **handle != "MPI_File") {
        let ours = format!("raw::{}", &handle["MPI_".len()..]);
        if text.ends_with(&ours) {
            text = text.replace(&ours, "c_int");
        }
    }
    text.replace("raw::Status", "status::Theirs")
}

/// Returns the code for a parameter.
fn convert(class: &Class, p: &Parameter, f: &Function) -> Code {
    let name = identifier(&p.name);
    let local = format!("{}_c", p.name);
    let mut code = Code { argument: name.clone(), ..Code::default() };
    let absent = "else {\n        return code::no_memory();\n    };\n";
    match class {
        Class::Same => {}
        Class::Number(table) => {
            let function = match table.as_str() {
                "RANK" | "TAG" => format!("number::sentinel_to_ours(&values::{table}, {name})"),
                "CODE" => format!("code::to_ours({name})"),
                "AMODE" | "ASSERT" => format!("number::bits_to_ours(&values::{table}, {name})"),
                _ => format!("number::to_ours(&values::{table}, {name})"),
            };
            code.argument = function;
        }
        Class::NumberAt(table, way) => {
            let value = match way {
                Way::Both => {
                    format!("number::At::of({name}, |v| number::to_ours(&values::{table}, v))")
                }
                _ => format!("number::At::new({name})"),
            };
            let back = match table.as_str() {
                "CODE" => "code::to_theirs(v)".into(),
                "AMODE" => format!("number::bits_to_theirs(&values::{table}, v)"),
                _ => format!("number::to_theirs(&values::{table}, v)"),
            };
            code.before = format!("    let mut {local} = {value};\n");
            code.argument = format!("{local}.place()");
            code.after = format!("    {local}.store(|v| {back});\n");
        }
        Class::Numbers(table, Way::In, count) => {
            code.before = format!(
                "    let Some({local}) = array::numbers(&values::{table}, {name}, {count}) {absent}"
            );
            code.argument = format!("{local}.as_ptr()");
        }
        Class::Numbers(table, _, count) => {
            code.after = format!(
                "    if code == 0 {{\n        array::numbers_to_theirs(&values::{table}, {name}, {count});\n    }}\n"
            );
        }
        Class::Displacement => {
            code.argument = format!("number::displacement({name}, values::DISPLACEMENT_CURRENT)")
        }
        Class::Handle(kind) => {
            code.first = format!("    let {local} = raw::{kind}::to_ours({name});\n");
            code.argument = local;
        }
        Class::HandleAt(kind, way) => {
            let make = if *way == Way::Both { "of" } else { "new" };
            code.before =
                format!("    let mut {local} = handle::At::<raw::{kind}>::{make}({name});\n");
            code.argument = format!("{local}.place()");
            code.after = format!("    {local}.store();\n");
        }
        Class::Handles(kind, way, count) => {
            let (make, store) = match way {
                Way::In => ("handles", ""),
                Way::Out => ("handle_room", "store"),
                Way::Both => ("both", "store_changed"),
            };
            let mutable = if *way == Way::In { "" } else { "mut " };
            code.before = format!(
                "    let Some({mutable}{local}) = array::{make}::<raw::{kind}>({name}, {count}) {absent}"
            );
            code.argument = match way {
                Way::In => format!("{local}.as_ptr()"),
                _ => format!("{local}.as_mut_ptr()"),
            };
            if *way != Way::In {
                code.after = format!("    array::{store}({name}, &{local});\n");
            }
        }
        Class::Status(Way::In) => {
            code.before = format!("    let {local} = status::In::new({name});\n");
            code.argument = format!("{local}.place()");
        }
        Class::Status(way) => {
            let make = if *way == Way::Both { "of" } else { "new" };
            code.before = format!("    let mut {local} = status::At::{make}({name});\n");
            code.argument = format!("{local}.place()");
            code.after = format!("    {local}.store();\n");
        }
        Class::Statuses(count) => {
            code.before =
                format!("    let Some(mut {local}) = status::room({name}, {count}) {absent}");
            code.argument = format!("{local}.as_mut_ptr()");
            code.after = format!("    status::store({name}, &{local});\n");
        }
        Class::Buffer => code.argument = format!("buffer::to_ours({name} as _) as _"),
        Class::Detached => {
            code.after =
                format!("    if code == 0 {{\n        buffer::detached({name});\n    }}\n");
        }
        Class::Text(lengths) => {
            code.before =
                format!("    let mut {local} = text::Out::new({name}, values::{lengths});\n");
            code.argument = format!("{local}.place()");
            code.after = format!("    {local}.store(code);\n");
        }
        Class::Clipped(lengths) => {
            code.after = format!(
                "    if code == 0 {{\n        text::clip({name}, values::{lengths});\n    }}\n"
            );
        }
        Class::Attribute => {
            let key = f.parameters.iter().find(|p| p.name.ends_with("keyval"));
            let key = key.unwrap_or_else(|| panic!("{}: no key", f.name));
            code.after = format!(
                "    if code == 0 {{\n        attribute::show({}, {name}, flag);\n    }}\n",
                key.name
            );
        }
        Class::Errcodes => {
            let maximum = match f.parameters.iter().any(|p| p.name == "maxprocs") {
                true => "peers::one(maxprocs)",
                false => "peers::sum(array_of_maxprocs, count)",
            };
            code.after = format!(
                "    if peers::is_root(comm_c, root) {{\n        code::children({name}, {maximum});\n    }}\n"
            );
        }
    }
    code
}

/// Appends one exported function to `out`.
fn export(out: &mut String, mpich: &Mpich<'_>, f: &Function, prefix: &str, types: &[String]) {
    let fixed: Vec<&Parameter> = f.parameters.iter().filter(|p| p.name != "...").collect();
    let list: Vec<String> = fixed
        .iter()
        .map(|p| format!("{}: {}", identifier(&p.name), theirs(&p.c_type, types)))
        .collect();
    let codes: Vec<Code> = fixed.iter().map(|p| convert(&mpich.class(f, p), p, f)).collect();
    let join = |each: &dyn Fn(&Code) -> &str| codes.iter().map(each).collect::<String>();
    let arguments: Vec<&str> = codes.iter().map(|c| c.argument.as_str()).collect();
    let call = format!("(entries().{})({})", f.name, arguments.join(", "));
    let (before, after) = (join(&|c| &c.first) + &join(&|c| &c.before), join(&|c| &c.after));
    let body = match f.returns.as_str() {
        // A fault of a conversion becomes an error of the call.
        "int" => format!(
            "    crate::guard::call({:?}, || {{\n{before}    let code = {call};\n{after}    code::outcome(code)\n    }})\n",
            f.name
        ),
        _ => format!("{before}    {call}\n"),
    };
    let starts = ["MPI_Init", "MPI_Init_thread", "MPI_Session_init"].contains(&f.name.as_str());
    let body = if starts { format!("    crate::entries::begin();\n{body}") } else { body };
    let symbol = format!("{prefix}{}", f.name);
    let _ = write!(
        out,
        "/// `{symbol}`.\n///\n/// # Safety\n///\n/// - Each argument is what the standard asks for, in MPICH's ABI.\n\
         #[unsafe(no_mangle)]\npub unsafe extern \"C\" fn {symbol}({}) -> {} {{\n    \
         // SAFETY: the program passes what the standard asks for (`# Safety`).\n    unsafe {{\n{body}    }}\n}}\n\n",
        list.join(", "),
        rust(&f.returns, types),
    );
}

/// Returns the Rust source of the functions.
pub fn front(mpich: &Mpich<'_>) -> String {
    let types: Vec<String> = mpich.callbacks.iter().map(|c| c.name.clone()).collect();
    let mut out = String::new();
    for f in mpich.functions.iter().filter(|f| !mpich.by_hand(f)) {
        for prefix in ["", "P"] {
            export(&mut out, mpich, f, prefix, &types);
        }
    }
    out
}

/// Returns the Rust source of the list of arguments whose numbers are converted: the function (none for all functions that
/// have such an argument), the argument, and how.
pub fn arguments(mpich: &Mpich<'_>) -> String {
    let mut all: BTreeMap<&str, BTreeMap<String, Vec<&str>>> = BTreeMap::new();
    for f in mpich.functions.iter().filter(|f| !mpich.by_hand(f)) {
        for p in f.parameters.iter().filter(|p| p.name != "...") {
            let kind = match mpich.class(f, p) {
                Class::Number(table) if ["AMODE", "ASSERT"].contains(&table.as_str()) => {
                    format!("Kind::Bits(&{table})")
                }
                Class::Number(table) => format!("Kind::Number(&{table})"),
                Class::Numbers(table, Way::In, _) => format!("Kind::Number(&{table})"),
                _ => "Kind::Same".to_owned(),
            };
            all.entry(&p.name).or_default().entry(kind).or_default().push(&f.name);
        }
    }
    let mut rows = String::new();
    for (argument, kinds) in &all {
        // The most frequent kind is for all functions without a row of their own.
        let Some(most) = kinds.iter().max_by_key(|(_, functions)| functions.len()) else {
            continue;
        };
        for (kind, functions) in kinds {
            let functions = if kind == most.0 { &vec![""] } else { functions };
            if kind != "Kind::Same" || functions != &[""] {
                for function in functions {
                    let _ = writeln!(rows, "    ({function:?}, {argument:?}, {kind}),");
                }
            }
        }
    }
    format!(
        "/// The arguments whose numbers are converted: function, argument, kind.\n\
         pub static ARGUMENTS: &[(&str, &str, Kind)] = &[\n{rows}];\n"
    )
}
