//! Private copy: the data is one run of the sender's private memory, and goes in one copy to one run
//! of the receiver's, by system calls of both ranks (CMA).
//!
//! The RTS says at which address the data lies. The receiver reads pieces from the start
//! (`process_vm_readv`), and tells the sender where they go, who writes pieces from the end
//! (`process_vm_writev`), until they meet (`single_copy.rs`): two cores copy, once, and whoever comes
//! late leaves the work to the other. `choice.rs` says for which messages this pays.
//!
//! Whether the system lets one rank access the memory of another is found out once per pair by doing
//! it: every rank that allows it shows in its slot a number and where in its memory that stands
//! ([`Access`]). If it does not work, the sender packs as usual and nobody notices.
//!
//! Invariants: an address that another rank has sent is used for nothing but a call in which the
//! kernel checks it against that rank's memory; lengths come from the message alone.

use super::area::Area;
use super::choice::{Terms, tells_address};
use super::fabric::Fabric;
use super::link::{HelpWanted, Outgoing, Tx};
use super::single_copy::{Asked, Copier, Denied, Far, Said, SingleCopies, Takes};
use super::types::Located;
use crate::Result;
use crate::message::envelope::{BYTES, Envelope, Place, Space};
use crate::message::payload::{Layout, Sink};
use crate::shm::work_split::WorkSplit;
use crate::sys::cma::{self, Way};
use crate::sys::machine;
use std::num::NonZeroU32;
use std::ops::Range;
use std::sync::atomic::AtomicU64;

/// Whether this rank can access the memory of another one.
#[derive(Clone, Copy, Debug, Default)]
enum Access {
    /// Nobody has tried.
    #[default]
    Unknown,
    /// The process.
    Allowed(NonZeroU32),
    /// It cannot, or must not.
    Refused,
}

impl Access {
    /// The process of `rank`, if its memory can be accessed; tried once.
    fn process(&mut self, far: Far<'_>) -> Option<NonZeroU32> {
        if matches!(self, Self::Unknown) {
            *self = try_access(far.fabric, far.rank).map_or(Self::Refused, Self::Allowed);
        }
        match self {
            Self::Allowed(process) => Some(*process),
            Self::Unknown | Self::Refused => None,
        }
    }

    /// As [`copy`], with this process; refused for ever when that fails.
    ///
    /// # Safety
    /// As [`copy`].
    unsafe fn copy(
        &mut self,
        way: Way,
        ours: u64,
        theirs: u64,
        bytes: &Range<u64>,
    ) -> std::result::Result<(), Denied> {
        let Self::Allowed(process) = *self else { return Err(Denied) };
        // SAFETY: the caller's promise.
        let copied = unsafe { copy(process, way, ours, theirs, bytes) };
        if copied.is_none() {
            *self = Self::Refused;
        }
        copied.ok_or(Denied)
    }
}

/// Reads the number that `rank` shows, and compares: the same process id may be another process in
/// another namespace.
#[cold]
fn try_access(fabric: &Fabric, rank: usize) -> Option<NonZeroU32> {
    let (process, at, number) = fabric.probe_of(rank)?;
    // What a slot says, any rank may have written: ours would have us write to our own memory. Tests
    // have two ranks in one process.
    if !cfg!(test) && process.get() == std::process::id() {
        return None;
    }
    let mut seen = [0u8; 8];
    // SAFETY: the array is ours alone, and as long as the range; a read may be from anywhere.
    unsafe { copy(process, Way::Read, seen.as_mut_ptr() as u64, at, &(0..8)) }?;
    (u64::from_ne_bytes(seen) == number).then_some(process)
}

/// Copies a piece between the start of our run of memory and that of `process`; `None` when the system
/// refuses.
///
/// # Safety
///
/// - The bytes of the range from `ours` are valid for what `way` does with them.
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
    // SAFETY: our side is the caller's promise; the kernel checks the other one.
    unsafe { cma::copy(process, way, &range(ours)?, &range(theirs)?) }.ok()
}

/// Where the `bytes` bytes of one run of memory are.
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
    /// A call costs 0.5 to 1 us, which is what 16 KiB take.
    const PIECE_MIN: u64 = 32 << 10;
    /// So that a turn ends within some 100 us.
    const PIECE_MAX: u64 = 1 << 20;
    /// One piece.
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

    fn help(wanted: HelpWanted, to: &Layout) -> Outgoing {
        let HelpWanted { offer: id, number, bytes, .. } = wanted;
        Outgoing::Say(Envelope::Help { id, number, bytes, place: whole(to, bytes) })
    }

    unsafe fn read(
        &mut self,
        _far: Far<'_>,
        from: &Located,
        to: &Layout,
        range: Range<u64>,
    ) -> std::result::Result<(), Denied> {
        // SAFETY: the receive is one run of memory (only such ones are started here), of which the
        // range is this rank's to write (caller's promise).
        unsafe { self.reads.copy(Way::Read, to.first(), from.origin, &range) }
    }

    unsafe fn write(
        &mut self,
        _far: Far<'_>,
        from: &Layout,
        to: &Located,
        range: Range<u64>,
    ) -> std::result::Result<(), Denied> {
        // SAFETY: the send is one run of memory (only such ones are offered with an address), which
        // is valid (caller's promise).
        unsafe { self.writes.copy(Way::Write, from.first(), to.origin, &range) }
    }
}
