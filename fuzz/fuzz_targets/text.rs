//! cargo-fuzz target: checks the text form of datatypes, and gives arbitrary text to the parser of that
//! form.
//!
//! A failure prints either the arbitrary text, or the case and the seed from which its mutations were
//! drawn.
#![no_main]

use libfuzzer_sys::fuzz_target;
use typepack_fuzz::{Case, Stream, text};

fuzz_target!(|input: (u64, Case, &str)| {
    let (seed, case, any) = input;
    if let Err(reason) = text::check(&case, &mut Stream::new(seed, 0), 8) {
        panic!("{case}, seed {seed}\n{reason}");
    }
    if let Err(reason) = text::check_text(any) {
        panic!("{any:?}\n{reason}");
    }
});
