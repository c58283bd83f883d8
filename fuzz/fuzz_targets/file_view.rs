//! cargo-fuzz target: makes file views, and copies between memory and files through them.
//!
//! A failure prints the memory's case, the filetype's case, and the seed from which the positions were
//! drawn.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::cell::RefCell;
use typepack_fuzz::{Case, Executors, Stream, ViewChecker};

thread_local! {
    static CHECKER: RefCell<ViewChecker> = RefCell::new(ViewChecker::new(Executors::Interpreter));
}

fuzz_target!(|input: (u64, Case, Case)| {
    let (seed, memory, file) = input;
    CHECKER.with_borrow_mut(|checker| {
        if let Err(reason) = checker.check(&memory, &file, &mut Stream::new(seed, 0), 3) {
            panic!("{memory}\n{file}\nseed {seed}\n{reason}");
        }
    });
});
