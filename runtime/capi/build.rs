//! Generates the exported functions from the tables of the ABI, and sets the library's soname.

use std::path::Path;
use typepack_capi_tables::{Tables, declaration, entries, exports, folder};

fn main() {
    println!("cargo:rerun-if-changed={}", folder().display());
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libmpi_abi.so.1");
    // No symbol of another library may stand in for a function whose address this library takes (`src/entries.rs`).
    println!("cargo:rustc-cdylib-link-arg=-Wl,-Bsymbolic-functions");
    let out = std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR for every build script");
    let tables = Tables::read();
    let source = exports(&tables.functions, &tables.built, &tables.callbacks, &tables.handlers);
    let write = |name: &str, source: String| {
        let path = Path::new(&out).join(name);
        std::fs::write(&path, source).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    };
    write("exports.rs", source);
    write("declaration.rs", declaration(&tables.functions, &tables.callbacks));
    write("entries.rs", entries(&tables.functions, &tables.callbacks));
}
