//! Reads the rows of the ABI's tables (`../../abi/*.csv`). `ctype.rs` converts the C types in the rows to
//! Rust types.

use std::path::Path;

/// The C types of handles. Each has a Rust type in `raw.rs` of `typepack-capi-datatype`.
pub const HANDLES: [&str; 11] = [
    "MPI_Comm",
    "MPI_Datatype",
    "MPI_Errhandler",
    "MPI_File",
    "MPI_Group",
    "MPI_Info",
    "MPI_Message",
    "MPI_Op",
    "MPI_Request",
    "MPI_Session",
    "MPI_Win",
];

/// One function of the ABI.
#[derive(Clone, Debug)]
pub struct Function {
    /// The name of the function, for example `MPI_Send`.
    pub name: String,
    /// The C return type.
    pub returns: String,
    /// The parameters in C; empty for `void`.
    pub parameters: Vec<Parameter>,
    /// The group to which the table assigns the function.
    pub group: String,
    /// True if the function also has a large-count form (name ending in `_c`).
    pub has_large: bool,
    /// The remark in the table.
    pub note: String,
}

/// One parameter of a function.
#[derive(Clone, Debug)]
pub struct Parameter {
    /// The name of the parameter; `...` for variadic arguments.
    pub name: String,
    /// The C type of the parameter, for example `const MPI_Aint*`. The brackets `[]` in the table become
    /// `*` here, and `[][3]` becomes `(*)[3]`.
    pub c_type: String,
    /// The declaration of the parameter in the table, for example
    /// `const MPI_Aint array_of_displacements[]`.
    pub declaration: String,
    /// True if the declaration in the table has brackets.
    pub array: bool,
}

/// One constant of the ABI.
#[derive(Clone, Debug)]
pub struct Constant {
    /// The name of the constant, for example `MPI_COMM_WORLD`.
    pub name: String,
    /// The kind of the constant in the table, for example `handle:MPI_Comm`.
    pub kind: String,
    /// The value of the constant.
    pub value: i64,
    /// The remark in the table.
    pub note: String,
}

/// One callback type, or another name for a callback type.
#[derive(Clone, Debug)]
pub struct Callback {
    /// The name of the callback type.
    pub name: String,
    /// The C return type; `alias` if the row gives another name for a callback type.
    pub returns: String,
    /// The parameters of the callback type; for an alias, the name of the callback type that it stands for.
    pub parameters: String,
    /// The remark in the table.
    pub note: String,
}

/// One name of MPI's older versions or of MPI's Fortran interface: a row of `compat.csv`. Most of these
/// names are not part of the ABI.
#[derive(Clone, Debug)]
pub struct Compat {
    /// The name.
    pub name: String,
    /// What the name stands for: `type`, `function`, `constant` or `alias` (a macro that stands for its replacement)
    /// if the name is outside the ABI, and
    /// `in-abi-type`, `in-abi-function` or `in-abi-constant` if the ABI has the name too.
    pub kind: String,
    /// The C declaration, or the C type of a constant.
    pub declaration: String,
    /// The value of a constant; empty for a type or a function.
    pub value: String,
    /// The name in the ABI that replaces this name; empty if there is none.
    pub replacement: String,
}

/// One function that is implemented, and the Rust function that implements it.
#[derive(Clone, Debug)]
pub struct Built {
    /// The name of the function, for example `MPI_Type_vector`. The row also covers the large-count form of
    /// the function, unless that form has a row of its own.
    pub name: String,
    /// The path of the Rust function in `typepack-capi`, for example `datatype::construct::vector`.
    pub path: String,
    /// True if a program may call the function before init and after finalize.
    pub always: bool,
    /// True if the function has a short way.
    pub has_short: bool,
}

impl Built {
    /// Returns the path of the function's short way, if it has one: the function of the same name in the module `short`
    /// beside that of [`path`](Self::path).
    pub fn short(&self) -> Option<String> {
        if !self.has_short {
            return None;
        }
        let mut names: Vec<&str> = self.path.rsplitn(3, "::").collect();
        *names.get_mut(1).unwrap_or_else(|| panic!("{}: its path has no module", self.name)) =
            "short";
        names.reverse();
        Some(names.join("::"))
    }
}

/// A function that has no communicator, file, window or session among its arguments, and whose error handler is called
/// if it fails.
#[derive(Clone, Debug)]
pub struct Handled {
    /// The name of the function. The row also covers the large-count form of the function.
    pub name: String,
    /// The error handler: that of `MPI_COMM_SELF` or `MPI_FILE_NULL`; that of the communicator, file or window of the
    /// `operation` that a request or message stands for; that of the `object` whose handle is behind an address; or
    /// the one that is an `argument` of the call. If there is no such operation, object or argument, the error handler
    /// of `MPI_COMM_SELF` is called.
    pub handler: String,
}

/// Returns the rows of a table without its heading.
///
/// # Panics
/// Panics if the file cannot be read, or a row has another number of columns than the heading.
pub fn records(file: &Path) -> Vec<csv::StringRecord> {
    let mut reader =
        csv::Reader::from_path(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    reader
        .records()
        .map(|row| row.unwrap_or_else(|error| panic!("{}: {error}", file.display())))
        .collect()
}

fn parameter(text: &str) -> Parameter {
    let declaration = text.trim().to_owned();
    if declaration == "..." {
        let c_type = declaration.clone();
        return Parameter { name: declaration.clone(), c_type, declaration, array: false };
    }
    let (before, brackets) =
        declaration.split_at(declaration.find('[').unwrap_or(declaration.len()));
    let at = before.rfind(|c: char| !c.is_alphanumeric() && c != '_').map_or(0, |at| at + 1);
    let (kind, name) = before.split_at(at);
    let kind: String = kind.split_whitespace().collect::<Vec<_>>().join(" ");
    let kind = kind.replace(" *", "*").replace("* *", "**");
    let c_type = match brackets {
        "" => kind,
        "[]" => format!("{kind}*"),
        "[][3]" => format!("{kind}(*)[3]"),
        other => panic!("functions.csv: unknown brackets {other} in \"{declaration}\""),
    };
    let (name, array) = (name.to_owned(), !brackets.is_empty());
    Parameter { name, c_type, declaration, array }
}

/// Returns the parameters that a table lists.
pub fn parameters(list: &str) -> Vec<Parameter> {
    match list.trim() {
        "void" => Vec::new(),
        list => list.split(',').map(parameter).collect(),
    }
}

/// Returns all functions, in the order of the table.
pub fn functions(abi: &Path) -> Vec<Function> {
    records(&abi.join("functions.csv"))
        .iter()
        .map(|row| Function {
            name: row[0].to_owned(),
            returns: row[1].to_owned(),
            parameters: parameters(&row[2]),
            group: row[3].to_owned(),
            has_large: &row[4] == "1",
            note: row[6].to_owned(),
        })
        .collect()
}

/// Parses a decimal or hexadecimal number of a table.
///
/// # Panics
/// Panics if `text` is not such a number.
pub fn number(text: &str) -> i64 {
    let parsed = match text.strip_prefix("0x") {
        Some(hex) => i64::from_str_radix(hex, 16),
        None => text.parse(),
    };
    parsed.unwrap_or_else(|error| panic!("\"{text}\" is not a number: {error}"))
}

/// Returns all constants, in the order of the table.
pub fn constants(abi: &Path) -> Vec<Constant> {
    records(&abi.join("constants.csv"))
        .iter()
        .map(|row| Constant {
            name: row[0].to_owned(),
            kind: row[1].to_owned(),
            value: number(&row[2]),
            note: row[3].to_owned(),
        })
        .collect()
}

/// Returns all callback types.
pub fn callbacks(abi: &Path) -> Vec<Callback> {
    records(&abi.join("callbacks.csv"))
        .iter()
        .map(|row| Callback {
            name: row[0].to_owned(),
            returns: row[1].to_owned(),
            parameters: row[2].to_owned(),
            note: row[3].to_owned(),
        })
        .collect()
}

/// Returns the rows of `compat.csv`.
pub fn compat(abi: &Path) -> Vec<Compat> {
    records(&abi.join("compat.csv"))
        .iter()
        .map(|row| Compat {
            name: row[0].to_owned(),
            kind: row[1].to_owned(),
            declaration: row[2].to_owned(),
            value: row[3].to_owned(),
            replacement: row[4].to_owned(),
        })
        .collect()
}

/// Returns the functions without an object, and whose error handlers they call.
pub fn handlers(abi: &Path) -> Vec<Handled> {
    let row =
        |row: &csv::StringRecord| Handled { name: row[0].to_owned(), handler: row[1].to_owned() };
    records(&abi.join("handlers.csv")).iter().map(row).collect()
}

/// Returns the constants that have a fixed value in MPICH, and that value.
pub fn mpich(abi: &Path) -> Vec<(String, i64)> {
    let row = |row: &csv::StringRecord| (row[0].to_owned(), number(&row[1]));
    records(&abi.join("mpich.csv")).iter().map(row).collect()
}

/// Returns the functions that are implemented.
pub fn built(abi: &Path) -> Vec<Built> {
    records(&abi.join("built.csv"))
        .iter()
        .map(|row| Built {
            name: row[0].to_owned(),
            path: row[1].to_owned(),
            always: match &row[2] {
                "always" => true,
                "between" | "short" => false,
                other => panic!(
                    "built.csv: {}: the column `when` has \"{other}\"; it must have \"always\", \"between\" or \
                     \"short\"",
                    &row[0]
                ),
            },
            has_short: &row[2] == "short",
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::Built;

    #[test]
    fn the_short_way_stands_beside_the_function() {
        let short = |path: &str, has_short| {
            Built { name: String::new(), path: path.to_owned(), always: false, has_short }.short()
        };
        assert_eq!(short("win::access::put", true).as_deref(), Some("win::short::put"));
        assert_eq!(short("comm::dup", true).as_deref(), Some("short::dup"));
        assert_eq!((short("dup", true), short("win::access::put", false)), (None, None));
    }
}
