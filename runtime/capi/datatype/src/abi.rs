//! The constants of the ABI. `build.rs` generates them from `../../abi/constants.csv`.
//!
//! An integer constant has the C type that the standard gives it. A constant that is a handle or a pointer
//! in C is an integer here, because the library compares it with the handles and addresses that C passes.
//! The names lack the prefix `MPI_`.

include!(concat!(env!("OUT_DIR"), "/constants.rs"));
