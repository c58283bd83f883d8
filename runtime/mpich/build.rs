//! Generates the functions that programs call, and says which library has the functions that they call in turn.
//!
//! The library is linked with a stand-in for `libmpi_abi.so.1` that has its table of entries, so that it names that
//! library. It looks for it in its own folder, and in the folders above it, because an installation has this library in
//! a folder where only programs that need it look.

use std::path::Path;
use std::process::Command;
use typepack_capi_tables::{Mpich, Tables, arguments, declaration, folder, front, values};

fn main() {
    println!("cargo:rerun-if-changed={}", folder().display());
    println!("cargo:rerun-if-changed=build.rs");
    let out = std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR for every build script");
    let out = Path::new(&out);
    let Tables { functions, constants, callbacks, compat, mpich, mpich_rules, .. } = Tables::read();
    let library = Mpich { functions: &functions, callbacks: &callbacks, rules: &mpich_rules };
    let write = |name: &str, source: String| {
        let path = out.join(name);
        std::fs::write(&path, source).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    };
    write("declaration.rs", declaration(&functions, &callbacks));
    write("values.rs", values(&constants, &compat, &mpich));
    write("arguments.rs", arguments(&library));
    write("exports.rs", front(&library));
    write("stand_in.c", "const long typepack_entries[1024] = {0};\n".to_owned());

    let stand_in = out.join("libmpi_abi.so");
    let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
    let made = Command::new(&compiler)
        .args(["-shared", "-nostdlib", "-Wl,-soname,libmpi_abi.so.1", "-o"])
        .args([&stand_in, &out.join("stand_in.c")])
        .status();
    assert!(made.is_ok_and(|status| status.success()), "{}: failed", compiler.display());
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libmpi.so.12");
    println!("cargo:rustc-cdylib-link-arg=-Wl,--no-as-needed");
    println!("cargo:rustc-cdylib-link-arg={}", stand_in.display());
    // A call between functions of this library stays in it. Once told to the C library, this one must not be unloaded.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-Bsymbolic-functions,-z,nodelete");
    // DT_RPATH, because the folders in LD_LIBRARY_PATH may have the libmpi_abi.so.1 of another MPI.
    println!(
        "cargo:rustc-cdylib-link-arg=-Wl,--disable-new-dtags,-rpath,$ORIGIN:$ORIGIN/..:$ORIGIN/../.."
    );
}
