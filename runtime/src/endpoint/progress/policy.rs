//! The policy of an endpoint: the settings that `world.rs` passes on when a process joins a job, and what the process
//! has remembered about the ways of long messages.
//!
//! The settings take effect in the message engine (`../engine.rs`) and in the waits (`waiting.rs`). The reports and
//! `typepack info` show what was remembered.

use super::*;
use typepack_engine::choice::{Measured, Tune, WAITS, store};
use typepack_engine::contiguous::Method;

impl Endpoint {
    /// Sets which choosers of this rank measure which of several ways is best, and the method that all copies of long runs must
    /// use (`None`: any method).
    ///
    /// # Errors
    /// Returns `ErrorKind::State` after finalization or in a forked child, and `ErrorKind::Internal` after a panic.
    pub fn tune(&self, tune: Tune, copy: Option<Method>) -> Result<()> {
        let mut state = self.lock()?;
        state.pauses.set(tune.measures(WAITS));
        state.core.engine.tune(tune, copy, Some(store()));
        Ok(())
    }

    /// Returns the ways of long messages that this rank has chosen by measurement, one line each, and a line about its
    /// waits if their ways have been compared.
    ///
    /// # Errors
    /// Returns `ErrorKind::State` after finalization or in a forked child, and `ErrorKind::Internal` after a panic.
    pub fn choices(&self) -> Result<Vec<String>> {
        let state = self.lock()?;
        let mut choices = state.core.engine.choices();
        choices.extend(state.pauses.report());
        Ok(choices)
    }

    /// Returns what this rank has measured about the ways of long messages.
    ///
    /// # Errors
    /// Returns `ErrorKind::State` after finalization or in a forked child, and `ErrorKind::Internal` after a panic.
    pub fn measured(&self) -> Result<Vec<Measured>> {
        Ok(self.lock()?.core.engine.measured())
    }

    /// Makes the engine compare the types of messages and receives from now on.
    ///
    /// # Errors
    /// Returns `ErrorKind::State` after finalization or in a forked child, and `ErrorKind::Internal` after a panic.
    pub fn check_types(&self) -> Result<()> {
        self.change(MessageEngine::check_types)
    }

    /// Sets the number of bytes that unexpected messages of one sender may occupy.
    ///
    /// # Errors
    /// Returns `ErrorKind::State` after finalization or in a forked child, and `ErrorKind::Internal` after a panic.
    pub fn bound(&self, unexpected: u64) -> Result<()> {
        self.change(|engine| engine.bound(unexpected))
    }
}
