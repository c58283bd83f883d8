//! Allgather around a ring: in every round each rank hands on what it got in the round before.

use super::Collective;
use super::collective::check_parts;
use crate::Result;
use crate::comm::Communicator;
use crate::schedule::Part;
use crate::schedule::program::Builder;

impl Communicator {
    /// Brings `mine` of rank `i` into `parts[i]` of every rank; `None` says that it is there
    /// already. Collective.
    ///
    /// # Safety
    ///
    /// - The elements of `mine` are readable, those of `parts` readable and writable, and nobody
    ///   else uses the latter, or changes the former, until the call returns.
    /// - The parts overlap neither each other nor `mine`.
    ///
    /// # Errors
    /// Not one part for every rank; parts of different packed sizes on different ranks;
    /// [`ErrorKind::ProcAborted`](crate::ErrorKind) when a rank has died.
    #[doc(alias = "MPI_Allgather")]
    #[doc(alias = "MPI_Allgatherv")]
    pub unsafe fn allgather_raw(&self, mine: Option<Part<'_>>, parts: &[Part<'_>]) -> Result<()> {
        // SAFETY: `mine` is read and `parts` are written and read, as the caller promises.
        unsafe { self.run_raw(&Collective::Allgather { mine, parts }) }
    }

    pub(super) fn allgather_steps<'a>(
        &self,
        steps: &mut Builder<'_, 'a>,
        mine: Option<&Part<'a>>,
        parts: &[Part<'a>],
    ) -> Result<()> {
        check_parts(self, parts)?;
        let (rank, size) = (self.rank(), self.size());
        let own = mine.map(|mine| steps.copy(mine, &parts[rank], rank)).transpose()?;
        let (to, from) = (self.peer((rank + 1) % size)?, self.peer((rank + size - 1) % size)?);
        // What is handed on next, and the send before. A rank hands on every part that has come, whatever
        // has become of the others: they go through it to all ranks.
        let (mut has_come, mut sent) = (own, None);
        for round in 1..size {
            let received = steps.receive(&parts[(rank + size - round) % size], from)?;
            let send = steps.send(&parts[(rank + size - round + 1) % size], to)?;
            if let Some(has_come) = has_come {
                steps.after(send, has_come);
            }
            if let Some(sent) = sent {
                // Parts may come out of order; the next rank expects them in order.
                steps.follow(send, sent);
            }
            (has_come, sent) = (Some(received), Some(send));
        }
        Ok(())
    }
}
