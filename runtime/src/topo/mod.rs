//! Communicators whose ranks have places: Cartesian grids (`cartesian.rs`).
//!
//! After `coll/`, which makes the grid's communicator; before `halo/`, which exchanges along it.

mod cartesian;

pub use cartesian::{Cartesian, dims_create};
