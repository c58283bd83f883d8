//! Communicators whose ranks form a distributed graph (MPI-5.0 section 8.5.4).

use crate::comm::Communicator;
use crate::topo::{Adjacency, Edge, Shape, Topology};
use crate::{Error, ErrorKind, Result};
use typepack_engine::reserve::fallible;

/// A bit of the word that a rank sends to each rank before it sends edges. The bit says that the edges have weights.
/// The bits below [`HAS_EDGES`] have the number of records for the receiver.
const WEIGHTED: u64 = 1 << 63;
/// A bit of the same word. It says that the sender passed at least one edge. If another rank passed an edge,
/// [`WEIGHTED`] counts only in words with this bit.
const HAS_EDGES: u64 = 1 << 62;

/// An edge as it is sent to one of its two ends: 0 if the receiver is the source and 1 if it is the destination, then
/// the rank of the other end, and the weight.
type Record = [i32; 3];

/// The records that a rank sends: first those for rank 0, then those for rank 1, and so on.
struct Outgoing {
    records: Vec<Record>,
    /// The number of records for each rank.
    lengths: Vec<usize>,
}

impl Outgoing {
    /// Sorts edges by their ends, which are ranks below `size`. Each edge gives two records, one for each of its ends.
    fn new(edges: &[Edge], size: usize) -> Result<Self> {
        let mut lengths = vec![0; size];
        for edge in edges {
            lengths[edge.source] += 1;
            lengths[edge.destination] += 1;
        }
        let mut records = empty_records(&lengths)?;
        let mut next: Vec<usize> = lengths
            .iter()
            .scan(0, |end, length| {
                *end += length;
                Some(*end - length)
            })
            .collect();
        for &Edge { source, destination, weight } in edges {
            // Ranks fit in `i32`, because a job has at most 4096 ranks.
            for (to, record) in [
                (source, [0, destination as i32, weight]),
                (destination, [1, source as i32, weight]),
            ] {
                records[next[to]] = record;
                next[to] += 1;
            }
        }
        Ok(Self { records, lengths })
    }
}

/// Returns zeroed records, as many as the sum of `lengths`.
///
/// # Errors
/// Returns `ErrorKind::NoMemory` if memory runs out.
fn empty_records(lengths: &[usize]) -> Result<Vec<Record>> {
    let mut records = Vec::new();
    let total = lengths.iter().try_fold(0usize, |sum, &length| sum.checked_add(length));
    let reserved =
        total.and_then(|total| fallible(|| records.try_reserve_exact(total)).ok().map(|()| total));
    let total = reserved.ok_or_else(|| {
        let detail = "cannot allocate memory for the edges of this rank";
        Error::new(ErrorKind::NoMemory, "memory", detail)
    })?;
    records.resize(total, [0; 3]);
    Ok(records)
}

impl Communicator {
    /// Makes a communicator whose ranks form a distributed graph. Each rank passes its own edges. Collective.
    ///
    /// # Errors
    /// Returns `ErrorKind::Rank` if an end of an edge is not a rank of the communicator, `ErrorKind::Comm` if this is
    /// an intercommunicator, `ErrorKind::Other` if another rank found an error in its arguments, and
    /// `ErrorKind::ProcAborted` if a rank has died.
    #[doc(alias = "MPI_Dist_graph_create_adjacent")]
    pub fn dist_graph_create_adjacent(&self, edges: Adjacency) -> Result<Self> {
        let checked = self.check_intra("comm").and_then(|()| edges.check(self.size()));
        let topology = checked.and_then(|()| Topology::new(Shape::Distributed(edges), self.rank()));
        self.dup_with(topology.inspect_err(|_| self.fail_creation())?)
    }

    /// Makes a communicator whose ranks form a distributed graph. Each rank passes any edges of the graph; together,
    /// the ranks pass each edge once. Either all ranks that pass edges pass weights, or none of them. The edges of a
    /// rank are in the order of the ranks that have passed them, and then in the order in which they were passed.
    /// Collective.
    ///
    /// # Errors
    /// Returns `ErrorKind::Rank` if an end of an edge is not a rank of the communicator, `ErrorKind::Argument` if a
    /// weight is negative or if only some of the ranks that pass edges pass weights, `ErrorKind::Comm` if this is an
    /// intercommunicator, `ErrorKind::NoMemory` if memory runs out, `ErrorKind::Other` if another rank failed in one of
    /// these ways, and `ErrorKind::ProcAborted` if a rank has died.
    #[doc(alias = "MPI_Dist_graph_create")]
    pub fn dist_graph_create(&self, edges: &[Edge], weighted: bool) -> Result<Self> {
        // A rank that finds an error, or that has no memory, takes part in the next exchange as a rank that fails. So
        // the exchanges of the edges run only if all ranks can make them.
        let checked = self.check_intra("comm").and_then(|()| self.check_edges(edges, weighted));
        let sorted = checked.and_then(|()| Outgoing::new(edges, self.size()));
        let mut outgoing = sorted.inspect_err(|_| self.fail_creation())?;
        self.agreed_number()?;
        let (lengths, weighted) =
            self.exchange_lengths(&outgoing.lengths, !edges.is_empty(), weighted)?;
        let records = empty_records(&lengths).inspect_err(|_| self.fail_creation());
        let (mut records, number) = (records?, self.agreed_number()?);
        self.exchange_slices(&mut outgoing.records, &outgoing.lengths, &mut records, &lengths)?;
        let (mut sources, mut destinations) = ((vec![], vec![]), (vec![], vec![]));
        for [end, other, weight] in records {
            let list = if end == 0 { &mut destinations } else { &mut sources };
            // The other end is a rank of the communicator, because the sender has checked that.
            list.0.push(usize::try_from(other).unwrap_or(usize::MAX));
            list.1.push(weight);
        }
        let weights = weighted.then_some((&*sources.1, &*destinations.1));
        let edges = Adjacency::new(&sources.0, &destinations.0, weights)?;
        edges.check(self.size())?;
        self.with_number(number, Topology::new(Shape::Distributed(edges), self.rank())?)
    }

    fn check_edges(&self, edges: &[Edge], weighted: bool) -> Result<()> {
        for (place, edge) in edges.iter().enumerate() {
            for (argument, rank) in [("sources", edge.source), ("destinations", edge.destination)] {
                if rank >= self.size() {
                    let size = self.size();
                    let detail = format!(
                        "edge {place}: {rank} is not a rank of the communicator, whose size is {size}"
                    );
                    return Err(Error::new(ErrorKind::Rank, argument, detail));
                }
            }
            if weighted && edge.weight < 0 {
                let weight = edge.weight;
                let detail =
                    format!("edge {place}: {weight} is negative; a weight must be 0 or more");
                return Err(Error::new(ErrorKind::Argument, "weights", detail));
            }
        }
        Ok(())
    }

    /// Tells every rank how many records it gets. Returns how many records this rank gets from each rank, and whether
    /// the graph has weights. If only some of the ranks with edges pass weights, all ranks get an error.
    fn exchange_lengths(
        &self,
        lengths: &[usize],
        has_edges: bool,
        weighted: bool,
    ) -> Result<(Vec<usize>, bool)> {
        let size = self.size();
        let flags = if weighted { WEIGHTED } else { 0 } | if has_edges { HAS_EDGES } else { 0 };
        let mut told: Vec<u64> = lengths.iter().map(|&length| length as u64 | flags).collect();
        let mut heard = vec![0u64; size];
        self.exchange_slices(&mut told, &vec![1; size], &mut heard, &vec![1; size])?;
        // If no rank passed an edge, the words of all ranks count.
        let anybody = heard.iter().any(|word| word & HAS_EDGES != 0);
        let mut words = heard.iter().filter(|word| !anybody || **word & HAS_EDGES != 0);
        let weighted = words.clone().any(|word| word & WEIGHTED != 0);
        if anybody && !words.all(|word| (word & WEIGHTED != 0) == weighted) {
            let detail =
                "only some ranks passed MPI_UNWEIGHTED; either all ranks or none must pass it";
            return Err(Error::new(ErrorKind::Argument, "weights", detail));
        }
        let lengths = heard.iter().map(|word| (word & !(WEIGHTED | HAS_EDGES)) as usize).collect();
        Ok((lengths, weighted))
    }
}
