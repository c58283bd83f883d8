//! Safe nonblocking operations: a scope that does not end before they do.
//!
//! Like `std::thread::scope`: buffers are borrowed for longer than the scope (`'env`), and leaving
//! it completes everything that was started in it. A leaked [`Request`] changes nothing, since the
//! scope keeps its own list; a panic inside the scope cuts the operations loose from their buffers
//! (`endpoint/engine.rs`, `detach`) instead of waiting for messages that may never come.

use super::{Communicator, Space, readable, writable};
use crate::message::{Operation, Source, Status, Tag};
use crate::{Plan, Result};
use bytemuck::{AnyBitPattern, NoUninit};
use std::fmt;
use std::marker::PhantomData;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Where nonblocking operations live; see [`Communicator::scope`].
pub struct Scope<'scope, 'env: 'scope> {
    comm: Communicator,
    space: Space,
    pending: Mutex<Vec<u64>>,
    // Both invariant, as in `std::thread::Scope`: neither may be shortened or prolonged.
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

/// A nonblocking operation of a [`Scope`]. Dropping it leaves the waiting to the end of the scope.
#[doc(alias = "MPI_Request")]
#[derive(Debug)]
pub struct Request<'scope> {
    started: Operation,
    scope: PhantomData<&'scope mut &'scope ()>,
}

impl Communicator {
    /// Runs `f` with a scope for nonblocking operations, and waits for all that it started.
    ///
    /// ```
    /// # let universe = typepack::init()?;
    /// use typepack::{Datatype, Named};
    /// let world = universe.world();
    /// let double = typepack::commit(&Datatype::named(Named::F64))?;
    /// let (mine, mut theirs) = ([1.0, 2.0], [0.0; 2]);
    /// let right = (world.rank() + 1) % world.size();
    /// world.scope(|scope| -> typepack::Result<()> {
    ///     scope.irecv(&mut theirs, &double, 2, typepack::Source::Any, 0)?;
    ///     scope.isend(&mine, &double, 2, right, 0)?;
    ///     Ok(())
    /// })??;
    /// assert_eq!(theirs, mine);
    /// # Ok::<(), typepack::Error>(())
    /// ```
    ///
    /// An error that `f` returns does not end what `f` has started: a receive whose message never
    /// comes is waited for, like a thread of a `std::thread::scope` that never ends. What
    /// can fail without a message (arguments, commits) is best done before the first operation.
    ///
    /// # Errors
    /// The first error of an operation that `f` left to the scope. All have ended all the same.
    ///
    /// # Panics
    /// When `f` does; then sends still happen, from copies, and receives are cancelled.
    pub fn scope<'env, R>(
        &self,
        f: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> R,
    ) -> Result<R> {
        self.scope_in(Space::User, f)
    }

    /// A scope in either message space; collective calls use the other one.
    pub(crate) fn scope_in<'env, R>(
        &self,
        space: Space,
        f: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> R,
    ) -> Result<R> {
        let scope = Scope {
            comm: self.clone(),
            space,
            pending: Mutex::new(Vec::new()),
            scope: PhantomData,
            env: PhantomData,
        };
        // Dropped last, also when `f` panics.
        let end = End { comm: &scope.comm, pending: &scope.pending };
        let result = f(&scope);
        end.wait()?;
        Ok(result)
    }
}

/// The end of a scope, by either way.
struct End<'a> {
    comm: &'a Communicator,
    pending: &'a Mutex<Vec<u64>>,
}

impl End<'_> {
    fn list(&self) -> MutexGuard<'_, Vec<u64>> {
        // The list is consistent whenever its lock is free: each change is one step.
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes them one by one: should waiting for one panic, the others are still in the list.
    fn next(&self) -> Option<u64> {
        self.list().pop()
    }

    fn wait(&self) -> Result<()> {
        let mut failed = None;
        // In the order in which they were started.
        self.list().reverse();
        while let Some(id) = self.next() {
            if let Err(error) = self.comm.endpoint().wait(id) {
                failed = failed.or(Some(error));
            }
        }
        failed.map_or(Ok(()), Err)
    }
}

impl Drop for End<'_> {
    fn drop(&mut self) {
        while let Some(id) = self.next() {
            self.comm.endpoint().detach(id);
        }
    }
}

impl<'scope, 'env> Scope<'scope, 'env> {
    /// The communicator of the scope.
    pub(crate) fn comm(&self) -> &Communicator {
        &self.comm
    }

    pub(crate) fn keep(&self, started: Operation) -> Request<'scope> {
        if let Operation::Pending(id) = started {
            self.pending.lock().unwrap_or_else(PoisonError::into_inner).push(id);
        }
        Request { started, scope: PhantomData }
    }

    fn forget(&self, id: u64) {
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = pending.iter().position(|other| *other == id) {
            pending.swap_remove(at);
        }
    }

    /// Starts a send; see [`Communicator::send`].
    ///
    /// # Errors
    /// As [`Communicator::send`]; nothing is started then.
    #[doc(alias = "MPI_Isend")]
    pub fn isend<T: NoUninit>(
        &'scope self,
        buf: &'env [T],
        plan: &Plan,
        count: u64,
        dest: usize,
        tag: i32,
    ) -> Result<Request<'scope>> {
        self.isend_at(buf, 0, plan, count, dest, tag)
    }

    /// [`isend`](Self::isend) with the type's displacement 0 at byte `origin` of the buffer.
    ///
    /// # Errors
    /// As [`Communicator::send`]; nothing is started then.
    #[doc(alias = "MPI_Isend")]
    pub fn isend_at<T: NoUninit>(
        &'scope self,
        buf: &'env [T],
        origin: usize,
        plan: &Plan,
        count: u64,
        dest: usize,
        tag: i32,
    ) -> Result<Request<'scope>> {
        let layout = readable(buf, origin, plan, count, "buf")?;
        // SAFETY: the slice is borrowed for 'env, which outlives the scope; the scope ends after
        // the operation is complete or detached.
        let started = unsafe { self.comm.start_send(&layout, dest, tag, self.space)? };
        Ok(self.keep(started))
    }

    /// Starts a receive; see [`Communicator::recv`].
    ///
    /// # Errors
    /// As [`Communicator::recv`]; nothing is started then.
    #[doc(alias = "MPI_Irecv")]
    pub fn irecv<T: NoUninit + AnyBitPattern>(
        &'scope self,
        buf: &'env mut [T],
        plan: &Plan,
        count: u64,
        source: impl Into<Source>,
        tag: impl Into<Tag>,
    ) -> Result<Request<'scope>> {
        self.irecv_at(buf, 0, plan, count, source, tag)
    }

    /// [`irecv`](Self::irecv) with the type's displacement 0 at byte `origin` of the buffer.
    ///
    /// # Errors
    /// As [`Communicator::recv`]; nothing is started then.
    #[doc(alias = "MPI_Irecv")]
    pub fn irecv_at<T: NoUninit + AnyBitPattern>(
        &'scope self,
        buf: &'env mut [T],
        origin: usize,
        plan: &Plan,
        count: u64,
        source: impl Into<Source>,
        tag: impl Into<Tag>,
    ) -> Result<Request<'scope>> {
        let layout = writable(buf, origin, plan, count, "buf")?;
        let (source, tag) = (source.into(), tag.into());
        // SAFETY: the slice is mutably borrowed for 'env, which outlives the scope; the scope ends
        // after the operation is complete or detached.
        let started = unsafe { self.comm.start_receive(&layout, source, tag, self.space)? };
        Ok(self.keep(started))
    }

    /// Waits for one operation.
    ///
    /// # Errors
    /// The operation's own; [`ErrorKind::ProcAborted`](crate::ErrorKind) when a rank has died.
    #[doc(alias = "MPI_Wait")]
    pub fn wait(&'scope self, request: Request<'scope>) -> Result<Status> {
        match request.started {
            Operation::Done(status) => Ok(status),
            Operation::Pending(id) => {
                // Forgotten only afterwards: a panic in the wait must still cut it loose.
                let result = self.comm.finish(request.started);
                self.forget(id);
                result
            }
        }
    }

    /// Waits for several operations; their statuses in order.
    ///
    /// # Errors
    /// The first error of any of them; all have ended all the same.
    #[doc(alias = "MPI_Waitall")]
    pub fn wait_all(
        &'scope self,
        requests: impl IntoIterator<Item = Request<'scope>>,
    ) -> Result<Vec<Status>> {
        let mut statuses = Vec::new();
        let mut failed = None;
        for request in requests {
            match self.wait(request) {
                Ok(status) => statuses.push(status),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        failed.map_or(Ok(statuses), Err)
    }

    /// The status of an operation if it is complete; asking again gives the same answer.
    ///
    /// # Errors
    /// As [`wait`](Self::wait); the operation has ended.
    #[doc(alias = "MPI_Test")]
    pub fn test(&'scope self, request: &mut Request<'scope>) -> Result<Option<Status>> {
        let Operation::Pending(id) = request.started else {
            return match request.started {
                Operation::Done(status) => Ok(Some(status)),
                Operation::Pending(_) => Ok(None),
            };
        };
        let tested = self.comm.test(id);
        match &tested {
            Ok(None) => {}
            Ok(Some(status)) => {
                self.forget(id);
                request.started = Operation::Done(*status);
            }
            Err(_) => self.forget(id),
        }
        tested
    }
}

impl fmt::Debug for Scope<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope").field("comm", &self.comm).finish_non_exhaustive()
    }
}
