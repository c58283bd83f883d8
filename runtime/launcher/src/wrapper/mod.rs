//! The compiler wrappers: `bin/mpicc.rs` and `bin/mpicxx.rs` say which.
//!
//! The flow: `prefix.rs` finds header and library from the wrapper's own path, `line.rs` tells
//! queries from compilations and completes the compiler's arguments; here the answer is printed or
//! the compiler takes this process over.
//!
//! Invariants: one prefix, one ABI: nothing in the environment changes what is compiled for; a
//! query that nobody knows fails, since build systems try one vendor's after the other's and trust
//! the exit code; no `-D` is ever added, so that readers of our answers that see only `-I`, `-L`
//! and `-l` miss nothing.

mod line;
mod prefix;

use std::ffi::OsString;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use line::{Query, Request};

/// One of the wrappers.
#[derive(Debug)]
pub struct Tool {
    /// Its name in messages.
    pub name: &'static str,
    /// The language as Open MPI's wrappers write it.
    pub language: &'static str,
    /// The compiler unless the command line names another.
    pub compiler: &'static str,
    /// Options that name another: `-cc=`.
    pub choosers: &'static [&'static str],
}

/// Runs the wrapper.
pub fn main(tool: &Tool) -> ExitCode {
    match run(tool) {
        Ok(code) => code,
        Err((message, code)) => {
            // Where standard error is gone too, the exit code is all that is left to tell.
            let _nobody_reads = writeln!(std::io::stderr(), "{}: {message}", tool.name);
            ExitCode::from(code)
        }
    }
}

fn run(tool: &Tool) -> Result<ExitCode, (String, u8)> {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let request = line::read(tool, arguments).map_err(|message| (message, 1))?;
    if request.query == Some(Query::Help) {
        return print(&help(tool));
    }
    if request.query == Some(Query::Version) {
        let (name, version) = (tool.name, env!("CARGO_PKG_VERSION"));
        return print(&format!("{name}: typepack {version} (Language: {})\n", tool.language));
    }
    let exe = std::env::current_exe()
        .map_err(|error| (format!("cannot tell where this program is: {error}"), 1))?;
    let places = prefix::find(&exe).map_err(|message| (message, 1))?;
    if let Some(query) = &request.query {
        let mut answer = line::answer(*query, &request, &places);
        answer.push('\n');
        return print(&answer);
    }
    Err(execute(&request, &places))
}

/// Becomes the compiler; returns why that failed.
fn execute(request: &Request, places: &prefix::Places) -> (String, u8) {
    let words = line::complete(request, places);
    let Some((compiler, arguments)) = words.split_first() else {
        return ("the name of the compiler is empty".to_owned(), 1);
    };
    let error = Command::new(compiler).args(arguments).exec();
    let code = if error.kind() == std::io::ErrorKind::NotFound { 127 } else { 126 };
    (format!("cannot run the compiler '{}': {error}", compiler.to_string_lossy()), code)
}

fn print(text: &str) -> Result<ExitCode, (String, u8)> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .map_err(|error| (format!("standard output: {error}"), 1))?;
    Ok(ExitCode::SUCCESS)
}

fn help(tool: &Tool) -> String {
    let Tool { name, language, compiler, choosers } = tool;
    let chooser = choosers[0];
    format!(
        "\
Compiles and links {language} programs that use MPI: {compiler} with the paths of typepack's
header and library added.

usage: {name} [options of the compiler] files...
       {name} QUERY

  {chooser}COMPILER       the compiler to use instead of {compiler}
  -show              print the command instead of running it
  -showme            the same; -showme:command, :compile, :link, :incdirs, :libdirs, :libs,
                     :version print one part of it
  -compile_info      print the command that compiles (also -compile-info)
  -link_info         print the command that links (also -link-info)
  -help, --help      this text

All else goes to the compiler. Header and library are those of the prefix that {name} is in.

examples:
  {name} -O2 hello.c -o hello && mpiexec -n 2 ./hello
  {chooser}clang -showme:compile
"
    )
    .replace(&format!("  {chooser}clang"), &format!("  {name} {chooser}clang"))
}
