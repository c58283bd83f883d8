//! Distributed graph topologies (MPI-5.0 sections 8.5.4 and 8.5.5).

use super::{find, length, numbers, of};
use crate::abi;
use crate::argument::{Array, OutArray, Output, room};
use crate::comm::{Comm, create};
use crate::error::{Failure, Result};
use crate::info;
use crate::raw;
use std::ffi::c_int;
use typepack::topo::{Adjacency, Edge, Topology};

/// Returns the weights of `edges` edges, or `None` if the caller passed `MPI_UNWEIGHTED`. Without edges, the
/// caller may pass `MPI_WEIGHTS_EMPTY` or a null pointer.
///
/// # Safety
///
/// - If `weights` is not a constant of the standard, it has at least `edges` entries.
unsafe fn weights_of(
    weights: Array<c_int>,
    edges: usize,
    argument: &'static str,
) -> Result<Option<Vec<c_int>>> {
    match weights.address() {
        abi::UNWEIGHTED => Ok(None),
        abi::WEIGHTS_EMPTY if edges > 0 => {
            let detail =
                format!("MPI_WEIGHTS_EMPTY is not allowed, because there are {edges} edges");
            Err(Failure::new(abi::ERR_ARG, argument, detail))
        }
        _ if edges == 0 => Ok(Some(Vec::new())),
        // SAFETY: `weights` is not a constant of the standard (the cases above), so it has at least `edges`
        // entries (condition of `# Safety`).
        _ => Ok(Some(unsafe { weights.copy(edges, argument)? })),
    }
}

/// Checks the info object of a call. Its hints have no effect.
fn check_hints(hints: raw::Info) -> Result {
    if hints != raw::Info::NULL {
        info::find(hints)?;
    }
    Ok(())
}

/// Returns this rank's edges in the graph of a communicator.
fn adjacency(comm: &Comm) -> Result<&Adjacency> {
    of(comm, Topology::adjacency, "a distributed graph topology")
}

/// `MPI_Dist_graph_create_adjacent`. Ranks keep their numbers, whatever `reorder` is.
#[expect(clippy::too_many_arguments, reason = "the argument list of the standard")]
pub fn create_adjacent(
    comm: raw::Comm,
    indegree: c_int,
    sources: Array<c_int>,
    sourceweights: Array<c_int>,
    outdegree: c_int,
    destinations: Array<c_int>,
    destweights: Array<c_int>,
    hints: raw::Info,
    _reorder: c_int,
    newcomm: Output<raw::Comm>,
) -> Result {
    let parent = find(comm)?;
    let (out, edges) = create::arguments(&parent, || {
        let out = newcomm.required("comm_dist_graph")?;
        check_hints(hints)?;
        let to = length(indegree, abi::ERR_ARG, "indegree")?;
        let from = length(outdegree, abi::ERR_ARG, "outdegree")?;
        // SAFETY: the standard prescribes `indegree` entries for the first two arrays and `outdegree` entries for
        // the other two, where an array of weights may be a constant instead. `to` and `from` equal these numbers.
        let (sources, sourceweights, destinations, destweights) = unsafe {
            (
                numbers(sources, to, abi::ERR_RANK, "sources")?,
                weights_of(sourceweights, to, "sourceweights")?,
                numbers(destinations, from, abi::ERR_RANK, "destinations")?,
                weights_of(destweights, from, "destweights")?,
            )
        };
        let weights = match (&sourceweights, &destweights) {
            (Some(to), Some(from)) => Some((&to[..], &from[..])),
            (None, None) => None,
            // This rank has no edges in one direction, so it passes no weights for it, whether or not the graph has
            // weights.
            (Some(none), None) if none.is_empty() => None,
            (None, Some(none)) if none.is_empty() => None,
            _ => {
                let detail = "only one of sourceweights and destweights is MPI_UNWEIGHTED; it must be both \
                              or none";
                return Err(Failure::new(abi::ERR_ARG, "destweights", detail));
            }
        };
        Ok((out, Adjacency::new(&sources, &destinations, weights)?))
    })?;
    let made = parent.communicator().dist_graph_create_adjacent(edges)?;
    create::hand_out(&parent, Some(made), out)
}

/// `MPI_Dist_graph_create`. Ranks keep their numbers, whatever `reorder` is.
#[expect(clippy::too_many_arguments, reason = "the argument list of the standard")]
pub fn create(
    comm: raw::Comm,
    n: c_int,
    sources: Array<c_int>,
    degrees: Array<c_int>,
    destinations: Array<c_int>,
    weights: Array<c_int>,
    hints: raw::Info,
    _reorder: c_int,
    newcomm: Output<raw::Comm>,
) -> Result {
    let parent = find(comm)?;
    let (out, edges, weighted) = create::arguments(&parent, || {
        let out = newcomm.required("comm_dist_graph")?;
        check_hints(hints)?;
        let count = length(n, abi::ERR_ARG, "n")?;
        // SAFETY: the standard prescribes `n` entries for both arrays, and `count` equals `n`.
        let (sources, degrees) = unsafe {
            (
                numbers(sources, count, abi::ERR_RANK, "sources")?,
                numbers(degrees, count, abi::ERR_ARG, "degrees")?,
            )
        };
        let total = degrees.iter().try_fold(0usize, |sum, &degree| sum.checked_add(degree));
        let total = total.ok_or_else(|| {
            Failure::new(abi::ERR_ARG, "degrees", "the sum of the entries does not fit in 64 bits")
        })?;
        // SAFETY: the standard prescribes as many entries for both arrays as the sum of the degrees, where the
        // array of weights may be a constant instead. `total` is this sum.
        let (destinations, weights) = unsafe {
            (
                numbers(destinations, total, abi::ERR_RANK, "destinations")?,
                weights_of(weights, total, "weights")?,
            )
        };
        let ends =
            sources.iter().zip(&degrees).flat_map(|(&rank, &n)| std::iter::repeat_n(rank, n));
        let mut edges = room(total, "destinations")?;
        for (place, (source, destination)) in ends.zip(destinations).enumerate() {
            let weight = weights.as_ref().map_or(0, |weights| weights[place]);
            edges.push(Edge { source, destination, weight });
        }
        Ok((out, edges, weights.is_some()))
    })?;
    let made = parent.communicator().dist_graph_create(&edges, weighted)?;
    create::hand_out(&parent, Some(made), out)
}

/// `MPI_Dist_graph_neighbors_count`.
pub fn neighbors_count(
    comm: raw::Comm,
    indegree: Output<c_int>,
    outdegree: Output<c_int>,
    weighted: Output<c_int>,
) -> Result {
    let comm = find(comm)?;
    let edges = adjacency(&comm)?;
    let (to, from) = (indegree.required("indegree")?, outdegree.required("outdegree")?);
    let flag = weighted.required("weighted")?;
    to.set(edges.sources().len() as c_int);
    from.set(edges.destinations().len() as c_int);
    flag.set(c_int::from(edges.weights().is_some()));
    Ok(())
}

/// `MPI_Dist_graph_neighbors`. If an array is too small for the neighbours, it gets the first of them, as the
/// standard says. The arrays of weights stay as they are if the graph has no weights.
pub fn neighbors(
    comm: raw::Comm,
    maxindegree: c_int,
    sources: OutArray<c_int>,
    sourceweights: OutArray<c_int>,
    maxoutdegree: c_int,
    destinations: OutArray<c_int>,
    destweights: OutArray<c_int>,
) -> Result {
    let comm = find(comm)?;
    let edges = adjacency(&comm)?;
    let to = length(maxindegree, abi::ERR_ARG, "maxindegree")?.min(edges.sources().len());
    let from = length(maxoutdegree, abi::ERR_ARG, "maxoutdegree")?.min(edges.destinations().len());
    let weights = edges.weights();
    let given = |array: OutArray<c_int>| {
        let constant = matches!(array.address(), abi::UNWEIGHTED | abi::WEIGHTS_EMPTY);
        weights.is_some() && !constant
    };
    let room = |array, count| if given(array) { count } else { 0 };
    let (to_weights, from_weights) = (room(sourceweights, to), room(destweights, from));
    // SAFETY: the standard prescribes `maxindegree` entries for `sources` and for its weights, and
    // `maxoutdegree` entries for `destinations` and for its weights. `to` and `to_weights` are at most
    // `maxindegree`; `from` and `from_weights` are at most `maxoutdegree`. For a constant of the standard in
    // place of an array of weights, the number of weights is 0.
    let (to_ranks, to_weights, from_ranks, from_weights) = unsafe {
        (
            sources.places(to, "sources")?,
            sourceweights.places(to_weights, "sourceweights")?,
            destinations.places(from, "destinations")?,
            destweights.places(from_weights, "destweights")?,
        )
    };
    to_ranks.fill(edges.sources()[..to].iter().map(|&rank| rank as c_int));
    from_ranks.fill(edges.destinations()[..from].iter().map(|&rank| rank as c_int));
    if let Some((source, dest)) = weights {
        if given(sourceweights) {
            to_weights.fill(source[..to].iter().copied());
        }
        if given(destweights) {
            from_weights.fill(dest[..from].iter().copied());
        }
    }
    Ok(())
}
