//! Requests behind handles: operations that have been started and not yet completed.
//!
//! `p2p/`, `coll/` and `generalized.rs` make requests. `complete.rs` waits, tests and queries. `manage.rs`
//! starts, cancels and frees. The state of an operation is a [`Running`]. It becomes [`Running::Finished`]
//! while the runtime's lock is held (`Request::poll`). The result is taken without that lock, because this
//! may call the user's functions of a generalized request.
//!
//! Invariants: a request's own lock may be taken while the runtime's lock is held, never the other way round.
//! A request keeps its communicator alive, and the runtime keeps the plans alive, so the program may free
//! both while the operation is pending.

pub mod complete;
pub mod generalized;
pub mod manage;

use crate::abi;
use crate::callback::Generalized;
use crate::comm::create::Making;
use crate::comm::{self, On};
use crate::error::{Failure, Result};
use crate::handle::Kind;
use crate::handle::table::Table;
use crate::raw::{self, Status};
use std::ffi::c_int;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use typepack::{Messages, Ongoing, Operation};

/// The result of a completed operation.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The status, without its error.
    pub status: Status,
    /// The operation's failure.
    pub failure: Option<Failure>,
}

impl Outcome {
    /// Returns the outcome of an operation without a message (MPI-5.0 section 3.7.3).
    pub fn empty() -> Self {
        Self { status: Status::empty(), failure: None }
    }

    /// Returns the outcome of a receive from `MPI_PROC_NULL` (MPI-5.0 section 3.10).
    pub fn from_nobody() -> Self {
        Self { status: Status { source: abi::PROC_NULL, ..Status::empty() }, failure: None }
    }

    /// Returns the outcome of a receive.
    pub fn of_receive(on: &On, result: typepack::Result<typepack::Status>) -> Self {
        match result {
            Ok(status) => Self { status: on.comm.status(status), failure: None },
            Err(error) => {
                let status = on.comm.status_of_error(&error).unwrap_or_else(Status::empty);
                Self { status, failure: Some(on.raise(error)) }
            }
        }
    }

    /// Returns the outcome of a send.
    pub fn of_send(on: &On, result: typepack::Result<typepack::Status>) -> Self {
        let failure = result.err().map(|error| on.raise(error));
        Self { status: Status::empty(), failure }
    }
}

/// The state of an operation.
#[derive(Debug)]
pub enum Running {
    /// A persistent request that has not been started, or whose result has been taken.
    Inactive,
    /// A thread is starting a persistent request.
    Starting,
    /// The operation is complete; its result has not been taken.
    Finished(Outcome),
    /// A send of the runtime.
    Send(u64),
    /// A receive of the runtime.
    Receive(u64),
    /// A collective operation of the runtime.
    Collective(u64),
    /// A send and a receive, each `None` when it is complete, and the outcome of the receive.
    Both(Option<u64>, Option<u64>, Outcome),
    /// A flush, which waits for all of these sends.
    Flush(Vec<u64>),
    /// A generalized request, and whether the user has completed it.
    User(Generalized, bool),
    /// A generalized request that was freed before the user completed it. No call can wait for it.
    Freed(Generalized),
}

/// Starts a persistent request.
pub trait Start: fmt::Debug + Send + Sync {
    /// Starts the operation.
    ///
    /// # Errors
    /// Returns the errors of the nonblocking call.
    fn start(&self) -> Result<Running>;
}

/// A request.
#[derive(Debug)]
pub struct Request {
    on: Option<On>,
    persistent: Option<Box<dyn Start>>,
    /// Whether the operation is collective.
    collective: bool,
    /// The communicator that the operation makes. It is not dropped while the runtime's lock is held.
    making: Option<Box<Making>>,
    /// Whether this is the shared request of all sends that were complete when their call returned. The
    /// handle of the shared request never becomes invalid.
    shared: bool,
    running: Mutex<Running>,
}

static REQUESTS: Table<Request> = Table::new(Kind::Request);

impl Request {
    fn lock(&self) -> MutexGuard<'_, Running> {
        // A poisoned lock is fine: every change is one assignment, so a panic leaves no change half done.
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether the request is persistent and not started.
    fn is_inactive(&self) -> bool {
        matches!(*self.lock(), Running::Inactive)
    }

    /// Returns whether the operation is complete; keeps its result if it is.
    fn poll(&self, ongoing: &mut Ongoing<'_>) -> bool {
        let mut running = self.lock();
        let finished = match (&mut *running, &self.on) {
            (Running::Inactive | Running::Finished(_), _) => return true,
            (Running::User(_, complete), _) => return *complete,
            (Running::Flush(sends), _) => {
                sends.retain(|id| !ongoing.is_complete(*id));
                sends.is_empty().then(Outcome::empty)
            }
            (Running::Send(id), Some(on)) => {
                ongoing.fetch(*id).map(|result| Outcome::of_send(on, result))
            }
            (Running::Collective(id), Some(on)) => {
                ongoing.fetch(*id).map(|result| self.of_collective(on, result.map(drop)))
            }
            (Running::Receive(id), Some(on)) => {
                ongoing.fetch(*id).map(|result| Outcome::of_receive(on, result))
            }
            (Running::Both(send, receive, outcome), Some(on)) => {
                if let Some(result) = send.and_then(|id| ongoing.fetch(id)) {
                    *send = None;
                    let failure = result.err().map(|error| on.raise(error));
                    outcome.failure = outcome.failure.take().or(failure);
                }
                if let Some(result) = receive.and_then(|id| ongoing.fetch(id)) {
                    *receive = None;
                    let failure = outcome.failure.take();
                    *outcome = Outcome::of_receive(on, result);
                    outcome.failure = outcome.failure.take().or(failure);
                }
                (send.is_none() && receive.is_none()).then(|| outcome.clone())
            }
            (Running::Starting | Running::Freed(_), _)
            | (
                Running::Send(_) | Running::Receive(_) | Running::Collective(_) | Running::Both(..),
                None,
            ) => None,
        };
        match finished {
            Some(outcome) => {
                *running = Running::Finished(outcome);
                true
            }
            None => false,
        }
    }

    /// Returns the outcome of a collective operation, and makes the handle of its communicator valid.
    fn of_collective(&self, on: &On, result: typepack::Result<()>) -> Outcome {
        let made = result.and_then(|()| self.making.as_ref().map_or(Ok(()), |making| making.end()));
        Outcome { status: Status::empty(), failure: made.err().map(|error| on.raise(error)) }
    }

    /// Abandons an operation that can no longer complete, so that the runtime no longer uses its memory.
    #[cold]
    fn abandon(&self, messages: &Messages, failure: &Failure) {
        let mut running = self.lock();
        let ids: [Option<u64>; 2] = match &*running {
            Running::Inactive | Running::Finished(_) | Running::User(_, true) => return,
            Running::Send(id) | Running::Receive(id) | Running::Collective(id) => [Some(*id), None],
            Running::Both(send, receive, _) => [*send, *receive],
            Running::Starting | Running::Flush(_) | Running::User(..) | Running::Freed(_) => {
                [None, None]
            }
        };
        let failure = match &self.on {
            Some(on) => on.raise(failure.clone()),
            None => failure.clone(),
        };
        // The user carries out a generalized request, so it may still complete, and its functions are called
        // then.
        if !matches!(*running, Running::User(..) | Running::Freed(_)) {
            let outcome = Outcome { status: Status::empty(), failure: Some(failure) };
            *running = Running::Finished(outcome);
        }
        drop(running);
        for id in ids.into_iter().flatten() {
            messages.abandon(Operation::Pending(id));
        }
    }

    /// Takes the result of a complete operation. The request is inactive afterwards. `None` if it was
    /// inactive before.
    fn take(&self) -> Option<Outcome> {
        if self.shared {
            return Some(Outcome::empty());
        }
        let running = std::mem::replace(&mut *self.lock(), Running::Inactive);
        Some(match running {
            Running::Inactive => return None,
            Running::Finished(outcome) => outcome,
            Running::User(functions, _) => {
                let mut outcome = asked(functions);
                let code = functions.free();
                if code != 0 && outcome.failure.is_none() {
                    outcome.failure = Some(Failure::of_callback(code, "free_fn"));
                }
                outcome
            }
            _ => Outcome::empty(),
        })
    }

    /// Returns the result of a complete operation, and keeps it; `None` if the request is inactive.
    fn look(&self) -> Option<Outcome> {
        let running = self.lock();
        Some(match &*running {
            Running::Inactive => return None,
            Running::Finished(outcome) => outcome.clone(),
            Running::User(functions, _) => {
                let functions = *functions;
                drop(running);
                asked(functions)
            }
            _ => Outcome::empty(),
        })
    }
}

/// Returns the outcome that the user's query function reports.
fn asked(functions: Generalized) -> Outcome {
    let mut outcome = Outcome::empty();
    let code = functions.query(&mut outcome.status);
    if code != 0 {
        outcome.failure = Some(Failure::of_callback(code, "query_fn"));
    }
    outcome
}

/// Returns the messages of the process. Waiting for them waits for the messages of all communicators.
///
/// # Errors
/// Returns `MPI_ERR_OTHER` if the process has not joined a job.
pub fn messages() -> Result<&'static Messages> {
    match comm::world() {
        Some(world) => Ok(world.messages()),
        None => Err(Failure::new(abi::ERR_OTHER, "request", "this process has not joined a job")),
    }
}

impl Request {
    fn new(on: Option<On>, running: Running) -> Self {
        let running = Mutex::new(running);
        Self { on, persistent: None, collective: false, making: None, shared: false, running }
    }
}

fn insert(request: Request) -> Result<raw::Request> {
    let request = Arc::new(request);
    match REQUESTS.insert(request.clone()) {
        Ok(handle) => Ok(raw::Request(handle)),
        Err(failure) => {
            let failure = Failure::from(failure);
            request.abandon(messages()?, &failure);
            Err(failure)
        }
    }
}

/// Makes a request for an operation that has been started.
///
/// # Errors
/// Returns `MPI_ERR_OTHER` if no handle is left. Then the operation has been abandoned, and no longer uses
/// its memory.
pub fn open(on: Option<On>, running: Running) -> Result<raw::Request> {
    insert(Request::new(on, running))
}

/// Makes a request for an operation that can be started repeatedly.
///
/// # Errors
/// Returns `MPI_ERR_OTHER` if no handle is left.
pub fn persistent(on: On, start: Box<dyn Start>) -> Result<raw::Request> {
    insert(Request { persistent: Some(start), ..Request::new(Some(on), Running::Inactive) })
}

/// Returns the state of a collective operation that has just been started.
pub fn collective(operation: Operation) -> Running {
    match operation {
        Operation::Done(_) => Running::Finished(Outcome::empty()),
        Operation::Pending(id) => Running::Collective(id),
    }
}

/// Makes a request for a collective operation that has been started, and for the communicator that it makes.
///
/// # Errors
/// Returns the errors of [`open`], and the runtime's error if the communicator cannot be made.
pub fn open_collective(
    on: On,
    running: Running,
    making: Option<Box<Making>>,
) -> Result<raw::Request> {
    let request = Request { collective: true, making, ..Request::new(Some(on), running) };
    if let (Running::Finished(_), Some(making)) = (&*request.lock(), &request.making) {
        making.end()?;
    }
    insert(request)
}

/// Makes a request for a collective operation that can be started repeatedly.
///
/// # Errors
/// Returns `MPI_ERR_OTHER` if no handle is left.
pub fn persistent_collective(on: On, start: Box<dyn Start>) -> Result<raw::Request> {
    let request = Request::new(Some(on), Running::Inactive);
    insert(Request { persistent: Some(start), collective: true, ..request })
}

/// Returns the handle of all sends that were complete when their call returned. Most sends are, so they share
/// one request instead of making one each.
///
/// # Errors
/// Returns `MPI_ERR_OTHER` if no handle is left.
pub fn sent() -> Result<raw::Request> {
    static SENT: OnceLock<raw::Request> = OnceLock::new();
    if let Some(handle) = SENT.get() {
        return Ok(*handle);
    }
    let request = Request::new(None, Running::Finished(Outcome::empty()));
    let handle = insert(Request { shared: true, ..request })?;
    Ok(*SENT.get_or_init(|| handle))
}

/// Returns the request of a handle.
///
/// # Errors
/// Returns `MPI_ERR_REQUEST` if the handle is not valid, or a generalized request has been freed.
pub fn find(request: raw::Request) -> Result<Arc<Request>> {
    let found = REQUESTS.find(request.0).ok_or_else(|| invalid(request))?;
    if matches!(*found.lock(), Running::Freed(_)) {
        return Err(invalid(request));
    }
    Ok(found)
}

/// Completes a generalized request (`MPI_Grequest_complete`).
///
/// # Errors
/// Returns `MPI_ERR_REQUEST` if the request is of another kind or already complete, and the code of its free
/// function.
pub fn complete(handle: raw::Request) -> Result {
    let request = REQUESTS.find(handle.0).ok_or_else(|| invalid(handle))?;
    let mut running = request.lock();
    let freed = match &mut *running {
        Running::User(_, complete @ false) => {
            *complete = true;
            None
        }
        Running::Freed(functions) => Some(*functions),
        Running::User(..) => {
            return Err(Failure::new(
                abi::ERR_REQUEST,
                "request",
                "the generalized request is already complete",
            ));
        }
        _ => {
            let detail = "not a generalized request";
            return Err(Failure::new(abi::ERR_REQUEST, "request", detail));
        }
    };
    drop(running);
    let Some(functions) = freed else {
        messages()?.nudge();
        return Ok(());
    };
    // The thread that removes the request from the table calls the free function, so it is called once.
    if REQUESTS.remove(handle.0).is_none() {
        return Err(invalid(handle));
    }
    match functions.free() {
        0 => Ok(()),
        code => Err(Failure::of_callback(code, "free_fn")),
    }
}

#[cold]
fn invalid(request: raw::Request) -> Failure {
    let null = (abi::REQUEST_NULL, "MPI_REQUEST_NULL");
    Failure::no_object(abi::ERR_REQUEST, ("request", "request"), request.0, null)
}

/// Returns the live handle with this integer.
pub fn from_int(integer: c_int) -> Option<usize> {
    REQUESTS.of_int(integer)
}
