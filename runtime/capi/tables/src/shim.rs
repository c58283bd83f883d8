//! Generates the C source of a shim (`runtime/interpose/shim`). A shim stands between the *host*, which is an MPI
//! library without the ABI, and the *core*, which is the library that `wrappers.rs` describes.
//!
//! For each function of the table (`Wrapped`), the source contains the function `host_MPI_X`. It has the types of the
//! ABI, and the core calls it in place of the host's function. If the core takes the function over, the source also
//! contains a function with the host's types under the function's own name, which calls the core, and one under the name
//! that begins with `PMPI_`. If the core takes over only the first name, the second function calls the core only for the
//! host's Fortran routines.
//! `interpose/shim/prelude.c` contains the conversions that both functions use. A macro `HOST_HAS_X` says that the
//! host's `mpi.h` has the name `X`.

use super::rows::{Constant, Function, HANDLES, Parameter};
use super::wrappers::{When, Wrapped};
use std::fmt::Write;

/// The generated source.
#[derive(Clone, Debug)]
pub struct Shim {
    /// The constants of the ABI and their pairs in the host.
    pub constants: String,
    /// The functions, and the table of predefined handles.
    pub functions: String,
}

/// The handles that are converted, and their kinds in `prelude.c`. The core only passes all others on.
const KINDS: [(&str, &str); 6] = [
    ("MPI_Comm", "COMM"),
    ("MPI_Datatype", "TYPE"),
    ("MPI_Op", "OP"),
    ("MPI_Request", "REQUEST"),
    ("MPI_Message", "MESSAGE"),
    ("MPI_Group", "GROUP"),
];

/// The Rust function of the rows that a shim knows among those of `When::Before`.
const MEET: &str = "lifecycle::meet";

/// The functions that stand in `prelude.c`, because no rule gives their conversion.
const WRITTEN: [&str; 12] = [
    "MPI_Abi_get_version",
    "MPI_Error_class",
    "MPI_Comm_call_errhandler",
    "MPI_Comm_create_keyval",
    "MPI_Type_create_keyval",
    "MPI_Topo_test",
    "MPI_Cart_shift",
    "MPI_Type_size_c",
    "MPI_Type_get_extent_c",
    "MPI_Type_get_true_extent_c",
    "MPI_Type_get_envelope_c",
    "MPI_Type_get_contents_c",
];

/// How an argument is converted.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Form {
    /// Not at all.
    Same,
    /// A handle, with its kind.
    Handle(&'static str),
    /// The address of a handle that the call may read and write.
    Address(&'static str),
    /// An array of requests; true if the call may write them.
    Requests(bool),
    /// An array of types: 0 for those that are sent, 1 for those that are received.
    Types(usize),
    /// The address of a status; true if the call may write the status.
    Status(bool),
    /// An array of statuses.
    Statuses,
    /// A buffer.
    Memory,
    /// A rank.
    Rank,
    /// A tag.
    Tag,
}

fn kind(name: &str) -> Option<&'static str> {
    KINDS.iter().find(|(handle, _)| *handle == name).map(|(_, kind)| *kind)
}

fn form(parameter: &Parameter) -> Form {
    let Parameter { name, c_type, array, .. } = parameter;
    if let Some(kind) = kind(c_type) {
        return Form::Handle(kind);
    }
    let pointed = c_type.strip_suffix('*').unwrap_or("");
    let (is_const, target) = match pointed.strip_prefix("const ") {
        Some(target) => (true, target),
        None => (false, pointed),
    };
    match (target, name.as_str()) {
        ("MPI_Status", "array_of_statuses") => Form::Statuses,
        ("MPI_Status", _) => Form::Status(!is_const),
        ("MPI_Request", _) if *array => Form::Requests(!is_const),
        ("MPI_Datatype", "sendtypes") => Form::Types(0),
        ("MPI_Datatype", "recvtypes") => Form::Types(1),
        ("void", "buf" | "sendbuf" | "recvbuf" | "inbuf" | "outbuf" | "buffer") => Form::Memory,
        _ if kind(target).is_some() && !*array => Form::Address(kind(target).unwrap_or_default()),
        _ => match (c_type.as_str(), name.as_str()) {
            ("int", "dest" | "source" | "root") => Form::Rank,
            ("int", "tag" | "sendtag" | "recvtag") => Form::Tag,
            _ => Form::Same,
        },
    }
}

/// One function of the host.
struct Call<'a> {
    function: &'a Function,
    /// The name, its parameters with the host's types and with those of the ABI, and its arguments.
    name: &'a str,
    host: String,
    abi: String,
    arguments: String,
}

/// Returns the C declaration of a parameter with the types of the ABI, or of the host. A handle is passed as a number
/// in both cases.
fn declared(parameter: &Parameter, is_abi: bool) -> String {
    let Parameter { name, c_type, .. } = parameter;
    let mut c_type = c_type.clone();
    if HANDLES.contains(&c_type.as_str()) {
        c_type = "handle".into();
    } else if is_abi {
        for handle in HANDLES {
            c_type = c_type.replace(&format!("{handle}*"), "handle*");
        }
        c_type = c_type.replace("MPI_Status*", "struct status*");
    }
    format!("{c_type} {name}")
}

impl<'a> Call<'a> {
    fn new(function: &'a Function) -> Self {
        let list = |each: &dyn Fn(&Parameter) -> String| {
            function.parameters.iter().map(each).collect::<Vec<_>>().join(", ")
        };
        let or_void = |text: String| if text.is_empty() { "void".to_owned() } else { text };
        Self {
            function,
            name: &function.name,
            host: or_void(list(&|p| declared(p, false))),
            abi: or_void(list(&|p| declared(p, true))),
            arguments: list(&|p| p.name.clone()),
        }
    }

    /// Returns the statements of a call with converted arguments. `to` is the side that is called (`host` or `abi`),
    /// and `target` is the called function.
    fn converted(&self, target: &str, to: &str) -> String {
        let (mut before, mut arguments, mut after, mut heap) =
            (String::new(), Vec::new(), String::new(), String::new());
        let is_host = to == "host";
        let back = if is_host { "abi" } else { "host" };
        let count = if self.function.parameters.iter().any(|p| p.name == "incount") {
            "length(incount)"
        } else {
            "length(count)"
        };
        let no_memory = if is_host { "ABI_ERR_NO_MEM" } else { "MPI_ERR_NO_MEM" };
        for parameter in &self.function.parameters {
            let name = &parameter.name;
            let mut pass = format!("as_{name}");
            // Declares the converted array `$pass`, which may be on the heap.
            let mut array = |c_type: &str, made: String| {
                let _ = writeln!(before, "    struct room room_{name} = {{0}};");
                let _ = writeln!(before, "    {c_type} *{pass} = {made};");
                heap.push_str(&format!("    free(room_{name}.heap);\n"));
            };
            match form(parameter) {
                Form::Same => pass = name.clone(),
                Form::Memory => pass = format!("{to}_memory({name})"),
                Form::Rank => pass = format!("{to}_rank({name})"),
                Form::Tag => pass = format!("{to}_tag({name})"),
                Form::Handle(kind) => {
                    let c_type = &parameter.c_type;
                    let value =
                        if is_host { name.clone() } else { format!("(handle)({c_type}){name}") };
                    pass = format!("to_{to}({kind}, {value})");
                }
                Form::Address(kind) => {
                    let c_type = parameter.c_type.trim_end_matches('*');
                    let (to_type, from_type) =
                        if is_host { (c_type, "handle") } else { ("handle", c_type) };
                    let _ = writeln!(
                        before,
                        "    {to_type} {pass} = {name} ? ({to_type})to_{to}({kind}, (handle)*{name}) : ({to_type})0;"
                    );
                    let _ = writeln!(
                        after,
                        "    if ({name}) *{name} = ({from_type})to_{back}({kind}, (handle){pass});"
                    );
                    pass = format!("{name} ? &{pass} : NULL");
                }
                Form::Requests(writes) => {
                    let c_type = if is_host { "MPI_Request" } else { "handle" };
                    array(
                        c_type,
                        format!("{name} ? {to}_requests(&room_{name}, {count}, {name}) : NULL"),
                    );
                    let _ = writeln!(before, "    if ({name} && !{pass}) return {no_memory};");
                    if writes {
                        let function = if is_host { "abi_requests_back" } else { "requests_back" };
                        let _ =
                            writeln!(after, "    if ({name}) {function}({count}, {pass}, {name});");
                    }
                }
                Form::Status(writes) => {
                    let c_type = if is_host { "MPI_Status" } else { "struct status" };
                    let (ignored, own) = if is_host {
                        ("NULL", "MPI_STATUS_IGNORE")
                    } else {
                        ("MPI_STATUS_IGNORE", "NULL")
                    };
                    let _ = writeln!(
                        before,
                        "    {c_type} {pass}, was_{name};\n    if ({name} != {ignored}) {to}_status({name}, &{pass}), was_{name} = {pass};"
                    );
                    if writes {
                        let _ = writeln!(
                            after,
                            "    if ({name} != {ignored}) {back}_changed(&{pass}, &was_{name}, {name});"
                        );
                    }
                    pass = format!("{name} != {ignored} ? &{pass} : {own}");
                }
                Form::Statuses => {
                    let c_type = if is_host { "MPI_Status" } else { "struct status" };
                    let (ignored, own) = if is_host {
                        ("NULL", "MPI_STATUSES_IGNORE")
                    } else {
                        ("MPI_STATUSES_IGNORE", "NULL")
                    };
                    array(
                        c_type,
                        format!(
                            "{name} != {ignored} ? {to}_statuses(&room_{name}, {count}, {name}) : {own}"
                        ),
                    );
                    let _ = writeln!(
                        after,
                        "    for (size_t i = 0; {name} != {ignored} && i < {count}; i++)\n        \
                         {back}_changed(&{pass}[i], &{pass}[{count} + i], &{name}[i]);"
                    );
                    let _ = writeln!(
                        before,
                        "    if ({name} != {ignored} && !{pass}) return {no_memory};"
                    );
                }
                Form::Types(which) => {
                    let neighbour = u8::from(self.name.contains("eighbor"));
                    let place = if is_host { "(void *)ABI_IN_PLACE" } else { "MPI_IN_PLACE" };
                    let comm = if is_host { "to_host(COMM, comm)" } else { "comm" };
                    let unused =
                        if which == 0 { format!("sendbuf == {place}") } else { "0".into() };
                    let n = format!("blocks({comm}, {neighbour}, {which})");
                    if is_host {
                        let _ = writeln!(
                            before,
                            "    const MPI_Datatype *{pass} = {unused} ? NULL : host_types({n}, {name});"
                        );
                    } else {
                        array(
                            "handle",
                            format!(
                                "{unused} ? NULL : abi_types(&room_{name}, {which}, {n}, {name})"
                            ),
                        );
                        let _ = writeln!(after, "    passed[{which}].abi = NULL;");
                    }
                }
            }
            arguments.push(pass);
        }
        format!(
            "{before}    int code = {target}({});\n{after}{heap}    return {back}_code(code);\n",
            arguments.join(", ")
        )
    }

    /// Returns the function of the host with the types of the ABI, under both names.
    fn for_the_core(&self) -> String {
        let Self { name, host, abi, arguments, .. } = self;
        let rest = if arguments.is_empty() { String::new() } else { format!(", {arguments}") };
        let parameters = if arguments.is_empty() { String::new() } else { format!(", {abi}") };
        format!(
            "typedef int (*type_{name})({host});\nstatic type_{name} real_{name}, real_P{name};\n\
             static int call_{name}(type_{name} real{parameters})\n{{\n    if (!real) return absent();\n{}}}\n\
             static int host_{name}({abi}) {{ return call_{name}(real_{name}{rest}); }}\n\
             static int host_P{name}({abi}) {{ return call_{name}(real_P{name}{rest}); }}\n",
            self.converted("real", "host")
        )
    }

    /// Returns the function that the program calls by `prefix` and the function's name.
    /// With `fortran`, only calls of the host's Fortran routines go to the core.
    fn for_the_program(&self, prefix: &str, when: When, fortran: bool) -> String {
        let Self { name, host, abi, arguments, .. } = self;
        let real = format!("real_{prefix}{name}");
        let mut out = format!(
            "int shim_{prefix}{name}({host}) __asm__(\"{prefix}{name}\");\n\
             int shim_{prefix}{name}({host})\n{{\n    prepare();\n    if (!{real}) return missing(\"{prefix}{name}\");\n"
        );
        if when == When::Before {
            let _ = write!(
                out,
                "    if (is_active() && core_meet) core_meet();\n    return {real}({arguments});\n}}\n"
            );
            return out;
        }
        let unused = match (when, *name) {
            (When::Always, "MPI_Init" | "MPI_Init_thread") => "!attached()",
            (When::Always, _) => "!is_attached",
            _ => "!is_active()",
        };
        let target = format!("core_{prefix}{name}");
        let _ = write!(
            out,
            "    if ({unused} || !{target}{}) return {real}({arguments});\n{}}}\n",
            if fortran { " || !is_fortran(__builtin_return_address(0))" } else { "" },
            self.converted(&target, "abi")
        );
        format!("static int (*{target})({abi});\n{out}")
    }

    /// Returns the form with large counts of a host that has only the form without.
    fn narrowed(&self, small: &Call<'_>) -> String {
        let Self { name, abi, .. } = self;
        let (mut checks, mut arguments, mut before, mut after) =
            (String::new(), Vec::new(), String::new(), String::new());
        for (wide, narrow) in self.function.parameters.iter().zip(&small.function.parameters) {
            let name = &wide.name;
            if wide.c_type == narrow.c_type {
                arguments.push(name.clone());
            } else if (wide.c_type.as_str(), narrow.c_type.as_str()) == ("MPI_Count", "int") {
                let _ = writeln!(checks, "    if ({name} > INT_MAX) return ABI_ERR_COUNT;");
                arguments.push(format!("(int){name}"));
            } else if (wide.c_type.as_str(), narrow.c_type.as_str()) == ("MPI_Count", "MPI_Aint") {
                arguments.push(format!("(MPI_Aint){name}"));
            } else if wide.c_type == "MPI_Count*" {
                let kind = narrow.c_type.trim_end_matches('*');
                if kind == "int" {
                    let _ = writeln!(checks, "    if (*{name} > INT_MAX) return ABI_ERR_COUNT;");
                }
                let _ = writeln!(before, "    {kind} narrow_{name} = ({kind})*{name};");
                let _ = writeln!(after, "    *{name} = narrow_{name};");
                arguments.push(format!("&narrow_{name}"));
            } else {
                // The program cannot call such a function of this host, so the core does not either.
                return format!(
                    "#define host_{name} absent\n#define host_P{name} absent\n",
                    name = self.name
                );
            }
        }
        let arguments = arguments.join(", ");
        ["", "P"]
            .map(|prefix| {
                format!(
                    "static int host_{prefix}{name}({abi})\n{{\n{checks}{before}    \
                     int code = host_{prefix}{}({arguments});\n{after}    return code;\n}}\n",
                    small.name
                )
            })
            .concat()
    }
}

/// Returns the source of the functions in `list`.
///
/// # Panics
/// Panics if the list names a function that `functions` does not have.
pub fn shim(functions: &[Function], list: &[Wrapped], constants: &[Constant]) -> Shim {
    let find = |name: &str| {
        let found = functions.iter().find(|f| f.name == name);
        found.unwrap_or_else(|| panic!("functions.csv does not have {name}"))
    };
    let mut out = String::from("#ifndef TYPEPACK_TABLE\n");
    out.push_str(
        "static int is_attached;\nstatic int attached(void);\nstatic void prepare(void);\nstatic int missing(const char *name);\n\n",
    );
    let mut entries = String::from("static const struct symbol symbols[] = {\n");
    let mut done: Vec<String> = Vec::new();
    for row in list {
        let base = find(&row.name);
        // Before a function of the host, a shim can only call `typepack_interpose_meet`. The program's calls of other
        // such functions go to the host, and the core does not call them.
        if row.when == When::Before && row.path != MEET {
            let name = &row.name;
            let _ = write!(
                entries,
                "    {{\"{name}\", (void *)absent, NULL, NULL}},\n    {{\"P{name}\", (void *)absent, NULL, NULL}},\n"
            );
            continue;
        }
        let large =
            (row.when != When::Called && base.has_large).then(|| find(&format!("{}_c", row.name)));
        for function in std::iter::once(base).chain(large) {
            let name = &function.name;
            if WRITTEN.contains(&name.as_str()) || name == "MPI_Get_count_c" {
                let _ = writeln!(entries, "    {{\"P{name}\", (void *)host_P{name}, NULL, NULL}},");
                continue;
            }
            // A function can have two rows: one that takes it over, and one because the core calls it.
            if done.contains(name) {
                continue;
            }
            done.push(name.clone());
            let call = Call::new(function);
            let small = name.strip_suffix("_c").map(|small| Call::new(find(small)));
            let _ = writeln!(out, "#ifdef HOST_HAS_{name}");
            if row.when == When::Before {
                let Call { host, .. } = &call;
                let _ = writeln!(
                    out,
                    "typedef int (*type_{name})({host});\nstatic type_{name} real_{name}, real_P{name};\n\
                     #define host_{name} absent\n#define host_P{name} absent"
                );
            } else {
                out.push_str(&call.for_the_core());
            }
            if row.when != When::Called {
                out.push_str(&call.for_the_program("", row.when, false));
                out.push_str(&call.for_the_program("P", row.when, !row.both));
            }
            out.push_str("#else\n");
            match &small {
                Some(small) => {
                    let _ = writeln!(out, "#ifdef HOST_HAS_{}", small.name);
                    // A function that is only called has a row, but its form without large counts may have none.
                    if !done.iter().any(|name| name == small.name) {
                        out.push_str(&small.for_the_core());
                        let small = small.name;
                        let _ = writeln!(
                            entries,
                            "#ifndef HOST_HAS_{name}\n    {{\"{small}\", NULL, (void **)&real_{small}, NULL}},\n    \
                             {{\"P{small}\", NULL, (void **)&real_P{small}, NULL}},\n#endif"
                        );
                    }
                    out.push_str(&call.narrowed(small));
                    let _ = write!(
                        out,
                        "#else\n#define host_{name} absent\n#define host_P{name} absent\n#endif\n"
                    );
                }
                None => {
                    let _ =
                        write!(out, "#define host_{name} absent\n#define host_P{name} absent\n");
                }
            }
            out.push_str("#endif\n\n");
            let core = |prefix: &str| match row.when {
                When::Called | When::Before => "NULL".into(),
                _ => format!("(void **)&core_{prefix}{name}"),
            };
            let (plain, profiled) = (core(""), core("P"));
            let _ = writeln!(entries, "#ifdef HOST_HAS_{name}");
            let _ = writeln!(
                entries,
                "    {{\"{name}\", (void *)host_{name}, (void **)&real_{name}, {plain}}},"
            );
            let _ = write!(
                entries,
                "    {{\"P{name}\", (void *)host_P{name}, (void **)&real_P{name}, {profiled}}},\n\
                 #else\n    {{\"{name}\", (void *)host_{name}, NULL, NULL}},\n    \
                 {{\"P{name}\", (void *)host_P{name}, NULL, NULL}},\n#endif\n"
            );
        }
    }
    entries.push_str("};\n#endif\n");
    out.push_str(&entries);
    Shim { constants: values(constants), functions: out + &handles(constants) }
}

/// Returns the constants of the ABI as macros, and the pairs of constants that have numbers in the host.
fn values(constants: &[Constant]) -> String {
    let mut out = String::new();
    for Constant { name, value, .. } in constants {
        let _ = writeln!(out, "#define ABI_{} {value}", &name["MPI_".len()..]);
    }
    let mut pairs = |array: &str, kinds: &[&str]| {
        let _ = writeln!(out, "static const int {array}[][2] = {{");
        for Constant { name, .. } in constants.iter().filter(|c| kinds.contains(&c.kind.as_str())) {
            // The only class that is no error.
            if name != "MPI_SUCCESS" {
                let short = &name["MPI_".len()..];
                let _ = writeln!(
                    out,
                    "#ifdef HOST_HAS_{name}\n    {{ABI_{short}, (int)({name})}},\n#endif"
                );
            }
        }
        out.push_str("};\n");
    };
    pairs("classes", &["error-class"]);
    pairs("combiners", &["combiner"]);
    pairs("layouts", &["array-order", "array-distribution"]);
    out
}

/// Returns the table of the host's predefined handles, for the library that is linked with the host.
fn handles(constants: &[Constant]) -> String {
    let mut out = String::from(
        "#ifdef TYPEPACK_TABLE\nint typepack_shim_rows(struct row *to, int room)\n{\n    const struct row rows[] = {\n",
    );
    for Constant { name, kind: of, .. } in constants {
        let kind = match of.split_once(':') {
            Some(("handle", handle)) => kind(handle),
            Some(("alias", _)) => Some("TYPE"),
            _ => (of == "datatype").then_some("TYPE"),
        };
        if let Some(kind) = kind {
            let short = &name["MPI_".len()..];
            let _ = writeln!(
                out,
                "#ifdef HOST_HAS_{name}\n        ROW({kind}, ABI_{short}, {name})\n#endif"
            );
        }
    }
    out.push_str(
        "    };\n    int n = (int)(sizeof rows / sizeof *rows);\n    for (int i = 0; i < n && i < room; i++) to[i] = rows[i];\n    \
         return n;\n}\n\nvoid *typepack_shim_function(enum function which)\n{\n    switch (which) {\n    \
         case COMM_DUP: return (void *)MPI_COMM_DUP_FN;\n    \
         case COMM_NULL_DELETE: return (void *)MPI_COMM_NULL_DELETE_FN;\n    \
         case COMM_NULL_COPY: return (void *)MPI_COMM_NULL_COPY_FN;\n    \
         default: return (void *)MPI_TYPE_NULL_COPY_FN;\n    }\n}\n#endif\n",
    );
    out
}
