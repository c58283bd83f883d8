//! Generates the Fortran face (`runtime/fortran`) from the tables.
//!
//! `class.rs` decides how each argument crosses between the languages, from its C declaration and from
//! `abi/fortran.csv`. From the classes, `library.rs` generates the Rust functions that Fortran programs call, and
//! `module.rs` the modules `mpi_f08` and `mpi` and the file `runtime/fortran/include/mpif.h`.

mod class;
mod library;
mod module;

pub use class::Fortran;
pub(crate) use class::is_logical;
pub use library::{Library, library};
pub use module::{Form, MODULES, include_file, module};
