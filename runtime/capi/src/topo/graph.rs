//! Graph topologies (MPI-5.0 sections 8.5.3, 8.5.5 and 8.5.8).

use super::{enough, find, length, numbers, of, rank_or_undefined};
use crate::abi;
use crate::argument::{Array, OutArray, Output};
use crate::comm::{Comm, create};
use crate::error::{Failure, Result};
use crate::raw;
use std::ffi::c_int;
use typepack::topo::{Graph, Topology};

/// Returns the graph that the arguments of a call describe.
fn graph_of(comm: &Comm, nnodes: c_int, index: Array<c_int>, edges: Array<c_int>) -> Result<Graph> {
    let count = length(nnodes, abi::ERR_ARG, "nnodes")?;
    if count > comm.size() {
        let detail =
            format!("{nnodes} is greater than the size of the communicator, {}", comm.size());
        return Err(Failure::new(abi::ERR_ARG, "nnodes", detail));
    }
    // SAFETY: the standard prescribes `nnodes` entries for the index array, and `count` equals `nnodes`.
    let index = unsafe { numbers(index, count, abi::ERR_ARG, "index")? };
    let edge_count = Graph::edge_count(&index)?;
    // SAFETY: the standard prescribes as many edges as the last entry of the index array, which `edge_count`
    // returns.
    let edges = unsafe { numbers(edges, edge_count, abi::ERR_RANK, "edges")? };
    Ok(Graph::new(&index, &edges)?)
}

/// Returns the graph of a communicator.
fn graph(comm: &Comm) -> Result<&Graph> {
    of(comm, Topology::graph, "a graph topology")
}

/// `MPI_Graph_create`. Ranks keep their numbers, whatever `reorder` is.
pub fn create(
    comm: raw::Comm,
    nnodes: c_int,
    index: Array<c_int>,
    edges: Array<c_int>,
    _reorder: c_int,
    newcomm: Output<raw::Comm>,
) -> Result {
    let parent = find(comm)?;
    let (out, graph) = create::arguments(&parent, || {
        Ok((newcomm.required("comm_graph")?, graph_of(&parent, nnodes, index, edges)?))
    })?;
    let made = parent.communicator().graph_create(graph)?;
    create::hand_out(&parent, made, out)
}

/// `MPI_Graph_map`.
pub fn map(
    comm: raw::Comm,
    nnodes: c_int,
    index: Array<c_int>,
    edges: Array<c_int>,
    newrank: Output<c_int>,
) -> Result {
    let comm = find(comm)?;
    let out = newrank.required("newrank")?;
    let place = comm.communicator().graph_map(&graph_of(&comm, nnodes, index, edges)?)?;
    out.set(rank_or_undefined(place));
    Ok(())
}

/// `MPI_Graphdims_get`.
pub fn dims_get(comm: raw::Comm, nnodes: Output<c_int>, nedges: Output<c_int>) -> Result {
    let comm = find(comm)?;
    let graph = graph(&comm)?;
    let (nodes, edges) = (nnodes.required("nnodes")?, nedges.required("nedges")?);
    nodes.set(graph.size() as c_int);
    edges.set(graph.edges().len() as c_int);
    Ok(())
}

/// `MPI_Graph_get`.
pub fn get(
    comm: raw::Comm,
    maxindex: c_int,
    maxedges: c_int,
    index: OutArray<c_int>,
    edges: OutArray<c_int>,
) -> Result {
    let comm = find(comm)?;
    let graph = graph(&comm)?;
    let rooms = [("maxindex", maxindex, graph.size()), ("maxedges", maxedges, graph.edges().len())];
    for (argument, given, needed) in rooms {
        enough(length(given, abi::ERR_ARG, argument)?, needed, abi::ERR_ARG, argument)?;
    }
    // SAFETY: the standard prescribes `maxindex` and `maxedges` entries for the arrays. The check above has
    // shown that the graph has no more.
    let (to_index, to_edges) = unsafe {
        (index.places(graph.size(), "index")?, edges.places(graph.edges().len(), "edges")?)
    };
    to_index.fill(graph.index().iter().map(|&end| end as c_int));
    to_edges.fill(graph.edges().iter().map(|&rank| rank as c_int));
    Ok(())
}

/// `MPI_Graph_neighbors_count`.
pub fn neighbors_count(comm: raw::Comm, rank: c_int, nneighbors: Output<c_int>) -> Result {
    let comm = find(comm)?;
    let found = graph(&comm)?.neighbors(length(rank, abi::ERR_RANK, "rank")?)?;
    nneighbors.required("nneighbors")?.set(found.len() as c_int);
    Ok(())
}

/// `MPI_Graph_neighbors`.
pub fn neighbors(
    comm: raw::Comm,
    rank: c_int,
    maxneighbors: c_int,
    neighbors: OutArray<c_int>,
) -> Result {
    let comm = find(comm)?;
    let found = graph(&comm)?.neighbors(length(rank, abi::ERR_RANK, "rank")?)?;
    let given = length(maxneighbors, abi::ERR_ARG, "maxneighbors")?;
    enough(given, found.len(), abi::ERR_ARG, "maxneighbors")?;
    // SAFETY: the standard prescribes `maxneighbors` entries for the array. The check above has shown that
    // `found` has no more.
    let places = unsafe { neighbors.places(found.len(), "neighbors")? };
    places.fill(found.iter().map(|&rank| rank as c_int));
    Ok(())
}
