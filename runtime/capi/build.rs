//! Makes the exported functions and the constants from the tables in `abi/`, and names the library.

#[path = "generate/constants.rs"]
mod constants;
#[path = "generate/ctype.rs"]
mod ctype;
#[path = "generate/exports.rs"]
mod exports;
#[expect(dead_code, reason = "rows and columns that only the header needs")]
#[path = "generate/table.rs"]
mod table;

use std::path::Path;

fn main() {
    println!("cargo:rerun-if-changed=abi");
    println!("cargo:rerun-if-changed=generate");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libmpi_abi.so.1");
    let abi = Path::new("abi");
    let out = std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR");
    let out = Path::new(&out);
    let functions = table::functions(abi);
    let source = exports::exports(&functions, &table::built(abi), &table::callbacks(abi));
    std::fs::write(out.join("exports.rs"), source).expect("exports.rs");
    let source = constants::constants(&table::constants(abi));
    std::fs::write(out.join("constants.rs"), source).expect("constants.rs");
}
