//! Communicators. A communicator checks the arguments of a call and then passes the call to
//! `endpoint/progress.rs`.
//!
//! This file has the communicator and its blocking calls. `scope.rs` has the safe nonblocking calls, `raw.rs`
//! the calls on memory that the caller manages, and `group.rs` groups. Every call first checks rank, tag,
//! count and buffer, and starts nothing if a check fails. Collective calls, including the construction of
//! communicators, are in `coll/`; the topologies that a communicator may have are in `topo/`.
//!
//! An intercommunicator has a local and a remote group. Its calls take ranks of the remote group. It also keeps
//! the communicator of its local group, because some of its collective calls move data within the group.
//!
//! Invariant: when a call starts, this file translates ranks of the communicator into the slots that the
//! message engine uses (`process`, `sender`). When a call ends, it translates the source in the status back
//! into a rank of the communicator (`local`). `peers.rs` has the tables.

mod group;
mod peers;
mod pending;
mod raw;
mod scope;

pub use group::{Comparison, Group, RankRange};
pub use raw::{Cancelled, Matched, Messages, Ongoing, SendMode};
pub use scope::{Request, Scope};

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
use std::any::Any;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock, Weak};
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

/// A communicator that may have been freed.
#[derive(Debug)]
pub(crate) struct WeakCommunicator(Weak<Shared>);

impl WeakCommunicator {
    /// Returns the communicator, if it has not been freed.
    pub fn upgrade(&self) -> Option<Communicator> {
        self.0.upgrade().map(|shared| Communicator { shared })
    }
}

struct Shared {
    endpoint: Arc<Endpoint>,
    /// The context of the user's messages. A context is the number of a message space; the next numbers are
    /// the contexts of the other message spaces of this communicator.
    context: u64,
    /// The ranks to which a call may send and from which it may receive.
    peers: Peers,
    /// If this is an intercommunicator: the communicator of the local group.
    local: Option<Communicator>,
    /// The number of collective calls so far. The tag of a call's messages is derived from the number
    /// before the call. All ranks make the same calls in the same order, so they get the same tags.
    collectives: AtomicU32,
    /// The number of persistent collective operations that have been prepared so far. The tags of their
    /// messages are derived from this number in the same way.
    persistent: AtomicU32,
    /// The topology, if the communicator has one. It is set before the program gets the communicator.
    topology: OnceLock<Topology>,
    /// Whether the communicator has a name.
    named: AtomicBool,
    /// The other worlds to which ranks of the communicator belong: the first slot of each.
    worlds: Vec<usize>,
    /// Whether the communicator connects no worlds any more (`disconnect`).
    disconnected: AtomicBool,
    /// What `coll/` keeps with the communicator. The type belongs to that folder, which comes after this one.
    attached: OnceLock<Box<dyn Any + Send + Sync>>,
}

impl Shared {
    fn new(endpoint: Arc<Endpoint>, context: u64, peers: Peers) -> Arc<Self> {
        Self::with(endpoint, context, peers, None)
    }

    fn with(
        endpoint: Arc<Endpoint>,
        context: u64,
        peers: Peers,
        local: Option<Communicator>,
    ) -> Arc<Self> {
        let (collectives, persistent) = (AtomicU32::new(0), AtomicU32::new(0));
        let (topology, attached) = (OnceLock::new(), OnceLock::new());
        let worlds = match endpoint.processes() == endpoint.world().len() {
            true => Vec::new(),
            false => {
                let groups = [Some(peers.local()), peers.remote()].into_iter().flatten();
                endpoint.other_worlds(groups.flat_map(Group::slots))
            }
        };
        endpoint.bind(&worlds);
        let disconnected = AtomicBool::new(false);
        Arc::new(Self {
            worlds,
            disconnected,
            endpoint,
            context,
            peers,
            local,
            collectives,
            persistent,
            topology,
            named: AtomicBool::new(false),
            attached,
        })
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if *self.named.get_mut() {
            call::name_communicator(self.context, &[]);
        }
        self.unbind();
    }
}

impl Shared {
    /// Ends the bonds with other worlds that the communicator has made.
    fn unbind(&self) {
        if !self.disconnected.swap(true, Ordering::AcqRel) {
            self.endpoint.unbind(&self.worlds);
        }
    }
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

    // ---- blocking calls ----

    /// Sends `count` elements of `plan`'s type from `buf` to rank `dest`.
    ///
    /// Returns as soon as the program may change `buf` again. At that time the receiver may not have received
    /// the message yet.
    ///
    /// # Errors
    /// - [`ErrorKind::Rank`] if `dest` is not a rank of the communicator.
    /// - [`ErrorKind::Tag`] if `tag` is negative.
    /// - [`ErrorKind::Engine`] if `buf` does not hold the elements, or if the packed size exceeds 2^63 - 1
    ///   bytes.
    /// - [`ErrorKind::NoMemory`] if memory runs out.
    /// - [`ErrorKind::ProcAborted`] if a rank has died.
    /// - [`ErrorKind::State`] if this process has left the job or is a forked child of a rank.
    /// - [`ErrorKind::Other`] if another rank broke the protocol.
    ///
    /// If the call returns one of the first three errors, it has sent nothing.
    #[doc(alias = "MPI_Send")]
    pub fn send_elements<T: NoUninit>(
        &self,
        buf: &[T],
        plan: &Plan,
        count: u64,
        dest: usize,
        tag: i32,
    ) -> Result<()> {
        self.send_elements_at(buf, 0, plan, count, dest, tag)
    }

    /// Sends like [`send_elements`](Self::send_elements), but places the type's displacement 0 at byte `origin` of the
    /// buffer. A type with negative displacements needs an `origin` above 0.
    ///
    /// # Errors
    /// Returns the errors of [`send_elements`](Self::send_elements).
    #[doc(alias = "MPI_Send")]
    pub fn send_elements_at<T: NoUninit>(
        &self,
        buf: &[T],
        origin: usize,
        plan: &Plan,
        count: u64,
        dest: usize,
        tag: i32,
    ) -> Result<()> {
        let layout = readable(buf, origin, plan, count, "buf")?;
        // SAFETY: `buf` holds the elements (`readable` has checked this) and is borrowed until `finish`
        // returns. When `finish` returns, the operation is complete or detached.
        let started = unsafe { self.start_send(&layout, dest, tag, Space::User)? };
        self.finish(started, "")?;
        Ok(())
    }

    /// Receives at most `count` elements of `plan`'s type into `buf`.
    ///
    /// # Errors
    /// - The errors of [`send_elements`](Self::send_elements), for `source` instead of `dest`.
    /// - [`ErrorKind::Truncated`] if the message is longer than the receive. The receive then consumes the
    ///   message, and writes no more bytes than fit in the elements.
    /// - [`ErrorKind::Type`] if types are checked (`TYPEPACK_CHECK_TYPES=1`) and the message's basic types
    ///   differ from the receive's. The receive then consumes the message and writes nothing.
    #[doc(alias = "MPI_Recv")]
    pub fn recv_elements<T: NoUninit + AnyBitPattern>(
        &self,
        buf: &mut [T],
        plan: &Plan,
        count: u64,
        source: impl Into<Source>,
        tag: impl Into<Tag>,
    ) -> Result<Status> {
        self.recv_elements_at(buf, 0, plan, count, source, tag)
    }

    /// Receives like [`recv_elements`](Self::recv_elements), but places the type's displacement 0 at byte `origin` of
    /// the buffer.
    ///
    /// # Errors
    /// Returns the errors of [`recv_elements`](Self::recv_elements).
    #[doc(alias = "MPI_Recv")]
    pub fn recv_elements_at<T: NoUninit + AnyBitPattern>(
        &self,
        buf: &mut [T],
        origin: usize,
        plan: &Plan,
        count: u64,
        source: impl Into<Source>,
        tag: impl Into<Tag>,
    ) -> Result<Status> {
        let layout = writable(buf, origin, plan, count, "buf")?;
        let (source, tag) = (source.into(), tag.into());
        let source = self.sender(source)?;
        check_receive_tag(tag)?;
        let posting = Posting::new(layout, self.context(Space::User), source, tag)?;
        // SAFETY: `buf` holds the elements (`writable` has checked this) and is mutably borrowed until
        // `receive_now` returns. When `receive_now` returns, the operation is complete or detached.
        // `Posting::new` takes the capacity from the plan.
        let status = unsafe { self.shared.endpoint.receive_now(&posting)? };
        self.local(status)
    }

    /// Sends one message and receives another at the same time. Neither operation waits for the other.
    ///
    /// # Errors
    /// Returns the errors of [`send_elements`](Self::send_elements) and [`recv_elements`](Self::recv_elements).
    #[doc(alias = "MPI_Sendrecv")]
    #[expect(clippy::too_many_arguments, reason = "the argument list of the standard")]
    pub fn sendrecv_elements<S: NoUninit, T: NoUninit + AnyBitPattern>(
        &self,
        send_buf: &[S],
        send_plan: &Plan,
        send_count: u64,
        dest: usize,
        send_tag: i32,
        recv_buf: &mut [T],
        recv_plan: &Plan,
        recv_count: u64,
        source: impl Into<Source>,
        recv_tag: impl Into<Tag>,
    ) -> Result<Status> {
        let outgoing = readable(send_buf, 0, send_plan, send_count, "send_buf")?;
        let incoming = writable(recv_buf, 0, recv_plan, recv_count, "recv_buf")?;
        // SAFETY: `send_buf` and `recv_buf` hold the elements (`readable` and `writable` have checked this). They are
        // borrowed until `send_receive` returns, one of them mutably, so they do not overlap.
        unsafe {
            self.send_receive(
                (&outgoing, dest, send_tag),
                (incoming, source.into(), recv_tag.into()),
            )
        }
    }

    /// Sends the elements of one layout and receives into another, and waits for both. Each is given with its rank and
    /// its tag.
    ///
    /// # Safety
    ///
    /// - Until the call returns, the memory of the outgoing layout is readable and unchanged. The memory of the
    ///   incoming layout is writable and nobody else accesses it. The two do not overlap.
    #[inline]
    pub(crate) unsafe fn send_receive(
        &self,
        (outgoing, dest, send_tag): (&Elements<&Plan>, usize, i32),
        (incoming, source, recv_tag): (Elements<&Plan>, Source, Tag),
    ) -> Result<Status> {
        let source = self.sender(source)?;
        check_receive_tag(recv_tag)?;
        let posting = Posting::new(incoming, self.context(Space::User), source, recv_tag)?;
        let dest = self.process(dest, "dest", ErrorKind::Rank)?;
        check_tag(send_tag)?;
        let bytes = outgoing.plan.packed_bytes(outgoing.count)?;
        let context = self.context(Space::User);
        let label = Label { context, tag: send_tag, bytes, types: OF_LAYOUT };
        // SAFETY: the caller guarantees the memory of both layouts until this function returns (the condition of `#
        // Safety`). When `send_receive` returns, nobody uses their memory any more. `bytes` is the packed size of the
        // outgoing elements, and `Posting::new` takes the capacity from the plan.
        let status = unsafe {
            let outgoing = (outgoing, label, dest, SendMode::Standard);
            self.shared.endpoint.send_receive(outgoing, &posting)?
        };
        self.local(status)
    }

    /// Waits for a message, and receives it into the layout that `room` returns for its status.
    ///
    /// # Safety
    ///
    /// - Until the call returns, the memory of the layout is writable and nobody else accesses it.
    pub(crate) unsafe fn receive_of_any_length<'a>(
        &self,
        source: Source,
        tag: Tag,
        room: impl FnOnce(Status) -> Elements<&'a Plan>,
    ) -> Result<Status> {
        let source = self.sender(source)?;
        check_receive_tag(tag)?;
        let endpoint = &self.shared.endpoint;
        let taken = endpoint.take(self.context(Space::User), source, tag, true)?;
        let taken = taken.ok_or_else(|| {
            Error::new(ErrorKind::Internal, "source", "a waiting probe ended without a message")
        })?;
        let layout = room(taken.status());
        let capacity = layout.plan.packed_bytes(layout.count)?;
        // SAFETY: the caller guarantees the memory of the layout until this function returns (the condition of
        // `# Safety`), and then the receive is complete or detached. `capacity` is the packed size of the layout.
        let started = unsafe { endpoint.receive_taken(&layout, capacity, taken)? };
        self.finish(self.local_start(started)?, "")
    }

    /// Waits for a message that a receive with these arguments would match, and returns its status. The
    /// message stays in its queue.
    ///
    /// # Errors
    /// Returns [`ErrorKind::Rank`] if `source` is not a rank of the communicator, [`ErrorKind::Tag`] if `tag`
    /// is negative, [`ErrorKind::ProcAborted`] if a rank has died, [`ErrorKind::State`] if this process has left the
    /// job or is a forked child of a rank, [`ErrorKind::Other`] if another rank broke the protocol, and
    /// [`ErrorKind::NoMemory`] if memory runs out.
    #[doc(alias = "MPI_Probe")]
    pub fn probe(&self, source: impl Into<Source>, tag: impl Into<Tag>) -> Result<Status> {
        let found = self.look(source.into(), tag.into(), true)?;
        found.ok_or_else(|| {
            Error::new(ErrorKind::Internal, "probe", "a waiting probe ended without a message")
        })
    }

    /// Returns the status of the message that a receive with these arguments would match now, or `None` if no
    /// such message has arrived.
    ///
    /// # Errors
    /// Returns the errors of [`probe`](Self::probe).
    #[doc(alias = "MPI_Iprobe")]
    pub fn iprobe(&self, source: impl Into<Source>, tag: impl Into<Tag>) -> Result<Option<Status>> {
        self.look(source.into(), tag.into(), false)
    }

    fn look(&self, source: Source, tag: Tag, wait: bool) -> Result<Option<Status>> {
        let source = self.sender(source)?;
        check_receive_tag(tag)?;
        let found = self.shared.endpoint.probe(self.context(Space::User), source, tag, wait)?;
        found.map(|status| self.local(status)).transpose()
    }

    /// Moves some or all of the messages that can move now, and does not wait. A program should call this
    /// function now and then during long computations, because messages move only while a call runs.
    ///
    /// # Errors
    /// Returns [`ErrorKind::ProcAborted`] if a rank has died, [`ErrorKind::State`] if this process has left the job or
    /// is a forked child of a rank, [`ErrorKind::Other`] if another rank broke the protocol, and
    /// [`ErrorKind::NoMemory`] if memory runs out.
    pub fn progress(&self) -> Result<()> {
        self.shared.endpoint.progress()
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
