//! The error code of a routine.

use std::ffi::c_int;

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
