//! Buffers for buffered sends (MPI-5.0 section 3.6): the process's and those of communicators.
//!
//! A message that cannot go at once is packed into the attached buffer and leaves it when the runtime
//! has sent it. Its place is that of the standard's model (section 3.6.2), a circular queue of messages
//! with `MPI_BSEND_OVERHEAD` bytes each, so that no program runs out of room that the model has; where
//! the model has none, it is the first that is long enough. Whether there is a place is found out
//! before anything is sent, so that a full buffer is the same error whether the receiver is quick or
//! slow. `MPI_BUFFER_AUTOMATIC` packs into memory of the library instead.
//!
//! A communicator's buffer is found by the communicator's handle; it is used instead of the process's
//! (section 3.6.1). `comm/create.rs` calls [`release`] when it frees one.
//!
//! Invariant: a pool's lock is never held while the runtime waits, and never taken under the
//! runtime's.

use crate::abi;
use crate::comm;
use crate::error::{Failure, Result};
use crate::form::{Form, Number};
use crate::out::{Out, null};
use crate::p2p::on as find;
use crate::raw;
use crate::request::{self, On, Running, messages};
use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use typepack::{Operation, Plan, SendMode};

/// Messages in a buffer begin at multiples of this.
const ALIGN: u64 = 8;

/// A message that has not left yet.
#[derive(Debug)]
struct Held {
    send: u64,
    /// Its bytes of the buffer; empty when the library's memory has it.
    place: Range<u64>,
}

/// An attached buffer.
#[derive(Debug)]
struct Buffer {
    /// Its address, or `MPI_BUFFER_AUTOMATIC`.
    address: usize,
    size: u64,
    /// In the order of their places.
    held: Vec<Held>,
    /// Where the last message ends that got the model's place, held or not.
    tail: u64,
}

/// Room that the user adds for each message.
const OVERHEAD: u64 = abi::BSEND_OVERHEAD as u64;

impl Buffer {
    /// One without messages.
    fn new(address: usize, size: u64) -> Self {
        Self { address, size, held: Vec::new(), tail: 0 }
    }

    /// Where a message begins that has the bytes from `start` on.
    fn aligned(&self, start: u64) -> u64 {
        let address = self.address as u64;
        (address + start).next_multiple_of(ALIGN) - address
    }

    /// Where `bytes` go.
    fn place(&mut self, bytes: u64) -> Option<Range<u64>> {
        // An empty buffer is whole.
        if self.held.is_empty() {
            self.tail = 0;
        }
        let queued = self.queued(bytes);
        if let Some(place) = &queued {
            self.tail = place.end;
        }
        queued.or_else(|| self.between(bytes))
    }

    /// The model's place: behind the last message, or at the beginning. The overhead has room for the
    /// alignment.
    fn queued(&self, bytes: u64) -> Option<Range<u64>> {
        const { assert!(OVERHEAD >= ALIGN) };
        let whole = bytes.checked_add(OVERHEAD)?;
        let free = |place: &Range<u64>| {
            let next = self.held.partition_point(|held| held.place.end <= place.start);
            place.end <= self.size
                && self.held.get(next).is_none_or(|held| place.end <= held.place.start)
        };
        let at = |start: u64| Some(start..start.checked_add(whole)?);
        at(self.tail).filter(free).or_else(|| at(0).filter(free))
    }

    /// The first place between the messages that are held, without overhead.
    fn between(&self, bytes: u64) -> Option<Range<u64>> {
        // Also an empty message has a place of its own, so that places have an order.
        let bytes = bytes.max(1);
        let padded = bytes.checked_next_multiple_of(ALIGN)?;
        let mut start = self.aligned(0);
        for held in &self.held {
            if start.checked_add(padded)? <= held.place.start {
                break;
            }
            start = self.aligned(held.place.end);
        }
        let end = start.checked_add(padded)?;
        // The last message needs no room for the alignment of the next.
        (start + bytes <= self.size).then_some(start..end)
    }

    fn hold(&mut self, held: Held) {
        let at = self.held.partition_point(|other| other.place.start < held.place.start);
        self.held.insert(at, held);
    }

    fn sends(&self) -> Vec<u64> {
        self.held.iter().map(|held| held.send).collect()
    }
}

/// A place for an attached buffer.
#[derive(Debug, Default)]
struct Pool(Mutex<Option<Buffer>>);

/// The process's buffer.
static PROCESS: Pool = Pool(Mutex::new(None));

/// The buffers of communicators, by handle.
static COMMS: LazyLock<Mutex<HashMap<usize, Arc<Pool>>>> = LazyLock::new(Mutex::default);

/// How many there are: most programs have none, and look no further.
static ATTACHED: AtomicUsize = AtomicUsize::new(0);

fn of_comms() -> MutexGuard<'static, HashMap<usize, Arc<Pool>>> {
    COMMS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn of_comm(comm: raw::Comm) -> Option<Arc<Pool>> {
    if ATTACHED.load(Ordering::Acquire) == 0 {
        return None;
    }
    of_comms().get(&comm.0).cloned()
}

fn full(detail: String) -> Failure {
    Failure::new(abi::ERR_BUFFER, "buffer", detail)
}

impl Pool {
    fn lock(&self) -> MutexGuard<'_, Option<Buffer>> {
        // Changes are single insertions and removals: a panic leaves nothing half done.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn attach(&self, address: *mut c_void, size: u64) -> Result {
        let mut buffer = self.lock();
        if buffer.is_some() {
            return Err(full("one is attached already".to_owned()));
        }
        *buffer = Some(Buffer::new(address as usize, size));
        Ok(())
    }

    /// # Safety
    /// As [`send`].
    unsafe fn send(
        &self,
        on: &On,
        buf: *const u8,
        plan: &Plan,
        count: u64,
        dest: usize,
        tag: c_int,
    ) -> Result<Operation> {
        let bytes = plan.packed_bytes(count)?;
        let mut pool = self.lock();
        let Some(buffer) = &mut *pool else {
            return Err(full(format!("none is attached for a message of {bytes} bytes")));
        };
        let messages = on.comm.messages();
        if !buffer.held.is_empty() {
            // Progress first: what has left makes room.
            messages.look(|ongoing| {
                buffer.held.retain(|held| {
                    let left = ongoing.is_complete(held.send);
                    if left {
                        // The result of a send says nothing.
                        let _sent = ongoing.fetch(held.send);
                    }
                    !left
                });
                Some(())
            })?;
        }
        let (mode, place) = if buffer.address == abi::BUFFER_AUTOMATIC {
            (SendMode::Copied, 0..0)
        } else {
            let place = buffer.place(bytes).ok_or_else(|| {
                let (size, held) = (buffer.size, buffer.held.len());
                full(format!(
                    "no room for {bytes} bytes in the attached {size}, which hold {held} messages"
                ))
            })?;
            let start = buffer.aligned(place.start) as usize;
            let start = (buffer.address as *mut u8).wrapping_add(start);
            (SendMode::Lent(start), place)
        };
        // SAFETY: the elements are the caller's promise; the place is within the attached buffer
        // (the program's until it is detached, which waits) and no other message's.
        let sent = unsafe { messages.send(mode, buf, plan, count, dest, tag)? };
        if let Operation::Pending(send) = sent {
            buffer.hold(Held { send, place });
        }
        Ok(sent)
    }

    fn sends(&self) -> Vec<u64> {
        self.lock().as_ref().map_or_else(Vec::new, Buffer::sends)
    }

    /// Waits until the messages that are in the buffer now have left it.
    fn flush(&self) -> Result {
        wait(&self.sends())
    }

    /// Takes the buffer away when all its messages have left.
    fn detach(&self) -> Result<(usize, u64)> {
        // From now on nothing comes in.
        let Some(buffer) = self.lock().take() else { return Ok((0, 0)) };
        wait(&buffer.sends())?;
        Ok((buffer.address, buffer.size))
    }
}

/// Waits for sends. When they cannot complete any more, their memory is let go.
fn wait(sends: &[u64]) -> Result {
    let messages = messages()?;
    let mut left = 0;
    let waited = messages.wait_until(|ongoing| {
        while left < sends.len() && ongoing.is_complete(sends[left]) {
            // Once: who looks again finds that there is nothing left of it.
            let _sent = ongoing.fetch(sends[left]);
            left += 1;
        }
        (left == sends.len()).then_some(())
    });
    if waited.is_err() {
        for send in &sends[left..] {
            messages.abandon(Operation::Pending(*send));
        }
    }
    Ok(waited?)
}

/// Sends a message from the buffer of its communicator, or of the process.
///
/// # Safety
///
/// - The elements are readable.
///
/// # Errors
/// `MPI_ERR_BUFFER` when there is no buffer or no room in it; the runtime's.
pub unsafe fn send(
    on: &On,
    buf: *const u8,
    plan: &Plan,
    count: u64,
    dest: usize,
    tag: c_int,
) -> Result<Operation> {
    // SAFETY: passed on.
    unsafe {
        match of_comm(on.handle) {
            Some(pool) => pool.send(on, buf, plan, count, dest, tag),
            None => PROCESS.send(on, buf, plan, count, dest, tag),
        }
    }
}

/// Waits for the buffer of a communicator that is being freed, and forgets it (MPI-5.0 section
/// 3.6).
///
/// # Errors
/// A rank has died.
pub fn release(comm: raw::Comm) -> Result {
    match of_comm(comm) {
        Some(pool) => remove(comm, &pool).map(drop),
        None => Ok(()),
    }
}

fn remove(comm: raw::Comm, pool: &Pool) -> Result<(usize, u64)> {
    let detached = pool.detach()?;
    if of_comms().remove(&comm.0).is_some() {
        ATTACHED.fetch_sub(1, Ordering::AcqRel);
    }
    Ok(detached)
}

/// A buffer as an argument.
fn argument(buffer: *mut c_void, size: impl Number) -> Result<u64> {
    let size = size.wide();
    if buffer as usize == abi::BUFFER_AUTOMATIC {
        return Ok(0);
    }
    let size = u64::try_from(size)
        .map_err(|_| Failure::new(abi::ERR_ARG, "size", format!("{size} is negative")))?;
    if buffer.is_null() && size > 0 {
        return Err(null("buffer"));
    }
    Ok(size)
}

/// `MPI_Buffer_attach`.
///
/// # Safety
/// As the C function.
pub unsafe fn attach<F: Form>(buffer: *mut c_void, size: F::Count) -> Result {
    let size = argument(buffer, size)?;
    PROCESS.attach(buffer, size)
}

/// `MPI_Comm_attach_buffer`.
///
/// # Safety
/// As the C function.
pub unsafe fn comm_attach<F: Form>(comm: raw::Comm, buffer: *mut c_void, size: F::Count) -> Result {
    comm::check(comm)?;
    let size = argument(buffer, size)?;
    let pool = Arc::new(Pool::default());
    pool.attach(buffer, size)?;
    let mut pools = of_comms();
    if pools.contains_key(&comm.0) {
        return Err(full("one is attached to the communicator already".to_owned()));
    }
    pools.insert(comm.0, pool);
    ATTACHED.fetch_add(1, Ordering::AcqRel);
    Ok(())
}

/// The outputs of a detachment.
struct Detached<N> {
    address: Out<*mut c_void>,
    size: Out<N>,
}

impl<N: Number> Detached<N> {
    /// # Safety
    ///
    /// - Both are null or writable.
    unsafe fn new(address: *mut c_void, size: *mut N) -> Result<Self> {
        // SAFETY: passed on; the address is that of a pointer, whatever it points to.
        unsafe {
            let address = Out::new(address.cast::<*mut c_void>(), "buffer_addr")?;
            Ok(Self { address, size: Out::new(size, "size")? })
        }
    }

    /// That the size of the buffer can be told, before it is taken away.
    fn fits(pool: &Pool) -> Result {
        let size = pool.lock().as_ref().map_or(0, |buffer| buffer.size);
        if i64::try_from(size).ok().and_then(N::exactly).is_some() {
            return Ok(());
        }
        let detail = format!("{size} bytes do not fit its type; use the call that ends in _c");
        Err(Failure::new(abi::ERR_VALUE_TOO_LARGE, "size", detail))
    }

    fn set(&self, (address, size): (usize, u64)) {
        self.address.set(address as *mut c_void);
        if let Some(size) = i64::try_from(size).ok().and_then(N::exactly) {
            self.size.set(size);
        }
    }
}

/// `MPI_Buffer_detach`. Without a buffer it is as if one without room were attached.
///
/// # Safety
/// As the C function.
pub unsafe fn detach<F: Form>(address: *mut c_void, size: *mut F::Count) -> Result {
    // SAFETY: passed on.
    let out = unsafe { Detached::new(address, size)? };
    Detached::<F::Count>::fits(&PROCESS)?;
    out.set(PROCESS.detach()?);
    Ok(())
}

/// `MPI_Comm_detach_buffer`.
///
/// # Safety
/// As the C function.
pub unsafe fn comm_detach<F: Form>(
    comm: raw::Comm,
    address: *mut c_void,
    size: *mut F::Count,
) -> Result {
    comm::check(comm)?;
    // SAFETY: passed on.
    let out = unsafe { Detached::new(address, size)? };
    let detached = match of_comm(comm) {
        Some(pool) => {
            Detached::<F::Count>::fits(&pool)?;
            remove(comm, &pool)?
        }
        None => (0, 0),
    };
    out.set(detached);
    Ok(())
}

/// `MPI_Buffer_flush`.
///
/// # Safety
/// As the C function.
pub unsafe fn flush() -> Result {
    PROCESS.flush()
}

/// `MPI_Comm_flush_buffer`.
///
/// # Safety
/// As the C function.
pub unsafe fn comm_flush(comm: raw::Comm) -> Result {
    comm::check(comm)?;
    of_comm(comm).map_or(Ok(()), |pool| pool.flush())
}

/// `MPI_Buffer_iflush`.
///
/// # Safety
/// As the C function.
pub unsafe fn iflush(request: *mut raw::Request) -> Result {
    // SAFETY: passed on.
    let out = unsafe { Out::new(request, "request")? };
    out.set(request::open(None, Running::Flush(PROCESS.sends()))?);
    Ok(())
}

/// `MPI_Comm_iflush_buffer`.
///
/// # Safety
/// As the C function.
pub unsafe fn comm_iflush(comm: raw::Comm, request: *mut raw::Request) -> Result {
    let on = find(comm)?;
    // SAFETY: passed on.
    let out = unsafe { Out::new(request, "request")? };
    let sends = of_comm(comm).map_or_else(Vec::new, |pool| pool.sends());
    out.set(request::open(Some(on), Running::Flush(sends))?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_found_between_and_given_back() {
        let mut buffer = Buffer::new(4096, 100);
        let hold = |buffer: &mut Buffer, send, bytes| {
            let place = buffer.place(bytes)?;
            buffer.hold(Held { send, place: place.clone() });
            Some(place)
        };
        assert_eq!(hold(&mut buffer, 1, 40), Some(0..40));
        assert_eq!(hold(&mut buffer, 2, 10), Some(40..56));
        assert_eq!(hold(&mut buffer, 3, 45), None);
        assert_eq!(hold(&mut buffer, 3, 40), Some(56..96));
        assert_eq!(hold(&mut buffer, 4, 5), None);
        buffer.held.retain(|held| held.send != 2);
        assert_eq!(hold(&mut buffer, 5, 17), None);
        assert_eq!(hold(&mut buffer, 5, 16), Some(40..56));
        assert_eq!(buffer.sends(), [1, 5, 3]);
        assert_eq!(buffer.place(u64::MAX), None);
    }

    #[test]
    fn a_buffer_at_an_odd_address_begins_at_the_next_even_one() {
        let mut buffer = Buffer::new(4097, 15);
        assert_eq!(buffer.place(8), Some(7..15));
        assert_eq!(buffer.place(9), None);
    }

    /// Two long messages, the first of which leaves, a short one and a middle one: the queue goes round
    /// behind the short one, the first place would have cut the hole in two.
    #[test]
    fn what_the_model_has_room_for_has_room() {
        let (long, short, middle) = (40_000, 20_000, 35_000);
        for odd in 0..ALIGN as usize {
            let mut buffer = Buffer::new(4096 + odd, 2 * long + short + 3 * OVERHEAD);
            for (send, bytes) in [(1, long), (2, long)] {
                let place = buffer.place(bytes).expect("room");
                buffer.hold(Held { send, place });
            }
            buffer.held.retain(|held| held.send != 1);
            for (send, bytes) in [(3, short), (4, middle)] {
                let place = buffer.place(bytes).expect("room");
                assert!(buffer.aligned(place.start) + bytes <= place.end, "{place:?}");
                assert!(place.end <= buffer.size, "{place:?}");
                buffer.hold(Held { send, place });
            }
            let places: Vec<_> = buffer.held.iter().map(|held| held.place.clone()).collect();
            assert!(places.is_sorted_by(|a, b| a.end <= b.start), "{places:?}");
            assert_eq!(buffer.sends(), [4, 2, 3]);
        }
    }
}
