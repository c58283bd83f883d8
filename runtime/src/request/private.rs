//! Reads the private memory of other processes by system calls (CMA): for messages (`transport/protocol/private.rs`)
//! and for gets (`rma/request/reads.rs`).
//!
//! For each other rank, a rank makes one attempt to find out whether the system lets it read that rank's memory. Every
//! rank that permits the access shows a number in its slot, and the address at which its memory holds the same number
//! ([`Probe`]). If the attempt or a later read fails, this rank reads the memory no more: the other rank then sends the
//! data, and no call returns an error.
//!
//! No rank writes to the memory of another one: it would learn the process id and the address through shared memory, to
//! which every rank of the job can write, so a third rank could direct such a write to any process of the user
//! (`sys/cma.rs`). An address from another rank is used only in system calls, in which the kernel checks it.

use crate::sys::cma::{self, Range};
use std::num::NonZeroU32;
use std::sync::{PoisonError, RwLock};

/// The error of a copy: this rank cannot access the other rank's memory.
#[derive(Clone, Copy, Debug)]
pub struct Denied;

/// What a rank has published for a test access to its memory: its process id, the address of its probe number, and the
/// number.
pub type Probe = (NonZeroU32, u64, u64);

/// The answer to the question whether this rank can read the memory of another rank.
#[derive(Clone, Copy, Debug, Default)]
enum Access {
    /// This rank has not tried yet.
    #[default]
    Unknown,
    Allowed(Reader),
    /// This rank cannot access the memory, or must not do so.
    Refused,
}

/// How this rank reads the memory of the other ranks. No thread holds the lock while it attempts an access.
#[derive(Debug, Default)]
pub struct Readers(RwLock<Vec<Access>>);

impl Readers {
    /// Returns the entry of `rank`.
    fn get(&self, rank: usize) -> Access {
        let ranks = self.0.read().unwrap_or_else(PoisonError::into_inner);
        ranks.get(rank).copied().unwrap_or_default()
    }

    /// Replaces the entry of `rank`, if `may` permits this. Returns the entry.
    #[cold]
    fn set(&self, rank: usize, access: Access, may: impl FnOnce(&Access) -> bool) -> Access {
        let mut ranks = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if ranks.len() <= rank {
            ranks.resize(rank + 1, Access::Unknown);
        }
        if may(&ranks[rank]) {
            ranks[rank] = access;
        }
        ranks[rank]
    }

    /// Returns the reader of the memory of `rank`; `None` if this rank must not read that memory. Only the first call
    /// for which `probe` returns a probe attempts an access, and calls of other threads that begin meanwhile. (A rank
    /// that is still joining the job has no probe.)
    pub fn of(&self, rank: usize, probe: impl FnOnce() -> Option<Probe>) -> Option<Reader> {
        let mut access = self.get(rank);
        if matches!(access, Access::Unknown)
            && let Some(probe) = probe()
        {
            let found = attempt(probe).map_or(Access::Refused, Access::Allowed);
            access = self.set(rank, found, |access| matches!(access, Access::Unknown));
        }
        match access {
            Access::Allowed(reader) => Some(reader),
            Access::Unknown | Access::Refused => None,
        }
    }

    /// Attempts the access to the memory of `rank` again, after the system has refused a read that the program has
    /// asked for: the memory may not exist there any more. If the attempt fails, too, this rank reads nothing of `rank`
    /// from now on.
    #[cold]
    pub fn doubt(&self, rank: usize, probe: impl FnOnce() -> Option<Probe>) {
        let reader = probe().and_then(attempt);
        self.set(rank, reader.map_or(Access::Refused, Access::Allowed), |_| true);
    }

    /// From now on, this rank does not read the memory of `rank`.
    #[cold]
    pub fn refuse(&self, rank: usize) {
        self.set(rank, Access::Refused, |_| true);
    }
}

/// Reads ranges of another rank's memory.
#[derive(Clone, Copy, Debug)]
pub struct Reader(NonZeroU32);

impl Reader {
    /// Copies all bytes of the ranges `theirs` of the other rank's memory to the ranges `ours`.
    ///
    /// # Safety
    ///
    /// - The ranges `ours` are valid for writes, and nothing else in this process uses them during the call.
    ///
    /// # Errors
    /// Returns [`Denied`] if the system refuses a copy; any part of the bytes may have been copied then.
    pub unsafe fn read(self, ours: &[Range], theirs: &[Range]) -> Result<(), Denied> {
        // SAFETY: the caller guarantees the ranges `ours` (the only condition of `# Safety`). The kernel checks the
        // ranges of the other process.
        unsafe { cma::read(self.0, ours, theirs) }.map_err(|_| Denied)
    }
}

/// Attempts to access the memory of another rank: reads the number at the address that the rank has announced, and
/// compares it with the number in the rank's slot. The comparison is necessary because another process may have the
/// same process id in this rank's namespace.
#[cold]
fn attempt((process, at, number): Probe) -> Option<Reader> {
    // Any rank may have overwritten the slot. If the slot contained this process's own id, this rank would
    // read its own memory, and the source of a copy might overlap its target, so refuse that id. Only tests
    // accept it, because they run two ranks in one process.
    if !cfg!(test) && process.get() == std::process::id() {
        return None;
    }
    let mut seen = [0u8; 8];
    let ours = [Range { at: seen.as_mut_ptr() as usize, len: seen.len() }];
    let theirs = [Range { at: usize::try_from(at).ok()?, len: seen.len() }];
    // SAFETY: `ours` is a local array of 8 bytes.
    unsafe { Reader(process).read(&ours, &theirs) }.ok()?;
    (u64::from_ne_bytes(seen) == number).then_some(Reader(process))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// Checks that this process asks for access once, and not again after a refusal.
    #[test]
    fn access_is_tried_once() {
        let number = 7u64;
        let process = NonZeroU32::new(std::process::id()).expect("a process id");
        let probes = Cell::new(0);
        let (readers, at) = (Readers::default(), &raw const number as u64);
        let reader = |rank, number| {
            readers.of(rank, || {
                probes.set(probes.get() + 1);
                Some((process, at, number))
            })
        };
        // The system may forbid the access.
        let first = reader(3, number).is_some();
        assert_eq!(reader(3, number).is_some(), first);
        assert!(reader(2, number + 1).is_none() && reader(2, number).is_none());
        assert_eq!(probes.get(), 2);
        // A rank that is still joining may be asked again later.
        assert!(readers.of(4, || None).is_none());
        assert_eq!(reader(4, number).is_some(), first);
        // One address that cannot be read says nothing about the others.
        readers.doubt(4, || Some((process, at, number)));
        assert_eq!(reader(4, number).is_some(), first);
        readers.doubt(4, || Some((process, 0, number)));
        assert!(reader(4, number).is_none());
        readers.refuse(3);
        readers.refuse(5);
        assert!(reader(3, number).is_none() && reader(5, number).is_none());
        assert_eq!(probes.get(), 3);
    }
}
