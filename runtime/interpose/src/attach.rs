//! What a shim calls (`shim/`): a library between a program of a host without the ABI and this library.
//!
//! The shim opens this library in the call that initialises MPI. It has the functions of the host with the types of the
//! ABI, and calls the exported functions of this library as a program of the ABI would.

use crate::entry::flag;
use crate::host::{Find, set_shim};
use std::ffi::{CStr, c_char, c_int};

/// Takes the functions of the host from a shim, and tells the shim where to read whether this library takes part.
/// Returns 0; 1 if the shim has another version; 2 if the functions of the host were looked up before.
///
/// # Safety
///
/// - `version` is a C string.
/// - `find` returns, for a name, null or the address of a function that does what the host's function of this name
///   does, with the types of the ABI.
/// - `active` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn typepack_interpose_attach(
    version: *const c_char,
    find: Find,
    active: *mut *const u8,
) -> c_int {
    // SAFETY: the version is a C string (`# Safety`).
    if unsafe { CStr::from_ptr(version) }.to_bytes() != env!("CARGO_PKG_VERSION").as_bytes() {
        return 1;
    }
    if !set_shim(find) {
        return 2;
    }
    // SAFETY: the result is writable (`# Safety`).
    unsafe { *active = flag() };
    0
}

/// The program connects this process with others. The shim calls this function where it does not convert the program's
/// call.
#[unsafe(no_mangle)]
pub extern "C" fn typepack_interpose_meet() {
    crate::lifecycle::meet();
}
