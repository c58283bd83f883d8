//! cargo-fuzz target: checks the text form of datatypes, and feeds its parser with any text.
//!
//! A failure prints the text, or the case as one line and the seed of the mutations.
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
