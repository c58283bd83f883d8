//! The two directions between this rank and another rank. A direction consists of the ring that one of the
//! two ranks writes, and the queue of envelopes that wait for room in the ring. [`Stage`] writes the data of long
//! messages to the shared memory of any direction.
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

use super::choice::short_choice::ShortChoices;
use super::protocol::offers::Offers;
use super::protocol::types::{Defined, Known};
use crate::message::envelope::{Envelope, FRAGMENT_MAX};
use crate::message::label::{Label, Shape};
use crate::message::payload::{SHORT, Supply};
use crate::shm::pair::{CHUNK_BYTES, LINE};
use crate::shm::ring::{Consumer, ENVELOPE_WORDS, Producer, Room};
use crate::shm::withdrawal;
use crate::transport::link::area::Area;
use crate::transport::link::credit::Credit;
use crate::transport::link::fabric::Fabric;
use crate::transport::link::failure::{broken, lost_at};
use crate::transport::link::ready::Ready;
use crate::transport::link::recalls::Recalls;
use crate::{Error, ErrorKind, Plan, Result};
use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use typepack_engine::contiguous::{self, Method};
use typepack_engine::reserve::{Grow, fallible};

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

    /// Returns whether the ring has a large payload area, which has room for several messages in fragments.
    #[inline]
    pub fn is_large(&self) -> bool {
        self.ring.is_large::<Area>()
    }

    /// Returns how many of `len` bytes lie in one run of the payload area, from the place on that
    /// [`Tx::next_payload`] returns for a fragment of the maximum length.
    #[inline]
    pub fn run_ahead(&self, len: usize) -> usize {
        self.ring.run_ahead(FRAGMENT_MAX, len)
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

/// The place to which the fragments of a message go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// The receive with this request number, which has matched the message.
    Receive(u64),
    /// The private memory with this number, which keeps the message until a receive matches it
    /// (`endpoint/engine/fragments.rs`).
    Kept(u64),
    /// No memory: the receive has refused the message.
    Nowhere,
}

/// A message in fragments, of which some fragments have arrived.
#[derive(Clone, Copy, Debug)]
pub struct Arriving {
    /// The place to which the fragments go.
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
    /// The message whose fragments arrive, from its first fragment to its last one.
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

/// A cache line. The buffer is an array of cache lines, so it begins at the start of a line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Line(#[expect(dead_code, reason = "used by address")] [u8; LINE]);

/// A layout with runs shorter than a cache line is sparse if the span of an element is more than the size of
/// its data times this number. For such a layout, reading the many source lines costs more than the transfer to
/// the other core.
const SPARSE: u64 = 4;

/// A private buffer into which the sender packs pieces of messages before it copies them to shared memory. It allocates
/// its memory when it is first used. The message engine owns one, and the pipeline and messages in fragments use it.
///
/// If the receiver was the last rank to read a cache line of shared memory, the line lies in the receiver's cache. A
/// store of register width must first fetch such a line back, and can change it only then. `rep movsb` and streaming
/// stores write whole lines and do not fetch their old bytes. So with these methods the sender gathers small blocks in
/// this buffer, whose few pages stay in the first-level cache, and moves each piece to shared memory in one copy.
/// Whether that is faster depends on the machine and on the distance, so `tuning.rs` measures it.
///
/// Measured with a C program of two threads on a Zen 5 machine: 256 KiB in 512-byte blocks, through chunks
/// of 32 KiB, half a round trip in us:
///
/// | method | cores 211 ns apart | cores 50 ns apart |
/// |---|---|---|
/// | stores into the chunks | 39.9 | 9.0 |
/// | through a buffer and one copy by `rep movsb` | 15.9 | 8.7 |
/// | non-temporal stores | 20.5 | 20.0 |
#[derive(Debug, Default)]
pub struct Stage(Vec<Line>);

impl Stage {
    /// Returns the shape of the data of `count` elements. The function reads only the length of the first run,
    /// which is enough for the faces of a grid.
    pub fn shape(plan: &Plan, count: u64) -> Shape {
        if plan.is_contiguous() {
            return Shape::Contiguous;
        }
        let (footprint, one) = (plan.footprint(), count < 2);
        let span = footprint.true_ub.abs_diff(footprint.true_lb);
        // If there are several elements, the distance between two neighbouring elements may be larger than
        // the span of the data of one element.
        let span = if one { span } else { span.max(footprint.extent.unsigned_abs()) };
        let dense = span / SPARSE <= plan.element_bytes() || plan.first_run_bytes() >= LINE as u64;
        if dense { Shape::Dense } else { Shape::Sparse }
    }

    /// Returns the shape of a message's data at its sender.
    pub fn shape_of(supply: &Supply) -> Shape {
        match supply {
            Supply::Memory(layout) => Self::shape(&layout.plan, layout.count),
            _ => Shape::Contiguous,
        }
    }

    /// Calls `pack` to write `len` bytes of a message, whose data has the given shape, to `to` in shared memory. Long
    /// runs are copied with `method`.
    ///
    /// # Safety
    ///
    /// - `pack` writes exactly `len` bytes, from the address on that it receives.
    /// - `to` is valid for writes of `len` bytes.
    #[inline]
    pub unsafe fn fill(
        &mut self,
        (shape, method): (Shape, Method),
        len: usize,
        to: *mut u8,
        pack: impl FnOnce(*mut u8),
    ) {
        // Vector moves need no stage, because the pack kernel already stores with vector moves. For sparse layouts,
        // reading the source takes most of the time, and a stage would add to that time.
        let fetches = matches!(method, Method::Vector | Method::Pages);
        if !fetches && shape == Shape::Dense {
            // SAFETY: the caller guarantees both conditions of `pack`, which are the same.
            unsafe { self.pack(len, to, method, pack) };
        } else {
            contiguous::with(method, || pack(to));
        }
    }

    /// Calls `pack` to write `len` bytes, either directly to `to`, or into the buffer. In the second case
    /// the function then copies the bytes from the buffer to `to` with `method`.
    ///
    /// # Safety
    ///
    /// - `pack` writes exactly `len` bytes, from the address on that it receives.
    /// - `to` is valid for writes of `len` bytes.
    #[inline]
    pub unsafe fn pack(
        &mut self,
        len: usize,
        to: *mut u8,
        method: Method,
        pack: impl FnOnce(*mut u8),
    ) {
        // A piece shorter than `LONG` is copied with vector moves, for which the buffer would not help.
        if !(contiguous::LONG..=CHUNK_BYTES).contains(&len) || !self.is_there() {
            return pack(to);
        }
        let here = self.0.as_mut_ptr().cast::<u8>();
        pack(here);
        // SAFETY: `here` is the address of `CHUNK_BYTES` initialised bytes of this buffer, `len <=
        // CHUNK_BYTES` (checked above), and the caller guarantees that `to` is writable for `len` bytes
        // (second condition of `# Safety`). The buffer is private to this value, so the two ranges do not
        // overlap.
        unsafe { contiguous::copy_by(method, here, to, len) };
    }

    /// Allocates the buffer if necessary. Returns false if there is no memory for the buffer. In this case
    /// the caller packs pieces directly.
    fn is_there(&mut self) -> bool {
        let lines = CHUNK_BYTES / LINE;
        if self.0.is_empty() && fallible(|| self.0.try_reserve_exact(lines)).is_ok() {
            self.0.resize(lines, Line([0; LINE]));
        }
        !self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Datatype, Named};

    #[test]
    fn shapes_of_layouts() {
        let double = Datatype::named(Named::F64);
        let vector = |count, length, stride| {
            Datatype::vector(count, length, stride, &double).unwrap().commit().unwrap()
        };
        for (plan, count, shape) in [
            (double.commit().unwrap(), 1000, Shape::Contiguous),
            (vector(1000, 3, 7), 1, Shape::Dense),
            (vector(1000, 1, 8), 1, Shape::Sparse),
            (vector(1000, 64, 128), 1, Shape::Dense),
            (vector(100, 8, 1000), 1, Shape::Dense),
            (vector(100, 1, 130), 1, Shape::Sparse),
            (vector(0, 1, 130), 1, Shape::Dense),
        ] {
            assert_eq!(Stage::shape(&plan, count), shape, "{plan:?}");
        }
    }

    /// Checks that for every length the stage writes all bytes of the piece and no other byte.
    #[test]
    fn a_piece_arrives_whole() {
        let mut stage = Stage::default();
        let lens =
            [1, contiguous::LONG - 1, contiguous::LONG, 20_000, CHUNK_BYTES, CHUNK_BYTES + 1];
        for (len, method) in
            lens.into_iter().flat_map(|len| Method::ALL.map(|method| (len, method)))
        {
            let mut to = vec![0xee; len + 2];
            let pack = |at: *mut u8| {
                for byte in 0..len {
                    // SAFETY: `byte < len`, and the stage passes an address with room for `len` bytes.
                    unsafe { at.add(byte).write((byte % 251) as u8) };
                }
            };
            // SAFETY: `pack` writes `len` bytes, and `to[1..=len]` has room for them.
            unsafe { stage.pack(len, to[1..=len].as_mut_ptr(), method, pack) };
            assert!((0..len).all(|byte| to[byte + 1] == (byte % 251) as u8), "{len}");
            assert_eq!((to[0], to[len + 1]), (0xee, 0xee));
        }
    }
}
