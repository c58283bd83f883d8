//! The exported functions: one for each row of `functions.csv` that is taken over, and for its form with large counts.
//! `build.rs` generates them.

use std::ffi::{c_char, c_int, c_void};
use typepack_capi_datatype::raw;

include!(concat!(env!("OUT_DIR"), "/exports.rs"));
