//! Writes the C source that `typepack shim` compiles. The source consists of the files in `runtime/interpose/shim` and
//! of functions that are generated from the tables of the ABI. Also copies the tables that `typepack info` reads, and
//! writes `mpi.h`, with which `typepack doctor` compares the header of an installation. The folder `interpose` has links,
//! so that the crate's package has the files.

use std::path::Path;
use typepack_capi_tables::{Tables, Wrapped, folder, header, shim};

fn main() {
    let interpose = Path::new(env!("CARGO_MANIFEST_DIR")).join("interpose");
    let list = interpose.join("functions.csv");
    let read = |name: &str| {
        let file = interpose.join("shim").join(name);
        println!("cargo:rerun-if-changed={}", file.display());
        std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
    };
    println!("cargo:rerun-if-changed={}", folder().display());
    println!("cargo:rerun-if-changed={}", list.display());
    let Tables { functions, constants, callbacks, compat, .. } = Tables::read();
    let made = shim(&functions, &Wrapped::read(&list), &constants);
    let source = read("prelude.c").replace("/* CONSTANTS */\n", &made.constants);
    let source = source + &made.functions + &read("epilogue.c");
    let out = std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR for every build script");
    std::fs::write(Path::new(&out).join("shim.c"), source).expect("cannot write shim.c");
    for name in ["functions.csv", "built.csv"] {
        let copied = std::fs::copy(folder().join(name), Path::new(&out).join(name));
        copied.unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    let header = header(&functions, &constants, &callbacks, &compat);
    std::fs::write(Path::new(&out).join("mpi.h"), header).expect("cannot write mpi.h");
}
