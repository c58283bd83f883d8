//! How each argument of a function crosses between Fortran and C.
//!
//! Most follows from the C type and from the name. `abi/fortran.csv` has the rest: its rows are patterns (`*` stands
//! for any text), and the first row that matches a function and a parameter decides.

use crate::rows::{Compat, Constant, Function, HANDLES, Parameter, number};
use crate::rule::{Rule, matches};

/// Says whether a number is a logical value in languages that have such a type.
pub(crate) fn is_logical(rules: &[Rule], function: &str, parameter: &str) -> bool {
    let mut fits = rules.iter().filter(|rule| rule.fits(function, parameter));
    fits.next().is_some_and(|rule| rule.class == "logical")
}

/// What Fortran knows of an argument's direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Intent {
    /// The call reads the argument.
    In,
    /// The call writes the argument.
    Out,
    /// The call reads and writes the argument.
    Both,
}

/// How the call uses a choice buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Use {
    /// As elements of a type: the numbers of the parameters that are the count and the type.
    Typed(usize, usize),
    /// As several blocks, or as the elements of an operation: the Rust expression of the bytes that the call takes.
    Blocks(String),
    /// As contiguous memory.
    Memory,
    /// As one element of `datatype`.
    One,
    /// Only its address.
    Base,
}

/// How an argument crosses between the languages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Class {
    /// C has the argument, Fortran has not; C gets zeros.
    Omitted,
    /// A number by value in C. Holds the C type.
    Value(String),
    /// One number or an array of numbers behind a pointer in C, which has the same bytes in Fortran. Holds the C type.
    Numbers(String, Intent),
    /// The length of a string that C writes, without the NUL. No value is longer than `MPI_MAX_INFO_VAL`.
    Clipped,
    /// A LOGICAL by value in C.
    LogicalValue,
    /// A LOGICAL behind a pointer in C.
    Logical,
    /// An array of LOGICAL.
    Logicals(Intent),
    /// Three numbers for each range.
    Ranges,
    /// A position in an array, which counts from 1 in Fortran.
    Index,
    /// An array of positions; holds the name of the parameter that is their number.
    Indices(String),
    /// Weights of a graph.
    Weights(Intent),
    /// Error codes of spawned processes.
    Errcodes,
    /// A handle by value in C. Holds the Rust name of the kind.
    Handle(String),
    /// A handle behind a pointer in C.
    HandleAt(String, Intent),
    /// An array of handles; holds the Rust expression of their number.
    Handles(String, Intent, String),
    /// A status.
    Status(Intent),
    /// An array of statuses.
    Statuses,
    /// A string that C reads; true if blanks at its start do not count.
    TextIn(bool),
    /// A string that C writes; holds the Rust expression of C's room with the NUL.
    TextOut(String),
    /// The length of a string, without the NUL in Fortran.
    Length,
    /// The arguments of a program.
    Argv,
    /// The arguments of several programs.
    Argvs,
    /// An array of strings.
    Texts,
    /// The value of an attribute that C reads; true for a default INTEGER.
    AttributeIn(bool),
    /// The value of an attribute that C writes; true for a default INTEGER.
    AttributeOut(bool),
    /// The extra state of callbacks; true for a default INTEGER.
    State(bool),
    /// A callback. Holds the C name of its type.
    Callback(String),
    /// The address of memory that C returns.
    Address,
    /// The address of a buffer that is given back.
    Detached,
    /// A choice buffer; true if the call only reads it.
    Buffer(Use, bool),
}

/// One argument.
#[derive(Clone, Debug)]
pub struct Argument {
    /// The parameter in C.
    pub c: Parameter,
    /// The name in Fortran and in the generated Rust code.
    pub name: String,
    /// How it crosses.
    pub class: Class,
}

/// One routine.
#[derive(Clone, Debug)]
pub struct Routine {
    /// The name in C.
    pub name: String,
    /// The arguments of the C function.
    pub arguments: Vec<Argument>,
    /// True if the routine stands only in the module `mpi` and in `mpif.h`.
    pub only_mpi: bool,
    /// True if the routine returns before the operation is complete.
    pub nonblocking: bool,
    /// True if other ranks make the call, too, and wait for this one.
    pub together: bool,
}

impl Routine {
    /// Says whether the routine has a choice buffer.
    pub fn has_buffer(&self) -> bool {
        self.arguments.iter().any(|a| matches!(a.class, Class::Buffer(..)))
    }

    /// Says whether the routine has an argument of this name.
    pub fn has(&self, name: &str) -> bool {
        self.arguments.iter().any(|a| a.name == name)
    }

    /// Says whether the routine returns the address of memory.
    pub fn has_address(&self) -> bool {
        self.arguments.iter().any(|a| a.class == Class::Address)
    }

    /// Says whether the routine is the form with large counts.
    pub fn is_large(&self) -> bool {
        self.name.ends_with("_c")
    }
}

impl Argument {
    /// Says whether the argument is one string or several.
    pub fn is_text(&self) -> bool {
        use Class::{Argv, Argvs, TextIn, TextOut, Texts};
        matches!(self.class, TextIn(_) | TextOut(_) | Argv | Argvs | Texts)
    }
}

/// All that the generators need.
#[derive(Clone, Debug)]
pub struct Fortran {
    /// The routines.
    pub routines: Vec<Routine>,
    /// The constants.
    pub constants: Vec<Constant>,
    /// The names of constants that MPI-3.0 removed, with their values. Only `mpi` and `mpif.h` have them.
    pub removed: Vec<(String, i64)>,
}

impl Fortran {
    /// Puts the tables together.
    pub fn new(
        functions: &[Function],
        constants: &[Constant],
        compat: &[Compat],
        rules: &[Rule],
    ) -> Self {
        let (whole, parts): (Vec<&Rule>, Vec<&Rule>) =
            rules.iter().partition(|rule| ["no function", "only mpi"].contains(&&*rule.class));
        let whole = |f: &Function, class: &str| {
            whole.iter().any(|rule| rule.class == class && matches(&rule.function, &f.name))
        };
        let rule = |function: &str, parameter: &str| {
            parts.iter().find(|rule| rule.fits(function, parameter)).map(|rule| rule.class.as_str())
        };
        let routines = functions
            .iter()
            .filter(|f| f.returns == "int" && !whole(f, "no function") && !is_again(f, functions))
            .map(|f| Routine {
                name: f.name.clone(),
                arguments: (0..f.parameters.len())
                    .map(|at| argument(f, at, rule(&f.name, &f.parameters[at].name)))
                    .collect(),
                only_mpi: whole(f, "only mpi"),
                nonblocking: nonblocking(f),
                together: together(f),
            })
            .collect();
        let wanted = |row: &&Compat| {
            row.kind == "constant" && ["int", "MPI_Datatype"].contains(&&*row.declaration)
        };
        let removed = compat.iter().filter(wanted);
        let removed = removed.map(|row| (row.name.clone(), number(&row.value))).collect();
        Self { routines, constants: constants.to_vec(), removed }
    }
}

/// Says whether a form with large counts is the same as the form without (`MPI_Psend_init_c`), so that it adds nothing.
fn is_again(f: &Function, functions: &[Function]) -> bool {
    let types = |f: &Function| f.parameters.iter().map(|p| p.c_type.clone()).collect::<Vec<_>>();
    let base = f.name.strip_suffix("_c");
    functions.iter().any(|other| Some(&*other.name) == base && types(other) == types(f))
}

fn nonblocking(f: &Function) -> bool {
    f.group == "rma"
        || f.name.contains("_begin")
        || f.name.contains("_end")
        || f.name.contains("ttach")
        || f.parameters.iter().any(|p| p.c_type == "MPI_Request*" && p.name == "request")
}

/// Says whether other ranks make the call, too, and wait for this one. Only calls with a choice buffer count.
fn together(f: &Function) -> bool {
    let file = f.name.starts_with("MPI_File_");
    f.group == "coll"
        || f.name.contains("eighbor_a")
        || file && (f.name.contains("_all") || f.name.contains("_ordered"))
        || f.name.starts_with("MPI_Win_create")
}

/// Returns the Rust expression of the number of handles in an array.
fn handles(f: &Function, p: &Parameter) -> String {
    let has = |name: &str| f.parameters.iter().any(|p| p.name == name);
    if p.name.ends_with("types") && (p.name.starts_with("send") || p.name.starts_with("recv")) {
        let (send, near) = (p.name.starts_with("send"), f.name.contains("eighbor"));
        let peers = format!("crate::handle::peers(comm, {send}, {near})");
        // With `MPI_IN_PLACE`, the types to send say nothing.
        return match send && !near {
            true => format!("if crate::section::in_place(sendbuf) {{ 0 }} else {{ {peers} }}"),
            false => peers,
        };
    }
    let found = ["max_datatypes", "incount", "count"].into_iter().find(|name| has(name));
    let found = found.unwrap_or_else(|| panic!("{}: {}: no length", f.name, p.name));
    if f.name == "MPI_Comm_spawn_multiple" {
        return "crate::handle::at_root(comm, *root, *count)".to_owned();
    }
    let wide = f.parameters.iter().any(|p| p.name == found && p.c_type != "int");
    let cast = if wide { "*" } else { "i64::from(*" };
    format!("{cast}{found}{}", if wide { "" } else { ")" })
}

/// Returns which parameters are the count and the type of the buffer at `at`.
fn typed(f: &Function, at: usize) -> Option<(usize, usize)> {
    let after = f.parameters.iter().enumerate().skip(at + 1);
    let of_type = after.clone().find(|(_, p)| p.c_type == "MPI_Datatype")?.0;
    let number = |p: &Parameter| p.c_type == "int" || p.c_type == "MPI_Count";
    let counts = after.take_while(|(at, _)| *at < of_type);
    let count = counts.filter(|(_, p)| number(p) && p.name.ends_with("count")).last()?.0;
    Some((count, of_type))
}

/// Returns the Rust expression of the bytes that a call takes of a buffer of several blocks, or of an operation.
fn span(f: &Function, p: &Parameter) -> String {
    let c_type = |name: &str| f.parameters.iter().find(|p| p.name == name).map(|p| &*p.c_type);
    let has = |name: &str| c_type(name).is_some();
    let number = |name: &str| match c_type(name) {
        Some("int") => format!("i64::from(*{name})"),
        _ => format!("*{name} as i64"),
    };
    let elements = |count: &str, of: &str| format!("Span::elements({}, {of}_c)", number(count));
    let is_root = "is_root(comm_c, *root)";
    let if_root = |test: &str, span: String| match has("root") {
        true => {
            format!("if crate::span::{test} {{ {span} }} else {{ Span::none() }}")
        }
        false => span,
    };
    if p.name == "outbuf" || p.name == "inbuf" && has("insize") {
        let (room, count) = match has("insize") {
            true => (number("insize"), number("outcount")),
            false => (number("outsize"), number("incount")),
        };
        let size = match has("datarep") {
            true => format!("external_size(datarep_c.as_ptr(), {count}, datatype_c)"),
            false => format!("pack_size({count}, datatype_c, comm_c)"),
        };
        return format!("Span::packed(*position as i64, {room}, crate::span::{size})");
    }
    if has("partitions") {
        return format!("Span::parts(i64::from(*partitions), {}, datatype_c)", number("count"));
    }
    if f.name.contains("educe_scatter") {
        let size = "crate::span::size(comm_c)";
        let (all, own) = match has("recvcounts") {
            true => (
                format!("Span::sum(recvcounts, {size}, datatype_c)"),
                "Span::own(recvcounts, comm_c, datatype_c)".to_owned(),
            ),
            false => (
                format!("Span::blocks({}, {size}, datatype_c)", number("recvcount")),
                elements("recvcount", "datatype"),
            ),
        };
        return match p.name.as_str() {
            "sendbuf" => all,
            _ => format!("if crate::section::in_place(sendbuf) {{ {all} }} else {{ {own} }}"),
        };
    }
    if has("op") {
        let test = if p.name == "recvbuf" { is_root } else { "is_sender(*root)" };
        return if_root(test, elements("count", "datatype"));
    }
    let send = p.name == "sendbuf";
    let side = if send { "send" } else { "recv" };
    let (count, counts) = (format!("{side}count"), format!("{side}counts"));
    let (of, types) = (format!("{side}type"), format!("{side}types"));
    let peers = format!("crate::handle::peers(comm, {send}, {})", f.name.contains("eighbor"));
    let several = |displs: &str, number: &str, of: &str, bytes: bool| {
        format!("Span::several({counts}, {displs}, {number}, |at| {of}, {bytes})")
    };
    let displs = match (has("displs"), send) {
        (true, _) => "displs",
        (_, true) => "sdispls",
        (_, false) => "rdispls",
    };
    let span = if has(&count) {
        format!("Span::blocks({}, {peers}, {of}_c)", number(&count))
    } else if has(&types) {
        several(displs, &format!("{types}_c.len() as i64"), &format!("{types}_c[at]"), true)
    } else {
        several(displs, &peers, &format!("{of}_c"), false).replace("|at|", "|_|")
    };
    if_root(is_root, span)
}

fn argument(f: &Function, at: usize, rule: Option<&str>) -> Argument {
    let p = &f.parameters[at];
    let name = match p.name.as_str() {
        "indx" => "index",
        "..." => "rest",
        other => other,
    };
    let pointed = p.c_type.trim_end_matches('*').trim_start_matches("const ").to_owned();
    let constant = p.c_type.starts_with("const ");
    let intent = match (constant, rule) {
        (true, _) => Intent::In,
        (false, Some("inout")) => Intent::Both,
        (false, _) => Intent::Out,
    };
    let is_pointer = p.c_type.ends_with('*');
    let kind = |name: &str| name.trim_start_matches("MPI_").to_owned();
    let writes = f.name.contains("get");
    let class = match (rule, p.c_type.as_str()) {
        (Some("omitted"), _) => Class::Omitted,
        (Some("argv"), _) => Class::Argv,
        (Some("argvs"), _) => Class::Argvs,
        (Some("texts"), _) => Class::Texts,
        (Some("errcodes"), _) => Class::Errcodes,
        (Some("weights"), _) => Class::Weights(intent),
        (Some("index"), _) => Class::Index,
        (Some("indices"), _) => Class::Indices("outcount".into()),
        (Some("length"), _) => Class::Length,
        (Some("clipped"), "int") => Class::Clipped,
        (Some("trimmed"), "const char*") => Class::TextIn(true),
        (Some("attribute"), _) if writes => Class::AttributeOut(false),
        (Some("attribute"), _) => Class::AttributeIn(false),
        (Some("small attribute"), _) if writes => Class::AttributeOut(true),
        (Some("small attribute"), _) => Class::AttributeIn(true),
        (Some("state"), "void*") => Class::State(false),
        (Some("small state"), _) => Class::State(true),
        (Some("address"), _) => Class::Address,
        (Some("detached"), _) => Class::Detached,
        (Some("logical"), "int") => Class::LogicalValue,
        (Some("logical"), _) if p.array => Class::Logicals(intent),
        (Some("logical"), _) => Class::Logical,
        (_, "int(*)[3]") => Class::Ranges,
        (_, "const int") => Class::Value("int".into()),
        (_, "int" | "MPI_Aint" | "MPI_Count" | "MPI_Offset") => Class::Value(p.c_type.clone()),
        (_, handle) if HANDLES.contains(&handle) => Class::Handle(kind(handle)),
        _ if is_pointer && pointed == "void" => Class::Buffer(
            match rule {
                Some("memory") => Use::Memory,
                Some("base") => Use::Base,
                Some("one") => Use::One,
                Some("blocks") => Use::Blocks(span(f, p)),
                _ => typed(f, at).map_or(Use::Memory, |(count, of)| Use::Typed(count, of)),
            },
            constant,
        ),
        _ if is_pointer && pointed == "MPI_Status" => match p.name.as_str() {
            "array_of_statuses" => Class::Statuses,
            _ => Class::Status(intent),
        },
        _ if is_pointer && pointed == "char" => match rule {
            _ if constant => Class::TextIn(false),
            Some(rule) if rule.starts_with("text:") => Class::TextOut(rule["text:".len()..].into()),
            _ => Class::TextOut("1024".into()),
        },
        _ if is_pointer && HANDLES.contains(&pointed.as_str()) => match p.array {
            true => Class::Handles(kind(&pointed), intent, handles(f, p)),
            false => Class::HandleAt(kind(&pointed), intent),
        },
        _ if is_pointer && pointed.contains("_function") => Class::Callback(pointed),
        _ if is_pointer => Class::Numbers(pointed, intent),
        (_, other) => panic!("{}: {}: no class for {other}", f.name, p.name),
    };
    Argument { c: p.clone(), name: name.to_owned(), class }
}
