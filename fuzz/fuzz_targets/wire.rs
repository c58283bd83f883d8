//! cargo-fuzz target: checks the wire form of layouts, and feeds its decoder with hostile bytes.
//!
//! A failure prints the case as one line and the seed of the mutations.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::cell::RefCell;
use typepack_fuzz::{Case, Stream, WireChecker};

thread_local! {
    static CHECKER: RefCell<WireChecker> = RefCell::new(WireChecker::new());
}

fuzz_target!(|input: (u64, Case, &[u8])| {
    let (seed, case, bytes) = input;
    CHECKER.with_borrow_mut(|checker| {
        if let Err(reason) = checker.check(&case, &mut Stream::new(seed, 0), 8) {
            panic!("{case}, seed {seed}\n{reason}");
        }
        // The second text is the fuzzer's text after the magic number, which the fuzzer need not find.
        let hostile = [b"tpkw\x01\0\0\0", bytes].concat();
        for bytes in [bytes, &hostile] {
            if let Err(reason) = checker.check_bytes(bytes) {
                panic!("{bytes:02x?}\n{reason}");
            }
        }
    });
});
