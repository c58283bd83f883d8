//! What lies in the shared area of one ordered pair of ranks, and where.
//!
//! `contacts.rs` takes an area for every ordered pair `(from, to)` that writes, and maps [`bytes`] bytes of it;
//! `ring.rs` and `bulk.rs` work on the parts named here. A rank's messages to itself never leave its process.
//!
//! ```text
//! pair (from, to), from != to                       written by
//! 0x00000  credits line: slots freed, bytes freed   to
//! 0x00040  chunk line:   chunks freed               to
//! 0x00080  reading line: 1 while `to` reads memory of `from`   to
//! 0x000c0  withdrawn line: messages whose memory is gone from
//! 0x00100  claims line:  pieces of a shared copy that are taken   both
//! 0x00140  pushed line:  pieces that the sender has copied        from
//! 0x00180  claims line of copies between private memories         both
//! 0x001c0  pushed line of these                                    from
//! 0x00200  unused up to one page
//! 0x01000  SLOTS x 64 B  envelope slots             from
//! 0x05000  PAYLOAD_BYTES eager payloads             from
//! 0x15000  CHUNKS x 64 B chunk stamps               from
//! 0x16000  CHUNKS x CHUNK_BYTES bulk data           from
//! ```
//!
//! Invariants: every word has exactly one writer, except the claims, which both sides change by compare-and-swap
//! while they copy one message together (`work_split.rs`); an all-zero area is the valid empty state (the memfd gives
//! zeros); nothing here is a pointer.

/// Bytes of a cache line, the unit that two cores exchange.
pub const LINE: usize = 64;

/// Envelope slots of a ring; a power of two.
pub const SLOTS: usize = 256;

/// Bytes of one envelope slot: one line, so that a small message moves one line.
pub const SLOT_BYTES: usize = LINE;

/// Bytes of a ring's eager payload area; a power of two.
pub const PAYLOAD_BYTES: usize = 64 << 10;

/// Longest payload that may be sent eagerly, in bytes. A quarter of the payload area, which keeps
/// lazily returned credits free of deadlock (`ring.rs` has the argument).
pub const EAGER_MAX: usize = PAYLOAD_BYTES / 4;

/// Most chunk buffers of a pair; a power of two.
pub const CHUNKS: usize = 64;

/// Bytes of chunks that a rank's ways to all others may have together, while each has eight.
pub const WINDOWS_BYTES: usize = 8 << 20;

/// Chunk buffers that a pair uses in a job of `ranks` ranks; a power of two. They are taken in turn,
/// and with many of them a line has left the caches of both cores when it is written again: its
/// writer need not wait until the receiver's core has given it up. `typepack-bench pingpong`, user
/// memory, Zen 5, 8 and 64 chunks: contiguous 64 KiB near 2.11 and 1.88 us.
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

/// Bytes of one chunk buffer.
pub const CHUNK_BYTES: usize = 32 << 10;

/// Offset of the consumer's credit line, in bytes.
pub const CREDITS: usize = 0;

/// Offset of the consumer's chunk line, in bytes.
pub const CHUNK_CREDITS: usize = LINE;

/// Offset of the line by which a receiver says that it reads the sender's memory, in bytes.
pub const READING: usize = 2 * LINE;

/// Offset of the line in which a sender counts the messages whose memory must not be read any more,
/// in bytes.
pub const WITHDRAWN: usize = 3 * LINE;

/// Offset of the line on which sender and receiver claim pieces of a copy that both work on.
pub const HEAP_CLAIMS: usize = 4 * LINE;

/// Offset of the line in which the sender counts the pieces it has copied.
pub const HEAP_PUSHED: usize = 5 * LINE;

/// Offset of the word by which both ranks claim pieces of a message between their private memories
/// (`work_split.rs`), in bytes.
pub const PRIVATE_CLAIMS: usize = 6 * LINE;

/// Offset of the word in which the sender counts the pieces of it that it has finished, in bytes.
pub const PRIVATE_PUSHED: usize = 7 * LINE;

/// Offset of the envelope slots, in bytes.
pub const SLOTS_AT: usize = 4096;

/// Offset of the eager payload area, in bytes.
pub const PAYLOAD_AT: usize = SLOTS_AT + SLOTS * SLOT_BYTES;

/// Offset of the chunk stamps, in bytes.
pub const STAMPS_AT: usize = PAYLOAD_AT + PAYLOAD_BYTES;

/// Offset of the chunk buffers, in bytes.
pub const CHUNKS_AT: usize = STAMPS_AT + 4096;

/// Most bytes of one ordered pair's area: a whole number of pages.
pub const PAIR_BYTES: usize = CHUNKS_AT + CHUNKS * CHUNK_BYTES;

/// Bytes of one ordered pair's area in a job of `ranks` ranks: a whole number of pages, up to the last
/// chunk that is used.
pub const fn bytes(ranks: usize) -> usize {
    CHUNKS_AT + window(ranks) * CHUNK_BYTES
}

/// Most ranks that a job can begin with.
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
