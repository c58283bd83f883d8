//! Long messages between two heaps that both ranks copy: the sender, who waits anyway, helps.
//!
//! The receiver (`fetch.rs`) opens a *share* for the message that it begins to fetch and tells the
//! sender where its own layout lies. From then on each of the two claims one piece after the other
//! by compare-and-swap on one word, and copies it: the receiver out of the sender's heap, the sender
//! (`peer.rs`) into the receiver's. A sender that does not come, because it computes, has claimed
//! nothing, and the receiver does all of it.
//!
//! Claims and counts carry the number of the share, so that a sender who comes late finds another
//! number, or all pieces taken, and leaves. A piece is claimed, copied and counted in one turn: no
//! rank ever holds one while it does something else.

use super::types::Located;
use std::sync::atomic::{AtomicU64, Ordering};

/// Shortest message that is copied by both, in bytes; shorter ones are eager as a rule. `typepack-bench
/// pingpong`, 16 KiB in 64-byte blocks, near: 1.7 us by both, 2.4 by the receiver, 3.3 packed.
pub const SHARE_MIN: u64 = 8 << 10;

/// Pieces of a message, where that makes pieces of allowed sizes.
const PIECES: u64 = 8;

/// Sizes of a piece, in bytes: smaller ones cost more in claims (a cache line that goes to and fro)
/// than they gain, larger ones leave one rank waiting for the other at the end. 64 KiB contiguous, near:
/// 4.7 us in pieces of 4 KiB, 3.4 in pieces of 8; 1 MiB 25 to 28 us in pieces of 64 KiB.
const PIECE_MIN: u64 = 4 << 10;
const PIECE_MAX: u64 = 64 << 10;

/// What the receiver knows of a share that it has opened.
#[derive(Debug)]
pub struct Share {
    /// Its number, never 0.
    pub number: u32,
    /// Pieces that the receiver has claimed.
    pub mine: u32,
}

/// A message that this rank, its sender, helps to copy.
#[derive(Debug)]
pub struct Push {
    /// The send request.
    pub id: u64,
    /// Number of the receiver's share.
    pub share: u32,
    /// Where in its heap the data goes.
    pub to: Located,
    /// Pieces copied so far.
    pub done: u32,
}

/// Bytes of a piece of a message of `total` bytes, and their number.
pub fn pieces(total: u64) -> (u64, u32) {
    let piece = (total / PIECES).next_multiple_of(4096).clamp(PIECE_MIN, PIECE_MAX);
    // A message of 2^40 bytes has as many pieces as fit.
    let piece = piece.max(total.div_ceil(1 << 30));
    (piece, total.div_ceil(piece) as u32)
}

/// The word of a share of which `count` pieces are claimed, or pushed.
pub fn word(share: u32, count: u32) -> u64 {
    u64::from(share) << 32 | u64::from(count)
}

/// Takes the next piece; `None` when there is none left or the share is another one.
#[inline]
pub fn claim(claims: &AtomicU64, share: u32, pieces: u32) -> Option<u32> {
    let mut seen = claims.load(Ordering::Relaxed);
    loop {
        let next = seen as u32;
        if (seen >> 32) as u32 != share || next >= pieces {
            return None;
        }
        // Claims order nothing but themselves: data is published by `pushed` and by envelopes.
        match claims.compare_exchange_weak(seen, seen + 1, Ordering::AcqRel, Ordering::Relaxed) {
            Ok(_) => return Some(next),
            Err(now) => seen = now,
        }
    }
}

/// Takes all that is left, so that nobody claims anything of the share any more. Gives the number of
/// pieces that had been claimed.
pub fn close(claims: &AtomicU64, share: u32, pieces: u32) -> u32 {
    let seen = claims.swap(word(share, u32::MAX), Ordering::AcqRel);
    if (seen >> 32) as u32 == share { (seen as u32).min(pieces) } else { pieces }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_cover_the_message() {
        for total in
            [1, SHARE_MIN, 64 << 10, 1 << 20, (1 << 20) + 1, 1 << 33, 1 << 62, u64::MAX / 2]
        {
            let (piece, count) = pieces(total);
            assert!(u128::from(piece) * u128::from(count) >= u128::from(total), "{total}");
            assert!(u128::from(piece) * u128::from(count - 1) < u128::from(total), "{total}");
        }
        assert_eq!(pieces(64 << 10), (8 << 10, 8));
        assert_eq!(pieces(1 << 20), (64 << 10, 16));
    }

    #[test]
    fn every_piece_is_claimed_once() {
        let claims = AtomicU64::new(word(7, 0));
        let mut all: Vec<u32> = std::thread::scope(|scope| {
            let take = || std::iter::from_fn(|| claim(&claims, 7, 1000)).collect::<Vec<_>>();
            let (a, b) = (scope.spawn(take), scope.spawn(take));
            [a.join().expect("a"), b.join().expect("b")].concat()
        });
        all.sort_unstable();
        assert!(all.into_iter().eq(0..1000));
        assert_eq!(claim(&claims, 8, 1000), None);
        claims.store(word(9, 3), Ordering::Relaxed);
        assert_eq!(close(&claims, 9, 10), 3);
        assert_eq!(claim(&claims, 9, 10), None);
    }
}
