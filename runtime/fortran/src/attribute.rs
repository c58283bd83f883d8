//! The values of attributes. Fortran sets and reads integers of the width of an address. For a predefined attribute, C
//! gets the address of a number, and Fortran the number itself.

use crate::raw;
use std::ffi::{c_int, c_void};
use std::ptr::without_provenance_mut;

/// The keys whose value is the address of an `int` in C: `MPI_TAG_UB` to `MPI_UNIVERSE_SIZE`, and of windows
/// `MPI_WIN_DISP_UNIT`, `MPI_WIN_CREATE_FLAVOR` and `MPI_WIN_MODEL`.
fn is_number(keyval: c_int) -> bool {
    matches!(keyval, 501..=507 | 602 | 604 | 605)
}

/// `MPI_WIN_SIZE`, whose value is the address of an `MPI_Aint` in C.
const WIN_SIZE: c_int = 603;

/// Returns the C value of an attribute that Fortran sets.
pub fn value(value: raw::Aint) -> *mut c_void {
    without_provenance_mut(value.cast_unsigned())
}

/// Returns the Fortran value of an attribute.
///
/// # Safety
///
/// - `value` is what the ABI says for the key.
pub unsafe fn shown(keyval: c_int, value: *mut c_void) -> raw::Aint {
    // SAFETY: the value of a predefined key is the address of such a number (`# Safety`).
    unsafe {
        match keyval {
            key if is_number(key) => *value.cast::<c_int>() as raw::Aint,
            WIN_SIZE => *value.cast::<raw::Aint>(),
            _ => value.addr().cast_signed(),
        }
    }
}
