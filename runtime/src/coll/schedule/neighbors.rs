//! Exchanges between neighbours: every neighbourhood collective, and the halo exchange (`halo/`).
//!
//! Each rank sends one message to each neighbour and receives one from each. No message waits for another
//! one, so each message travels as it would without the others: a short message through the ring of the
//! receiver, and a longer one by one copy straight from the sender's heap if this way is faster
//! (`transport/choice.rs`).
//!
//! Messages between two ranks match in the order in which both ranks list the messages (`topo/neighbors.rs`).

use crate::comm::Communicator;
use crate::schedule::program::Builder;
use crate::topo::Neighbors;
use crate::{Error, ErrorKind, Plan, Result};
use typepack_engine::Elements;

impl Communicator {
    /// Sends `send[j]` to destination `j` of `neighbors`, and receives from source `i` into `receive[i]`.
    pub(in crate::coll) fn neighbor_steps<'a>(
        &self,
        steps: &mut Builder<'_, 'a>,
        neighbors: &Neighbors,
        send: &[Elements<&'a Plan>],
        receive: &[Elements<&'a Plan>],
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
pub(in crate::coll) fn check_parts(
    argument: &'static str,
    parts: &[Elements<&Plan>],
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

/// Returns the error for a rank that is a source of itself more often, or less often, than a destination of itself.
#[cold]
pub(in crate::coll) fn unmatched(rank: usize) -> Error {
    let detail = format!(
        "rank {rank} must be a source of itself as many times as a destination of itself, but is not"
    );
    Error::new(ErrorKind::Topology, "neighbors", detail)
}
