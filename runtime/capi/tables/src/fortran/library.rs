//! Generates the functions that Fortran programs call, as Rust source.
//!
//! For each routine: `mpi_x_` for the include file and the module `mpi`; `mpi_x_f08_`, or `mpi_x_f08ts_` if the routine
//! has a choice buffer, for the module `mpi_f08`; and each of them once more with a `p` in front, which calls `PMPI_X`.
//! A form with large counts exists only for `mpi_f08`. Each function converts its arguments with the functions of
//! `runtime/fortran/src`, calls the C function, and converts the results back.

use super::class::{Argument, Class, Fortran, Intent, Routine, Use};
use crate::ctype::rust;
use crate::rows::{Callback, Function};
use std::fmt::Write;

/// What one argument adds to a function.
#[derive(Default)]
struct Code {
    /// Statements before the call. Those of handles come first, because others use them.
    first: String,
    /// Statements before the call.
    before: String,
    /// Statements right before the call, which use those before.
    last: String,
    /// The argument of the C function; empty if there is none.
    argument: String,
    /// Statements after the call.
    after: String,
}

/// Returns a name as a Rust identifier.
fn identifier(name: &str) -> String {
    match name {
        "type" | "in" | "ref" | "fn" => format!("r#{name}"),
        name => name.to_owned(),
    }
}

/// Returns the Rust type of a parameter of a generated function.
fn parameter_type(class: &Class, by_descriptor: bool) -> String {
    let number = |c_type: &str| format!("*mut {}", rust(c_type, &[]));
    match class {
        Class::Value(c_type) | Class::Numbers(c_type, _) => number(c_type),
        Class::Status(_) | Class::Statuses => "*mut raw::Status".into(),
        Class::TextIn(_) | Class::TextOut(_) if by_descriptor => "*const Descriptor".into(),
        Class::TextIn(_) | Class::TextOut(_) | Class::Argv | Class::Argvs | Class::Texts => {
            "*mut c_char".into()
        }
        Class::AttributeIn(false) | Class::AttributeOut(false) | Class::State(false) => {
            "*mut raw::Aint".into()
        }
        Class::Callback(_) => "raw::Callback".into(),
        Class::Address | Class::Detached => "*mut *mut c_void".into(),
        Class::Buffer(..) if by_descriptor => "*const Descriptor".into(),
        Class::Buffer(..) => "*mut c_void".into(),
        _ => "*mut c_int".into(),
    }
}

/// Returns the Rust expression of what reports an error of a routine.
fn refusal(routine: &Routine, class: &str) -> String {
    for argument in &routine.arguments {
        if let Class::Handle(kind) = &argument.class
            && matches!(kind.as_str(), "Comm" | "File" | "Win" | "Session")
        {
            let kind = kind.to_lowercase();
            return format!("crate::refusal::{kind}({}_c, {class})", argument.name);
        }
    }
    format!("crate::refusal::nothing({class})")
}

/// Returns the code for a choice buffer that comes by a descriptor.
fn by_descriptor(routine: &Routine, argument: &Argument, how: &Use) -> Code {
    let name = identifier(&argument.name);
    let local = format!("{}_c", argument.name);
    let mut code = Code { argument: local.clone(), ..Code::default() };
    match how {
        Use::Base => code.argument = format!("crate::section::base({name})"),
        Use::Typed(count, of) => {
            let (count, of) = (&routine.arguments[*count].name, &routine.arguments[*of].name);
            // A root that does not take part, or that has no buffer of its own, tells nothing about it.
            let count = match (routine.has("root"), routine.name.contains("cast")) {
                (false, _) => format!("(*{count}).into()"),
                (true, cast) => format!("crate::span::count(*root, {cast}, (*{count}).into())"),
            };
            let failed = match routine.together {
                true => format!(
                    "crate::section::Part::refused({name}, {count}, {of}_c, (class, &mut refused))"
                ),
                false => format!("break 'call {}", refusal(routine, "class")),
            };
            code.before = format!(
                "let {local} = match crate::section::typed({name}, {count}, {of}_c) {{\n    \
                 Ok(part) => part,\n    Err(class) => {failed},\n}};\n"
            );
            code.argument = format!("{local}.address");
        }
        Use::Blocks(span) => {
            let written = !matches!(argument.class, Class::Buffer(_, true));
            let begun = !routine.name.contains("_init");
            let failed = match routine.together {
                true => format!("crate::loan::Loan::refused({name}, class, &mut refused)"),
                false => format!("break 'call {}", refusal(routine, "class")),
            };
            code.last = format!(
                "let {local} = match crate::loan::lend({name}, {written}, {begun}, || {span}) {{\n    \
                 Ok(loan) => loan,\n    Err(class) => {failed},\n}};\n"
            );
            code.argument = format!("{local}.address()");
        }
        Use::Memory | Use::One => {
            let found = match how {
                Use::One => format!("one({name}, datatype_c)"),
                _ => format!("memory({name})"),
            };
            code.last = match routine.together {
                true => format!(
                    "let {local} = crate::section::{found}.unwrap_or_else(|| {{\n    \
                     refused = raw::ERR_BUFFER;\n    crate::section::base({name})\n}});\n"
                ),
                false => format!(
                    "let Some({local}) = crate::section::{found} else {{\n    break 'call {};\n}};\n",
                    refusal(routine, "raw::ERR_BUFFER")
                ),
            };
        }
    }
    code
}

/// Returns the code for the argument at `at`.
fn convert(routine: &Routine, at: usize, descriptor: bool, f08: bool) -> Code {
    let argument = &routine.arguments[at];
    let name = &identifier(&argument.name);
    let local = format!("{}_c", argument.name);
    let pointer = argument.c.c_type.ends_with('*');
    let mut code = Code { argument: name.clone(), ..Code::default() };
    // A section changes the count and the type of its buffer.
    let owner = routine.arguments.iter().find_map(|other| match &other.class {
        Class::Buffer(Use::Typed(count, of), _) if descriptor && (*count == at || *of == at) => {
            Some((format!("{}_c", other.name), *count == at))
        }
        _ => None,
    });
    let length = match descriptor {
        true => format!("(*{name}).length()"),
        false => format!("{}_len", argument.name),
    };
    let text = match descriptor {
        true => format!("(*{name}).text()"),
        false => name.clone(),
    };
    match &argument.class {
        Class::Omitted => {
            code.argument = match argument.c.c_type.as_str() {
                "..." => String::new(),
                _ if pointer => "std::ptr::null_mut()".into(),
                _ => "0".into(),
            }
        }
        Class::Value(_) => {
            code.argument = match owner {
                Some((buffer, true)) => format!("{buffer}.count as _"),
                _ => format!("*{name}"),
            }
        }
        Class::Clipped => code.argument = format!("(*{name}).min(raw::MAX_INFO_VAL)"),
        Class::LogicalValue => code.argument = format!("c_int::from(*{name} != 0)"),
        Class::Logical => code.after = format!("*{name} = c_int::from(*{name} != 0);\n"),
        Class::Ranges => code.argument = format!("{name}.cast()"),
        Class::Index => {
            code.before = format!("let mut {local} = -1;\n");
            code.argument = format!("&raw mut {local}");
            code.after = format!("crate::index::give({name}, {local});\n");
        }
        Class::Indices(number) => {
            code.before = format!("*{number} = 0;\n");
            code.after = format!("crate::index::give_all({name}, *{number});\n");
        }
        Class::Weights(_) => code.argument = format!("crate::sentinel::weights({name})"),
        Class::Errcodes => code.argument = format!("crate::sentinel::errcodes({name})"),
        Class::Handle(kind) => {
            code.first = format!("let {local} = crate::handle::read::<raw::{kind}>({name});\n");
            code.argument = match owner {
                Some((buffer, false)) => format!("{buffer}.datatype"),
                _ => local,
            }
        }
        Class::HandleAt(kind, intent) => {
            let value = match intent {
                Intent::Out => format!("raw::{kind}(0)"),
                _ => format!("crate::handle::read::<raw::{kind}>({name})"),
            };
            code.first = format!("let mut {local} = {value};\n");
            code.argument = format!("&raw mut {local}");
            code.after = format!("crate::handle::write({name}, {local});\n");
        }
        Class::Handles(kind, intent, number) => {
            let make = if *intent == Intent::Out { "room" } else { "many" };
            code.before = format!(
                "let mut {local} = crate::handle::{make}::<raw::{kind}>({name}, {number});\n"
            );
            code.argument = format!("{local}.as_mut_ptr()");
            if *intent != Intent::In {
                code.after = format!("crate::handle::write_all({name}, &{local});\n");
            }
        }
        Class::Status(_) => code.argument = format!("crate::sentinel::status({name})"),
        Class::Statuses => code.argument = format!("crate::sentinel::statuses({name})"),
        Class::TextIn(leading) => {
            code.before =
                format!("let {local} = crate::text::In::new({text}, {length}, {leading});\n");
            code.argument = format!("{local}.as_ptr()");
        }
        Class::TextOut(room) => {
            code.before = format!("let mut {local} = crate::text::Out::new({room});\n");
            code.argument = format!("{local}.as_mut_ptr()");
            code.after = format!("{local}.give(code, {text}, {length});\n");
        }
        Class::Length => {
            code.before = format!(
                "let mut {local} = if *{name} > 0 {{ (*{name}).min(raw::MAX_INFO_VAL) + 1 }} else {{ 0 }};\n"
            );
            code.argument = format!("&raw mut {local}");
            code.after = format!("*{name} = c_int::max({local} - 1, 0);\n");
        }
        Class::Argv | Class::Texts | Class::Argvs => {
            let (kind, number) = match argument.class {
                Class::Argv => ("argv", ""),
                Class::Texts => ("list", ", crate::handle::at_root(comm, *root, *count)"),
                _ => ("argvs", ", crate::handle::at_root(comm, *root, *count)"),
            };
            code.before = format!(
                "let mut {local} = crate::text::Strings::{kind}({name}, {length}{number});\n"
            );
            code.argument = format!("{local}.as_mut_ptr().cast()");
        }
        Class::AttributeIn(_) => code.argument = format!("crate::attribute::value(*{name} as _)"),
        Class::AttributeOut(_) => {
            let key = routine.arguments.iter().find(|a| a.name.ends_with("keyval"));
            let key = key.map_or("", |a| a.name.as_str());
            code.before = format!("let mut {local} = std::ptr::null_mut::<c_void>();\n");
            code.argument = format!("(&raw mut {local}).cast()");
            code.after = format!(
                "if code == 0 && *flag != 0 {{\n    *{name} = crate::attribute::shown(*{key}, {local}) as _;\n}}\n"
            );
        }
        Class::State(_) => {
            let functions: Vec<String> = routine
                .arguments
                .iter()
                .filter(|a| matches!(a.class, Class::Callback(_)))
                .map(|a| identifier(&a.name))
                .collect();
            code.before = format!(
                "let {local} = crate::callback::State::leak(&[{}], *{name} as _);\n",
                functions.join(", ")
            );
            code.argument = local;
        }
        Class::Callback(kind) => {
            let kind = kind.trim_start_matches("MPI_").to_lowercase();
            let callbacks = routine.arguments[..at].iter();
            let position = callbacks.filter(|a| matches!(a.class, Class::Callback(_))).count();
            if routine.arguments.iter().any(|a| matches!(a.class, Class::State(_))) {
                code.argument = format!(
                    "crate::callback::unless_null({name}, crate::callback::{kind}::<{position}> as *const c_void)"
                );
            } else {
                code.before = format!(
                    "let Some({local}) = crate::slots::{kind}({name}) else {{\n    break 'call {};\n}};\n",
                    refusal(routine, "raw::ERR_NO_MEM")
                );
                code.argument = local.clone();
                if kind.starts_with("user_function") {
                    code.argument = format!("{local}.call");
                    code.after = format!("crate::slots::made(code, op_c, &{local});\n");
                }
            }
        }
        Class::Address => code.argument = format!("{name}.cast()"),
        Class::Detached => {
            code.before = format!("let mut {local} = std::ptr::null_mut::<c_void>();\n");
            code.argument = format!("(&raw mut {local}).cast()");
            code.after = match f08 {
                true => format!("*{name} = crate::sentinel::detached({local});\n"),
                false => format!("let _unused = {name};\n"),
            };
        }
        Class::Buffer(how, _) if descriptor => {
            code = by_descriptor(routine, argument, how);
        }
        Class::Buffer(..) => code.argument = format!("crate::sentinel::buffer({name})"),
        Class::Numbers(..) | Class::Logicals(_) => {}
    }
    code
}

/// Returns the statements before and after the call for the loans of a routine (`descriptor`), and of requests.
fn loans(routine: &Routine, descriptor: bool) -> (String, String) {
    let lent = |a: &&Argument| matches!(a.class, Class::Buffer(Use::Blocks(_), _));
    let lent = routine.arguments.iter().filter(lent).map(|a| format!("{}_c", a.name));
    let lent: Vec<String> = if descriptor { lent.collect() } else { Vec::new() };
    let given = lent.iter().map(|loan| format!("{loan}.give_back();\n")).collect::<String>();
    let request = routine.arguments.iter().find_map(|a| match &a.class {
        Class::Handle(kind) | Class::HandleAt(kind, _) if kind == "Request" => {
            Some((format!("std::slice::from_ref(&{}_c)", a.name), &a.class))
        }
        Class::Handles(kind, ..) if kind == "Request" => Some((format!("&{}_c", a.name), &a.class)),
        _ => None,
    });
    let Some((requests, class)) = request else { return (String::new(), given) };
    let name = routine.name.trim_start_matches("MPI_");
    let ready =
        |parts: &str| (format!("crate::pending::ready(request_c, {parts});\n"), String::new());
    match name {
        _ if matches!(class, Class::HandleAt(_, Intent::Out)) && lent.is_empty() => {
            (String::new(), "crate::pending::forget(code, request_c);\n".into())
        }
        _ if matches!(class, Class::HandleAt(_, Intent::Out)) => {
            let begun = !name.contains("_init");
            let list = lent.join(", ");
            (String::new(), format!("crate::pending::keep(code, request_c, [{list}], {begun});\n"))
        }
        "Pready" => ready("*partition..=*partition"),
        "Pready_range" => ready("*partition_low..=*partition_high"),
        "Pready_list" => ready("crate::pending::list(array_of_partitions, *length)"),
        "Parrived" => {
            let hook = "if code == 0 && *flag != 0 {\n    \
                        crate::pending::arrived(request_c, *partition);\n}\n";
            (String::new(), hook.into())
        }
        "Start" | "Startall" => (format!("crate::pending::starting({requests});\n"), String::new()),
        "Request_free" => (
            format!("let seen = crate::pending::seen({requests});\n"),
            format!("seen.freed({requests});\n"),
        ),
        _ if ["Wait", "Test", "Request_get"].iter().any(|start| name.starts_with(start)) => (
            format!("let seen = crate::pending::seen({requests});\n"),
            format!("seen.finish({requests});\n"),
        ),
        _ => (String::new(), String::new()),
    }
}

/// Appends one exported function to `out`.
///
/// `end` is what follows the name of the routine in the name of the function: nothing, or `cptr_` for the second form
/// of a routine that returns an address, for the module `mpi` and `mpif.h`; `f08_` or `f08ts_` for the module
/// `mpi_f08`.
fn export(out: &mut String, routine: &Routine, prefix: &str, end: &str) {
    let (f08, descriptor) = (end.starts_with("f08"), end == "f08ts_");
    let symbol = format!("{}{}_{end}", prefix.to_lowercase(), routine.name.to_lowercase());
    let there = |a: &&Argument| a.class != Class::Omitted;
    let mut list: Vec<String> = routine
        .arguments
        .iter()
        .filter(there)
        .map(|a| format!("{}: {}", identifier(&a.name), parameter_type(&a.class, descriptor)))
        .collect();
    list.push("ierror: *mut c_int".into());
    if !descriptor {
        let texts = routine.arguments.iter().filter(|a| a.is_text());
        list.extend(texts.map(|a| format!("{}_len: usize", a.name)));
    }
    let codes: Vec<Code> =
        (0..routine.arguments.len()).map(|at| convert(routine, at, descriptor, f08)).collect();
    let join = |each: &dyn Fn(&Code) -> &str| codes.iter().map(each).collect::<String>();
    let arguments: Vec<&str> =
        codes.iter().map(|c| c.argument.as_str()).filter(|a| !a.is_empty()).collect();
    let (mut lending, mut after) = loans(routine, descriptor);
    if routine.name == "MPI_Op_free" {
        lending.push_str("let freed = op_c;\n");
        after.push_str("crate::slots::freed(code, freed);\n");
    } else if routine.has("op") && routine.has("request") {
        lending.push_str("crate::slots::keep(op_c);\n");
    }
    let mut before = join(&|c| &c.first) + &join(&|c| &c.before) + &join(&|c| &c.last) + &lending;
    after.push_str(&join(&|c| &c.after));
    if matches!(routine.name.as_str(), "MPI_Init" | "MPI_Init_thread" | "MPI_Session_init") {
        after.push_str("crate::lifecycle::started(code);\n");
    }
    if routine.name == "MPI_Finalize" {
        before.push_str("crate::lifecycle::ending();\n");
    }
    let mut call = format!("abi::{prefix}{}({})", routine.name, arguments.join(", "));
    if before.contains("refused") {
        before.insert_str(0, "let mut refused = 0;\n");
        let alone = refusal(routine, "class");
        call = format!("crate::refusal::together(refused, || {call}, |class| {alone})");
    }
    let label = if before.contains("'call") { "'call: " } else { "" };
    let _ = write!(
        out,
        "/// `{symbol}`.\n///\n/// # Safety\n///\n/// - Each argument is the address of what the interface of the routine says.\n\
         #[unsafe(no_mangle)]\npub unsafe extern \"C\" fn {symbol}({}) {{\n\
         // SAFETY: the program passes addresses of what the interface says (`# Safety`).\n\
         unsafe {{\nlet code = crate::refusal::caught(|| {label}{{\n{before}let code = {call};\n\
         {after}code\n}});\ncrate::outcome::give(ierror, code);\n}}\n}}\n\n",
        list.join(", "),
    );
}

/// The generated source.
#[derive(Clone, Debug)]
pub struct Library {
    /// The declarations of the C functions.
    pub functions: String,
    /// The exported functions.
    pub exports: String,
}

/// Returns the Rust source of the library.
pub fn library(fortran: &Fortran, functions: &[Function], callbacks: &[Callback]) -> Library {
    let types: Vec<String> = callbacks.iter().map(|c| c.name.clone()).collect();
    let mut declared = String::from("unsafe extern \"C\" {\n");
    for f in functions.iter().filter(|f| !f.name.starts_with("MPI_T_")) {
        let list: Vec<String> = f
            .parameters
            .iter()
            .map(|p| match p.c_type.as_str() {
                "..." => "...".to_owned(),
                c_type => format!("{}: {}", identifier(&p.name), rust(c_type, &types)),
            })
            .collect();
        let returns = rust(&f.returns, &types);
        for prefix in ["", "P"] {
            let _ = writeln!(
                declared,
                "    /// `{prefix}{0}`.\n    pub fn {prefix}{0}({1}) -> {returns};",
                f.name,
                list.join(", ")
            );
        }
    }
    declared.push_str("}\n");
    let mut exports = String::new();
    for routine in &fortran.routines {
        for prefix in ["", "P"] {
            if !routine.is_large() {
                export(&mut exports, routine, prefix, "");
                if routine.has_address() {
                    export(&mut exports, routine, prefix, "cptr_");
                }
            }
            if !routine.only_mpi {
                let end = if routine.has_buffer() { "f08ts_" } else { "f08_" };
                export(&mut exports, routine, prefix, end);
            }
        }
    }
    Library { functions: declared, exports }
}
