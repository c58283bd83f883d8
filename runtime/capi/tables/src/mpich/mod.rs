//! Generates the library with MPICH's ABI (`runtime/mpich`) from the tables.
//!
//! `values.rs` makes the tables of constants, from `abi/mpich.csv`. `class.rs` decides how each argument is converted,
//! from its C declaration and from `abi/mpich_rules.csv`. From the classes, `library.rs` generates the functions.

mod class;
mod library;
mod values;

pub use class::Mpich;
pub use library::{arguments, front};
pub use values::values;
