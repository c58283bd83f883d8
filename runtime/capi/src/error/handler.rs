//! Error handlers: what happens when a call fails (MPI-5.0 section 9.3).
//!
//! If a call fails, `entry.rs` calls [`invoke`] with the failure and with the error handler of the call's
//! object. Every communicator, file, window and session has an error handler, a [`Handler`]. If the failed
//! call has no such object, `entry.rs` uses the error handler of `MPI_COMM_SELF`.

use super::{Failure, Result, codes, last};
use crate::abi;
use crate::argument::{InOut, Output};
use crate::callback::ErrorFunction;
use crate::handle::Kind;
use crate::handle::table::Table;
use crate::lifecycle;
use crate::raw;
use std::cell::Cell;
use std::ffi::c_int;
use std::io::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The kind of object on which an error handler may be set.
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
/// The user gets a handle when making the error handler, and gets the same handle again from each call that
/// returns the error handler of an object. The user must free the handle as many times as calls have
/// returned it (MPI-5.0 section 9.3.4). An object that has the error handler keeps it after the user has
/// freed the handle.
#[derive(Debug)]
pub struct UserHandler {
    on: On,
    function: ErrorFunction,
    held: Mutex<Held>,
}

/// The user's handle of an error handler.
#[derive(Debug, Default)]
struct Held {
    /// The handle. It is valid while `times` is not 0.
    handle: usize,
    /// Number of times that the user must still call `MPI_Errhandler_free` before the handle becomes
    /// invalid.
    times: u64,
}

impl UserHandler {
    fn held(&self) -> MutexGuard<'_, Held> {
        // The fields may be used after a panic poisoned the lock: they change only after the last step that
        // may panic, so they are always consistent with each other.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the handle, which the user must then free one more time. Makes the handle if the user has
    /// none.
    fn hold(self: &Arc<Self>) -> Result<usize> {
        let mut held = self.held();
        if held.times == 0 {
            held.handle = HANDLERS.insert(self.clone())?;
        }
        held.times += 1;
        Ok(held.handle)
    }

    /// Frees the handle once. Returns whether `handle` was a valid handle of this error handler.
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
    /// `MPI_ERRORS_ARE_FATAL`: the library prints one line on standard error and ends the job.
    Fatal,
    /// `MPI_ERRORS_ABORT`: the same as [`Fatal`](Self::Fatal), because the library can end only the whole
    /// job.
    Abort,
    /// `MPI_ERRORS_RETURN`: the failed call returns the error code.
    Return,
    /// The library calls the user's function, and then the failed call returns the error code.
    User(Arc<UserHandler>),
}

static HANDLERS: Table<UserHandler> = Table::new(Kind::Errhandler);

impl Handler {
    /// Returns the error handler of a handle, to be set on an object of kind `on`.
    ///
    /// # Errors
    /// Returns `MPI_ERR_ERRHANDLER` if the handle does not belong to an error handler, and `MPI_ERR_ARG` if
    /// the error handler was made for another kind of object.
    pub fn find(handle: raw::Errhandler, on: On) -> Result<Self> {
        match handle.0 {
            abi::ERRORS_ARE_FATAL => return Ok(Self::Fatal),
            abi::ERRORS_ABORT => return Ok(Self::Abort),
            abi::ERRORS_RETURN => return Ok(Self::Return),
            _ => {}
        }
        let user = HANDLERS.find(handle.0).ok_or_else(|| invalid(handle))?;
        if user.on != on {
            let detail = format!(
                "the error handler was made for objects of type MPI_{:?}; the call needs one for MPI_{on:?}",
                user.on
            );
            return Err(Failure::new(abi::ERR_ARG, "errhandler", detail));
        }
        Ok(Self::User(user))
    }

    /// Returns a handle of this error handler for the user, who must free it.
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

/// Returns the live handle whose lower 32 bits are `integer`; `None` if there is none.
pub fn from_int(integer: c_int) -> Option<usize> {
    HANDLERS.of_int(integer)
}

/// A cell that holds the error handler of an object. The program can replace the error handler.
#[derive(Debug)]
pub struct HandlerCell(Mutex<Handler>);

impl HandlerCell {
    /// Makes a cell that contains `handler`.
    pub const fn new(handler: Handler) -> Self {
        Self(Mutex::new(handler))
    }

    /// Returns the current error handler.
    pub fn get(&self) -> Handler {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces the handler.
    pub fn set(&self, handler: Handler) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = handler;
    }
}

/// Calls an error handler. `handle` is the handle of the object that has the error handler, and `name` is the name of
/// the failed MPI call. Returns the error code that the failed call returns to the program. The second argument of a
/// user's error handler points to "the error code to be returned by the MPI routine that raised the error" (MPI-5.0
/// section 9.3.1), so the handler may change this code.
pub fn invoke(handler: &Handler, handle: usize, name: &'static str, failure: &Failure) -> c_int {
    if QUIET.get() {
        return failure.code;
    }
    if matches!(handler, Handler::Fatal | Handler::Abort) {
        fatal(name, failure);
    }
    last::keep(failure, &|text| said(name, text));
    match handler {
        Handler::User(user) => user.function.call(handle, failure.code),
        _ => {
            if typepack::prints_all_errors() {
                print(&line(name, failure));
            }
            failure.code
        }
    }
}

thread_local! {
    /// True while the errors of this thread reach no error handler.
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Keeps the errors of this thread from all error handlers, or ends that.
pub fn be_quiet(on: bool) {
    QUIET.set(on);
}

/// Returns the text of a failure with the rank and the call.
fn said(name: &'static str, text: &str) -> String {
    let who = lifecycle::who();
    format!("{who}{name}: {text}")
}

/// Returns the line for a failure, which says everything that is known about it.
fn line(name: &'static str, failure: &Failure) -> String {
    let what = codes::string(failure.code)
        .map_or_else(String::new, |text| format!(" ({})", String::from_utf8_lossy(&text)));
    format!("typepack: {}{what}\n", said(name, &failure.text))
}

fn print(line: &str) {
    // One write, so that a rank that ends meanwhile leaves no half line, and lines of ranks do not mix. If standard
    // error is closed, there is nobody to tell.
    let _unseen = std::io::stderr().write_all(line.as_bytes());
}

/// Writes one line on standard error and ends the job.
pub fn fatal(name: &'static str, failure: &Failure) -> ! {
    print(&line(name, failure));
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

/// `MPI_Errhandler_free`. Objects that have the error handler keep it. The handle stays valid if calls have
/// returned it more often than the user has freed it.
pub fn free(errhandler: InOut<raw::Errhandler>) -> Result {
    let (handle, out) = errhandler.read("errhandler")?;
    match handle.0 {
        // A program may free the handle of a predefined error handler, because a call may have returned it.
        // Such a handle stays valid, so there is nothing to do.
        abi::ERRORS_ARE_FATAL | abi::ERRORS_ABORT | abi::ERRORS_RETURN => {}
        value => {
            let found = HANDLERS.find(value).filter(|user| user.release(value));
            found.ok_or_else(|| invalid(handle))?;
        }
    }
    out.set(raw::Errhandler::NULL);
    Ok(())
}
