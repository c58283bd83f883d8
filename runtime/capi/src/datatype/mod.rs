//! Datatypes: what this crate adds to the crate `typepack-capi-datatype`. It adds attributes
//! (`attribute.rs`), the check of the communicator in packing calls (`pack.rs`), and the function that
//! commits a datatype with the runtime.

pub mod attribute;
pub mod describe;
pub mod pack;

pub use typepack_capi_datatype::handle::thread_cache::Held;
pub use typepack_capi_datatype::types::{Type, construct, decode, find, from_int, hold, query};

use crate::error::last;
use crate::failure::Failure;
use crate::raw;
use std::sync::Arc;
use typepack::Datatype;
use typepack_capi_datatype::types;

/// Makes the runtime plan all datatypes from now on: at commit if the user wants compiled kernels or a list of
/// types then, and otherwise at the first use.
pub fn begin() {
    types::prepare_thread();
    typepack::engine::prepare_thread();
    last::prepare_thread();
    let commit = |tree: &Datatype| {
        typepack::commit(tree).map_err(|error| Failure::of_code(error.class().0, error.to_string()))
    };
    types::serve_with(types::Host {
        commit,
        plans_at_commit: typepack::plans_at_commit(),
        give_back: typepack::give_back_memory,
    });
}

/// Calls `work` with a valid handle of the datatype `ty`. The handle is `datatype` if that is still the handle of
/// this datatype, and otherwise a handle that is valid until `work` returns.
pub fn with_handle(datatype: raw::Datatype, ty: &Arc<Type>, work: impl FnOnce(raw::Datatype)) {
    if types::find(datatype).is_ok_and(|found| Arc::ptr_eq(&found, ty)) {
        return work(datatype);
    }
    match types::insert_type(Arc::clone(ty)) {
        Ok(handle) => {
            work(handle);
            // The result is ignored: the handle is invalid already if the program's function, which `work` calls,
            // has freed the datatype.
            let _ = types::remove(handle);
        }
        // No handle is left. `datatype` is invalid, but it still tells the program which datatype is meant.
        Err(_) => work(datatype),
    }
}
