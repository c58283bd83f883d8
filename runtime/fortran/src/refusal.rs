//! Errors that this library finds itself. They go to the error handler of the call's object, as those of the library
//! below do.

use crate::{abi, raw};
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

/// Calls the error handler for calls without an object, and returns the class.
#[cold]
pub fn nothing(class: c_int) -> c_int {
    comm(raw::COMM_SELF, class)
}

/// Does `work`, whose calls of the library below return their errors and report them to nobody, because the errors belong
/// to the object of the routine. Such calls report to `MPI_COMM_SELF`, whose error handler is another one meanwhile.
pub fn quietly<R>(work: impl FnOnce() -> R) -> R {
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let mut before = raw::Errhandler(0);
    // SAFETY: the handle is written to a variable, and is ours.
    unsafe {
        let known = abi::PMPI_Comm_get_errhandler(raw::COMM_SELF, &raw mut before) == 0
            && abi::PMPI_Comm_set_errhandler(raw::COMM_SELF, raw::ERRORS_RETURN) == 0;
        let result = work();
        if known {
            abi::PMPI_Comm_set_errhandler(raw::COMM_SELF, before);
            abi::PMPI_Errhandler_free(&raw mut before);
        }
        result
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
