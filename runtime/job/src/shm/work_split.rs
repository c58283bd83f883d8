//! How two ranks share the work of copying one message: the receiver copies pieces from the start, and the
//! sender copies pieces from the end, until they meet.
//!
//! `transport/protocol/single_copy.rs` copies the pieces between the heaps of two ranks. An ordered pair of ranks
//! has one word in which both ranks claim pieces by compare-and-swap. Only the rank that has claimed a
//! piece copies it. If one rank joins in late or never, the other rank claims and copies the remaining
//! pieces. A receiver that wants its memory back claims all remaining pieces without copying them, and
//! then has to wait only for the pieces that the sender has already claimed.
//!
//! ```text
//! claims   number of the split (24) | pieces of the sender (20) | pieces of the receiver (20)
//! pushed   number of the split (24) | has the sender given up? (1) | pieces that the sender has finished (39)
//! ```
//!
//! The numbers in parentheses are the widths of the fields in bits. A split is one such shared copy of a
//! message.
//!
//! Invariants: the receiver opens one split at a time, and numbers the splits in order. Only the sender
//! writes `pushed`. Whatever values the words have, the index that a claim returns is below the number of
//! pieces that the caller passes.

use crate::sync::Word;
use std::ops::Range;

/// Maximum number of pieces of a split.
pub const PIECES_MAX: u64 = (1 << COUNT_BITS) - 1;

/// Number of different split numbers. A split number is below this value; after the largest one, the numbers
/// start again at 0.
pub const NUMBERS: u32 = 1 << 24;

/// Approximate number of pieces into which a message is cut, unless the limits on the size of a piece require
/// another number.
const PIECES: u64 = 8;

const COUNT_BITS: u32 = 20;
const NUMBER_AT: u32 = 40;
const GIVEN_UP: u64 = 1 << (NUMBER_AT - 1);

/// How a message is cut into pieces.
#[derive(Clone, Copy, Debug)]
pub struct Cut {
    total: u64,
    piece: u64,
    /// Number of pieces of the message.
    pub pieces: u64,
}

impl Cut {
    /// Cuts a message of `total` bytes into pieces of equal length, except for the last piece, which may be
    /// shorter. The length is at least `min` and normally at most `max` bytes. It exceeds `max` only if there
    /// would otherwise be more than [`PIECES_MAX`] pieces.
    pub fn new(total: u64, min: u64, max: u64) -> Self {
        let least = total.div_ceil(PIECES_MAX).max(min);
        let piece = (total / PIECES).next_multiple_of(4096).clamp(least, max.max(least));
        Self { total, piece, pieces: total.div_ceil(piece) }
    }

    /// Returns the range of bytes of the message that belong to piece `index`.
    pub fn range(&self, index: u64) -> Range<u64> {
        let start = index * self.piece;
        start..self.total.min(start + self.piece)
    }
}

/// A word that both processes of a pair may change.
pub trait Contended: Word {
    /// If the word is `seen`, changes it to `new`, with acquire and release ordering.
    ///
    /// # Errors
    /// Returns the current value if the word is not `seen`.
    fn exchange(&self, seen: u64, new: u64) -> Result<(), u64>;
}

/// The two words that a pair uses for shared copies.
#[derive(Clone, Copy, Debug)]
pub struct WorkSplit<'a, W> {
    /// The number of the split, and how many pieces each rank has claimed. Both ranks change this word.
    pub claims: &'a W,
    /// The number of the split, how many pieces the sender has finished, and whether the sender has given
    /// up. Only the sender writes this word.
    pub pushed: &'a W,
}

fn pack(number: u32, theirs: u64, ours: u64) -> u64 {
    u64::from(number) << NUMBER_AT | theirs << COUNT_BITS | ours
}

/// Returns the three parts of a `claims` word: the number of the split, the number of pieces that the sender
/// has claimed, and the number of pieces that the receiver has claimed.
fn parts(word: u64) -> (u32, u64, u64) {
    ((word >> NUMBER_AT) as u32, word >> COUNT_BITS & PIECES_MAX, word & PIECES_MAX)
}

impl<W: Contended> WorkSplit<'_, W> {
    /// Opens split `number`. The receiver calls this function before it tells the sender about the split.
    pub fn open(&self, number: u32) {
        self.claims.store_release(pack(number, 0, 0));
    }

    /// Opens the split after split `last`, and returns its number. Skips the number of the split for which
    /// the sender last published a count. After 2^24 splits the numbers repeat. If the sender has taken part
    /// in none of these splits, its old count could otherwise pass for a count of the new split.
    pub fn open_next(&self, last: u32) -> u32 {
        let after = |number: u32| (number + 1) % NUMBERS;
        let counted = (self.pushed.load_acquire() >> NUMBER_AT) as u32;
        let next = after(last % NUMBERS);
        let number = if next == counted { after(next) } else { next };
        self.open(number);
        number
    }

    /// Claims the next piece for the receiver, from the start of the message. Returns the index of the
    /// piece, or `None` if no piece is left or split `number` is not open.
    #[inline]
    pub fn claim_front(&self, number: u32, pieces: u64) -> Option<u64> {
        self.change(number, pieces, |theirs, ours| (theirs, ours + 1)).map(|(_, ours)| ours)
    }

    /// Claims the next piece for the sender, from the end of the message. Returns the number of the piece,
    /// counted from the end: 0 is the last piece. Returns `None` if no piece is left, or if the receiver has
    /// opened another split.
    #[inline]
    pub fn claim_back(&self, number: u32, pieces: u64) -> Option<u64> {
        self.change(number, pieces, |theirs, ours| (theirs + 1, ours)).map(|(theirs, _)| theirs)
    }

    /// Closes the split: claims all remaining pieces for the receiver, and returns the number of pieces that
    /// the sender has claimed.
    pub fn close(&self, number: u32, pieces: u64) -> u64 {
        let _left = self.change(number, pieces, |theirs, _| (theirs, pieces - theirs));
        // A correct sender can claim no more pieces now. A faulty or hostile sender may still write any
        // value, so `min` limits the result.
        parts(self.claims.load_acquire()).1.min(pieces)
    }

    /// If split `number` is open and a piece is left, replaces the two counts of claimed pieces with the
    /// result of `new`, and returns the old counts. Otherwise returns `None`.
    fn change(
        &self,
        number: u32,
        pieces: u64,
        new: impl Fn(u64, u64) -> (u64, u64),
    ) -> Option<(u64, u64)> {
        debug_assert!(pieces <= PIECES_MAX);
        let mut seen = self.claims.load_acquire();
        loop {
            let (current, theirs, ours) = parts(seen);
            if current != number || theirs + ours >= pieces {
                return None;
            }
            let (back, front) = new(theirs, ours);
            match self.claims.exchange(seen, pack(number, back, front)) {
                Ok(()) => return Some((theirs, ours)),
                Err(other) => seen = other,
            }
        }
    }

    /// Publishes that the sender has finished `count` pieces of split `number`. If `gives_up` is true, the
    /// sender finishes no more pieces, not even a piece that it has claimed.
    pub fn push(&self, number: u32, count: u64, gives_up: bool) {
        let end = if gives_up { GIVEN_UP } else { 0 };
        self.pushed.store_release(u64::from(number) << NUMBER_AT | end | count);
    }

    /// Returns how many pieces of split `number` the sender has finished, and whether the sender has given
    /// up. Returns `(0, false)` if the sender has published nothing about this split yet.
    pub fn pushed(&self, number: u32) -> (u64, bool) {
        let word = self.pushed.load_acquire();
        if (word >> NUMBER_AT) as u32 != number {
            return (0, false);
        }
        (word & (GIVEN_UP - 1), word & GIVEN_UP != 0)
    }
}

impl Contended for std::sync::atomic::AtomicU64 {
    #[inline]
    fn exchange(&self, seen: u64, new: u64) -> Result<(), u64> {
        use std::sync::atomic::Ordering;
        self.compare_exchange(seen, new, Ordering::AcqRel, Ordering::Acquire).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use loom::cell::UnsafeCell;
    use loom::sync::Arc;
    use loom::sync::atomic::{AtomicU64, Ordering};

    impl Contended for AtomicU64 {
        fn exchange(&self, seen: u64, new: u64) -> Result<(), u64> {
            self.compare_exchange(seen, new, Ordering::AcqRel, Ordering::Acquire).map(drop)
        }
    }

    struct Words<W>(W, W);

    impl<W> Words<W> {
        fn split(&self) -> WorkSplit<'_, W> {
            WorkSplit { claims: &self.0, pushed: &self.1 }
        }
    }

    /// The way in which the shared copy of a loom model ends.
    #[derive(Clone, Copy, PartialEq)]
    enum End {
        /// Both ranks copy until no piece is left, and the sender finishes all pieces that it claims.
        Whole,
        /// The receiver takes its memory back after it has copied one piece.
        Closed,
        /// The sender gives up at the second piece that it claims, and the receiver copies that piece itself.
        Mended,
    }

    /// Checks in every interleaving that two ranks can share the copying of three pieces. Loom reports an
    /// error if both ranks access a piece at the same time. Unless `end` is [`End::Closed`], every piece
    /// must be copied exactly once. At the end only the receiver may use the memory.
    fn both(end: End) {
        loom::model(move || {
            const PIECES: u64 = 3;
            let words = Arc::new(Words(AtomicU64::new(0), AtomicU64::new(0)));
            let cells: Arc<Vec<UnsafeCell<u64>>> =
                Arc::new((0..PIECES).map(|_| UnsafeCell::new(0)).collect());
            words.split().open(1);
            let (shared, theirs) = (words.clone(), cells.clone());
            let sender = loom::thread::spawn(move || {
                let (split, mut count) = (shared.split(), 0);
                while let Some(k) = split.claim_back(1, PIECES) {
                    if end == End::Mended && k == 1 {
                        split.push(1, count, true);
                        break;
                    }
                    // SAFETY: the sender has claimed this piece, `k` from the end. Loom reports a concurrent
                    // access.
                    theirs[(PIECES - 1 - k) as usize].with_mut(|cell| unsafe { *cell += 1 });
                    count += 1;
                    split.push(1, count, false);
                }
            });
            let split = words.split();
            while let Some(k) = split.claim_front(1, PIECES) {
                // SAFETY: the receiver has claimed piece `k`. Loom reports a concurrent access.
                cells[k as usize].with_mut(|cell| unsafe { *cell += 1 });
                if end == End::Closed {
                    break;
                }
            }
            let (back, mut mended) = (split.close(1, PIECES), 0);
            loop {
                let (count, given_up) = split.pushed(1);
                if count + mended == back {
                    break;
                }
                if given_up {
                    let k = PIECES - 1 - (count + mended);
                    // SAFETY: the sender had claimed this piece and has given it up, so the sender does not
                    // touch it.
                    cells[k as usize].with_mut(|cell| unsafe { *cell += 1 });
                    mended += 1;
                } else {
                    loom::thread::yield_now();
                }
            }
            for cell in &*cells {
                // SAFETY: the split is closed, and all pieces of the sender are finished, so the sender uses
                // no piece.
                cell.with_mut(|cell| unsafe { *cell += 1 });
                if end != End::Closed {
                    // SAFETY: the sender no longer uses any piece, and the write above has ended.
                    cell.with(|cell| assert_eq!(unsafe { *cell }, 2));
                }
            }
            sender.join().unwrap();
        });
    }

    #[test]
    fn loom_split_whole() {
        both(End::Whole);
    }

    #[test]
    fn loom_split_closed() {
        both(End::Closed);
    }

    #[test]
    fn loom_split_mended() {
        both(End::Mended);
    }

    /// Checks that a late sender does no harm, even if it joins in when the next split is already open: its
    /// claims and counts for the old split have no effect on the new split.
    #[test]
    fn loom_split_late_sender() {
        loom::model(|| {
            const PIECES: u64 = 2;
            let words = Arc::new(Words(AtomicU64::new(0), AtomicU64::new(0)));
            let cells: Arc<Vec<UnsafeCell<u64>>> =
                Arc::new((0..PIECES).map(|_| UnsafeCell::new(0)).collect());
            words.split().open(1);
            let (shared, theirs) = (words.clone(), cells.clone());
            let sender = loom::thread::spawn(move || {
                let split = shared.split();
                if let Some(k) = split.claim_back(1, PIECES) {
                    // SAFETY: the late sender has claimed this piece of split 1. Loom reports a concurrent
                    // access.
                    theirs[(PIECES - 1 - k) as usize].with_mut(|cell| unsafe { *cell += 1 });
                    split.push(1, 1, false);
                }
            });
            let (split, mut number) = (words.split(), 1);
            for round in 1..=2 {
                while let Some(k) = split.claim_front(number, PIECES) {
                    // SAFETY: the receiver has claimed piece `k` of the open split. Loom reports a concurrent
                    // access.
                    cells[k as usize].with_mut(|cell| unsafe { *cell += 1 });
                }
                let back = split.close(number, PIECES);
                assert!(round == 1 || back == 0);
                while split.pushed(number) != (back, false) {
                    loom::thread::yield_now();
                }
                for cell in &*cells {
                    // SAFETY: split `number` is closed, so the sender claims no more pieces of it. The
                    // sender has finished all pieces that it claimed, so no one writes to the cell.
                    cell.with(|cell| assert_eq!(unsafe { *cell }, round));
                }
                number = split.open_next(number);
            }
            sender.join().unwrap();
        });
    }

    #[test]
    fn nonsense_gives_no_piece_out_of_range() {
        use std::sync::atomic::AtomicU64;
        let count = PIECES_MAX;
        for word in [u64::MAX, pack(1, count, count), pack(1, 3, 0), pack(1, 0, 3), pack(2, 0, 0)] {
            let words = Words(AtomicU64::new(word), AtomicU64::new(word));
            assert_eq!(words.split().claim_front(1, 3), None);
            assert_eq!(words.split().claim_back(1, 3), None);
            assert!(words.split().close(1, 3) <= 3);
        }
        let words = Words(AtomicU64::new(0), AtomicU64::new(0));
        let split = words.split();
        split.open(7);
        assert_eq!(split.claim_front(7, 3), Some(0));
        assert_eq!(split.claim_back(7, 3), Some(0));
        assert_eq!(split.claim_back(6, 3), None);
        assert_eq!(split.claim_front(7, 3), Some(1));
        assert_eq!((split.claim_front(7, 3), split.claim_back(7, 3)), (None, None));
        assert_eq!(split.close(7, 3), 1);
        split.push(7, 1, true);
        assert_eq!((split.pushed(7), split.pushed(8)), ((1, true), (0, false)));
    }

    /// Checks that the receiver skips the split number for which the sender last published a count, even
    /// where the numbers wrap around to 0.
    #[test]
    fn a_number_that_was_counted_for_is_left_out() {
        use std::sync::atomic::AtomicU64;
        let words = Words(AtomicU64::new(0), AtomicU64::new(0));
        let split = words.split();
        assert_eq!(split.open_next(0), 1);
        split.push(2, 3, false);
        assert_eq!((split.open_next(1), split.pushed(3)), (3, (0, false)));
        split.push(0, 3, false);
        assert_eq!(split.open_next(NUMBERS - 1), 1);
        split.push(5, 3, false);
        assert_eq!(split.open_next(NUMBERS - 1), 0);
    }

    #[test]
    fn pieces_cover_every_message() {
        for (min, max) in [(4 << 10, 64 << 10), (32 << 10, 1 << 20)] {
            for total in
                [1, 4095, 8192, 65_536, 65_537, 1 << 20, (1 << 20) + 3, 5 << 30, 1 << 50, 1 << 62]
            {
                let cut = Cut::new(total, min, max);
                assert!(cut.pieces <= PIECES_MAX && cut.piece >= min, "{total}");
                assert_eq!(cut.range(0).start, 0);
                assert_eq!(cut.range(cut.pieces - 1).end, total);
                for index in [1, cut.pieces / 2, cut.pieces - 1] {
                    if (1..cut.pieces).contains(&index) {
                        assert_eq!(cut.range(index - 1).end, cut.range(index).start);
                        assert!(!cut.range(index).is_empty());
                    }
                }
            }
        }
        let cut = Cut::new(1 << 20, 4 << 10, 64 << 10);
        assert_eq!((cut.piece, cut.pieces), (64 << 10, 16));
    }
}
