//! What the ranks of a file share: the shared file pointer and the lock of atomic mode.
//!
//! Both are words in the part that rank 0 has in a region of the file's communicator. There is no helper file
//! and no name that another job could have too.

use crate::comm::Communicator;
use crate::memory;
use crate::region::SharedRegion;
use crate::shm::layout::State;
use crate::{Error, ErrorKind, Result};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Offsets of the words in the part of rank 0, each in a cache line of its own.
const POINTER: usize = 0;
const LOCK: usize = 64;
const BYTES: usize = 128;

/// The shared words of a file.
#[derive(Debug)]
pub(super) struct Shared(SharedRegion);

/// The lock of atomic mode, which this rank holds until the value is dropped.
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
        let bytes = if comm.rank() == 0 { BYTES } else { 0 };
        SharedRegion::allocate(comm, bytes).map(Self)
    }

    fn word(&self, at: usize) -> Result<&AtomicU64> {
        self.0.atomic(0, at).ok_or_else(|| {
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

    /// Adds to the shared file pointer and returns its old value.
    pub fn advance(&self, by: u64) -> Result<u64> {
        Ok(self.word(POINTER)?.fetch_add(by, Ordering::AcqRel))
    }

    /// Waits until no other rank of the file holds the lock, and takes the lock. If the rank that holds the
    /// lock is dead, takes the lock from the dead rank. `own` is this rank's number in the world, which has
    /// `ranks` ranks.
    pub fn lock(&self, own: usize, ranks: usize) -> Result<Turn<'_>> {
        let word = self.word(LOCK)?;
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
