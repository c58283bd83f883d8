//! Files (MPI-5.0 chapter 14). So far this module implements only the handles and the error handlers of
//! files. The other calls on files are not implemented yet: they check the handle and then fail.
//!
//! `MPI_FILE_NULL` has an error handler (section 14.7). A new file inherits this error handler, and a call
//! that fails on a file that is not open invokes it. The error handler is `MPI_ERRORS_RETURN` until the
//! program sets another one.

use crate::abi;
use crate::argument::Output;
use crate::error::Result;
use crate::error::handler::{Handler, HandlerCell, On};
use crate::error::objects::{self, Names, Objects};
use crate::handle::Kind;
use crate::raw;
use std::ffi::c_int;

/// The table of all files.
pub static FILES: Objects = Objects::new(
    Kind::File,
    On::File,
    Names {
        class: abi::ERR_FILE,
        argument: "file",
        kind: "file",
        null: (abi::FILE_NULL, "MPI_FILE_NULL"),
    },
);

static DEFAULT: HandlerCell = HandlerCell::new(Handler::Return);

/// Returns the error handler for a failure on a file, and the handle that this error handler gets. If the
/// file is not open, both belong to `MPI_FILE_NULL`.
pub fn handler(file: raw::File) -> (Handler, usize) {
    match FILES.handler(file.0) {
        Some(handler) => (handler, file.0),
        None => (DEFAULT.get(), abi::FILE_NULL),
    }
}

/// `MPI_File_set_errhandler`.
pub fn set_errhandler(file: raw::File, errhandler: raw::Errhandler) -> Result {
    match file {
        raw::File::NULL => objects::set_handler(&DEFAULT, On::File, errhandler),
        file => FILES.set_handler(file.0, errhandler),
    }
}

/// `MPI_File_get_errhandler`.
pub fn get_errhandler(file: raw::File, errhandler: Output<raw::Errhandler>) -> Result {
    match file {
        raw::File::NULL => objects::get_handler(&DEFAULT, errhandler),
        file => FILES.get_handler(file.0, errhandler),
    }
}

/// `MPI_File_call_errhandler`.
pub fn call_errhandler(file: raw::File, errorcode: c_int) -> Result {
    let name = "MPI_File_call_errhandler";
    match file {
        raw::File::NULL => objects::call_handler(&DEFAULT, file.0, name, errorcode),
        file => FILES.call_handler(file.0, name, errorcode)?,
    }
    Ok(())
}
