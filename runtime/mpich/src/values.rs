//! The constants of both ABIs, made by `build.rs` from `runtime/capi/abi/constants.csv` and `runtime/capi/abi/mpich.csv`.

use crate::number::Pairs;

include!(concat!(env!("OUT_DIR"), "/values.rs"));
