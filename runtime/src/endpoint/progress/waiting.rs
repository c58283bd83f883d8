//! How a call waits: turns, the poller, errands, sleep.
//!
//! `progress.rs` starts operations and comes here to wait for them; its head says in which steps. What
//! is driven stands in `engine.rs` and `sources.rs`.

use super::*;
use crate::endpoint::sources::Sent;
use crate::sys::machine;

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

    /// The lock, after a turn and the errands that it has made ready: for calls that do not wait.
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

    /// Runs one errand without the lock.
    #[cold]
    pub(super) fn run_errand<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
    ) -> Result<MutexGuard<'a, State>> {
        let Some((sent, errand)) = state.core.errand() else { return Ok(state) };
        drop(state);
        // Reports also when a user's function panics.
        let report = Report { endpoint: self, sent, completed: false };
        // SAFETY: the errand was made by its source, and is run before it is reported.
        unsafe { errand.run() };
        report.completed();
        self.lock()
    }

    /// Waits until `done` has an answer.
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
            // A job of one rank has no other rank to poll: its own threads call, and sources say how
            // long they can wait.
            if state.polled || self.size() == 1 {
                state.sleepers += 1;
                let nap =
                    state.core.nap().filter(|_| !state.polled).map_or(NAP, |nap| nap.min(NAP));
                let (guard, _) =
                    self.called.wait_timeout(state, nap).unwrap_or_else(PoisonError::into_inner);
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
            match answer? {
                Some(answer) => return Ok(answer),
                // An errand.
                None => continue,
            }
        }
    }

    /// The poller's loop, which ends without an answer when an errand is ready. The outer error means
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
                Ok((false, None)) if !state.core.has_errand() => {}
                other => {
                    self.fabric.withdraw();
                    match other {
                        Ok((_, Some(answer))) => return Ok((state, Ok(Some(answer)))),
                        Ok((_, None)) if state.core.has_errand() => return Ok((state, Ok(None))),
                        Ok((_, None)) => continue,
                        Err(error) => return Ok((state, Err(error))),
                    }
                }
            }
            if let Some(error) = self.fabric.failure() {
                self.fabric.withdraw();
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

    /// One turn of the poller, and a look at what it waits for.
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
        // Another thread of this process may have completed it too, so always look.
        Ok((moved, done(&mut state.core)))
    }
}

/// Where an errand is reported.
struct Report<'a> {
    endpoint: &'a Endpoint,
    sent: Sent,
    completed: bool,
}

impl Report<'_> {
    fn completed(mut self) {
        self.completed = true;
    }
}

impl Drop for Report<'_> {
    fn drop(&mut self) {
        // Whatever has become of the endpoint meanwhile: somebody may wait for the memory.
        let mut state = self.endpoint.insist().unwrap_or_else(PoisonError::into_inner);
        let news = state.news();
        state.core.ran(self.sent, self.completed);
        state.outside += 1;
        self.endpoint.notify(&mut state, news);
    }
}

/// Leaves the lines that others write alone for a moment.
#[inline]
pub(super) fn rest(state: &mut State) {
    if state.core.engine.prepare() {
        return;
    }
    for _ in 0..state.rests {
        std::hint::spin_loop();
    }
}
