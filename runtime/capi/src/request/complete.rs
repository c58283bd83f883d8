//! Waiting, testing, asking (MPI-5.0 sections 3.7.3 to 3.7.6).
//!
//! Every call reads its handles first: one that is invalid fails the call before anything has
//! happened. Then the runtime waits or looks (`Request::poll` under its lock), and at last results
//! are taken and written, handles become null, and failures go to the handlers of their
//! communicators.

use super::{Outcome, REQUESTS, Request, find, messages};
use crate::abi;
use crate::array;
use crate::error::{Failure, Result};
use crate::out::Out;
use crate::raw::{self, Status};
use std::ffi::c_int;
use std::sync::Arc;
use typepack::Ongoing;

/// A handle and its request; `None` for the null handle.
type Slot = (raw::Request, Option<Arc<Request>>);

/// The requests of a call: one, without memory from the heap, or a vector of them.
struct Slots<S = Vec<Slot>> {
    array: *mut raw::Request,
    slots: S,
}

/// A position that a null or inactive request has.
fn is_active(request: &Option<Arc<Request>>) -> bool {
    request.as_ref().is_some_and(|request| !request.is_inactive())
}

/// The request of a handle that may be null.
fn slot(handle: raw::Request) -> Result<Slot> {
    match handle {
        raw::Request::NULL => Ok((handle, None)),
        _ => Ok((handle, Some(find(handle)?))),
    }
}

impl Slots<[Slot; 1]> {
    /// One handle.
    ///
    /// # Safety
    ///
    /// - `request` is null, or readable.
    unsafe fn one(request: *const raw::Request) -> Result<Self> {
        if request.is_null() {
            return Err(Failure::null("request"));
        }
        // SAFETY: not null, hence readable.
        let handle = unsafe { request.read_unaligned() };
        Ok(Self { array: request.cast_mut(), slots: [slot(handle)?] })
    }
}

impl Slots {
    /// Reads an array of handles.
    ///
    /// # Safety
    ///
    /// - `array` is null, or readable for `count` handles.
    ///
    /// # Errors
    /// A negative count, a null pointer, an invalid handle.
    unsafe fn read(count: c_int, array: *const raw::Request) -> Result<Self> {
        let Ok(count) = usize::try_from(count) else {
            return Err(Failure::new(abi::ERR_COUNT, "count", format!("{count} is negative")));
        };
        if array.is_null() && count > 0 {
            return Err(Failure::null("array_of_requests"));
        }
        let mut slots = array::room(count, "array_of_requests")?;
        for at in 0..count {
            // SAFETY: not null, hence readable for so many handles.
            let handle = unsafe { array.add(at).read_unaligned() };
            slots.push(slot(handle)?);
        }
        Ok(Self { array: array.cast_mut(), slots })
    }
}

impl<S: AsRef<[Slot]>> Slots<S> {
    fn len(&self) -> usize {
        self.slots.as_ref().len()
    }

    fn at(&self, at: usize) -> &Option<Arc<Request>> {
        &self.slots.as_ref()[at].1
    }

    fn requests(&self) -> impl Iterator<Item = &Option<Arc<Request>>> {
        self.slots.as_ref().iter().map(|(_, request)| request)
    }

    fn is_any_active(&self) -> bool {
        self.requests().any(is_active)
    }

    /// Whether all are complete; looks no further than the first that is not. `seen` is where the
    /// last look ended.
    fn all(&self, seen: &mut usize, ongoing: &mut Ongoing<'_>) -> Option<()> {
        while let Some((_, request)) = self.slots.as_ref().get(*seen) {
            if request.as_ref().is_some_and(|request| !request.poll(ongoing)) {
                return None;
            }
            *seen += 1;
        }
        Some(())
    }

    /// The first active request that is complete.
    fn any(&self, ongoing: &mut Ongoing<'_>) -> Option<usize> {
        self.requests().position(|request| {
            is_active(request) && request.as_ref().is_some_and(|request| request.poll(ongoing))
        })
    }

    /// All active requests that are complete, if there are any.
    fn some(&self, ongoing: &mut Ongoing<'_>) -> Option<Vec<usize>> {
        let complete = |at: &usize| {
            let request = self.at(*at);
            is_active(request) && request.as_ref().is_some_and(|request| request.poll(ongoing))
        };
        let complete: Vec<usize> = (0..self.len()).filter(complete).collect();
        (!complete.is_empty()).then_some(complete)
    }

    /// What the runtime found. When it could not go on, no operation can: all that is pending ends
    /// with that failure. `None` when a generalized request is all that is left to wait for.
    fn or_end<R>(
        &self,
        found: typepack::Result<Option<R>>,
        again: impl FnOnce(&mut Ongoing<'_>) -> Option<R>,
    ) -> Result<Option<R>> {
        let error = match found {
            Ok(found) => return Ok(found),
            Err(error) => error,
        };
        let failure = Failure::from(error);
        let messages = messages()?;
        for request in self.requests().flatten() {
            request.abandon(messages, &failure);
        }
        match messages.change(again) {
            Ok(Some(found)) => Ok(Some(found)),
            Ok(None) | Err(_) => Err(failure),
        }
    }

    /// Takes the result of a complete request; its handle becomes null, unless it is persistent.
    /// `None` for one that was null or inactive.
    ///
    /// # Safety
    ///
    /// - The array is writable.
    unsafe fn conclude(&self, at: usize) -> Option<Outcome> {
        let (handle, Some(request)) = &self.slots.as_ref()[at] else { return None };
        let outcome = request.take();
        if request.persistent.is_none() {
            if !request.shared {
                REQUESTS.remove(handle.0);
            }
            // SAFETY: within the array, which is writable (promise).
            unsafe { self.array.add(at).write_unaligned(raw::Request::NULL) };
        }
        outcome
    }
}

/// Where the statuses of several operations go, and what their failures make of the call.
struct Statuses {
    array: *mut Status,
    written: Vec<c_int>,
    failure: Option<Failure>,
}

impl Statuses {
    fn new(array: *mut Status) -> Self {
        Self { array, written: Vec::new(), failure: None }
    }

    /// Writes the next one; `None` for a request that was null or inactive.
    ///
    /// # Safety
    ///
    /// - The array is `MPI_STATUSES_IGNORE`, or writable for one more.
    unsafe fn push(&mut self, outcome: Option<Outcome>) {
        let target = match self.array {
            array if array.is_null() => array,
            array => array.wrapping_add(self.written.len()),
        };
        // SAFETY: writable there (promise), or null.
        let failure = unsafe { put(outcome, target) };
        self.written.push(failure.as_ref().map_or(abi::SUCCESS, |failure| failure.code));
        self.failure = self.failure.take().or(failure);
    }

    /// The result of the call: error fields are written only when there is an error.
    ///
    /// # Safety
    /// As `push`.
    unsafe fn end(self) -> Result {
        let Some(mut first) = self.failure else { return Ok(()) };
        if !self.array.is_null() {
            for (at, code) in self.written.into_iter().enumerate() {
                // SAFETY: a status was written there.
                unsafe { (&raw mut (*self.array.add(at)).error).write_unaligned(code) };
            }
        }
        first.code = abi::ERR_IN_STATUS;
        Err(first)
    }
}

/// Writes what an operation says, and returns its failure. Without an operation the status is the
/// empty one, of which the error field is a part (MPI-5.0 section 3.7.3).
///
/// # Safety
///
/// - `status` is `MPI_STATUS_IGNORE`, or writable.
unsafe fn put(outcome: Option<Outcome>, status: *mut Status) -> Option<Failure> {
    // SAFETY: passed on.
    unsafe {
        match &outcome {
            Some(outcome) => outcome.status.put(status),
            None => Status::put_empty(status),
        }
    }
    outcome?.failure
}

/// The result of one operation.
///
/// # Safety
///
/// - `status` is `MPI_STATUS_IGNORE`, or writable.
unsafe fn single(outcome: Option<Outcome>, status: *mut Status) -> Result {
    // SAFETY: passed on.
    unsafe { put(outcome, status) }.map_or(Ok(()), Err)
}

/// `MPI_Wait`.
///
/// # Safety
/// As the C function.
pub unsafe fn wait(request: *mut raw::Request, status: *mut Status) -> Result {
    // SAFETY: passed on.
    let slots = unsafe { Slots::one(request)? };
    let mut seen = 0;
    let waited = messages()?.wait_until(|ongoing| slots.all(&mut seen, ongoing));
    slots.or_end(waited.map(Some), |ongoing| slots.all(&mut 0, ongoing))?;
    // SAFETY: passed on.
    unsafe { single(slots.conclude(0), status) }
}

/// `MPI_Test`.
///
/// # Safety
/// As the C function.
pub unsafe fn test(request: *mut raw::Request, flag: *mut c_int, status: *mut Status) -> Result {
    // SAFETY: passed on.
    let (slots, flag) = unsafe { (Slots::one(request)?, Out::new(flag, "flag")?) };
    let looked = messages()?.look(|ongoing| slots.all(&mut 0, ongoing));
    let done = slots.or_end(looked, |ongoing| slots.all(&mut 0, ongoing))?.is_some();
    flag.set(done.into());
    if !done {
        return Ok(());
    }
    // SAFETY: passed on.
    unsafe { single(slots.conclude(0), status) }
}

/// `MPI_Waitall`.
///
/// # Safety
/// As the C function.
pub unsafe fn waitall(count: c_int, requests: *mut raw::Request, statuses: *mut Status) -> Result {
    // SAFETY: passed on.
    let slots = unsafe { Slots::read(count, requests)? };
    let mut seen = 0;
    let waited = messages()?.wait_until(|ongoing| slots.all(&mut seen, ongoing));
    slots.or_end(waited.map(Some), |ongoing| slots.all(&mut 0, ongoing))?;
    // SAFETY: passed on.
    unsafe { conclude_all(&slots, statuses) }
}

/// # Safety
///
/// - The array of requests is writable; `statuses` is ignored, or writable for as many.
unsafe fn conclude_all(slots: &Slots, statuses: *mut Status) -> Result {
    let mut statuses = Statuses::new(statuses);
    for at in 0..slots.len() {
        // SAFETY: passed on.
        unsafe { statuses.push(slots.conclude(at)) };
    }
    // SAFETY: passed on.
    unsafe { statuses.end() }
}

/// `MPI_Testall`.
///
/// # Safety
/// As the C function.
pub unsafe fn testall(
    count: c_int,
    requests: *mut raw::Request,
    flag: *mut c_int,
    statuses: *mut Status,
) -> Result {
    // SAFETY: passed on.
    let (slots, flag) = unsafe { (Slots::read(count, requests)?, Out::new(flag, "flag")?) };
    let looked = messages()?.look(|ongoing| slots.all(&mut 0, ongoing));
    let done = slots.or_end(looked, |ongoing| slots.all(&mut 0, ongoing))?.is_some();
    flag.set(done.into());
    if !done {
        return Ok(());
    }
    // SAFETY: passed on.
    unsafe { conclude_all(&slots, statuses) }
}

/// `MPI_Waitany`.
///
/// # Safety
/// As the C function.
pub unsafe fn waitany(
    count: c_int,
    requests: *mut raw::Request,
    index: *mut c_int,
    status: *mut Status,
) -> Result {
    // SAFETY: passed on.
    let (slots, index) = unsafe { (Slots::read(count, requests)?, Out::new(index, "indx")?) };
    if !slots.is_any_active() {
        index.set(abi::UNDEFINED);
        // SAFETY: passed on.
        unsafe { Status::put_empty(status) };
        return Ok(());
    }
    let waited = messages()?.wait_until(|ongoing| slots.any(ongoing));
    let found = slots.or_end(waited.map(Some), |ongoing| slots.any(ongoing))?;
    let Some(at) = found else { return Ok(()) };
    index.set(at as c_int);
    // SAFETY: passed on.
    unsafe { single(slots.conclude(at), status) }
}

/// The first complete one of several; `outcome` is what its status says.
///
/// # Safety
///
/// - As the C functions, but for what `outcome` does with the array.
unsafe fn any(
    count: c_int,
    requests: *const raw::Request,
    index: *mut c_int,
    flag: *mut c_int,
    status: *mut Status,
    outcome: impl FnOnce(&Slots, usize) -> Option<Outcome>,
) -> Result {
    // SAFETY: passed on.
    let slots = unsafe { Slots::read(count, requests)? };
    // SAFETY: passed on.
    let (index, flag) = unsafe { (Out::new(index, "indx")?, Out::new(flag, "flag")?) };
    let looked = messages()?.look(|ongoing| slots.any(ongoing));
    let found = slots.or_end(looked, |ongoing| slots.any(ongoing))?;
    let none = found.is_none() && !slots.is_any_active();
    flag.set((found.is_some() || none).into());
    index.set(found.map_or(abi::UNDEFINED, |at| at as c_int));
    match found {
        // SAFETY: passed on.
        Some(at) => unsafe { single(outcome(&slots, at), status) },
        None => {
            if none {
                // SAFETY: passed on.
                unsafe { Status::put_empty(status) };
            }
            Ok(())
        }
    }
}

/// `MPI_Testany`.
///
/// # Safety
/// As the C function.
pub unsafe fn testany(
    count: c_int,
    requests: *mut raw::Request,
    index: *mut c_int,
    flag: *mut c_int,
    status: *mut Status,
) -> Result {
    // SAFETY: the array is writable (promise), and the operation is complete.
    let conclude = |slots: &Slots, at| unsafe { slots.conclude(at) };
    // SAFETY: passed on.
    unsafe { any(count, requests, index, flag, status, conclude) }
}

/// The complete ones of several, with their indices.
///
/// # Safety
///
/// - The three arrays are writable for as many as are complete; statuses may be ignored.
unsafe fn conclude_some(
    slots: &Slots,
    complete: &[usize],
    indices: *mut c_int,
    statuses: *mut Status,
) -> Result {
    let mut statuses = Statuses::new(statuses);
    for (i, at) in complete.iter().enumerate() {
        // SAFETY: passed on.
        unsafe {
            indices.add(i).write_unaligned(*at as c_int);
            statuses.push(slots.conclude(*at));
        }
    }
    // SAFETY: passed on.
    unsafe { statuses.end() }
}

/// The outputs of the calls that complete some of several.
///
/// # Safety
///
/// - As the C functions.
unsafe fn some(
    count: c_int,
    requests: *const raw::Request,
    outcount: *mut c_int,
    indices: *mut c_int,
) -> Result<(Slots, Out<c_int>)> {
    // SAFETY: passed on.
    let (slots, out) = unsafe { (Slots::read(count, requests)?, Out::new(outcount, "outcount")?) };
    if indices.is_null() && count > 0 {
        return Err(Failure::null("array_of_indices"));
    }
    Ok((slots, out))
}

/// `MPI_Waitsome`.
///
/// # Safety
/// As the C function.
pub unsafe fn waitsome(
    count: c_int,
    requests: *mut raw::Request,
    outcount: *mut c_int,
    indices: *mut c_int,
    statuses: *mut Status,
) -> Result {
    // SAFETY: passed on.
    let (slots, out) = unsafe { some(count, requests, outcount, indices)? };
    if !slots.is_any_active() {
        out.set(abi::UNDEFINED);
        return Ok(());
    }
    let waited = messages()?.wait_until(|ongoing| slots.some(ongoing));
    let found = slots.or_end(waited.map(Some), |ongoing| slots.some(ongoing))?;
    let complete = found.unwrap_or_default();
    out.set(complete.len() as c_int);
    // SAFETY: passed on.
    unsafe { conclude_some(&slots, &complete, indices, statuses) }
}

/// `MPI_Testsome`.
///
/// # Safety
/// As the C function.
pub unsafe fn testsome(
    count: c_int,
    requests: *mut raw::Request,
    outcount: *mut c_int,
    indices: *mut c_int,
    statuses: *mut Status,
) -> Result {
    // SAFETY: passed on.
    let (slots, out) = unsafe { some(count, requests, outcount, indices)? };
    if !slots.is_any_active() {
        out.set(abi::UNDEFINED);
        return Ok(());
    }
    let looked = messages()?.look(|ongoing| slots.some(ongoing));
    let found = slots.or_end(looked, |ongoing| slots.some(ongoing))?;
    let complete = found.unwrap_or_default();
    out.set(complete.len() as c_int);
    // SAFETY: passed on.
    unsafe { conclude_some(&slots, &complete, indices, statuses) }
}

/// The status that a question about a request gets.
fn seen(request: &Option<Arc<Request>>) -> Option<Outcome> {
    request.as_ref().and_then(|request| request.look())
}

/// `MPI_Request_get_status`: the result stays where it is.
///
/// # Safety
/// As the C function.
pub unsafe fn get_status(request: raw::Request, flag: *mut c_int, status: *mut Status) -> Result {
    // SAFETY: the handle is a local; the rest is passed on.
    let (slots, flag) = unsafe { (Slots::one(&raw const request)?, Out::new(flag, "flag")?) };
    let looked = messages()?.look(|ongoing| slots.all(&mut 0, ongoing));
    let done = slots.or_end(looked, |ongoing| slots.all(&mut 0, ongoing))?.is_some();
    flag.set(done.into());
    if !done {
        return Ok(());
    }
    // SAFETY: passed on.
    unsafe { single(seen(slots.at(0)), status) }
}

/// `MPI_Request_get_status_all`.
///
/// # Safety
/// As the C function.
pub unsafe fn get_status_all(
    count: c_int,
    requests: *const raw::Request,
    flag: *mut c_int,
    statuses: *mut Status,
) -> Result {
    // SAFETY: passed on.
    let (slots, flag) = unsafe { (Slots::read(count, requests)?, Out::new(flag, "flag")?) };
    let looked = messages()?.look(|ongoing| slots.all(&mut 0, ongoing));
    let done = slots.or_end(looked, |ongoing| slots.all(&mut 0, ongoing))?.is_some();
    flag.set(done.into());
    if !done {
        return Ok(());
    }
    let mut statuses = Statuses::new(statuses);
    for request in slots.requests() {
        // SAFETY: passed on.
        unsafe { statuses.push(seen(request)) };
    }
    // SAFETY: passed on.
    unsafe { statuses.end() }
}

/// `MPI_Request_get_status_any`.
///
/// # Safety
/// As the C function.
pub unsafe fn get_status_any(
    count: c_int,
    requests: *const raw::Request,
    index: *mut c_int,
    flag: *mut c_int,
    status: *mut Status,
) -> Result {
    // SAFETY: passed on.
    unsafe { any(count, requests, index, flag, status, |slots, at| seen(slots.at(at))) }
}

/// `MPI_Request_get_status_some`.
///
/// # Safety
/// As the C function.
pub unsafe fn get_status_some(
    count: c_int,
    requests: *const raw::Request,
    outcount: *mut c_int,
    indices: *mut c_int,
    statuses: *mut Status,
) -> Result {
    // SAFETY: passed on.
    let (slots, out) = unsafe { some(count, requests, outcount, indices)? };
    if !slots.is_any_active() {
        out.set(abi::UNDEFINED);
        return Ok(());
    }
    let looked = messages()?.look(|ongoing| slots.some(ongoing));
    let complete = slots.or_end(looked, |ongoing| slots.some(ongoing))?.unwrap_or_default();
    out.set(complete.len() as c_int);
    let mut statuses = Statuses::new(statuses);
    for (i, at) in complete.iter().enumerate() {
        // SAFETY: passed on.
        unsafe {
            indices.add(i).write_unaligned(*at as c_int);
            statuses.push(seen(slots.at(*at)));
        }
    }
    // SAFETY: passed on.
    unsafe { statuses.end() }
}
