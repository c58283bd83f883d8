//! Pipeline: the sender packs a long message into chunks while the receiver unpacks the chunks that are
//! already full. The pipeline can carry every message.
//!
//! Invariants: both ranks count the messages of a pair in the order of their CTS envelopes. The ring keeps the order of
//! envelopes, so both ranks give the same number to a message, and a chunk names its message by this number. The pieces
//! of one message are published and drained in their order; the pieces of several messages may alternate
//! (`cleared.rs`).

use super::in_flight::{self, Advertised, RequestTable, SendStage};
use super::{Advance, Arrival, CopyPlan, Matched, Offered, Protocol, Work};
use crate::Result;
use crate::message::envelope::{Envelope, Offer};
use crate::message::label::{Shape, Status};
use crate::shm::bulk::{Drainer, Filler, Full};
use crate::shm::pair::{CHUNK_BYTES, SMALL_CHUNK_BYTES};
use crate::shm::ring::Violation;
use crate::transport::link::area::{Area, SMALL};
use crate::transport::link::cleared::{self, Cleared};
use crate::transport::link::fabric::Fabric;
use crate::transport::link::failure::{broken, lost, lost_at};
use crate::transport::link::pool::Pool;
use crate::transport::link::ready::Ready;
use crate::transport::link::{Link, Outgoing, Stage};
use std::collections::VecDeque;
use std::ptr::NonNull;
use std::sync::Arc;
use typepack_engine::contiguous::{self, Method};

/// Size of the smallest piece of a streamed message, in bytes. Only the last piece, and a piece in the small chunk of a
/// pair, may be smaller. Measured with `pingpong`, 64 KiB contiguous: 9.4 us with pieces of 8 KiB, 7.2 us with 16 KiB,
/// 7.9 us with 32 KiB.
const PIECE_MIN: u64 = 16 << 10;

/// Number of pieces of a message, unless the limits on the size of a piece require another number. With
/// several pieces, one rank packs while the other unpacks.
const PIECES: u64 = 8;

/// Size of a piece of a sparse message while this rank has other operations under way, in bytes. Two packed and two
/// unpacked pieces of doubles then touch 256 KiB of cache lines, which stay in the second-level cache (`cleared.rs`).
///
/// Measured with `typepack-bench pingpong --only halo` on a Xeon (family 6, model 207), 128^3 doubles, x faces to the
/// other rank, in us: 335 with pieces of 2 KiB, 290 with 4 KiB, 278 with 8 KiB, 299 with 16 KiB, 349 without turns.
const SPARSE_PIECE: u64 = 8 << 10;

/// Number of chunks that a rank fills or drains in one turn before it does other work.
const CHUNKS_PER_TURN: usize = 2;

/// Number of size classes for which a pipeline remembers the last answer. Class `n` has the messages whose
/// length in bytes needs `n` bits.
const CLASSES: usize = 65;

/// The first piece of a send, which this rank has packed while it waits for the answer to the RTS. The piece
/// lies in a chunk, but has no stamp yet, so the receiver does not see it.
#[derive(Clone, Copy, Debug)]
struct Ahead {
    /// The send.
    id: u64,
    /// The number of the chunk. The piece is of use only if the chunk is the next one to be published.
    number: u64,
    place: u64,
    len: usize,
}

/// A receive whose CTS this rank has queued or sent.
#[derive(Clone, Copy, Debug)]
struct Incoming {
    /// The number of the message in the order of the CTS envelopes of the pair.
    number: u64,
    /// The receive.
    id: u64,
    /// The method for long runs.
    method: Method,
}

/// The address of the first chunk of another rank.
#[derive(Clone, Copy, Debug)]
struct Chunks(NonNull<u8>);

// SAFETY: the value is only an address of shared memory, which the contacts of the fabric keep mapped.
unsafe impl Send for Chunks {}

/// The pipeline between this rank and another rank, in both directions.
#[derive(Debug)]
pub struct Pipeline {
    filler: Filler,
    /// True if the stamps and the small chunk have memory.
    reserved: bool,
    /// The chunks of this rank.
    pool: Option<Arc<Pool>>,
    /// The address of the other rank's chunks, once this rank has received a chunk.
    theirs: Option<Chunks>,
    /// The sends whose CTS has arrived.
    cleared: cleared::Queue,
    drainer: Drainer,
    /// The receives whose CTS this rank has queued or sent, in the order of the CTS envelopes.
    incoming: VecDeque<Incoming>,
    /// Number of CTS envelopes that this rank has queued or sent.
    answered: u64,
    /// The piece that this rank has packed without a CTS.
    ahead: Option<Ahead>,
    /// For each size class, the method of the last CTS, or `None` if the last answer to an RTS was no CTS.
    answers: [Option<Method>; CLASSES],
}

/// Returns the size class of a message of `bytes` bytes.
fn class(bytes: u64) -> usize {
    (u64::BITS - bytes.leading_zeros()) as usize
}

/// Returns the number of bytes in each piece of a message of `total` bytes, except the last piece and pieces in the
/// small chunk.
fn piece_bytes(total: u64) -> u64 {
    (total / PIECES).next_multiple_of(4096).clamp(PIECE_MIN, CHUNK_BYTES as u64)
}

impl Pipeline {
    /// Creates a pipeline that carries no messages yet.
    pub fn new(fabric: &Fabric) -> Self {
        Self {
            filler: Filler::default(),
            reserved: false,
            pool: fabric.pool().cloned(),
            theirs: None,
            cleared: cleared::Queue::default(),
            drainer: Drainer::default(),
            incoming: VecDeque::new(),
            answered: 0,
            ahead: None,
            answers: [None; CLASSES],
        }
    }

    /// Remembers how the other rank has answered an RTS for `bytes` bytes: the method of a CTS, or `None` for
    /// any other answer. [`Pipeline::pack_ahead`] expects the same answer next time.
    pub fn expect(&mut self, bytes: u64, answer: Option<Method>) {
        self.answers[class(bytes)] = answer;
    }

    /// Packs the first piece of the send `id`, whose RTS is in the ring, if the other rank has answered the last RTS of
    /// this size class with a CTS. The CTS is on its way for some hundred nanoseconds, and this rank would only wait.
    /// If the answer is no CTS, the piece is dropped. Does nothing if another message comes first in the chunks, if
    /// another piece that was packed ahead still waits for its answer, or if the pool gives no chunk for this purpose
    /// ([`Pool::begin_ahead`]).
    ///
    /// # Errors
    /// Returns `ErrorKind::Other` if the other rank broke the protocol, and `ErrorKind::NoMemory` if memory ran
    /// out.
    pub fn pack_ahead<R: RequestTable>(
        &mut self,
        work: &mut Work<'_, R>,
        link: &mut Link,
        id: u64,
    ) -> Result<()> {
        let Some(send) = work.requests.send(id) else { return Ok(()) };
        let expected = self.answers[class(send.label.bytes)];
        let (Some(method), SendStage::Offered(_)) = (expected, send.stage) else { return Ok(()) };
        // Another message would be published first, so the piece would get another number.
        if !self.cleared.is_empty() {
            return Ok(());
        }
        if let Some(ahead) = self.ahead {
            let waits = |send: &mut in_flight::Send| matches!(send.stage, SendStage::Offered(_));
            if work.requests.send(ahead.id).is_some_and(waits) {
                return Ok(());
            }
            self.drop_ahead();
        }
        if !self.pool.as_ref().is_some_and(|pool| pool.begin_ahead()) {
            return Ok(());
        }
        let packed = self.pack_piece(work, link, (id, 0), method, false);
        if let Ok(Some((number, place, len))) = packed {
            self.ahead = Some(Ahead { id, number, place, len });
        } else {
            self.end_ahead(None);
        }
        packed.map(drop)
    }

    fn end_ahead(&self, unused: Option<u64>) {
        if let Some(pool) = &self.pool {
            pool.end_ahead(unused);
        }
    }

    /// Drops the piece of the send `id`, if this rank has packed one without a CTS.
    pub fn forget(&mut self, id: u64) {
        if self.ahead.is_some_and(|ahead| ahead.id == id) {
            self.drop_ahead();
        }
    }

    /// Gives back the chunk of the piece that this rank has packed without a CTS.
    fn drop_ahead(&mut self) {
        if let Some(ahead) = self.ahead.take() {
            self.end_ahead(Some(ahead.place));
        }
    }

    /// Appends a send whose CTS has arrived to the queue of sends that this rank has to pack. The CTS names
    /// the method for long runs.
    pub fn clear(&mut self, id: u64, method: Method, shape: Shape) {
        self.cleared.push(id, method, shape == Shape::Sparse);
    }

    /// Answers an RTS with CTS. The sender then packs the message for the receive that has matched it. The plan names
    /// the methods with which the two ranks copy long runs.
    ///
    /// # Errors
    /// Returns `ErrorKind::Internal` if the receive does not exist, which is a bug.
    pub fn take<R: RequestTable>(
        &mut self,
        work: &mut Work<'_, R>,
        link: &mut Link,
        (receive, offer): (u64, u64),
        CopyPlan { method, unpack, .. }: CopyPlan,
    ) -> Result<()> {
        let stream = work.requests.receive(receive).and_then(|receive| receive.stream.as_mut());
        let Some(stream) = stream else { return Err(lost("a receive", receive)) };
        stream.done = 0;
        let (tx, rx) = link.both()?;
        rx.offers.answer(offer);
        self.incoming.push_back(Incoming { number: self.answered, id: receive, method: unpack });
        self.answered += 1;
        tx.push(Outgoing::Say(Envelope::Cts { id: offer, method }));
        Ok(())
    }

    /// Fetches cache lines for the next message, in the payload area or in the chunks. Returns false if no
    /// lines are left.
    #[inline]
    pub fn prepare(&self, link: &mut Link) -> bool {
        link.tx.as_mut().is_some_and(|tx| tx.ready.prepare(&tx.area, self.pool.as_deref()))
    }

    /// Packs the piece of the send `id` that begins at byte `done` into a free chunk. Returns the number and the place
    /// of the chunk and the length of the piece, or `None` if no chunk is free. With `small`, the piece may go into the
    /// small chunk of the pair.
    fn pack_piece<R: RequestTable>(
        &mut self,
        work: &mut Work<'_, R>,
        link: &mut Link,
        (id, done): (u64, u64),
        method: Method,
        small: bool,
    ) -> Result<Option<(u64, u64, usize)>> {
        let (rank, tx) = (link.rank, link.tx()?);
        let Some(send) = work.requests.send(id) else { return Err(lost("a send", id)) };
        let next = self.filler.next(&tx.area).map_err(|v| broken(rank, v))?;
        let Some(number) = next else { return Ok(None) };
        if !self.reserved {
            work.fabric.reserve_stamps(rank, &tx.area)?;
            self.reserved = true;
        }
        let chunk = self.pool.as_ref().and_then(|pool| pool.borrow(rank, tx.area, number));
        let (place, to, size) = match chunk {
            Some((place, to)) => (place, to, CHUNK_BYTES),
            None if small && self.filler.is_idle(&tx.area) => {
                (SMALL, tx.area.small_chunk(), SMALL_CHUNK_BYTES)
            }
            // Try again when the receiver has freed a chunk of this pair. The receiver then wakes this rank.
            None => return Ok(None),
        };
        let (supply, total) = (&send.supply, send.label.bytes);
        let shape = Stage::shape_of(supply);
        let piece = match shape {
            Shape::Sparse if work.busy => SPARSE_PIECE,
            _ => piece_bytes(total),
        };
        let end = total.min(done + piece.min(size as u64));
        let len = (end - done) as usize;
        // SAFETY: `done..end` lies within the message and has at most `size` bytes, which is at most
        // `CHUNK_BYTES`, so both the chunk and the stage have room for it. The chunk is free, so only this
        // rank writes to it. No user layout overlaps shared memory or the stage.
        unsafe {
            let pack = |to| supply.pack(done..end, to);
            work.stage.fill((shape, method), len, to, pack);
        }
        Ok(Some((number, place, len)))
    }

    /// Packs pieces of messages whose CTS has arrived into a few free chunks. Returns true if anything
    /// moved.
    fn fill<R: RequestTable>(&mut self, work: &mut Work<'_, R>, link: &mut Link) -> Result<bool> {
        let mut moved = false;
        for _ in 0..CHUNKS_PER_TURN {
            let next = self.cleared.next(self.ahead.map(|ahead| ahead.id));
            let Some(Cleared { number: message, id, method, .. }) = next else { break };
            let Some(send) = work.requests.send(id) else { return Err(lost("a send", id)) };
            let SendStage::Streaming(done) = send.stage else { return Err(lost("a send", id)) };
            let ahead = self.ahead.filter(|ahead| {
                ahead.id == id && done == 0 && ahead.number == self.filler.filled()
            });
            let packed = match ahead {
                Some(Ahead { number, place, len, .. }) => {
                    self.ahead = None;
                    self.end_ahead(None);
                    Some((number, place, len))
                }
                None => {
                    // A piece of another send that was packed ahead holds the chunk number that this piece
                    // needs now, so drop the other piece.
                    self.drop_ahead();
                    self.pack_piece(work, link, (id, done), method, true)?
                }
            };
            let Some((_, place, len)) = packed else { break };
            let Some(send) = work.requests.send(id) else { return Err(lost("a send", id)) };
            let (total, end, tx) = (send.label.bytes, done + len as u64, link.tx.as_mut());
            let Some(tx) = tx else { return Err(lost_at("the link to", link.rank)) };
            self.filler.publish(&tx.area, Full { place, len, message });
            work.fabric.ring(link.rank);
            moved = true;
            send.stage = SendStage::Streaming(end);
            if end == total {
                let source = work.fabric.rank();
                let status = Status { source, tag: send.label.tag, bytes: total };
                self.cleared.remove(message);
                work.requests.complete(id, Ok(status));
                tx.ready = Ready::chunks(total, piece_bytes(total)).by(method);
            }
        }
        Ok(moved)
    }

    /// Returns the address of the chunk of rank `from` at `place`, which the drainer has checked.
    fn arrived(&mut self, area: &Area, from: usize, place: u64) -> Result<*mut u8> {
        if place == SMALL {
            return Ok(area.small_chunk());
        }
        let base = match (self.theirs, &self.pool) {
            (Some(Chunks(base)), _) => base,
            (None, Some(pool)) => {
                self.theirs.insert(Chunks(pool.of(from, area.geometry().pool())?)).0
            }
            (None, None) => return Err(lost_at("the chunks of", from)),
        };
        Ok(Pool::chunk(base, place as usize))
    }

    /// Unpacks a few full chunks. Returns true if anything moved.
    fn drain<R: RequestTable>(&mut self, work: &mut Work<'_, R>, link: &mut Link) -> Result<bool> {
        let mut moved = false;
        for _ in 0..CHUNKS_PER_TURN {
            if self.incoming.is_empty() {
                break;
            }
            let rank = link.rank;
            let Some(rx) = &link.rx else { return Err(lost_at("the link from", rank)) };
            let next = self.drainer.next(&rx.area).map_err(|v| broken(rank, v))?;
            let Some(Full { place, len, message }) = next else { break };
            let mut incoming = self.incoming.iter().enumerate();
            let found = incoming.find(|(_, incoming)| incoming.number == message);
            let Some((at, &Incoming { id, method, .. })) = found else {
                let what = format!("a chunk belongs to the message with the number {message}");
                return Err(broken(rank, Violation::new(what)));
            };
            let chunk = self.arrived(&rx.area, rank, place)?;
            let Some(receive) = work.requests.receive(id) else {
                return Err(lost("a receive", id));
            };
            let Some(stream) = &mut receive.stream else { return Err(lost("a receive", id)) };
            let end = stream.done + len as u64;
            if end > stream.total {
                let what = "the length of the data in the chunks of a message";
                return Err(broken(rank, Violation::outside(what, end, 1..=stream.total)));
            }
            // SAFETY: `end <= stream.total` (checked above). This rank has sent the CTS only because the
            // receive has room for `stream.total` bytes. The chunk is full, so the sender does not write to
            // it, and `drainer.next` has checked that the sender has this chunk and that `len` is not above its
            // size. No user layout overlaps shared memory.
            contiguous::with(method, || unsafe {
                receive.sink.unpack(stream.done..end, chunk);
            });
            stream.done = end;
            let (tag, bytes) = (stream.tag, stream.total);
            self.drainer.advance(&rx.area);
            work.fabric.ring(rank);
            moved = true;
            if end == bytes {
                self.incoming.remove(at);
                work.requests.complete(id, Ok(Status { source: rank, tag, bytes }));
                work.tuning.complete(bytes);
            }
        }
        Ok(moved)
    }
}

impl Protocol for Pipeline {
    /// Writes an RTS that names no place.
    fn offer<R: RequestTable>(
        &mut self,
        work: &mut Work<'_, R>,
        link: &mut Link,
        id: u64,
    ) -> Result<Offered> {
        let Some(send) = work.requests.send(id) else { return Err(lost("a send", id)) };
        let shape = Stage::shape_of(&send.supply);
        let offer = Offer { shape, ..send.offer(id) };
        if !link.tx()?.say(work.fabric, &Envelope::Rts(send.label, offer, None))? {
            return Ok(Offered::NoRoom);
        }
        send.stage = SendStage::Offered(Advertised::Nothing);
        Ok(Offered::Written)
    }

    fn matched<R: RequestTable>(
        &mut self,
        work: &mut Work<'_, R>,
        link: &mut Link,
        matched: &mut Matched,
        plan: CopyPlan,
    ) -> Result<bool> {
        let Arrival::Rts(offer, ..) = matched.arrival else { return Ok(false) };
        self.take(work, link, (matched.receive, offer), plan)?;
        Ok(true)
    }

    fn advance<R: RequestTable>(
        &mut self,
        work: &mut Work<'_, R>,
        link: &mut Link,
    ) -> Result<Advance> {
        let moved = self.drain(work, link)? | self.fill(work, link)?;
        Ok(if moved { Advance::Moved } else { Advance::Idle })
    }

    #[inline]
    fn has_work(&self) -> bool {
        !self.cleared.is_empty() || !self.incoming.is_empty()
    }
}
