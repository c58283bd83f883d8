//! Private copies: the receiver copies a message by system calls (CMA), from one run of the sender's private
//! memory directly into one run of its own private memory.
//!
//! The RTS contains the address of the data, and the receiver reads the data (`process_vm_readv`). Each byte
//! is copied only once, and the sender does other work meanwhile. `tuning.rs` finds out for which messages a
//! private copy is faster than chunks, for which both ranks work.
//!
//! The sender does not help: it never writes to the memory of the receiver. It would learn the process id and
//! the address of the receiver through shared memory, to which every rank of the job can write, so a third
//! rank could direct such a write to any process of the user (`sys/cma.rs`).
//!
//! For each other rank, a rank makes one attempt to find out whether the system lets it read that rank's
//! memory. Every rank that permits the access shows a number in its slot, and the address at which its
//! memory holds the same number ([`Access`]). If the attempt fails, the sender packs as usual, and no call
//! returns an error.
//!
//! Invariants: this rank uses an address from another rank only in system calls, in which the kernel checks
//! the address against that rank's memory. Lengths come only from the message, never from an address.

use super::choice::{Terms, tells_address};
use super::fabric::Fabric;
use super::link::Tx;
use super::protocol::CopyPlan;
use super::single_copy::{Copier, Denied, Far, Said, SingleCopies, Takes};
use super::types::Located;
use crate::message::envelope::{BYTES, Place, Space};
use crate::message::payload::Sink;
use crate::sys::cma;
use crate::{Plan, Result};
use std::num::NonZeroU32;
use std::ops::Range;
use typepack_engine::Elements;

/// The answer to the question whether this rank can read the memory of another rank.
#[derive(Clone, Copy, Debug, Default)]
enum Access {
    /// This rank has not tried yet.
    #[default]
    Unknown,
    /// This rank can read the memory of the process with this id.
    Allowed(NonZeroU32),
    /// This rank cannot access the memory, or must not do so.
    Refused,
}

impl Access {
    /// Returns the process of the rank `far.rank` if this rank can access the memory of that process. Only
    /// the first call attempts an access; later calls reuse its result.
    fn process(&mut self, far: Far<'_>) -> Option<NonZeroU32> {
        if matches!(self, Self::Unknown) {
            *self = try_access(far.fabric, far.rank).map_or(Self::Refused, Self::Allowed);
        }
        match self {
            Self::Allowed(process) => Some(*process),
            Self::Unknown | Self::Refused => None,
        }
    }

    /// Calls the function [`copy`] for the process that this value allows. After a failed copy, all later
    /// copies fail too.
    ///
    /// # Safety
    ///
    /// - The bytes at `ours`, at the offsets in `bytes`, are writable.
    unsafe fn copy(
        &mut self,
        ours: u64,
        theirs: u64,
        bytes: &Range<u64>,
    ) -> std::result::Result<(), Denied> {
        let Self::Allowed(process) = *self else { return Err(Denied) };
        // SAFETY: the caller guarantees that the memory at `ours` is writable (the only condition of
        // `# Safety`). The function `copy` has no other condition.
        let copied = unsafe { copy(process, ours, theirs, bytes) };
        if copied.is_none() {
            *self = Self::Refused;
        }
        copied.ok_or(Denied)
    }
}

/// Attempts to access the memory of `rank`: reads the number at the address that `rank` has announced in
/// its slot, and compares it with the number in the slot. The comparison is necessary because another
/// process may have the same process id in this rank's namespace. Returns the process id if the numbers
/// are equal.
#[cold]
fn try_access(fabric: &Fabric, rank: usize) -> Option<NonZeroU32> {
    let (process, at, number) = fabric.probe_of(rank)?;
    // Any rank may have overwritten the slot. If the slot contained this process's own id, this rank would
    // read its own memory, and the source of a copy might overlap its target, so refuse that id. Only tests
    // accept it, because they run two ranks in one process.
    if !cfg!(test) && process.get() == std::process::id() {
        return None;
    }
    let mut seen = [0u8; 8];
    // SAFETY: `seen` is a local array of 8 bytes, and the range `0..8` covers exactly these bytes. The
    // address `at` needs no condition, because the kernel checks it.
    unsafe { copy(process, seen.as_mut_ptr() as u64, at, &(0..8)) }?;
    (u64::from_ne_bytes(seen) == number).then_some(process)
}

/// Reads ranges of another rank's memory by system calls. One-sided communication uses this value (`rma/reads.rs`).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader(NonZeroU32);

impl Reader {
    /// Attempts to access the memory of `rank` ([`try_access`]). Returns `None` if the system or `TYPEPACK_CMA` does
    /// not permit it.
    pub(crate) fn of(fabric: &Fabric, rank: usize) -> Option<Self> {
        try_access(fabric, rank).map(Self)
    }

    /// Copies all bytes of the ranges `theirs` of the other rank's memory to the ranges `ours`.
    ///
    /// # Safety
    ///
    /// - The ranges `ours` are valid for writes, and nothing else in this process uses them during the call.
    ///
    /// # Errors
    /// Returns [`Denied`] if the system refuses a copy; any part of the bytes may have been copied then.
    pub(crate) unsafe fn read(
        self,
        ours: &[cma::Range],
        theirs: &[cma::Range],
    ) -> std::result::Result<(), Denied> {
        // SAFETY: the caller guarantees the ranges `ours` (the only condition of `# Safety`). The kernel checks the
        // ranges of the other process.
        unsafe { cma::read(self.0, ours, theirs) }.map_err(|_| Denied)
    }
}

/// Copies to this rank's memory at `ours` from the memory of `process` at `theirs`. `bytes` is the range of
/// offsets from both addresses. Returns `None` if the system refuses the copy.
///
/// # Safety
///
/// - The bytes at `ours`, at the offsets in `bytes`, are writable.
unsafe fn copy(process: NonZeroU32, ours: u64, theirs: u64, bytes: &Range<u64>) -> Option<()> {
    let range = |start: u64| {
        let at = usize::try_from(start.wrapping_add(bytes.start)).ok()?;
        Some([cma::Range { at, len: usize::try_from(bytes.end - bytes.start).ok()? }])
    };
    // SAFETY: the caller guarantees that this rank's bytes are writable (the only condition of `# Safety`).
    // The kernel checks the addresses of the other process.
    unsafe { cma::read(process, &range(ours)?, &range(theirs)?) }.ok()
}

/// The copier for messages between private memories. It uses system calls.
#[derive(Debug, Default)]
pub struct PrivateCopier {
    reads: Access,
}

/// The protocol of private copies.
pub type PrivateCopy = SingleCopies<PrivateCopier>;

impl Copier for PrivateCopier {
    const SPACE: Space = Space::Private;
    /// Number of bytes that a turn copies. With this value, a turn ends within about 100 us, and the cost
    /// of a system call (0.5 to 1 us) is small beside the time of the copy.
    const TURN: u64 = 1 << 20;

    fn place(
        terms: Terms,
        far: Far<'_>,
        _tx: &mut Tx,
        layout: &Elements<Plan>,
        bytes: u64,
    ) -> Result<Said> {
        if !layout.plan.is_contiguous()
            || !tells_address(terms.forced, bytes)
            || !far.fabric.memory_is_open()
        {
            return Ok(Said::Nothing);
        }
        let origin = layout.first() as u64;
        Ok(Said::Place(Place { space: Space::Private, number: BYTES, origin, count: bytes }))
    }

    fn takes(_plan: CopyPlan, _next: bool, to: &Sink, _bytes: u64) -> Takes {
        match to {
            Sink::Memory(to) if to.plan.is_contiguous() => Takes::Alone,
            _ => Takes::Not,
        }
    }

    fn can_read(&mut self, far: Far<'_>, _from: &Located) -> bool {
        self.reads.process(far).is_some()
    }

    unsafe fn read(
        &mut self,
        _far: Far<'_>,
        from: &Located,
        to: &Elements<Plan>,
        range: Range<u64>,
    ) -> std::result::Result<(), Denied> {
        // SAFETY: the receive is one run of memory, because `takes` accepts no other. The caller
        // guarantees that the bytes of `range` are valid and that no other rank writes to them (third
        // condition of the trait).
        unsafe { self.reads.copy(to.first() as u64, from.origin, &range) }
    }
}
