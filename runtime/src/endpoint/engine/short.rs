//! The way of a short message from its sender to its receiver. Most messages need only the functions of this file,
//! which stand here in the order of the steps. A message is short if its payload fits in a slot of the ring or is an
//! eager payload beside the slots.
//!
//! 1. The sender packs the message straight into the ring ([`MessageEngine::send_short`]), if the ring has room, no
//!    earlier message to the same rank waits for room, and the receiver accepts payloads. Then the send is complete
//!    and needs no request.
//! 2. The receiver finds the message at the head of the ring. Either a receive that was posted earlier matches the
//!    message ([`MessageEngine::deliver_short`], called by every turn of progress), or the program has just started
//!    the receive and no earlier receive matches the message ([`MessageEngine::receive_short`] and
//!    [`MessageEngine::poll_briefly`]). The receiver unpacks the message straight out of the ring into the memory of
//!    the receive.
//! 3. In the same step the receiver frees the slot ([`MessageEngine::free_head`]), and completes the receive. The
//!    receiver returns credits to the sender for a quarter of the ring at a time.
//!
//! All other messages take the general way: `../engine.rs` sends them, `incoming.rs` and `receive.rs` match them, and
//! the protocols in `transport/` move them. If a function of this file cannot handle a message, it sends or takes
//! nothing, and its caller takes the general way, which also reports the errors of malformed envelopes.

use super::incoming::Unmatched;
use super::*;
use crate::shm::pair::LINE;
use crate::shm::ring::ENVELOPE_WORDS;
use crate::transport::choice::short_choice::{LEAST, answer};
use crate::transport::link::area::Area;
use crate::transport::link::{Rx, Tx};
use std::ops::Range;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// Maximum number of bytes of the following payload that a receiver fetches into its cache while it handles a message.
/// In a longer payload, the processor itself notices that the lines are read in order, and fetches the rest.
const FETCHED: usize = 4 * LINE;

/// The result of a receive that looks directly into a ring (`poll_briefly` or `receive_short`).
#[derive(Debug)]
pub enum Glance {
    /// The next message in the ring matched the receive, which is now complete.
    Done(Status),
    /// The next message in the ring matched the receive, which is pending under this number, because only some
    /// fragments of the message have arrived.
    Started(u64),
    /// The ring contains no envelope.
    Nothing,
    /// The receive must take the general way, because the next envelope in the ring is not a short message that
    /// this receive may take, or because this rank has not mapped a ring of the source yet.
    Other,
}

/// The result of [`MessageEngine::send_packed`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packed {
    /// The message is in the ring.
    Sent,
    /// The ring has no room now, or earlier messages wait for room.
    Full,
    /// The ring will never have room for so long a message.
    TooLong,
}

/// The head of a ring: a short message that has arrived and that no receive has taken yet.
struct Head {
    label: Label,
    /// The payload, if the slot contains it.
    inline: Option<[u8; INLINE_MAX]>,
    /// The word of the envelope with the mark of the sender, if the message is long enough.
    mark: u64,
}

impl Head {
    /// Returns the next message of a ring, whose envelope has the words `words`. Returns `None` if the message is
    /// not short or the envelope is malformed.
    #[inline(always)]
    fn of(words: &[u64; ENVELOPE_WORDS]) -> Option<Self> {
        Envelope::short(words).map(|(label, inline)| Self { label, inline, mark: words[3] })
    }

    /// Returns the status of the message, whose sender is `from`.
    #[inline(always)]
    fn status(&self, from: usize) -> Status {
        Status { source: from, tag: self.label.tag, bytes: self.label.bytes }
    }

    /// Unpacks the first bytes of the message to the packed bytes `to` of `layout`.
    ///
    /// # Safety
    ///
    /// - The message is the next one of the ring of `rx`, and `to` has at most its length.
    /// - `to` lies within the packed bytes of the layout's elements. Their memory is writable, and nobody else
    ///   uses it until the call returns.
    #[inline(always)]
    unsafe fn unpack(&self, rx: &Rx, layout: &Elements<&Plan>, to: Range<u64>) {
        match &self.inline {
            Some(data) => {
                // SAFETY: `data` is a local array that is at least as long as the message (`Envelope::short` has
                // checked the length). `to` has at most the length of the message and lies within the packed bytes of
                // the layout, whose memory is writable (both conditions of `# Safety`). No user layout overlaps a
                // local array.
                unsafe { layout.unpack(to, data.as_ptr()) };
            }
            None => {
                let offset = rx.ring.payload_offset(self.label.bytes as usize);
                // SAFETY: `Envelope::short` has checked that the length is at most the eager maximum, and
                // `payload_offset` places such a payload of the next message within the area. The sender reuses the
                // bytes only after the ring advances, which needs `rx` again. No user layout overlaps the area, and
                // `to` suits the layout (second condition of `# Safety`).
                let unpack = || unsafe { layout.unpack(to, rx.area.payload(offset)) };
                if self.label.bytes < LEAST as u64 || self.mark == 0 {
                    unpack()
                } else {
                    self.measure(rx, unpack)
                }
            }
        }
    }

    /// Calls `unpack` and tells the sender how long it takes.
    #[cold]
    fn measure(&self, rx: &Rx, unpack: impl FnOnce()) {
        let start = Instant::now();
        unpack();
        rx.area.measured().store(answer(self.mark, start.elapsed()), Ordering::Relaxed);
    }

    /// Returns the number of payload bytes outside the slot.
    #[inline(always)]
    fn outside(&self) -> usize {
        if self.inline.is_some() { 0 } else { self.label.bytes as usize }
    }

    /// Returns whether `posting`, a receive from the sender of the message, accepts the message. Returns false if the
    /// types of the message have to be compared, because only the general way compares them.
    #[inline(always)]
    fn suits(&self, posting: &Posting<'_>) -> bool {
        suits(&self.label, posting)
    }
}

/// Returns whether `posting`, a receive from the sender of a message, accepts a message with this label. Returns false
/// if the types of the message have to be compared, because only the general way compares them.
#[inline(always)]
fn suits(label: &Label, posting: &Posting<'_>) -> bool {
    let Label { context, tag, types, .. } = *label;
    context == posting.context && posting.tag.accepts(tag) && types == UNKNOWN
}

impl MessageEngine {
    // ---- at the sender ----

    /// Packs a message that is not synchronous and has eager length straight into the ring of `dest`. Returns false,
    /// and sends nothing, if the ring has no room, if an earlier message waits for room, or if the receiver has no room
    /// for the message until a receive matches it ([`Tx::allows`]).
    ///
    /// # Safety
    ///
    /// - The layout's memory is readable, and `label.bytes` is the packed size of its elements.
    ///
    /// # Errors
    /// Returns `ErrorKind::NoMemory` if memory ran out, and `ErrorKind::Other` if another rank broke the
    /// protocol.
    #[inline(always)]
    pub(super) unsafe fn send_short(
        &mut self,
        layout: &Elements<&Plan>,
        label: Label,
        dest: usize,
    ) -> Result<bool> {
        let tx: &mut Tx = self.peers[dest].link.contact(&self.fabric)?;
        if !tx.is_idle() || !tx.allows(&label) {
            return Ok(false);
        }
        // SAFETY: `0..label.bytes` is the whole message (condition of `# Safety`). The address that the protocol
        // passes has room for `label.bytes` bytes, and no user layout overlaps it.
        let pack = |to| unsafe { layout.pack(0..label.bytes, to) };
        let chooses =
            label.bytes >= LEAST as u64 && self.tuning.chooses() && layout.plan.is_contiguous();
        let sent = Eager::send(tx, &self.fabric, label, chooses, pack)?;
        if sent {
            self.traffic.carried(Carrier::Eager, &label, Process::new(dest));
        }
        Ok(sent)
    }

    /// Writes a message of the library straight into the ring of `dest`: `pack` writes its `label.bytes` bytes. The
    /// message does not count as a message of the program, and may be longer than `TYPEPACK_EAGER_LIMIT`.
    ///
    /// # Safety
    ///
    /// - `pack` writes no more than `label.bytes` bytes to the address that it gets. `label.bytes` is at most
    ///   `EAGER_MAX`.
    ///
    /// # Errors
    /// Returns `ErrorKind::NoMemory` if memory ran out, and `ErrorKind::Other` if another rank broke the
    /// protocol.
    #[inline]
    pub unsafe fn send_packed(
        &mut self,
        label: Label,
        dest: Process,
        pack: impl FnMut(*mut u8),
    ) -> Result<Packed> {
        let dest = dest.index();
        self.meet(dest);
        let tx: &mut Tx = self.peers[dest].link.contact(&self.fabric)?;
        if !tx.is_idle() {
            return Ok(Packed::Full);
        }
        if Eager::send(tx, &self.fabric, label, false, pack)? {
            return Ok(Packed::Sent);
        }
        Ok(if tx.admits(label.bytes as usize) { Packed::Full } else { Packed::TooLong })
    }

    // ---- at the receiver ----

    /// Delivers the message at the head of the ring of `from`, whose envelope has the words `words`, if the message
    /// is short and a posted receive matches it. Returns `Some(true)` if the message has been delivered, and
    /// `Some(false)` if the general way must handle the message. Returns `None` if the message is short, no receive
    /// matches it, and `unmatched` says that such a message stays in the ring.
    ///
    /// # Errors
    /// Returns `ErrorKind::Internal` if the receive does not exist. That is a bug.
    #[inline(always)]
    pub(super) fn deliver_short(
        &mut self,
        from: usize,
        words: &[u64; ENVELOPE_WORDS],
        unmatched: Unmatched,
    ) -> Result<Option<bool>> {
        let Some(head) = Head::of(words) else { return Ok(Some(false)) };
        let Some(at) = self.matching.find(Process::new(from), &head.label) else {
            return Ok((unmatched == Unmatched::Keep).then_some(false));
        };
        let Some(rx) = &mut self.peers[from].link.rx else { return Ok(Some(false)) };
        if head.label.types != UNKNOWN {
            // The general way compares the types.
            return Ok(Some(false));
        }
        let (id, status) = (self.matching.remove(at), head.status(from));
        tell_match(Process::new(from), &head.label, false);
        Self::fetch_following(rx, &head);
        let delivered = self.requests.deliver(id, |receive| {
            let (layout, first) = match &receive.sink {
                Sink::Memory(layout) => (layout, 0),
                Sink::From(layout, first) => (layout, *first),
                Sink::Discard => return received(status, receive.capacity, None),
            };
            let fits = head.label.bytes.min(receive.capacity);
            // SAFETY: the message is the next one of the ring, and `fits` is at most its length and at most the
            // capacity of the receive, which begins at packed byte `first`. The memory of a receive in flight is
            // writable, and nobody else uses it (conditions of `MessageEngine::receive`).
            unsafe { head.unpack(rx, &layout.view(), first..first + fits) };
            received(status, receive.capacity, None)
        });
        if !delivered {
            return Err(lost("a matched receive", id));
        }
        Self::free_head(rx, &self.fabric, from, &head);
        Ok(Some(true))
    }

    /// Receives the message at the head of the ring of `from`, the source of `posting`, if the message is short,
    /// matches the receive and matches no earlier receive. The caller has found no earlier message for the receive in
    /// the queue.
    ///
    /// # Safety
    ///
    /// - The layout's memory is writable, and nobody else uses it until the call returns.
    /// - `capacity` is the packed size of the layout's elements.
    ///
    /// # Errors
    /// Returns `ErrorKind::Truncated` if the message is longer than the receive.
    #[inline]
    pub(super) unsafe fn receive_short(
        &mut self,
        posting: &Posting<'_>,
        from: Process,
    ) -> Result<Glance> {
        let Some(peer) = self.peers.get_mut(from.index()) else { return Ok(Glance::Other) };
        let Some(rx) = &mut peer.link.rx else { return Ok(Glance::Other) };
        let Some(words) = rx.next() else { return Ok(Glance::Nothing) };
        let Some(head) = Head::of(&words) else { return Ok(Glance::Other) };
        if !head.suits(posting) || self.matching.find(from, &head.label).is_some() {
            return Ok(Glance::Other);
        }
        // SAFETY: `head` is the next message of `rx`, and the caller guarantees both conditions of `# Safety` for
        // `posting`.
        unsafe { Self::unpack_head(rx, &self.fabric, &head, posting, from.index()) }
    }

    /// Returns whether a receive with this context, source and tag may look directly into the ring of `from`. This is
    /// the case if this rank has mapped the ring, no earlier message that the receive could match is waiting in a
    /// queue, and no operation of this rank is in flight and no peer has work left, so that a wait for the ring delays
    /// nothing else.
    #[inline]
    pub fn is_quiet(&mut self, context: u64, from: Process, tag: Tag) -> bool {
        self.is_idle()
            && self.peers.get(from.index()).is_some_and(|peer| peer.link.rx.is_some())
            && self.matching.look(context, Sender::Process(from), tag).is_none()
    }

    /// Receives the next message from `from` directly from the ring, if the message has arrived, is short,
    /// and matches the receive. `from` must be the source of `posting`. The caller may call this function
    /// only while [`MessageEngine::is_quiet`] returns true.
    ///
    /// # Safety
    ///
    /// - The layout's memory is writable, and nobody else uses it until the call returns.
    /// - `capacity` is the packed size of the layout's elements.
    ///
    /// # Errors
    /// Returns `ErrorKind::Truncated` if the message is longer than the receive.
    #[inline]
    pub unsafe fn poll_briefly(&mut self, posting: &Posting<'_>, from: Process) -> Result<Glance> {
        let from = from.index();
        let Some(rx) = &mut self.peers[from].link.rx else { return Ok(Glance::Other) };
        let Some(words) = rx.next() else { return Ok(Glance::Nothing) };
        match Head::of(&words) {
            // SAFETY: `head` is the next message of `rx`, and the caller guarantees both conditions of `# Safety`
            // for `posting`.
            Some(head) if head.suits(posting) => unsafe {
                Self::unpack_head(rx, &self.fabric, &head, posting, from)
            },
            Some(_) => Ok(Glance::Other),
            // The general way reports a message that begins between the fragments of another one.
            None if rx.arriving.is_some() => Ok(Glance::Other),
            None => match Envelope::decode(&words) {
                // SAFETY: the envelope at the head of the ring is this one, and the caller guarantees both
                // conditions of `# Safety` for `posting`.
                Ok(Envelope::First(label, len, method)) if suits(&label, posting) => unsafe {
                    self.poll_fragments(posting, from, (label, len, method))
                },
                _ => Ok(Glance::Other),
            },
        }
    }

    /// Unpacks a message to the memory of a receive that the message matches, and frees the slot of the message. If
    /// the message is longer than the receive, unpacks only the part that fits.
    ///
    /// # Errors
    /// Returns `ErrorKind::Truncated` if the message is longer than the receive.
    ///
    /// # Safety
    ///
    /// - `head` is the next message of the ring of `rx`.
    /// - The layout's memory is writable, and nobody else uses it until the call returns.
    /// - `capacity` is the packed size of the layout's elements.
    #[inline(always)]
    unsafe fn unpack_head(
        rx: &mut Rx,
        fabric: &Fabric,
        head: &Head,
        posting: &Posting<'_>,
        from: usize,
    ) -> Result<Glance> {
        let Posting { layout, capacity, .. } = posting;
        Self::fetch_following(rx, head);
        // SAFETY: `head` is the next message of the ring, and the layout's memory is writable (first and second
        // condition of `# Safety`). The number of bytes is at most the length of the message and at most the
        // packed size of the layout (third condition).
        unsafe { head.unpack(rx, layout, 0..head.label.bytes.min(*capacity)) };
        Self::free_head(rx, fabric, from, head);
        tell_match(Process::new(from), &head.label, false);
        received(head.status(from), *capacity, None).map(Glance::Done)
    }

    /// Frees `head`, the message at the head of the ring of `from`. If this returns credits to `from`, wakes `from`,
    /// which may be waiting for room.
    #[inline(always)]
    fn free_head(rx: &mut Rx, fabric: &Fabric, from: usize, head: &Head) {
        if rx.ring.advance(&rx.area, head.outside()) {
            fabric.ring(from);
        }
    }

    /// Fetches the first cache lines of the payload of the message after `head`, if messages arrive in a row. The
    /// function assumes that both messages have the same length.
    #[inline(always)]
    fn fetch_following(rx: &Rx, head: &Head) {
        let len = head.outside();
        if len > 0 && rx.is_row() {
            let payload = rx.area.payload(rx.ring.following_payload(len));
            for line in (0..len.min(FETCHED)).step_by(LINE) {
                Area::fetch(payload.wrapping_add(line));
            }
        }
    }
}
