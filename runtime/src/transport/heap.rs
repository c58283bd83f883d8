//! Heap copy: the data lies in the sender's part of the shared heap, and the receiver copies it from
//! there straight into its own layout, by the engine's fused copy.
//!
//! Where the receive lies in a heap as well, both ranks copy (`single_copy.rs`): the sender, who waits
//! anyway, helps. `choice.rs` says for which messages this pays, `types.rs` has the types by which an
//! RTS describes its layout.

use super::area::Area;
use super::choice::{self, Situation, Terms};
use super::fabric::Fabric;
use super::in_flight::RequestTable;
use super::link::{HelpWanted, Link, Outgoing, Tx};
use super::protocol::Work;
use super::single_copy::{Asked, Copier, Denied, Far, Said, SingleCopies, Takes};
use super::types::{Located, Number, place_in};
use crate::Result;
use crate::message::envelope::{Envelope, Place, Space};
use crate::message::payload::{Layout, Sink, fetch, push_to};
use crate::shm::work_split::WorkSplit;
use std::ops::Range;
use std::sync::atomic::AtomicU64;

/// Copies from heap to heap, by the engine's fused copy.
#[derive(Debug, Default)]
pub struct HeapCopier;

/// The protocol.
pub type HeapCopy = SingleCopies<HeapCopier>;

impl Copier for HeapCopier {
    const SPACE: Space = Space::Heap;
    /// Smaller pieces cost more in claims (a cache line that goes to and fro) than they gain, larger
    /// ones leave one rank waiting for the other at the end. 64 KiB contiguous, near: 4.7 us in pieces
    /// of 4 KiB, 3.4 in pieces of 8; 1 MiB 25 to 28 us in pieces of 64 KiB.
    const PIECE_MIN: u64 = 4 << 10;
    const PIECE_MAX: u64 = 64 << 10;
    /// A message of this size is copied in one go, and a turn ends within some 100 us.
    const TURN: u64 = 1 << 20;

    fn split(area: &Area) -> WorkSplit<'_, AtomicU64> {
        area.heap_split()
    }

    fn place(
        _terms: Terms,
        far: Far<'_>,
        tx: &mut Tx,
        layout: &Layout,
        bytes: u64,
    ) -> Result<Said> {
        place(far.fabric, tx, layout, bytes)
    }

    fn takes(asked: Asked<'_>, from: &Located, to: &Sink, bytes: u64) -> Takes {
        let Asked { far: Far { fabric, rank }, terms, busy, next } = asked;
        let shared = match to {
            // Two ranks copy in no order: where a byte comes twice, the order decides.
            Sink::Memory(to) => {
                place_in(fabric, to, bytes).is_some() && to.plan.is_disjoint(to.count)
            }
            Sink::Discard => false,
        };
        let (distance, useful) = (fabric.distance(rank), from.ty.useful);
        if !choice::is_fused(terms.forced, Situation { distance, useful, shared, busy }) {
            return Takes::Not;
        }
        // Help is worth its two envelopes only for some bytes.
        if shared && next && bytes >= choice::HELP_MIN { Takes::Together } else { Takes::Alone }
    }

    fn can_read(&mut self, far: Far<'_>) -> bool {
        far.fabric.heap_of(far.rank).is_some()
    }

    fn can_write(&mut self, far: Far<'_>) -> bool {
        far.fabric.heap_of(far.rank).is_some()
    }

    /// Where the receive lies is said when there is room in the ring: its type may need a definition.
    fn help(wanted: HelpWanted, _to: &Layout) -> Outgoing {
        Outgoing::Help(wanted)
    }

    #[inline]
    unsafe fn read(
        &mut self,
        far: Far<'_>,
        from: &Located,
        to: &Layout,
        range: Range<u64>,
    ) -> std::result::Result<(), Denied> {
        let heap = far.fabric.heap_of(far.rank).ok_or(Denied)?;
        let origin = heap.base().as_ptr().wrapping_add(from.origin as usize);
        // SAFETY:
        // - the range is within both sides (caller's promise);
        // - the elements at `from` lie within the sender's heap (`Known::locate`), all of which is
        //   mapped there and stays so; other processes may write them meanwhile: values may be any,
        //   and the engine computes no address from data;
        // - they do not overlap: the receive's memory is this process's own, also where it lies in a
        //   heap, and no rank's heap is another's.
        unsafe { fetch(origin, &from.ty.plan, from.count, to, range) };
        Ok(())
    }

    #[inline]
    unsafe fn write(
        &mut self,
        far: Far<'_>,
        from: &Layout,
        to: &Located,
        range: Range<u64>,
    ) -> std::result::Result<(), Denied> {
        let heap = far.fabric.heap_of(far.rank).ok_or(Denied)?;
        let origin = heap.base().as_ptr().wrapping_add(to.origin as usize);
        // SAFETY:
        // - the range is within both sides (caller's promise);
        // - the elements at `to` lie within the receiver's heap (`Known::room`), all of which is mapped
        //   there, and those of the range are this rank's to write (caller's promise);
        // - the send's memory is this process's own, also where it lies in a heap.
        unsafe { push_to(from, origin, &to.ty.plan, to.count, range) };
        Ok(())
    }
}

/// Where in this rank's heap the data of a send or a receive lies, its type defined.
fn place(fabric: &Fabric, tx: &mut Tx, layout: &Layout, bytes: u64) -> Result<Said> {
    let Some((place, plan)) = place_in(fabric, layout, bytes) else {
        return Ok(Said::Nothing);
    };
    let Some(plan) = plan else { return Ok(Said::Place(place)) };
    let (number, encoding) = match tx.defined.number(plan) {
        Number::Known(number) => return Ok(Said::Place(Place { number, ..place })),
        Number::New(number, encoding) => (number, encoding),
        Number::None => return Ok(Said::Nothing),
    };
    let Some(room) = tx.reserve(encoding.len())? else { return Ok(Said::NoRoom) };
    let to = tx.area.payload(room.offset);
    // SAFETY: the room in the payload area is as long as the encoding, which lies in memory of
    // our own.
    unsafe { std::ptr::copy_nonoverlapping(encoding.as_ptr(), to, encoding.len()) };
    let bytes = encoding.len() as u64;
    tx.publish(fabric, room, &Envelope::Define { number, bytes });
    tx.defined.define(number, plan, encoding);
    Ok(Said::Place(Place { number, ..place }))
}

impl HeapCopy {
    /// Writes the envelope that asks a sender for help. False while the ring is full.
    ///
    /// # Errors
    /// The other rank broke the protocol.
    pub fn say_help<R: RequestTable>(
        work: &mut Work<'_, R>,
        link: &mut Link,
        wanted: HelpWanted,
    ) -> Result<bool> {
        let HelpWanted { offer: id, receive, number, bytes } = wanted;
        let Some(receive) = work.requests.receive(receive) else { return Ok(true) };
        let Sink::Memory(layout) = &receive.sink else { return Ok(true) };
        let tx = link.tx()?;
        match place(work.fabric, tx, layout, bytes)? {
            Said::NoRoom => Ok(false),
            // Without help the receiver copies all of it.
            Said::Nothing => Ok(true),
            Said::Place(place) => tx.say(work.fabric, &Envelope::Help { id, number, bytes, place }),
        }
    }
}
