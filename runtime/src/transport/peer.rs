//! This rank's two ways to and from one other rank: local send queue, ring, chunk streams.
//!
//! `p2p/exchange.rs` puts work into a [`Tx`] and takes envelopes out of an [`Rx`]; `progress.rs`
//! calls the movers (`flush`, `fill`, `drain`) in every turn. The protocol is told in `README.md`
//! beside this file.
//!
//! Invariants: what goes to one rank enters its ring in the order it was queued; chunks are filled
//! in the order of the grants received and drained in the order of the grants given; nothing here
//! ever waits.

use super::envelope::{Envelope, INLINE_MAX};
use super::fabric::{Area, Fabric};
use crate::p2p::Status;
use crate::p2p::request::{Requests, SendStage};
use crate::shm::bulk::{Drainer, Filler};
use crate::shm::pair::CHUNK_BYTES;
use crate::shm::ring::{Consumer, Producer, Violation};
use crate::{Error, ErrorKind, Result};
use std::collections::VecDeque;

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

/// Something that waits for room in a ring.
#[derive(Clone, Copy, Debug)]
pub enum Outgoing {
    /// The send request with this number.
    Send(u64),
    /// A grant for the receiver's offer: its request number, and the bytes wanted.
    Grant(u64, u64),
}

/// The way to another rank.
#[derive(Debug)]
pub struct Tx {
    area: Area,
    rank: usize,
    ring: Producer,
    queue: VecDeque<Outgoing>,
    chunks: Filler,
    chunks_reserved: bool,
    granted: VecDeque<u64>,
}

impl Tx {
    /// The way to `rank`, whose area has been made usable.
    pub fn new(area: Area, rank: usize) -> Self {
        Self {
            area,
            rank,
            ring: Producer::default(),
            queue: VecDeque::new(),
            chunks: Filler::default(),
            chunks_reserved: false,
            granted: VecDeque::new(),
        }
    }

    /// True when nothing waits: an eager message may go into the ring at once.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.queue.is_empty()
    }

    /// Work left for [`Tx::flush`] or [`Tx::fill`].
    pub fn has_work(&self) -> bool {
        !self.queue.is_empty() || !self.granted.is_empty()
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
        label: super::envelope::Label,
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

    /// Moves the local queue into the ring as far as there is room. True when something moved.
    ///
    /// # Errors
    /// The receiver broke the protocol.
    pub fn flush(
        &mut self,
        fabric: &Fabric,
        requests: &mut Requests,
        eager_limit: u64,
    ) -> Result<bool> {
        let mut moved = false;
        while let Some(&next) = self.queue.front() {
            let envelope = match next {
                Outgoing::Grant(id, bytes) => Envelope::Grant { id, bytes },
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
                    Envelope::Offer(label, id)
                }
            };
            let room = self.ring.reserve(&self.area, 0).map_err(|v| broken(self.rank, v))?;
            let Some(room) = room else { break };
            if let Outgoing::Send(id) = next
                && let Some(send) = requests.send(id)
            {
                send.stage = SendStage::Offered;
            }
            let (words, used) = envelope.encode();
            self.ring.publish(&self.area, room, &words, used);
            fabric.ring(self.rank);
            self.queue.pop_front();
            moved = true;
        }
        Ok(moved)
    }

    /// Packs granted messages into free chunks, a few. True when something moved.
    ///
    /// # Errors
    /// The receiver broke the protocol; out of memory at the first use of the chunks.
    pub fn fill(&mut self, fabric: &Fabric, requests: &mut Requests) -> Result<bool> {
        let mut moved = false;
        for _ in 0..CHUNKS_PER_TURN {
            let Some(&id) = self.granted.front() else { break };
            let Some(send) = requests.send(id) else {
                return Err(lost("send"));
            };
            let SendStage::Streaming(done) = send.stage else {
                return Err(lost("send"));
            };
            if !self.chunks_reserved {
                fabric.reserve_chunks(self.rank)?;
                self.chunks_reserved = true;
            }
            let next = self.chunks.next(&self.area).map_err(|v| broken(self.rank, v))?;
            let Some(index) = next else { break };
            let total = send.label.bytes;
            let piece =
                (total / PIECES).next_multiple_of(4096).clamp(PIECE_MIN, CHUNK_BYTES as u64);
            let end = total.min(done + piece);
            // SAFETY: the range is within the message, no longer than a chunk; the chunk is free,
            // thus ours to write, and shared memory overlaps no user layout.
            unsafe { send.supply.pack(done..end, self.area.chunk(index)) };
            self.chunks.publish(&self.area, (end - done) as usize);
            fabric.ring(self.rank);
            moved = true;
            send.stage = SendStage::Streaming(end);
            if end == total {
                let status = Status { source: fabric.rank(), tag: send.label.tag, bytes: total };
                self.granted.pop_front();
                requests.complete(id, Ok(status));
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
    /// The ring, read by `p2p/exchange.rs`.
    pub ring: Consumer,
    rank: usize,
    chunks: Drainer,
    incoming: VecDeque<u64>,
}

impl Rx {
    /// The way from `rank`, which has written to `area`.
    pub fn new(area: Area, rank: usize) -> Self {
        Self {
            area,
            ring: Consumer::default(),
            rank,
            chunks: Drainer::default(),
            incoming: VecDeque::new(),
        }
    }

    /// A grant for this receive is on its way: its data follows that of earlier grants.
    pub fn expect(&mut self, id: u64) {
        self.incoming.push_back(id);
    }

    /// Work left for [`Rx::drain`].
    pub fn has_work(&self) -> bool {
        !self.incoming.is_empty()
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
