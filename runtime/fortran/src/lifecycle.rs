//! What happens after init and before finalize.

use crate::{abi, section};
use std::ffi::c_int;

/// `.TRUE.` as this library writes it.
const TRUE: c_int = 1;

/// Tells the library below what a LOGICAL looks like, unless somebody has done so. `code` is the result of init.
pub fn started(code: c_int) {
    if code != 0 {
        return;
    }
    let (mut yes, mut no, mut set) = (TRUE, 0, 0);
    // SAFETY: the values are integers of 4 bytes, as the first argument says.
    unsafe {
        let (yes, no) = ((&raw mut yes).cast(), (&raw mut no).cast());
        let code = abi::PMPI_Abi_get_fortran_booleans(4, yes, no, &raw mut set);
        if code == 0 && set == 0 {
            *yes.cast::<c_int>() = TRUE;
            *no.cast::<c_int>() = 0;
            abi::PMPI_Abi_set_fortran_booleans(4, yes, no);
        }
    }
}

/// Frees what this thread has kept.
pub fn ending() {
    section::forget();
}
