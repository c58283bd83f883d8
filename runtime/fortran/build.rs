//! Generates the functions that Fortran programs call, and says which library has the C functions.
//!
//! The library is linked with an empty stand-in for `libmpi_abi.so.1`, so that it names that library and no other, and
//! so that any library of the ABI can be it. It looks for that library in its own folder, too.

use std::path::Path;
use std::process::Command;
use typepack_capi_tables::{Fortran, MODULES, Tables, folder, library};

fn main() {
    println!("cargo:rerun-if-changed={}", folder().display());
    println!("cargo:rerun-if-changed=build.rs");
    let out = std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR for every build script");
    let out = Path::new(&out);
    let tables = Tables::read();
    let fortran =
        Fortran::new(&tables.functions, &tables.constants, &tables.compat, &tables.fortran);
    let source = library(&fortran, &tables.functions, &tables.callbacks);
    std::fs::write(out.join("functions.rs"), source.functions).expect("cannot write functions.rs");
    std::fs::write(out.join("exports.rs"), source.exports).expect("cannot write exports.rs");

    println!("cargo:rustc-env=MODULES_VERSION={MODULES}");
    let stand_in = out.join("libmpi_abi.so");
    let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
    let made = Command::new(&compiler)
        .args(["-shared", "-nostdlib", "-Wl,-soname,libmpi_abi.so.1", "-x", "c", "/dev/null", "-o"])
        .arg(&stand_in)
        .status();
    assert!(made.is_ok_and(|status| status.success()), "{}: failed", compiler.display());
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libmpifort_abi.so.1");
    println!("cargo:rustc-cdylib-link-arg=-Wl,--no-as-needed");
    println!("cargo:rustc-cdylib-link-arg={}", stand_in.display());
    // A program that calls MPI only from Fortran may name this library alone. Its own path (DT_RUNPATH) does not count for
    // the libraries of a library.
    println!("cargo:rustc-cdylib-link-arg=-Wl,--enable-new-dtags,-rpath,$ORIGIN");
}
