//! The C functions of the ABI.

#![allow(clippy::too_many_arguments)]
#![allow(dead_code, reason = "handles are converted by one of the two names")]

use crate::raw;
use std::ffi::{c_char, c_double, c_int, c_void};

include!(concat!(env!("OUT_DIR"), "/functions.rs"));
