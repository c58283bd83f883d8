//! The constants of the ABI. `build.rs` makes them from `../../abi/constants.csv`.
//!
//! An integer constant has the C type that the standard gives it. A constant handle or pointer is an integer
//! here: the library compares it with the handles and addresses that C passes. The names lack the prefix
//! `MPI_`.

include!(concat!(env!("OUT_DIR"), "/constants.rs"));
