//! Calls whose array section the Fortran library cannot use: the section is too short, or there is no memory for a copy.
//!
//! Such a call must fail on this rank, but the other ranks make it. So the Fortran library makes the call all the same,
//! after it has said by `typepack_refuse_section` that the calls of this thread must fail. A call of several ranks looks
//! here ([`check`]) before it uses its buffers. It then tells the others that this rank has failed.

use super::{Failure, Result};
use crate::abi;
use std::cell::Cell;
use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering};

thread_local! {
    /// The error code of the calls of this thread; 0 if they need not fail.
    static CODE: Cell<c_int> = const { Cell::new(0) };
}

/// True if a call of any thread has ever had to fail. So the other programs look at no variable of a thread.
static EVER: AtomicBool = AtomicBool::new(false);

/// From now on, the calls of this thread fail with the code `code`. If it is 0, they need not fail any more.
pub fn refuse(code: c_int) {
    EVER.store(true, Ordering::Relaxed);
    CODE.set(code);
}

/// Checks that the call need not fail.
///
/// # Errors
/// Returns the failure if the call must fail.
#[inline]
pub fn check() -> Result {
    if EVER.load(Ordering::Relaxed) { look() } else { Ok(()) }
}

#[cold]
fn look() -> Result {
    let detail = match CODE.get() {
        0 => return Ok(()),
        abi::ERR_COUNT => "the array section has fewer elements than the call needs",
        abi::ERR_NO_MEM => "there is no memory for a copy of the array section",
        abi::ERR_BUFFER => "an array section is not allowed here, or its bounds are wrong",
        _ => "the call cannot use the array section",
    };
    Err(Failure::new(CODE.get(), "buffer", detail))
}

/// Returns the failure of a call in which `failure` was found: if the call must fail for its array section, with another
/// code, that is what the Fortran library has found first.
#[cold]
pub fn first(failure: Failure) -> Failure {
    check().err().filter(|own| own.code != failure.code).unwrap_or(failure)
}

/// Does `work`, in which the calls of this thread need not fail: an error handler may make calls of its own.
#[cold]
pub fn apart<R>(work: impl FnOnce() -> R) -> R {
    let code = CODE.replace(0);
    let result = work();
    CODE.set(code);
    result
}
