//! Error handlers: what happens when a call fails (MPI-5.0 section 9.3).
//!
//! `entry.rs` has the failure and the object of the call, and calls [`invoke`]. Every communicator, file,
//! window and session has a [`Handler`]. For a failure without an object, the handler of `MPI_COMM_SELF` is
//! called.

use super::{Failure, Result, codes};
use crate::abi;
use crate::argument::{InOut, Output};
use crate::callback::ErrorFunction;
use crate::handle::Kind;
use crate::handle::table::Table;
use crate::lifecycle;
use crate::raw;
use std::ffi::c_int;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The kind of object that an error handler may be set on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum On {
    /// Communicators.
    Comm,
    /// Files.
    File,
    /// Windows.
    Win,
    /// Sessions.
    Session,
}

/// An error handler that the user made.
///
/// The user may hold it several times by the same handle: once because the user made it, and once for each
/// call that returned the handler of an object (MPI-5.0 section 9.3.4). Objects that have the handler keep it
/// when the user has freed it.
#[derive(Debug)]
pub struct UserHandler {
    on: On,
    function: ErrorFunction,
    held: Mutex<Held>,
}

/// How the user holds a handler.
#[derive(Debug, Default)]
struct Held {
    /// The handle; valid while `times` is not 0.
    handle: usize,
    /// Number of calls of `MPI_Errhandler_free` that make the handle invalid.
    times: u64,
}

impl UserHandler {
    fn held(&self) -> MutexGuard<'_, Held> {
        // A poisoned lock is fine: both fields change together, after every step that may fail.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the handle. The user must then free the handle one more time.
    fn hold(self: &Arc<Self>) -> Result<usize> {
        let mut held = self.held();
        if held.times == 0 {
            held.handle = HANDLERS.insert(self.clone())?;
        }
        held.times += 1;
        Ok(held.handle)
    }

    /// Frees the handle once. Returns whether the handle was valid for this handler.
    fn release(&self, handle: usize) -> bool {
        let mut held = self.held();
        if held.handle != handle || held.times == 0 {
            return false;
        }
        held.times -= 1;
        if held.times == 0 {
            HANDLERS.remove(handle);
        }
        true
    }
}

/// The error handler of an object.
#[derive(Clone, Debug)]
pub enum Handler {
    /// `MPI_ERRORS_ARE_FATAL`: one line on standard error, and the job ends.
    Fatal,
    /// `MPI_ERRORS_ABORT`: like [`Fatal`](Self::Fatal), because all communicators belong to one job.
    Abort,
    /// `MPI_ERRORS_RETURN`: the call returns the code.
    Return,
    /// The user's function is called, then the call returns the code.
    User(Arc<UserHandler>),
}

static HANDLERS: Table<UserHandler> = Table::new(Kind::Errhandler);

impl Handler {
    /// Returns the handler of a handle, for objects of kind `on`.
    ///
    /// # Errors
    /// Returns `MPI_ERR_ERRHANDLER` if the handle is null, stale or foreign, and `MPI_ERR_ARG` if the handler
    /// was made for another kind of object.
    pub fn find(handle: raw::Errhandler, on: On) -> Result<Self> {
        match handle.0 {
            abi::ERRORS_ARE_FATAL => return Ok(Self::Fatal),
            abi::ERRORS_ABORT => return Ok(Self::Abort),
            abi::ERRORS_RETURN => return Ok(Self::Return),
            _ => {}
        }
        let user = HANDLERS.find(handle.0).ok_or_else(|| invalid(handle))?;
        if user.on != on {
            let detail = format!("the handler was made for MPI_{:?}, not for MPI_{on:?}", user.on);
            return Err(Failure::new(abi::ERR_ARG, "errhandler", detail));
        }
        Ok(Self::User(user))
    }

    /// Returns a handle, which its receiver frees.
    ///
    /// # Errors
    /// Returns `MPI_ERR_OTHER` if no handle is left.
    pub fn handle(&self) -> Result<raw::Errhandler> {
        Ok(raw::Errhandler(match self {
            Self::Fatal => abi::ERRORS_ARE_FATAL,
            Self::Abort => abi::ERRORS_ABORT,
            Self::Return => abi::ERRORS_RETURN,
            Self::User(user) => user.hold()?,
        }))
    }
}

#[cold]
fn invalid(handle: raw::Errhandler) -> Failure {
    let null = (abi::ERRHANDLER_NULL, "MPI_ERRHANDLER_NULL");
    Failure::no_object(abi::ERR_ERRHANDLER, ("errhandler", "error handler"), handle.0, null)
}

/// Returns the live handle with this integer.
pub fn from_int(integer: c_int) -> Option<usize> {
    HANDLERS.of_int(integer)
}

/// The place of an object's error handler.
#[derive(Debug)]
pub struct HandlerCell(Mutex<Handler>);

impl HandlerCell {
    /// Begins with `handler`.
    pub const fn new(handler: Handler) -> Self {
        Self(Mutex::new(handler))
    }

    /// Returns the present handler.
    pub fn get(&self) -> Handler {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sets another handler.
    pub fn set(&self, handler: Handler) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = handler;
    }
}

/// Calls an error handler; returns the code that the call returns.
pub fn invoke(handler: &Handler, handle: usize, name: &'static str, failure: &Failure) -> c_int {
    match handler {
        Handler::Fatal | Handler::Abort => fatal(name, failure),
        Handler::Return => failure.code,
        Handler::User(user) => {
            user.function.call(handle, failure.code);
            failure.code
        }
    }
}

/// Writes one line on standard error and ends the job.
pub fn fatal(name: &'static str, failure: &Failure) -> ! {
    let what = codes::string(failure.code)
        .map_or_else(String::new, |text| format!(" ({})", String::from_utf8_lossy(&text)));
    let who = lifecycle::rank().map_or_else(String::new, |rank| format!("rank {rank}: "));
    eprintln!("typepack: {who}{name}: {}{what}", failure.text);
    let code = codes::class(failure.code).unwrap_or(failure.code);
    lifecycle::abort(code)
}

// ---- the functions of the ABI that make and free error handlers ----

/// Makes a handler for objects of kind `on`.
fn create(on: On, function: raw::Callback, errhandler: Output<raw::Errhandler>) -> Result {
    let out = errhandler.required("errhandler")?;
    let function = ErrorFunction::new(function).ok_or_else(|| Failure::null("errhandler_fn"))?;
    let made = Arc::new(UserHandler { on, function, held: Mutex::default() });
    out.set(raw::Errhandler(made.hold()?));
    Ok(())
}

/// `MPI_Comm_create_errhandler`.
pub fn comm_create(function: raw::Callback, errhandler: Output<raw::Errhandler>) -> Result {
    create(On::Comm, function, errhandler)
}

/// `MPI_File_create_errhandler`.
pub fn file_create(function: raw::Callback, errhandler: Output<raw::Errhandler>) -> Result {
    create(On::File, function, errhandler)
}

/// `MPI_Win_create_errhandler`.
pub fn win_create(function: raw::Callback, errhandler: Output<raw::Errhandler>) -> Result {
    create(On::Win, function, errhandler)
}

/// `MPI_Session_create_errhandler`.
pub fn session_create(function: raw::Callback, errhandler: Output<raw::Errhandler>) -> Result {
    create(On::Session, function, errhandler)
}

/// `MPI_Errhandler_free`. Objects that have the handler keep it. It also stays valid for a user that got it
/// from an object and has not freed that handle yet.
pub fn free(errhandler: InOut<raw::Errhandler>) -> Result {
    let (handle, out) = errhandler.read("errhandler")?;
    match handle.0 {
        // A program may free a predefined handler that it got from an object; there is nothing to do.
        abi::ERRORS_ARE_FATAL | abi::ERRORS_ABORT | abi::ERRORS_RETURN => {}
        value => {
            let found = HANDLERS.find(value).filter(|user| user.release(value));
            found.ok_or_else(|| invalid(handle))?;
        }
    }
    out.set(raw::Errhandler::NULL);
    Ok(())
}
