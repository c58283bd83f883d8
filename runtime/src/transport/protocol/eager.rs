//! Eager: the sender packs a short message directly into the ring, beside its envelope.
//!
//! [`Eager::send`] is the fast path of the runtime. The message engine (`endpoint/engine/short.rs`) calls it for every
//! message of at most `TYPEPACK_EAGER_LIMIT` bytes to another rank if no other message waits for the same rank. Three
//! kinds of short messages do not take this path: messages that have to wait in the queue, messages whose sender waits
//! for the match, and messages to a receiver that wants no more payloads. They go through the queue and the trait
//! [`Protocol`], as the messages of all other protocols do.

use super::in_flight::{RequestTable, SendStage, received};
use super::{Arrival, Carrier, CopyPlan, Matched, Offered, Protocol, Work};
use crate::Result;
use crate::message::envelope::{self, Envelope, INLINE_MAX};
use crate::message::label::{Label, Status};
use crate::transport::choice::short_choice::{LEAST, ShortChoices};
use crate::transport::link::fabric::Fabric;
use crate::transport::link::failure::lost;
use crate::transport::link::ready::Ready;
use crate::transport::link::{Link, Outgoing, Tx};
use std::time::Instant;
use typepack_engine::contiguous::{self, Method};

/// The eager protocol. It has no state of its own, because all of its state is in the ring.
#[derive(Debug, Default)]
pub struct Eager;

impl Eager {
    /// Writes a message if the ring has room. `pack` writes the `label.bytes` packed bytes to the address that is
    /// passed to it. `chooses` says whether the method of a payload of some KiB is chosen by measurement. Returns false
    /// if the ring has no room.
    ///
    /// # Errors
    /// Returns `ErrorKind::Other` if the receiver broke the protocol.
    #[inline]
    pub fn send(
        tx: &mut Tx,
        fabric: &Fabric,
        label: Label,
        chooses: bool,
        pack: impl FnOnce(*mut u8),
    ) -> Result<bool> {
        if label.bytes <= INLINE_MAX as u64 {
            let Some(room) = tx.reserve(fabric, 0)? else { return Ok(false) };
            let mut payload = [0; INLINE_MAX];
            pack(payload.as_mut_ptr());
            tx.publish_words(fabric, room, &envelope::inline(&label, &payload));
            tx.fetch_ahead(0);
        } else {
            let len = label.bytes as usize;
            let Some(room) = tx.reserve(fabric, len)? else { return Ok(false) };
            let payload = tx.area.payload(room.offset);
            let [head, context, bytes] = envelope::eager(&label);
            if len < LEAST {
                pack(payload);
                tx.publish_words(fabric, room, &[head, context, bytes]);
                tx.fetch_ahead(len);
                tx.ready = Ready::payload(tx.next_payload(len), len);
                return Ok(true);
            }
            let (mark, method) = match chooses {
                true => Self::pack_by_choice(tx, payload, len, pack),
                false => {
                    pack(payload);
                    (0, Method::Vector)
                }
            };
            tx.publish_words(fabric, room, &[head, context, bytes, mark]);
            tx.fetch_ahead(len);
            tx.ready = Ready::payload(tx.next_payload(len), len).by(method);
        }
        Ok(true)
    }

    /// Calls `pack`, which writes `len` bytes to `payload`, with the method that measurements have found best, or with
    /// one that is measured. Returns the mark for the envelope, which is 0 if nothing is measured, and the method.
    fn pack_by_choice(
        tx: &mut Tx,
        payload: *mut u8,
        len: usize,
        pack: impl FnOnce(*mut u8),
    ) -> (u64, Method) {
        let mut choices = tx.short.take().unwrap_or_else(|| Box::new(ShortChoices::new()));
        let choice = choices.choose(len, |count| tx.answer(count));
        let copy = || contiguous::with(choice.method, || pack(payload));
        let mut mark = 0;
        if choice.is_timed {
            let start = Instant::now();
            copy();
            mark = choices.sent(choice, len, start, tx.published() + 1);
        } else {
            copy();
        }
        tx.short = Some(choices);
        (mark, choice.method)
    }
}

/// Returns what to do with a message for which the ring has no room: wait, or, if the ring will never have room
/// for so long a message, try another protocol.
#[cold]
fn no_room(tx: &Tx, label: Label) -> Offered {
    let inline = label.bytes <= INLINE_MAX as u64;
    if inline || tx.admits(label.bytes as usize) { Offered::NoRoom } else { Offered::Declined }
}

impl Protocol for Eager {
    /// Writes the message of a queued send to the ring. After that, the send is complete or waits for its
    /// ACK.
    fn offer<R: RequestTable>(
        &mut self,
        work: &mut Work<'_, R>,
        link: &mut Link,
        id: u64,
    ) -> Result<Offered> {
        let Some(send) = work.requests.send(id) else { return Err(lost("a send", id)) };
        let (label, supply, tx) = (send.label, &send.supply, link.tx()?);
        // SAFETY: `0..label.bytes` is the whole message. Below, `pack` is called with the address of
        // reserved bytes in the ring or of a local array. Both have room for `label.bytes` bytes, and no
        // user layout overlaps them.
        let pack = |to| unsafe { supply.pack(0..label.bytes, to) };
        if !send.synchronous {
            let chooses = work.tuning.chooses() && supply.is_run();
            if !Self::send(tx, work.fabric, label, chooses, pack)? {
                return Ok(no_room(tx, label));
            }
            let (Label { tag, bytes, .. }, dest) = (label, send.dest);
            work.requests.complete(id, Ok(Status { source: work.fabric.rank(), tag, bytes }));
            work.traffic.carried(Carrier::Eager, &label, dest);
            return Ok(Offered::Written);
        }
        let Some(room) = tx.reserve(work.fabric, label.bytes as usize)? else {
            return Ok(no_room(tx, label));
        };
        pack(tx.area.payload(room.offset));
        send.stage = SendStage::Unacknowledged;
        let (offer, dest) = (send.offer(id), send.dest);
        tx.publish(work.fabric, room, &Envelope::Synchronous(label, offer));
        work.traffic.carried(Carrier::Eager, &label, dest);
        Ok(Offered::Written)
    }

    /// Unpacks the message directly from the place where the message has arrived, and completes the
    /// receive.
    #[inline]
    fn matched<R: RequestTable>(
        &mut self,
        work: &mut Work<'_, R>,
        link: &mut Link,
        matched: &mut Matched,
        _plan: CopyPlan,
    ) -> Result<bool> {
        let Arrival::Payload(payload) = &matched.arrival else { return Ok(false) };
        let Some(receive) = work.requests.receive(matched.receive) else {
            return Err(lost("a receive", matched.receive));
        };
        let (Label { tag, bytes, .. }, capacity) = (matched.label, receive.capacity);
        // SAFETY: `0..bytes.min(capacity)` lies within the message and within the receive. `payload.data()`
        // is readable for `bytes` bytes and overlaps no user layout (conditions of `Payload::new`).
        unsafe { receive.sink.unpack(0..bytes.min(capacity), payload.data()) };
        let status = Status { source: link.rank, tag, bytes };
        work.requests.complete(matched.receive, received(status, capacity, None));
        if let Some(offer) = payload.waiting {
            link.tx()?.push(Outgoing::Say(Envelope::Ack(offer.id)));
        }
        Ok(true)
    }
}
