//! Communicators made of communicators (MPI-5.0 section 7.4.2): duplicates, parts, groups.
//!
//! What a new communicator needs is a number that no other one has, known to all its ranks: its
//! contexts in the message engine. The rank that leads the new communicator (its rank 0) takes
//! the number from a counter of its own (`Endpoint::new_context`), which makes it unique however
//! many threads of however many ranks make communicators meanwhile, and sends it to the others, in a
//! schedule like that of any other collective call.

use crate::comm::{Communicator, Group, Operation};
use crate::commit::bytes;
use crate::endpoint::sources::Combine;
use crate::schedule::program::Builder;
use crate::schedule::table::Place;
use crate::schedule::{Part, calls};
use crate::{Error, ErrorKind, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A duplicate that is being made; see [`Communicator::idup`].
///
/// Dropping it ends this rank's part: the others fail.
#[derive(Debug)]
#[must_use = "the duplicate is there when it has been waited for"]
pub struct Duplicate {
    parent: Communicator,
    operation: Operation,
    number: Arc<Number>,
}

/// The number of a duplicate that is being made.
#[derive(Debug)]
struct Number {
    /// What the broadcast reads or writes, under the endpoint's lock.
    sent: AtomicU64,
    /// The number, once the broadcast is complete without error on this rank; [`UNKNOWN`] before.
    published: AtomicU64,
}

/// The last step of a duplicate's schedule: publishes the number. It may be read without the lock.
///
/// # Safety
///
/// - `sent` is readable for 8 bytes.
/// - `published` is the address of an `AtomicU64` that is valid and accessed by atomic operations only.
unsafe fn publish(sent: *const u8, published: *mut u8, _elements: usize) {
    // SAFETY: the caller guarantees that `sent` is readable for 8 bytes (first condition of `# Safety`).
    let number = unsafe { sent.cast::<u64>().read_unaligned() };
    // SAFETY: `published` is such an address (second condition of `# Safety`).
    unsafe { AtomicU64::from_ptr(published.cast()) }.store(number, Ordering::Release);
}

impl Duplicate {
    /// The operation that makes it, to be waited for with others.
    pub fn operation(&self) -> Operation {
        self.operation
    }

    /// The duplicate, once the operation is complete without error.
    ///
    /// # Errors
    /// The operation is not complete, or has failed.
    pub fn communicator(&self) -> Result<Communicator> {
        match self.number.published.load(Ordering::Acquire) {
            UNKNOWN => {
                let detail = "the duplicate is not complete, or has failed";
                Err(Error::new(ErrorKind::Request, "request", detail))
            }
            number => self.parent.same_ranks(number),
        }
    }

    /// Waits for the duplicate.
    ///
    /// # Errors
    /// [`ErrorKind::ProcAborted`] when a rank has died.
    #[doc(alias = "MPI_Wait")]
    pub fn wait(self) -> Result<Communicator> {
        self.parent.finish(self.operation)?;
        self.communicator()
    }

    /// The duplicate, if it is there.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    #[doc(alias = "MPI_Test")]
    pub fn test(&mut self) -> Result<Option<Communicator>> {
        if let Operation::Pending(id) = self.operation {
            match self.parent.test(id)? {
                Some(status) => self.operation = Operation::Done(status),
                None => return Ok(None),
            }
        }
        self.communicator().map(Some)
    }
}

impl Drop for Duplicate {
    fn drop(&mut self) {
        // Nothing is there any more under this number if it has been waited for.
        if let Operation::Pending(id) = self.operation {
            self.parent.endpoint().detach(id);
        }
    }
}

/// No communicator has this number.
const UNKNOWN: u64 = u64::MAX;

impl Communicator {
    fn derive(&self, number: u64, group: Group) -> Option<Self> {
        Self::new(self.endpoint().clone(), number, group)
    }

    fn same_ranks(&self, number: u64) -> Result<Self> {
        let dup = self.derive(number, self.group().clone());
        dup.ok_or_else(|| Error::new(ErrorKind::Internal, "comm", "has lost its own rank"))
    }

    /// The same ranks with message spaces of their own. Collective.
    ///
    /// # Errors
    /// [`ErrorKind::ProcAborted`] when a rank has died.
    #[doc(alias = "MPI_Comm_dup")]
    pub fn dup(&self) -> Result<Self> {
        let mut number = [self.endpoint().new_context()];
        self.broadcast_slice(&mut number, 0)?;
        self.same_ranks(number[0])
    }

    /// Starts to make [`dup`](Self::dup). Collective.
    ///
    /// ```
    /// # let universe = typepack::init()?;
    /// let world = universe.world();
    /// let duplicate = world.idup()?;
    /// // Other calls, also collective ones of the same communicator.
    /// world.barrier()?;
    /// assert_eq!(duplicate.wait()?.size(), world.size());
    /// # Ok::<(), typepack::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`dup`](Self::dup).
    #[doc(alias = "MPI_Comm_idup")]
    pub fn idup(&self) -> Result<Duplicate> {
        let first = if self.rank() == 0 { self.endpoint().new_context() } else { UNKNOWN };
        let (sent, published) = (AtomicU64::new(first), AtomicU64::new(UNKNOWN));
        let (place, number) = (self.next_place(), Arc::new(Number { sent, published }));
        let at = |number: &AtomicU64| number.as_ptr().cast::<u8>();
        let part = Part { origin: at(&number.sent), plan: bytes()?, count: 8 };
        // SAFETY: both words live in the result, which lets the operation go before it drops them. Only
        // the schedule accesses `sent`, and only `publish` writes `published`, by an atomic store.
        let operation = unsafe {
            calls::start(self.endpoint(), place, |steps| {
                self.broadcast_steps(steps, &part, 0, &[])?;
                steps.operation(&Combine::Native(publish));
                let last = steps.combine(at(&number.sent), at(&number.published), &part)?;
                steps.after_all(last);
                Ok(())
            })?
        };
        Ok(Duplicate { parent: self.clone(), operation, number })
    }

    /// The ranks that give the same color, ordered by key and then by their rank here; none for
    /// ranks without a color. Collective.
    ///
    /// # Errors
    /// [`ErrorKind::ProcAborted`] when a rank has died.
    #[doc(alias = "MPI_Comm_split")]
    pub fn split(&self, color: Option<u32>, key: i32) -> Result<Option<Self>> {
        // Every rank offers a number; that of the one who turns out to lead is taken.
        let mine = [
            color.map_or(u64::MAX, u64::from),
            i64::from(key) as u64,
            self.endpoint().new_context(),
        ];
        let all = self.all_words(&mine)?;
        let Some(color) = color else { return Ok(None) };
        let mut members: Vec<(i64, usize)> = all
            .iter()
            .enumerate()
            .filter(|(_, words)| words[0] == u64::from(color))
            .map(|(rank, words)| (words[1] as i64, rank))
            .collect();
        members.sort_unstable();
        let group = self.group().include(members.iter().map(|&(_, rank)| rank as i64))?;
        let leader = members.first().map_or(self.rank(), |&(_, rank)| rank);
        Ok(self.derive(all[leader][2], group))
    }

    /// The ranks that share memory, that is all of them, ordered as [`split`](Self::split) does;
    /// none for those who do not take part. Collective.
    ///
    /// # Errors
    /// As [`split`](Self::split).
    #[doc(alias = "MPI_Comm_split_type")]
    #[doc(alias = "MPI_COMM_TYPE_SHARED")]
    pub fn split_shared(&self, take_part: bool, key: i32) -> Result<Option<Self>> {
        self.split(take_part.then_some(0), key)
    }

    /// A communicator of `group`'s ranks in its order; none for ranks outside it. Ranks may give
    /// different groups if these have no member in common. Collective.
    ///
    /// # Errors
    /// [`ErrorKind::Group`] for members that this communicator does not have;
    /// [`ErrorKind::ProcAborted`] when a rank has died.
    #[doc(alias = "MPI_Comm_create")]
    pub fn create(&self, group: &Group) -> Result<Option<Self>> {
        self.among(group, self.next_place())
    }

    /// [`create`](Self::create), collective over `group` only. Threads that do this at the same
    /// time give different tags.
    ///
    /// # Errors
    /// As [`create`](Self::create); a negative tag.
    #[doc(alias = "MPI_Comm_create_group")]
    pub fn create_group(&self, group: &Group, tag: i32) -> Result<Option<Self>> {
        crate::comm::check_tag(tag)?;
        self.among(group, self.part_place(tag))
    }

    fn among(&self, group: &Group, place: Place) -> Result<Option<Self>> {
        if !group.is_subset_of(self.group()) {
            let detail = "has members that the communicator does not have";
            return Err(Error::new(ErrorKind::Group, "group", detail));
        }
        let members = (0..group.size()).map(|rank| group.translate(rank, self.group()));
        let members: Vec<usize> = members.collect::<Result<Option<Vec<_>>>>()?.unwrap_or_default();
        let Some((&leader, others)) = members.split_first() else { return Ok(None) };
        let mut number = [self.endpoint().new_context()];
        let part = Part { origin: number.as_mut_ptr().cast(), plan: bytes()?, count: 8 };
        let build = |steps: &mut Builder<'_, '_>| -> Result<()> {
            if leader == self.rank() {
                for &rank in others {
                    steps.send(&part, self.peer(rank)?)?;
                }
            } else if others.contains(&self.rank()) {
                steps.receive(&part, self.peer(leader)?)?;
            }
            Ok(())
        };
        // SAFETY: the array is not touched before the call returns.
        unsafe { calls::run(self.endpoint(), place, build)? };
        Ok(self.derive(number[0], group.clone()))
    }

    /// The three words of every rank: gathered at rank 0, and told from there.
    fn all_words(&self, mine: &[u64; 3]) -> Result<Vec<[u64; 3]>> {
        let mut all = vec![[0u64; 3]; self.size()];
        let byte = bytes()?;
        let part =
            |origin: *mut u8, ranks: usize| Part { origin, plan: byte, count: 24 * ranks as u64 };
        let base: *mut u8 = all.as_mut_ptr().cast();
        let parts: Vec<Part<'_>> =
            (0..self.size()).map(|rank| part(base.wrapping_add(24 * rank), 1)).collect();
        let own = part((&raw const *mine).cast_mut().cast(), 1);
        let place = self.next_place();
        // SAFETY: `mine` is only read; the parts are the elements of the vector, which is not
        // touched before the call returns.
        unsafe {
            calls::run(self.endpoint(), place, |steps| {
                let brought = self.gather_steps(steps, Some(&own), &parts, 0)?;
                self.broadcast_steps(steps, &part(base, self.size()), 0, &brought)
            })?;
        }
        Ok(all)
    }
}
