//! Communicators: checked arguments in front of the message engine.
//!
//! This file has the communicator and its blocking calls; `scope.rs` the safe nonblocking ones,
//! `raw.rs` the ones that leave memory to the caller, `group.rs` groups. All of them check rank, tag,
//! count and buffer first and start nothing when a check fails; then `endpoint/progress.rs` does the
//! work. Collective calls, those that make communicators among them, are in `coll/`, grids in `topo/`.
//!
//! Invariant: ranks of a communicator become slots of the job here, on the way in
//! (`slot`), and statuses become the communicator's again on the way out (`local`); `peers.rs`
//! knows which ranks these are.

mod group;
mod peers;
mod raw;
mod scope;

pub use group::{Comparison, Group, RankRange};
pub use raw::{Matched, Messages, Ongoing, SendMode};
pub use scope::{Request, Scope};

use crate::message::payload::{LayoutRef, Posting};
use crate::message::typecheck::OF_LAYOUT;
pub use crate::message::{Operation, Source, Status, Tag};

use crate::endpoint::progress::{Endpoint, OnUnwind};
use crate::message::label::{Label, Sender, Slot};
use crate::schedule::table::{Place, ROUNDS};
use crate::{Error, ErrorKind, Plan, Result};
use bytemuck::{AnyBitPattern, NoUninit};
use peers::Peers;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use typepack_engine::check_bounds;

/// A group of ranks with a message space of its own.
///
/// Clones are the same communicator. It may be used from any thread.
#[doc(alias = "MPI_Comm")]
#[derive(Clone)]
pub struct Communicator {
    shared: Arc<Shared>,
}

struct Shared {
    endpoint: Arc<Endpoint>,
    /// Context of the user's messages; those of the other spaces follow it.
    context: u64,
    /// The door: what ranks the calls name.
    peers: Peers,
    /// Collective calls so far, and persistent collective operations made so far: the tags of their
    /// messages. All ranks count alike.
    collectives: AtomicU32,
    persistent: AtomicU32,
}

impl Shared {
    fn new(endpoint: Arc<Endpoint>, context: u64, peers: Peers) -> Arc<Self> {
        let (collectives, persistent) = (AtomicU32::new(0), AtomicU32::new(0));
        Arc::new(Self { endpoint, context, peers, collectives, persistent })
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        for space in 0..Space::COUNT {
            self.endpoint.close_context(self.context + space);
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

/// Which of a communicator's message spaces; messages of one never match receives of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Space {
    /// The user's.
    User = 0,
    /// That of collective calls.
    Collective = 1,
    /// That of calls among a part of the ranks, told apart by the user's tag
    /// (`Communicator::create_group`).
    Part = 2,
    /// That of calls that make and free memory which the ranks share (`region/`).
    Region = 3,
    /// That of persistent collective operations.
    Persistent = 4,
}

impl Space {
    /// Contexts that a communicator has: a power of two, at least the number of spaces.
    const COUNT: u64 = 8;
}

impl Communicator {
    /// Communicator number `number` of the endpoint's ranks `group`; `None` if this process is not
    /// one of them.
    pub(crate) fn new(endpoint: Arc<Endpoint>, number: u64, group: Group) -> Option<Self> {
        let peers = Peers::within(group, endpoint.rank())?;
        // Numbers have 60 bits (12 for the leader, 48 counted).
        let context = number * Space::COUNT;
        Some(Self { shared: Shared::new(endpoint, context, peers) })
    }

    /// The communicator of all ranks of the job, which has number 0.
    pub(crate) fn world(endpoint: Arc<Endpoint>) -> Self {
        let peers = Peers::world(endpoint.size(), endpoint.rank());
        Self { shared: Shared::new(endpoint, 0, peers) }
    }

    /// The communicator of this rank alone.
    pub(crate) fn own(endpoint: Arc<Endpoint>) -> Self {
        let peers = Peers::single(endpoint.rank());
        let context = endpoint.new_context() * Space::COUNT;
        Self { shared: Shared::new(endpoint, context, peers) }
    }

    pub(crate) fn endpoint(&self) -> &Arc<Endpoint> {
        &self.shared.endpoint
    }

    fn context(&self, space: Space) -> u64 {
        self.shared.context + space as u64
    }

    /// The rank of this process, from 0.
    #[doc(alias = "MPI_Comm_rank")]
    pub fn rank(&self) -> usize {
        self.shared.peers.rank()
    }

    /// The number of ranks.
    #[doc(alias = "MPI_Comm_size")]
    pub fn size(&self) -> usize {
        self.group().size()
    }

    /// Its ranks, as ranks of the world.
    #[doc(alias = "MPI_Comm_group")]
    pub fn group(&self) -> &Group {
        self.shared.peers.local()
    }

    /// Whether two communicators are the same, or how their groups relate.
    #[doc(alias = "MPI_Comm_compare")]
    pub fn compare(&self, other: &Self) -> Comparison {
        if Arc::ptr_eq(&self.shared, &other.shared) {
            return Comparison::Identical;
        }
        match self.group().compare(other.group()) {
            Comparison::Identical => Comparison::Congruent,
            other => other,
        }
    }

    // ---- where the messages of collective calls match ----

    /// The place of the next collective call. Every call takes one, also one that fails before it
    /// starts anything: so the ranks stay in step.
    #[inline]
    pub(crate) fn next_place(&self) -> Place {
        let number = self.shared.collectives.fetch_add(1, Ordering::Relaxed);
        Place { context: self.context(Space::Collective), tag: (number & i32::MAX as u32) as i32 }
    }

    /// The place of the next persistent collective operation: of its first round.
    pub(crate) fn next_persistent_place(&self) -> Place {
        let number = self.shared.persistent.fetch_add(1, Ordering::Relaxed);
        let tag = (number % (i32::MAX / ROUNDS) as u32) as i32 * ROUNDS;
        Place { context: self.context(Space::Persistent), tag }
    }

    /// The place of calls among a part of the ranks that agree on a tag.
    pub(crate) fn part_place(&self, tag: i32) -> Place {
        Place { context: self.context(Space::Part), tag }
    }

    // ---- the door: ranks of the communicator outside, of the world inside ----

    /// The world rank of `rank`.
    #[inline]
    pub(crate) fn world_rank(
        &self,
        rank: usize,
        argument: &'static str,
        kind: ErrorKind,
    ) -> Result<usize> {
        self.shared.peers.world_rank(rank, argument, kind)
    }

    /// The slot of `rank`.
    #[inline]
    pub(crate) fn slot(
        &self,
        rank: usize,
        argument: &'static str,
        kind: ErrorKind,
    ) -> Result<Slot> {
        self.shared.peers.slot(rank, argument, kind)
    }

    /// A source as the message engine knows it.
    #[inline]
    fn sender(&self, source: Source) -> Result<Sender> {
        self.shared.peers.sender(source)
    }

    /// A status of the message engine, as this communicator's.
    #[inline]
    pub(crate) fn local(&self, status: Status) -> Result<Status> {
        self.shared.peers.status(status)
    }

    /// A result of the message engine, as this communicator's.
    #[inline]
    pub(crate) fn local_start(&self, started: Operation) -> Result<Operation> {
        match started {
            Operation::Done(status) => self.local(status).map(Operation::Done),
            pending @ Operation::Pending(_) => Ok(pending),
        }
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

    // ---- the one way to start something ----

    /// # Safety
    ///
    /// - `layout` describes memory that is readable and unchanged until the send is complete or
    ///   detached.
    pub(crate) unsafe fn start_send(
        &self,
        layout: &LayoutRef<'_>,
        dest: usize,
        tag: i32,
        space: Space,
    ) -> Result<Operation> {
        let dest = self.slot(dest, "dest", ErrorKind::Rank)?;
        check_tag(tag)?;
        let bytes = layout.plan.packed_bytes(layout.count)?;
        let label = Label { context: self.context(space), tag, bytes, types: OF_LAYOUT };
        // SAFETY: the memory is the caller's promise, the size is the plan's own.
        let started = unsafe { self.shared.endpoint.send(layout, label, dest)? };
        self.local_start(started)
    }

    /// # Safety
    ///
    /// - `layout` describes memory that is writable and nobody else's until the receive is
    ///   complete or detached.
    pub(crate) unsafe fn start_receive(
        &self,
        layout: &LayoutRef<'_>,
        source: Source,
        tag: Tag,
        space: Space,
    ) -> Result<Operation> {
        let source = self.sender(source)?;
        check_receive_tag(tag)?;
        let posting = Posting::new(*layout, self.context(space), source, tag)?;
        // SAFETY: the memory is the caller's promise, the size is the plan's own.
        let started = unsafe { self.shared.endpoint.receive(&posting)? };
        self.local_start(started)
    }

    pub(crate) fn finish(&self, started: Operation) -> Result<Status> {
        match started {
            Operation::Done(status) => Ok(status),
            Operation::Pending(id) => self.local(self.shared.endpoint.wait(id)?),
        }
    }

    /// The status of a pending operation if it is complete.
    pub(crate) fn test(&self, id: u64) -> Result<Option<Status>> {
        self.shared.endpoint.test(id)?.map(|status| self.local(status)).transpose()
    }

    // ---- blocking calls ----

    /// Sends `count` elements of `plan`'s type that lie in `buf` to rank `dest`.
    ///
    /// Returns when `buf` may be changed again, which can be before the message is received.
    ///
    /// # Errors
    /// A rank, tag or count outside its domain, or a buffer that does not hold the elements:
    /// nothing is sent then. [`ErrorKind::ProcAborted`] when a rank has died.
    #[doc(alias = "MPI_Send")]
    pub fn send<T: NoUninit>(
        &self,
        buf: &[T],
        plan: &Plan,
        count: u64,
        dest: usize,
        tag: i32,
    ) -> Result<()> {
        self.send_at(buf, 0, plan, count, dest, tag)
    }

    /// [`send`](Self::send) with the type's displacement 0 at byte `origin` of the buffer, for
    /// types that reach below it.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    #[doc(alias = "MPI_Send")]
    pub fn send_at<T: NoUninit>(
        &self,
        buf: &[T],
        origin: usize,
        plan: &Plan,
        count: u64,
        dest: usize,
        tag: i32,
    ) -> Result<()> {
        let layout = readable(buf, origin, plan, count, "buf")?;
        // SAFETY: the slice is borrowed until the wait below returns, after which the operation
        // is complete or detached.
        let started = unsafe { self.start_send(&layout, dest, tag, Space::User)? };
        self.finish(started)?;
        Ok(())
    }

    /// Receives at most `count` elements of `plan`'s type into `buf`.
    ///
    /// # Errors
    /// As [`send`](Self::send); [`ErrorKind::Truncated`] for a message longer than the receive,
    /// which is consumed, and of which at most what fits has been written. Where types are compared
    /// (`TYPEPACK_CHECK_TYPES=1`), [`ErrorKind::Type`] for a message of other types than as many
    /// bytes of the receive, which is consumed, and of which nothing has been written.
    #[doc(alias = "MPI_Recv")]
    pub fn recv<T: NoUninit + AnyBitPattern>(
        &self,
        buf: &mut [T],
        plan: &Plan,
        count: u64,
        source: impl Into<Source>,
        tag: impl Into<Tag>,
    ) -> Result<Status> {
        self.recv_at(buf, 0, plan, count, source, tag)
    }

    /// [`recv`](Self::recv) with the type's displacement 0 at byte `origin` of the buffer.
    ///
    /// # Errors
    /// As [`recv`](Self::recv).
    #[doc(alias = "MPI_Recv")]
    pub fn recv_at<T: NoUninit + AnyBitPattern>(
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
        // SAFETY: the slice is mutably borrowed until the call returns, after which the operation
        // is complete or detached; the size is the plan's own.
        let status = unsafe { self.shared.endpoint.receive_now(&posting)? };
        self.local(status)
    }

    /// Sends and receives at once; neither waits for the other.
    ///
    /// # Errors
    /// As [`send`](Self::send) and [`recv`](Self::recv).
    #[doc(alias = "MPI_Sendrecv")]
    #[expect(clippy::too_many_arguments, reason = "the argument list of the standard")]
    pub fn sendrecv<S: NoUninit, T: NoUninit + AnyBitPattern>(
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
        self.check_rank(dest, "dest", ErrorKind::Rank)?;
        check_tag(send_tag)?;
        // SAFETY: both slices are borrowed until both waits below have returned, after which the
        // operations are complete or detached; the borrows are disjoint.
        let receive =
            unsafe { self.start_receive(&incoming, source.into(), recv_tag.into(), Space::User)? };
        let mut guard = OnUnwind::new(|| {
            if let Operation::Pending(id) = receive {
                self.shared.endpoint.detach(id);
            }
        });
        // SAFETY: as above.
        let sent = unsafe { self.start_send(&outgoing, dest, send_tag, Space::User) }
            .and_then(|started| self.finish(started));
        if sent.is_err() {
            guard.call();
        }
        guard.disarm();
        sent?;
        self.finish(receive)
    }

    /// Waits for a message that a receive with these arguments would match, and leaves it.
    ///
    /// # Errors
    /// As [`recv`](Self::recv).
    #[doc(alias = "MPI_Probe")]
    pub fn probe(&self, source: impl Into<Source>, tag: impl Into<Tag>) -> Result<Status> {
        let found = self.look(source.into(), tag.into(), true)?;
        found.ok_or_else(|| Error::new(ErrorKind::Internal, "probe", "no message was found"))
    }

    /// The message that a receive with these arguments would match now, if there is one.
    ///
    /// # Errors
    /// As [`recv`](Self::recv).
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

    /// One turn of the progress engine, for long computations between calls.
    ///
    /// # Errors
    /// [`ErrorKind::ProcAborted`] when a rank has died.
    pub fn progress(&self) -> Result<()> {
        self.shared.endpoint.progress()
    }
}

pub(crate) fn check_tag(tag: i32) -> Result<()> {
    // The upper bound is that of the type: TAG_UB is i32::MAX.
    if tag >= 0 {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Tag, "tag", format!("{tag} is negative")))
}

fn check_receive_tag(tag: Tag) -> Result<()> {
    match tag {
        Tag::Any => Ok(()),
        Tag::Is(tag) => check_tag(tag),
    }
}

/// The layout of `count` elements in a slice, checked against its bounds.
pub(crate) fn readable<'a, T: NoUninit>(
    buf: &[T],
    origin: usize,
    plan: &'a Plan,
    count: u64,
    argument: &'static str,
) -> Result<LayoutRef<'a>> {
    check_bounds(plan, count, origin, size_of_val(buf), argument)?;
    let origin = buf.as_ptr().cast::<u8>().cast_mut().wrapping_add(origin);
    Ok(LayoutRef { origin, plan, count })
}

/// The same for a slice that is written to.
pub(crate) fn writable<'a, T: NoUninit + AnyBitPattern>(
    buf: &mut [T],
    origin: usize,
    plan: &'a Plan,
    count: u64,
    argument: &'static str,
) -> Result<LayoutRef<'a>> {
    check_bounds(plan, count, origin, size_of_val(buf), argument)?;
    let origin = buf.as_mut_ptr().cast::<u8>().wrapping_add(origin);
    Ok(LayoutRef { origin, plan, count })
}
