//! Which arguments are constants, made by `build.rs` from `runtime/capi/abi/functions.csv` and
//! `runtime/capi/abi/mpich_rules.csv`.

use crate::number::Kind;
use crate::values::*;

include!(concat!(env!("OUT_DIR"), "/arguments.rs"));
