//! How a call waits: turns, the poller, continuations, and sleep.
//!
//! `progress.rs` starts operations and uses this file to wait for them. The module documentation of
//! `progress.rs` lists the steps of a wait. The turns themselves are in `engine.rs` and `sources.rs`.

use super::record::Recorded;
use super::*;
use crate::endpoint::requests::Requests;
use crate::sys::futex::Woken;
use crate::tools::counting::{self, Subject};
use crate::tools::raised;
use std::panic::{AssertUnwindSafe, catch_unwind};
use typepack_engine::choice::{Chooser, Pick};

/// The default of `TYPEPACK_SPIN_US`: how long a waiting rank spins before it sleeps. The default applies if
/// the job has a CPU for each rank. This time is longer than a sleep and a wake-up together take.
pub(crate) const SPIN: Duration = Duration::from_micros(50);

/// Returns how long a waiting rank spins. With more ranks than CPUs, a rank that spins takes the CPU from the rank for
/// which it waits. So such ranks never spin, whatever the user asks for (`TYPEPACK_SPIN_US`).
pub(crate) fn spin_time(oversubscribed: bool, asked: Option<Duration>) -> Duration {
    if oversubscribed { Duration::ZERO } else { asked.unwrap_or(SPIN) }
}

/// Maximum number of turns between two checks of the clock and of whether a rank has died.
const BURST: usize = 32;

/// The numbers of pauses (`pause` instructions) from which a rank chooses by measurement. It pauses between
/// two reads of the words that other ranks write. A reader that looks too often slows the writer down,
/// because each write then has to take the cache line away from the reader. A reader that looks too
/// seldom sees the word late.
///
/// Two measurements, in ns. First: the time of a message of one cache line between two threads that only
/// load and store, on cores of a Zen 4 that are 60 ns apart. Second: half a round trip of 8 bytes in
/// `typepack-bench pingpong` on a Zen 5, between near cores (which share a level 3 cache) and between far
/// cores (which do not).
///
/// | pauses | two threads | Zen 5 near | Zen 5 far |
/// |---|---|---|---|
/// | 0 | 150 | 116 | 381 |
/// | 1 | 126 | 116 | 330 |
/// | 2 | 112 | 132 | 342 |
/// | 3 | 104 | 151 | 351 |
/// | 4 to 8 | 107, 111, 107, 118, 133 | | |
const PAUSES: [u32; 2] = [3, 1];

/// Maximum number of times that a rank that does not spin lets other processes run before it sleeps, not counting those
/// in which no other process ran ([`ALONE`]). The rank looks for an event after each time. With more ranks than CPUs,
/// the rank whose message this rank expects can often run at once; then neither rank needs a system call to sleep or to
/// wake the other.
///
/// Measured on a Zen 4 with 8 ranks on 2 CPUs, times in us:
///
/// | times | barrier | reduce 8 B | allgather 8 B | broadcast 64 KiB |
/// |---|---|---|---|---|
/// | 0 | 52 | 33 | 45 | 40 |
/// | 4 | 12 | 6 | 16 | 24 |
const YIELDS: u32 = 4;

/// If this rank gets its CPU back only after this time, another process computes. A rank that only forwards messages
/// sleeps or yields within some 10 us. A process that computes keeps the CPU for its time slice of a few milliseconds.
const COMPUTES: Duration = Duration::from_micros(200);

/// If this rank gets its CPU back within this time, the kernel has not switched to another process. Then probably no
/// other process could use the time in which this rank looks for an event. So such yields do not count, and the rank
/// looks as long as a rank that spins. This also helps a job whose CPUs are reserved by another job that sleeps at the
/// moment, because the ranks of such a job do not spin.
///
/// Measured on a Zen 4, 2 ranks beside a job of 2 ranks that sleeps, half a round trip in us. Before, all yields
/// counted:
///
/// | message | all yields count | this rule | alone on the machine |
/// |---|---|---|---|
/// | 8 B | 1.5 to 3.8 | 0.55 | 0.15 |
/// | 64 KiB | 21 to 23 | 2.8 to 3.0 | 2.5 |
/// | 1 MiB | 62 to 100 | 36 to 73 | 36 to 40 |
const ALONE: Duration = Duration::from_micros(1);

/// Maximum number of waits in a row in which a rank sleeps at once because another process computes.
const MOST_SKIPPED: u32 = 1024;

/// Decides whether a rank that does not spin yields before it sleeps. If a yield shows that another process computes,
/// the rank sleeps at once in the next waits: a rank that sleeps is woken when its message comes, and a rank that has
/// yielded must wait for its turn. Each long yield doubles the number of these waits, and each short one
/// halves it.
#[derive(Debug, Default)]
pub(super) struct Yields {
    /// Number of waits in which the rank still sleeps at once.
    skips: u32,
    /// Number of waits to skip the next time.
    next: u32,
}

impl Yields {
    /// Returns the number of yields of a wait that begins.
    fn begin(&mut self) -> u32 {
        if self.skips == 0 {
            return YIELDS;
        }
        self.skips -= 1;
        0
    }

    /// Records how long this rank was without a CPU in one yield.
    fn took(&mut self, time: Duration) {
        if time < COMPUTES {
            self.next /= 2;
            return;
        }
        self.next = (self.next * 2).clamp(8, MOST_SKIPPED);
        self.skips = self.next;
    }
}

/// Returns how many of the `yields` yields of a wait are left after a yield that took `time`. The first yield of the
/// wait began `waited` ago.
fn left_after(yields: u32, time: Duration, waited: Duration) -> u32 {
    match time {
        _ if time >= COMPUTES => 0,
        _ if time < ALONE && waited < SPIN => yields,
        _ => yields.saturating_sub(1),
    }
}

/// Number of waits that are timed together. A single wait may be as short as a few readings of the clock.
const WAITS: u32 = 64;

/// The number of pauses between two reads, chosen by measurement (`typepack_engine::choice`). The measured cost is the
/// time from the start of a wait until [`WAITS`] waits later, including the work of the program between the waits.
#[derive(Debug)]
pub(super) struct Pauses {
    pauses: u32,
    /// Number of waits until the next choice.
    left: u32,
    chooser: Chooser,
    pick: Pick,
    start: Option<Instant>,
    measures: bool,
}

impl Default for Pauses {
    fn default() -> Self {
        let pick = Pick { way: 0, timed: false };
        let chooser = Chooser::new(PAUSES.len(), 0);
        Self { pauses: PAUSES[0], left: WAITS, chooser, pick, start: None, measures: true }
    }
}

impl Pauses {
    /// Sets whether the number of pauses is chosen by measurement.
    pub(super) fn set(&mut self, measures: bool) {
        *self = Self { measures, ..Self::default() };
    }

    /// Counts a wait that begins.
    #[inline]
    pub(super) fn wait(&mut self) {
        self.left -= 1;
        if self.left == 0 {
            self.choose();
        }
    }

    /// Returns a line about the best number of pauses if the numbers have been compared.
    pub(super) fn report(&self) -> Option<String> {
        let best = PAUSES[usize::from(self.chooser.best())];
        let settled = self.measures && self.chooser.is_settled();
        settled.then(|| format!("rests between two looks of a wait: {best}"))
    }

    #[cold]
    fn choose(&mut self) {
        self.left = WAITS;
        if !self.measures {
            return;
        }
        if let Some(start) = self.start.take() {
            let time = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
            self.chooser.report(self.pick.way, time);
        }
        self.pick = self.chooser.pick();
        self.pauses = PAUSES[usize::from(self.pick.way)];
        if self.pick.timed {
            self.start = Some(Instant::now());
        }
    }
}

/// Tells tools that a call begins or ends to wait.
#[inline(always)]
fn raise_of_wait(subject: Subject, state: &State) {
    if counting::is_wanted(subject) {
        let operations = state.core.engine.requests_ref().in_flight() as u64;
        raised::raise(subject, [operations, 0, 0, 0]);
    }
}

impl State {
    /// Returns what a thread awaits that has just looked for `awaited`, and has not found it.
    fn awaits(&self, awaited: &Awaited) -> Awaits {
        let requests = self.core.engine.requests_ref();
        match (awaited, requests.asked()) {
            (&Awaited::Request(id, _), _) | (Awaited::Asked(_), (id, 1)) => Awaits::Request(id),
            (Awaited::Asked(_), (_, 2..)) => Awaits::Completion(requests.completions()),
            _ => Awaits::Turn,
        }
    }

    /// Returns whether what a thread awaits has come, if the requests alone can tell.
    fn has_come(requests: &Requests, awaits: Awaits) -> Option<bool> {
        match awaits {
            Awaits::Request(id) => Some(!requests.is_in_flight(id)),
            Awaits::Completion(count) => Some(count != requests.completions()),
            Awaits::Turn | Awaits::Continuation => None,
        }
    }

    /// Wakes the threads that sleep and for which a turn, or the start of an operation, may have changed something.
    #[inline]
    pub(super) fn wake_sleepers(&mut self) {
        if !self.sleepers.is_empty() {
            self.wake_some();
        }
    }

    #[cold]
    fn wake_some(&mut self) {
        let requests = self.core.engine.requests_ref();
        self.sleepers.wake(|awaits| Self::has_come(requests, awaits).unwrap_or(true));
        // A source may want turns soon, which a thread that sleeps does not know if nobody polls.
        if self.core.has_continuation() || self.core.nap().is_some() {
            self.sleepers.hand_on();
        }
    }
}

impl Endpoint {
    pub(super) fn turn(&self, state: &mut State) -> Result<()> {
        if state.failed.is_some() {
            return state.failed.take().map_or(Ok(()), Err);
        }
        let news = state.news();
        let moved = state.core.progress();
        // A turn that fails may have completed something before.
        if !matches!(moved, Ok(false)) {
            self.notify(state, news);
        }
        moved.map(|_| ())
    }

    /// Takes the lock, makes a turn, and runs the continuations that are ready. Calls that do not wait use this
    /// function.
    #[inline]
    pub(super) fn attentive(&self) -> Result<MutexGuard<'_, State>> {
        let mut state = self.lock()?;
        self.turn(&mut state)?;
        while state.core.has_continuation() {
            state = self.run_continuation(state)?;
            self.turn(&mut state)?;
        }
        Ok(state)
    }

    /// Runs one continuation without the lock. Any thread may run a continuation, not only the thread that waits for the continuation's
    /// operation. If a user's function panics, only a call that waits for the operation of the continuation unwinds.
    #[cold]
    pub(super) fn run_continuation<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
    ) -> Result<MutexGuard<'a, State>> {
        let Some((sent, continuation)) = state.core.continuation() else { return Ok(state) };
        state.sleepers.hand_on();
        drop(state);
        // SAFETY: the source that made the continuation guarantees that, until the end of the continuation is
        // reported, the continuation's memory is valid and nobody else uses the part that the continuation writes.
        // This function reports the end below, after the call of `run`. The code that adds a copy to a schedule
        // guarantees that the source and the destination of the copy do not overlap.
        let ran = catch_unwind(AssertUnwindSafe(|| unsafe { continuation.run() }));
        // Report the end even if the endpoint is poisoned or closed, because a thread may be waiting for
        // the memory.
        let mut state = self.insist().unwrap_or_else(PoisonError::into_inner);
        let news = state.news();
        let panic = state.core.ran(sent, ran.err());
        state.outside += 1;
        self.notify(&mut state, news);
        drop(state);
        drop(panic);
        self.lock()
    }

    /// Waits until `done` returns an answer. While another thread polls, this thread calls `done` at least
    /// once in each period of `nap`. `awaited` says what the call waits for; it is used only if the wait is long.
    pub(super) fn wait_until<'a, R>(
        &'a self,
        state: MutexGuard<'a, State>,
        nap: Duration,
        awaited: &Awaited,
        mut done: impl FnMut(&mut Core) -> Option<R>,
    ) -> Result<R> {
        // The inner function returns without the lock, so this value may be dropped here.
        let mut recorded = Recorded::none(self);
        let mut waits = false;
        let answer =
            self.wait_recorded(state, nap, (awaited, &mut recorded), &mut waits, &mut done);
        if waits
            && counting::is_wanted(Subject::WaitEnded)
            && let Ok(state) = self.lock()
        {
            raise_of_wait(Subject::WaitEnded, &state);
        }
        answer
    }

    #[inline]
    fn wait_recorded<'a, R>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        nap: Duration,
        (awaited, recorded): (&Awaited, &mut Recorded<'_>),
        waits: &mut bool,
        done: &mut impl FnMut(&mut Core) -> Option<R>,
    ) -> Result<R> {
        state.pauses.wait();
        loop {
            let turned = self.turn(&mut state);
            state.core.engine.requests().ask_anew();
            let answer = match turned {
                Ok(()) => done(&mut state.core).map(Ok),
                Err(error) => Some(Err(error)),
            };
            if let Some(answer) = answer {
                state.sleepers.hand_on();
                return answer;
            }
            if state.core.has_continuation() {
                // This thread works now, and waits for nobody.
                self.forget(&mut state, recorded);
                state = self.run_continuation(state)?;
                continue;
            }
            // A call that finds its answer at the first look does not wait.
            if !std::mem::replace(waits, true) {
                raise_of_wait(Subject::WaitBegun, &state);
            }
            // Another thread polls, or there is nothing to poll because the job has only one process. Sleep
            // until a thread of this process wakes this thread. In such a job, the sources limit the time of the
            // sleep.
            if state.sleepers.polled || self.processes() == 1 {
                self.record(&mut state, awaited, recorded, false);
                let wanted = state.core.nap().filter(|_| !state.sleepers.polled);
                let nap = wanted.map_or(nap, |wanted| wanted.min(nap));
                let awaits = state.awaits(awaited);
                state = opened(self.doze(state, awaits, nap))?;
                continue;
            }
            state.sleepers.polled = true;
            let answer;
            (state, answer) = self.poll(state, (awaited, &mut *recorded), done)?;
            state.sleepers.polled = false;
            // With a continuation, this thread stays in the loop.
            if !matches!(answer, Ok(None)) {
                state.sleepers.hand_on();
            }
            match answer? {
                Some(answer) => {
                    if recorded.is_some() {
                        self.forget(&mut state, recorded);
                    }
                    return Ok(answer);
                }
                // The poller has stopped because a continuation is ready. The loop runs the continuation next.
                None => continue,
            }
        }
    }

    /// Sleeps until another thread of this process wakes this one, but no longer than `time`.
    pub(super) fn doze<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        awaits: Awaits,
        time: Duration,
    ) -> LockResult<MutexGuard<'a, State>> {
        let (ticket, bell) = state.sleepers.enter(awaits);
        drop(state);
        let since = counting::begin_sleep();
        bell.wait(time);
        counting::end_sleep(since);
        let mut locked = self.insist();
        let (Ok(state) | Err(state)) = locked.as_mut().map_err(PoisonError::get_mut);
        let woken = state.sleepers.leave(ticket, bell);
        let has_come = State::has_come(state.core.engine.requests_ref(), awaits);
        state.sleepers.missed += u64::from(!woken && has_come == Some(true));
        locked
    }

    /// Runs the loop of the poller. The loop ends with an answer, with an error, or without an answer if
    /// a continuation is ready. If the outer result is an error, this thread has released the lock and could
    /// not take it again.
    fn poll<'a, R>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        (awaited, recorded): (&Awaited, &mut Recorded<'_>),
        done: &mut impl FnMut(&mut Core) -> Option<R>,
    ) -> Result<(MutexGuard<'a, State>, Result<Option<R>>)> {
        let mut deadline: Option<Instant> = None;
        let mut overslept = false;
        // The number of yields that are left before the next sleep, and the time of the first one.
        let mut yields = if self.spin().is_zero() { state.yields.begin() } else { 0 };
        let mut began: Option<Instant> = None;
        // Whether anything has moved since the record was written, and when a wait that spins writes it.
        let mut news = false;
        let mut record_at: Option<Instant> = None;
        loop {
            let mut moved = false;
            let burst = if self.spin().is_zero() { 1 } else { BURST };
            for _ in 0..burst {
                let stepped = self.step(&mut state, done);
                if std::mem::take(&mut overslept) {
                    state.unrung += u64::from(matches!(stepped, Ok((true, _) | (_, Some(_)))));
                }
                match stepped {
                    Ok((_, Some(answer))) => return Ok((state, Ok(Some(answer)))),
                    Ok((_, None)) if state.core.has_continuation() => return Ok((state, Ok(None))),
                    Ok((true, None)) => moved = true,
                    Ok((false, None)) if burst > 1 => rest(&mut state),
                    Ok((false, None)) => {}
                    Err(error) => return Ok((state, Err(error))),
                }
                if self.wanted() {
                    break;
                }
            }
            if let Some(error) = self.fabric.failure() {
                return Ok((state, Err(error)));
            }
            news |= moved;
            let spinning = !self.spin().is_zero() && {
                let now = Instant::now();
                // A wait that spins longer than usual looks like a wait that sleeps now and then.
                if self.spin() > SPIN && *record_at.get_or_insert(now + SPIN) <= now {
                    self.record(&mut state, awaited, recorded, std::mem::take(&mut news));
                    record_at = Some(now + NAP);
                }
                let end = *deadline.filter(|_| !moved).get_or_insert(now + self.spin());
                deadline = Some(end);
                now < end
            };
            if yields > 0 && !moved {
                let start = Instant::now();
                drop(state);
                std::thread::yield_now();
                let end = Instant::now();
                state = self.lock()?;
                let (time, waited) = (end - start, end - *began.get_or_insert(start));
                // If another thread of this process waits for the lock, each yield counts, so that the thread gets it.
                let left = match self.wanted() {
                    true => yields - 1,
                    false => left_after(yields, time, waited),
                };
                // Only yields that count say something about other processes.
                if left < yields {
                    state.yields.took(time);
                }
                yields = left;
                continue;
            }
            if moved {
                began = None;
            }
            if moved || spinning {
                if self.wanted() {
                    drop(state);
                    std::thread::yield_now();
                    state = self.lock()?;
                }
                continue;
            }
            // Prepare to sleep. After this announcement, every rank that writes anything for this rank also
            // rings this rank's doorbell.
            let seen = self.fabric.announce();
            match self.step(&mut state, done) {
                Ok((false, None)) if !state.core.has_continuation() => {}
                other => {
                    self.fabric.cancel_wait();
                    match other {
                        Ok((_, Some(answer))) => return Ok((state, Ok(Some(answer)))),
                        Ok((_, None)) if state.core.has_continuation() => {
                            return Ok((state, Ok(None)));
                        }
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
            self.record(&mut state, awaited, recorded, std::mem::take(&mut news));
            drop(state);
            let since = counting::begin_sleep();
            let slept = self.fabric.sleep(seen, nap);
            counting::end_sleep(since);
            state = self.lock()?;
            match slept {
                Ok(woken) => {
                    overslept = woken == Woken::TimedOut && nap == NAP;
                    // The rank that rang probably goes on, for example with the next pieces of a long message.
                    if self.spin().is_zero() && woken != Woken::TimedOut {
                        yields = state.yields.begin();
                        began = None;
                    }
                }
                Err(error) => return Ok((state, Err(error))),
            }
            deadline = None;
        }
    }

    /// Makes one turn of the poller, and then asks `done` for an answer.
    #[inline]
    fn step<R>(
        &self,
        state: &mut State,
        done: &mut impl FnMut(&mut Core) -> Option<R>,
    ) -> Result<(bool, Option<R>)> {
        let moved = state.core.progress();
        state.core.engine.requests().ask_anew();
        // A turn that fails may have completed something before.
        if !matches!(moved, Ok(false)) {
            state.wake_sleepers();
        }
        let moved = moved?;
        // Ask `done` even if nothing moved, because another thread of this process may have completed the
        // operation.
        Ok((moved, done(&mut state.core)))
    }
}

/// A guard that calls a function if the code that holds the guard unwinds. Code that ends normally disarms
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

    /// Disarms the guard, so that the guard no longer calls the function.
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

/// Pauses for a moment, or uses the time to fetch cache lines for the next message. Meanwhile this rank
/// does not read the cache lines that other ranks write.
#[inline]
pub(super) fn rest(state: &mut State) {
    if state.core.engine.prepare() {
        return;
    }
    for _ in 0..state.pauses.pauses {
        std::hint::spin_loop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_without_cpus_never_spin() {
        let asked = Some(Duration::from_millis(1));
        assert_eq!(spin_time(true, None), Duration::ZERO);
        assert_eq!(spin_time(true, asked), Duration::ZERO);
        assert_eq!(spin_time(false, None), SPIN);
        assert_eq!(spin_time(false, asked), Duration::from_millis(1));
    }

    #[test]
    fn yields_count_if_another_process_ran_or_the_time_is_over() {
        let (short, switch) = (ALONE / 4, ALONE * 2);
        assert_eq!(left_after(YIELDS, short, SPIN / 2), YIELDS);
        assert_eq!(left_after(YIELDS, short, SPIN), YIELDS - 1);
        assert_eq!(left_after(YIELDS, switch, Duration::ZERO), YIELDS - 1);
        assert_eq!(left_after(YIELDS, COMPUTES, Duration::ZERO), 0);
        assert_eq!(left_after(0, switch, SPIN), 0);
    }
}
