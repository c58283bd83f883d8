//! Gather and scatter, with one message between the root and each other rank.
//!
//! The root passes one part for each rank. So the gather implements both `MPI_Gather` and `MPI_Gatherv`, and
//! the scatter implements both `MPI_Scatter` and `MPI_Scatterv`.

use crate::coll::collective::check_parts;
use crate::coll::{Collective, Root};
use crate::comm::Communicator;
use crate::schedule::program::{Builder, StepId};
use crate::{Error, ErrorKind, Plan, Result};
use typepack_engine::Elements;

impl Communicator {
    /// Copies `mine` of rank `i` into `parts[i]` of `root`. The root may pass `None` as `mine` if its own
    /// elements are already in its entry of `parts`. Only the root uses `parts`. Collective.
    ///
    /// # Safety
    ///
    /// - Until the call returns, the elements of `mine` are readable and nobody changes them.
    /// - Until the call returns, the elements of `parts` at the root are writable and nobody else accesses
    ///   them.
    /// - The parts overlap neither each other nor `mine`.
    ///
    /// # Errors
    /// - [`ErrorKind::Root`] if `root` is not a rank of the communicator.
    /// - [`ErrorKind::Argument`] if the number of parts at the root is not the number of ranks.
    /// - [`ErrorKind::Buffer`] if `mine` is `None` at a rank other than the root.
    /// - [`ErrorKind::Truncated`] or [`ErrorKind::Count`] if a rank and the root pass different packed sizes
    ///   for the same part.
    /// - [`ErrorKind::ProcAborted`] if a rank has died.
    #[doc(alias = "MPI_Gather")]
    #[doc(hidden)]
    #[doc(alias = "MPI_Gatherv")]
    pub unsafe fn gather_raw(
        &self,
        mine: Option<Elements<&Plan>>,
        parts: &[Elements<&Plan>],
        root: impl Into<Root>,
    ) -> Result<()> {
        // SAFETY: the caller guarantees that, until `run_raw` returns, `mine` is readable and unchanged
        // (first condition of `# Safety`), `parts` at the root are writable and nobody else accesses them
        // (second condition), and none of these overlap (third condition). `Collective::Gather` names no
        // other memory and no operation.
        unsafe { self.run_raw(&Collective::Gather { mine, parts, root: root.into() }) }
    }

    /// Copies `parts[i]` of `root` into `mine` of rank `i`. The root may pass `None` as `mine` if its own
    /// elements may stay in its entry of `parts`. Only the root uses `parts`. Collective.
    ///
    /// # Safety
    ///
    /// - Until the call returns, the elements of `parts` at the root are readable and nobody changes them.
    /// - Until the call returns, the elements of `mine` are writable and nobody else accesses them.
    /// - `mine` overlaps no part.
    ///
    /// # Errors
    /// Returns the errors of [`gather_raw`](Self::gather_raw).
    #[doc(alias = "MPI_Scatter")]
    #[doc(hidden)]
    #[doc(alias = "MPI_Scatterv")]
    pub unsafe fn scatter_raw(
        &self,
        parts: &[Elements<&Plan>],
        mine: Option<Elements<&Plan>>,
        root: impl Into<Root>,
    ) -> Result<()> {
        // SAFETY: the caller guarantees that, until `run_raw` returns, `parts` at the root are readable and
        // unchanged (first condition of `# Safety`), `mine` is writable and nobody else accesses it (second
        // condition), and `mine` overlaps no part (third condition). `Collective::Scatter` names no other
        // memory and no operation.
        unsafe { self.run_raw(&Collective::Scatter { parts, mine, root: root.into() }) }
    }

    /// Adds the steps of a gather to the schedule. Returns the steps that fill the parts; only the root has
    /// such steps.
    pub(in crate::coll) fn gather_steps<'a>(
        &self,
        steps: &mut Builder<'_, 'a>,
        mine: Option<&Elements<&'a Plan>>,
        parts: &[Elements<&'a Plan>],
        root: usize,
    ) -> Result<Vec<StepId>> {
        let (rank, mut brought) = (self.rank(), Vec::new());
        if rank != root {
            steps.send(mine.ok_or_else(|| missing(rank, root))?, self.peer(root)?)?;
            return Ok(brought);
        }
        check_parts(self, parts)?;
        for (from, part) in parts.iter().enumerate() {
            brought.extend(match mine {
                _ if from != rank => Some(steps.receive(part, self.peer(from)?)?),
                Some(mine) => Some(steps.copy(mine, part, rank)?),
                None => None,
            });
        }
        Ok(brought)
    }

    pub(in crate::coll) fn scatter_steps<'a>(
        &self,
        steps: &mut Builder<'_, 'a>,
        parts: &[Elements<&'a Plan>],
        mine: Option<&Elements<&'a Plan>>,
        root: usize,
    ) -> Result<()> {
        let rank = self.rank();
        if rank != root {
            steps.receive(mine.ok_or_else(|| missing(rank, root))?, self.peer(root)?)?;
            return Ok(());
        }
        check_parts(self, parts)?;
        for (to, part) in parts.iter().enumerate().filter(|&(to, _)| to != rank) {
            steps.send(part, self.peer(to)?)?;
        }
        if let Some(mine) = mine {
            steps.copy(&parts[rank], mine, rank)?;
        }
        Ok(())
    }
}

#[cold]
pub(in crate::coll) fn missing(rank: usize, root: usize) -> Error {
    let detail =
        format!("rank {rank} passed None (in place); only the root, rank {root}, may pass None");
    Error::new(ErrorKind::Buffer, "mine", detail)
}
