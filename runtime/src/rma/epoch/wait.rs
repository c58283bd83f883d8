//! Waiting for other ranks: the meeting of all ranks of a window, the lock of a window, and counters that other
//! ranks count up.
//!
//! A rank that changes a word rings the rank that may wait for it (`Endpoint::ring`). A rank that waits for a word
//! waits in the endpoint: there the rank makes progress, sleeps after a while, and gets an error if a rank has died. A
//! rank whose memory needs no requests reads the word a few times before that.
//!
//! The ranks meet in rounds: in round `k`, rank `r` writes the number of the meeting into the block of rank `r + 2^k`,
//! and waits until rank `r - 2^k` has written the number into the block of `r` (both modulo the number of ranks). So
//! every rank knows after the last round that all ranks have come.

use super::lock::{self, LockKind, Seen};
use crate::comm::Communicator;
use crate::rma::window::words::{SharedWord, Word, Words};
use crate::shm::waiting::Kind;
use crate::{ErrorKind, Result};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Number of times that a rank looks at a word before it waits in the endpoint, unless other ranks may need its help
/// meanwhile.
const LOOKS: u32 = 200;

/// The count of the meetings of a window's ranks.
#[derive(Debug)]
pub(in crate::rma) struct Meetings {
    /// The number of the last meeting.
    last: AtomicU64,
}

impl Meetings {
    pub fn new() -> Self {
        Self { last: AtomicU64::new(0) }
    }

    /// Waits until all ranks have called this function. `serves` says whether this rank serves requests. What a rank
    /// has stored before the call is visible to every rank after the call. Collective.
    ///
    /// # Errors
    /// Returns `ErrorKind::ProcAborted` if a rank has died.
    pub fn meet(&self, comm: &Communicator, words: &Words, serves: bool) -> Result<()> {
        self.meet_as(comm, words, serves, None).map(drop)
    }

    /// Waits like [`meet`](Self::meet). `refuses` says whether this rank refuses the step `step` of what the ranks meet
    /// for. Returns the lowest rank that has refused.
    ///
    /// All ranks make this call with meetings for the same purpose: for step 0, then, if no rank has refused, for step
    /// 1, and then never again if no rank has refused that one. After a refusal they begin with step 0 again. So while
    /// a rank looks for refusals of a meeting, another one can be at a later meeting for the same step only if it has
    /// been told of a refusal of this one.
    ///
    /// # Errors
    /// Returns `ErrorKind::ProcAborted` if a rank has died.
    pub fn agree(
        &self,
        comm: &Communicator,
        words: &Words,
        serves: bool,
        step: usize,
        refuses: bool,
    ) -> Result<Option<usize>> {
        let number = self.meet_as(comm, words, serves, refuses.then_some(step))?;
        for rank in 0..comm.size() {
            if has_come(words.get(rank, Word::Refusal(step))?, number) {
                return Ok(Some(rank));
            }
        }
        Ok(None)
    }

    /// Waits until all ranks have called this function. `refused` is the step that this rank refuses. Returns the
    /// number of the meeting.
    fn meet_as(
        &self,
        comm: &Communicator,
        words: &Words,
        serves: bool,
        refused: Option<usize>,
    ) -> Result<u64> {
        let (size, rank) = (comm.size(), comm.rank());
        let number = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        if let Some(step) = refused {
            announce(words.get(rank, Word::Refusal(step))?, number);
        }
        for round in 0..words.rounds() {
            let to = (rank + (1 << round)) % size;
            announce(words.get(to, Word::Round(round))?, number);
            ring(comm, to)?;
            let word = words.get(rank, Word::Round(round))?;
            // The other rank may be ahead, and may have written the number of a later meeting already.
            until(comm, ("", None), serves, || has_come(word, number))?;
        }
        Ok(number)
    }
}

/// Tells the rank that waits for `word` that this rank has come for the time `count`. What this rank has stored
/// before is visible to that rank when it has seen the count ([`has_come`]).
#[inline]
pub(in crate::rma) fn announce(word: &impl SharedWord, count: u64) {
    word.set(count);
}

/// Returns whether another rank has announced the count, or a later one.
#[inline]
pub(in crate::rma) fn has_come(word: &impl SharedWord, count: u64) -> bool {
    word.value() >= count
}

/// Wakes a rank of the window if it sleeps.
///
/// # Errors
/// Returns `ErrorKind::Rank` if there is no such rank.
pub(in crate::rma) fn ring(comm: &Communicator, rank: usize) -> Result<()> {
    if rank != comm.rank() {
        comm.endpoint().ring(comm.world_rank(rank, "rank", ErrorKind::Rank)?);
    }
    Ok(())
}

/// Waits until `is_over` returns true. `method` is the name of the method that waits, or empty, and `peer` is the rank
/// for which it waits, if it is a single one. `serves` says whether this rank serves requests: if it does, the rank
/// that will change the word may wait for this rank.
///
/// # Errors
/// Returns `ErrorKind::ProcAborted` if a rank has died.
pub(in crate::rma) fn until(
    comm: &Communicator,
    (method, peer): (&'static str, Option<usize>),
    serves: bool,
    mut is_over: impl FnMut() -> bool,
) -> Result<()> {
    if is_over() {
        return Ok(());
    }
    if !serves && !comm.endpoint().sleeps_at_once() {
        for _ in 0..LOOKS {
            std::hint::spin_loop();
            if is_over() {
                return Ok(());
            }
        }
    }
    let awaited = comm.awaited(method, Kind::Window, peer);
    comm.endpoint().attend_outside(&awaited, || is_over().then_some(()))
}

/// Waits until `is_over` returns true, but no longer than until `end`, and without sleep. Returns whether it has.
///
/// # Errors
/// Returns the errors of a turn of progress.
pub(in crate::rma) fn until_briefly(
    comm: &Communicator,
    end: Instant,
    is_over: impl FnMut() -> bool,
) -> Result<bool> {
    comm.endpoint().look_outside(end, is_over)
}

/// Waits for the lock of the memory at rank `target`. `serves` says whether this rank serves requests.
///
/// # Errors
/// Returns `ErrorKind::ProcAborted` if a rank has died, for example the holder of the lock.
pub(in crate::rma) fn lock(
    comm: &Communicator,
    words: &Words,
    target: usize,
    kind: LockKind,
    serves: bool,
) -> Result<()> {
    let word = words.get(target, Word::Lock)?;
    let Some(ticket) = lock::ask(word, kind) else { return Ok(()) };
    words.get(target, Word::Queue(ticket))?.store(comm.rank() as u64 + 1, Ordering::SeqCst);
    let mut next = None;
    let is_over = || match lock::look(word, kind, ticket) {
        Seen::Nothing => false,
        Seen::Lock(ticket) => {
            next = ticket;
            true
        }
    };
    until(comm, ("Window::lock", Some(target)), serves, is_over)?;
    wake(comm, words, target, next)
}

/// Releases the lock of the memory at rank `target`.
///
/// # Errors
/// Returns `ErrorKind::Internal` if the window has no such lock.
pub(in crate::rma) fn unlock(
    comm: &Communicator,
    words: &Words,
    target: usize,
    kind: LockKind,
) -> Result<()> {
    let next = lock::release(words.get(target, Word::Lock)?, kind);
    wake(comm, words, target, next)
}

/// Wakes the rank in the queue of the lock that has this ticket, if any.
fn wake(comm: &Communicator, words: &Words, target: usize, ticket: Option<u64>) -> Result<()> {
    let Some(ticket) = ticket else { return Ok(()) };
    let who = words.get(target, Word::Queue(ticket))?.load(Ordering::SeqCst);
    // The rank may not have written its number yet. Then it looks at the lock after it has written the number.
    match usize::try_from(who) {
        Ok(who) if (1..=comm.size()).contains(&who) => ring(comm, who - 1),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::{announce, has_come};
    use crate::rma::window::words::model::{ModelWord, explore};
    use loom::cell::UnsafeCell;
    use loom::sync::Arc;

    /// Checks that the accesses of the epochs between start and complete come after the stores of the target before
    /// post, and before the loads of the target after wait. Loom reports accesses that are not ordered.
    #[test]
    fn loom_post_start_complete_wait() {
        const EPOCHS: u64 = 2;
        fn await_count(word: &ModelWord, count: u64) {
            while !has_come(word, count) {
                loom::thread::yield_now();
            }
        }
        explore(3, || {
            let scene = Arc::new((ModelWord::new(0), ModelWord::new(0), UnsafeCell::new(0)));
            let theirs = Arc::clone(&scene);
            let origin = loom::thread::spawn(move || {
                let (posted, completed, memory) = &*theirs;
                for count in 1..=EPOCHS {
                    await_count(posted, count);
                    // SAFETY: the target does not access the memory between post and wait.
                    memory.with_mut(|memory| unsafe { *memory += count });
                    announce(completed, count);
                }
            });
            let (posted, completed, memory) = &*scene;
            let mut sum = 0;
            for count in 1..=EPOCHS {
                // SAFETY: the origin does not access the memory before post.
                memory.with_mut(|memory| unsafe { *memory += 10 });
                announce(posted, count);
                await_count(completed, count);
                sum += 10 + count;
                // SAFETY: the origin does not access the memory after its complete.
                memory.with(|memory| assert_eq!(unsafe { *memory }, sum));
            }
            origin.join().unwrap();
        });
    }
}
