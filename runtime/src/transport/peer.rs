//! The state of the transport for one other rank: the two directions between the ranks, and one instance of
//! each protocol.
//!
//! The message engine (`endpoint/engine.rs`) has one [`Peer`] for each rank. The engine passes sends,
//! matched messages and received envelopes to the peer, and calls [`Peer::advance`] in every turn. The peer
//! calls the protocols in the order that `choice.rs` gives. Each protocol has its own file.

use super::answers;
use super::area::Area;
use super::choice::{self, Choice};
use super::eager::Eager;
use super::fabric::Fabric;
use super::failure::{lost, lost_at, of_place};
use super::heap::HeapCopy;
use super::in_flight::{RequestTable, Stream};
use super::link::{Link, Outgoing, Rx, Tx};
use super::pipeline::Pipeline;
use super::private::PrivateCopy;
use super::protocol::{Advance, Arrival, Matched, Offered, Protocol, Work};
use super::types::Located;
use crate::Result;
use crate::message::envelope::{Envelope, Place, Space};
use crate::message::label::{Sender, Slot};

/// Another rank.
#[derive(Debug)]
pub struct Peer {
    /// The two directions.
    pub link: Link,
    eager: Eager,
    pipeline: Pipeline,
    heap: HeapCopy,
    private: PrivateCopy,
}

impl Peer {
    /// Creates a peer for a rank to which this rank has sent nothing yet.
    pub fn new(fabric: &Fabric, rank: usize) -> Self {
        Self {
            link: Link::new(rank),
            eager: Eager,
            pipeline: Pipeline::new(fabric),
            heap: HeapCopy::default(),
            private: PrivateCopy::default(),
        }
    }

    /// Begins to read the envelopes of the other rank. That rank writes to this rank in `area`.
    pub fn admit(&mut self, fabric: &Fabric, area: Area) {
        self.link.rx = Some(Rx::new(area, fabric.first_level()));
    }

    /// Returns whether anything waits for room in the ring, or is under way in either direction.
    pub fn has_work(&self) -> bool {
        self.link.tx.as_ref().is_some_and(|tx| !tx.is_idle())
            || self.pipeline.has_work()
            || self.heap.has_work()
            || self.private.has_work()
    }

    // ---- at the sender ----

    /// Appends a send to the queue, and writes as many items of the queue as the ring has room for.
    ///
    /// # Errors
    /// Returns `ErrorKind::Other` if the other rank broke the protocol, and `ErrorKind::NoMemory` if
    /// memory ran out.
    pub fn send<R: RequestTable>(&mut self, work: &mut Work<'_, R>, id: u64) -> Result<()> {
        self.link.contact(work.fabric)?.push(Outgoing::Send(id));
        self.flush(work).map(drop)
    }

    /// Moves entries of the queue into the ring while the ring has room. Returns true if anything moved.
    ///
    /// # Errors
    /// Returns `ErrorKind::Other` if the other rank broke the protocol.
    pub fn flush<R: RequestTable>(&mut self, work: &mut Work<'_, R>) -> Result<bool> {
        let mut moved = false;
        while let Some(next) = self.link.tx.as_ref().and_then(Tx::first) {
            let written = match next {
                Outgoing::Say(envelope) => self.link.tx()?.say(work.fabric, &envelope)?,
                Outgoing::Send(id) => self.offer(work, id)?,
                Outgoing::Help(wanted) => match wanted.space {
                    Space::Heap => self.heap.ask_for_help(work, &mut self.link, wanted)?,
                    Space::Private => self.private.ask_for_help(work, &mut self.link, wanted)?,
                },
            };
            if !written {
                break;
            }
            self.link.tx()?.pop();
            moved = true;
        }
        Ok(moved)
    }

    /// Writes the first envelope of a send. Returns false if the ring is full.
    fn offer<R: RequestTable>(&mut self, work: &mut Work<'_, R>, id: u64) -> Result<bool> {
        // If the send has already ended, it needs no envelope.
        let Some(send) = work.requests.send(id) else { return Ok(true) };
        for choice in choice::offers(work.terms, send.label.bytes) {
            let link = &mut self.link;
            let offered = match choice {
                Choice::Eager => self.eager.offer(work, link, id)?,
                Choice::Heap => self.heap.offer(work, link, id)?,
                Choice::Private => self.private.offer(work, link, id)?,
                Choice::Pipeline => self.pipeline.offer(work, link, id)?,
            };
            match offered {
                Offered::Declined => {}
                Offered::NoRoom => return Ok(false),
                Offered::Written => return Ok(true),
            }
        }
        // The message is short, but memory is too short for a ring that has room for it.
        match self.pipeline.offer(work, &mut self.link, id)? {
            Offered::NoRoom => Ok(false),
            Offered::Written => Ok(true),
            Offered::Declined => Err(lost("a send that every protocol declined", id)),
        }
    }

    /// Fetches cache lines for the next message to the other rank, while this rank is idle. Returns false
    /// if there are no lines to fetch.
    #[inline]
    pub fn prepare(&mut self) -> bool {
        self.pipeline.prepare(&mut self.link)
    }

    // ---- at the receiver ----

    /// Checks the place that an RTS names for its data. Returns the checked place, or `None` if the RTS
    /// names no place.
    ///
    /// # Errors
    /// Returns `ErrorKind::Other` if the other rank broke the protocol.
    pub fn locate(
        &mut self,
        fabric: &Fabric,
        (offer, bytes): (u64, u64),
        place: Option<Place>,
    ) -> Result<Option<Box<Located>>> {
        let (Some(place), Some(rx)) = (place, &mut self.link.rx) else { return Ok(None) };
        let located = rx.known.locate(place, bytes, fabric.heap_bytes());
        let located = located.map_err(|v| of_place(self.link.rank, v))?;
        rx.offers.note(offer);
        Ok(Some(Box::new(located)))
    }

    /// Takes a message that a receive has matched and does not refuse, and passes it to a protocol.
    ///
    /// # Errors
    /// Returns `ErrorKind::Other` if the other rank broke the protocol, and `ErrorKind::NoMemory` if
    /// memory ran out.
    #[inline]
    pub fn accept<R: RequestTable>(
        &mut self,
        work: &mut Work<'_, R>,
        mut matched: Matched,
    ) -> Result<()> {
        let place = match &matched.arrival {
            Arrival::Rts(_, place) => place.as_ref().map(|located| located.space),
            Arrival::Payload(payload) => {
                let answers = payload.waiting.is_some();
                self.eager.matched(work, &mut self.link, &mut matched)?;
                return if answers { self.flush(work).map(drop) } else { Ok(()) };
            }
        };
        self.rendezvous(work, matched, place)
    }

    fn rendezvous<R: RequestTable>(
        &mut self,
        work: &mut Work<'_, R>,
        mut matched: Matched,
        place: Option<Space>,
    ) -> Result<()> {
        // Make the contact before any change of state, because the contact may fail for lack of memory.
        self.link.contact(work.fabric)?;
        let receive = work.requests.receive(matched.receive);
        let Some(receive) = receive else { return Err(lost("a receive", matched.receive)) };
        receive.source = Sender::Slot(Slot::new(self.link.rank));
        let (tag, total) = (matched.label.tag, matched.label.bytes);
        receive.stream = Some(Stream { tag, total, done: 0 });
        for choice in choice::carriers(place) {
            let (link, matched) = (&mut self.link, &mut matched);
            let taken = match choice {
                Choice::Eager => self.eager.matched(work, link, matched)?,
                Choice::Heap => self.heap.matched(work, link, matched)?,
                Choice::Private => self.private.matched(work, link, matched)?,
                Choice::Pipeline => self.pipeline.matched(work, link, matched)?,
            };
            if taken {
                break;
            }
        }
        self.flush(work).map(drop)
    }

    /// Answers an RTS with REFUSED: a receive has matched the message, but this rank does not take the
    /// data.
    ///
    /// # Errors
    /// Returns `ErrorKind::Other` if the other rank broke the protocol, and `ErrorKind::NoMemory` if
    /// memory ran out.
    pub fn refuse<R: RequestTable>(&mut self, work: &mut Work<'_, R>, offer: u64) -> Result<()> {
        if let Some(rx) = &mut self.link.rx {
            rx.offers.answer(offer);
        }
        self.answer(work, Envelope::Refused(offer))
    }

    /// Answers a synchronous message with ACK: a receive has matched the message.
    ///
    /// # Errors
    /// Returns `ErrorKind::Other` if the other rank broke the protocol, and `ErrorKind::NoMemory` if
    /// memory ran out.
    pub fn acknowledge<R: RequestTable>(&mut self, work: &mut Work<'_, R>, id: u64) -> Result<()> {
        self.answer(work, Envelope::Ack(id))
    }

    fn answer<R: RequestTable>(
        &mut self,
        work: &mut Work<'_, R>,
        envelope: Envelope,
    ) -> Result<()> {
        self.link.contact(work.fabric)?.push(Outgoing::Say(envelope));
        self.flush(work).map(drop)
    }

    // ---- at either end ----

    /// Handles an envelope that is not a message: an answer, a request for help, or a withdrawal.
    ///
    /// # Errors
    /// Returns `ErrorKind::Other` if the other rank broke the protocol, and `ErrorKind::NoMemory` if
    /// memory ran out.
    pub fn hear<R: RequestTable>(
        &mut self,
        work: &mut Work<'_, R>,
        envelope: &Envelope,
    ) -> Result<()> {
        let from = self.link.rank;
        match *envelope {
            Envelope::Ack(id) => answers::ack(work, from, id),
            Envelope::Fin(id) => answers::fin(work, from, id),
            Envelope::Refused(id) => answers::refused(work, from, id),
            Envelope::Cts(id) => {
                answers::cts(work, from, id)?;
                self.pipeline.clear(id);
                Ok(())
            }
            Envelope::Help { id, number, bytes, place } => {
                let helps = answers::help(work, from, id, (place.space, bytes))?;
                let Some(rx) = &self.link.rx else { return Err(lost_at("the link from", from)) };
                let to = rx.known.room(place, bytes, work.fabric.heap_bytes());
                let to = to.map_err(|v| of_place(from, v))?;
                match place.space {
                    // This rank has just withdrawn the send, so it gives no help.
                    _ if !helps => {}
                    Space::Heap => self.heap.help(id, number, to),
                    Space::Private => self.private.help(id, number, to),
                }
                Ok(())
            }
            Envelope::Withdraw(offer) => self.withdrawn(work, offer),
            // `endpoint/` itself handles messages and definitions of types, and must not pass them here.
            Envelope::Inline(..)
            | Envelope::Eager(_)
            | Envelope::Synchronous(..)
            | Envelope::Rts(..)
            | Envelope::Define { .. } => Err(lost_at("a message from", from)),
        }
    }

    /// Handles a Withdraw: the sender has taken back the memory of a message. If a receive has already
    /// matched the message, this rank asks the sender to pack it.
    fn withdrawn<R: RequestTable>(&mut self, work: &mut Work<'_, R>, offer: u64) -> Result<()> {
        self.link.contact(work.fabric)?;
        let Some(rx) = &mut self.link.rx else {
            return Err(lost_at("the link from", self.link.rank));
        };
        rx.offers.withdraw(offer);
        let reading = self.heap.give_back(&self.link, offer);
        let Some(receive) = reading.or_else(|| self.private.give_back(&self.link, offer)) else {
            return Ok(());
        };
        self.pipeline.take(work, &mut self.link, (receive, offer))?;
        self.flush(work).map(drop)
    }

    /// Moves a bounded amount of each kind of work: queues, copies and streams. Returns true if anything
    /// moved.
    ///
    /// # Errors
    /// Returns `ErrorKind::Other` if the other rank broke the protocol, and `ErrorKind::NoMemory` if
    /// memory ran out.
    pub fn advance<R: RequestTable>(&mut self, work: &mut Work<'_, R>) -> Result<bool> {
        let mut moved = false;
        if self.heap.has_work() {
            let advance = self.heap.advance(work, &mut self.link)?;
            moved |= self.go_on(work, advance)?;
        }
        if self.private.has_work() {
            let advance = self.private.advance(work, &mut self.link)?;
            moved |= self.go_on(work, advance)?;
        }
        moved |= self.flush(work)?;
        if self.pipeline.has_work() {
            let advance = self.pipeline.advance(work, &mut self.link)?;
            moved |= self.go_on(work, advance)?;
        }
        Ok(moved)
    }

    /// If a protocol has given up a message, passes the message to the pipeline.
    fn go_on<R: RequestTable>(&mut self, work: &mut Work<'_, R>, advance: Advance) -> Result<bool> {
        if let Advance::GaveUp(receive, offer) = advance {
            self.pipeline.take(work, &mut self.link, (receive, offer))?;
        }
        Ok(advance != Advance::Idle)
    }

    /// Ends the use of the memory of the operation `id`. After the return the other rank neither reads nor
    /// writes this memory.
    pub fn withdraw<R: RequestTable>(&mut self, work: &mut Work<'_, R>, id: u64) {
        let link = &mut self.link;
        self.eager.withdraw(work, link, id);
        self.pipeline.withdraw(work, link, id);
        self.heap.withdraw(work, link, id);
        self.private.withdraw(work, link, id);
    }
}
