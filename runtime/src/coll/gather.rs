//! Gather and scatter, straight between the root and each of the others.
//!
//! With a part per rank both are the calls with and without `v` of the standard.

use super::Collective;
use super::collective::check_parts;
use crate::comm::Communicator;
use crate::schedule::Part;
use crate::schedule::program::{Builder, StepId};
use crate::{Error, ErrorKind, Result};

impl Communicator {
    /// Brings every rank's elements to `root`: `mine` of rank `i` into `parts[i]` there. At the
    /// root `None` says that its own are in place. `parts` is looked at by the root only.
    /// Collective.
    ///
    /// # Safety
    ///
    /// - The elements of `mine` are readable, those of `parts` at the root writable, and nobody
    ///   else changes, or for `parts` reads, them until the call returns.
    /// - The parts overlap neither each other nor `mine`.
    ///
    /// # Errors
    /// No such `root`; a part for every rank is wanted at the root, `mine` elsewhere; parts of
    /// different packed sizes at its two ends; [`ErrorKind::ProcAborted`] when a rank has died.
    #[doc(alias = "MPI_Gather")]
    #[doc(alias = "MPI_Gatherv")]
    pub unsafe fn gather_raw(
        &self,
        mine: Option<Part<'_>>,
        parts: &[Part<'_>],
        root: usize,
    ) -> Result<()> {
        // SAFETY: `mine` is read and `parts` are written, as the caller promises.
        unsafe { self.run_raw(&Collective::Gather { mine, parts, root }) }
    }

    /// Brings `parts[i]` of `root` into `mine` of rank `i`; see [`gather_raw`](Self::gather_raw).
    /// Collective.
    ///
    /// # Safety
    ///
    /// - The elements of `parts` at the root are readable, those of `mine` writable, and nobody
    ///   else changes, or for `mine` reads, them until the call returns.
    /// - `mine` overlaps no part.
    ///
    /// # Errors
    /// As [`gather_raw`](Self::gather_raw).
    #[doc(alias = "MPI_Scatter")]
    #[doc(alias = "MPI_Scatterv")]
    pub unsafe fn scatter_raw(
        &self,
        parts: &[Part<'_>],
        mine: Option<Part<'_>>,
        root: usize,
    ) -> Result<()> {
        // SAFETY: `parts` are read and `mine` is written, as the caller promises.
        unsafe { self.run_raw(&Collective::Scatter { parts, mine, root }) }
    }

    /// The steps of a gather: at the root those that bring the parts.
    pub(super) fn gather_steps<'a>(
        &self,
        steps: &mut Builder<'_, 'a>,
        mine: Option<&Part<'a>>,
        parts: &[Part<'a>],
        root: usize,
    ) -> Result<Vec<StepId>> {
        let (rank, mut brought) = (self.rank(), Vec::new());
        if rank != root {
            steps.send(mine.ok_or_else(missing)?, self.peer(root)?)?;
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

    pub(super) fn scatter_steps<'a>(
        &self,
        steps: &mut Builder<'_, 'a>,
        parts: &[Part<'a>],
        mine: Option<&Part<'a>>,
        root: usize,
    ) -> Result<()> {
        let rank = self.rank();
        if rank != root {
            steps.receive(mine.ok_or_else(missing)?, self.peer(root)?)?;
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
fn missing() -> Error {
    Error::new(ErrorKind::Buffer, "mine", "only the root's own part can be in place")
}
