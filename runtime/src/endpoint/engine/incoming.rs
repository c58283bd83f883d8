//! Progress: one turn takes the envelopes that have arrived and moves queues and streams, all a little.
//!
//! `progress.rs` calls [`MessageEngine::progress`] under its lock. Messages that come in are matched here
//! (`deliver`) or in `offers.rs`; a turn never waits, and ends after a bounded amount of work.

use super::*;

impl MessageEngine {
    /// One turn: takes envelopes, moves queues and streams, all a little. True when something
    /// moved.
    ///
    /// # Errors
    /// Another rank broke the protocol; out of memory.
    #[inline]
    pub fn progress(&mut self) -> Result<bool> {
        if self.peers.len() == 1 {
            return Ok(false);
        }
        let mut moved = false;
        if let Some(connects) = self.fabric.connected(self.connects) {
            self.admit(connects)?;
        }
        for i in 0..self.readable.len() {
            moved |= self.read(self.readable[i])?;
        }
        if self.busy {
            moved |= self.stream()?;
        }
        Ok(moved)
    }

    /// Uses a moment in which nothing moved for what makes the next message faster. False if there is
    /// nothing of that kind to do.
    #[inline]
    pub fn prepare(&mut self) -> bool {
        if self.preparing {
            let tx = self.peers.get_mut(self.latest).and_then(|peer| peer.tx.as_mut());
            self.preparing = tx.is_some_and(Tx::prepare);
        }
        self.preparing
    }

    #[cold]
    pub(super) fn admit(&mut self, connects: u32) -> Result<()> {
        self.connects = connects;
        for from in 0..self.peers.len() {
            if self.peers[from].rx.is_none()
                && let Some(area) = self.fabric.written_by(from)?
            {
                self.peers[from].rx = Some(Rx::new(area, from, self.fabric.window()));
                self.readable.push(from);
            }
        }
        Ok(())
    }

    pub(super) fn stream(&mut self) -> Result<bool> {
        let (mut moved, mut busy) = (false, false);
        let forced = self.forced;
        for peer in &mut self.peers {
            if let Some(rx) = &mut peer.rx
                && rx.has_work()
            {
                moved |= rx.drain(&self.fabric, &mut self.requests)?;
                if rx.fetches.has_work()
                    && let Some(tx) = &mut peer.tx
                {
                    let (copied, answer) = rx.fetch(&mut self.requests)?;
                    moved |= copied;
                    if let Some(offer) = answer {
                        tx.push(Outgoing::Cts(offer, 0));
                    }
                }
                if rx.splits.has_work()
                    && let Some(tx) = &mut peer.tx
                {
                    let step = rx.copy(&self.fabric, &mut self.requests)?;
                    moved |= step != Step::Waiting;
                    match step {
                        Step::Waiting | Step::Moved => {}
                        Step::Begin(offer, number, to) => {
                            tx.push(Outgoing::Push(offer, number, to));
                        }
                        Step::Done(offer) => {
                            rx.fetches.answer(offer);
                            tx.push(Outgoing::Cts(offer, 0));
                        }
                        Step::Refused(id, offer) => {
                            let Some(receive) = self.requests.receive(id) else {
                                return Err(lost());
                            };
                            let Some((tag, bytes, _)) = receive.stream else {
                                return Err(lost());
                            };
                            receive.stream = Some((tag, bytes, 0));
                            rx.fetches.answer(offer);
                            rx.expect(id);
                            tx.push(Outgoing::Cts(offer, bytes));
                        }
                    }
                }
                busy |= rx.has_work();
            }
            if let Some(tx) = &mut peer.tx
                && tx.has_work()
            {
                moved |= tx.flush(&self.fabric, &mut self.requests, self.eager_limit, forced)?;
                let filled = tx.fill(&self.fabric, &mut self.requests, &mut self.stage)?;
                self.preparing |= filled;
                moved |= filled;
                moved |= tx.copy(&self.fabric, &mut self.requests);
                busy |= tx.has_work();
            }
            if let Peer { tx: Some(tx), rx: Some(rx) } = peer
                && tx.has_pushes()
            {
                match rx.fetches.heap(&self.fabric, tx.rank()) {
                    // SAFETY: all of that rank's heap is mapped there.
                    Some(heap) => unsafe {
                        moved |= tx.help(&self.fabric, &mut self.requests, heap);
                    },
                    None => tx.drop_pushes(),
                }
                busy |= tx.has_pushes();
            }
        }
        self.busy = busy;
        Ok(moved)
    }

    /// Takes envelopes out of the ring of `from`.
    #[inline]
    pub(super) fn read(&mut self, from: usize) -> Result<bool> {
        for taken in 0..ENVELOPES_PER_TURN {
            let Some(rx) = &self.peers[from].rx else { return Ok(false) };
            let Some(words) = rx.ring.peek(&rx.area) else { return Ok(taken > 0) };
            let area = rx.area;
            let mut payload = 0;
            match Envelope::decode(&words).map_err(|v| broken(from, v))? {
                // SAFETY: the inline payload is a local copy, at least as long as the message.
                Envelope::Inline(label, data) => unsafe {
                    self.deliver(from, label, data.as_ptr(), None)?;
                },
                Envelope::Eager(label) => {
                    payload = label.bytes as usize;
                    let offset = rx.ring.payload_offset::<crate::transport::fabric::Area>(payload);
                    // SAFETY: the length was checked against the eager maximum, and `place` keeps
                    // a payload of that length within the area; the bytes are ours until we
                    // advance.
                    unsafe { self.deliver(from, label, area.payload(offset), None)? };
                }
                Envelope::Synchronous(label, id) => {
                    payload = label.bytes as usize;
                    let offset = rx.ring.payload_offset::<crate::transport::fabric::Area>(payload);
                    // SAFETY: as for `Eager`; the way of the answer comes before the match, so
                    // that without memory for it the message stays in the ring.
                    unsafe {
                        self.tx(from)?;
                        self.deliver(from, label, area.payload(offset), Some(id))?;
                    }
                }
                Envelope::Rts(label, id, place) => self.offered(from, label, id, place)?,
                Envelope::Define { number, bytes } => {
                    payload = bytes as usize;
                    let offset = rx.ring.payload_offset::<crate::transport::fabric::Area>(payload);
                    // A copy, which the sender cannot change while it is decoded.
                    let mut encoding = buffer(bytes)?;
                    // SAFETY: the length was checked against the eager maximum, as for `Eager`;
                    // the new buffer has as many bytes.
                    unsafe {
                        std::ptr::copy_nonoverlapping(
                            area.payload(offset).cast_const(),
                            encoding.as_mut_ptr(),
                            payload,
                        );
                    }
                    let Some(rx) = &mut self.peers[from].rx else { return Err(lost()) };
                    rx.fetches.define(number, &encoding).map_err(|v| broken(from, v))?;
                }
                Envelope::Share { id, share, bytes, place } => {
                    self.shared(from, id, share, bytes, place)?;
                }
                Envelope::Withdraw { id } => {
                    self.tx(from)?;
                    self.withdrawn(from, id)?;
                }
                Envelope::Push { id, number, to } => self.pushed(from, id, number, to)?,
                Envelope::Cts { id, bytes } => self.granted(from, id, bytes)?,
            }
            let Some(rx) = &mut self.peers[from].rx else { return Err(lost()) };
            if rx.ring.advance(&area, payload) {
                self.fabric.ring(from);
            }
        }
        Ok(true)
    }

    /// An eager message has arrived; its sender may be waiting to hear of the match.
    ///
    /// # Safety
    ///
    /// - `data` is valid for reads of `label.bytes` bytes.
    pub(super) unsafe fn deliver(
        &mut self,
        from: usize,
        label: Label,
        data: *const u8,
        waiting: Option<u64>,
    ) -> Result<()> {
        let Some(id) = self.matching(label.context).arrive(from, label.tag) else {
            let mut copied = buffer(label.bytes)?;
            // SAFETY: the source is the caller's promise, the new buffer has as many bytes.
            unsafe { std::ptr::copy_nonoverlapping(data, copied.as_mut_ptr(), copied.len()) };
            let what = Arrived::Data(copied, waiting);
            self.matching(label.context).keep(from, label, what);
            return Ok(());
        };
        let Some(receive) = self.requests.receive(id) else { return Err(lost()) };
        let capacity = receive.capacity;
        let status = Status { source: from, tag: label.tag, bytes: label.bytes };
        let refusal = receive.refusal(self.check_types, status, label.types);
        if refusal.is_none() {
            // SAFETY: the range is within the message and within the receive; the data lies in a
            // local or in shared memory, neither of which a user layout overlaps.
            unsafe { receive.sink.unpack(0..label.bytes.min(capacity), data) };
        }
        self.requests.complete(id, arrived(status, capacity, refusal));
        match waiting {
            Some(id) => self.refuse(from, id),
            None => Ok(()),
        }
    }
}
