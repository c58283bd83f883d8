//! Fetches the cache lines to which this rank will write its next message. The rank does this while it has
//! nothing else to do.
//!
//! After each message `eager.rs` and `pipeline.rs` predict the lines of the next message. They assume that
//! the next message resembles the last one. `peer.rs` uses this file to fetch the lines. The receiver was
//! the last rank to read these lines, so they lie in the receiver's cache. While a sender waits, it has
//! time to fetch the lines back.

use super::area::Area;
use super::pool::Pool;
use crate::shm::pair::LINE;
use typepack_engine::contiguous::Method;

/// Maximum number of bytes that an idle rank fetches for the next message. Measured with `pingpong`,
/// contiguous messages, near cores, in us:
///
/// | fetched | messages of 64 KiB | messages of 16 KiB |
/// |---|---|---|
/// | nothing | 7.3 | 3.2 |
/// | 16 KiB | 6.8 | 2.6 |
/// | 32 KiB | 6.4 | 2.5 |
/// | 64 KiB | 5.7 | 2.2 |
const READY_MAX: u64 = 64 << 10;

/// Length of the longest message after which a rank fetches lines, in bytes. With the fetch, a message of
/// 256 KiB takes 18.5 us instead of 19.9 us, but a message of 1 MiB takes 80 us instead of 72 us.
const READY_LAST: u64 = 256 << 10;

/// Number of cache lines that a rank fetches before it checks again for messages of other ranks.
const READY_STEP: usize = 8;

/// The predicted cache lines: their place, and the number of lines that are left to fetch.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ready {
    /// True if the lines are in chunks; false if they are in the payload area.
    chunks: bool,
    /// For the payload area: the offset of the first predicted byte. For chunks: the number of chunks
    /// between the next chunk and the chunk whose lines are fetched now.
    at: usize,
    /// Number of lines that have already been fetched, counted in the current chunk or in the payload
    /// area.
    line: usize,
    /// Number of lines that the message uses in each chunk.
    lines: usize,
    /// Number of lines that are left to fetch.
    left: usize,
}

impl Ready {
    /// Predicts that the next message will use `len` bytes of the payload area from `at` on. Of a long message, only
    /// the first [`READY_MAX`] bytes are fetched.
    #[inline]
    pub fn payload(at: usize, len: usize) -> Self {
        Self { at, left: len.min(READY_MAX as usize).div_ceil(LINE), ..Self::default() }
    }

    /// Returns this prediction if the next message is copied with vector moves, in one page or in two pages at a time,
    /// and otherwise one without lines. The other methods write whole lines and do not fetch their old bytes.
    ///
    /// Measured with `pingpong` on a Zen 5, contiguous messages in fragments by `rep movsb`, near cores, in us: 16 KiB
    /// 0.74 with the fetch and 0.44 without, 64 KiB 1.72 and 1.24. With vector moves the fetch changed nothing there.
    pub fn by(self, method: Method) -> Self {
        match method {
            Method::Vector | Method::Pages => self,
            Method::Repeat | Method::Streaming => Self::default(),
        }
    }

    /// Predicts that the next message will use the next chunks. The message has `total` bytes in pieces of
    /// `piece` bytes.
    pub fn chunks(total: u64, piece: u64) -> Self {
        let lines = (piece.min(total) as usize).div_ceil(LINE);
        // After a longer message, fetch nothing: its receiver is still working on these lines.
        let left = if total > READY_LAST { 0 } else { total.min(READY_MAX) };
        Self { chunks: true, lines, left: (left as usize).div_ceil(LINE), ..Self::default() }
    }

    /// Fetches at most `READY_STEP` lines. Returns false if no lines were left.
    #[inline]
    pub fn prepare(&mut self, area: &Area, pool: Option<&Pool>) -> bool {
        if self.left == 0 {
            return false;
        }
        if !self.chunks {
            for _ in 0..READY_STEP.min(self.left) {
                Area::claim(area.payload(self.at + self.line * LINE));
                self.line += 1;
                self.left -= 1;
            }
            return true;
        }
        // A look at the pool takes a lock, so one look serves all lines of this step.
        let Some(chunk) = pool.and_then(|pool| pool.ahead(self.at)) else {
            // The receiver has not freed this chunk yet. It still reads the chunk's lines, so do not fetch
            // them.
            self.left = 0;
            return true;
        };
        let step = READY_STEP.min(self.left).min(self.lines - self.line);
        for _ in 0..step {
            Area::claim(chunk.wrapping_add(self.line * LINE));
            self.line += 1;
        }
        self.left -= step;
        if self.line == self.lines {
            (self.line, self.at) = (0, self.at + 1);
        }
        true
    }
}
