//! Generates the table of the host's functions, and the wrappers of the functions that are taken over, from
//! the tables of the ABI and `functions.csv`.

use std::path::Path;
use typepack_capi_tables::{Tables, Wrapped, folder, wrappers};

fn main() {
    let list = Path::new(env!("CARGO_MANIFEST_DIR")).join("functions.csv");
    println!("cargo:rerun-if-changed={}", folder().display());
    println!("cargo:rerun-if-changed={}", list.display());
    let out = std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR for every build script");
    let out = Path::new(&out);
    let Tables { functions, callbacks, .. } = Tables::read();
    let source = wrappers(&functions, &Wrapped::read(&list), &callbacks);
    std::fs::write(out.join("next.rs"), source.next).expect("cannot write next.rs");
    std::fs::write(out.join("exports.rs"), source.exports).expect("cannot write exports.rs");
}
