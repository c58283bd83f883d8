//! Lines that the next message will be written to, fetched while the rank has nothing else to do.
//!
//! `eager.rs` and `pipeline.rs` say after each message which lines the next one would use, if it is
//! like the last one; `peer.rs` has them fetched. The receiver has read them, and has them in its
//! cache: a sender that waits anyway can take them back.

use super::area::Area;
use crate::shm::bulk::Filler;
use crate::shm::pair::{LINE, PAYLOAD_BYTES};

/// Most bytes of the next message that a rank without anything else to do makes ready. `pingpong`,
/// contiguous, near, none of them, 16, 32 and 64 KiB: 64 KiB 7.3, 6.8, 6.4 and 5.7 us, 16 KiB 3.2, 2.6,
/// 2.5 and 2.2.
const READY_MAX: u64 = 64 << 10;

/// Longest message after which that is done, in bytes: 256 KiB 19.9 and 18.5 us, 1 MiB 72 and 80.
const READY_LAST: u64 = 256 << 10;

/// Lines made ready between two looks at what other ranks write.
const READY_STEP: usize = 8;

/// Where those lines are, and how many are left.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ready {
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

impl Ready {
    /// `len` bytes of the payload area from `at` on.
    #[inline]
    pub fn payload(at: usize, len: usize) -> Self {
        Self { at, left: len.div_ceil(LINE), ..Self::default() }
    }

    /// The next chunks, of a message of `total` bytes in pieces of `piece` bytes.
    pub fn chunks(total: u64, piece: u64) -> Self {
        let lines = (piece.min(total) as usize).div_ceil(LINE);
        // The receiver of a longer one is still busy with lines of its own.
        let left = if total > READY_LAST { 0 } else { total.min(READY_MAX) };
        Self { chunks: true, lines, left: (left as usize).div_ceil(LINE), ..Self::default() }
    }

    /// Makes a few lines ready. False when there are none left.
    #[inline]
    pub fn prepare(&mut self, area: &Area, chunks: &Filler) -> bool {
        if self.left == 0 {
            return false;
        }
        for _ in 0..READY_STEP.min(self.left) {
            if self.chunks {
                let Some(index) = chunks.ahead(area, self.at as u64) else {
                    // The receiver is not there yet: its lines are its own.
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
