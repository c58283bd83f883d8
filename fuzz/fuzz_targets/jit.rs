//! cargo-fuzz target: compares compiled kernels with the model.
//!
//! A failure prints the case as one line; put that line into `fuzz/regressions/`. A fault in compiled
//! code ends the process before it can print the line. Then run the artifact (the file in which
//! cargo-fuzz saved the input) again with `FUZZ_TRACE=1`: each case is printed before it runs.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::cell::RefCell;
use typepack_fuzz::{Case, Checker, Effort, Executors};

thread_local! {
    static CHECKER: RefCell<Checker> = RefCell::new(Checker::new(Executors::Jit));
}

fuzz_target!(|case: Case| {
    if std::env::var_os("FUZZ_TRACE").is_some() {
        eprintln!("{case}");
    }
    CHECKER.with_borrow_mut(|checker| {
        if let Err(reason) = checker.check(&case, Effort::Quick) {
            panic!("{case}\n{reason}");
        }
    });
});
