//! cargo-fuzz target: copies data from one layout directly into another layout with the same signature,
//! and compares the result with the model.
//!
//! A failure prints the two layouts, one per line, each as `count * type`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::cell::RefCell;
use typepack_fuzz::{CopyChecker, Effort, Executors, Pair};

thread_local! {
    static CHECKER: RefCell<CopyChecker> = RefCell::new(CopyChecker::new(Executors::Interpreter));
}

fuzz_target!(|pair: Pair| {
    CHECKER.with_borrow_mut(|checker| {
        if let Err(reason) = checker.check(&pair, Effort::Quick) {
            panic!("{pair}\n{reason}");
        }
    });
});
