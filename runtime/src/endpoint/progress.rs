//! The endpoint: the lock that protects all communication of the process, and the code in which calls wait.
//!
//! Every call of `comm/` takes the lock, starts an operation in `engine.rs` or reads its state, runs one
//! turn of progress (one pass over the rings, the queues and the sources), and releases the lock. Operations
//! of other sources (`sources.rs`) start in the same way. All waiting happens in this module (`waiting.rs`):
//!
//! 1. One waiting thread becomes the poller. Each of the other threads sleeps on a bell of its own (`sleepers.rs`). It
//!    is woken when its request has ended, or to poll when the poller stops.
//! 2. The poller runs turns of the message engine and of the sources. It continues as long as data moves,
//!    and for the spin time after data has last moved. It often releases the lock in between, so that other
//!    threads can take it.
//! 3. If a source has a continuation ready (a user's function, a long copy), the thread that finds the continuation
//!    stops polling, runs the continuation without the lock, and then reports that the continuation has ended.
//! 4. After the spin time the poller announces on the shared doorbell that it will sleep, runs one more turn, checks
//!    whether a rank has died, releases the lock, and sleeps until a rank or thread rings. The sleep also ends when a
//!    source wants its next turn, and after [`NAP`] as a safety net. If the spin time is 0, because the ranks share
//!    CPUs, the poller first lets other processes run a few times and looks again (`waiting.rs`).
//!
//! Invariants: no thread holds the lock while it sleeps. A panic under the lock poisons the lock. No turn
//! runs after that, so no call touches the memory of unfinished operations any more.

mod blocking;
mod bonds;
mod described;
mod leaving;
mod messages;
mod operations;
mod packed;
mod policy;
mod record;
mod sleepers;
mod waiting;

use self::bonds::Bonds;
pub use self::packed::Brief;
use self::record::Waits;
pub use self::record::{Awaited, Recorded};
use self::sleepers::{Awaits, Sleepers, ThreadBell};
pub(crate) use self::waiting::{OnUnwind, SPIN, spin_time};
use self::waiting::{Pauses, Yields};
use super::engine::{MessageEngine, Taken};
use super::sources::{Core, Source as ProgressSource};
use crate::message::label::{Label, Sender};
use crate::message::payload::{Posting, SendMode};
use crate::message::{Operation, Status, Tag};
use crate::placement::Cpu;
use crate::process::Process;
use crate::request::private::Reader;
use crate::settings::Forced;
use crate::shm::topology::Parts;
use crate::sys::fork;
use crate::transport::link::fabric::Fabric;
use crate::{Error, ErrorKind, Plan, Result};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{LockResult, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};
use typepack_engine::Elements;

/// Longest time that a thread sleeps. After this time the thread looks again, even if nobody has woken it.
const NAP: Duration = Duration::from_millis(100);

/// The longest sleep of a thread that waits for a change of shared memory while another thread polls.
const OUTSIDE: Duration = Duration::from_micros(200);

#[derive(Debug)]
struct State {
    core: Core,
    sleepers: Sleepers<ThreadBell>,
    closed: bool,
    /// Number of events outside the engine. A waiting thread looks again when this number has changed.
    outside: u64,
    /// Number of `pause` instructions between two reads of shared memory while a thread spins.
    pauses: Pauses,
    /// Whether a thread that does not spin yields before it sleeps.
    yields: Yields,
    /// The waits of this rank that are long, as mpiexec can read them.
    waits: Waits,
    /// Number of times that a thread slept for [`NAP`], and then found news for which nobody had woken it.
    unrung: u64,
    /// The error of a turn that the call which made the turn has not returned, because what the call had started could
    /// not be taken back. The next turn returns the error.
    failed: Option<Error>,
}

impl State {
    /// Returns a count of the events for which a thread may wait, but for which no other rank rings the
    /// doorbell.
    fn news(&self) -> u64 {
        self.core.engine.news().wrapping_add(self.outside)
    }
}

/// This process's connection to the job.
#[derive(Debug)]
pub struct Endpoint {
    fabric: Fabric,
    spin: Duration,
    state: Mutex<State>,
    /// Number of threads that have found the lock taken and wait for it. The poller releases the lock for
    /// these threads.
    wanting: AtomicUsize,
    contexts: AtomicU64,
    /// The communicators with ranks of other worlds, and the way to the launcher.
    bonds: Bonds,
}

impl Endpoint {
    /// Creates an endpoint without messages.
    pub fn new(fabric: Fabric, eager_limit: u64, forced: Forced, spin: Duration) -> Self {
        fork::watch();
        let mut engine = MessageEngine::new(fabric.clone(), eager_limit);
        engine.force(forced);
        Self {
            fabric,
            spin,
            state: Mutex::new(State {
                core: Core::new(engine),
                sleepers: Sleepers::new(),
                closed: false,
                outside: 0,
                pauses: Pauses::default(),
                yields: Yields::default(),
                waits: Waits::default(),
                unrung: 0,
                failed: None,
            }),
            wanting: AtomicUsize::new(0),
            contexts: AtomicU64::new(1),
            bonds: Bonds::default(),
        }
    }

    /// Returns the slot of this rank.
    pub fn rank(&self) -> usize {
        self.fabric.rank()
    }

    /// Returns the slots of the ranks of this rank's world, in the order of the ranks.
    pub fn world(&self) -> Range<usize> {
        self.fabric.world()
    }

    /// Returns the number of slots that processes of the job have taken so far.
    pub fn processes(&self) -> usize {
        self.fabric.processes()
    }

    /// Returns a number that no other job of this machine has, or `None` if no launcher has started this process.
    pub fn job_number(&self) -> Option<u64> {
        self.fabric.job_number()
    }

    /// Returns the CPU to which the process in slot `rank` is bound. Returns `None` if it is not bound to a CPU.
    pub fn cpu_of(&self, rank: usize) -> Option<Cpu> {
        self.fabric.cpu_of(rank)
    }

    /// Returns how this rank reads the private memory of the process in slot `rank`; see [`Fabric::reader_of`].
    pub fn reader_of(&self, rank: usize) -> Option<Reader> {
        self.fabric.reader_of(rank)
    }

    /// Finds out whether this rank can still read the private memory of the process in slot `rank`, because a get has
    /// failed.
    pub fn doubt_reads(&self, rank: usize) {
        self.fabric.doubt_reads(rank);
    }

    /// Returns a new context number, which this rank has given to no other communicator.
    pub fn new_context(&self) -> u64 {
        self.new_contexts(1)
    }

    /// Returns the first of `count` new context numbers that follow each other.
    pub fn new_contexts(&self, count: u64) -> u64 {
        // The counter has 48 bits, enough for nine years at one communicator per microsecond.
        (self.rank() as u64) << 48 | self.contexts.fetch_add(count, Ordering::Relaxed)
    }

    #[inline]
    fn lock(&self) -> Result<MutexGuard<'_, State>> {
        if fork::is_child() {
            // A forked child must not even try the lock, because another thread of the parent may have held
            // it at the fork.
            return Err(refused(ErrorKind::State));
        }
        match self.state.try_lock() {
            Ok(state) if !state.closed => Ok(state),
            Err(TryLockError::WouldBlock) => opened(self.insist()),
            Ok(state) => opened(Ok(state)),
            Err(TryLockError::Poisoned(poisoned)) => opened(Err(poisoned)),
        }
    }

    /// Takes the lock, even if the lock is poisoned or the endpoint is closed. If the poller holds the lock, it notices
    /// that this thread waits, and releases the lock.
    #[cold]
    fn insist(&self) -> LockResult<MutexGuard<'_, State>> {
        self.wanting.fetch_add(1, Ordering::Relaxed);
        let state = self.state.lock();
        self.wanting.fetch_sub(1, Ordering::Relaxed);
        state
    }

    /// Returns whether another thread waits for the lock.
    #[inline]
    fn wanted(&self) -> bool {
        self.wanting.load(Ordering::Relaxed) > 0
    }

    /// Runs a turn after an operation has started (see `MessageEngine::progress_at_start`), unless no operation waits
    /// for a turn. Wakes the threads whose operations may have completed.
    #[inline]
    fn started(&self, state: &mut State, news: u64) -> Result<()> {
        let turned =
            if state.core.is_idle() { Ok(()) } else { state.core.progress_at_start().map(drop) };
        self.notify(state, news);
        turned
    }

    /// Runs the turn that follows the start of an operation that the call cannot take back. If the turn fails, the call
    /// still succeeds, and the next turn returns the error.
    #[inline]
    fn go_on(&self, state: &mut State, news: u64) {
        if let Err(error) = self.started(state, news) {
            state.failed.get_or_insert(error);
        }
    }

    /// Runs a turn for the other operations in a call that completes at once, because every call must make
    /// progress. Runs no turn if no other operation waits for one.
    #[inline]
    fn turn_unless_idle(&self, state: &mut State) -> Result<()> {
        if state.core.is_idle() { Ok(()) } else { self.turn(state) }
    }

    #[inline]
    fn notify(&self, state: &mut State, news: u64) {
        state.wake_sleepers();
        if state.sleepers.polled && (state.news() != news || state.core.has_continuation()) {
            self.fabric.wake_waiting();
        }
    }

    /// Waits until `look` returns an answer. `awaited` says what the call waits for. The endpoint calls `look` often,
    /// and holds the lock during each call. So `look` must be short and must not call this endpoint.
    ///
    /// # Errors
    /// Returns `ErrorKind::ProcAborted` if a rank has died, `ErrorKind::Other` if another rank broke the protocol,
    /// `ErrorKind::NoMemory` if memory ran out, `ErrorKind::State` after finalization or in a forked child, and
    /// `ErrorKind::Internal` after a panic inside the library.
    pub fn attend<R>(
        &self,
        awaited: &Awaited,
        mut look: impl FnMut(&mut MessageEngine) -> Option<R>,
    ) -> Result<R> {
        self.wait_until(self.lock()?, NAP, awaited, |core| look(&mut core.engine))
    }

    /// Waits like [`attend`](Self::attend) until `look` returns an answer. Here the answer comes from another
    /// process, which changes shared memory and then rings this rank ([`ring`](Self::ring)).
    ///
    /// # Errors
    /// Returns an error under the conditions of [`Endpoint::attend`].
    pub fn attend_outside<R>(
        &self,
        awaited: &Awaited,
        mut look: impl FnMut() -> Option<R>,
    ) -> Result<R> {
        // If another thread of this process polls, the doorbell wakes only that thread, which does not know for
        // what this thread waits. So this thread calls `look` often by itself.
        self.wait_until(self.lock()?, OUTSIDE, awaited, |_| look())
    }

    /// Begins a call that may end without a wait: checks that calls are possible, and runs a turn if an
    /// operation needs one.
    ///
    /// # Errors
    /// Returns `ErrorKind::State` after finalization or in a forked child, `ErrorKind::Internal` after a panic inside
    /// the library, and the errors of a turn.
    #[inline]
    pub fn enter(&self) -> Result<()> {
        self.turn_unless_idle(&mut *self.lock()?)
    }

    /// Returns whether a waiting rank sleeps at once and does not spin. `TYPEPACK_SPIN_US` sets the spin time; by
    /// default it is 0 if the job has more ranks than CPUs.
    #[inline]
    pub fn sleeps_at_once(&self) -> bool {
        self.spin().is_zero()
    }

    /// Returns how long a waiting rank spins before it sleeps.
    #[inline]
    fn spin(&self) -> Duration {
        if self.fabric.is_crowded() { Duration::ZERO } else { self.spin }
    }

    /// Returns the parts of the machine that contain all CPUs on which the process in slot `rank` may run, or `None` if no
    /// launcher has started this process.
    pub fn bound_parts(&self, rank: usize) -> Option<Parts> {
        self.fabric.bound_parts(rank)
    }

    /// Returns whether the cores of this rank and of `rank` share no cache.
    pub fn is_far(&self, rank: usize) -> bool {
        self.fabric.is_far(rank)
    }

    /// Wakes `rank` if it sleeps, after a change of memory that it waits for
    /// ([`attend_outside`](Self::attend_outside)).
    pub fn ring(&self, rank: usize) {
        self.fabric.ring(rank);
    }

    /// Runs one turn, and then returns the answer of `look`, if it gives one.
    ///
    /// # Errors
    /// Returns an error under the conditions of [`Endpoint::attend`].
    pub fn poll_briefly<R>(
        &self,
        look: impl FnOnce(&mut MessageEngine) -> Option<R>,
    ) -> Result<Option<R>> {
        let mut state = self.attentive()?;
        let found = look(&mut state.core.engine);
        drop(state);
        if found.is_none() { self.nothing() } else { Ok(found) }
    }

    /// Runs turns until a turn completes no operation, but at most `most` turns. One turn takes only a few messages
    /// from each rank. A caller whose own work grows with the number of its operations calls this function first.
    ///
    /// # Errors
    /// Returns an error under the conditions of [`Endpoint::attend`].
    pub fn catch_up(&self, most: usize) -> Result<()> {
        let mut before = self.lock()?.news();
        for _ in 0..most {
            let now = self.attentive()?.news();
            if now == before {
                break;
            }
            before = now;
        }
        Ok(())
    }

    /// Returns the result of a call that has found nothing and does not wait: `None`, or an error if a rank has died.
    /// The program will probably repeat the call. So if waiting ranks do not spin, because the ranks share CPUs, this
    /// function first yields the CPU. Then the rank whose message the program expects can run.
    fn nothing<R>(&self) -> Result<Option<R>> {
        if self.spin().is_zero() {
            std::thread::yield_now();
        }
        self.fabric.failure().map_or(Ok(None), Err)
    }

    /// Calls `change` with the engine. Then wakes the waiting threads, so that they look again.
    ///
    /// # Errors
    /// Returns `ErrorKind::State` after finalization or in a forked child, and `ErrorKind::Internal` after a panic.
    pub fn change<R>(&self, change: impl FnOnce(&mut MessageEngine) -> R) -> Result<R> {
        let mut state = self.lock()?;
        let news = state.news();
        let result = change(&mut state.core.engine);
        state.sleepers.wake(|_| true);
        self.notify(&mut state, news);
        Ok(result)
    }

    /// Reports an event that happened outside the engine. A thread may wait for such an event in
    /// [`Endpoint::attend`].
    pub fn wake_poller(&self) {
        // If the lock cannot be taken (in a forked child, after finalization, or because it is poisoned), no
        // thread waits any more.
        if let Ok(mut state) = self.lock() {
            let news = state.news();
            state.outside += 1;
            state.sleepers.wake(|_| true);
            self.notify(&mut state, news);
        }
    }

    /// Runs the turn that follows the start of an operation, whose number is `pending` unless the operation is
    /// complete. If the turn fails, the caller never learns the number, so this function detaches the operation from
    /// its memory.
    #[inline]
    fn settle(&self, state: &mut State, news: u64, pending: Option<u64>) -> Result<()> {
        if let Err(error) = self.started(state, news) {
            if let Some(id) = pending {
                // The detach succeeds at once, because the operation has just started and no thread can have
                // taken one of its continuations.
                state.core.detach(id);
            }
            return Err(error);
        }
        Ok(())
    }

    /// Detaches an operation from its memory; see [`MessageEngine::detach`].
    pub fn detach(&self, id: u64) {
        if fork::is_child() {
            // In a forked child, the memory is the child's private copy. No other rank knows this copy, so
            // there is nothing to detach.
            return;
        }
        self.let_go(|core| core.detach(id));
    }

    /// Calls `let_go` until it returns true. `let_go` detaches an operation from its memory. This function
    /// must also work after finalization or a panic, when no turns run any more, because another rank may
    /// still be reading or writing the memory for a shared copy.
    pub fn let_go(&self, mut let_go: impl FnMut(&mut Core) -> bool) {
        if fork::is_child() {
            // A forked child must not take the lock, because another thread of the parent may have held it
            // at the fork.
            return;
        }
        let mut state = self.insist().unwrap_or_else(PoisonError::into_inner);
        let news = state.news();
        while !let_go(&mut state.core) {
            // `let_go` has returned false: another thread of this process is running a continuation of the operation, which
            // uses the operation's memory without the lock. That thread wakes this one when the continuation has ended.
            state =
                self.doze(state, Awaits::Continuation, NAP).unwrap_or_else(PoisonError::into_inner);
        }
        self.notify(&mut state, news);
    }

    /// Runs one turn. A program calls this function between the parts of a long computation.
    ///
    /// # Errors
    /// Returns an error under the conditions of [`Endpoint::attend`].
    pub fn progress(&self) -> Result<()> {
        drop(self.attentive()?);
        self.fabric.failure().map_or(Ok(()), Err)
    }

    /// Returns the counters of sent messages.
    ///
    /// # Errors
    /// Returns `ErrorKind::State` after finalization or in a forked child, and `ErrorKind::Internal` after a panic.
    pub fn traffic(&self) -> Result<crate::endpoint::engine::Traffic> {
        Ok(self.lock()?.core.engine.traffic())
    }

    /// Calls `look` with the engine, also after finalization and after a panic. Returns `None` in a forked child.
    pub fn inspect<R>(&self, look: impl FnOnce(&MessageEngine) -> R) -> Option<R> {
        if fork::is_child() {
            // Another thread of the parent may have held the lock at the fork.
            return None;
        }
        let state = self.insist().unwrap_or_else(PoisonError::into_inner);
        Some(look(&state.core.engine))
    }

    /// Returns the same as [`unrung`](Self::unrung), also after finalization and after a panic; `None` in a forked child.
    pub fn late_news(&self) -> Option<u64> {
        if fork::is_child() {
            return None;
        }
        let state = self.insist().unwrap_or_else(PoisonError::into_inner);
        Some(state.unrung + state.sleepers.missed)
    }

    /// Returns how many times a thread slept for its whole time limit, and then found news for which no other rank or
    /// thread had woken it. If other ranks share its CPU, a rank that is about to wake this rank may be late, so the
    /// number may be above 0 without a fault.
    ///
    /// # Errors
    /// Returns `ErrorKind::State` after finalization or in a forked child, and `ErrorKind::Internal` after a panic.
    pub fn unrung(&self) -> Result<u64> {
        let state = self.lock()?;
        Ok(state.unrung + state.sleepers.missed)
    }
}

/// Returns the lock if calls are still possible.
#[cold]
#[inline(never)]
fn opened(state: LockResult<MutexGuard<'_, State>>) -> Result<MutexGuard<'_, State>> {
    let state = state.map_err(|_| refused(ErrorKind::Internal))?;
    if state.closed {
        return Err(Error::new(ErrorKind::State, "universe", "the library has been finalized"));
    }
    Ok(state)
}

/// Returns the error for a call that cannot take the lock because this process is a forked child or because
/// the lock is poisoned.
#[cold]
fn refused(kind: ErrorKind) -> Error {
    match kind {
        ErrorKind::State => Error::new(
            kind,
            "process",
            "a forked child of a rank cannot communicate; it may exec or exit",
        ),
        _ => Error::new(
            kind,
            "endpoint",
            "an earlier panic inside the library has ended all communication of this process",
        ),
    }
}

#[cfg(test)]
#[path = "../../tests/units/endpoint/progress.rs"]
mod tests;
