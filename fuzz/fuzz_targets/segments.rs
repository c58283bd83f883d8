//! cargo-fuzz target: packs and unpacks in parts, and compares with the model.
//!
//! A failure prints the case as one line and the seed of the partitions.
#![no_main]

use libfuzzer_sys::fuzz_target;
use typepack_fuzz::{Case, Executors, SegmentChecker, Stream};

thread_local! {
    static CHECKER: SegmentChecker = SegmentChecker::new(Executors::Interpreter);
}

fuzz_target!(|input: (u64, Case)| {
    let (seed, case) = input;
    CHECKER.with(|checker| {
        if let Err(reason) = checker.check(&case, &mut Stream::new(seed, 0), 3) {
            panic!("{case}, seed {seed}\n{reason}");
        }
    });
});
