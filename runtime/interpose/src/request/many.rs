//! The calls on many requests: all, any, some; each as wait, test, and as the status of requests that stay.

use super::one::complete;
use crate::entry::class;
use crate::host::Next;
use crate::pending::{self, Pending};
use std::ffi::c_int;
use typepack_capi_datatype::raw::Status;
use typepack_capi_datatype::{abi, raw};

/// The entries that a call has taken, by the index of the request.
struct Taken {
    next: &'static Next,
    entries: Vec<(usize, raw::Request, Pending)>,
    /// Statuses for a program that ignores them.
    own: Vec<Status>,
    count: usize,
}

impl Taken {
    /// Takes the entries of the requests that are ours; `None` if there are none.
    ///
    /// # Safety
    ///
    /// - `requests` is null, or an array of `count` requests.
    unsafe fn new(
        next: &'static Next,
        count: c_int,
        requests: *const raw::Request,
    ) -> Option<Self> {
        if !pending::any() || requests.is_null() {
            return None;
        }
        pending::sweep(next, false);
        let count = usize::try_from(count).ok()?;
        // SAFETY: the array has `count` entries (`# Safety`).
        let handles = unsafe { std::slice::from_raw_parts(requests, count) };
        let take = |(index, &handle): (usize, &raw::Request)| {
            pending::take(handle).map(|entry| (index, handle, entry))
        };
        let entries: Vec<_> = handles.iter().enumerate().filter_map(take).collect();
        (!entries.is_empty()).then(|| Self { next, entries, own: Vec::new(), count })
    }

    /// Returns the address for the statuses of a call: that of the program, or an array of our own.
    fn statuses(&mut self, statuses: *mut Status) -> *mut Status {
        if !statuses.is_null() {
            return statuses;
        }
        self.own.resize(self.count, Status::default());
        self.own.as_mut_ptr()
    }

    /// Puts all entries back.
    fn back(self) {
        for (_, handle, entry) in self.entries {
            pending::put(handle, entry);
        }
    }

    /// Completes the operations that are complete, and puts the other entries back. `status` returns, for the index
    /// of a request, the code and the status of its operation; `None` if the operation is not complete.
    ///
    /// # Safety
    ///
    /// - The host has completed each operation for which `status` returns a result, and this is its result.
    unsafe fn settle(self, status: impl Fn(usize) -> Option<(c_int, *const Status)>) {
        for (index, handle, entry) in self.entries {
            match status(index) {
                // SAFETY: `settle` has the same conditions (`# Safety`).
                Some((code, status)) => unsafe {
                    complete(self.next, (handle, entry), code, status);
                },
                None => pending::put(handle, entry),
            }
        }
    }

    /// Delivers the data of the operations that are complete, and puts all entries back. `status` is that of `settle`.
    ///
    /// # Safety
    ///
    /// - As for `settle`.
    unsafe fn deliver(mut self, status: impl Fn(usize) -> Option<(c_int, *const Status)>) {
        for (index, _, entry) in &mut self.entries {
            if let Some((code, status)) = status(*index) {
                // SAFETY: `deliver` has the same conditions (`# Safety`).
                unsafe { entry.deliver(self.next, code, status) };
            }
        }
        self.back();
    }
}

/// Returns the result of an operation among those of a call that returned `code`, from its status: `None` if it is not
/// complete.
///
/// # Safety
///
/// - The host has written `status` in a call that returned `code`.
unsafe fn result(
    next: &Next,
    code: c_int,
    status: *const Status,
) -> Option<(c_int, *const Status)> {
    if code == abi::SUCCESS {
        return Some((code, status));
    }
    if class(next, code) != abi::ERR_IN_STATUS {
        return None;
    }
    // SAFETY: with `MPI_ERR_IN_STATUS`, the host writes the error of each status.
    let own = unsafe { (*status).error };
    (own == abi::SUCCESS || class(next, own) != abi::ERR_PENDING).then_some((own, status))
}

/// `MPI_Waitall`.
///
/// # Safety
///
/// - The arguments are those of a call of `MPI_Waitall`.
pub unsafe fn waitall(
    next: &'static Next,
    count: c_int,
    requests: *mut raw::Request,
    statuses: *mut Status,
) -> Option<c_int> {
    // SAFETY: the program's arguments of `waitall`, unchanged.
    let mut taken = unsafe { Taken::new(next, count, requests)? };
    let statuses = taken.statuses(statuses);
    // SAFETY: the arguments of the call; there are `count` statuses.
    let code = unsafe { next.MPI_Waitall(count, requests, statuses) };
    // SAFETY: the host has written the statuses.
    unsafe { taken.settle(|index| result(next, code, statuses.add(index))) };
    Some(code)
}

/// `MPI_Testall`.
///
/// # Safety
///
/// - The arguments are those of a call of `MPI_Testall`.
pub unsafe fn testall(
    next: &'static Next,
    count: c_int,
    requests: *mut raw::Request,
    flag: *mut c_int,
    statuses: *mut Status,
) -> Option<c_int> {
    if flag.is_null() {
        return None;
    }
    // SAFETY: the program's arguments of `testall`, unchanged.
    let mut taken = unsafe { Taken::new(next, count, requests)? };
    let statuses = taken.statuses(statuses);
    // SAFETY: the arguments of the call; there are `count` statuses.
    let code = unsafe { next.MPI_Testall(count, requests, flag, statuses) };
    // SAFETY: the host has written the flag, unless the call failed.
    if code == abi::SUCCESS && unsafe { *flag } == 0 {
        taken.back();
    } else {
        // SAFETY: the host has written the statuses.
        unsafe { taken.settle(|index| result(next, code, statuses.add(index))) };
    }
    Some(code)
}

/// `MPI_Request_get_status_all`.
///
/// # Safety
///
/// - The arguments are those of a call of `MPI_Request_get_status_all`.
pub unsafe fn get_status_all(
    next: &'static Next,
    count: c_int,
    requests: *const raw::Request,
    flag: *mut c_int,
    statuses: *mut Status,
) -> Option<c_int> {
    if flag.is_null() {
        return None;
    }
    // SAFETY: the program's arguments of `get_status_all`, unchanged.
    let mut taken = unsafe { Taken::new(next, count, requests)? };
    let statuses = taken.statuses(statuses);
    // SAFETY: the arguments of the call; there are `count` statuses.
    let code = unsafe { next.MPI_Request_get_status_all(count, requests, flag, statuses) };
    // SAFETY: the host has written the flag, unless the call failed.
    if code == abi::SUCCESS && unsafe { *flag } == 0 {
        taken.back();
    } else {
        // SAFETY: the host has written the statuses.
        unsafe { taken.deliver(|index| result(next, code, statuses.add(index))) };
    }
    Some(code)
}

/// Returns whether the operation with this index is the one that a call of the `any` kind has completed.
///
/// # Safety
///
/// - `chosen` is the readable index of the call.
unsafe fn is_chosen(index: usize, chosen: *const c_int) -> bool {
    // SAFETY: `is_chosen` has the same conditions (`# Safety`).
    usize::try_from(unsafe { *chosen }).is_ok_and(|chosen| chosen == index)
}

/// `MPI_Waitany`.
///
/// # Safety
///
/// - The arguments are those of a call of `MPI_Waitany`.
pub unsafe fn waitany(
    next: &'static Next,
    count: c_int,
    requests: *mut raw::Request,
    chosen: *mut c_int,
    status: *mut Status,
) -> Option<c_int> {
    if chosen.is_null() {
        return None;
    }
    // SAFETY: the program's arguments of `waitany`, unchanged.
    let mut taken = unsafe { Taken::new(next, count, requests)? };
    let status = taken.statuses(status);
    // SAFETY: `chosen` is writable. If the call fails without an index, nothing is chosen.
    unsafe { *chosen = abi::UNDEFINED };
    // SAFETY: the program's arguments of `waitany`; `status` is writable.
    let code = unsafe { next.MPI_Waitany(count, requests, chosen, status) };
    // SAFETY: the host has written the index, and the status of that operation.
    unsafe { taken.settle(|index| is_chosen(index, chosen).then_some((code, status))) };
    Some(code)
}

/// `MPI_Testany`.
///
/// # Safety
///
/// - The arguments are those of a call of `MPI_Testany`.
pub unsafe fn testany(
    next: &'static Next,
    count: c_int,
    requests: *mut raw::Request,
    chosen: *mut c_int,
    flag: *mut c_int,
    status: *mut Status,
) -> Option<c_int> {
    if chosen.is_null() || flag.is_null() {
        return None;
    }
    // SAFETY: the program's arguments of `testany`, unchanged.
    let mut taken = unsafe { Taken::new(next, count, requests)? };
    let status = taken.statuses(status);
    // SAFETY: `chosen` is writable. If the call fails without an index, nothing is chosen.
    unsafe { *chosen = abi::UNDEFINED };
    // SAFETY: the program's arguments of `testany`; `status` is writable.
    let code = unsafe { next.MPI_Testany(count, requests, chosen, flag, status) };
    // SAFETY: the host has written flag and index, unless the call failed.
    let done = unsafe { code != abi::SUCCESS || *flag != 0 };
    // SAFETY: the host has completed the chosen operation with this status.
    unsafe { taken.settle(|index| (done && is_chosen(index, chosen)).then_some((code, status))) };
    Some(code)
}

/// `MPI_Request_get_status_any`.
///
/// # Safety
///
/// - The arguments are those of a call of `MPI_Request_get_status_any`.
pub unsafe fn get_status_any(
    next: &'static Next,
    count: c_int,
    requests: *const raw::Request,
    chosen: *mut c_int,
    flag: *mut c_int,
    status: *mut Status,
) -> Option<c_int> {
    if chosen.is_null() || flag.is_null() {
        return None;
    }
    // SAFETY: the program's arguments of `get_status_any`, unchanged.
    let mut taken = unsafe { Taken::new(next, count, requests)? };
    let status = taken.statuses(status);
    // SAFETY: the program's arguments of `get_status_any`; `status` is writable.
    let code = unsafe { next.MPI_Request_get_status_any(count, requests, chosen, flag, status) };
    // SAFETY: the host has written flag and index, if the call succeeded.
    let done = unsafe { code == abi::SUCCESS && *flag != 0 };
    // SAFETY: the chosen operation is complete with this status.
    unsafe { taken.deliver(|index| (done && is_chosen(index, chosen)).then_some((code, status))) };
    Some(code)
}

/// The results of a call of the `some` kind.
struct Some_ {
    next: &'static Next,
    code: c_int,
    /// The number of completed operations, their indices and their statuses.
    outcount: *const c_int,
    indices: *const c_int,
    statuses: *const Status,
}

impl Some_ {
    /// Returns the result of the operation with this index; `None` if it is not complete.
    ///
    /// # Safety
    ///
    /// - The host has written the results, or the call failed and the number was set to 0 before it.
    unsafe fn result(&self, index: usize) -> Option<(c_int, *const Status)> {
        // SAFETY: `result` has the same conditions (`# Safety`).
        let done = usize::try_from(unsafe { *self.outcount }).unwrap_or(0);
        (0..done).find_map(|at| {
            // SAFETY: the host has written `done` indices and statuses.
            unsafe {
                is_chosen(index, self.indices.add(at))
                    .then(|| result(self.next, self.code, self.statuses.add(at)))
                    .flatten()
            }
        })
    }
}

macro_rules! some_calls {
    ($($(#[$doc:meta])* $name:ident: $function:ident, $requests:ty, $end:ident;)*) => {
        $(
            $(#[$doc])*
            ///
            /// # Safety
            ///
            /// - The arguments are those of a call of this function.
            pub unsafe fn $name(
                next: &'static Next,
                count: c_int,
                requests: $requests,
                outcount: *mut c_int,
                indices: *mut c_int,
                statuses: *mut Status,
            ) -> Option<c_int> {
                if outcount.is_null() || indices.is_null() {
                    return None;
                }
                // SAFETY: the program's arguments of `$name`, unchanged.
                let mut taken = unsafe { Taken::new(next, count, requests)? };
                let statuses = taken.statuses(statuses);
                // SAFETY: `outcount` is writable. If the call fails early, nothing is complete.
                unsafe { *outcount = 0 };
                // SAFETY: the arguments of the call; there are `count` statuses.
                let code = unsafe { next.$function(count, requests, outcount, indices, statuses) };
                let some = Some_ { next, code, outcount, indices, statuses };
                // SAFETY: the host has written the results; `outcount` may be `MPI_UNDEFINED`, which is negative.
                unsafe { taken.$end(|index| some.result(index)) };
                Some(code)
            }
        )*
    };
}

some_calls! {
    /// `MPI_Waitsome`.
    waitsome: MPI_Waitsome, *mut raw::Request, settle;
    /// `MPI_Testsome`.
    testsome: MPI_Testsome, *mut raw::Request, settle;
    /// `MPI_Request_get_status_some`.
    get_status_some: MPI_Request_get_status_some, *const raw::Request, deliver;
}
