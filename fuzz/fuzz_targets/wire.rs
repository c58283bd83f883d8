//! cargo-fuzz target: checks the wire form of layouts, and gives hostile bytes to the decoder of that
//! form.
//!
//! A failure prints either the hostile bytes, or the case and the seed from which its mutations were
//! drawn.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::cell::RefCell;
use typepack_engine::wire;
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
        // Tries the fuzzer's bytes twice: as they are, and after the first 8 bytes of a valid encoding.
        // The fuzzer would seldom find these 8 bytes by itself.
        let hostile = [b"tpkw".as_slice(), &wire::VERSION.to_le_bytes(), bytes].concat();
        for bytes in [bytes, &hostile] {
            if let Err(reason) = checker.check_bytes(bytes) {
                panic!("{bytes:02x?}\n{reason}");
            }
        }
    });
});
