//! The operations of sources of progress (`../sources.rs`), as the endpoint starts them, runs them to their end, and hears
//! of what has happened without its lock.
//!
//! Schedules, windows, files and partitioned operations use these calls. The waits are those of `waiting.rs`.

use super::*;

impl Endpoint {
    /// Adds a source of progress. The function calls `make` with the number of the new source.
    ///
    /// # Errors
    /// Returns `ErrorKind::State` after finalization or in a forked child, and `ErrorKind::Internal` after a panic.
    pub fn register<S: ProgressSource>(&self, make: impl FnOnce(u32) -> S) -> Result<()> {
        self.with_core(|core| core.register(make))
    }

    /// Calls `change` with the engine and the sources of progress.
    ///
    /// # Errors
    /// Returns `ErrorKind::State` after finalization or in a forked child, and `ErrorKind::Internal` after a panic.
    pub fn with_core<R>(&self, change: impl FnOnce(&mut Core) -> R) -> Result<R> {
        Ok(change(&mut self.lock()?.core))
    }

    /// Reports something that a thread of this process has done for a source of progress, for example the end
    /// of work that ran without the lock. Then wakes the waiting threads, so that they look again.
    ///
    /// # Errors
    /// Returns `ErrorKind::State` after finalization or in a forked child, and `ErrorKind::Internal` after a panic
    /// inside the library. In both cases `report` was not called.
    pub fn report(&self, report: impl FnOnce(&mut Core)) -> Result<()> {
        let mut state = self.lock()?;
        let news = state.news();
        report(&mut state.core);
        state.core.look_around();
        self.notify(&mut state, news);
        Ok(())
    }

    /// Starts an operation of a source of progress and waits for it. `awaited` says for what. The call takes the lock
    /// only once.
    /// `start` starts the operation and returns a value that is passed to `done` and `abandon`. `done`
    /// returns the result once the operation is complete. If the wait fails or unwinds, this function calls
    /// `abandon`, which detaches the operation, and repeats the call until `abandon` returns true.
    ///
    /// # Errors
    /// Returns the errors of `start` and of the wait, `ErrorKind::State` after finalization or in a forked child, and
    /// `ErrorKind::Internal` after a panic inside the library.
    #[inline]
    pub fn run<T: Copy, R>(
        &self,
        awaited: &Awaited,
        start: impl FnOnce(&mut Core) -> Result<T>,
        mut done: impl FnMut(&mut Core, T) -> Option<R>,
        mut abandon: impl FnMut(&mut Core, T) -> bool,
    ) -> Result<R> {
        let mut state = self.lock()?;
        let news = state.news();
        let started = start(&mut state.core);
        self.notify(&mut state, news);
        let token = started?;
        if let Some(answer) = done(&mut state.core, token) {
            self.turn_unless_idle(&mut state)?;
            return Ok(answer);
        }
        let mut guard = OnUnwind::new(|| self.let_go(|core| abandon(core, token)));
        let waited = self.wait_until(state, NAP, awaited, |core| done(core, token));
        if waited.is_err() {
            guard.call();
        }
        guard.disarm();
        waited
    }

    /// Starts an operation of a source of progress, and runs one turn.
    ///
    /// # Errors
    /// Returns the errors of `start`, `ErrorKind::State` after finalization or in a forked child, and
    /// `ErrorKind::Internal` after a panic inside the library.
    pub fn begin(&self, start: impl FnOnce(&mut Core) -> Result<Operation>) -> Result<Operation> {
        let mut state = self.lock()?;
        let news = state.news();
        // Tell the engine that the caller goes on to other work after this call.
        state.core.engine.set_patient(false);
        let started = start(&mut state.core);
        let settled = started.and_then(|started| {
            self.settle(&mut state, news, started.pending())?;
            Ok(started)
        });
        state.core.engine.set_patient(true);
        settled
    }

    /// Starts operations of a source of progress that have no number for the caller, and runs one turn. In contrast to
    /// [`begin`](Self::begin), the engine counts the caller as a thread that waits for the operations. If the turn
    /// fails, the next turn returns its error: the operations have started.
    ///
    /// # Errors
    /// Returns the errors of `start`, `ErrorKind::State` after finalization or in a forked child, and
    /// `ErrorKind::Internal` after a panic inside the library.
    pub fn start<R>(&self, start: impl FnOnce(&mut Core) -> Result<R>) -> Result<R> {
        let mut state = self.lock()?;
        let news = state.news();
        let started = start(&mut state.core)?;
        self.go_on(&mut state, news);
        Ok(started)
    }
}
