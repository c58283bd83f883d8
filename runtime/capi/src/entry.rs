//! The functions through which every call from C enters the library. They check that the call is allowed at
//! this stage of the process, refuse it if memory is short, catch panics, and call error handlers.
//!
//! Every exported function (`exports.rs`) calls its implementation through this module, unless a short way
//! (`win/short.rs`) has done the whole call. The implementation returns a [`Result`]. If the implementation fails,
//! this module calls the error handler of the call's object (`error/handler.rs`), for example of its communicator.
//! If the error handler returns, the exported function returns the error code.

use crate::abi;
use crate::callback;
use crate::comm::{self, world};
use crate::error::handler::{self, invoke};
use crate::error::panics::bug;
use crate::error::section;
use crate::error::{Failure, Result};
use crate::front;
use crate::lifecycle::{Stage, is_open, stage};
use crate::raw;
use crate::{io, session, win};
use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};
use typepack::engine::{attention, reserve};

/// The object whose error handler is called for a failure.
#[derive(Clone, Copy, Debug)]
pub enum At {
    /// No object. The error handler of `MPI_COMM_SELF` is called.
    Nothing,
    /// A communicator.
    Comm(raw::Comm),
    /// A file; `MPI_FILE_NULL` if the file is not open yet, or is no longer open.
    File(raw::File),
    /// A window.
    Win(raw::Win),
    /// A session.
    Session(raw::Session),
}

/// Runs a function that the program may call only between init and finalize, or while a session is open. At
/// any other time, ends the job.
#[inline]
pub fn enter<E: Into<Failure>>(
    name: &'static &'static str,
    at: At,
    call: impl FnOnce() -> std::result::Result<(), E>,
) -> c_int {
    begin::<true, E>(name, at, call)
}

/// Runs a function that the program may call at any time.
#[inline]
pub fn always<E: Into<Failure>>(
    name: &'static &'static str,
    at: At,
    call: impl FnOnce() -> std::result::Result<(), E>,
) -> c_int {
    begin::<false, E>(name, at, call)
}

/// Tries the short way of a call, if the program may make most calls. Returns whether `call` has done everything. The short
/// way does not wait and allocates nothing, so it needs nothing that [`enter`] does. If it panics, the call goes the long
/// way, which reports the fault.
#[inline(always)]
pub fn short(call: impl FnOnce() -> bool) -> bool {
    !attention::is_for(attention::CLOSED) && catch_unwind(AssertUnwindSafe(call)).unwrap_or(false)
}

/// Runs a function. `NEEDS_OPEN` says whether the library must be initialised.
#[inline(always)]
fn begin<const NEEDS_OPEN: bool, E: Into<Failure>>(
    name: &'static &'static str,
    at: At,
    call: impl FnOnce() -> std::result::Result<(), E>,
) -> c_int {
    match attention::reasons() {
        0 => typepack::enter_call(name),
        attention::THREADS => typepack::enter_call_of_thread(name),
        _ => {
            if let Some(code) = look(name, at, NEEDS_OPEN) {
                return code;
            }
        }
    }
    run(name, at, call)
}

/// Notes the name of a call, so that mpiexec can tell it if the call waits long, and finds out whether the call may
/// begin. Returns the code of the error if it may not.
#[cold]
#[inline(never)]
fn look(name: &'static &'static str, at: At, needs_open: bool) -> Option<c_int> {
    callback::deliver();
    // A function of a tool may have ended MPI.
    if needs_open && !is_open() {
        return Some(outside(name));
    }
    match attention::is_for(attention::THREADS) {
        true => typepack::enter_call_of_thread(name),
        false => typepack::enter_call(name),
    }
    (reserve::is_short() && refuses(name)).then(|| no_memory(name, at))
}

#[inline(always)]
fn run<E: Into<Failure>>(
    name: &'static str,
    at: At,
    call: impl FnOnce() -> std::result::Result<(), E>,
) -> c_int {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(())) => 0,
        Ok(Err(failure)) => failed(name, at, failure.into()),
        Err(panic) => panicked(name, at, panic.as_ref()),
    }
}

/// Parts of the names of the calls that keep memory without a new handle. All of them are local, or tell no other rank.
/// (A rank that refuses a collective call would let the others wait. So a call that makes an object fails only when the
/// object gets its handle.)
const KEEPING: [&str; 11] = [
    "Info_set",
    "Comm_set_info",
    "set_name",
    "set_attr",
    "Attr_put",
    "create_keyval",
    "Keyval_create",
    "Add_error",
    "attach",
    "Register_datarep",
    "Alloc_mem",
];

/// Returns whether a call must fail because memory is short.
#[cold]
fn refuses(name: &str) -> bool {
    KEEPING.iter().any(|part| name.contains(part)) && reserve::refuses()
}

/// Fails with `MPI_ERR_NO_MEM`, before the call has begun.
#[cold]
fn no_memory(name: &'static str, at: At) -> c_int {
    let detail = "the system has no memory left; free memory, then call again";
    failed(name, at, Failure::new(abi::ERR_NO_MEM, "memory", detail))
}

/// Runs a function that cannot fail and returns a value, not an error code. If it panics, the job ends.
#[inline]
pub fn infallible<T>(name: &'static str, call: impl FnOnce() -> T) -> T {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(value) => value,
        Err(panic) => handler::fatal(name, &bug(panic.as_ref())),
    }
}

/// Calls the error handler for the failure of a call. Returns the code that the call returns.
#[cold]
pub fn failed(name: &'static str, at: At, mut failure: Failure) -> c_int {
    // This may panic too, for example if the user's error handler calls this library. No panic may cross into C.
    let called = catch_unwind(AssertUnwindSafe(|| {
        front::show(name, &mut failure.text);
        failure.also.iter_mut().for_each(|(_, text)| front::show(name, text));
        section::apart(|| raise(name, at, &failure))
    }));
    match called {
        Ok(code) => code,
        Err(panic) => handler::fatal(name, &bug(panic.as_ref())),
    }
}

/// Calls the error handler that `failure` names. If `failure` names none, calls the error handler of the
/// object `at`. If there is no such object or its handle is not valid, calls the error handler of
/// `MPI_FILE_NULL` for a file, and that of `MPI_COMM_SELF` otherwise. Returns the code that the exported
/// function returns to C.
fn raise(name: &'static str, at: At, failure: &Failure) -> c_int {
    if let Some((handle, handler)) = &failure.on {
        return invoke(handler, *handle, name, failure);
    }
    let found = match at {
        At::Comm(comm) => comm::find(comm).ok().map(|found| (found.handler().get(), comm.0)),
        At::File(file) => Some(io::handler(file)),
        At::Win(handle) => win::WINDOWS.handler(handle.0).map(|handler| (handler, handle.0)),
        At::Session(session) => {
            session::SESSIONS.handler(session.0).map(|handler| (handler, session.0))
        }
        At::Nothing => None,
    };
    let (handler, handle) = found.unwrap_or_else(world::default_handler);
    invoke(&handler, handle, name, failure)
}

#[cold]
fn panicked(name: &'static str, at: At, panic: &(dyn std::any::Any + Send)) -> c_int {
    failed(name, at, bug(panic))
}

/// Ends the job, because a call is not allowed before init or after finalize.
#[cold]
fn outside(name: &'static str) -> c_int {
    let when = match stage() {
        Stage::After => "after MPI_Finalize",
        Stage::Before | Stage::Inside => "before MPI_Init",
    };
    handler::fatal(name, &Failure::new(abi::ERR_OTHER, "call", format!("not allowed {when}")))
}

/// Runs a function of the tool interface. Such a function returns codes of the tool interface, and calls no
/// error handler. Events that wait reach the functions of tools first.
#[inline]
pub fn tool(name: &'static str, _: At, call: impl FnOnce() -> Result) -> c_int {
    let made = catch_unwind(AssertUnwindSafe(|| {
        callback::deliver();
        call()
    }));
    match made {
        Ok(Ok(())) => abi::SUCCESS,
        Ok(Err(failure)) => failure.code,
        Err(panic) => handler::fatal(name, &bug(panic.as_ref())),
    }
}
