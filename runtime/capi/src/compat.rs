//! The symbols that the compatibility block of `mpi.h` needs. This block has names that are not part of the
//! ABI (`abi/compat.csv`).
//!
//! The symbols are four variables and two functions. The value of each variable is an address; a program
//! passes this address in place of a Fortran status to ignore the status. The functions are `MPI_Type_struct`
//! of MPI-1 and `MPIX_Type_describe`. The other functions of the block are inline functions in the header.
//!
//! Seven private functions are for `libmpifort_abi.so.1`, which finds them by their names. Three of them make the types of
//! the calls of MPI-1 in Fortran, whose displacements are INTEGERs, and which therefore decode with combiners of their
//! own.

use crate::argument::FromC;
use crate::callback::Attached;
use crate::count_width::{Large, Number};
use crate::datatype::construct;
use crate::datatype::describe::describe;
use crate::entry::{self, At};
use crate::error::{Result, handler, section};
use crate::raw;
use crate::request;
use std::ffi::{c_char, c_int, c_void};
use typepack::engine::Binding;
use typepack_capi_datatype::pack;

/// `MPI_F_STATUS_IGNORE`. The value is an address below 8192, where no object lies.
#[unsafe(no_mangle)]
pub static MPI_F_STATUS_IGNORE: usize = 0x1f01;
/// `MPI_F_STATUSES_IGNORE`.
#[unsafe(no_mangle)]
pub static MPI_F_STATUSES_IGNORE: usize = 0x1f02;
/// `MPI_F08_STATUS_IGNORE`.
#[unsafe(no_mangle)]
pub static MPI_F08_STATUS_IGNORE: usize = 0x1f03;
/// `MPI_F08_STATUSES_IGNORE`.
#[unsafe(no_mangle)]
pub static MPI_F08_STATUSES_IGNORE: usize = 0x1f04;

/// Makes a struct of MPI-1.
///
/// # Safety
///
/// - Each pointer is null, or satisfies the promise in the documentation of the type to which it is
///   converted (a type in `argument/` of `typepack-capi-datatype`; `construct::structured_with_markers`
///   takes these types).
unsafe fn type_struct<A: Number>(
    count: c_int,
    blocklengths: *const c_int,
    displacements: *const A,
    types: *const raw::Datatype,
    newtype: *mut raw::Datatype,
    binding: Binding,
) -> Result {
    // SAFETY: each pointer satisfies the promise of the type to which it is converted (condition of `# Safety`).
    let (lengths, places, types, newtype) = unsafe {
        (
            FromC::from_c(blocklengths),
            FromC::from_c(displacements),
            FromC::from_c(types),
            FromC::from_c(newtype),
        )
    };
    construct::structured_with_markers(count, lengths, places, types, newtype, binding)?;
    Ok(())
}

/// `MPI_Type_struct`, removed in MPI-3.0.
///
/// # Safety
///
/// - Those of `type_struct`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MPI_Type_struct(
    count: c_int,
    blocklengths: *const c_int,
    displacements: *const raw::Aint,
    types: *const raw::Datatype,
    newtype: *mut raw::Datatype,
) -> c_int {
    entry::enter(&"MPI_Type_struct", At::Nothing, || {
        // SAFETY: the pointers satisfy the conditions of `type_struct` (condition of `# Safety`).
        unsafe { type_struct(count, blocklengths, displacements, types, newtype, Binding::C) }
    })
}

/// `MPIX_Type_describe`: what `typepack explain` says about a datatype.
///
/// # Safety
///
/// - `text` is null or writable for as many bytes as the value at `length` says, and `length` is null or the address of a
///   number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MPIX_Type_describe(
    datatype: raw::Datatype,
    text: *mut c_char,
    length: *mut c_int,
) -> c_int {
    entry::enter(&"MPIX_Type_describe", At::Nothing, || {
        // SAFETY: the pointers satisfy the promises of their types, and the buffer has the size at `length` (condition of
        // `# Safety`).
        unsafe { describe(datatype, FromC::from_c(text), FromC::from_c(length)) }
    })
}

/// Keeps the errors of the calling thread from all error handlers, and from standard error, until `on` is 0 again. The
/// calls return their codes all the same.
#[unsafe(no_mangle)]
pub extern "C" fn typepack_quiet_errors(on: c_int) {
    handler::be_quiet(on != 0);
}

/// Has the calls of this thread fail with the code `code`, until it is 0 again, because they cannot use an array section.
/// A collective call, an access of all ranks to a file and `MPI_Win_create` tell the other ranks of it, and use no buffer.
/// All other calls go on as if nothing were said.
#[unsafe(no_mangle)]
pub extern "C" fn typepack_refuse_section(code: c_int) {
    section::refuse(code);
}

/// Attaches a function to a request: it is called with `state` when the operation of the request starts again (0), when a
/// call finds the operation complete, before it returns the status (1), and when the request ends (2). No lock is held.
/// The third call is the last one.
///
/// # Safety
///
/// - `request` is the handle of a request that this thread has just made, and to which nothing is attached yet.
/// - Any thread may call the function with `state` until its last call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn typepack_attach_to_request(
    request: raw::Request,
    function: raw::Callback,
    state: *mut c_void,
) -> c_int {
    entry::enter(&"typepack_attach_to_request", At::Nothing, || {
        request::attach(request, Attached::new(function, state))
    })
}

/// `MPI_Pack_c` without a communicator: a program with sessions only has no predefined one.
///
/// # Safety
///
/// - `inbuf` is readable for `incount` elements of `datatype`.
/// - `outbuf` is writable for `outsize` bytes, and does not overlap the elements.
/// - `position` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn typepack_pack(
    inbuf: *const c_void,
    incount: raw::Count,
    datatype: raw::Datatype,
    outbuf: *mut c_void,
    outsize: raw::Count,
    position: *mut raw::Count,
) -> c_int {
    entry::enter(&"typepack_pack", At::Nothing, || {
        // SAFETY: the conditions of `pack::pack` are those of this function, and `position` is what `InOut` promises.
        unsafe {
            let position = FromC::from_c(position);
            pack::pack::<Large>(inbuf, incount, datatype, outbuf, outsize, position)
        }
    })
}

/// `MPI_TYPE_HVECTOR` of MPI-1 in Fortran.
///
/// # Safety
///
/// - `newtype` is null, or satisfies the promise of [`Output`](crate::argument::Output).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn typepack_type_hvector_integer(
    count: c_int,
    blocklength: c_int,
    stride: c_int,
    oldtype: raw::Datatype,
    newtype: *mut raw::Datatype,
) -> c_int {
    entry::enter(&"MPI_Type_hvector", At::Nothing, || {
        // SAFETY: the pointer satisfies the promise of the type to which it is converted (condition of `# Safety`).
        let newtype = unsafe { FromC::from_c(newtype) };
        construct::hvector_integer(count, blocklength, stride, oldtype, newtype)
    })
}

/// `MPI_TYPE_HINDEXED` of MPI-1 in Fortran.
///
/// # Safety
///
/// - Each pointer is null, or satisfies the promise of the type to which it is converted, as for `type_struct`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn typepack_type_hindexed_integer(
    count: c_int,
    blocklengths: *const c_int,
    displacements: *const c_int,
    oldtype: raw::Datatype,
    newtype: *mut raw::Datatype,
) -> c_int {
    entry::enter(&"MPI_Type_hindexed", At::Nothing, || {
        // SAFETY: each pointer satisfies the promise of the type to which it is converted (condition of
        // `# Safety`).
        let (blocklengths, displacements, newtype) = unsafe {
            (FromC::from_c(blocklengths), FromC::from_c(displacements), FromC::from_c(newtype))
        };
        construct::hindexed_integer(count, blocklengths, displacements, oldtype, newtype)
    })
}

/// `MPI_TYPE_STRUCT` of MPI-1 in Fortran.
///
/// # Safety
///
/// - Each pointer is null, or satisfies the promise of the type to which it is converted, as for `type_struct`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn typepack_type_struct_integer(
    count: c_int,
    blocklengths: *const c_int,
    displacements: *const c_int,
    types: *const raw::Datatype,
    newtype: *mut raw::Datatype,
) -> c_int {
    entry::enter(&"MPI_Type_struct", At::Nothing, || {
        // SAFETY: the pointers satisfy the conditions of `type_struct` (condition of `# Safety`).
        unsafe { type_struct(count, blocklengths, displacements, types, newtype, Binding::Fortran) }
    })
}
