//! The neighbours of one rank, in the order of the neighbourhood collectives (MPI-5.0 section 8.6).
//!
//! `coll/schedule/neighbors.rs` lists the messages of an exchange between neighbours. All messages of an exchange have
//! the same tag, and messages between two ranks match in the order in which the ranks list them. A rank lists
//! its sends in the order of its destinations. [`Matching`] says in which order it lists its receives, so that
//! messages match by direction, even if one rank is a neighbour in several directions.

/// The order of the receives of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Matching {
    /// The order of the sources. The first message from a rank comes from the first of the edges that lead
    /// from that rank to this one, and so on.
    Listed,
    /// Sources `2 d` and `2 d + 1` are the neighbours on the two sides of dimension `d`. A message towards
    /// the lower side arrives from the upper side. So each pair is received in the opposite order.
    Sides,
    /// The sources are sides in ascending order, and a message towards a side arrives from the opposite side.
    /// The opposite sides are in descending order. So the sources are received from the last to the first.
    Reversed,
}

/// The ranks from which a rank receives and to which it sends in an exchange between neighbours. A neighbour
/// that does not exist is `None` (`MPI_PROC_NULL`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Neighbors {
    sources: Box<[Option<usize>]>,
    destinations: Box<[Option<usize>]>,
    matching: Matching,
}

impl Neighbors {
    /// Returns the neighbours in a grid: for each dimension the rank on the lower side and the rank on the
    /// upper side.
    pub(super) fn of_grid(sides: Vec<Option<usize>>) -> Self {
        debug_assert!(sides.len().is_multiple_of(2));
        Self {
            sources: sides.clone().into(),
            destinations: sides.into(),
            matching: Matching::Sides,
        }
    }

    /// Returns the neighbours in a graph, to which a rank sends and from which it receives.
    pub(super) fn of_graph(ranks: &[usize]) -> Self {
        Self::of_edges(ranks, ranks)
    }

    /// Returns the neighbours along the edges that lead to this rank and from this rank.
    pub(super) fn of_edges(sources: &[usize], destinations: &[usize]) -> Self {
        let listed = |ranks: &[usize]| ranks.iter().copied().map(Some).collect();
        Self {
            sources: listed(sources),
            destinations: listed(destinations),
            matching: Matching::Listed,
        }
    }

    /// Returns the neighbours at the sides of a block, where `ranks` are the neighbours at sides in ascending
    /// order. The message that a rank sends towards a side arrives from the opposite side, and a rank has as
    /// many sides as opposite sides.
    pub(crate) fn of_sides(ranks: impl Iterator<Item = usize>) -> Self {
        let sides: Box<[Option<usize>]> = ranks.map(Some).collect();
        Self { sources: sides.clone(), destinations: sides, matching: Matching::Reversed }
    }

    /// Returns the ranks from which this rank receives.
    pub fn sources(&self) -> &[Option<usize>] {
        &self.sources
    }

    /// Returns the ranks to which this rank sends.
    pub fn destinations(&self) -> &[Option<usize>] {
        &self.destinations
    }

    /// Returns the indexes of the sources in the order in which this rank lists its receives.
    pub(crate) fn receive_order(&self) -> impl Iterator<Item = usize> + Clone + use<> {
        let (count, matching) = (self.sources.len(), self.matching);
        (0..count).map(move |place| match matching {
            Matching::Listed => place,
            Matching::Sides => place ^ 1,
            Matching::Reversed => count - 1 - place,
        })
    }
}
