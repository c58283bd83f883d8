//! Error handlers: what happens when a call fails (MPI-5.0 section 9.3).
//!
//! `entry.rs` has the failure and the object it happened on, and calls [`invoke`]. Every communicator, file,
//! window and session has a [`Handler`]; failures without an object go to `MPI_COMM_SELF`'s.

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

/// On which kind of object an error handler may be set.
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

/// An error handler that the user made. The user may hold it several times, by one handle: once for
/// having made it and once for each time that an object was asked for it (MPI-5.0 section 9.3.4);
/// objects that have it keep it beyond that.
#[derive(Debug)]
pub struct UserHandler {
    on: On,
    function: ErrorFunction,
    held: Mutex<Held>,
}

/// How the user holds a handler.
#[derive(Debug, Default)]
struct Held {
    /// Valid while `times` is not 0.
    handle: usize,
    /// How many calls of `MPI_Errhandler_free` are due.
    times: u64,
}

impl UserHandler {
    fn held(&self) -> MutexGuard<'_, Held> {
        // Handle and number change together, after whatever may fail.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The handle, to be freed once more than before.
    fn hold(self: &Arc<Self>) -> Result<usize> {
        let mut held = self.held();
        if held.times == 0 {
            held.handle = HANDLERS.insert(self.clone())?;
        }
        held.times += 1;
        Ok(held.handle)
    }

    /// Takes back one of the times that it is held by `handle`; whether it was held so.
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

/// What an object does with a failure.
#[derive(Clone, Debug)]
pub enum Handler {
    /// `MPI_ERRORS_ARE_FATAL`: one line, and the job ends.
    Fatal,
    /// `MPI_ERRORS_ABORT`: the same; every communicator of ours belongs to one job.
    Abort,
    /// `MPI_ERRORS_RETURN`.
    Return,
    /// The user's function, then the code is returned.
    User(Arc<UserHandler>),
}

static HANDLERS: Table<UserHandler> = Table::new(Kind::Errhandler);

impl Handler {
    /// The handler of a handle, for objects of kind `on`.
    ///
    /// # Errors
    /// `MPI_ERR_ERRHANDLER` for a null, stale or foreign handle; `MPI_ERR_ARG` for one made for
    /// other objects.
    pub fn find(handle: raw::Errhandler, on: On) -> Result<Self> {
        match handle.0 {
            abi::ERRORS_ARE_FATAL => return Ok(Self::Fatal),
            abi::ERRORS_ABORT => return Ok(Self::Abort),
            abi::ERRORS_RETURN => return Ok(Self::Return),
            _ => {}
        }
        let user = HANDLERS.find(handle.0).ok_or_else(|| invalid(handle))?;
        if user.on != on {
            let detail = format!("made for a {:?}, not for a {on:?}", user.on);
            return Err(Failure::new(abi::ERR_ARG, "errhandler", detail));
        }
        Ok(Self::User(user))
    }

    /// The handle for it, which its receiver frees.
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

/// The handler of one object.
#[derive(Debug)]
pub struct HandlerCell(Mutex<Handler>);

impl HandlerCell {
    /// Begins with this one.
    pub const fn new(handler: Handler) -> Self {
        Self(Mutex::new(handler))
    }

    /// The present one.
    pub fn get(&self) -> Handler {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Another one from now on.
    pub fn set(&self, handler: Handler) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = handler;
    }
}

/// Runs one handler.
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

/// One line on standard error, and the end of the job.
pub fn fatal(name: &'static str, failure: &Failure) -> ! {
    let what = codes::string(failure.code)
        .map_or_else(String::new, |text| format!(" ({})", String::from_utf8_lossy(&text)));
    let who = lifecycle::rank().map_or_else(String::new, |rank| format!("rank {rank}: "));
    eprintln!("typepack: {who}{name}: {}{what}", failure.text);
    let code = codes::class(failure.code).unwrap_or(failure.code);
    lifecycle::abort(code)
}

// ---- the functions of the ABI that are about handlers themselves ----

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

/// `MPI_Errhandler_free`. Objects that have the handler keep it, and so do those who got it from one
/// and have not freed it yet.
pub fn free(errhandler: InOut<raw::Errhandler>) -> Result {
    let (handle, out) = errhandler.read("errhandler")?;
    match handle.0 {
        // The standard lets predefined handlers be freed after a get; nothing is lost.
        abi::ERRORS_ARE_FATAL | abi::ERRORS_ABORT | abi::ERRORS_RETURN => {}
        value => {
            let found = HANDLERS.find(value).filter(|user| user.release(value));
            found.ok_or_else(|| invalid(handle))?;
        }
    }
    out.set(raw::Errhandler::NULL);
    Ok(())
}
