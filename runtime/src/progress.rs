//! The endpoint: one lock per process, and how a call waits.
//!
//! Every operation of `comm/` takes the lock, starts or looks at something in `endpoint/engine.rs`,
//! gives it a turn, and lets go; waiting happens here and nowhere else:
//!
//! 1. One waiting thread becomes the poller; the others sleep on a condition variable and are
//!    called when the poller has moved something, or leaves.
//! 2. The poller turns the exchange. While something moves, or for the spin time after it last
//!    did, it goes on (with the lock, in short bursts).
//! 3. It announces sleep on the shared doorbell, turns once more, looks at the failure epoch, lets
//!    the lock go, and sleeps until somebody rings. The timeout is a safety net, not the mechanism.
//!
//! Invariants: nobody holds the lock while asleep; a panic under the lock poisons it, and then no
//! turn ever runs again, so that memory of unfinished operations is no longer touched.

use crate::endpoint::engine::{Glance, How, MessageEngine, Taken};
use crate::message::envelope::Label;
use crate::message::payload::{LayoutRef, Posting};
use crate::message::{Operation, Source, Status, Tag};
use crate::settings::Forced;
use crate::sys::{fork, machine};
use crate::transport::fabric::Fabric;
use crate::{Error, ErrorKind, Result};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, LockResult, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

/// Turns between two looks at the clock and at the failure epoch.
const BURST: usize = 32;

/// Rests (`pause` instructions) between two looks at what other ranks write. Who looks too often
/// slows the writer down, who has to take the line away each time. Two threads that only load and
/// store, a line per message, answering after 60 ns, one way: 150 ns without a rest, 126 with one,
/// 112, 104 with three, 107, 111, 107, 118, 133 with eight. Not so on AMD's Zen 5: 8 bytes there and
/// back by `typepack-bench pingpong`, half of it, near: 116 ns without a rest, 116 with one, 132, 151
/// with three; far 381, 330, 342, 351.
const RESTS: usize = 3;
const RESTS_AMD: usize = 1;

/// The rests that suit this machine.
fn rests() -> usize {
    if machine::is_amd() { RESTS_AMD } else { RESTS }
}

/// Looks of a blocking receive straight into the ring, before it is posted like any other.
const GLANCES: usize = 64;

/// How long a sleeper believes in being called, at most.
const NAP: Duration = Duration::from_millis(100);

#[derive(Debug)]
struct State {
    exchange: MessageEngine,
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
        self.exchange.news().wrapping_add(self.outside)
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
                exchange,
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
        if !state.exchange.is_idle() {
            state.exchange.progress()?;
        }
        self.notify(state, news);
        Ok(())
    }

    #[inline]
    fn notify(&self, state: &mut State, news: u64) {
        if state.sleepers > 0 {
            self.called.notify_all();
        }
        if state.polled && state.news() != news {
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
        let started = unsafe { state.exchange.send(layout, label, dest, how)? };
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
        let started = unsafe { state.exchange.receive_taken(layout, capacity, taken)? };
        self.settle(&mut state, news, started)
    }

    /// Waits until `look` has an answer. It runs under the lock, often: it must be short, and call
    /// nothing of this endpoint.
    ///
    /// # Errors
    /// A rank has died; another rank broke the protocol; not initialised any more.
    pub fn attend<R>(&self, look: impl FnMut(&mut MessageEngine) -> Option<R>) -> Result<R> {
        self.wait_until(self.lock()?, look)
    }

    /// One turn, then the answer of `look`, if it has one.
    ///
    /// # Errors
    /// As [`Endpoint::attend`].
    pub fn glance<R>(
        &self,
        look: impl FnOnce(&mut MessageEngine) -> Option<R>,
    ) -> Result<Option<R>> {
        let mut state = self.lock()?;
        self.turn(&mut state)?;
        let found = look(&mut state.exchange);
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
        let result = change(&mut state.exchange);
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
        state.exchange.set_patient(false);
        // SAFETY: passed on.
        let started = unsafe { state.exchange.receive(posting) };
        let settled = started.and_then(|started| self.settle(&mut state, news, started));
        state.exchange.set_patient(true);
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
            && state.exchange.is_quiet(posting.context, from, posting.tag)
        {
            for _ in 0..GLANCES {
                // SAFETY: passed on.
                match unsafe { state.exchange.glance(posting, from)? } {
                    Glance::Done(status) => return Ok(status),
                    Glance::Nothing if !self.wanted() => rest(&mut state),
                    Glance::Nothing | Glance::Other => break,
                }
            }
        }
        let news = state.news();
        // SAFETY: passed on.
        let started = unsafe { state.exchange.receive(posting)? };
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
                state.exchange.detach(id);
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
        self.wait_until(state, |exchange| exchange.requests().fetch(id))
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
        let tested = self.lock().and_then(|mut state| {
            self.turn(&mut state)?;
            let result = state.exchange.requests().fetch(id);
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
        // Also after finalization or a panic, when no turn runs any more: other ranks read and write
        // the memory of a copy in hand by themselves.
        let mut state = self.insist().unwrap_or_else(PoisonError::into_inner);
        state.exchange.detach(id);
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
        let mut state = self.lock()?;
        if wait {
            let found = self.wait_until(state, |exchange| exchange.probe(context, source, tag))?;
            return Ok(Some(found));
        }
        self.turn(&mut state)?;
        let found = state.exchange.probe(context, source, tag);
        drop(state);
        if found.is_none() { self.nothing() } else { Ok(found) }
    }

    /// One turn on behalf of a computation.
    ///
    /// # Errors
    /// A rank has died; another rank broke the protocol.
    pub fn progress(&self) -> Result<()> {
        let mut state = self.lock()?;
        self.turn(&mut state)?;
        self.fabric.failure().map_or(Ok(()), Err)
    }

    fn turn(&self, state: &mut State) -> Result<()> {
        let news = state.news();
        if state.exchange.progress()? {
            self.notify(state, news);
        }
        Ok(())
    }

    /// Waits until `done` has an answer.
    fn wait_until<'a, R>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        mut done: impl FnMut(&mut MessageEngine) -> Option<R>,
    ) -> Result<R> {
        loop {
            self.turn(&mut state)?;
            if let Some(answer) = done(&mut state.exchange) {
                return Ok(answer);
            }
            // A job of one rank has nothing to poll: its own threads call.
            if state.polled || self.size() == 1 {
                state.sleepers += 1;
                let (guard, _) =
                    self.called.wait_timeout(state, NAP).unwrap_or_else(PoisonError::into_inner);
                drop(guard);
                // Through the front door again: poisoned and closed are errors there.
                state = self.lock()?;
                state.sleepers -= 1;
                continue;
            }
            state.polled = true;
            let answer;
            (state, answer) = self.poll(state, &mut done)?;
            state.polled = false;
            if state.sleepers > 0 {
                self.called.notify_all();
            }
            return answer;
        }
    }

    /// The poller's loop. The outer error means that the lock is lost.
    fn poll<'a, R>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        done: &mut impl FnMut(&mut MessageEngine) -> Option<R>,
    ) -> Result<(MutexGuard<'a, State>, Result<R>)> {
        let mut deadline: Option<Instant> = None;
        loop {
            // Spin.
            let mut moved = false;
            let burst = if self.spin.is_zero() { 1 } else { BURST };
            for _ in 0..burst {
                match self.step(&mut state, done) {
                    Ok((_, Some(answer))) => return Ok((state, Ok(answer))),
                    Ok((true, None)) => moved = true,
                    Ok((false, None)) => rest(&mut state),
                    Err(error) => return Ok((state, Err(error))),
                }
                if self.wanted() {
                    break;
                }
            }
            if let Some(error) = self.fabric.failure() {
                return Ok((state, Err(error)));
            }
            let spinning = !self.spin.is_zero() && {
                let now = Instant::now();
                let end = *deadline.filter(|_| !moved).get_or_insert(now + self.spin);
                deadline = Some(end);
                now < end
            };
            if moved || spinning {
                if self.wanted() {
                    // Other threads of this process get their chance at the lock.
                    drop(state);
                    std::thread::yield_now();
                    state = self.lock()?;
                }
                continue;
            }
            // Sleep. What is published after this announcement rings the doorbell.
            let seen = self.fabric.announce();
            match self.step(&mut state, done) {
                Ok((false, None)) => {}
                other => {
                    self.fabric.withdraw();
                    match other {
                        Ok((_, Some(answer))) => return Ok((state, Ok(answer))),
                        Ok((_, None)) => continue,
                        Err(error) => return Ok((state, Err(error))),
                    }
                }
            }
            if let Some(error) = self.fabric.failure() {
                self.fabric.withdraw();
                return Ok((state, Err(error)));
            }
            drop(state);
            let slept = self.fabric.sleep(seen, NAP);
            state = self.lock()?;
            if let Err(error) = slept {
                return Ok((state, Err(error)));
            }
            deadline = None;
        }
    }

    /// One turn of the poller, and a look at what it waits for.
    #[inline]
    fn step<R>(
        &self,
        state: &mut State,
        done: &mut impl FnMut(&mut MessageEngine) -> Option<R>,
    ) -> Result<(bool, Option<R>)> {
        let moved = state.exchange.progress()?;
        if moved && state.sleepers > 0 {
            self.called.notify_all();
        }
        // Another thread of this process may have completed it too, so always look.
        Ok((moved, done(&mut state.exchange)))
    }

    /// Forgets a context of a communicator that nobody holds any more.
    pub fn close_context(&self, context: u64) {
        if let Ok(mut state) = self.lock() {
            state.exchange.close_context(context);
        }
    }

    /// Counters.
    ///
    /// # Errors
    /// After finalization; in a forked child.
    pub fn traffic(&self) -> Result<crate::endpoint::engine::Traffic> {
        Ok(self.lock()?.exchange.traffic())
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
            self.wait_until(state, |exchange| exchange.others_are_served().then_some(()))
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

/// Leaves the lines that others write alone for a moment.
#[inline]
fn rest(state: &mut State) {
    if state.exchange.prepare() {
        return;
    }
    for _ in 0..state.rests {
        std::hint::spin_loop();
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
mod tests {
    use super::*;
    use crate::shm::segment::{JobFlags, Segment};
    use crate::{Datatype, Named};
    use std::sync::Arc;

    /// A thread that probes may be asleep on the doorbell when another one sends to this rank
    /// itself: no other rank rings for that.
    #[test]
    fn a_message_to_oneself_rouses_the_poller() {
        let byte = Datatype::named(Named::U8).commit().expect("a plan");
        let segment = Segment::create(2, &[], JobFlags::default(), 0).expect("a segment");
        let fabric = Fabric::join(Arc::new(segment), 0).expect("rank 0");
        let endpoint = Endpoint::new(fabric.clone(), 4, Forced::Nothing, Duration::ZERO);
        endpoint.lock().expect("the lock").polled = true;
        let mut data = [1u8; 8];
        let layout = LayoutRef { origin: data.as_mut_ptr(), plan: &byte, count: 8 };
        for bytes in [4, 8] {
            let seen = fabric.announce();
            let label = Label { context: 0, tag: 0, bytes, types: 0 };
            // SAFETY: the array outlives the endpoint, which nobody turns after this test.
            unsafe { endpoint.send(&layout, label, 0) }.expect("a send");
            assert_ne!(fabric.announce(), seen, "{bytes} bytes");
        }
    }
}
