//! cargo-fuzz target: sets hints of a file, and makes files with hints.
//!
//! A failure prints the hints.
#![no_main]

use arbitrary::Unstructured;
use libfuzzer_sys::fuzz_target;
use std::cell::RefCell;
use typepack_fuzz::{HintChecker, hints};

thread_local! {
    static CHECKER: RefCell<HintChecker> =
        RefCell::new(HintChecker::new().unwrap_or_else(|reason| panic!("{reason}")));
}

fuzz_target!(|bytes: &[u8]| {
    let mut u = Unstructured::new(bytes);
    let (Ok(open), Ok(hints)) = (u.ratio(1, 8), hints::draw(&mut u)) else { return };
    CHECKER.with_borrow_mut(|checker| {
        if let Err(reason) = checker.check(&hints, open) {
            panic!("{hints:?}\n{reason}");
        }
    });
});
