//! Buffers that may be a sentinel. `MPI_BOTTOM` is the same in both ABIs.

use crate::raw;
use std::ffi::c_void;

/// `MPI_IN_PLACE` in MPICH.
const IN_PLACE: usize = usize::MAX;
/// `MPI_BUFFER_AUTOMATIC` in MPICH.
const AUTOMATIC: usize = usize::MAX - 1;

/// Returns the ABI's buffer for one of the program.
#[inline(always)]
pub fn to_ours(buffer: *const c_void) -> *mut c_void {
    match buffer as usize {
        IN_PLACE => raw::IN_PLACE as *mut c_void,
        AUTOMATIC => raw::BUFFER_AUTOMATIC as *mut c_void,
        _ => buffer.cast_mut(),
    }
}

/// Says whether a buffer is `MPI_IN_PLACE`.
#[inline]
pub fn in_place(buffer: *const c_void) -> bool {
    buffer as usize == IN_PLACE
}

/// Makes the address of a buffer that the call has given back that of the program.
///
/// # Safety
///
/// - `place` is null, or the address of an address.
pub unsafe fn detached(place: *mut c_void) {
    let place = place.cast::<usize>();
    // SAFETY: the address is that of an address (`# Safety`).
    unsafe {
        if !place.is_null() && place.read_unaligned() == raw::BUFFER_AUTOMATIC {
            place.write_unaligned(AUTOMATIC);
        }
    }
}
