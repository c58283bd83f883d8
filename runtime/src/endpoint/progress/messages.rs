//! The messages of an endpoint: each call takes the lock, starts a send or a receive in `../engine.rs` or asks for its
//! state, and runs one turn.
//!
//! `comm/` makes these calls with what it has checked. `blocking.rs` has the receives that wait in the same call, and
//! `waiting.rs` the waits.

use super::*;

impl Endpoint {
    /// Starts a standard send.
    ///
    /// # Safety
    ///
    /// - The arguments meet the conditions of [`MessageEngine::send`].
    ///
    /// # Errors
    /// Returns the errors of [`MessageEngine::send`], `ErrorKind::State` after finalization or in a forked child, and
    /// `ErrorKind::Internal` after a panic inside the library.
    pub unsafe fn send(
        &self,
        layout: &Elements<&Plan>,
        label: Label,
        dest: Process,
    ) -> Result<Operation> {
        let status = Status { source: self.rank(), tag: label.tag, bytes: label.bytes };
        // SAFETY: the caller guarantees the conditions of `MessageEngine::send` for `layout` and `label`.
        // The standard mode lends no memory.
        let pending = unsafe { self.send_as(layout, label, dest, SendMode::Standard)? };
        Ok(pending.map_or(Operation::Done(status), Operation::Pending))
    }

    /// Starts a send in the mode `mode`. Returns the number of the send if the send is pending, and `None` if the send
    /// is complete ([`MessageEngine::start_send`] says why it returns no status).
    ///
    /// # Safety
    ///
    /// - The arguments meet the conditions of [`MessageEngine::send`].
    ///
    /// # Errors
    /// Returns the errors of [`MessageEngine::send`], `ErrorKind::State` after finalization or in a forked child, and
    /// `ErrorKind::Internal` after a panic inside the library.
    #[inline]
    pub unsafe fn send_as(
        &self,
        layout: &Elements<&Plan>,
        label: Label,
        dest: Process,
        mode: SendMode,
    ) -> Result<Option<u64>> {
        let mut state = self.lock()?;
        let news = state.news();
        // SAFETY: the caller guarantees the conditions of `MessageEngine::send` for all four arguments
        // (the only condition of `# Safety`).
        let pending = unsafe { state.core.engine.start_send(layout, label, dest, mode)? };
        self.settle(&mut state, news, pending)?;
        Ok(pending)
    }

    /// Finds the message that a receive would match now, removes it from the queue of unexpected
    /// messages, and returns it. If there is no such message, waits for one if `wait` is true, and
    /// otherwise returns `None`.
    ///
    /// # Errors
    /// Returns an error under the conditions of [`Endpoint::attend`].
    pub fn take(
        &self,
        context: u64,
        source: Sender,
        tag: Tag,
        wait: bool,
    ) -> Result<Option<Taken>> {
        let look = |engine: &mut MessageEngine| engine.take(context, source, tag);
        let awaited = Awaited::Message { call: "Communicator::recv", context, source, tag };
        if wait { self.attend(&awaited, look).map(Some) } else { self.poll_briefly(look) }
    }

    /// Starts the receive of a message that [`Endpoint::take`] returned.
    ///
    /// # Safety
    ///
    /// - The arguments meet the conditions of [`MessageEngine::receive`].
    ///
    /// # Errors
    /// Returns the errors of [`Endpoint::receive`].
    pub unsafe fn receive_taken(
        &self,
        layout: &Elements<&Plan>,
        capacity: u64,
        taken: Taken,
    ) -> Result<Operation> {
        let mut state = self.lock()?;
        let news = state.news();
        // SAFETY: the caller guarantees the conditions of `MessageEngine::receive` for `layout` and
        // `capacity`, and `receive_taken` has no others.
        let started = unsafe { state.core.engine.receive_taken(layout, capacity, taken)? };
        let pending = started.pending();
        self.settle(&mut state, news, pending)?;
        Ok(started)
    }

    /// Starts a receive.
    ///
    /// # Safety
    ///
    /// - `posting` meets the conditions of [`MessageEngine::receive`].
    ///
    /// # Errors
    /// Returns the errors of [`MessageEngine::receive`], `ErrorKind::State` after finalization or in a forked child,
    /// and `ErrorKind::Internal` after a panic inside the library.
    pub unsafe fn receive(&self, posting: &Posting<'_>) -> Result<Operation> {
        let mut state = self.lock()?;
        let news = state.news();
        // Tell the engine that the caller goes on to other work after this call.
        state.core.engine.set_patient(false);
        // SAFETY: the caller guarantees the conditions of `MessageEngine::receive` for `posting`.
        let started = unsafe { state.core.engine.receive(posting) };
        let settled = started.and_then(|started| {
            self.settle(&mut state, news, started.pending())?;
            Ok(started)
        });
        state.core.engine.set_patient(true);
        settled
    }

    /// Waits for a request. When the call returns, nobody uses the operation's memory any more, even if the
    /// call returns an error. `call` is the name of the method that waits, or empty for a blocking send or receive.
    ///
    /// # Errors
    /// Returns the error of the operation, or an error under the conditions of [`Endpoint::attend`].
    pub fn wait(&self, id: u64, call: &'static str) -> Result<Status> {
        let waited = self.lock().and_then(|state| self.wait_for(state, id, call));
        self.ended(id, waited)
    }

    /// Waits for a request. If the wait unwinds, detaches the operation from its memory.
    pub(super) fn wait_for(
        &self,
        state: MutexGuard<'_, State>,
        id: u64,
        call: &'static str,
    ) -> Result<Result<Status>> {
        let guard = OnUnwind::new(|| self.detach(id));
        let awaited = Awaited::Request(id, call);
        let waited = self.wait_until(state, NAP, &awaited, |core| core.engine.requests().fetch(id));
        guard.disarm();
        waited
    }

    /// Returns the result of a wait. If the wait has failed, the function first detaches the operation.
    pub(super) fn ended(&self, id: u64, waited: Result<Result<Status>>) -> Result<Status> {
        match waited {
            Ok(result) => result,
            Err(error) => {
                self.detach(id);
                Err(error)
            }
        }
    }

    /// Runs one turn. Returns the result of a request if the request is then complete.
    ///
    /// # Errors
    /// Returns the errors of [`Endpoint::wait`].
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

    /// Returns the status of the message that a receive would match now. If there is none, waits for one
    /// if `wait` is true, and otherwise returns `None`.
    ///
    /// # Errors
    /// Returns an error under the conditions of [`Endpoint::attend`].
    pub fn probe(
        &self,
        context: u64,
        source: Sender,
        tag: Tag,
        wait: bool,
    ) -> Result<Option<Status>> {
        if wait {
            let awaited = Awaited::Message { call: "Communicator::probe", context, source, tag };
            let found = self.attend(&awaited, |engine| engine.probe(context, source, tag))?;
            return Ok(Some(found));
        }
        let mut state = self.attentive()?;
        let found = state.core.engine.probe(context, source, tag);
        drop(state);
        if found.is_none() { self.nothing() } else { Ok(found) }
    }
}
