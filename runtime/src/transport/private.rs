//! Private copies: both ranks copy a message by system calls (CMA), from one run of the sender's private
//! memory directly into one run of the receiver's private memory.
//!
//! The RTS contains the address of the data. The receiver reads pieces from the start (`process_vm_readv`),
//! and sends the address of its own run to the sender. The sender writes pieces from the end
//! (`process_vm_writev`), until the two meet (`single_copy.rs`). So two cores share the work, and each byte
//! is copied only once. A rank that comes late leaves its share to the other rank. `choice.rs` decides for
//! which messages a private copy is worth its cost.
//!
//! For each other rank, a rank makes one attempt to find out whether the system lets it access that rank's
//! memory. Every rank that permits the access shows a number in its slot, and the address at which its
//! memory holds the same number ([`Access`]). If the attempt fails, the sender packs as usual, and no call
//! returns an error.
//!
//! Invariants: this rank uses an address from another rank only in system calls, in which the kernel checks
//! the address against that rank's memory. Lengths come only from the message, never from an address.

use super::area::Area;
use super::choice::{Terms, tells_address};
use super::fabric::Fabric;
use super::link::Tx;
use super::protocol::CopyPlan;
use super::single_copy::{Copier, Denied, Far, Said, SingleCopies, Takes};
use super::types::Located;
use crate::Result;
use crate::message::envelope::{BYTES, Place, Space};
use crate::message::payload::{Layout, Sink};
use crate::shm::work_split::WorkSplit;
use crate::sys::cma::{self, Way};
use std::num::NonZeroU32;
use std::ops::Range;
use std::sync::atomic::AtomicU64;

/// The answer to the question whether this rank can access the memory of another rank.
#[derive(Clone, Copy, Debug, Default)]
enum Access {
    /// This rank has not tried yet.
    #[default]
    Unknown,
    /// This rank can access the memory of this process.
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
    /// - The bytes at `ours`, at the offsets in `bytes`, are writable for [`Way::Read`], and readable for
    ///   [`Way::Write`].
    unsafe fn copy(
        &mut self,
        way: Way,
        ours: u64,
        theirs: u64,
        bytes: &Range<u64>,
    ) -> std::result::Result<(), Denied> {
        let Self::Allowed(process) = *self else { return Err(Denied) };
        // SAFETY: the caller guarantees that the memory at `ours` is valid for `way` (the only condition of
        // `# Safety`). The function `copy` has no other condition.
        let copied = unsafe { copy(process, way, ours, theirs, bytes) };
        if copied.is_none() {
            *self = Self::Refused;
        }
        copied.ok_or(Denied)
    }
}

/// Attempts to access the memory of `rank`: reads the number at the address that `rank` has announced in its
/// slot, and compares it with the number in the slot. The comparison is necessary because in another
/// namespace the same process id may belong to another process. Returns the process id if the numbers are
/// equal.
#[cold]
fn try_access(fabric: &Fabric, rank: usize) -> Option<NonZeroU32> {
    let (process, at, number) = fabric.probe_of(rank)?;
    // Any rank may have overwritten the slot. If the slot contained this process's own id, this rank would
    // write to its own memory, so refuse that id. Only tests accept it, because they run two ranks in one
    // process.
    if !cfg!(test) && process.get() == std::process::id() {
        return None;
    }
    let mut seen = [0u8; 8];
    // SAFETY: `seen` is a local array of 8 bytes, and the range `0..8` covers exactly these bytes. The
    // address `at` needs no condition, because the kernel checks it.
    unsafe { copy(process, Way::Read, seen.as_mut_ptr() as u64, at, &(0..8)) }?;
    (u64::from_ne_bytes(seen) == number).then_some(process)
}

/// Copies between this rank's memory at `ours` and the memory of `process` at `theirs`. `bytes` is the range
/// of offsets from both addresses. Returns `None` if the system refuses the copy.
///
/// # Safety
///
/// - The bytes at `ours`, at the offsets in `bytes`, are writable for [`Way::Read`], and readable for
///   [`Way::Write`].
unsafe fn copy(
    process: NonZeroU32,
    way: Way,
    ours: u64,
    theirs: u64,
    bytes: &Range<u64>,
) -> Option<()> {
    let range = |start: u64| {
        let at = usize::try_from(start.wrapping_add(bytes.start)).ok()?;
        Some([cma::Range { at, len: usize::try_from(bytes.end - bytes.start).ok()? }])
    };
    // SAFETY: the caller guarantees that this rank's bytes are valid for `way` (the only condition of `#
    // Safety`). The kernel checks the addresses of the other process.
    unsafe { cma::copy(process, way, &range(ours)?, &range(theirs)?) }.ok()
}

/// Returns the place of a layout that is one run of `bytes` bytes.
fn whole(layout: &Layout, bytes: u64) -> Place {
    Place { space: Space::Private, number: BYTES, origin: layout.first(), count: bytes }
}

/// The copier for messages between private memories. It uses system calls.
#[derive(Debug, Default)]
pub struct PrivateCopier {
    reads: Access,
    writes: Access,
}

/// The protocol.
pub type PrivateCopy = SingleCopies<PrivateCopier>;

impl Copier for PrivateCopier {
    const SPACE: Space = Space::Private;
    /// A system call costs 0.5 to 1 us, which is also the time of a copy of 16 KiB. So smaller pieces would
    /// not pay.
    const PIECE_MIN: u64 = 32 << 10;
    /// With pieces of this size, a turn ends within about 100 us.
    const PIECE_MAX: u64 = 1 << 20;
    /// A turn is always rounded up to a whole piece, so this value means one piece per turn.
    const TURN: u64 = 1;

    fn split(area: &Area) -> WorkSplit<'_, AtomicU64> {
        area.private_split()
    }

    fn place(
        terms: Terms,
        far: Far<'_>,
        _tx: &mut Tx,
        layout: &Layout,
        bytes: u64,
    ) -> Result<Said> {
        if !layout.plan.is_contiguous()
            || !tells_address(terms.forced, bytes)
            || !far.fabric.memory_is_open()
        {
            return Ok(Said::Nothing);
        }
        Ok(Said::Place(whole(layout, bytes)))
    }

    fn takes(_plan: CopyPlan, _next: bool, to: &Sink, _bytes: u64) -> Takes {
        match to {
            Sink::Memory(to) if to.plan.is_contiguous() => Takes::Together,
            _ => Takes::Not,
        }
    }

    fn can_read(&mut self, far: Far<'_>) -> bool {
        self.reads.process(far).is_some()
    }

    fn can_write(&mut self, far: Far<'_>) -> bool {
        self.writes.process(far).is_some()
    }

    fn room(_far: Far<'_>, _tx: &mut Tx, to: &Layout, bytes: u64) -> Result<Said> {
        Ok(Said::Place(whole(to, bytes)))
    }

    unsafe fn read(
        &mut self,
        _far: Far<'_>,
        from: &Located,
        to: &Layout,
        range: Range<u64>,
    ) -> std::result::Result<(), Denied> {
        // SAFETY: the receive is one run of memory, because `takes` accepts no other. The caller guarantees
        // that the bytes of `range` are valid and that no other rank writes to them (third condition of `#
        // Safety`).
        unsafe { self.reads.copy(Way::Read, to.first(), from.origin, &range) }
    }

    unsafe fn write(
        &mut self,
        _far: Far<'_>,
        from: &Layout,
        to: &Located,
        range: Range<u64>,
    ) -> std::result::Result<(), Denied> {
        // SAFETY: the send is one run of memory, because `place` names no other. The caller guarantees that
        // this run is valid (third condition of `# Safety`).
        unsafe { self.writes.copy(Way::Write, from.first(), to.origin, &range) }
    }
}
