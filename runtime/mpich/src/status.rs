//! Statuses. MPICH's has 20 bytes and begins with the count.

use crate::array::{Array, length};
use crate::code;
use crate::number::{sentinel_to_ours, sentinel_to_theirs};
use crate::raw::Status;
use crate::values::{RANK, TAG};
use std::ffi::c_int;

/// A status of MPICH.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Theirs {
    count_low: c_int,
    /// The upper bits of the count, and the lowest bit says whether the operation was cancelled.
    count_high_and_cancelled: c_int,
    source: c_int,
    tag: c_int,
    error: c_int,
}

const _: () = assert!(size_of::<Theirs>() == 20 && size_of::<Status>() == 32);

/// What a call has not written.
const UNWRITTEN: c_int = c_int::MIN + 0x5170;
const NOTHING: Status =
    Status { source: UNWRITTEN, tag: UNWRITTEN, error: UNWRITTEN, internal: [0; 5] };

fn to_ours(theirs: Theirs) -> Status {
    let high = theirs.count_high_and_cancelled;
    Status {
        source: sentinel_to_ours(&RANK, theirs.source),
        tag: sentinel_to_ours(&TAG, theirs.tag),
        error: if theirs.error == 0 { 0 } else { code::to_ours(theirs.error) },
        internal: [theirs.count_low, high >> 1, high & 1, 0, 0],
    }
}

/// Writes what the call has written of a status.
#[inline(always)]
fn give(status: &Status, to: *mut Theirs) {
    if to.is_null() {
        return;
    }
    // SAFETY: the address is that of a status of the program, as each caller of this function says. The fields lie
    // within it.
    unsafe {
        if status.source != UNWRITTEN {
            let [low, high, cancelled, ..] = status.internal;
            let high = (high << 1) | c_int::from(cancelled != 0);
            (&raw mut (*to).count_low).write_unaligned(low);
            (&raw mut (*to).count_high_and_cancelled).write_unaligned(high);
            (&raw mut (*to).source).write_unaligned(sentinel_to_theirs(&RANK, status.source));
            (&raw mut (*to).tag).write_unaligned(sentinel_to_theirs(&TAG, status.tag));
        }
        if status.error != UNWRITTEN {
            (&raw mut (*to).error).write_unaligned(code::outcome(status.error));
        }
    }
}

/// Says whether the program ignores a status. MPICH's `MPI_STATUS_IGNORE` is 1.
#[inline(always)]
fn is_ignored(status: *const Theirs) -> bool {
    status as usize <= 1
}

/// A status that a call writes.
#[derive(Debug)]
pub struct At {
    to: *mut Theirs,
    status: Status,
}

impl At {
    /// Returns a place for a status that the call writes.
    #[inline(always)]
    pub fn new(to: *mut Theirs) -> Self {
        let to = if is_ignored(to) { std::ptr::null_mut() } else { to };
        Self { to, status: NOTHING }
    }

    /// Returns a place with the status at `to`.
    ///
    /// # Safety
    ///
    /// - `to` is the address of a status, or ignored.
    pub unsafe fn of(to: *mut Theirs) -> Self {
        let mut at = Self::new(to);
        if !at.to.is_null() {
            // SAFETY: the address is that of a status (`# Safety`).
            at.status = to_ours(unsafe { to.read_unaligned() });
        }
        at
    }

    /// Returns the address for the call.
    #[inline(always)]
    pub fn place(&mut self) -> *mut Status {
        if self.to.is_null() { std::ptr::null_mut() } else { &raw mut self.status }
    }

    /// Gives the program what the call has written.
    ///
    /// # Safety
    ///
    /// - The program's address is that of a status, or ignored.
    #[inline(always)]
    pub unsafe fn store(&self) {
        give(&self.status, self.to);
    }
}

/// A status that a call reads.
#[derive(Debug)]
pub struct In(Option<Status>);

impl In {
    /// Reads a status.
    ///
    /// # Safety
    ///
    /// - `from` is the address of a status, or ignored.
    pub unsafe fn new(from: *const Theirs) -> Self {
        // SAFETY: the address is that of a status (`# Safety`).
        Self((!is_ignored(from)).then(|| to_ours(unsafe { from.read_unaligned() })))
    }

    /// Returns the address for the call; null for none.
    pub fn place(&self) -> *const Status {
        self.0.as_ref().map_or(std::ptr::null(), std::ptr::from_ref)
    }
}

/// Returns room for the statuses that a call writes; `None` if there is no memory.
#[inline]
pub fn room(to: *mut Theirs, number: i64) -> Option<Array<Status>> {
    let number = if is_ignored(to) { None } else { Some(length(number)) };
    Array::new(number, |_| NOTHING)
}

/// Gives the program what a call has written of an array of statuses.
///
/// # Safety
///
/// - `to` has as many statuses as there are in `statuses`, or is ignored.
#[inline]
pub unsafe fn store(to: *mut Theirs, statuses: &Array<Status>) {
    for (at, status) in statuses.entries().iter().enumerate() {
        give(status, to.wrapping_add(at));
    }
}

/// Makes a status that of the program, in place.
///
/// # Safety
///
/// - `status` is the address of a status of the ABI.
pub unsafe extern "C" fn make_theirs(status: *mut Status) {
    // SAFETY: the address is that of a status (`# Safety`), and one of MPICH is smaller.
    unsafe {
        let ours = status.read_unaligned();
        give(&ours, status.cast());
    }
}

/// Makes a status of the program that of the ABI, in place.
///
/// # Safety
///
/// - `status` is the address of a status of MPICH, with room for one of the ABI.
pub unsafe extern "C" fn make_ours(status: *mut Status) {
    // SAFETY: the address is that of a status of MPICH, with room for one of the ABI (`# Safety`).
    unsafe {
        let ours = to_ours(status.cast::<Theirs>().read_unaligned());
        status.write_unaligned(ours);
    }
}
