//! Distributed graphs, of which each rank knows only its own edges (MPI-5.0 section 8.5.4).
//!
//! The user passes the edges of a rank, or any edges of the graph. In the second case
//! `coll/create/topology/distributed.rs` sends each edge to its two ends.

use super::Neighbors;
use crate::{Error, ErrorKind, Result};

/// An edge of a distributed graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// The rank that sends along the edge.
    pub source: usize,
    /// The rank that receives along the edge.
    pub destination: usize,
    /// The weight of the edge. It has no meaning in a graph without weights.
    pub weight: i32,
}

/// The edges of one rank: those that lead to the rank, and those that lead from it. Several edges may connect
/// the same two ranks, and an edge may lead from a rank to itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Adjacency {
    sources: Box<[usize]>,
    destinations: Box<[usize]>,
    /// The weights of the edges; `None` if the graph has no weights.
    weights: Option<Weights>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Weights {
    /// The weights of the edges that lead to the rank.
    to: Box<[i32]>,
    /// The weights of the edges that lead from the rank.
    from: Box<[i32]>,
}

impl Adjacency {
    /// Makes the edges of a rank. `weights` has the weights of the edges from `sources` and of those to
    /// `destinations`; it is `None` for a graph without weights.
    ///
    /// # Errors
    /// Returns `ErrorKind::Argument` if the numbers of edges and weights differ, or if a weight is negative.
    pub fn new(
        sources: &[usize],
        destinations: &[usize],
        weights: Option<(&[i32], &[i32])>,
    ) -> Result<Self> {
        if let Some((to, from)) = weights {
            check_weights("sourceweights", to, sources.len())?;
            check_weights("destweights", from, destinations.len())?;
        }
        Ok(Self {
            sources: sources.into(),
            destinations: destinations.into(),
            weights: weights.map(|(to, from)| Weights { to: to.into(), from: from.into() }),
        })
    }

    /// Returns the ranks from which edges lead to this rank.
    pub fn sources(&self) -> &[usize] {
        &self.sources
    }

    /// Returns the ranks to which edges lead from this rank.
    pub fn destinations(&self) -> &[usize] {
        &self.destinations
    }

    /// Returns the weights of the edges from [`sources`](Self::sources) and of those to
    /// [`destinations`](Self::destinations); `None` if the graph has no weights.
    pub fn weights(&self) -> Option<(&[i32], &[i32])> {
        self.weights.as_ref().map(|Weights { to, from }| (&**to, &**from))
    }

    /// Checks the edges of a rank of a communicator of `size` ranks.
    ///
    /// # Errors
    /// Returns `ErrorKind::Rank` if an end of an edge is not a rank of the communicator.
    pub(crate) fn check(&self, size: usize) -> Result<()> {
        for (argument, ranks) in [("sources", &self.sources), ("destinations", &self.destinations)]
        {
            if let Some((place, other)) = ranks.iter().enumerate().find(|(_, end)| **end >= size) {
                let detail = format!(
                    "entry {place}: {other} is not a rank of the communicator, whose size is {size}"
                );
                return Err(Error::new(ErrorKind::Rank, argument, detail));
            }
        }
        Ok(())
    }

    pub(super) fn neighbors(&self) -> Neighbors {
        Neighbors::of_edges(&self.sources, &self.destinations)
    }
}

fn check_weights(argument: &'static str, weights: &[i32], edges: usize) -> Result<()> {
    let detail = if weights.len() != edges {
        format!(
            "the number of weights is {}; it must be {edges}, the number of edges",
            weights.len()
        )
    } else if let Some((place, weight)) = weights.iter().enumerate().find(|(_, w)| **w < 0) {
        format!("entry {place} is {weight}; a weight must be 0 or more")
    } else {
        return Ok(());
    };
    Err(Error::new(ErrorKind::Argument, argument, detail))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_and_weights_are_checked() {
        let good = Adjacency::new(&[1, 0, 1], &[0], Some((&[3, 0, 4], &[7]))).expect("edges");
        assert_eq!(good.weights(), Some((&[3, 0, 4][..], &[7][..])));
        assert!(good.check(2).is_ok());
        let error = good.check(1).expect_err("no rank 1");
        assert_eq!((error.kind(), error.argument()), (ErrorKind::Rank, "sources"));
        let short = Adjacency::new(&[1], &[], Some((&[], &[]))).expect_err("no weight");
        assert_eq!(short.argument(), "sourceweights");
        let negative = Adjacency::new(&[], &[1], Some((&[], &[-1]))).expect_err("negative");
        assert_eq!(negative.argument(), "destweights");
    }
}
