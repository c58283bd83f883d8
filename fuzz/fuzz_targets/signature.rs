//! cargo-fuzz target: compares signatures with the list of basic types.
//!
//! A failure prints the pair as two lines, the third case and the seed.
#![no_main]

use libfuzzer_sys::fuzz_target;
use typepack_fuzz::{Case, Pair, Stream, signature};

fuzz_target!(|input: (u64, Pair, Case)| {
    let (seed, pair, other) = input;
    if let Err(reason) = signature::check(&pair, &other, &mut Stream::new(seed, 0)) {
        panic!("{pair}\nother: {other}, seed {seed}\n{reason}");
    }
});
