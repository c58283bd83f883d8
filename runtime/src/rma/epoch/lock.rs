//! The lock of a window: one word, in the block of the rank whose memory the lock protects.
//!
//! The lock may be shared by several ranks, or held by one rank exclusively. If nobody holds it and nobody waits, one
//! atomic operation takes it. A rank that cannot have the lock at once joins a queue and sleeps. The word has these
//! fields:
//!
//! - `next`: the number of tickets that have been taken. Each rank that joins the queue takes one.
//! - `front`: the ticket of the first rank in the queue. If it equals `next`, the queue is empty.
//! - `holders`: the number of ranks that share the lock.
//! - `exclusive`: whether a rank holds the lock exclusively.
//! - `rung`: whether the first rank in the queue has been woken and has not looked at the lock since.
//! - `passes`: how many ranks have taken the lock since the first rank in the queue has become the first one.
//!
//! A rank that finds the lock free may pass the queue, but at most [`MOST_PASSES`] ranks pass the same first rank. Then
//! newcomers join the queue. So every rank gets the lock after a bounded number of others. Without passing, each
//! release would hand the lock to a sleeping rank, and everybody would wait until that rank has a CPU: with more ranks
//! than CPUs, each holder would cost a switch between processes.
//!
//! A release that leaves the lock free wakes the first rank in the queue, once. That rank takes the lock if it is still
//! free, and sleeps again if it is not. This file changes the word and never waits; `wait.rs` waits.

use crate::rma::window::words::SharedWord;
use crate::shm::layout::MAX_RANKS;

/// Number of bits of a ticket and of the number of holders. A rank has at most one request for a lock at a time, and
/// there are fewer ranks than values. So no two ranks in the queue have the same ticket.
const BITS: u32 = 16;
const MASK: u64 = (1 << BITS) - 1;
const NEXT: u32 = 0;
const FRONT: u32 = BITS;
const HOLDERS: u32 = 2 * BITS;
const EXCLUSIVE: u64 = 1 << (3 * BITS);
const RUNG: u64 = 1 << (3 * BITS + 1);
/// `passes` has the bits from here on.
const PASSES: u32 = 3 * BITS + 2;

const _: () = assert!(MAX_RANKS < 1 << BITS);

/// Largest number of ranks that pass the first rank in the queue. A holder with one short operation takes a tenth of a
/// microsecond, so a woken rank waits about as long as a switch between processes takes.
const MOST_PASSES: u64 = 100;

const _: () = assert!(MOST_PASSES < 1 << (u64::BITS - PASSES));

/// Who else may hold a lock at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockKind {
    /// All other ranks that hold the lock shared.
    #[doc(alias = "MPI_LOCK_SHARED")]
    Shared,
    /// Nobody.
    #[doc(alias = "MPI_LOCK_EXCLUSIVE")]
    Exclusive,
}

fn get(word: u64, field: u32) -> u64 {
    word >> field & MASK
}

/// Returns `word` with one added to the ticket `field`. Tickets wrap.
fn more(word: u64, field: u32) -> u64 {
    let value = (get(word, field) + 1) & MASK;
    word & !(MASK << field) | value << field
}

/// Returns whether ranks wait in the queue.
fn has_queue(word: u64) -> bool {
    get(word, NEXT) != get(word, FRONT)
}

/// Returns whether a lock of this kind can be taken beside the present holders.
fn is_free(word: u64, kind: LockKind) -> bool {
    match kind {
        LockKind::Shared => word & EXCLUSIVE == 0,
        LockKind::Exclusive => word & EXCLUSIVE == 0 && get(word, HOLDERS) == 0,
    }
}

/// Returns `word` with one more holder.
fn taken(word: u64, kind: LockKind) -> u64 {
    match kind {
        LockKind::Shared => more(word, HOLDERS),
        LockKind::Exclusive => word | EXCLUSIVE,
    }
}

fn change(word: &impl SharedWord, mut to: impl FnMut(u64) -> u64) -> (u64, u64) {
    let mut old = word.value();
    loop {
        let new = to(old);
        if new == old {
            return (old, new);
        }
        match word.replace(old, new) {
            Ok(()) => return (old, new),
            Err(now) => old = now,
        }
    }
}

/// Asks for the lock. Returns `None` if the caller has the lock now. Otherwise returns the caller's ticket in the
/// queue: the caller waits until [`look`] says that it has the lock.
#[inline]
pub(in crate::rma) fn ask(word: &impl SharedWord, kind: LockKind) -> Option<u64> {
    // Usually the lock is free, and nobody waits. Then `ask_any` would do just this.
    let old = word.value();
    let takes = is_free(old, kind) && !has_queue(old);
    if takes && word.replace(old, taken(old, kind)).is_ok() {
        return None;
    }
    ask_any(word, kind)
}

/// Does the work of [`ask`], whoever holds the lock or waits.
#[inline(never)]
fn ask_any(word: &impl SharedWord, kind: LockKind) -> Option<u64> {
    let takes = |old: u64| is_free(old, kind) && (!has_queue(old) || old >> PASSES < MOST_PASSES);
    let (old, _) = change(word, |old| match (takes(old), has_queue(old)) {
        (true, false) => taken(old, kind),
        (true, true) => taken(old, kind) + (1 << PASSES),
        (false, _) => more(old, NEXT),
    });
    (!takes(old)).then(|| get(old, NEXT))
}

/// What a rank in the queue sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::rma) enum Seen {
    /// The rank waits on.
    Nothing,
    /// The rank has the lock. It wakes the rank with this ticket, if any, which may be able to share the lock.
    Lock(Option<u64>),
}

/// Takes the lock for the rank in the queue with this ticket, if the rank is the first one and the lock is free. After
/// the function has returned a lock, the caller must not call it again for the ticket.
pub(in crate::rma) fn look(word: &impl SharedWord, kind: LockKind, ticket: u64) -> Seen {
    let is_first = |old: u64| get(old, FRONT) == ticket;
    let (old, new) = change(word, |old| {
        if !is_first(old) {
            return old;
        }
        if !is_free(old, kind) {
            // The next release wakes this rank again.
            return old & !RUNG;
        }
        let new = more(taken(old, kind), FRONT) & !RUNG & ((1 << PASSES) - 1);
        let shares = kind == LockKind::Shared && has_queue(new);
        if shares { new | RUNG } else { new }
    });
    if !is_first(old) || !is_free(old, kind) {
        return Seen::Nothing;
    }
    Seen::Lock((new & RUNG != 0).then(|| get(new, FRONT)))
}

/// Releases the lock. Returns the ticket of the rank that the caller must wake, if any: the first one in the queue, if
/// the lock is free now.
pub(in crate::rma) fn release(word: &impl SharedWord, kind: LockKind) -> Option<u64> {
    let rings = |new: u64| has_queue(new) && is_free(new, LockKind::Exclusive) && new & RUNG == 0;
    let left = |old: u64| match kind {
        // The caller is one of the holders, so the number of holders is at least 1.
        LockKind::Shared => old - (1 << HOLDERS),
        LockKind::Exclusive => old & !EXCLUSIVE,
    };
    let (old, new) = change(word, |old| {
        let new = left(old);
        if rings(new) { new | RUNG } else { new }
    });
    rings(left(old)).then(|| get(new, FRONT))
}

#[cfg(test)]
mod tests {
    use super::*;
    use LockKind::{Exclusive, Shared};
    use std::sync::atomic::AtomicU64;

    /// Returns a word whose tickets are about to wrap.
    fn free() -> AtomicU64 {
        AtomicU64::new(MASK << NEXT | MASK << FRONT)
    }

    const LOCK: Seen = Seen::Lock(None);

    /// Checks that the usual case of `ask` leaves the word as `ask_any` does, and all other cases to `ask_any`.
    #[test]
    fn the_usual_case_asks_like_any_case() {
        let queue = 1 << NEXT;
        let words = [0, 2 << HOLDERS, EXCLUSIVE, queue, queue | RUNG, EXCLUSIVE | queue]
            .into_iter()
            .chain([queue | MOST_PASSES << PASSES, 3 << NEXT | 3 << FRONT | 1 << HOLDERS]);
        for before in words {
            for kind in [Shared, Exclusive] {
                let (one, other) = (AtomicU64::new(before), AtomicU64::new(before));
                assert_eq!(ask(&one, kind), ask_any(&other, kind), "{before:x}");
                assert_eq!(one.into_inner(), other.into_inner(), "{before:x}");
            }
        }
    }

    #[test]
    fn the_queue_is_served_in_its_order() {
        let word = free();
        assert_eq!(ask(&word, Shared), None);
        assert_eq!(ask(&word, Shared), None);
        let writer = ask(&word, Exclusive).expect("readers hold the lock");
        assert_eq!(writer, MASK);
        let last = ask(&word, Exclusive).expect("readers hold the lock");
        assert_eq!(last, 0);
        assert_eq!(release(&word, Shared), None);
        assert_eq!(
            (look(&word, Exclusive, writer), look(&word, Exclusive, last)),
            (Seen::Nothing, Seen::Nothing)
        );
        assert_eq!(release(&word, Shared), Some(writer));
        // The lock is free, but the other rank is not the first one.
        assert_eq!(look(&word, Exclusive, last), Seen::Nothing);
        assert_eq!(look(&word, Exclusive, writer), LOCK);
        assert_eq!(ask(&word, Shared), Some(1));
        assert_eq!(ask(&word, Shared), Some(2));
        assert_eq!(release(&word, Exclusive), Some(last));
        assert_eq!(look(&word, Exclusive, last), LOCK);
        assert_eq!(release(&word, Exclusive), Some(1));
        // A reader lets the next reader in.
        assert_eq!(look(&word, Shared, 1), Seen::Lock(Some(2)));
        assert_eq!(look(&word, Shared, 2), LOCK);
        assert_eq!((release(&word, Shared), release(&word, Shared)), (None, None));
        assert_eq!(ask(&word, Exclusive), None);
        assert_eq!(release(&word, Exclusive), None);
        assert_eq!(word.into_inner(), 3 << NEXT | 3 << FRONT);
    }

    #[test]
    fn newcomers_pass_the_queue_for_some_time() {
        for kind in [Exclusive, Shared] {
            let word = free();
            assert_eq!(ask(&word, Exclusive), None);
            let first = ask(&word, kind).expect("a rank holds the lock");
            let second = ask(&word, Exclusive).expect("a rank holds the lock");
            // The first release wakes the first rank, which does not look for a long time.
            assert_eq!(release(&word, Exclusive), Some(first));
            for _ in 0..MOST_PASSES {
                assert_eq!(ask(&word, Exclusive), None);
                assert_eq!(release(&word, Exclusive), None);
            }
            assert!(ask(&word, Exclusive).is_some() && ask(&word, Shared).is_some());
            assert_eq!(look(&word, Exclusive, second), Seen::Nothing);
            let Seen::Lock(shares) = look(&word, kind, first) else { panic!("the lock is free") };
            assert_eq!(shares.is_some(), kind == Shared);
            // Nobody has passed the new first rank yet.
            let _other = release(&word, kind);
            assert_eq!(ask(&word, Exclusive), None);
        }
    }

    #[test]
    fn a_rank_that_looks_in_vain_is_woken_again() {
        let word = free();
        assert_eq!(ask(&word, Exclusive), None);
        let first = ask(&word, Exclusive).expect("a rank holds the lock");
        assert_eq!(release(&word, Exclusive), Some(first));
        assert_eq!(ask(&word, Exclusive), None);
        // Until the first rank looks, nobody wakes it again.
        assert_eq!(release(&word, Exclusive), None);
        assert_eq!(ask(&word, Exclusive), None);
        assert_eq!(look(&word, Exclusive, first), Seen::Nothing);
        assert_eq!(release(&word, Exclusive), Some(first));
        assert_eq!(look(&word, Exclusive, first), LOCK);
    }

    /// Two ranks take locks of these kinds, the first rank one after another; each waits with the queue as `wait.rs`
    /// does, and sleeps until another rank wakes it.
    fn two_ranks(mine: &'static [LockKind], theirs: LockKind) {
        use crate::rma::window::words::model::{ModelWord, explore};
        use loom::cell::UnsafeCell;
        use loom::sync::Arc;
        struct Scene {
            lock: ModelWord,
            queue: [ModelWord; 2],
            /// How often each rank has been woken.
            bells: [ModelWord; 2],
            memory: UnsafeCell<u64>,
        }
        fn wake(scene: &Scene, ticket: Option<u64>) {
            let Some(ticket) = ticket else { return };
            let rank = scene.queue[ticket as usize % 2].value();
            if (1..=2).contains(&rank) {
                let bell = &scene.bells[rank as usize - 1];
                while bell.add_one().is_err() {}
            }
        }
        fn visit(scene: &Scene, rank: usize, kind: LockKind) {
            if let Some(ticket) = ask(&scene.lock, kind) {
                // `wait.rs` stores with the order SeqCst.
                let place = &scene.queue[ticket as usize % 2];
                place.replace(place.value(), rank as u64 + 1).unwrap();
                loop {
                    let bell = scene.bells[rank].value();
                    if let Seen::Lock(next) = look(&scene.lock, kind, ticket) {
                        wake(scene, next);
                        break;
                    }
                    // Sleeps: loom finds a rank that nobody wakes, because it never leaves this loop.
                    while scene.bells[rank].value() == bell {
                        loom::thread::yield_now();
                    }
                }
            }
            match kind {
                // SAFETY: the lock excludes other accesses. Loom reports one if it does not.
                Exclusive => scene.memory.with_mut(|memory| unsafe { *memory += 1 }),
                // SAFETY: the same.
                Shared => scene.memory.with(|memory| assert!(unsafe { *memory } < 4)),
            }
            wake(scene, release(&scene.lock, kind));
        }
        explore(3, move || {
            let word = || ModelWord::new(0);
            let scene = Arc::new(Scene {
                lock: word(),
                queue: [word(), word()],
                bells: [word(), word()],
                memory: UnsafeCell::new(0),
            });
            let other = Arc::clone(&scene);
            let thread = loom::thread::spawn(move || visit(&other, 1, theirs));
            mine.iter().for_each(|kind| visit(&scene, 0, *kind));
            thread.join().unwrap();
        });
    }

    #[test]
    fn loom_exclusive_locks() {
        two_ranks(&[Exclusive], Exclusive);
    }

    /// The first rank passes the other one, which is in the queue.
    #[test]
    fn loom_a_rank_that_passes_the_queue() {
        two_ranks(&[Exclusive, Exclusive], Exclusive);
        two_ranks(&[Shared, Exclusive], Exclusive);
    }

    #[test]
    fn loom_a_shared_and_an_exclusive_lock() {
        two_ranks(&[Shared], Exclusive);
        two_ranks(&[Exclusive], Shared);
    }

    #[test]
    fn loom_shared_locks() {
        two_ranks(&[Shared], Shared);
    }
}
