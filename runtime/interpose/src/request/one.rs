//! The calls on one request: wait, test, the status, free; and the one that waits for freed requests.
//!
//! A request that is not persistent is complete exactly when the host has replaced its handle. A call that fails
//! without completing the operation leaves the handle. Whether a persistent operation is complete is told by the flag
//! or the index, which are set to "none" before the call. Where a call has neither, [`ask`] asks the host.

use crate::entry::class;
use crate::host::Next;
use crate::message::receive::status_or;
use crate::pending::{self, Awaited, Pending};
use std::ffi::c_int;
use typepack_capi_datatype::raw::Status;
use typepack_capi_datatype::{abi, raw};

/// Delivers a completed operation. A persistent request goes back, not active.
///
/// # Safety
///
/// - The host has completed the operation of `entry` with `code` and `status`.
pub unsafe fn complete(
    next: &Next,
    (handle, mut entry): (raw::Request, Pending),
    code: c_int,
    status: *const Status,
) {
    // SAFETY: `complete` has the same conditions (`# Safety`).
    unsafe { entry.deliver(next, code, status) };
    if entry.is_persistent() {
        entry.active = false;
        pending::put(handle, entry);
    }
}

/// Settles a persistent request after a call that failed without telling which operations are complete. The status of
/// an inactive request is empty, so nothing is delivered then.
///
/// # Safety
///
/// - `handle` is the request of `entry`.
pub unsafe fn ask(next: &Next, (handle, entry): (raw::Request, Pending)) {
    let (mut flag, mut status) = (0, Status::default());
    // SAFETY: the request is valid (`# Safety`), and the results are writable.
    let code = unsafe { next.PMPI_Request_get_status(handle, &mut flag, &mut status) };
    if flag == 0 {
        pending::put(handle, entry);
    } else {
        // SAFETY: the operation is complete, or the request is inactive.
        unsafe { complete(next, (handle, entry), code, &status) };
    }
}

/// Takes the entry of the request of a call.
///
/// # Safety
///
/// - `request` is null or the address of a request.
unsafe fn take(next: &Next, request: *const raw::Request) -> Option<(raw::Request, Pending)> {
    if !pending::any() || request.is_null() {
        return None;
    }
    pending::sweep(next, Awaited::Nothing);
    // SAFETY: the address is not null (`# Safety`).
    let handle = unsafe { *request };
    Some((handle, pending::take(handle)?))
}

/// `MPI_Wait`.
///
/// # Safety
///
/// - The arguments are those of a call of `MPI_Wait`.
pub unsafe fn wait(
    next: &'static Next,
    request: *mut raw::Request,
    status: *mut Status,
) -> Option<c_int> {
    // SAFETY: the program's argument of `wait`.
    let (handle, entry) = unsafe { take(next, request)? };
    let mut own = Status::default();
    let status = status_or(status, &mut own);
    // SAFETY: the program's arguments of `wait`; `status` is writable.
    let code = unsafe { next.MPI_Wait(request, status) };
    // SAFETY: `request` is that of the call. A host that has replaced the handle has completed the operation. So it
    // has if it succeeded, or it has returned the empty status of an inactive request.
    unsafe {
        let told = || code == abi::SUCCESS || class(next, code) == abi::ERR_TRUNCATE;
        if *request != handle || entry.is_persistent() && told() {
            complete(next, (handle, entry), code, status);
        } else if entry.is_persistent() {
            ask(next, (handle, entry));
        } else {
            pending::put(handle, entry);
        }
    }
    Some(code)
}

/// `MPI_Test`.
///
/// # Safety
///
/// - The arguments are those of a call of `MPI_Test`.
pub unsafe fn test(
    next: &'static Next,
    request: *mut raw::Request,
    flag: *mut c_int,
    status: *mut Status,
) -> Option<c_int> {
    if flag.is_null() {
        return None;
    }
    // SAFETY: the program's argument of `test`.
    let (handle, entry) = unsafe { take(next, request)? };
    let mut own = Status::default();
    let status = status_or(status, &mut own);
    // SAFETY: the flag is writable. If the call fails early, nothing is complete.
    unsafe { *flag = 0 };
    // SAFETY: the program's arguments of `test`; `status` is writable.
    let code = unsafe { next.MPI_Test(request, flag, status) };
    // SAFETY: `request` and `flag` are those of the call. An operation that ends with an error is complete.
    let done = unsafe { *request != handle || entry.is_persistent() && *flag != 0 };
    if done {
        // SAFETY: the host has completed the operation.
        unsafe { complete(next, (handle, entry), code, status) };
    } else {
        pending::put(handle, entry);
    }
    Some(code)
}

/// `MPI_Request_get_status`. If the operation is complete, its data is delivered, and the request stays.
///
/// # Safety
///
/// - The arguments are those of a call of `MPI_Request_get_status`.
pub unsafe fn get_status(
    next: &'static Next,
    request: raw::Request,
    flag: *mut c_int,
    status: *mut Status,
) -> Option<c_int> {
    if flag.is_null() {
        return None;
    }
    // SAFETY: the address of a local variable.
    let (handle, mut entry) = unsafe { take(next, &request)? };
    let mut own = Status::default();
    let status = status_or(status, &mut own);
    // SAFETY: the flag is writable. If the call fails early, nothing is complete.
    unsafe { *flag = 0 };
    // SAFETY: the program's arguments of `get_status`; `status` is writable.
    let code = unsafe { next.MPI_Request_get_status(request, flag, status) };
    // SAFETY: the host has written the flag.
    if code == abi::SUCCESS && unsafe { *flag } != 0 {
        // SAFETY: the operation is complete.
        unsafe { entry.deliver(next, code, status) };
    }
    pending::put(handle, entry);
    Some(code)
}

/// `MPI_Request_free`. The buffer of an operation that is not complete must live on, so the host's request does too,
/// until a later call finds it complete.
///
/// # Safety
///
/// - The arguments are those of a call of `MPI_Request_free`.
pub unsafe fn free(next: &'static Next, request: *mut raw::Request) -> Option<c_int> {
    // SAFETY: the program's argument of `free`.
    let (handle, entry) = unsafe { take(next, request)? };
    // To free an active collective call is an error of the program, which the host reports.
    if entry.active && entry.is_collective() {
        // SAFETY: the argument of the call.
        let code = unsafe { next.MPI_Request_free(request) };
        // SAFETY: the program's request is readable: the host has just used it.
        if unsafe { *request } == handle {
            pending::put(handle, entry);
        } else {
            // The host goes on with the call, and nothing tells when it no longer uses the buffers.
            std::mem::forget(entry);
        }
        return Some(code);
    }
    if entry.active {
        pending::orphan(handle, entry);
        // SAFETY: the address of the program's request.
        unsafe { *request = raw::Request::NULL };
        return Some(abi::SUCCESS);
    }
    // SAFETY: the argument of the call. The entry of the inactive request, and its buffer, go after the request.
    Some(unsafe { next.MPI_Request_free(request) })
}

/// `MPI_Comm_disconnect`. The host waits until no request uses the communicator, also those that the program has freed
/// and that this library keeps. So they are completed before.
///
/// # Safety
///
/// - The argument is that of a call of `MPI_Comm_disconnect`.
pub unsafe fn disconnect(next: &'static Next, comm: *mut raw::Comm) -> Option<c_int> {
    if !comm.is_null() {
        // SAFETY: the address is that of the program's handle (`# Safety`).
        pending::sweep(next, Awaited::Of(unsafe { *comm }));
    }
    None
}
