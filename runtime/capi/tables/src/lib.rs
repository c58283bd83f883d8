//! Reads the tables of the MPI 5 standard ABI (`../../abi/*.csv`), and generates source from them.
//!
//! Only build scripts and tests use this crate, so it is not part of the library. `rows.rs` reads the tables.
//! From their rows, `constants.rs` generates the constants, `exports.rs` the exported functions of the C
//! library (with the Rust types from `ctype.rs`), and `header.rs` the file `include/mpi.h`. `wrappers.rs` generates the
//! functions of a library that is loaded in front of another MPI library, `shim.rs` the C source that lies between that
//! library and an MPI library without the ABI. `fortran/` generates the Fortran face,
//! `mpich/` the library with MPICH's ABI (both with the rules of `rule.rs`), `entries.rs` the table through which that
//! library calls the C library, `cxx/` the file `include/mpicxx.h`, and `bindings.rs` the Rust bindings of
//! `typepack-mpi-sys`.

mod bindings;
mod constants;
mod ctype;
mod cxx;
mod entries;
mod exports;
mod fortran;
mod header;
mod mpich;
mod rows;
mod rule;
mod shim;
mod wrappers;

pub use bindings::bindings;
pub use constants::constants;
pub use cxx::{Method, cxx};
pub use entries::{declaration, entries};
pub use exports::exports;
pub use fortran::{Form, Fortran, Library, MODULES, include_file, library, module};
pub use header::header;
pub use mpich::{Mpich, arguments, front, values};
pub use rows::{Built, Callback, Compat, Constant, Function, HANDLES, Handled, Parameter, number};
pub use rule::Rule;
pub use shim::{Shim, shim};
pub use wrappers::{When, Wrapped, Wrappers, wrappers};

use std::path::Path;

/// Returns the folder of the tables, `runtime/capi/abi`. It is a link in this crate's folder, so that the crate's package has
/// the tables.
pub fn folder() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/abi"))
}

/// All tables.
#[derive(Clone, Debug)]
pub struct Tables {
    /// `functions.csv`.
    pub functions: Vec<Function>,
    /// `constants.csv`.
    pub constants: Vec<Constant>,
    /// `callbacks.csv`.
    pub callbacks: Vec<Callback>,
    /// `compat.csv`.
    pub compat: Vec<Compat>,
    /// `built.csv`.
    pub built: Vec<Built>,
    /// `handlers.csv`.
    pub handlers: Vec<Handled>,
    /// `fortran.csv`.
    pub fortran: Vec<Rule>,
    /// `mpich.csv`: constants and their values in MPICH.
    pub mpich: Vec<(String, i64)>,
    /// `mpich_rules.csv`.
    pub mpich_rules: Vec<Rule>,
    /// `cxx.csv`.
    pub methods: Vec<Method>,
}

impl Tables {
    /// Reads the tables.
    ///
    /// # Panics
    /// Panics if a table cannot be read or has a malformed row. Without the tables, nothing can be compiled.
    pub fn read() -> Self {
        let abi = folder();
        Self {
            functions: rows::functions(abi),
            constants: rows::constants(abi),
            callbacks: rows::callbacks(abi),
            compat: rows::compat(abi),
            built: rows::built(abi),
            handlers: rows::handlers(abi),
            fortran: Rule::read(&abi.join("fortran.csv")),
            mpich: rows::mpich(abi),
            mpich_rules: Rule::read(&abi.join("mpich_rules.csv")),
            methods: Method::read(abi),
        }
    }
}
