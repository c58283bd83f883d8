//! Attributes of datatypes, including the predefined datatypes (MPI-5.0 section 7.7.4).
//!
//! `MPI_Type_free` and `MPI_Type_dup` are also in this file, because the first deletes attributes and the
//! second copies them.

use super::{Type, find};
use crate::argument::{InOut, Output};
use crate::attribute::{self, Attributes, Of};
use crate::error::{Failure, Result};
use crate::raw;
use std::ffi::{c_int, c_void};
use std::sync::Arc;
use typepack_capi_datatype::types;

/// Returns the attributes of a datatype.
fn attributes(ty: &Type) -> Result<&Attributes> {
    let other = || {
        Failure::of_code(
            crate::abi::ERR_INTERN,
            "typepack bug: the data attached to the datatype are not attributes".to_owned(),
        )
    };
    ty.attached(Attributes::new).ok_or_else(other)
}

/// `MPI_Type_create_keyval`.
pub fn create_keyval(
    copy: raw::Callback,
    delete: raw::Callback,
    keyval: Output<c_int>,
    extra: *mut c_void,
) -> Result {
    attribute::create(Of::Type, copy, delete, keyval, extra)
}

/// `MPI_Type_free_keyval`.
pub fn free_keyval(keyval: InOut<c_int>) -> Result {
    attribute::free(Of::Type, keyval)
}

/// `MPI_Type_set_attr`.
pub fn set(datatype: raw::Datatype, keyval: c_int, value: *mut c_void) -> Result {
    attributes(&*find(datatype)?)?.set(Of::Type, datatype.0, keyval, value)
}

/// `MPI_Type_get_attr`.
pub fn get(
    datatype: raw::Datatype,
    keyval: c_int,
    value: Output<*mut c_void>,
    flag: Output<c_int>,
) -> Result {
    let found = find(datatype)?;
    let attributes = attributes(&found)?;
    attribute::answer(|| attributes.get(Of::Type, keyval), value, flag)
}

/// `MPI_Type_delete_attr`.
pub fn delete(datatype: raw::Datatype, keyval: c_int) -> Result {
    attributes(&*find(datatype)?)?.delete(Of::Type, datatype.0, keyval)
}

/// `MPI_Type_dup`. The duplicate is committed if the original is committed, and shares its plan. The copy functions
/// decide which attributes the duplicate gets.
pub fn dup(oldtype: raw::Datatype, newtype: Output<raw::Datatype>) -> Result {
    let out = newtype.required("newtype")?;
    let old = find(oldtype)?;
    let copy = Arc::new(Type::sharing(old.tree().dup(), &old));
    let handle = types::insert_type(copy.clone())?;
    if let Some(of_old) = old.already_attached::<Attributes>()
        && let Err(failure) = of_old.copy(oldtype.0, attributes(&copy)?, handle.0)
    {
        types::remove(handle)?;
        // `newtype` gets the null handle, so that a caller that ignores the error cannot use the duplicate.
        out.set(raw::Datatype::NULL);
        return Err(failure);
    }
    out.set(handle);
    Ok(())
}

/// `MPI_Type_free`. Datatypes that were made from this datatype stay valid, and operations that use it
/// continue.
pub fn free(datatype: InOut<raw::Datatype>) -> Result {
    let (handle, out) = datatype.read("datatype")?;
    // The attributes are deleted before the datatype, because the datatype must stay valid if a delete
    // function fails.
    if let Some(attributes) = types::find_own(handle)?.already_attached::<Attributes>() {
        attributes.clear(handle.0)?;
    }
    types::remove(handle)?;
    out.set(raw::Datatype::NULL);
    Ok(())
}
