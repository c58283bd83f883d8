//! Attributes of datatypes, predefined ones too (MPI-5.0 section 7.7.4).
//!
//! Freeing a type deletes its attributes first, duplicating copies them; so both calls are here.

use super::{Type, find};
use crate::argument::{InOut, Output};
use crate::attribute::{self, Attributes, Of};
use crate::error::{Failure, Result};
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

/// `MPI_Type_dup`: committed if the original is, with the attributes that are copied.
pub fn dup(oldtype: raw::Datatype, newtype: Output<raw::Datatype>) -> Result {
    let out = newtype.required("newtype")?;
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
pub fn free(datatype: InOut<raw::Datatype>) -> Result {
    let (handle, out) = datatype.read("datatype")?;
    // The attributes first, which may refuse.
    attributes(&*types::find_own(handle)?)?.clear(handle.0)?;
    types::remove(handle)?;
    out.set(raw::Datatype::NULL);
    Ok(())
}
