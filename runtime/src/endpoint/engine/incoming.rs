//! Progress: in one turn the engine takes envelopes that have arrived (at most `ENVELOPES_PER_TURN` from each ring),
//! and moves a bounded amount of queued and streamed data.
//!
//! `progress.rs` calls [`MessageEngine::progress`] under its lock. This file matches arriving messages and passes all
//! other envelopes to `transport/peer.rs`. A turn ends after a bounded amount of work. It never waits, except for the
//! end of one piece that another rank is copying, if this rank has to stop that copy.

use super::fragments::Fragment;
use super::*;

/// What happens to a short message, or to one in fragments, that no receive matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unmatched {
    /// This rank copies the message out of the ring.
    Keep,
    /// The message stays in the ring, and so do all messages behind it.
    Leave,
}

/// The receive that an arriving message matches.
enum Found {
    /// The receive with this request id. The message is claimed.
    Receive(u64),
    /// No receive matches the message.
    Nobody,
    /// The sender has recalled the message, so no receive may take it.
    Recalled,
}

impl MessageEngine {
    /// Runs one turn: takes envelopes out of the rings, and moves a bounded amount of queued and streamed
    /// data. Returns true if anything moved.
    ///
    /// # Errors
    /// Returns `ErrorKind::Other` if another rank broke the protocol, and `ErrorKind::NoMemory` if
    /// memory ran out.
    #[inline]
    pub fn progress(&mut self) -> Result<bool> {
        let mut moved = false;
        if let Some(connects) = self.fabric.connected(self.connects) {
            self.admit(connects)?;
        }
        moved |= self.read_all(Unmatched::Keep)?;
        if self.busy {
            moved |= self.advance()?;
        }
        Ok(moved)
    }

    /// Runs the turn of a call that starts an operation and does not wait. If data has to be moved or a
    /// rank has connected, this is a whole turn. Otherwise the turn takes short messages out of the rings
    /// only as long as they match receives. The program may post the receive of the next message soon,
    /// and a message that is still in the ring then is copied only once. At the latest, a call that
    /// waits, tests or probes takes the message out of the ring.
    ///
    /// # Errors
    /// Returns the errors of [`MessageEngine::progress`].
    #[inline]
    pub fn progress_at_start(&mut self) -> Result<bool> {
        if self.busy || self.fabric.connected(self.connects).is_some() {
            return self.progress();
        }
        self.read_all(Unmatched::Leave)
    }

    /// Reads the rings of all ranks. If a source must get a result first (`Requests::set_prompt`), stops there; the
    /// next call begins with the ring that follows, so that no rank has to wait for ever.
    #[inline]
    fn read_all(&mut self, unmatched: Unmatched) -> Result<bool> {
        let (mut moved, rings) = (false, self.readable.len());
        for i in 0..rings {
            let at = self.first_ring + i;
            let at = if at < rings { at } else { at - rings };
            moved |= self.read(self.readable[at], unmatched)?;
            if self.requests.stops() {
                self.requests.take_stop();
                self.first_ring = if at + 1 < rings { at + 1 } else { 0 };
                break;
            }
        }
        Ok(moved)
    }

    /// Fetches cache lines for the next message into this core's cache. The caller calls this function
    /// after a turn in which nothing moved. Returns false if there are no lines to fetch.
    #[inline]
    pub fn prepare(&mut self) -> bool {
        if self.preparing {
            self.preparing = self.peers.get_mut(self.latest).is_some_and(Peer::prepare);
        }
        self.preparing
    }

    #[cold]
    pub(super) fn admit(&mut self, connects: u32) -> Result<()> {
        for from in 0..self.fabric.writers() {
            if self.peers.get(from).is_some_and(|peer| peer.link.rx.is_some()) {
                continue;
            }
            let Some(area) = self.fabric.written_by(from)? else { continue };
            self.meet(from);
            self.peers[from].admit(area);
            self.readable.push(from);
        }
        // Store the number of connections only after the loop. If an area cannot be mapped, the loop ends
        // early, and the next turn tries again because it still finds the old number.
        self.connects = connects;
        Ok(())
    }

    fn advance(&mut self) -> Result<bool> {
        let (mut moved, mut busy) = (false, false);
        let mut work = Work {
            fabric: &self.fabric,
            requests: &mut self.requests,
            stage: &mut self.stage,
            tuning: &mut self.tuning,
            traffic: &mut self.traffic,
            terms: self.terms,
            busy: true,
        };
        for peer in self.peers.iter_mut().filter(|peer| peer.has_work()) {
            moved |= peer.advance(&mut work)?;
            busy |= peer.has_work();
        }
        self.preparing |= moved;
        self.busy = busy;
        Ok(moved)
    }

    /// Takes envelopes out of the ring of `from`. `unmatched` says what happens to a short message that no receive
    /// matches. Returns true if it has taken at least one envelope.
    #[inline]
    pub(super) fn read(&mut self, from: usize, unmatched: Unmatched) -> Result<bool> {
        for taken in 0..ENVELOPES_PER_TURN {
            let Some(rx) = &mut self.peers[from].link.rx else { return Ok(false) };
            let Some(words) = rx.next() else { return Ok(taken > 0) };
            let area = rx.area;
            match self.deliver_short(from, &words, unmatched)? {
                Some(true) if self.requests.stops() => return Ok(true),
                Some(true) => continue,
                Some(false) => {}
                None => return Ok(taken > 0),
            }
            let Some(rx) = &mut self.peers[from].link.rx else {
                return Err(lost_at("the link from", from));
            };
            let mut payload = 0;
            match Envelope::decode(&words).map_err(|v| broken(from, v.of(words)))? {
                Envelope::Inline(label, data) => {
                    // SAFETY: `data` is a local array of `INLINE_MAX` bytes, `decode` has checked that the
                    // message is not longer, and no user layout overlaps a local array.
                    let data = unsafe { Payload::new(data.as_ptr(), None) };
                    self.deliver(from, label, data)?;
                }
                Envelope::Eager(label) => {
                    payload = label.bytes as usize;
                    let offset = rx.ring.payload_offset(payload);
                    // SAFETY: `decode` has checked that the length is at most the eager maximum, and
                    // `payload_offset` places such a payload within the area. The sender reuses the bytes
                    // only after this rank has advanced the ring below. No user layout overlaps the area.
                    let data = unsafe { Payload::new(area.payload(offset), None) };
                    self.deliver(from, label, data)?;
                }
                Envelope::First(label, len, method) => {
                    let matches = || self.matching.find(Process::new(from), &label).is_some();
                    if unmatched == Unmatched::Leave && !matches() {
                        return Ok(taken > 0);
                    }
                    payload = len as usize;
                    let offset = rx.ring.payload_offset(payload);
                    // SAFETY: `decode` has checked that the fragment is at most as long as the eager maximum, and
                    // `payload_offset` places such a payload within the area. The sender reuses the bytes only after
                    // this rank has advanced the ring below. Neither user layouts nor private memory overlap the area.
                    let fragment = unsafe { Fragment::new(area.payload(offset), len) };
                    self.first_fragment(from, label, fragment, method)?;
                }
                Envelope::Fragment(len) => {
                    payload = len as usize;
                    let offset = rx.ring.payload_offset(payload);
                    // SAFETY: as for `First`: the fragment lies within the area, stays unchanged until the ring
                    // advances, and overlaps neither user layouts nor private memory.
                    let fragment = unsafe { Fragment::new(area.payload(offset), len) };
                    self.fragment(from, fragment)?;
                }
                Envelope::Synchronous(label, offer) => {
                    payload = label.bytes as usize;
                    let offset = rx.ring.payload_offset(payload);
                    // Contact the sender before the match, so that this rank can send the ACK later. If
                    // there is no memory for the contact, the message must stay in the ring.
                    self.peers[from].link.contact(&self.fabric)?;
                    // SAFETY: the payload of a synchronous message lies within the area, for the same
                    // reasons as for `Eager`. The sender reuses the bytes only after the ring advances
                    // below, and no user layout overlaps them.
                    let data = unsafe { Payload::new(area.payload(offset), Some(offer)) };
                    self.deliver(from, label, data)?;
                }
                Envelope::Rts(label, offer, place) => self.offered(from, label, offer, place)?,
                Envelope::Recall(label, offer) => {
                    let is_this = |what: &Arrived| what.is_offer(offer.id);
                    if let Some(gone) = self.matching.discard(Process::new(from), &label, is_this) {
                        self.taken(from, &gone.what);
                    }
                    self.peers[from].recalled(offer)?;
                }
                Envelope::Define { number, bytes } => {
                    payload = bytes as usize;
                    let offset = rx.ring.payload_offset(payload);
                    // Decode a private copy, because the sender could change the bytes in the area during
                    // the decoding.
                    let mut encoding = buffer(bytes)?;
                    // SAFETY: `decode` has checked that `bytes` is at most the eager maximum, and
                    // `payload_offset` places such a payload within the area. `encoding` is a new buffer of
                    // `bytes` bytes.
                    unsafe {
                        contiguous::copy(
                            area.payload(offset).cast_const(),
                            encoding.as_mut_ptr(),
                            payload,
                        );
                    }
                    let Some(rx) = &mut self.peers[from].link.rx else {
                        return Err(lost_at("the link from", from));
                    };
                    rx.known.define(number, &encoding).map_err(|v| broken(from, v))?;
                }
                answer => {
                    self.with_peer(from, |peer, work| peer.hear(work, &answer))?;
                }
            }
            let Some(rx) = &mut self.peers[from].link.rx else {
                return Err(lost_at("the link from", from));
            };
            if rx.ring.advance(&area, payload) {
                self.fabric.ring(from);
            }
            if self.requests.stops() {
                break;
            }
        }
        Ok(true)
    }

    /// Delivers a short message to the receive that it matches. If there is no such receive, keeps the
    /// message in a queue. The sender may be waiting for an ACK.
    #[inline]
    fn deliver(&mut self, from: usize, label: Label, payload: Payload) -> Result<()> {
        let receive = match payload.waiting {
            None => self.matching.arrive(Process::new(from), &label),
            Some(offer) => match self.meet_receive(from, &label, offer) {
                Found::Receive(receive) => Some(receive),
                Found::Nobody => None,
                Found::Recalled => return Ok(()),
            },
        };
        if receive.is_some() {
            tell_match(Process::new(from), &label, false);
        }
        let Some(receive) = receive else {
            self.matching.make_room_to_keep()?;
            let len = label.bytes as usize;
            // SAFETY: the payload has all `label.bytes` bytes of the message (first condition of
            // `Payload::new`), and `to` is new memory with room for this number of bytes.
            let copy = |to| unsafe { contiguous::copy(payload.data(), to, len) };
            let kept = Kept::new(label.bytes, &mut self.buffers, copy)?;
            self.keep(from, label, Arrived::Data(kept, payload.waiting));
            return Ok(());
        };
        if let Some(refusal) = self.refusal(from, &label, receive)? {
            self.requests.complete(receive, Err(refusal));
            if let Some(offer) = payload.waiting {
                self.with_peer(from, |peer, work| peer.acknowledge(work, offer.id))?;
            }
            return Ok(());
        }
        self.accept(from, Matched { receive, label, arrival: Arrival::Payload(payload) })
    }

    /// Queues a message that no receive has matched. If the messages of `from` occupy too much memory now, tells
    /// this to `from`.
    #[inline]
    pub(super) fn keep(&mut self, from: usize, label: Label, what: Arrived) {
        if let Some(credit) = self.ledger.add(from, CreditLedger::size(&what)) {
            self.peers[from].grant_credit(credit);
        }
        self.matching.keep(Process::new(from), label, what);
    }

    /// Subtracts a message of `from` that has left the queue. Tells each sender for whose messages there is more
    /// room now.
    #[inline]
    pub(super) fn taken(&mut self, from: usize, what: &Arrived) {
        let freed = self.ledger.subtract(from, CreditLedger::size(what));
        if freed != Freed::Nobody {
            self.free(from, freed);
        }
    }

    #[cold]
    fn free(&mut self, from: usize, freed: Freed) {
        let senders = match freed {
            Freed::Nobody => 0..0,
            Freed::This => from..from + 1,
            Freed::All => 0..self.ledger.senders(),
        };
        for sender in senders {
            if let Some(credit) = self.ledger.free(sender) {
                self.peers[sender].grant_credit(credit);
            }
        }
    }

    /// Removes the receive that a message from `from` matches, and claims the message for it, so that the
    /// sender cannot recall the message any more.
    fn meet_receive(&mut self, from: usize, label: &Label, offer: Offer) -> Found {
        let Some(at) = self.matching.find(Process::new(from), label) else { return Found::Nobody };
        if !self.peers[from].claim(offer) {
            return Found::Recalled;
        }
        Found::Receive(self.matching.remove(at))
    }

    /// Handles the RTS of a message that waits at the rank `from`.
    fn offered(
        &mut self,
        from: usize,
        label: Label,
        offer: Offer,
        place: Option<Place>,
    ) -> Result<()> {
        // Contact the sender before the match, so that this rank can answer the RTS later. If there is no
        // memory for the contact, the RTS must stay in the ring and the receive in its queue.
        self.matching.make_room_to_keep()?;
        let peer = &mut self.peers[from];
        peer.link.contact(&self.fabric)?;
        let located = peer.locate(&self.fabric, (offer.id, label.bytes), place)?;
        let receive = match self.meet_receive(from, &label, offer) {
            Found::Receive(receive) => {
                tell_match(Process::new(from), &label, false);
                receive
            }
            Found::Nobody => {
                self.keep(from, label, Arrived::Rts(offer, located));
                return Ok(());
            }
            Found::Recalled => return Ok(()),
        };
        let refusal = self.refusal(from, &label, receive)?;
        let capacity = self.requests.receive(receive).map_or(0, |receive| receive.capacity);
        if refusal.is_some() || label.bytes > capacity {
            let status = Status { source: from, tag: label.tag, bytes: label.bytes };
            self.requests.complete(receive, received(status, capacity, refusal));
            return self.with_peer(from, |peer, work| peer.refuse(work, offer.id));
        }
        self.accept(
            from,
            Matched { receive, label, arrival: Arrival::Rts(offer.id, offer.shape, located) },
        )
    }

    /// Checks the types in `label`, the label of a message from `from`. Returns the error if the receive
    /// must refuse the message because of its types, and otherwise `None`.
    #[inline]
    pub(super) fn refusal(
        &mut self,
        from: usize,
        label: &Label,
        receive: u64,
    ) -> Result<Option<Error>> {
        if label.types == UNKNOWN {
            return Ok(None);
        }
        let Some(receive) = self.requests.receive(receive) else {
            return Err(lost("a matched receive", receive));
        };
        let status = Status { source: from, tag: label.tag, bytes: label.bytes };
        Ok(receive.refusal(self.check_types, status, label.types))
    }

    /// Passes a matched message, which its receive does not refuse, to the peer of the message's sender.
    #[inline]
    pub(super) fn accept(&mut self, from: usize, matched: Matched) -> Result<()> {
        if matches!(matched.arrival, Arrival::Payload(Payload { waiting: None, .. })) {
            // The message completes at once and queues no answer, so this call need not go through
            // `with_peer`.
            let (peer, mut work) = self.at(from);
            return peer.accept(&mut work, matched);
        }
        self.with_peer(from, |peer, work| peer.accept(work, matched))
    }
}
