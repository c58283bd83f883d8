//! The tool interface (MPI-5.0 chapter 15): the C form of `typepack::tools`, which has all the logic.
//!
//! `event.rs` has events, `control.rs` control variables and all enumerations, `performance.rs` performance
//! variables, and `category.rs` categories. The functions here return codes of the tool interface and call no error
//! handler. They may be called before init, after finalize, and by any thread.

pub mod category;
pub mod control;
pub mod event;
pub mod performance;

use crate::abi;
use crate::argument::{InOut, Output, Text, TextBuffer};
use crate::callback::deliver;
use crate::error::{Failure, Result};
use std::ffi::c_int;
use typepack::tools::{self, Fault};
use typepack::variables::Audience;

/// The greatest length of a name, with the zero byte at its end. All names are shorter.
const NAME_MAX: c_int = 256;

/// Returns the failure of a call of the tool interface.
fn failure(fault: Fault) -> Failure {
    let code = match fault {
        Fault::NotInitialized => abi::T_ERR_NOT_INITIALIZED,
        Fault::Index => abi::T_ERR_INVALID_INDEX,
        Fault::Session => abi::T_ERR_INVALID_SESSION,
        Fault::Handle => abi::T_ERR_INVALID_HANDLE,
        Fault::Name => abi::T_ERR_INVALID_NAME,
        Fault::NotNow => abi::T_ERR_CVAR_SET_NOT_NOW,
        Fault::Never => abi::T_ERR_CVAR_SET_NEVER,
        Fault::NoWrite => abi::T_ERR_PVAR_NO_WRITE,
        Fault::NoStartStop => abi::T_ERR_PVAR_NO_STARTSTOP,
        Fault::NoAtomic => abi::T_ERR_PVAR_NO_ATOMIC,
        Fault::NotAccessible => abi::T_ERR_NOT_ACCESSIBLE,
        _ => abi::T_ERR_INVALID,
    };
    Failure::of_code(code, fault.to_string())
}

/// Returns the value of a call of the tool interface.
fn done<T>(result: tools::Result<T>) -> Result<T> {
    result.map_err(failure)
}

/// Fails if the tool interface is not initialised.
fn ready() -> Result {
    done(tools::check())
}

/// Returns `value`, or a failure for an argument that the call needs and does not have.
fn given<T, E: Into<Failure>>(value: std::result::Result<T, E>) -> Result<T> {
    value.map_err(|error| {
        let failure: Failure = error.into();
        Failure::of_code(abi::T_ERR_INVALID, failure.text.clone())
    })
}

/// Returns the index that C has passed.
fn index(number: c_int) -> Result<usize> {
    usize::try_from(number).map_err(|_| failure(Fault::Index))
}

/// Returns the name that C has passed.
fn name_of(name: Text) -> Result<Vec<u8>> {
    let null = given(name.cut(1, "name"));
    null.and_then(|_| {
        let read = name.read(NAME_MAX, "name", abi::T_ERR_INVALID_NAME);
        read.map_err(|_| failure(Fault::Name))
    })
}

/// Returns the index of the name `name` in a list of names.
fn find<'a>(name: Text, all: impl IntoIterator<Item = &'a str>) -> Result<c_int> {
    let name = name_of(name)?;
    let place = all.into_iter().position(|other| other.as_bytes() == name);
    place.map(|at| at as c_int).ok_or_else(|| failure(Fault::Name))
}

/// Writes a string (MPI-5.0 section 15.3.3). `length` is the size of the buffer on entry, and the length of the
/// string with its zero byte on return. Without a buffer, or with one of size 0, only the length is returned; without
/// a length, nothing.
///
/// # Safety
///
/// - If `buffer` is not null, the value at `length` is at most the size of the buffer.
unsafe fn write_text(buffer: TextBuffer, length: InOut<c_int>, text: &str) {
    let Ok((room, place)) = length.read("length") else { return };
    if room > 0
        // SAFETY: `room` is positive, and at most the size of the buffer (`# Safety`).
        && let Ok(buffer) = unsafe { buffer.required(room, "buffer") }
    {
        buffer.write(text.as_bytes());
    }
    place.set(text.len() as c_int + 1);
}

/// Returns the verbosity for an audience.
fn verbosity(audience: Audience) -> c_int {
    match audience {
        Audience::User => abi::T_VERBOSITY_USER_BASIC,
        Audience::Tuner => abi::T_VERBOSITY_TUNER_BASIC,
        Audience::TunerDetail => abi::T_VERBOSITY_TUNER_DETAIL,
        Audience::Developer => abi::T_VERBOSITY_MPIDEV_BASIC,
    }
}

/// Writes a number that a call must return.
fn number(place: Output<c_int>, value: usize) -> Result {
    ready()?;
    given(place.required("number"))?.set(value as c_int);
    Ok(())
}

/// `MPI_T_init_thread`.
pub fn init(required: c_int, provided: Output<c_int>) -> Result {
    let provided = given(provided.required("provided"))?;
    provided.set(required.clamp(abi::THREAD_SINGLE, abi::THREAD_MULTIPLE));
    tools::begin();
    Ok(())
}

/// `MPI_T_finalize`.
pub fn finalize() -> Result {
    done(tools::end())?;
    // Another thread may have ended a registration meanwhile, and this may be the last call of the program.
    deliver();
    Ok(())
}
