//! Nonblocking operations on raw memory. The caller must keep the memory valid until the operation has ended.
//!
//! The halo exchange and the C library (`capi/`) use [`Messages`]; safe programs use `scope.rs`.
//! `endpoint/progress.rs` completes the operations.

use super::peers::sender_of;
use super::{Communicator, Space};
pub use crate::endpoint::engine::Cancelled;
use crate::endpoint::engine::{MessageEngine, Taken};
use crate::endpoint::progress::{Awaited, Endpoint};
use crate::message::envelope::Label;
use crate::message::payload::Posting;
pub use crate::message::payload::SendMode;
use crate::message::typecheck::OF_LAYOUT;
use crate::message::{Operation, Source, Status, Tag};
use crate::process::Process;
use crate::{Plan, Result};
use std::sync::Arc;
use typepack_engine::Elements;

/// Starts and completes the messages of this process in one context, that is, in one message space of one
/// communicator. The calls do not check their arguments.
///
/// Ranks are ranks of the world. The caller keeps the memory of an operation valid until the operation has
/// ended. A `Messages` value keeps its communicator alive, and an operation keeps its plan alive. If the
/// caller drops an [`Operation`], the operation continues and its memory stays in use.
#[derive(Clone, Debug)]
pub struct Messages {
    endpoint: Arc<Endpoint>,
    context: u64,
    /// The communicator that the context belongs to.
    _keep: Communicator,
}

/// A message that a matched probe has taken out of the queue. No other receive can get this message.
#[doc(alias = "MPI_Message")]
#[derive(Debug)]
pub struct Matched(Taken);

impl Matched {
    /// Returns the status of the message.
    pub fn status(&self) -> Status {
        self.0.status()
    }
}

impl Communicator {
    /// Returns a [`Messages`] value for the user's messages of this communicator. The calls of `Messages` do
    /// not check their arguments.
    pub fn messages(&self) -> Messages {
        Messages {
            endpoint: self.endpoint().clone(),
            context: self.context(Space::User),
            _keep: self.clone(),
        }
    }
}

impl Messages {
    /// Describes an operation of this process for a debugger, without waiting for a lock: its peer, whose slot `rank`
    /// turns into a rank if it has one, its tag, its elements, and how far it is. Returns `None` if a thread holds the lock that the
    /// description needs.
    #[doc(hidden)]
    pub fn described(&self, id: u64, rank: impl Fn(usize) -> Option<usize>) -> Option<String> {
        self.endpoint.described(id, rank)
    }

    /// Returns this process's rank in the world.
    pub fn rank(&self) -> usize {
        self.endpoint.rank()
    }

    /// Starts a send of `elements` to rank `dest` of the world.
    ///
    /// # Safety
    ///
    /// - The elements are readable when the call starts. In all modes but `Buffered` they stay
    ///   readable and unchanged until the operation has ended.
    /// - If the mode lends memory, it has space for the packed bytes, and nobody else
    ///   accesses it until the operation has ended.
    /// - `dest` is a rank of the world, and `tag` is not negative.
    ///
    /// # Errors
    /// Returns `ErrorKind::Engine` if the packed size exceeds 2^63 - 1 bytes, `ErrorKind::NoMemory` if memory
    /// runs out, `ErrorKind::Other` if another rank has broken the protocol, and `ErrorKind::State` if this
    /// process has left the job or is a forked child. If the call returns an error, the library no longer
    /// uses the memory.
    #[inline(always)]
    pub unsafe fn send(
        &self,
        mode: SendMode,
        elements: Elements<&Plan>,
        dest: usize,
        tag: i32,
    ) -> Result<Operation> {
        let Elements { origin, plan, count } = elements;
        // SAFETY: the caller guarantees the conditions of this function, which are those of `send_apart`.
        unsafe { self.send_apart(mode, origin, plan, count, dest, tag) }
    }

    /// Does what [`send`](Self::send) does. The parts of the elements come in registers. As one argument, they would
    /// come in memory, written in three pieces, and the CPU would wait when this function copies the pieces at once.
    ///
    /// # Safety
    ///
    /// The conditions of [`send`](Self::send).
    #[inline]
    unsafe fn send_apart(
        &self,
        mode: SendMode,
        origin: *mut u8,
        plan: &Plan,
        count: u64,
        dest: usize,
        tag: i32,
    ) -> Result<Operation> {
        let elements = Elements { origin, plan, count };
        let status = Status { source: self.rank(), tag, bytes: elements.bytes()? };
        // SAFETY: the caller guarantees the conditions of this function, which are those of `start_send`.
        let pending = unsafe { self.start_send(mode, elements, dest, tag)? };
        Ok(pending.map_or(Operation::Done(status), Operation::Pending))
    }

    /// Starts a send like [`send`](Self::send). Returns the number of the operation, or `None` if the send is
    /// complete. A caller that needs no status should call this function: the CPU writes the status to memory in
    /// several pieces, and waits when the caller copies the pieces at once.
    ///
    /// # Safety
    ///
    /// The conditions of [`send`](Self::send).
    ///
    /// # Errors
    /// Returns the errors of [`send`](Self::send).
    #[inline(always)]
    pub unsafe fn start_send(
        &self,
        mode: SendMode,
        elements: Elements<&Plan>,
        dest: usize,
        tag: i32,
    ) -> Result<Option<u64>> {
        let Elements { origin, plan, count } = elements;
        // SAFETY: the caller guarantees the conditions of this function, which are those of `start_send_apart`.
        unsafe { self.start_send_apart(mode, origin, plan, count, dest, tag) }
    }

    /// Does what [`start_send`](Self::start_send) does, with the parts of the elements in registers.
    ///
    /// # Safety
    ///
    /// The conditions of [`send`](Self::send).
    #[inline]
    unsafe fn start_send_apart(
        &self,
        mode: SendMode,
        origin: *mut u8,
        plan: &Plan,
        count: u64,
        dest: usize,
        tag: i32,
    ) -> Result<Option<u64>> {
        let elements = Elements { origin, plan, count };
        let label = self.label(elements.bytes()?, tag);
        // SAFETY: the caller guarantees that the elements, and the memory that `mode` may lend, stay valid as
        // long as `mode` requires, and that `dest` is a rank of the world and `tag` is not negative (the
        // three conditions of `# Safety`). The label has the packed size of the elements.
        unsafe { self.endpoint.send_as(&elements, label, Process::new(dest), mode) }
    }

    #[inline]
    fn label(&self, bytes: u64, tag: i32) -> Label {
        Label { context: self.context, tag, bytes, types: OF_LAYOUT }
    }

    /// Sends a message and receives another one, and waits for both. Neither operation waits for the other. Each
    /// operation is given by its elements, its rank and its tag.
    ///
    /// # Safety
    ///
    /// - Until the call returns, the outgoing elements are readable and unchanged, and the incoming elements are
    ///   writable and nobody else accesses them. If the two overlap, the mode is `Buffered`.
    /// - If the mode lends memory, it has space for the packed bytes, and nobody else
    ///   accesses it until the call returns.
    /// - `dest` is a rank of the world, and `tag` is not negative. `source` is `Source::Any` or a rank of the world.
    ///   The tag of the receive is `Tag::Any` or not negative.
    ///
    /// # Errors
    /// Returns the error of the receive, as [`receive_now`](Self::receive_now), or if there is none, the error of the
    /// send, as [`send`](Self::send). When the call returns, the library no longer uses the memory.
    #[doc(alias = "MPI_Sendrecv")]
    pub unsafe fn send_receive(
        &self,
        mode: SendMode,
        outgoing: Elements<&Plan>,
        (dest, tag): (usize, i32),
        incoming: Elements<&Plan>,
        (source, receive_tag): (Source, Tag),
    ) -> Result<Status> {
        let label = self.label(outgoing.bytes()?, tag);
        let posting = self.posting(incoming, source, receive_tag)?;
        let outgoing = (&outgoing, label, Process::new(dest), mode);
        // SAFETY: the caller guarantees the conditions for both operations (the three conditions of `# Safety`).
        // The label has the packed size of the outgoing elements, and `posting` takes the capacity from the plan.
        unsafe { self.endpoint.send_receive(outgoing, &posting) }
    }

    #[inline(always)]
    fn posting<'a>(
        &self,
        layout: Elements<&'a Plan>,
        source: Source,
        tag: Tag,
    ) -> Result<Posting<'a>> {
        Posting::new(layout, self.context, sender_of(source), tag)
    }

    /// Starts a receive of at most `elements`.
    ///
    /// # Safety
    ///
    /// - Until the operation has ended, the elements are writable and nobody else accesses them.
    /// - `source` is `Source::Any` or a rank of the world. `tag` is `Tag::Any` or not negative.
    ///
    /// # Errors
    /// Returns the errors of [`send`](Self::send). If the matching message has already arrived, the call also
    /// returns `ErrorKind::Truncated` if the message is longer than the receive, `ErrorKind::Type` if types
    /// are checked and differ, and `ErrorKind::Other` if the sender could not provide the data of the
    /// message.
    pub unsafe fn receive(
        &self,
        elements: Elements<&Plan>,
        source: Source,
        tag: Tag,
    ) -> Result<Operation> {
        let posting = self.posting(elements, source, tag)?;
        // SAFETY: the caller guarantees that, until the operation has ended, the elements are writable and
        // nobody else accesses them, and that the source is a rank of the world and the tag is valid (both
        // conditions of `# Safety`). `posting` takes the capacity from the plan.
        unsafe { self.endpoint.receive(&posting) }
    }

    /// Receives at most `elements` and waits for them.
    ///
    /// # Safety
    ///
    /// - Until the call returns, the elements are writable and nobody else accesses them.
    /// - `source` is `Source::Any` or a rank of the world. `tag` is `Tag::Any` or not negative.
    ///
    /// # Errors
    /// Returns the errors of [`send`](Self::send), `ErrorKind::ProcAborted` if a rank has died,
    /// `ErrorKind::Truncated` if the message is longer than the receive, and `ErrorKind::Type` if types are
    /// checked and differ. Also returns `ErrorKind::Other` if the sender could not provide the data of the
    /// message.
    #[inline(always)]
    pub unsafe fn receive_now(
        &self,
        elements: Elements<&Plan>,
        source: Source,
        tag: Tag,
    ) -> Result<Status> {
        let Elements { origin, plan, count } = elements;
        // SAFETY: the caller guarantees the conditions of this function, which are those of `receive_apart`.
        unsafe { self.receive_apart(origin, plan, count, source, tag) }
    }

    /// Does what [`receive_now`](Self::receive_now) does, with the parts of the elements in registers.
    ///
    /// # Safety
    ///
    /// The conditions of [`receive_now`](Self::receive_now).
    unsafe fn receive_apart(
        &self,
        origin: *mut u8,
        plan: &Plan,
        count: u64,
        source: Source,
        tag: Tag,
    ) -> Result<Status> {
        let posting = self.posting(Elements { origin, plan, count }, source, tag)?;
        // SAFETY: the caller guarantees that, until this call returns, the elements are writable and nobody
        // else accesses them, and that the source is a rank of the world and the tag is valid (both
        // conditions of `# Safety`). `posting` takes the capacity from the plan.
        unsafe { self.endpoint.receive_now(&posting) }
    }

    /// Starts the receive of a message that a matched probe has taken out of the queue.
    ///
    /// # Safety
    ///
    /// - Until the operation has ended, the elements are writable and nobody else accesses them.
    ///
    /// # Errors
    /// Returns the errors of [`receive`](Self::receive).
    pub unsafe fn receive_matched(
        &self,
        elements: Elements<&Plan>,
        message: Matched,
    ) -> Result<Operation> {
        let capacity = elements.bytes()?;
        // SAFETY: the caller guarantees that, until the operation has ended, the elements are writable and
        // nobody else accesses them (the condition of `# Safety`). `capacity` is the packed size of the
        // elements.
        unsafe { self.endpoint.receive_taken(&elements, capacity, message.0) }
    }

    /// Returns the status of the message that a receive would match now, or `None` if no such message has
    /// arrived. If `wait` is true, the call waits for such a message.
    ///
    /// # Errors
    /// Returns the errors of [`wait_until`](Self::wait_until).
    pub fn probe(&self, source: Source, tag: Tag, wait: bool) -> Result<Option<Status>> {
        self.endpoint.probe(self.context, sender_of(source), tag, wait)
    }

    /// Takes the message that a receive would match now out of the queue. Returns the message, or `None` if
    /// no such message has arrived. If `wait` is true, the call waits for such a message.
    ///
    /// # Errors
    /// Returns the errors of [`wait_until`](Self::wait_until).
    #[doc(alias = "MPI_Mprobe")]
    pub fn take(&self, source: Source, tag: Tag, wait: bool) -> Result<Option<Matched>> {
        Ok(self.endpoint.take(self.context, sender_of(source), tag, wait)?.map(Matched))
    }

    /// Waits until `look` returns an answer. The library calls `look` often, and holds the lock of all
    /// communication of this process during each call. So `look` must be short and must not communicate.
    ///
    /// # Errors
    /// Returns `ErrorKind::ProcAborted` if a rank has died, `ErrorKind::Other` if another rank has broken the
    /// protocol, `ErrorKind::NoMemory` if memory runs out, and `ErrorKind::State` if this process has left
    /// the job or is a forked child. After an error the operations that the caller has started continue; the
    /// caller may [`abandon`](Self::abandon) them.
    pub fn wait_until<R>(&self, mut look: impl FnMut(&mut Ongoing<'_>) -> Option<R>) -> Result<R> {
        self.endpoint.attend(&Awaited::Asked(""), |engine| look(&mut Ongoing(engine)))
    }

    /// Makes progress, then calls `look` once and returns its answer.
    ///
    /// # Errors
    /// Returns the errors of [`wait_until`](Self::wait_until).
    pub fn look<R>(&self, look: impl FnOnce(&mut Ongoing<'_>) -> Option<R>) -> Result<Option<R>> {
        self.endpoint.poll_briefly(|engine| look(&mut Ongoing(engine)))
    }

    /// Makes progress until no more operations complete, in at most `most` steps, each of which takes at most a few
    /// messages from each rank.
    ///
    /// # Errors
    /// Returns the errors of [`wait_until`](Self::wait_until).
    pub fn catch_up(&self, most: usize) -> Result<()> {
        self.endpoint.catch_up(most)
    }

    /// Calls a function that changes operations, without making progress. Threads in
    /// [`wait_until`](Self::wait_until) then call their `look` again.
    ///
    /// # Errors
    /// Returns `ErrorKind::State` if this process has left the job or is a forked child.
    pub fn change<R>(&self, change: impl FnOnce(&mut Ongoing<'_>) -> R) -> Result<R> {
        self.endpoint.change(|engine| change(&mut Ongoing(engine)))
    }

    /// Waits for one operation. When the call returns, even with an error, the library no longer uses the
    /// operation's memory.
    ///
    /// # Errors
    /// Returns the error of the operation, or the errors of [`wait_until`](Self::wait_until).
    pub fn finish(&self, operation: Operation) -> Result<Status> {
        match operation {
            Operation::Done(status) => Ok(status),
            Operation::Pending(id) => self.endpoint.wait(id, "Messages::finish"),
        }
    }

    /// Waits for all `operations` and empties the vector. Returns the statuses in the order of the
    /// operations.
    ///
    /// # Errors
    /// Returns the first error that an operation has returned. When the call returns, all operations have
    /// ended, even if one of them failed.
    #[doc(alias = "MPI_Waitall")]
    pub fn finish_all(&self, operations: &mut Vec<Operation>) -> Result<Vec<Status>> {
        let mut statuses = Vec::with_capacity(operations.len());
        let mut failed = None;
        for operation in operations.drain(..) {
            match self.finish(operation) {
                Ok(status) => statuses.push(status),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        failed.map_or(Ok(statuses), Err)
    }

    /// Detaches an operation from its memory without waiting for the operation. If the operation is a send,
    /// the library completes it from a copy. If it is a receive, the library cancels it, or discards the
    /// message if one has already matched.
    pub fn abandon(&self, operation: Operation) {
        if let Operation::Pending(id) = operation {
            self.endpoint.detach(id);
        }
    }

    /// Moves some or all of the messages that can move now, and does not wait.
    ///
    /// # Errors
    /// Returns the errors of [`wait_until`](Self::wait_until).
    pub fn progress(&self) -> Result<()> {
        self.endpoint.progress()
    }

    /// Makes the threads in [`wait_until`](Self::wait_until) call their `look` again. The caller uses this
    /// function after an event that is not a message.
    pub fn wake_poller(&self) {
        self.endpoint.wake_poller();
    }
}

/// The pending operations. The thread that holds this value also holds the lock of all communication of this
/// process, so no other thread can change the operations at the same time.
#[derive(Debug)]
pub struct Ongoing<'a>(&'a mut MessageEngine);

impl Ongoing<'_> {
    /// Returns the result of an operation if the operation is complete. The caller can get each result only
    /// once.
    pub fn fetch(&mut self, id: u64) -> Option<Result<Status>> {
        self.0.requests().fetch(id)
    }

    /// Returns whether an operation is complete. The answer stays true after the caller has fetched the
    /// result.
    pub fn is_complete(&mut self, id: u64) -> bool {
        self.0.requests().is_complete(id)
    }

    /// Cancels a receive that no message has matched, and frees the number of the operation. Does nothing
    /// and returns false if a message has already matched, if `id` is not the number of a receive, or if
    /// the receive belongs to a collective call.
    #[doc(alias = "MPI_Cancel")]
    pub fn cancel_receive(&mut self, id: u64) -> bool {
        !self.0.requests().is_owned(id) && self.0.cancel_receive(id)
    }

    /// Tries to cancel a send. [`Cancelled`] lists the possible results. Returns `Cancelled::No` if the
    /// send belongs to a collective call. The call never waits for the receiver, except for the end of a
    /// copy that the receiver is making at this moment.
    #[doc(alias = "MPI_Cancel")]
    pub fn cancel_send(&mut self, id: u64) -> Cancelled {
        if self.0.requests().is_owned(id) { Cancelled::No } else { self.0.cancel_send(id) }
    }

    /// Discards the result that an operation will have. The operation continues, and its memory stays in use.
    /// Does nothing if the operation belongs to a collective call.
    #[doc(alias = "MPI_Request_free")]
    pub fn forget(&mut self, id: u64) {
        if !self.0.requests().is_owned(id) {
            self.0.requests().orphan(id);
        }
    }
}
