//! All message state of this process, and the rules by which messages meet receives.
//!
//! `progress.rs` owns the one [`MessageEngine`] behind its lock and turns it; `comm/` starts sends and
//! receives here with checked arguments; bytes go through `transport/peer.rs`. A receive is matched
//! either when it is posted (`receive`) or when a message arrives (`incoming.rs`), never
//! otherwise. `matching.rs` decides every match, with one exception: a blocking receive that finds its
//! message at the head of the ring, with both queues empty, takes the message without a queue
//! (`engine/receive.rs`, `glance`).
//!
//! Invariants: an unmatched message occupies no shared memory for longer than one turn (eager data
//! is copied to the heap, the rest stays with its sender); nothing here waits.

mod detach;
mod incoming;
mod own;
mod receive;

use super::matching::{Arrived, Matching, Unexpected};
use super::requests::{Request, Requests};
use crate::message::envelope::{Envelope, INLINE_MAX, Place};
use crate::message::label::Label;
use crate::message::payload::{Backing, LayoutRef, Posting, Sink, Supply, buffer, copy};
use crate::message::typecheck::{self, OF_LAYOUT, UNKNOWN};
use crate::message::{Operation, Source, Status, Tag};
use crate::settings::Forced;
use crate::transport::area::Area;
use crate::transport::choice::Terms;
use crate::transport::eager::Eager;
use crate::transport::fabric::Fabric;
use crate::transport::failure::{broken, lost};
use crate::transport::in_flight::{Receive, Send, SendStage, Told, received};
use crate::transport::peer::Peer;
use crate::transport::protocol::{Arrival, Matched, Payload, Work};
use crate::transport::stage::{STAGE_MIN, Stage};
use crate::{Error, Result};

pub use crate::transport::protocol::Traffic;
pub use receive::{Glance, Taken};

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

/// The message state of one process.
#[derive(Debug)]
pub struct MessageEngine {
    fabric: Fabric,
    terms: Terms,
    /// Types of messages are compared.
    check_types: bool,
    peers: Vec<Peer>,
    /// The rank that was written to last.
    latest: usize,
    /// There may be something to make ready for its next message.
    preparing: bool,
    readable: Vec<usize>,
    connects: u32,
    matching: Matching,
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
        let size = fabric.size();
        let peers = (0..size).map(|rank| Peer::new(&fabric, rank)).collect();
        Self {
            fabric,
            terms: Terms { eager_limit, forced: Forced::default() },
            check_types: false,
            peers,
            latest: 0,
            preparing: false,
            readable: Vec::new(),
            connects: 0,
            matching: Matching::new(size),
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
        self.terms.forced = forced;
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
        self.requests.sends_in_flight_but_to(self.fabric.rank()) == 0
            && !self.peers.iter().any(Peer::has_work)
    }

    /// Forgets a context that no communicator uses any more, unless something is queued in it.
    pub fn close_context(&mut self, context: u64) {
        self.matching.close(context);
    }

    /// A rank, and what its protocols work with.
    #[inline]
    fn at(&mut self, rank: usize) -> (&mut Peer, Work<'_, Requests>) {
        let busy = !self.patient || self.requests.in_flight() > 1;
        let work = Work {
            fabric: &self.fabric,
            requests: &mut self.requests,
            stage: &mut self.stage,
            traffic: &mut self.traffic,
            terms: self.terms,
            busy,
        };
        (&mut self.peers[rank], work)
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
            // SAFETY: the caller promises what the callee asks for.
            return unsafe { self.send_self(layout, label, status, how) };
        }
        self.latest = dest;
        self.preparing = label.bytes > INLINE_MAX as u64;
        let tx = self.peers[dest].link.contact(&self.fabric)?;
        if self.terms.is_eager(label.bytes) && !how.synchronous && tx.is_idle() {
            let stage = &mut self.stage;
            let staged =
                label.bytes >= STAGE_MIN as u64 && Stage::serves(layout.plan, layout.count);
            // SAFETY: the range is the whole message (caller's promise); the destination and the
            // stage hold as many bytes, of memory which no user layout overlaps.
            let pack = |to| unsafe {
                let pack = |to| layout.pack(0..label.bytes, to);
                if staged { stage.pack(label.bytes as usize, to, pack) } else { pack(to) }
            };
            if Eager::send(tx, &self.fabric, label, pack)? {
                self.traffic.eager += 1;
                return Ok(Operation::Done(status));
            }
        }
        // SAFETY: layout, size and lent memory are the caller's promise.
        let supply = unsafe { Supply::new(layout, label.bytes, how.backing)? };
        let (synchronous, stage) = (how.synchronous, SendStage::Queued);
        let id =
            self.requests.open(Request::Send(Send { dest, label, supply, synchronous, stage }));
        let (peer, mut work) = self.at(dest);
        let sent = peer.send(&mut work, id);
        self.busy = true;
        self.pending_unless(sent, id)
    }

    /// An operation that is pending, unless the call that has started it fails: its caller never
    /// learns the number, and nobody may touch its memory after that.
    fn pending_unless(&mut self, result: Result<()>, id: u64) -> Result<Operation> {
        if result.is_err() {
            self.detach(id);
        }
        result.map(|()| Operation::Pending(id))
    }
}

#[cfg(test)]
mod tests;
