//! Errors that this library finds itself. They go to the error handler of the call's object, as those of the library
//! below do.

use crate::{abi, cast, raw};
use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};

macro_rules! refusals {
    ($($name:ident $kind:ident $call:ident;)*) => {
        $(
            /// Calls the error handler of the object with the error class, and returns the class.
            #[cold]
            pub fn $name(object: raw::$kind, class: c_int) -> c_int {
                // SAFETY: the function takes any handle and any class.
                unsafe { abi::$call(object, class) };
                class
            }
        )*
    };
}
refusals! {
    comm Comm PMPI_Comm_call_errhandler;
    file File PMPI_File_call_errhandler;
    win Win PMPI_Win_call_errhandler;
    session Session PMPI_Session_call_errhandler;
}

/// Makes a call of several ranks. If this rank cannot use an array section of the call (`refused` is not 0), the call fails.
///
/// Then typepack's library makes the call without its buffers, tells the other ranks, and calls the error handler. In
/// another library, this rank does not make the call, `alone` calls the error handler, and the others may wait.
#[inline(always)]
pub fn together(
    refused: c_int,
    call: impl FnOnce() -> c_int,
    alone: impl FnOnce(c_int) -> c_int,
) -> c_int {
    if refused == 0 { call() } else { without_buffers(refused, call, alone) }
}

#[cold]
fn without_buffers(
    refused: c_int,
    call: impl FnOnce() -> c_int,
    alone: impl FnOnce(c_int) -> c_int,
) -> c_int {
    let Some(refuse) = cast::refuse_section() else { return alone(refused) };
    // SAFETY: the function takes any number.
    unsafe { refuse(refused) };
    let code = call();
    // SAFETY: 0 ends it.
    unsafe { refuse(0) };
    code
}

/// Calls the error handler for calls without an object, and returns the class.
#[cold]
pub fn nothing(class: c_int) -> c_int {
    comm(raw::COMM_SELF, class)
}

/// Does `work`, whose calls of the library below return their errors and report them to nobody, because the errors belong
/// to the object of the routine.
///
/// Meanwhile typepack's library reports no errors of this thread. In another library such calls report to
/// `MPI_COMM_SELF`, which has another error handler meanwhile. A program with sessions only has no `MPI_COMM_SELF`; there
/// the calls report as that library does.
pub fn quietly<R>(work: impl FnOnce() -> R) -> R {
    static TURN: Mutex<()> = Mutex::new(());
    if let Some(quiet) = cast::quiet_errors() {
        let _loud = Loud(quiet);
        // SAFETY: the function takes any number.
        unsafe { quiet(1) };
        return work();
    }
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let _swapped = Swapped::new();
    work()
}

/// Makes the errors of this thread known again.
struct Loud(cast::QuietErrors);

impl Drop for Loud {
    fn drop(&mut self) {
        // SAFETY: the function takes any number.
        unsafe { self.0(0) };
    }
}

/// The error handler that `MPI_COMM_SELF` gets back.
struct Swapped(raw::Errhandler);

impl Swapped {
    /// Makes the errors of `MPI_COMM_SELF` return. Returns `None` if there is no `MPI_COMM_SELF`.
    fn new() -> Option<Self> {
        let (mut begun, mut over, mut before) = (0, 0, raw::Errhandler(0));
        // SAFETY: the results are written to variables.
        unsafe {
            let known = abi::PMPI_Initialized(&raw mut begun) == 0
                && abi::PMPI_Finalized(&raw mut over) == 0
                && (begun, over) == (1, 0)
                && abi::PMPI_Comm_get_errhandler(raw::COMM_SELF, &raw mut before) == 0;
            if !known {
                return None;
            }
            let swapped = Self(before);
            abi::PMPI_Comm_set_errhandler(raw::COMM_SELF, raw::ERRORS_RETURN);
            Some(swapped)
        }
    }
}

impl Drop for Swapped {
    fn drop(&mut self) {
        // SAFETY: the handle is ours.
        unsafe {
            abi::PMPI_Comm_set_errhandler(raw::COMM_SELF, self.0);
            abi::PMPI_Errhandler_free(&raw mut self.0);
        }
    }
}

/// Calls `work`, the body of a routine. A panic, which is an error in this library, becomes `MPI_ERR_INTERN`, which
/// goes to the error handler for calls without an object. (The panic itself has printed where it happened.)
#[inline(always)]
pub fn caught(work: impl FnOnce() -> c_int) -> c_int {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(code) => code,
        Err(_) => {
            eprintln!("typepack bug: a Fortran routine panicked; the line above says where");
            nothing(raw::ERR_INTERN)
        }
    }
}
