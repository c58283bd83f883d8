//! The functions that `build.rs` generates from the tables.

#![allow(
    clippy::too_many_arguments,
    clippy::unnecessary_cast,
    clippy::let_and_return,
    clippy::ptr_as_ptr,
    clippy::redundant_closure,
    clippy::useless_conversion
)]

use crate::entries::entries;
use crate::handle::{self, Handle};
use crate::{array, attribute, buffer, code, number, peers, raw, status, text, values};
use std::ffi::{c_char, c_double, c_int, c_void};

include!(concat!(env!("OUT_DIR"), "/exports.rs"));
