//! The loans (`loan.rs`) of operations that go on after their call. When a call finds that the operation is complete, the
//! elements of the sections are given back.
//!
//! typepack's library keeps the loans in the request and calls [`changed`] when the operation starts, when it is complete,
//! and when the request ends, whichever language makes the call. In another library of the ABI, a table has the loans by
//! request, and the routines of this library look there. So the sections of a request that C completes are not filled. A
//! handle may then stand for another operation. So every routine that returns a request drops what the table has about an
//! older one with the same handle.

use crate::loan::{Loan, Section};
use crate::refusal::quietly;
use crate::{abi, cast, raw};
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The loans of an operation.
struct Pending {
    sections: SmallVec<[Box<Section>; 2]>,
    /// True from the start of the operation until its sections have what it has written.
    active: bool,
    /// True if the request stays when the operation is complete.
    persistent: bool,
}

/// An operation that several threads may look at.
type Shared = Arc<Mutex<Pending>>;

/// Does what a moment of a request asks for. typepack's library calls it.
///
/// # Safety
///
/// - `state` comes from [`keep`], and this function has not got moment 2 for it.
unsafe extern "C" fn changed(state: *mut c_void, moment: c_int) {
    let state = state.cast::<Mutex<Pending>>();
    // SAFETY: the state lives until moment 2, which is the last one (`# Safety`).
    unsafe {
        match moment {
            0 => start(&mut locked(&*state)),
            1 => give_back(&mut locked(&*state)),
            _ => drop(Box::from_raw(state)),
        }
    }
}

/// The operations by the handles of their requests, in another library than typepack's.
static TABLE: Mutex<BTreeMap<usize, Shared>> = Mutex::new(BTreeMap::new());

/// The number of entries of the table. A thread that has a request sees at least the entry of that request.
static ENTRIES: AtomicUsize = AtomicUsize::new(0);

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Says whether there may be an operation with loans.
#[inline(always)]
fn any() -> bool {
    ENTRIES.load(Ordering::Relaxed) != 0
}

/// Changes the table.
fn change<R>(work: impl FnOnce(&mut BTreeMap<usize, Shared>) -> R) -> R {
    let mut table = locked(&TABLE);
    let result = work(&mut table);
    ENTRIES.store(table.len(), Ordering::Relaxed);
    result
}

fn find(request: raw::Request) -> Option<Shared> {
    locked(&TABLE).get(&request.0).cloned()
}

/// Says whether the operation of a request is complete, or was never started. An error of the operation is reported by
/// the call that completes the request, not here.
fn is_complete(request: raw::Request) -> bool {
    let mut flag = 0;
    // SAFETY: the result is written to a number; a null address stands for `MPI_STATUS_IGNORE`.
    let code = quietly(|| unsafe {
        abi::PMPI_Request_get_status(request, &raw mut flag, std::ptr::null_mut())
    });
    code == 0 && flag != 0
}

/// Keeps the loans of an operation for its request; the operation has `begun`, or it will be started. Drops them if the
/// call failed.
pub fn keep<const N: usize>(code: c_int, request: raw::Request, loans: [Loan; N], begun: bool) {
    let sections: SmallVec<[Box<Section>; 2]> =
        loans.into_iter().filter_map(Loan::into_section).collect();
    if code != 0 || sections.is_empty() {
        return forget(code, request);
    }
    let mut pending = Pending { sections, active: begun, persistent: !begun };
    // The calls on partitions find their sections in the table. So only Fortran completes such an operation.
    let is_partitioned = pending.sections.iter().any(|section| section.is_partitioned());
    if !is_partitioned && let Some(attach) = cast::attach() {
        let state = Box::into_raw(Box::new(Mutex::new(pending))).cast();
        // SAFETY: the call has just made the request, and any thread may call `changed`. If nothing is attached, the state
        // stays, because the operation has the addresses.
        let _known = unsafe { attach(request, changed as raw::Callback, state) };
        return;
    }
    if begun && (request == raw::REQUEST_NULL || is_complete(request)) {
        // A library may have one request for all operations that complete at once.
        forget(code, request);
        return pending.sections.iter_mut().for_each(|section| section.give_back());
    }
    change(|table| table.insert(request.0, Arc::new(Mutex::new(pending))));
}

/// Drops what the table has for an older request with the handle of a new one.
#[inline(always)]
pub fn forget(code: c_int, request: raw::Request) {
    if code == 0 && any() {
        change(|table| table.remove(&request.0));
    }
}

/// What the table has for some requests: their places in the program's array, their handles, and the operations.
pub struct Seen(SmallVec<[(usize, raw::Request, Shared); 2]>);

/// Looks requests up, before a call that may complete them.
#[inline(always)]
pub fn seen(requests: &[raw::Request]) -> Seen {
    if any() { look(requests) } else { Seen(SmallVec::new()) }
}

#[cold]
fn look(requests: &[raw::Request]) -> Seen {
    let requests = requests.iter().copied().enumerate();
    Seen(requests.filter_map(|(at, request)| Some((at, request, find(request)?))).collect())
}

impl Seen {
    /// Gives back the sections of complete operations. `requests` are the handles after the call.
    #[inline(always)]
    pub fn finish(self, requests: &[raw::Request]) {
        for (at, request, shared) in self.0 {
            finish(request, &shared, requests[at]);
        }
    }

    /// Drops the loans of freed requests.
    #[inline(always)]
    pub fn freed(self, requests: &[raw::Request]) {
        for (at, request, shared) in self.0 {
            if requests[at] == raw::REQUEST_NULL {
                drop_entry(request, &shared);
                let mut pending = locked(&shared);
                if pending.active {
                    // The operation may go on, and has the addresses.
                    std::mem::forget(std::mem::take(&mut pending.sections));
                }
            }
        }
    }
}

#[cold]
fn finish(request: raw::Request, shared: &Shared, after: raw::Request) {
    let is_gone = after == raw::REQUEST_NULL;
    let mut pending = locked(shared);
    if is_gone || pending.active && pending.persistent && is_complete(request) {
        give_back(&mut pending);
    }
    drop(pending);
    if is_gone {
        drop_entry(request, shared);
    }
}

/// Gives the sections of a complete operation back, once.
fn give_back(pending: &mut Pending) {
    if std::mem::take(&mut pending.active) {
        pending.sections.iter_mut().for_each(|section| section.give_back());
    }
}

/// Removes an entry, unless the handle stands for another operation by now.
fn drop_entry(request: raw::Request, shared: &Shared) {
    change(|table| {
        if table.get(&request.0).is_some_and(|found| Arc::ptr_eq(found, shared)) {
            table.remove(&request.0);
        }
    });
}

/// Copies the sections of operations that start.
#[inline(always)]
pub fn starting(requests: &[raw::Request]) {
    for (_, _, shared) in seen(requests).0 {
        let mut pending = locked(&shared);
        if !pending.active {
            start(&mut pending);
        }
    }
}

#[cold]
fn start(pending: &mut Pending) {
    pending.active = true;
    pending.sections.iter_mut().for_each(|section| section.take());
}

/// Copies partitions that are ready. A range may have ends that no partition has; the call finds that.
#[inline(always)]
pub fn ready(request: raw::Request, partitions: impl Iterator<Item = c_int>) {
    if any() {
        on_partitions(request, partitions, Section::take_block);
    }
}

/// Gives back a partition that has arrived.
#[inline(always)]
pub fn arrived(request: raw::Request, partition: c_int) {
    if any() {
        on_partitions(request, std::iter::once(partition), |section, block| {
            section.give_block_back(block);
        });
    }
}

/// Does `work` for those of the partitions that are there. No more of them are looked at than there are.
#[cold]
fn on_partitions(
    request: raw::Request,
    partitions: impl Iterator<Item = c_int>,
    work: fn(&mut Section, usize),
) {
    let Some(shared) = find(request) else { return };
    let pending = &mut *locked(&shared);
    if pending.active {
        let most = pending.sections.iter().map(|section| section.blocks()).max().unwrap_or(0);
        for partition in partitions.take(most) {
            let Ok(partition) = usize::try_from(partition) else { continue };
            pending.sections.iter_mut().for_each(|section| work(section, partition));
        }
    }
}

/// Returns the partitions of a list.
///
/// # Safety
///
/// - The array has at least `length` entries.
pub unsafe fn list(partitions: *const c_int, length: c_int) -> impl Iterator<Item = c_int> {
    // SAFETY: the array is so long (`# Safety`).
    (0..usize::try_from(length).unwrap_or(0)).map(move |at| unsafe { *partitions.add(at) })
}
