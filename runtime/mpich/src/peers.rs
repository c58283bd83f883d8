//! How many entries an array has that no argument counts.

use crate::entries::entries;
use crate::raw;
use std::ffi::c_int;

/// Returns the number of processes that a process sends to (`send`) or receives from in a collective call: all of the
/// communicator, or the neighbours (`near`).
pub fn count(comm: raw::Comm, send: bool, near: bool) -> i64 {
    let (mut number, mut other, mut word) = (0, 0, 0);
    let all = entries();
    // SAFETY: the results are written to integers.
    let code = unsafe {
        if near {
            match (all.MPI_Topo_test)(comm, &raw mut word) {
                0 if word == raw::CART => {
                    let code = (all.MPI_Cartdim_get)(comm, &raw mut number);
                    number *= 2;
                    code
                }
                0 if word == raw::GRAPH => match (all.MPI_Comm_rank)(comm, &raw mut other) {
                    0 => (all.MPI_Graph_neighbors_count)(comm, other, &raw mut number),
                    code => code,
                },
                0 => {
                    let (from, to) = if send {
                        (&raw mut other, &raw mut number)
                    } else {
                        (&raw mut number, &raw mut other)
                    };
                    (all.MPI_Dist_graph_neighbors_count)(comm, from, to, &raw mut word)
                }
                code => code,
            }
        } else {
            match (all.MPI_Comm_test_inter)(comm, &raw mut word) {
                0 if word != 0 => (all.MPI_Comm_remote_size)(comm, &raw mut number),
                0 => (all.MPI_Comm_size)(comm, &raw mut number),
                code => code,
            }
        }
    };
    if code == 0 { i64::from(number) } else { 0 }
}

/// Says whether this process is the root of a call.
pub fn is_root(comm: raw::Comm, root: c_int) -> bool {
    let mut rank = -1;
    // SAFETY: the result is written to an integer.
    let code = unsafe { (entries().MPI_Comm_rank)(comm, &raw mut rank) };
    code == 0 && rank == root
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
