//! What must happen when a request of the host completes.
//!
//! The program holds the host's own request. This file has, for the requests of our messages, the packed buffer, and
//! for a receive where to unpack it. A call that completes requests *takes* the entries of its requests, calls the
//! host, and *puts back* those that are not complete. If the host gives the handle of a completed request to a new
//! operation of another thread, the entries therefore never mix.

use crate::host::Next;
use crate::pool::Buffer;
use crate::say::print;
use crate::settings::settings;
use crate::side::Sides;
use crate::transfer::{Data, Incoming};
use crate::types::HandleMap;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ffi::c_int;
use std::hash::BuildHasherDefault;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Instant;
use typepack_capi_datatype::raw::Status;
use typepack_capi_datatype::{abi, raw};

/// A message of ours.
pub enum Message {
    /// The host sends from this buffer.
    Send(#[expect(dead_code, reason = "owned until the host has sent it")] Buffer),
    /// The host receives into this buffer.
    Receive(Box<Incoming>),
    /// A send and a receive with one request. The host does the send if there is no buffer for it.
    Both(
        #[expect(dead_code, reason = "owned until the host has sent it")] Option<Buffer>,
        Box<Incoming>,
    ),
    /// A collective call.
    Collective(Box<Sides>),
    /// A persistent send. Each start packs the elements again.
    PersistentSend(Box<(Data, Buffer)>),
    /// A persistent receive.
    PersistentReceive(Box<Incoming>),
    /// A persistent collective call. Each start packs the elements again.
    PersistentCollective(Box<Sides>),
}

/// The entry of a request.
pub struct Pending {
    message: Message,
    /// The communicator of the operation; null if this library does not know it.
    comm: raw::Comm,
    /// True for a persistent request from its start to its completion, and always for other requests.
    pub active: bool,
    /// The data of the present operation has been delivered.
    delivered: bool,
}

impl Pending {
    /// Makes an entry. A persistent request is not active yet.
    pub fn new(message: Message, comm: raw::Comm) -> Self {
        let mut new = Self { message, comm, active: true, delivered: false };
        new.active = !new.is_persistent();
        new
    }

    /// Returns whether the request is persistent.
    pub fn is_persistent(&self) -> bool {
        matches!(
            self.message,
            Message::PersistentSend(_)
                | Message::PersistentReceive(_)
                | Message::PersistentCollective(_)
        )
    }

    /// Returns whether the request is that of a collective call.
    pub fn is_collective(&self) -> bool {
        matches!(self.message, Message::Collective(_) | Message::PersistentCollective(_))
    }

    /// Prepares the start of a persistent request. Returns whether that was done.
    ///
    /// # Safety
    ///
    /// - The program starts the request, so the elements are readable.
    #[must_use]
    pub unsafe fn prepare(&self) -> bool {
        match &self.message {
            // SAFETY: the elements are readable (`# Safety`), and the buffer was made for them.
            Message::PersistentSend(send) => unsafe { send.0.pack(&send.1, 0) },
            // SAFETY: the program starts the receive (`# Safety`).
            Message::PersistentReceive(incoming) => unsafe { incoming.prepare() },
            // SAFETY: the program starts the call, so the elements are readable (`# Safety`).
            Message::PersistentCollective(sides) => unsafe { sides.fill() },
            _ => true,
        }
    }

    /// Notes that the host has started a persistent request.
    pub fn started(&mut self) {
        (self.active, self.delivered) = (true, false);
    }

    /// Delivers the data of a receive whose operation is complete.
    ///
    /// # Safety
    ///
    /// - The host has completed the operation with `code` and `status`.
    pub unsafe fn deliver(&mut self, next: &Next, code: c_int, status: *const Status) {
        if !self.active || std::mem::replace(&mut self.delivered, true) {
            return;
        }
        if let Message::Receive(incoming)
        | Message::PersistentReceive(incoming)
        | Message::Both(_, incoming) = &self.message
        {
            // SAFETY: the operation received into this buffer (`# Safety`). The program leaves the elements to the
            // library until it knows that the operation is complete, so they are writable.
            unsafe { incoming.finish(next, code, status) };
        } else if let Message::Collective(sides) | Message::PersistentCollective(sides) =
            &self.message
            && code == abi::SUCCESS
        {
            // SAFETY: the host has completed the call (`# Safety`).
            unsafe { sides.deliver() };
        }
    }
}

/// The entries. A host may give one handle to several sends if all of them are complete (`put`).
static PENDING: Mutex<HandleMap<Pending>> =
    Mutex::new(HashMap::with_hasher(BuildHasherDefault::new()));
static PENDING_COUNT: AtomicUsize = AtomicUsize::new(0);

/// Requests that the program has freed before they were complete.
static ORPHANS: Mutex<Vec<(raw::Request, Pending)>> = Mutex::new(Vec::new());
static ORPHAN_COUNT: AtomicUsize = AtomicUsize::new(0);

fn pending() -> MutexGuard<'static, HandleMap<Pending>> {
    PENDING.lock().unwrap_or_else(PoisonError::into_inner)
}

fn orphans() -> MutexGuard<'static, Vec<(raw::Request, Pending)>> {
    ORPHANS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns whether any request is ours.
#[inline(always)]
pub fn any() -> bool {
    PENDING_COUNT.load(Ordering::Relaxed) + ORPHAN_COUNT.load(Ordering::Relaxed) != 0
}

/// Sets the request of a call that makes one to null. MPICH 5.0.2 returns no error if an error handler of the program
/// has returned, so only the request tells whether the host has made it.
///
/// # Safety
///
/// - `request` is writable.
pub unsafe fn expect(request: *mut raw::Request) {
    // SAFETY: the address is writable (`# Safety`).
    unsafe { *request = raw::Request::NULL };
}

/// Adds the entry of a request that the host has just made for an operation on `comm`. Without a request (`expect`),
/// there is no operation.
///
/// # Safety
///
/// - `request` is the request of the operation of `message`, or null.
pub unsafe fn add(request: raw::Request, message: Message, comm: raw::Comm) {
    if request != raw::Request::NULL {
        put(request, Pending::new(message, comm));
    }
}

/// The request that the host gives to all collective calls that are complete when they return; null if there is none.
static SHARED: AtomicUsize = AtomicUsize::new(abi::REQUEST_NULL);

/// Finds out whether the host gives one request to several collective calls. MPICH does: to calls that had nothing to
/// do, and to some with one rank, whose data have moved.
pub fn learn(next: &Next) {
    let mut requests = [raw::Request::NULL; 2];
    let mut byte = 0_u8;
    let (own, kind) = (raw::Comm(abi::COMM_SELF), raw::Datatype(abi::BYTE));
    for request in &mut requests {
        // SAFETY: `byte` lives until the waits below, which complete both calls. The request is writable.
        unsafe { next.PMPI_Ibcast((&raw mut byte).cast(), 1, kind, 0, own, request) };
    }
    if requests[0] == requests[1] {
        SHARED.store(requests[0].0, Ordering::Relaxed);
    }
    for request in &mut requests {
        // SAFETY: the request is that of a call above, or null.
        unsafe { next.PMPI_Wait(request, std::ptr::null_mut()) };
    }
}

/// Returns whether a collective call with this request is complete already (`learn`).
pub fn is_complete(request: raw::Request) -> bool {
    request != raw::Request::NULL && request.0 == SHARED.load(Ordering::Relaxed)
}

/// Puts an entry back, or adds one.
///
/// This function does not ask the host whether a send is complete: `MPI_Request_get_status` makes progress, and MPICH
/// 5.0.2 then loses its place. If one rank packs a face of an exchange and the other does not, and both ask for the
/// status of their sends, a send is not complete before the receiver calls MPI again, although the receive is.
pub fn put(request: raw::Request, entry: Pending) {
    // The host gives the handle of such an operation to another one only if the former is complete.
    let is_over =
        |entry: &Pending| matches!(entry.message, Message::Send(_) | Message::Collective(_));
    let is_new_over = is_over(&entry);
    let mut pending = pending();
    let (older, newer) = match pending.entry(request.0) {
        Entry::Vacant(place) => {
            place.insert(entry);
            (None, None)
        }
        // Data of a receive must be delivered, and nothing must be delivered for a send.
        Entry::Occupied(place) if is_new_over && !is_over(place.get()) => (None, Some(entry)),
        Entry::Occupied(mut place) => (Some(place.insert(entry)), None),
    };
    PENDING_COUNT.store(pending.len(), Ordering::Relaxed);
    drop(pending);
    match older {
        // Nothing is delivered for the older one: where the host shares requests of collective calls, `learn` has found
        // that. So the program has completed it in a way that this library does not see.
        Some(older) if is_over(&older) => drop(older),
        // No host is known to share other handles. The memory of such an operation must not be used again.
        older => std::mem::forget((older, newer)),
    }
}

/// Takes the entry of a request; `None` if the request is not ours.
pub fn take(request: raw::Request) -> Option<Pending> {
    if request == raw::Request::NULL || PENDING_COUNT.load(Ordering::Relaxed) == 0 {
        return None;
    }
    let mut pending = pending();
    let entry = pending.remove(&request.0);
    PENDING_COUNT.store(pending.len(), Ordering::Relaxed);
    entry
}

/// Keeps a request that the program has freed, until the host has completed it.
pub fn orphan(request: raw::Request, entry: Pending) {
    orphans().push((request, entry));
    ORPHAN_COUNT.fetch_add(1, Ordering::Relaxed);
}

/// The freed requests for which [`sweep`] waits.
#[derive(Clone, Copy, Debug)]
pub enum Awaited {
    /// None of them.
    Nothing,
    /// Those on a communicator that the program disconnects: the host waits until no request uses the communicator.
    /// Those whose communicator is not known, too: they are receives of messages that are matched already.
    Of(raw::Comm),
    /// All of them. The program finalizes, and nothing delivers the data of a receive after that.
    Everything,
}

impl Awaited {
    /// Returns the function of the program that waits for an operation on `comm`; `None` if none waits.
    fn function(self, comm: raw::Comm) -> Option<&'static str> {
        match self {
            Self::Nothing => None,
            Self::Of(other) => {
                (comm == other || comm == raw::Comm::NULL).then_some("MPI_Comm_disconnect")
            }
            Self::Everything => Some("MPI_Finalize"),
        }
    }
}

/// Frees the freed requests that are complete, and waits for some of the others. A program must not finalize while a
/// message is missing (MPI-5.0 section 11.2.2), and `MPI_Comm_disconnect` waits for all communication (section
/// 11.10.4), so the wait of a correct program ends.
pub fn sweep(next: &Next, awaited: Awaited) {
    // One thread at a time has the list, so that a thread that waits sees all requests. The thread gives them back
    // after each look, so that calls of other threads deliver the data of requests for which nobody waits.
    static SWEEPING: Mutex<()> = Mutex::new(());
    let (mut start, mut said) = (None, false);
    while ORPHAN_COUNT.load(Ordering::Relaxed) != 0 {
        let guard = match SWEEPING.try_lock() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(error)) => Some(error.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        };
        let function = match (guard, awaited) {
            (Some(_guard), _) => look(next, awaited),
            (None, Awaited::Nothing) => None,
            (None, Awaited::Of(comm)) => awaited.function(comm),
            (None, Awaited::Everything) => awaited.function(raw::Comm::NULL),
        };
        let Some(function) = function else { return };
        let waited = start.get_or_insert_with(Instant::now).elapsed();
        if !said && settings().watchdog.is_some_and(|patience| waited > patience) {
            print(&format!(
                "{function} waits for the message of a request that the program has freed"
            ));
            said = true;
        }
        std::thread::yield_now();
    }
}

/// Frees the freed requests that are complete. Returns the function of the program that waits for another one; `None`
/// if none waits. It does not wait for a request that the host cannot test.
fn look(next: &Next, awaited: Awaited) -> Option<&'static str> {
    let all = std::mem::take(&mut *orphans());
    let (mut left, mut function) = (Vec::new(), None);
    for (mut request, mut entry) in all {
        let (handle, mut flag, mut status) = (request, 0, Status::default());
        // SAFETY: the request is valid: `orphan` kept it, and only this function completes it. The results are
        // writable.
        let code = unsafe { next.PMPI_Test(&mut request, &mut flag, &mut status) };
        // As in `request/one.rs`: the handle tells, or the flag.
        if request == handle && (flag == 0 || !entry.is_persistent()) {
            if code == abi::SUCCESS {
                function = function.or(awaited.function(entry.comm));
            }
            left.push((handle, entry));
            continue;
        }
        // SAFETY: the host has completed the operation.
        unsafe { entry.deliver(next, code, &status) };
        ORPHAN_COUNT.fetch_sub(1, Ordering::Relaxed);
        if request != raw::Request::NULL {
            // SAFETY: a persistent request that is not active any more.
            unsafe { next.PMPI_Request_free(&mut request) };
        }
    }
    orphans().append(&mut left);
    function
}

/// Forgets all entries at finalize. Their buffers are leaked, because the host may still use those of operations that
/// the program has not completed.
pub fn clear() {
    std::mem::forget(std::mem::take(&mut *pending()));
    std::mem::forget(std::mem::take(&mut *orphans()));
    PENDING_COUNT.store(0, Ordering::Relaxed);
    ORPHAN_COUNT.store(0, Ordering::Relaxed);
}
