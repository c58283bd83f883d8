//! Functions that not every library of the ABI has. The other rooms ask for them by name and have a way without them.

use std::ffi::{CStr, c_char, c_void};

/// Returns the address of a function of the libraries of this program; `None` if none of them has it.
pub fn find(name: &CStr) -> Option<*mut c_void> {
    unsafe extern "C" {
        fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
    }
    // SAFETY: the name ends with a zero; a null handle stands for all libraries of the program (`RTLD_DEFAULT`).
    let found = unsafe { dlsym(std::ptr::null_mut(), name.as_ptr()) };
    (!found.is_null()).then_some(found)
}
