//! Nonblocking operations on memory that the caller answers for.
//!
//! The halo exchange and the C face use [`Messages`]; safe programs use `scope.rs`. Operations end in
//! `progress.rs`.

use super::peers::{sender_of, slot_of};
use super::{Communicator, Space};
use crate::endpoint::engine::{How, MessageEngine, Taken};
use crate::endpoint::progress::Endpoint;
use crate::message::envelope::Label;
use crate::message::payload::{Backing, LayoutRef, Posting};
use crate::message::typecheck::OF_LAYOUT;
use crate::message::{Operation, Source, Status, Tag};
use crate::{Plan, Result};
use std::sync::Arc;

/// The messages of one context of this process, without any checks: ranks are those of the world,
/// memory is the caller's. The halo exchange and the C face stand on this.
///
/// It keeps the context's queues alive as long as it lives, and an operation its plan. Ending no operation
/// neither waits nor cancels: it goes on, and its memory stays in use.
#[derive(Clone, Debug)]
pub struct Messages {
    endpoint: Arc<Endpoint>,
    context: u64,
    /// The communicator whose context it is.
    _keep: Communicator,
}

/// How a send of [`Messages`] is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendMode {
    /// Complete when the memory may be changed.
    Standard,
    /// Complete when a receive has matched, however short the message is.
    #[doc(alias = "MPI_Ssend")]
    Synchronous,
    /// The memory may be changed when the call returns: what cannot go at once goes from a copy.
    Copied,
    /// The same, with the copy at this address, where the caller lends room for the packed bytes
    /// until the send is complete.
    #[doc(alias = "MPI_Bsend")]
    Lent(*mut u8),
}

/// A message that a matched probe has found: no other receive gets it.
#[doc(alias = "MPI_Message")]
#[derive(Debug)]
pub struct Matched(Taken);

impl Matched {
    /// What the probe says about it.
    pub fn status(&self) -> Status {
        self.0.status()
    }
}

impl Communicator {
    /// The messages of this communicator.
    pub fn messages(&self) -> Messages {
        Messages {
            endpoint: self.endpoint().clone(),
            context: self.context(Space::User),
            _keep: self.clone(),
        }
    }
}

impl Messages {
    /// This process's rank in the world.
    pub fn rank(&self) -> usize {
        self.endpoint.rank()
    }

    /// Starts a send of `count` elements to rank `dest` of the world.
    ///
    /// # Safety
    ///
    /// - The elements' bytes are readable; in the modes without a copy they stay so, and
    ///   unchanged, until the operation has ended.
    /// - Lent memory has room for the packed bytes, and is nobody else's until it has ended.
    /// - `dest` is a rank of the world, `tag` is not negative.
    ///
    /// # Errors
    /// A count beyond 64 bits of packed bytes; out of memory; a rank has died. Nothing was started
    /// then.
    pub unsafe fn send(
        &self,
        mode: SendMode,
        origin: *const u8,
        plan: &Plan,
        count: u64,
        dest: usize,
        tag: i32,
    ) -> Result<Operation> {
        let layout = LayoutRef { origin: origin.cast_mut(), plan, count };
        let bytes = plan.packed_bytes(count)?;
        let backing = match mode {
            SendMode::Standard | SendMode::Synchronous => Backing::Caller,
            SendMode::Copied => Backing::Copy,
            SendMode::Lent(start) => Backing::Lent(start),
        };
        let how = How { synchronous: mode == SendMode::Synchronous, backing };
        let label = Label { context: self.context, tag, bytes, types: OF_LAYOUT };
        // SAFETY: the memory is the caller's promise, the size is the plan's own.
        unsafe { self.endpoint.send_as(&layout, label, slot_of(dest), how) }
    }

    #[inline]
    fn posting<'a>(&self, layout: LayoutRef<'a>, source: Source, tag: Tag) -> Result<Posting<'a>> {
        Posting::new(layout, self.context, sender_of(source), tag)
    }

    /// Starts a receive of at most `count` elements.
    ///
    /// # Safety
    ///
    /// - The elements' bytes are writable, and nobody else's, until the operation has ended.
    /// - `source` is a rank of the world, a `tag` is not negative.
    ///
    /// # Errors
    /// As [`send`](Self::send); a message that had arrived is longer than the receive, or of other
    /// types.
    pub unsafe fn receive(
        &self,
        origin: *mut u8,
        plan: &Plan,
        count: u64,
        source: Source,
        tag: Tag,
    ) -> Result<Operation> {
        let posting = self.posting(LayoutRef { origin, plan, count }, source, tag)?;
        // SAFETY: the memory is the caller's promise, the size is the plan's own.
        unsafe { self.endpoint.receive(&posting) }
    }

    /// Receives and waits.
    ///
    /// # Safety
    /// As [`receive`](Self::receive), until the call returns.
    ///
    /// # Errors
    /// As [`receive`](Self::receive).
    pub unsafe fn receive_now(
        &self,
        origin: *mut u8,
        plan: &Plan,
        count: u64,
        source: Source,
        tag: Tag,
    ) -> Result<Status> {
        let posting = self.posting(LayoutRef { origin, plan, count }, source, tag)?;
        // SAFETY: the memory is the caller's promise, the size is the plan's own.
        unsafe { self.endpoint.receive_now(&posting) }
    }

    /// Starts the receive of a message that a matched probe has found.
    ///
    /// # Safety
    /// As [`receive`](Self::receive).
    ///
    /// # Errors
    /// As [`receive`](Self::receive).
    pub unsafe fn receive_matched(
        &self,
        origin: *mut u8,
        plan: &Plan,
        count: u64,
        message: Matched,
    ) -> Result<Operation> {
        let layout = LayoutRef { origin, plan, count };
        let capacity = plan.packed_bytes(count)?;
        // SAFETY: the memory is the caller's promise, the size is the plan's own.
        unsafe { self.endpoint.receive_taken(&layout, capacity, message.0) }
    }

    /// The message that a receive would match now; waits for one if `wait`.
    ///
    /// # Errors
    /// A rank has died.
    pub fn probe(&self, source: Source, tag: Tag, wait: bool) -> Result<Option<Status>> {
        self.endpoint.probe(self.context, sender_of(source), tag, wait)
    }

    /// The same, taken out of the queue.
    ///
    /// # Errors
    /// A rank has died.
    #[doc(alias = "MPI_Mprobe")]
    pub fn take(&self, source: Source, tag: Tag, wait: bool) -> Result<Option<Matched>> {
        Ok(self.endpoint.take(self.context, sender_of(source), tag, wait)?.map(Matched))
    }

    /// Waits until `look` has an answer. It is called often, under the lock of all communication:
    /// it must be short, and call nothing that communicates.
    ///
    /// # Errors
    /// A rank has died. Operations that were waited for go on: [`abandon`](Self::abandon).
    pub fn wait_until<R>(&self, mut look: impl FnMut(&mut Ongoing<'_>) -> Option<R>) -> Result<R> {
        self.endpoint.attend(|engine| look(&mut Ongoing(engine)))
    }

    /// Makes progress, then gives the answer of `look` if it has one.
    ///
    /// # Errors
    /// As [`wait_until`](Self::wait_until).
    pub fn look<R>(&self, look: impl FnOnce(&mut Ongoing<'_>) -> Option<R>) -> Result<Option<R>> {
        self.endpoint.glance(|engine| look(&mut Ongoing(engine)))
    }

    /// Changes operations, without making progress; waiters look again.
    ///
    /// # Errors
    /// The job has been left.
    pub fn change<R>(&self, change: impl FnOnce(&mut Ongoing<'_>) -> R) -> Result<R> {
        self.endpoint.change(|engine| change(&mut Ongoing(engine)))
    }

    /// Waits for one operation. Afterwards, whatever the result, its memory is the caller's again.
    ///
    /// # Errors
    /// The operation's own; a rank has died.
    pub fn finish(&self, operation: Operation) -> Result<Status> {
        match operation {
            Operation::Done(status) => Ok(status),
            Operation::Pending(id) => self.endpoint.wait(id),
        }
    }

    /// Waits for all of `operations`, empties the vector, and returns their statuses in order.
    ///
    /// # Errors
    /// The first error of any of them; all have ended all the same.
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

    /// Cuts an operation loose from its memory, without waiting: a send still happens, from a
    /// copy; a receive is cancelled, or its message read and dropped.
    pub fn abandon(&self, operation: Operation) {
        if let Operation::Pending(id) = operation {
            self.endpoint.detach(id);
        }
    }

    /// One turn of the progress engine.
    ///
    /// # Errors
    /// A rank has died.
    pub fn progress(&self) -> Result<()> {
        self.endpoint.progress()
    }

    /// Tells those in [`wait_until`](Self::wait_until) to look again: something that is no message
    /// has happened.
    pub fn nudge(&self) {
        self.endpoint.nudge();
    }
}

/// The operations in flight, while nothing else moves them. The messages of a collective operation are
/// the operation's own: no method ends one of them.
#[derive(Debug)]
pub struct Ongoing<'a>(&'a mut MessageEngine);

impl Ongoing<'_> {
    /// The result of an operation, once, if it is complete.
    pub fn fetch(&mut self, id: u64) -> Option<Result<Status>> {
        self.0.requests().fetch(id)
    }

    /// Whether an operation is complete; one whose result was fetched is.
    pub fn is_complete(&mut self, id: u64) -> bool {
        self.0.requests().is_complete(id)
    }

    /// Cancels a receive that no message has matched; its number is free then.
    #[doc(alias = "MPI_Cancel")]
    pub fn cancel_receive(&mut self, id: u64) -> bool {
        !self.0.requests().is_owned(id) && self.0.cancel_receive(id)
    }

    /// Nobody will ask for this operation's result; it goes on, and its memory stays in use.
    #[doc(alias = "MPI_Request_free")]
    pub fn forget(&mut self, id: u64) {
        if !self.0.requests().is_owned(id) {
            self.0.requests().orphan(id);
        }
    }
}
