//! How many entries an array has that no argument counts. The C library raises no error of its own here.

use crate::entries::entries;
use crate::raw;
use std::ffi::c_int;

/// Returns the number of processes that a process sends to (`send`) or receives from in a collective call: all of the
/// communicator, or the neighbours (`near`).
pub fn count(comm: raw::Comm, send: bool, near: bool) -> i64 {
    (entries().peers)(comm, send.into(), near.into())
}

/// Says whether this process is the root of a call.
pub fn is_root(comm: raw::Comm, root: c_int) -> bool {
    root >= 0 && (entries().rank)(comm) == root
}

/// Returns `count` at the root, and 0 elsewhere.
pub fn at_root(comm: raw::Comm, root: c_int, count: c_int) -> i64 {
    if is_root(comm, root) { i64::from(count) } else { 0 }
}

/// Returns a number of processes.
pub fn one(maximum: c_int) -> i64 {
    i64::from(maximum)
}

/// Returns the number of processes of several programs.
///
/// # Safety
///
/// - `maximums` is null, or has `count` numbers.
pub unsafe fn sum(maximums: *const c_int, count: c_int) -> i64 {
    if maximums.is_null() {
        return 0;
    }
    // SAFETY: the array has so many numbers (`# Safety`).
    (0..usize::try_from(count).unwrap_or(0)).map(|at| i64::from(unsafe { *maximums.add(at) })).sum()
}
