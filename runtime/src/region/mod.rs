//! Memory that the ranks of a communicator share: windows, shared file pointers, agreement and small
//! collective calls live in it.
//!
//! A [`SharedRegion`] has a part for each rank, in that rank's heap (`memory/heaps.rs`), which all others
//! map. Before this room comes `comm/`, whose messages it agrees with, in a message space of their own;
//! after it come the rooms that keep their state in regions.
//!
//! How one is made, collectively:
//!
//! 1. each rank takes its part from its heap, and tells all others where it is, or that there is none;
//! 2. each maps the heaps of the others, and tells them whether it could;
//! 3. who has heard from all that they could has a region. Otherwise all give their parts back, and all
//!    return an error.
//!
//! How one ends: each rank notes in every part that it has left, in a byte of its own, and touches
//! the region no more. The owner of a part gives it back when all have left or are dead; until then the
//! part waits in a list of the process (`parts.rs`), which is looked through whenever a region is made or
//! ends. No rank waits for another, except in [`SharedRegion::free`].
//!
//! A rank that dies takes nothing away: its heap stays mapped. Who makes or frees a region with it
//! gets [`ErrorKind::ProcAborted`], as in every call that waits for it.

mod parts;

use crate::comm::{Communicator, Space};
use crate::commit::bytes;
use crate::memory::heaps::Heaps;
use crate::memory::{self, Block};
use crate::{Error, ErrorKind, Result};
use parts::{OwnPart, Part};
use std::fmt;
use std::sync::atomic::AtomicU64;

/// What a rank tells all others: whether it has done its step, and two more words.
type Words = [u64; 3];

/// Memory of which every rank of a communicator has a part, and in which every rank can work.
///
/// Parts begin with zeros. Several ranks may work on one at the same time: through atomics
/// ([`SharedRegion::atomic`]), or through pointers ([`SharedRegion::as_ptr`]) in an order that
/// the program takes care of. Dropping a region leaves it; its memory goes back when all ranks have left.
///
/// ```
/// use std::sync::atomic::Ordering;
/// let universe = typepack::init()?;
/// let world = universe.world();
/// // A counter in the part of rank 0; the others have no bytes of their own.
/// let bytes = if world.rank() == 0 { 8 } else { 0 };
/// let region = typepack::SharedRegion::allocate(&world, bytes)?;
/// let turn = region.atomic(0, 0).expect("eight bytes").fetch_add(1, Ordering::Relaxed);
/// assert!(turn < world.size() as u64);
/// region.free()?;
/// # Ok::<(), typepack::Error>(())
/// ```
pub struct SharedRegion {
    comm: Communicator,
    /// By rank of the communicator.
    parts: Vec<Part>,
    /// Given to the list of those that wait when the region ends.
    own: Option<OwnPart>,
}

impl fmt::Debug for SharedRegion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lens: Vec<usize> = self.parts.iter().map(Part::len).collect();
        f.debug_struct("SharedRegion").field("bytes", &lens).finish_non_exhaustive()
    }
}

impl SharedRegion {
    /// A region in which this rank has `bytes` bytes, which may be none, and each other rank as many as it
    /// says. Collective: all ranks of the communicator call it, in the same order as its other
    /// regions.
    ///
    /// # Errors
    /// The same on every rank: [`ErrorKind::NoMemory`] when a rank has too little memory left for its part,
    /// or too little address space for those of the others. [`ErrorKind::ProcAborted`] when a rank has
    /// died.
    #[doc(alias = "MPI_Win_allocate_shared")]
    pub fn allocate(comm: &Communicator, bytes: usize) -> Result<Self> {
        parts::sweep();
        // 1. A part of one's own.
        let own = take(comm, bytes);
        let said = match &own {
            Ok(own) => [1, own.offset(), bytes as u64],
            Err(_) => [0; 3],
        };
        let all = tell(comm, said)?;
        let own = all_could(&all, own, "has too little memory for its part")?;
        // 2. Those of the others.
        let parts = find(comm, &own, &all);
        let all = match tell(comm, [parts.is_ok().into(), 0, 0]) {
            Ok(all) => all,
            Err(error) => {
                // Others may have heard from all.
                own.leave();
                return Err(error);
            }
        };
        let parts = all_could(&all, parts, "cannot map the memory of the others")?;
        // 3. All have told all that they could.
        Ok(Self { comm: comm.clone(), parts, own: Some(own) })
    }

    /// Ends the region, and gives its memory back before any rank returns. Collective.
    ///
    /// # Errors
    /// [`ErrorKind::ProcAborted`] when a rank has died; the memory goes back when the others have left.
    #[doc(alias = "MPI_Win_free")]
    pub fn free(self) -> Result<()> {
        let comm = self.comm.clone();
        drop(self);
        let all = tell(&comm, [1, 0, 0]);
        parts::sweep();
        all.map(|_| ())
    }

    /// The number of ranks that have a part.
    pub fn size(&self) -> usize {
        self.parts.len()
    }

    /// The bytes of a rank's part; none of a rank that there is not.
    pub fn len(&self, rank: usize) -> usize {
        self.parts.get(rank).map_or(0, Part::len)
    }

    /// Whether a rank's part has no bytes.
    pub fn is_empty(&self, rank: usize) -> bool {
        self.len(rank) == 0
    }

    /// The first byte of a rank's part in this process, at a multiple of 64; valid for
    /// [`SharedRegion::len`] bytes until the region is dropped. `None` for a rank that there is not.
    #[doc(alias = "MPI_Win_shared_query")]
    pub fn as_ptr(&self, rank: usize) -> Option<*mut u8> {
        self.parts.get(rank).map(Part::as_ptr)
    }

    /// The word of eight bytes at byte `offset` of a rank's part. `None` where there is none: beyond the
    /// part, or at no multiple of 8.
    pub fn atomic(&self, rank: usize, offset: usize) -> Option<&AtomicU64> {
        self.parts.get(rank)?.atomic(offset)
    }
}

impl Drop for SharedRegion {
    fn drop(&mut self) {
        for part in &self.parts {
            part.leave(self.comm.rank());
        }
        if let Some(own) = self.own.take() {
            own.leave();
        }
        parts::sweep();
    }
}

/// This rank's part, with room for the notes of those who leave.
fn take(comm: &Communicator, bytes: usize) -> Result<OwnPart> {
    let members = comm.size();
    let refused = || {
        let detail = format!("{bytes} bytes of memory that {members} ranks share were refused");
        Error::new(ErrorKind::NoMemory, "bytes", detail)
    };
    let len = parts::notes(members).checked_add(bytes).ok_or_else(refused)?;
    let block = Block::new(len, parts::LINE, true)?;
    if members > 1 && !block.is_shared() {
        // No heap: the job has none, or it has no place in the address space of this process.
        return Err(refused());
    }
    let group = comm.group();
    let members = (0..members).filter_map(|rank| group.world_rank(rank)).collect();
    Ok(OwnPart::new(block, members, comm.rank()))
}

/// The parts of all ranks, where they say that these are.
fn find(comm: &Communicator, own: &OwnPart, all: &[Words]) -> Result<Vec<Part>> {
    let heaps = memory::heaps();
    let part = |(rank, &[_, offset, bytes]): (usize, &Words)| {
        if rank == comm.rank() {
            return own.part(all.len(), bytes as usize);
        }
        let world = comm.world_rank(rank, "rank", ErrorKind::Rank)?;
        let map = heaps.and_then(|heaps| Heaps::of(heaps, world)).ok_or_else(|| {
            let detail = format!("the memory of rank {rank} cannot be mapped");
            Error::new(ErrorKind::NoMemory, "bytes", detail)
        })?;
        Part::of(map, all.len(), offset, bytes).ok_or_else(|| {
            let detail = format!("rank {rank} has named {bytes} bytes that are not in its heap");
            Error::new(ErrorKind::Other, "bytes", detail)
        })
    };
    all.iter().enumerate().map(part).collect()
}

/// The result of a step if all ranks have done theirs; else the error of the first that has not, which
/// only that rank knows better.
fn all_could<T>(all: &[Words], mine: Result<T>, what: &str) -> Result<T> {
    let failed = all.iter().position(|words| words[0] != 1);
    match (failed, mine) {
        (None, mine) => mine,
        (Some(_), Err(error)) if error.kind() == ErrorKind::NoMemory => Err(error),
        (Some(rank), _) => {
            let detail = format!("rank {rank} of the communicator {what}");
            Err(Error::new(ErrorKind::NoMemory, "bytes", detail))
        }
    }
}

/// Tells all ranks three words, and gives those of all, by rank: what a rank has, it passes on twice as
/// far in each round, so that there are log2 P of them.
fn tell(comm: &Communicator, mine: Words) -> Result<Vec<Words>> {
    let (size, rank) = (comm.size(), comm.rank());
    let byte = bytes()?;
    // Those of this rank, of the next one, and so on.
    let mut known = vec![[0; 3]; size];
    known[0] = mine;
    let mut step = 1;
    while step < size {
        let count = step.min(size - step);
        let (have, rest) = known.split_at_mut(step);
        let len = (count * size_of::<Words>()) as u64;
        comm.scope_in(Space::Region, |scope| -> Result<()> {
            scope.isend(have[..count].as_flattened(), byte, len, (rank + size - step) % size, 0)?;
            let arrives = rest[..count].as_flattened_mut();
            let received = scope.irecv(arrives, byte, len, (rank + step) % size, 0)?;
            scope.wait(received)?;
            Ok(())
        })??;
        step *= 2;
    }
    known.rotate_right(rank);
    Ok(known)
}
