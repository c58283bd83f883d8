//! Eager: the sender packs a short message directly into the ring, beside its envelope.
//!
//! The fast path of the runtime is [`Eager::send`]. The message engine calls it for every message of at
//! most `TYPEPACK_EAGER_LIMIT` bytes while no other message waits for the same rank. A message that has to
//! wait in the queue, and a message whose sender waits for the match, come from the queue to [`Eager`],
//! like the messages of any other protocol.

use super::fabric::Fabric;
use super::failure::lost;
use super::in_flight::{RequestTable, SendStage, received};
use super::link::{Link, Outgoing, Tx};
use super::protocol::{Arrival, Matched, Offered, Protocol, Work};
use super::ready::Ready;
use crate::Result;
use crate::message::envelope::{Envelope, INLINE_MAX};
use crate::message::label::{Label, Status};

/// The protocol. All of its state is in the ring.
#[derive(Debug, Default)]
pub struct Eager;

impl Eager {
    /// Writes a message if the ring has room: `pack` writes the `label.bytes` packed bytes. Returns false
    /// while the ring is full.
    ///
    /// # Errors
    /// Returns `ErrorKind::Other` if the receiver broke the protocol.
    #[inline]
    pub fn send(
        tx: &mut Tx,
        fabric: &Fabric,
        label: Label,
        pack: impl FnOnce(*mut u8),
    ) -> Result<bool> {
        if label.bytes <= INLINE_MAX as u64 {
            let Some(room) = tx.reserve(0)? else { return Ok(false) };
            let mut payload = [0; INLINE_MAX];
            pack(payload.as_mut_ptr());
            tx.publish(fabric, room, &Envelope::Inline(label, payload));
        } else {
            let len = label.bytes as usize;
            let Some(room) = tx.reserve(len)? else { return Ok(false) };
            pack(tx.area.payload(room.offset));
            tx.publish(fabric, room, &Envelope::Eager(label));
            tx.ready = Ready::payload(tx.next_payload(), len);
        }
        Ok(true)
    }
}

impl Protocol for Eager {
    /// Writes a send from the queue. The send is complete afterwards, or waits for its ACK.
    fn offer<R: RequestTable>(
        &mut self,
        work: &mut Work<'_, R>,
        link: &mut Link,
        id: u64,
    ) -> Result<Offered> {
        let Some(send) = work.requests.send(id) else { return Err(lost("a send", id)) };
        let (label, supply, tx) = (send.label, &send.supply, link.tx()?);
        // SAFETY: `0..label.bytes` is the whole message. Both uses of `pack` below pass the address of
        // reserved bytes in the ring or of a local array, with room for `label.bytes` bytes; no user layout
        // overlaps either.
        let pack = |to| unsafe { supply.pack(0..label.bytes, to) };
        if !send.synchronous {
            if !Self::send(tx, work.fabric, label, pack)? {
                return Ok(Offered::NoRoom);
            }
            let Label { tag, bytes, .. } = label;
            work.requests.complete(id, Ok(Status { source: work.fabric.rank(), tag, bytes }));
            return Ok(Offered::Written);
        }
        let Some(room) = tx.reserve(label.bytes as usize)? else { return Ok(Offered::NoRoom) };
        pack(tx.area.payload(room.offset));
        send.stage = SendStage::Unacknowledged;
        tx.publish(work.fabric, room, &Envelope::Synchronous(label, id));
        Ok(Offered::Written)
    }

    /// Unpacks the message directly from the place where it has arrived, and completes its receive.
    #[inline]
    fn matched<R: RequestTable>(
        &mut self,
        work: &mut Work<'_, R>,
        link: &mut Link,
        matched: &mut Matched,
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
        if let Some(id) = payload.waiting {
            link.tx()?.push(Outgoing::Say(Envelope::Ack(id)));
        }
        Ok(true)
    }
}
