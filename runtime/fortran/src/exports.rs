//! The routines that `build.rs` generates from the tables.

#![allow(
    clippy::too_many_arguments,
    clippy::useless_conversion,
    clippy::unnecessary_cast,
    clippy::let_and_return,
    clippy::ptr_as_ptr
)]

use crate::descriptor::Descriptor;
use crate::span::Span;
use crate::{abi, raw};
use std::ffi::{c_char, c_int, c_void};

include!(concat!(env!("OUT_DIR"), "/exports.rs"));
