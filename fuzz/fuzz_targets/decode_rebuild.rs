//! cargo-fuzz target: rebuilds types from their contents (the arguments of the constructor calls, which
//! each type reports), and compares the rebuilt types with the originals.
//!
//! A failure prints the case as one line.
#![no_main]

use libfuzzer_sys::fuzz_target;
use typepack_fuzz::{Case, decode_rebuild};

fuzz_target!(|case: Case| {
    if let Err(reason) = decode_rebuild::check(&case) {
        panic!("{case}\n{reason}");
    }
});
