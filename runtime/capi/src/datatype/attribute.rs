//! Attributes of datatypes, predefined ones too (MPI-5.0 section 7.7.4).
//!
//! Freeing a type deletes its attributes first, duplicating copies them; so both calls are here.

use super::{Type, find};
use crate::attribute::{self, Attributes, Of};
use crate::error::{Failure, Result};
use crate::out::Out;
use crate::raw;
use std::ffi::{c_int, c_void};
use std::sync::Arc;
use typepack_capi_datatype::types;

/// The attributes of a type.
fn attributes(ty: &Type) -> Result<&Attributes> {
    let other =
        || Failure::of_code(crate::abi::ERR_INTERN, "a type keeps something else".to_owned());
    ty.attached(Attributes::new).ok_or_else(other)
}

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
    attributes(&*find(datatype)?)?.set(Of::Type, datatype.0, keyval, value)
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
    let attributes = attributes(&found)?;
    // SAFETY: passed on.
    unsafe { attribute::answer(|| attributes.get(Of::Type, keyval), value, flag) }
}

/// `MPI_Type_delete_attr`.
///
/// # Safety
/// As the C function.
pub unsafe fn delete(datatype: raw::Datatype, keyval: c_int) -> Result {
    attributes(&*find(datatype)?)?.delete(Of::Type, datatype.0, keyval)
}

/// `MPI_Type_dup`: committed if the original is, with the attributes that are copied.
///
/// # Safety
/// As the C function.
pub unsafe fn dup(oldtype: raw::Datatype, newtype: *mut raw::Datatype) -> Result {
    // SAFETY: passed on.
    let out = unsafe { Out::new(newtype, "newtype")? };
    let old = find(oldtype)?;
    let copy = Type::new(old.tree().dup());
    if old.plan().is_ok() {
        copy.commit()?;
    }
    let copy = Arc::new(copy);
    let handle = types::insert_type(copy.clone())?;
    if let Err(failure) = attributes(&old)?.copy(oldtype.0, attributes(&copy)?, handle.0) {
        types::remove(handle)?;
        // There is nothing that a careless caller may go on with.
        out.set(raw::Datatype::NULL);
        return Err(failure);
    }
    out.set(handle);
    Ok(())
}

/// `MPI_Type_free`: types made of it, and operations that use it, keep what they need.
///
/// # Safety
/// As the C function.
pub unsafe fn free(datatype: *mut raw::Datatype) -> Result {
    // SAFETY: passed on.
    let out = unsafe { Out::new(datatype, "datatype")? };
    // SAFETY: not null, and readable as an argument of both directions.
    let handle = unsafe { datatype.read_unaligned() };
    // The attributes first, which may refuse.
    attributes(&*types::find_own(handle)?)?.clear(handle.0)?;
    types::remove(handle)?;
    out.set(raw::Datatype::NULL);
    Ok(())
}
