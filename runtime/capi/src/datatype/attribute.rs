//! Attributes of datatypes, predefined ones too (MPI-5.0 section 7.7.4).
//!
//! Freeing a type deletes its attributes first (`construct.rs`), duplicating copies them.

use super::find;
use crate::attribute::{self, Of};
use crate::error::Result;
use crate::raw;
use std::ffi::{c_int, c_void};

/// `MPI_Type_create_keyval`.
///
/// # Safety
/// As the C function.
pub unsafe fn create_keyval(
    copy: raw::Callback,
    delete: raw::Callback,
    keyval: *mut c_int,
    extra: *mut c_void,
) -> Result {
    // SAFETY: passed on.
    unsafe { attribute::create(Of::Type, copy, delete, keyval, extra) }
}

/// `MPI_Type_free_keyval`.
///
/// # Safety
/// As the C function.
pub unsafe fn free_keyval(keyval: *mut c_int) -> Result {
    // SAFETY: passed on.
    unsafe { attribute::free(Of::Type, keyval) }
}

/// `MPI_Type_set_attr`.
///
/// # Safety
/// As the C function.
pub unsafe fn set(datatype: raw::Datatype, keyval: c_int, value: *mut c_void) -> Result {
    find(datatype)?.attributes.set(Of::Type, datatype.0, keyval, value)
}

/// `MPI_Type_get_attr`.
///
/// # Safety
/// As the C function.
pub unsafe fn get(
    datatype: raw::Datatype,
    keyval: c_int,
    value: *mut c_void,
    flag: *mut c_int,
) -> Result {
    let found = find(datatype)?;
    // SAFETY: passed on.
    unsafe { attribute::answer(|| found.attributes.get(Of::Type, keyval), value, flag) }
}

/// `MPI_Type_delete_attr`.
///
/// # Safety
/// As the C function.
pub unsafe fn delete(datatype: raw::Datatype, keyval: c_int) -> Result {
    find(datatype)?.attributes.delete(Of::Type, datatype.0, keyval)
}
