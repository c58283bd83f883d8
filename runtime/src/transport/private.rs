//! Private copies: both ranks copy a message by system calls (CMA), from one run of the sender's private
//! memory directly into one run of the receiver's private memory.
//!
//! The RTS has the address of the data. The receiver reads pieces from the start (`process_vm_readv`) and
//! sends the address of its own run to the sender. The sender writes pieces from the end
//! (`process_vm_writev`), until the two meet (`single_copy.rs`). So two cores copy, and each byte is copied
//! only once. A rank that comes late leaves its share to the other rank. `choice.rs` decides for which
//! messages a private copy pays.
//!
//! A rank makes one attempt per pair to find out whether the system lets it access the other rank's memory.
//! Every rank that permits the access shows a number in its slot, and the address of this number in its
//! memory ([`Access`]). If the attempt fails, the sender packs as usual, and no call returns an error.
//!
//! Invariants: an address from another rank is used only in calls in which the kernel checks it against
//! that rank's memory. Lengths come from the message alone.

use super::area::Area;
use super::choice::{Terms, tells_address};
use super::fabric::Fabric;
use super::link::Tx;
use super::single_copy::{Asked, Copier, Denied, Far, Said, SingleCopies, Takes};
use super::types::Located;
use crate::Result;
use crate::message::envelope::{BYTES, Place, Space};
use crate::message::payload::{Layout, Sink};
use crate::shm::work_split::WorkSplit;
use crate::sys::cma::{self, Way};
use crate::sys::machine;
use std::num::NonZeroU32;
use std::ops::Range;
use std::sync::atomic::AtomicU64;

/// Whether this rank can access the memory of another rank.
#[derive(Clone, Copy, Debug, Default)]
enum Access {
    /// This rank has not tried yet.
    #[default]
    Unknown,
    /// This rank can access the memory of this process.
    Allowed(NonZeroU32),
    /// This rank cannot access the memory, or is not permitted to.
    Refused,
}

impl Access {
    /// Returns the process of `far.rank` if the calling rank can access that process's memory. Only the
    /// first call attempts an access; later calls reuse the result.
    fn process(&mut self, far: Far<'_>) -> Option<NonZeroU32> {
        if matches!(self, Self::Unknown) {
            *self = try_access(far.fabric, far.rank).map_or(Self::Refused, Self::Allowed);
        }
        match self {
            Self::Allowed(process) => Some(*process),
            Self::Unknown | Self::Refused => None,
        }
    }

    /// Calls the function [`copy`] for this process. After a failed copy, all later copies fail too.
    ///
    /// # Safety
    ///
    /// - The memory at `ours`, at the offsets in `bytes`, is writable for [`Way::Read`] and readable for
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
        // `# Safety`, which is also the only condition of `copy`).
        let copied = unsafe { copy(process, way, ours, theirs, bytes) };
        if copied.is_none() {
            *self = Self::Refused;
        }
        copied.ok_or(Denied)
    }
}

/// Attempts to read the number that `rank` shows in its memory, and compares it with the number in the slot.
/// The comparison is necessary because in another namespace the same process id may name another process.
#[cold]
fn try_access(fabric: &Fabric, rank: usize) -> Option<NonZeroU32> {
    let (process, at, number) = fabric.probe_of(rank)?;
    // Any rank may have written the slot. With this process's own id, this rank would write to its own
    // memory. Tests have two ranks in one process.
    if !cfg!(test) && process.get() == std::process::id() {
        return None;
    }
    let mut seen = [0u8; 8];
    // SAFETY: `seen` is a local array of 8 bytes, which the range `0..8` covers exactly. The address `at`
    // needs no condition: the kernel checks it.
    unsafe { copy(process, Way::Read, seen.as_mut_ptr() as u64, at, &(0..8)) }?;
    (u64::from_ne_bytes(seen) == number).then_some(process)
}

/// Copies `bytes`, a range of offsets, between this rank's memory at `ours` and the memory of `process` at
/// `theirs`. Returns `None` if the system refuses.
///
/// # Safety
///
/// - The memory at `ours`, at the offsets in `bytes`, is writable for [`Way::Read`] and readable for
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
    // SAFETY: the caller guarantees that this rank's bytes are valid for `way` (the only condition of
    // `# Safety`). The kernel checks the other side.
    unsafe { cma::copy(process, way, &range(ours)?, &range(theirs)?) }.ok()
}

/// Returns the place of one run of `bytes` bytes.
fn whole(layout: &Layout, bytes: u64) -> Place {
    Place { space: Space::Private, number: BYTES, origin: layout.first(), count: bytes }
}

/// Copies between private memories, by system calls.
#[derive(Debug, Default)]
pub struct PrivateCopier {
    reads: Access,
    writes: Access,
}

/// The protocol.
pub type PrivateCopy = SingleCopies<PrivateCopier>;

impl Copier for PrivateCopier {
    const SPACE: Space = Space::Private;
    /// A call costs 0.5 to 1 us; a copy of 16 KiB takes the same time.
    const PIECE_MIN: u64 = 32 << 10;
    /// A turn ends within about 100 us with pieces of this size.
    const PIECE_MAX: u64 = 1 << 20;
    /// One piece per turn.
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
        let distance = far.fabric.distance(far.rank);
        if !layout.plan.is_contiguous()
            || !tells_address(terms.forced, distance, bytes, machine::is_amd())
            || !far.fabric.memory_is_open()
        {
            return Ok(Said::Nothing);
        }
        Ok(Said::Place(whole(layout, bytes)))
    }

    fn takes(_asked: Asked<'_>, _from: &Located, to: &Sink, _bytes: u64) -> Takes {
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
        // SAFETY: the receive is one run of memory (`takes` accepts no other), and the caller guarantees
        // that the bytes of `range` are valid and this rank's to write (third condition of `# Safety`).
        unsafe { self.reads.copy(Way::Read, to.first(), from.origin, &range) }
    }

    unsafe fn write(
        &mut self,
        _far: Far<'_>,
        from: &Layout,
        to: &Located,
        range: Range<u64>,
    ) -> std::result::Result<(), Denied> {
        // SAFETY: the send is one run of memory (`place` names no other), and the caller guarantees that
        // it is valid (third condition of `# Safety`).
        unsafe { self.writes.copy(Way::Write, from.first(), to.origin, &range) }
    }
}
