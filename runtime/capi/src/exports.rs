//! The exported functions: every `MPI_X` and `PMPI_X` of the ABI. The build script generates them from
//! `abi/functions.csv` and `abi/built.csv`. Each exported function calls its implementation through a
//! function of `entry.rs`; some first try a short way, which a module `short` has.

use crate::argument::FromC;
use crate::entry::At;
use crate::raw;
use std::ffi::{c_char, c_double, c_int, c_void};

include!(concat!(env!("OUT_DIR"), "/exports.rs"));
