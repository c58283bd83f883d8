//! The endpoint: one lock per process, and how a call waits.
//!
//! Every operation of `comm/` takes the lock, starts or looks at something in `engine.rs`,
//! gives it a turn, and lets go; what else is driven (`sources.rs`) is started the same way. Waiting
//! happens here and nowhere else:
//!
//! 1. One waiting thread becomes the poller; the others sleep on a condition variable and are
//!    called when the poller has moved something, or leaves.
//! 2. The poller gives turns to messages and sources. While something moves, or for the spin time after it last
//!    did, it goes on (with the lock, in short bursts).
//! 3. Where a source has an errand ready (a user's function, a long copy), whoever finds it leaves
//!    the poller's place, runs it without the lock, and reports.
//! 4. It announces sleep on the shared doorbell, turns once more, looks at the failure epoch, lets
//!    the lock go, and sleeps until somebody rings. The timeout is a safety net, not the mechanism.
//!
//! Invariants: nobody holds the lock while asleep; a panic under the lock poisons it, and then no
//! turn ever runs again, so that memory of unfinished operations is no longer touched.

mod waiting;

use self::waiting::{rest, rests};
use super::engine::{Glance, How, MessageEngine, Taken};
use super::sources::{Core, Source as ProgressSource};
use crate::message::envelope::Label;
use crate::message::payload::{LayoutRef, Posting};
use crate::message::{Operation, Source, Status, Tag};
use crate::settings::Forced;
use crate::sys::fork;
use crate::transport::fabric::Fabric;
use crate::{Error, ErrorKind, Result};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, LockResult, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

/// Looks of a blocking receive straight into the ring, before it is posted like any other.
const GLANCES: usize = 64;

/// How long a sleeper believes in being called, at most.
const NAP: Duration = Duration::from_millis(100);

#[derive(Debug)]
struct State {
    core: Core,
    /// A thread is polling, or asleep on the doorbell.
    polled: bool,
    /// Threads on the condition variable.
    sleepers: usize,
    closed: bool,
    /// What was completed outside the exchange: counted, so that waiters look again.
    outside: u64,
    /// As [`rests`] says.
    rests: usize,
}

impl State {
    /// Changes when a waiter may find something that no other rank rings for.
    fn news(&self) -> u64 {
        self.core.engine.news().wrapping_add(self.outside)
    }
}

/// This process's end of the job.
#[derive(Debug)]
pub struct Endpoint {
    fabric: Fabric,
    spin: Duration,
    state: Mutex<State>,
    called: Condvar,
    /// Threads that found the lock taken: the poller lets it go for them.
    wanting: AtomicUsize,
    contexts: AtomicU64,
}

impl Endpoint {
    /// An endpoint without messages.
    pub fn new(fabric: Fabric, eager_limit: u64, forced: Forced, spin: Duration) -> Self {
        fork::watch();
        let mut exchange = MessageEngine::new(fabric.clone(), eager_limit);
        exchange.force(forced);
        Self {
            fabric,
            spin,
            state: Mutex::new(State {
                core: Core::new(exchange),
                polled: false,
                sleepers: 0,
                closed: false,
                outside: 0,
                rests: rests(),
            }),
            called: Condvar::new(),
            wanting: AtomicUsize::new(0),
            contexts: AtomicU64::new(1),
        }
    }

    /// Compares the types of messages and receives, from now on.
    ///
    /// # Errors
    /// A forked child.
    pub fn check_types(&self) -> Result<()> {
        self.change(MessageEngine::check_types)
    }

    /// This rank.
    pub fn rank(&self) -> usize {
        self.fabric.rank()
    }

    /// Number of ranks.
    pub fn size(&self) -> usize {
        self.fabric.size()
    }

    /// A communicator number that no other communicator led by this rank has.
    pub fn new_context(&self) -> u64 {
        // 48 bits: one every microsecond for nine years.
        (self.rank() as u64) << 48 | self.contexts.fetch_add(1, Ordering::Relaxed)
    }

    #[inline]
    fn lock(&self) -> Result<MutexGuard<'_, State>> {
        if fork::is_child() {
            // Before the lock: another thread of the parent may have held it at the fork.
            return Err(refused(ErrorKind::State));
        }
        let state = match self.state.try_lock() {
            Ok(state) => state,
            Err(TryLockError::WouldBlock) => self.queue_up()?,
            Err(TryLockError::Poisoned(_)) => return Err(refused(ErrorKind::Internal)),
        };
        if state.closed {
            return Err(Error::new(ErrorKind::State, "universe", "it has been finalized"));
        }
        Ok(state)
    }

    /// The lock, when another thread has it; a poller is asked for it.
    #[cold]
    fn queue_up(&self) -> Result<MutexGuard<'_, State>> {
        self.insist().map_err(|_| refused(ErrorKind::Internal))
    }

    /// The lock, whatever has become of the endpoint.
    fn insist(&self) -> LockResult<MutexGuard<'_, State>> {
        self.wanting.fetch_add(1, Ordering::Relaxed);
        let state = self.state.lock();
        self.wanting.fetch_sub(1, Ordering::Relaxed);
        state
    }

    /// Whether another thread waits for the lock.
    #[inline]
    fn wanted(&self) -> bool {
        self.wanting.load(Ordering::Relaxed) > 0
    }

    /// Something was started: gives it a turn and calls whoever may have got what it waits for.
    #[inline]
    fn started(&self, state: &mut State, news: u64) -> Result<()> {
        if !state.core.is_idle() {
            state.core.progress()?;
        }
        self.notify(state, news);
        Ok(())
    }

    #[inline]
    fn notify(&self, state: &mut State, news: u64) {
        if state.sleepers > 0 {
            self.called.notify_all();
        }
        if state.polled && (state.news() != news || state.core.has_errand()) {
            self.fabric.rouse();
        }
    }

    /// Starts a standard send.
    ///
    /// # Safety
    /// As [`MessageEngine::send`].
    ///
    /// # Errors
    /// As [`MessageEngine::send`]; not initialised any more; a forked child.
    pub unsafe fn send(
        &self,
        layout: &LayoutRef<'_>,
        label: Label,
        dest: usize,
    ) -> Result<Operation> {
        // SAFETY: passed on.
        unsafe { self.send_as(layout, label, dest, How::STANDARD) }
    }

    /// Starts a send of any mode.
    ///
    /// # Safety
    /// As [`MessageEngine::send`].
    ///
    /// # Errors
    /// As [`MessageEngine::send`]; not initialised any more; a forked child.
    #[inline]
    pub unsafe fn send_as(
        &self,
        layout: &LayoutRef<'_>,
        label: Label,
        dest: usize,
        how: How,
    ) -> Result<Operation> {
        let mut state = self.lock()?;
        let news = state.news();
        // SAFETY: passed on.
        let started = unsafe { state.core.engine.send(layout, label, dest, how)? };
        self.settle(&mut state, news, started)
    }

    /// The message that a receive would match now, taken out of the queue; waits for one if
    /// `wait`.
    ///
    /// # Errors
    /// As [`Endpoint::wait`].
    pub fn take(
        &self,
        context: u64,
        source: Source,
        tag: Tag,
        wait: bool,
    ) -> Result<Option<Taken>> {
        let look = |exchange: &mut MessageEngine| exchange.take(context, source, tag);
        if wait { self.attend(look).map(Some) } else { self.glance(look) }
    }

    /// Starts the receive of a message that was taken out of the queue.
    ///
    /// # Safety
    /// As [`MessageEngine::receive`].
    ///
    /// # Errors
    /// As [`Endpoint::receive`].
    pub unsafe fn receive_taken(
        &self,
        layout: &LayoutRef<'_>,
        capacity: u64,
        taken: Taken,
    ) -> Result<Operation> {
        let mut state = self.lock()?;
        let news = state.news();
        // SAFETY: passed on.
        let started = unsafe { state.core.engine.receive_taken(layout, capacity, taken)? };
        self.settle(&mut state, news, started)
    }

    /// Waits until `look` has an answer. It runs under the lock, often: it must be short, and call
    /// nothing of this endpoint.
    ///
    /// # Errors
    /// A rank has died; another rank broke the protocol; not initialised any more.
    pub fn attend<R>(&self, mut look: impl FnMut(&mut MessageEngine) -> Option<R>) -> Result<R> {
        self.wait_until(self.lock()?, |core| look(&mut core.engine))
    }

    /// One turn, then the answer of `look`, if it has one.
    ///
    /// # Errors
    /// As [`Endpoint::attend`].
    pub fn glance<R>(
        &self,
        look: impl FnOnce(&mut MessageEngine) -> Option<R>,
    ) -> Result<Option<R>> {
        let mut state = self.attentive()?;
        let found = look(&mut state.core.engine);
        drop(state);
        if found.is_none() { self.nothing() } else { Ok(found) }
    }

    /// The answer of a call that found nothing and does not wait. Its program will ask again: when
    /// ranks share CPUs, whoever it waits for gets this one first.
    fn nothing<R>(&self) -> Result<Option<R>> {
        if self.spin.is_zero() {
            std::thread::yield_now();
        }
        self.fabric.failure().map_or(Ok(None), Err)
    }

    /// Changes something in the exchange; waiters look again.
    ///
    /// # Errors
    /// Not initialised any more; a forked child.
    pub fn change<R>(&self, change: impl FnOnce(&mut MessageEngine) -> R) -> Result<R> {
        let mut state = self.lock()?;
        let news = state.news();
        let result = change(&mut state.core.engine);
        self.notify(&mut state, news);
        Ok(result)
    }

    /// Something that is no message, and that a thread may be waiting for with
    /// [`Endpoint::attend`], has happened.
    pub fn nudge(&self) {
        // Without the lock (forked, finalized, poisoned) nobody waits any more.
        if let Ok(mut state) = self.lock() {
            let news = state.news();
            state.outside += 1;
            self.notify(&mut state, news);
        }
    }

    /// Starts a receive.
    ///
    /// # Safety
    /// As [`MessageEngine::receive`].
    ///
    /// # Errors
    /// As [`MessageEngine::receive`]; not initialised any more; a forked child.
    pub unsafe fn receive(&self, posting: &Posting<'_>) -> Result<Operation> {
        let mut state = self.lock()?;
        let news = state.news();
        // A call that only starts something goes on to other work.
        state.core.engine.set_patient(false);
        // SAFETY: passed on.
        let started = unsafe { state.core.engine.receive(posting) };
        let settled = started.and_then(|started| self.settle(&mut state, news, started));
        state.core.engine.set_patient(true);
        settled
    }

    /// Receives and waits, under one taking of the lock (two more cost a sixth of an 8-byte
    /// message's time). Afterwards, whatever the result, nobody touches the layout's memory.
    ///
    /// # Safety
    /// As [`MessageEngine::receive`].
    ///
    /// # Errors
    /// As [`Endpoint::receive`] and [`Endpoint::wait`].
    pub unsafe fn receive_now(&self, posting: &Posting<'_>) -> Result<Status> {
        let mut state = self.lock()?;
        if let Source::Rank(from) = posting.source
            && !self.spin.is_zero()
            && state.core.engine.is_quiet(posting.context, from, posting.tag)
        {
            for _ in 0..GLANCES {
                // SAFETY: passed on.
                match unsafe { state.core.engine.glance(posting, from)? } {
                    Glance::Done(status) => return Ok(status),
                    Glance::Nothing if !self.wanted() => rest(&mut state),
                    Glance::Nothing | Glance::Other => break,
                }
            }
        }
        let news = state.news();
        // SAFETY: passed on.
        let started = unsafe { state.core.engine.receive(posting)? };
        // A message of this rank to itself may just have been taken from under another thread.
        self.notify(&mut state, news);
        match started {
            Operation::Done(status) => Ok(status),
            Operation::Pending(id) => self.ended(id, self.wait_for(state, id)),
        }
    }

    /// The turn after a start. If it fails, the caller never learns the request's number, so its
    /// memory is let go here.
    fn settle(&self, state: &mut State, news: u64, started: Operation) -> Result<Operation> {
        if let Err(error) = self.started(state, news) {
            if let Operation::Pending(id) = started {
                // Just started: nobody can have taken an errand of it.
                state.core.detach(id);
            }
            return Err(error);
        }
        Ok(started)
    }

    /// Waits for a request. Afterwards, whatever the result, nobody touches its memory.
    ///
    /// # Errors
    /// The operation's; a rank has died; another rank broke the protocol.
    pub fn wait(&self, id: u64) -> Result<Status> {
        let waited = self.lock().and_then(|state| self.wait_for(state, id));
        self.ended(id, waited)
    }

    fn wait_for(&self, state: MutexGuard<'_, State>, id: u64) -> Result<Result<Status>> {
        self.wait_until(state, |core| core.engine.requests().fetch(id))
    }

    /// The result of a wait; one that failed leaves no operation behind.
    fn ended(&self, id: u64, waited: Result<Result<Status>>) -> Result<Status> {
        match waited {
            Ok(result) => result,
            Err(error) => {
                self.detach(id);
                Err(error)
            }
        }
    }

    /// The result of a request if it is complete, after one turn.
    ///
    /// # Errors
    /// As [`Endpoint::wait`].
    pub fn test(&self, id: u64) -> Result<Option<Status>> {
        let tested = self.attentive().and_then(|mut state| {
            let result = state.core.engine.requests().fetch(id);
            match result {
                None => self.fabric.failure().map_or(Ok(None), Err),
                done => Ok(done),
            }
        });
        match tested {
            Ok(result) => result.transpose(),
            Err(error) => {
                self.detach(id);
                Err(error)
            }
        }
    }

    /// Lets go of an operation's memory; see [`MessageEngine::detach`].
    pub fn detach(&self, id: u64) {
        if fork::is_child() {
            // The memory is a copy that no other rank knows of.
            return;
        }
        self.let_go(|core| core.detach(id));
    }

    /// Cuts something loose from its memory, also after finalization or a panic, when no turn runs any
    /// more: other ranks read and write the memory of a copy in hand by themselves. `let_go` is asked
    /// again while it is false.
    pub fn let_go(&self, mut let_go: impl FnMut(&mut Core) -> bool) {
        if fork::is_child() {
            // Another thread of the parent may have held the lock at the fork.
            return;
        }
        let mut state = self.insist().unwrap_or_else(PoisonError::into_inner);
        let news = state.news();
        while !let_go(&mut state.core) {
            // Another thread runs an errand on the operation's memory, and calls when it is over.
            state.sleepers += 1;
            let waited = self.called.wait_timeout(state, NAP);
            (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
            state.sleepers -= 1;
        }
        self.notify(&mut state, news);
    }

    /// Adds a source of progress, which is told its number.
    ///
    /// # Errors
    /// Not initialised any more; a forked child.
    pub fn register<S: ProgressSource>(&self, make: impl FnOnce(u32) -> S) -> Result<()> {
        self.with_core(|core| core.register(make))
    }

    /// Changes sources of progress.
    ///
    /// # Errors
    /// Not initialised any more; a forked child.
    pub fn with_core<R>(&self, change: impl FnOnce(&mut Core) -> R) -> Result<R> {
        Ok(change(&mut self.lock()?.core))
    }

    /// Starts something in a source of progress and waits for it, under one taking of the lock.
    /// `start` gives what `done` is asked about; when waiting fails, that is given back with the
    /// error, so that the caller can cut it loose.
    ///
    /// # Errors
    /// Those of `start`; not initialised any more; a forked child.
    #[inline]
    pub fn run<T: Copy, R>(
        &self,
        start: impl FnOnce(&mut Core) -> Result<T>,
        mut done: impl FnMut(&mut Core, T) -> Option<R>,
    ) -> Result<(T, Result<R>)> {
        let mut state = self.lock()?;
        let news = state.news();
        let token = start(&mut state.core)?;
        if let Some(answer) = done(&mut state.core, token) {
            self.notify(&mut state, news);
            return Ok((token, Ok(answer)));
        }
        self.notify(&mut state, news);
        Ok((token, self.wait_until(state, |core| done(core, token))))
    }

    /// Starts something in a source of progress, and gives it a turn.
    ///
    /// # Errors
    /// Those of `start`; not initialised any more; a forked child.
    pub fn begin(&self, start: impl FnOnce(&mut Core) -> Result<Operation>) -> Result<Operation> {
        let mut state = self.lock()?;
        let news = state.news();
        // A call that only starts something goes on to other work.
        state.core.engine.set_patient(false);
        let started = start(&mut state.core);
        let settled = started.and_then(|started| self.settle(&mut state, news, started));
        state.core.engine.set_patient(true);
        settled
    }

    /// The message that a receive would match now; waits for one if `wait`.
    ///
    /// # Errors
    /// As [`Endpoint::wait`].
    pub fn probe(
        &self,
        context: u64,
        source: Source,
        tag: Tag,
        wait: bool,
    ) -> Result<Option<Status>> {
        if wait {
            let found = self.attend(|exchange| exchange.probe(context, source, tag))?;
            return Ok(Some(found));
        }
        let mut state = self.attentive()?;
        let found = state.core.engine.probe(context, source, tag);
        drop(state);
        if found.is_none() { self.nothing() } else { Ok(found) }
    }

    /// One turn on behalf of a computation.
    ///
    /// # Errors
    /// A rank has died; another rank broke the protocol.
    pub fn progress(&self) -> Result<()> {
        drop(self.attentive()?);
        self.fabric.failure().map_or(Ok(()), Err)
    }

    /// Forgets a context of a communicator that nobody holds any more.
    pub fn close_context(&self, context: u64) {
        if let Ok(mut state) = self.lock() {
            state.core.engine.close_context(context);
        }
    }

    /// Counters.
    ///
    /// # Errors
    /// After finalization; in a forked child.
    pub fn traffic(&self) -> Result<crate::endpoint::engine::Traffic> {
        Ok(self.lock()?.core.engine.traffic())
    }

    /// Serves the other ranks with what they have been promised (sends on their way, receives that
    /// were granted), then closes: later calls are errors. With `wait` false
    /// (the program is panicking) it only closes, and the launcher sees a rank that left early.
    ///
    /// # Errors
    /// As [`Endpoint::wait`]; the endpoint is closed all the same.
    pub fn finalize(&self, wait: bool) -> Result<()> {
        let state = self.lock()?;
        let sent = if wait {
            self.wait_until(state, |core| core.others_are_served().then_some(()))
        } else {
            drop(state);
            Ok(())
        };
        let mut state = self.lock()?;
        state.closed = true;
        self.called.notify_all();
        if wait && sent.is_ok() {
            self.fabric.finalized();
        }
        sent
    }
}

/// Why there is no lock: a forked child, or a panic.
#[cold]
fn refused(kind: ErrorKind) -> Error {
    match kind {
        ErrorKind::State => Error::new(
            kind,
            "process",
            "a forked child of a rank cannot communicate; it may exec or exit",
        ),
        _ => Error::new(kind, "endpoint", "a panic has ended all communication"),
    }
}

#[cfg(test)]
mod tests;
