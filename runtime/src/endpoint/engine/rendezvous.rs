//! Messages too long for a ring: what is offered, and how each side answers.
//!
//! `incoming.rs` comes here with the envelopes of offers and of their answers, `engine.rs` with a
//! receive that matches an offer which has waited. The way is chosen by `transport/choice.rs`; the bytes
//! move in `incoming.rs`, through `transport/`.

use super::*;

impl MessageEngine {
    /// A message too long for the ring waits at `from`.
    pub(super) fn offered(
        &mut self,
        from: usize,
        label: Label,
        offer: u64,
        place: Option<Place>,
    ) -> Result<()> {
        // The way of the answer comes before the match: should there be no memory for it, the
        // offer stays in the ring and the receive in its queue.
        self.tx(from)?;
        let heap = self.fabric.heap_bytes();
        let located = match (place, &mut self.peers[from].rx) {
            (Some(place), Some(rx)) => {
                let located = rx.fetches.locate(offer, place, label.bytes, heap);
                Some(Box::new(located.map_err(|v| broken(from, v))?))
            }
            _ => None,
        };
        let Some(id) = self.matching(label.context).arrive(from, label.tag) else {
            let what = Arrived::Offered(offer, located);
            self.matching(label.context).keep(from, label, what);
            return Ok(());
        };
        let Some(receive) = self.requests.receive(id) else { return Err(lost()) };
        let capacity = receive.capacity;
        let status = Status { source: from, tag: label.tag, bytes: label.bytes };
        let refusal = receive.refusal(self.check_types, status, label.types);
        if label.bytes > capacity || refusal.is_some() {
            self.requests.complete(id, arrived(status, capacity, refusal));
            return self.refuse(from, offer);
        }
        self.accept(from, (offer, located), id, label.tag, label.bytes)
    }

    /// The receiver of one of our offers reads its data, and has told us where it goes.
    pub(super) fn pushed(&mut self, from: usize, id: u64, number: u16, to: u64) -> Result<()> {
        let offered = |send: &&mut Send| send.dest == from && send.stage == SendStage::Offered;
        let send = self.requests.send(id).filter(offered).ok_or_else(|| {
            broken(from, Violation("a transfer of a message that was not offered"))
        })?;
        // One that has been withdrawn meanwhile is packed: the two envelopes have crossed.
        if send.located && send.private {
            self.tx(from)?.writes.start(id, number, to);
            self.busy = true;
        }
        Ok(())
    }

    /// The receiver of one of our offers has answered.
    pub(super) fn granted(&mut self, from: usize, id: u64, bytes: u64) -> Result<()> {
        let rank = self.fabric.rank();
        let send = self
            .requests
            .send(id)
            .filter(|send| send.dest == from && send.stage == SendStage::Offered)
            .ok_or_else(|| broken(from, Violation("grant of a message that was not offered")))?;
        let Label { tag, bytes: total, .. } = send.label;
        if bytes == 0 {
            let private = send.located && send.private;
            self.traffic.split += u64::from(private);
            self.traffic.fused += u64::from(send.located && !private);
            self.requests.complete(id, Ok(Status { source: rank, tag, bytes: total }));
            return Ok(());
        }
        if bytes != total {
            return Err(broken(from, Violation("grant of a part of a message")));
        }
        send.stage = SendStage::Streaming(0);
        send.located = false;
        self.traffic.pipelined += 1;
        self.tx(from)?.grant(id);
        self.busy = true;
        Ok(())
    }

    /// Grants an offered message to the receive `id`.
    pub(super) fn accept(
        &mut self,
        from: usize,
        (offer, located): (u64, Option<Box<Located>>),
        id: u64,
        tag: i32,
        bytes: u64,
    ) -> Result<()> {
        // First what may fail for lack of memory: nothing has been promised then.
        self.tx(from)?;
        let Some(receive) = self.requests.receive(id) else { return Err(lost()) };
        receive.source = Source::Rank(from);
        receive.stream = Some((tag, bytes, 0));
        let Some(rx) = &mut self.peers[from].rx else { return Err(lost()) };
        if let Some(located) = &located
            && located.space == Space::Private
        {
            let to = match &receive.sink {
                Sink::Memory(layout) if layout.plan.is_contiguous() => Some(layout.first()),
                _ => None,
            };
            if let Some(to) = to
                && rx.fetches.is_open(offer)
                && rx.splits.can(&self.fabric, from)
            {
                rx.splits.start(id, offer, located.origin, to, bytes);
                self.busy = true;
                return Ok(());
            }
            return self.grant(from, offer, id, bytes);
        }
        if let Some(located) = located
            && rx.fetches.can(&self.fabric, from, offer)
        {
            let shared = match &receive.sink {
                // Two ranks copy in no order: where a byte comes twice, the order decides.
                Sink::Memory(to) => {
                    place_in(&self.fabric, to, bytes).is_some() && to.plan.is_disjoint(to.count)
                }
                Sink::Discard => false,
            };
            let distance = self.fabric.distance(from);
            let useful = located.ty.useful;
            let busy = !self.patient || self.requests.in_flight() > 1;
            let situation = Situation { distance, useful, shared, busy };
            if choose(self.forced, situation) == Protocol::Heap {
                rx.fetches.start(id, offer, *located);
                self.busy = true;
                // Help is worth its two envelopes only for some bytes.
                if shared && bytes >= SHARE_MIN {
                    return self.share(from, offer, id, bytes);
                }
                return Ok(());
            }
        }
        self.grant(from, offer, id, bytes)
    }

    /// Asks the sender of a message to help with its copy, if that is the next to be fetched.
    pub(super) fn share(&mut self, from: usize, offer: u64, id: u64, bytes: u64) -> Result<()> {
        let Some(rx) = &mut self.peers[from].rx else { return Err(lost()) };
        let Some(share) = rx.fetches.share(&rx.area, id) else { return Ok(()) };
        self.tx(from)?.push(Outgoing::Share { offer, receive: id, share, bytes });
        self.flush(from)
    }

    /// The receiver of one of our offers asks for help.
    pub(super) fn shared(
        &mut self,
        from: usize,
        id: u64,
        share: u32,
        bytes: u64,
        place: Place,
    ) -> Result<()> {
        let heap = self.fabric.heap_bytes();
        let offered = |send: &&mut Send| {
            send.dest == from && send.stage == SendStage::Offered && send.label.bytes == bytes
        };
        // The answer to an offer comes after this in the ring: the offer is still open.
        let Some(send) = self.requests.send(id).filter(offered) else {
            return Err(broken(from, Violation("a share of a message that was not offered")));
        };
        let located = send.located;
        let Peer { tx: Some(tx), rx: Some(rx) } = &mut self.peers[from] else { return Err(lost()) };
        let to = rx.fetches.room(place, bytes, heap).map_err(|v| broken(from, v))?;
        // One that has just been withdrawn is helped no more.
        if located {
            tx.push_shared(Push { id, share, to, done: 0 });
            self.busy = true;
        }
        Ok(())
    }

    /// Has the sender pack an offered message of `bytes` bytes into the chunks.
    pub(super) fn grant(&mut self, from: usize, offer: u64, id: u64, bytes: u64) -> Result<()> {
        let Some(rx) = &mut self.peers[from].rx else { return Err(lost()) };
        rx.fetches.answer(offer);
        rx.expect(id);
        self.tx(from)?.push(Outgoing::Cts(offer, bytes));
        self.flush(from)
    }

    /// The sender has taken back the memory of an offer, and packs the message if it is wanted.
    pub(super) fn withdrawn(&mut self, from: usize, offer: u64) -> Result<()> {
        let Some(rx) = &mut self.peers[from].rx else { return Err(lost()) };
        let fetching = rx.fetches.withdraw(offer);
        let copying = rx.splits.withdraw(&rx.area, offer);
        let Some(id) = fetching.or(copying) else { return Ok(()) };
        let Some(receive) = self.requests.receive(id) else { return Err(lost()) };
        let Some((tag, bytes, _)) = receive.stream else { return Err(lost()) };
        receive.stream = Some((tag, bytes, 0));
        self.grant(from, offer, id, bytes)
    }

    /// Tells the sender that its message was matched and no more of it is wanted: the receive is
    /// too small, or everything came with a synchronous envelope.
    pub(super) fn refuse(&mut self, from: usize, offer: u64) -> Result<()> {
        if let Some(rx) = &mut self.peers[from].rx {
            rx.fetches.answer(offer);
        }
        self.tx(from)?.push(Outgoing::Cts(offer, 0));
        self.flush(from)
    }
}
