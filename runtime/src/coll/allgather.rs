//! Allgather around a ring: in every round each rank hands on what it got in the round before.

use super::ALLGATHER;
use super::raw::{Batch, Part, check_parts};
use crate::Result;
use crate::comm::Communicator;

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
        check_parts(self, parts)?;
        let (rank, size) = (self.rank(), self.size());
        // A failure at this rank must not stop the ring: others wait for what goes through it.
        // SAFETY: passed on.
        let mut result = mine.map_or(Ok(()), |mine| unsafe { mine.copy_to(&parts[rank], rank) });
        // What is handed on next.
        let mut has_come = result.is_ok();
        let (to, from) = ((rank + 1) % size, (rank + size - 1) % size);
        for round in 1..size {
            let mut batch = Batch::new(self, ALLGATHER);
            // SAFETY: passed on; the two parts are different ones.
            unsafe {
                batch.receive(&parts[(rank + size - round) % size], from)?;
                match has_come {
                    true => batch.send(&parts[(rank + size - round + 1) % size], to)?,
                    false => batch.send_void(to)?,
                }
            }
            let ended = batch.finish();
            has_come = ended.is_ok();
            result = result.and(ended);
        }
        result
    }
}
