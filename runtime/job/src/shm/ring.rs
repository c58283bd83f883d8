//! The ring of one ordered pair of ranks, with a single producer and a single consumer. It carries
//! envelopes and the payloads of eager messages.
//!
//! `transport/link.rs` owns a [`Producer`] for every rank to which this rank writes, and a [`Consumer`] for
//! every rank that writes to this rank. `pair.rs` defines the offsets of the words. Producer and consumer
//! each keep their own position in private memory. They share one stamp per slot and two words of credits:
//!
//! ```text
//! slot (64 B)   stamp | 7 words of envelope, of which the last 4 may hold 32 B of inline payload
//!               the stamp of message n (from 0) is n + 1, so a slot's old stamp never equals the next one
//! credits       slots freed so far | payload bytes freed so far      (written by the consumer)
//! ```
//!
//! 1. For message `n`, the producer takes slot `n % SLOTS` when `n - freed < SLOTS`, where `freed` is the
//!    number of slots freed so far and `SLOTS` is the number of slots. It takes payload bytes by the same
//!    rule. The producer reads the credits from shared memory only if its private copy of the credits
//!    shows no room.
//! 2. The producer writes the payload and the words of the envelope, and then writes the stamp with release
//!    order.
//! 3. The consumer reads the stamp of the next slot with acquire order, copies the envelope once, and uses
//!    the copy. The consumer never reads the producer's position.
//! 4. When the consumer has used the payload, it frees the message. The consumer returns credits whenever
//!    it has freed a quarter of the slots or a quarter of the payload area since it last returned credits.
//!
//! A payload occupies whole cache lines. Producer and consumer both compute the position of a payload from
//! the lengths of all payloads so far (`place`), and never read a position from shared memory.
//!
//! A pair has rings of several sizes, the *levels*, in memory that does not overlap. It uses one of them at a
//! time. To change to the next level, the producer publishes a marker: a slot whose stamp has the bit [`GROWN`],
//! without an envelope. All later messages are in the ring of the next level, and the count of messages continues
//! there. Producer and consumer both continue the positions of payloads at the next multiple of the new payload
//! area's size. In every ring except that of the last level, one slot stays free for the marker, so a full ring
//! can always grow. The messages that are still in the old ring count as messages of the new ring until they are
//! freed. The payloads in the old ring do not count, because the new payloads do not reuse their memory.
//!
//! The delay before the consumer returns credits cannot cause a deadlock. If the producer has no free slot,
//! then at least `SLOTS - 1` messages are outstanding, and the consumer has freed fewer than `SLOTS / 4` of them
//! without returning credits. As the consumer frees the remaining messages, it reaches a quarter of the ring and
//! returns credits. For the payloads, let `PAYLOAD` be the size of the ring's payload area, and `LONGEST` the
//! maximum length of a payload, which is `PAYLOAD / 4` ([`Level::longest`]). If the producer has no room for a
//! payload, then more than `PAYLOAD - 2 * LONGEST` bytes are outstanding, because the producer asks for at most
//! `LONGEST` bytes and skips fewer than `LONGEST` bytes at the end of the payload area. `PAYLOAD - 2 * LONGEST` is
//! `PAYLOAD / 2`, and the consumer holds back credits for at most a quarter of the payload area. So as the consumer
//! frees the outstanding bytes, it again reaches a quarter and returns credits.

use super::pair::{LINE, Level};
use crate::sync::Word;
use std::fmt::Display;
use std::ops::RangeInclusive;

/// The bit of a stamp that marks the end of a ring: later messages are in the ring of the next level.
pub const GROWN: u64 = 1 << 63;

/// Number of words of an envelope: all words of a slot except the stamp.
pub const ENVELOPE_WORDS: usize = 7;

/// Access to the words of one ring in shared memory.
pub trait RingMemory {
    /// The type of a word.
    type Word: Word;
    /// The levels, from the smallest ring to the largest.
    const LEVELS: &'static [Level];
    /// Number of levels through which a ring can grow, from the smallest on.
    const GROWS: usize = Self::LEVELS.len();

    /// Returns word `word` of slot `slot`. Word 0 is the stamp, and `slot` belongs to one of the levels.
    fn slot(&self, slot: usize, word: usize) -> &Self::Word;
    /// Returns the word with the number of slots that the consumer has freed since the start of the job.
    fn slots_freed(&self) -> &Self::Word;
    /// Returns the word with the number of payload bytes that the consumer has freed since the start of the
    /// job.
    fn bytes_freed(&self) -> &Self::Word;
}

/// A violation of the protocol by the process at the other end of the pair. The text describes the violation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation(pub Box<str>);

impl Violation {
    /// Makes a violation from its text.
    #[cold]
    pub fn new(text: impl Into<Box<str>>) -> Self {
        Self(text.into())
    }

    /// Makes a violation whose text says that `what` has the value `value`, but that only values in `allowed`
    /// are allowed.
    #[cold]
    #[inline(never)]
    pub fn outside<T: Display>(what: &'static str, value: T, allowed: RangeInclusive<T>) -> Self {
        let (low, high) = allowed.into_inner();
        Self::new(format!("{what} is {value}; it must be between {low} and {high}"))
    }
}

/// Returns where the cache lines of a payload of `len` bytes start and end. Both are positions: a position
/// counts the bytes of the payload area that have been used or skipped since the start of the job.
/// `position` is the end of the previous payload. The cache lines never cross the end of the area, which
/// has `area` bytes.
#[inline]
fn place(position: u64, len: usize, area: usize) -> (u64, u64) {
    let need = len.next_multiple_of(LINE) as u64;
    let area = area as u64;
    let left = area - (position & (area - 1));
    let start = if need > left { position + left } else { position };
    (start, start + need)
}

/// Room for one message in the ring, made by [`Producer::reserve`].
#[derive(Debug)]
#[must_use]
pub struct Room {
    /// Offset in bytes of the message's payload in the payload area.
    pub offset: usize,
    end: u64,
}

/// A [`Level`] in the form that the hot paths use. The numbers have 32 bits, so that a [`Producer`] or a
/// [`Consumer`] fits in one cache line.
#[derive(Clone, Copy, Debug)]
struct Shape {
    first_slot: u32,
    slot_mask: u32,
    first_byte: u32,
    byte_mask: u32,
}

impl Shape {
    /// Returns the shape of a level. The casts are exact, because areas have less than 4 GiB.
    fn of(level: Level) -> Self {
        let Level { first_slot, slots, first_byte, payload } = level;
        Self {
            first_slot: first_slot as u32,
            slot_mask: slots as u32 - 1,
            first_byte: first_byte as u32,
            byte_mask: payload as u32 - 1,
        }
    }

    #[inline]
    fn slot(self, number: u64) -> usize {
        (self.first_slot + (number as u32 & self.slot_mask)) as usize
    }

    #[inline]
    fn offset(self, position: u64) -> usize {
        (self.first_byte + (position as u32 & self.byte_mask)) as usize
    }

    #[inline]
    fn payload(self) -> usize {
        self.byte_mask as usize + 1
    }

    #[inline]
    fn slots(self) -> usize {
        self.slot_mask as usize + 1
    }

    #[inline]
    fn longest(self) -> usize {
        self.payload() / 4
    }
}

/// The producer's side of a ring.
#[derive(Debug)]
pub struct Producer {
    sent: u64,
    bytes: u64,
    slots_freed: u64,
    bytes_freed: u64,
    /// Number of messages that may be in the ring at a time.
    limit: u32,
    level: u32,
    ring: Shape,
    /// The position at which the payloads of this level begin.
    base: u64,
}

impl Producer {
    /// Creates the producer of a ring that begins with level `level` of `M`.
    ///
    /// # Panics
    ///
    /// Panics if there is no such level.
    pub fn new<M: RingMemory>(level: usize) -> Self {
        let (sent, bytes, slots_freed, bytes_freed, base) = (0, 0, 0, 0, 0);
        let (ring, limit) = (Shape::of(M::LEVELS[level]), limit::<M>(level));
        Self { sent, bytes, slots_freed, bytes_freed, limit, level: level as u32, ring, base }
    }

    /// Returns room for one message with `payload` bytes outside its slot, or `None` while the ring is full or
    /// if the payload is too long for a ring of this level. `payload` is 0 if the slot holds all data of the
    /// message.
    ///
    /// # Errors
    /// Returns a [`Violation`] if a count of credits has decreased or exceeds what the producer has used.
    #[inline]
    pub fn reserve<M: RingMemory>(
        &mut self,
        memory: &M,
        payload: usize,
    ) -> Result<Option<Room>, Violation> {
        if payload > self.ring.longest() {
            return Ok(None);
        }
        let (start, end) = place(self.bytes, payload, self.ring.payload());
        if !self.fits(end) {
            self.refresh(memory)?;
            if !self.fits(end) {
                return Ok(None);
            }
        }
        Ok(Some(Room { offset: self.ring.offset(start), end }))
    }

    /// Returns the maximum length of a payload in the ring of the present level.
    #[inline]
    pub fn longest(&self) -> usize {
        self.ring.longest()
    }

    /// Returns the next level, or `None` if the ring has the last level.
    pub fn next_level<M: RingMemory>(&self) -> Option<Level> {
        following::<M>(self.level)
    }

    /// Returns whether the ring has one of the levels into which no ring grows. Their payload areas are large.
    #[inline]
    pub fn is_large<M: RingMemory>(&self) -> bool {
        self.level as usize >= M::GROWS
    }

    /// Returns how many of `len` bytes lie in one run of the payload area, from the place on at which the next payload
    /// will begin if it has `payload` bytes.
    pub fn run_ahead(&self, payload: usize, len: usize) -> usize {
        let area = self.ring.payload();
        let start = place(self.bytes, payload, area).0 as usize & (area - 1);
        len.min(area - start)
    }

    /// Changes to the next level; does nothing if there is none. The caller has allocated the memory of the ring of
    /// the next level.
    ///
    /// # Errors
    /// Returns a [`Violation`] if a count of credits is impossible.
    pub fn grow<M: RingMemory>(&mut self, memory: &M) -> Result<(), Violation> {
        let Some(next) = self.next_level::<M>() else { return Ok(()) };
        let slot = self.ring.slot(self.sent);
        self.sent += 1;
        memory.slot(slot, 0).store_release(self.sent | GROWN);
        (self.level, self.ring) = (self.level + 1, Shape::of(next));
        self.limit = limit::<M>(self.level as usize);
        self.bytes = self.bytes.next_multiple_of(next.payload as u64);
        (self.base, self.bytes_freed) = (self.bytes, self.bytes);
        self.refresh(memory)
    }

    /// Publishes a message. The caller has written the payload at `room`. The first `used_words` words of
    /// `envelope` are copied to the slot.
    #[inline]
    pub fn publish<M: RingMemory>(
        &mut self,
        memory: &M,
        room: Room,
        envelope: &[u64; ENVELOPE_WORDS],
        used_words: usize,
    ) {
        self.publish_words(memory, room, &envelope[..used_words]);
    }

    /// Publishes a message like [`publish`](Self::publish). `words` are the first words of the envelope, at most
    /// [`ENVELOPE_WORDS`]; further words are left out.
    #[inline(always)]
    pub fn publish_words<M: RingMemory>(&mut self, memory: &M, room: Room, words: &[u64]) {
        let slot = self.ring.slot(self.sent);
        for (i, word) in words.iter().enumerate().take(ENVELOPE_WORDS) {
            memory.slot(slot, i + 1).store_relaxed(*word);
        }
        self.sent += 1;
        self.bytes = room.end;
        memory.slot(slot, 0).store_release(self.sent);
    }

    /// Returns the offset in the payload area at which the next payload will begin if it has `len` bytes.
    #[inline]
    pub fn next_offset(&self, len: usize) -> usize {
        self.ring.offset(place(self.bytes, len, self.ring.payload()).0)
    }

    /// Returns the number of messages that this producer has published.
    #[inline]
    pub fn published(&self) -> u64 {
        self.sent
    }

    /// Returns whether the consumer has told that it has used the first `count` messages. What the consumer has stored
    /// before it told this is then visible. Reads shared memory.
    pub fn has_freed<M: RingMemory>(&self, memory: &M, count: u64) -> bool {
        memory.slots_freed().load_acquire() >= count
    }

    /// Returns the slot of the message that is `distance` messages ahead of the next one, if the producer knows that
    /// this slot is free. The producer may fetch the cache line of a free slot for writing.
    #[inline]
    pub fn ahead(&self, distance: u32) -> Option<usize> {
        let number = self.sent + u64::from(distance);
        (number - self.slots_freed < u64::from(self.limit)).then(|| self.ring.slot(number))
    }

    /// Returns the offset in the payload area of the byte that follows `bytes` bytes after the start of the next
    /// payload. Returns `None` unless the producer knows that this byte is free. `bytes` is a multiple of the length
    /// of a cache line.
    #[inline]
    pub fn payload_ahead(&self, bytes: usize) -> Option<usize> {
        let position = self.bytes + bytes as u64;
        let freed = position - self.bytes_freed < self.ring.payload() as u64;
        freed.then(|| self.ring.offset(position))
    }

    #[inline]
    fn fits(&self, end: u64) -> bool {
        self.sent - self.slots_freed < u64::from(self.limit)
            && end - self.bytes_freed <= self.ring.payload() as u64
    }

    #[cold]
    fn refresh<M: RingMemory>(&mut self, memory: &M) -> Result<(), Violation> {
        // These are acquire loads, so that the consumer's reads of a payload happen before the producer
        // overwrites the bytes.
        let slots = memory.slots_freed().load_acquire();
        // Payloads in the ring of an earlier level do not count.
        let bytes = memory.bytes_freed().load_acquire().max(self.base);
        if slots < self.slots_freed || slots > self.sent {
            let allowed = self.slots_freed..=self.sent;
            return Err(Violation::outside("the count of freed slots", slots, allowed));
        }
        if bytes < self.bytes_freed || bytes > self.bytes {
            let allowed = self.bytes_freed..=self.bytes;
            return Err(Violation::outside("the count of freed payload bytes", bytes, allowed));
        }
        self.slots_freed = slots;
        self.bytes_freed = bytes;
        Ok(())
    }
}

/// Returns the number of messages that a ring of level `level` may hold. A ring that can grow keeps one slot
/// free for the marker.
fn limit<M: RingMemory>(level: usize) -> u32 {
    M::LEVELS[level].slots as u32 - u32::from(level + 1 < M::GROWS)
}

/// Returns the level to which a ring of level `level` can grow.
fn following<M: RingMemory>(level: u32) -> Option<Level> {
    let next = level as usize + 1;
    M::LEVELS.get(next).filter(|_| next < M::GROWS).copied()
}

/// The consumer's side of a ring.
#[derive(Debug)]
pub struct Consumer {
    taken: u64,
    bytes: u64,
    slots_returned: u64,
    bytes_returned: u64,
    ring: Shape,
    level: u32,
}

impl Consumer {
    /// Creates the consumer of a ring that begins with level `level` of `M`.
    ///
    /// # Panics
    ///
    /// Panics if there is no such level.
    pub fn new<M: RingMemory>(level: usize) -> Self {
        let (taken, bytes, slots_returned, bytes_returned) = (0, 0, 0, 0);
        let ring = Shape::of(M::LEVELS[level]);
        Self { taken, bytes, slots_returned, bytes_returned, ring, level: level as u32 }
    }

    /// Returns a copy of the next envelope if one has been published, and `None` otherwise. Does not free the
    /// message.
    #[inline]
    pub fn peek<M: RingMemory>(&mut self, memory: &M) -> Option<[u64; ENVELOPE_WORDS]> {
        let mut slot = self.ring.slot(self.taken);
        let stamp = memory.slot(slot, 0).load_acquire();
        if stamp != self.taken + 1 {
            if stamp & GROWN == 0 || !self.follow(memory, stamp) {
                return None;
            }
            slot = self.ring.slot(self.taken);
        }
        let mut envelope = [0; ENVELOPE_WORDS];
        for (i, word) in envelope.iter_mut().enumerate() {
            *word = memory.slot(slot, i + 1).load_relaxed();
        }
        Some(envelope)
    }

    /// Returns the slot of the message after the next one.
    #[inline]
    pub fn following(&self) -> usize {
        self.ring.slot(self.taken + 1)
    }

    /// Changes to the next level if `stamp`, the stamp of the next slot, is a marker. Returns whether the first
    /// envelope in the ring of that level has been published.
    #[cold]
    #[inline(never)]
    fn follow<M: RingMemory>(&mut self, memory: &M, mut stamp: u64) -> bool {
        while stamp == (self.taken + 1) | GROWN {
            // If there is no next level, the other process has broken the protocol. Its messages end here.
            let Some(next) = following::<M>(self.level) else { return false };
            self.ring = Shape::of(next);
            self.level += 1;
            self.taken += 1;
            self.bytes = self.bytes.next_multiple_of(self.ring.payload() as u64);
            self.bytes_returned = self.bytes;
            stamp = memory.slot(self.ring.slot(self.taken), 0).load_acquire();
        }
        stamp == self.taken + 1
    }

    /// Returns the offset in the payload area of the next message's payload, which has `len` bytes. The
    /// caller must have checked that `len` is at most the maximum for eager messages. If a misbehaving
    /// producer names a length that its ring cannot hold, the offset is the start of the ring's payload
    /// area, so the bytes still lie within the area of the pair.
    #[inline]
    pub fn payload_offset(&self, len: usize) -> usize {
        self.ring.offset(place(self.bytes, len, self.ring.payload()).0)
    }

    /// Returns the offset in the payload area of the payload of the message after the next one, if the payloads of
    /// both have `len` bytes.
    #[inline]
    pub fn following_payload(&self, len: usize) -> usize {
        let area = self.ring.payload();
        self.ring.offset(place(place(self.bytes, len, area).1, len, area).0)
    }

    /// Frees the next message and its `payload` bytes outside the slot. Returns true if this call has
    /// returned credits to the producer. The caller must then ring the producer's doorbell, because the
    /// producer may be asleep, waiting for credits.
    #[inline]
    #[must_use]
    pub fn advance<M: RingMemory>(&mut self, memory: &M, payload: usize) -> bool {
        self.taken += 1;
        self.bytes = place(self.bytes, payload, self.ring.payload()).1;
        if self.taken - self.slots_returned < (self.ring.slots() / 4) as u64
            && self.bytes - self.bytes_returned < (self.ring.payload() / 4) as u64
        {
            return false;
        }
        self.slots_returned = self.taken;
        self.bytes_returned = self.bytes;
        memory.bytes_freed().store_release(self.bytes);
        memory.slots_freed().store_release(self.taken);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    /// A ring in private memory. `W` is an atomic of loom or of `std`.
    struct Heap<W, const SLOTS: usize, const PAYLOAD: usize> {
        slots: Vec<[W; 8]>,
        credits: [W; 2],
    }

    impl<W: Word, const SLOTS: usize, const PAYLOAD: usize> Heap<W, SLOTS, PAYLOAD> {
        fn new(word: impl Fn() -> W) -> Self {
            Self {
                slots: (0..SLOTS).map(|_| std::array::from_fn(|_| word())).collect(),
                credits: [word(), word()],
            }
        }
    }

    impl<W: Word, const SLOTS: usize, const PAYLOAD: usize> RingMemory for Heap<W, SLOTS, PAYLOAD> {
        type Word = W;
        const LEVELS: &'static [Level] =
            &[Level { first_slot: 0, slots: SLOTS, first_byte: 0, payload: PAYLOAD }];
        fn slot(&self, slot: usize, word: usize) -> &W {
            &self.slots[slot][word]
        }
        fn slots_freed(&self) -> &W {
            &self.credits[0]
        }
        fn bytes_freed(&self) -> &W {
            &self.credits[1]
        }
    }

    type Plain = Heap<AtomicU64, 8, 1024>;

    #[test]
    fn payloads_never_cross_the_end() {
        for position in (0..4096u64).step_by(LINE) {
            for len in [0, 1, 63, 64, 65, 255, 256] {
                let (start, end) = place(position, len, 1024);
                assert!(start >= position && end - start >= len as u64);
                assert!(len == 0 || (start % 1024) + len as u64 <= 1024);
            }
        }
    }

    #[test]
    fn everything_arrives_in_order_through_many_laps() {
        let memory = Plain::new(AtomicU64::default);
        let (mut tx, mut rx) = (Producer::new::<Plain>(0), Consumer::new::<Plain>(0));
        let (mut sent, mut received) = (0u64, 0u64);
        // Send bursts of varying length, and let the consumer sometimes leave messages in the ring.
        for round in 0..5000u64 {
            for _ in 0..round % 11 {
                let payload = (sent * 37 % 257) as usize;
                let Some(room) = tx.reserve(&memory, payload).unwrap() else { break };
                let words = [sent, payload as u64, room.offset as u64, 0, 0, 0, 0];
                tx.publish(&memory, room, &words, 7);
                sent += 1;
            }
            for _ in 0..round % 7 {
                let Some(words) = rx.peek(&memory) else { break };
                assert_eq!(words[0], received);
                assert_eq!(rx.payload_offset(words[1] as usize), words[2] as usize);
                let following = rx.following_payload(words[1] as usize);
                let _ = rx.advance(&memory, words[1] as usize);
                assert_eq!(rx.payload_offset(words[1] as usize), following);
                received += 1;
            }
        }
        assert!(received > 1000);
    }

    /// A ring of three levels in private memory.
    struct Growing<W>(Vec<[W; 8]>, [W; 2]);

    impl<W: Word> RingMemory for Growing<W> {
        type Word = W;
        const LEVELS: &'static [Level] = &[
            Level { first_slot: 0, slots: 2, first_byte: 0, payload: 256 },
            Level { first_slot: 2, slots: 4, first_byte: 256, payload: 512 },
            Level { first_slot: 6, slots: 8, first_byte: 768, payload: 1024 },
        ];
        fn slot(&self, slot: usize, word: usize) -> &W {
            &self.0[slot][word]
        }
        fn slots_freed(&self) -> &W {
            &self.1[0]
        }
        fn bytes_freed(&self) -> &W {
            &self.1[1]
        }
    }

    impl<W: Word> Growing<W> {
        fn new(word: impl Fn() -> W) -> Self {
            let slot = || std::array::from_fn(|_| word());
            Self((0..14).map(|_| slot()).collect(), [word(), word()])
        }
    }

    /// Sends random messages through rings that grow at random moments, and checks their contents and order.
    #[test]
    fn everything_arrives_in_order_through_growing_rings() {
        let mut random = 1_u64;
        let mut below = move |bound: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888);
            (random >> 33) % bound
        };
        for case in 0..500 {
            let memory = Growing::<AtomicU64>::new(AtomicU64::default);
            let (mut tx, mut rx) =
                (Producer::new::<Growing<AtomicU64>>(0), Consumer::new::<Growing<AtomicU64>>(0));
            let mut bytes = vec![0_u64; 1792 / LINE];
            let (mut sent, mut received) = (0_u64, 0_u64);
            for _ in 0..200 {
                for _ in 0..below(6) {
                    let payload = below(257) as usize;
                    let room = match tx.reserve(&memory, payload).unwrap() {
                        Some(room) => room,
                        None if below(8) == 0
                            && tx.next_level::<Growing<AtomicU64>>().is_some() =>
                        {
                            tx.grow(&memory).unwrap();
                            continue;
                        }
                        None => continue,
                    };
                    let lines = room.offset / LINE..(room.offset + payload).div_ceil(LINE);
                    bytes[lines].fill(sent);
                    tx.publish(&memory, room, &[sent, payload as u64, 0, 0, 0, 0, 0], 7);
                    sent += 1;
                }
                for _ in 0..below(6) {
                    let Some(words) = rx.peek(&memory) else { break };
                    assert_eq!(words[0], received, "case {case}");
                    let (len, offset) = (words[1] as usize, rx.payload_offset(words[1] as usize));
                    let lines = offset / LINE..(offset + len).div_ceil(LINE);
                    assert!(bytes[lines].iter().all(|&line| line == received), "case {case}");
                    let _ = rx.advance(&memory, len);
                    received += 1;
                }
            }
            // When the consumer has taken everything, the producer has room again.
            while rx.peek(&memory).map(|words| rx.advance(&memory, words[1] as usize)).is_some() {
                received += 1;
            }
            assert_eq!(sent, received, "case {case}");
            assert!(tx.reserve(&memory, 64).unwrap().is_some(), "case {case}");
        }
    }

    /// Checks that a producer that grows beyond the last level, or skips a number, only stops its own messages.
    #[test]
    fn hostile_markers_are_no_messages() {
        let memory = Growing::<AtomicU64>::new(AtomicU64::default);
        let mut rx = Consumer::new::<Growing<AtomicU64>>(2);
        for stamp in [1 | GROWN, 2 | GROWN, GROWN, u64::MAX] {
            memory.slot(6, 0).store_release(stamp);
            assert!(rx.peek(&memory).is_none());
        }
    }

    #[test]
    fn a_full_ring_gets_its_credits_back_once_drained() {
        for payload in [0, 1, 64, 200, 256] {
            let memory = Plain::new(AtomicU64::default);
            let (mut tx, mut rx) = (Producer::new::<Plain>(0), Consumer::new::<Plain>(0));
            for _ in 0..100 {
                let mut outstanding = 0;
                while let Some(room) = tx.reserve(&memory, payload).unwrap() {
                    tx.publish(&memory, room, &[0; 7], 7);
                    outstanding += 1;
                }
                assert!(outstanding > 0, "no progress with payloads of {payload} bytes");
                while rx.peek(&memory).is_some() {
                    let _ = rx.advance(&memory, payload);
                }
            }
        }
    }

    #[test]
    fn impossible_credits_are_a_violation() {
        for (slots, bytes) in [(9, 0), (u64::MAX, 0), (0, 64), (0, u64::MAX)] {
            let memory = Plain::new(AtomicU64::default);
            let mut tx = Producer::new::<Plain>(0);
            while let Some(room) = tx.reserve(&memory, 0).unwrap() {
                tx.publish(&memory, room, &[0; 7], 7);
            }
            memory.slots_freed().store_release(slots);
            memory.bytes_freed().store_release(bytes);
            assert!(tx.reserve(&memory, 0).is_err());
        }
    }

    /// Sends three messages with payloads through a ring. The function calls `full` when the ring is full, and
    /// checks the contents and the order of the messages. Loom checks that the two sides never access a payload
    /// cell at the same time. `cells` is the number of cache lines in the payload areas.
    fn send_three<M>(memory: M, cells: usize, full: fn(&mut Producer, &M))
    where
        M: RingMemory + Send + Sync + 'static,
    {
        use loom::cell::UnsafeCell;
        use loom::sync::Arc;
        let memory = Arc::new(memory);
        let cells: Arc<Vec<UnsafeCell<u64>>> =
            Arc::new((0..cells).map(|_| UnsafeCell::new(0)).collect());
        let (shared, theirs) = (memory.clone(), cells.clone());
        let producer = loom::thread::spawn(move || {
            let mut tx = Producer::new::<M>(0);
            for n in 0..3u64 {
                let room = loop {
                    match tx.reserve(&*shared, 64).unwrap() {
                        Some(room) => break room,
                        None => full(&mut tx, &shared),
                    }
                };
                // SAFETY: between `reserve` and `publish`, only the producer uses the room. Loom reports any
                // access by the consumer.
                theirs[room.offset / 64].with_mut(|cell| unsafe { *cell = n + 10 });
                tx.publish(&*shared, room, &[n, 0, 0, 0, 0, 0, 0], 1);
            }
        });
        let mut rx = Consumer::new::<M>(0);
        for n in 0..3u64 {
            let words = loop {
                match rx.peek(&*memory) {
                    Some(words) => break words,
                    None => loom::thread::yield_now(),
                }
            };
            assert_eq!(words[0], n);
            let offset = rx.payload_offset(64);
            // SAFETY: between the publication and `advance`, only the consumer uses the published message.
            cells[offset / 64].with(|cell| assert_eq!(unsafe { *cell }, n + 10));
            let _ = rx.advance(&*memory, 64);
        }
        producer.join().unwrap();
    }

    /// Sends three messages while the ring grows. The model explores interleavings with at most 3
    /// preemptions.
    #[test]
    fn loom_ring_grows() {
        use loom::sync::atomic::AtomicU64 as Modelled;
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(|| {
            let memory = Growing::new(|| Modelled::new(0));
            send_three(memory, 28, |tx, memory| tx.grow(memory).unwrap());
        });
    }

    /// Sends three messages through two slots, in every interleaving.
    #[test]
    fn loom_ring() {
        use loom::sync::atomic::AtomicU64 as Modelled;
        loom::model(|| {
            let memory = Heap::<Modelled, 2, 256>::new(|| Modelled::new(0));
            send_three(memory, 4, |_, _| loom::thread::yield_now());
        });
    }

    #[test]
    fn only_lines_that_the_consumer_has_left_are_fetched() {
        let memory = Plain::new(AtomicU64::default);
        let (mut tx, mut rx) = (Producer::new::<Plain>(0), Consumer::new::<Plain>(0));
        // The ring has 8 slots, which nobody has used before the first lap.
        assert_eq!(tx.ahead(4), Some(4));
        for n in 0..8 {
            assert_eq!(tx.ahead(4).is_some(), n < 4, "message {n}");
            let room = tx.reserve(&memory, 0).unwrap().expect("room");
            tx.publish(&memory, room, &[0; 7], 7);
        }
        for _ in 0..8 {
            assert!(rx.peek(&memory).is_some());
            let _ = rx.advance(&memory, 0);
        }
        // The producer reads the credits only when it needs them.
        assert_eq!(tx.ahead(4), None);
        assert!(tx.reserve(&memory, 0).unwrap().is_some());
        assert_eq!(tx.ahead(4), Some(4));
    }
}
