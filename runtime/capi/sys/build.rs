//! Makes a stand-in for the MPI library, with which programs are linked.
//!
//! The stand-in is named `libmpi_abi.so.1` and has the names of all functions, but does nothing. So a program builds on
//! a machine without MPI, needs `libmpi_abi.so.1` and no other library, and runs on each library of that name. The file
//! is `libmpi_abi.so`, so no program loads the stand-in: programs look for a file `libmpi_abi.so.1`.

use std::fmt::Write;
use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=src/abi.rs");
    println!("cargo:rerun-if-env-changed=CC");
    let out = std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR for every build script");
    let out = Path::new(&out);
    let mut source = String::new();
    for line in include_str!("src/abi.rs").lines() {
        if let Some((name, _)) = line.trim().strip_prefix("pub fn ").and_then(|f| f.split_once('('))
        {
            let _ = writeln!(source, "void {name}(void) {{}}");
        }
    }
    let file = out.join("stand-in.c");
    std::fs::write(&file, source).expect("cannot write stand-in.c");
    // For another machine, the linker that Cargo calls is the compiler of that machine.
    let compiler = std::env::var_os("CC").or_else(|| std::env::var_os("RUSTC_LINKER"));
    let compiler = compiler.unwrap_or_else(|| "cc".into());
    // `CC` may have options, such as `gcc -m64`, or a program before the compiler, such as `ccache gcc`.
    let compiler = compiler.to_string_lossy().into_owned();
    let mut words = compiler.split_whitespace();
    let made = Command::new(words.next().unwrap_or("cc"))
        .args(words)
        .args(["-shared", "-fPIC", "-nostdlib", "-w", "-Wl,-soname,libmpi_abi.so.1", "-o"])
        .args([&out.join("libmpi_abi.so"), &file])
        .status();
    assert!(
        made.as_ref().is_ok_and(|status| status.success()),
        "{compiler}: cannot make a shared library ({made:?}); name a C compiler in CC"
    );
    println!("cargo:rustc-link-search=native={}", out.display());
    println!("cargo:rustc-link-lib=dylib=mpi_abi");
}
