//! What the library with MPICH's ABI (`runtime/mpich`) asks within a call of the program: how long arrays are, and what to
//! return if it has a fault of its own.
//!
//! `entries.rs` gives it these functions. They raise no errors but those of the program's call: a handle that is not valid
//! is found by the call itself.

use crate::abi;
use crate::comm;
use crate::entry::{self, At};
use crate::error::Failure;
use crate::raw;
use std::ffi::{c_char, c_int};
use std::panic::catch_unwind;

/// Returns the number of processes to which a process sends (`send` is not 0) or from which it receives in a collective
/// call: all of the communicator, or its neighbours (`near` is not 0). Returns 0 if the handle is not valid, or if there
/// are no neighbours.
pub extern "C" fn peers(comm: raw::Comm, send: c_int, near: c_int) -> i64 {
    let count = || {
        let comm = comm::find(comm).ok()?;
        let comm = comm.communicator();
        if near == 0 {
            return Some(comm.peers().size());
        }
        let neighbors = comm.topology()?.neighbors();
        Some(if send != 0 { neighbors.destinations() } else { neighbors.sources() }.len())
    };
    let count = catch_unwind(count).ok().flatten();
    count.map_or(0, |count| count as i64)
}

/// Returns the rank of this process; -1 if the handle is not valid.
pub extern "C" fn rank(comm: raw::Comm) -> c_int {
    let rank = catch_unwind(|| comm::find(comm).ok().map(|comm| comm.rank())).ok().flatten();
    rank.map_or(-1, |rank| rank as c_int)
}

/// Raises the error for a fault of the calling library in the function `name`, as for one of this library. Returns the
/// code that the function returns.
///
/// # Safety
///
/// - `name` is the address of `name_length` bytes of text that stay as they are, and `text` of `text_length` bytes.
pub unsafe extern "C" fn bug(
    name: *const c_char,
    name_length: usize,
    text: *const c_char,
    text_length: usize,
) -> c_int {
    // SAFETY: both are the addresses of so many bytes, and those of the name stay (`# Safety`).
    let (name, text) = unsafe {
        let name: &'static [u8] = std::slice::from_raw_parts(name.cast(), name_length);
        (name, std::slice::from_raw_parts(text.cast::<u8>(), text_length))
    };
    let name = std::str::from_utf8(name).unwrap_or("MPI");
    let text = String::from_utf8_lossy(text);
    entry::failed(name, At::Nothing, Failure::new(abi::ERR_INTERN, "typepack bug", text))
}
