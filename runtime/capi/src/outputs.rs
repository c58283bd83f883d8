//! The outputs of functions that are not implemented, where clearing them needs more than one store (`exports.rs`).

use crate::abi;
use crate::argument::{Array, InOut, OutArray, Output};
use crate::comm;
use crate::raw;
use std::ffi::{c_char, c_int};

/// Writes an empty string, and 0 as its length. On entry, `length` is the size of the buffer.
pub fn no_text(text: Output<c_char>, length: InOut<c_int>) {
    let Ok((room, place)) = length.read("length") else { return };
    if room > 0 {
        text.write_if_given(0);
    }
    place.set(0);
}

/// Fills an array of `length` integers with zeros.
///
/// # Safety
///
/// - If `length` is positive, it is at most the number of entries that the standard prescribes for `array`.
pub unsafe fn no_entries(array: OutArray<c_int>, length: c_int) {
    let length = usize::try_from(length).unwrap_or(0);
    // SAFETY: the caller guarantees the number of entries.
    if let Some(places) = unsafe { array.places_if_given(length) } {
        places.fill((0..length).map(|_| 0));
    }
}

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
