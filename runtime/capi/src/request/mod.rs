//! Requests behind handles: operations that have been started and not yet completed.
//!
//! `p2p/` and `generalized.rs` make them, and the last completes its own; `complete.rs` waits, tests and
//! asks; `manage.rs` starts, cancels and frees. What an operation is at the moment is [`Running`];
//! it becomes [`Running::Finished`] under the runtime's lock (`Request::poll`) and is taken without
//! it, because the user's functions of a generalized request are called then.
//!
//! Invariants: a request's own lock is taken under the runtime's, never the other way round; a
//! request holds its communicator, and the runtime the plans, so both may be freed meanwhile.

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

/// What a completed operation says.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The status, without its error.
    pub status: Status,
    /// The operation's failure.
    pub failure: Option<Failure>,
}

impl Outcome {
    /// That of an operation without a message (MPI-5.0 section 3.7.3).
    pub fn empty() -> Self {
        Self { status: Status::empty(), failure: None }
    }

    /// That of a receive from nobody (MPI-5.0 section 3.10).
    pub fn from_nobody() -> Self {
        Self { status: Status { source: abi::PROC_NULL, ..Status::empty() }, failure: None }
    }

    /// That of a receive.
    pub fn of_receive(on: &On, result: typepack::Result<typepack::Status>) -> Self {
        match result {
            Ok(status) => Self { status: on.comm.status(status), failure: None },
            Err(error) => {
                let status = on.comm.status_of_error(&error).unwrap_or_else(Status::empty);
                Self { status, failure: Some(on.raise(error)) }
            }
        }
    }

    /// That of a send.
    pub fn of_send(on: &On, result: typepack::Result<typepack::Status>) -> Self {
        let failure = result.err().map(|error| on.raise(error));
        Self { status: Status::empty(), failure }
    }
}

/// What an operation is at the moment.
#[derive(Debug)]
pub enum Running {
    /// A persistent request that has not been started, or whose result has been taken.
    Inactive,
    /// Between the two: another thread is starting it.
    Starting,
    /// Complete; the result has not been taken.
    Finished(Outcome),
    /// A send of the runtime.
    Send(u64),
    /// A receive of the runtime.
    Receive(u64),
    /// A collective operation of the runtime.
    Collective(u64),
    /// Both, and what the receive said if it is complete.
    Both(Option<u64>, Option<u64>, Outcome),
    /// All of these sends.
    Flush(Vec<u64>),
    /// Whatever the user does; complete when the user says so.
    User(Generalized, bool),
    /// The same, freed before the user said so: nobody can wait for it any more.
    Freed(Generalized),
}

/// How a persistent request is started.
pub trait Start: fmt::Debug + Send + Sync {
    /// Starts it.
    ///
    /// # Errors
    /// What the nonblocking call would say.
    fn start(&self) -> Result<Running>;
}

/// A request.
#[derive(Debug)]
pub struct Request {
    on: Option<On>,
    persistent: Option<Box<dyn Start>>,
    /// It is a collective operation.
    collective: bool,
    /// The communicator that it makes. Not dropped under the runtime's lock.
    making: Option<Box<Making>>,
    /// All sends that were complete at once have one handle, which is never invalid.
    shared: bool,
    running: Mutex<Running>,
}

static REQUESTS: Table<Request> = Table::new(Kind::Request);

impl Request {
    fn lock(&self) -> MutexGuard<'_, Running> {
        // Every change is one assignment: a panic between two leaves nothing half done.
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it is persistent and not started.
    fn is_inactive(&self) -> bool {
        matches!(*self.lock(), Running::Inactive)
    }

    /// Looks whether the operation is complete, and keeps its result if so.
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

    /// What a collective operation says; what it makes is there from now on.
    fn of_collective(&self, on: &On, result: typepack::Result<()>) -> Outcome {
        let made = result.and_then(|()| self.making.as_ref().map_or(Ok(()), |making| making.end()));
        Outcome { status: Status::empty(), failure: made.err().map(|error| on.raise(error)) }
    }

    /// Gives up on an operation that can complete no more: its memory is let go.
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
        // A generalized request is the user's: it may still complete, and its functions be called.
        if !matches!(*running, Running::User(..) | Running::Freed(_)) {
            let outcome = Outcome { status: Status::empty(), failure: Some(failure) };
            *running = Running::Finished(outcome);
        }
        drop(running);
        for id in ids.into_iter().flatten() {
            messages.abandon(Operation::Pending(id));
        }
    }

    /// The result of a complete operation; the request is inactive, or gone, afterwards. `None` if
    /// it was inactive before.
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

    /// The result of a complete operation, left where it is; `None` if it is inactive.
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

/// What the user's query function says.
fn asked(functions: Generalized) -> Outcome {
    let mut outcome = Outcome::empty();
    let code = functions.query(&mut outcome.status);
    if code != 0 {
        outcome.failure = Some(Failure::of_callback(code, "query_fn"));
    }
    outcome
}

/// The messages of the process, for waiting and looking: those of every communicator are waited
/// for in one place.
///
/// # Errors
/// The process is in no job.
pub fn messages() -> Result<&'static Messages> {
    match comm::world() {
        Some(world) => Ok(world.messages()),
        None => Err(Failure::new(abi::ERR_OTHER, "request", "this process is in no job")),
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

/// A handle for an operation that has been started.
///
/// # Errors
/// No handle is left; the operation has been cut loose from its memory then.
pub fn open(on: Option<On>, running: Running) -> Result<raw::Request> {
    insert(Request::new(on, running))
}

/// A handle for an operation that can be started again and again.
///
/// # Errors
/// Returns `MPI_ERR_OTHER` if no handle is left.
pub fn persistent(on: On, start: Box<dyn Start>) -> Result<raw::Request> {
    insert(Request { persistent: Some(start), ..Request::new(Some(on), Running::Inactive) })
}

/// What a collective operation that has been started is.
pub fn collective(operation: Operation) -> Running {
    match operation {
        Operation::Done(_) => Running::Finished(Outcome::empty()),
        Operation::Pending(id) => Running::Collective(id),
    }
}

/// A handle for a collective operation that has been started, and for the communicator that it makes.
///
/// # Errors
/// As [`open`]; no communicator could be made.
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

/// A handle for a collective operation that can be started again and again.
///
/// # Errors
/// Returns `MPI_ERR_OTHER` if no handle is left.
pub fn persistent_collective(on: On, start: Box<dyn Start>) -> Result<raw::Request> {
    let request = Request::new(Some(on), Running::Inactive);
    insert(Request { persistent: Some(start), collective: true, ..request })
}

/// The handle of sends that were complete when their call returned: most of them, so they share
/// one object instead of making one each.
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

/// The request of a handle.
///
/// # Errors
/// `MPI_ERR_REQUEST`, also for a generalized request that has been freed.
pub fn find(request: raw::Request) -> Result<Arc<Request>> {
    let found = REQUESTS.find(request.0).ok_or_else(|| invalid(request))?;
    if matches!(*found.lock(), Running::Freed(_)) {
        return Err(invalid(request));
    }
    Ok(found)
}

/// Completes a generalized request; `MPI_Grequest_complete`.
///
/// # Errors
/// `MPI_ERR_REQUEST` for any other request, and for one that is complete; what its free function
/// returns.
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
            return Err(Failure::new(abi::ERR_REQUEST, "request", "it is complete already"));
        }
        _ => {
            let detail = "it is not a generalized request";
            return Err(Failure::new(abi::ERR_REQUEST, "request", detail));
        }
    };
    drop(running);
    let Some(functions) = freed else {
        messages()?.nudge();
        return Ok(());
    };
    // Whoever takes it out of the table calls the function, once.
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
