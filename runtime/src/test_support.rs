//! Two ranks of a job in one process, and a hand that writes into their shared memory what it likes:
//! for the checks of `typepack-fuzz` only, no part of the interface. The crate's documentation does not
//! show it, and making a [`RankPair`] is unsafe, so that safe programs cannot.
//!
//! The ranks are the real thing from `endpoint/engine.rs` downwards, turned by hand instead of by
//! `progress.rs`. What a test writes is what a rank gone wild could write.

use crate::endpoint::engine::{How, MessageEngine};
use crate::message::label::{Label, Sender, Slot};
use crate::message::payload::{LayoutRef, Posting};
use crate::message::typecheck::OF_LAYOUT;
use crate::message::{Operation, Source, Status, Tag};
use crate::settings::Forced;
use crate::shm::pair;
use crate::shm::segment::{JobFlags, Segment, atomic_u64};
use crate::transport::fabric::Fabric;
use crate::{Plan, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// What messages need not fit the rings for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RankPairWays {
    /// As a job chooses.
    Any,
    /// Rings and chunks.
    Packed,
    /// Out of the heap, where the data lies in it.
    Heap,
}

/// The two ranks.
#[derive(Debug)]
pub struct RankPair {
    segment: Arc<Segment>,
    fabrics: [Fabric; 2],
    engines: [MessageEngine; 2],
}

impl RankPair {
    /// Where things lie in the area of an ordered pair, in bytes: slots, their payloads, stamps of the
    /// chunks, chunks, and the end of all.
    pub const PARTS: [usize; 5] =
        [pair::SLOTS_AT, pair::PAYLOAD_AT, pair::STAMPS_AT, pair::CHUNKS_AT, pair::PAIR_BYTES];

    /// Number and bytes of slots, and of chunks' stamps.
    pub const SLOTS: [usize; 4] = [pair::SLOTS, pair::SLOT_BYTES, pair::CHUNKS, pair::LINE];

    /// A new job.
    ///
    /// # Safety
    ///
    /// - Whatever [`RankPair::write`] changes, the caller counts on nothing that the ranks do to
    ///   memory from [`RankPair::shared`]: a rank gone wild can have it read and written, as those of a
    ///   job can.
    ///
    /// # Errors
    /// Out of memory.
    pub unsafe fn new(eager_limit: u64, ways: RankPairWays) -> Result<Self> {
        let segment = Arc::new(Segment::create(2, &[], JobFlags::default(), 0)?);
        for rank in 0..2 {
            // Both ranks read all words of their mailboxes, which a test may write.
            segment.slot(rank).writers.store(2, Ordering::Relaxed);
        }
        let fabrics = [Fabric::join(segment.clone(), 0)?, Fabric::join(segment.clone(), 1)?];
        let engines = fabrics.clone().map(|fabric| {
            let mut engine = MessageEngine::new(fabric, eager_limit.min(pair::EAGER_MAX as u64));
            engine.force(match ways {
                RankPairWays::Any => Forced::Nothing,
                RankPairWays::Packed => Forced::Packed,
                RankPairWays::Heap => Forced::Heap,
            });
            engine
        });
        Ok(Self { segment, fabrics, engines })
    }

    /// Both ranks compare the types of messages, from now on.
    pub fn check_types(&mut self) {
        self.engines.iter_mut().for_each(MessageEngine::check_types);
    }

    /// Memory in the heap of a rank: zeros, for as long as the pair lives.
    pub fn shared(&self, rank: usize, len: usize) -> Option<*mut u8> {
        let memory = self.fabrics[rank].heap()?.alloc(len, 64, true).ok()?;
        Some(memory.as_ptr())
    }

    /// Starts a send to the other rank: its number, unless it is complete.
    ///
    /// # Safety
    ///
    /// - `origin` is displacement 0 of `count` elements that are readable, and not written, until
    ///   the pair is dropped.
    ///
    /// # Errors
    /// As a send's.
    pub unsafe fn send(
        &mut self,
        rank: usize,
        (origin, plan, count): (*const u8, &Plan, u64),
        tag: i32,
        synchronous: bool,
    ) -> Result<Option<u64>> {
        let layout = LayoutRef { origin: origin.cast_mut(), plan, count };
        let label = Label { context: 0, tag, bytes: plan.packed_bytes(count)?, types: OF_LAYOUT };
        let how = How { synchronous, ..How::STANDARD };
        // SAFETY: the memory is the caller's promise, and the label has its packed size.
        number(unsafe { self.engines[rank].send(&layout, label, Slot::new(1 - rank), how) })
    }

    /// Starts a receive: its number, unless it is complete.
    ///
    /// # Safety
    ///
    /// - `origin` is displacement 0 of `count` elements that are writable, and nobody else's, until
    ///   the pair is dropped.
    ///
    /// # Errors
    /// As a receive's.
    pub unsafe fn receive(
        &mut self,
        rank: usize,
        (origin, plan, count): (*mut u8, &Plan, u64),
        source: Source,
        tag: Tag,
    ) -> Result<Option<u64>> {
        let source = match source {
            Source::Any => Sender::Any,
            Source::Rank(rank) => Sender::Slot(Slot::new(rank)),
        };
        let posting = Posting::new(LayoutRef { origin, plan, count }, 0, source, tag)?;
        // SAFETY: the memory is the caller's promise, and the capacity its packed size.
        number(unsafe { self.engines[rank].receive(&posting) })
    }

    /// One turn of a rank. True when something moved.
    ///
    /// # Errors
    /// The other rank broke the protocol.
    pub fn turn(&mut self, rank: usize) -> Result<bool> {
        self.engines[rank].progress()
    }

    /// The result of an operation, if it is complete.
    pub fn fetch(&mut self, rank: usize, id: u64) -> Option<Result<Status>> {
        self.engines[rank].requests().fetch(id)
    }

    /// Cancels a receive that no message has matched.
    pub fn cancel_receive(&mut self, rank: usize, id: u64) -> bool {
        self.engines[rank].cancel_receive(id)
    }

    /// A word of the area of the ordered pair; `at` is taken modulo its size, and rounded down. 0 before
    /// there has been a message from `from` to `to`. For `from == to`, what this rank reads to learn who
    /// writes to it: its connects, then the words of its mailbox.
    pub fn word(&self, from: usize, to: usize, at: usize) -> u64 {
        if from == to {
            return self
                .contact_word(from, at)
                .map_or(0, |word| word.load(Ordering::Acquire).into());
        }
        self.atomic(from, to, at).map_or(0, |word| word.load(Ordering::Acquire))
    }

    /// Writes such a word, as either rank could; nothing where there is none.
    pub fn write(&self, from: usize, to: usize, at: usize, value: u64) {
        if from == to {
            if let Some(word) = self.contact_word(from, at) {
                word.store(value as u32, Ordering::Release);
            }
        } else if let Some(word) = self.atomic(from, to, at) {
            word.store(value, Ordering::Release);
        }
    }

    fn contact_word(&self, rank: usize, at: usize) -> Option<&AtomicU32> {
        match (at / 8) % 3 {
            0 => Some(&self.segment.slot(rank).connects),
            from => Some(self.fabrics[rank].contacts().ok()?.mailbox_word(from - 1)),
        }
    }

    fn atomic(&self, from: usize, to: usize, at: usize) -> Option<&AtomicU64> {
        let at = (at % pair::PAIR_BYTES) & !7;
        let area = self.fabrics[from].contacts().ok()?.writes_to(to)?;
        // SAFETY: within the area, which is as long as that in a job of two, a multiple of 8 from a
        // page; it stays mapped as long as the fabrics, which `self` holds.
        Some(unsafe { atomic_u64(area.as_ptr().add(at)) })
    }
}

fn number(started: Result<Operation>) -> Result<Option<u64>> {
    Ok(match started? {
        Operation::Done(_) => None,
        Operation::Pending(id) => Some(id),
    })
}
