//! Two ranks of a job in one process. A test can overwrite the memory that the two ranks share.
//!
//! Only the checks of `typepack-fuzz` use this module. It is not part of the interface: it is hidden in the
//! documentation, and [`RankPair::new`] is unsafe, so a safe program cannot build a pair.
//!
//! Both ranks run the library's own code from `endpoint/engine.rs` downwards. In place of `progress.rs`,
//! the test itself makes the engines move messages ([`RankPair::turn`]). A test can write every value that
//! a misbehaving rank could write.

use crate::endpoint::engine::{Cancelled, MessageEngine};
use crate::message::label::{Label, Sender};
use crate::message::payload::{Posting, SendMode};
use crate::message::typecheck::OF_LAYOUT;
use crate::message::{Operation, Source, Status, Tag};
use crate::process::Process;
use crate::settings::Forced;
use crate::shm::pair;
use crate::shm::segment::{JobFlags, Segment, atomic_u64};
use crate::transport::link::fabric::Fabric;
use crate::{Plan, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use typepack_engine::Elements;

/// The protocol that the ranks use for long messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RankPairWays {
    /// The library chooses a protocol for each message, as in a job.
    Any,
    /// Messages travel only through rings and chunks.
    Packed,
    /// Messages travel only through rings and chunks, and those of medium length go out in fragments.
    Parts,
    /// The receiver copies from the heap if the data lies in the heap.
    Heap,
}

/// Two ranks of one job. Both live in this process.
#[derive(Debug)]
pub struct RankPair {
    segment: Arc<Segment>,
    fabrics: [Fabric; 2],
    engines: [MessageEngine; 2],
}

impl RankPair {
    /// Byte offsets in the area of an ordered pair, the shared memory through which one rank sends to
    /// another rank. They are the offsets of the ring's slots in a job of two ranks, of the slots'
    /// payloads, of the stamps of the chunks, of the small chunk, and of the end of the area.
    pub const PARTS: [usize; 5] = {
        let of_two = pair::Geometry::of(2);
        let ring = pair::LEVELS[of_two.first_level()];
        let slots = pair::SLOTS_AT + ring.first_slot * pair::SLOT_BYTES;
        let payload = pair::PAYLOAD_AT + ring.first_byte;
        [slots, payload, pair::STAMPS_AT, of_two.small_chunk(), of_two.bytes()]
    };

    /// The size of a chunk in bytes.
    pub const CHUNK: usize = pair::CHUNK_BYTES;

    /// The number of slots, the size of a slot in bytes, the number of chunk stamps, and the size of a stamp
    /// in bytes.
    pub const SLOTS: [usize; 4] = [pair::SLOTS, pair::SLOT_BYTES, pair::CHUNKS, pair::LINE];

    /// Creates a job of two ranks.
    ///
    /// # Safety
    ///
    /// - After a call of [`RankPair::write`], the caller relies on no value in memory that
    ///   [`RankPair::shared`] has returned, because from then on the ranks may read and write this memory at
    ///   any time.
    ///
    /// # Errors
    /// Returns `ErrorKind::NoMemory` if memory runs out.
    pub unsafe fn new(eager_limit: u64, ways: RankPairWays) -> Result<Self> {
        let segment = Arc::new(Segment::create(2, &[], JobFlags::default(), 0)?);
        for rank in 0..2 {
            // Make both ranks read all words of their mailboxes, because a test may write any of these words.
            segment.slot(rank).writers.store(2, Ordering::Relaxed);
        }
        let fabrics = [Fabric::join(segment.clone(), 0)?, Fabric::join(segment.clone(), 1)?];
        let engines = fabrics.clone().map(|fabric| {
            let mut engine = MessageEngine::new(fabric, eager_limit.min(pair::EAGER_MAX as u64));
            engine.force(match ways {
                RankPairWays::Any => Forced::Nothing,
                RankPairWays::Packed => Forced::Packed,
                RankPairWays::Parts => Forced::Fragments,
                RankPairWays::Heap => Forced::Heap,
            });
            engine
        });
        Ok(Self { segment, fabrics, engines })
    }

    /// Makes both ranks compare the types of messages from now on.
    pub fn check_types(&mut self) {
        self.engines.iter_mut().for_each(MessageEngine::check_types);
    }

    /// Allocates `len` zero bytes in the heap of a rank. The memory lives as long as the pair.
    pub fn shared(&self, rank: usize, len: usize) -> Option<*mut u8> {
        let memory = self.fabrics[rank].heap()?.alloc(len, 64, true).ok()?;
        Some(memory.as_ptr())
    }

    /// Starts a send to the other rank. Returns the operation's number, or `None` if it is complete.
    ///
    /// # Safety
    ///
    /// - Until the pair is dropped, the elements are readable and nobody writes them.
    ///
    /// # Errors
    /// Returns the errors of a send: `ErrorKind::Engine` if the packed size exceeds 2^63 - 1 bytes, and
    /// `ErrorKind::NoMemory` if memory runs out.
    pub unsafe fn send(
        &mut self,
        rank: usize,
        elements: Elements<&Plan>,
        tag: i32,
        synchronous: bool,
    ) -> Result<Option<u64>> {
        let label = Label { context: 0, tag, bytes: elements.bytes()?, types: OF_LAYOUT };
        let mode = if synchronous { SendMode::Synchronous } else { SendMode::Standard };
        // SAFETY: the caller guarantees that the elements stay readable and unchanged until
        // the pair is dropped (the condition of `# Safety`). `label.bytes` is their packed size.
        number(unsafe { self.engines[rank].send(&elements, label, Process::new(1 - rank), mode) })
    }

    /// Starts a receive. Returns the operation's number, or `None` if it is complete.
    ///
    /// # Safety
    ///
    /// - Until the pair is dropped, the elements are writable and nobody else accesses them.
    ///
    /// # Errors
    /// Returns the errors of a receive: `ErrorKind::Truncated` or `ErrorKind::Type` if a message has already
    /// arrived that is too long for the receive or has other types, and `ErrorKind::NoMemory` if memory runs
    /// out.
    pub unsafe fn receive(
        &mut self,
        rank: usize,
        elements: Elements<&Plan>,
        source: Source,
        tag: Tag,
    ) -> Result<Option<u64>> {
        let source = match source {
            Source::Any => Sender::Any,
            Source::Rank(rank) => Sender::Process(Process::new(rank)),
        };
        let posting = Posting::new(elements, 0, source, tag)?;
        // SAFETY: the caller guarantees that, until the pair is dropped, the elements are
        // writable and nobody else accesses them (the condition of `# Safety`). `Posting::new` takes the
        // capacity from the plan.
        number(unsafe { self.engines[rank].receive(&posting) })
    }

    /// Makes the message engine of a rank move its messages once. Returns true if anything moved.
    ///
    /// # Errors
    /// Returns `ErrorKind::Other` if the other rank broke the protocol, and `ErrorKind::NoMemory` if memory
    /// runs out.
    pub fn turn(&mut self, rank: usize) -> Result<bool> {
        self.engines[rank].progress()
    }

    /// Returns the result of an operation, or `None` while it is pending.
    pub fn fetch(&mut self, rank: usize, id: u64) -> Option<Result<Status>> {
        self.engines[rank].requests().fetch(id)
    }

    /// Cancels a receive that no message has matched. Returns false if a message has matched, or if `id` is
    /// not the number of a receive.
    pub fn cancel_receive(&mut self, rank: usize, id: u64) -> bool {
        self.engines[rank].cancel_receive(id)
    }

    /// Cancels a send.
    pub fn cancel_send(&mut self, rank: usize, id: u64) -> Cancelled {
        self.engines[rank].cancel_send(id)
    }

    /// Returns the word at byte `at` of the area through which rank `from` sends to rank `to`. The function
    /// takes `at` modulo the area's size and rounds it down to a multiple of 8. It returns 0 if `from` has
    /// never sent a message to `to`. If the two ranks are the same, the function instead reads the words
    /// through which other ranks announce themselves to that rank: first its count of connections, then the
    /// words of its mailbox.
    pub fn word(&self, from: usize, to: usize, at: usize) -> u64 {
        if from == to {
            return self
                .contact_word(from, at)
                .map_or(0, |word| word.load(Ordering::Acquire).into());
        }
        self.atomic(from, to, at).map_or(0, |word| word.load(Ordering::Acquire))
    }

    /// Writes the word that [`word`](Self::word) would read. Does nothing if there is no such word.
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
        let at = (at % pair::Geometry::of(2).bytes()) & !7;
        let area = self.fabrics[from].contacts().ok()?.writes_to(to)?;
        // SAFETY: `at` is a multiple of 8 and below the length that this rank has chosen, the length of the area. The
        // area starts at a page, so the word lies in the area and is aligned. `self` holds the fabrics, which keep the
        // area mapped.
        Some(unsafe { atomic_u64(area.as_ptr().add(at)) })
    }
}

fn number(started: Result<Operation>) -> Result<Option<u64>> {
    Ok(match started? {
        Operation::Done(_) => None,
        Operation::Pending(id) => Some(id),
    })
}
