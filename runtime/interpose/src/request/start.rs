//! The start of persistent requests.

use crate::entry::internal;
use crate::host::Next;
use crate::pending::{self, Pending};
use std::ffi::c_int;
use typepack_capi_datatype::raw::Status;
use typepack_capi_datatype::{abi, raw};

/// Notes what a call that starts requests has done to one of them. The host may have started some requests in a call
/// that failed. An inactive request is complete with an empty status. The status of a send that is complete does not
/// matter.
fn note(next: &Next, code: c_int, (handle, entry): (raw::Request, &mut Pending)) {
    if code == abi::SUCCESS {
        return entry.started();
    }
    if entry.active {
        return;
    }
    let (mut flag, mut status) = (0, Status::default());
    // SAFETY: the request is valid: it has an entry. The results are writable.
    let asked = unsafe { next.PMPI_Request_get_status(handle, &mut flag, &mut status) };
    if asked == abi::SUCCESS && (flag == 0 || status.source >= 0) {
        entry.started();
        if flag != 0 {
            // MPICH tells the status of a persistent request once.
            // SAFETY: the operation is complete.
            unsafe { entry.deliver(next, asked, &status) };
        }
    }
}

/// `MPI_Start`.
///
/// # Safety
///
/// - The arguments are those of a call of `MPI_Start`.
pub unsafe fn start(next: &'static Next, request: *mut raw::Request) -> Option<c_int> {
    if !pending::any() || request.is_null() {
        return None;
    }
    // SAFETY: the address is not null (`# Safety`).
    let handle = unsafe { *request };
    let mut entry = pending::take(handle)?;
    // A request that is active already is an error of the program, which the host reports.
    // SAFETY: the program starts the request, so the elements are readable.
    if !entry.active && !unsafe { entry.prepare() } {
        pending::put(handle, entry);
        return Some(internal(next));
    }
    // SAFETY: the program's argument of `start`.
    let code = unsafe { next.MPI_Start(request) };
    note(next, code, (handle, &mut entry));
    pending::put(handle, entry);
    Some(code)
}

/// `MPI_Startall`.
///
/// # Safety
///
/// - The arguments are those of a call of `MPI_Startall`.
pub unsafe fn startall(
    next: &'static Next,
    count: c_int,
    requests: *mut raw::Request,
) -> Option<c_int> {
    if !pending::any() || requests.is_null() {
        return None;
    }
    // SAFETY: the array has `count` entries (`# Safety`).
    let handles = unsafe { std::slice::from_raw_parts(requests, usize::try_from(count).ok()?) };
    let taken: Vec<_> = handles
        .iter()
        .filter_map(|&handle| pending::take(handle).map(|entry| (handle, entry)))
        .collect();
    if taken.is_empty() {
        return None;
    }
    let mut inactive = taken.iter().filter(|(_, entry)| !entry.active);
    // SAFETY: the program starts the requests, so the elements are readable.
    if !inactive.all(|(_, entry)| unsafe { entry.prepare() }) {
        for (handle, entry) in taken {
            pending::put(handle, entry);
        }
        // An error handler of the program may use the requests.
        return Some(internal(next));
    }
    // SAFETY: the program's arguments of `startall`, unchanged.
    let code = unsafe { next.MPI_Startall(count, requests) };
    for (handle, mut entry) in taken {
        note(next, code, (handle, &mut entry));
        pending::put(handle, entry);
    }
    Some(code)
}
