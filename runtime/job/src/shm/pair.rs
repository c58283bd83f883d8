//! The layout of the shared area of one ordered pair of ranks.
//!
//! `contacts.rs` takes an area for every ordered pair `(from, to)` that communicates, and maps it. `ring.rs`,
//! `bulk.rs`, `withdrawal.rs`, `recall.rs` and `work_split.rs` use its parts. Messages from a rank to itself
//! need no area.
//!
//! ```text
//! pair (from, to), from != to                       written by
//! 0x00000  credits line: slots freed, bytes freed   to
//! 0x00040  chunk line:   chunks freed               to
//! 0x00080  reading line: 1 while `to` reads memory of `from`       to
//! 0x000c0  withdrawn line: count of messages whose memory is gone  from
//! 0x00100  claims line of copies between heaps: claimed pieces     both
//! 0x00140  pushed line of copies between heaps: copied pieces      from
//! 0x00180  measured line: the time in which `to` has copied a short payload       to
//! 0x001c0  geometry line: the [`Geometry`] of the pair                           from, before the first contact
//! 0x00200  full line: 1 while `to` wants no more payloads                         to
//! 0x00240  RECALLS words: whether a message is matched or recalled                both
//! 0x00400  ring of level 0: 16 envelope slots of 64 B, 2 KiB of eager payloads    from
//! 0x01000  ring of level 1: 64 envelope slots, 16 KiB of eager payloads           from
//! 0x06000  ring of level 2: 256 envelope slots, 64 KiB of eager payloads          from
//! 0x1a000  chunk stamps of 64 B, followed by a small chunk                        from
//! 0x1c000  ring of level 3: 256 envelope slots, 1 MiB of eager payloads           from
//! 0x1c000  or of level 4:   256 envelope slots, 2 MiB of eager payloads           from
//! ```
//!
//! The pages of an area get memory only when the pair needs them. A pair of a job of many processes begins with the
//! ring of level 0, which lies in the first page, and takes the ring of the next level when the ring is full or a
//! payload does not fit. Only a pair of a job of a few processes uses the ring of level 3 or 4, from the beginning; the
//! areas of other pairs end before it. The sender decides when it first writes to the receiver, and the [`Geometry`]
//! stays: processes that join later change only the pairs that have not talked yet. The two rings have the same place,
//! because no pair changes from one to the other. The stamps get memory before the first message through chunks. Chunks
//! lie in the pool of the rank that writes them, and that rank lends them to all of its pairs (`layout.rs` has the
//! pools). The small chunk belongs to the pair, so that a message can go on while the pool has no free chunk.
//!
//! Invariants: every word has exactly one writer, except for the word on the claims line and the recall
//! words. Both ranks change these words by compare-and-swap. They change the claims word while they copy one
//! message together (`work_split.rs`). They change a recall word when a message is matched or its sender
//! cancels it (`recall.rs`). An area of zeros is valid and empty, and the kernel fills the segment with zeros.
//! No word is a pointer.

/// Size of a cache line in bytes. Cores exchange data in units of one cache line.
pub const LINE: usize = 64;

/// Size of one envelope slot in bytes. A slot is one cache line, so that a small message moves only one line.
pub const SLOT_BYTES: usize = LINE;

/// One of the rings that a pair can use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level {
    /// Number of the ring's first slot, counted from [`SLOTS_AT`].
    pub first_slot: usize,
    /// Number of envelope slots; a power of two.
    pub slots: usize,
    /// Offset of the eager payloads, in bytes from [`PAYLOAD_AT`].
    pub first_byte: usize,
    /// Size of the eager payload area in bytes; a power of two.
    pub payload: usize,
}

impl Level {
    const fn at(slots_at: usize, slots: usize, payload_at: usize, payload: usize) -> Self {
        let first_slot = (slots_at - SLOTS_AT) / SLOT_BYTES;
        Self { first_slot, slots, first_byte: payload_at - PAYLOAD_AT, payload }
    }

    /// Returns the range of the area that the ring of this level occupies beyond the first page: the offset of
    /// the range's first byte in the area, and the number of bytes (0 if the ring lies in the first page).
    pub const fn pages(&self) -> (usize, usize) {
        let start = SLOTS_AT + self.first_slot * SLOT_BYTES;
        let end = PAYLOAD_AT + self.first_byte + self.payload;
        if start < 4096 { (0, 0) } else { (start, end - start) }
    }

    /// Returns the maximum length of an eager payload in this ring: at most a quarter of the payload area. With this
    /// limit, the delayed return of credits cannot cause a deadlock (`ring.rs` has the proof).
    pub const fn longest(&self) -> usize {
        let quarter = self.payload / 4;
        if quarter < EAGER_MAX { quarter } else { EAGER_MAX }
    }
}

/// The rings of a pair, from the smallest to the largest. A pair uses one of them at a time.
pub const LEVELS: [Level; 5] = [
    Level::at(0x400, 16, 0x800, 2 << 10),
    Level::at(0x1000, 64, 0x2000, 16 << 10),
    Level::at(0x6000, SLOTS, 0xa000, PAYLOAD_BYTES),
    Level::at(0x1c000, SLOTS, 0x20000, 1 << 20),
    Level::at(0x1c000, SLOTS, 0x20000, 2 << 20),
];

/// Number of levels through which a pair can grow. A pair does not grow into the levels above, because each of their
/// rings takes much memory.
///
/// In the large payload areas of these levels, the cache lines of a payload have left the caches of both cores before
/// the sender writes them again, so the sender does not have to wait for the receiver's core to give up the lines (see
/// also [`rotation`]). On a Zen 4 with near cores and 1 MiB of second-level cache for each core, a contiguous message
/// of 64 KiB took 7.1 us through an area of 512 KiB, 3.7 us through 1 MiB, and 2.4 us through 2 or 4 MiB (a C program
/// of two threads). On another day it took 2.84 us through 2 MiB and 3.77 us through 4 MiB: the last-level cache is
/// shared with other virtual machines.
pub const GROWS: usize = 3;

/// Maximum size in bytes of the rings that the pairs of a job have at the start, if every rank communicates
/// with every other rank. In larger jobs the pairs begin with smaller rings.
const RINGS_BYTES: usize = 16 << 20;

/// Returns the level of the ring with which a pair begins that first talks in a job of `ranks` processes.
pub const fn first_level(ranks: usize) -> usize {
    let mut level = LEVELS.len() - 1;
    while level > 0
        && ranks * ranks.saturating_sub(1) * (4096 + LEVELS[level].pages().1) > RINGS_BYTES
    {
        level -= 1;
    }
    level
}

/// Number of envelope slots of the largest rings.
pub const SLOTS: usize = 256;

/// Size in bytes of the eager payload area of the largest ring to which a pair can grow.
pub const PAYLOAD_BYTES: usize = 64 << 10;

/// Maximum length of the payload of an eager message in bytes.
pub const EAGER_MAX: usize = 16 << 10;

/// Maximum number of chunks that a pair has in flight; a power of two. A chunk is a buffer through which a part
/// of a long message passes (`bulk.rs`).
pub const CHUNKS: usize = 64;

/// Maximum number of chunks that a pair has in flight if its ring begins below the largest level to which it can grow.
const FEW_CHUNKS: usize = 16;

/// Size of one chunk of a pool in bytes.
pub const CHUNK_BYTES: usize = 32 << 10;

/// Maximum number of chunks of a rank's pool.
pub const POOL_CHUNKS: usize = 256;

/// Size in bytes of the address range of a rank's pool.
pub const POOL_BYTES: usize = POOL_CHUNKS * CHUNK_BYTES;

/// Maximum size in bytes of the pools of all ranks with which a job begins, unless a pool would have fewer than
/// [`POOL_MIN`] chunks.
const POOLS_BYTES: usize = 128 << 20;

/// Number of chunks that every pool may have, however many ranks the job has.
const POOL_MIN: usize = 4;

/// Returns the maximum number of chunks of the pool of a process that joins a job of `ranks` processes.
pub const fn pool(ranks: usize) -> usize {
    let ranks = if ranks == 0 { 1 } else { ranks };
    let each = POOLS_BYTES / CHUNK_BYTES / ranks;
    if each >= POOL_CHUNKS {
        POOL_CHUNKS
    } else if each <= POOL_MIN {
        POOL_MIN
    } else {
        each
    }
}

/// Returns the number of chunks up to which the pool of a process that joins a job of `ranks` processes grows even
/// while it has free chunks. A sender uses the chunks of the pool in rotation. If there are many chunks, the
/// cache lines of a chunk have left the caches of both cores before the sender writes the chunk again, so
/// the sender does not have to wait for the receiver's core to give up the lines. Measured with
/// `typepack-bench pingpong` (user memory, Zen 5, contiguous 64 KiB, ranks on near CPUs): 2.11 us with 8
/// chunks, 1.88 us with 64. In a job of many ranks the memory is worth more: a pool of 4 chunks grows
/// only when none of them is free.
pub const fn rotation(ranks: usize) -> usize {
    if first_level(ranks) + 1 >= GROWS { CHUNKS } else { POOL_MIN }
}

/// Offset in bytes of the line with the consumer's credits: counts of freed slots and freed payload bytes.
pub const CREDITS: usize = 0;

/// Offset in bytes of the line with the consumer's count of freed chunks.
pub const CHUNK_CREDITS: usize = LINE;

/// Offset in bytes of the line with the word that is 1 while the receiver reads the sender's memory.
pub const READING: usize = 2 * LINE;

/// Offset in bytes of the line with the sender's count of messages whose memory it has withdrawn.
pub const WITHDRAWN: usize = 3 * LINE;

/// Offset in bytes of the line with the word by which both ranks claim pieces of a copy between heaps
/// (`work_split.rs`).
pub const HEAP_CLAIMS: usize = 4 * LINE;

/// Offset in bytes of the line with the sender's count of pieces that it has copied between heaps.
pub const HEAP_PUSHED: usize = 5 * LINE;

/// Offset in bytes of the line with the receiver's answer: the time of its copy of a short payload, which the sender
/// has asked for (`transport/choice/short_choice.rs` of the runtime).
pub const MEASURED: usize = 6 * LINE;

/// Offset in bytes of the line with the word that encodes the [`Geometry`] of the pair.
pub const GEOMETRY: usize = 7 * LINE;

/// Offset in bytes of the line with the word that says which messages may go out with their data although no receive
/// has matched them (`Credit` of the runtime's transport). The sender reads this word for every short message, so
/// the word has a line of its own, which stays in the sender's cache as long as the word does not change.
pub const CREDIT: usize = 8 * LINE;

/// Number of recall words of an ordered pair. A message that can be recalled needs one of them
/// (`recall.rs`); a message that finds no free word cannot be recalled. The words fill the first page up
/// to the first ring.
pub const RECALLS: usize = 56;

/// Offset in bytes of the recall words. Each of them says whether the message to which it was lent is
/// matched or recalled.
pub const RECALLS_AT: usize = 9 * LINE;

/// Offset in bytes from which [`Level::first_slot`] counts slots.
pub const SLOTS_AT: usize = 0x400;

/// Offset in bytes from which [`Level::first_byte`] counts.
pub const PAYLOAD_AT: usize = 0x800;

/// Offset of the chunk stamps, in bytes.
pub const STAMPS_AT: usize = 0x1a000;

/// Size of the small chunk of a pair in bytes.
pub const SMALL_CHUNK_BYTES: usize = 3 << 10;

/// Size in bytes of the part of an ordered pair's area that every pair has; a whole number of pages.
pub const PAIR_BYTES: usize = 0x1c000;

/// Size in bytes of the largest area of an ordered pair: the area of a pair that begins with the ring of the last
/// level.
pub const LARGEST_PAIR_BYTES: usize = Geometry::of(2).bytes();

/// The sizes of the parts of a pair. The sender chooses them when it first writes to the receiver, stores them in the
/// first page of the area, and never changes them. The receiver reads them once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Index in [`LEVELS`].
    level: u8,
    /// Number of chunks of the sender's pool.
    pool: u16,
}

impl Geometry {
    /// Returns the geometry of a pair that first talks in a job of `processes` processes, if the pool of the sender is
    /// [`pool`]`(processes)`.
    pub const fn of(processes: usize) -> Self {
        Self { level: first_level(processes) as u8, pool: pool(processes) as u16 }
    }

    /// Returns the same geometry with a pool of `chunks` chunks, at most [`POOL_CHUNKS`].
    pub const fn with_pool(self, chunks: usize) -> Self {
        Self { pool: chunks as u16, ..self }
    }

    /// Returns the word that encodes this geometry. It is not 0.
    pub const fn to_word(self) -> u64 {
        self.level as u64 | (self.pool as u64) << 8
    }

    /// Returns the geometry that a word of an area encodes, or `None` if no geometry is encoded like this.
    pub fn from_word(word: u64) -> Option<Self> {
        let level = u8::try_from(word & 0xff).ok()?;
        let pool = u16::try_from(word >> 8).ok()?;
        let is_valid =
            usize::from(level) < LEVELS.len() && (1..=POOL_CHUNKS).contains(&usize::from(pool));
        is_valid.then_some(Self { level, pool })
    }

    /// Returns the level (index in [`LEVELS`]) of the ring with which the pair begins.
    pub const fn first_level(self) -> usize {
        self.level as usize
    }

    /// Returns the number of chunks of the sender's pool.
    pub const fn pool(self) -> usize {
        self.pool as usize
    }

    /// Returns the maximum number of chunks that the pair has in flight; a power of two.
    pub const fn window(self) -> usize {
        if self.first_level() + 1 >= GROWS { CHUNKS } else { FEW_CHUNKS }
    }

    /// Returns the offset in bytes of the small chunk of the pair, which follows the stamps.
    pub const fn small_chunk(self) -> usize {
        STAMPS_AT + self.window() * LINE
    }

    /// Returns the size in bytes of the pair's area; a whole number of pages.
    pub const fn bytes(self) -> usize {
        if self.first_level() < GROWS {
            return PAIR_BYTES;
        }
        let (at, bytes) = LEVELS[self.first_level()].pages();
        at + bytes
    }
}

/// Maximum number of ranks with which a job can begin.
pub const MAX_RANKS: usize = 4096;

const _: () = {
    let mut end = SLOTS_AT;
    let mut i = 0;
    while i < LEVELS.len() {
        let level = LEVELS[i];
        assert!(level.slots.is_power_of_two() && level.payload.is_power_of_two());
        let slots_at = SLOTS_AT + level.first_slot * SLOT_BYTES;
        let payload_at = PAYLOAD_AT + level.first_byte;
        assert!(slots_at + level.slots * SLOT_BYTES <= payload_at);
        // A ring into which a pair grows begins after the rings before it. The rings of the other levels begin after
        // everything else, because a pair that uses one of them has no other ring.
        assert!(slots_at >= if i < GROWS { end } else { PAIR_BYTES });
        end = payload_at + level.payload;
        assert!(end.is_multiple_of(4096));
        assert!(end <= if i < GROWS { STAMPS_AT } else { LARGEST_PAIR_BYTES });
        i += 1;
    }
    assert!(
        HEAP_PUSHED < MEASURED
            && MEASURED < GEOMETRY
            && GEOMETRY < CREDIT
            && LEVELS[GROWS - 1].payload / 4 == EAGER_MAX
    );
    assert!(CREDIT < RECALLS_AT && RECALLS_AT + RECALLS * 8 == SLOTS_AT);
};
const _: () = assert!(CHUNKS.is_power_of_two() && FEW_CHUNKS.is_power_of_two());
const _: () = assert!(Geometry::of(2).small_chunk() + SMALL_CHUNK_BYTES <= PAIR_BYTES);
const _: () = {
    let many = Geometry::of(MAX_RANKS);
    assert!(many.small_chunk() + SMALL_CHUNK_BYTES == STAMPS_AT + 4096);
};
const _: () = assert!(PAIR_BYTES.is_multiple_of(4096) && LARGEST_PAIR_BYTES.is_multiple_of(4096));
const _: () = assert!(POOL_BYTES.is_multiple_of(4096));
const _: () = assert!(EAGER_MAX <= CHUNK_BYTES);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_of_a_pair_shrinks_with_the_job() {
        for (ranks, level, window, chunks) in [
            (1, 4, 64, 256),
            (2, 4, 64, 256),
            (3, 4, 64, 256),
            (4, 3, 64, 256),
            (5, 2, 64, 256),
            (14, 2, 64, 256),
            (15, 1, 16, 256),
            (26, 1, 16, 157),
            (27, 0, 16, 151),
            (128, 0, 16, 32),
            (1024, 0, 16, 4),
            (4096, 0, 16, 4),
        ] {
            let pair = Geometry::of(ranks);
            assert_eq!((pair.first_level(), pair.window()), (level, window), "{ranks}");
            assert_eq!((pool(ranks), pair.pool()), (chunks, chunks), "{ranks}");
            assert!(rotation(ranks) <= pool(ranks));
            assert_eq!(pair.bytes() > PAIR_BYTES, level >= GROWS);
            assert_eq!(pair.bytes() == LARGEST_PAIR_BYTES, level == 4);
        }
    }

    #[test]
    fn words_keep_the_geometry() {
        for ranks in [1, 2, 4, 5, 15, 27, 128, 4096] {
            for pair in [Geometry::of(ranks), Geometry::of(ranks).with_pool(1)] {
                assert_eq!(Geometry::from_word(pair.to_word()), Some(pair));
            }
        }
        // Words that no sender would write: no pool, a pool that is too large, no such level, other bits.
        let levels = LEVELS.len() as u64;
        for word in [0, 4, 0x10100, 0x100 | levels, 0x1_0000_0100, u64::MAX] {
            assert_eq!(Geometry::from_word(word), None, "{word:#x}");
        }
    }
}
