//! What a protocol is: one way in which the bytes of a message go from its sender to its receiver.
//!
//! `choice.rs` chooses one for a message, `peer.rs` has one of each for every other rank, and calls
//! them by the four verbs of [`Protocol`]. No protocol knows of another one: what one cannot carry to
//! its end goes back to `peer.rs`, which gives it to the pipeline.

use super::choice::Terms;
use super::fabric::Fabric;
use super::in_flight::RequestTable;
use super::link::Link;
use super::stage::Stage;
use super::types::Located;
use crate::Result;
use crate::message::label::Label;

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

/// What of this process a protocol works with.
#[derive(Debug)]
pub struct Work<'a, R> {
    /// This rank's place in the job.
    pub fabric: &'a Fabric,
    /// Operations in flight.
    pub requests: &'a mut R,
    /// Where pieces are packed first.
    pub stage: &'a mut Stage,
    /// What has been sent.
    pub traffic: &'a mut Traffic,
    /// What the settings say.
    pub terms: Terms,
    /// This rank has other operations under way, or goes on to other work.
    pub busy: bool,
}

/// What a protocol says to a send that is next in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offered {
    /// It cannot carry this message.
    Declined,
    /// It can, but the ring is full.
    NoRoom,
    /// Its first envelope is out.
    Written,
}

/// The packed bytes of a short message, where they have arrived.
#[derive(Clone, Copy, Debug)]
pub struct Payload {
    data: *const u8,
    /// The request id under which a synchronous sender waits for the ACK.
    pub waiting: Option<u64>,
}

impl Payload {
    /// The bytes from `data` on.
    ///
    /// # Safety
    ///
    /// - All bytes of the message are readable from `data` on for as long as the value is used, and no
    ///   user layout overlaps them.
    #[inline]
    pub unsafe fn new(data: *const u8, waiting: Option<u64>) -> Self {
        Self { data, waiting }
    }

    /// Where they are.
    #[inline]
    pub fn data(&self) -> *const u8 {
        self.data
    }
}

/// What a receive has matched.
#[derive(Debug)]
pub enum Arrival {
    /// A message whose bytes are here.
    Payload(Payload),
    /// A message that waits at its sender under this request id; perhaps where its data lies.
    Rts(u64, Option<Box<Located>>),
}

/// A message that the receive with this number has matched, and may have.
#[derive(Debug)]
pub struct Matched {
    /// The receive.
    pub receive: u64,
    /// Tag and length of the message.
    pub label: Label,
    /// What there is of it.
    pub arrival: Arrival,
}

/// What came of a protocol's work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advance {
    /// Nothing could be moved.
    Idle,
    /// Something was moved.
    Moved,
    /// This receive cannot get the message of this RTS here: it is to come through the chunks.
    GaveUp(u64, u64),
}

/// One way of messages between this rank and another one; both ends of both directions.
pub trait Protocol {
    /// At the sender: writes the first envelope of the send `id`, if this protocol can carry it.
    ///
    /// # Errors
    /// The other rank broke the protocol; out of memory.
    fn offer<R: RequestTable>(
        &mut self,
        work: &mut Work<'_, R>,
        link: &mut Link,
        id: u64,
    ) -> Result<Offered>;

    /// At the receiver: begins to take a message that a receive has matched; false if this protocol
    /// cannot carry it.
    ///
    /// # Errors
    /// Out of memory.
    fn matched<R: RequestTable>(
        &mut self,
        work: &mut Work<'_, R>,
        link: &mut Link,
        matched: &mut Matched,
    ) -> Result<bool>;

    /// At either end: moves a bounded amount of what was begun.
    ///
    /// # Errors
    /// The other rank broke the protocol; out of memory.
    fn advance<R: RequestTable>(
        &mut self,
        work: &mut Work<'_, R>,
        link: &mut Link,
    ) -> Result<Advance> {
        let _ = (work, link);
        Ok(Advance::Idle)
    }

    /// At either end: the memory of the operation `id` is needed elsewhere. When this returns, the other
    /// rank neither reads nor writes it, and will not.
    fn withdraw<R: RequestTable>(&mut self, work: &mut Work<'_, R>, link: &mut Link, id: u64) {
        let _ = (work, link, id);
    }

    /// Whether [`Protocol::advance`] has anything left.
    #[inline]
    fn has_work(&self) -> bool {
        false
    }
}
