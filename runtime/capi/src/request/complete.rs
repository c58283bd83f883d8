//! The calls that wait for requests, test them, and query their status (MPI-5.0 sections 3.7.3 to 3.7.6).
//!
//! Every call works in three steps. First it reads its handles, so that an invalid handle makes the call fail
//! before the call has any effect. Then it waits in the runtime, or tests once; the runtime's lock is held
//! while `Slot::poll` checks the requests. Finally it takes the results, writes them, and sets handles to
//! null. The `MPI_Request_get_status` calls only read the results, and leave the requests and handles as they are.
//! If an operation has failed, its failure names the error handler of its communicator or file.

use super::plain::{self, Plains, is_plain};
use super::statuses::{Statuses, single};
use super::{Ended, Outcome, REQUESTS, Request, end_all, find, found, is_sent, messages};
use crate::abi;
use crate::argument::{Array, InOut, InOutArray, OutArray, Output, Place, Places, room};
use crate::error::{Failure, Result};
use crate::raw::{self, Status};
use crate::status::StatusOutput;
use std::ffi::c_int;
use std::sync::{Arc, Mutex};
use typepack::{Messages, Ongoing};

/// The request of a handle.
enum Slot {
    /// The handle is null, or the call has ended the request.
    Null,
    /// The handle stands for every send that was complete when its call returned.
    Sent,
    /// A plain request, which its handle names.
    Plain(raw::Request),
    /// Another request and its handle.
    Request(raw::Request, Arc<Request>),
}

impl Slot {
    /// Returns whether the request is neither null nor inactive.
    fn is_active(&self) -> bool {
        match self {
            Self::Null => false,
            Self::Sent | Self::Plain(_) => true,
            Self::Request(_, request) => !request.is_inactive(),
        }
    }

    /// Returns whether the operation is complete; see `Request::poll`.
    #[inline]
    fn poll(&self, plains: &mut Plains, ongoing: &mut Ongoing<'_>) -> bool {
        match self {
            Self::Null | Self::Sent => true,
            Self::Plain(handle) => plains.poll(*handle, ongoing),
            Self::Request(_, request) => {
                plains.release();
                request.poll(ongoing)
            }
        }
    }
}

/// The requests of a call. The functions fill a value where it is: if they returned a value, the CPU would copy the
/// value right after it has written it, and would wait each time until the written bytes are in its cache. In a wait
/// for two short messages, these copies took a fifth of the time.
#[derive(Default)]
struct Slots {
    /// The places where the C caller's handles are stored; `None` if the call does not set the handles to
    /// null.
    places: Option<Places<raw::Request>>,
    slots: Vec<Slot>,
    /// The requests other than plain requests that this call has ended, and their handles. The requests leave the
    /// table when this value is dropped.
    ended: Vec<Ended>,
    /// The table of plain requests.
    plains: Plains,
}

/// Vectors for more slots than this are freed after the call, so that they do not keep much memory.
const SPARE_SLOTS: usize = 4096;

/// The empty vectors of an earlier call. A call takes them instead of allocating its own.
static SPARE: Mutex<(Vec<Slot>, Vec<Ended>)> = Mutex::new((Vec::new(), Vec::new()));

impl Slots {
    /// Makes room for `count` requests.
    ///
    /// # Errors
    /// Returns `MPI_ERR_NO_MEM` if there is not enough memory.
    fn make_room(&mut self, count: usize) -> Result {
        // If another thread holds the lock of `SPARE`, this call allocates new vectors.
        if let Ok(mut spare) = SPARE.try_lock() {
            std::mem::swap(&mut self.slots, &mut spare.0);
            std::mem::swap(&mut self.ended, &mut spare.1);
        }
        if self.slots.capacity() < count {
            self.slots = room(count, REQUESTS_ARRAY)?;
        }
        if self.ended.capacity() < count {
            self.ended = room(count, REQUESTS_ARRAY)?;
        }
        Ok(())
    }
}

impl Drop for Slots {
    /// Removes the ended requests from their table, and keeps the vectors for the next call.
    fn drop(&mut self) {
        self.plains.release();
        self.slots.clear();
        if !self.ended.is_empty() {
            end_all(&mut self.ended);
        }
        if self.slots.capacity() <= SPARE_SLOTS
            && let Ok(mut spare) = SPARE.try_lock()
            && spare.0.capacity() < self.slots.capacity()
        {
            std::mem::swap(&mut self.slots, &mut spare.0);
            std::mem::swap(&mut self.ended, &mut spare.1);
        }
    }
}

impl Slots {
    /// Reads the handle of a call that takes one request and sets the handle to null when the request is
    /// complete.
    ///
    /// # Errors
    /// Returns `MPI_ERR_ARG` if the pointer is null, and the errors of [`seen`](Self::seen).
    fn one(&mut self, request: InOut<raw::Request>) -> Result {
        let (handle, place) = request.read("request")?;
        self.seen(handle)?;
        self.places = Some(place.into());
        Ok(())
    }

    /// Finds the request for a call that takes one handle and does not change it.
    ///
    /// # Errors
    /// Returns `MPI_ERR_REQUEST` if the handle is invalid, and `MPI_ERR_NO_MEM` if there is not enough memory.
    fn seen(&mut self, request: raw::Request) -> Result {
        self.make_room(1)?;
        self.see(request, find)?;
        self.plains.release();
        Ok(())
    }

    /// Adds the request of a handle. `find` looks in the table of the requests that are not plain.
    #[inline]
    fn see(
        &mut self,
        handle: raw::Request,
        find: impl FnOnce(raw::Request) -> Result<Arc<Request>>,
    ) -> Result {
        match handle {
            raw::Request::NULL => self.slots.push(Slot::Null),
            _ if is_plain(handle) => {
                self.plains.check(handle)?;
                self.slots.push(Slot::Plain(handle));
            }
            _ if is_sent(handle) => self.slots.push(Slot::Sent),
            _ => self.slots.push(Slot::Request(handle, find(handle)?)),
        }
        Ok(())
    }
}

/// Converts the argument that gives the number of requests.
///
/// # Errors
/// Returns `MPI_ERR_COUNT` if the count is negative.
fn length(count: c_int) -> Result<usize> {
    usize::try_from(count)
        .map_err(|_| Failure::new(abi::ERR_COUNT, "count", format!("{count} is negative")))
}

impl Slots {
    /// Reads the array of handles of a call that sets the handles of complete requests to null.
    ///
    /// # Errors
    /// Returns the errors of [`seen_all`](Self::seen_all).
    ///
    /// # Safety
    ///
    /// - `count` is at most the number of handles that the standard prescribes for the array.
    unsafe fn read(&mut self, count: c_int, requests: InOutArray<raw::Request>) -> Result {
        // SAFETY: `requests` has at least `count` handles (condition of `# Safety`).
        unsafe { self.seen_all(count, requests.input())? };
        // SAFETY: `requests` has at least `count` handles (condition of `# Safety`), and `len` returns `count`.
        let places = unsafe { requests.output().places(self.len(), REQUESTS_ARRAY)? };
        self.places = Some(places);
        Ok(())
    }

    /// Reads the array of handles of a call that does not change the array.
    ///
    /// # Errors
    /// Returns `MPI_ERR_COUNT` if the count is negative, `MPI_ERR_ARG` if the pointer is null and the count
    /// is not 0, `MPI_ERR_NO_MEM` if there is not enough memory, and `MPI_ERR_REQUEST` if a handle is
    /// invalid.
    ///
    /// # Safety
    ///
    /// - `count` is at most the number of handles that the standard prescribes for the array.
    unsafe fn seen_all(&mut self, count: c_int, requests: Array<raw::Request>) -> Result {
        let count = length(count)?;
        // SAFETY: `requests` has at least `count` handles (condition of `# Safety`). This function drops
        // the iterator before it returns.
        let handles = unsafe { requests.entries(count, REQUESTS_ARRAY)? };
        self.make_room(count)?;
        // The table of the requests that are not plain is locked only if a handle belongs to such a request.
        let mut view = None;
        for handle in handles {
            self.see(handle, |handle| {
                let view = view.get_or_insert_with(|| REQUESTS.view());
                found(view.find(handle.0), handle)
            })?;
        }
        self.plains.release();
        Ok(())
    }
}

/// The name of the array argument of the calls that take several requests.
const REQUESTS_ARRAY: &str = "array_of_requests";

impl Slots {
    fn len(&self) -> usize {
        self.slots.len()
    }

    fn is_any_active(&self) -> bool {
        self.slots.iter().any(Slot::is_active)
    }

    /// Returns `Some` if all requests are complete. The requests before index `seen` are known to be
    /// complete. This function checks the remaining requests in order, stops at the first one that is not
    /// complete, and leaves the index of that request in `seen`, so that the next call continues there.
    fn all(&self, seen: &mut usize, ongoing: &mut Ongoing<'_>) -> Option<()> {
        let mut plains = Plains::default();
        while let Some(slot) = self.slots.get(*seen) {
            if !slot.poll(&mut plains, ongoing) {
                return None;
            }
            *seen += 1;
        }
        Some(())
    }

    /// Returns the index of the first active request that is complete; `None` if there is none.
    fn any(&self, ongoing: &mut Ongoing<'_>) -> Option<usize> {
        let mut plains = Plains::default();
        self.slots.iter().position(|slot| slot.is_active() && slot.poll(&mut plains, ongoing))
    }

    /// Returns the indices of all active requests that are complete; `None` if there are none.
    fn some(&self, ongoing: &mut Ongoing<'_>) -> Option<Vec<usize>> {
        let mut plains = Plains::default();
        let complete = |at: &usize| {
            let slot = &self.slots[*at];
            slot.is_active() && slot.poll(&mut plains, ongoing)
        };
        let complete: Vec<usize> = (0..self.len()).filter(complete).collect();
        (!complete.is_empty()).then_some(complete)
    }

    /// Returns what `look` finds. If `waits` is true, the runtime calls `look` until `look` finds something.
    /// If `waits` is false, the runtime calls `look` once, and the result is `None` if `look` finds nothing.
    /// If the runtime fails, no operation can continue, except those of generalized requests. In that case all other
    /// pending operations of the call end with the runtime's failure, and `look` runs once more to find them.
    ///
    /// # Errors
    /// Returns the runtime's failure if `look` finds nothing after this failure.
    fn search<R>(
        &self,
        waits: bool,
        look: impl FnMut(&mut Ongoing<'_>) -> Option<R>,
    ) -> Result<Option<R>> {
        self.search_after(|_| Ok(()), waits, look)
    }

    /// Does what [`search`](Self::search) does, after it has called `first`. If `first` fails, the runtime has failed.
    fn search_after<R>(
        &self,
        first: impl FnOnce(&Messages) -> typepack::Result<()>,
        waits: bool,
        mut look: impl FnMut(&mut Ongoing<'_>) -> Option<R>,
    ) -> Result<Option<R>> {
        let messages = messages()?;
        let found = first(messages).and_then(|()| match waits {
            true => messages.wait_until(&mut look).map(Some),
            false => messages.look(&mut look),
        });
        let error = match found {
            Ok(found) => return Ok(found),
            Err(error) => error,
        };
        let failure = Failure::from(error);
        for slot in &self.slots {
            match slot {
                Slot::Null | Slot::Sent => {}
                Slot::Plain(handle) => plain::abandon(*handle, messages, &failure),
                Slot::Request(_, request) => request.abandon(messages, &failure),
            }
        }
        match messages.change(look) {
            Ok(Some(found)) => Ok(Some(found)),
            Ok(None) | Err(_) => Err(failure),
        }
    }

    /// Returns whether all requests are complete. If `waits` is true, the function first waits until they
    /// are.
    fn are_all_done(&self, waits: bool) -> Result<bool> {
        let mut seen = 0;
        Ok(self.search(waits, |ongoing| self.all(&mut seen, ongoing))?.is_some())
    }

    /// Checks once whether all requests are complete. Returns the answer, and also writes it to `flag`.
    fn test_all(&self, flag: Place<c_int>) -> Result<bool> {
        let done = self.are_all_done(false)?;
        flag.set(done.into());
        Ok(done)
    }

    /// Takes the result of the complete request with index `at`. Sets its handle to null unless the request
    /// is persistent. Returns `None` if the handle was null, if the request was inactive, or if another thread
    /// has ended the request.
    fn conclude(&mut self, at: usize) -> Option<Outcome> {
        let outcome = match &self.slots[at] {
            Slot::Null => return None,
            Slot::Sent => Some(Outcome::empty()),
            Slot::Plain(handle) => {
                let success = |status: &Status| Outcome { status: *status, failure: None };
                self.plains
                    .take(*handle, success)
                    .map(|taken| taken.unwrap_or_else(|failed| failed))
            }
            Slot::Request(_, request) => {
                self.plains.release();
                let outcome = request.take();
                if request.persistent.is_some() {
                    return outcome;
                }
                outcome
            }
        };
        if let Slot::Request(handle, request) = std::mem::replace(&mut self.slots[at], Slot::Null) {
            self.ended.push((handle, Some(request)));
        }
        self.clear_place(at);
        outcome
    }

    /// Takes the results of all requests, which are complete, and writes their statuses. Sets the handles to null
    /// except those of persistent requests.
    fn conclude_all(&mut self, statuses: &mut Statuses) -> Result {
        for at in 0..self.len() {
            // Most requests are of these two kinds and have succeeded.
            let outcome = match self.slots[at] {
                Slot::Sent => {
                    self.clear_place(at);
                    statuses.push_success(&Status::empty());
                    continue;
                }
                Slot::Plain(handle) => {
                    self.clear_place(at);
                    match self.plains.take(handle, |status| statuses.push_success(status)) {
                        Some(Ok(())) => continue,
                        Some(Err(outcome)) => Some(outcome),
                        None => None,
                    }
                }
                Slot::Null | Slot::Request(..) => self.conclude(at),
            };
            statuses.push(outcome);
        }
        statuses.end()
    }

    /// Sets the handle with index `at` to null, if the call sets handles to null.
    #[inline]
    fn clear_place(&self, at: usize) {
        if let Some(places) = self.places {
            places.at(at).set(raw::Request::NULL);
        }
    }

    /// Returns the result of the complete request with index `at`, and leaves the result in the request. Returns
    /// `None` in the same cases as [`conclude`](Self::conclude).
    fn peek(&mut self, at: usize) -> Option<Outcome> {
        match &self.slots[at] {
            Slot::Null => None,
            Slot::Sent => Some(Outcome::empty()),
            Slot::Plain(handle) => self.plains.look(*handle),
            Slot::Request(_, request) => {
                self.plains.release();
                request.look()
            }
        }
    }
}

impl Slots {
    /// Writes the statuses of all requests, which are complete, and leaves the results in the requests.
    fn peek_all(&mut self, statuses: &mut Statuses) -> Result {
        for at in 0..self.len() {
            statuses.push(self.peek(at));
        }
        statuses.end()
    }
}

/// `MPI_Wait`.
pub fn wait(request: InOut<raw::Request>, status: StatusOutput) -> Result {
    let (handle, place) = request.read("request")?;
    if is_plain(handle) {
        return wait_for_plain(handle, place, status);
    }
    if is_sent(handle) {
        return wait_for_sent(place, status);
    }
    let mut slots = Slots::default();
    slots.one(request)?;
    slots.are_all_done(true)?;
    single(slots.conclude(0), status)
}

/// Waits for a plain request. Needs no list of requests, unlike the other calls.
fn wait_for_plain(
    request: raw::Request,
    place: Place<raw::Request>,
    status: StatusOutput,
) -> Result {
    Plains::default().check(request)?;
    let messages = messages()?;
    let is_done = |ongoing: &mut Ongoing<'_>| Plains::default().poll(request, ongoing);
    if let Err(error) = messages.wait_until(|ongoing| is_done(ongoing).then_some(())) {
        // The runtime has failed, and no operation can continue. A pending operation ends with this failure.
        plain::abandon(request, messages, &error.into());
    }
    let taken = Plains::default().take(request, |known| status.put(known));
    place.set(raw::Request::NULL);
    match taken {
        Some(Ok(())) => Ok(()),
        Some(Err(outcome)) => single(Some(outcome), status),
        // Another thread has ended the request.
        None => single(None, status),
    }
}

/// Ends the request of a send that was complete when its call returned, and makes progress.
fn wait_for_sent(place: Place<raw::Request>, status: StatusOutput) -> Result {
    let messages = messages()?;
    if let Err(error) = messages.look(|_| Some(())) {
        // The send is complete even if the runtime has failed, for example because a rank has died. But after
        // finalization, and in a forked child, no call is permitted.
        messages.change(|_| ()).map_err(|_| Failure::from(error))?;
    }
    place.set(raw::Request::NULL);
    status.put(&Status::empty());
    Ok(())
}

/// `MPI_Test`.
pub fn test(request: InOut<raw::Request>, flag: Output<c_int>, status: StatusOutput) -> Result {
    let mut slots = Slots::default();
    slots.one(request)?;
    let flag = flag.required("flag")?;
    if !slots.test_all(flag)? {
        return Ok(());
    }
    single(slots.conclude(0), status)
}

/// `MPI_Waitall`.
pub fn waitall(
    count: c_int,
    requests: InOutArray<raw::Request>,
    statuses: OutArray<Status>,
) -> Result {
    let mut slots = Slots::default();
    // SAFETY: the caller of `MPI_Waitall` passes an array of `count` handles.
    unsafe { slots.read(count, requests)? };
    slots.are_all_done(true)?;
    // SAFETY: the caller of `MPI_Waitall` passes an array of `count` statuses or ignores them, and
    // `slots.len()` equals `count`.
    let mut statuses = unsafe { Statuses::new(statuses, slots.len()) };
    slots.conclude_all(&mut statuses)
}

/// Checks once whether all requests are complete, and writes the answer to `flag`. If they are, calls `write`,
/// which writes their statuses.
///
/// # Safety
///
/// - The C caller ignores the statuses, or `statuses` has one entry for each slot, as the standard
///   prescribes.
unsafe fn all(
    slots: &mut Slots,
    flag: Output<c_int>,
    statuses: OutArray<Status>,
    write: impl FnOnce(&mut Slots, &mut Statuses) -> Result,
) -> Result {
    if !slots.test_all(flag.required("flag")?)? {
        return Ok(());
    }
    // SAFETY: the C caller ignores the statuses, or `statuses` has one entry for each slot (condition of
    // `# Safety`).
    let mut statuses = unsafe { Statuses::new(statuses, slots.len()) };
    write(slots, &mut statuses)
}

/// `MPI_Testall`.
pub fn testall(
    count: c_int,
    requests: InOutArray<raw::Request>,
    flag: Output<c_int>,
    statuses: OutArray<Status>,
) -> Result {
    let mut slots = Slots::default();
    // SAFETY: the caller of `MPI_Testall` passes an array of `count` handles. It also passes an array of `count`
    // statuses or ignores them. There are `count` slots.
    unsafe {
        slots.read(count, requests)?;
        all(&mut slots, flag, statuses, Slots::conclude_all)
    }
}

/// `MPI_Waitany`.
pub fn waitany(
    count: c_int,
    requests: InOutArray<raw::Request>,
    index: Output<c_int>,
    status: StatusOutput,
) -> Result {
    let mut slots = Slots::default();
    // SAFETY: the caller of `MPI_Waitany` passes an array of `count` handles.
    unsafe { slots.read(count, requests)? };
    let index = index.required("indx")?;
    if !slots.is_any_active() {
        index.set(abi::UNDEFINED);
        status.put_empty();
        return Ok(());
    }
    let found = slots.search(true, |ongoing| slots.any(ongoing))?;
    let Some(at) = found else { return Ok(()) };
    index.set(at as c_int);
    single(slots.conclude(at), status)
}

/// Checks once whether one of several requests is complete. If so, sets `flag` to true, and writes the
/// index and the status of that request. If no request is active, sets `flag` to true, and writes
/// `MPI_UNDEFINED` and the empty status. Otherwise sets `flag` to false and the index to `MPI_UNDEFINED`.
/// `outcome` returns the outcome of the request with a given index.
fn any(
    slots: &mut Slots,
    index: Output<c_int>,
    flag: Output<c_int>,
    status: StatusOutput,
    outcome: impl FnOnce(&mut Slots, usize) -> Option<Outcome>,
) -> Result {
    let (index, flag) = (index.required("indx")?, flag.required("flag")?);
    let found = slots.search(false, |ongoing| slots.any(ongoing))?;
    let none = found.is_none() && !slots.is_any_active();
    flag.set((found.is_some() || none).into());
    index.set(found.map_or(abi::UNDEFINED, |at| at as c_int));
    match found {
        Some(at) => single(outcome(slots, at), status),
        None => {
            if none {
                status.put_empty();
            }
            Ok(())
        }
    }
}

/// `MPI_Testany`.
pub fn testany(
    count: c_int,
    requests: InOutArray<raw::Request>,
    index: Output<c_int>,
    flag: Output<c_int>,
    status: StatusOutput,
) -> Result {
    let mut slots = Slots::default();
    // SAFETY: the caller of `MPI_Testany` passes an array of `count` handles.
    unsafe { slots.read(count, requests)? };
    any(&mut slots, index, flag, status, Slots::conclude)
}

/// Number of messages of a rank for which the runtime makes progress at once, approximately.
const MESSAGES_AT_ONCE: usize = 32;

/// The output arguments of a call that completes some of several requests.
struct SomeOf {
    count: Output<c_int>,
    indices: OutArray<c_int>,
    statuses: OutArray<Status>,
}

/// Writes to `out` the results of those requests whose operations are complete. If `waits` is true, first
/// waits until at least one operation is complete. If no request is active, writes only the count
/// `MPI_UNDEFINED`. `outcome` returns the outcome of the request with a given index.
///
/// # Errors
/// Returns `MPI_ERR_ARG` if the address of the count is null, or if that of the indices is null and there are
/// slots. Also returns the errors of the runtime, and `MPI_ERR_IN_STATUS` if an operation has failed.
///
/// # Safety
///
/// - `out.indices` has one entry for each slot, as the standard prescribes. `out.statuses` also has one entry
///   for each slot, unless the C caller ignores the statuses.
unsafe fn some(
    slots: &mut Slots,
    waits: bool,
    out: SomeOf,
    outcome: impl Fn(&mut Slots, usize) -> Option<Outcome>,
) -> Result {
    let count = out.count.required("outcount")?;
    // SAFETY: `out.indices` has one entry for each slot, and so has `out.statuses` unless the C caller
    // ignores the statuses (condition of `# Safety`).
    let (indices, mut statuses) = unsafe {
        let indices = out.indices.places(slots.len(), "array_of_indices")?;
        (indices, Statuses::new(out.statuses, slots.len()))
    };
    if !slots.is_any_active() {
        count.set(abi::UNDEFINED);
        return Ok(());
    }
    // Each call looks at all requests, so it should end as many as it can.
    let catch_up = |messages: &Messages| match slots.len() / MESSAGES_AT_ONCE {
        0 => Ok(()),
        most => messages.catch_up(most),
    };
    let complete = slots.search_after(catch_up, waits, |ongoing| slots.some(ongoing))?;
    let complete = complete.unwrap_or_default();
    count.set(complete.len() as c_int);
    for (i, at) in complete.into_iter().enumerate() {
        indices.at(i).set(at as c_int);
        statuses.push(outcome(slots, at));
    }
    statuses.end()
}

/// `MPI_Waitsome`.
pub fn waitsome(
    count: c_int,
    requests: InOutArray<raw::Request>,
    outcount: Output<c_int>,
    indices: OutArray<c_int>,
    statuses: OutArray<Status>,
) -> Result {
    let mut slots = Slots::default();
    let out = SomeOf { count: outcount, indices, statuses };
    // SAFETY: the caller of `MPI_Waitsome` passes `count` handles, room for `count` indices, and room for `count`
    // statuses unless it ignores them. There are `count` slots.
    unsafe {
        slots.read(count, requests)?;
        some(&mut slots, true, out, Slots::conclude)
    }
}

/// `MPI_Testsome`.
pub fn testsome(
    count: c_int,
    requests: InOutArray<raw::Request>,
    outcount: Output<c_int>,
    indices: OutArray<c_int>,
    statuses: OutArray<Status>,
) -> Result {
    let mut slots = Slots::default();
    let out = SomeOf { count: outcount, indices, statuses };
    // SAFETY: the caller of `MPI_Testsome` passes `count` handles, room for `count` indices, and room for `count`
    // statuses unless it ignores them. There are `count` slots.
    unsafe {
        slots.read(count, requests)?;
        some(&mut slots, false, out, Slots::conclude)
    }
}

/// `MPI_Request_get_status`: writes whether the operation is complete and, if it is, its status. Leaves the
/// result in the request.
pub fn get_status(request: raw::Request, flag: Output<c_int>, status: StatusOutput) -> Result {
    let mut slots = Slots::default();
    slots.seen(request)?;
    let flag = flag.required("flag")?;
    if !slots.test_all(flag)? {
        return Ok(());
    }
    single(slots.peek(0), status)
}

/// `MPI_Request_get_status_all`.
pub fn get_status_all(
    count: c_int,
    requests: Array<raw::Request>,
    flag: Output<c_int>,
    statuses: OutArray<Status>,
) -> Result {
    let mut slots = Slots::default();
    // SAFETY: the caller of `MPI_Request_get_status_all` passes an array of `count` handles. It also passes an array
    // of `count` statuses or ignores them. There are `count` slots.
    unsafe {
        slots.seen_all(count, requests)?;
        all(&mut slots, flag, statuses, Slots::peek_all)
    }
}

/// `MPI_Request_get_status_any`.
pub fn get_status_any(
    count: c_int,
    requests: Array<raw::Request>,
    index: Output<c_int>,
    flag: Output<c_int>,
    status: StatusOutput,
) -> Result {
    let mut slots = Slots::default();
    // SAFETY: the caller of `MPI_Request_get_status_any` passes an array of `count` handles.
    unsafe { slots.seen_all(count, requests)? };
    any(&mut slots, index, flag, status, |slots, at| slots.peek(at))
}

/// `MPI_Request_get_status_some`.
pub fn get_status_some(
    count: c_int,
    requests: Array<raw::Request>,
    outcount: Output<c_int>,
    indices: OutArray<c_int>,
    statuses: OutArray<Status>,
) -> Result {
    let mut slots = Slots::default();
    let out = SomeOf { count: outcount, indices, statuses };
    // SAFETY: the caller of `MPI_Request_get_status_some` passes `count` handles, room for `count` indices, and room
    // for `count` statuses unless it ignores them. There are `count` slots.
    unsafe {
        slots.seen_all(count, requests)?;
        some(&mut slots, false, out, |slots, at| slots.peek(at))
    }
}
