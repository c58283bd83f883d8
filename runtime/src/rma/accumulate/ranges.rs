//! Locks of ranges of a target's memory, for updates that no instruction of the processor makes atomic.
//!
//! A lock of a range is a word: 0 if nobody holds the lock, else the holder's rank in the world plus one. If the holder
//! has died or has left the job, or if the job has no rank of this number, a rank that waits for the lock gets an
//! error: nobody releases the lock, and a dead holder may have updated only a part of an element.

use crate::comm::Communicator;
use crate::endpoint::progress::Recorded;
use crate::memory;
use crate::process::Process;
use crate::rma::window::words::{RANGE_LOCKS, Word, Words};
use crate::shm::layout::State;
use crate::shm::waiting::Kind;
use crate::transport::link::failure::await_end;
use crate::{Error, ErrorKind, Result};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Binary logarithm of the length in bytes of a range of memory. All elements that begin in one range have the same
/// lock.
pub(in crate::rma) const RANGE: u32 = 12;

/// Number of times that a rank looks at a word before it looks whether the rank that the word names lives.
const LOOKS: u32 = 1000;

/// The pauses of a rank that waits for a word which another rank holds for the time of a few thousand bytes at most. If
/// the word stays as it is, that rank may not be running.
pub(in crate::rma) struct Pauses(u32);

impl Pauses {
    /// The first pauses are short only if this rank `may_spin`.
    pub fn new(may_spin: bool) -> Self {
        Self(if may_spin { 0 } else { LOOKS })
    }

    /// Returns whether this rank has waited so long that the other rank may have died.
    pub fn are_long(&self) -> bool {
        self.0 > LOOKS
    }

    /// Waits a short time.
    pub fn pause(&mut self) {
        self.0 = self.0.saturating_add(1);
        match self.0 {
            0..=LOOKS => std::hint::spin_loop(),
            n if n <= LOOKS + 100 => std::thread::yield_now(),
            _ => std::thread::sleep(Duration::from_micros(50)),
        }
    }
}

/// How this rank waits for a lock.
#[derive(Clone, Copy)]
pub(in crate::rma) struct Patience<'a> {
    /// This rank in the world.
    own: usize,
    may_spin: bool,
    /// The communicator and the target, to describe a long wait for mpiexec; `None` under the endpoint's lock.
    record: Option<(&'a Communicator, usize)>,
}

impl<'a> Patience<'a> {
    /// The patience of a call that waits for a lock of the memory of `target`.
    pub fn new(comm: &'a Communicator, target: usize) -> Self {
        let endpoint = comm.endpoint();
        let may_spin = !endpoint.sleeps_at_once();
        Self { own: endpoint.rank(), may_spin, record: Some((comm, target)) }
    }

    /// Returns this rank in the world.
    pub fn own(&self) -> usize {
        self.own
    }

    /// The patience of a thread that holds the lock of the endpoint of rank `own`.
    pub fn under_lock(own: usize) -> Self {
        Self { own, may_spin: false, record: None }
    }
}

/// The record of a long wait, for mpiexec's watch. It ends when the value is dropped.
pub(in crate::rma) struct LongWait<'a> {
    patience: Patience<'a>,
    recorded: Option<Recorded<'a>>,
}

impl<'a> LongWait<'a> {
    /// A wait that is not long yet.
    pub fn new(patience: Patience<'a>) -> Self {
        Self { patience, recorded: None }
    }

    /// Returns whether the wait has been described. Its description ends under the endpoint's lock.
    pub fn is_described(&self) -> bool {
        self.recorded.is_some()
    }

    /// Says that this rank looks again. The first call describes the wait.
    #[cold]
    pub fn look(&mut self) {
        match (&self.recorded, self.patience.record) {
            (Some(recorded), _) => recorded.look(),
            (None, Some((comm, target))) => {
                let awaited = comm.awaited("", Kind::Window, Some(target));
                self.recorded = Some(comm.endpoint().record_wait(&awaited));
            }
            (None, None) => {}
        }
    }
}

/// Returns the state of a rank of the world; `None` if there is no such rank. `own` is this rank.
pub(in crate::rma) fn state_of(rank: usize, own: usize) -> Option<State> {
    // Without heaps, the job has one rank, which has not died.
    match memory::heaps() {
        Some(heaps) => (rank < heaps.ranks()).then(|| heaps.state(rank)),
        None => (rank == own).then_some(State::Registered),
    }
}

/// Returns the number of the lock for the range in which byte `offset` of a target's memory lies.
pub(in crate::rma) fn range_of(offset: i64) -> usize {
    (offset >> RANGE) as usize % RANGE_LOCKS
}

/// A lock of a range, which this rank holds until the value is dropped. If the wait for it was long, its record ends
/// only after the lock is released: it ends under the endpoint's lock, and another thread of this rank may wait for
/// this lock while it holds that one.
pub(in crate::rma) struct Held<'a> {
    word: &'a AtomicU64,
    _recorded: Option<Recorded<'a>>,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.word.store(0, Ordering::Release);
    }
}

/// Takes the lock with this number.
///
/// # Errors
/// Returns the errors of `hold_word`.
pub(in crate::rma) fn hold<'a>(
    words: &'a Words,
    target: usize,
    number: usize,
    patience: Patience<'a>,
) -> Result<Held<'a>> {
    let word = words.get(target, Word::Range(number))?;
    hold_word(word, patience, |rank| state_of(rank, patience.own))
}

/// Takes the lock `word`. `state` returns the state of a rank of the world, or `None` if there is no such rank.
///
/// # Errors
/// Returns `ErrorKind::ProcAborted` if the holder of the lock has died, and `ErrorKind::Other` if the word names a rank
/// that has left the job or that does not exist.
fn hold_word<'a>(
    word: &'a AtomicU64,
    patience: Patience<'a>,
    state: impl Fn(usize) -> Option<State>,
) -> Result<Held<'a>> {
    let mine = patience.own as u64 + 1;
    let mut pauses = Pauses::new(patience.may_spin);
    let mut wait = LongWait::new(patience);
    loop {
        // The caller may look at the mode next (`mechanism.rs`), after all ranks can see the lock.
        match word.compare_exchange_weak(0, mine, Ordering::SeqCst, Ordering::Relaxed) {
            Ok(_) => return Ok(Held { word, _recorded: wait.recorded }),
            Err(0) => continue,
            Err(owner) if pauses.are_long() => {
                wait.look();
                let holder = usize::try_from(owner - 1).ok();
                let state = holder.and_then(&state);
                // A rank that leaves the job releases its locks first. So look at the word again after the state has
                // been read.
                let is_released = || word.load(Ordering::Relaxed) != owner;
                if !matches!(state, Some(State::Started | State::Registered)) && !is_released() {
                    return Err(abandoned(owner, state));
                }
            }
            Err(_) => {}
        }
        pauses.pause();
    }
}

/// Returns the error for a lock that nobody releases. `owner` is the value of the lock's word, and `state` the state of
/// the rank that the word names.
#[cold]
fn abandoned(owner: u64, state: Option<State>) -> Error {
    // If there is a state, the word names a slot.
    let who = Process::new((owner - 1) as usize);
    let (kind, detail) = match state {
        Some(State::Dead) => {
            if memory::heaps().is_some_and(|heaps| heaps.job_ends()) {
                await_end();
            }
            (ErrorKind::ProcAborted, format!("{who} died in an update of this memory"))
        }
        Some(_) => {
            let detail = format!("{who} has left the job, but its lock is taken");
            (ErrorKind::Other, detail)
        }
        None => (ErrorKind::Other, format!("a lock of this memory has the value {owner:#x}")),
    };
    Error::new(kind, "target_rank", detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that a rank does not wait for a lock that nobody releases, whatever a faulty rank has written into the
    /// word of the lock.
    #[test]
    fn a_lock_that_nobody_releases_is_an_error() {
        let states = [State::Registered, State::Dead, State::Finalized];
        let state = |rank: usize| states.get(rank).copied();
        let refused = |value: u64, may_spin: bool| {
            let word = AtomicU64::new(value);
            let patience = Patience { own: 0, may_spin, record: None };
            let kind = hold_word(&word, patience, state).map(drop).map_err(|error| error.kind());
            assert_eq!(word.load(Ordering::Relaxed), if kind.is_ok() { 0 } else { value });
            kind
        };
        for may_spin in [false, true] {
            assert_eq!(refused(0, may_spin), Ok(()));
            assert_eq!(refused(2, may_spin), Err(ErrorKind::ProcAborted));
            assert_eq!(refused(3, may_spin), Err(ErrorKind::Other));
            for value in [4, 1 << 32, u64::MAX - 1, u64::MAX] {
                assert_eq!(refused(value, may_spin), Err(ErrorKind::Other), "{value:#x}");
            }
        }
    }
}
