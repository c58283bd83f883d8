//! What the ranks of a file share: the shared file pointer, the locks for ranges of the file (`locks.rs`), and the
//! seats at which the ranks meet.
//!
//! All are words in the part that rank 0 has in a region of the file's communicator. There is no helper file
//! and no name that another job could have too.
//!
//! The ranks meet without messages ([`Shared::meet`]). Each rank has a seat of two lines. It writes its word and then
//! the number of the meeting to the line for this meeting, and waits for the same number at all other seats. The next
//! meeting uses the other line. The one after it uses this line again, which no rank reads any more: every rank has
//! come to the meeting in between.

use super::locks::{self, Claim, Locks, Span};
use crate::comm::Communicator;
use crate::memory::{self, heaps::Heaps};
use crate::region::SharedRegion;
use crate::shm::layout::State;
use crate::shm::waiting::Kind;
use crate::sys::fork;
use crate::{Error, ErrorKind, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Size of a cache line in bytes.
const LINE: usize = 64;

/// The offset of the shared file pointer in the part of rank 0. It has a cache line of its own.
const POINTER: usize = 0;
/// The offset of the counter of the locks, in a cache line of its own.
const TICKETS: usize = LINE;
/// The offset of the seats. The slots of the locks follow the seats.
const SEATS: usize = 2 * LINE;

/// What a rank that has left after an error writes as the number of the meeting: it comes to no more meetings.
const GONE: u64 = u64::MAX;

/// The shared words of a file.
#[derive(Debug)]
pub(super) struct Shared {
    region: SharedRegion,
    /// The number of the last meeting.
    meeting: AtomicU64,
}

/// Who waits for something that another rank or process does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waiter {
    /// A thread of the program. While this thread waits, it makes progress.
    Program,
    /// An I/O thread. A thread of the program makes progress.
    Background,
}

/// A lock, which this rank holds until the value is dropped.
#[derive(Debug)]
pub(super) struct Turn<'a> {
    shared: &'a Shared,
    comm: &'a Communicator,
    claim: Option<Claim<'a>>,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let Some(claim) = self.claim.take() else { return };
        let span = claim.span();
        drop(claim);
        // An error of `waiting` does no harm: a rank that is not rung looks again by itself, only later.
        let _ = self.shared.locks(self.comm).waiting(self.comm.rank(), span, |rank| {
            if let Ok(rank) = self.comm.world_rank(rank, "rank", ErrorKind::Rank) {
                self.comm.endpoint().ring(rank);
            }
        });
    }
}

impl Shared {
    /// Makes the words of a new file. Collective.
    pub fn new(comm: &Communicator) -> Result<Self> {
        let bytes =
            if comm.rank() == 0 { slots(comm.size()) + locks::bytes_of(comm.size()) } else { 0 };
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
    /// Returns [`ErrorKind::ProcAborted`] if a rank has died, or if a meeting has failed on a rank. Then no other
    /// meeting takes place.
    pub fn meet(&self, comm: &Communicator, mine: u64, mut each: impl FnMut(u64)) -> Result<()> {
        let size = comm.size();
        // Nobody else comes, so a rank alone needs neither the lock of the endpoint nor a turn of progress, which would
        // be most of the time of a short access.
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
        let awaited = comm.awaited("", Kind::File, None);
        let waited = comm.endpoint().attend_outside(&awaited, || {
            while let Some(seat) = seats.get(come) {
                match seat.load(Ordering::Acquire) {
                    found if found == number => come += 1,
                    GONE => return Some(Err(gone(come))),
                    _ => return None,
                }
            }
            Some(Ok(()))
        });
        waited.and_then(|synchronised| synchronised).inspect_err(|_| {
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

    fn locks<'a>(&'a self, comm: &Communicator) -> Locks<impl Fn(usize) -> Result<&'a AtomicU64>> {
        let ranks = comm.size();
        Locks { word: |at| self.word(at), counter: TICKETS, slots: slots(ranks), ranks }
    }

    /// Locks a range of the file. Waits for accesses of all ranks that came earlier and whose ranges overlap this one,
    /// unless both read. Does not wait for ranks that are dead.
    ///
    /// # Errors
    /// Returns [`ErrorKind::State`] in a forked child and after finalization.
    pub fn lock<'a>(
        &'a self,
        comm: &'a Communicator,
        span: Span,
        waiter: Waiter,
    ) -> Result<Turn<'a>> {
        let locks = self.locks(comm);
        let mut turn = Turn { shared: self, comm, claim: None };
        let is_dead = |rank| {
            let world = comm.group().world_rank(rank);
            let dead =
                |heaps: &Arc<Heaps>| world.is_some_and(|world| heaps.state(world) == State::Dead);
            memory::heaps().is_some_and(dead)
        };
        let mut look = || -> Result<bool> {
            if turn.claim.is_none() {
                turn.claim = locks.claim(comm.rank(), span)?;
            }
            match &mut turn.claim {
                Some(claim) => locks.is_granted(claim, is_dead),
                None => Ok(false),
            }
        };
        if look()? {
            return Ok(turn);
        }
        if waiter == Waiter::Program {
            let awaited = comm.awaited("", Kind::File, None);
            let found = comm.endpoint().attend_outside(&awaited, || match look() {
                Ok(false) => None,
                found => Some(found),
            });
            match found {
                Ok(found) => return found.map(|_| turn),
                // A rank is dead. The lock may belong to another rank, which is alive and will release it, so keep
                // waiting.
                Err(error) if error.kind() == ErrorKind::ProcAborted => {}
                Err(error) => return Err(error),
            }
        }
        // The lock may be held by another thread of this process. An access takes microseconds or more, so the waiting
        // thread looks only a few times before it sleeps.
        // The request of a background access has a record of its own.
        let recorded = (waiter == Waiter::Program)
            .then(|| comm.endpoint().record_wait(&comm.awaited("", Kind::File, None)));
        let mut looks = 0u32;
        while !look()? {
            looks += 1;
            match looks {
                0..64 => std::thread::yield_now(),
                _ => std::thread::sleep(Duration::from_micros(50)),
            }
            if let (Some(recorded), 0) = (&recorded, looks % 64) {
                recorded.look();
            }
        }
        Ok(turn)
    }
}

/// Returns the offset of the slots of the locks of `ranks` ranks.
fn slots(ranks: usize) -> usize {
    SEATS + 2 * LINE * ranks
}

#[cold]
fn gone(rank: usize) -> Error {
    let detail = format!(
        "rank {rank} takes no further part in collective calls on this file, because an earlier call on it failed there"
    );
    Error::new(ErrorKind::ProcAborted, "file", detail)
}
