//! Requests behind handles. A request stands for an operation that the program has started and not yet
//! completed, or that it can start repeatedly.
//!
//! The calls of `p2p/`, `coll/`, `io/`, `win/` and `generalized.rs` make requests. The calls of `complete.rs` wait for
//! requests, test and query them. The calls of `manage.rs` start, cancel and free them. `plain.rs` has the
//! requests of most sends and receives; this file has all others. The state of a request of this file is a
//! [`Running`]. `Request::poll`, whose caller holds the runtime's lock, changes the state to
//! [`Running::Finished`] when the operation is complete. A call takes the result out of the request without
//! holding the runtime's lock, because taking the result of a generalized request calls the user's functions.
//!
//! Two invariants hold. A thread that holds the runtime's lock may take the lock of a request, but a thread
//! that holds the lock of a request never takes the runtime's lock. A request keeps its communicator alive,
//! and the runtime keeps the plans of the datatypes alive, so the program may free communicators and
//! datatypes while the operation is pending.

pub mod complete;
mod described;
pub mod generalized;
pub mod manage;
pub mod plain;
mod statuses;

pub use described::{NOT_INITIALISED, described};

use crate::abi;
use crate::callback::{Attached, Generalized, Moment};
use crate::comm::create::Making;
use crate::comm::{self, Comm, On};
use crate::error::handler::HandlerCell;
use crate::error::{Failure, Result};
use crate::handle::Kind;
use crate::handle::table::Table;
use crate::raw::{self, Status};
use std::ffi::c_int;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use typepack::io::Pending;
use typepack::partitioned::{RawReceive, RawSend};
use typepack::{Messages, Ongoing, Operation};

/// The result of a completed operation.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The status. Its error field is not used.
    pub status: Status,
    /// The failure of the operation; `None` if the operation succeeded.
    pub failure: Option<Failure>,
}

impl Outcome {
    /// Returns the outcome of a successful operation that receives no message: the empty status and no
    /// failure (MPI-5.0 section 3.7.3).
    pub fn empty() -> Self {
        Self { status: Status::empty(), failure: None }
    }

    /// Returns the outcome of a receive from `MPI_PROC_NULL` (MPI-5.0 section 3.10).
    pub fn from_nobody() -> Self {
        Self { status: Status { source: abi::PROC_NULL, ..Status::empty() }, failure: None }
    }

    /// Returns the outcome of a receive.
    pub fn of_receive(on: &On, result: typepack::Result<typepack::Status>) -> Self {
        Self::of_receive_in(&on.comm, on.handle, result)
    }

    /// Returns the outcome of a receive in the communicator `comm`, whose handle is `handle`.
    #[inline]
    pub fn of_receive_in(
        comm: &Comm,
        handle: raw::Comm,
        result: typepack::Result<typepack::Status>,
    ) -> Self {
        match result {
            Ok(status) => Self { status: comm.status(status), failure: None },
            Err(error) => {
                let status = comm.status_of_error(&error).unwrap_or_else(Status::empty);
                Self { status, failure: Some(comm.raise(handle, error)) }
            }
        }
    }

    /// Returns the outcome of a cancelled operation if `cancelled` is true, and the empty outcome otherwise.
    fn of_cancel(cancelled: bool) -> Self {
        let mut outcome = Self::empty();
        outcome.status.set_cancelled(cancelled);
        outcome
    }

    /// Returns the outcome of a send.
    pub fn of_send(on: &On, result: typepack::Result<typepack::Status>) -> Self {
        let failure = result.err().map(|error| on.raise(error));
        Self { status: Status::empty(), failure }
    }
}

/// The file of an access: the handle and the error handler that a failure of the access needs, and a mark that
/// the access is under way.
#[derive(Debug)]
pub struct OfFile {
    /// The handle, which error handlers get as an argument.
    pub handle: raw::File,
    /// The error handler of the file.
    pub handler: Arc<HandlerCell>,
    /// While this value exists, the file counts the access as under way.
    pub _pending: Pending,
}

impl OfFile {
    /// Returns `failure` after recording in it that the error handler of this file must be called.
    #[cold]
    fn raise(&self, failure: impl Into<Failure>) -> Failure {
        let mut failure = failure.into();
        failure.on = Some((self.handle.0, self.handler.get()));
        failure
    }

    /// Returns the outcome of an access.
    fn outcome(&self, result: typepack::Result<typepack::Status>) -> Outcome {
        let (received, failure) = match result {
            Ok(status) => (Some(status), None),
            Err(error) => (error.received(), Some(self.raise(error))),
        };
        let mut status = Status::empty();
        status.set_bytes(received.map_or(0, |received| received.bytes));
        Outcome { status, failure }
    }
}

/// The window of an operation: the handle and the error handler that a failure of the operation needs.
#[derive(Debug)]
pub struct OfWin {
    /// The handle, which error handlers get as an argument.
    pub handle: raw::Win,
    /// The error handler of the window.
    pub handler: Arc<HandlerCell>,
}

impl OfWin {
    /// Returns `failure` after recording in it that the error handler of this window must be called.
    #[cold]
    fn raise(&self, failure: impl Into<Failure>) -> Failure {
        let mut failure = failure.into();
        failure.on = Some((self.handle.0, self.handler.get()));
        failure
    }
}

/// The state of an operation.
#[derive(Debug)]
pub enum Running {
    /// No operation is pending, and no result is waiting to be taken. For example, a persistent request has not
    /// been started yet, or a call has taken the result of the last operation.
    Inactive,
    /// A thread is starting the persistent request at this moment.
    Starting,
    /// The operation is complete, and its result has not been taken yet.
    Finished(Outcome),
    /// The operation is a send; this is the runtime's number of the send.
    Send(u64),
    /// The operation is a receive; this is the runtime's number of the receive.
    Receive(u64),
    /// The operation is collective; this is the runtime's number of the operation.
    Collective(u64),
    /// The operation is an access to a file. The fields are the runtime's number of the access, and the file.
    Access(u64, OfFile),
    /// A send and a receive. The first two fields are the runtime's numbers of the two operations. A number
    /// becomes `None` when its operation is complete. The last field is the outcome of the request so far: the
    /// status of the receive, and the failure of the receive or else that of the send. The status is empty until
    /// the receive is complete.
    Both(Option<u64>, Option<u64>, Outcome),
    /// A one-sided operation on a window. It is complete when the operations with these numbers are. The last field is
    /// the failure of the first one that has failed.
    Window(Vec<u64>, OfWin, Option<Failure>),
    /// A flush of a buffer. It is complete when the sends with these numbers are complete.
    Flush(Vec<u64>),
    /// A generalized request. The flag says whether the user has completed it.
    User(Generalized, bool),
    /// A generalized request that the program freed before the user completed it. No call can wait for it any
    /// more.
    Freed(Generalized),
}

/// The operation of a persistent request.
pub trait Start: fmt::Debug + Send + Sync {
    /// Starts the operation.
    ///
    /// # Errors
    /// Returns the errors that the corresponding nonblocking call would return.
    fn start(&self) -> Result<Running>;

    /// Returns the operation if it is partitioned.
    fn partitions(&self) -> Option<Partitions<'_>> {
        None
    }
}

/// The operation of a partitioned request (MPI-5.0 chapter 4).
#[derive(Clone, Copy, Debug)]
pub enum Partitions<'r> {
    /// A send.
    Send(&'r RawSend),
    /// A receive.
    Receive(&'r RawReceive),
}

/// The object behind a request handle.
#[derive(Debug)]
pub struct Request {
    on: Option<On>,
    persistent: Option<Box<dyn Start>>,
    /// True if the operation is collective.
    collective: bool,
    /// The communicator that the operation makes; `None` if it makes none. A thread that holds the
    /// runtime's lock never drops this value, because dropping the value may take that lock.
    making: Option<Box<Making>>,
    /// True for the single request that stands for every send that was complete when its call returned. The
    /// handle of this request never becomes invalid.
    shared: bool,
    /// True if the program has freed this generalized request and not completed it yet.
    freed: AtomicBool,
    /// What the Fortran library does when the operation starts and when it is complete: it moves the elements of array
    /// sections.
    attached: OnceLock<Attached>,
    running: Mutex<Running>,
}

static REQUESTS: Table<Request> = Table::new(Kind::Request);

/// The handle that [`sent`] returns.
static SENT: OnceLock<raw::Request> = OnceLock::new();

impl Request {
    fn lock(&self) -> MutexGuard<'_, Running> {
        // The state may be used after a panic poisoned the lock. No call under the lock can panic between
        // two assignments that belong together, so the state is consistent.
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether the request is inactive: no operation is pending, and no result is waiting to be
    /// taken.
    pub fn is_inactive(&self) -> bool {
        matches!(*self.lock(), Running::Inactive)
    }

    /// Returns the operation of a partitioned request; `None` for another request.
    #[inline]
    pub fn partitions(&self) -> Option<Partitions<'_>> {
        self.persistent.as_ref()?.partitions()
    }

    /// Returns `failure` after recording in it that the error handler of the request's communicator must be called, if
    /// the request has a communicator.
    #[cold]
    pub fn raise(&self, failure: impl Into<Failure>) -> Failure {
        match &self.on {
            Some(on) => on.raise(failure),
            None => failure.into(),
        }
    }

    /// Returns whether the operation is complete or the request is inactive. The result of a complete
    /// operation is now stored in this request, unless the request is a generalized one.
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
            (Running::Access(id, file), _) => ongoing.fetch(*id).map(|result| file.outcome(result)),
            (Running::Window(ids, win, failure), _) => {
                ids.retain(|id| match ongoing.fetch(*id) {
                    None => true,
                    Some(result) => {
                        if let Err(error) = result {
                            failure.get_or_insert_with(|| win.raise(error));
                        }
                        false
                    }
                });
                let failure = failure.take_if(|_| ids.is_empty());
                ids.is_empty().then(|| Outcome { status: Status::empty(), failure })
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

    /// Returns the outcome of a collective operation. If the operation has made a communicator, makes the
    /// handle of that communicator valid.
    fn of_collective(&self, on: &On, result: typepack::Result<()>) -> Outcome {
        let made = result.and_then(|()| self.making.as_ref().map_or(Ok(()), |making| making.end()));
        Outcome { status: Status::empty(), failure: made.err().map(|error| on.raise(error)) }
    }

    /// Abandons an operation that can no longer complete, so that the runtime no longer uses its memory.
    /// The operation then counts as complete, with the failure `failure`. A generalized request stays unchanged.
    #[cold]
    fn abandon(&self, messages: &Messages, failure: &Failure) {
        let mut running = self.lock();
        let mut others = Vec::new();
        let ids: [Option<u64>; 2] = match &mut *running {
            Running::Inactive | Running::Finished(_) | Running::User(_, true) => return,
            Running::Window(ids, ..) => {
                others = std::mem::take(ids);
                [None, None]
            }
            Running::Send(id) | Running::Receive(id) | Running::Collective(id) => [Some(*id), None],
            Running::Access(id, _) => [Some(*id), None],
            Running::Both(send, receive, _) => [*send, *receive],
            Running::Starting | Running::Flush(_) | Running::User(..) | Running::Freed(_) => {
                [None, None]
            }
        };
        let failure = match (&self.on, &*running) {
            (Some(on), _) => on.raise(failure.clone()),
            (None, Running::Access(_, file)) => file.raise(failure.clone()),
            (None, Running::Window(_, win, _)) => win.raise(failure.clone()),
            (None, _) => failure.clone(),
        };
        // The user carries out the operation of a generalized request, so that operation may complete even
        // after the runtime has failed. Its state stays unchanged here, because the user's functions will be
        // called when it completes.
        if !matches!(*running, Running::User(..) | Running::Freed(_)) {
            let outcome = Outcome { status: Status::empty(), failure: Some(failure) };
            *running = Running::Finished(outcome);
        }
        drop(running);
        for id in ids.into_iter().flatten().chain(others) {
            messages.abandon(Operation::Pending(id));
        }
    }

    /// Calls the attached function, if there is one. The caller holds no lock.
    #[inline]
    fn tell(&self, moment: Moment) {
        if let Some(attached) = self.attached.get() {
            attached.call(moment);
        }
    }

    /// Takes the result of a complete operation out of the request, which is inactive afterwards. Returns
    /// `None` if the request was inactive before. The shared request stays complete.
    fn take(&self) -> Option<Outcome> {
        if self.shared {
            return Some(Outcome::empty());
        }
        let running = std::mem::replace(&mut *self.lock(), Running::Inactive);
        if matches!(running, Running::Inactive) {
            return None;
        }
        self.tell(Moment::Complete);
        Some(match running {
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

    /// Returns the result of a complete operation and leaves the result in the request. Returns `None` if the
    /// request is inactive.
    fn look(&self) -> Option<Outcome> {
        if self.is_inactive() {
            return None;
        }
        self.tell(Moment::Complete);
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

/// Calls the query function of a generalized request, and returns the outcome that this function reports.
fn asked(functions: Generalized) -> Outcome {
    let mut outcome = Outcome::empty();
    let code = functions.query(&mut outcome.status);
    if code != 0 {
        outcome.failure = Some(Failure::of_callback(code, "query_fn"));
    }
    outcome
}

/// Returns the part of the runtime that sends and receives messages. A thread that waits in one of its functions
/// makes progress for the messages of all communicators.
///
/// # Errors
/// Returns `MPI_ERR_OTHER` if the process has not joined a job.
pub fn messages() -> Result<&'static Messages> {
    match comm::world::messages() {
        Some(messages) => Ok(messages),
        None => Err(Failure::new(
            abi::ERR_OTHER,
            "request",
            "MPI is not initialised: this process has not joined a job",
        )),
    }
}

impl Request {
    fn new(on: Option<On>, running: Running) -> Self {
        let (running, freed) = (Mutex::new(running), AtomicBool::new(false));
        Self {
            on,
            persistent: None,
            collective: false,
            making: None,
            shared: false,
            freed,
            attached: OnceLock::new(),
            running,
        }
    }

    /// Drops everything that this request owns, so that its memory can be used for another request. Nobody uses
    /// this request any more.
    fn clear(&mut self) {
        *self = Self::new(None, Running::Inactive);
    }
}

/// Adds a request to the table, in the memory of a request that has ended if there is such memory.
///
/// # Errors
/// Returns `MPI_ERR_OTHER` if no handle is left. In this case the operation has been abandoned, and no longer
/// uses its memory.
fn insert(request: Request) -> Result<raw::Request> {
    let mut request = Some(request);
    let inserted = REQUESTS.insert_with(|spare| {
        // `insert_with` calls this closure at most once, so `request` is never `None` here. A spare object has
        // been cleared, so the assignment to `object` drops nothing that needs a lock.
        let request = request.take().unwrap_or_else(|| Request::new(None, Running::Inactive));
        match spare {
            Some(mut spare) => match Arc::get_mut(&mut spare) {
                Some(object) => {
                    *object = request;
                    spare
                }
                None => Arc::new(request),
            },
            None => Arc::new(request),
        }
    });
    match inserted {
        Ok(handle) => Ok(raw::Request(handle)),
        Err(failure) => {
            let failure = Failure::from(failure);
            if let Some(request) = request {
                request.abandon(messages()?, &failure);
            }
            Err(failure)
        }
    }
}

/// The handle of a request that a call has ended, and the request.
type Ended = (raw::Request, Option<Arc<Request>>);

/// Removes the requests of several handles from the table, and keeps their memory for other requests. `ended` has
/// the handles and the requests, and is empty afterwards. The caller must not hold the runtime's lock.
fn end_all(ended: &mut Vec<Ended>) {
    REQUESTS.remove_each(ended.iter().map(|(handle, _)| handle.0));
    // `clear` drops the communicator and everything else that a request owns. Dropping a communicator may take the
    // runtime's lock, so this thread does not hold the lock of the table here.
    for (_, request) in ended.iter_mut() {
        match request.as_mut().and_then(Arc::get_mut) {
            Some(object) => object.clear(),
            None => *request = None,
        }
    }
    REQUESTS.keep_spare(ended.drain(..).filter_map(|(_, request)| request));
}

/// Makes a request for an operation that has been started.
///
/// # Errors
/// Returns `MPI_ERR_OTHER` if no handle is left. In this case the operation has been abandoned, and no longer
/// uses its memory.
pub fn open(on: Option<On>, running: Running) -> Result<raw::Request> {
    insert(Request::new(on, running))
}

/// Makes a request for an access to a file that has been started. `collective` says whether all ranks of the
/// file make the access together.
///
/// # Errors
/// Returns the errors of [`open`].
pub fn open_access(operation: Operation, file: OfFile, collective: bool) -> Result<raw::Request> {
    let running = match operation {
        Operation::Done(status) => Running::Finished(file.outcome(Ok(status))),
        Operation::Pending(id) => Running::Access(id, file),
    };
    insert(Request { collective, ..Request::new(None, running) })
}

/// Makes a request for a one-sided operation that has been started, and that ends with the operations `ids`.
///
/// # Errors
/// Returns the errors of [`open`].
pub fn open_window(ids: Vec<u64>, win: OfWin) -> Result<raw::Request> {
    insert(Request::new(None, Running::Window(ids, win, None)))
}

/// Makes a request for an operation that can be started repeatedly.
///
/// # Errors
/// Returns `MPI_ERR_OTHER` if no handle is left.
pub fn persistent(on: On, start: Box<dyn Start>) -> Result<raw::Request> {
    insert(Request { persistent: Some(start), ..Request::new(Some(on), Running::Inactive) })
}

/// Returns the state of the request for a collective operation that has just been started.
pub fn collective(operation: Operation) -> Running {
    match operation {
        Operation::Done(_) => Running::Finished(Outcome::empty()),
        Operation::Pending(id) => Running::Collective(id),
    }
}

/// Makes a request for a collective operation that has been started. `making` is the communicator that the
/// operation makes, if it makes one.
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

/// Returns the handle of the single request that stands for every send that was complete when its call
/// returned. Most sends are complete by then, so sharing one request saves the time of making a request for
/// each of them.
///
/// # Errors
/// Returns `MPI_ERR_OTHER` if no handle is left.
#[inline]
pub fn sent() -> Result<raw::Request> {
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
/// Returns `MPI_ERR_REQUEST` if the handle is not valid, or if it belongs to a generalized request that the
/// program has freed.
pub fn find(request: raw::Request) -> Result<Arc<Request>> {
    found(REQUESTS.find(request.0), request)
}

/// Returns `object`, which the table has found for the handle `request`.
///
/// # Errors
/// Returns the errors of [`find`].
#[inline]
fn found(object: Option<Arc<Request>>, request: raw::Request) -> Result<Arc<Request>> {
    match object {
        Some(found) if !found.freed.load(Ordering::Acquire) => Ok(found),
        _ => Err(invalid(request)),
    }
}

/// Attaches a function of the Fortran library to a request that has just been made.
///
/// # Errors
/// Returns `MPI_ERR_ARG` if there is no function, and `MPI_ERR_REQUEST` if the handle belongs to no request that can have
/// one: it is not valid, stands for complete sends, or is a single send or receive.
pub fn attach(request: raw::Request, attached: Option<Attached>) -> Result {
    let attached = attached.ok_or_else(|| Failure::null("function"))?;
    match find(request) {
        Ok(found) if !found.shared => {
            drop(found.attached.set(attached));
            Ok(())
        }
        found => {
            // The caller keeps what it wanted to attach.
            std::mem::forget(attached);
            Err(found.err().unwrap_or_else(|| invalid(request)))
        }
    }
}

/// Returns whether a handle stands for every send that was complete when its call returned ([`sent`]).
#[inline]
fn is_sent(request: raw::Request) -> bool {
    SENT.get().is_some_and(|sent| *sent == request)
}

/// Completes a generalized request (`MPI_Grequest_complete`).
///
/// # Errors
/// Returns `MPI_ERR_REQUEST` if the handle is not valid, or if the request is not a generalized request or
/// is already complete. If the program has freed the request, returns the code of its free function if that
/// code is not 0.
pub fn complete(handle: raw::Request) -> Result {
    if plain::is_live(handle) {
        return Err(not_generalized());
    }
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
        _ => return Err(not_generalized()),
    };
    drop(running);
    let Some(functions) = freed else {
        messages()?.wake_poller();
        return Ok(());
    };
    // Only the thread that removes the request from the table calls the free function, so the free function
    // is called only once.
    if REQUESTS.remove(handle.0).is_none() {
        return Err(invalid(handle));
    }
    match functions.free() {
        0 => Ok(()),
        code => Err(Failure::of_callback(code, "free_fn")),
    }
}

#[cold]
fn not_generalized() -> Failure {
    let detail = "the handle belongs to a request that is not a generalized request";
    Failure::new(abi::ERR_REQUEST, "request", detail)
}

#[cold]
fn invalid(request: raw::Request) -> Failure {
    let null = (abi::REQUEST_NULL, "MPI_REQUEST_NULL");
    Failure::no_object(abi::ERR_REQUEST, ("request", "request"), request.0, null)
}

/// Returns the live handle whose lower 32 bits are `integer`; `None` if there is none.
pub fn from_int(integer: c_int) -> Option<usize> {
    REQUESTS.of_int(integer).or_else(|| plain::of_int(integer))
}
