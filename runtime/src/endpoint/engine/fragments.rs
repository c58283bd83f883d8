//! The receiver's side of messages that go out in fragments.
//!
//! `transport/protocol/fragments.rs` writes the fragments to the ring, and `incoming.rs` passes each of them to this
//! file. The first fragment is matched like an eager message. If a receive matches, all fragments are unpacked straight
//! out of the ring. If none does, the fragments are collected in private memory ([`Collected`]) until a receive takes
//! the message. The receive may do so before the last fragment has arrived; the remaining fragments are then unpacked
//! straight out of the ring.

use super::*;
use crate::message::envelope::FRAGMENTED_MAX;
use crate::shm::ring::Violation;
use crate::transport::link::{Arriving, Target};
use crate::transport::protocol::in_flight::Stream;

/// The data of a message that no receive had matched when its first fragment arrived.
#[derive(Debug)]
pub struct Collected {
    /// The memory for the whole message.
    data: Kept,
    /// Number of bytes that have arrived.
    done: u64,
}

/// The messages in fragments that no receive has taken yet. The queue of unexpected messages refers to them by number.
#[derive(Debug, Default)]
pub(super) struct Collection {
    messages: HashMap<u64, Collected>,
    /// The number of the next message.
    next: u64,
}

impl Collection {
    /// Removes message `number` if all of its fragments have arrived, and returns its data.
    pub(super) fn take_whole(&mut self, number: u64) -> Option<Kept> {
        let message = self.messages.get(&number)?;
        if message.done < message.data.bytes().len() as u64 {
            return None;
        }
        self.messages.remove(&number).map(|message| message.data)
    }

    /// Returns whether no message is left.
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    fn add(&mut self, message: Collected) -> u64 {
        let number = self.next;
        self.next += 1;
        self.messages.insert(number, message);
        number
    }
}

/// A fragment in the payload area of a ring.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fragment {
    /// The address of the first byte.
    data: *const u8,
    /// Number of bytes.
    len: u64,
}

impl Fragment {
    /// Wraps the `len` bytes at `data`.
    ///
    /// # Safety
    ///
    /// - `len` bytes from `data` on are readable for as long as the returned value is used.
    /// - No user layout and no memory of this process overlaps these bytes.
    pub(super) unsafe fn new(data: *const u8, len: u32) -> Self {
        Self { data, len: u64::from(len) }
    }
}

/// How often a blocking receive looks for further fragments of its message, in all, before it does other work. While
/// the sender packs a fragment, the receiver has nothing better to do; but the sender can lose its CPU, and other
/// threads may want the lock.
const LOOKS: usize = 1000;

impl MessageEngine {
    /// Says that the last fragment of a message of `total` bytes has arrived, and tells rank `from` how the next
    /// message of this size class should begin, if that has changed.
    fn end_of_fragments(&mut self, from: usize, far: bool, total: u64) {
        self.tuning.fragments.end(from, far, total);
        self.say_beginning(from, far, total);
    }

    fn say_beginning(&mut self, from: usize, far: bool, total: u64) {
        let next = self.tuning.fragments.next(far, total, None);
        // If an error occurs here, it occurs again in the next turn.
        let _later = self.peers[from].say_beginning(&self.fabric, total, next);
    }

    /// Receives the message in fragments at the head of the ring of `from` straight into the memory of `posting`, which
    /// matches the message. Waits a little for the fragments. If one does not come, the receive goes on as a request.
    ///
    /// # Safety
    ///
    /// - The message at the head of the ring of `from` has `label`, a first fragment of `len` bytes and `method`.
    /// - The layout's memory is writable, and nobody else uses it until the receive is complete or detached.
    /// - `capacity` is the packed size of the layout's elements.
    ///
    /// # Errors
    /// Returns `ErrorKind::Truncated` if the message is longer than the receive, `ErrorKind::NoMemory` if memory ran
    /// out, and `ErrorKind::Other` if `from` broke the protocol.
    #[inline(never)]
    pub(super) unsafe fn poll_fragments(
        &mut self,
        posting: &Posting<'_>,
        from: usize,
        (label, mut len, method): (Label, u32, Method),
    ) -> Result<Glance> {
        // The receive may go on as a request, and then its first fragments have left the ring.
        self.requests.make_room()?;
        let Posting { layout, capacity, .. } = posting;
        let Label { tag, bytes: total, .. } = label;
        tell_match(Process::new(from), &label, false);
        let far = self.fabric.is_far(from);
        self.tuning.fragments.begin(from, far, total, method, self.tuning.is_idle());
        let Some(rx) = &mut self.peers[from].link.rx else { return Ok(Glance::Other) };
        let (mut done, mut looks) = (0, LOOKS);
        loop {
            let end = done + u64::from(len);
            if end > total {
                let what = "the length of the fragments of a message";
                return Err(broken(from, Violation::outside(what, end, 1..=total)));
            }
            let data = rx.area.payload(rx.ring.payload_offset(len as usize));
            let range = done.min(*capacity)..end.min(*capacity);
            // SAFETY: the range ends at `capacity` at the latest, which is the packed size of the layout, whose memory
            // is writable (second and third condition of `# Safety`). The fragment is the next one of the ring and has
            // at most the maximum length (first condition, and `Envelope::decode` for the further fragments), so it
            // lies within the area. The sender reuses its bytes only after the ring advances below. No user layout
            // overlaps the area.
            contiguous::with(method, || unsafe { layout.unpack(range, data) });
            if rx.ring.advance(&rx.area, len as usize) {
                self.fabric.ring(from);
            }
            done = end;
            if done == total {
                self.end_of_fragments(from, far, total);
                let status = Status { source: from, tag, bytes: total };
                return received(status, *capacity, None).map(Glance::Done);
            }
            let next = loop {
                match rx.ring.peek(&rx.area) {
                    None if looks > 0 => looks -= 1,
                    next => break next,
                }
                std::hint::spin_loop();
            };
            let Some(words) = next else { break };
            len = match Envelope::decode(&words) {
                Ok(Envelope::Fragment(len)) => len,
                // The general way handles other envelopes between fragments, and reports malformed ones.
                _ => break,
            };
        }
        // The program may compute before it waits for the rest.
        self.tuning.fragments.disturb();
        let id = self.requests.open(Request::Receive(Receive {
            context: posting.context,
            source: Sender::Process(Process::new(from)),
            sink: Sink::Memory(layout.keep()),
            capacity: *capacity,
            stream: Some(Stream { tag, total, done }),
        }));
        rx.arriving = Some(Arriving { target: Target::Receive(id), total, done, method });
        Ok(Glance::Started(id))
    }

    /// Matches a message from `from` by its first fragment, and takes this fragment.
    ///
    /// # Errors
    /// Returns `ErrorKind::Other` if `from` broke the protocol, and `ErrorKind::NoMemory` if memory ran out. The
    /// fragment must then stay in the ring.
    #[inline(never)]
    pub(super) fn first_fragment(
        &mut self,
        from: usize,
        label: Label,
        fragment: Fragment,
        method: Method,
    ) -> Result<()> {
        let total = label.bytes;
        if self.peers[from].link.rx.as_ref().is_some_and(|rx| rx.arriving.is_some()) {
            let detail = "a message begins before the last fragment of the message before it";
            return Err(broken(from, Violation::new(detail)));
        }
        let target = match self.matching.find(Process::new(from), &label) {
            Some(at) => {
                let id = self.matching.remove(at);
                tell_match(Process::new(from), &label, false);
                if let Some(refusal) = self.refusal(from, &label, id)? {
                    self.requests.complete(id, Err(refusal));
                    Target::Nowhere
                } else {
                    let Some(receive) = self.requests.receive(id) else {
                        return Err(lost("a matched receive", id));
                    };
                    receive.source = Sender::Process(Process::new(from));
                    receive.stream = Some(Stream { tag: label.tag, total, done: 0 });
                    let (far, idle) = (self.fabric.is_far(from), self.tuning.is_idle());
                    self.tuning.fragments.begin(from, far, total, method, idle);
                    Target::Receive(id)
                }
            }
            None => {
                self.matching.make_room_to_keep()?;
                let data = Kept::new(total, &mut self.buffers, |_| ())?;
                let occupied = data.occupied();
                let number = self.collection.add(Collected { data, done: 0 });
                self.keep(from, label, Arrived::Fragments(number, occupied));
                Target::Kept(number)
            }
        };
        let Some(rx) = &mut self.peers[from].link.rx else {
            return Err(lost_at("the link from", from));
        };
        rx.arriving = Some(Arriving { target, total, done: 0, method });
        self.fragment(from, fragment)
    }

    /// Takes the next fragment of the message whose fragments arrive from `from`.
    ///
    /// # Errors
    /// Returns `ErrorKind::Other` if `from` broke the protocol.
    #[inline(never)]
    pub(super) fn fragment(&mut self, from: usize, fragment: Fragment) -> Result<()> {
        let Some(rx) = &mut self.peers[from].link.rx else {
            return Err(lost_at("the link from", from));
        };
        let Some(Arriving { target, total, done, method }) = rx.arriving else {
            let detail = "a fragment of a message arrives, but no message has begun";
            return Err(broken(from, Violation::new(detail)));
        };
        let end = done + fragment.len;
        if end > total {
            let what = "the length of the fragments of a message";
            return Err(broken(from, Violation::outside(what, end, 1..=total)));
        }
        let last = end == total;
        rx.arriving = (!last).then_some(Arriving { target, total, done: end, method });
        match target {
            Target::Receive(id) => {
                let Some(receive) = self.requests.receive(id) else {
                    return Err(lost("a receive", id));
                };
                let (capacity, sink) = (receive.capacity, &receive.sink);
                let range = done.min(capacity)..end.min(capacity);
                // SAFETY: the range lies within the receive, because it ends at `capacity` at the latest, which is the
                // packed size of the sink's layout (condition of `MessageEngine::receive`). The fragment is
                // readable for at least the length of the range, and no user layout overlaps it (conditions of
                // `Fragment::new`).
                contiguous::with(method, || unsafe { sink.unpack(range, fragment.data) });
                if let Some(stream) = &mut receive.stream {
                    stream.done = end;
                    if last {
                        let status = Status { source: from, tag: stream.tag, bytes: total };
                        self.requests.complete(id, received(status, capacity, None));
                        self.end_of_fragments(from, self.fabric.is_far(from), total);
                    }
                }
            }
            Target::Kept(number) => {
                if let Some(message) = self.collection.messages.get_mut(&number) {
                    // The conversions lose nothing, because a message in fragments has at most `FRAGMENTED_MAX` bytes.
                    let place = message.data.bytes_mut()[done as usize..end as usize].as_mut_ptr();
                    // SAFETY: the indexing above checked that the message has room for the fragment. The fragment is
                    // readable, and no memory of this process overlaps it (conditions of `Fragment::new`).
                    unsafe {
                        contiguous::copy_by(method, fragment.data, place, fragment.len as usize)
                    };
                    message.done = end;
                }
                if last {
                    let far = self.fabric.is_far(from);
                    self.tuning.fragments.unmatched(far, total, method);
                    self.say_beginning(from, far, total);
                }
            }
            Target::Nowhere => {}
        }
        Ok(())
    }

    /// Starts the receive of message `number` of the collection, which `from` has sent and a receive or a matched probe
    /// has taken out of the queue. `refusal` is the error of a receive that must refuse the message.
    ///
    /// # Safety
    ///
    /// - The memory of the room is writable, and nobody else uses it until the receive is complete or detached.
    /// - The room has `capacity` packed bytes.
    ///
    /// # Errors
    /// Returns the refusal, and `ErrorKind::Truncated` if all fragments have arrived and the message is longer than the
    /// receive.
    #[inline(never)]
    pub(super) unsafe fn receive_fragments(
        &mut self,
        (room, capacity): (Room<'_>, u64),
        (number, context, status): (u64, u64, Status),
        refusal: Option<Error>,
    ) -> Result<Operation> {
        let (from, total) = (status.source, status.bytes);
        debug_assert!(total <= FRAGMENTED_MAX as u64);
        let Some(Collected { data, done }) = self.collection.messages.remove(&number) else {
            return Err(lost("a message in fragments", number));
        };
        let fits = if refusal.is_some() { 0 } else { done.min(capacity) };
        // SAFETY: `fits` is at most `capacity`, the number of bytes of the room, and at most the number of bytes
        // that `data` has. `data` is memory of this process, so no user layout overlaps it.
        unsafe { room.unpack(0..fits, data.bytes().as_ptr()) };
        self.buffers.give_back(data);
        if done == total {
            return received(status, capacity, refusal).map(Operation::Done);
        }
        let arriving = self.peers[from].link.rx.as_mut().and_then(|rx| rx.arriving.as_mut());
        let this = |arriving: &&mut Arriving| arriving.target == Target::Kept(number);
        let Some(arriving) = arriving.filter(this) else {
            return Err(lost("the rest of a message in fragments", number));
        };
        if refusal.is_some() {
            arriving.target = Target::Nowhere;
            return received(status, capacity, refusal).map(Operation::Done);
        }
        let id = self.requests.open(Request::Receive(Receive {
            context,
            source: Sender::Process(Process::new(from)),
            sink: room.keep(),
            capacity,
            stream: Some(Stream { tag: status.tag, total, done }),
        }));
        arriving.target = Target::Receive(id);
        Ok(Operation::Pending(id))
    }
}
