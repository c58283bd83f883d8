//! Communicators whose ranks form a distributed graph (MPI-5.0 section 8.5.4).

use crate::comm::Communicator;
use crate::commit::bytes;
use crate::schedule::Part;
use crate::topo::{Adjacency, Edge, Shape, Topology};
use crate::{Error, ErrorKind, Result};

/// What a rank tells every other rank before it sends edges. The number of records is in the other bits.
const WEIGHTED: u64 = 1 << 63;
/// The rank knows at least one edge, so that its word on weights counts.
const HAS_EDGES: u64 = 1 << 62;

/// An edge as one of its two ends gets it: 0 for the source and 1 for the destination, the other end, and the
/// weight.
type Record = [i32; 3];

impl Communicator {
    /// Makes a communicator whose ranks form a distributed graph. Each rank passes its own edges. Collective.
    ///
    /// # Errors
    /// Returns `ErrorKind::Rank` if an end of an edge is not a rank of the communicator, and
    /// `ErrorKind::ProcAborted` if a rank has died.
    #[doc(alias = "MPI_Dist_graph_create_adjacent")]
    pub fn dist_graph_create_adjacent(&self, edges: Adjacency) -> Result<Self> {
        self.check_intra("comm")?;
        edges.check(self.size())?;
        self.dup_with(Some(Topology::new(Shape::Distributed(edges), self.rank())?))
    }

    /// Makes a communicator whose ranks form a distributed graph. Each rank passes any edges of the graph;
    /// together, the ranks pass each edge once. Either all ranks pass weights, or none. The edges of a rank
    /// are in the order of the ranks that have passed them, and then in the order in which they were passed.
    /// Collective.
    ///
    /// # Errors
    /// Returns `ErrorKind::Rank` if an end of an edge is not a rank of the communicator, `ErrorKind::Argument`
    /// if a weight is negative or if only some ranks pass weights, and `ErrorKind::ProcAborted` if a rank has
    /// died.
    #[doc(alias = "MPI_Dist_graph_create")]
    pub fn dist_graph_create(&self, edges: &[Edge], weighted: bool) -> Result<Self> {
        self.check_intra("comm")?;
        self.check_edges(edges, weighted)?;
        let (records, weighted) = self.exchange_edges(edges, weighted)?;
        let (mut sources, mut destinations) = ((vec![], vec![]), (vec![], vec![]));
        for [end, other, weight] in records {
            let list = if end == 0 { &mut destinations } else { &mut sources };
            // The other end is a rank of the communicator, because the sender has checked that.
            list.0.push(usize::try_from(other).unwrap_or(usize::MAX));
            list.1.push(weight);
        }
        let weights = weighted.then_some((&*sources.1, &*destinations.1));
        self.dist_graph_create_adjacent(Adjacency::new(&sources.0, &destinations.0, weights)?)
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

    /// Sends each edge to its two ends. Returns the records of this rank's edges, in the order of the ranks
    /// that passed them, and whether the graph has weights.
    fn exchange_edges(&self, edges: &[Edge], weighted: bool) -> Result<(Vec<Record>, bool)> {
        let size = self.size();
        let mut outgoing: Vec<Vec<Record>> = vec![vec![]; size];
        for &Edge { source, destination, weight } in edges {
            // Ranks fit in `i32`, because a job has at most 4096 ranks.
            outgoing[source].push([0, destination as i32, weight]);
            outgoing[destination].push([1, source as i32, weight]);
        }
        let flags =
            if weighted { WEIGHTED } else { 0 } | if edges.is_empty() { 0 } else { HAS_EDGES };
        let mut told: Vec<u64> = outgoing.iter().map(|list| list.len() as u64 | flags).collect();
        let mut heard = vec![0u64; size];
        self.all_to_all(&mut told, &vec![1; size], &mut heard, &vec![1; size])?;
        // If no rank knows an edge, the words of all ranks count.
        let anybody = heard.iter().any(|word| word & HAS_EDGES != 0);
        let mut words = heard.iter().filter(|word| !anybody || **word & HAS_EDGES != 0);
        let weighted = words.clone().any(|word| word & WEIGHTED != 0);
        if anybody && !words.all(|word| (word & WEIGHTED != 0) == weighted) {
            let detail =
                "only some ranks passed MPI_UNWEIGHTED; either all ranks or none must pass it";
            return Err(Error::new(ErrorKind::Argument, "weights", detail));
        }
        let counts: Vec<usize> =
            heard.iter().map(|word| (word & !(WEIGHTED | HAS_EDGES)) as usize).collect();
        let lengths: Vec<usize> = outgoing.iter().map(Vec::len).collect();
        let mut sent: Vec<Record> = outgoing.concat();
        let mut records = Vec::new();
        let total = counts.iter().try_fold(0usize, |sum, &count| sum.checked_add(count));
        total.and_then(|total| records.try_reserve_exact(total).ok().map(|()| total)).map_or_else(
            || {
                let detail = "cannot allocate memory for the edges of this rank";
                Err(Error::new(ErrorKind::NoMemory, "memory", detail))
            },
            |total| {
                records.resize(total, [0; 3]);
                Ok(())
            },
        )?;
        self.all_to_all(&mut sent, &lengths, &mut records, &counts)?;
        Ok((records, weighted))
    }

    /// Sends `lengths[i]` elements of `sent` to rank `i`, and receives `counts[i]` elements from rank `i`.
    /// Both slices have the elements of rank 0 first, then those of rank 1, and so on.
    fn all_to_all<T: bytemuck::Pod>(
        &self,
        sent: &mut [T],
        lengths: &[usize],
        received: &mut [T],
        counts: &[usize],
    ) -> Result<()> {
        let plan = bytes()?;
        let parts = |slice: &mut [T], lengths: &[usize]| -> Vec<Part<'static>> {
            assert_eq!(lengths.iter().sum::<usize>(), slice.len());
            let mut origin: *mut u8 = slice.as_mut_ptr().cast();
            let part = |&length: &usize| {
                let bytes = length * size_of::<T>();
                let part = Part { origin, plan, count: bytes as u64 };
                origin = origin.wrapping_add(bytes);
                part
            };
            lengths.iter().map(part).collect()
        };
        let (send, receive) = (parts(sent, lengths), parts(received, counts));
        // SAFETY: the parts of `send` cover the elements of `sent`, and those of `receive` the elements of
        // `received` (`parts` has compared the lengths). Both slices are mutably borrowed until the call
        // returns, so nobody else accesses them, and they do not overlap.
        unsafe { self.alltoall_raw(Some(&send), &receive) }
    }
}
