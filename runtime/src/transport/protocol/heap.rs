//! Heap copies: the data lies in the sender's part of the shared heap, and the receiver copies it directly
//! into its own layout. The engine's fused copy does the work.
//!
//! If the receive's memory also lies in a heap, both ranks copy a message of at least [`choice::HELP_MIN`] bytes
//! (`single_copy.rs`): the sender helps, because it would only wait otherwise. `tuning.rs` decides for which messages a
//! heap copy is worth its cost. `types.rs` has the types by which an RTS describes the layout of its data.

use super::CopyPlan;
use super::single_copy::{Copier, Far, Said, SingleCopies, Takes};
use super::types::{Located, place_in};
use crate::message::envelope::{Envelope, LONG_MAX, Place, Space};
use crate::message::payload::Sink;
use crate::request::private::Denied;
use crate::request::types::Number;
use crate::sys::memory::Mapping;
use crate::transport::choice::{self, Terms};
use crate::transport::link::Tx;
use crate::transport::link::fabric::Fabric;
use crate::{Plan, Result};
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;
use typepack_engine::{Elements, contiguous, copy_raw, wire};

/// The copier for messages whose data lies in a heap. It uses the engine's fused copy.
#[derive(Debug, Default)]
pub struct HeapCopier {
    /// The part of the other rank's heap that was used last: its offset in the heap, and its mapping. A lookup in the
    /// table of heaps would cost each piece of a message four atomic changes.
    recent: Option<(u64, Arc<Mapping>)>,
}

impl HeapCopier {
    /// Returns the address of a range of the other rank's heap. The range stays mapped until the next call. Returns
    /// `None` if the range cannot be mapped.
    #[inline]
    fn at(&mut self, far: Far<'_>, range: &Range<u64>) -> Option<NonNull<u8>> {
        if let Some((first, map)) = &self.recent
            && let Some(at) = range.start.checked_sub(*first)
            && range.start <= range.end
            && range.end - first <= map.len() as u64
        {
            // SAFETY: the offset is at most the length of the mapping (checked above).
            return Some(unsafe { map.base().add(at as usize) });
        }
        self.mapped(far, range)
    }

    #[cold]
    #[inline(never)]
    fn mapped(&mut self, far: Far<'_>, range: &Range<u64>) -> Option<NonNull<u8>> {
        let (start, map) = far.fabric.heap_at(far.rank, range)?;
        let at = start.as_ptr().addr() - map.base().as_ptr().addr();
        self.recent = Some((range.start - at as u64, map));
        Some(start)
    }

    /// Ends the use of an address that [`at`](Self::at) returned.
    #[inline]
    fn done(&mut self, far: Far<'_>) {
        if far.fabric.addresses_are_scarce() {
            self.recent = None;
        }
    }
}

/// The protocol of heap copies.
pub type HeapCopy = SingleCopies<HeapCopier>;

impl Copier for HeapCopier {
    const SPACE: Space = Space::Heap;
    /// Messages of up to 32 KiB are cut into pieces of this length, messages of up to 512 KiB into about
    /// eight pieces, and longer messages into pieces of `PIECE_MAX` bytes. Smaller pieces would cost more
    /// time than they save, because each claim of a piece moves a cache line between the cores. With
    /// larger pieces, one rank waits longer for the other rank at the end. Measured between near cores:
    /// 64 KiB contiguous take 4.7 us in pieces of 4 KiB and 3.4 us in pieces of 8 KiB; 1 MiB takes 25 to
    /// 28 us in pieces of 64 KiB.
    const PIECE_MIN: u64 = 4 << 10;
    const PIECE_MAX: u64 = 64 << 10;
    /// Number of bytes that a turn copies. With this value, a turn ends within about 100 us.
    const TURN: u64 = 1 << 20;

    fn place(
        _terms: Terms,
        far: Far<'_>,
        tx: &mut Tx,
        layout: &Elements<Plan>,
        bytes: u64,
    ) -> Result<Said> {
        place(far.fabric, tx, layout, bytes)
    }

    fn takes(plan: CopyPlan, next: bool, to: &Sink, bytes: u64) -> Takes {
        if matches!(to, Sink::From(..)) {
            // A fused copy begins at the same packed byte on both sides.
            return Takes::Not;
        }
        // Ask for help only with a long message. With a short one, the help saves less time than its two
        // additional envelopes cost.
        let helps = plan.shared && next && bytes >= choice::HELP_MIN;
        if helps { Takes::Together } else { Takes::Alone }
    }

    fn can_read(&mut self, far: Far<'_>, from: &Located) -> bool {
        let is_mapped = self.at(far, &from.span).is_some();
        self.done(far);
        is_mapped
    }

    fn can_write(&mut self, far: Far<'_>, to: &Located) -> bool {
        let is_mapped = self.at(far, &to.span).is_some();
        self.done(far);
        is_mapped
    }

    fn room(far: Far<'_>, tx: &mut Tx, to: &Elements<Plan>, bytes: u64) -> Result<Said> {
        place(far.fabric, tx, to, bytes)
    }

    #[inline]
    unsafe fn read(
        &mut self,
        far: Far<'_>,
        from: &Located,
        to: &Elements<Plan>,
        range: Range<u64>,
    ) -> std::result::Result<(), Denied> {
        let start = self.at(far, &from.span).ok_or(Denied)?;
        // SAFETY:
        // - the range lies within both sides (first condition of `# Safety`);
        // - the elements at `from` lie within `span` (`Known::locate`), which stays mapped until the next
        //   call of `at`. Other processes may
        //   write there at the same time; that changes values only, because the engine computes no address
        //   from data;
        // - the two sides do not overlap: the receive's memory belongs to this process, and no rank's heap
        //   overlaps another's.
        unsafe { copy_raw(from.elements(start), to.view(), range) };
        self.done(far);
        Ok(())
    }

    #[inline]
    unsafe fn write(
        &mut self,
        far: Far<'_>,
        from: &Elements<Plan>,
        to: &Located,
        range: Range<u64>,
    ) -> std::result::Result<(), Denied> {
        let start = self.at(far, &to.span).ok_or(Denied)?;
        // SAFETY:
        // - the range lies within both sides (first condition of `# Safety`);
        // - the elements at `to` lie within `span` (`Known::room`), which stays mapped until the next
        //   call of `at`, and the receiver leaves the bytes of the range to this rank (second condition);
        // - the send's memory is valid (third condition) and belongs to this process, so it does not
        //   overlap the receiver's heap.
        unsafe { copy_raw(from.view(), to.elements(start), range) };
        self.done(far);
        Ok(())
    }
}

/// Returns whether both ranks can copy the `bytes` bytes of a message into `to`: the memory of the receive lies
/// in a heap, and its elements do not overlap. If they overlap, the order of the copies matters, and the copies
/// of two ranks have no fixed order.
pub fn is_shared(fabric: &Fabric, to: &Sink, bytes: u64) -> bool {
    match to {
        Sink::Memory(to) => place_in(fabric, to, bytes).is_some() && to.plan.is_disjoint(to.count),
        Sink::From(..) | Sink::Discard => false,
    }
}

/// Returns the place of the `bytes` bytes of a send or a receive in this rank's heap. If the other rank
/// does not know the type of the data, first sends it the definition of the type. Returns
/// [`Said::NoRoom`] if the ring has no room for the definition, and [`Said::Nothing`] if the data does
/// not lie in the heap or its type cannot be defined.
fn place(fabric: &Fabric, tx: &mut Tx, layout: &Elements<Plan>, bytes: u64) -> Result<Said> {
    let Some((place, plan)) = place_in(fabric, layout, bytes) else {
        return Ok(Said::Nothing);
    };
    let Some(plan) = plan else { return Ok(Said::Place(place)) };
    let (number, encoding) = match tx.defined.number(plan) {
        Number::Known(number) => return Ok(Said::Place(Place { number, ..place })),
        Number::New(number, encoding) => (number, encoding),
        Number::TooLong => return define_long(fabric, tx, plan, place),
    };
    let Some(room) = tx.reserve(fabric, encoding.len())? else {
        return Ok(if tx.admits(encoding.len()) { Said::NoRoom } else { Said::Nothing });
    };
    let to = tx.area.payload(room.offset);
    // SAFETY: `to` points to `encoding.len()` bytes in the payload area, which the call of `reserve` above
    // has reserved. `encoding` is a vector of this process, so the two ranges do not overlap.
    unsafe { contiguous::copy(encoding.as_ptr(), to, encoding.len()) };
    let bytes = encoding.len() as u64;
    tx.publish(fabric, room, &Envelope::Define { number, bytes });
    tx.defined.types.define(plan, encoding, ());
    Ok(Said::Place(Place { number, ..place }))
}

/// Defines the type of `plan`, whose encoded form is too long for the ring, and returns `place` with the number
/// of the type. Returns [`Said::NoRoom`] if the ring is full, and [`Said::Nothing`] if the type gets no number now.
#[cold]
fn define_long(fabric: &Fabric, tx: &mut Tx, plan: &Plan, place: Place) -> Result<Said> {
    // Look for room before the work of the definition begins.
    let Some(room) = tx.reserve(fabric, 0)? else { return Ok(Said::NoRoom) };
    let Some(number) = tx.defined.long.free_number(plan) else { return Ok(Said::Nothing) };
    let Some(encoding) = wire::encode_within(plan, LONG_MAX) else { return Ok(Said::Nothing) };
    let Some(heap) = fabric.used_heap() else { return Ok(Said::Nothing) };
    // If the heap has no memory, the message goes through chunks.
    let Ok(piece) = heap.alloc(encoding.len(), 64, false) else { return Ok(Said::Nothing) };
    // SAFETY: the heap has just allocated `encoding.len()` bytes at `piece`. `encoding` is a vector of this
    // process, so the two ranges do not overlap.
    unsafe { contiguous::copy(encoding.as_ptr(), piece.as_ptr(), encoding.len()) };
    let Some(at) = heap.offset_of(piece.as_ptr(), encoding.len() as u64) else {
        heap.free(piece.as_ptr());
        return Ok(Said::Nothing);
    };
    let bytes = encoding.len() as u64;
    tx.publish(fabric, room, &Envelope::DefineLong { number, bytes, at });
    tx.defined.long.define(plan, piece);
    Ok(Said::Place(Place { number, ..place }))
}
