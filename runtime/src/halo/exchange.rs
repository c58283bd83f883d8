//! An exchange that is under way: its operation, and the guard that borrows its fields.
//!
//! `plan.rs` starts an exchange. The caller computes on the [`Interior`] (`interior.rs`) and then waits.
//!
//! Invariants:
//! - [`Pending`] owns the operation of one exchange. The guard's `wait`, the guard's drop, or (if the guard
//!   was leaked) one of the fields completes the exchange. Whichever comes first completes the exchange for
//!   the guard and for all fields.
//! - After completion, even if the exchange has failed, no message accesses the memory. The waiting calls of
//!   `comm/raw.rs` guarantee this.
//! - The guard and each field share the ownership of the field's memory. If the program leaks the guard, it
//!   leaks the memory too.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use super::field::{Element, Field, Storage};
use super::interior::Interior;
use crate::comm::Messages;
use crate::error::{Error, ErrorKind, Result};
use crate::message::Operation;

/// The operation of one exchange, until it is complete, and the result of the exchange after that.
pub(super) struct Pending {
    messages: Messages,
    state: Mutex<State>,
}

enum State {
    Running(Operation),
    Ended(Result<()>),
}

impl Pending {
    pub(super) fn new(messages: Messages, operation: Operation) -> Self {
        Self { messages, state: Mutex::new(State::Running(operation)) }
    }

    /// Waits for all messages of the exchange. After the call, even with an error, no message accesses the
    /// memory. Every later call returns the same result.
    pub(super) fn complete(&self) -> Result<()> {
        // A poisoned lock needs no care: if the code below panics, the state is already `Ended`. Only code
        // under the endpoint's lock can panic here, and after such a panic no message moves any more.
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *state {
            State::Ended(result) => result.clone(),
            State::Running(operation) => {
                let operation = *operation;
                let detail = "an earlier wait for this exchange has panicked";
                let panicked = Error::new(ErrorKind::Internal, "exchange", detail);
                *state = State::Ended(Err(panicked));
                let result = self.messages.finish(operation).map(|_status| ());
                *state = State::Ended(result.clone());
                result
            }
        }
    }

    /// Moves some or all of the messages that can move now, and does not wait.
    pub(super) fn progress(&self) -> Result<()> {
        self.messages.progress()
    }
}

/// A halo exchange that is under way, from [`Halo::start`](super::Halo::start).
///
/// This value borrows the fields until the program calls [`wait`](Exchange::wait) or drops the value. Both
/// complete the exchange. Until then the program can work on the owned cells through
/// [`interior`](Exchange::interior).
#[must_use = "dropping an exchange waits for it at once"]
pub struct Exchange<'a, T: Element, const N: usize> {
    fields: &'a mut [Field<T, N>],
    pending: Arc<Pending>,
    storages: Vec<Arc<Storage<T>>>,
}

impl<'a, T: Element, const N: usize> Exchange<'a, T, N> {
    /// Makes the guard for an exchange of `fields` whose messages have been started.
    pub(super) fn new(fields: &'a mut [Field<T, N>], pending: Pending) -> Self {
        let pending = Arc::new(pending);
        let storages = fields.iter().map(|field| field.storage().clone()).collect();
        for field in fields.iter_mut() {
            field.set_pending(Some(pending.clone()));
        }
        Self { fields, pending, storages }
    }

    /// Returns the cells that the program may read and write while messages are under way.
    pub fn interior(&mut self) -> Interior<'_, T, N> {
        let block = self.fields[0].block();
        let starts = self.storages.iter().map(|storage| storage.start()).collect();
        // SAFETY:
        // - Each storage is a separate allocation of `block.len()` values, because all fields of an exchange
        //   have the same block. `self` keeps the storages alive, and the result borrows `self`.
        // - `self` mutably borrows the fields, and the result mutably borrows `self`. So only the result
        //   and the messages access the storages.
        // - The messages come from `Halo::post` with this block's faces: `geometry.rs` places send boxes
        //   within `width` cells of the surface and receive boxes in the halo.
        unsafe { Interior::new(block, starts, &self.pending) }
    }

    /// Waits until all halos are filled and the program may change the sent cells again.
    ///
    /// # Errors
    ///
    /// Returns `ErrorKind::ProcAborted` if another rank has died. In that case some halos are not filled.
    pub fn wait(self) -> Result<()> {
        let result = self.pending.complete();
        for field in self.fields.iter_mut() {
            field.set_pending(None);
        }
        result
    }
}

impl<T: Element, const N: usize> Drop for Exchange<'_, T, N> {
    fn drop(&mut self) {
        // If the exchange failed, each field keeps the exchange, and `Field::settle` or the next exchange of
        // the field reports the error.
        if self.pending.complete().is_ok() {
            for field in self.fields.iter_mut() {
                field.set_pending(None);
            }
        }
    }
}

impl<T: Element, const N: usize> fmt::Debug for Exchange<'_, T, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exchange").field("fields", &self.fields).finish_non_exhaustive()
    }
}
