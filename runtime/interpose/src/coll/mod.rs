//! Collective calls with types that are not contiguous, on communicators whose ranks all take part
//! (`communicator.rs`).
//!
//! Each rank packs what it sends and unpacks what it receives; the host's call moves packed bytes. `side.rs` has the
//! send side or the receive side of a call, `calls.rs` the calls with one buffer per side, `vector.rs` those with a
//! count or a type for each rank. The nonblocking forms keep the sides until their requests are complete
//! (`pending.rs`).

pub mod calls;
mod neighbours;
pub mod vector;

use crate::host::Next;
use crate::pending::{self, Message};
use crate::side::Sides;
use std::ffi::c_int;
use typepack_capi_datatype::{abi, raw};

/// Where a call ends: at once, or with a request.
#[derive(Clone, Copy, Debug)]
pub enum End {
    /// A blocking call.
    Now,
    /// A nonblocking call, with the address of its request.
    Later(*mut raw::Request),
}

/// Finishes a call that has returned `code`.
///
/// # Safety
///
/// - The call moved the packed bytes of `sides`, and its request is that of `end`.
unsafe fn finish(next: &Next, end: End, code: c_int, sides: Sides) -> Option<c_int> {
    if code == abi::SUCCESS {
        match end {
            // SAFETY: the call is complete.
            End::Now => unsafe { sides.deliver() },
            // SAFETY: the host has written the request.
            End::Later(request) => unsafe {
                pending::add(next, *request, Message::Collective(Box::new(sides)));
            },
        }
    }
    Some(code)
}
