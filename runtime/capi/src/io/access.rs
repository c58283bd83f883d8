//! Reading and writing files: all calls in Table 14.1 of MPI-5.0.
//!
//! The calls differ in the position, in the direction (read or write), in synchronism (blocking, nonblocking,
//! or split into a beginning and an end), and in whether they are collective. The list in `accesses!` has one
//! line for each call. The functions `blocking`, `nonblocking` and `begin` make the calls. A call that ends a
//! split access calls `File::end`.

use super::{FILES, error_of, find};
use crate::argument::Output;
use crate::buffer::memory;
use crate::count_width::CountWidth;
use crate::error::{Failure, Result};
use crate::p2p;
use crate::raw::{self, Datatype, Offset, Status};
use crate::request::{self, OfFile};
use crate::status::StatusOutput;
use std::ffi::c_void;
use typepack::Plan;
use typepack::engine::Elements;
use typepack::io::{Access, File, Position, Started};

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
    let checked = p2p::elements(buf, count, datatype).and_then(|elements| {
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
