//! `typepack fortran`: makes the Fortran modules for a compiler.
//!
//! `mpifort` makes them, as it does when a compiler is first used; this command runs it. So there is one place that
//! knows how: `runtime/launcher/src/wrapper/fortran.rs`.

use crate::agree::{FAILURE, say};
use crate::run::executable;
use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The arguments of `typepack fortran`.
#[derive(clap::Args, Debug)]
pub struct Options {
    /// The compiler, such as gfortran-13 or /opt/bin/ifx, with or without arguments
    ///
    /// Without this option, the compilers in PATH whose names are known: gfortran, flang, flang-20 to flang-22, ifx,
    /// nvfortran.
    #[arg(long, value_name = "COMPILER")]
    pub fc: Option<String>,
}

/// The names of compilers that are looked for.
pub const NAMES: [&str; 7] =
    ["gfortran", "flang", "flang-22", "flang-21", "flang-20", "ifx", "nvfortran"];

/// Makes the modules. Returns the exit code.
pub fn run(options: &Options) -> u8 {
    let compilers: Vec<&str> = match &options.fc {
        Some(compiler) => vec![compiler],
        None => {
            // Several names may be links to one file.
            let mut files: Vec<PathBuf> = Vec::new();
            let is_new = |name: &&str| {
                let Some(path) = executable(OsStr::new(name), true) else { return false };
                let file = path.canonicalize().unwrap_or(path);
                let is_new = !files.contains(&file);
                files.push(file);
                is_new
            };
            NAMES.into_iter().filter(is_new).collect()
        }
    };
    if compilers.is_empty() {
        say(format_args!(
            "fortran: no compiler in PATH ({}); name one with --fc",
            NAMES.join(", ")
        ));
        return 0;
    }
    let wrapper = match wrapper() {
        Ok(wrapper) => wrapper,
        Err(line) => {
            say(format_args!("fortran: {line}"));
            return FAILURE;
        }
    };
    let mut code = 0;
    for compiler in compilers {
        let mut command = Command::new(&wrapper);
        // It prints where the modules are, and one line about what it cannot do.
        match command.arg(format!("-fc={compiler}")).arg("-typepack-modules").status() {
            Ok(status) if status.success() => {}
            Ok(_) => code = FAILURE,
            Err(error) => {
                say(format_args!("fortran: {}: {error}", wrapper.display()));
                code = FAILURE;
            }
        }
    }
    code
}

/// Returns the path of `mpifort`, which lies beside this program.
fn wrapper() -> Result<PathBuf, String> {
    let exe = env::current_exe().map_err(|error| format!("the path of this program: {error}"))?;
    let wrapper = exe.parent().unwrap_or(Path::new("/")).join("mpifort");
    if wrapper.exists() { Ok(wrapper) } else { Err(format!("{} is missing", wrapper.display())) }
}
