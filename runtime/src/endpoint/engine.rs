//! All message state of this process, and the functions that start its operations.
//!
//! `progress.rs` has the lock that protects the only [`MessageEngine`], and runs the engine's turns. A turn is one pass
//! over the rings and the work of the peers. `comm/` checks the arguments of a send or receive and then starts the
//! operation here. The bytes go through `transport/peer.rs`. A receive is matched either when it is posted (`receive`)
//! or when a message arrives (`incoming.rs`), and at no other time. `matching.rs` finds every match, with two
//! exceptions (both in `engine/short.rs`):
//!
//! - If no other operation is in flight and no earlier message that the receive could match is waiting, a
//!   blocking receive takes a short message, or one in fragments (`engine/fragments.rs`), directly from the head of the
//!   ring.
//! - If no waiting message matches a new nonblocking receive, the receive takes a short message directly from
//!   the head of the ring, unless an earlier receive matches that message.
//!
//! Invariants: a whole turn leaves no unmatched message in shared memory, except behind the first `ENVELOPES_PER_TURN`
//! envelopes of a ring (the engine copies eager data and data in fragments to private memory, and other data stays with
//! its sender). The turn of a call that only starts an operation need not be a whole one (`progress_at_start`). No
//! function here waits, except for the end of one piece that another rank is copying (`detach.rs`), and a blocking
//! receive for some microseconds for the next fragment of its message (`fragments.rs`).
//!
//! Most messages are short and never wait in a queue. Their whole way is in `engine/short.rs`.

mod detach;
mod fragments;
mod incoming;
mod ledger;
mod own;
mod receive;
mod short;

use self::fragments::Collection;
use self::ledger::{CreditLedger, Freed};
use super::matching::{Arrived, Matching, QueueCounts, Unexpected};
use super::requests::{Request, Requests};
use crate::message::envelope::{Envelope, INLINE_MAX, Offer, Place};
use crate::message::label::{Label, Sender};
use crate::message::payload::{Buffers, Kept, Posting, Room, SendMode, Sink, Supply, buffer, copy};
use crate::message::typecheck::{self, OF_LAYOUT, UNKNOWN};
use crate::message::{Operation, Status, Tag};
use crate::process::Process;
use crate::settings::{Forced, UNEXPECTED_MAX};
use crate::tools::counting::{self, Subject};
use crate::transport::choice::Terms;
use crate::transport::choice::short_choice;
use crate::transport::choice::tuning::Tuning;
use crate::transport::link::Stage;
use crate::transport::link::fabric::Fabric;
use crate::transport::link::failure::{broken, lost, lost_at};
use crate::transport::peer::Peer;
use crate::transport::protocol::eager::Eager;
use crate::transport::protocol::in_flight::{Advertised, Receive, Send, SendStage, received};
use crate::transport::protocol::{Arrival, Carrier, Matched, Payload, Work};
use crate::{Error, Plan, Result};
use std::collections::HashMap;
use typepack_engine::Elements;

pub use crate::transport::protocol::Traffic;
pub use detach::Cancelled;
pub use receive::Taken;
pub use short::{Glance, Packed};
use typepack_engine::choice::{Measured, Store, Tune};
use typepack_engine::contiguous::{self, Method};

/// Maximum number of envelopes that one turn takes from a ring before it reads the next ring.
const ENVELOPES_PER_TURN: usize = 32;

/// The message state of one process.
#[derive(Debug)]
pub struct MessageEngine {
    fabric: Fabric,
    terms: Terms,
    /// True if the engine compares the types of messages and receives.
    check_types: bool,
    /// One peer per slot: first the ranks of the world, then the processes that joined the job later, up to
    /// the last one with which this rank has had contact.
    peers: Vec<Peer>,
    /// The slot to which this rank sent a message last.
    latest: usize,
    /// True if there may be cache lines to fetch for the next message to `latest`.
    preparing: bool,
    readable: Vec<usize>,
    /// The index in `readable` of the ring that the next turn reads first.
    first_ring: usize,
    connects: u32,
    matching: Matching,
    ledger: CreditLedger,
    /// Buffers for messages that no receive has matched.
    buffers: Buffers,
    /// Messages in fragments that no receive has taken yet.
    collection: Collection,
    requests: Requests,
    stage: Stage,
    tuning: Tuning,
    traffic: Traffic,
    /// True if a queue or a stream of a peer may have work.
    busy: bool,
    /// True if a thread that starts an operation waits for this operation and does no other work meanwhile.
    patient: bool,
    /// Number of messages that this rank has sent to itself and that found no posted receive. Another
    /// thread may be waiting for such a message in a probe; it looks again when this number changes.
    kept: u64,
}

/// Tells tools that a receive has matched a message from the process in slot `from`. `unexpected` says whether the
/// message has waited for the receive.
#[inline(always)]
fn tell_match(from: Process, label: &Label, unexpected: bool) {
    if counting::is_wanted(Subject::MessageMatched) {
        label.tell(Subject::MessageMatched, from, unexpected.into());
    }
}

impl MessageEngine {
    /// Creates an engine without messages. `eager_limit` must be at most `EAGER_MAX`.
    pub fn new(fabric: Fabric, eager_limit: u64) -> Self {
        let peers = (0..fabric.world().end).map(|rank| Peer::new(&fabric, rank)).collect();
        let requests = Requests::new(fabric.rank());
        let ledger = CreditLedger::new(UNEXPECTED_MAX, fabric.world().end);
        Self {
            fabric,
            terms: Terms { eager_limit, forced: Forced::default(), copy: None },
            check_types: false,
            peers,
            latest: 0,
            preparing: false,
            readable: Vec::new(),
            first_ring: 0,
            connects: 0,
            matching: Matching::default(),
            ledger,
            buffers: Buffers::default(),
            collection: Collection::default(),
            requests,
            stage: Stage::default(),
            tuning: Tuning::default(),
            traffic: Traffic::default(),
            busy: false,
            patient: true,
            kept: 0,
        }
    }

    /// Tells the engine whether the calling thread waits for the operations that it starts from now on
    /// (`patient`), or goes on to other work.
    pub fn set_patient(&mut self, patient: bool) {
        self.patient = patient;
    }

    /// Makes the engine use the protocol `forced` for long messages from now on.
    pub fn force(&mut self, forced: Forced) {
        self.terms.forced = forced;
    }

    /// Sets the number of bytes that unexpected messages of one sender may occupy (`ledger.rs`).
    pub fn bound(&mut self, unexpected: u64) {
        self.ledger.bound(unexpected);
    }

    /// Sets which choosers of messages measure, and the method that all copies of long runs must use (`None`: any
    /// method). `store` has what the process knows about the ways.
    pub fn tune(&mut self, tune: Tune, copy: Option<Method>, store: Option<&'static Store>) {
        self.tuning.set(tune, copy, store);
        self.terms.copy = copy;
    }

    /// Returns the choices of ways that this rank has made by measurement, one line each.
    pub fn choices(&self) -> Vec<String> {
        let short = self.peers.iter().filter_map(|peer| peer.link.tx.as_ref()?.short.as_deref());
        let mut choices = self.tuning.report();
        choices.extend(short_choice::report(short));
        choices
    }

    /// Returns what this rank has measured about the ways of long messages.
    pub fn measured(&self) -> Vec<Measured> {
        self.tuning.measured()
    }

    /// Makes the engine compare the types of messages and receives from now on.
    pub fn check_types(&mut self) {
        self.check_types = true;
    }

    /// Returns the counters of sent messages.
    pub fn traffic(&self) -> Traffic {
        self.traffic
    }

    /// Returns the counters of the queues, and the number of bytes that the unexpected messages of other ranks occupy.
    pub fn queues(&self) -> (QueueCounts, u64) {
        (self.matching.counts(), self.ledger.total())
    }

    /// Returns the number of unexpected messages that wait in a context.
    pub fn unexpected_in(&self, context: u64) -> u64 {
        self.matching.messages_in(context)
    }

    /// Sets the length in bytes of the longest message that is sent eagerly, unless a protocol is forced. Returns
    /// whether it has done so. `limit` must be at most `EAGER_MAX`.
    pub fn set_eager_limit(&mut self, limit: u64) -> bool {
        let free = self.terms.forced == Forced::Nothing;
        if free {
            self.terms.eager_limit = limit;
        }
        free
    }

    /// Returns the requests of this process.
    pub fn requests(&mut self) -> &mut Requests {
        &mut self.requests
    }

    /// Returns the requests of this process for reading.
    #[inline]
    pub fn requests_ref(&self) -> &Requests {
        &self.requests
    }

    /// Returns the tag that a receive accepts which no message has matched yet.
    pub fn asked_tag(&self, id: u64) -> Option<Tag> {
        self.matching.tag(id)
    }

    /// Returns the number of requests completed so far, plus the number of messages that this rank has sent
    /// to itself and that found no posted receive. A thread may wait for these events, but no other rank
    /// rings the doorbell for them.
    pub fn news(&self) -> u64 {
        self.requests.completions() + self.kept
    }

    /// Returns true if no operation of this rank is in flight and no peer has work left. In that case a
    /// turn could only copy messages from the rings to private memory, which costs one more copy than
    /// leaving them in the rings.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.requests.in_flight() == 0 && !self.busy
    }

    /// Returns true if no other rank waits for this rank: this rank has written everything that it has to
    /// write, and it has taken all data that it has begun to receive, through chunks or in place. (This
    /// includes data for detached receives, because the senders of this data are still waiting.) Messages of
    /// this rank to itself do not count: when the rank leaves the job, no thread is left that could receive
    /// them.
    pub fn others_are_served(&self) -> bool {
        let is_send = |id| self.requests.is_send(id);
        self.requests.sends_in_flight() == 0 && !self.peers.iter().any(|peer| peer.is_owed(is_send))
    }

    /// Returns whether the process in a slot has left the job, properly or by its death.
    pub fn has_left(&self, slot: Process) -> bool {
        self.fabric.has_left(slot.index())
    }

    /// Returns whether the process in a slot sends nothing more to this one, which leaves the job: the process is this one,
    /// has left, or leaves too and has sent everything.
    pub fn sends_no_more(&self, slot: Process) -> bool {
        slot.index() == self.fabric.rank() || self.fabric.sends_no_more(slot.index())
    }

    /// Wakes the process in a slot if it sleeps, after a change of memory that it waits for.
    #[inline]
    pub fn ring(&self, slot: Process) {
        self.fabric.ring(slot.index());
    }

    /// Makes a peer for each slot up to `slot` that has no peer yet. Such slots belong to processes that
    /// have joined the job later.
    #[inline]
    fn meet(&mut self, slot: usize) {
        while slot >= self.peers.len() {
            self.peers.push(Peer::new(&self.fabric, self.peers.len()));
        }
    }

    /// Returns the peer `rank`, and the parts of this engine that the peer's protocols use.
    #[inline]
    fn at(&mut self, rank: usize) -> (&mut Peer, Work<'_, Requests>) {
        let busy = !self.patient || self.requests.in_flight() > 1;
        let work = Work {
            fabric: &self.fabric,
            requests: &mut self.requests,
            stage: &mut self.stage,
            tuning: &mut self.tuning,
            traffic: &mut self.traffic,
            terms: self.terms,
            busy,
        };
        (&mut self.peers[rank], work)
    }

    /// Calls `step` with the peer `rank`. The step may leave work for later turns, for example an envelope
    /// for which the ring has no room, and this function then sets `busy`. So every step that may leave
    /// work must go through this function; otherwise later turns would skip the work.
    fn with_peer<T>(
        &mut self,
        rank: usize,
        step: impl FnOnce(&mut Peer, &mut Work<'_, Requests>) -> Result<T>,
    ) -> Result<T> {
        let (peer, mut work) = self.at(rank);
        let result = step(peer, &mut work);
        let left = peer.has_work();
        self.busy |= left;
        result
    }

    /// Starts a send of `label.bytes` packed bytes to the process in slot `dest`. `label.types` contains
    /// the check bits of the message's types, or `OF_LAYOUT` if the message has the types of the layout.
    ///
    /// # Safety
    ///
    /// - The layout's memory is readable. Unless the mode is buffered, it stays readable and unchanged until
    ///   the send is complete or detached.
    /// - `label.bytes` is the packed size of the layout's elements.
    /// - Memory that the mode lends has room for `label.bytes` bytes, and nobody else uses it until the
    ///   send is complete or detached.
    ///
    /// # Errors
    /// Returns `ErrorKind::NoMemory` if memory ran out, and `ErrorKind::Other` if another rank broke the
    /// protocol.
    pub unsafe fn send(
        &mut self,
        layout: &Elements<&Plan>,
        label: Label,
        dest: Process,
        mode: SendMode,
    ) -> Result<Operation> {
        let (tag, bytes) = (label.tag, label.bytes);
        // SAFETY: the caller guarantees the three conditions of `# Safety`. `start_send` has the same conditions.
        let pending = unsafe { self.start_send(layout, label, dest, mode)? };
        let status = Status { source: self.fabric.rank(), tag, bytes };
        Ok(pending.map_or(Operation::Done(status), Operation::Pending))
    }

    /// Does the same as [`MessageEngine::send`], but returns only the number of the send if the send is pending, and
    /// `None` if the send is complete.
    ///
    /// The callers that use this function need no status. They would copy it with wide loads directly after this
    /// function has written its fields one by one, and such a load waits until all earlier stores have reached the
    /// cache. On a Zen 3, `perf` found half of a sender's time at this load. Messages do not become faster without the
    /// load (bursts of 64 bytes 0.22 us before and after), because the release of the endpoint's lock waits for the
    /// same stores.
    ///
    /// # Safety
    ///
    /// - The arguments meet the conditions of [`MessageEngine::send`].
    ///
    /// # Errors
    /// Returns the errors of [`MessageEngine::send`].
    pub unsafe fn start_send(
        &mut self,
        layout: &Elements<&Plan>,
        label: Label,
        dest: Process,
        mode: SendMode,
    ) -> Result<Option<u64>> {
        let mut label = label;
        if label.types == OF_LAYOUT {
            label.types = match self.check_types {
                true => typecheck::of_message(layout.plan, layout.count),
                false => UNKNOWN,
            };
        }
        self.traffic.messages += 1;
        self.traffic.bytes += label.bytes;
        if dest.index() == self.fabric.rank() {
            self.traffic.carried(Carrier::Own, &label, dest);
            // SAFETY: the arguments meet the conditions of `send` (condition of `# Safety`). `send_self` has the same
            // condition.
            return unsafe { self.send_self(layout, label, mode) };
        }
        self.meet(dest.index());
        self.latest = dest.index();
        self.preparing = label.bytes > INLINE_MAX as u64;
        // SAFETY: the layout's memory is readable, and `label.bytes` is its packed size (first and second condition
        // of `send`, which the arguments meet).
        let send_short =
            |engine: &mut Self| unsafe { engine.send_short(layout, label, dest.index()) };
        if self.terms.is_eager(label.bytes) && !mode.is_synchronous() && send_short(self)? {
            return Ok(None);
        }
        self.requests.make_room()?;
        let mut stage = SendStage::Queued;
        // A copy of the data may find no memory, so in buffered mode the supply is made before the first fragment.
        if !self.terms.is_eager(label.bytes) && !mode.is_synchronous() && mode.uses_the_memory() {
            let with = (&self.fabric, &mut self.stage, self.terms);
            let (peer, busy) = (&mut self.peers[dest.index()], self.requests.in_flight() > 0);
            // SAFETY: the layout's memory is readable, and `label.bytes` is its packed size (first and second
            // condition of `send`, which the arguments meet).
            match unsafe { peer.fragments.send(&mut peer.link, with, layout, label, busy)? } {
                Some((done, _)) if done == label.bytes => {
                    self.traffic.carried(Carrier::Fragments, &label, dest);
                    return Ok(None);
                }
                Some((done, method)) => stage = SendStage::Fragments(done, method),
                None => {}
            }
        }
        // SAFETY: the layout is readable, `label.bytes` is its packed size, and lent memory is free (the three
        // conditions of `send`, which the arguments meet). `Supply::new` requires no more.
        let supply = unsafe { Supply::new(layout, label.bytes, mode)? };
        let synchronous = mode.is_synchronous();
        let id = self.requests.open(Request::Send(Send {
            dest,
            label,
            supply,
            synchronous,
            stage,
            recall: None,
        }));
        let sent = self.with_peer(dest.index(), |peer, work| peer.send(work, id));
        self.pending_unless(sent, id).map(Some)
    }

    /// Returns `id`, the number of a pending operation, if `result` is a success. Otherwise the caller never learns the
    /// number of the operation, so this function detaches the operation from its memory and returns the
    /// error.
    fn pending_unless(&mut self, result: Result<()>, id: u64) -> Result<u64> {
        if result.is_err() {
            self.detach(id);
        }
        result.map(|()| id)
    }
}

#[cfg(test)]
#[path = "../../tests/units/endpoint/engine/mod.rs"]
mod tests;
