//! Parses the wrapper's command line, and builds the compiler's command line.
//!
//! `mod.rs` uses this file. The paths come from `prefix.rs`. The functions have no side effects.
//!
//! The wrapper understands the queries of MPICH's wrappers (`-show`, `-compile_info`, `-link_info`) and of
//! Open MPI's wrappers (`-showme:…`), because some build systems use the first set and others use the second.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use super::Tool;
use super::prefix::Places;
use typepack_job::quote::quoted;

/// A question that the command line asks the wrapper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Query {
    /// What is the whole command line of the compiler? (`-show`, `-showme`)
    Command,
    /// What is the compiler? (`-showme:command`)
    Compiler,
    /// Which arguments does compiling need? (`-showme:compile`)
    Compile,
    /// Which arguments does linking need? (`-showme:link`)
    Link,
    /// What are the compiler and the arguments that compiling needs? (`-compile_info`)
    CompileCommand,
    /// What are the compiler and the arguments that linking needs? (`-link_info`)
    LinkCommand,
    /// Which directories have the headers? The answer has no `-I`. (`-showme:incdirs`)
    IncludeDirs,
    /// Which directories have the libraries? The answer has no `-L`. (`-showme:libdirs`)
    LibraryDirs,
    /// Which libraries are linked? The answer has their names without `-l`. (`-showme:libs`)
    Libraries,
    /// Which version of typepack is this? (`-showme:version`)
    Version,
    /// What is the help text?
    Help,
    /// Where are the Fortran modules for the compiler, and what do they lack? (`-typepack-modules`, for
    /// `typepack fortran`)
    Modules,
    /// In which places can modules be kept, and what is damaged there? (`-typepack-stores`, for `typepack doctor`)
    Stores,
}

/// The parsed command line of the wrapper.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The query, or `None` if the command line asks for a compilation.
    pub query: Option<Query>,
    /// The words with which every compiler command line begins: the name of the compiler, or several words
    /// such as `ccache gcc`.
    pub compiler: Vec<OsString>,
    /// The arguments that the wrapper passes to the compiler, in order.
    pub arguments: Vec<OsString>,
}

fn query(text: &str) -> Option<Result<Query, String>> {
    // Accept one dash or two, because users of Open MPI write both.
    let one = text.strip_prefix('-')?;
    let name = one.strip_prefix('-').unwrap_or(one);
    Some(Ok(match name {
        "show" | "showme" => Query::Command,
        "showme:command" => Query::Compiler,
        "showme:compile" => Query::Compile,
        "showme:link" => Query::Link,
        "showme:incdirs" => Query::IncludeDirs,
        "showme:libdirs" => Query::LibraryDirs,
        "showme:libs" => Query::Libraries,
        "showme:version" => Query::Version,
        "compile_info" | "compile-info" => Query::CompileCommand,
        "link_info" | "link-info" => Query::LinkCommand,
        "help" => Query::Help,
        "typepack-modules" => Query::Modules,
        "typepack-stores" => Query::Stores,
        name if ["show", "compile_", "compile-", "link_", "link-"]
            .iter()
            .any(|start| name.starts_with(start)) =>
        {
            return Some(Err(format!("{text}: unknown query (see -help)")));
        }
        _ => return None,
    }))
}

/// Splits the name of a compiler with its arguments, such as `ccache gcc`, at blanks.
fn words(compiler: &str) -> Vec<OsString> {
    compiler.split_whitespace().map(OsString::from).collect()
}

/// Parses the arguments of the wrapper, without the wrapper's own name. `variable` returns the value of an environment
/// variable. A variable that is set to nothing counts as not set.
///
/// # Errors
///
/// Returns a one-line message that begins with the bad argument.
pub fn read(
    tool: &Tool,
    arguments: Vec<OsString>,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<Request, String> {
    let from_variables = tool.variables.iter().filter_map(|name| variable(name));
    let mut chosen = from_variables.map(|value| words(&value)).filter(|words| !words.is_empty());
    let compiler = chosen.next().unwrap_or_else(|| vec![tool.compiler.into()]);
    let mut request = Request { query: None, compiler, arguments: Vec::new() };
    for argument in arguments {
        // All options of the wrapper are ASCII text, so an argument that is not UTF-8 goes to the compiler.
        let text = argument.to_str().unwrap_or_default();
        let chosen = tool.choosers.iter().find_map(|chooser| text.strip_prefix(chooser));
        if let Some(compiler) = chosen {
            request.compiler = words(compiler);
            if request.compiler.is_empty() {
                return Err(format!("{text}: the name of the compiler is missing"));
            }
        } else if let Some(query) = query(text) {
            let query = query?;
            if request.query.is_some_and(|before| before != query) {
                return Err(format!("{text}: only one query is allowed at a time"));
            }
            request.query = Some(query);
        } else {
            request.arguments.push(argument);
        }
    }
    Ok(request)
}

/// Compiler options that take the next argument as their value. That argument is then not a file to compile.
const WITH_VALUE: [&str; 37] = [
    "-o",
    "-x",
    "-I",
    "-L",
    "-D",
    "-U",
    "-A",
    "-B",
    "-T",
    "-e",
    "-u",
    "-z",
    "-F",
    "-MF",
    "-MT",
    "-MQ",
    "-include",
    "-imacros",
    "-isystem",
    "-idirafter",
    "-iquote",
    "-iprefix",
    "-iwithprefix",
    "-iwithprefixbefore",
    "-isysroot",
    "-imultilib",
    "-aux-info",
    "-wrapper",
    "-Xlinker",
    "-Xassembler",
    "-Xpreprocessor",
    "-Xclang",
    "-target",
    "--param",
    "-dumpbase",
    "-J",
    "-module-dir",
];

/// Options with which a compiler does not link, or does not link with shared libraries (`-r`).
const WITHOUT_LINK: [&str; 7] = ["-c", "-S", "-E", "-M", "-MM", "-fsyntax-only", "-r"];

/// What the compiler will do with its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    /// Nothing to compile or link: the compiler just prints information, and the wrapper adds no arguments.
    /// With an added `-lmpi_abi`, `mpicc -v` would try to link a program without object files.
    Nothing,
    Compile,
    Link,
}

fn work(arguments: &[OsString]) -> Work {
    let (mut files, mut link) = (false, true);
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let text = argument.to_str().unwrap_or_default();
        if WITH_VALUE.contains(&text) {
            // The value of -Xlinker may be an option that names a library to link. The values of all other
            // options name nothing to link.
            let value = rest.next();
            files |= text == "-Xlinker" && value.is_some_and(|v| v.as_bytes().starts_with(b"-l"));
        } else if WITHOUT_LINK.contains(&text) {
            link = false;
        } else {
            files |= !text.starts_with('-') || text == "-" || text.starts_with("-l");
        }
    }
    match (files, link) {
        (false, _) => Work::Nothing,
        (true, false) => Work::Compile,
        (true, true) => Work::Link,
    }
}

/// Returns an option such as `-I` or `-L` together with its path, as one word.
fn with_path(option: &str, path: &OsStr) -> OsString {
    let mut word = OsString::from(option);
    word.push(path);
    word
}

/// Returns the arguments that compiling needs.
pub fn compile_words(places: &Places) -> Vec<OsString> {
    let folders = include_folders(places);
    folders.into_iter().map(|folder| with_path("-I", folder.as_os_str())).collect()
}

/// Returns the directories of headers. Those for Fortran programs come first.
fn include_folders(places: &Places) -> Vec<&PathBuf> {
    let fortran = places.fortran.as_ref().filter(|folder| **folder != places.include);
    places.modules.iter().chain(fortran).chain([&places.include]).collect()
}

/// Returns the libraries, without `-l`.
fn libraries(places: &Places) -> &'static [&'static str] {
    if places.fortran.is_some() { &["mpifort_abi", "mpi_abi"] } else { &["mpi_abi"] }
}

/// Returns the arguments that linking needs.
pub fn link_words(places: &Places) -> Vec<OsString> {
    let lib = places.lib.as_os_str();
    let mut words = vec![with_path("-L", lib)];
    if memchr::memchr(b',', lib.as_bytes()).is_some() {
        // -Wl splits its value at commas, so a path with a comma needs -Xlinker instead.
        words.extend(["-Xlinker", "-rpath", "-Xlinker"].map(OsString::from));
        words.push(lib.to_owned());
    } else {
        words.push(with_path("-Wl,-rpath,", lib));
    }
    // The option `--enable-new-dtags` makes the linker set RUNPATH instead of RPATH, so that LD_LIBRARY_PATH
    // can select another library of the same ABI.
    words.push("-Wl,--enable-new-dtags".into());
    words.extend(libraries(places).iter().map(|name| OsString::from(format!("-l{name}"))));
    words
}

/// Says whether the answer to the request has arguments for compiling.
pub fn compiles(request: &Request) -> bool {
    match request.query {
        None => work(&request.arguments) != Work::Nothing,
        Some(query) => {
            use Query::{Command, Compile, CompileCommand, IncludeDirs, Modules};
            matches!(query, Command | Compile | CompileCommand | IncludeDirs | Modules)
        }
    }
}

/// Returns the whole command line of the compiler.
pub fn complete(request: &Request, places: &Places) -> Vec<OsString> {
    // If a query comes without other arguments, show the command line for compiling and linking a
    // program.
    let asked = request.arguments.is_empty() && request.query.is_some();
    let work = if asked { Work::Link } else { work(&request.arguments) };
    let mut words = request.compiler.clone();
    if work != Work::Nothing {
        words.extend(compile_words(places));
    }
    words.extend(request.arguments.iter().cloned());
    if work == Work::Link {
        // The library must come after the object files that use it.
        words.extend(link_words(places));
    }
    words
}

/// Returns the answer to a query, as words that are quoted for a shell.
pub fn answer(query: Query, request: &Request, places: &Places) -> String {
    let with_compiler = |words: Vec<OsString>| [request.compiler.clone(), words].concat();
    let words = match query {
        Query::Command => complete(request, places),
        Query::Compiler => request.compiler.clone(),
        Query::Compile => compile_words(places),
        Query::Link => link_words(places),
        Query::CompileCommand => with_compiler(compile_words(places)),
        Query::LinkCommand => with_compiler(link_words(places)),
        Query::IncludeDirs => {
            include_folders(places).into_iter().map(|folder| folder.clone().into()).collect()
        }
        Query::LibraryDirs => vec![places.lib.clone().into()],
        Query::Libraries => libraries(places).iter().map(OsString::from).collect(),
        // `mod.rs` answers these queries itself.
        Query::Version | Query::Help | Query::Modules | Query::Stores => Vec::new(),
    };
    words.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOOL: Tool = Tool {
        name: "mpicc",
        language: "C",
        compiler: "cc",
        choosers: &["-cc=", "-other="],
        variables: &["OUR_CC", "THEIR_CC"],
        fortran: false,
    };
    const LINK: &str = "-L/p/lib -Wl,-rpath,/p/lib -Wl,--enable-new-dtags -lmpi_abi";

    fn places() -> Places {
        let (include, lib) = ("/p/include".into(), "/p/lib".into());
        Places { include, lib, fortran: None, modules: None, store: None }
    }

    fn request(line: &str) -> Result<Request, String> {
        read(&TOOL, line.split_whitespace().map(OsString::from).collect(), |_| None)
    }

    /// Returns the compiler's command line that the wrapper would run for `line`.
    fn run(line: &str) -> String {
        let words = complete(&request(line).expect(line), &places());
        words
            .iter()
            .map(|word| word.to_str().expect("every word is UTF-8"))
            .collect::<Vec<_>>()
            .join(" ")
    }

    /// Returns the answer that the wrapper would print for the query `line`.
    fn ask(line: &str) -> String {
        let request = request(line).expect(line);
        answer(request.query.expect("the line is a query"), &request, &places())
    }

    #[test]
    fn linking_gets_everything() {
        for line in ["a.c -o a", "-O2 a.o b.o", "-x c - -o a", "-shared -o l.so a.c", "-lfoo"] {
            assert_eq!(run(line), format!("cc -I/p/include {line} {LINK}"));
        }
    }

    #[test]
    fn compiling_gets_the_header_alone() {
        for line in ["-c a.c", "a.c -E", "-S -o a.s a.c", "-M a.c", "-r a.o b.o -o c.o"] {
            assert_eq!(run(line), format!("cc -I/p/include {line}"));
        }
    }

    #[test]
    fn questions_to_the_compiler_stay_as_they_are() {
        for line in ["--version", "-v", "-dumpmachine", "-print-search-dirs", "-o a -I b", ""] {
            assert_eq!(run(line), format!("cc {line}").trim_end());
        }
    }

    #[test]
    fn queries_of_both_families() {
        let whole = format!("cc -I/p/include {LINK}");
        for line in ["-show", "--show", "-showme", "--showme"] {
            assert_eq!(ask(line), whole);
        }
        assert_eq!(ask("-showme:command"), "cc");
        assert_eq!(ask("-showme:compile"), "-I/p/include");
        assert_eq!(ask("--showme:link"), LINK);
        assert_eq!(ask("-showme:incdirs"), "/p/include");
        assert_eq!(ask("-showme:libdirs"), "/p/lib");
        assert_eq!(ask("-showme:libs"), "mpi_abi");
        assert_eq!(ask("-compile_info"), "cc -I/p/include");
        assert_eq!(ask("-compile-info"), "cc -I/p/include");
        assert_eq!(ask("-link_info"), format!("cc {LINK}"));
        assert_eq!(ask("-link-info"), format!("cc {LINK}"));
    }

    #[test]
    fn show_shows_what_would_be_run() {
        assert_eq!(ask("-show -c a.c"), "cc -I/p/include -c a.c");
        assert_eq!(ask("-O3 a.c -show"), format!("cc -I/p/include -O3 a.c {LINK}"));
        let definition = ask("-show -c -DX=\"a\" a.c");
        assert_eq!(definition, "cc -I/p/include -c '-DX=\"a\"' a.c");
    }

    #[test]
    fn another_compiler() {
        assert_eq!(run("-cc=clang -c a.c"), "clang -I/p/include -c a.c");
        assert_eq!(ask("-other=icx -show"), format!("icx -I/p/include {LINK}"));
        let arguments = vec!["-cc=ccache gcc".into(), "-c".into(), "a.c".into()];
        let request = read(&TOOL, arguments, |_| None);
        let words = complete(&request.expect("the arguments are valid"), &places());
        assert_eq!(words, ["ccache", "gcc", "-I/p/include", "-c", "a.c"]);
        assert_eq!(request_with("-cc=", &[]).ok(), None);
    }

    fn request_with(line: &str, set: &[(&str, &str)]) -> Result<Request, String> {
        let arguments = line.split_whitespace().map(OsString::from).collect();
        read(&TOOL, arguments, |name| {
            let (_, value) = set.iter().find(|(set, _)| *set == name)?;
            Some((*value).to_owned())
        })
    }

    #[test]
    fn variables_choose_the_compiler() {
        let compiler = |line: &str, set: &[(&str, &str)]| {
            request_with(line, set).expect("the line is valid").compiler
        };
        let both = [("THEIR_CC", "icx"), ("OUR_CC", "ccache clang")];
        assert_eq!(compiler("-c a.c", &both), ["ccache", "clang"]);
        assert_eq!(compiler("-c a.c", &both[..1]), ["icx"]);
        assert_eq!(compiler("-cc=gcc -c a.c", &both), ["gcc"]);
        assert_eq!(compiler("-c a.c", &[("OUR_CC", ""), ("THEIR_CC", " ")]), ["cc"]);
        assert_eq!(compiler("-c a.c", &[("OTHER", "x")]), ["cc"]);
    }

    #[test]
    fn unknown_queries_fail() {
        for line in ["-showme:nonsense", "-show:x", "-shownothing", "-compile_flags", "-link_x"] {
            let error = request(line).expect_err(line);
            assert!(error.starts_with(line) && error.contains("unknown query"), "{error}");
        }
        let error = request("-showme:link -showme:libs").expect_err("two queries are refused");
        assert_eq!(error, "-showme:libs: only one query is allowed at a time");
    }

    #[test]
    fn no_answer_defines_anything() {
        for line in ["-show", "-showme:compile", "-showme:link", "-compile_info", "-link_info"] {
            assert!(!ask(line).contains("-D"), "{line}");
        }
    }

    /// Checks that the manual page describes the queries that the wrapper understands, and no others.
    #[test]
    fn the_manual_page_has_every_query() {
        let page = include_str!("../../../guide/mpicc.1.md");
        let mut described: Vec<&str> = page
            .lines()
            .filter(|line| line.starts_with("**-"))
            .flat_map(|line| line.split("**"))
            .filter(|word| word.starts_with('-'))
            .collect();
        let before = described.len();
        described.retain(|word| !word.ends_with('='));
        assert_eq!(before - described.len(), 4, "-cc=, -cxx=, -CC=, -fc=");
        let mut known = [
            "-show",
            "-showme",
            "-showme:command",
            "-showme:compile",
            "-showme:link",
            "-showme:incdirs",
            "-showme:libdirs",
            "-showme:libs",
            "-showme:version",
            "-compile_info",
            "-compile-info",
            "-link_info",
            "-link-info",
            "-help",
        ];
        assert!(known.iter().all(|word| matches!(query(word), Some(Ok(_)))));
        known.sort_unstable();
        described.sort_unstable();
        assert_eq!(described, known);
    }

    #[test]
    fn fortran_has_modules_and_two_libraries() {
        let places = Places {
            fortran: Some("/p/include".into()),
            modules: Some("/home/m".into()),
            ..places()
        };
        let request = request("-show -c a.f90").expect("the arguments are valid");
        let command = answer(Query::Command, &request, &places);
        assert_eq!(command, "cc -I/home/m -I/p/include -c a.f90");
        let link = answer(Query::Link, &request, &places);
        assert!(link.ends_with(" -lmpifort_abi -lmpi_abi"), "{link}");
        assert_eq!(answer(Query::IncludeDirs, &request, &places), "/home/m /p/include");
    }

    #[test]
    fn strange_paths() {
        let (include, lib) = ("/a b/include".into(), "/a,b/lib".into());
        let places = Places { include, lib, fortran: None, modules: None, store: None };
        let request = request("-show").expect("the arguments are valid");
        assert_eq!(
            answer(Query::Command, &request, &places),
            "cc '-I/a b/include' -L/a,b/lib -Xlinker -rpath -Xlinker /a,b/lib \
             -Wl,--enable-new-dtags -lmpi_abi"
        );
        assert_eq!(quoted(OsStr::new("it's")), r"'it'\''s'");
    }
}
