//! The pieces into which the ranks cut the data of a long call: their lengths, and the bytes of each piece.
//!
//! `turn.rs` passes one piece on in each step. All ranks cut the data alike.

use super::block::SHORT;
use std::ops::Range;

/// Size in bytes of the pieces of data between ranks that do not share CPUs. One rank writes a piece while another
/// reads the piece before it. Shorter pieces cost more waits. Longer ones do not overlap as well.
pub(super) const BUSY_PIECE: u64 = 32 << 10;

/// How many times as long as [`BUSY_PIECE`] the other pieces are.
pub(super) const LONGER: u64 = 4;

/// Which part of the usual length the other pieces have if the ranks share CPUs.
pub(super) const SHORTER: u64 = 4;

const _: () = assert!(BUSY_PIECE >= SHORT);

/// Returns the packed bytes of a piece: of `bytes` bytes, those of step `index` if each step takes `piece` bytes.
#[inline]
pub(super) fn range(bytes: u64, piece: u64, index: u64) -> Range<u64> {
    if index == 0 {
        return 0..piece.min(bytes);
    }
    let at = |index: u64| index.saturating_mul(piece).min(bytes);
    at(index)..at(index + 1)
}

/// Returns the number of steps for `bytes` bytes if each step takes `piece` bytes. Even no data take one step.
#[inline]
pub(super) fn steps(bytes: u64, piece: u64) -> u64 {
    if bytes <= piece { 1 } else { bytes.div_ceil(piece) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pieces_cover_the_data() {
        for (bytes, piece) in [(0, 16), (1, 16), (16, 16), (17, 16), (100, 7), (u64::MAX, 1 << 40)]
        {
            let count = steps(bytes, piece);
            assert_eq!(range(bytes, piece, 0).start, 0);
            assert_eq!(range(bytes, piece, count - 1).end, bytes);
            assert!(
                range(bytes, piece, count).is_empty() && range(bytes, piece, count + 9).is_empty()
            );
            for index in 1..count.min(50) {
                let (before, this) = (range(bytes, piece, index - 1), range(bytes, piece, index));
                assert_eq!(before.end, this.start);
                assert!(!this.is_empty() && this.end - this.start <= piece);
            }
        }
    }
}
