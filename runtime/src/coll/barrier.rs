//! Barrier by dissemination: after round `k` every rank knows of `2^(k+1)` ranks.

use super::BARRIER;
use crate::Result;
use crate::comm::{Communicator, Space};
use crate::commit::bytes;

impl Communicator {
    /// Returns when every rank has called it. Collective.
    ///
    /// # Errors
    /// [`ErrorKind::ProcAborted`](crate::ErrorKind) when a rank has died.
    #[doc(alias = "MPI_Barrier")]
    pub fn barrier(&self) -> Result<()> {
        let (rank, size, byte) = (self.rank(), self.size(), bytes()?);
        let mut distance = 1;
        while distance < size {
            let (to, from) = ((rank + distance) % size, (rank + size - distance) % size);
            let mut nothing = [0u8; 0];
            self.scope_in(Space::Collective, |scope| -> Result<()> {
                scope.irecv(&mut nothing, byte, 0, from, BARRIER)?;
                scope.isend::<u8>(&[], byte, 0, to, BARRIER)?;
                Ok(())
            })??;
            distance *= 2;
        }
        Ok(())
    }
}
