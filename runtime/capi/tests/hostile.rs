//! Calls every implemented function with one wrong argument at a time. Each call must return an error of the
//! right class and write nothing, and the process must still work afterwards. The C sources are in
//! `hostile/`.
//!
//! `hostile/calls.csv` has a row for each function of `abi/built.csv`. The row gives the kinds of the
//! function's arguments, and says what a call with valid arguments does. The test calls a function and its
//! large-count form, each under its names `MPI_X` and `PMPI_X`. `hostile/kinds.c` has the valid and the wrong
//! values of each kind, and the error classes that the wrong values raise.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt::Write;
use std::path::Path;
use std::process::Command;

/// Returns the rows of a table without the header line.
fn table(path: &str) -> Vec<Vec<String>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    let mut reader = csv::Reader::from_path(path).expect("a table");
    let row = |row: csv::Result<csv::StringRecord>| {
        row.expect("a row").iter().map(str::to_owned).collect()
    };
    reader.records().map(row).collect()
}

/// Returns the C constants for a list of error classes as `calls.csv` writes them, for example
/// `ARG|T_INVALID`.
fn classes(names: &str) -> String {
    let class = |name: &str| match name.strip_prefix("T_") {
        Some(name) => format!("MPI_T_ERR_{name}"),
        None => format!("MPI_ERR_{name}"),
    };
    names.split('|').map(class).collect::<Vec<_>>().join(", ")
}

/// Returns the size, in bytes, of an integer parameter, or of one integer in an array. `kinds.c` uses the
/// size to tell C integers from wider ones; for `char` and `void`, the result means nothing.
fn bytes(parameter: &str) -> usize {
    let mut words = parameter.split(|c: char| !c.is_alphanumeric() && c != '_');
    match words.find(|word| !word.is_empty() && *word != "const") {
        Some("int" | "char" | "void") => 4,
        _ => 8,
    }
}

/// Returns the rows of `abi/handlers.csv`: the error handler of each function that has no object among its arguments.
fn handlers() -> HashMap<String, String> {
    let rows = table("abi/handlers.csv");
    rows.into_iter().map(|mut row| (row.remove(0), row.remove(0))).collect()
}

/// Returns the name of the function of which `name` is the large-count form, and otherwise `name`, both without the
/// prefix P.
fn base(name: &str) -> &str {
    let name = name.strip_prefix('P').unwrap_or(name);
    name.strip_suffix("_c").unwrap_or(name)
}

/// Returns the C source of one row of the table `rows` in `calls.c`.
fn row(
    name: &str,
    mode: &str,
    kinds: &[&str],
    parameters: &[String],
    collective: bool,
    handlers: &HashMap<String, String>,
) -> String {
    let collective = i32::from(collective);
    let count = parameters.iter().filter(|parameter| !["void", "..."].contains(&parameter.trim()));
    assert_eq!(
        count.count(),
        kinds.len(),
        "calls.csv: {name}: the number of kinds is not the number of parameters"
    );
    let (mode, refused) = match mode {
        "valid" | "bad" | "value" => (mode.to_uppercase(), "0".to_owned()),
        class => ("REFUSED".to_owned(), classes(class)),
    };
    let arguments = kinds.iter().zip(parameters).map(|(kind, parameter)| {
        let (kind, wanted) = kind.split_once(':').unwrap_or((kind, ""));
        let wanted = if wanted.is_empty() { "0".to_owned() } else { classes(wanted) };
        format!("{{kind_{kind}, {}, {{{wanted}}}}}", bytes(parameter))
    });
    let arguments = arguments.collect::<Vec<_>>().join(", ");
    let (count, arguments) =
        if kinds.is_empty() { (0, "{0}".to_owned()) } else { (kinds.len(), arguments) };
    let handler =
        handlers.get(base(name)).map_or("NULL".to_owned(), |handler| format!("\"{handler}\""));
    format!(
        "    {{\"{name}\", (function *)(word){name}, {mode}, {refused}, {collective}, {handler}, {count}, {{{arguments}}}}},\n"
    )
}

/// Returns the functions that `mpi.h` has in addition to the ABI, each with its parameters.
fn old_names() -> HashMap<String, String> {
    let parameters = |row: &Vec<String>| {
        let (_, behind) = row[2].split_once('(').expect("a declaration");
        (row[0].clone(), behind.trim_end_matches([')', ';']).to_owned())
    };
    let rows = table("abi/compat.csv");
    rows.iter().filter(|row| row[1] == "function").map(parameters).collect()
}

/// Returns the source of `calls.c`, which is generated from the tables.
fn source() -> String {
    let of_abi = table("abi/functions.csv").into_iter().map(|row| (row[0].clone(), row[2].clone()));
    let old = old_names();
    let functions: HashMap<String, Vec<String>> = of_abi
        .chain(old.clone())
        .map(|(name, parameters)| (name, parameters.split(',').map(str::to_owned).collect()))
        .collect();
    let calls = table("tests/hostile/calls.csv");
    let handlers = handlers();
    let groups = table("abi/functions.csv").into_iter();
    let groups = groups.filter(|row| row[3] == "coll");
    let collective: HashSet<String> = groups.map(|row| row[0].clone()).collect();
    let own: HashSet<&str> = calls.iter().map(|row| row[0].as_str()).collect();
    let mut text = String::from("#include \"hostile.h\"\n\nconst struct row rows[] = {\n");
    for call in &calls {
        let (name, mode) = (&call[0], call[1].as_str());
        let kinds: Vec<&str> = call[2].split_whitespace().collect();
        if mode == "untried" {
            assert!(!call[3].is_empty(), "calls.csv: {name} is untried without a remark");
            continue;
        }
        let large = format!("{name}_c");
        for form in [name.as_str(), large.as_str()] {
            let Some(parameters) = functions.get(form) else {
                assert!(form != name, "{name} is not in functions.csv");
                continue;
            };
            if form != name && own.contains(form) {
                continue;
            }
            let in_place = collective.contains(form);
            // For a function outside the ABI, the header defines the name with the prefix P as a macro that
            // names the same function, so only the name without the prefix is tested.
            for prefix in if old.contains_key(name) { &[""][..] } else { &["", "P"] } {
                text +=
                    &row(&format!("{prefix}{form}"), mode, &kinds, parameters, in_place, &handlers);
            }
        }
    }
    let _ = writeln!(text, "    {{0}},\n}};");
    text
}

#[test]
fn every_built_function_has_a_row() {
    let names = |path: &str| -> HashSet<String> {
        table(path).into_iter().map(|row| row[0].clone()).collect()
    };
    let (built, calls) = (names("abi/built.csv"), names("tests/hostile/calls.csv"));
    let missing: Vec<&String> = built.difference(&calls).collect();
    assert!(missing.is_empty(), "tests/hostile/calls.csv has no rows for {missing:?}");
    let old = old_names();
    let unknown: Vec<&String> =
        calls.difference(&built).filter(|name| !old.contains_key(*name)).collect();
    assert!(
        unknown.is_empty(),
        "tests/hostile/calls.csv has rows for functions that are not built: {unknown:?}"
    );
}

#[test]
fn every_function_without_an_object_has_a_handler() {
    let rows = table("abi/functions.csv");
    let names: HashSet<&String> = rows.iter().map(|row| &row[0]).collect();
    let objects = ["MPI_Comm ", "MPI_File ", "MPI_Win ", "MPI_Session "];
    let without = rows.iter().filter(|row| {
        let is_object = |parameter: &str| objects.iter().any(|kind| parameter.starts_with(kind));
        row[1] == "int"
            && row[3] != "handle-conversion"
            && !row[0].starts_with("MPI_T_")
            && (base(&row[0]) == row[0] || !names.contains(&base(&row[0]).to_owned()))
            && !row[2].split(',').any(|p| is_object(p.trim()) && !p.contains('*'))
    });
    // This function has a communicator among its arguments, but the error is about a file.
    let wanted = without.map(|row| row[0].clone()).chain(["MPI_File_open".to_owned()]);
    let wanted: BTreeSet<String> = wanted.collect();
    let found: BTreeSet<String> = handlers().into_keys().collect();
    assert_eq!(found, wanted, "abi/handlers.csv");
}

#[test]
fn wrong_arguments_are_errors_and_nothing_else() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hostile");
    let calls = crate::program::library().join("calls.c");
    std::fs::write(&calls, source()).expect("calls.c");
    let include = root.join("hostile.h");
    let text = std::fs::read_to_string(&include).expect("hostile.h");
    std::fs::write(crate::program::library().join("hostile.h"), text).expect("hostile.h");
    let sources = [root.join("driver.c"), root.join("kinds.c"), root.join("handlers.c"), calls];
    let exe = crate::program::compile("hostile", &sources);
    let mut command = Command::new(exe);
    command.env("LD_LIBRARY_PATH", crate::program::library());
    // A value such as `HOSTILE_ONLY=MPI_Send` restricts the test to the named functions.
    command.args(std::env::var("HOSTILE_ONLY").iter().flat_map(|names| names.split(' ')));
    let output = crate::job::run(command, "hostile", &[]);
    let text = crate::job::text(&output);
    println!("{text}");
    assert!(output.status.success(), "{}\n{text}", output.status);
}
