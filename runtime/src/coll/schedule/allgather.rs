//! Allgather around a ring. In the first round, each rank sends its own part to the next rank. In every
//! later round, it forwards the part that it received in the previous round.

use crate::coll::Collective;
use crate::coll::collective::check_parts;
use crate::comm::Communicator;
use crate::schedule::program::Builder;
use crate::{Plan, Result};
use typepack_engine::Elements;

impl Communicator {
    /// Copies `mine` of rank `i` into `parts[i]` of every rank. A rank that passes `None` as `mine` already
    /// has its own elements in `parts[i]`, where `i` is its rank. Collective.
    ///
    /// # Safety
    ///
    /// - Until the call returns, the elements of `mine` are readable and nobody changes them.
    /// - Until the call returns, the elements of `parts` are readable and writable, and nobody else
    ///   accesses them.
    /// - The parts overlap neither each other nor `mine`.
    ///
    /// # Errors
    /// Returns `ErrorKind::Argument` if the number of parts is not the number of ranks,
    /// `ErrorKind::Truncated` or `ErrorKind::Count` if a part has different packed sizes on different ranks,
    /// `ErrorKind::ProcAborted` if a rank has died, and the errors of [`run_raw`](Self::run_raw) that all
    /// collective calls share.
    #[doc(alias = "MPI_Allgather")]
    #[doc(hidden)]
    #[doc(alias = "MPI_Allgatherv")]
    pub unsafe fn allgather_raw(
        &self,
        mine: Option<Elements<&Plan>>,
        parts: &[Elements<&Plan>],
    ) -> Result<()> {
        // SAFETY: the caller guarantees that, until `run_raw` returns, `mine` is readable and unchanged
        // (first condition of `# Safety`), `parts` are readable and writable and nobody else accesses them
        // (second condition), and none of these overlap (third condition). `Collective::Allgather` names no
        // other memory and no operation.
        unsafe { self.run_raw(&Collective::Allgather { mine, parts }) }
    }

    pub(in crate::coll) fn allgather_steps<'a>(
        &self,
        steps: &mut Builder<'_, 'a>,
        mine: Option<&Elements<&'a Plan>>,
        parts: &[Elements<&'a Plan>],
    ) -> Result<()> {
        check_parts(self, parts)?;
        let (rank, size) = (self.rank(), self.size());
        let own = mine.map(|mine| steps.copy(mine, &parts[rank], rank)).transpose()?;
        let (to, from) = (self.peer((rank + 1) % size)?, self.peer((rank + size - 1) % size)?);
        // `has_come` is the step that brings the part which this rank sends next (`None` if the part is
        // already in place), and `sent` is the previous send. A rank forwards every part that it has
        // received, even if the transfer of another part failed, because the ranks behind it in the ring get
        // these parts only from it.
        let (mut has_come, mut sent) = (own, None);
        for round in 1..size {
            let received = steps.receive(&parts[(rank + size - round) % size], from)?;
            let send = steps.send(&parts[(rank + size - round + 1) % size], to)?;
            if let Some(has_come) = has_come {
                steps.after(send, has_come);
            }
            if let Some(sent) = sent {
                // This rank may receive the parts out of order, but the next rank expects them in order. So
                // each send waits for the previous send.
                steps.follow(send, sent);
            }
            (has_come, sent) = (Some(received), Some(send));
        }
        Ok(())
    }
}
