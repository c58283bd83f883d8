//! The error handler of `MPI_FILE_NULL` (MPI-5.0 section 14.7): what files begin with, and what hears of
//! failures about no file.
//!
//! It returns until the program sets another. No file can be opened yet, so that this handle is the only
//! one; the calls refuse all others. `handler.rs` asks [`default`] when it raises.

use super::handler::{self, Handler, HandlerCell, On};
use super::{Failure, Result};
use crate::abi;
use crate::out::Out;
use crate::raw;
use std::ffi::c_int;

static DEFAULT: HandlerCell = HandlerCell::new(Handler::Return);

/// The handler of `MPI_FILE_NULL`.
pub fn default() -> Handler {
    DEFAULT.get()
}

fn only_null(file: raw::File) -> Result {
    if file == raw::File::NULL {
        return Ok(());
    }
    Err(Failure::new(abi::ERR_FILE, "file", format!("{:#x} is no file", file.0)))
}

/// `MPI_File_set_errhandler`.
///
/// # Safety
/// As the C function.
pub unsafe fn set(file: raw::File, errhandler: raw::Errhandler) -> Result {
    only_null(file)?;
    DEFAULT.set(Handler::find(errhandler, On::File)?);
    Ok(())
}

/// `MPI_File_get_errhandler`.
///
/// # Safety
/// As the C function.
pub unsafe fn get(file: raw::File, errhandler: *mut raw::Errhandler) -> Result {
    only_null(file)?;
    // SAFETY: passed on.
    let out = unsafe { Out::new(errhandler, "errhandler")? };
    out.set(DEFAULT.get().handle()?);
    Ok(())
}

/// `MPI_File_call_errhandler`: the handler's own verdict, success if it returns.
///
/// # Safety
/// As the C function.
pub unsafe fn call(file: raw::File, errorcode: c_int) -> Result {
    only_null(file)?;
    let text = "MPI_File_call_errhandler: an error of the program".to_owned();
    let failure = Failure::of_code(errorcode, text);
    handler::invoke(&DEFAULT.get(), file.0, "MPI_File_call_errhandler", &failure);
    Ok(())
}
