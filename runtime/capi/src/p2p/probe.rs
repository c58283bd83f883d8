//! What a receive would get: probes that leave the message (MPI-5.0 section 3.8.1). Those that take
//! it out of the queue are in `matched.rs`.

use super::origin;
use crate::comm;
use crate::error::Result;
use crate::out::Out;
use crate::raw::{self, Status};
use crate::request::Outcome;
use std::ffi::c_int;

/// Looks, or waits; whether there is a message.
///
/// # Safety
///
/// - `status` is `MPI_STATUS_IGNORE`, or writable.
unsafe fn look(
    source: c_int,
    tag: c_int,
    comm: raw::Comm,
    wait: bool,
    status: *mut Status,
) -> Result<bool> {
    let comm = comm::find(comm)?;
    let found = match origin(&comm, source, tag)? {
        None => Some(Outcome::from_nobody().status),
        Some((source, tag)) => {
            let found = comm.messages().probe(source, tag, wait)?;
            found.map(|found| comm.status(found))
        }
    };
    if let Some(found) = found {
        // SAFETY: passed on.
        unsafe { found.put(status) };
    }
    Ok(found.is_some())
}

/// `MPI_Probe`.
///
/// # Safety
/// As the C function.
pub unsafe fn probe(source: c_int, tag: c_int, comm: raw::Comm, status: *mut Status) -> Result {
    // SAFETY: passed on.
    unsafe { look(source, tag, comm, true, status).map(drop) }
}

/// `MPI_Iprobe`.
///
/// # Safety
/// As the C function.
pub unsafe fn iprobe(
    source: c_int,
    tag: c_int,
    comm: raw::Comm,
    flag: *mut c_int,
    status: *mut Status,
) -> Result {
    comm::check(comm)?;
    // SAFETY: passed on.
    let out = unsafe { Out::new(flag, "flag")? };
    // SAFETY: passed on.
    out.set(unsafe { look(source, tag, comm, false, status)? }.into());
    Ok(())
}
