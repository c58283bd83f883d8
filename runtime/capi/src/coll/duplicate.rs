//! Nonblocking duplication of communicators (MPI-5.0 section 7.4.2): `MPI_Comm_idup`,
//! `MPI_Comm_idup_with_info`.
//!
//! The calls return the handle of the duplicate at once. The handle becomes valid when the request is
//! complete.

use crate::argument::{Output, Place};
use crate::comm::create::Making;
use crate::comm::on;
use crate::error::Result;
use crate::info::{self, Entry};
use crate::raw;
use crate::request::{collective, open_collective};

fn arguments(
    hints: impl FnOnce() -> Result<Vec<Entry>>,
    newcomm: Output<raw::Comm>,
    request: Output<raw::Request>,
) -> Result<(Place<raw::Comm>, Place<raw::Request>, Vec<Entry>)> {
    Ok((newcomm.required("newcomm")?, request.required("request")?, hints()?))
}

fn begin(
    comm: raw::Comm,
    hints: impl FnOnce() -> Result<Vec<Entry>>,
    newcomm: Output<raw::Comm>,
    request: Output<raw::Request>,
) -> Result {
    let on = on(comm)?;
    let arguments = arguments(hints, newcomm, request);
    // If an argument is wrong, this rank takes part in the call and then abandons its duplicate. So the other ranks do
    // not wait for this rank, and the next collective call of this rank matches the next one of the other ranks.
    let take_part = |_: &_| drop(on.comm.communicator().idup());
    let (out, request, hints) = arguments.inspect_err(take_part)?;
    // If a copy function fails, `newcomm` gets the null handle, so that a caller that ignores the error
    // cannot use the duplicate.
    let making = Making::begin(&on, &hints).inspect_err(|_| out.set(raw::Comm::NULL))?;
    let (handle, running) = (making.handle(), collective(making.operation()));
    request.set(open_collective(on, running, Some(Box::new(making)))?);
    out.set(handle);
    Ok(())
}

/// `MPI_Comm_idup`.
pub fn idup(comm: raw::Comm, newcomm: Output<raw::Comm>, request: Output<raw::Request>) -> Result {
    begin(comm, || Ok(Vec::new()), newcomm, request)
}

/// `MPI_Comm_idup_with_info`.
pub fn idup_with_info(
    comm: raw::Comm,
    info: raw::Info,
    newcomm: Output<raw::Comm>,
    request: Output<raw::Request>,
) -> Result {
    let hints = || match info {
        raw::Info::NULL => Ok(Vec::new()),
        info => Ok(info::find(info)?.all()),
    };
    begin(comm, hints, newcomm, request)
}
