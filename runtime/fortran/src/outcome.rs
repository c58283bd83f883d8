//! The error code of a routine.

use crate::{raw, refusal};
use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Calls `work`, the body of a routine. A panic, which is an error in this library, becomes `MPI_ERR_INTERN`, which goes to
/// the error handler for calls without an object. (The panic itself has printed where it happened.)
#[inline(always)]
pub fn caught(work: impl FnOnce() -> c_int) -> c_int {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(code) => code,
        Err(_) => {
            eprintln!("typepack bug: a Fortran routine panicked; the line above says where");
            refusal::nothing(raw::ERR_INTERN)
        }
    }
}

/// Stores the error code, if the program wants to know it.
///
/// # Safety
///
/// - `ierror` is null or the address of an INTEGER.
#[inline(always)]
pub unsafe fn give(ierror: *mut c_int, code: c_int) {
    if !ierror.is_null() {
        // SAFETY: the address is not null, so it is that of an INTEGER (`# Safety`).
        unsafe { *ierror = code };
    }
}
