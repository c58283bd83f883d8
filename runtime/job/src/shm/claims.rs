//! Who copies which piece of a message that both ranks work at: the sender from the end, the
//! receiver from the start, until they meet.
//!
//! `transport/split.rs` does the copying. Per ordered pair there is one word that both change, each by
//! compare-and-swap: claiming is the moment at which a piece is somebody's, so that a rank that comes
//! late, or not at all, leaves its pieces to the other, and a receiver that wants its memory back
//! claims all that is left and then waits for no more than what the sender has in hand.
//!
//! ```text
//! claims   number of the transfer (16) | pieces of the sender (24) | pieces of the receiver (24)
//! pushed   number of the transfer (16) | 1: the sender has given up (1) | pieces it has finished (47)
//! ```
//!
//! Invariants: a number is used for one transfer at a time, in the order in which the receiver starts
//! them; `pushed` has one writer, the sender; whatever stands there, a claim is below the number of
//! pieces that its caller passes.

use crate::sync::Word;

/// Most pieces of a transfer.
pub const PIECES_MAX: u64 = (1 << 24) - 1;

const COUNT: u64 = PIECES_MAX;
const GIVEN_UP: u64 = 1 << 47;

/// A word that two processes change.
pub trait Contended: Word {
    /// Changes the word from `seen` to `new` if it still is `seen`; acquires and releases.
    ///
    /// # Errors
    /// What it is instead.
    fn exchange(&self, seen: u64, new: u64) -> Result<(), u64>;
}

/// The two words of a pair.
pub trait ClaimMemory {
    /// The atomic word.
    type Word: Contended;
    /// Changed by both.
    fn claims(&self) -> &Self::Word;
    /// Written by the sender.
    fn pushed(&self) -> &Self::Word;
}

fn pack(number: u16, theirs: u64, ours: u64) -> u64 {
    u64::from(number) << 48 | theirs << 24 | ours
}

/// The parts of the word: the transfer's number, the sender's pieces, the receiver's.
fn parts(word: u64) -> (u16, u64, u64) {
    ((word >> 48) as u16, word >> 24 & COUNT, word & COUNT)
}

/// Begins transfer `number`. The receiver, before it tells the sender of it.
pub fn open<M: ClaimMemory>(memory: &M, number: u16) {
    memory.claims().store_release(pack(number, 0, 0));
}

/// Begins the transfer after `last`, and gives its number: not the one that the sender counted last
/// for, who may not have come for as many transfers as there are numbers.
pub fn open_next<M: ClaimMemory>(memory: &M, last: u16) -> u16 {
    let next = last.wrapping_add(1);
    let counted = (memory.pushed().load_acquire() >> 48) as u16;
    let number = if next == counted { next.wrapping_add(1) } else { next };
    open(memory, number);
    number
}

/// The receiver's next piece from the start, `None` when there are no more.
pub fn claim_front<M: ClaimMemory>(memory: &M, number: u16, pieces: u64) -> Option<u64> {
    change(memory, number, pieces, |theirs, ours| (theirs, ours + 1)).map(|(_, ours)| ours)
}

/// The sender's next piece: 0 is the last of the message. `None` when there are no more, or the
/// receiver is at another transfer.
pub fn claim_back<M: ClaimMemory>(memory: &M, number: u16, pieces: u64) -> Option<u64> {
    change(memory, number, pieces, |theirs, ours| (theirs + 1, ours)).map(|(theirs, _)| theirs)
}

/// The receiver takes all that is left, and learns how many pieces the sender has.
pub fn close<M: ClaimMemory>(memory: &M, number: u16, pieces: u64) -> u64 {
    let _left = change(memory, number, pieces, |theirs, _| (theirs, pieces - theirs));
    // Nobody claims any more, unless it lies about what there is.
    parts(memory.claims().load_acquire()).1.min(pieces)
}

/// Changes the two counts, and gives what they were before.
fn change<M: ClaimMemory>(
    memory: &M,
    number: u16,
    pieces: u64,
    new: impl Fn(u64, u64) -> (u64, u64),
) -> Option<(u64, u64)> {
    let mut seen = memory.claims().load_acquire();
    loop {
        let (current, theirs, ours) = parts(seen);
        if current != number || theirs + ours >= pieces {
            return None;
        }
        let (back, front) = new(theirs, ours);
        match memory.claims().exchange(seen, pack(number, back, front)) {
            Ok(()) => return Some((theirs, ours)),
            Err(other) => seen = other,
        }
    }
}

/// The sender has finished `count` pieces of the transfer, or gives up after them.
pub fn push<M: ClaimMemory>(memory: &M, number: u16, count: u64, gives_up: bool) {
    let end = if gives_up { GIVEN_UP } else { 0 };
    memory.pushed().store_release(u64::from(number) << 48 | end | count);
}

/// How many pieces the sender has finished, and whether it has given up.
pub fn pushed<M: ClaimMemory>(memory: &M, number: u16) -> (u64, bool) {
    let word = memory.pushed().load_acquire();
    if (word >> 48) as u16 != number {
        return (0, false);
    }
    (word & COUNT, word & GIVEN_UP != 0)
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

    struct Words(AtomicU64, AtomicU64);

    impl ClaimMemory for Words {
        type Word = AtomicU64;
        fn claims(&self) -> &AtomicU64 {
            &self.0
        }
        fn pushed(&self) -> &AtomicU64 {
            &self.1
        }
    }

    /// Three pieces, both at work, in every interleaving; with `closing`, the receiver takes its
    /// memory back after one. Nobody touches a piece that is the other's (loom reports it), and
    /// after the end the memory is the receiver's.
    fn both(closing: bool) {
        loom::model(move || {
            const PIECES: u64 = 3;
            let words = Arc::new(Words(AtomicU64::new(0), AtomicU64::new(0)));
            let cells: Arc<Vec<UnsafeCell<u64>>> =
                Arc::new((0..PIECES).map(|_| UnsafeCell::new(0)).collect());
            open(&*words, 1);
            let (shared, theirs) = (words.clone(), cells.clone());
            let sender = loom::thread::spawn(move || {
                let mut count = 0;
                while let Some(k) = claim_back(&*shared, 1, PIECES) {
                    // SAFETY: claimed; loom reports any access by the other side.
                    theirs[(PIECES - 1 - k) as usize].with_mut(|cell| unsafe { *cell += 1 });
                    count += 1;
                    push(&*shared, 1, count, false);
                }
            });
            while let Some(k) = claim_front(&*words, 1, PIECES) {
                // SAFETY: as above.
                cells[k as usize].with_mut(|cell| unsafe { *cell += 1 });
                if closing {
                    break;
                }
            }
            let back = close(&*words, 1, PIECES);
            while pushed(&*words, 1) != (back, false) {
                loom::thread::yield_now();
            }
            for cell in &*cells {
                // SAFETY: nobody else is at it any more.
                cell.with_mut(|cell| unsafe { *cell += 1 });
                if !closing {
                    // SAFETY: as above.
                    cell.with(|cell| assert_eq!(unsafe { *cell }, 2));
                }
            }
            sender.join().unwrap();
        });
    }

    #[test]
    fn loom_claims() {
        both(false);
    }

    #[test]
    fn loom_claims_closed() {
        both(true);
    }

    #[test]
    fn nonsense_gives_no_piece_out_of_range() {
        use std::sync::atomic::AtomicU64;
        struct Plain(AtomicU64, AtomicU64);
        impl ClaimMemory for Plain {
            type Word = AtomicU64;
            fn claims(&self) -> &AtomicU64 {
                &self.0
            }
            fn pushed(&self) -> &AtomicU64 {
                &self.1
            }
        }
        for word in [u64::MAX, pack(1, COUNT, COUNT), pack(1, 3, 0), pack(1, 0, 3), pack(2, 0, 0)] {
            let memory = Plain(AtomicU64::new(word), AtomicU64::new(word));
            assert_eq!(claim_front(&memory, 1, 3), None);
            assert_eq!(claim_back(&memory, 1, 3), None);
            assert!(close(&memory, 1, 3) <= 3);
        }
        let memory = Plain(AtomicU64::new(0), AtomicU64::new(0));
        open(&memory, 7);
        assert_eq!(claim_front(&memory, 7, 3), Some(0));
        assert_eq!(claim_back(&memory, 7, 3), Some(0));
        assert_eq!(claim_back(&memory, 6, 3), None);
        assert_eq!(claim_front(&memory, 7, 3), Some(1));
        assert_eq!((claim_front(&memory, 7, 3), claim_back(&memory, 7, 3)), (None, None));
        assert_eq!(close(&memory, 7, 3), 1);
        push(&memory, 7, 1, true);
        assert_eq!((pushed(&memory, 7), pushed(&memory, 8)), ((1, true), (0, false)));
    }
}
