//! Communicators whose ranks form a Cartesian grid (`cartesian.rs`).
//!
//! `coll/` makes the communicator of a grid, and `halo/` exchanges data between neighbours in the grid.

mod cartesian;

pub use cartesian::{Cartesian, dims_create};
