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
use super::choice::tells_address;
use super::fabric::Fabric;
use super::failure::lost;
use super::in_flight::{RequestTable, SendStage, Told};
use super::link::{HelpWanted, Link, Outgoing};
use super::protocol::{Advance, Arrival, Matched, Offered, Protocol, Work};
use super::single_copy::{Copier, Denied, Far, SingleCopies};
use super::types::Located;
use crate::Result;
use crate::message::envelope::{BYTES, Envelope, Place, Space};
use crate::message::payload::{Layout, Sink, Supply};
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

    fn can_read(&mut self, far: Far<'_>) -> bool {
        self.reads.process(far).is_some()
    }

    fn can_write(&mut self, far: Far<'_>) -> bool {
        self.writes.process(far).is_some()
    }

    fn help(wanted: HelpWanted, to: &Layout) -> Outgoing {
        let HelpWanted { offer: id, number, bytes, .. } = wanted;
        let place =
            Place { space: Space::Private, number: BYTES, origin: to.first(), count: bytes };
        Outgoing::Say(Envelope::Help { id, number, bytes, place })
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

impl Protocol for PrivateCopy {
    /// An RTS that says at which address the data lies.
    fn offer<R: RequestTable>(
        &mut self,
        work: &mut Work<'_, R>,
        link: &mut Link,
        id: u64,
    ) -> Result<Offered> {
        let Some(send) = work.requests.send(id) else { return Err(lost("a send")) };
        let Supply::Memory(layout) = &send.supply else { return Ok(Offered::Declined) };
        let (label, distance) = (send.label, work.fabric.distance(link.rank));
        if !layout.plan.is_contiguous()
            || !tells_address(work.terms.forced, distance, label.bytes, machine::is_amd())
            || !work.fabric.memory_is_open()
        {
            return Ok(Offered::Declined);
        }
        let (space, origin) = (Space::Private, layout.first());
        let place = Place { space, number: BYTES, origin, count: label.bytes };
        if !link.tx()?.say(work.fabric, &Envelope::Rts(label, id, Some(place)))? {
            return Ok(Offered::NoRoom);
        }
        send.stage = SendStage::Offered(Told::In(Space::Private));
        Ok(Offered::Written)
    }

    fn matched<R: RequestTable>(
        &mut self,
        work: &mut Work<'_, R>,
        link: &mut Link,
        matched: &mut Matched,
    ) -> Result<bool> {
        let far = Far { fabric: work.fabric, rank: link.rank };
        let (_, rx) = link.both()?;
        let Arrival::Rts(offer, Some(from)) = &matched.arrival else { return Ok(false) };
        let offer = *offer;
        let Some(receive) = work.requests.receive(matched.receive) else {
            return Err(lost("a receive"));
        };
        let one_run = matches!(&receive.sink, Sink::Memory(layout) if layout.plan.is_contiguous());
        if from.space != Space::Private
            || !one_run
            || !rx.offers.is_open(offer)
            || !self.copier.can_read(far)
        {
            return Ok(false);
        }
        let from = Located::clone(from);
        self.start(work, link, (matched.receive, offer), from, true)?;
        Ok(true)
    }

    fn advance<R: RequestTable>(
        &mut self,
        work: &mut Work<'_, R>,
        link: &mut Link,
    ) -> Result<Advance> {
        SingleCopies::advance(self, work, link)
    }

    fn withdraw<R: RequestTable>(&mut self, work: &mut Work<'_, R>, link: &mut Link, id: u64) {
        SingleCopies::withdraw(self, work, link, id);
    }

    #[inline]
    fn has_work(&self) -> bool {
        SingleCopies::has_work(self)
    }
}
