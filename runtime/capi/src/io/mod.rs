//! Files (MPI-5.0 chapter 14): handles and error handlers.
//!
//! `manage.rs` opens, closes and deletes files and has the calls about sizes, modes, hints and file
//! pointers. `view.rs` has the calls about views. `datarep.rs` registers data representations that the
//! program defines. `access.rs` reads and writes.
//!
//! `MPI_FILE_NULL` has an error handler (section 14.7). A new file inherits this error handler, and a call
//! that fails on a file that is not open invokes it. The error handler is `MPI_ERRORS_RETURN` until the
//! program sets another one.
//!
//! If this crate finds a wrong argument in a collective call on an open file, this rank still takes part in
//! the call (`File::refuse`, `File::refuse_call`). So the other ranks get an error and do not wait for this
//! rank. `File::refuse_open` does the same for `MPI_File_open` with a valid communicator.

pub mod access;
pub mod datarep;
pub mod manage;
pub mod view;

use crate::abi;
use crate::argument::Output;
use crate::error::handler::{Handler, HandlerCell, On};
use crate::error::objects::{self, Handled, Names, Objects};
use crate::error::{Failure, Result};
use crate::handle::Kind;
use crate::raw;
use std::ffi::c_int;
use std::sync::{Arc, Mutex, PoisonError};
use typepack::ErrorClass;
use typepack::io::File;
use view::ViewTypes;

/// A file behind a handle.
#[derive(Debug)]
pub struct FileObject {
    handler: Arc<HandlerCell>,
    /// `None` after the file has been closed.
    file: Mutex<Option<Arc<File>>>,
    types: Mutex<ViewTypes>,
}

impl Handled for FileObject {
    fn cell(&self) -> &HandlerCell {
        &self.handler
    }
}

/// The table of all files.
pub static FILES: Objects<FileObject> = Objects::new(
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

impl FileObject {
    /// Returns the runtime's file.
    ///
    /// # Errors
    /// Returns `MPI_ERR_FILE` if another thread has closed the file.
    fn file(&self) -> Result<Arc<File>> {
        let file = self.file.lock().unwrap_or_else(PoisonError::into_inner).clone();
        file.ok_or_else(|| Failure::new(abi::ERR_FILE, "file", "the file has been closed"))
    }
}

/// Returns the runtime's file of a handle.
///
/// # Errors
/// Returns `MPI_ERR_FILE` if the handle is not valid, or if another thread has closed the file.
pub fn find(file: raw::File) -> Result<Arc<File>> {
    FILES.find(file.0)?.file()
}

/// Converts a failure of this crate to an error of the runtime. The error has the failure's class.
fn error_of(failure: &Failure) -> typepack::Error {
    let kind = typepack::ErrorKind::Engine(ErrorClass(failure.code));
    typepack::Error::new(kind, "argument", failure.text.clone())
}

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

// The value of each `FileErrorKind` of the runtime is an MPI error class. The checks below compare the two.
const _: () = {
    use typepack::FileErrorKind as F;
    assert!(F::Access as c_int == abi::ERR_ACCESS && F::Mode as c_int == abi::ERR_AMODE);
    assert!(F::BadFile as c_int == abi::ERR_BAD_FILE && F::File as c_int == abi::ERR_FILE);
    assert!(F::DuplicateRepresentation as c_int == abi::ERR_DUP_DATAREP);
    assert!(
        F::Exists as c_int == abi::ERR_FILE_EXISTS && F::InUse as c_int == abi::ERR_FILE_IN_USE
    );
    assert!(F::Io as c_int == abi::ERR_IO && F::NotSame as c_int == abi::ERR_NOT_SAME);
    assert!(F::NoSpace as c_int == abi::ERR_NO_SPACE && F::Quota as c_int == abi::ERR_QUOTA);
    assert!(F::NoSuchFile as c_int == abi::ERR_NO_SUCH_FILE);
    assert!(F::ReadOnly as c_int == abi::ERR_READ_ONLY);
    assert!(F::Representation as c_int == abi::ERR_UNSUPPORTED_DATAREP);
    assert!(F::Operation as c_int == abi::ERR_UNSUPPORTED_OPERATION);
};
