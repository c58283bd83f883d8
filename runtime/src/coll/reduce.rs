//! Reduction to one rank along a binomial tree of consecutive ranks, in rank order.
//!
//! The tree is rooted at rank 0 whatever the root is, so that every partial result belongs to
//! consecutive ranks and the order of operands is that of the ranks; rank 0 hands the result on.

use super::Collective;
use crate::comm::Communicator;
use crate::endpoint::sources::Combine;
use crate::schedule::Part;
use crate::schedule::program::Builder;
use crate::{Error, ErrorKind, Plan, Result};

impl Communicator {
    /// Combines the elements at `send` of all ranks, in rank order, into those at `recv` of `root`.
    /// At the root a `send` of `None` says that its elements are at `recv`. Collective.
    ///
    /// # Safety
    ///
    /// - `count` elements of `plan`'s type at `send` are readable, those at `recv` of the root
    ///   writable, and nobody else uses the latter, or changes the former, until the call returns;
    ///   they overlap nowhere.
    /// - `combine` keeps the promises of [`Combine`] for these elements.
    ///
    /// # Errors
    /// No such `root`; `None` elsewhere; another packed size than another rank's;
    /// [`ErrorKind::ProcAborted`] when a rank has died.
    #[doc(alias = "MPI_Reduce")]
    pub unsafe fn reduce_raw(
        &self,
        send: Option<*const u8>,
        recv: *mut u8,
        plan: &Plan,
        count: u64,
        combine: &Combine,
        root: usize,
    ) -> Result<()> {
        // SAFETY: both vectors and the operation are the caller's promise.
        unsafe { self.run_raw(&Collective::Reduce { send, recv, plan, count, combine, root }) }
    }

    pub(super) fn reduce_steps<'a>(
        &self,
        steps: &mut Builder<'_, 'a>,
        send: Option<*const u8>,
        recv: &Part<'a>,
        combine: &Combine,
        root: usize,
    ) -> Result<()> {
        let (rank, size) = (self.rank(), self.size());
        let at = |origin: *mut u8| Part { origin, ..*recv };
        let own = match send {
            Some(send) => at(send.cast_mut()),
            None if rank == root => *recv,
            None => {
                let detail = "only the root's own elements can be in place";
                return Err(Error::new(ErrorKind::Buffer, "send", detail));
            }
        };
        if own.bytes()? == 0 {
            return Ok(());
        }
        steps.operation(combine);
        // The partial result, which is only read: what comes from higher ranks is the upper operand,
        // comes into one of two rooms, and takes the result.
        let (mut mine, mut made) = (own, None);
        let mut rooms = [None, None];
        let mut bit = 1;
        while bit < size && rank & bit == 0 {
            if rank + bit < size {
                let room = match rooms[0] {
                    Some(room) => room,
                    None => steps.scratch(recv.plan, recv.count)?,
                };
                rooms = [rooms[1], Some(room)];
                let other = at(room);
                let received = steps.receive(&other, self.peer(rank + bit)?)?;
                let combined = steps.combine(mine.origin, room, &other)?;
                steps.after(combined, received);
                if let Some(made) = made {
                    // The room of the last but one has been read.
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
            return Ok(());
        }
        if root != 0 {
            let received = steps.receive(recv, self.peer(0)?)?;
            if let (Some(sent), None) = (sent, send) {
                // The own elements, which are there, go out first.
                steps.follow(received, sent);
            }
        } else if mine.origin != recv.origin {
            let copied = steps.copy(&mine, recv, rank)?;
            if let Some(made) = made {
                steps.after(copied, made);
            }
        }
        Ok(())
    }
}
