//! Gather and scatter, straight between the root and each of the others.
//!
//! With a part per rank both are the calls with and without `v` of the standard.

use super::raw::{Batch, Part, check_parts};
use super::{GATHER, SCATTER};
use crate::comm::Communicator;
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
        self.check_rank(root, "root", ErrorKind::Root)?;
        let rank = self.rank();
        let mut batch = Batch::new(self, GATHER);
        if rank != root {
            let mine = mine.ok_or_else(missing)?;
            // SAFETY: passed on.
            unsafe { batch.send(&mine, root)? };
            return batch.finish();
        }
        check_parts(self, parts)?;
        for (from, part) in parts.iter().enumerate().filter(|&(from, _)| from != rank) {
            // SAFETY: passed on.
            unsafe { batch.receive(part, from)? };
        }
        // SAFETY: passed on.
        let own = mine.map_or(Ok(()), |mine| unsafe { mine.copy_to(&parts[rank], rank) });
        batch.finish().and(own)
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
        self.check_rank(root, "root", ErrorKind::Root)?;
        let rank = self.rank();
        let mut batch = Batch::new(self, SCATTER);
        if rank != root {
            let mine = mine.ok_or_else(missing)?;
            // SAFETY: passed on.
            unsafe { batch.receive(&mine, root)? };
            return batch.finish();
        }
        check_parts(self, parts)?;
        for (to, part) in parts.iter().enumerate().filter(|&(to, _)| to != rank) {
            // SAFETY: passed on.
            unsafe { batch.send(part, to)? };
        }
        // SAFETY: passed on.
        let own = mine.map_or(Ok(()), |mine| unsafe { parts[rank].copy_to(&mine, rank) });
        batch.finish().and(own)
    }
}

#[cold]
fn missing() -> Error {
    Error::new(ErrorKind::Buffer, "mine", "only the root's own part can be in place")
}
