//! The constants of the ABI. `build.rs` makes them from `../../abi/constants.csv`.
//!
//! Integer constants keep their type. Handles and pointers are the integers that they are compared with. The
//! names have no prefix `MPI_`.

include!(concat!(env!("OUT_DIR"), "/constants.rs"));
