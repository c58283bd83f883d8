//! What the ranks of a file share: the shared file pointer, the locks of atomic mode and of streams, and the
//! seats at which they meet.
//!
//! All are words in the part that rank 0 has in a region of the file's communicator. There is no helper file
//! and no name that another job could have too.
//!
//! The ranks meet without messages ([`Shared::meet`]). Each rank has a seat of two lines. It writes its word and then
//! the number of the meeting to the line for this meeting, and waits for the same number at all other seats. The next
//! meeting uses the other line. The one after it uses this line again, which no rank reads any more: every rank has
//! come to the meeting in between.

use crate::comm::Communicator;
use crate::memory;
use crate::region::SharedRegion;
use crate::shm::layout::State;
use crate::sys::fork;
use crate::{Error, ErrorKind, Result};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Size of a cache line in bytes.
const LINE: usize = 64;

/// Offsets of the words in the part of rank 0, each in a cache line of its own.
const POINTER: usize = 0;
/// Locks for accesses that read and for those that write. Accesses in atomic mode use the first one only.
const LOCKS: [usize; 2] = [LINE, 2 * LINE];
const SEATS: usize = 3 * LINE;

/// The number of a meeting that will not take place, because the rank has left after an error.
const GONE: u64 = u64::MAX;

/// The shared words of a file.
#[derive(Debug)]
pub(super) struct Shared {
    region: SharedRegion,
    /// The number of the last meeting.
    meeting: AtomicU64,
}

/// A lock, which this rank holds until the value is dropped.
#[derive(Debug)]
pub(super) struct Turn<'a>(&'a AtomicU64);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.store(0, Ordering::Release);
    }
}

impl Shared {
    /// Makes the words of a new file. Collective.
    pub fn new(comm: &Communicator) -> Result<Self> {
        let bytes = if comm.rank() == 0 { SEATS + 2 * LINE * comm.size() } else { 0 };
        let region = SharedRegion::allocate(comm, bytes)?;
        Ok(Self { region, meeting: AtomicU64::new(0) })
    }

    fn word(&self, at: usize) -> Result<&AtomicU64> {
        if fork::is_child() {
            // The child has no access to the memory that the ranks share.
            let detail = "a forked child of a rank cannot use files; it may exec or exit";
            return Err(Error::new(ErrorKind::State, "process", detail));
        }
        self.region.atomic(0, at).ok_or_else(|| {
            Error::new(ErrorKind::Internal, "file", format!("the region has no word {at}"))
        })
    }

    /// Returns the shared file pointer.
    pub fn pointer(&self) -> Result<u64> {
        Ok(self.word(POINTER)?.load(Ordering::Acquire))
    }

    /// Sets the shared file pointer.
    pub fn set_pointer(&self, value: u64) -> Result<()> {
        self.word(POINTER)?.store(value, Ordering::Release);
        Ok(())
    }

    /// Adds to the shared file pointer. `check` gets the old value and returns an error if the access that
    /// begins there is not allowed; then the pointer does not move. Returns the old value and the answer of
    /// `check`.
    ///
    /// # Errors
    /// Returns the error of `check`, and `ErrorKind::Argument` if the new value does not fit in 63 bits.
    pub fn advance<T>(&self, by: u64, check: impl Fn(u64) -> Result<T>) -> Result<(u64, T)> {
        let word = self.word(POINTER)?;
        let mut at = word.load(Ordering::Acquire);
        loop {
            let answer = check(at)?;
            let next = at.checked_add(by).filter(|&next| next <= i64::MAX as u64);
            let next = next.ok_or_else(|| {
                let detail = format!("the shared file pointer is {at} and cannot grow by {by}");
                Error::new(ErrorKind::Argument, "offset", detail)
            })?;
            match word.compare_exchange_weak(at, next, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return Ok((at, answer)),
                Err(now) => at = now,
            }
        }
    }

    /// Waits until all ranks have come, each with a word of its own, and calls `each` with the word of every
    /// rank. Collective. While a rank waits, it makes progress.
    ///
    /// # Errors
    /// Returns [`ErrorKind::ProcAborted`] if a rank has died. Then no other meeting takes place.
    pub fn meet(&self, comm: &Communicator, mine: u64, mut each: impl FnMut(u64)) -> Result<()> {
        let size = comm.size();
        if size == 1 {
            each(mine);
            return Ok(());
        }
        let number = self.meeting.fetch_add(1, Ordering::Relaxed) + 1;
        let line = |rank: usize, number: u64| SEATS + (2 * rank + (number % 2) as usize) * LINE;
        let own = line(comm.rank(), number);
        if self.word(own)?.load(Ordering::Relaxed) == GONE {
            return Err(gone(comm.rank()));
        }
        self.word(own + 8)?.store(mine, Ordering::Relaxed);
        self.word(own)?.store(number, Ordering::Release);
        let others = || (0..size).filter(|&rank| rank != comm.rank());
        for rank in others() {
            comm.endpoint().ring(comm.world_rank(rank, "rank", ErrorKind::Rank)?);
        }
        let seats = (0..size).map(|rank| self.word(line(rank, number)));
        let seats = seats.collect::<Result<Vec<_>>>()?;
        let mut come = 0;
        let waited = comm.endpoint().attend_outside(|| {
            while let Some(seat) = seats.get(come) {
                match seat.load(Ordering::Acquire) {
                    found if found == number => come += 1,
                    GONE => return Some(Err(gone(come))),
                    _ => return None,
                }
            }
            Some(Ok(()))
        });
        waited.and_then(|met| met).inspect_err(|_| {
            // The other ranks must not wait for this one, and must not take the word of another meeting for that
            // of theirs.
            for number in 0..2 {
                if let Ok(seat) = self.word(line(comm.rank(), number)) {
                    seat.store(GONE, Ordering::Release);
                }
            }
        })?;
        for rank in 0..size {
            each(self.word(line(rank, number) + 8)?.load(Ordering::Relaxed));
        }
        Ok(())
    }

    /// Waits until no other rank of the file holds a lock, and takes the lock. If the rank that holds the
    /// lock is dead, takes the lock from the dead rank. `which` is the lock, 0 or 1. `own` is this rank's
    /// number in the world, which has `ranks` ranks.
    pub fn lock(&self, which: usize, own: usize, ranks: usize) -> Result<Turn<'_>> {
        let word = self.word(LOCKS[which % LOCKS.len()])?;
        let mine = own as u64 + 1;
        let mut tries = 0u32;
        loop {
            match word.compare_exchange_weak(0, mine, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return Ok(Turn(word)),
                Err(0) => continue,
                Err(owner) => {
                    // Another rank may have written any number.
                    let known = owner as usize <= ranks;
                    let dead = known
                        && memory::heaps()
                            .is_some_and(|heaps| heaps.state(owner as usize - 1) == State::Dead);
                    if dead
                        && word
                            .compare_exchange(owner, mine, Ordering::Acquire, Ordering::Relaxed)
                            .is_ok()
                    {
                        return Ok(Turn(word));
                    }
                }
            }
            // The owner may be another thread of this process, for example an I/O thread. An access takes
            // microseconds or more, so a waiting thread soon sleeps.
            tries += 1;
            match tries {
                0..64 => std::thread::yield_now(),
                _ => std::thread::sleep(Duration::from_micros(50)),
            }
        }
    }
}

#[cold]
fn gone(rank: usize) -> Error {
    let detail = format!("rank {rank} of the file's ranks has left after an error");
    Error::new(ErrorKind::ProcAborted, "file", detail)
}
