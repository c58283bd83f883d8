//! The waiting of a call: turns, the poller, errands, sleep.
//!
//! `progress.rs` starts operations and calls this file to wait for them; its `//!` text lists the steps.
//! The turns themselves are in `engine.rs` and `sources.rs`.

use super::*;
use crate::sys::machine;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Number of turns between two checks of the clock and of the failure epoch.
const BURST: usize = 32;

/// Number of rests (`pause` instructions) between two reads of the words that other ranks write. If a
/// reader looks too often, it slows the writer, because each write then has to take the cache line away
/// from the reader.
///
/// Measured in ns: two threads that only load and store, one line per message, 60 ns apart, one way; and
/// half a round trip of 8 bytes in `typepack-bench pingpong` on AMD's Zen 5, where more rests do not help.
///
/// | rests | two threads | Zen 5 near | Zen 5 far |
/// |---|---|---|---|
/// | 0 | 150 | 116 | 381 |
/// | 1 | 126 | 116 | 330 |
/// | 2 | 112 | 132 | 342 |
/// | 3 | 104 | 151 | 351 |
/// | 4 to 8 | 107, 111, 107, 118, 133 | | |
const RESTS: usize = 3;
const RESTS_AMD: usize = 1;

/// Returns the number of rests that suits this machine.
pub(super) fn rests() -> usize {
    if machine::is_amd() { RESTS_AMD } else { RESTS }
}

impl Endpoint {
    pub(super) fn turn(&self, state: &mut State) -> Result<()> {
        let news = state.news();
        if state.core.progress()? {
            self.notify(state, news);
        }
        Ok(())
    }

    /// Takes the lock, makes a turn, and runs the errands that are ready: for calls that do not wait.
    #[inline]
    pub(super) fn attentive(&self) -> Result<MutexGuard<'_, State>> {
        let mut state = self.lock()?;
        self.turn(&mut state)?;
        while state.core.has_errand() {
            state = self.run_errand(state)?;
            self.turn(&mut state)?;
        }
        Ok(state)
    }

    /// Runs one errand without the lock. Any thread may run the errand, not only the thread that waits for
    /// its operation. If a user's function panics, the operation fails, and no other call unwinds.
    #[cold]
    pub(super) fn run_errand<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
    ) -> Result<MutexGuard<'a, State>> {
        let Some((sent, errand)) = state.core.errand() else { return Ok(state) };
        drop(state);
        // SAFETY: the source that made the errand keeps its memory valid until the end is reported, which
        // happens below, only after this call.
        let ran = catch_unwind(AssertUnwindSafe(|| unsafe { errand.run() }));
        // This works even if the endpoint is poisoned or closed: a thread may wait for the memory.
        let mut state = self.insist().unwrap_or_else(PoisonError::into_inner);
        let news = state.news();
        let panic = state.core.ran(sent, ran.err());
        state.outside += 1;
        self.notify(&mut state, news);
        drop(state);
        drop(panic);
        self.lock()
    }

    /// Waits until `done` returns an answer.
    pub(super) fn wait_until<'a, R>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        mut done: impl FnMut(&mut Core) -> Option<R>,
    ) -> Result<R> {
        loop {
            self.turn(&mut state)?;
            if let Some(answer) = done(&mut state.core) {
                return Ok(answer);
            }
            if state.core.has_errand() {
                state = self.run_errand(state)?;
                continue;
            }
            // A job of one rank has no other rank to poll. Threads of this process wake this thread, and
            // the sources state how long it may sleep.
            if state.polled || self.size() == 1 {
                state.sleepers += 1;
                let nap =
                    state.core.nap().filter(|_| !state.polled).map_or(NAP, |nap| nap.min(NAP));
                let (guard, _) =
                    self.called.wait_timeout(state, nap).unwrap_or_else(PoisonError::into_inner);
                drop(guard);
                // `lock` checks again whether the endpoint is poisoned or closed. If so, it returns an
                // error.
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
            match answer? {
                Some(answer) => return Ok(answer),
                // An errand is ready.
                None => continue,
            }
        }
    }

    /// Runs the poller's loop. The loop ends without an answer if an errand is ready. An outer error means
    /// that the lock is lost.
    fn poll<'a, R>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        done: &mut impl FnMut(&mut Core) -> Option<R>,
    ) -> Result<(MutexGuard<'a, State>, Result<Option<R>>)> {
        let mut deadline: Option<Instant> = None;
        loop {
            // Spin.
            let mut moved = false;
            let burst = if self.spin.is_zero() { 1 } else { BURST };
            for _ in 0..burst {
                match self.step(&mut state, done) {
                    Ok((_, Some(answer))) => return Ok((state, Ok(Some(answer)))),
                    Ok((_, None)) if state.core.has_errand() => return Ok((state, Ok(None))),
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
                    // Let other threads of this process take the lock.
                    drop(state);
                    std::thread::yield_now();
                    state = self.lock()?;
                }
                continue;
            }
            // Sleep. After this announcement every publisher rings the doorbell.
            let seen = self.fabric.announce();
            match self.step(&mut state, done) {
                Ok((false, None)) if !state.core.has_errand() => {}
                other => {
                    self.fabric.cancel_wait();
                    match other {
                        Ok((_, Some(answer))) => return Ok((state, Ok(Some(answer)))),
                        Ok((_, None)) if state.core.has_errand() => return Ok((state, Ok(None))),
                        Ok((_, None)) => continue,
                        Err(error) => return Ok((state, Err(error))),
                    }
                }
            }
            if let Some(error) = self.fabric.failure() {
                self.fabric.cancel_wait();
                return Ok((state, Err(error)));
            }
            let nap = state.core.nap().map_or(NAP, |nap| nap.min(NAP));
            drop(state);
            let slept = self.fabric.sleep(seen, nap);
            state = self.lock()?;
            if let Err(error) = slept {
                return Ok((state, Err(error)));
            }
            deadline = None;
        }
    }

    /// Makes one turn of the poller, and asks `done`.
    #[inline]
    fn step<R>(
        &self,
        state: &mut State,
        done: &mut impl FnMut(&mut Core) -> Option<R>,
    ) -> Result<(bool, Option<R>)> {
        let moved = state.core.progress()?;
        if moved && state.sleepers > 0 {
            self.called.notify_all();
        }
        // Another thread of this process may have completed the operation too, so always ask.
        Ok((moved, done(&mut state.core)))
    }
}

/// A guard that calls a function when the call that holds the guard unwinds. A call that returns disarms
/// the guard.
pub(crate) struct OnUnwind<F: FnMut()>(F);

impl<F: FnMut()> OnUnwind<F> {
    pub(crate) fn new(function: F) -> Self {
        Self(function)
    }

    /// Calls the function now.
    pub(crate) fn call(&mut self) {
        (self.0)();
    }

    /// Disarms the guard when the call returns, so that the guard no longer calls the function.
    #[inline]
    pub(crate) fn disarm(self) {
        std::mem::forget(self);
    }
}

impl<F: FnMut()> Drop for OnUnwind<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// Pauses for a moment. During the pause this rank does not read the cache lines that other ranks write.
#[inline]
pub(super) fn rest(state: &mut State) {
    if state.core.engine.prepare() {
        return;
    }
    for _ in 0..state.rests {
        std::hint::spin_loop();
    }
}
