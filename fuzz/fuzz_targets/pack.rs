//! cargo-fuzz target: compares all packing code that needs no code generator with the model.
//!
//! A failure prints the case as one line; put that line into `fuzz/regressions/`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::cell::RefCell;
use typepack_fuzz::{Case, Checker, Effort, Executors};

thread_local! {
    static CHECKER: RefCell<Checker> = RefCell::new(Checker::new(Executors::Interpreter));
}

fuzz_target!(|case: Case| {
    CHECKER.with_borrow_mut(|checker| {
        if let Err(reason) = checker.check(&case, Effort::Quick) {
            panic!("{case}\n{reason}");
        }
    });
});
