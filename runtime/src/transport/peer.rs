//! The state of the transport for one other rank: the two directions between the ranks, and one instance of
//! each protocol.
//!
//! The message engine (`endpoint/engine.rs`) has one [`Peer`] for each rank. The engine passes sends,
//! matched messages and received envelopes to the peer, and calls [`Peer::advance`] in every turn. The peer
//! calls the protocols in the order that `choice.rs` gives; the engine itself begins messages in fragments.
//! Each protocol has its own file.

use super::choice::fragment_choice::Beginning;
use super::choice::tuning::{self, LongProtocol, Situation};
use super::choice::{self, Choice};
use super::link::area::Area;
use super::link::credit::Credit;
use super::link::fabric::Fabric;
use super::link::failure::{broken, lost, lost_at, of_place};
use super::link::{Link, Outgoing, Rx, Stage, Tx};
use super::protocol::answers;
use super::protocol::eager::Eager;
use super::protocol::fragments::Fragments;
use super::protocol::heap::{self, HeapCopy};
use super::protocol::in_flight::{RequestTable, SendStage, Stream};
use super::protocol::pipeline::Pipeline;
use super::protocol::private::PrivateCopy;
use super::protocol::single_copy::{Copier, Far};
use super::protocol::types::Located;
use super::protocol::{Advance, Arrival, CopyPlan, Matched, Offered, Protocol, Work};
use crate::message::envelope::{Envelope, Offer, Place, Space};
use crate::message::label::{Sender, Shape};
use crate::message::payload::{SHORT, Sink, Supply, buffer};
use crate::process::Process;
use crate::shm::recall;
use crate::shm::ring::Violation;
use crate::{Error, ErrorKind, Result};
use std::sync::atomic::Ordering;
use typepack_engine::contiguous;

/// Does something with the protocol of a choice, and with the link. A choice becomes a protocol here and nowhere else,
/// by a match that the compiler resolves where it knows the choice.
macro_rules! with_protocol {
    ([$($borrow:tt)+] $peer:ident, $choice:expr, |$protocol:ident, $link:pat_param| $do:expr) => {{
        let $link = $($borrow)+ $peer.link;
        match $choice {
            Choice::Eager => { let $protocol = $($borrow)+ $peer.eager; $do }
            Choice::Fragments => { let $protocol = $($borrow)+ $peer.fragments; $do }
            Choice::Pipeline => { let $protocol = $($borrow)+ $peer.pipeline; $do }
            Choice::Heap => { let $protocol = $($borrow)+ $peer.heap; $do }
            Choice::Private => { let $protocol = $($borrow)+ $peer.private; $do }
        }
    }};
}

/// Another rank.
#[derive(Debug)]
pub struct Peer {
    /// The two directions.
    pub link: Link,
    eager: Eager,
    /// The messages in fragments.
    pub fragments: Fragments,
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
            fragments: Fragments::default(),
            pipeline: Pipeline::new(fabric),
            heap: HeapCopy::default(),
            private: PrivateCopy::default(),
        }
    }

    /// Begins to read the envelopes of the other rank. That rank writes to this rank in `area`.
    pub fn admit(&mut self, area: Area) {
        self.link.rx = Some(Rx::new(area));
    }

    /// Returns whether anything waits for room in the ring, or is under way in either direction.
    pub fn has_work(&self) -> bool {
        self.link.tx.as_ref().is_some_and(|tx| !tx.is_idle()) || self.moves_data()
    }

    /// Returns whether a protocol has work.
    #[inline]
    fn moves_data(&self) -> bool {
        Choice::ALL.iter().any(|choice| with_protocol!([&] self, choice, |p, _| p.has_work()))
    }

    /// Returns whether the other rank may wait for something that this rank still has to do. In contrast to
    /// [`Peer::has_work`], sends that have ended, recalls and answers to definitions do not count: no rank
    /// waits for them, and the other rank may have left the job without making room for them.
    /// `is_send` says whether an id is the number of a send in flight.
    pub fn is_owed(&self, is_send: impl Fn(u64) -> bool) -> bool {
        let owes = |outgoing: &Outgoing| match outgoing {
            Outgoing::Say(Envelope::Recall(..) | Envelope::Defined(_)) => false,
            Outgoing::Send(id) => is_send(*id),
            Outgoing::Say(_) | Outgoing::Help(_) => true,
        };
        self.link.tx.as_ref().is_some_and(|tx| tx.queued().any(owes)) || self.moves_data()
    }

    // ---- at the sender ----

    /// Appends a send to the queue, and writes as many items of the queue as the ring has room for.
    ///
    /// # Errors
    /// Returns `ErrorKind::Other` if the other rank broke the protocol, and `ErrorKind::NoMemory` if
    /// memory ran out.
    pub fn send<R: RequestTable>(&mut self, work: &mut Work<'_, R>, id: u64) -> Result<()> {
        let tx = self.link.contact(work.fabric)?;
        tx.make_room()?;
        tx.push(Outgoing::Send(id));
        self.flush(work).map(drop)
    }

    /// Moves items of the queue into the ring while the ring has room. Returns true if anything moved.
    ///
    /// # Errors
    /// Returns `ErrorKind::Other` if the other rank broke the protocol, and `ErrorKind::NoMemory` if
    /// memory ran out.
    pub fn flush<R: RequestTable>(&mut self, work: &mut Work<'_, R>) -> Result<bool> {
        let mut moved = false;
        while let Some(next) = self.link.tx.as_ref().and_then(Tx::first) {
            let written = match next {
                Outgoing::Say(envelope) => self.link.tx()?.say(work.fabric, &envelope)?,
                Outgoing::Send(id) => self.offer(work, id)?,
                Outgoing::Help(wanted) => self.heap.ask_for_help(work, &mut self.link, wanted)?,
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
        let (tx, bytes) = (self.link.tx()?, send.label.bytes);
        let eager = work.terms.is_eager(bytes);
        let mut choices = choice::offers(work.terms, bytes);
        let started = matches!(send.stage, SendStage::Fragments(1.., _));
        if !started && !eager && !send.synchronous {
            let in_heap = match &send.supply {
                Supply::Memory(layout) => work.fabric.holds(layout.first()),
                _ => false,
            };
            let turns = Fragments::takes_turns(bytes, work.busy, || Stage::shape_of(&send.supply));
            let method = self.fragments.begin(tx, work.terms, &send.label, in_heap || turns);
            send.stage = method.map_or(SendStage::Queued, |method| SendStage::Fragments(0, method));
        }
        if matches!(send.stage, SendStage::Fragments(..)) {
            choices = &[Choice::Fragments];
        }
        if eager && !tx.allows(&send.label) {
            // The data of a long message waits here, behind an RTS, until a receive matches the message. A message of
            // at most `SHORT` bytes occupies no more memory of the receiver than an RTS. So send its data now, but
            // make the message synchronous.
            if bytes > SHORT as u64 {
                choices = &[Choice::Pipeline];
            } else {
                send.synchronous = true;
            }
        }
        if send.recall.is_none()
            && (send.synchronous || !matches!(choices, [Choice::Eager | Choice::Fragments]))
        {
            // This rank will wait for the match, so the program may cancel the send meanwhile.
            send.recall = tx.recalls.take(&tx.area);
        } else if !send.synchronous
            && matches!(choices, [Choice::Eager | Choice::Fragments])
            && let Some(word) = send.recall.take()
        {
            // An earlier attempt took the word for an RTS that found no room in the ring.
            tx.recalls.give_back(word);
        }
        for choice in choices {
            match with_protocol!([&mut] self, choice, |p, link| p.offer(work, link, id)?) {
                Offered::Declined => {}
                Offered::NoRoom => return Ok(false),
                Offered::Written if matches!(choice, Choice::Eager | Choice::Fragments) => {
                    return Ok(true);
                }
                Offered::Written => {
                    self.pipeline.pack_ahead(work, &mut self.link, id)?;
                    return Ok(true);
                }
            }
        }
        // The message should be eager, but there was no memory for a ring that has room for it.
        match self.pipeline.offer(work, &mut self.link, id)? {
            Offered::NoRoom => Ok(false),
            Offered::Written => Ok(true),
            Offered::Declined => Err(lost("a send that every protocol declined", id)),
        }
    }

    /// Recalls the message of the send `id`, so that no receive gets the message, now or later. Returns false
    /// if a receive may have matched the message already, or if no word was free when this rank wrote the
    /// message's envelope. After a recall the caller removes the send from the table.
    pub fn recall<R: RequestTable>(&mut self, work: &mut Work<'_, R>, id: u64) -> bool {
        let (Some(send), Some(tx)) = (work.requests.send(id), &mut self.link.tx) else {
            return false;
        };
        match (send.stage, send.recall) {
            // The message has no envelope yet.
            (SendStage::Queued | SendStage::Fragments(0, _), word) => {
                if let Some(word) = word {
                    tx.recalls.give_back(word);
                }
                true
            }
            (SendStage::Unacknowledged | SendStage::Offered(_), Some(word))
                if tx.recalls.recall(&tx.area, word, id) =>
            {
                self.pipeline.forget(id);
                // Tell the receiver, so that it frees the memory of the message. If an error occurs here, it
                // occurs again in the next turn.
                tx.push(Outgoing::Say(Envelope::Recall(send.label, send.offer(id))));
                let _later = self.flush(work);
                true
            }
            _ => false,
        }
    }

    /// Fetches cache lines for the next message to the other rank, while this rank is idle. Returns false
    /// if there are no lines to fetch.
    #[inline]
    pub fn prepare(&mut self) -> bool {
        self.pipeline.prepare(&mut self.link)
    }

    // ---- at the receiver ----

    /// Tells the other rank how much room there is for messages that no receive has matched.
    pub fn grant_credit(&self, credit: Credit) {
        if let Some(rx) = &self.link.rx {
            rx.area.credit().store(credit as u64, Ordering::Relaxed);
        }
    }

    /// Checks the place that an RTS names for its data. Returns the checked place, or `None` if the RTS names no place,
    /// or if this rank cannot read the sender's heap (`Known::blind`).
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
        if rx.known.blind && place.space == Space::Heap {
            return Ok(None);
        }
        let located = rx.known.locate(place, bytes, fabric.heap_bytes());
        let located = located.map_err(|v| of_place(self.link.rank, v))?;
        rx.offers.note(offer);
        Ok(Some(Box::new(located)))
    }

    /// Claims a message for a receive or a probe, after which its sender cannot recall it any more. Returns
    /// false if the sender has recalled the message; then no receive may take it.
    #[inline]
    pub fn claim(&mut self, offer: Offer) -> bool {
        let (Some(word), Some(rx)) = (offer.recall, &mut self.link.rx) else { return true };
        let claimed = recall::claim(rx.area.recall(word), offer.id);
        if !claimed {
            rx.offers.answer(offer.id);
        }
        claimed
    }

    /// Handles a Recall. The caller has dropped the envelope of the message.
    ///
    /// # Errors
    /// Returns `ErrorKind::Other` if the other rank broke the protocol.
    pub fn recalled(&mut self, offer: Offer) -> Result<()> {
        let Some(rx) = &mut self.link.rx else {
            return Err(lost_at("the link from", self.link.rank));
        };
        rx.offers.answer(offer.id);
        let is_recalled = |word| recall::forget(rx.area.recall(word), offer.id);
        if offer.recall.is_some_and(is_recalled) {
            return Ok(());
        }
        let detail = format!("a recall of a message that is not recalled (id {:#x})", { offer.id });
        Err(broken(self.link.rank, Violation::new(detail)))
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
        let Arrival::Payload(payload) = &matched.arrival else {
            return self.rendezvous(work, matched);
        };
        let answers = payload.waiting.is_some();
        self.eager.matched(work, &mut self.link, &mut matched, CopyPlan::PLAIN)?;
        if answers { self.flush(work).map(drop) } else { Ok(()) }
    }

    fn rendezvous<R: RequestTable>(
        &mut self,
        work: &mut Work<'_, R>,
        mut matched: Matched,
    ) -> Result<()> {
        // Make the contact before any change of state, because the contact may fail for lack of memory.
        self.link.contact(work.fabric)?;
        let receive = work.requests.receive(matched.receive);
        let Some(receive) = receive else { return Err(lost("a receive", matched.receive)) };
        receive.source = Sender::Process(Process::new(self.link.rank));
        let (tag, total) = (matched.label.tag, matched.label.bytes);
        receive.stream = Some(Stream { tag, total, done: 0 });
        let Some((situation, useful)) = self.situation(work, &matched) else {
            return Err(lost("a receive", matched.receive));
        };
        let first = || tuning::fused_first(situation, work.terms, useful, total);
        let way = work.tuning.begin(situation, total, work.terms, first);
        let place = match way {
            LongProtocol::InPlace(_) => situation.place,
            LongProtocol::Packed(_) | LongProtocol::PackedStreamed(_) => None,
        };
        let (method, unpack) = (way.method(), way.unpack_method());
        let plan = CopyPlan { method, unpack, shared: situation.shared };
        for (declined, choice) in choice::carriers(place).iter().enumerate() {
            if declined > 0 {
                work.tuning.declined();
            }
            let matched = &mut matched;
            if with_protocol!([&mut] self, choice, |p, link| p.matched(work, link, matched, plan)?)
            {
                break;
            }
        }
        self.flush(work)?;
        // Data in a heap never goes out in fragments, and a small ring has no room for them.
        let is_large = self.link.tx.as_ref().is_some_and(Tx::is_large);
        if situation.place == Some(Space::Heap) || !is_large {
            return Ok(());
        }
        let next = work.tuning.next_beginning(situation, total);
        self.say_beginning(work.fabric, total, next)
    }

    /// Tells the other rank how messages of `bytes` bytes should begin, if it does not know yet. If the ring is full,
    /// the other rank hears of it later.
    ///
    /// # Errors
    /// Returns `ErrorKind::Other` if the other rank broke the protocol.
    pub fn say_beginning(
        &mut self,
        fabric: &Fabric,
        bytes: u64,
        fragments: Beginning,
    ) -> Result<()> {
        let Some(tx) = self.link.tx.as_mut().filter(|tx| tx.is_idle()) else { return Ok(()) };
        if self.fragments.knows(bytes, fragments) {
            return Ok(());
        }
        if tx.say(fabric, &Envelope::Allow { bytes, fragments })? {
            self.fragments.advertised(bytes, fragments);
        }
        Ok(())
    }

    /// Returns what this rank knows about a message that waits at its sender, and the mean number of useful
    /// bytes of each cache line that the message touches there. Returns `None` if the receive does not exist.
    fn situation<R: RequestTable>(
        &mut self,
        work: &mut Work<'_, R>,
        matched: &Matched,
    ) -> Option<(Situation, u64)> {
        let Arrival::Rts(offer, shape, place) = &matched.arrival else { return None };
        let sink = &work.requests.receive(matched.receive)?.sink;
        let (rank, bytes) = (self.link.rank, matched.label.bytes);
        let contiguous = match sink {
            Sink::Memory(to) | Sink::From(to, _) => to.plan.is_contiguous(),
            Sink::Discard => true,
        };
        let open = self.link.rx.as_ref().is_some_and(|rx| rx.offers.is_open(*offer));
        let far = Far { fabric: work.fabric, rank };
        let located = place.as_ref().filter(|_| open);
        let place = located.filter(|located| match located.space {
            Space::Heap => self.heap.copier.can_read(far, located),
            // A copy by system calls needs one run on both sides.
            Space::Private => contiguous && self.private.copier.can_read(far, located),
        });
        let place = place.map(|located| located.space);
        let shared = place == Some(Space::Heap) && heap::is_shared(work.fabric, sink, bytes);
        let useful = located.map_or(0, |located| located.ty.useful);
        let (far, busy) = (work.fabric.is_far(rank), work.busy);
        let shape = *shape;
        Some((Situation { place, shape, contiguous, shared, far, busy }, useful))
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

    /// Handles an envelope that is not a message: an answer, a request for help, a withdrawal, the definition of a long
    /// type, or the answer to such a definition.
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
        self.answered(work, envelope);
        match *envelope {
            Envelope::Ack(id) => answers::ack(work, from, id),
            Envelope::Fin(id) => answers::fin(work, from, id),
            Envelope::Refused(id) => answers::refused(work, from, id),
            Envelope::Cts { id, method, .. } => {
                answers::cts(work, from, id)?;
                let shape = work.requests.send(id).map(|send| Stage::shape_of(&send.supply));
                self.pipeline.clear(id, method, shape.unwrap_or(Shape::Contiguous));
                Ok(())
            }
            Envelope::Help { id, number, method, bytes, place } => {
                let helps = answers::help(work, from, id, bytes)?;
                let Some(rx) = &self.link.rx else { return Err(lost_at("the link from", from)) };
                if rx.known.blind {
                    return Ok(());
                }
                let to = rx.known.room(place, bytes, work.fabric.heap_bytes());
                let to = to.map_err(|v| of_place(from, v))?;
                // If this rank has just withdrawn the send, it gives no help.
                if helps {
                    self.heap.help(id, number, method, to);
                }
                Ok(())
            }
            Envelope::Allow { bytes, fragments } => {
                self.fragments.allow(bytes, fragments);
                Ok(())
            }
            Envelope::Withdraw(offer) => self.withdrawn(work, offer),
            Envelope::DefineLong { number, bytes, at } => {
                self.define_long(work.fabric, number, bytes, at)?;
                self.flush(work).map(drop)
            }
            Envelope::Defined(number) => {
                if let (Some(tx), Some(heap)) = (&mut self.link.tx, work.fabric.used_heap())
                    && tx.defined.long.defined(number, heap)
                {
                    return Ok(());
                }
                let detail = format!(
                    "an answer to a definition of type {number}, but no definition waits for one"
                );
                Err(broken(from, Violation::new(detail)))
            }
            // `endpoint/` itself handles messages and definitions of types, and must not pass them here.
            Envelope::Inline(..)
            | Envelope::Eager(_)
            | Envelope::First(..)
            | Envelope::Fragment(_)
            | Envelope::Synchronous(..)
            | Envelope::Rts(..)
            | Envelope::Recall(..)
            | Envelope::Define { .. } => {
                let detail = format!(
                    "the protocols got a message from rank {from} that only the engine handles"
                );
                Err(Error::new(ErrorKind::Internal, "transport", detail))
            }
        }
    }

    /// Takes back the word by which this rank could recall the message that `envelope` answers. The receiver has
    /// matched the message, so the message's envelope cannot refer to the word any more. Also tells the pipeline which
    /// answer to expect next time ([`Pipeline::expect`]).
    fn answered<R: RequestTable>(&mut self, work: &mut Work<'_, R>, envelope: &Envelope) {
        let (Envelope::Ack(id)
        | Envelope::Cts { id, .. }
        | Envelope::Fin(id)
        | Envelope::Refused(id)
        | Envelope::Help { id, .. }) = *envelope
        else {
            return;
        };
        let send = work.requests.send(id).filter(|send| send.dest.index() == self.link.rank);
        if let Some(send) = &send
            && matches!(send.stage, SendStage::Offered(_))
        {
            let answer = match *envelope {
                Envelope::Cts { method, .. } => Some(method),
                _ => None,
            };
            self.pipeline.expect(send.label.bytes, answer);
            if answer.is_none() {
                self.pipeline.forget(id);
            }
        }
        if let (Some(tx), Some(word)) = (&mut self.link.tx, send.and_then(|s| s.recall.take())) {
            tx.recalls.give_back(word);
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
        let reading = Choice::ALL.iter().find_map(
            |choice| with_protocol!([&mut] self, choice, |p, link| p.withdrawn(link, offer)),
        );
        let Some(receive) = reading else { return Ok(()) };
        work.tuning.declined();
        self.pipeline.take(work, &mut self.link, (receive, offer), CopyPlan::PLAIN)?;
        self.flush(work).map(drop)
    }

    /// Defines type `number` as the type whose encoded form of `bytes` bytes the other rank has written at offset `at`
    /// of its heap, and tells the other rank that it may reuse the memory. If this rank cannot map that heap, it
    /// records this (`Known::blind`) instead of the definition, and gives the same answer.
    #[cold]
    fn define_long(&mut self, fabric: &Fabric, number: u32, bytes: u64, at: u64) -> Result<()> {
        let from = self.link.rank;
        self.link.contact(fabric)?;
        let (tx, rx) = self.link.both()?;
        let heap = fabric.heap_bytes();
        if at.checked_add(bytes).is_none_or(|end| end > heap) {
            let detail = format!(
                "the definition of type {number} has {bytes} bytes at offset {at}, which is not within its \
                 rank's heap of {heap} bytes"
            );
            return Err(broken(from, Violation::new(detail)));
        }
        match fabric.heap_at(from, &(at..at + bytes)) {
            Some((source, _map)) => {
                // Decode a private copy, because the sender could change the bytes in its heap during the
                // decoding.
                let mut encoding = buffer(bytes)?;
                // SAFETY: `source` is the address of `bytes` bytes in the heap, which stay mapped as long as
                // `_map` lives. Other processes may write there at the same time; that changes values
                // only. `encoding` is a new buffer of `bytes` bytes.
                unsafe {
                    let source = source.as_ptr().cast_const();
                    contiguous::copy(source, encoding.as_mut_ptr(), encoding.len());
                }
                rx.known.define(number, &encoding).map_err(|v| broken(from, v))?;
            }
            None => rx.known.blind = true,
        }
        tx.push(Outgoing::Say(Envelope::Defined(number)));
        Ok(())
    }

    /// Moves a bounded amount of each kind of work: queues, copies and streams. Returns true if anything
    /// moved.
    ///
    /// # Errors
    /// Returns `ErrorKind::Other` if the other rank broke the protocol, and `ErrorKind::NoMemory` if
    /// memory ran out.
    pub fn advance<R: RequestTable>(&mut self, work: &mut Work<'_, R>) -> Result<bool> {
        let mut moved = false;
        for choice in Choice::ALL {
            let advance = with_protocol!([&mut] self, choice, |p, link| match p.has_work() {
                true => p.advance(work, link)?,
                false => Advance::Idle,
            });
            if self.go_on(work, advance)? {
                // Answers need not wait for the other protocols.
                self.flush(work)?;
                moved = true;
            }
        }
        Ok(moved | self.flush(work)?)
    }

    /// If a protocol has given up a message, passes the message to the pipeline.
    fn go_on<R: RequestTable>(&mut self, work: &mut Work<'_, R>, advance: Advance) -> Result<bool> {
        if let Advance::GaveUp(receive, offer) = advance {
            work.tuning.declined();
            self.pipeline.take(work, &mut self.link, (receive, offer), CopyPlan::PLAIN)?;
        }
        Ok(advance != Advance::Idle)
    }

    /// Ends the use of the memory of the operation `id`. After the return the other rank neither reads nor
    /// writes this memory.
    pub fn withdraw<R: RequestTable>(&mut self, work: &mut Work<'_, R>, id: u64) {
        for choice in Choice::ALL {
            with_protocol!([&mut] self, choice, |p, link| p.withdraw(work, link, id));
        }
    }
}
