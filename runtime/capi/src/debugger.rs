//! What handles stand for, as a debugger shows it (`../gdb/typepack.py`).
//!
//! gdb calls [`typepack_describe_handle`] in a process that it has stopped. The stopped threads may hold any lock of the
//! library, so nothing here waits for one; the text says so if a lock is taken. But a text needs memory: if a thread was
//! stopped inside the allocator of the C library, the call may wait for that allocator's lock, which no thread gives up. In
//! gdb, Ctrl-C ends the call then. The call runs outside the rules of MPI: it needs no init, delivers no events, and calls
//! no error handler.

use crate::abi;
use crate::handle::table::Busy;
use crate::raw;
use crate::{comm, request};
use std::ffi::{CString, c_char, c_int};
use std::panic::catch_unwind;
use std::ptr::null;
use typepack::engine::text;
use typepack_capi_datatype::types;

/// The kinds of handles, as gdb passes them.
const DATATYPE: c_int = 1;
const COMM: c_int = 2;
const REQUEST: c_int = 3;

/// Returns a text about the object of a handle, which the caller may keep: the datatype (`kind` is 1), the communicator
/// (2) or the request (3). Returns null for another kind. The text is never freed, so this call is for debuggers only.
#[unsafe(no_mangle)]
pub extern "C" fn typepack_describe_handle(kind: c_int, handle: usize) -> *const c_char {
    let told = catch_unwind(|| match kind {
        DATATYPE if handle == abi::DATATYPE_NULL => Some(Ok(Some("MPI_DATATYPE_NULL".to_owned()))),
        COMM if handle == abi::COMM_NULL => Some(Ok(Some("MPI_COMM_NULL".to_owned()))),
        REQUEST if handle == abi::REQUEST_NULL => Some(Ok(Some("MPI_REQUEST_NULL".to_owned()))),
        DATATYPE => Some(datatype(raw::Datatype(handle))),
        COMM => Some(comm::described(raw::Comm(handle))),
        REQUEST => Some(request::described(raw::Request(handle))),
        _ => None,
    });
    let text = match told {
        Ok(None) => return null(),
        Ok(Some(Ok(Some(text)))) => text,
        Ok(Some(Ok(None))) if request::messages().is_err() => request::NOT_INITIALISED.to_owned(),
        Ok(Some(Ok(None))) => "not a valid handle".to_owned(),
        Ok(Some(Err(Busy))) => "busy: a thread is in the library; go on, and stop again".to_owned(),
        Err(_) => "the library has failed to describe it".to_owned(),
    };
    CString::new(text).map_or(null(), |text| text.into_raw().cast_const())
}

fn datatype(handle: raw::Datatype) -> Result<Option<String>, Busy> {
    let Some(found) = types::try_find(handle)? else { return Ok(None) };
    let tree = found.tree();
    let text = text::abridge(tree);
    Ok(Some(format!("{text}: {} bytes of data, extent {}", tree.size(), tree.extent())))
}
