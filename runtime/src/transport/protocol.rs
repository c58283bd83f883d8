//! The trait of a protocol. A protocol moves the bytes of a message from its sender to its receiver.
//!
//! `choice.rs` chooses a protocol for each message. `peer.rs` has one instance of each protocol for every
//! other rank, and calls the methods of [`Protocol`]. No protocol calls another one: if a protocol
//! cannot complete a message, it returns the message to `peer.rs`, which passes the message to the
//! pipeline.

pub(in crate::transport) mod answers;
pub(crate) mod eager;
pub(in crate::transport) mod fragments;
pub(in crate::transport) mod heap;
pub(crate) mod in_flight;
pub(in crate::transport) mod long_types;
pub(in crate::transport) mod offers;
pub(in crate::transport) mod pipeline;
pub(crate) mod private;
pub(in crate::transport) mod single_copy;
pub(crate) mod types;

use super::choice::Terms;
use super::choice::tuning::Tuning;
use super::link::Link;
use super::link::Stage;
use super::link::fabric::Fabric;
use crate::Result;
use crate::message::envelope::Offer;
use crate::message::label::{Label, Shape};
use crate::process::Process;
use crate::tools::counting::{self, Subject};
use crate::transport::protocol::in_flight::RequestTable;
use crate::transport::protocol::types::Located;
use typepack_engine::contiguous::Method;

/// Counters for `TYPEPACK_REPORT`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Traffic {
    /// Number of messages sent.
    pub messages: u64,
    /// Number of packed bytes sent.
    pub bytes: u64,
    /// Number of messages of this rank to itself.
    pub own: u64,
    /// Number of messages that were packed into the ring as one piece.
    pub eager: u64,
    /// Number of messages that went through the ring in fragments.
    pub fragments: u64,
    /// Number of messages that were packed into chunks.
    pub pipelined: u64,
    /// Number of messages that were copied in place out of this rank's heap, by the receiver or by both
    /// ranks.
    pub fused: u64,
    /// Number of messages that the receiver copied between private memories.
    pub private: u64,
    /// Number of messages to other ranks that ended before a protocol carried them: the receiver has refused the data,
    /// or this rank has cancelled the message.
    pub undelivered: u64,
}

/// The protocol that carries a message, as the event of the tool interface names it.
#[derive(Clone, Copy, Debug)]
pub enum Carrier {
    Eager,
    Fragments,
    Pipeline,
    Heap,
    Private,
    Own,
}

impl Traffic {
    /// Counts a message to `dest` that this protocol carries.
    #[inline(always)]
    pub fn carried(&mut self, by: Carrier, label: &Label, dest: Process) {
        *match by {
            Carrier::Eager => &mut self.eager,
            Carrier::Fragments => &mut self.fragments,
            Carrier::Pipeline => &mut self.pipelined,
            Carrier::Heap => &mut self.fused,
            Carrier::Private => &mut self.private,
            Carrier::Own => &mut self.own,
        } += 1;
        if counting::is_wanted(Subject::ProtocolChosen) {
            label.tell(Subject::ProtocolChosen, dest, by as u64);
        }
    }

    /// Returns the number of messages under way: no protocol has carried them yet, and they have not ended.
    pub fn under_way(&self) -> u64 {
        let Self {
            messages,
            bytes: _,
            own,
            eager,
            fragments,
            pipelined,
            fused,
            private,
            undelivered,
        } = *self;
        let ended = own + eager + fragments + pipelined + fused + private + undelivered;
        messages.saturating_sub(ended)
    }
}

/// The parts of this process that a protocol works with.
#[derive(Debug)]
pub struct Work<'a, R> {
    /// This rank's connection to the other ranks.
    pub fabric: &'a Fabric,
    /// Operations in flight.
    pub requests: &'a mut R,
    /// The private buffer into which this rank packs pieces before it copies the pieces to the chunks.
    pub stage: &'a mut Stage,
    /// Chooses by measurement how messages to this rank are copied.
    pub tuning: &'a mut Tuning,
    /// Counts what this rank has sent.
    pub traffic: &'a mut Traffic,
    /// The settings for the protocols.
    pub terms: Terms,
    /// True if this rank has other operations under way, or if the program's current call does not wait, so
    /// that the program goes on to other work.
    pub busy: bool,
}

/// The answer of a protocol when `peer.rs` offers it the send at the head of the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offered {
    /// The protocol cannot carry this message.
    Declined,
    /// The protocol can carry the message, but the ring is full. Some fragments of a message in fragments may be in the
    /// ring.
    NoRoom,
    /// The first envelope of the message is in the ring; of a message in fragments, all envelopes.
    Written,
}

/// The packed bytes of a short message, at the address where they have arrived.
#[derive(Clone, Copy, Debug)]
pub struct Payload {
    data: *const u8,
    /// How an ACK names the message; `None` if its sender waits for no ACK.
    pub waiting: Option<Offer>,
}

impl Payload {
    /// Wraps the packed bytes that begin at `data`.
    ///
    /// # Safety
    ///
    /// - All bytes of the message, from `data` on, are readable for as long as the returned value is used.
    /// - No user layout overlaps these bytes.
    #[inline]
    pub unsafe fn new(data: *const u8, waiting: Option<Offer>) -> Self {
        Self { data, waiting }
    }

    /// Returns the address of the first packed byte.
    #[inline]
    pub fn data(&self) -> *const u8 {
        self.data
    }
}

/// The message that a receive has matched.
#[derive(Debug)]
pub enum Arrival {
    /// A short message whose bytes have arrived.
    Payload(Payload),
    /// A message of this shape that waits at its sender under this request id. If the RTS names the place of
    /// the data, the place is present.
    Rts(u64, Shape, Option<Box<Located>>),
}

/// How a matched message is copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyPlan {
    /// The method for long runs. Through chunks, only the sender copies with this method.
    pub method: Method,
    /// The method with which the receiver unpacks long runs out of chunks.
    pub unpack: Method,
    /// True if the receive's memory lies in a heap and its elements do not overlap, so that the sender
    /// can copy a part of the message.
    pub shared: bool,
}

impl CopyPlan {
    /// The plan of a message that goes through the ring or the chunks because no other way is possible.
    pub const PLAIN: Self = Self { method: Method::Vector, unpack: Method::Vector, shared: false };
}

/// A message that a receive has matched and does not refuse.
#[derive(Debug)]
pub struct Matched {
    /// Number of the receive.
    pub receive: u64,
    /// Tag and length of the message.
    pub label: Label,
    /// The payload or the RTS of the message.
    pub arrival: Arrival,
}

/// The result of a protocol's turn, which is one call of [`Protocol::advance`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advance {
    /// The protocol could not make progress.
    Idle,
    /// The protocol made progress.
    Moved,
    /// A receive cannot read its message in place, so the message has to go through the chunks. The first
    /// value is the number of the receive, and the second is the request id in the message's RTS.
    GaveUp(u64, u64),
}

/// A way to carry messages between this rank and another rank. One value handles this rank's end of both
/// directions.
pub trait Protocol {
    /// At the sender: writes the first envelope of the send `id` if this protocol can carry the message.
    ///
    /// # Errors
    /// Returns `ErrorKind::Other` if the other rank broke the protocol, and `ErrorKind::NoMemory` if
    /// memory ran out.
    fn offer<R: RequestTable>(
        &mut self,
        work: &mut Work<'_, R>,
        link: &mut Link,
        id: u64,
    ) -> Result<Offered>;

    /// At the receiver: begins to take a message that a receive has matched. The message is copied by `plan`.
    /// Returns false if this protocol cannot carry the message.
    ///
    /// # Errors
    /// Returns `ErrorKind::NoMemory` if memory ran out.
    fn matched<R: RequestTable>(
        &mut self,
        work: &mut Work<'_, R>,
        link: &mut Link,
        matched: &mut Matched,
        plan: CopyPlan,
    ) -> Result<bool>;

    /// At either end: moves a bounded amount of data of operations that have begun.
    ///
    /// # Errors
    /// Returns `ErrorKind::Other` if the other rank broke the protocol, and `ErrorKind::NoMemory` if
    /// memory ran out.
    fn advance<R: RequestTable>(
        &mut self,
        work: &mut Work<'_, R>,
        link: &mut Link,
    ) -> Result<Advance> {
        let _ = (work, link);
        Ok(Advance::Idle)
    }

    /// At the receiver: handles a withdrawal. The sender has taken back the memory that the RTS of `offer` named.
    /// Returns the receive for which this protocol was reading the memory, if there is one.
    #[inline]
    fn withdrawn(&mut self, link: &Link, offer: u64) -> Option<u64> {
        let _ = (link, offer);
        None
    }

    /// At either end: gives up the memory of the operation `id`. After the return the other rank neither
    /// reads nor writes this memory.
    fn withdraw<R: RequestTable>(&mut self, work: &mut Work<'_, R>, link: &mut Link, id: u64) {
        let _ = (work, link, id);
    }

    /// Returns whether [`Protocol::advance`] still has work to do.
    #[inline]
    fn has_work(&self) -> bool {
        false
    }
}
