//! This rank's two ways to and from one other rank: local send queue, ring, chunk streams.
//!
//! `endpoint/engine.rs` puts work into a [`Tx`] and takes envelopes out of an [`Rx`]; `progress.rs`
//! calls the movers (`flush`, `fill`, `drain`) in every turn. The protocol is told in `README.md`
//! beside this file.
//!
//! Invariants: what goes to one rank enters its ring in the order it was queued; chunks are filled
//! in the order of the grants received and drained in the order of the grants given; nothing here
//! ever waits.

use super::choice::tells_address;
use super::fabric::{Area, Fabric};
use super::fetch::{self, Fetches};
use super::share::{self, Push};
use super::split::{Pushes, Splits, Step};
use super::stage::Stage;
use super::types::{self, Defined, Number};
use crate::endpoint::requests::{Requests, SendStage};
use crate::message::Status;
use crate::message::envelope::{BYTES, Envelope, INLINE_MAX, Place, Space};
use crate::message::payload::{Layout, Sink, Supply, push_to};
use crate::settings::Forced;
use crate::shm::bulk::{Drainer, Filler};
use crate::shm::pair::{CHUNK_BYTES, LINE, PAYLOAD_BYTES};
use crate::shm::ring::{Consumer, Producer, Violation};
use crate::sync::Word;
use crate::sys::machine;
use crate::{Error, ErrorKind, Result};
use std::collections::VecDeque;
use std::sync::atomic::{Ordering, fence};

/// Smallest piece a streamed message is cut into, in bytes. `pingpong`, 64 KiB contiguous: 9.4 us
/// with 8 KiB, 7.2 us with 16 KiB, 7.9 us with 32 KiB.
const PIECE_MIN: u64 = 16 << 10;

/// Pieces a message is cut into where that makes pieces of allowed sizes: more of them let both
/// sides overlap better.
const PIECES: u64 = 8;

/// Chunks that are filled or drained before the other work gets its turn.
const CHUNKS_PER_TURN: usize = 2;

/// The error for a rank that broke the protocol.
#[cold]
pub fn broken(rank: usize, violation: Violation) -> Error {
    Error::new(
        ErrorKind::Other,
        "transport",
        format!("rank {rank} broke the protocol: {}", violation.0),
    )
}

/// Most bytes of the next message that a rank without anything else to do makes ready. `pingpong`,
/// contiguous, near, none of them, 16, 32 and 64 KiB: 64 KiB 7.3, 6.8, 6.4 and 5.7 us, 16 KiB 3.2, 2.6,
/// 2.5 and 2.2.
const READY_MAX: u64 = 64 << 10;

/// Longest message after which that is done, in bytes: 256 KiB 19.9 and 18.5 us, 1 MiB 72 and 80.
const READY_LAST: u64 = 256 << 10;

/// Lines made ready between two looks at what other ranks write.
const READY_STEP: usize = 8;

/// Lines that the next message from here will be written to, if it is like the last one. Its receiver
/// has read them, and has them in its cache: a sender that waits anyway can take them back.
#[derive(Clone, Copy, Debug, Default)]
struct Ready {
    /// In chunks, else in the payload area.
    chunks: bool,
    /// Where in the payload area, or how many chunks from the next one.
    at: usize,
    /// Lines of this chunk that are ready.
    line: usize,
    /// Lines used of each chunk.
    lines: usize,
    /// Lines left.
    left: usize,
}

/// Something that waits for room in a ring.
#[derive(Clone, Copy, Debug)]
pub enum Outgoing {
    /// The send request with this number.
    Send(u64),
    /// A grant for the receiver's offer: its request number, and the bytes wanted.
    Cts(u64, u64),
    /// The memory of the offer with this number is not to be read any more.
    Withdraw(u64),
    /// The receiver's offer with this number is being read: number of the transfer, address.
    Push(u64, u16, u64),
    /// The sender of an offer is asked to help this receive with the copy.
    Share {
        /// The sender's request number.
        offer: u64,
        /// The receive.
        receive: u64,
        /// Number of the share.
        share: u32,
        /// Packed bytes of the message.
        bytes: u64,
    },
}

/// The way to another rank.
#[derive(Debug)]
pub struct Tx {
    area: Area,
    rank: usize,
    ring: Producer,
    queue: VecDeque<Outgoing>,
    chunks: Filler,
    /// Chunks that have memory.
    reserved: usize,
    /// The message that is on its way goes through the stage.
    staged: bool,
    granted: VecDeque<u64>,
    defined: Defined,
    withdrawals: u64,
    ready: Ready,
    /// Messages that this rank helps to copy.
    pushes: VecDeque<Push>,
    /// What is copied straight into the other rank's own memory.
    pub writes: Pushes,
}

impl Tx {
    /// The way to `rank`, whose area has been made usable, with so many chunks.
    pub fn new(area: Area, rank: usize, window: usize) -> Self {
        Self {
            area,
            rank,
            ring: Producer::default(),
            queue: VecDeque::new(),
            chunks: Filler::new(window),
            reserved: 0,
            staged: false,
            granted: VecDeque::new(),
            defined: Defined::default(),
            withdrawals: 0,
            ready: Ready::default(),
            pushes: VecDeque::new(),
            writes: Pushes::default(),
        }
    }

    /// The other rank.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// True when nothing waits: an eager message may go into the ring at once.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.queue.is_empty()
    }

    /// Work left for [`Tx::flush`], [`Tx::fill`] or [`Tx::copy`].
    pub fn has_work(&self) -> bool {
        !self.queue.is_empty() || !self.granted.is_empty() || self.writes.has_work()
    }

    /// Copies a piece into the other rank's memory; as [`Pushes::work`].
    pub fn copy(&mut self, fabric: &Fabric, requests: &mut Requests) -> bool {
        self.writes.work(fabric, &self.area, self.rank, requests)
    }

    /// Queues something behind what waits already.
    pub fn push(&mut self, outgoing: Outgoing) {
        self.queue.push_back(outgoing);
    }

    /// The receiver has granted this send: its data follows that of earlier grants.
    pub fn grant(&mut self, id: u64) {
        self.granted.push_back(id);
    }

    /// Writes an eager message, if the ring has room: `pack` writes the `label.bytes` packed bytes.
    ///
    /// # Errors
    /// The receiver broke the protocol.
    #[inline]
    pub fn send_eager(
        &mut self,
        fabric: &Fabric,
        label: crate::message::envelope::Label,
        pack: impl FnOnce(*mut u8),
    ) -> Result<bool> {
        let refused = |v| broken(self.rank, v);
        if label.bytes <= INLINE_MAX as u64 {
            let Some(room) = self.ring.reserve(&self.area, 0).map_err(refused)? else {
                return Ok(false);
            };
            let mut payload = [0; INLINE_MAX];
            pack(payload.as_mut_ptr());
            let (words, used) = Envelope::Inline(label, payload).encode();
            self.ring.publish(&self.area, room, &words, used);
        } else {
            let len = label.bytes as usize;
            let Some(room) = self.ring.reserve(&self.area, len).map_err(refused)? else {
                return Ok(false);
            };
            pack(self.area.payload(room.offset));
            let (words, used) = Envelope::Eager(label).encode();
            self.ring.publish(&self.area, room, &words, used);
            let at = self.ring.next_offset::<Area>();
            self.ready = Ready { at, left: len.div_ceil(LINE), ..Ready::default() };
        }
        fabric.ring(self.rank);
        Ok(true)
    }

    /// Writes the short synchronous message of a request, if the ring has room; the request then
    /// waits for the answer.
    fn send_synchronous(
        &mut self,
        fabric: &Fabric,
        requests: &mut Requests,
        id: u64,
    ) -> Result<bool> {
        let Some(send) = requests.send(id) else { return Err(lost("send")) };
        let label = send.label;
        let reserved = self.ring.reserve(&self.area, label.bytes as usize);
        let Some(room) = reserved.map_err(|v| broken(self.rank, v))? else {
            return Ok(false);
        };
        // SAFETY: the range is the whole message; the destination holds `label.bytes` bytes in
        // shared memory, which no user layout overlaps.
        unsafe { send.supply.pack(0..label.bytes, self.area.payload(room.offset)) };
        send.stage = SendStage::Offered;
        let (words, used) = Envelope::Synchronous(label, id).encode();
        self.ring.publish(&self.area, room, &words, used);
        fabric.ring(self.rank);
        Ok(true)
    }

    /// What an offer says about where its data lies; `None` while the ring has no room for the
    /// definition of its type.
    #[expect(clippy::option_option, reason = "no room, or no place")]
    fn offer(
        &mut self,
        fabric: &Fabric,
        layout: &Layout,
        bytes: u64,
        forced: Forced,
    ) -> Result<Option<Option<Place>>> {
        let in_heap =
            if forced == Forced::Cma { Some(None) } else { self.place(fabric, layout, bytes)? };
        if in_heap != Some(None) {
            return Ok(in_heap);
        }
        let told = tells_address(forced, fabric.distance(self.rank), bytes, machine::is_amd())
            && layout.plan.is_contiguous()
            && fabric.memory_is_open();
        let (space, number, origin) = (Space::Private, BYTES, layout.first());
        Ok(Some(told.then_some(Place { space, number, origin, count: bytes })))
    }

    /// Where in this rank's heap the data of a send or a receive lies, its type defined; `None` while
    /// the ring has no room for the definition.
    #[expect(clippy::option_option, reason = "no room, or no place")]
    fn place(
        &mut self,
        fabric: &Fabric,
        layout: &Layout,
        bytes: u64,
    ) -> Result<Option<Option<Place>>> {
        let found = types::place_in(fabric, layout, bytes);
        let Some((place, plan)) = found else { return Ok(Some(None)) };
        let Some(plan) = plan else { return Ok(Some(Some(place))) };
        let (number, encoding) = match self.defined.number(plan) {
            Number::Known(number) => return Ok(Some(Some(Place { number, ..place }))),
            Number::New(number, encoding) => (number, encoding),
            Number::None => return Ok(Some(None)),
        };
        let room = self.ring.reserve(&self.area, encoding.len());
        let Some(room) = room.map_err(|v| broken(self.rank, v))? else { return Ok(None) };
        let to = self.area.payload(room.offset);
        // SAFETY: the room in the payload area is as long as the encoding, which lies in memory of
        // our own.
        unsafe { std::ptr::copy_nonoverlapping(encoding.as_ptr(), to, encoding.len()) };
        let define = Envelope::Define { number, bytes: encoding.len() as u64 };
        let (words, used) = define.encode();
        self.ring.publish(&self.area, room, &words, used);
        self.defined.define(number, plan, encoding);
        Ok(Some(Some(Place { number, ..place })))
    }

    /// Takes back the memory of an offer: when this returns, the receiver reads none of it, and
    /// will not. Waits for the end of a piece if it is reading one, unless it has died.
    pub fn withdraw(&mut self, fabric: &Fabric, id: u64) {
        self.writes.stop(id);
        self.withdrawals += 1;
        self.area.withdrawn().store_release(self.withdrawals);
        // The README's two fences; the other one is in `Fetches::work`.
        fence(Ordering::SeqCst);
        fabric.wait_for_piece(self.rank, || self.area.reading().load_acquire() != 0);
        self.push(Outgoing::Withdraw(id));
    }

    /// Moves the local queue into the ring as far as there is room. True when something moved.
    ///
    /// # Errors
    /// The receiver broke the protocol.
    pub fn flush(
        &mut self,
        fabric: &Fabric,
        requests: &mut Requests,
        eager_limit: u64,
        forced: Forced,
    ) -> Result<bool> {
        let mut moved = false;
        while let Some(&next) = self.queue.front() {
            let envelope = match next {
                Outgoing::Cts(id, bytes) => Envelope::Cts { id, bytes },
                Outgoing::Send(id) => {
                    let Some(send) = requests.send(id) else {
                        self.queue.pop_front();
                        continue;
                    };
                    let label = send.label;
                    if label.bytes <= eager_limit && send.synchronous {
                        if !self.send_synchronous(fabric, requests, id)? {
                            break;
                        }
                        self.queue.pop_front();
                        moved = true;
                        continue;
                    }
                    if label.bytes <= eager_limit {
                        let supply = &send.supply;
                        // SAFETY: the range is the whole message; the destination holds
                        // `label.bytes` bytes in shared memory, which no user layout overlaps.
                        let pack = |to| unsafe { supply.pack(0..label.bytes, to) };
                        if !self.send_eager(fabric, label, pack)? {
                            break;
                        }
                        let status =
                            Status { source: fabric.rank(), tag: label.tag, bytes: label.bytes };
                        requests.complete(id, Ok(status));
                        self.queue.pop_front();
                        moved = true;
                        continue;
                    }
                    match &send.supply {
                        Supply::Memory(layout) if forced != Forced::Packed => {
                            match self.offer(fabric, layout, label.bytes, forced)? {
                                Some(place) => Envelope::Rts(label, id, place),
                                None => break,
                            }
                        }
                        _ => Envelope::Rts(label, id, None),
                    }
                }
                Outgoing::Withdraw(id) => Envelope::Withdraw { id },
                Outgoing::Push(id, number, to) => Envelope::Push { id, number, to },
                Outgoing::Share { offer, receive, share, bytes } => {
                    let place = match requests.receive(receive).map(|receive| &receive.sink) {
                        Some(Sink::Memory(layout)) => self.place(fabric, layout, bytes)?,
                        _ => Some(None),
                    };
                    let Some(place) = place else { break };
                    let Some(place) = place else {
                        self.queue.pop_front();
                        continue;
                    };
                    Envelope::Share { id: offer, share, bytes, place }
                }
            };
            let room = self.ring.reserve(&self.area, 0).map_err(|v| broken(self.rank, v))?;
            let Some(room) = room else { break };
            if let Outgoing::Send(id) = next
                && let Some(send) = requests.send(id)
            {
                send.stage = SendStage::Offered;
                send.located = matches!(envelope, Envelope::Rts(_, _, Some(_)));
                let Envelope::Rts(_, _, place) = envelope else { return Err(lost("send")) };
                send.private = place.is_some_and(|place| place.space == Space::Private);
            }
            let (words, used) = envelope.encode();
            self.ring.publish(&self.area, room, &words, used);
            fabric.ring(self.rank);
            self.queue.pop_front();
            moved = true;
        }
        Ok(moved)
    }

    /// The receiver asks this rank to help with the copy of a message.
    pub fn push_shared(&mut self, push: Push) {
        self.pushes.push_back(push);
    }

    /// Messages left for [`Tx::help`].
    #[inline]
    pub fn has_pushes(&self) -> bool {
        !self.pushes.is_empty()
    }

    /// Nothing is left for [`Tx::help`]: the receiver copies by itself.
    pub fn drop_pushes(&mut self) {
        self.pushes.clear();
    }

    /// Copies pieces of shared messages into the receiver's heap, which is mapped at `heap`. True when
    /// something moved.
    ///
    /// # Safety
    ///
    /// - All of the receiver's heap is mapped at `heap`.
    pub unsafe fn help(&mut self, fabric: &Fabric, requests: &mut Requests, heap: *mut u8) -> bool {
        let Some(push) = self.pushes.front_mut() else { return false };
        let mut moved = false;
        let mut budget = fetch::PIECE;
        // Whose memory is withdrawn, or that the receiver has done with, is copied no more.
        if let Some(send) = requests.send(push.id).filter(|send| send.located)
            && let Supply::Memory(layout) = &send.supply
        {
            let total = send.label.bytes;
            let (piece, pieces) = share::pieces(total);
            let to = heap.wrapping_add(push.to.origin as usize);
            while budget > 0 {
                let Some(next) = share::claim(self.area.claims(), push.share, pieces) else {
                    break;
                };
                let start = u64::from(next) * piece;
                let range = start..total.min(start + piece);
                budget = budget.saturating_sub(piece);
                // SAFETY:
                // - The range is within the message, and the receiver's elements have room for it
                //   and lie within its heap (`Known::room`), mapped at `heap` (caller's promise).
                // - The piece is claimed: nobody else copies it, and the receive it belongs to is
                //   not complete before it is counted.
                // - The send's memory is this process's own, also where it lies in a heap.
                unsafe { push_to(layout, to, &push.to.ty.plan, push.to.count, range) };
                push.done += 1;
                self.area.pushed().store_release(share::word(push.share, push.done));
                moved = true;
            }
        }
        if moved {
            // Also when the turn's share of work ends with the last piece: the receiver may sleep,
            // and this rank may not come back for long.
            fabric.ring(self.rank);
        }
        if budget > 0 {
            self.pushes.pop_front();
        }
        moved
    }

    /// Makes a few lines ready for the next message, in a moment without anything else to do. False
    /// when there are none left.
    #[inline]
    pub fn prepare(&mut self) -> bool {
        if self.ready.left == 0 {
            return false;
        }
        for _ in 0..READY_STEP.min(self.ready.left) {
            let Ready { chunks, at, line, lines, .. } = self.ready;
            if chunks {
                let Some(index) = self.chunks.ahead(&self.area, at as u64) else {
                    // The receiver is not there yet: its lines are its own.
                    self.ready.left = 0;
                    return true;
                };
                Area::claim(self.area.chunk(index).wrapping_add(line * LINE));
                let full = line + 1 == lines;
                self.ready.line = if full { 0 } else { line + 1 };
                self.ready.at += usize::from(full);
            } else {
                let place = (at + line * LINE) & (PAYLOAD_BYTES - 1);
                Area::claim(self.area.payload(place));
                self.ready.line += 1;
            }
            self.ready.left -= 1;
        }
        true
    }

    /// Packs granted messages into free chunks, a few. True when something moved.
    ///
    /// # Errors
    /// The receiver broke the protocol; out of memory at the first use of a chunk.
    pub fn fill(
        &mut self,
        fabric: &Fabric,
        requests: &mut Requests,
        stage: &mut Stage,
    ) -> Result<bool> {
        let mut moved = false;
        for _ in 0..CHUNKS_PER_TURN {
            let Some(&id) = self.granted.front() else { break };
            let Some(send) = requests.send(id) else {
                return Err(lost("send"));
            };
            let SendStage::Streaming(done) = send.stage else {
                return Err(lost("send"));
            };
            let next = self.chunks.next(&self.area).map_err(|v| broken(self.rank, v))?;
            let Some(index) = next else { break };
            if index >= self.reserved {
                self.reserved = fabric.reserve_chunks(self.rank, self.reserved)?;
            }
            let total = send.label.bytes;
            if done == 0 {
                self.staged = matches!(&send.supply, Supply::Memory(layout)
                    if Stage::serves(&layout.plan, layout.count));
            }
            let piece =
                (total / PIECES).next_multiple_of(4096).clamp(PIECE_MIN, CHUNK_BYTES as u64);
            let end = total.min(done + piece);
            let (supply, len, to) = (&send.supply, (end - done) as usize, self.area.chunk(index));
            // SAFETY: the range is within the message, no longer than a chunk and than the stage; the
            // chunk is free, thus ours to write, and neither shared memory nor the stage overlaps a
            // user layout.
            unsafe {
                let pack = |to| supply.pack(done..end, to);
                if self.staged {
                    stage.pack(len, to, pack);
                } else {
                    pack(to);
                }
            }
            self.chunks.publish(&self.area, len);
            fabric.ring(self.rank);
            moved = true;
            send.stage = SendStage::Streaming(end);
            if end == total {
                let status = Status { source: fabric.rank(), tag: send.label.tag, bytes: total };
                self.granted.pop_front();
                requests.complete(id, Ok(status));
                let lines = (piece.min(total) as usize).div_ceil(LINE);
                // The receiver of a longer one is still busy with lines of its own.
                let left = if total > READY_LAST { 0 } else { total.min(READY_MAX) };
                let left = (left as usize).div_ceil(LINE);
                self.ready = Ready { chunks: true, lines, left, ..Ready::default() };
            }
        }
        Ok(moved)
    }
}

/// The way from another rank.
#[derive(Debug)]
pub struct Rx {
    /// Where the other rank writes.
    pub area: Area,
    /// The ring, read by `endpoint/engine.rs`.
    pub ring: Consumer,
    rank: usize,
    chunks: Drainer,
    incoming: VecDeque<u64>,
    /// What is copied straight out of the other rank's heap.
    pub fetches: Fetches,
    /// What is copied straight out of the other rank's own memory.
    pub splits: Splits,
}

impl Rx {
    /// The way from `rank`, which has written to `area`, with so many chunks.
    pub fn new(area: Area, rank: usize, window: usize) -> Self {
        Self {
            area,
            ring: Consumer::default(),
            rank,
            chunks: Drainer::new(window),
            incoming: VecDeque::new(),
            fetches: Fetches::default(),
            splits: Splits::default(),
        }
    }

    /// A grant for this receive is on its way: its data follows that of earlier grants.
    pub fn expect(&mut self, id: u64) {
        self.incoming.push_back(id);
    }

    /// Work left for [`Rx::drain`], [`Rx::fetch`] or [`Rx::copy`].
    pub fn has_work(&self) -> bool {
        !self.incoming.is_empty() || self.fetches.has_work() || self.splits.has_work()
    }

    /// Copies a piece out of the other rank's own memory; as [`Splits::work`].
    ///
    /// # Errors
    /// The sender broke the protocol.
    pub fn copy(&mut self, fabric: &Fabric, requests: &mut Requests) -> Result<Step> {
        self.splits.work(fabric, &self.area, self.rank, requests, &mut self.fetches)
    }

    /// Copies a piece out of the other rank's heap; as [`Fetches::work`].
    ///
    /// # Errors
    /// The sender broke the protocol.
    #[inline]
    pub fn fetch(&mut self, requests: &mut Requests) -> Result<(bool, Option<u64>)> {
        self.fetches.work(&self.area, self.rank, requests)
    }

    /// Unpacks full chunks, a few. True when something moved.
    ///
    /// # Errors
    /// The sender broke the protocol.
    pub fn drain(&mut self, fabric: &Fabric, requests: &mut Requests) -> Result<bool> {
        let mut moved = false;
        for _ in 0..CHUNKS_PER_TURN {
            let Some(&id) = self.incoming.front() else { break };
            let next = self.chunks.next(&self.area).map_err(|v| broken(self.rank, v))?;
            let Some((index, len)) = next else { break };
            let Some(receive) = requests.receive(id) else {
                return Err(lost("receive"));
            };
            let Some((tag, total, done)) = receive.stream else {
                return Err(lost("receive"));
            };
            let end = done + len as u64;
            if end > total {
                return Err(broken(self.rank, Violation("more data than the message has")));
            }
            // SAFETY: `end` is at most the message's bytes, which were granted because they fit
            // the receive; the chunk is full, thus ours to read, `len` was checked against its
            // size, and shared memory overlaps no user layout.
            unsafe { receive.sink.unpack(done..end, self.area.chunk(index)) };
            receive.stream = Some((tag, total, end));
            self.chunks.advance(&self.area);
            fabric.ring(self.rank);
            moved = true;
            if end == total {
                self.incoming.pop_front();
                requests.complete(id, Ok(Status { source: self.rank, tag, bytes: total }));
            }
        }
        Ok(moved)
    }
}

#[cold]
fn lost(what: &str) -> Error {
    Error::new(ErrorKind::Internal, "transport", format!("a streaming {what} was lost"))
}
