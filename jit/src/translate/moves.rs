//! Cuts a run of bytes into moves. This file does only arithmetic and emits no code.
//!
//! `leaf.rs` calls [`moves`]. Invariants: every move lies inside the run, the moves together cover
//! the run, and no other choice of moves of 1, 2, 4, 8 and 16 bytes has fewer moves. Two moves of
//! one run may overlap. This does no harm, because both write the same bytes to the overlap.

/// A load and a store of 1, 2, 4, 8 or 16 bytes, `offset` bytes into the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Move {
    pub(super) offset: u32,
    pub(super) bytes: u32,
}

/// Returns the moves of a run of `bytes` bytes (1 to 2^20), in ascending order of their offsets.
pub(super) fn moves(bytes: u32) -> Vec<Move> {
    let widest = if bytes >= 16 { 16 } else { 1 << bytes.ilog2() };
    let mut moves: Vec<Move> =
        (0..bytes / widest).map(|i| Move { offset: i * widest, bytes: widest }).collect();
    let rest = bytes % widest;
    if rest != 0 {
        // One more move is always enough. `rest` is less than `widest`, so the move, whose length is the
        // next power of two, has at most `widest` bytes. It may reach back into the bytes of the move
        // before it. If `rest` is a power of two, nothing overlaps.
        let last = rest.next_power_of_two();
        moves.push(Move { offset: bytes - last, bytes: last });
    }
    moves
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_is_covered_from_within() {
        for bytes in 1..=300 {
            let mut covered = vec![false; bytes as usize];
            for m in moves(bytes) {
                assert!(m.bytes.is_power_of_two() && m.bytes <= 16);
                assert!(m.offset + m.bytes <= bytes);
                covered[m.offset as usize..][..m.bytes as usize].fill(true);
            }
            assert!(covered.into_iter().all(|c| c), "{bytes}");
        }
    }

    #[test]
    fn no_length_takes_more_moves_than_needed() {
        for bytes in 1..=15_u32 {
            let least = if bytes.is_power_of_two() { 1 } else { 2 };
            assert_eq!(moves(bytes).len(), least, "{bytes}");
        }
        for bytes in 16..=300_u32 {
            assert_eq!(moves(bytes).len() as u32, bytes.div_ceil(16), "{bytes}");
        }
    }

    #[test]
    fn twelve_is_eight_and_four_without_overlap() {
        let expected = [Move { offset: 0, bytes: 8 }, Move { offset: 8, bytes: 4 }];
        assert_eq!(moves(12), expected);
    }
}
