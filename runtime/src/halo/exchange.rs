//! An exchange that is under way: the guard over its fields, and the operation itself.
//!
//! `plan.rs` starts it; the caller computes on [`Interior`] (`interior.rs`) and then waits.
//!
//! Invariants:
//! - [`Pending`] owns the operations of one exchange; whoever completes it first (the guard's `wait`
//!   or drop, or a field after a leaked guard) completes it for all.
//! - Once it is complete, well or badly, no message touches the memory any more: that is what the
//!   waiting calls of `comm/raw.rs` promise.
//! - The guard holds a share of each field's memory, which goes with it if it is leaked.

use std::fmt;
use std::mem;
use std::sync::{Arc, Mutex, PoisonError};

use super::field::{Element, Field, Storage};
use super::interior::Interior;
use crate::comm::Messages;
use crate::error::{Error, ErrorKind, Result};
use crate::message::Operation;

/// The messages of one exchange.
pub(super) struct Pending {
    messages: Messages,
    state: Mutex<State>,
}

enum State {
    Running(Vec<Operation>),
    Ended(Result<()>),
}

impl Pending {
    pub(super) fn new(messages: Messages, operations: Vec<Operation>) -> Self {
        Self { messages, state: Mutex::new(State::Running(operations)) }
    }

    /// Waits for all messages; afterwards, whatever the result, none touches memory. Every later
    /// call gives the same result.
    pub(super) fn complete(&self) -> Result<()> {
        // A panic below leaves `Ended`; it can only come from under the endpoint's lock, and then
        // no message moves any more.
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *state {
            State::Ended(result) => result.clone(),
            State::Running(operations) => {
                let mut operations = mem::take(operations);
                let panicked = Error::new(ErrorKind::Internal, "exchange", "waiting has panicked");
                *state = State::Ended(Err(panicked));
                let result = self.messages.finish_all(&mut operations).map(|_statuses| ());
                *state = State::Ended(result.clone());
                result
            }
        }
    }

    /// One progress turn.
    pub(super) fn progress(&self) -> Result<()> {
        self.messages.progress()
    }
}

/// A halo exchange under way, from [`Halo::start`](super::Halo::start).
///
/// The fields are borrowed until [`wait`](Exchange::wait) or drop, which both complete the
/// exchange; their owned cells can be worked on meanwhile through [`interior`](Exchange::interior).
#[must_use = "dropping an exchange waits for it at once"]
pub struct Exchange<'a, T: Element, const N: usize> {
    fields: &'a mut [Field<T, N>],
    pending: Arc<Pending>,
    storages: Vec<Arc<Storage<T>>>,
}

impl<'a, T: Element, const N: usize> Exchange<'a, T, N> {
    /// Takes charge of messages that have been started on all of `fields`.
    pub(super) fn new(fields: &'a mut [Field<T, N>], pending: Pending) -> Self {
        let pending = Arc::new(pending);
        let storages = fields.iter().map(|field| field.storage().clone()).collect();
        for field in fields.iter_mut() {
            field.set_pending(Some(pending.clone()));
        }
        Self { fields, pending, storages }
    }

    /// The cells that may be read and written while messages are under way.
    pub fn interior(&mut self) -> Interior<'_, T, N> {
        let block = self.fields[0].block();
        let starts = self.storages.iter().map(|storage| storage.start()).collect();
        // SAFETY:
        // - Each storage holds `block.len()` values (all fields of an exchange have one block), is
        //   an allocation of its own, and is kept by `self`, which the result borrows.
        // - The fields are mutably borrowed by `self`, and `self` by the result.
        // - The messages are those of `Halo::post` with this block's faces, and `geometry.rs` puts
        //   send boxes within `width` of the surface and receive boxes into the halo.
        unsafe { Interior::new(block, starts, &self.pending) }
    }

    /// Waits until all halos are filled and all sent cells are free again.
    ///
    /// # Errors
    ///
    /// When another rank has died; the halos are not all filled then.
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
        // A failure is not lost: the fields keep the operation, and report it when they are
        // settled or exchanged next.
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
