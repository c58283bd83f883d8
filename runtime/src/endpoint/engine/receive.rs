//! Receives: matched with a message that has come already, or posted for one that will come.
//!
//! `../engine.rs` has the state; messages that come after their receive are matched in `incoming.rs`.

use super::*;

/// A message that a matched probe has taken out of the queue: only its holder can receive it.
#[derive(Debug)]
pub struct Taken {
    context: u64,
    from: usize,
    message: Unexpected,
}

impl Taken {
    /// What the probe says about it.
    pub fn status(&self) -> Status {
        Status { source: self.from, tag: self.message.tag, bytes: self.message.bytes }
    }
}

/// What a receive that looks straight into a ring has found.
#[derive(Debug)]
pub enum Glance {
    /// Its message: it is complete.
    Done(Status),
    /// No message at all.
    Nothing,
    /// Something that has to go the long way.
    Other,
}

impl MessageEngine {
    /// Starts a receive of at most `capacity` packed bytes.
    ///
    /// # Safety
    ///
    /// - The layout's memory is writable and nobody else's until the receive is complete or
    ///   detached.
    /// - `capacity` is the packed size of its elements.
    ///
    /// # Errors
    /// A message longer than the receive; a broken protocol.
    pub unsafe fn receive(&mut self, posting: &Posting<'_>) -> Result<Operation> {
        let Posting { layout, capacity, context, source, tag } = *posting;
        let Some((from, message)) = self.matching.take(context, source, tag) else {
            let sink = Sink::Memory(layout.keep());
            let receive = Receive { context, source, sink, capacity, stream: None };
            let id = self.requests.open(Request::Receive(receive));
            self.matching.post(context, source, tag, id);
            return Ok(Operation::Pending(id));
        };
        // SAFETY: the caller promises what the callee asks for.
        unsafe { self.receive_taken(&layout, capacity, Taken { context, from, message }) }
    }

    /// Whether the next message from `from` is the first that a receive in this context could
    /// match, and nothing else is going on that waiting for it would hold up.
    #[inline]
    pub fn is_quiet(&mut self, context: u64, from: usize, tag: Tag) -> bool {
        self.is_idle()
            && self.peers[from].link.rx.is_some()
            && self.matching.look(context, Source::Rank(from), tag).is_none()
    }

    /// Receives the next message from `from`, the source of `posting`, straight out of the ring if it
    /// is there, short, and what the receive asks for; only while [`MessageEngine::is_quiet`].
    ///
    /// # Safety
    ///
    /// - The layout's memory is writable and nobody else's.
    /// - `capacity` is the packed size of its elements.
    ///
    /// # Errors
    /// A message longer than the receive; a broken protocol.
    #[inline]
    pub unsafe fn glance(&mut self, posting: &Posting<'_>, from: usize) -> Result<Glance> {
        let Posting { layout, capacity, context, tag, .. } = *posting;
        let Some(rx) = &mut self.peers[from].link.rx else { return Ok(Glance::Other) };
        let Some(words) = rx.ring.peek(&rx.area) else { return Ok(Glance::Nothing) };
        let envelope = Envelope::decode(&words).map_err(|v| broken(from, v))?;
        let (Envelope::Inline(label, _) | Envelope::Eager(label)) = &envelope else {
            return Ok(Glance::Other);
        };
        // What is to be compared goes the long way, too.
        if label.context != context || !tag.accepts(label.tag) || label.types != UNKNOWN {
            return Ok(Glance::Other);
        }
        let fits = label.bytes.min(capacity);
        let payload = match &envelope {
            Envelope::Inline(_, data) => {
                // SAFETY: the payload is a local copy at least as long as the message, of which
                // `fits` bytes are within the receive.
                unsafe { layout.unpack(0..fits, data.as_ptr()) };
                0
            }
            _ => {
                let len = label.bytes as usize;
                let offset = rx.ring.payload_offset::<Area>(len);
                // SAFETY: the length was checked against the eager maximum, and `place` keeps a
                // payload of that length within the area; it is ours until we advance, and no user
                // layout overlaps it.
                unsafe { layout.unpack(0..fits, rx.area.payload(offset)) };
                len
            }
        };
        if rx.ring.advance(&rx.area, payload) {
            self.fabric.ring(from);
        }
        let status = Status { source: from, tag: label.tag, bytes: label.bytes };
        received(status, capacity, None).map(Glance::Done)
    }

    /// Takes the message that a receive would match now out of the queue.
    pub fn take(&mut self, context: u64, source: Source, tag: Tag) -> Option<Taken> {
        let (from, message) = self.matching.take(context, source, tag)?;
        Some(Taken { context, from, message })
    }

    /// Starts the receive of a message that was taken out of the queue.
    ///
    /// # Safety
    /// As [`MessageEngine::receive`].
    ///
    /// # Errors
    /// As [`MessageEngine::receive`].
    pub unsafe fn receive_taken(
        &mut self,
        layout: &LayoutRef<'_>,
        capacity: u64,
        taken: Taken,
    ) -> Result<Operation> {
        let Taken { context, from, message } = taken;
        let source = Source::Rank(from);
        let status = Status { source: from, tag: message.tag, bytes: message.bytes };
        let types = message.types;
        let refusal = typecheck::refusal(self.check_types, layout, capacity, status, types);
        let fits = if refusal.is_some() { 0 } else { message.bytes.min(capacity) };
        match message.what {
            Arrived::Data(data, waiting) => {
                // SAFETY: `fits` is within the receive and within the data, which is on our heap.
                unsafe { layout.unpack(0..fits, data.as_ptr()) };
                if let Some(id) = waiting {
                    let (peer, mut work) = self.at(from);
                    peer.acknowledge(&mut work, id)?;
                }
                received(status, capacity, refusal).map(Operation::Done)
            }
            Arrived::Own(id) => {
                let Some(send) = self.requests.send(id) else {
                    return Err(lost("a matched operation"));
                };
                let sink = Sink::Memory(layout.keep());
                // SAFETY: `fits` is within both; a send's and a receive's memory do not overlap
                // (promise of the two calls).
                unsafe { copy(&send.supply, &sink, fits) };
                self.requests.complete(id, Ok(status));
                received(status, capacity, refusal).map(Operation::Done)
            }
            Arrived::Rts(offer, located) => {
                if message.bytes > capacity || refusal.is_some() {
                    let (peer, mut work) = self.at(from);
                    peer.refuse(&mut work, offer)?;
                    self.busy = true;
                    return received(status, capacity, refusal).map(Operation::Done);
                }
                let sink = Sink::Memory(layout.keep());
                let receive = Receive { context, source, sink, capacity, stream: None };
                let id = self.requests.open(Request::Receive(receive));
                let label = Label { context, tag: message.tag, bytes: message.bytes, types };
                let arrival = Arrival::Rts(offer, located);
                let result = self.accept(from, Matched { receive: id, label, arrival });
                self.pending_unless(result, id)
            }
        }
    }

    /// The message that a receive would match now.
    pub fn probe(&mut self, context: u64, source: Source, tag: Tag) -> Option<Status> {
        let (from, message) = self.matching.look(context, source, tag)?;
        Some(Status { source: from, tag: message.tag, bytes: message.bytes })
    }
}
