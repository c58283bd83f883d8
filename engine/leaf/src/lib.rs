//! Leaf kernels: what moves the bytes of datatypes.
//!
//! - `contiguous/` copies runs of bytes.
//! - `kernel/` says what a compiled kernel is: its nest, shape, parameter block and entry point. It also has the
//!   interpreter, which executes any nest.
//! - `routine/` has the leaf kernels, which execute the inner levels of a nest with the vector instructions of an
//!   instruction set ([`Isa`]).
//!
//! The engine (`typepack-engine`) chooses among them. This crate reads no environment and makes no choice that a caller
//! can make: an instruction set or a copy method that is forced comes from the caller.
//!
//! This crate is compiled once, with optimisation in every profile. So no other crate may compile its loops again: a
//! public function that is generic over the direction is a few instructions long and calls a function from a table of
//! two, a `static`. A table that is a constant would not do: a crate that uses a constant compiles the functions that
//! the constant names.

pub mod contiguous;
mod isa;
pub mod kernel;
mod routine;
mod table;

pub use isa::{Isa, ParseIsaError};
pub use routine::{
    Class, Load, Mover, Routine, Swap, Width, copy_swapped, lists, mover, tile_elements, tiles,
    traversal,
};
pub use table::Table;
