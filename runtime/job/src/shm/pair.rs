//! The layout of the shared area of one ordered pair of ranks.
//!
//! `contacts.rs` takes an area for every ordered pair `(from, to)` that communicates, and maps the first
//! [`bytes`] bytes of the area. `ring.rs`, `bulk.rs`, `withdrawal.rs` and `work_split.rs` use the parts of
//! the area. Messages from a rank to itself need no area.
//!
//! ```text
//! pair (from, to), from != to                       written by
//! 0x00000  credits line: slots freed, bytes freed   to
//! 0x00040  chunk line:   chunks freed               to
//! 0x00080  reading line: 1 while `to` reads memory of `from`       to
//! 0x000c0  withdrawn line: count of messages whose memory is gone  from
//! 0x00100  claims line of copies between heaps: claimed pieces     both
//! 0x00140  pushed line of copies between heaps: copied pieces      from
//! 0x00180  claims line of copies between private memories          both
//! 0x001c0  pushed line of copies between private memories          from
//! 0x00200  unused up to one page
//! 0x01000  SLOTS x 64 B  envelope slots             from
//! 0x05000  PAYLOAD_BYTES eager payloads             from
//! 0x15000  CHUNKS x 64 B chunk stamps               from
//! 0x16000  CHUNKS x CHUNK_BYTES bulk data           from
//! ```
//!
//! Invariants: every word has exactly one writer, except for the words on the claims lines. Both ranks change
//! those words by compare-and-swap while they copy one message together (`work_split.rs`). An area of zeros
//! is valid and empty, and the kernel fills the segment with zeros. No word is a pointer.

/// Size of a cache line in bytes. Cores exchange data in units of one cache line.
pub const LINE: usize = 64;

/// Number of envelope slots of a ring; a power of two.
pub const SLOTS: usize = 256;

/// Size of one envelope slot in bytes. A slot is one cache line, so that a small message moves only one line.
pub const SLOT_BYTES: usize = LINE;

/// Size of a ring's eager payload area in bytes; a power of two.
pub const PAYLOAD_BYTES: usize = 64 << 10;

/// Maximum length of the payload of an eager message in bytes: a quarter of the payload area. With this
/// limit, the delayed return of credits cannot cause a deadlock (`ring.rs` has the proof).
pub const EAGER_MAX: usize = PAYLOAD_BYTES / 4;

/// Maximum number of chunks of a pair; a power of two. A chunk is a buffer through which a part of a long
/// message passes (`bulk.rs`).
pub const CHUNKS: usize = 64;

/// Upper limit on the total size in bytes of the chunks that one rank uses for its messages to all other
/// ranks. In jobs of more than 33 ranks the total can exceed the limit, because a pair always has at least
/// eight chunks.
pub const WINDOWS_BYTES: usize = 8 << 20;

/// Returns the number of chunk buffers that a pair uses in a job of `ranks` ranks; a power of two. The pair
/// uses its chunks in rotation. If there are many chunks, the cache lines of a chunk have left the caches of
/// both cores before the sender writes the chunk again, so the sender does not have to wait for the
/// receiver's core to give up the lines. Measured with `typepack-bench pingpong` (user memory, Zen 5,
/// contiguous 64 KiB, ranks on near CPUs): 2.11 us with 8 chunks, 1.88 us with 64.
pub const fn window(ranks: usize) -> usize {
    let others = if ranks > 1 { ranks - 1 } else { 1 };
    let each = WINDOWS_BYTES / CHUNK_BYTES / others;
    if each >= CHUNKS {
        CHUNKS
    } else if each <= 8 {
        8
    } else {
        1 << each.ilog2()
    }
}

/// Size of one chunk buffer in bytes.
pub const CHUNK_BYTES: usize = 32 << 10;

/// Offset in bytes of the line with the consumer's credits: counts of freed slots and freed payload bytes.
pub const CREDITS: usize = 0;

/// Offset in bytes of the line with the consumer's count of freed chunks.
pub const CHUNK_CREDITS: usize = LINE;

/// Offset in bytes of the line with the word that is 1 while the receiver reads the sender's private memory.
pub const READING: usize = 2 * LINE;

/// Offset in bytes of the line with the sender's count of messages whose memory it has withdrawn.
pub const WITHDRAWN: usize = 3 * LINE;

/// Offset in bytes of the line with the word by which both ranks claim pieces of a copy between heaps
/// (`work_split.rs`).
pub const HEAP_CLAIMS: usize = 4 * LINE;

/// Offset in bytes of the line with the sender's count of pieces that it has copied between heaps.
pub const HEAP_PUSHED: usize = 5 * LINE;

/// Offset in bytes of the line with the word by which both ranks claim pieces of a copy between private
/// memories (`work_split.rs`).
pub const PRIVATE_CLAIMS: usize = 6 * LINE;

/// Offset in bytes of the line with the sender's count of pieces that it has copied between private memories.
pub const PRIVATE_PUSHED: usize = 7 * LINE;

/// Offset of the envelope slots, in bytes.
pub const SLOTS_AT: usize = 4096;

/// Offset of the eager payload area, in bytes.
pub const PAYLOAD_AT: usize = SLOTS_AT + SLOTS * SLOT_BYTES;

/// Offset of the chunk stamps, in bytes.
pub const STAMPS_AT: usize = PAYLOAD_AT + PAYLOAD_BYTES;

/// Offset of the chunk buffers, in bytes.
pub const CHUNKS_AT: usize = STAMPS_AT + 4096;

/// Maximum size in bytes of an ordered pair's area; a whole number of pages.
pub const PAIR_BYTES: usize = CHUNKS_AT + CHUNKS * CHUNK_BYTES;

/// Returns how many bytes of its area an ordered pair uses in a job of `ranks` ranks: all bytes up to the end
/// of the last chunk in use. The result is a multiple of the page size.
pub const fn bytes(ranks: usize) -> usize {
    CHUNKS_AT + window(ranks) * CHUNK_BYTES
}

/// Maximum number of ranks with which a job can begin.
pub const MAX_RANKS: usize = 4096;

const _: () = assert!(SLOTS.is_power_of_two() && CHUNKS.is_power_of_two());
const _: () = assert!(PAYLOAD_BYTES.is_power_of_two() && CHUNK_BYTES.is_power_of_two());
const _: () = assert!(SLOTS_AT == 0x1000 && PAYLOAD_AT == 0x5000 && STAMPS_AT == 0x15000);
const _: () = assert!(CHUNKS_AT == 0x16000 && PAIR_BYTES.is_multiple_of(4096));
const _: () = assert!(CHUNKS * LINE <= CHUNKS_AT - STAMPS_AT);
const _: () = assert!(bytes(2) == PAIR_BYTES);
const _: () = assert!(EAGER_MAX <= CHUNK_BYTES);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_shrink_with_the_job() {
        for (ranks, chunks) in
            [(1, 64), (2, 64), (5, 64), (6, 32), (9, 32), (17, 16), (32, 8), (33, 8), (4096, 8)]
        {
            assert_eq!(window(ranks), chunks, "{ranks}");
            assert!(window(ranks).is_power_of_two() && window(ranks) <= CHUNKS);
            assert_eq!(bytes(ranks), CHUNKS_AT + chunks * CHUNK_BYTES);
        }
    }
}
