//! Datatypes: the layer of `typepack-capi-datatype`, and what our runtime adds to it: attributes
//! (`attribute.rs`), how a type is committed, and packing in a communicator (`pack.rs`).

pub mod attribute;
pub mod pack;

pub use typepack_capi_datatype::types::{Type, construct, decode, from_int, query};

use crate::error::Result;
use crate::failure::Failure;
use crate::raw;
use std::sync::Arc;
use typepack_capi_datatype::types;

/// Types are committed as the runtime does it, from now on.
pub fn begin() {
    types::commit_with(|tree| {
        typepack::commit(tree).map_err(|error| Failure::of_code(error.class().0, error.to_string()))
    });
}

/// The type of a handle.
///
/// # Errors
/// Returns `MPI_ERR_TYPE` if the handle is not valid.
pub fn find(datatype: raw::Datatype) -> Result<Arc<Type>> {
    Ok(types::find(datatype)?)
}

/// Calls `work` with the type of a handle.
///
/// # Errors
/// `MPI_ERR_TYPE`; what `work` returns.
#[inline]
pub fn with<R>(datatype: raw::Datatype, work: impl FnOnce(&Type) -> Result<R>) -> Result<R> {
    types::with(datatype, work)
}
