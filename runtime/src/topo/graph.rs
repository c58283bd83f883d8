//! Graphs that every rank knows as a whole (MPI-5.0 section 8.5.3).

use crate::{Error, ErrorKind, Result};

/// A directed graph of ranks. Each rank has a list of neighbours, in which a rank may appear several times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Graph {
    /// Entry `i` is the number of neighbours of the ranks 0 to `i`.
    index: Box<[usize]>,
    /// The neighbours of rank 0, then those of rank 1, and so on.
    edges: Box<[usize]>,
}

impl Graph {
    /// Makes a graph. Entry `i` of `index` is the number of neighbours of the ranks 0 to `i`, and `edges` has
    /// the neighbours of all ranks, one rank after the other.
    ///
    /// # Errors
    /// Returns `ErrorKind::Argument` if an entry of `index` is less than the entry before it, or if the last
    /// entry is not the length of `edges`. Returns `ErrorKind::Rank` if an edge leads to a rank that the graph
    /// does not have.
    pub fn new(index: &[usize], edges: &[usize]) -> Result<Self> {
        let needed = Self::edge_count(index)?;
        if needed != edges.len() {
            let detail = format!(
                "the number of edges is {}; it must be {needed}, the last entry of index",
                edges.len()
            );
            return Err(Error::new(ErrorKind::Argument, "edges", detail));
        }
        let ranks = index.len();
        if let Some((place, rank)) = edges.iter().enumerate().find(|(_, rank)| **rank >= ranks) {
            let detail =
                format!("entry {place} is {rank}; the ranks of the graph are below {ranks}");
            return Err(Error::new(ErrorKind::Rank, "edges", detail));
        }
        Ok(Self { index: index.into(), edges: edges.into() })
    }

    /// Returns the number of edges of a graph whose ranks have these numbers of neighbours; see
    /// [`new`](Self::new).
    ///
    /// # Errors
    /// Returns `ErrorKind::Argument` if an entry of `index` is less than the entry before it.
    pub fn edge_count(index: &[usize]) -> Result<usize> {
        let mut before = 0;
        for (rank, &end) in index.iter().enumerate() {
            if end < before {
                let detail = format!(
                    "entry {rank} is {end}; it must be at least {before}, the entry before it"
                );
                return Err(Error::new(ErrorKind::Argument, "index", detail));
            }
            before = end;
        }
        Ok(before)
    }

    /// Returns the number of ranks.
    pub fn size(&self) -> usize {
        self.index.len()
    }

    /// Returns, for each rank, the number of neighbours of this rank and the ranks below it.
    pub fn index(&self) -> &[usize] {
        &self.index
    }

    /// Returns the neighbours of all ranks, one rank after the other.
    pub fn edges(&self) -> &[usize] {
        &self.edges
    }

    /// Returns the neighbours of `rank`.
    ///
    /// # Errors
    /// Returns `ErrorKind::Rank` if the graph does not have the rank.
    #[doc(alias = "MPI_Graph_neighbors")]
    pub fn neighbors(&self, rank: usize) -> Result<&[usize]> {
        let Some(&end) = self.index.get(rank) else {
            let detail =
                format!("{rank} is not a rank of the graph, whose size is {}", self.size());
            return Err(Error::new(ErrorKind::Rank, "rank", detail));
        };
        let begin = if rank == 0 { 0 } else { self.index[rank - 1] };
        Ok(&self.edges[begin..end])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rank_has_its_own_neighbours() {
        // The example of the standard, section 8.5.3.
        let graph = Graph::new(&[2, 3, 4, 6], &[1, 3, 0, 3, 0, 2]).expect("a graph");
        let lists: Vec<&[usize]> =
            (0..4).map(|rank| graph.neighbors(rank).expect("a rank")).collect();
        assert_eq!(lists, [&[1, 3][..], &[0], &[3], &[0, 2]]);
        assert_eq!(graph.neighbors(4).expect_err("no rank").kind(), ErrorKind::Rank);
        let empty = Graph::new(&[], &[]).expect("a graph");
        assert!(empty.size() == 0 && empty.neighbors(0).is_err());
        let alone = Graph::new(&[3], &[0, 0, 0]).expect("a graph");
        assert_eq!(alone.neighbors(0).expect("a rank"), [0, 0, 0]);
    }

    #[test]
    fn wrong_lists_are_refused() {
        for (index, edges, argument) in [
            (&[2, 1][..], &[0, 1][..], "index"),
            (&[1, 2], &[0], "edges"),
            (&[1, 2], &[0, 1, 1], "edges"),
            (&[], &[0], "edges"),
            (&[1, 2], &[0, 2], "edges"),
        ] {
            let error = Graph::new(index, edges).expect_err("refused");
            assert_eq!(error.argument(), argument, "{index:?} {edges:?}");
        }
    }
}
