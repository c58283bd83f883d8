//! The topologies of communicators (MPI-5.0 chapter 8), without communication.
//!
//! `grid.rs` has Cartesian grids, and `dims.rs` chooses their dimensions. `graph.rs` has graphs that every
//! rank knows as a whole. `adjacency.rs` has distributed graphs, of which each rank knows only its own edges.
//! `neighbors.rs` has the neighbours of one rank, in the order of the neighbourhood collectives.
//! `locality.rs` places the ranks of a grid so that neighbours share as much of the machine as possible.
//!
//! A communicator (`comm/`) may have a [`Topology`]. `coll/create/topology/` makes such communicators, and
//! `coll/schedule/neighbors.rs` exchanges data between neighbours.

mod adjacency;
mod dims;
mod graph;
mod grid;
mod locality;
mod neighbors;

pub use adjacency::{Adjacency, Edge};
pub use dims::dims_create;
pub use graph::Graph;
pub use grid::Grid;
pub(crate) use locality::placed;
pub use neighbors::Neighbors;

use crate::Result;

/// What connects the ranks of a communicator.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Shape {
    /// A grid.
    #[doc(alias = "MPI_CART")]
    Grid(Grid),
    /// A graph that every rank knows as a whole.
    #[doc(alias = "MPI_GRAPH")]
    Graph(Graph),
    /// A graph of which every rank knows its own edges.
    #[doc(alias = "MPI_DIST_GRAPH")]
    Distributed(Adjacency),
}

/// The topology of a communicator, as one of its ranks sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    shape: Shape,
    neighbors: Neighbors,
}

impl Topology {
    /// Returns the topology of a communicator with this shape, for rank `rank`.
    ///
    /// # Errors
    /// Returns `ErrorKind::Rank` if the shape does not have the rank.
    pub(crate) fn new(shape: Shape, rank: usize) -> Result<Self> {
        let neighbors = match &shape {
            Shape::Grid(grid) => grid.neighbors(rank)?,
            Shape::Graph(graph) => Neighbors::of_graph(graph.neighbors(rank)?),
            Shape::Distributed(adjacency) => adjacency.neighbors(),
        };
        Ok(Self { shape, neighbors })
    }

    /// Returns what connects the ranks.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Returns the neighbours of this rank.
    pub fn neighbors(&self) -> &Neighbors {
        &self.neighbors
    }

    /// Returns the grid, or `None` if the ranks do not form a grid.
    pub fn grid(&self) -> Option<&Grid> {
        match &self.shape {
            Shape::Grid(grid) => Some(grid),
            _ => None,
        }
    }

    /// Returns the graph, or `None` if the ranks do not form a graph that every rank knows.
    pub fn graph(&self) -> Option<&Graph> {
        match &self.shape {
            Shape::Graph(graph) => Some(graph),
            _ => None,
        }
    }

    /// Returns this rank's edges, or `None` if the ranks do not form a distributed graph.
    pub fn adjacency(&self) -> Option<&Adjacency> {
        match &self.shape {
            Shape::Distributed(adjacency) => Some(adjacency),
            _ => None,
        }
    }
}
