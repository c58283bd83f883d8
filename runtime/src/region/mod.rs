//! Memory that the ranks of a communicator share. Programs use such memory, and so do blocking collective calls
//! (`coll/flags/`), files (`io/agree.rs`) and windows (`rma/`).
//!
//! A [`SharedRegion`] has a part for each rank. The part lies in that rank's heap (`memory/heaps.rs`), and
//! all other ranks map the heap. While the ranks make or free a region, they exchange messages in a message
//! space that only this folder uses (`Space::Region` in `comm/`).
//!
//! The ranks make a region together:
//!
//! 1. Each rank allocates its part in its heap. It then tells all other ranks where the part is, or that
//!    the allocation failed.
//! 2. Each rank maps the heaps of the others, and tells all other ranks whether it succeeded. A rank that has failed in
//!    step 1 tells so again.
//! 3. If a rank has received success from all ranks, it has the region. Otherwise all ranks free their
//!    parts and return an error.
//!
//! A region ends without a barrier. When a rank leaves the region, it sets its note (a byte that only this
//! rank writes) in every part, and does not touch the region any more. The owner of a part frees the part
//! when all ranks have left or are dead. Until then the owner keeps the part in a list (`parts.rs`), and
//! checks the list whenever it makes or ends a region. No rank waits for another rank, except in
//! [`SharedRegion::free`].
//!
//! The part of a dead rank stays available, because its heap stays mapped. A rank that makes or frees a
//! region together with a dead rank gets [`ErrorKind::ProcAborted`], as in every call that waits for the
//! dead rank.

mod parts;

use crate::comm::{Communicator, Space};
use crate::commit::bytes;
use crate::error::check_memory;
use crate::memory::{self, Block};
use crate::request::reply::{ReplyWord, kind_of};
use crate::{Error, ErrorKind, Result, WindowErrorKind};
use parts::{OwnPart, Part};
use std::fmt;
use std::sync::atomic::AtomicU64;
use typepack_engine::reserve::insist;

/// The words that a rank sends to all other ranks after one of the steps above: a [`ReplyWord`], then the offset of the
/// rank's part in its heap and the length of the part, both in bytes. The last two words have a meaning only after
/// step 1, and only if step 1 succeeded.
type StepAnswer = [u64; 3];

/// The kind of the error if the memory of ranks cannot be shared.
const SHARED: ErrorKind = ErrorKind::Window(WindowErrorKind::Shared);

/// Memory in which every rank of a communicator has a part, and which every rank can read and write.
///
/// All bytes of the parts are zero at first. Several ranks may work on one part at the same time, either
/// through atomics ([`SharedRegion::atomic`]), or through pointers ([`SharedRegion::as_ptr`]) in an order
/// that the program ensures. A rank that drops its region leaves it. The memory is freed when all ranks
/// have left.
///
/// ```
/// use std::sync::atomic::Ordering;
/// let universe = typepack::init()?;
/// let world = universe.world();
/// // A counter in the part of rank 0; the others have no bytes of their own.
/// let bytes = if world.rank() == 0 { 8 } else { 0 };
/// let region = typepack::SharedRegion::allocate(&world, bytes)?;
/// let turn = region.atomic(0, 0).expect("a word of the part").fetch_add(1, Ordering::Relaxed);
/// assert!(turn < world.size() as u64);
/// region.free()?;
/// # Ok::<(), typepack::Error>(())
/// ```
pub struct SharedRegion {
    comm: Communicator,
    parts: Parts,
}

/// The parts of all ranks in a region. The value does not keep the communicator, so that the communicator can
/// keep the value.
pub(crate) struct Parts {
    /// This rank of the communicator.
    rank: usize,
    /// The parts of all ranks, indexed by rank of the communicator.
    parts: Vec<Part>,
    /// The part of this rank. When this rank leaves the region, the part moves to the list of parts that
    /// other ranks may not have left yet.
    own: Option<OwnPart>,
}

impl fmt::Debug for SharedRegion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lens: Vec<usize> = self.parts.parts.iter().map(Part::len).collect();
        f.debug_struct("SharedRegion").field("bytes", &lens).finish_non_exhaustive()
    }
}

impl SharedRegion {
    /// Makes a region in which this rank has `bytes` bytes, which may be 0. Each rank may pass a different
    /// number. Collective: all ranks of the communicator must make this call, and must make their regions
    /// in the same order.
    ///
    /// # Errors
    /// Returns [`ErrorKind::Comm`] if `comm` is an intercommunicator. If one rank fails, all ranks get an error:
    /// [`ErrorKind::NoMemory`] if a rank has too little memory for its part or too little address space for the
    /// other parts, and [`ErrorKind::ProcAborted`] if a rank has died.
    #[doc(alias = "MPI_Win_allocate_shared")]
    pub fn allocate(comm: &Communicator, bytes: usize) -> Result<Self> {
        let refused = |error: Error| match error.kind() {
            SHARED => Error::new(ErrorKind::NoMemory, "bytes", error.to_string()),
            _ => error,
        };
        Self::share(comm, bytes, false).map_err(refused)
    }

    /// Makes a region like [`allocate`](Self::allocate). If `populate`, all pages of this rank's part get memory at
    /// once.
    ///
    /// # Errors
    /// Returns the errors of [`allocate`](Self::allocate), but `WindowErrorKind::Shared` if other ranks cannot map the
    /// memory of a rank.
    pub(crate) fn share(comm: &Communicator, bytes: usize, populate: bool) -> Result<Self> {
        let parts = Parts::agree(comm, bytes, populate)??;
        Ok(Self { comm: comm.clone(), parts })
    }

    /// Gives memory to `range`, a range of bytes of the part of a rank. It comes from the NUMA node of this rank.
    /// All ranks make this call at the same time, each for its own range. Collective.
    ///
    /// # Errors
    /// Returns [`ErrorKind::NoMemory`] on all ranks if there is too little memory for one, and `ErrorKind::ProcAborted`
    /// if a rank has died.
    pub(crate) fn populate(&self, rank: usize, range: std::ops::Range<usize>) -> Result<()> {
        let result = self.populate_here(rank, range);
        let all = tell(&self.comm, [ReplyWord::to(&result, 0).word(), 0, 0])?;
        all_could(&all, result, "has too little memory for its part")
    }

    fn populate_here(&self, rank: usize, range: std::ops::Range<usize>) -> Result<()> {
        let world = self.comm.world_rank(rank, "rank", ErrorKind::Rank)?;
        let (Some(heaps), Some(start)) = (memory::heaps(), self.as_ptr(rank)) else {
            return Ok(());
        };
        let Some((_, at)) = heaps.locate(start as usize, self.len(rank) as u64) else {
            return Ok(());
        };
        let range = at + range.start as u64..at + range.end as u64;
        heaps.populate(world, &range).map_err(memory::of_heap)
    }

    /// Ends the region. When the call returns, all ranks have left the region, and this rank's part has
    /// been freed. Collective.
    ///
    /// # Errors
    /// Returns [`ErrorKind::ProcAborted`] if a rank has died. In that case the memory is freed when the
    /// other ranks have left.
    #[doc(alias = "MPI_Win_free")]
    pub fn free(self) -> Result<()> {
        let comm = self.comm.clone();
        drop(self);
        let all = tell(&comm, [0; 3]);
        parts::sweep();
        all.map(|_| ())
    }

    /// Returns the number of ranks. Each rank has a part.
    pub fn size(&self) -> usize {
        self.parts.parts.len()
    }

    /// Returns the length of a rank's part in bytes, or 0 for a rank that does not exist.
    pub fn len(&self, rank: usize) -> usize {
        self.parts.len(rank)
    }

    /// Returns whether a rank's part has no bytes.
    pub fn is_empty(&self, rank: usize) -> bool {
        self.len(rank) == 0
    }

    /// Returns the address of a rank's part in this process, or `None` for a rank that does not exist. The
    /// address is a multiple of 64, and is valid for [`SharedRegion::len`] bytes until the region is
    /// dropped.
    #[doc(alias = "MPI_Win_shared_query")]
    pub fn as_ptr(&self, rank: usize) -> Option<*mut u8> {
        self.parts.as_ptr(rank)
    }

    /// Returns the word of eight bytes at byte `offset` of a rank's part. Returns `None` if the word does
    /// not lie within the part, or if `offset` is not a multiple of 8.
    pub fn atomic(&self, rank: usize, offset: usize) -> Option<&AtomicU64> {
        self.parts.parts.get(rank)?.atomic(offset)
    }
}

impl Parts {
    /// Makes the parts; see [`SharedRegion::share`]. The inner result is the answer of all ranks: if one rank has
    /// too little memory, all ranks get an error there. An outer error is an error of this rank alone, whose messages
    /// have failed. The other ranks may wait for this rank then, or may have the parts.
    pub(crate) fn agree(comm: &Communicator, bytes: usize, populate: bool) -> Result<Result<Self>> {
        comm.check_intra("comm")?;
        parts::sweep();
        // 1. Allocate this rank's part.
        let own = take(comm, bytes, populate);
        let said = match &own {
            Ok(own) => [0, own.offset(), bytes as u64],
            Err(_) => [ReplyWord::to(&own, 0).word(), 0, 0],
        };
        let all = tell(comm, said);
        let own = match &all {
            Ok(all) => all_could(all, own, "has too little memory for its part"),
            Err(error) => Err(error.clone()),
        };
        // 2. Map the parts of the other ranks. A rank that has failed takes part in this step, too: another rank may
        // have got the words of step 1 and not know that this one has failed.
        let parts = match (&own, &all) {
            (Ok(own), Ok(all)) => find(comm, own, all),
            (Err(error), _) | (_, Err(error)) => Err(error.clone()),
        };
        let told = tell(comm, [ReplyWord::to(&parts, 0).word(), 0, 0]);
        all?;
        let own = match own {
            Ok(own) => own,
            Err(error) => return Ok(Err(error)),
        };
        let all = match told {
            Ok(all) => all,
            Err(error) => {
                // Other ranks may already have received success from all ranks and use this part. So this
                // rank leaves its part and does not free it.
                own.leave();
                return Err(error);
            }
        };
        let parts = all_could(&all, parts, "cannot map the memory of the other ranks");
        // 3. If every rank has reported success to all other ranks, the region exists.
        Ok(parts.map(|parts| Self { rank: comm.rank(), parts, own: Some(own) }))
    }

    /// Returns the length of a rank's part in bytes, or 0 for a rank that does not exist.
    pub(crate) fn len(&self, rank: usize) -> usize {
        self.parts.get(rank).map_or(0, Part::len)
    }

    /// Returns the address of a rank's part; see [`SharedRegion::as_ptr`].
    pub(crate) fn as_ptr(&self, rank: usize) -> Option<*mut u8> {
        self.parts.get(rank).map(Part::as_ptr)
    }
}

impl Drop for Parts {
    fn drop(&mut self) {
        for part in &self.parts {
            part.leave(self.rank);
        }
        if let Some(own) = self.own.take() {
            own.leave();
        }
        parts::sweep();
    }
}

/// Allocates this rank's part, with room for the notes of the ranks that leave.
fn take(comm: &Communicator, bytes: usize, populate: bool) -> Result<OwnPart> {
    check_memory()?;
    let members = comm.size();
    let refused = || {
        let detail = format!(
            "cannot allocate {bytes} bytes of memory for a region of a communicator of size {members}"
        );
        Error::new(ErrorKind::NoMemory, "bytes", detail)
    };
    let len = parts::notes(members).checked_add(bytes).ok_or_else(refused)?;
    let block = Block::make(len, parts::LINE, true, populate)?;
    if members > 1 && !block.is_shared() {
        // Other ranks cannot map this block, because the job has no heaps.
        let detail = format!(
            "this rank's memory lies in no heap that other ranks can map (limit: RLIMIT_FSIZE, ulimit -f, at the start \
             of the job): {}",
            refused()
        );
        return Err(Error::new(SHARED, "bytes", detail));
    }
    let group = comm.group();
    let members = (0..members).filter_map(|rank| group.world_rank(rank)).collect();
    Ok(OwnPart::new(block, members, comm.rank()))
}

/// Returns the parts of all ranks. `all` holds what each rank has told the others after step 1: where its
/// part is.
fn find(comm: &Communicator, own: &OwnPart, all: &[StepAnswer]) -> Result<Vec<Part>> {
    let heaps = memory::heaps();
    let part = |(rank, &[_, offset, bytes]): (usize, &StepAnswer)| {
        if rank == comm.rank() {
            return own.part(all.len(), bytes as usize);
        }
        let world = comm.world_rank(rank, "rank", ErrorKind::Rank)?;
        let heaps = heaps.ok_or_else(|| Error::new(SHARED, "bytes", "the job has no heaps"))?;
        Part::of(heaps, world, all.len(), offset, bytes)
    };
    all.iter().enumerate().map(part).collect()
}

/// Returns the result of a step if all ranks have succeeded. Otherwise returns an error that names the
/// first rank that failed; if this rank itself failed because memory ran out, returns this rank's own
/// error.
fn all_could<T>(all: &[StepAnswer], mine: Result<T>, what: &str) -> Result<T> {
    let class =
        |(rank, words): (usize, &StepAnswer)| Some((rank, ReplyWord::of(words[0]).class()?));
    match (all.iter().enumerate().find_map(class), mine) {
        (None, mine) => mine,
        (Some(_), Err(error)) if matches!(error.kind(), ErrorKind::NoMemory | SHARED) => Err(error),
        (Some((rank, class)), _) => {
            let kind = kind_of(class);
            let what = match kind {
                ErrorKind::NoMemory | SHARED => what,
                _ => "could not talk to the other ranks",
            };
            let detail = format!("rank {rank} of the communicator {what}");
            Err(Error::new(kind, "bytes", detail))
        }
    }
}

/// Sends `N` words to all ranks. Collective. Returns the words of all ranks, indexed by rank. In each round, a rank
/// sends the words that it knows to one other rank, which is twice as far away as in the previous round.
/// In the last round, the rank leaves out the words that the other rank already knows. So P ranks need
/// log2 P rounds, rounded up. The words may say that this rank has no memory, so they need none that can be refused.
///
/// If a round fails, this rank gets an error, and passes on [`LOST`] for all words that it should have received. A
/// [`ReplyWord`] of this value is an error.
pub(crate) fn tell<const N: usize>(comm: &Communicator, mine: [u64; N]) -> Result<Vec<[u64; N]>> {
    insist(|| exchange(comm, mine))
}

/// A word that has not arrived at a rank that should have passed it on.
pub(crate) const LOST: u64 = u64::MAX;

/// Does what [`tell`] does.
fn exchange<const N: usize>(comm: &Communicator, mine: [u64; N]) -> Result<Vec<[u64; N]>> {
    let (size, rank) = (comm.size(), comm.rank());
    let byte = bytes()?;
    // `known` holds the words of this rank, then the words of the next rank, and so on.
    let mut known = vec![[0; N]; size];
    known[0] = mine;
    let (mut step, mut result) = (1, Ok(()));
    while step < size {
        let count = step.min(size - step);
        let (have, rest) = known.split_at_mut(step);
        let len = (count * size_of::<[u64; N]>()) as u64;
        let round = comm.scope_in(Space::Region, |scope| -> Result<()> {
            let (to, from) = ((rank + size - step) % size, (rank + step) % size);
            let received =
                scope.irecv_elements(rest[..count].as_flattened_mut(), byte, len, from, 0);
            // Each message must be received, also if this one fails, because the messages of the next round are like
            // it.
            let sent = scope.isend_elements(have[..count].as_flattened(), byte, len, to, 0);
            scope.wait(received?)?;
            sent.map(drop)
        });
        let round = round.flatten();
        if round.is_err() {
            rest[..count].fill([LOST; N]);
        }
        // The other ranks wait for the words of this rank in each round, so a round that has failed does not end the
        // call.
        result = result.and(round);
        step *= 2;
    }
    known.rotate_right(rank);
    result.map(|()| known)
}
