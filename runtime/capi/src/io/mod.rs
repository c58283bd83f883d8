//! Files (MPI-5.0 chapter 14): handles, error handlers, reading and writing.
//!
//! `manage.rs` opens, closes and deletes files and has the calls about sizes, modes, hints and file
//! pointers. `view.rs` has the calls about views. `datarep.rs` registers data representations that the
//! program defines.
//!
//! All calls that read and write (Table 14.1) are at the end of this file. They differ in the position, in the
//! direction (read or write), in synchronism (blocking, nonblocking, or split into a beginning and an end), and in
//! whether they are collective. The list in `accesses!` has one line for each call. The functions `blocking`,
//! `nonblocking` and `begin` make the calls. A call that ends a split access calls `File::end`.
//!
//! `MPI_FILE_NULL` has an error handler (section 14.7). A new file inherits this error handler, and a call
//! that fails on a file that is not open invokes it. The error handler is `MPI_ERRORS_RETURN` until the
//! program sets another one.
//!
//! If this crate finds a wrong argument in a collective call on an open file, this rank still takes part in
//! the call (`File::refuse`, `File::refuse_call`). So the other ranks get an error and do not wait for this
//! rank. `File::refuse_open` does the same for `MPI_File_open` with a valid communicator.

pub mod datarep;
pub mod manage;
pub mod view;

use crate::abi;
use crate::argument::Output;
use crate::buffer::memory;
use crate::count_width::CountWidth;
use crate::error::handler::{Handler, HandlerCell, On};
use crate::error::objects::{self, Handled, Names, Objects};
use crate::error::{Failure, Result, section};
use crate::handle::Kind;
use crate::raw::{self, Datatype, Offset, Status};
use crate::request::{self, OfFile};
use crate::status::StatusOutput;
use std::ffi::{c_int, c_void};
use std::sync::{Arc, Mutex, PoisonError};
use typepack::engine::Elements;
use typepack::io::{Access, File, Position, Started};
use typepack::{ErrorClass, Plan};
use typepack_capi_datatype::types;
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

/// Defines the calls. Each line of the list has the synchronism, the name of the Rust function, the type of the
/// buffer, whether the call writes the file, the offset argument (if there is one) and the position, whether the
/// call is collective, and the name in C without `MPI_`.
macro_rules! accesses {
    ($($how:ident $name:ident $buffer:ty, $write:literal, ($($offset:ident)?) $position:expr, $all:literal $c:literal;)*) => {
        $(accesses! { @$how $name $buffer, $write, ($($offset)?) $position, $all $c })*
    };
    (@blocking $name:ident $buffer:ty, $write:literal, ($($offset:ident)?) $position:expr, $all:literal $c:literal) => {
        #[doc = concat!("`MPI_", $c, "`.")]
        ///
        /// # Safety
        ///
        /// - Until the call returns, the `count` elements of `datatype` at `buf` are valid. If the call writes the
        ///   file: they are readable, and nobody changes them. If it reads the file: they are writable, and
        ///   nobody else accesses them.
        pub unsafe fn $name<W: CountWidth>(
            fh: raw::File,
            $($offset: Offset,)?
            buf: $buffer,
            count: W::Count,
            datatype: Datatype,
            status: StatusOutput,
        ) -> Result {
            let access = Access { write: $write, position: $position, collective: $all };
            // SAFETY: the caller guarantees that the elements at `buf` are valid until this call returns (the
            // condition of `# Safety`), as `blocking` requires.
            unsafe { blocking::<W>(fh, access, buf.cast(), count, datatype, status) }
        }
    };
    (@nonblocking $name:ident $buffer:ty, $write:literal, ($($offset:ident)?) $position:expr, $all:literal $c:literal) => {
        #[doc = concat!("`MPI_", $c, "`.")]
        ///
        /// # Safety
        ///
        /// - Until the request is complete, the `count` elements of `datatype` at `buf` are valid. If the call
        ///   writes the file: they are readable, and nobody changes them. If it reads the file: they are
        ///   writable, and nobody else accesses them.
        pub unsafe fn $name<W: CountWidth>(
            fh: raw::File,
            $($offset: Offset,)?
            buf: $buffer,
            count: W::Count,
            datatype: Datatype,
            request: Output<raw::Request>,
        ) -> Result {
            let access = Access { write: $write, position: $position, collective: $all };
            // SAFETY: the caller guarantees that the elements at `buf` are valid until the request is complete
            // (the condition of `# Safety`), as `nonblocking` requires.
            unsafe { nonblocking::<W>(fh, access, buf.cast(), count, datatype, request) }
        }
    };
    (@begin $name:ident $buffer:ty, $write:literal, ($($offset:ident)?) $position:expr, $all:literal $c:literal) => {
        #[doc = concat!("`MPI_", $c, "`.")]
        ///
        /// # Safety
        ///
        /// - Until the call that ends the access returns, the `count` elements of `datatype` at `buf` are valid.
        ///   If the access writes the file: they are readable, and nobody changes them. If it reads the file:
        ///   they are writable, and nobody else accesses them.
        pub unsafe fn $name<W: CountWidth>(
            fh: raw::File,
            $($offset: Offset,)?
            buf: $buffer,
            count: W::Count,
            datatype: Datatype,
        ) -> Result {
            let access = Access { write: $write, position: $position, collective: $all };
            // SAFETY: the caller guarantees that the elements at `buf` are valid until the call that ends the
            // access returns (the condition of `# Safety`), as `begin` requires.
            unsafe { begin::<W>(fh, access, buf.cast(), count, datatype) }
        }
    };
    (@end $name:ident $buffer:ty, $write:literal, ($($offset:ident)?) $position:expr, $all:literal $c:literal) => {
        #[doc = concat!("`MPI_", $c, "`.")]
        pub fn $name(fh: raw::File, buf: $buffer, status: StatusOutput) -> Result {
            let access = Access { write: $write, position: $position, collective: $all };
            let file = find(fh)?;
            written(status, file.end(access, buf as usize))
        }
    };
}

accesses! {
    blocking read_at *mut c_void, false, (offset) Position::At(offset), false "File_read_at";
    nonblocking iread_at *mut c_void, false, (offset) Position::At(offset), false "File_iread_at";
    nonblocking iread_at_all *mut c_void, false, (offset) Position::At(offset), true "File_iread_at_all";
    blocking read_at_all *mut c_void, false, (offset) Position::At(offset), true "File_read_at_all";
    begin read_at_all_begin *mut c_void, false, (offset) Position::At(offset), true "File_read_at_all_begin";
    end read_at_all_end *mut c_void, false, () Position::At(0), true "File_read_at_all_end";
    blocking write_at *const c_void, true, (offset) Position::At(offset), false "File_write_at";
    nonblocking iwrite_at *const c_void, true, (offset) Position::At(offset), false "File_iwrite_at";
    nonblocking iwrite_at_all *const c_void, true, (offset) Position::At(offset), true "File_iwrite_at_all";
    blocking write_at_all *const c_void, true, (offset) Position::At(offset), true "File_write_at_all";
    begin write_at_all_begin *const c_void, true, (offset) Position::At(offset), true "File_write_at_all_begin";
    end write_at_all_end *const c_void, true, () Position::At(0), true "File_write_at_all_end";
    blocking read *mut c_void, false, () Position::Individual, false "File_read";
    nonblocking iread *mut c_void, false, () Position::Individual, false "File_iread";
    nonblocking iread_all *mut c_void, false, () Position::Individual, true "File_iread_all";
    blocking read_all *mut c_void, false, () Position::Individual, true "File_read_all";
    begin read_all_begin *mut c_void, false, () Position::Individual, true "File_read_all_begin";
    end read_all_end *mut c_void, false, () Position::Individual, true "File_read_all_end";
    blocking write *const c_void, true, () Position::Individual, false "File_write";
    nonblocking iwrite *const c_void, true, () Position::Individual, false "File_iwrite";
    nonblocking iwrite_all *const c_void, true, () Position::Individual, true "File_iwrite_all";
    blocking write_all *const c_void, true, () Position::Individual, true "File_write_all";
    begin write_all_begin *const c_void, true, () Position::Individual, true "File_write_all_begin";
    end write_all_end *const c_void, true, () Position::Individual, true "File_write_all_end";
    blocking read_shared *mut c_void, false, () Position::Shared, false "File_read_shared";
    nonblocking iread_shared *mut c_void, false, () Position::Shared, false "File_iread_shared";
    blocking read_ordered *mut c_void, false, () Position::Shared, true "File_read_ordered";
    begin read_ordered_begin *mut c_void, false, () Position::Shared, true "File_read_ordered_begin";
    end read_ordered_end *mut c_void, false, () Position::Shared, true "File_read_ordered_end";
    blocking write_shared *const c_void, true, () Position::Shared, false "File_write_shared";
    nonblocking iwrite_shared *const c_void, true, () Position::Shared, false "File_iwrite_shared";
    blocking write_ordered *const c_void, true, () Position::Shared, true "File_write_ordered";
    begin write_ordered_begin *const c_void, true, () Position::Shared, true "File_write_ordered_begin";
    end write_ordered_end *const c_void, true, () Position::Shared, true "File_write_ordered_end";
}

/// Writes the status of an access and returns the result of the call. If the access failed, the status is
/// written only if the error has the number of bytes that were moved.
fn written(status: StatusOutput, result: typepack::Result<typepack::Status>) -> Result {
    let put = |received: typepack::Status| {
        let mut found = Status::empty();
        found.set_bytes(received.bytes);
        status.put(&found);
    };
    match result {
        Ok(received) => {
            put(received);
            Ok(())
        }
        Err(error) => {
            if let Some(received) = error.received() {
                put(received);
            }
            Err(error.into())
        }
    }
}

/// Checks the buffer, the count and the datatype, and returns the elements. If an argument is wrong and the
/// access is collective, this rank takes part in the access of the other ranks, so that they get an error and do
/// not wait. `background` is true if the access is nonblocking or split.
fn elements<W: CountWidth>(
    file: &File,
    access: Access,
    background: bool,
    buf: *const c_void,
    count: W::Count,
    datatype: Datatype,
) -> Result<Elements<Plan>> {
    let checked = section::check().and_then(|()| {
        let elements = types::elements(buf, count, datatype)?;
        memory(&elements, "buf")?;
        Ok(elements)
    });
    checked.inspect_err(|failure| file.refuse(access, background, error_of(failure)))
}

/// Makes a blocking access.
///
/// # Safety
///
/// - Until the call returns, the `count` elements of `datatype` at `buf` are valid for the access, as
///   [`File::access_raw`] requires.
unsafe fn blocking<W: CountWidth>(
    fh: raw::File,
    access: Access,
    buf: *const c_void,
    count: W::Count,
    datatype: Datatype,
    status: StatusOutput,
) -> Result {
    let file = find(fh)?;
    let elements = elements::<W>(&file, access, false, buf, count, datatype)?;
    // SAFETY: `access_raw` requires that the elements are valid until it returns. The caller guarantees that
    // they are valid until this function returns (the condition of `# Safety`), which is later.
    let result = unsafe { file.access_raw(access, &elements.view()) };
    written(status, result)
}

/// Starts a nonblocking access.
///
/// # Safety
///
/// - Until the request is complete, the `count` elements of `datatype` at `buf` are valid for the access, as
///   [`File::start_raw`] requires.
unsafe fn nonblocking<W: CountWidth>(
    fh: raw::File,
    access: Access,
    buf: *const c_void,
    count: W::Count,
    datatype: Datatype,
    request: Output<raw::Request>,
) -> Result {
    let (object, file) = (FILES.find(fh.0)?, find(fh)?);
    let out = request
        .required("request")
        .map_err(Failure::from)
        .inspect_err(|failure| file.refuse(access, true, error_of(failure)))?;
    let elements = elements::<W>(&file, access, true, buf, count, datatype)?;
    // SAFETY: the caller guarantees that the elements are valid until the request is complete (the condition of
    // `# Safety`). The request is complete only when the operation has ended or has been abandoned.
    let Started { operation, pending } = unsafe { file.start_raw(access, &elements.view())? };
    let handler = object.handler.clone();
    let of_file = OfFile { handle: fh, handler, _pending: pending };
    out.set(request::open_access(operation, of_file, access.collective)?);
    Ok(())
}

/// Begins a split collective access.
///
/// # Safety
///
/// - Until the call that ends the access returns, the `count` elements of `datatype` at `buf` are valid for the
///   access, as [`File::begin_raw`] requires.
unsafe fn begin<W: CountWidth>(
    fh: raw::File,
    access: Access,
    buf: *const c_void,
    count: W::Count,
    datatype: Datatype,
) -> Result {
    let file = find(fh)?;
    let elements = elements::<W>(&file, access, true, buf, count, datatype)?;
    // SAFETY: the caller guarantees that the elements are valid until the call that ends the access returns (the
    // condition of `# Safety`). That call returns after `File::end` has returned.
    unsafe { file.begin_raw(access, &elements.view()) }.map_err(Failure::from)
}
