//! Communicators that are duplicated without waiting (MPI-5.0 section 7.4.2): `MPI_Comm_idup`,
//! `MPI_Comm_idup_with_info`.
//!
//! The handle is there at once and stands for the communicator when the request is complete.

use crate::comm::create::Making;
use crate::comm::on;
use crate::error::Result;
use crate::info::{self, Entry};
use crate::out::Out;
use crate::raw;
use crate::request::{collective, open_collective};

/// # Safety
///
/// - Both results are null or writable.
unsafe fn arguments(
    hints: impl FnOnce() -> Result<Vec<Entry>>,
    newcomm: *mut raw::Comm,
    request: *mut raw::Request,
) -> Result<(Out<raw::Comm>, Out<raw::Request>, Vec<Entry>)> {
    // SAFETY: the caller's promise.
    unsafe { Ok((Out::new(newcomm, "newcomm")?, Out::new(request, "request")?, hints()?)) }
}

/// # Safety
///
/// - Both results are null or writable.
unsafe fn begin(
    comm: raw::Comm,
    hints: impl FnOnce() -> Result<Vec<Entry>>,
    newcomm: *mut raw::Comm,
    request: *mut raw::Request,
) -> Result {
    let on = on(comm)?;
    // SAFETY: the caller's promise.
    let arguments = unsafe { arguments(hints, newcomm, request) };
    // The other ranks make the call: their next one has to meet this rank's next one.
    let skip = |_: &_| on.comm.communicator().skip_collective();
    let (out, request, hints) = arguments.inspect_err(skip)?;
    // Where a copy function refuses there is nothing that a careless caller may go on with.
    let making = Making::begin(&on, &hints).inspect_err(|_| out.set(raw::Comm::NULL))?;
    let (handle, running) = (making.handle(), collective(making.operation()));
    request.set(open_collective(on, running, Some(Box::new(making)))?);
    out.set(handle);
    Ok(())
}

/// `MPI_Comm_idup`.
///
/// # Safety
/// As the C function.
pub unsafe fn idup(comm: raw::Comm, newcomm: *mut raw::Comm, request: *mut raw::Request) -> Result {
    // SAFETY: the arguments are those of the C call.
    unsafe { begin(comm, || Ok(Vec::new()), newcomm, request) }
}

/// `MPI_Comm_idup_with_info`.
///
/// # Safety
/// As the C function.
pub unsafe fn idup_with_info(
    comm: raw::Comm,
    info: raw::Info,
    newcomm: *mut raw::Comm,
    request: *mut raw::Request,
) -> Result {
    let hints = || match info {
        raw::Info::NULL => Ok(Vec::new()),
        info => Ok(info::find(info)?.all()),
    };
    // SAFETY: the arguments are those of the C call.
    unsafe { begin(comm, hints, newcomm, request) }
}
