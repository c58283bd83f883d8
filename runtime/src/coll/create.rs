//! Makes communicators from other communicators (MPI-5.0 section 7.4.2): duplicates, splits, and
//! communicators of groups.
//!
//! A new communicator needs a number that no other communicator has and that all its ranks know. The number
//! selects the communicator's contexts (its message spaces) in the message engine. Each process has a
//! counter for such numbers (`Endpoint::new_context`). The new communicator gets a number from the counter
//! of its rank 0, and the other ranks get the number in a message. The number contains the world rank of
//! the rank that took it, so numbers stay unique even if many ranks and threads make communicators at the
//! same time.
//!
//! If a rank finds an error in its own arguments, the other ranks must not wait for it, and its next collective call
//! must match theirs. So that rank takes part in the call's exchange of words ([`Announcement`]) with the word
//! [`FAILED`], and does not wait (`fail_creation`). All other ranks then get an error too.
//!
//! An intercommunicator needs two numbers: one for itself, and one for the communicators of its two local groups
//! (these may have the same number, because no rank is in both groups). The rank 0 of each group gets a number from
//! its counter, and both groups learn both numbers (`intercommunicator.rs`).

mod intercommunicator;
pub(in crate::coll) mod topology;

use crate::comm::{Communicator, Group, Operation};
use crate::commit::bytes;
use crate::endpoint::sources::Combine;
use crate::error::check_memory;
use crate::placement::{self, Placement, Resource};
use crate::schedule::calls;
use crate::schedule::program::Builder;
use crate::schedule::table::Place;
use crate::shm::topology::Parts;
use crate::topo::Topology;
use crate::{Error, ErrorKind, Plan, Result};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use typepack_engine::Elements;

/// A communicator under construction: the duplicate of another communicator; see [`Communicator::idup`].
///
/// If the program drops this value before the duplicate is complete, this rank abandons the operation. The
/// operations of the ranks that would get the number of the duplicate from this rank then fail.
#[derive(Debug)]
#[must_use = "the duplicate exists only after `wait` or `test` has returned it"]
pub struct Duplicate {
    parent: Communicator,
    operation: Operation,
    number: Arc<Number>,
    /// The duplicate, after `communicator` has been called. All callers get the same value, because a communicator
    /// counts its collective calls.
    made: OnceLock<Communicator>,
}

/// The numbers of a duplicate that is under construction. The second one is only for intercommunicators.
#[derive(Debug)]
struct Number {
    /// The numbers. Rank 0 sends its words in messages, and the other ranks receive the messages into theirs. Only the
    /// schedule accesses these words, under the endpoint's lock.
    sent: [AtomicU64; 2],
    /// The numbers, after the messages have been received without error on this rank. Until then, the first one is
    /// [`UNKNOWN`].
    published: [AtomicU64; 2],
}

/// Publishes the numbers of a duplicate. This is the last step of the duplicate's schedule. After this
/// step any thread may read the numbers without the endpoint's lock.
///
/// # Safety
///
/// - `sent` is readable for 16 bytes.
/// - `published` is the address of two `AtomicU64` that are valid and that all threads access only by atomic
///   operations.
unsafe fn publish(sent: *const u8, _: *const u8, published: *mut u8, _elements: usize) {
    // SAFETY: the caller guarantees that `sent` is readable for 16 bytes (first condition of `# Safety`).
    let numbers = unsafe { sent.cast::<[u64; 2]>().read_unaligned() };
    // SAFETY: the caller guarantees that `published` is the address of two valid `AtomicU64` (second
    // condition of `# Safety`). An array of two has the address of its first one.
    let published = unsafe { &*published.cast::<[AtomicU64; 2]>() };
    published[1].store(numbers[1], Ordering::Relaxed);
    published[0].store(numbers[0], Ordering::Release);
}

impl Duplicate {
    /// Returns the operation that makes the duplicate, for callers that wait for several operations at once.
    pub fn operation(&self) -> Operation {
        self.operation
    }

    /// Returns the duplicate after the operation has completed without error.
    ///
    /// # Errors
    /// Returns [`ErrorKind::Request`] if the operation is not complete or has failed.
    pub fn communicator(&self) -> Result<Communicator> {
        let [first, second] = &self.number.published;
        match first.load(Ordering::Acquire) {
            UNKNOWN => {
                let detail = "the duplication of the communicator has not completed, or has failed";
                Err(Error::new(ErrorKind::Request, "request", detail))
            }
            number => {
                if let Some(made) = self.made.get() {
                    return Ok(made.clone());
                }
                let numbers = [number, second.load(Ordering::Relaxed)];
                let made = self.parent.same_ranks(numbers, self.parent.topology().cloned())?;
                Ok(self.made.get_or_init(|| made).clone())
            }
        }
    }

    /// Waits until the duplicate is complete, and returns it.
    ///
    /// # Errors
    /// Returns the error of the operation, or [`ErrorKind::ProcAborted`] if a rank has died.
    #[doc(alias = "MPI_Wait")]
    pub fn wait(self) -> Result<Communicator> {
        self.parent.finish(self.operation, "Duplicate::wait")?;
        self.communicator()
    }

    /// Returns the duplicate, or `None` while the operation is pending.
    ///
    /// # Errors
    /// Returns the error of the operation, or [`ErrorKind::ProcAborted`] if a rank has died.
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
        // If `wait` has finished the operation, no request has the number `id` any more, and `detach` does
        // nothing.
        if let Operation::Pending(id) = self.operation {
            self.parent.endpoint().detach(id);
        }
    }
}

/// The value of a number that is not known. No communicator has this number.
pub(super) const UNKNOWN: u64 = u64::MAX;

/// What each rank tells all ranks when they make a communicator: a color or another word that the ranks compare, a key,
/// and a new communicator number that the rank offers.
pub(super) type Announcement = [u64; 3];

/// The first word of a rank that is in no new communicator.
pub(super) const NO_COLOR: u64 = u64::MAX;

/// The first word of a rank that has found an error in its own arguments. No color has this value.
const FAILED: u64 = u64::MAX - 1;

impl Communicator {
    /// Returns the communicator with this number and group, or `None` if this process is not in the group. The ranks
    /// have agreed on the number, so a rank that fails here lets no other rank wait.
    ///
    /// # Errors
    /// Returns `ErrorKind::NoMemory` if memory is short.
    pub(super) fn derive(&self, number: u64, group: Group) -> Result<Option<Self>> {
        check_memory()?;
        Ok(Self::new(self.endpoint().clone(), number, group))
    }

    /// Returns the communicator with these numbers and the ranks of this communicator. An intracommunicator has
    /// only the first number, and may have a topology.
    fn same_ranks(&self, numbers: [u64; 2], topology: Option<Topology>) -> Result<Self> {
        let group = self.group().clone();
        let dup = match self.remote_group() {
            None => self.derive(numbers[0], group)?,
            Some(remote) => self.derive_between(numbers, group, remote.clone())?,
        };
        let dup = dup.ok_or_else(|| {
            let detail = "this process is not in the group of its own communicator";
            Error::new(ErrorKind::Internal, "comm", detail)
        })?;
        topology.into_iter().try_fold(dup, Self::with_topology)
    }

    /// Makes a communicator that has the same ranks, its own message spaces and this topology. Collective. If a rank
    /// has called [`fail_creation`](Self::fail_creation) instead, all ranks get an error.
    pub(super) fn dup_with(&self, topology: Topology) -> Result<Self> {
        let number = self.agreed_number()?;
        self.with_number(number, topology)
    }

    /// Returns the communicator with this number, the ranks of this intracommunicator and this topology.
    pub(super) fn with_number(&self, number: u64, topology: Topology) -> Result<Self> {
        self.same_ranks([number, UNKNOWN], Some(topology))
    }

    /// Returns the new number that rank 0 offers. Collective. If a rank has called
    /// [`fail_creation`](Self::fail_creation) instead, all ranks get an error.
    pub(crate) fn agreed_number(&self) -> Result<u64> {
        Ok(self.all_words(&[0, 0, self.endpoint().new_context()])?[0][2])
    }

    /// Takes part in a call that makes a communicator, as a rank that has found an error in its own arguments and so
    /// makes no communicator. The call does not wait. All other ranks get [`ErrorKind::Other`], and the next collective
    /// call of this rank matches the next one of the other ranks.
    ///
    /// This function can replace every call that makes a communicator from another one, except [`dup`](Self::dup),
    /// [`idup`](Self::idup), [`create_group`](Self::create_group) and [`intercommunicator`](Self::intercommunicator).
    #[doc(hidden)]
    pub fn fail_creation(&self) {
        self.fail_exchange::<3>();
    }

    /// Takes part in [`exchange_words`](Self::exchange_words) with `N` words, as a rank that fails. Does not wait.
    pub(super) fn fail_exchange<const N: usize>(&self) {
        self.fail_exchange_at::<N>(self.next_place());
    }

    /// Like [`fail_exchange`](Self::fail_exchange), for a call that has taken its place already.
    pub(super) fn fail_exchange_at<const N: usize>(&self, place: Place) {
        // If the operation does not start, the job or this process is ending, and no later call needs to match.
        let _gone = self.start_failed::<N>(place);
    }

    fn start_failed<const N: usize>(&self, place: Place) -> Result<()> {
        let (ours, theirs) = (self.size(), self.remote_group().map_or(0, Group::size));
        let mut words = [0; N];
        words[0] = FAILED;
        let mut exchange = Exchange::new(&words, ours, theirs);
        // SAFETY: `exchange` owns all memory of the steps. The call below detaches the operation before the value is
        // dropped, and a detached operation does not use the memory of the call.
        let operation =
            unsafe { calls::start(self.endpoint(), place, |steps| exchange.list(self, steps))? };
        if let Operation::Pending(id) = operation {
            self.endpoint().detach(id);
        }
        Ok(())
    }

    /// Duplicates the communicator: the duplicate has the same ranks, its own message spaces and the same
    /// topology. Collective.
    ///
    /// # Errors
    /// Returns [`ErrorKind::ProcAborted`] if a rank has died.
    #[doc(alias = "MPI_Comm_dup")]
    pub fn dup(&self) -> Result<Self> {
        if self.is_inter() {
            let numbers = self.exchange_numbers(self.endpoint().new_context())?;
            return self.same_ranks(numbers, None);
        }
        let mut number = [self.endpoint().new_context()];
        self.broadcast_elements(&mut number, bytes()?, size_of::<u64>() as u64, 0)?;
        self.same_ranks([number[0], UNKNOWN], self.topology().cloned())
    }

    /// Starts to duplicate the communicator, like [`dup`](Self::dup), and does not wait. Collective.
    ///
    /// ```
    /// # let universe = typepack::init()?;
    /// let world = universe.world();
    /// let duplicate = world.idup()?;
    /// // The program may make other calls, also collective calls on the same communicator.
    /// world.barrier()?;
    /// assert_eq!(duplicate.wait()?.size(), world.size());
    /// # Ok::<(), typepack::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`ErrorKind::ProcAborted`] if a rank has died.
    #[doc(alias = "MPI_Comm_idup")]
    pub fn idup(&self) -> Result<Duplicate> {
        let first = if self.rank() == 0 { self.endpoint().new_context() } else { UNKNOWN };
        let words = |first| [AtomicU64::new(first), AtomicU64::new(UNKNOWN)];
        let (sent, published) = (words(first), words(UNKNOWN));
        let (place, number) = (self.next_place(), Arc::new(Number { sent, published }));
        let at = |numbers: &[AtomicU64; 2]| numbers.as_ptr().cast::<u8>().cast_mut();
        let part = Elements { origin: at(&number.sent), plan: bytes()?, count: 16 };
        // SAFETY: the words `sent` and `published` live in the result, which detaches the operation before it
        // drops the words. Only the schedule accesses `sent`. Only `publish` writes `published`, by an atomic
        // store.
        let operation = unsafe {
            calls::start(self.endpoint(), place, |steps| {
                self.numbers_steps(steps, &part)?;
                steps.operation(&Combine::Native(publish));
                let last = steps.combine(at(&number.sent), at(&number.published), &part)?;
                steps.after_all(last);
                Ok(())
            })?
        };
        Ok(Duplicate { parent: self.clone(), operation, number, made: OnceLock::new() })
    }

    /// Makes a communicator of all ranks that pass the same color, ordered by `key` and then by rank. Returns
    /// `None` to a rank that passes no color. Collective.
    ///
    /// From an intercommunicator, this call makes one intercommunicator for each color that ranks of both groups
    /// pass. Ranks whose color no rank of the remote group passes get `None`.
    ///
    /// # Errors
    /// Returns [`ErrorKind::ProcAborted`] if a rank has died.
    #[doc(alias = "MPI_Comm_split")]
    pub fn split(&self, color: Option<u32>, key: i32) -> Result<Option<Self>> {
        if self.is_inter() {
            return self.split_between(color, key.into());
        }
        // Every rank offers a new number. Each new communicator gets the number that its own rank 0 has
        // offered.
        let mine = [
            color.map_or(NO_COLOR, u64::from),
            i64::from(key) as u64,
            self.endpoint().new_context(),
        ];
        let all = self.all_words(&mine)?;
        let Some(color) = color else { return Ok(None) };
        let members = of_color(&all, color);
        let group = self.group().include(members.iter().map(|&rank| rank as i64))?;
        let leader = members.first().copied().unwrap_or(self.rank());
        self.derive(all[leader][2], group)
    }

    /// Makes a communicator of the participating ranks that share memory, ordered by `key` and then by rank.
    /// All ranks of a job share memory, so the result contains all participating ranks. Returns `None` to a
    /// rank that does not take part. Collective.
    ///
    /// # Errors
    /// Returns [`ErrorKind::ProcAborted`] if a rank has died.
    #[doc(alias = "MPI_Comm_split_type")]
    #[doc(alias = "MPI_COMM_TYPE_SHARED")]
    pub fn split_shared(&self, take_part: bool, key: i32) -> Result<Option<Self>> {
        self.split(take_part.then_some(0), key)
    }

    /// Makes a communicator of the participating ranks that are bound to the same part of the machine of the kind
    /// `resource`, ordered by `key` and then by rank. `placement` is that of the job
    /// ([`Universe::placement`](crate::Universe::placement)). Returns `None` to a rank that is not bound to one such
    /// part. Collective.
    ///
    /// # Errors
    /// Returns [`ErrorKind::ProcAborted`] if a rank has died.
    #[doc(alias = "MPI_Comm_split_type")]
    #[doc(alias = "MPI_COMM_TYPE_HW_GUIDED")]
    pub fn split_resource(
        &self,
        placement: Option<&Placement>,
        resource: Resource,
        key: i32,
    ) -> Result<Option<Self>> {
        let endpoint = self.endpoint();
        let rank = endpoint.rank() - endpoint.world().start;
        self.split(part_of(placement, rank, resource), key)
    }

    /// Returns the largest kind of machine part ([`Resource`]) that divides the ranks of this communicator: not all
    /// ranks are bound to the same part of this kind. Returns `None` if there is no such kind. All ranks get the same
    /// answer.
    #[doc(alias = "MPI_COMM_TYPE_HW_UNGUIDED")]
    pub fn dividing_resource(&self) -> Option<Resource> {
        let groups = [Some(self.group()), self.remote_group()];
        let ranks: Vec<usize> = groups
            .into_iter()
            .flatten()
            .flat_map(|group| (0..group.size()).filter_map(|rank| group.world_rank(rank)))
            .collect();
        let bound = |slot: &usize| self.endpoint().bound_parts(*slot);
        let parts: Vec<_> = ranks.iter().map(bound).collect();
        Resource::ALL.into_iter().find(|&resource| {
            let number = |parts: &Option<Parts>| placement::part_of(parts.as_ref()?, resource);
            parts.iter().any(|parts_of| number(parts_of) != number(&parts[0]))
        })
    }

    /// Makes a communicator of `group`'s ranks in the order of the group. Returns `None` to a rank outside
    /// the group. Ranks may pass different groups if the groups have no member in common. Collective.
    ///
    /// From an intercommunicator, this call makes an intercommunicator. Each rank passes a part of its local group. All
    /// ranks get `None` if the part of one of the two groups is empty.
    ///
    /// # Errors
    /// Returns [`ErrorKind::Group`] if `group` has a member that the local group of this communicator does not have,
    /// [`ErrorKind::Other`] if another rank found such an error, and [`ErrorKind::ProcAborted`] if a rank has died.
    #[doc(alias = "MPI_Comm_create")]
    pub fn create(&self, group: &Group) -> Result<Option<Self>> {
        self.check_members(group).inspect_err(|_| self.fail_creation())?;
        if self.is_inter() {
            return self.create_between(group);
        }
        let all = self.all_words(&[0, 0, self.endpoint().new_context()])?;
        let Some(leader) = group.world_rank(0) else { return Ok(None) };
        let leader = self.group().rank_of(leader).unwrap_or(self.rank());
        self.derive(all[leader][2], group.clone())
    }

    /// Makes a communicator like [`create`](Self::create), but only the ranks of `group` take part in the
    /// call. Threads that make such calls at the same time must pass different tags.
    ///
    /// # Errors
    /// Returns the errors of [`create`](Self::create), [`ErrorKind::Tag`] if `tag` is negative, and
    /// [`ErrorKind::Comm`] for an intercommunicator.
    #[doc(alias = "MPI_Comm_create_group")]
    pub fn create_group(&self, group: &Group, tag: i32) -> Result<Option<Self>> {
        self.check_intra("comm")?;
        crate::comm::check_tag(tag)?;
        self.among(group, self.part_place(tag))
    }

    /// Checks that the local group has all members of `group`.
    pub(super) fn check_members(&self, group: &Group) -> Result<()> {
        if group.is_subset_of(self.group()) {
            return Ok(());
        }
        let is_missing = |&rank: &usize| matches!(group.translate(rank, self.group()), Ok(None));
        let missing = (0..group.size()).find(is_missing).unwrap_or_default();
        let detail = format!("rank {missing} of the group is not a member of the communicator");
        Err(Error::new(ErrorKind::Group, "group", detail))
    }

    fn among(&self, group: &Group, place: Place) -> Result<Option<Self>> {
        self.check_members(group)?;
        let members = (0..group.size()).map(|rank| group.translate(rank, self.group()));
        let members: Vec<usize> = members.collect::<Result<Option<Vec<_>>>>()?.unwrap_or_default();
        let Some((&leader, others)) = members.split_first() else { return Ok(None) };
        let mut number = [self.endpoint().new_context()];
        let part = Elements { origin: number.as_mut_ptr().cast(), plan: bytes()?, count: 8 };
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
        // SAFETY: `part` describes the eight bytes of the local variable `number`. No other code accesses
        // `number` before the call returns.
        unsafe { calls::run(self.endpoint(), ("", self.size()), place, build)? };
        self.derive(number[0], group.clone())
    }

    /// Returns the words of every rank, in rank order. Each rank passes its own words as `mine`; rank 0 gathers all
    /// words and broadcasts them. Collective.
    ///
    /// # Errors
    /// Returns [`ErrorKind::Other`] if a rank has called [`fail_creation`](Self::fail_creation) instead, and
    /// [`ErrorKind::ProcAborted`] if a rank has died.
    pub(super) fn all_words(&self, mine: &Announcement) -> Result<Vec<Announcement>> {
        Ok(self.exchange_words(mine)?.0)
    }

    /// Returns the words of every rank of the local group and of every rank of the remote group; the second list is
    /// empty in an intracommunicator. Collective.
    ///
    /// # Errors
    /// Returns [`ErrorKind::Other`] if a rank has called [`fail_creation`](Self::fail_creation) instead, and
    /// [`ErrorKind::ProcAborted`] if a rank has died.
    pub(super) fn exchange_words<const N: usize>(&self, mine: &[u64; N]) -> Result<BothGroups<N>> {
        let place = self.next_place();
        let (ours, theirs) = (self.size(), self.remote_group().map_or(0, Group::size));
        let mut exchange = Exchange::new(mine, ours, theirs);
        // SAFETY: `exchange` owns all memory of the steps. It lives until the call returns, and no other code uses it
        // before then.
        unsafe {
            calls::run(self.endpoint(), ("", self.size()), place, |steps| {
                exchange.list(self, steps)
            })?
        };
        let mut all = exchange.all;
        check_failed(&all, ours)?;
        let theirs = all.split_off(ours);
        Ok((all, theirs))
    }
}

/// Checks that no rank has passed the word [`FAILED`]. `all` has the words of the ranks of the local group, whose
/// number is `ours`, and then those of the remote group.
///
/// # Errors
/// Returns `ErrorKind::Other` if a rank has.
pub(super) fn check_failed<const N: usize>(all: &[[u64; N]], ours: usize) -> Result<()> {
    let Some(rank) = all.iter().position(|words| words[0] == FAILED) else { return Ok(()) };
    let (rank, group) = match rank.checked_sub(ours) {
        None => (rank, "this group"),
        Some(rank) => (rank, "the remote group"),
    };
    let detail = format!(
        "rank {rank} of {group} could not take part in the call; its own error has the reason"
    );
    Err(Error::new(ErrorKind::Other, "comm", detail))
}

/// The words of every rank of the local group, and of every rank of the remote group.
type BothGroups<const N: usize> = (Vec<[u64; N]>, Vec<[u64; N]>);

/// The memory of an exchange of words between all ranks of a communicator.
struct Exchange<const N: usize> {
    mine: [u64; N],
    /// The words of the ranks of the local group, and then those of the ranks of the remote group.
    all: Vec<[u64; N]>,
    ours: usize,
}

impl<const N: usize> Exchange<N> {
    fn new(mine: &[u64; N], ours: usize, theirs: usize) -> Self {
        Self { mine: *mine, all: vec![[0; N]; ours + theirs], ours }
    }

    /// Adds the steps of the exchange. They read `mine`, and write and read `all`.
    fn list(&mut self, comm: &Communicator, steps: &mut Builder<'_, '_>) -> Result<()> {
        let ranks = (self.ours, self.all.len() - self.ours);
        let (mine, all) = ((&raw mut self.mine).cast(), self.all.as_mut_ptr().cast());
        exchange_steps(comm, steps, (mine, all), size_of::<[u64; N]>(), ranks)
    }
}

/// Adds the steps of an exchange of words between all ranks of a communicator. Each rank passes `length` bytes at
/// `mine`. The steps write the bytes of all ranks to `all`: first those of the local group, whose size is `ours`, then
/// those of the remote group, whose size is `theirs`.
pub(super) fn exchange_steps(
    comm: &Communicator,
    steps: &mut Builder<'_, '_>,
    (mine, all): (*mut u8, *mut u8),
    length: usize,
    (ours, theirs): (usize, usize),
) -> Result<()> {
    let plan = bytes()?;
    let part = |first: usize, ranks: usize| Elements {
        origin: all.wrapping_add(length * first),
        plan,
        count: (length * ranks) as u64,
    };
    let parts: Vec<Elements<&Plan>> = (0..ours).map(|rank| part(rank, 1)).collect();
    let own = Elements { origin: mine, plan, count: length as u64 };
    let local = if comm.is_inter() { comm.local_side("comm")? } else { comm };
    let mut before = local.gather_steps(steps, Some(&own), &parts, 0)?;
    if comm.is_inter() {
        let (here, there) = (part(0, ours), part(ours, theirs));
        before = comm.leaders_steps(steps, &here, &there, &before)?;
    }
    local.broadcast_steps(steps, &part(0, ours + theirs), 0, &before)
}

/// Returns the number of the machine part of the kind `resource` to which a rank of the world is restricted; `None` if
/// there is no such part. All ranks share the machine, so `Machine` needs no placement.
fn part_of(placement: Option<&Placement>, rank: usize, resource: Resource) -> Option<u32> {
    match resource {
        Resource::Machine => Some(0),
        resource => placement?.part(rank, resource),
    }
}

/// Returns the ranks that pass the color, in the order of their keys and then of their ranks. The words of a rank
/// are its color, its key and the number that it offers.
pub(super) fn of_color(all: &[Announcement], color: u32) -> Vec<usize> {
    let ranks = all.iter().enumerate().filter(|(_, words)| words[0] == u64::from(color));
    let mut ranks: Vec<(i64, usize)> = ranks.map(|(rank, words)| (words[1] as i64, rank)).collect();
    ranks.sort_unstable();
    ranks.into_iter().map(|(_, rank)| rank).collect()
}
