//! The chunks of this rank: the shared memory through which its long messages pass. All pairs in which this
//! rank writes borrow their chunks here.
//!
//! `pipeline.rs` borrows a chunk, fills it, and publishes it with a stamp of the pair. The receiver of the pair
//! gives the chunk back by its count of freed chunks (`shm/bulk.rs`), and this file reads that count when it
//! looks for a free chunk. So no rank has to remember which chunks it must give back, and a chunk that an idle
//! pair has used last is free for every other pair.
//!
//! The pool begins without memory. It grows up to `pair::rotation` chunks by use, and up to `pair::pool` chunks
//! if all chunks are lent. If no memory is left, the pool stays as it is. A message whose pair gets no chunk
//! waits, or passes through the small chunk of its pair, so it never depends on the receivers of other
//! messages.
//!
//! Invariant: a chunk that is lent under the number `n` of a pair is lent again only after the receiver of that pair
//! has freed `n + 1` chunks, or after this rank has given the chunk back unpublished ([`Pool::end_ahead`]).

use super::area::Area;
use crate::Result;
use crate::shm::bulk::ChunkMemory;
use crate::shm::contacts::Contacts;
use crate::shm::pair::{self, CHUNK_BYTES, Geometry};
use std::ptr::NonNull;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Number of chunks by which the pool grows at a time while it has few chunks.
const AT_ONCE: usize = 8;

/// Maximum number of chunks of this rank that hold pieces which this rank has packed ahead: before the receiver has
/// answered the RTS of the message.
const AHEAD: usize = AT_ONCE / 2;

/// The chunks of this rank.
#[derive(Debug)]
pub struct Pool {
    contacts: Arc<Contacts>,
    rank: usize,
    /// Maximum number of chunks.
    chunks: usize,
    /// While the pool has fewer chunks than this, it grows even if some of its chunks are free: the lines of a chunk
    /// that was used long ago have left the receiver's cache, so this rank need not fetch them back from there.
    rotation: usize,
    /// The address of the first chunk, once a chunk has been lent.
    base: OnceLock<Base>,
    state: Mutex<State>,
}

/// The address of the first chunk of a pool.
#[derive(Clone, Copy, Debug)]
struct Base(NonNull<u8>);

// SAFETY: the value is only an address of shared memory, which `Pool::contacts` keeps mapped.
unsafe impl Send for Base {}
// SAFETY: through a shared reference, a thread can only copy the address, which never changes.
unsafe impl Sync for Base {}

#[derive(Debug)]
struct State {
    /// The last loan of each chunk that has memory.
    loans: Vec<Option<Loan>>,
    /// The number of freed chunks that this rank has last read, for each receiver.
    freed: Vec<u64>,
    /// The chunk that is lent next, if it is free.
    next: usize,
    /// Maximum number of chunks; less than `Pool::chunks` if memory is short.
    most: usize,
    /// Number of chunks that hold pieces packed ahead (see [`AHEAD`]).
    ahead: usize,
}

/// A chunk that a pair has borrowed.
#[derive(Clone, Copy, Debug)]
struct Loan {
    area: Area,
    to: usize,
    number: u64,
}

impl State {
    fn is_free(&mut self, chunk: usize) -> bool {
        let Some(loan) = self.loans[chunk] else { return true };
        if self.freed[loan.to] <= loan.number {
            self.freed[loan.to] = loan.area.freed().load(Ordering::Acquire);
        }
        self.freed[loan.to] > loan.number
    }
}

impl Pool {
    /// Creates the pool of the process `rank`, which joins a job of `processes` processes.
    pub fn new(contacts: Arc<Contacts>, rank: usize, processes: usize) -> Self {
        let (chunks, rotation) = (pair::pool(processes), pair::rotation(processes));
        let (loans, freed, next) = (Vec::new(), vec![0; processes], 0);
        let state = Mutex::new(State { loans, freed, next, most: chunks, ahead: 0 });
        Self { contacts, rank, chunks, rotation, base: OnceLock::new(), state }
    }

    /// Returns the geometry of a pair in which this rank first writes while the job has `processes` processes.
    pub fn geometry(&self, processes: usize) -> Geometry {
        Geometry::of(processes).with_pool(self.chunks)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // The state is usable even if a thread has panicked while it held the lock, because no function leaves
        // it between two changes that belong together.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the address of the first chunk of rank `rank`, whose pool has `chunks` chunks.
    ///
    /// # Errors
    /// Returns `ErrorKind::NoMemory` if address space ran out, and `ErrorKind::Other` if the system refuses for another
    /// reason.
    pub fn of(&self, rank: usize, chunks: usize) -> Result<NonNull<u8>> {
        Ok(self.contacts.pool(rank, chunks)?)
    }

    /// Lends a chunk for chunk number `number` of the pair from this rank to `to`, whose area is `area`. Returns the
    /// place and the address of the chunk, or `None` if no chunk is free and the pool cannot grow, or if there is no
    /// address space for the pool.
    pub fn borrow(&self, to: usize, area: Area, number: u64) -> Option<(u64, *mut u8)> {
        let base = match self.base.get() {
            Some(base) => *base,
            None => {
                // Without address space for the pool, all messages pass through the small chunks.
                let base = self.of(self.rank, self.chunks).ok()?;
                *self.base.get_or_init(|| Base(base))
            }
        };
        let state = &mut *self.lock();
        let chunk = match state.loans.get(state.next) {
            // This chunk has never been lent, or this rank has given it back unpublished.
            Some(None) => state.next,
            _ if state.loans.len() < self.rotation => {
                self.grow(state).or_else(|| Self::find(state))?
            }
            _ => Self::find(state).or_else(|| self.grow(state))?,
        };
        // A process that has joined the job later has a slot beyond the ranks.
        if to >= state.freed.len() {
            state.freed.resize(to + 1, 0);
        }
        state.loans[chunk] = Some(Loan { area, to, number });
        state.next = chunk + 1;
        Some((chunk as u64, Self::chunk(base.0, chunk)))
    }

    /// Counts one more chunk that this rank fills before the receiver has answered the RTS of the message. Returns
    /// false if there are [`AHEAD`] such chunks already. A message without an answer may wait for ever, so such
    /// messages must not take the chunks of other messages.
    pub fn begin_ahead(&self) -> bool {
        let state = &mut *self.lock();
        let room = state.ahead < AHEAD;
        state.ahead += usize::from(room);
        room
    }

    /// Removes one chunk from the count of [`Pool::begin_ahead`]. If `unused` is the place of a chunk that this rank
    /// has filled but does not publish, frees that chunk.
    pub fn end_ahead(&self, unused: Option<u64>) {
        let state = &mut *self.lock();
        state.ahead = state.ahead.saturating_sub(1);
        if let Some(loan) = unused.and_then(|place| state.loans.get_mut(place as usize)) {
            *loan = None;
        }
    }

    /// Returns the next free chunk in rotation.
    fn find(state: &mut State) -> Option<usize> {
        let chunks = state.loans.len();
        let start = if state.next < chunks { state.next } else { 0 };
        (start..chunks).chain(0..start).find(|&chunk| state.is_free(chunk))
    }

    /// Adds chunks to the pool, and returns the first of them. Returns `None` if the pool has its maximum size
    /// or memory is short.
    #[cold]
    fn grow(&self, state: &mut State) -> Option<usize> {
        let first = state.loans.len();
        // Up to `rotation`, the pool uses every chunk in turn, so add several at once. Beyond `rotation`, add one.
        let more = if first < self.rotation { AT_ONCE.min(self.rotation - first) } else { 1 };
        let end = (first + more).min(state.most);
        if first >= end {
            return None;
        }
        if self.contacts.reserve_pool(first..end).is_err() {
            // Do not ask again, because each attempt costs a system call.
            state.most = first;
            return None;
        }
        state.loans.resize(end, None);
        Some(first)
    }

    /// Returns the address of the chunk that will be lent `ahead` loans after the next one, provided that chunks are
    /// lent in order. Returns `None` if that chunk is not free yet, or if the pool has no chunks.
    pub fn ahead(&self, ahead: usize) -> Option<*mut u8> {
        let state = &mut *self.lock();
        let chunks = state.loans.len();
        let chunk = (state.next + ahead).checked_rem(chunks)?;
        let base = self.base.get()?;
        state.is_free(chunk).then(|| Self::chunk(base.0, chunk))
    }

    /// Returns the address of chunk `chunk` in the pool that begins at `base`.
    #[inline]
    pub fn chunk(base: NonNull<u8>, chunk: usize) -> *mut u8 {
        debug_assert!(chunk < pair::POOL_CHUNKS);
        base.as_ptr().wrapping_add(chunk * CHUNK_BYTES)
    }

    /// Returns the number of chunks that [`Pool::begin_ahead`] counts.
    #[cfg(test)]
    pub fn ahead_count(&self) -> usize {
        self.lock().ahead
    }

    /// Limits the pool to `most` chunks.
    #[cfg(test)]
    pub fn limit(&self, most: usize) {
        self.lock().most = most;
    }
}
