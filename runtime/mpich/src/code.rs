//! Error codes. Those of the library are classes; those that the program has added lie above `MPI_ERR_LASTCODE` in both
//! ABIs.

use crate::number::{LAST_CODE as LAST, Pairs, STRANGE_CODE as STRANGE};
use crate::raw;
use crate::values::CODE;
use std::ffi::c_int;

/// Returns the ABI's code for one of the program.
#[cold]
#[inline(never)]
pub fn to_ours(code: c_int) -> c_int {
    let Pairs(pairs) = CODE;
    match code {
        _ if let Some((ours, _)) = pairs.iter().find(|(_, theirs)| *theirs == code) => *ours,
        ..0 => code,
        0..LAST => STRANGE + code,
        _ => raw::ERR_LASTCODE + (code - LAST).min(c_int::MAX - raw::ERR_LASTCODE),
    }
}

/// Returns the program's code for one of the ABI.
#[cold]
#[inline(never)]
pub fn to_theirs(code: c_int) -> c_int {
    let Pairs(pairs) = CODE;
    match code {
        _ if let Some((_, theirs)) = pairs.iter().find(|(ours, _)| *ours == code) => *theirs,
        _ if code < STRANGE + LAST => code - STRANGE,
        _ if code > raw::ERR_LASTCODE => LAST.saturating_add(code - raw::ERR_LASTCODE),
        _ => code,
    }
}

/// Returns what a function of the program's ABI returns for the code of the C function.
#[inline(always)]
pub fn outcome(code: c_int) -> c_int {
    if code == 0 { 0 } else { to_theirs(code) }
}

/// Returns the code for a call that has no memory for the program's arguments.
#[cold]
pub fn no_memory() -> c_int {
    to_theirs(raw::ERR_NO_MEM)
}

/// Converts the error codes of spawned processes, which are 0 or one class.
///
/// # Safety
///
/// - `codes` is null, or has `number` codes.
pub unsafe fn children(codes: *mut c_int, number: i64) {
    if codes.is_null() {
        return;
    }
    for at in 0..usize::try_from(number).unwrap_or(0) {
        // SAFETY: the array has so many codes (`# Safety`).
        unsafe {
            let code = codes.add(at);
            if *code == raw::ERR_SPAWN {
                *code = to_theirs(*code);
            }
        }
    }
}
