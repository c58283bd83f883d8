//! The two directions between this rank and another rank. A direction consists of the ring that one of the
//! two ranks writes, and the queue of envelopes that wait for room in the ring.
//!
//! `peer.rs` owns a [`Link`] and passes it to the protocols, which write and read through it. This file
//! uses `area.rs` (the shared memory) and `fabric.rs` (the first contact).
//!
//! Invariants: envelopes to one rank enter its ring in the order in which this rank queued them. No
//! function here waits, except [`Tx::withdraw`], which waits until the other rank has read the current
//! piece.

pub(crate) mod area;
pub(in crate::transport) mod cleared;
pub(crate) mod credit;
pub(crate) mod fabric;
pub(crate) mod failure;
pub(in crate::transport) mod pool;
pub(in crate::transport) mod ready;
pub(in crate::transport) mod recalls;
pub(crate) mod stage;

use super::choice::short_choice::ShortChoices;
use super::protocol::offers::Offers;
use super::protocol::types::{Defined, Known};
use crate::message::envelope::{Envelope, PART_MAX};
use crate::message::label::Label;
use crate::message::payload::SHORT;
use crate::shm::pair::LINE;
use crate::shm::ring::{Consumer, ENVELOPE_WORDS, Producer, Room};
use crate::shm::withdrawal;
use crate::transport::link::area::Area;
use crate::transport::link::credit::Credit;
use crate::transport::link::fabric::Fabric;
use crate::transport::link::failure::{broken, lost_at};
use crate::transport::link::ready::Ready;
use crate::transport::link::recalls::Recalls;
use crate::{Error, ErrorKind, Result};
use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use typepack_engine::contiguous::Method;
use typepack_engine::reserve::Grow;

/// How many messages ahead of its next message a sender fetches cache lines.
const AHEAD: u32 = 8;

/// Length of the longest payload whose lines a sender fetches ahead, in bytes. A longer message has enough lines of
/// its own that the processor fetches at the same time.
const AHEAD_MAX: usize = 4 * LINE;

/// A request for help with the copy of a message. The receiver of the message sends the request to the
/// sender of the message.
#[derive(Clone, Copy, Debug)]
pub struct HelpWanted {
    /// The sender's request id of the message, from the RTS.
    pub offer: u64,
    /// The number of the receive on this rank.
    pub receive: u64,
    /// The number that distinguishes this shared copy from earlier ones.
    pub number: u32,
    /// The method by which the sender copies long runs.
    pub method: Method,
    /// Number of packed bytes of the message.
    pub bytes: u64,
}

/// An item that waits for room in a ring.
#[derive(Clone, Copy, Debug)]
pub enum Outgoing {
    /// An envelope without payload.
    Say(Envelope),
    /// A send with this request number. When the send is the first item of the queue, `peer.rs` chooses its
    /// protocol.
    Send(u64),
    /// A request for help to the sender of a message. When this item is the first in the queue, the
    /// protocol that copies the message writes the envelope. The envelope names the place of the receive,
    /// so this rank may have to define a type before it writes the envelope.
    Help(HelpWanted),
}

/// The sending half of a link: from this rank to another rank.
#[derive(Debug)]
pub struct Tx {
    /// The area in which this rank writes.
    pub area: Area,
    /// The types of this rank that the other rank already knows.
    pub defined: Defined,
    /// The cache lines that the next message will probably use.
    pub ready: Ready,
    /// The words by which this rank can recall its messages.
    pub recalls: Recalls,
    /// The choices of how short payloads are copied; `None` before the first payload of some KiB.
    pub short: Option<Box<ShortChoices>>,
    rank: usize,
    ring: Producer,
    /// True if there was no memory for the next ring.
    refused: bool,
    queue: VecDeque<Outgoing>,
    withdrawals: u64,
}

impl Tx {
    fn new(area: Area, rank: usize) -> Self {
        Self {
            area,
            defined: Defined::default(),
            ready: Ready::default(),
            recalls: Recalls::default(),
            short: None,
            rank,
            ring: Producer::new::<Area>(area.geometry().first_level()),
            refused: false,
            queue: VecDeque::new(),
            withdrawals: 0,
        }
    }

    /// Returns whether the queue is empty. Only then may an eager message go into the ring at once.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.queue.is_empty()
    }

    /// Makes room for another item in the queue.
    ///
    /// # Errors
    /// Returns `ErrorKind::NoMemory` if memory ran out.
    #[inline]
    pub fn make_room(&mut self) -> Result<()> {
        let refused =
            |_| Error::new(ErrorKind::NoMemory, "memory", "there is no memory for another send");
        self.queue.grow(1).map_err(refused)
    }

    /// Appends an item to the queue.
    pub fn push(&mut self, outgoing: Outgoing) {
        self.queue.push_back(outgoing);
    }

    /// Returns whether the data of a message may go out although no receive may match the message soon, and whether
    /// its send then need not wait for the match. An internal message always may.
    #[inline]
    pub fn allows(&self, label: &Label) -> bool {
        match Credit::of(self.area.credit().load(Ordering::Relaxed)) {
            Credit::Any => true,
            Credit::Short => label.bytes <= SHORT as u64 || label.is_internal(),
            Credit::None => label.is_internal(),
        }
    }

    /// Returns the items of the queue, from the first to the last.
    pub fn queued(&self) -> impl Iterator<Item = &Outgoing> {
        self.queue.iter()
    }

    /// Returns the first item of the queue.
    pub fn first(&self) -> Option<Outgoing> {
        self.queue.front().copied()
    }

    /// Removes the first item of the queue. The caller has just written this item to the ring.
    pub fn pop(&mut self) {
        self.queue.pop_front();
    }

    /// Reserves room for an envelope and for `len` bytes in the payload area. If the ring is full, or too small
    /// for `len` bytes, changes to a larger ring. Returns `None` if the largest ring that memory permits is
    /// full, or if this ring is too small (see [`Tx::admits`]).
    ///
    /// # Errors
    /// Returns `ErrorKind::Other` if the receiver broke the protocol.
    #[inline]
    pub fn reserve(&mut self, fabric: &Fabric, len: usize) -> Result<Option<Room>> {
        match self.ring.reserve(&self.area, len) {
            Ok(Some(room)) => Ok(Some(room)),
            Ok(None) => self.reserve_more(fabric, len),
            Err(violation) => Err(broken(self.rank, violation)),
        }
    }

    #[cold]
    #[inline(never)]
    fn reserve_more(&mut self, fabric: &Fabric, len: usize) -> Result<Option<Room>> {
        while !self.refused
            && let Some(next) = self.ring.next_level::<Area>()
        {
            if !fabric.reserve_ring(self.rank, next) {
                self.refused = true;
                break;
            }
            self.ring.grow(&self.area).map_err(|v| broken(self.rank, v))?;
            // The receiver learns of the new ring when it looks for the next message.
            let room = self.ring.reserve(&self.area, len).map_err(|v| broken(self.rank, v))?;
            if room.is_some() {
                return Ok(room);
            }
        }
        Ok(None)
    }

    /// Returns false if the ring will never have room for a payload of `len` bytes: the ring is too
    /// small, and there was no memory for a larger one.
    #[inline]
    pub fn admits(&self, len: usize) -> bool {
        len <= self.ring.longest() || !self.refused
    }

    /// Returns the number of envelopes that this rank has written to the ring.
    #[inline]
    pub fn published(&self) -> u64 {
        self.ring.published()
    }

    /// Returns the receiver's last answer to a mark, and whether the receiver has told that it has used the first
    /// `count` envelopes. If it has, the answer is not older than its use of them.
    pub fn answer(&self, count: u64) -> (u64, bool) {
        let used = self.ring.has_freed(&self.area, count);
        (self.area.measured().load(Ordering::Relaxed), used)
    }

    /// Publishes an envelope and wakes the receiver. The caller has already written the payload to `room`.
    #[inline]
    pub fn publish(&mut self, fabric: &Fabric, room: Room, envelope: &Envelope) {
        let (words, used) = envelope.encode();
        self.publish_words(fabric, room, &words[..used]);
    }

    /// Publishes an envelope that consists of these words, and wakes the receiver. The caller has already written
    /// the payload to `room`.
    #[inline(always)]
    pub fn publish_words(&mut self, fabric: &Fabric, room: Room, words: &[u64]) {
        self.ring.publish_words(&self.area, room, words);
        fabric.ring(self.rank);
    }

    /// Fetches the cache lines of the message that comes [`AHEAD`] messages after the next one, on the
    /// assumption that all these messages have `len` bytes in the payload area, like the last one. The
    /// receiver was the last to read these lines, and to fetch one back from its cache takes longer than
    /// to write a short message. So a rank that sends one message after the other does not wait for its
    /// lines.
    #[inline]
    pub fn fetch_ahead(&self, len: usize) {
        if let Some(slot) = self.ring.ahead(AHEAD) {
            self.area.claim_slot(slot);
        }
        if len == 0 || len > AHEAD_MAX {
            return;
        }
        let step = len.next_multiple_of(LINE);
        if let Some(offset) = self.ring.payload_ahead(AHEAD as usize * step) {
            for line in (0..step).step_by(LINE) {
                Area::claim(self.area.payload(offset).wrapping_add(line));
            }
        }
    }

    /// Publishes an envelope without payload. Returns false if the ring is full.
    ///
    /// # Errors
    /// Returns `ErrorKind::Other` if the receiver broke the protocol.
    pub fn say(&mut self, fabric: &Fabric, envelope: &Envelope) -> Result<bool> {
        let Some(room) = self.reserve(fabric, 0)? else { return Ok(false) };
        self.publish(fabric, room, envelope);
        Ok(true)
    }

    /// Returns whether the ring has a large payload area, which has room for several messages in parts.
    #[inline]
    pub fn is_large(&self) -> bool {
        self.ring.is_large::<Area>()
    }

    /// Returns how many of `len` bytes lie in one run of the payload area, from the place on that
    /// [`Tx::next_payload`] returns for a part of the maximum length.
    #[inline]
    pub fn run_ahead(&self, len: usize) -> usize {
        self.ring.run_ahead(PART_MAX, len)
    }

    /// Returns the offset at which the next payload will begin if it has `len` bytes.
    #[inline]
    pub fn next_payload(&self, len: usize) -> usize {
        self.ring.next_offset(len)
    }

    /// Takes back the memory of a message whose RTS has named the place of the data. After the return the
    /// receiver no longer reads this memory. If the receiver is reading a piece, this call waits until the
    /// receiver has finished the piece or has died.
    pub fn withdraw(&mut self, fabric: &Fabric, id: u64) {
        self.withdrawals += 1;
        withdrawal::count(&self.area, self.withdrawals);
        fabric.wait_for_piece(self.rank, || withdrawal::is_read(&self.area));
        self.push(Outgoing::Say(Envelope::Withdraw(id)));
    }
}

/// The place to which the parts of a message go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// The receive with this request number, which has matched the message.
    Receive(u64),
    /// The private memory with this number, which keeps the message until a receive matches it
    /// (`endpoint/engine/parts.rs`).
    Kept(u64),
    /// No memory: the receive has refused the message.
    Nowhere,
}

/// A message in parts, of which some parts have arrived.
#[derive(Clone, Copy, Debug)]
pub struct Arriving {
    /// The place to which the parts go.
    pub target: Target,
    /// Number of packed bytes of the message.
    pub total: u64,
    /// Number of packed bytes that have arrived.
    pub done: u64,
    /// The method for long runs.
    pub method: Method,
}

/// The receiving half of a link: from another rank to this rank.
#[derive(Debug)]
pub struct Rx {
    /// The area in which the other rank writes.
    pub area: Area,
    /// The consumer's end of the ring.
    pub ring: Consumer,
    /// The types that the other rank has defined.
    pub known: Known,
    /// The messages whose data this rank may read in place.
    pub offers: Offers,
    /// The message whose parts arrive, from its first part to its last one.
    pub arriving: Option<Arriving>,
    /// Number of looks since the last one that found the ring empty.
    row: u32,
}

impl Rx {
    /// Creates the receiving half of a link. The other rank writes to `area`.
    pub fn new(area: Area) -> Self {
        let ring = Consumer::new::<Area>(area.geometry().first_level());
        let known = Known::default();
        Self { area, ring, known, offers: Offers::default(), arriving: None, row: 0 }
    }

    /// Returns a copy of the next envelope, or `None` if the ring is empty. If several messages have arrived in a
    /// row, fetches the envelope of the following one while the caller handles this one. After a single message
    /// nothing is fetched, because the sender has probably claimed the line for its next message.
    #[inline]
    pub fn next(&mut self) -> Option<[u64; ENVELOPE_WORDS]> {
        let Some(words) = self.ring.peek(&self.area) else {
            self.row = 0;
            return None;
        };
        self.row = self.row.saturating_add(1);
        if self.is_row() {
            self.area.fetch_slot(self.ring.following());
        }
        Some(words)
    }

    /// Returns whether messages arrive in a row: the last two looks have each found a message.
    #[inline]
    pub fn is_row(&self) -> bool {
        self.row > 1
    }
}

/// A link to another rank: both halves.
#[derive(Debug)]
pub struct Link {
    /// The other rank.
    pub rank: usize,
    /// The sending half; `None` before the first contact.
    pub tx: Option<Tx>,
    /// The receiving half; `None` until this rank has noticed that the other rank has made first contact.
    pub rx: Option<Rx>,
}

impl Link {
    /// Creates a link that has neither half yet.
    pub fn new(rank: usize) -> Self {
        Self { rank, tx: None, rx: None }
    }

    /// Returns the sending half. Makes the first contact if necessary.
    ///
    /// # Errors
    /// Returns `ErrorKind::NoMemory` if memory ran out, and `ErrorKind::Other` if the system refuses for another
    /// reason.
    #[inline]
    pub fn contact(&mut self, fabric: &Fabric) -> Result<&mut Tx> {
        let rank = self.rank;
        match &mut self.tx {
            Some(tx) => Ok(tx),
            none => Ok(none.insert(Tx::new(fabric.contact(rank)?, rank))),
        }
    }

    /// Returns the sending half.
    ///
    /// # Errors
    /// Returns `ErrorKind::Internal` if there was no first contact. That is a bug.
    pub fn tx(&mut self) -> Result<&mut Tx> {
        self.tx.as_mut().ok_or_else(|| lost_at("the link to", self.rank))
    }

    /// Returns both halves.
    ///
    /// # Errors
    /// Returns `ErrorKind::Internal` if one of the halves does not exist yet. That is a bug.
    pub fn both(&mut self) -> Result<(&mut Tx, &mut Rx)> {
        match self {
            Self { tx: Some(tx), rx: Some(rx), .. } => Ok((tx, rx)),
            Self { rank, .. } => Err(lost_at("the link to or from", *rank)),
        }
    }
}
