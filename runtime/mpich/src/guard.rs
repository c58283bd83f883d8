//! A fault of this library, a panic, becomes an error of the program's call, as one of the C library does.
//!
//! `exports.rs` and `hand.rs` run their conversions in [`call`].

use crate::code;
use crate::entries::entries;
use crate::panics::caught;
use std::ffi::c_int;

/// Runs the conversions and the call of the function `name`. After a panic, returns the code of the error that the error
/// handler of `MPI_COMM_SELF` has got.
#[inline(always)]
pub fn call(name: &'static str, run: impl FnOnce() -> c_int) -> c_int {
    match caught(run) {
        Ok(code) => code,
        Err(text) => fault(name, &text),
    }
}

#[cold]
fn fault(name: &'static str, text: &str) -> c_int {
    let (start, words) = (name.as_ptr().cast(), text.as_ptr().cast());
    // SAFETY: both are the addresses of so many bytes, and the name is static.
    let code = unsafe { (entries().bug)(start, name.len(), words, text.len()) };
    code::outcome(code)
}
