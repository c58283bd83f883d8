//! The code of the compiler wrappers `bin/mpicc.rs`, `bin/mpicxx.rs` and `bin/mpifort.rs`.
//!
//! The steps: `prefix.rs` finds the header and the library from the wrapper's own path. `line.rs` decides whether
//! the command line is a query or a compilation, and completes the compiler's arguments. `fortran.rs` finds or
//! makes the Fortran modules for the compiler; `cache.rs` knows where they are, and `kinds.rs` refuses options.
//! This file prints the answer to a query, or replaces the wrapper's process with the compiler (`execvp`).
//!
//! Invariants:
//! - A wrapper always compiles for the MPI ABI and with the header and the library of its own prefix. No
//!   environment variable changes this; variables only choose the compiler.
//! - An unknown query fails, because build systems try the queries of several vendors and trust the exit
//!   code.
//! - The wrapper never adds a `-D` option, because some build systems take nothing but `-I`, `-L` and `-l`
//!   from its answers.

mod cache;
mod fortran;
mod kinds;
mod line;
mod prefix;

use std::ffi::OsString;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use line::{Query, Request};

/// The properties of one of the wrappers.
#[derive(Debug)]
pub struct Tool {
    /// Name of the wrapper in messages.
    pub name: &'static str,
    /// Name of the language in the help text and in the answer to the query for the version.
    pub language: &'static str,
    /// Name of the compiler, unless the command line chooses another one.
    pub compiler: &'static str,
    /// The options that choose another compiler, such as `-cc=`.
    pub choosers: &'static [&'static str],
    /// The environment variables that choose another compiler, such as `MPICH_CC`. An earlier one comes before a later
    /// one, and the command line before all of them.
    pub variables: &'static [&'static str],
    /// True if the language is Fortran.
    pub fortran: bool,
}

/// Runs the wrapper `tool`, and returns its exit code.
pub fn main(tool: &Tool) -> ExitCode {
    match run(tool) {
        Ok(code) => code,
        Err((message, code)) => {
            // Ignore a failed write: if standard error is closed, the exit code still reports the error.
            let _nobody_reads = writeln!(std::io::stderr(), "{}: {message}", tool.name);
            ExitCode::from(code)
        }
    }
}

fn run(tool: &Tool) -> Result<ExitCode, (String, u8)> {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let variable = |name: &str| std::env::var(name).ok();
    let request = line::read(tool, arguments, variable).map_err(|message| (message, 1))?;
    if request.query == Some(Query::Help) {
        return print(&help(tool));
    }
    if matches!(request.query, Some(Query::Modules | Query::Stores)) && !tool.fortran {
        return Err((format!("{} has no Fortran modules", tool.name), 1));
    }
    if request.query == Some(Query::Version) {
        let (name, version) = (tool.name, env!("CARGO_PKG_VERSION"));
        return print(&format!("{name}: typepack {version} (Language: {})\n", tool.language));
    }
    let exe = std::env::current_exe()
        .map_err(|error| (format!("cannot find the path of this program: {error}"), 1))?;
    let mut places = prefix::find(&exe).map_err(|message| (message, 1))?;
    if tool.fortran {
        kinds::refuse(&request.arguments).map_err(|message| (message, 1))?;
        prefix::add_fortran(&exe, &mut places).map_err(|message| (message, 1))?;
        if request.query == Some(Query::Stores) {
            return print(&fortran::stores(&places));
        }
        if line::compiles(&request) {
            let asked = request.query == Some(Query::Modules);
            let missing = fortran::modules(&request.compiler, &mut places, asked)?;
            if asked {
                return print(&fortran::report(&request.compiler, &places));
            }
            if let Some(missing) = missing {
                let _nobody_reads = writeln!(std::io::stderr(), "{}: {missing}", tool.name);
            }
        }
    }
    if let Some(query) = &request.query {
        let mut answer = line::answer(*query, &request, &places);
        answer.push('\n');
        return print(&answer);
    }
    Err(execute(&request, &places))
}

/// Replaces this process with the compiler. Returns only if this fails, with an error message and an exit
/// code.
fn execute(request: &Request, places: &prefix::Places) -> (String, u8) {
    let words = line::complete(request, places);
    let Some((compiler, arguments)) = words.split_first() else {
        return ("the name of the compiler is empty".to_owned(), 1);
    };
    let error = Command::new(compiler).args(arguments).exec();
    cannot_run(&request.compiler, &error)
}

/// Returns the message and the exit code if the compiler cannot be started.
fn cannot_run(compiler: &[OsString], error: &std::io::Error) -> (String, u8) {
    let program = compiler.first().map(|name| name.to_string_lossy()).unwrap_or_default();
    let code = if error.kind() == std::io::ErrorKind::NotFound { 127 } else { 126 };
    (format!("cannot run the compiler '{program}': {error}"), code)
}

fn print(text: &str) -> Result<ExitCode, (String, u8)> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .map_err(|error| (format!("cannot write to standard output: {error}"), 1))?;
    Ok(ExitCode::SUCCESS)
}

fn help(tool: &Tool) -> String {
    let Tool { name, language, compiler, choosers, variables, fortran } = tool;
    let source = if *fortran { "hello.f90" } else { "hello.c" };
    let (chooser, variables) = (choosers[0], variables.join(", "));
    format!(
        "\
Compiles and links {language} programs that use MPI. Runs {compiler} and adds the paths of
typepack's header and library.

usage: {name} [options of the compiler] files...
       {name} QUERY

  {chooser}COMPILER       use this compiler instead of {compiler}
  -show, -showme     print the command instead of running it
  -showme:PART       print one part of it: command, compile, link, incdirs, libdirs, libs, version
  -compile_info      print the command that compiles (also -compile-info)
  -link_info         print the command that links (also -link-info)
  -help, --help      print this text

All other arguments go to the compiler. The first of {variables} that is set names
the compiler if the command line does not. {name} uses the header and the library of its own prefix.

examples:
  {name} -O2 {source} -o hello && mpiexec -n 2 ./hello
  {chooser}clang -showme:compile
"
    )
    .replace(&format!("  {chooser}clang"), &format!("  {name} {chooser}clang"))
}
