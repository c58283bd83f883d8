//! cargo-fuzz target: compares the engine's signatures with lists of basic types.
//!
//! The check takes a pair of cases with equal signatures, and an unrelated case. A failure prints the
//! two cases of the pair, one per line, and then the unrelated case and the seed on one line.
#![no_main]

use libfuzzer_sys::fuzz_target;
use typepack_fuzz::{Case, Pair, Stream, signature};

fuzz_target!(|input: (u64, Pair, Case)| {
    let (seed, pair, other) = input;
    if let Err(reason) = signature::check(&pair, &other, &mut Stream::new(seed, 0)) {
        panic!("{pair}\nother: {other}, seed {seed}\n{reason}");
    }
});
