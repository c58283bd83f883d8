//! Buffers for buffered sends (MPI-5.0 section 3.6): the buffer of the process and the buffers of
//! communicators and sessions.
//!
//! A message that cannot be sent at once is packed into the attached buffer, and stays there until the
//! runtime has sent it. The bytes of the buffer that a message occupies are its place. The places follow
//! the model of the standard (section 3.6.2): a circular queue, in which the place of a message has room
//! for its packed bytes and for `MPI_BSEND_OVERHEAD` further bytes. If the queue has no room for a message,
//! the place is the first gap that is long enough. A send reserves a place before it starts, even if the
//! send could complete at once. So whether a full buffer causes an error does not depend on how fast the
//! receiver is. With `MPI_BUFFER_AUTOMATIC`, the message is packed into memory of the library instead.
//!
//! If a communicator has a buffer, its sends use that buffer instead of the buffer of the process (section
//! 3.6.1). If it has none but comes from a session that has a buffer, its sends use the buffer of the session. A table
//! maps the handles of communicators and sessions to their buffers. The handle is called the owner of the buffer.
//! `create.rs` calls [`release`] when it frees a communicator, and `session.rs` when it ends a session. The MPI calls
//! that attach and detach buffers are in `p2p/buffered.rs`.
//!
//! Invariant: no thread holds the lock of a [`Pool`] while it waits in the runtime, and no thread takes that
//! lock while it holds the lock of the runtime.

use super::{Comm, On, world};
use crate::abi;
use crate::error::{Failure, Result};
use crate::front;
use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use typepack::engine::Elements;
use typepack::{Operation, Plan, SendMode, Status};

/// Messages in a buffer begin at multiples of this number of bytes.
const ALIGN: u64 = 8;

/// A message that the runtime has not sent yet.
#[derive(Debug)]
struct Held {
    /// The runtime's number of the send.
    send: u64,
    /// The bytes of the buffer that the message occupies, as offsets from the start of the buffer. The range is
    /// empty if the message lies in memory of the library.
    place: Range<u64>,
}

/// An attached buffer, and the messages in it.
#[derive(Debug)]
struct Buffer {
    /// The address of the buffer, or `MPI_BUFFER_AUTOMATIC`.
    address: usize,
    /// The size of the buffer in bytes; 0 for `MPI_BUFFER_AUTOMATIC`.
    size: u64,
    /// The messages in the buffer, in the order of their places.
    held: Vec<Held>,
    /// The end of the place that the standard's model assigned most recently, as an offset from the start
    /// of the buffer. The message in that place may have left the buffer since.
    tail: u64,
    /// If `held` has at least `SWEEP_MIN` messages, a send checks which of them have left the buffer only
    /// if there are at least `sweep_at` messages, or if the standard's model has no place for the message. So the
    /// time for these checks is in proportion to the number of sends, even if very many messages wait in the buffer.
    sweep_at: usize,
}

/// With fewer than this number of messages in the buffer, every send checks which of them have left it.
const SWEEP_MIN: usize = 64;

/// The number of bytes that the standard asks the user to add to the size of each message when computing the
/// size of a buffer.
const OVERHEAD: u64 = abi::BSEND_OVERHEAD as u64;

impl Buffer {
    /// Makes a buffer without messages.
    fn new(address: usize, size: u64) -> Self {
        Self { address, size, held: Vec::new(), tail: 0, sweep_at: SWEEP_MIN }
    }

    /// Returns the first offset, at or after `start`, whose address is a multiple of [`ALIGN`]. A message
    /// whose place begins at `start` begins at this offset.
    fn aligned(&self, start: u64) -> u64 {
        let address = self.address as u64;
        (address + start).next_multiple_of(ALIGN) - address
    }

    /// Returns the place that `queued` finds for a message of `bytes` bytes, and moves `tail` to the end of
    /// this place. If `queued` finds no place, returns `None` and leaves `tail` as it is.
    fn next(&mut self, bytes: u64) -> Option<Range<u64>> {
        let queued = self.queued(bytes);
        if let Some(place) = &queued {
            self.tail = place.end;
        }
        queued
    }

    /// Returns a place for a message of `bytes` bytes; `None` if there is no room.
    fn place(&mut self, bytes: u64) -> Option<Range<u64>> {
        // If the buffer has no messages, the next message begins at the start of the buffer.
        if self.held.is_empty() {
            self.tail = 0;
        }
        self.next(bytes).or_else(|| self.between(bytes))
    }

    /// Returns the place that the standard's model assigns to a message: after the most recently placed
    /// message, or at the beginning of the buffer. Returns `None` if neither is free. The place includes
    /// the overhead, which is large enough for the bytes that alignment skips.
    fn queued(&self, bytes: u64) -> Option<Range<u64>> {
        const { assert!(OVERHEAD >= ALIGN) };
        let whole = bytes.checked_add(front::overhead())?;
        let free = |place: &Range<u64>| {
            let next = self.held.partition_point(|held| held.place.end <= place.start);
            place.end <= self.size
                && self.held.get(next).is_none_or(|held| place.end <= held.place.start)
        };
        let at = |start: u64| Some(start..start.checked_add(whole)?);
        at(self.tail).filter(free).or_else(|| at(0).filter(free))
    }

    /// Returns the first gap before, between or after the held messages that is long enough for `bytes` bytes
    /// without the overhead.
    fn between(&self, bytes: u64) -> Option<Range<u64>> {
        // An empty message is treated as one of 1 byte. Otherwise its place would be an empty range, and
        // could not be ordered among the other places.
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
        // The message itself must end within the buffer. The bytes that pad it to a multiple of `ALIGN` may
        // lie beyond the end, because no message follows them.
        (start + bytes <= self.size).then_some(start..end)
    }

    fn hold(&mut self, held: Held) {
        // A message with the same place, which is empty then, comes after the earlier ones.
        let at = self.held.partition_point(|other| other.place.start <= held.place.start);
        self.held.insert(at, held);
    }

    fn sends(&self) -> Vec<u64> {
        self.held.iter().map(|held| held.send).collect()
    }
}

/// A slot for an attached buffer of the process, of a communicator or of a session.
#[derive(Debug, Default)]
pub struct Pool(Mutex<Option<Buffer>>);

/// The buffer of the process.
pub static PROCESS: Pool = Pool(Mutex::new(None));

/// The buffers of communicators and sessions. The key is the owner; handles of different kinds differ.
static OWNED: LazyLock<Mutex<HashMap<usize, Arc<Pool>>>> = LazyLock::new(Mutex::default);

/// The number of communicators and sessions that have a buffer. In most programs this number is 0, and a buffered send
/// then does not take the lock of [`OWNED`].
static ATTACHED: AtomicUsize = AtomicUsize::new(0);

fn owned() -> MutexGuard<'static, HashMap<usize, Arc<Pool>>> {
    OWNED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the buffer of a communicator or a session; `None` if it has none.
pub fn of(owner: usize) -> Option<Arc<Pool>> {
    if ATTACHED.load(Ordering::Acquire) == 0 {
        return None;
    }
    owned().get(&owner).cloned()
}

fn full(detail: String) -> Failure {
    Failure::new(abi::ERR_BUFFER, "buffer", detail)
}

impl Pool {
    fn lock(&self) -> MutexGuard<'_, Option<Buffer>> {
        // The buffer may be used after a panic poisoned the lock. The list of messages changes only by
        // single insertions and removals, and every value of `tail` is valid.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Attaches a buffer.
    ///
    /// # Errors
    /// Returns `MPI_ERR_BUFFER` if a buffer is already attached.
    ///
    /// # Safety
    ///
    /// - `address` is `MPI_BUFFER_AUTOMATIC`; or, until [`detach`](Self::detach) returns, `size` bytes at
    ///   `address` are writable and nobody else accesses them.
    pub unsafe fn attach(&self, address: *mut c_void, size: u64) -> Result {
        let mut buffer = self.lock();
        if buffer.is_some() {
            return Err(full("a buffer is already attached; detach it first".to_owned()));
        }
        *buffer = Some(Buffer::new(address as usize, size));
        Ok(())
    }

    /// Sends a message through this buffer. `dest` is the rank of the receiver in the world.
    ///
    /// # Errors
    /// Returns `MPI_ERR_BUFFER` if no buffer is attached or the buffer has no room, and the runtime's errors.
    ///
    /// # Safety
    ///
    /// - The elements are readable.
    /// - `dest` is a rank of the world, and `tag` is not negative.
    unsafe fn send(
        &self,
        comm: &Comm,
        elements: Elements<&Plan>,
        dest: usize,
        tag: c_int,
    ) -> Result<Operation> {
        let bytes = elements.bytes()?;
        let mut pool = self.lock();
        let Some(buffer) = &mut *pool else {
            if bytes == 0 {
                // The standard asks for room for the message and its envelope, and permits more than that. The runtime
                // keeps the envelope itself.
                let messages = comm.messages();
                // SAFETY: no byte is read. `dest` and `tag` are valid (second condition of `# Safety`).
                let sent = unsafe { messages.send(SendMode::Buffered(None), elements, dest, tag)? };
                messages.abandon(sent);
                return Ok(Operation::Done(Status { source: dest, tag, bytes }));
            }
            return Err(full(format!(
                "no buffer is attached, but the message of {bytes} bytes needs one"
            )));
        };
        let messages = comm.messages();
        let automatic = buffer.address == abi::BUFFER_AUTOMATIC;
        let mut next = None;
        let lazy = (SWEEP_MIN..buffer.sweep_at).contains(&buffer.held.len());
        if lazy && !automatic {
            next = buffer.next(bytes);
        }
        let has_room = lazy && (automatic || next.is_some());
        if !has_room && !buffer.held.is_empty() {
            // `look` lets the runtime make progress, and then calls the closure. The closure removes the
            // messages that have been sent, to free their places.
            messages.look(|ongoing| {
                buffer.held.retain(|held| {
                    let left = ongoing.is_complete(held.send);
                    if left {
                        // Nobody needs the result of a completed send.
                        let _sent = ongoing.fetch(held.send);
                    }
                    !left
                });
                Some(())
            })?;
            buffer.sweep_at = SWEEP_MIN.max(2 * buffer.held.len());
        }
        let (mode, place) = if automatic {
            (SendMode::Buffered(None), 0..0)
        } else {
            let place = next.or_else(|| buffer.place(bytes)).ok_or_else(|| {
                let (size, held) = (buffer.size, buffer.held.len());
                full(format!(
                    "no room for the message of {bytes} bytes; the attached buffer has {size} bytes and holds \
                     {held} unsent message(s)"
                ))
            })?;
            let start = buffer.aligned(place.start) as usize;
            let start = (buffer.address as *mut u8).wrapping_add(start);
            (SendMode::lent(start), place)
        };
        // SAFETY: the elements are readable, and `dest` and `tag` are valid (both conditions of `# Safety`). The
        // runtime copies the elements before `send` returns. The place lies in the attached buffer, which the
        // caller of `attach` lets this library write until `detach` returns, and `detach` waits for the messages
        // in the buffer. No other message overlaps the place.
        let sent = unsafe { messages.send(mode, elements, dest, tag)? };
        if let Operation::Pending(send) = sent {
            buffer.hold(Held { send, place });
        }
        Ok(sent)
    }

    /// Returns the runtime's number of each send whose message is in the buffer.
    pub fn sends(&self) -> Vec<u64> {
        self.lock().as_ref().map_or_else(Vec::new, Buffer::sends)
    }

    /// Returns the size of the buffer in bytes; 0 if no buffer is attached.
    pub fn size(&self) -> u64 {
        self.lock().as_ref().map_or(0, |buffer| buffer.size)
    }

    /// Waits until all messages that are now in the buffer have left it.
    ///
    /// # Errors
    /// Returns the runtime's error if a rank has died.
    pub fn flush(&self) -> Result {
        wait(&self.sends())?;
        if let Some(buffer) = &mut *self.lock() {
            // With this value, the next send checks which messages have left the buffer.
            buffer.sweep_at = 0;
        }
        Ok(())
    }

    /// Waits until all messages have left the buffer, and detaches it. Returns the address and the size of
    /// the buffer; 0 and 0 if no buffer is attached.
    ///
    /// # Errors
    /// Returns the runtime's error if a rank has died.
    pub fn detach(&self) -> Result<(usize, u64)> {
        // `take` keeps later sends from using the buffer. The earlier sends still use it, so this function
        // waits for them.
        let Some(buffer) = self.lock().take() else { return Ok((0, 0)) };
        wait(&buffer.sends())?;
        Ok((buffer.address, buffer.size))
    }
}

/// Attaches a buffer to a communicator or a session.
///
/// # Errors
/// Returns `MPI_ERR_BUFFER` if the owner already has a buffer.
///
/// # Safety
///
/// - `address` is `MPI_BUFFER_AUTOMATIC`; or, until [`remove`] returns, `size` bytes at `address` are
///   writable and nobody else accesses them.
pub unsafe fn add(owner: usize, address: *mut c_void, size: u64) -> Result {
    let pool = Arc::new(Pool::default());
    // SAFETY: the caller lets this library write `size` bytes at `address` until `remove` returns (condition
    // of `# Safety`), and `remove` calls `detach`.
    unsafe { pool.attach(address, size)? };
    let mut pools = owned();
    if pools.contains_key(&owner) {
        return Err(full("a buffer is already attached to the object; detach it first".to_owned()));
    }
    pools.insert(owner, pool);
    ATTACHED.fetch_add(1, Ordering::AcqRel);
    Ok(())
}

/// Waits until the sends with the numbers `sends` are complete. If the runtime fails, for example because a
/// rank has died, this function abandons the sends that are not complete, so that the runtime no longer
/// uses their memory, and returns the runtime's error.
fn wait(sends: &[u64]) -> Result {
    let Some(messages) = world::messages() else { return Ok(()) };
    let mut left = 0;
    let waited = messages.wait_until(|ongoing| {
        while left < sends.len() && ongoing.is_complete(sends[left]) {
            // `fetch` makes the runtime forget the send, so it must be called only once for each send.
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

/// Sends a message through the buffer of the communicator. If the communicator has none, uses the buffer of its
/// session. If there is no session or the session has no buffer, uses the buffer of the process. `dest` is the rank
/// of the receiver in the world.
///
/// # Errors
/// Returns `MPI_ERR_BUFFER` if no buffer is attached or the buffer has no room, and the runtime's errors.
///
/// # Safety
///
/// - The elements are readable.
/// - `dest` is a rank of the world, and `tag` is not negative.
pub unsafe fn send(
    on: &On,
    elements: Elements<&Plan>,
    dest: usize,
    tag: c_int,
) -> Result<Operation> {
    // SAFETY: `Pool::send` requires the two conditions of `# Safety`: the elements are readable, and `dest` and `tag`
    // are valid.
    unsafe {
        match of(on.handle.0).or_else(|| of(on.comm.session)) {
            Some(pool) => pool.send(&on.comm, elements, dest, tag),
            None => PROCESS.send(&on.comm, elements, dest, tag),
        }
    }
}

/// Detaches the buffer of a communicator or session that is being freed, if it has one. Waits until all messages have
/// left the buffer (MPI-5.0 section 3.6).
///
/// # Errors
/// Returns the runtime's error if a rank has died.
pub fn release(owner: usize) -> Result {
    match of(owner) {
        Some(pool) => remove(owner, &pool).map(drop),
        None => Ok(()),
    }
}

/// Waits until all messages have left the buffer of a communicator or session, and detaches the buffer. Returns the
/// address and the size of the buffer.
///
/// # Errors
/// Returns the runtime's error if a rank has died.
pub fn remove(owner: usize, pool: &Pool) -> Result<(usize, u64)> {
    let detached = pool.detach()?;
    if owned().remove(&owner).is_some() {
        ATTACHED.fetch_sub(1, Ordering::AcqRel);
    }
    Ok(detached)
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

    /// Checks that a message finds a place whenever the standard's model has room for it. The buffer holds
    /// two long messages, and the first one leaves. Then a short message and a middle-sized message are
    /// added. The model places the short message behind the second long message, and the middle-sized message
    /// at the beginning. If the short message took the first gap that is long enough, it would lie at the
    /// beginning and leave no room for the middle-sized message.
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
