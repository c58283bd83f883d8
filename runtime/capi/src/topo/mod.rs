//! The topologies of communicators (MPI-5.0 chapter 8).
//!
//! The runtime has the topologies and makes their communicators. These files read the arguments and write the
//! results. `cart.rs` has Cartesian grids, `dims.rs` chooses their dimensions, `graph.rs` has graphs and
//! `distributed.rs` distributed graphs. The neighbourhood collectives are in `coll/neighbor.rs`.

pub mod cart;
pub mod dims;
pub mod distributed;
pub mod graph;

use crate::abi;
use crate::argument::{Array, Output, room};
use crate::comm::{self, Comm};
use crate::error::{Failure, Result};
use crate::raw;
use std::ffi::c_int;
use std::sync::Arc;
use typepack::topo::{Shape, Topology};

/// Returns the communicator of a handle.
///
/// # Errors
/// Returns `MPI_ERR_COMM` if the handle is not valid.
fn find(comm: raw::Comm) -> Result<Arc<Comm>> {
    comm::find(comm)
}

/// Returns the topology of a communicator as the kind of topology that the call needs. `part` converts the
/// topology, and returns `None` if it is of another kind. `needed` names the needed kind for the error text.
///
/// # Errors
/// Returns `MPI_ERR_TOPOLOGY` if the communicator has no topology, or a topology of another kind.
fn of<'a, T: ?Sized>(
    comm: &'a Comm,
    part: impl FnOnce(&'a Topology) -> Option<&'a T>,
    needed: &str,
) -> Result<&'a T> {
    let topology = comm.communicator().topology();
    topology.and_then(part).ok_or_else(|| {
        let has = match topology.map(Topology::shape) {
            None => "no topology",
            Some(Shape::Grid(_)) => "a Cartesian topology",
            Some(Shape::Graph(_)) => "a graph topology",
            Some(_) => "a distributed graph topology",
        };
        let detail = format!("the communicator has {has}; the call needs {needed}");
        Failure::new(abi::ERR_TOPOLOGY, "comm", detail)
    })
}

/// Returns the entries of an array in which no entry may be negative, such as an array of ranks.
///
/// # Errors
/// Returns an error of class `class` if an entry is negative, and the errors of [`Array::entries`].
///
/// # Safety
///
/// - `length` is at most the number of entries that the standard prescribes for the argument.
unsafe fn numbers(
    array: Array<c_int>,
    length: usize,
    class: c_int,
    argument: &'static str,
) -> Result<Vec<usize>> {
    // SAFETY: the array has at least `length` entries (condition of `# Safety`). The iterator ends in this
    // function.
    let entries = unsafe { array.entries(length, argument)? };
    let mut numbers = Vec::new();
    for (place, entry) in entries.enumerate() {
        let number = usize::try_from(entry).map_err(|_| {
            Failure::new(class, argument, format!("entry {place}: {entry} is negative"))
        })?;
        if place == 0 {
            // The array is copied only after its first entry has been found to be valid, so that a wrong
            // length does not take memory first.
            numbers = room(length, argument)?;
        }
        numbers.push(number);
    }
    Ok(numbers)
}

/// Returns the length of an array, or another number that must not be negative.
///
/// # Errors
/// Returns an error of class `class` if the number is negative.
fn length(number: c_int, class: c_int, argument: &'static str) -> Result<usize> {
    usize::try_from(number).map_err(|_| {
        Failure::new(class, argument, format!("{number} is negative; it must be 0 or more"))
    })
}

/// Checks that the caller's array, which has `given` entries, has room for `needed` entries.
///
/// # Errors
/// Returns an error of class `class` if `given` is less than `needed`.
fn enough(given: usize, needed: usize, class: c_int, argument: &'static str) -> Result {
    if given >= needed {
        return Ok(());
    }
    let detail = format!("{given} is too small; the result has {needed} entries");
    Err(Failure::new(class, argument, detail))
}

/// Returns a rank as C gets it: `MPI_UNDEFINED` for a process without a rank.
fn rank_or_undefined(rank: Option<usize>) -> c_int {
    rank.map_or(abi::UNDEFINED, |rank| rank as c_int)
}

/// `MPI_Topo_test`.
pub fn test(comm: raw::Comm, status: Output<c_int>) -> Result {
    let comm = find(comm)?;
    let out = status.required("status")?;
    out.set(match comm.communicator().topology().map(Topology::shape) {
        Some(Shape::Grid(_)) => abi::CART,
        Some(Shape::Graph(_)) => abi::GRAPH,
        Some(Shape::Distributed(_)) => abi::DIST_GRAPH,
        _ => abi::UNDEFINED,
    });
    Ok(())
}
