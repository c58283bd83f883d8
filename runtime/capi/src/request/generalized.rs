//! Generalized requests: operations that the user carries out (MPI-5.0 section 13.2).
//!
//! The calls of `complete.rs` wait for a generalized request as for any other request. The library calls the
//! user's functions through `callback.rs`, and holds no lock while it calls them.

use super::{Running, complete as complete_request, open};
use crate::argument::Output;
use crate::callback::Generalized;
use crate::error::{Failure, Result};
use crate::raw::{self, Callback};
use std::ffi::c_void;

/// `MPI_Grequest_start`.
pub fn start(
    query: Callback,
    free: Callback,
    cancel: Callback,
    extra: *mut c_void,
    request: Output<raw::Request>,
) -> Result {
    let out = request.required("request")?;
    let functions = Generalized::new(query, free, cancel, extra).map_err(Failure::null)?;
    out.set(open(None, Running::User(functions, false))?);
    Ok(())
}

/// `MPI_Grequest_complete`.
pub fn complete(request: raw::Request) -> Result {
    complete_request(request)
}
