//! Generates the Fortran modules `mpi_f08` and `mpi`, and the file `runtime/fortran/include/mpif.h`.
//!
//! The modules contain constants, types and interfaces, and no code: every routine is a function of the library.

use super::class::{Argument, Class, Fortran, Intent, Routine};
use crate::rows::{Callback, Constant, HANDLES};
use std::fmt::Write;

/// Which module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `mpi_f08`.
    F08,
    /// `mpi`.
    Mpi,
}

/// The text at the beginning of each file.
const NOTICE: &str = "\
! Generated from runtime/capi/abi; do not edit. A program compiled with this file runs with libmpifort_abi.so.1.
! SPDX-License-Identifier: MIT OR Apache-2.0
";

/// The kinds of integers, and what a program may ask about the interface.
const KINDS: [(&str, i64); 8] = [
    ("MPI_ADDRESS_KIND", 8),
    ("MPI_COUNT_KIND", 8),
    ("MPI_OFFSET_KIND", 8),
    ("MPI_INTEGER_KIND", 4),
    ("MPI_STATUS_SIZE", 8),
    ("MPI_SOURCE", 1),
    ("MPI_TAG", 2),
    ("MPI_ERROR", 3),
];

/// Breaks a line after commas, so that no line is longer than 100 characters.
fn fold(line: &str) -> String {
    let indent = line.len() - line.trim_start().len();
    let (mut out, mut length) = (String::new(), 0);
    for (at, part) in line.split(", ").enumerate() {
        if at > 0 {
            out.push_str(", ");
            length += 2;
            if length + part.len() > 96 {
                out.push_str("&\n");
                out.push_str(&" ".repeat(indent + 4));
                length = indent + 4;
            }
        }
        out.push_str(part);
        length += part.len();
    }
    out
}

/// Returns the Fortran type of a C number.
fn number(c_type: &str) -> &'static str {
    match c_type {
        "MPI_Aint" => "integer(MPI_ADDRESS_KIND)",
        "MPI_Count" => "integer(MPI_COUNT_KIND)",
        "MPI_Offset" => "integer(MPI_OFFSET_KIND)",
        _ => "integer",
    }
}

/// Returns the attribute for a direction. The module `mpi` states no directions.
fn intent(form: Form, intent: Intent) -> &'static str {
    match (form, intent) {
        (Form::Mpi, _) => "",
        (_, Intent::In) => ", intent(in)",
        (_, Intent::Out) => ", intent(out)",
        (_, Intent::Both) => ", intent(inout)",
    }
}

/// Returns the type of a handle.
fn handle(form: Form, kind: &str) -> String {
    match form {
        Form::F08 => format!("type(MPI_{kind})"),
        Form::Mpi => "integer".into(),
    }
}

/// Returns the declaration of an argument, as its lines.
fn declare(argument: &Argument, routine: &Routine, form: Form) -> Vec<String> {
    let name = &argument.name;
    let stars = if argument.c.array { "(*)" } else { "" };
    let unknown = |dimension: &str| {
        vec![
            format!("!GCC$ ATTRIBUTES NO_ARG_CHECK :: {name}"),
            format!("!DIR$ IGNORE_TKR {name}"),
            format!("type(*), dimension({dimension}) :: {name}"),
        ]
    };
    let (read, wrote) = (intent(form, Intent::In), intent(form, Intent::Out));
    let small = |small: bool| if small { "integer" } else { "integer(MPI_ADDRESS_KIND)" };
    let f08 = form == Form::F08;
    vec![match &argument.class {
        Class::Omitted => return Vec::new(),
        Class::Clipped => format!("integer{read} :: {name}"),
        Class::Value(c_type) => format!("{}{read} :: {name}", number(c_type)),
        Class::Numbers(c_type, to) => {
            format!("{}{} :: {name}{stars}", number(c_type), intent(form, *to))
        }
        Class::LogicalValue => format!("logical{read} :: {name}"),
        Class::Logical => format!("logical{wrote} :: {name}"),
        Class::Logicals(to) => format!("logical{} :: {name}(*)", intent(form, *to)),
        Class::Ranges => format!("integer{read} :: {name}(3,*)"),
        Class::Index => format!("integer{wrote} :: {name}"),
        Class::Indices(_) => format!("integer{wrote} :: {name}(*)"),
        Class::Weights(Intent::In) => format!("integer{read} :: {name}(*)"),
        Class::Weights(_) | Class::Errcodes => format!("integer :: {name}(*)"),
        Class::Handle(kind) => format!("{}{read} :: {name}", handle(form, kind)),
        Class::HandleAt(kind, to) => {
            format!("{}{} :: {name}", handle(form, kind), intent(form, *to))
        }
        Class::Handles(kind, to, _) => {
            format!("{}{} :: {name}(*)", handle(form, kind), intent(form, *to))
        }
        Class::Status(to) if f08 && *to == Intent::Out => format!("type(MPI_Status) :: {name}"),
        Class::Status(to) if f08 => format!("type(MPI_Status){} :: {name}", intent(form, *to)),
        Class::Status(_) => format!("integer :: {name}(MPI_STATUS_SIZE)"),
        Class::Statuses if f08 => format!("type(MPI_Status) :: {name}(*)"),
        Class::Statuses => format!("integer :: {name}(MPI_STATUS_SIZE,*)"),
        Class::TextIn(_) => format!("character(len=*){read} :: {name}"),
        Class::TextOut(_) => format!("character(len=*){wrote} :: {name}"),
        Class::Length => format!("integer{} :: {name}", intent(form, Intent::Both)),
        Class::Argv | Class::Texts => format!("character(len=*){read} :: {name}(*)"),
        Class::Argvs => format!("character(len=*){read} :: {name}(count,*)"),
        Class::AttributeIn(narrow) => format!("{}{read} :: {name}", small(*narrow)),
        Class::AttributeOut(narrow) => format!("{}{wrote} :: {name}", small(*narrow)),
        Class::State(narrow) => format!("{}{read} :: {name}", small(*narrow)),
        Class::Callback(kind) if f08 => format!("procedure({kind}) :: {name}"),
        Class::Callback(_) => format!("external :: {name}"),
        Class::Address | Class::Detached if f08 => format!("type(C_PTR){wrote} :: {name}"),
        Class::Address => format!("integer(MPI_ADDRESS_KIND) :: {name}"),
        Class::Detached => return unknown("*"),
        Class::Buffer(_, constant) if f08 => {
            let direction = if *constant { ", intent(in)" } else { "" };
            let later = if routine.nonblocking { ", asynchronous" } else { "" };
            format!("type(*), dimension(..){direction}{later} :: {name}")
        }
        Class::Buffer(..) => return unknown("*"),
    }]
}

/// Appends the interface of one routine to `out`. `specific` is its name; `symbol` the name for the linker, if it does
/// not follow from the name.
fn body(out: &mut String, routine: &Routine, form: Form, specific: &str, symbol: Option<&str>) {
    let there = |a: &&Argument| a.class != Class::Omitted;
    let mut names: Vec<&str> =
        routine.arguments.iter().filter(there).map(|a| a.name.as_str()).collect();
    names.push("ierror");
    let bound = symbol.map_or(String::new(), |symbol| format!(" bind(C, name=\"{symbol}\")"));
    let line = format!("    subroutine {specific}({}){bound}", names.join(", "));
    let _ = writeln!(out, "{}\n      import\n      implicit none", fold(&line));
    for argument in &routine.arguments {
        for line in declare(argument, routine, form) {
            let _ = writeln!(out, "      {line}");
        }
    }
    let _ = match form {
        Form::F08 => writeln!(out, "      integer, optional, intent(out) :: ierror"),
        Form::Mpi => writeln!(out, "      integer :: ierror"),
    };
    let _ = writeln!(out, "    end subroutine");
}

/// Says whether Fortran cannot tell two routines apart by the types of their arguments.
fn ambiguous(one: &Routine, other: &Routine) -> bool {
    let kinds = |routine: &Routine| -> Vec<String> {
        let kind = |a: &Argument| match &a.class {
            Class::Callback(_) => "procedure".to_owned(),
            _ => declare(a, routine, Form::F08)
                .concat()
                .replace("MPI_ADDRESS_KIND", "MPI_COUNT_KIND"),
        };
        routine.arguments.iter().map(kind).collect()
    };
    kinds(one) == kinds(other)
}

fn interfaces(out: &mut String, fortran: &Fortran, form: Form) {
    let find = |name: &str| fortran.routines.iter().find(|r| r.name == name);
    let wanted = |r: &&Routine| !r.is_large() && (form == Form::Mpi || !r.only_mpi);
    for routine in fortran.routines.iter().filter(wanted) {
        for prefix in ["", "P"] {
            let name = format!("{prefix}{}", routine.name);
            if form == Form::Mpi {
                mpi_interface(out, routine, &name);
                continue;
            }
            let large = find(&format!("{}_c", routine.name));
            let apart = large.filter(|large| !ambiguous(routine, large));
            let _ = writeln!(out, "  interface {name}");
            for one in std::iter::once(routine).chain(apart) {
                f08_body(out, one, prefix);
            }
            let _ = writeln!(out, "  end interface");
            // Callbacks cannot tell routines apart, so these have a name of their own.
            let callback = |a: &Argument| matches!(a.class, Class::Callback(_));
            if let Some(large) =
                large.filter(|l| apart.is_none() && l.arguments.iter().any(callback))
            {
                let _ = writeln!(out, "  interface {name}_c");
                f08_body(out, large, prefix);
                let _ = writeln!(out, "  end interface");
            }
        }
    }
}

fn f08_body(out: &mut String, routine: &Routine, prefix: &str) {
    let name = format!("{prefix}{}", routine.name);
    if routine.has_buffer() {
        let symbol = format!("{}_f08ts_", name.to_lowercase());
        body(out, routine, Form::F08, &format!("{name}_f08ts"), Some(&symbol));
    } else {
        body(out, routine, Form::F08, &format!("{name}_f08"), None);
    }
}

/// Appends the interface of a routine of the module `mpi`. A routine that returns the address of memory can also return
/// it as a `TYPE(C_PTR)`.
fn mpi_interface(out: &mut String, routine: &Routine, name: &str) {
    let address = routine.arguments.iter().position(|a| a.class == Class::Address);
    let _ = match address {
        None => writeln!(out, "  interface"),
        Some(_) => writeln!(out, "  interface {name}"),
    };
    body(out, routine, Form::Mpi, name, None);
    if let Some(at) = address {
        let mut text = String::new();
        body(&mut text, routine, Form::Mpi, &format!("{name}_cptr"), None);
        let place = &routine.arguments[at].name;
        let integer = format!("integer(MPI_ADDRESS_KIND) :: {place}\n");
        out.push_str(&text.replace(&integer, &format!("type(C_PTR), intent(out) :: {place}\n")));
    }
    let _ = writeln!(out, "  end interface");
}

/// Returns the constants with their Fortran values; the kind of a handle is the third part.
fn constants(fortran: &Fortran, form: Form) -> Vec<(String, i64, Option<String>)> {
    let mut list: Vec<(String, i64, Option<String>)> =
        KINDS.iter().map(|(name, value)| ((*name).to_owned(), *value, None)).collect();
    for Constant { name, kind, value, .. } in &fortran.constants {
        let (class, of) = kind.split_once(':').unwrap_or((kind, ""));
        let (value, of) = match class {
            _ if name.starts_with("MPI_T_") => continue,
            "pointer" | "callback" | "fortran-status" => continue,
            "handle" => (*value, Some(of.trim_start_matches("MPI_").to_owned())),
            "datatype" | "alias" => (*value, Some("Datatype".to_owned())),
            // A Fortran string has no NUL.
            "string-max" => (*value - 1, None),
            _ => (*value, None),
        };
        list.push((name.clone(), value, of));
    }
    if form == Form::Mpi {
        list.extend(fortran.removed.iter().map(|(name, value)| (name.clone(), *value, None)));
    }
    list
}

/// The names that are compared by their addresses: the declarations, and the COMMON blocks that hold them. Without an
/// interface, as with `mpif.h`, flang lets no program pass an ASYNCHRONOUS variable.
fn sentinels(form: Form) -> String {
    let (status, statuses) = match form {
        Form::F08 => (
            "type(MPI_Status) :: MPI_STATUS_IGNORE",
            "type(MPI_Status) :: MPI_STATUSES_IGNORE(1)\n  asynchronous :: MPI_BOTTOM",
        ),
        Form::Mpi => (
            "integer :: MPI_STATUS_IGNORE(MPI_STATUS_SIZE)",
            "integer :: MPI_STATUSES_IGNORE(MPI_STATUS_SIZE,1)",
        ),
    };
    format!(
        "\
  integer :: MPI_BOTTOM, MPI_IN_PLACE, MPI_BUFFER_AUTOMATIC
  integer :: MPI_UNWEIGHTED(1), MPI_WEIGHTS_EMPTY(1), MPI_ERRCODES_IGNORE(1)
  {status}
  {statuses}
  character(len=1) :: MPI_ARGV_NULL(1), MPI_ARGVS_NULL(1,1)
  common /MPIPRIV1/ MPI_BOTTOM, MPI_IN_PLACE, MPI_STATUS_IGNORE
  common /MPIPRIV2/ MPI_STATUSES_IGNORE, MPI_ERRCODES_IGNORE
  common /MPIPRIVC/ MPI_ARGVS_NULL, MPI_ARGV_NULL
  common /MPIFCMB5/ MPI_UNWEIGHTED
  common /MPIFCMB9/ MPI_WEIGHTS_EMPTY
  common /MPIFCMBA/ MPI_BUFFER_AUTOMATIC
  save /MPIPRIV1/, /MPIPRIV2/, /MPIPRIVC/, /MPIFCMB5/, /MPIFCMB9/, /MPIFCMBA/
"
    )
}

/// Returns the interfaces of callbacks, which exist only in `mpi_f08`.
fn abstract_interfaces(callbacks: &[Callback]) -> String {
    let mut out = String::from("  abstract interface\n");
    let old = ["MPI_Copy_function", "MPI_Delete_function"];
    let wanted = |c: &&Callback| {
        c.returns != "alias" && !c.name.starts_with("MPI_T_") && !old.contains(&c.name.as_str())
    };
    for callback in callbacks.iter().filter(wanted) {
        let parameters = callback.parameters.split(',').map(str::trim).filter(|p| *p != "...");
        let (mut names, mut lines) = (Vec::new(), String::new());
        for parameter in parameters {
            let (kind, name) = parameter.rsplit_once(' ').unwrap_or(("", parameter));
            let name = name.trim_start_matches('*');
            let declared = match (kind, name) {
                ("void", "invec" | "inoutvec" | "userbuf" | "filebuf") => {
                    "type(C_PTR), value".into()
                }
                ("void", _) => "integer(MPI_ADDRESS_KIND)".into(),
                (_, "flag" | "complete") => "logical".into(),
                (kind, _) if HANDLES.contains(&kind) || kind == "MPI_Status" => {
                    format!("type({kind})")
                }
                (kind, _) => number(kind).to_owned(),
            };
            names.push(name.to_owned());
            let _ = writeln!(lines, "      {declared} :: {name}");
        }
        if callback.returns == "int" {
            names.push("ierror".into());
            lines.push_str("      integer :: ierror\n");
        }
        let line = format!("    subroutine {}({})", callback.name, names.join(", "));
        let _ = write!(
            out,
            "{}\n      import\n      implicit none\n{lines}    end subroutine\n",
            fold(&line)
        );
    }
    out.push_str("  end interface\n");
    out
}

/// Returns the predefined callbacks as pairs of a name and the C name of its type.
fn predefined(fortran: &Fortran, form: Form) -> Vec<(String, String)> {
    let row = |c: &Constant| {
        let kind = c.kind.strip_prefix("callback:")?.trim_end_matches('*');
        let old = matches!(kind, "MPI_Copy_function" | "MPI_Delete_function");
        let large = kind.ends_with("_c");
        let wanted = if form == Form::F08 { !old } else { !large };
        wanted.then(|| (c.name.clone(), kind.to_owned()))
    };
    fortran.constants.iter().filter_map(row).collect()
}

/// The functions that return a value.
fn functions(prefix: &str) -> String {
    let mut out = String::from("  interface\n");
    for name in ["Wtime", "Wtick"] {
        let _ =
            writeln!(out, "    double precision function {prefix}MPI_{name}()\n    end function");
    }
    for (name, one, other) in [("add", "base", "disp"), ("diff", "addr1", "addr2")] {
        let _ = writeln!(
            out,
            "    function {prefix}MPI_Aint_{name}({one}, {other}) result(address)\n      import\n      \
             integer(MPI_ADDRESS_KIND), intent(in) :: {one}, {other}\n      \
             integer(MPI_ADDRESS_KIND) :: address\n    end function"
        );
    }
    let _ = writeln!(
        out,
        "    subroutine {prefix}MPI_Sizeof(x, size, ierror) bind(C, name=\"mpi_sizeof_f08ts_\")\n      import\n      \
         type(*), dimension(..) :: x\n      integer, intent(out) :: size\n      \
         integer, optional, intent(out) :: ierror\n    end subroutine\n  end interface"
    );
    out
}

/// The comparison of handles, and the conversions of statuses.
fn operators() -> String {
    let mut out = String::new();
    for (operator, name) in [("==", "eq"), ("/=", "ne")] {
        let _ = writeln!(out, "  interface operator({operator})");
        for kind in HANDLES {
            let _ = writeln!(
                out,
                "    pure function {kind}_f08_{name}(a, b) result(answer)\n      import\n      \
                 type({kind}), intent(in) :: a, b\n      logical :: answer\n    end function"
            );
        }
        let _ = writeln!(out, "  end interface");
    }
    out.push_str("  interface\n");
    for prefix in ["", "P"] {
        for (name, from, to) in
            [("f2f08", "f_status", "f08_status"), ("f082f", "f08_status", "f_status")]
        {
            let declare = |name: &str, direction: &str| match name {
                "f_status" => format!("integer, intent({direction}) :: f_status(MPI_STATUS_SIZE)"),
                _ => format!("type(MPI_Status), intent({direction}) :: f08_status"),
            };
            let _ = writeln!(
                out,
                "    subroutine {prefix}MPI_Status_{name}({from}, {to}, ierror)\n      import\n      {}\n      {}\n      \
                 integer, optional, intent(out) :: ierror\n    end subroutine",
                declare(from, "in"),
                declare(to, "out")
            );
        }
    }
    out.push_str("  end interface\n");
    out
}

/// Returns the source of a module.
pub fn module(fortran: &Fortran, callbacks: &[Callback], form: Form) -> String {
    let f08 = form == Form::F08;
    let mut out = NOTICE.to_owned();
    let name = if f08 { "mpi_f08" } else { "mpi" };
    let _ = writeln!(
        out,
        "module {name}\n  use, intrinsic :: iso_c_binding, only : C_PTR\n  implicit none\n  private :: C_PTR"
    );
    if f08 {
        for kind in HANDLES {
            let _ = writeln!(out, "  type, bind(C) :: {kind}\n    integer :: MPI_VAL\n  end type");
        }
        out.push_str(
            "  type, bind(C) :: MPI_Status\n    integer :: MPI_SOURCE, MPI_TAG, MPI_ERROR\n    \
             integer, private :: MPI_internal(5)\n  end type\n",
        );
    }
    for (name, value, of) in constants(fortran, form) {
        let _ = match of {
            Some(kind) if f08 => {
                writeln!(out, "  type(MPI_{kind}), parameter :: {name} = MPI_{kind}({value})")
            }
            _ if name == "MPI_DISPLACEMENT_CURRENT" => {
                writeln!(out, "  integer(MPI_OFFSET_KIND), parameter :: {name} = {value}")
            }
            _ => writeln!(out, "  integer, parameter :: {name} = {value}"),
        };
    }
    for name in ["MPI_SUBARRAYS_SUPPORTED", "MPI_ASYNC_PROTECTS_NONBLOCKING"] {
        let _ = writeln!(out, "  logical, parameter :: {name} = .{f08}.");
    }
    out.push_str(&sentinels(form));
    if f08 {
        out.push_str(&abstract_interfaces(callbacks));
    }
    for (name, kind) in predefined(fortran, form) {
        let _ = match form {
            Form::F08 => writeln!(out, "  procedure({kind}) :: {name}"),
            Form::Mpi => writeln!(out, "  external :: {name}"),
        };
    }
    interfaces(&mut out, fortran, form);
    for prefix in ["", "P"] {
        out.push_str(&functions(prefix));
    }
    if f08 {
        out.push_str(&operators());
    }
    let _ = writeln!(out, "end module {name}");
    out
}

/// Returns the text of `mpif.h`. Each line is valid in fixed and in free source form.
pub fn include_file(fortran: &Fortran) -> String {
    let mut out = NOTICE.replace(". A program", ".\n! A program");
    for (name, value, _) in constants(fortran, Form::Mpi) {
        let kind = if name == "MPI_DISPLACEMENT_CURRENT" {
            "INTEGER(KIND=MPI_OFFSET_KIND)"
        } else {
            "INTEGER"
        };
        let _ = writeln!(out, "      {kind} {name}\n      PARAMETER ({name}={value})");
    }
    for name in ["MPI_SUBARRAYS_SUPPORTED", "MPI_ASYNC_PROTECTS_NONBLOCKING"] {
        let _ = writeln!(out, "      LOGICAL {name}\n      PARAMETER ({name}=.FALSE.)");
    }
    for line in sentinels(Form::Mpi).lines() {
        for line in short(line.trim()) {
            let _ = writeln!(out, "      {line}");
        }
    }
    for (name, _) in predefined(fortran, Form::Mpi) {
        let _ = writeln!(out, "      EXTERNAL {name}");
    }
    for prefix in ["", "P"] {
        for name in ["WTIME", "WTICK"] {
            let _ = writeln!(
                out,
                "      DOUBLE PRECISION {prefix}MPI_{name}\n      EXTERNAL {prefix}MPI_{name}"
            );
        }
        for name in ["ADD", "DIFF"] {
            let _ = writeln!(
                out,
                "      INTEGER(KIND=MPI_ADDRESS_KIND) {prefix}MPI_AINT_{name}\n      EXTERNAL {prefix}MPI_AINT_{name}"
            );
        }
    }
    out
}

/// Splits a declaration that does not fit into the columns 7 to 72 of the fixed source form.
fn short(line: &str) -> Vec<String> {
    let (kind, names) = line.split_once(" :: ").unwrap_or((line, ""));
    if line.len() <= 66 {
        return vec![line.to_owned()];
    }
    if let Some(blocks) = line.strip_prefix("save ") {
        return blocks.split(", ").map(|block| format!("save {block}")).collect();
    }
    names.split(", ").map(|name| format!("{kind} :: {name}")).collect()
}
