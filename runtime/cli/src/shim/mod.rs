//! `typepack shim`: compiles a shim with the compiler of an MPI library without the MPI 5 standard ABI.
//!
//! The C source is made by `build.rs` from the tables of the ABI and `runtime/interpose/shim`. What the MPI library has
//! differs from library to library: the compiler's preprocessor prints `mpi.h`, and for each name that the source asks
//! for and the header has, the source gets a macro `HOST_HAS_NAME`.

use crate::agree::{FAILURE, USAGE, say};
use crate::run::{self, SHIM};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The arguments of `typepack shim`.
#[derive(clap::Args, Debug)]
pub struct Options {
    /// The compiler of the MPI library, such as /usr/bin/mpicc
    #[arg(long, value_name = "FILE")]
    pub mpicc: PathBuf,
    /// The folder for the shim; it is made if it does not exist
    #[arg(long, value_name = "FOLDER")]
    pub out: PathBuf,
    /// The library libtypepack_interpose.so, if it is not installed beside this program
    #[arg(long, value_name = "FILE")]
    pub library: Option<PathBuf>,
}

/// The library that is linked with the MPI library. It lies beside the shim.
const TABLE: &str = "libtypepack_shim_host.so";

/// The source without the macros.
const SOURCE: &str = include_str!(concat!(env!("OUT_DIR"), "/shim.c"));

/// Compiles the shim. Returns the exit code.
pub fn run(options: &Options) -> u8 {
    let library = match run::library("shim", options.library.as_deref()) {
        Ok(library) => library,
        Err(line) => {
            say(line);
            return USAGE;
        }
    };
    match compile(&options.mpicc, &options.out, &library) {
        Ok(shim) => {
            say(format_args!("shim: {} is ready; start programs with", shim.display()));
            say(format_args!("  typepack run --library {} -- COMMAND", shim.display()));
            0
        }
        Err(line) => {
            say(format_args!("shim: {line}"));
            FAILURE
        }
    }
}

/// Compiles the two libraries into the folder `out`. Returns the path of the shim.
fn compile(mpicc: &Path, out: &Path, library: &Path) -> Result<PathBuf, String> {
    fs::create_dir_all(out).map_err(|e| format!("--out {}: {e}", out.display()))?;
    let out = out.canonicalize().map_err(|e| format!("--out {}: {e}", out.display()))?;
    let source = out.join("typepack_shim.c");
    let write = |text: &str| {
        fs::write(&source, text).map_err(|e| format!("--out {}: {e}", source.display()))
    };
    write("#include <mpi.h>\n")?;
    let header = compiler(mpicc, &["-E", "-dD"], &source, None)?;
    if header.contains("#define MPI_ABI_VERSION") {
        return Err(format!(
            "{}: the mpi.h of this compiler has the MPI 5 standard ABI, so no shim is needed",
            mpicc.display()
        ));
    }
    write(&with_macros(&header, library))?;
    let flags = ["-std=gnu11", "-O2", "-w", "-fPIC", "-fno-strict-aliasing", "-pthread", "-shared"];
    let linked = [&flags[..], &["-DTYPEPACK_TABLE", "-Wl,--no-as-needed"]].concat();
    compiler(mpicc, &linked, &source, Some(&out.join(TABLE)))?;
    // The shim uses no symbol of the MPI library that the linker could see, so it does not load that library.
    let free = [&flags[..], &["-Wl,--as-needed", "-Wl,-z,now"]].concat();
    let shim = out.join(SHIM);
    compiler(mpicc, &free, &source, Some(&shim))?;
    Ok(shim)
}

/// Runs the compiler of the MPI library, and returns what it prints.
fn compiler(
    mpicc: &Path,
    flags: &[&str],
    source: &Path,
    to: Option<&Path>,
) -> Result<String, String> {
    let mut command = Command::new(mpicc);
    command.args(flags).arg(source).stdin(Stdio::null());
    if let Some(to) = to {
        command.arg("-o").arg(to).arg("-ldl");
    }
    let done = command.output().map_err(|e| format!("--mpicc {}: {e}", mpicc.display()))?;
    if done.status.success() {
        return Ok(String::from_utf8_lossy(&done.stdout).into_owned());
    }
    let error = String::from_utf8_lossy(&done.stderr);
    let line = error.lines().find(|line| line.contains("error")).or(error.lines().last());
    Err(format!("--mpicc {}: {}", mpicc.display(), line.unwrap_or("the compiler failed")))
}

/// Returns the source, with a macro before it for each name that the source asks for and that `mpi.h` contains.
fn with_macros(header: &str, library: &Path) -> String {
    let names: BTreeSet<&str> = words(header).collect();
    let wanted: BTreeSet<&str> =
        words(SOURCE).filter_map(|word| word.strip_prefix("HOST_HAS_")).collect();
    let mut out = String::new();
    for name in wanted.intersection(&names) {
        let _ = writeln!(out, "#define HOST_HAS_{name} 1");
    }
    let path = library.display().to_string().replace('\\', "\\\\").replace('"', "\\\"");
    let version = env!("CARGO_PKG_VERSION");
    let _ =
        writeln!(out, "#define TYPEPACK_CORE \"{path}\"\n#define TYPEPACK_VERSION \"{version}\"");
    out + SOURCE
}

/// Returns the words of a C text.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::with_macros;
    use std::path::Path;

    #[test]
    fn the_source_asks_only_for_names_that_the_header_has() {
        let header = "#define MPI_INT ((MPI_Datatype)1)\nint MPI_Send(const void *buf);\nenum { MPI_COMBINER_DUP = 2 };";
        let text = with_macros(header, Path::new("/a \"b\"/core.so"));
        for name in ["MPI_INT", "MPI_Send", "MPI_COMBINER_DUP"] {
            assert!(text.contains(&format!("#define HOST_HAS_{name} 1\n")), "{name}");
        }
        assert!(!text.contains("#define HOST_HAS_MPI_Send_c"));
        assert!(text.contains("#define TYPEPACK_CORE \"/a \\\"b\\\"/core.so\"\n"));
    }
}
