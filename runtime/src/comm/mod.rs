//! Communicators. A communicator checks the arguments of a call and then passes the call to
//! `endpoint/progress.rs`.
//!
//! This file has the communicator, its message spaces, and the checks of arguments. `shared.rs` has what its clones
//! share, `blocking.rs` the blocking calls, `scope.rs` the safe nonblocking calls, `raw.rs` the calls on memory that the
//! caller manages, `pending.rs` the wait before a disconnect, and `group.rs` groups. Every call first checks rank, tag,
//! count and buffer, and starts nothing if a check fails. Collective calls, including the construction of
//! communicators, are in `coll/`; the topologies that a communicator may have are in `topo/`.
//!
//! An intercommunicator has a local and a remote group. Its calls take ranks of the remote group. It also keeps
//! the communicator of its local group, because some of its collective calls move data within the group.
//!
//! Invariant: when a call starts, this file translates ranks of the communicator into the slots that the
//! message engine uses (`process`, `sender`). When a call ends, it translates the source in the status back
//! into a rank of the communicator (`local`). `peers.rs` has the tables.

mod blocking;
mod group;
mod peers;
mod pending;
mod raw;
mod scope;
mod shared;

pub use group::{Comparison, Group, RankRange};
pub use raw::{Cancelled, Matched, Messages, Ongoing, SendMode};
pub use scope::{Request, Scope};
pub(crate) use shared::WeakCommunicator;

use crate::error::check_memory;
use crate::message::payload::Posting;
use crate::message::typecheck::OF_LAYOUT;
pub use crate::message::{Operation, Source, Status, Tag};

use crate::endpoint::call;
use crate::endpoint::progress::{Awaited, Endpoint};
use crate::message::label::{Label, SPACES, Sender};
use crate::process::Process;
use crate::schedule::table::{Place, ROUNDS};
use crate::shm::waiting::Kind;
use crate::topo::Topology;
use crate::{Error, ErrorKind, Plan, Result};
use bytemuck::{AnyBitPattern, NoUninit};
use peers::Peers;
use shared::Shared;
use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use typepack_engine::{Elements, check_bounds};

/// A group of ranks that can exchange messages. Messages of one communicator never match receives of another
/// communicator.
///
/// All clones refer to the same communicator. Any thread may use them.
#[doc(alias = "MPI_Comm")]
#[derive(Clone)]
pub struct Communicator {
    shared: Arc<Shared>,
}

impl fmt::Debug for Communicator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Communicator")
            .field("rank", &self.rank())
            .field("size", &self.size())
            .field("context", &self.shared.context)
            .finish()
    }
}

/// A message space of a communicator. A message of one space never matches a receive of another space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Space {
    /// The user's messages.
    User = 0,
    /// Collective calls.
    Collective = 1,
    /// The messages of calls that only some of the ranks make (`Communicator::create_group`). The user's tag
    /// distinguishes these calls.
    Part = 2,
    /// The messages of calls that make and free memory that the ranks share (`region/`).
    Region = 3,
    /// Persistent collective operations.
    Persistent = 4,
    /// The messages of two leaders that connect their groups by an intercommunicator. The user's tag
    /// distinguishes these calls.
    Leaders = 5,
    /// The requests of one-sided calls to ranks whose memory the caller cannot map, and the answers (`rma/`).
    Window = 6,
    /// The messages by which partitioned sends name themselves to their receivers (`partitioned/`).
    Partitioned = 7,
}

impl Space {
    /// Number of contexts of a communicator. It is at least the number of spaces.
    const COUNT: u64 = SPACES;
}

impl Communicator {
    /// Returns the communicator with this number and group, or `None` if this process is not in the group.
    pub(crate) fn new(endpoint: Arc<Endpoint>, number: u64, group: Group) -> Option<Self> {
        let peers = Peers::within(group, endpoint.rank())?;
        // The product fits in a `u64`, because a communicator's number has 60 bits: 12 bits for the world
        // rank of the rank that took the number, and 48 bits for the counter of that rank.
        let context = number * Space::COUNT;
        Some(Self { shared: Shared::new(endpoint, context, peers) })
    }

    /// Returns the intercommunicator with this number between the group of `local` and `remote`. The groups
    /// have no common member. Every rank of both groups has the same number, and every rank of a group has
    /// the same `local`, which the program does not have.
    pub(crate) fn between(number: u64, local: Self, remote: Group) -> Option<Self> {
        let endpoint = local.endpoint().clone();
        let peers = Peers::between(local.group().clone(), remote, endpoint.rank())?;
        let context = number * Space::COUNT;
        let shared = Shared::with(endpoint, context, peers, Some(local.clone()));
        // The intercommunicator has the bonds of its local group, which nobody but this file and `coll/` knows.
        local.shared.unbind();
        Some(Self { shared })
    }

    /// Returns the communicator of the ranks that started together with this one. Its number is 0. Another world also
    /// has the number 0, but has no common member with this one, and no messages go from one to the other with it.
    pub(crate) fn world(endpoint: Arc<Endpoint>) -> Self {
        let peers = Peers::world(endpoint.world(), endpoint.rank());
        Self { shared: Shared::new(endpoint, 0, peers) }
    }

    /// Returns the communicator that contains only this rank.
    pub(crate) fn own(endpoint: Arc<Endpoint>) -> Self {
        let peers = Peers::single(endpoint.rank());
        let context = endpoint.new_context() * Space::COUNT;
        Self { shared: Shared::new(endpoint, context, peers) }
    }

    /// Returns this communicator without keeping it alive.
    pub(crate) fn downgrade(&self) -> WeakCommunicator {
        WeakCommunicator(Arc::downgrade(&self.shared))
    }

    /// Returns the number of collective calls so far, modulo 2^32.
    pub(crate) fn calls(&self) -> u64 {
        self.shared.collectives.load(Ordering::Relaxed).into()
    }

    pub(crate) fn endpoint(&self) -> &Arc<Endpoint> {
        &self.shared.endpoint
    }

    fn context(&self, space: Space) -> u64 {
        self.shared.context + space as u64
    }

    /// Returns the context of a message space.
    pub(crate) fn space(&self, space: Space) -> u64 {
        self.context(space)
    }

    /// Returns the rank of this process, counted from 0.
    #[doc(alias = "MPI_Comm_rank")]
    pub fn rank(&self) -> usize {
        self.shared.peers.rank()
    }

    /// Returns the number of ranks. For an intercommunicator, this is the size of the local group.
    #[doc(alias = "MPI_Comm_size")]
    pub fn size(&self) -> usize {
        self.group().size()
    }

    /// Returns the group of the communicator's ranks. For an intercommunicator, this is the local group, to
    /// which this process belongs.
    #[doc(alias = "MPI_Comm_group")]
    pub fn group(&self) -> &Group {
        self.shared.peers.local()
    }

    /// Returns whether this is an intercommunicator.
    #[doc(alias = "MPI_Comm_test_inter")]
    #[inline]
    pub fn is_inter(&self) -> bool {
        self.shared.local.is_some()
    }

    /// Returns the remote group of an intercommunicator, or `None` if this is an intracommunicator.
    #[doc(alias = "MPI_Comm_remote_group")]
    #[doc(alias = "MPI_Comm_remote_size")]
    pub fn remote_group(&self) -> Option<&Group> {
        self.shared.peers.remote()
    }

    /// Returns the group whose ranks are the destinations, sources and roots of the calls: the remote group of
    /// an intercommunicator, and the only group of an intracommunicator.
    #[inline]
    pub fn peers(&self) -> &Group {
        self.shared.peers.named()
    }

    /// Returns the communicator of the local group of an intercommunicator.
    ///
    /// # Errors
    /// Returns [`ErrorKind::Comm`] if this is an intracommunicator.
    pub(crate) fn local_side(&self, argument: &'static str) -> Result<&Self> {
        self.shared.local.as_ref().ok_or_else(|| {
            let detail = "the call needs an intercommunicator; this is an intracommunicator";
            Error::new(ErrorKind::Comm, argument, detail)
        })
    }

    /// Checks that this is an intracommunicator. `argument` is the name of the communicator in the call.
    ///
    /// # Errors
    /// Returns [`ErrorKind::Comm`] if this is an intercommunicator.
    #[inline]
    pub fn check_intra(&self, argument: &'static str) -> Result<()> {
        if !self.is_inter() {
            return Ok(());
        }
        let detail = "the call needs an intracommunicator; this is an intercommunicator";
        Err(Error::new(ErrorKind::Comm, argument, detail))
    }

    /// Returns the relation of two communicators: `Identical` for the same communicator, `Congruent` for
    /// different communicators with equal groups, and otherwise the relation of their groups. For
    /// intercommunicators, the relation holds for the local and for the remote groups. An intercommunicator
    /// and an intracommunicator are `Unequal`.
    #[doc(alias = "MPI_Comm_compare")]
    pub fn compare(&self, other: &Self) -> Comparison {
        if Arc::ptr_eq(&self.shared, &other.shared) {
            return Comparison::Identical;
        }
        let groups = match (self.remote_group(), other.remote_group()) {
            (None, None) => self.group().compare(other.group()),
            (Some(remote), Some(others)) => {
                match (self.group().compare(other.group()), remote.compare(others)) {
                    (Comparison::Unequal, _) | (_, Comparison::Unequal) => Comparison::Unequal,
                    (Comparison::Identical, Comparison::Identical) => Comparison::Identical,
                    _ => Comparison::Similar,
                }
            }
            _ => Comparison::Unequal,
        };
        match groups {
            Comparison::Identical => Comparison::Congruent,
            other => other,
        }
    }

    /// Returns the topology of the communicator, or `None` if it has none. A duplicate of a communicator has
    /// the same topology.
    #[doc(alias = "MPI_Topo_test")]
    pub fn topology(&self) -> Option<&Topology> {
        self.shared.topology.get()
    }

    /// Gives a new communicator its topology.
    ///
    /// # Errors
    /// Returns `ErrorKind::Internal` if the communicator has a topology.
    pub(crate) fn with_topology(self, topology: Topology) -> Result<Self> {
        match self.shared.topology.set(topology) {
            Ok(()) => Ok(self),
            Err(_) => {
                let detail = "the new communicator already has a topology";
                Err(Error::new(ErrorKind::Internal, "comm", detail))
            }
        }
    }

    /// Returns the value that `coll/` keeps with the communicator. The first call makes the value. Returns `None`
    /// if the communicator keeps a value of another type.
    #[inline]
    pub(crate) fn attached<T: Any + Send + Sync>(&self, make: impl FnOnce() -> T) -> Option<&T> {
        self.shared.attached.get_or_init(|| Box::new(make())).downcast_ref()
    }

    // ---- contexts and tags of collective calls ----

    /// Returns the context and tag of the next collective call. Even a call that fails before it starts
    /// anything takes a tag, so that all ranks keep the same count.
    #[inline]
    pub(crate) fn next_place(&self) -> Place {
        let number = self.shared.collectives.fetch_add(1, Ordering::Relaxed);
        Place { context: self.context(Space::Collective), tag: (number & i32::MAX as u32) as i32 }
    }

    /// Returns the context of the next persistent collective operation and the tag of its first round.
    pub(crate) fn next_persistent_place(&self) -> Place {
        let number = self.shared.persistent.fetch_add(1, Ordering::Relaxed);
        let tag = (number % (i32::MAX / ROUNDS) as u32) as i32 * ROUNDS;
        Place { context: self.context(Space::Persistent), tag }
    }

    /// Returns the context and tag of the messages between two leaders. The leaders have agreed on `tag`.
    pub(crate) fn leaders_place(&self, tag: i32) -> Place {
        Place { context: self.context(Space::Leaders), tag }
    }

    /// Returns the context and tag of a call that only some of the ranks make. These ranks have agreed on
    /// `tag`.
    pub(crate) fn part_place(&self, tag: i32) -> Place {
        Place { context: self.context(Space::Part), tag }
    }

    // ---- translation between ranks of the communicator and ranks of the world ----

    /// Returns the world rank of `rank`, a rank of this communicator.
    #[inline]
    pub(crate) fn world_rank(
        &self,
        rank: usize,
        argument: &'static str,
        kind: ErrorKind,
    ) -> Result<usize> {
        self.shared.peers.world_rank(rank, argument, kind)
    }

    /// Returns the process that has the rank `rank` in this communicator.
    #[inline]
    pub(crate) fn process(
        &self,
        rank: usize,
        argument: &'static str,
        kind: ErrorKind,
    ) -> Result<Process> {
        self.shared.peers.process(rank, argument, kind)
    }

    /// Translates a source into the form that the message engine uses.
    #[inline]
    fn sender(&self, source: Source) -> Result<Sender> {
        self.shared.peers.sender(source)
    }

    /// Translates the source in a status of the message engine into a rank of this communicator.
    #[inline]
    pub(crate) fn local(&self, status: Status) -> Result<Status> {
        self.shared.peers.status(status)
    }

    /// If an operation has already completed, translates its status like [`local`](Self::local). Returns a
    /// pending operation unchanged.
    #[inline]
    pub(crate) fn local_start(&self, started: Operation) -> Result<Operation> {
        match started {
            Operation::Done(status) => self.local(status).map(Operation::Done),
            pending @ Operation::Pending(_) => Ok(pending),
        }
    }

    // ---- waits ----

    /// Returns what a call waits for that waits for other ranks of this communicator, or only for the rank `peer`.
    /// `call` is the name of the method, or empty.
    pub(crate) fn awaited(&self, call: &'static str, kind: Kind, peer: Option<usize>) -> Awaited {
        let peer = peer.and_then(|peer| self.group().world_rank(peer));
        Awaited::Ranks { call, kind, context: self.shared.context, ranks: self.size(), peer }
    }

    /// Gives the communicator a name, by which mpiexec names it when it tells what the ranks wait for.
    #[doc(alias = "MPI_Comm_set_name")]
    pub fn set_name(&self, name: impl AsRef<[u8]>) {
        let name = name.as_ref();
        call::name_communicator(self.shared.context, name);
        self.shared.named.store(!name.is_empty(), Ordering::Relaxed);
    }

    // ---- checks ----

    pub(crate) fn check_rank(
        &self,
        rank: usize,
        argument: &'static str,
        kind: ErrorKind,
    ) -> Result<()> {
        self.shared.peers.check(rank, argument, kind)
    }

    // ---- starting a send or a receive in one of the message spaces ----

    /// Starts a send of `layout` to rank `dest` in one of the message spaces.
    ///
    /// # Safety
    ///
    /// - The memory of `layout` is readable and unchanged until the send is complete or detached.
    pub(crate) unsafe fn start_send(
        &self,
        layout: &Elements<&Plan>,
        dest: usize,
        tag: i32,
        space: Space,
    ) -> Result<Operation> {
        check_memory()?;
        let dest = self.process(dest, "dest", ErrorKind::Rank)?;
        check_tag(tag)?;
        let bytes = layout.plan.packed_bytes(layout.count)?;
        let label = Label { context: self.context(space), tag, bytes, types: OF_LAYOUT };
        // SAFETY: the caller guarantees that the memory of `layout` stays readable and unchanged until the
        // send is complete or detached (the condition of `# Safety`). `label.bytes` is the packed size of
        // `layout`.
        let started = unsafe { self.shared.endpoint.send(layout, label, dest)? };
        self.local_start(started)
    }

    /// Starts a receive into `layout` in one of the message spaces.
    ///
    /// # Safety
    ///
    /// - Until the receive is complete or detached, the memory of `layout` is writable and nobody else
    ///   accesses it.
    pub(crate) unsafe fn start_receive(
        &self,
        layout: &Elements<&Plan>,
        source: Source,
        tag: Tag,
        space: Space,
    ) -> Result<Operation> {
        check_memory()?;
        let source = self.sender(source)?;
        check_receive_tag(tag)?;
        let posting = Posting::new(*layout, self.context(space), source, tag)?;
        // SAFETY: the caller guarantees that, until the receive is complete or detached, the memory of
        // `layout` is writable and nobody else accesses it (the condition of `# Safety`). `Posting::new`
        // takes the capacity from the plan.
        let started = unsafe { self.shared.endpoint.receive(&posting)? };
        self.local_start(started)
    }

    /// Waits for an operation. `call` is the name of the method that waits, or empty for a blocking send or receive.
    pub(crate) fn finish(&self, started: Operation, call: &'static str) -> Result<Status> {
        match started {
            Operation::Done(status) => Ok(status),
            Operation::Pending(id) => self.local(self.shared.endpoint.wait(id, call)?),
        }
    }

    /// Returns the status of an operation if the operation is complete, and otherwise `None`.
    pub(crate) fn test(&self, id: u64) -> Result<Option<Status>> {
        self.shared.endpoint.test(id)?.map(|status| self.local(status)).transpose()
    }
}

pub(crate) fn check_tag(tag: i32) -> Result<()> {
    // The tag needs no check against an upper bound, because TAG_UB is i32::MAX.
    if tag >= 0 {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Tag, "tag", format!("{tag} is negative; a tag must be 0 or more")))
}

fn check_receive_tag(tag: Tag) -> Result<()> {
    match tag {
        Tag::Any => Ok(()),
        Tag::Is(tag) => check_tag(tag),
    }
}

/// Checks that the slice holds `count` elements of `plan`'s type, if displacement 0 of the first element is
/// at byte `origin` of the slice. Returns the layout of these elements for reading.
pub(crate) fn readable<'a, T: NoUninit>(
    buf: &[T],
    origin: usize,
    plan: &'a Plan,
    count: u64,
    argument: &'static str,
) -> Result<Elements<&'a Plan>> {
    check_bounds(plan, count, origin, size_of_val(buf), argument)?;
    let origin = buf.as_ptr().cast::<u8>().cast_mut().wrapping_add(origin);
    Ok(Elements { origin, plan, count })
}

/// Checks that the slice holds `count` elements of `plan`'s type, if displacement 0 of the first element is
/// at byte `origin` of the slice. Returns the layout of these elements for writing.
pub(crate) fn writable<'a, T: NoUninit + AnyBitPattern>(
    buf: &mut [T],
    origin: usize,
    plan: &'a Plan,
    count: u64,
    argument: &'static str,
) -> Result<Elements<&'a Plan>> {
    check_bounds(plan, count, origin, size_of_val(buf), argument)?;
    let origin = buf.as_mut_ptr().cast::<u8>().wrapping_add(origin);
    Ok(Elements { origin, plan, count })
}
