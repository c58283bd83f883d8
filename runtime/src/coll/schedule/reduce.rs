//! Reduces to one rank along a binomial tree, in rank order. (Long vectors go in blocks; see `reduce_scatter.rs`.)
//!
//! The root of the tree is always rank 0. So every partial result covers consecutive ranks, and the operands
//! stay in rank order. If the call names another root, rank 0 sends the result to that root.

use crate::comm::Communicator;
use crate::endpoint::sources::Combine;
use crate::schedule::program::{Builder, StepId};
use crate::{Error, ErrorKind, Plan, Result};
use typepack_engine::Elements;

impl Communicator {
    /// Adds the steps of a reduction to the schedule. Returns the last step: the step that writes the result at the
    /// root, or the step that sends this rank's partial result. `None` means that no step is needed: the elements have
    /// no bytes, or the only rank has the result already.
    pub(in crate::coll) fn reduce_steps<'a>(
        &self,
        steps: &mut Builder<'_, 'a>,
        send: Option<*const u8>,
        recv: &Elements<&'a Plan>,
        combine: &Combine,
        root: usize,
    ) -> Result<Option<StepId>> {
        let (rank, size) = (self.rank(), self.size());
        let at = |origin: *mut u8| Elements { origin, ..*recv };
        let own = match send {
            Some(send) => at(send.cast_mut()),
            None if rank == root => *recv,
            None => return Err(missing(rank, root)),
        };
        if own.bytes()? == 0 {
            return Ok(None);
        }
        steps.operation(combine);
        // `mine` is this rank's partial result and the lower operand; the combining step only reads it. The
        // upper operand comes from higher ranks and arrives in one of two scratch buffers. The combined
        // result replaces the upper operand in its buffer.
        let (mut mine, mut made) = (own, None);
        let mut rooms = [None, None];
        let mut bit = 1;
        while bit < size && rank & bit == 0 {
            if rank + bit < size {
                let room = match rooms[0] {
                    Some(room) => room,
                    None => steps.scratch(recv.plan, recv.count),
                };
                rooms = [rooms[1], Some(room)];
                let other = at(room);
                let received = steps.receive(&other, self.peer(rank + bit)?)?;
                let combined = steps.combine(mine.origin, room, &other)?;
                steps.after(combined, received);
                if let Some(made) = made {
                    // If an earlier round used the buffer `room`, step `made` is the last step that reads
                    // it. So the receive, which overwrites `room`, waits for `made`.
                    steps.follow(received, made);
                    steps.after(combined, made);
                }
                (mine, made) = (other, Some(combined));
            }
            bit *= 2;
        }
        let to = if rank != 0 { Some(rank - bit) } else { (root != 0).then_some(root) };
        let sent = to.map(|to| steps.send(&mine, self.peer(to)?)).transpose()?;
        if let (Some(sent), Some(made)) = (sent, made) {
            steps.after(sent, made);
        }
        if rank != root {
            return Ok(sent);
        }
        if root != 0 {
            let received = steps.receive(recv, self.peer(0)?)?;
            if let (Some(sent), None) = (sent, send) {
                // This rank's elements are still at `recv`, so this rank must send them before the result
                // may arrive there.
                steps.follow(received, sent);
            }
            return Ok(Some(received));
        }
        if mine.origin == recv.origin {
            return Ok(made);
        }
        let copied = steps.copy(&mine, recv, rank)?;
        if let Some(made) = made {
            steps.after(copied, made);
        }
        Ok(Some(copied))
    }
}

#[cold]
pub(in crate::coll) fn missing(rank: usize, root: usize) -> Error {
    let detail =
        format!("rank {rank} passed None (in place); only the root, rank {root}, may pass None");
    Error::new(ErrorKind::Buffer, "send", detail)
}
