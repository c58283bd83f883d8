//! While a rank has nothing else to do, fetches the cache lines to which it will write its next message.
//!
//! After each message `eager.rs` and `pipeline.rs` predict the lines of the next message, under the
//! assumption that the next message resembles the last one. `peer.rs` calls this file to fetch the lines.
//! The receiver has read these lines, so they lie in the receiver's cache. A waiting sender has time to
//! fetch the lines back.

use super::area::Area;
use crate::shm::bulk::Filler;
use crate::shm::pair::{LINE, PAYLOAD_BYTES};

/// Maximum number of bytes that an idle rank fetches for the next message. `pingpong`, contiguous, near, in
/// us:
///
/// | fetched | messages of 64 KiB | messages of 16 KiB |
/// |---|---|---|
/// | nothing | 7.3 | 3.2 |
/// | 16 KiB | 6.8 | 2.6 |
/// | 32 KiB | 6.4 | 2.5 |
/// | 64 KiB | 5.7 | 2.2 |
const READY_MAX: u64 = 64 << 10;

/// Longest message in bytes after which a rank fetches lines. With the fetch, a message of 256 KiB takes
/// 18.5 us instead of 19.9 us, but a message of 1 MiB takes 80 us instead of 72 us.
const READY_LAST: u64 = 256 << 10;

/// Number of lines that a rank fetches before it checks again for messages of other ranks.
const READY_STEP: usize = 8;

/// The place of the predicted lines, and the number of lines that are left to fetch.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ready {
    /// The lines are in chunks; otherwise in the payload area.
    chunks: bool,
    /// Offset in the payload area, or number of chunks from the next one.
    at: usize,
    /// Lines of this chunk that have been fetched.
    line: usize,
    /// Lines that the message uses of each chunk.
    lines: usize,
    /// Lines that are left to fetch.
    left: usize,
}

impl Ready {
    /// Predicts `len` bytes of the payload area from `at` on.
    #[inline]
    pub fn payload(at: usize, len: usize) -> Self {
        Self { at, left: len.div_ceil(LINE), ..Self::default() }
    }

    /// Predicts the next chunks, for a message of `total` bytes in pieces of `piece` bytes.
    pub fn chunks(total: u64, piece: u64) -> Self {
        let lines = (piece.min(total) as usize).div_ceil(LINE);
        // The receiver of a longer message still works on lines of that message.
        let left = if total > READY_LAST { 0 } else { total.min(READY_MAX) };
        Self { chunks: true, lines, left: (left as usize).div_ceil(LINE), ..Self::default() }
    }

    /// Fetches a few lines. Returns false if no lines are left.
    #[inline]
    pub fn prepare(&mut self, area: &Area, chunks: &Filler) -> bool {
        if self.left == 0 {
            return false;
        }
        for _ in 0..READY_STEP.min(self.left) {
            if self.chunks {
                let Some(index) = chunks.ahead(area, self.at as u64) else {
                    // The receiver has not freed this chunk yet, so its lines stay with the receiver.
                    self.left = 0;
                    return true;
                };
                Area::claim(area.chunk(index).wrapping_add(self.line * LINE));
                let full = self.line + 1 == self.lines;
                self.line = if full { 0 } else { self.line + 1 };
                self.at += usize::from(full);
            } else {
                let place = (self.at + self.line * LINE) & (PAYLOAD_BYTES - 1);
                Area::claim(area.payload(place));
                self.line += 1;
            }
            self.left -= 1;
        }
        true
    }
}
