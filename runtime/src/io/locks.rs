//! Locks for ranges of a file: accesses in atomic mode, and the turns of the ranks at a stream.
//!
//! The locks are words in the memory that the ranks of the file share. Each rank has [`SLOTS`] slots, which only this
//! rank writes, so nothing has to be repaired when a rank dies: the other ranks pass over the slots of a dead rank.
//! The protocol is Lamport's bakery with ranges:
//!
//! 1. A thread takes a free slot of its rank, marks the slot as [`CHOOSING`], and writes its range.
//! 2. The thread takes the next number of a counter as its ticket, and writes the ticket to the slot.
//! 3. The thread waits for every slot whose owner is still choosing, and for every slot with a lower ticket whose range
//!    overlaps its own, unless both accesses read.
//! 4. When the access is over, the thread writes 0 to the slot.
//!
//! So two accesses that overlap come one after another in the order of their tickets, and no access waits for ever
//! behind later ones. Accesses that do not overlap do not wait for each other.
//!
//! A thread that has looked at a slot and need not wait for it never has to look at this slot again: any access that
//! uses the slot later has a higher ticket.

use crate::{Error, ErrorKind, Result};
use std::sync::atomic::{AtomicU64, Ordering};

/// Size of a slot in bytes: a cache line.
const SLOT: usize = 64;

/// Number of slots of a rank. If more threads of one process lock ranges at a time, the others wait until a slot is
/// free.
pub(super) const SLOTS: usize = 4;

/// The ticket of a slot that nobody uses.
const FREE: u64 = 0;

/// The ticket of a slot whose owner has no number yet.
const CHOOSING: u64 = u64::MAX;

/// The bytes that an access locks, and whether the access writes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    /// The first byte.
    pub low: u64,
    /// The byte behind the last one.
    pub high: u64,
    /// True if the access writes.
    pub write: bool,
}

impl Span {
    fn conflicts(self, other: Self) -> bool {
        (self.write || other.write) && self.low < other.high && other.low < self.high
    }
}

/// The words of one slot.
#[derive(Clone, Copy, Debug)]
struct Slot<'a> {
    ticket: &'a AtomicU64,
    low: &'a AtomicU64,
    high: &'a AtomicU64,
    write: &'a AtomicU64,
}

impl Slot<'_> {
    /// Returns the ticket and the range of a slot, which its owner may change at the same time.
    fn read(self) -> (u64, Span) {
        loop {
            let ticket = self.ticket.load(Ordering::SeqCst);
            let span = Span {
                low: self.low.load(Ordering::SeqCst),
                high: self.high.load(Ordering::SeqCst),
                write: self.write.load(Ordering::SeqCst) != 0,
            };
            // No number is used twice, so the range belongs to the ticket if the ticket has not changed.
            if self.ticket.load(Ordering::SeqCst) == ticket {
                return (ticket, span);
            }
        }
    }
}

/// The locks of a file. `word` returns the word at a byte offset.
pub(super) struct Locks<F> {
    pub word: F,
    /// The offset of the counter.
    pub counter: usize,
    /// The offset of the first slot.
    pub slots: usize,
    /// Number of ranks.
    pub ranks: usize,
}

/// A slot that a thread has taken: the access waits, or it has the lock.
#[derive(Debug)]
pub(super) struct Claim<'a> {
    slot: Slot<'a>,
    place: usize,
    ticket: u64,
    span: Span,
    /// Number of slots for which this access need not wait any more.
    passed: usize,
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        self.slot.ticket.store(FREE, Ordering::SeqCst);
    }
}

/// Returns the number of bytes of the slots of `ranks` ranks.
pub(super) const fn bytes_of(ranks: usize) -> usize {
    ranks * SLOTS * SLOT
}

impl<'a, F: Fn(usize) -> Result<&'a AtomicU64>> Locks<F> {
    fn slot(&self, place: usize) -> Result<Slot<'a>> {
        let word = |number: usize| (self.word)(self.slots + place * SLOT + number * 8);
        Ok(Slot { ticket: word(0)?, low: word(1)?, high: word(2)?, write: word(3)? })
    }

    /// Takes a slot of rank `own` and a ticket. Returns `None` if other threads of the rank use all its slots.
    ///
    /// # Errors
    /// Returns [`ErrorKind::Internal`] if the shared memory lacks a word of the locks, or if the counter of the
    /// tickets has overflowed.
    pub fn claim(&self, own: usize, span: Span) -> Result<Option<Claim<'a>>> {
        for place in own * SLOTS..(own + 1) * SLOTS {
            let slot = self.slot(place)?;
            let (new, order) = (CHOOSING, Ordering::SeqCst);
            if slot.ticket.compare_exchange(FREE, new, order, Ordering::Relaxed).is_err() {
                continue;
            }
            slot.low.store(span.low, Ordering::SeqCst);
            slot.high.store(span.high, Ordering::SeqCst);
            slot.write.store(span.write.into(), Ordering::SeqCst);
            let mut claim = Claim { slot, place, ticket: CHOOSING, span, passed: 0 };
            let ticket = (self.word)(self.counter)?.fetch_add(1, Ordering::SeqCst).wrapping_add(1);
            if matches!(ticket, FREE | CHOOSING) {
                // Another rank has written to the counter.
                let detail = "the counter of the file's locks has overflowed";
                return Err(Error::new(ErrorKind::Internal, "file", detail));
            }
            claim.ticket = ticket;
            slot.ticket.store(ticket, Ordering::SeqCst);
            return Ok(Some(claim));
        }
        Ok(None)
    }

    /// Returns whether a claim has the lock. `is_dead` says whether a rank is dead.
    ///
    /// # Errors
    /// Returns [`ErrorKind::Internal`] if the shared memory lacks a word of the locks.
    pub fn is_granted(
        &self,
        claim: &mut Claim<'a>,
        is_dead: impl Fn(usize) -> bool,
    ) -> Result<bool> {
        while claim.passed < self.ranks * SLOTS {
            let place = claim.passed;
            if place != claim.place {
                let (ticket, span) = self.slot(place)?.read();
                let waits = match ticket {
                    FREE => false,
                    CHOOSING => true,
                    _ => ticket < claim.ticket && span.conflicts(claim.span),
                };
                if waits && !is_dead(place / SLOTS) {
                    return Ok(false);
                }
            }
            claim.passed += 1;
        }
        Ok(true)
    }

    /// Calls `each` with the ranks that may wait for an access of rank `own` to `span`, which is over.
    ///
    /// # Errors
    /// Returns [`ErrorKind::Internal`] if the shared memory lacks a word of the locks.
    pub fn waiting(&self, own: usize, span: Span, mut each: impl FnMut(usize)) -> Result<()> {
        for rank in 0..self.ranks {
            let (mut waits, mut used) = (false, 0);
            for place in rank * SLOTS..(rank + 1) * SLOTS {
                let (ticket, other) = self.slot(place)?.read();
                used += usize::from(ticket != FREE);
                waits |= ticket == CHOOSING || ticket != FREE && other.conflicts(span);
            }
            // A thread of this rank may have waited for the slot.
            if waits || rank == own && used + 1 >= SLOTS {
                each(rank);
            }
        }
        Ok(())
    }
}

impl Claim<'_> {
    /// Returns the range.
    pub fn span(&self) -> Span {
        self.span
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicI64;

    fn memory(ranks: usize) -> Vec<AtomicU64> {
        (0..8 + bytes_of(ranks) / 8).map(|_| AtomicU64::new(0)).collect()
    }

    fn locks<'a>(
        words: &'a [AtomicU64],
        ranks: usize,
    ) -> Locks<impl Fn(usize) -> Result<&'a AtomicU64>> {
        Locks { word: |at| Ok(&words[at / 8]), counter: 0, slots: 64, ranks }
    }

    fn span(low: u64, high: u64, write: bool) -> Span {
        Span { low, high, write }
    }

    fn take(words: &[AtomicU64], ranks: usize, rank: usize, span: Span) -> Claim<'_> {
        locks(words, ranks).claim(rank, span).expect("words").expect("a slot")
    }

    fn granted<'a>(words: &'a [AtomicU64], ranks: usize, claim: &mut Claim<'a>) -> bool {
        locks(words, ranks).is_granted(claim, |_| false).expect("words")
    }

    #[test]
    fn ranges_that_overlap_wait_in_the_order_of_their_tickets() {
        let words = memory(3);
        let take = |rank, span| take(&words, 3, rank, span);
        let mut first = take(0, span(0, 100, true));
        let mut disjoint = take(1, span(100, 200, true));
        let mut large = take(2, span(50, 300, false));
        let mut small = take(0, span(60, 61, true));
        let mut reader = take(1, span(250, 260, false));
        assert!(granted(&words, 3, &mut first) && granted(&words, 3, &mut disjoint));
        assert!(granted(&words, 3, &mut reader));
        assert!(!granted(&words, 3, &mut large) && !granted(&words, 3, &mut small));
        let mut rung = Vec::new();
        locks(&words, 3).waiting(0, first.span(), |rank| rung.push(rank)).expect("words");
        assert_eq!(rung, [0, 2]);
        drop(first);
        // The small range waits behind the large one, which came first.
        assert!(!granted(&words, 3, &mut large) && !granted(&words, 3, &mut small));
        drop(disjoint);
        assert!(granted(&words, 3, &mut large) && !granted(&words, 3, &mut small));
        drop(large);
        assert!(granted(&words, 3, &mut small));
    }

    #[test]
    fn the_slots_of_dead_ranks_are_passed_over() {
        let words = memory(3);
        let held = take(&words, 3, 0, span(0, 10, true));
        // Rank 1 died while it had a slot and no ticket.
        words[8 + SLOTS * 8].store(CHOOSING, Ordering::SeqCst);
        let mut claim = take(&words, 3, 2, span(5, 6, true));
        let all = locks(&words, 3);
        assert!(!all.is_granted(&mut claim, |_| false).expect("words"));
        assert!(!all.is_granted(&mut claim, |rank| rank == 1).expect("words"));
        assert!(all.is_granted(&mut claim, |rank| rank < 2).expect("words"));
        std::mem::forget(held);
    }

    #[test]
    fn a_rank_has_no_more_than_its_slots() {
        let words = memory(2);
        let all: Vec<_> =
            (0..SLOTS as u64).map(|at| take(&words, 2, 1, span(at, at + 1, true))).collect();
        let claim = locks(&words, 2).claim(1, span(9, 10, true)).expect("words");
        assert!(claim.is_none());
        let mut rung = Vec::new();
        locks(&words, 2).waiting(1, span(9, 10, true), |rank| rung.push(rank)).expect("words");
        assert_eq!(rung, [1]);
        drop(all);
        // Another rank has written to the counter.
        words[0].store(u64::MAX - 1, Ordering::SeqCst);
        assert!(locks(&words, 2).claim(1, span(9, 10, true)).is_err());
        assert!(locks(&words, 2).claim(1, span(9, 10, true)).is_err());
        assert!(locks(&words, 2).claim(1, span(9, 10, true)).expect("words").is_some());
    }

    /// Threads lock random ranges. Each cell counts its readers, or is -1 while a thread writes it.
    #[test]
    fn no_two_threads_have_ranges_that_conflict() {
        const CELLS: u64 = 16;
        let words = memory(4);
        let cells: Vec<AtomicI64> = (0..CELLS).map(|_| AtomicI64::new(0)).collect();
        std::thread::scope(|scope| {
            for thread in 0..8usize {
                let (words, cells) = (&words, &cells);
                scope.spawn(move || {
                    let mut seed = thread as u64 + 1;
                    let mut below = |bound: u64| {
                        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                        (seed >> 33) % bound
                    };
                    for _ in 0..2000 {
                        let low = below(CELLS);
                        let span = span(low, low + 1 + below(CELLS - low), below(2) == 1);
                        let mut claim = take(words, 4, thread / 2, span);
                        while !granted(words, 4, &mut claim) {
                            std::thread::yield_now();
                        }
                        let held = &cells[span.low as usize..span.high as usize];
                        for cell in held {
                            let step = if span.write { -1 } else { 1 };
                            let before = cell.fetch_add(step, Ordering::SeqCst);
                            assert!(if span.write { before == 0 } else { before >= 0 });
                        }
                        std::thread::yield_now();
                        for cell in held {
                            cell.fetch_add(if span.write { 1 } else { -1 }, Ordering::SeqCst);
                        }
                    }
                });
            }
        });
    }
}
