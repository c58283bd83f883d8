//! Barrier by dissemination: after round `k` (counted from 0), every rank knows that at least `2^(k+1)` ranks
//! have arrived, or all ranks if there are fewer.

use crate::Result;
use crate::coll::Collective;
use crate::comm::Communicator;
use crate::commit::bytes;
use crate::schedule::program::Builder;
use typepack_engine::Elements;

impl Communicator {
    /// Waits until every rank has called `barrier`. Collective.
    ///
    /// # Errors
    /// Returns [`ErrorKind::ProcAborted`](crate::ErrorKind) if a rank has died.
    #[doc(alias = "MPI_Barrier")]
    pub fn barrier(&self) -> Result<()> {
        // SAFETY: `Collective::Barrier` names no memory that the caller would have to keep valid.
        unsafe { self.run_raw(&Collective::Barrier) }
    }

    #[inline]
    pub(in crate::coll) fn barrier_steps(&self, steps: &mut Builder<'_, '_>) -> Result<()> {
        let (rank, size) = (self.rank(), self.size());
        let nothing = Elements { origin: std::ptr::null_mut(), plan: bytes()?, count: 0 };
        let (mut distance, mut before) = (1, None);
        while distance < size {
            let (to, from) = ((rank + distance) % size, (rank + size - distance) % size);
            let sent = steps.send(&nothing, self.peer(to)?)?;
            if let Some(before) = before {
                steps.after(sent, before);
            }
            let received = steps.receive(&nothing, self.peer(from)?)?;
            if let Some(before) = before {
                // Make the receive of this round wait for the receive of the previous round. So each receive
                // completes only after the receives of all earlier rounds.
                steps.after(received, before);
            }
            before = Some(received);
            distance *= 2;
        }
        Ok(())
    }
}
