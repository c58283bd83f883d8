//! The lock of a window: one word, in the block of the rank whose memory the lock protects.
//!
//! The lock is fair: ranks get it in the order in which they have asked for it. It may be shared by several ranks,
//! or held by one rank exclusively. The word has three counters:
//!
//! - `next`: the number of tickets that have been taken. Each request takes one.
//! - `readers`: a request for a shared lock has the lock if this counter has reached its ticket. The request then adds
//!   one to the counter, so that the next request may share the lock.
//! - `free`: a request for an exclusive lock has the lock if this counter has reached its ticket.
//!
//! A release adds one to `free`. The release of an exclusive lock also adds one to `readers`. If nobody holds the lock,
//! one atomic operation takes it. This file changes the word and never waits; `wait.rs` waits.

use super::words::SharedWord;

/// Number of bits of a counter. A rank has at most one request for a lock at a time, and there are fewer ranks than
/// values of a counter. So no two requests that wait or hold the lock have the same ticket.
const BITS: u32 = 20;
const MASK: u64 = (1 << BITS) - 1;
const NEXT: u32 = 0;
const READERS: u32 = BITS;
const FREE: u32 = 2 * BITS;

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

/// Returns `word` with one added to the counter `field`. The counters wrap.
fn more(word: u64, field: u32) -> u64 {
    let value = (get(word, field) + 1) & MASK;
    word & !(MASK << field) | value << field
}

fn change(word: &impl SharedWord, mut to: impl FnMut(u64) -> u64) -> (u64, u64) {
    let mut old = word.value();
    loop {
        let new = to(old);
        match word.replace(old, new) {
            Ok(()) => return (old, new),
            Err(now) => old = now,
        }
    }
}

/// A request for a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ticket {
    pub number: u64,
    pub granted: bool,
}

/// Asks for the lock. If the ticket is not granted, the caller waits until [`is_granted`].
pub(super) fn ask(word: &impl SharedWord, kind: LockKind) -> Ticket {
    let granted = |old: u64| match kind {
        LockKind::Shared => get(old, READERS) == get(old, NEXT),
        LockKind::Exclusive => get(old, FREE) == get(old, NEXT),
    };
    let (old, _) = change(word, |old| {
        let new = more(old, NEXT);
        if kind == LockKind::Shared && granted(old) { more(new, READERS) } else { new }
    });
    Ticket { number: get(old, NEXT), granted: granted(old) }
}

/// Returns whether a request that was not granted at first has the lock now. After this function has returned true, the
/// caller must not call it again for the ticket.
pub(super) fn is_granted(word: &impl SharedWord, kind: LockKind, ticket: u64) -> bool {
    match kind {
        LockKind::Exclusive => get(word.value(), FREE) == ticket,
        LockKind::Shared => {
            if get(word.value(), READERS) != ticket {
                return false;
            }
            // While `readers` equals this ticket, only the rank with the ticket changes `readers`.
            change(word, |old| more(old, READERS));
            true
        }
    }
}

/// Releases the lock.
pub(super) fn release(word: &impl SharedWord, kind: LockKind) {
    change(word, |old| match kind {
        LockKind::Shared => more(old, FREE),
        LockKind::Exclusive => more(more(old, FREE), READERS),
    });
}

/// Returns the ticket of the request that may have the lock next, if a request waits. If a rank holds the lock
/// exclusively, returns the ticket of that rank. Whoever has changed the word wakes the rank of the returned ticket.
pub(super) fn waiting(word: &impl SharedWord) -> Option<u64> {
    let word = word.value();
    // A request that waits, or that holds the lock exclusively, has a ticket that `readers` has not passed. The first
    // such ticket is `readers` itself.
    let first = get(word, READERS);
    (first != get(word, NEXT)).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use LockKind::{Exclusive, Shared};
    use std::sync::atomic::AtomicU64;

    #[test]
    fn requests_are_granted_in_their_order() {
        // The counters are about to wrap.
        let word = AtomicU64::new(MASK << NEXT | MASK << READERS | MASK << FREE);
        let ask = |kind| ask(&word, kind);
        let reader = ask(Shared);
        assert_eq!(reader, Ticket { number: MASK, granted: true });
        assert!(ask(Shared).granted);
        let writer = ask(Exclusive);
        assert_eq!(writer, Ticket { number: 1, granted: false });
        // A reader that comes after the writer waits for the writer.
        let late = ask(Shared);
        assert!(!late.granted);
        let last = ask(Exclusive);
        assert_eq!(waiting(&word), Some(writer.number));
        release(&word, Shared);
        assert!(!is_granted(&word, Exclusive, writer.number));
        release(&word, Shared);
        assert!(is_granted(&word, Exclusive, writer.number));
        assert!(!is_granted(&word, Shared, late.number));
        release(&word, Exclusive);
        assert_eq!(waiting(&word), Some(late.number));
        assert!(is_granted(&word, Shared, late.number));
        assert_eq!(waiting(&word), Some(last.number));
        assert!(!is_granted(&word, Exclusive, last.number));
        release(&word, Shared);
        assert!(is_granted(&word, Exclusive, last.number));
        release(&word, Exclusive);
        assert!(ask(Exclusive).granted);
        release(&word, Exclusive);
        assert_eq!(waiting(&word), None);
    }

    /// Two ranks take the lock of these kinds; each waits with the queue as `wait.rs` does, and sleeps until another
    /// rank wakes it.
    fn two_ranks(mine: LockKind, theirs: LockKind) {
        use crate::rma::words::model::{ModelWord, explore};
        use loom::cell::UnsafeCell;
        use loom::sync::Arc;
        struct Scene {
            lock: ModelWord,
            queue: [ModelWord; 2],
            /// How often each rank has been woken.
            bells: [ModelWord; 2],
            memory: UnsafeCell<u64>,
        }
        fn wake(scene: &Scene) {
            let Some(ticket) = waiting(&scene.lock) else { return };
            let rank = scene.queue[ticket as usize % 2].value();
            if (1..=2).contains(&rank) {
                let bell = &scene.bells[rank as usize - 1];
                while bell.add_one().is_err() {}
            }
        }
        fn visit(scene: &Scene, rank: usize, kind: LockKind) {
            let ticket = ask(&scene.lock, kind);
            if !ticket.granted {
                // `wait.rs` stores with the order SeqCst.
                let place = &scene.queue[ticket.number as usize % 2];
                place.replace(place.value(), rank as u64 + 1).unwrap();
                loop {
                    let bell = scene.bells[rank].value();
                    if is_granted(&scene.lock, kind, ticket.number) {
                        break;
                    }
                    // Sleeps: loom finds a rank that nobody wakes, because it never leaves this loop.
                    while scene.bells[rank].value() == bell {
                        loom::thread::yield_now();
                    }
                }
                if kind == Shared {
                    wake(scene);
                }
            }
            match kind {
                // SAFETY: the lock excludes other accesses. Loom reports one if it does not.
                Exclusive => scene.memory.with_mut(|memory| unsafe { *memory += 1 }),
                // SAFETY: the same.
                Shared => scene.memory.with(|memory| assert!(unsafe { *memory } < 3)),
            }
            release(&scene.lock, kind);
            wake(scene);
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
            visit(&scene, 0, mine);
            thread.join().unwrap();
        });
    }

    #[test]
    fn loom_exclusive_locks() {
        two_ranks(Exclusive, Exclusive);
    }

    #[test]
    fn loom_a_shared_and_an_exclusive_lock() {
        two_ranks(Shared, Exclusive);
    }

    #[test]
    fn loom_shared_locks() {
        two_ranks(Shared, Shared);
    }
}
