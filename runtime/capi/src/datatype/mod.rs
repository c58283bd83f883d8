//! Datatypes: what the runtime adds to the crate `typepack-capi-datatype`. These are attributes
//! (`attribute.rs`), the way a type is committed, and packing in a communicator (`pack.rs`).

pub mod attribute;
pub mod pack;

pub use typepack_capi_datatype::types::{Type, construct, decode, from_int, query};

use crate::error::Result;
use crate::failure::Failure;
use crate::raw;
use std::sync::Arc;
use typepack_capi_datatype::types;

/// Registers the runtime as the committer of all types from this call on.
pub fn begin() {
    types::commit_with(|tree| {
        typepack::commit(tree).map_err(|error| Failure::of_code(error.class().0, error.to_string()))
    });
}

/// Returns the datatype of a handle.
///
/// # Errors
/// Returns `MPI_ERR_TYPE` if the handle is not valid.
pub fn find(datatype: raw::Datatype) -> Result<Arc<Type>> {
    Ok(types::find(datatype)?)
}

/// Calls `work` with the type of a handle.
///
/// # Errors
/// Returns `MPI_ERR_TYPE` if the handle is not valid, and the errors of `work`.
#[inline]
pub fn with<R>(datatype: raw::Datatype, work: impl FnOnce(&Type) -> Result<R>) -> Result<R> {
    types::with(datatype, work)
}
