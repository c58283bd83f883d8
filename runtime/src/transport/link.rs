//! The two directions between this rank and another one. A direction is the ring that one rank writes, and
//! the queue of envelopes that wait for room in the ring.
//!
//! `peer.rs` owns a [`Link`] and passes it to the protocols, which write and read through it. The file
//! uses `area.rs` (the shared memory) and `fabric.rs` (first contact).
//!
//! Invariants: envelopes to one rank enter its ring in the order in which this rank queued them. Nothing
//! here waits, except [`Tx::withdraw`], which waits until the other rank has read the current piece.

use super::area::Area;
use super::fabric::Fabric;
use super::failure::{broken, lost_at};
use super::offers::Offers;
use super::ready::Ready;
use super::types::{Defined, Known};
use crate::Result;
use crate::message::envelope::{Envelope, Space};
use crate::shm::ring::{Consumer, Producer, Room};
use crate::shm::withdrawal;
use std::collections::VecDeque;

/// A receiver's request to the sender of a message that the receiver copies.
#[derive(Clone, Copy, Debug)]
pub struct HelpWanted {
    /// The kind of memory that both ranks copy between. The protocol for this kind writes the envelope.
    pub space: Space,
    /// The sender's request number.
    pub offer: u64,
    /// Number of the receive.
    pub receive: u64,
    /// Number of the split.
    pub number: u32,
    /// Packed bytes of the message.
    pub bytes: u64,
}

/// An item that waits for room in a ring.
#[derive(Clone, Copy, Debug)]
pub enum Outgoing {
    /// This envelope, which has no payload.
    Say(Envelope),
    /// The send request with this number. `peer.rs` chooses its protocol when the send is first.
    Send(u64),
    /// A request for help to the sender of a message. The protocol of the copy writes the envelope when the
    /// request is the first in the queue. The envelope names the place of the receive, and this rank may
    /// have to define a type first.
    Help(HelpWanted),
}

/// The direction from this rank to another rank.
#[derive(Debug)]
pub struct Tx {
    /// The area in which this rank writes.
    pub area: Area,
    /// Types that the other rank knows.
    pub defined: Defined,
    /// Cache lines that the next message is likely to use.
    pub ready: Ready,
    rank: usize,
    ring: Producer,
    queue: VecDeque<Outgoing>,
    withdrawals: u64,
}

impl Tx {
    fn new(area: Area, rank: usize) -> Self {
        Self {
            area,
            defined: Defined::default(),
            ready: Ready::default(),
            rank,
            ring: Producer::default(),
            queue: VecDeque::new(),
            withdrawals: 0,
        }
    }

    /// Returns whether the queue is empty. If it is, an eager message may go into the ring at once.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.queue.is_empty()
    }

    /// Appends an item to the queue.
    pub fn push(&mut self, outgoing: Outgoing) {
        self.queue.push_back(outgoing);
    }

    /// Returns the first item of the queue.
    pub fn first(&self) -> Option<Outgoing> {
        self.queue.front().copied()
    }

    /// Removes the first item, which has been written to the ring.
    pub fn pop(&mut self) {
        self.queue.pop_front();
    }

    /// Reserves room for an envelope with `len` bytes in the payload area; `None` while the ring is full.
    ///
    /// # Errors
    /// Returns `ErrorKind::Other` if the receiver broke the protocol.
    #[inline]
    pub fn reserve(&mut self, len: usize) -> Result<Option<Room>> {
        self.ring.reserve(&self.area, len).map_err(|v| broken(self.rank, v))
    }

    /// Publishes an envelope whose payload the caller has written to `room`, and wakes the receiver.
    #[inline]
    pub fn publish(&mut self, fabric: &Fabric, room: Room, envelope: &Envelope) {
        let (words, used) = envelope.encode();
        self.ring.publish(&self.area, room, &words, used);
        fabric.ring(self.rank);
    }

    /// Publishes an envelope without payload. Returns false while the ring is full.
    ///
    /// # Errors
    /// Returns `ErrorKind::Other` if the receiver broke the protocol.
    pub fn say(&mut self, fabric: &Fabric, envelope: &Envelope) -> Result<bool> {
        let Some(room) = self.reserve(0)? else { return Ok(false) };
        self.publish(fabric, room, envelope);
        Ok(true)
    }

    /// Returns the offset at which the next payload will begin if the payload fits there.
    #[inline]
    pub fn next_payload(&self) -> usize {
        self.ring.next_offset::<Area>()
    }

    /// Takes back the memory of a message whose RTS has named the place of its data. After the return the
    /// receiver does not read this memory. If the receiver is reading a piece, this call waits until the
    /// receiver has finished the piece or has died.
    pub fn withdraw(&mut self, fabric: &Fabric, id: u64) {
        self.withdrawals += 1;
        withdrawal::count(&self.area, self.withdrawals);
        fabric.wait_for_piece(self.rank, || withdrawal::is_read(&self.area));
        self.push(Outgoing::Say(Envelope::Withdraw(id)));
    }
}

/// The direction from another rank to this rank.
#[derive(Debug)]
pub struct Rx {
    /// The area in which the other rank writes.
    pub area: Area,
    /// The consumer's end of the ring.
    pub ring: Consumer,
    /// Types that the other rank has defined.
    pub known: Known,
    /// Messages whose data this rank may read in place.
    pub offers: Offers,
}

impl Rx {
    /// Creates the direction from the rank that writes in `area`.
    pub fn new(area: Area) -> Self {
        let (ring, known) = (Consumer::default(), Known::default());
        Self { area, ring, known, offers: Offers::default() }
    }
}

/// Both directions.
#[derive(Debug)]
pub struct Link {
    /// The other rank.
    pub rank: usize,
    /// The direction to the other rank; set at the first contact.
    pub tx: Option<Tx>,
    /// The direction from the other rank; set when its first envelope arrives.
    pub rx: Option<Rx>,
}

impl Link {
    /// Creates a link without either direction.
    pub fn new(rank: usize) -> Self {
        Self { rank, tx: None, rx: None }
    }

    /// Returns the direction to the other rank, and makes the first contact if necessary.
    ///
    /// # Errors
    /// Returns `ErrorKind::NoMemory` if memory ran out.
    #[inline]
    pub fn contact(&mut self, fabric: &Fabric) -> Result<&mut Tx> {
        let rank = self.rank;
        match &mut self.tx {
            Some(tx) => Ok(tx),
            none => Ok(none.insert(Tx::new(fabric.contact(rank)?, rank))),
        }
    }

    /// Returns the direction to the other rank.
    ///
    /// # Errors
    /// Returns `ErrorKind::Internal` if there was no first contact, which is a bug.
    pub fn tx(&mut self) -> Result<&mut Tx> {
        self.tx.as_mut().ok_or_else(|| lost_at("the link to", self.rank))
    }

    /// Returns both directions.
    ///
    /// # Errors
    /// Returns `ErrorKind::Internal` if a direction does not exist yet, which is a bug.
    pub fn both(&mut self) -> Result<(&mut Tx, &mut Rx)> {
        match self {
            Self { tx: Some(tx), rx: Some(rx), .. } => Ok((tx, rx)),
            Self { rank, .. } => Err(lost_at("the link to or from", *rank)),
        }
    }
}
