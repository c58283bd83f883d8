//! cargo-fuzz target: two ranks exchange messages while a third party writes into their shared memory.
#![no_main]

use arbitrary::Unstructured;
use libfuzzer_sys::fuzz_target;
use std::cell::RefCell;
use typepack_fuzz::TransportChecker;

thread_local! {
    static CHECKER: RefCell<TransportChecker> = RefCell::new(TransportChecker::new());
}

fuzz_target!(|bytes: &[u8]| {
    CHECKER.with_borrow_mut(|checker| {
        if let Err(reason) = checker.check(&mut Unstructured::new(bytes)) {
            panic!("{reason}");
        }
    });
});
