//! The two ways between this rank and another one: the ring each writes, and what waits for room in it.
//!
//! `peer.rs` owns a [`Link`] and hands it to the protocols, which write and read through it. Before
//! this file come `area.rs` (the shared memory) and `fabric.rs` (first contact).
//!
//! Invariants: what goes to one rank enters its ring in the order in which it was queued; nothing here
//! ever waits, but for the end of a piece that the other rank is reading.

use super::area::Area;
use super::fabric::Fabric;
use super::failure::{broken, lost};
use super::offers::Offers;
use super::ready::Ready;
use super::types::{Defined, Known};
use crate::Result;
use crate::message::envelope::Envelope;
use crate::shm::ring::{Consumer, Producer, Room};
use crate::shm::withdrawal;
use std::collections::VecDeque;

/// What a receiver asks of a sender whose message it copies.
#[derive(Clone, Copy, Debug)]
pub struct HelpWanted {
    /// The sender's request number.
    pub offer: u64,
    /// The receive.
    pub receive: u64,
    /// Number of the split.
    pub number: u32,
    /// Packed bytes of the message.
    pub bytes: u64,
}

/// Something that waits for room in a ring.
#[derive(Clone, Copy, Debug)]
pub enum Outgoing {
    /// This envelope, which has no payload.
    Say(Envelope),
    /// The send request with this number: its protocol is chosen when it is its turn.
    Send(u64),
    /// The sender of a message in its heap is asked for help: its envelope says where the receive lies
    /// in ours, for which a type may have to be defined.
    Help(HelpWanted),
}

/// The way to another rank.
#[derive(Debug)]
pub struct Tx {
    /// Where this rank writes.
    pub area: Area,
    /// Types that the other rank knows.
    pub defined: Defined,
    /// Lines for the next message.
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

    /// True when nothing waits: an eager message may go into the ring at once.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.queue.is_empty()
    }

    /// Queues something behind what waits already.
    pub fn push(&mut self, outgoing: Outgoing) {
        self.queue.push_back(outgoing);
    }

    /// What waits first.
    pub fn first(&self) -> Option<Outgoing> {
        self.queue.front().copied()
    }

    /// What waited first has been written.
    pub fn pop(&mut self) {
        self.queue.pop_front();
    }

    /// Room for an envelope with `len` bytes in the payload area; `None` while the ring is full.
    ///
    /// # Errors
    /// The receiver broke the protocol.
    #[inline]
    pub fn reserve(&mut self, len: usize) -> Result<Option<Room>> {
        self.ring.reserve(&self.area, len).map_err(|v| broken(self.rank, v))
    }

    /// Publishes an envelope, whose payload has been written to `room`, and wakes the receiver.
    #[inline]
    pub fn publish(&mut self, fabric: &Fabric, room: Room, envelope: &Envelope) {
        let (words, used) = envelope.encode();
        self.ring.publish(&self.area, room, &words, used);
        fabric.ring(self.rank);
    }

    /// Publishes an envelope without payload. False while the ring is full.
    ///
    /// # Errors
    /// The receiver broke the protocol.
    pub fn say(&mut self, fabric: &Fabric, envelope: &Envelope) -> Result<bool> {
        let Some(room) = self.reserve(0)? else { return Ok(false) };
        self.publish(fabric, room, envelope);
        Ok(true)
    }

    /// Where the next payload begins, unless it does not fit there.
    #[inline]
    pub fn next_payload(&self) -> usize {
        self.ring.next_offset::<Area>()
    }

    /// Takes back the memory of a message whose RTS has said where it lies: when this returns, the
    /// receiver reads none of it, and will not. Waits for the end of a piece if it is reading one,
    /// unless it has died.
    pub fn withdraw(&mut self, fabric: &Fabric, id: u64) {
        self.withdrawals += 1;
        withdrawal::count(&self.area, self.withdrawals);
        fabric.wait_for_piece(self.rank, || withdrawal::is_read(&self.area));
        self.push(Outgoing::Say(Envelope::Withdraw(id)));
    }
}

/// The way from another rank.
#[derive(Debug)]
pub struct Rx {
    /// Where the other rank writes.
    pub area: Area,
    /// The ring.
    pub ring: Consumer,
    /// Types that the other rank has defined.
    pub known: Known,
    /// Messages whose data may be read where it lies.
    pub offers: Offers,
}

impl Rx {
    /// The way from a rank that has written to `area`.
    pub fn new(area: Area) -> Self {
        let (ring, known) = (Consumer::default(), Known::default());
        Self { area, ring, known, offers: Offers::default() }
    }
}

/// Both ways.
#[derive(Debug)]
pub struct Link {
    /// The other rank.
    pub rank: usize,
    /// The way there, from the first contact on.
    pub tx: Option<Tx>,
    /// The way from there, once something has come.
    pub rx: Option<Rx>,
}

impl Link {
    /// No way yet.
    pub fn new(rank: usize) -> Self {
        Self { rank, tx: None, rx: None }
    }

    /// The way there, made now if there is none.
    ///
    /// # Errors
    /// Out of memory.
    #[inline]
    pub fn contact(&mut self, fabric: &Fabric) -> Result<&mut Tx> {
        let rank = self.rank;
        match &mut self.tx {
            Some(tx) => Ok(tx),
            none => Ok(none.insert(Tx::new(fabric.contact(rank)?, rank))),
        }
    }

    /// The way there.
    ///
    /// # Errors
    /// There is none, which is a bug.
    pub fn tx(&mut self) -> Result<&mut Tx> {
        self.tx.as_mut().ok_or_else(|| lost("the way to a rank"))
    }

    /// Both ways.
    ///
    /// # Errors
    /// There is none, which is a bug.
    pub fn both(&mut self) -> Result<(&mut Tx, &mut Rx)> {
        match self {
            Self { tx: Some(tx), rx: Some(rx), .. } => Ok((tx, rx)),
            _ => Err(lost("the way to or from a rank")),
        }
    }
}
