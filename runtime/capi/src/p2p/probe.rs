//! Probes that leave the message in the queue (MPI-5.0 section 3.8.1). The probes that take the message out
//! of the queue are in `matched.rs`.

use super::origin;
use crate::argument::Output;
use crate::comm;
use crate::error::Result;
use crate::raw;
use crate::request::Outcome;
use crate::status::StatusOutput;
use std::ffi::c_int;

/// Looks for a matching message, and writes its status. If there is no such message, waits for one if
/// `wait` is true, and returns false if `wait` is false.
fn look(
    source: c_int,
    tag: c_int,
    comm: raw::Comm,
    wait: bool,
    status: StatusOutput,
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
        status.put(&found);
    }
    Ok(found.is_some())
}

/// `MPI_Probe`.
pub fn probe(source: c_int, tag: c_int, comm: raw::Comm, status: StatusOutput) -> Result {
    look(source, tag, comm, true, status).map(drop)
}

/// `MPI_Iprobe`.
pub fn iprobe(
    source: c_int,
    tag: c_int,
    comm: raw::Comm,
    flag: Output<c_int>,
    status: StatusOutput,
) -> Result {
    comm::check(comm)?;
    let out = flag.required("flag")?;
    out.set(look(source, tag, comm, false, status)?.into());
    Ok(())
}
