//! Positions in arrays, which count from 1 in Fortran.

use crate::raw;
use std::ffi::c_int;

/// Stores the position `index`, unless the call has not written one (-1).
///
/// # Safety
///
/// - `place` is the address of an INTEGER.
pub unsafe fn give(place: *mut c_int, index: c_int) {
    let value = match index {
        0.. => index + 1,
        raw::UNDEFINED => index,
        _ => return,
    };
    // SAFETY: `place` is the address of an INTEGER (`# Safety`).
    unsafe { *place = value };
}

/// Raises each of `number` positions by 1. A negative number stands for none.
///
/// # Safety
///
/// - `places` is the address of at least `number` INTEGERs.
pub unsafe fn give_all(places: *mut c_int, number: c_int) {
    for at in 0..usize::try_from(number).unwrap_or(0) {
        // SAFETY: the array has `number` INTEGERs (`# Safety`).
        unsafe { *places.add(at) += 1 };
    }
}
