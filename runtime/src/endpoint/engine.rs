//! All message state of this process, and the rules by which messages meet receives.
//!
//! `progress.rs` owns the one [`MessageEngine`] behind its lock and turns it; `comm/` starts sends and
//! receives here with checked arguments; bytes go through `transport/peer.rs`. A receive is matched
//! either when it is posted (`receive`) or when a message arrives (`deliver`, `offered` in `engine/`), never
//! otherwise, and every match is decided by `matching.rs`.
//!
//! Invariants: an unmatched message occupies no shared memory for longer than one turn (eager data
//! is copied to the heap, the rest stays with its sender); nothing here waits.

mod incoming;
mod rendezvous;

use super::matching::{Arrived, Matching, Unexpected};
use super::requests::{Receive, Request, Requests, Send, SendStage};
use crate::message::envelope::{Envelope, INLINE_MAX, Label, Place, Space};
use crate::message::payload::{Backing, LayoutRef, Posting, Sink, Supply, buffer, copy};
use crate::message::typecheck::{self, OF_LAYOUT, UNKNOWN};
use crate::message::{Operation, Source, Status, Tag};
use crate::settings::Forced;
use crate::shm::ring::Violation;
use crate::transport::choice::{Protocol, Situation, choose};
use crate::transport::fabric::Fabric;
use crate::transport::peer::{Outgoing, Rx, Tx, broken};
use crate::transport::share::{Push, SHARE_MIN};
use crate::transport::split::Step;
use crate::transport::stage::{STAGE_MIN, Stage};
use crate::transport::types::{Located, place_in};
use crate::{Error, ErrorKind, Result};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasherDefault, Hasher};

/// Envelopes taken from one ring before the others get their turn.
const ENVELOPES_PER_TURN: usize = 32;

/// How a message is sent.
#[derive(Clone, Copy, Debug)]
pub struct How {
    /// Complete only when a receive has matched the message.
    pub synchronous: bool,
    /// Where the data is until then.
    pub backing: Backing,
}

impl How {
    /// As an ordinary send does it.
    pub const STANDARD: Self = Self { synchronous: false, backing: Backing::Caller };
}

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

/// Counters for `TYPEPACK_REPORT`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Traffic {
    /// Messages sent.
    pub messages: u64,
    /// Packed bytes sent.
    pub bytes: u64,
    /// Of the messages, those that went through the ring at once.
    pub eager: u64,
    /// Those that were packed into chunks.
    pub pipelined: u64,
    /// Those that their receivers have copied straight out of this rank's heap.
    pub fused: u64,
    /// Those that both ranks have copied, between private memories.
    pub split: u64,
}

/// Contexts are few and ours; a multiplication spreads them well enough.
#[derive(Debug, Default)]
struct Spread(u64);

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }
    fn write_u64(&mut self, value: u64) {
        self.0 = (self.0 ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 ^= self.0 >> 29;
    }
}

#[derive(Debug)]
struct Peer {
    tx: Option<Tx>,
    rx: Option<Rx>,
}

/// The message state of one process.
#[derive(Debug)]
pub struct MessageEngine {
    fabric: Fabric,
    eager_limit: u64,
    forced: Forced,
    /// Types of messages are compared.
    check_types: bool,
    peers: Vec<Peer>,
    /// The rank that was written to last.
    latest: usize,
    /// There may be something to make ready for its next message.
    preparing: bool,
    readable: Vec<usize>,
    connects: u32,
    contexts: HashMap<u64, Matching, BuildHasherDefault<Spread>>,
    requests: Requests,
    stage: Stage,
    traffic: Traffic,
    /// Some queue or stream of some peer may have work.
    busy: bool,
    /// The calling thread waits for what it has started, or will at once.
    patient: bool,
    /// Messages of this rank to itself that found no receive: what another thread probes for.
    kept: u64,
}

impl MessageEngine {
    /// No messages yet. `eager_limit` is at most `EAGER_MAX`.
    pub fn new(fabric: Fabric, eager_limit: u64) -> Self {
        let peers = (0..fabric.size()).map(|_| Peer { tx: None, rx: None }).collect();
        Self {
            fabric,
            eager_limit,
            forced: Forced::default(),
            check_types: false,
            peers,
            latest: 0,
            preparing: false,
            readable: Vec::new(),
            connects: 0,
            contexts: HashMap::default(),
            requests: Requests::default(),
            stage: Stage::default(),
            traffic: Traffic::default(),
            busy: false,
            patient: true,
            kept: 0,
        }
    }

    /// Says whether the calling thread waits from now on, or only starts something.
    pub fn set_patient(&mut self, patient: bool) {
        self.patient = patient;
    }

    /// Sends long messages by one way only.
    pub fn force(&mut self, forced: Forced) {
        self.forced = forced;
    }

    /// Compares the types of messages and receives, from now on.
    pub fn check_types(&mut self) {
        self.check_types = true;
    }

    /// What has been sent.
    pub fn traffic(&self) -> Traffic {
        self.traffic
    }

    /// The requests of this process.
    pub fn requests(&mut self) -> &mut Requests {
        &mut self.requests
    }

    /// The same, to look at.
    #[inline]
    pub fn requests_ref(&self) -> &Requests {
        &self.requests
    }

    /// Counts what a thread that waits may be waiting for and no other rank rings for: completed
    /// requests, and messages of this rank to itself.
    pub fn news(&self) -> u64 {
        self.requests.completions() + self.kept
    }

    /// True when no operation of this rank is in flight: a turn could only move messages from the
    /// rings to the heap, one copy more than leaving them there.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.requests.in_flight() == 0 && !self.busy
    }

    /// True when no other rank waits for anything of this one: all that it has to write has been
    /// written, and all that it has granted has come (also for a receive that was cut loose: its
    /// sender is in the middle of it). A message to itself is not counted: nobody is left who
    /// could receive it.
    pub fn others_are_served(&self) -> bool {
        let served = |peer: &Peer| {
            peer.tx.as_ref().is_none_or(|tx| !tx.has_work())
                && peer.rx.as_ref().is_none_or(|rx| !rx.has_work())
        };
        self.requests.sends_in_flight_but_to(self.fabric.rank()) == 0
            && self.peers.iter().all(served)
    }

    fn matching(&mut self, context: u64) -> &mut Matching {
        let size = self.fabric.size();
        self.contexts.entry(context).or_insert_with(|| Matching::new(size))
    }

    /// Forgets a context that no communicator uses any more, unless something is queued in it.
    pub fn close_context(&mut self, context: u64) {
        if let Entry::Occupied(entry) = self.contexts.entry(context)
            && entry.get().is_empty()
        {
            entry.remove();
        }
    }

    fn tx(&mut self, dest: usize) -> Result<&mut Tx> {
        let peer = &mut self.peers[dest].tx;
        match peer {
            Some(tx) => Ok(tx),
            None => {
                let area = self.fabric.contact(dest)?;
                Ok(peer.insert(Tx::new(area, dest, self.fabric.window())))
            }
        }
    }

    // ---- starting ----

    /// Starts a send of `label.bytes` packed bytes to rank `dest`. Their types are what the label says,
    /// or the layout's for `OF_LAYOUT`.
    ///
    /// # Safety
    ///
    /// - The layout's memory is readable; with [`Backing::Caller`] it stays so, and unchanged,
    ///   until the send is complete or detached.
    /// - `label.bytes` is the packed size of its elements.
    /// - Lent memory holds as many bytes and is nobody else's until the send is complete or
    ///   detached.
    ///
    /// # Errors
    /// Out of memory; a broken protocol.
    pub unsafe fn send(
        &mut self,
        layout: &LayoutRef<'_>,
        label: Label,
        dest: usize,
        how: How,
    ) -> Result<Operation> {
        let mut label = label;
        if label.types == OF_LAYOUT {
            label.types = match self.check_types {
                true => typecheck::of_message(layout.plan, layout.count),
                false => UNKNOWN,
            };
        }
        self.traffic.messages += 1;
        self.traffic.bytes += label.bytes;
        let status = Status { source: self.fabric.rank(), tag: label.tag, bytes: label.bytes };
        if dest == self.fabric.rank() {
            // SAFETY: passed on.
            return unsafe { self.send_self(layout, label, status, how) };
        }
        self.latest = dest;
        self.preparing = label.bytes > INLINE_MAX as u64;
        if self.peers[dest].tx.is_none() {
            self.tx(dest)?;
        }
        let Some(tx) = &mut self.peers[dest].tx else { return Err(lost()) };
        if label.bytes <= self.eager_limit && !how.synchronous && tx.is_idle() {
            let stage = &mut self.stage;
            let staged =
                label.bytes >= STAGE_MIN as u64 && Stage::serves(layout.plan, layout.count);
            // SAFETY: the range is the whole message (caller's promise); the destination and the
            // stage hold as many bytes, of memory which no user layout overlaps.
            let pack = |to| unsafe {
                let pack = |to| layout.pack(0..label.bytes, to);
                if staged { stage.pack(label.bytes as usize, to, pack) } else { pack(to) }
            };
            if tx.send_eager(&self.fabric, label, pack)? {
                self.traffic.eager += 1;
                return Ok(Operation::Done(status));
            }
        }
        // SAFETY: passed on.
        let supply = unsafe { Supply::new(layout, label.bytes, how.backing)? };
        let synchronous = how.synchronous;
        let stage = SendStage::Queued;
        let send = Send { dest, label, supply, synchronous, stage, located: false, private: false };
        let id = self.requests.open(Request::Send(send));
        let queued = self.tx(dest).map(|tx| tx.push(Outgoing::Send(id)));
        let result = queued.and_then(|()| self.flush(dest));
        self.pending_unless(result, id)
    }

    /// An operation that is pending, unless the call that has started it fails: its caller never
    /// learns the number, and nobody may touch its memory after that.
    fn pending_unless(&mut self, result: Result<()>, id: u64) -> Result<Operation> {
        if result.is_err() {
            self.detach(id);
        }
        result.map(|()| Operation::Pending(id))
    }

    /// # Safety
    /// As `send`.
    unsafe fn send_self(
        &mut self,
        layout: &LayoutRef<'_>,
        label: Label,
        status: Status,
        how: How,
    ) -> Result<Operation> {
        let rank = self.fabric.rank();
        if let Some(id) = self.matching(label.context).arrive(rank, label.tag) {
            let Some(receive) = self.requests.receive(id) else { return Err(lost()) };
            let capacity = receive.capacity;
            let refusal = receive.refusal(self.check_types, status, label.types);
            if refusal.is_none() {
                let supply = Supply::Memory(layout.keep());
                // SAFETY: the bytes are at most either side's; a send's and a receive's memory do
                // not overlap (promise of the two calls).
                unsafe { copy(&supply, &receive.sink, label.bytes.min(capacity)) };
            }
            self.requests.complete(id, arrived(status, capacity, refusal));
            return Ok(Operation::Done(status));
        }
        if label.bytes <= self.eager_limit && !how.synchronous {
            let mut data = buffer(label.bytes)?;
            // SAFETY: the layout is valid by the caller's promise, the buffer has its size.
            unsafe { layout.pack(0..label.bytes, data.as_mut_ptr()) };
            self.matching(label.context).keep(rank, label, Arrived::Data(data, None));
            self.kept += 1;
            return Ok(Operation::Done(status));
        }
        // SAFETY: passed on.
        let supply = unsafe { Supply::new(layout, label.bytes, how.backing)? };
        let synchronous = how.synchronous;
        let stage = SendStage::Offered;
        let send =
            Send { dest: rank, label, supply, synchronous, stage, located: false, private: false };
        let id = self.requests.open(Request::Send(send));
        self.kept += 1;
        self.matching(label.context).keep(rank, label, Arrived::Own(id));
        Ok(Operation::Pending(id))
    }

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
        let Some((from, message)) = self.matching(context).take(source, tag) else {
            let sink = Sink::Memory(layout.keep());
            let receive = Receive { context, source, sink, capacity, stream: None };
            let id = self.requests.open(Request::Receive(receive));
            self.matching(context).post(source, tag, id);
            return Ok(Operation::Pending(id));
        };
        // SAFETY: passed on.
        unsafe { self.receive_taken(&layout, capacity, Taken { context, from, message }) }
    }

    /// Whether the next message from `from` is the first that a receive in this context could
    /// match, and nothing else is going on that waiting for it would hold up.
    #[inline]
    pub fn is_quiet(&mut self, context: u64, from: usize, tag: Tag) -> bool {
        self.is_idle()
            && self.peers[from].rx.is_some()
            && self.matching(context).look(Source::Rank(from), tag).is_none()
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
        let Some(rx) = &mut self.peers[from].rx else { return Ok(Glance::Other) };
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
                let offset = rx.ring.payload_offset::<crate::transport::fabric::Area>(len);
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
        arrived(status, capacity, None).map(Glance::Done)
    }

    /// Takes the message that a receive would match now out of the queue.
    pub fn take(&mut self, context: u64, source: Source, tag: Tag) -> Option<Taken> {
        let (from, message) = self.matching(context).take(source, tag)?;
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
                    self.refuse(from, id)?;
                }
                arrived(status, capacity, refusal).map(Operation::Done)
            }
            Arrived::Own(id) => {
                let Some(send) = self.requests.send(id) else { return Err(lost()) };
                let sink = Sink::Memory(layout.keep());
                // SAFETY: `fits` is within both; a send's and a receive's memory do not overlap
                // (promise of the two calls).
                unsafe { copy(&send.supply, &sink, fits) };
                self.requests.complete(id, Ok(status));
                arrived(status, capacity, refusal).map(Operation::Done)
            }
            Arrived::Offered(offer, located) => {
                if message.bytes > capacity || refusal.is_some() {
                    self.refuse(from, offer)?;
                    return arrived(status, capacity, refusal).map(Operation::Done);
                }
                let sink = Sink::Memory(layout.keep());
                let receive = Receive { context, source, sink, capacity, stream: None };
                let id = self.requests.open(Request::Receive(receive));
                let result = self.accept(from, (offer, located), id, message.tag, message.bytes);
                self.pending_unless(result, id)
            }
        }
    }

    /// The message that a receive would match now.
    pub fn probe(&mut self, context: u64, source: Source, tag: Tag) -> Option<Status> {
        let (from, message) = self.matching(context).look(source, tag)?;
        Some(Status { source: from, tag: message.tag, bytes: message.bytes })
    }

    /// Cuts an operation loose from the memory it was started on: afterwards nobody reads or
    /// writes that memory, and nobody can ask for the operation's result. A send still happens,
    /// from a copy; a receive that has been matched is read and dropped.
    pub fn detach(&mut self, id: u64) {
        match self.requests.get(id) {
            Some(Request::Send(send)) => {
                let (bytes, dest) = (send.label.bytes, send.dest);
                // First nobody else reads the memory any more, then it is let go.
                let mut withdrawn = false;
                if send.located
                    && let Some(tx) = &mut self.peers[dest].tx
                {
                    send.located = false;
                    tx.withdraw(&self.fabric, id);
                    withdrawn = true;
                }
                send.supply.detach(bytes);
                // The receiver reads nothing of ours until it has been told, and this rank may not
                // call again for long. What fails here fails in the next turn, where it is told.
                if withdrawn && self.flush(dest).is_err() {
                    self.busy = true;
                }
            }
            Some(Request::Receive(receive)) => {
                let source = receive.source;
                if let (Some((_, bytes, _)), Source::Rank(from)) = (receive.stream, source)
                    && let Some(rx) = &mut self.peers[from].rx
                {
                    rx.fetches.abandon(&rx.area, &self.fabric, from, id, bytes);
                    rx.splits.take_back(&self.fabric, &rx.area, from, id);
                }
                receive.sink = Sink::Discard;
                if receive.stream.is_none() {
                    let (context, source) = (receive.context, receive.source);
                    self.matching(context).withdraw(source, id);
                    self.requests.cancel(id);
                    return;
                }
            }
            Some(Request::Source(_) | Request::Done(_)) | None => {}
        }
        self.requests.orphan(id);
    }

    /// Takes back a receive that no message has matched; false if there is none under this number.
    /// Its number is free afterwards.
    pub fn withdraw(&mut self, id: u64) -> bool {
        let Some(receive) = self.requests.receive(id) else { return false };
        let (context, source) = (receive.context, receive.source);
        if receive.stream.is_some() || !self.matching(context).withdraw(source, id) {
            return false;
        }
        self.requests.cancel(id);
        true
    }

    fn flush(&mut self, dest: usize) -> Result<()> {
        self.busy = true;
        if let Some(tx) = &mut self.peers[dest].tx {
            tx.flush(&self.fabric, &mut self.requests, self.eager_limit, self.forced)?;
        }
        Ok(())
    }
}

/// The result of a receive of `capacity` bytes that matched a message, which it may have refused.
fn arrived(status: Status, capacity: u64, refusal: Option<Error>) -> Result<Status> {
    if let Some(refusal) = refusal {
        return Err(refusal);
    }
    if status.bytes <= capacity {
        return Ok(status);
    }
    let Status { source, tag, bytes } = status;
    Err(Error::new(
        ErrorKind::Truncated,
        "count",
        format!(
            "the message from rank {source} with tag {tag} has {bytes} bytes, \
             the receive has room for {capacity}"
        ),
    )
    .of_message(Status { bytes: capacity, ..status }))
}

#[cold]
fn lost() -> Error {
    Error::new(ErrorKind::Internal, "message", "a matched operation is not in the table")
}

#[cfg(test)]
mod tests;
