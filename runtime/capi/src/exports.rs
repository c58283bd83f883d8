//! The exported functions, made by the build script from `abi/functions.csv` and `abi/built.csv`:
//! every `MPI_X` and `PMPI_X` of the ABI. Each goes through `entry.rs`.

#![expect(unused_variables, reason = "functions that are not built look at some arguments only")]

use crate::argument::{FromC, Output};
use crate::entry::At;
use crate::raw;
use std::ffi::{c_char, c_double, c_int, c_void};

include!(concat!(env!("OUT_DIR"), "/exports.rs"));
