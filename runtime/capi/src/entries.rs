//! The table of this library's functions for `libmpi.so.12` (`front.rs`), which the build script generates.
//!
//! The library is linked so that the addresses in the table are those of its own functions (`-Bsymbolic-functions`): the
//! other library, which a program loads first, has functions of the same names.

#![allow(non_upper_case_globals, reason = "the table has the name of a C symbol")]

use crate::front::{Entries, VERSION};

include!(concat!(env!("OUT_DIR"), "/entries.rs"));
