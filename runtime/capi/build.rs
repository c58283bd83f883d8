//! Generates the exported functions from the tables of the ABI, and sets the library's soname.

use std::path::Path;
use typepack_capi_tables::{Tables, exports, folder};

fn main() {
    println!("cargo:rerun-if-changed={}", folder().display());
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libmpi_abi.so.1");
    let out = std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR for every build script");
    let tables = Tables::read();
    let source = exports(&tables.functions, &tables.built, &tables.callbacks, &tables.handlers);
    std::fs::write(Path::new(&out).join("exports.rs"), source).expect("cannot write exports.rs");
}
