//! The division of one message between two ranks that copy it together: the receiver takes pieces from the
//! start and the sender takes pieces from the end, until they meet.
//!
//! `transport/single_copy.rs` copies the pieces, from heap to heap or between private memories. Each
//! ordered pair has, for each of the two kinds of memory, one word that both ranks change by
//! compare-and-swap. A piece belongs to the rank that claims it. If a rank comes late or never, the other
//! rank copies its pieces. A receiver that wants its memory back claims all remaining pieces, and then
//! waits only for the piece that the sender is copying.
//!
//! ```text
//! claims   number of the split (24) | pieces of the sender (20) | pieces of the receiver (20)
//! pushed   number of the split (24) | 1: the sender has given up (1) | pieces it has finished (39)
//! ```
//!
//! Invariants: a number is used for one split at a time, in the order in which the receiver opens the splits.
//! `pushed` has one writer, the sender. Whatever value the words have, a claim is below the number of pieces
//! that its caller passes.

use crate::sync::Word;
use std::ops::Range;

/// Maximum number of pieces of a split.
pub const PIECES_MAX: u64 = (1 << COUNT_BITS) - 1;

/// All numbers of splits are below this.
pub const NUMBERS: u32 = 1 << 24;

/// Number of pieces of a message, unless the limits on the size of a piece require another number.
const PIECES: u64 = 8;

const COUNT_BITS: u32 = 20;
const NUMBER_AT: u32 = 40;
const GIVEN_UP: u64 = 1 << (NUMBER_AT - 1);

/// The division of a message into pieces.
#[derive(Clone, Copy, Debug)]
pub struct Cut {
    total: u64,
    piece: u64,
    /// Number of pieces.
    pub pieces: u64,
}

impl Cut {
    /// Cuts a message of `total` bytes into pieces of `min` to `max` bytes. Pieces are longer only if there
    /// would be more than [`PIECES_MAX`].
    pub fn new(total: u64, min: u64, max: u64) -> Self {
        let least = total.div_ceil(PIECES_MAX).max(min);
        let piece = (total / PIECES).next_multiple_of(4096).clamp(least, max.max(least));
        Self { total, piece, pieces: total.div_ceil(piece) }
    }

    /// Returns the bytes of piece `index`.
    pub fn range(&self, index: u64) -> Range<u64> {
        let start = index * self.piece;
        start..self.total.min(start + self.piece)
    }
}

/// A word that two processes change.
pub trait Contended: Word {
    /// Changes the word from `seen` to `new` if it still is `seen`; acquires and releases.
    ///
    /// # Errors
    /// Returns the current value if the word is not `seen`.
    fn exchange(&self, seen: u64, new: u64) -> Result<(), u64>;
}

/// The two words of a pair for one kind of memory.
#[derive(Clone, Copy, Debug)]
pub struct WorkSplit<'a, W> {
    /// Changed by both ranks.
    pub claims: &'a W,
    /// Written by the sender.
    pub pushed: &'a W,
}

fn pack(number: u32, theirs: u64, ours: u64) -> u64 {
    u64::from(number) << NUMBER_AT | theirs << COUNT_BITS | ours
}

/// Returns the parts of the word: the split's number, the sender's pieces, the receiver's pieces.
fn parts(word: u64) -> (u32, u64, u64) {
    ((word >> NUMBER_AT) as u32, word >> COUNT_BITS & PIECES_MAX, word & PIECES_MAX)
}

impl<W: Contended> WorkSplit<'_, W> {
    /// Begins split `number`. The receiver calls this before it tells the sender.
    pub fn open(&self, number: u32) {
        self.claims.store_release(pack(number, 0, 0));
    }

    /// Begins the split after `last`, and returns its number. Skips the number of the split for which the
    /// sender last published a count: the sender may have missed so many splits that the numbers have
    /// wrapped.
    pub fn open_next(&self, last: u32) -> u32 {
        let after = |number: u32| (number + 1) % NUMBERS;
        let counted = (self.pushed.load_acquire() >> NUMBER_AT) as u32;
        let next = after(last % NUMBERS);
        let number = if next == counted { after(next) } else { next };
        self.open(number);
        number
    }

    /// Claims the receiver's next piece from the start. Returns `None` if no piece is left.
    #[inline]
    pub fn claim_front(&self, number: u32, pieces: u64) -> Option<u64> {
        self.change(number, pieces, |theirs, ours| (theirs, ours + 1)).map(|(_, ours)| ours)
    }

    /// Claims the sender's next piece. The sender counts from the end: 0 is the last piece of the message.
    /// Returns `None` if no piece is left, or if the receiver has another split open.
    #[inline]
    pub fn claim_back(&self, number: u32, pieces: u64) -> Option<u64> {
        self.change(number, pieces, |theirs, ours| (theirs + 1, ours)).map(|(theirs, _)| theirs)
    }

    /// Claims all remaining pieces for the receiver, and returns how many pieces the sender has claimed.
    pub fn close(&self, number: u32, pieces: u64) -> u64 {
        let _left = self.change(number, pieces, |theirs, _| (theirs, pieces - theirs));
        // An honest sender cannot claim any more; `min` limits what a hostile sender writes.
        parts(self.claims.load_acquire()).1.min(pieces)
    }

    /// Changes the two counts, and returns their old values.
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

    /// Publishes that the sender has finished `count` pieces of the split, and whether it gives up after
    /// them.
    pub fn push(&self, number: u32, count: u64, gives_up: bool) {
        let end = if gives_up { GIVEN_UP } else { 0 };
        self.pushed.store_release(u64::from(number) << NUMBER_AT | end | count);
    }

    /// Returns how many pieces the sender has finished, and whether it has given up.
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

    /// The way in which the copy of a loom model ends.
    #[derive(Clone, Copy, PartialEq)]
    enum End {
        /// The receiver gets all pieces.
        Whole,
        /// The receiver takes its memory back after one piece.
        Closed,
        /// The receiver gets all pieces; the sender gives up the second piece that it claims.
        Mended,
    }

    /// Both ranks copy three pieces, in every interleaving. No rank touches a piece that the other has
    /// claimed (loom reports such an access), every piece is copied once, and at the end only the receiver
    /// uses the memory.
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
                    // SAFETY: the sender has claimed piece `k` from the end; loom reports a concurrent
                    // access.
                    theirs[(PIECES - 1 - k) as usize].with_mut(|cell| unsafe { *cell += 1 });
                    count += 1;
                    split.push(1, count, false);
                }
            });
            let split = words.split();
            while let Some(k) = split.claim_front(1, PIECES) {
                // SAFETY: the receiver has claimed piece `k`; loom reports a concurrent access.
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
                    // SAFETY: the sender has claimed this piece and has said that it does not touch it.
                    cells[k as usize].with_mut(|cell| unsafe { *cell += 1 });
                    mended += 1;
                } else {
                    loom::thread::yield_now();
                }
            }
            for cell in &*cells {
                // SAFETY: the split is closed and the sender's pieces are counted, so the sender is done.
                cell.with_mut(|cell| unsafe { *cell += 1 });
                if end != End::Closed {
                    // SAFETY: the sender is done, and the write above has ended.
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

    /// A sender comes late, perhaps while the next split is open. Its claims and counts for the old split
    /// never count for the new split.
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
                    // SAFETY: the late sender has claimed this piece; loom reports a concurrent access.
                    theirs[(PIECES - 1 - k) as usize].with_mut(|cell| unsafe { *cell += 1 });
                    split.push(1, 1, false);
                }
            });
            let (split, mut number) = (words.split(), 1);
            for round in 1..=2 {
                while let Some(k) = split.claim_front(number, PIECES) {
                    // SAFETY: the receiver has claimed this piece; loom reports a concurrent access.
                    cells[k as usize].with_mut(|cell| unsafe { *cell += 1 });
                }
                let back = split.close(number, PIECES);
                assert!(round == 1 || back == 0);
                while split.pushed(number) != (back, false) {
                    loom::thread::yield_now();
                }
                for cell in &*cells {
                    // SAFETY: the split is closed, and the sender's pieces are counted.
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

    /// When numbers repeat, the receiver skips the number for which the sender last published a count, even
    /// after the numbers wrap.
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
