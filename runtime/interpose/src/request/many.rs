//! The calls on many requests: all, any, some; each as wait, test, and as the status of requests that stay.

use super::one::{ask, complete};
use crate::entry::class;
use crate::host::Next;
use crate::pending::{self, Awaited, Pending};
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
        pending::sweep(next, Awaited::Nothing);
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

    /// Completes the operations that are complete, and puts the other entries back. `told` returns, for the index of a
    /// request, what the call tells about the operation. Whether a request that is not persistent is complete, its
    /// handle in `requests` tells.
    ///
    /// # Safety
    ///
    /// - `requests` is the array of the call.
    /// - What `told` returns, the host has told in this call.
    unsafe fn settle(self, requests: *const raw::Request, told: impl Fn(usize) -> Told) {
        for (index, handle, entry) in self.entries {
            // SAFETY: the array has this index (`# Safety`).
            let replaced = unsafe { *requests.add(index) != handle };
            match told(index) {
                Told::Complete(code, status) if replaced || entry.is_persistent() => {
                    // SAFETY: the host has completed the operation with this result (`# Safety`).
                    unsafe { complete(self.next, (handle, entry), code, status) };
                }
                // SAFETY: the host has this request still, because it is persistent.
                Told::Nothing if entry.is_persistent() => unsafe {
                    ask(self.next, (handle, entry));
                },
                // The operation has ended, and nobody knows how: nothing is delivered.
                _ if replaced => drop(entry),
                _ => pending::put(handle, entry),
            }
        }
    }

    /// Delivers the data of the operations that are complete, and puts all entries back. The handles of a call that
    /// completes no request are unchanged.
    ///
    /// # Safety
    ///
    /// - As for `settle`.
    unsafe fn deliver(mut self, _requests: *const raw::Request, told: impl Fn(usize) -> Told) {
        for (index, _, entry) in &mut self.entries {
            // After an error, the call that completes the request delivers.
            if let Told::Complete(code @ abi::SUCCESS, status) = told(*index) {
                // SAFETY: `deliver` has the same conditions (`# Safety`).
                unsafe { entry.deliver(self.next, code, status) };
            }
        }
        self.back();
    }
}

/// What a call tells about one operation.
enum Told {
    /// The host has completed the operation with this code and this status.
    Complete(c_int, *const Status),
    /// The operation is not complete.
    Incomplete,
    /// The call has failed, and tells nothing about the operation.
    Nothing,
}

/// Returns what a call that returned `code` tells about an operation by its status.
///
/// # Safety
///
/// - The host has written `status`, if `code` is `MPI_SUCCESS` or of the class `MPI_ERR_IN_STATUS`.
unsafe fn told(next: &Next, code: c_int, status: *const Status) -> Told {
    if code == abi::SUCCESS {
        return Told::Complete(code, status);
    }
    if class(next, code) != abi::ERR_IN_STATUS {
        return Told::Nothing;
    }
    // SAFETY: with `MPI_ERR_IN_STATUS`, the host writes the error of each status.
    let own = unsafe { (*status).error };
    if own != abi::SUCCESS && class(next, own) == abi::ERR_PENDING {
        return Told::Incomplete;
    }
    Told::Complete(own, status)
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
    unsafe { taken.settle(requests, |index| told(next, code, statuses.add(index))) };
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
    // SAFETY: the flag is writable. If the call fails early, nothing is complete.
    unsafe { *flag = 0 };
    // SAFETY: the arguments of the call; there are `count` statuses.
    let code = unsafe { next.MPI_Testall(count, requests, flag, statuses) };
    // SAFETY: the flag is readable. The host has written the statuses if the flag is set, or if the class of the error
    // says so.
    unsafe {
        let done = *flag != 0 || code != abi::SUCCESS;
        taken.settle(requests, |index| match done {
            true => told(next, code, statuses.add(index)),
            false => Told::Incomplete,
        });
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
    // SAFETY: the flag is writable. If the call fails early, nothing is complete.
    unsafe { *flag = 0 };
    // SAFETY: the arguments of the call; there are `count` statuses.
    let code = unsafe { next.MPI_Request_get_status_all(count, requests, flag, statuses) };
    // SAFETY: the flag is readable, and the host has written the statuses if it is set.
    unsafe {
        let done = *flag != 0;
        taken.deliver(requests, |index| match done {
            true => told(next, code, statuses.add(index)),
            false => Told::Incomplete,
        });
    }
    Some(code)
}

/// Returns what a call of the `any` kind tells about the operation with this index: the chosen one is complete.
///
/// # Safety
///
/// - `chosen` is the readable index of the call.
unsafe fn told_by(index: usize, chosen: *const c_int, code: c_int, status: *const Status) -> Told {
    // SAFETY: `told_by` has the same conditions (`# Safety`).
    match usize::try_from(unsafe { *chosen }) {
        Ok(chosen) if chosen == index => Told::Complete(code, status),
        _ => Told::Incomplete,
    }
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
    unsafe { taken.settle(requests, |index| told_by(index, chosen, code, status)) };
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
    // SAFETY: `chosen` and `flag` are writable. If the call fails early, nothing is chosen.
    unsafe { (*chosen, *flag) = (abi::UNDEFINED, 0) };
    // SAFETY: the program's arguments of `testany`; `status` is writable.
    let code = unsafe { next.MPI_Testany(count, requests, chosen, flag, status) };
    // SAFETY: both are readable, and the host has completed the chosen operation with this status if the flag is set.
    unsafe {
        let done = *flag != 0;
        taken.settle(requests, |index| match done {
            true => told_by(index, chosen, code, status),
            false => Told::Incomplete,
        });
    }
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
    // SAFETY: `chosen` and `flag` are writable. If the call fails early, nothing is chosen.
    unsafe { (*chosen, *flag) = (abi::UNDEFINED, 0) };
    // SAFETY: the program's arguments of `get_status_any`; `status` is writable.
    let code = unsafe { next.MPI_Request_get_status_any(count, requests, chosen, flag, status) };
    // SAFETY: both are readable, and the chosen operation is complete with this status if the flag is set.
    unsafe {
        let done = *flag != 0;
        taken.deliver(requests, |index| match done {
            true => told_by(index, chosen, code, status),
            false => Told::Incomplete,
        });
    }
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
    /// Returns what the call tells about the operation with this index: those in the list are complete.
    ///
    /// # Safety
    ///
    /// - The host has written the results, or the call failed and the number was set to 0 before it.
    unsafe fn told(&self, index: usize) -> Told {
        // SAFETY: `told` has the same conditions (`# Safety`). `MPI_UNDEFINED` is negative.
        let done = usize::try_from(unsafe { *self.outcount }).unwrap_or(0);
        for at in 0..done {
            // SAFETY: the host has written `done` indices and statuses.
            unsafe {
                if usize::try_from(*self.indices.add(at)) == Ok(index) {
                    return told(self.next, self.code, self.statuses.add(at));
                }
            }
        }
        Told::Incomplete
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
                unsafe { taken.$end(requests, |index| some.told(index)) };
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
