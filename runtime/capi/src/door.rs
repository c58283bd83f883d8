//! The door between C and Rust: phase, panics, errors.
//!
//! Every exported function passes here (`exports.rs`); behind it, functions of this crate return
//! [`Result`]. A failure is raised through the error handler of the object that the call was about
//! (`error/handler.rs`), and what the handler leaves is the return code.

use crate::abi;
use crate::error::handler::{self, Raised};
use crate::error::{Failure, Result};
use crate::phase::{Phase, phase};
use crate::raw;
use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The object whose error handler hears of a failure.
#[derive(Clone, Copy, Debug)]
pub enum At {
    /// None: `MPI_COMM_SELF`'s does.
    Nothing,
    /// A communicator.
    Comm(raw::Comm),
    /// A file.
    File,
    /// A window.
    Win,
    /// A session.
    Session,
}

/// Runs a function that may be called between init and finalize.
#[inline]
pub fn enter(name: &'static str, at: At, call: impl FnOnce() -> Result) -> c_int {
    if phase() != Phase::Inside {
        return outside(name);
    }
    always(name, at, call)
}

/// Runs a function that may be called at any time.
#[inline]
pub fn always(name: &'static str, at: At, call: impl FnOnce() -> Result) -> c_int {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(())) => 0,
        Ok(Err(failure)) => failed(name, at, failure),
        Err(panic) => panicked(name, at, panic.as_ref()),
    }
}

/// Runs a function that cannot fail and returns something other than a code; a panic is fatal.
#[inline]
pub fn infallible<T>(name: &'static str, call: impl FnOnce() -> T) -> T {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(value) => value,
        Err(panic) => handler::fatal(name, &bug(panic.as_ref())),
    }
}

#[cold]
fn failed(name: &'static str, at: At, failure: Failure) -> c_int {
    // The handler may be the user's function, or find a bug of ours.
    match catch_unwind(AssertUnwindSafe(|| handler::raise(Raised { name, at, failure: &failure })))
    {
        Ok(code) => code,
        Err(panic) => handler::fatal(name, &bug(panic.as_ref())),
    }
}

#[cold]
fn panicked(name: &'static str, at: At, panic: &(dyn std::any::Any + Send)) -> c_int {
    failed(name, at, bug(panic))
}

/// Where the last panic was; what `catch_unwind` returns does not say.
static PLACE: Mutex<String> = Mutex::new(String::new());

/// Counts the panics of this crate, so that the hook is installed once and stays out of the way of
/// panics of others in the process (a Rust program above us).
static HOOKED: AtomicUsize = AtomicUsize::new(0);

/// The failure that a panic becomes.
fn bug(panic: &(dyn std::any::Any + Send)) -> Failure {
    let text = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a text".to_owned());
    let place = PLACE.lock().map(|place| place.clone()).unwrap_or_default();
    Failure::new(abi::ERR_INTERN, "typepack bug", format!("{text} {place}"))
}

/// Makes panics of this process remember their place, and print nothing more than the one line that
/// the error handler prints.
pub fn watch_panics() {
    if HOOKED.fetch_add(1, Ordering::AcqRel) > 0 {
        return;
    }
    std::panic::set_hook(Box::new(|info| {
        if let (Some(at), Ok(mut place)) = (info.location(), PLACE.lock()) {
            *place = format!("({}:{})", at.file(), at.line());
        }
    }));
}

/// A call before init or after finalize that is not allowed there.
#[cold]
fn outside(name: &'static str) -> c_int {
    let when = match phase() {
        Phase::After => "after MPI_Finalize",
        Phase::Before | Phase::Inside => "before MPI_Init",
    };
    handler::fatal(name, &Failure::new(abi::ERR_OTHER, "call", format!("not allowed {when}")))
}

/// Runs a function of the tool interface, which has return codes of its own and no error handlers.
#[inline]
pub fn tool(name: &'static str, _: At, call: impl FnOnce() -> Result) -> c_int {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(())) => abi::SUCCESS,
        Ok(Err(failure)) => failure.code,
        Err(panic) => handler::fatal(name, &bug(panic.as_ref())),
    }
}

/// A function of the tool interface that is not built.
#[cold]
pub fn tool_not_built() -> c_int {
    if crate::version::tools_ready() {
        abi::T_ERR_NOT_SUPPORTED
    } else {
        abi::T_ERR_NOT_INITIALIZED
    }
}
