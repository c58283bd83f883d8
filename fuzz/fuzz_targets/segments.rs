//! cargo-fuzz target: packs and unpacks data in parts, and compares the results with the model.
//!
//! A failure prints the case, and the seed from which the partitions were drawn, on one line.
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
