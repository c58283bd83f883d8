//! Generates the constants of the ABI from the tables in `runtime/capi/abi`.

use std::path::Path;
use typepack_capi_tables::{Tables, constants, folder};

fn main() {
    println!("cargo:rerun-if-changed={}", folder().display());
    let out = std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR for every build script");
    let source = constants(&Tables::read().constants);
    std::fs::write(Path::new(&out).join("constants.rs"), source)
        .expect("cannot write constants.rs");
}
