//! Generates `include/mpicxx.h`, the C++ functions of MPI-2.2, from the tables.
//!
//! `classes.h` and `definitions.h` have what the tables do not decide: the classes, the errors and the callbacks. Their
//! lines with `@` stand for what this file generates: the constants, what all classes of handles have in common, and a
//! method for each row of `abi/cxx.csv`. A row names the function in C, the class, the method, the parameter that is the
//! object, the parameter that the method returns, and the types that do not follow from C. `abi/fortran.csv` says which
//! numbers are logical.

use crate::fortran::is_logical;
use crate::header::fold;
use crate::rows::{Compat, Constant, Function, Parameter, records};
use crate::rule::Rule;
use std::fmt::Write;
use std::path::Path;

/// One row of `cxx.csv`: a method.
#[derive(Clone, Debug)]
pub struct Method {
    /// The name of the function in C.
    pub function: String,
    /// The class, or `MPI` for a function outside the classes.
    pub class: String,
    /// The name of the method.
    pub name: String,
    /// The parameter that is the object; empty for a static method.
    pub this: String,
    /// The parameter that the method returns; empty if there is none.
    pub returned: String,
    /// True if the method is const.
    pub is_const: bool,
    /// Parameters and what the C prototype does not say of them: a class or a type; a value that begins with `MPI_`,
    /// which the method passes itself; or the position of the parameter.
    pub types: Vec<(String, String)>,
}

impl Method {
    /// Returns the rows of `cxx.csv`.
    pub fn read(abi: &Path) -> Vec<Self> {
        let row = |row: &csv::StringRecord| Self {
            function: row[0].to_owned(),
            class: row[1].to_owned(),
            name: row[2].to_owned(),
            this: row[3].to_owned(),
            returned: row[4].to_owned(),
            is_const: &row[5] == "const",
            types: row[6]
                .split(';')
                .filter_map(|pair| pair.trim().split_once(": "))
                .map(|(name, kind)| (name.to_owned(), kind.to_owned()))
                .collect(),
        };
        records(&abi.join("cxx.csv")).iter().map(row).collect()
    }

    fn kind(&self, parameter: &str) -> Option<&str> {
        self.types.iter().find(|(name, _)| name == parameter).map(|(_, kind)| kind.as_str())
    }
}

/// The classes of communicators, whose methods are virtual. `Dup` is not: each class returns its own.
const COMMS: [&str; 6] =
    ["Comm", "Intracomm", "Intercomm", "Cartcomm", "Graphcomm", "Distgraphcomm"];

/// The classes with attributes, and the prefixes of their functions in C.
const KEYED: [(&str, &str); 3] = [("Comm", "Comm"), ("Datatype", "Type"), ("Win", "Win")];

/// The classes with error handlers.
const HANDLED: [&str; 3] = ["Comm", "File", "Win"];

/// The kinds of constants that are numbers and that MPI-2.2 has. The version is not among them: `VERSION` is a macro of
/// many programs.
const NUMBERS: [&str; 16] = [
    "error-class",
    "string-max",
    "int",
    "amode",
    "rma-assert",
    "int-sentinel",
    "thread-level",
    "array-order",
    "array-distribution",
    "combiner",
    "typeclass",
    "comparison",
    "topology",
    "lock-type",
    "seek",
    "attribute-key",
];

/// A parameter as the method has it, and what the method passes to C for it.
#[derive(Default)]
struct Argument {
    /// The declaration; empty if the method has no such parameter.
    declared: String,
    passed: String,
    before: String,
    after: String,
}

/// Returns a C type or a declaration in C with the names that it has in the namespace.
fn inside(text: &str) -> String {
    text.replace("MPI_Aint", "Aint").replace("MPI_Offset", "Offset")
}

/// Returns the class of a handle's C type.
fn class(c_type: &str) -> Option<&str> {
    let name = c_type.trim_start_matches("const ").trim_end_matches('*').strip_prefix("MPI_")?;
    let classes = [
        "Comm",
        "Datatype",
        "Errhandler",
        "File",
        "Group",
        "Info",
        "Op",
        "Request",
        "Status",
        "Win",
    ];
    classes.contains(&name).then_some(name)
}

fn argument(row: &Method, f: &Function, p: &Parameter, rules: &[Rule], status: bool) -> Argument {
    let (name, kind) = (&p.name, row.kind(&p.name));
    let shown =
        |declared: String, passed: String| Argument { declared, passed, ..Argument::default() };
    let handle = class(&p.c_type);
    let is_pointer = p.c_type.ends_with('*');
    let is_logical = is_logical(rules, &f.name, name);
    if *name == row.this {
        let c_type = p.c_type.trim_end_matches('*');
        return match (is_pointer, row.is_const) {
            (false, _) => shown(String::new(), "handle_".to_owned()),
            (true, true) if handle != Some("Status") => Argument {
                passed: format!("&{name}"),
                before: format!("{c_type} {name} = handle_;"),
                ..Argument::default()
            },
            (true, _) => shown(String::new(), "&handle_".to_owned()),
        };
    }
    if *name == row.returned {
        let c_type = kind.filter(|_| handle.is_none()).unwrap_or(p.c_type.trim_end_matches('*'));
        let empty = match handle {
            Some(class) => format!("MPI_{}_NULL", class.to_uppercase()),
            None => "0".to_owned(),
        };
        let mut argument = shown(String::new(), format!("&{name}"));
        argument.before = format!("{c_type} {name} = {empty};");
        return argument;
    }
    match (kind, handle) {
        (Some(value), _) if value.starts_with("MPI_") => shown(String::new(), value.to_owned()),
        (_, Some("Status")) if name == "status" => match status {
            true => shown("Status &status".to_owned(), "typepack::handles(&status)".to_owned()),
            false => shown(String::new(), "MPI_STATUS_IGNORE".to_owned()),
        },
        (_, Some("Status")) => match status {
            true => shown(format!("Status {name}[]"), format!("typepack::handles({name})")),
            false => shown(String::new(), "MPI_STATUSES_IGNORE".to_owned()),
        },
        (_, Some("Errhandler")) => {
            shown(format!("const Errhandler &{name}"), format!("{name}.of_{}()", row.class))
        }
        (kind, Some(class)) => {
            let class = kind.unwrap_or(class);
            let constant = if p.c_type.starts_with("const ") { "const " } else { "" };
            match (is_pointer, p.array) {
                (false, _) => shown(format!("const {class} &{name}"), name.clone()),
                (_, true) => shown(
                    format!("{constant}{class} {name}[]"),
                    format!("typepack::handles({name})"),
                ),
                _ => shown(format!("{class} &{name}"), format!("typepack::handles(&{name})")),
            }
        }
        (Some("const void *"), _) => {
            shown(format!("const void *{name}"), format!("const_cast<void *>({name})"))
        }
        (Some("void *&"), _) => shown(format!("void *&{name}"), format!("&{name}")),
        (Some("int *"), _) => shown(format!("int *{name}"), name.clone()),
        _ if is_logical && p.array => {
            let there = |name: &&str| f.parameters.iter().any(|p| p.name == *name);
            let length = ["ndims", "maxdims"].into_iter().find(there).unwrap_or("Get_dim()");
            if p.c_type.starts_with("const ") {
                Argument {
                    declared: format!("const bool {name}[]"),
                    passed: format!("{name}_.data()"),
                    before: format!("typepack::Flags {name}_({name}, {length});"),
                    after: String::new(),
                }
            } else {
                Argument {
                    declared: format!("bool {name}[]"),
                    passed: format!("{name}_.data()"),
                    before: format!("typepack::Flags {name}_({length});"),
                    after: format!("{name}_.copy({name});"),
                }
            }
        }
        _ if is_logical => shown(format!("bool {name}"), name.clone()),
        _ if p.c_type == "int(*)[3]" => {
            shown(format!("const int {name}[][3]"), format!("const_cast<int (*)[3]>({name})"))
        }
        _ if ["int*", "MPI_Aint*", "MPI_Offset*"].contains(&p.c_type.as_str()) && !p.array => {
            let number = inside(p.c_type.trim_end_matches('*'));
            shown(format!("{number} &{name}"), format!("&{name}"))
        }
        _ => shown(inside(&p.declaration), name.clone()),
    }
}

/// Returns the declaration in the class and the definition after it.
fn method(row: &Method, f: &Function, rules: &[Rule], status: bool) -> (String, String) {
    let mut arguments: Vec<Argument> =
        f.parameters.iter().map(|p| argument(row, f, p, rules, status)).collect();
    let passed: Vec<&str> = arguments.iter().map(|argument| &*argument.passed).collect();
    let call = format!("{}({})", f.name, passed.join(", "));
    let returned = f.parameters.iter().find(|p| p.name == row.returned);
    let (returns, last) = match returned {
        None if f.returns != "int" => (f.returns.clone(), format!("return {call};")),
        None => ("void".to_owned(), String::new()),
        Some(p) if is_logical(rules, &f.name, &p.name) => {
            ("bool".to_owned(), format!("return {} != 0;", p.name))
        }
        Some(p) => {
            let c_type = inside(p.c_type.trim_end_matches('*'));
            match row.kind(&p.name).or(class(&p.c_type)) {
                Some(kind) if class(&p.c_type).is_some() => {
                    (kind.to_owned(), format!("return {kind}({});", p.name))
                }
                kind => (kind.map_or(c_type, str::to_owned), format!("return {};", p.name)),
            }
        }
    };
    let mut lines: Vec<String> = arguments.iter().map(|argument| argument.before.clone()).collect();
    if f.returns == "int" {
        lines.push("typepack::Call call;".to_owned());
        lines.push(format!("call({call});"));
    }
    lines.extend(arguments.iter().map(|argument| argument.after.clone()));
    lines.push(last);
    for (at, p) in f.parameters.iter().enumerate() {
        if let Some(place) = row.kind(&p.name).and_then(|kind| kind.parse::<usize>().ok()) {
            let moved = arguments.remove(at);
            arguments.insert(place, moved);
            break;
        }
    }
    let list: Vec<&str> = arguments.iter().map(|argument| &*argument.declared).collect();
    let list: Vec<&str> = list.into_iter().filter(|declared| !declared.is_empty()).collect();
    let constant = if row.is_const { " const" } else { "" };
    let list = list.join(", ");
    let space = if returns.ends_with('*') { "" } else { " " };
    let before = match (&*row.class, &*row.this) {
        ("MPI", _) => "",
        (_, "") => "static ",
        (class, _) if COMMS.contains(&class) && row.name != "Dup" => "virtual ",
        _ => "",
    };
    let declared = format!("{before}{returns}{space}{}({list}){constant};", row.name);
    let place = if row.class == "MPI" { String::new() } else { format!("{}::", row.class) };
    let mut defined =
        fold(&format!("inline {returns}{space}{place}{}({list}){constant}", row.name)) + "\n{\n";
    for line in lines.iter().filter(|line| !line.is_empty()) {
        let _ = writeln!(defined, "    {}", fold(line).replace('\n', "\n    "));
    }
    (declared, defined + "}\n\n")
}

/// Returns the declarations and definitions of all methods of `class`, or of all if it is empty.
fn methods(rows: &[Method], functions: &[Function], rules: &[Rule], class: &str) -> [String; 2] {
    let mut out = [String::new(), String::new()];
    for row in rows.iter().filter(|row| class.is_empty() || row.class == class) {
        let f = functions.iter().find(|f| f.name == row.function);
        let f = f.unwrap_or_else(|| panic!("cxx.csv: there is no function {}", row.function));
        for (name, what) in [(&row.this, "this"), (&row.returned, "returned")]
            .into_iter()
            .chain(row.types.iter().map(|(name, _)| (name, "types")))
        {
            let known = name.is_empty() || f.parameters.iter().any(|p| p.name == *name);
            assert!(known, "cxx.csv: {}: {what}: there is no parameter {name}", row.function);
        }
        let has_status =
            f.parameters.iter().any(|p| p.c_type == "MPI_Status*" && p.name != row.this);
        for status in [true, false] {
            if status && !has_status {
                continue;
            }
            let (declared, defined) = method(row, f, rules, status);
            let _ = writeln!(out[0], "    {}", fold(&declared).replace('\n', "\n    "));
            out[1] += &defined;
        }
    }
    out
}

/// Returns the name of a constant in the namespace.
fn name(constant: &str) -> String {
    let name = constant.trim_start_matches("MPI_");
    match name {
        "CXX_BOOL" => "BOOL".to_owned(),
        "CXX_FLOAT_COMPLEX" => "COMPLEX".to_owned(),
        _ if name.starts_with("CXX_") => name["CXX_".len()..].to_owned(),
        "DOUBLE_COMPLEX" => "F_DOUBLE_COMPLEX".to_owned(),
        _ if name.starts_with("COMPLEX") => format!("F_{name}"),
        _ if name.starts_with('2') => format!("TWO{}", &name[1..]),
        _ => name.to_owned(),
    }
}

/// Says whether a datatype has the name of C, too: the complex types of Fortran with a size.
fn has_two_names(constant: &str) -> bool {
    constant.strip_prefix("MPI_COMPLEX").is_some_and(|size| !size.is_empty())
}

/// Returns the predefined objects: the class with what it needs before it, the name, and the name in C.
fn objects(constants: &[Constant], compat: &[Compat]) -> Vec<(String, String, String)> {
    let mut list = Vec::new();
    for constant in constants {
        let kind = constant.kind.trim_start_matches("handle:MPI_");
        let class = match (kind, &*constant.name) {
            (_, "MPI_COMM_NULL") => continue,
            (_, "MPI_FILE_NULL") => "File",
            ("Comm", _) => "Intracomm",
            ("datatype", _) => "const Datatype",
            ("Op", _) => "const Op",
            ("Group", _) => "const Group",
            ("Win", _) => "const Win",
            ("Info", _) => "const Info",
            ("Errhandler", _) => "const Errhandler",
            ("Request", _) => "const Request",
            ("Datatype", _) => "const Datatype",
            (kind, _) if kind.starts_with("alias:") => "const Datatype",
            _ => continue,
        };
        list.push((class.to_owned(), name(&constant.name), constant.name.clone()));
        if let Some(short) =
            constant.name.strip_prefix("MPI_").filter(|_| has_two_names(&constant.name))
        {
            list.push((class.to_owned(), short.to_owned(), constant.name.clone()));
        }
    }
    for row in
        compat.iter().filter(|row| row.kind == "constant" && row.declaration == "MPI_Datatype")
    {
        list.push((
            "const Datatype".to_owned(),
            name(&row.name),
            format!("((MPI_Datatype){})", row.value),
        ));
    }
    list
}

fn numbers(constants: &[Constant], compat: &[Compat]) -> String {
    let mut out = String::new();
    for constant in constants {
        let has = NUMBERS.contains(&&*constant.kind) && !constant.name.starts_with("MPI_T_");
        if has {
            let kind = if constant.name == "MPI_DISPLACEMENT_CURRENT" { "Offset" } else { "int" };
            let _ = writeln!(out, "const {kind} {} = {};", name(&constant.name), constant.name);
        }
    }
    for row in compat.iter().filter(|row| row.kind == "constant" && row.declaration == "int") {
        let _ = writeln!(out, "const int {} = {};", name(&row.name), row.value);
    }
    out
}

/// Returns what all classes of handles have.
fn common(class: &str) -> String {
    let null = format!("MPI_{}_NULL", class.to_uppercase());
    format!(
        "    {class}() : handle_({null}) {{}}
    {class}(MPI_{class} handle) : handle_(handle) {{}}
    {class} &operator=(const MPI_{class} &handle)
    {{
        handle_ = handle;
        return *this;
    }}
    bool operator==(const {class} &other) const {{ return handle_ == other.handle_; }}
    bool operator!=(const {class} &other) const {{ return handle_ != other.handle_; }}
    bool operator==(MPI_{class} other) const {{ return handle_ == other; }}
    bool operator!=(MPI_{class} other) const {{ return handle_ != other; }}
    operator MPI_{class}() const {{ return handle_; }}

protected:
    MPI_{class} handle_;

public:
"
    )
}

/// Returns what a class has that is another one with more methods.
fn derived(class: &str, base: &str) -> String {
    format!(
        "    {class}() {{}}
    {class}(MPI_{base} handle) : {base}(handle) {{}}
    explicit {class}(const {base} &other) : {base}(other) {{}}
"
    )
}

/// Returns the declarations about the keys of attributes of a class, and their definitions.
fn keyvals(class: &str, prefix: &str) -> [String; 2] {
    let constant = if class == "Datatype" { "const " } else { "" };
    let value = if class == "Datatype" { "const_cast<void *>(in)" } else { "in" };
    let mut declared = format!(
        "    static int Create_keyval(Copy_attr_function *copy_fn, Delete_attr_function *delete_fn, void *extra_state);
    static int NULL_COPY_FN(const {class} &, int, void *, {constant}void *, void *, bool &flag)
    {{
        flag = false;
        return MPI_SUCCESS;
    }}
    static int DUP_FN(const {class} &, int, void *, {constant}void *in, void *out, bool &flag)
    {{
        *static_cast<void **>(out) = {value};
        flag = true;
        return MPI_SUCCESS;
    }}
    static int NULL_DELETE_FN({class} &, int, void *, void *) {{ return MPI_SUCCESS; }}
"
    );
    if class == "Datatype" {
        // MPICH's C++ functions had no const there.
        declared += "    static int Create_keyval(int (*copy_fn)(const Datatype &, int, void *, void *, void *, bool &),
        Delete_attr_function *delete_fn, void *extra_state)
    {
        return Create_keyval(reinterpret_cast<Copy_attr_function *>(copy_fn), delete_fn, extra_state);
    }\n";
    }
    let upper = prefix.to_uppercase();
    let defined = format!(
        "inline int {class}::Create_keyval(Copy_attr_function *copy_fn, Delete_attr_function *delete_fn,
    void *extra_state)
{{
    typedef typepack::Attributes<{class}, MPI_{class}> Attributes;
    MPI_{prefix}_copy_attr_function *copy = &Attributes::on_copy;
    if (!copy_fn || copy_fn == &NULL_COPY_FN) copy = MPI_{upper}_NULL_COPY_FN;
    if (copy_fn == &DUP_FN) copy = MPI_{upper}_DUP_FN;
    MPI_{prefix}_delete_attr_function *erase = &Attributes::on_delete;
    if (!delete_fn || delete_fn == &NULL_DELETE_FN) erase = MPI_{upper}_NULL_DELETE_FN;
    int keyval = MPI_KEYVAL_INVALID;
    typepack::Call call;
    call(MPI_{prefix}_create_keyval(copy, erase, &keyval,
        Attributes::of(copy_fn, delete_fn, extra_state)));
    return keyval;
}}

"
    );
    [declared, defined]
}

/// Returns the declarations about the error handlers of a class, and their definitions.
fn handlers(class: &str, at: usize) -> [String; 2] {
    let declared = format!(
        "    typedef void Errhandler_function({class} &, int *, ...);
    typedef Errhandler_function Errhandler_fn;
    static Errhandler Create_errhandler(Errhandler_function *function);
"
    );
    let defined = format!(
        "inline Errhandler {class}::Create_errhandler(Errhandler_function *function)
{{
    MPI_Errhandler made = MPI_ERRHANDLER_NULL;
    MPI_{class}_errhandler_function *entry = typepack::{class}_handler::entry(function);
    typepack::Call call;
    if (entry) call(MPI_{class}_create_errhandler(entry, &made));
    return Errhandler(made);
}}

inline MPI_Errhandler Errhandler::of_{class}() const
{{
    if (!throws_) return handle_;
    MPI_Errhandler made = throwing()[{at}];
    if (made) return made;
    MPI_{class}_errhandler_function *entry = typepack::{class}_handler::entry(&typepack::{class}_handler::throws);
    if (entry) MPI_{class}_create_errhandler(entry, &made);
    return once({at}, made);
}}

"
    );
    [declared, defined]
}

/// Returns the text of `mpicxx.h`.
///
/// # Panics
/// Panics if a row of `cxx.csv` names a function or a parameter that does not exist.
pub fn cxx(
    rows: &[Method],
    functions: &[Function],
    constants: &[Constant],
    compat: &[Compat],
    rules: &[Rule],
) -> String {
    let objects = objects(constants, compat);
    let each = |line: &dyn Fn(&(String, String, String)) -> String| {
        objects.iter().map(line).collect::<Vec<String>>()
    };
    let mut out = String::new();
    for line in concat!(include_str!("classes.h"), include_str!("definitions.h")).lines() {
        let words: Vec<&str> = line.trim().trim_matches('@').split(' ').collect();
        if let Some((before, after)) = line.split_once("@initializers@") {
            let list = each(&|(_, name, value)| format!("{name}({value})"));
            let list = fold(&list.join(", ")).replace("\n    ", "\n      ");
            let _ = writeln!(out, "{before}{list}{after}");
            continue;
        }
        if !line.trim().starts_with('@') {
            let _ = writeln!(out, "{line}");
            continue;
        }
        let text = match words[..] {
            ["numbers"] => numbers(constants, compat),
            ["members"] => each(&|(class, name, _)| format!("    {class} {name};\n")).concat(),
            ["objects"] => each(&|(class, name, _)| {
                format!("TYPEPACK_OBJECT {class} &{name} = predefined().{name};\n")
            })
            .concat(),
            ["common", class] => common(class),
            ["derived", class, base] => derived(class, base),
            ["keyvals", class] => {
                let prefix =
                    KEYED.iter().find(|keyed| keyed.0 == class).map_or(class, |keyed| keyed.1);
                let [declared, _] = keyvals(class, prefix);
                declared
            }
            ["handlers", class] => {
                let [declared, _] = handlers(class, 0);
                declared
            }
            ["declare", class] => {
                let [declared, _] = methods(rows, functions, rules, class);
                if class == "MPI" {
                    declared.replace("\n    ", "\n").trim_start().to_owned()
                } else {
                    declared
                }
            }
            ["define"] => {
                let [_, mut defined] = methods(rows, functions, rules, "");
                for class in &COMMS[1..] {
                    let _ = write!(
                        defined,
                        "inline {class} &{class}::Clone() const\n{{\n    return *new {class}(Dup());\n}}\n\n"
                    );
                }
                for (class, prefix) in KEYED {
                    defined += &keyvals(class, prefix)[1];
                }
                for (at, class) in HANDLED.iter().enumerate() {
                    defined += &handlers(class, at)[1];
                }
                defined.trim_end().to_owned() + "\n"
            }
            _ => panic!("the frame of mpicxx.h: unknown line {line}"),
        };
        out += &text;
    }
    out
}
