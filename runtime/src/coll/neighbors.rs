//! Exchanges between neighbours: every neighbourhood collective, and the halo exchange (`halo/`).
//!
//! Each rank sends one message to each neighbour and receives one from each. No message waits for another
//! one, so each travels as if it were alone: short ones through the ring, and longer ones out of the sender's
//! heap by one fused copy where that pays (`transport/choice.rs`).
//!
//! Messages between two ranks match in the order in which both list them (`topo/neighbors.rs`).

use crate::comm::Communicator;
use crate::schedule::Part;
use crate::schedule::program::Builder;
use crate::topo::Neighbors;
use crate::{Error, ErrorKind, Result};

impl Communicator {
    /// Sends `send[j]` to destination `j` of `neighbors`, and receives from source `i` into `receive[i]`.
    pub(super) fn neighbor_steps<'a>(
        &self,
        steps: &mut Builder<'_, 'a>,
        neighbors: &Neighbors,
        send: &[Part<'a>],
        receive: &[Part<'a>],
    ) -> Result<()> {
        check_parts("send", send, neighbors.destinations())?;
        check_parts("receive", receive, neighbors.sources())?;
        let (rank, sources) = (self.rank(), neighbors.sources());
        for place in neighbors.receive_order() {
            if let Some(source) = sources[place].filter(|&source| source != rank) {
                steps.receive(&receive[place], self.peer(source)?)?;
            }
        }
        // A part that this rank sends to itself is copied.
        let mut own = neighbors.receive_order().filter(|&place| sources[place] == Some(rank));
        for (part, &destination) in send.iter().zip(neighbors.destinations()) {
            match destination {
                None => {}
                Some(to) if to != rank => {
                    steps.send(part, self.peer(to)?)?;
                }
                Some(_) => {
                    let place = own.next().ok_or_else(|| unmatched(rank))?;
                    steps.copy(part, &receive[place], rank)?;
                }
            }
        }
        own.next().map_or(Ok(()), |_| Err(unmatched(rank)))
    }
}

/// Checks that there is one part for each neighbour.
fn check_parts(
    argument: &'static str,
    parts: &[Part<'_>],
    neighbors: &[Option<usize>],
) -> Result<()> {
    if parts.len() == neighbors.len() {
        return Ok(());
    }
    let detail = format!(
        "the slice has length {}; its length must be the number of neighbours, {}",
        parts.len(),
        neighbors.len()
    );
    Err(Error::new(ErrorKind::Argument, argument, detail))
}

/// The error for a graph with more edges from a rank to itself than edges to the rank from itself, or fewer.
#[cold]
fn unmatched(rank: usize) -> Error {
    let detail = format!(
        "rank {rank} is not equally often a source and a destination of itself, as each edge to itself needs"
    );
    Error::new(ErrorKind::Topology, "neighbors", detail)
}
