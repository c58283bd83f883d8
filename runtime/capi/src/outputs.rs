//! The outputs of functions that are not implemented, where clearing them needs more than one store (`exports.rs`).

use crate::abi;
use crate::argument::{Array, OutArray};
use crate::comm;
use crate::raw;
use std::ffi::c_int;

/// Returns whether this process is the root of a spawning call. Only the root knows the number of processes.
fn is_root(root: c_int, comm: raw::Comm) -> bool {
    let rank = comm::find(comm).map(|found| found.communicator().rank());
    rank.is_ok_and(|rank| usize::try_from(root) == Ok(rank))
}

/// Writes the error code of each process of `MPI_Comm_spawn`.
///
/// # Safety
///
/// - If this process is the root and `count` is positive, `count` is the number of entries of `codes`.
pub unsafe fn no_children(codes: OutArray<c_int>, count: c_int, root: c_int, comm: raw::Comm) {
    let count = usize::try_from(count).unwrap_or(0);
    if codes.address() == abi::ERRCODES_IGNORE || !is_root(root, comm) {
        return;
    }
    // SAFETY: the caller guarantees the number of entries, because this process is the root.
    if let Some(places) = unsafe { codes.places_if_given(count) } {
        places.fill((0..count).map(|_| abi::ERR_UNSUPPORTED_OPERATION));
    }
}

/// Writes the error code of each process of `MPI_Comm_spawn_multiple`, whose commands start `each` processes.
///
/// # Safety
///
/// - If this process is the root and `commands` is positive, `commands` is the number of entries of `each`, and the sum
///   of these entries is the number of entries of `codes`.
pub unsafe fn none_of_children(
    codes: OutArray<c_int>,
    each: Array<c_int>,
    commands: c_int,
    root: c_int,
    comm: raw::Comm,
) {
    let commands = usize::try_from(commands).unwrap_or(0);
    if !is_root(root, comm) {
        return;
    }
    // SAFETY: the caller guarantees the number of entries, because this process is the root.
    let Ok(each) = (unsafe { each.entries(commands, "array_of_maxprocs") }) else { return };
    let total = each.fold(0_i32, |total, count| total.saturating_add(count.max(0)));
    // SAFETY: the caller guarantees that the sum is the number of entries of `codes`.
    unsafe { no_children(codes, total, root, comm) };
}
