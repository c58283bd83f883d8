//! Plain requests: those of a single send or receive that is neither persistent nor collective.
//!
//! A program makes such requests more often than all others, so a plain request must cost little. Its state is a
//! value in a table with one lock. A call that completes many plain requests takes this lock once in each of its
//! steps, and not for each request ([`Plains`]). All other requests are objects of their own (`mod.rs`).
//! `p2p/nonblocking.rs` makes plain requests. The calls of `complete.rs` and `manage.rs` recognize a plain request
//! by its handle ([`is_plain`]).
//!
//! Three invariants hold. A thread that holds the runtime's lock may take the lock of the table, but a thread that
//! holds the lock of the table never takes the runtime's lock. No function of the user is called under the lock of
//! the table. The last reference to a communicator is never dropped under the lock of the table, because this may
//! take the runtime's lock.

use super::described::of_plain;
use super::{Outcome, invalid, messages};
use crate::comm::{Comm, Keep};
use crate::error::{Failure, Result};
use crate::handle::table::Busy;
use crate::handle::values::Values;
use crate::handle::{self, Kind};
use crate::raw::{self, Status};
use std::ffi::c_int;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use typepack::{Cancelled, Messages, Ongoing, Operation};

/// The state of a plain request.
#[derive(Debug)]
pub enum State {
    /// A send; this is the runtime's number of the send.
    Send(u64),
    /// A receive; this is the runtime's number of the receive.
    Receive(u64),
    /// The operation has succeeded, and its result has not been taken yet.
    Done(Status),
    /// The operation has failed, and its result has not been taken yet.
    Failed(Box<Outcome>),
}

impl From<Outcome> for State {
    #[inline]
    fn from(outcome: Outcome) -> Self {
        match outcome.failure {
            None => Self::Done(outcome.status),
            Some(_) => Self::Failed(Box::new(outcome)),
        }
    }
}

impl State {
    /// Returns the runtime's number of the operation; `None` if the operation is complete.
    fn id(&self) -> Option<u64> {
        match self {
            Self::Send(id) | Self::Receive(id) => Some(*id),
            Self::Done(_) | Self::Failed(_) => None,
        }
    }

    /// Returns the outcome of a complete operation; the empty outcome while the operation is pending.
    #[inline]
    pub fn outcome(self) -> Outcome {
        match self {
            Self::Done(status) => Outcome { status, failure: None },
            Self::Failed(outcome) => *outcome,
            Self::Send(_) | Self::Receive(_) => Outcome::empty(),
        }
    }
}

/// A plain request.
#[derive(Debug)]
struct Plain {
    comm: Keep,
    /// The handle of the communicator, which error handlers get as an argument.
    handle: raw::Comm,
    state: State,
}

impl Plain {
    /// Returns whether the operation is complete. If so, the request now has the result.
    #[inline]
    fn poll(&mut self, ongoing: &mut Ongoing<'_>) -> bool {
        let Some(id) = self.state.id() else { return true };
        self.state = match (&self.state, ongoing.fetch(id)) {
            (_, None) => return false,
            (State::Send(_), Some(Ok(_))) => State::Done(Status::empty()),
            (_, Some(Ok(status))) => State::Done(self.comm.status(status)),
            (_, Some(Err(error))) => {
                Outcome::of_receive_in(&self.comm, self.handle, Err(error)).into()
            }
        };
        true
    }
}

static PLAIN: Mutex<Values<Plain>> = Mutex::new(Values::new(Kind::PlainRequest));

type Guard = MutexGuard<'static, Values<Plain>>;

#[inline]
fn lock() -> Guard {
    // The table may be used after a panic poisoned the lock. No call under the lock can panic between two
    // assignments that belong together, so the table is consistent.
    PLAIN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns whether a handle is that of a plain request. The request may have ended already.
#[inline]
pub fn is_plain(request: raw::Request) -> bool {
    Kind::PlainRequest.is_of(request.0)
}

/// Returns whether a handle belongs to a plain request that has not ended.
pub fn is_live(request: raw::Request) -> bool {
    is_plain(request) && lock().get(request.0).is_some()
}

/// Describes a plain request for a debugger, without waiting for a lock. Returns `None` if the request has ended.
///
/// # Errors
/// Returns [`Busy`] if a thread holds a lock that the description needs.
pub fn described(request: raw::Request) -> std::result::Result<Option<String>, Busy> {
    let table = match PLAIN.try_lock() {
        Ok(table) => table,
        Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
        Err(TryLockError::WouldBlock) => return Err(Busy),
    };
    table.get(request.0).map(|plain| of_plain(&plain.state, &plain.comm)).transpose()
}

/// Returns the live handle whose lower 32 bits are `integer`; `None` if there is none.
pub fn of_int(integer: c_int) -> Option<usize> {
    lock().of_int(integer)
}

/// Checks that there is memory for another plain request, before its operation starts.
///
/// # Errors
/// Returns `MPI_ERR_NO_MEM` if memory is short.
#[inline(always)]
pub fn check_memory() -> Result {
    Ok(handle::check_memory(Kind::PlainRequest)?)
}

/// Makes a plain request for an operation in the communicator `comm`, whose handle is `handle`. Before the operation
/// started, the caller has called [`check_memory`].
///
/// # Errors
/// Returns `MPI_ERR_OTHER` if no handle is left. In this case the operation has been abandoned, and no longer
/// uses its memory.
#[inline(always)]
pub fn open(comm: Keep, handle: raw::Comm, state: State) -> Result<raw::Request> {
    let mut table = lock();
    match table.vacant() {
        Ok(vacant) => Ok(raw::Request(vacant.fill(Plain { comm, handle, state }))),
        Err(failure) => {
            let failure = failure.into();
            drop(table);
            Err(refused(&comm, &state, failure))
        }
    }
}

#[cold]
fn refused(comm: &Keep, state: &State, failure: Failure) -> Failure {
    if let Some(id) = state.id() {
        comm.messages().abandon(Operation::Pending(id));
    }
    failure
}

/// Access to the table of plain requests, for a call that may use several of them. The value takes the lock of the
/// table when the call first uses a plain request. It keeps the lock until [`release`](Self::release) is called or
/// the value is dropped.
#[derive(Debug, Default)]
pub struct Plains {
    guard: Option<Guard>,
    /// The communicator of the last request that the call has ended, unless that is `MPI_COMM_WORLD`. While this
    /// reference exists, dropping another reference does not end the communicator, and so needs no lock.
    last: Option<Arc<Comm>>,
}

impl Plains {
    #[inline]
    fn table(&mut self) -> &mut Values<Plain> {
        self.guard.get_or_insert_with(lock)
    }

    /// Releases the lock.
    #[inline]
    pub fn release(&mut self) {
        self.guard = None;
    }

    /// Checks that a handle belongs to a plain request that has not ended.
    ///
    /// # Errors
    /// Returns `MPI_ERR_REQUEST` if the handle is not valid.
    #[inline]
    pub fn check(&mut self, request: raw::Request) -> Result {
        match self.table().get(request.0) {
            Some(_) => Ok(()),
            None => Err(invalid(request)),
        }
    }

    /// Returns whether the operation of a request is complete. If so, the request now has the result. Another
    /// thread may have ended the request since [`check`](Self::check); such a request counts as complete.
    #[inline]
    pub fn poll(&mut self, request: raw::Request, ongoing: &mut Ongoing<'_>) -> bool {
        self.table().get_mut(request.0).is_none_or(|plain| plain.poll(ongoing))
    }

    /// Ends a complete request. Calls `succeeded` with the status if the operation has succeeded, and returns the
    /// outcome otherwise. Returns `None` if another thread has ended the request.
    #[inline]
    pub fn take<R>(
        &mut self,
        request: raw::Request,
        succeeded: impl FnOnce(&Status) -> R,
    ) -> Option<std::result::Result<R, Outcome>> {
        // Most requests belong to `MPI_COMM_WORLD` and have succeeded. Their status is read where it is.
        let taken = self.table().remove_with(request.0, |plain| match plain {
            Some(Plain { comm: Keep::World(_), state: State::Done(status), .. }) => {
                Ok(succeeded(status))
            }
            other => Err((other.take(), succeeded)),
        })?;
        match taken {
            Ok(result) => Some(Ok(result)),
            Err((plain, succeeded)) => {
                let Plain { comm, state, .. } = plain?;
                self.keep(comm);
                Some(match state {
                    State::Done(status) => Ok(succeeded(&status)),
                    state => Err(state.outcome()),
                })
            }
        }
    }

    /// Drops a reference to a communicator. This may be the last reference, so the lock is released before.
    fn keep(&mut self, comm: Keep) {
        if let Keep::Counted(comm) = comm
            && !self.last.as_ref().is_some_and(|last| Arc::ptr_eq(last, &comm))
        {
            // The assignment drops the reference to another communicator.
            self.release();
            self.last = Some(comm);
        }
    }

    /// Returns the result of a complete request, and leaves the result in the request. Returns `None` if another
    /// thread has ended the request.
    pub fn look(&mut self, request: raw::Request) -> Option<Outcome> {
        Some(match &self.table().get(request.0)?.state {
            State::Done(status) => Outcome { status: *status, failure: None },
            State::Failed(outcome) => Outcome::clone(outcome),
            State::Send(_) | State::Receive(_) => Outcome::empty(),
        })
    }
}

/// Abandons an operation that can no longer complete, so that the runtime no longer uses its memory. The operation
/// then counts as complete, with the failure `failure`.
#[cold]
pub fn abandon(request: raw::Request, messages: &Messages, failure: &Failure) {
    let mut table = lock();
    let Some(plain) = table.get_mut(request.0) else { return };
    let Some(id) = plain.state.id() else { return };
    let failure = Some(plain.comm.raise(plain.handle, failure.clone()));
    plain.state = Outcome { failure, ..Outcome::empty() }.into();
    drop(table);
    messages.abandon(Operation::Pending(id));
}

/// Cancels the operation of a request (`MPI_Cancel`). Does nothing if the operation is complete.
///
/// # Errors
/// Returns `MPI_ERR_REQUEST` if the handle is not valid, and the runtime's errors.
pub fn cancel(request: raw::Request) -> Result {
    messages()?.change(|ongoing| {
        let mut table = lock();
        let plain = table.get_mut(request.0).ok_or_else(|| invalid(request))?;
        let recalled = match plain.state {
            State::Receive(id) => ongoing.cancel_receive(id).then_some(true),
            State::Send(id) => match ongoing.cancel_send(id) {
                Cancelled::No => None,
                cancelled => Some(cancelled == Cancelled::Recalled),
            },
            State::Done(_) | State::Failed(_) => None,
        };
        if let Some(recalled) = recalled {
            plain.state = Outcome::of_cancel(recalled).into();
        }
        Ok(())
    })?
}

/// Frees a request (`MPI_Request_free`). A pending operation continues.
///
/// # Errors
/// Returns `MPI_ERR_REQUEST` if the handle is not valid, and the runtime's errors.
pub fn free(request: raw::Request) -> Result {
    let freed = messages()?.change(|ongoing| {
        let plain = lock().remove(request.0).ok_or_else(|| invalid(request))?;
        if let Some(id) = plain.state.id() {
            ongoing.forget(id);
        }
        Ok(plain)
    })?;
    // The communicator is dropped here, without a lock.
    freed.map(drop)
}
