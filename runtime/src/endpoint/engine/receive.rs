//! Receives. A new receive is matched with a message that has already arrived, or it is posted for a message
//! that will arrive.
//!
//! `../engine.rs` has the state of the engine. `incoming.rs` matches messages that arrive after their
//! receives were posted. `short.rs` has the short messages that never wait in a queue.

use super::*;

/// A message that a matched probe has taken out of the queue. Only the holder of this value can receive it.
#[derive(Debug)]
pub struct Taken {
    context: u64,
    from: Process,
    message: Unexpected,
}

impl Taken {
    /// Returns the status of the message, which the probe reports.
    pub fn status(&self) -> Status {
        Status { source: self.from.index(), tag: self.message.tag, bytes: self.message.bytes }
    }
}

impl MessageEngine {
    /// Starts a receive of at most `capacity` packed bytes.
    ///
    /// # Safety
    ///
    /// - The layout's memory is writable, and nobody else uses it until the receive is complete or detached.
    /// - `capacity` is the packed size of the layout's elements.
    ///
    /// # Errors
    /// Returns `ErrorKind::Truncated` if the message is longer than the receive, `ErrorKind::Other` if another rank
    /// broke the protocol, and `ErrorKind::NoMemory` if memory ran out. Also returns the error of `typecheck::refusal`
    /// if the receive must refuse the message, for example `ErrorKind::Type` if the types differ.
    pub unsafe fn receive(&mut self, posting: &Posting<'_>) -> Result<Operation> {
        // SAFETY: the caller guarantees both conditions of `# Safety` for all bytes of the layout.
        unsafe { self.receive_from(posting, None) }
    }

    /// Starts a receive like [`receive`](Self::receive), into the packed bytes of the layout from `first` on. The
    /// capacity of `posting` is the number of these bytes. If `first` is `None`, the receive takes all bytes.
    ///
    /// # Safety
    ///
    /// - The memory of the bytes is writable, and nobody else uses it until the receive is complete or detached.
    /// - `first` plus the capacity is at most the packed size of the layout's elements, and equal to it without
    ///   `first`.
    ///
    /// # Errors
    /// Returns the errors of [`receive`](Self::receive).
    #[inline]
    pub unsafe fn receive_from(
        &mut self,
        posting: &Posting<'_>,
        first: Option<u64>,
    ) -> Result<Operation> {
        let Posting { layout, capacity, context, source, tag } = *posting;
        let room = Room { layout, first };
        if !self.matching.none_waits() {
            // A message that has left the queue must not be lost.
            self.requests.make_room()?;
        }
        let Some((from, message)) = self.next(context, source, tag) else {
            if let (Sender::Process(from), None) = (source, first) {
                // SAFETY: the receive takes all bytes, and the caller guarantees both conditions of `# Safety`.
                // `receive_short` has the same conditions.
                if let Glance::Done(status) = unsafe { self.receive_short(posting, from)? } {
                    return Ok(Operation::Done(status));
                }
            }
            self.requests.make_room()?;
            let receive = Receive { context, source, sink: room.keep(), capacity, stream: None };
            let id = self.requests.open(Request::Receive(receive));
            if let Err(error) = self.matching.make_room_to_post(id) {
                self.requests.cancel(id);
                return Err(error);
            }
            self.matching.post(context, source, tag, id);
            return Ok(Operation::Pending(id));
        };
        // SAFETY: the caller guarantees both conditions of `# Safety` for `room` and `capacity`.
        // `receive_into` has the same conditions.
        unsafe { self.receive_into(room, capacity, Taken { context, from, message }) }
    }

    /// Finds the message that a receive would match now, removes it from the queue of unexpected
    /// messages, and returns it. Returns `None` if there is no such message.
    pub fn take(&mut self, context: u64, source: Sender, tag: Tag) -> Option<Taken> {
        let (from, mut message) = self.next(context, source, tag)?;
        // If the program drops the message without receiving it, its data goes with it.
        if let Arrived::Fragments(number, _) = message.what
            && let Some(data) = self.collection.take_whole(number)
        {
            message.what = Arrived::Data(data, None);
        }
        Some(Taken { context, from, message })
    }

    /// Removes the first message that matches a receive, and claims it, so that its sender cannot recall it
    /// any more. Drops the messages before it that their senders have recalled.
    #[inline]
    fn next(&mut self, context: u64, source: Sender, tag: Tag) -> Option<(Process, Unexpected)> {
        loop {
            let (from, mut message) = self.matching.take(context, source, tag)?;
            if from.index() != self.fabric.rank() {
                self.taken(from.index(), &message.what);
            }
            let is_ours = match message.what.offer() {
                None => true,
                Some(offer) => self.peers[from.index()].claim(*offer),
            };
            if is_ours {
                let Unexpected { tag, bytes, types, .. } = message;
                tell_match(from, &Label { context, tag, bytes, types }, true);
                return Some((from, message));
            }
        }
    }

    /// Starts the receive of a message that `take` has taken out of its queue.
    ///
    /// # Safety
    ///
    /// - The layout's memory is writable, and nobody else uses it until the receive is complete or detached.
    /// - `capacity` is the packed size of the layout's elements.
    ///
    /// # Errors
    /// Returns the errors of [`MessageEngine::receive`].
    pub unsafe fn receive_taken(
        &mut self,
        layout: &Elements<&Plan>,
        capacity: u64,
        taken: Taken,
    ) -> Result<Operation> {
        // SAFETY: the caller guarantees both conditions of `# Safety`. `receive_into` has the same conditions.
        unsafe { self.receive_into(Room { layout: *layout, first: None }, capacity, taken) }
    }

    /// Starts the receive of a message that `take` has taken out of its queue.
    ///
    /// # Safety
    ///
    /// - The memory of the room is writable, and nobody else uses it until the receive is complete or detached.
    /// - The room has `capacity` packed bytes.
    ///
    /// # Errors
    /// Returns the errors of [`MessageEngine::receive`].
    unsafe fn receive_into(
        &mut self,
        room: Room<'_>,
        capacity: u64,
        taken: Taken,
    ) -> Result<Operation> {
        let Taken { context, from, message } = taken;
        let (source, from) = (Sender::Process(from), from.index());
        let status = Status { source: from, tag: message.tag, bytes: message.bytes };
        let types = message.types;
        // Nobody compares the types of a part of a message.
        let check = self.check_types && room.first.is_none();
        let refusal = typecheck::refusal(check, &room.layout, capacity, status, types);
        let fits = if refusal.is_some() { 0 } else { message.bytes.min(capacity) };
        match message.what {
            Arrived::Data(data, waiting) => {
                // SAFETY: `fits` is at most `capacity` and at most the number of bytes in `data`. `data` is
                // memory of this process, so no user layout overlaps it.
                unsafe { room.unpack(0..fits, data.bytes().as_ptr()) };
                self.buffers.give_back(data);
                if let Some(offer) = waiting {
                    self.with_peer(from, |peer, work| peer.acknowledge(work, offer.id))?;
                }
                received(status, capacity, refusal).map(Operation::Done)
            }
            // SAFETY: the caller guarantees both conditions of `# Safety` for `room` and `capacity`.
            // `receive_fragments` has the same conditions.
            Arrived::Fragments(number, _) => unsafe {
                self.receive_fragments((room, capacity), (number, context, status), refusal)
            },
            Arrived::Own(id) => {
                let Some(send) = self.requests.send(id) else {
                    return Err(lost("a matched send", id));
                };
                let sink = room.keep();
                // SAFETY: `fits` is at most the packed size of the send and of the receive. The memory of
                // the send and the memory of the receive are valid and do not overlap (conditions of `send`
                // and of this function).
                unsafe { copy(&send.supply, &sink, fits) };
                self.requests.complete(id, Ok(status));
                received(status, capacity, refusal).map(Operation::Done)
            }
            Arrived::Rts(offer, located) => {
                if message.bytes > capacity || refusal.is_some() {
                    self.with_peer(from, |peer, work| peer.refuse(work, offer.id))?;
                    return received(status, capacity, refusal).map(Operation::Done);
                }
                let receive =
                    Receive { context, source, sink: room.keep(), capacity, stream: None };
                let id = self.requests.open(Request::Receive(receive));
                let label = Label { context, tag: message.tag, bytes: message.bytes, types };
                let arrival = Arrival::Rts(offer.id, offer.shape, located);
                let result = self.accept(from, Matched { receive: id, label, arrival });
                self.pending_unless(result, id).map(Operation::Pending)
            }
        }
    }

    /// Returns the status of the message that a receive would match now, or `None` if there is no such
    /// message.
    pub fn probe(&mut self, context: u64, source: Sender, tag: Tag) -> Option<Status> {
        loop {
            let (from, message) = self.matching.look_mut(context, source, tag)?;
            let status = Status { source: from.index(), tag: message.tag, bytes: message.bytes };
            // The program may receive exactly this message next, so its sender must not recall it any more.
            let Some(offer) = message.what.offer() else { return Some(status) };
            if self.peers[from.index()].claim(*offer) {
                offer.recall = None;
                return Some(status);
            }
            if let Some((from, message)) = self.matching.take(context, source, tag) {
                self.taken(from.index(), &message.what);
            }
        }
    }
}
