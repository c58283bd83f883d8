//! Safe nonblocking operations: a scope ends only after its operations have ended.
//!
//! Scopes work like `std::thread::scope`. A scope borrows the buffers for `'env`, which is longer than the
//! life of the scope. The end of the scope completes all operations that were started in it. The scope keeps
//! its own list of operations, so a leaked [`Request`] does no harm. If the program panics in the scope, the
//! scope detaches the operations from their buffers (`endpoint/engine/detach.rs`) and does not wait for them,
//! because the message that an operation waits for may never arrive.

use super::{Communicator, Space, readable, writable};
use crate::message::{Operation, Source, Status, Tag};
use crate::{Error, ErrorKind, Plan, Result};
use bytemuck::{AnyBitPattern, NoUninit};
use std::any::Any;
use std::collections::TryReserveError;
use std::fmt;
use std::marker::PhantomData;
use std::sync::{Mutex, MutexGuard, PoisonError};
use typepack_engine::reserve::Grow;

/// A scope for nonblocking operations; see [`Communicator::scope`].
pub struct Scope<'scope, 'env: 'scope> {
    comm: Communicator,
    space: Space,
    pending: Mutex<Pending>,
    // These fields make both lifetimes invariant, as in `std::thread::Scope`, so the compiler neither
    // shortens nor extends them.
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

/// A nonblocking operation of a [`Scope`]. If the program drops a request, the operation continues, and the
/// end of the scope waits for it.
#[doc(alias = "MPI_Request")]
#[derive(Debug)]
pub struct Request<'scope> {
    started: Operation,
    /// The place of the operation in the scope's list, if the operation is pending.
    place: usize,
    scope: PhantomData<&'scope mut &'scope ()>,
}

/// The pending operations of a scope.
#[derive(Default)]
struct Pending {
    /// The number of the operation at each place; `None` if the place is free.
    ids: Vec<Option<u64>>,
    free: Vec<usize>,
    /// Values that live until an operation has ended, with the number of the operation.
    kept: Vec<(u64, Box<dyn Any + Send>)>,
}

impl Pending {
    /// Makes room for another operation. All places have room in the list of free places, so that no removal allocates.
    fn make_room(&mut self) -> std::result::Result<(), TryReserveError> {
        if self.free.is_empty() {
            self.ids.grow(1)?;
            self.free.grow(self.ids.capacity())?;
        }
        self.kept.grow(1)
    }

    fn add(&mut self, id: u64) -> usize {
        let place = self.free.pop().unwrap_or(self.ids.len());
        match self.ids.get_mut(place) {
            Some(free) => *free = Some(id),
            None => self.ids.push(Some(id)),
        }
        place
    }

    /// Removes an operation, unless it was removed before, and drops the values that were kept for it.
    fn remove(&mut self, place: usize, id: u64) {
        if let Some(held) = self.ids.get_mut(place)
            && *held == Some(id)
        {
            *held = None;
            self.free.push(place);
        }
        self.release(id);
    }

    /// Drops the values that live until the operation has ended.
    fn release(&mut self, id: u64) {
        if !self.kept.is_empty() {
            self.kept.retain(|(of, _)| *of != id);
        }
    }
}

impl Communicator {
    /// Runs `f` with a scope for nonblocking operations, and waits for all operations that `f` started.
    ///
    /// ```
    /// # let universe = typepack::init()?;
    /// use typepack::{Datatype, Named};
    /// let world = universe.world();
    /// let double = typepack::commit(&Datatype::named(Named::F64))?;
    /// let (mine, mut theirs) = ([1.0, 2.0], [0.0; 2]);
    /// let right = (world.rank() + 1) % world.size();
    /// world.scope(|scope| -> typepack::Result<()> {
    ///     scope.irecv_elements(&mut theirs, &double, 2, typepack::Source::Any, 0)?;
    ///     scope.isend_elements(&mine, &double, 2, right, 0)?;
    ///     Ok(())
    /// })??;
    /// assert_eq!(theirs, mine);
    /// # Ok::<(), typepack::Error>(())
    /// ```
    ///
    /// If `f` returns an error, the scope still waits for the operations that `f` has started. If the message
    /// of a receive never arrives, the scope waits forever, as `std::thread::scope` does for a thread that
    /// never ends. So a program should first do the steps that can fail before any message is sent (checks of
    /// arguments, commits), and only then start the first operation.
    ///
    /// # Errors
    /// Returns the first error among the operations that `f` has started and has not waited for. When the
    /// call returns, all operations have ended, even if one of them failed.
    ///
    /// # Panics
    /// Panics if `f` panics. In this case the library completes the sends from copies, cancels the receives
    /// that no message has matched, and discards the messages of the other receives.
    pub fn scope<'env, R>(
        &self,
        f: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> R,
    ) -> Result<R> {
        self.scope_in(Space::User, f)
    }

    /// Runs `f` with a scope whose operations use the message space `space`.
    pub(crate) fn scope_in<'env, R>(
        &self,
        space: Space,
        f: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> R,
    ) -> Result<R> {
        let scope = Scope {
            comm: self.clone(),
            space,
            pending: Mutex::new(Pending::default()),
            scope: PhantomData,
            env: PhantomData,
        };
        // Rust drops `end` when this function ends, even if `f` panics.
        let end = End { comm: &scope.comm, pending: &scope.pending };
        let result = f(&scope);
        end.wait()?;
        Ok(result)
    }
}

fn locked(pending: &Mutex<Pending>) -> MutexGuard<'_, Pending> {
    // If another thread panicked while it held this lock, the list is still consistent, because nothing can
    // panic between the steps of a change of the list.
    pending.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends a scope. `wait` completes the scope's operations. If the value is dropped without a call of `wait`,
/// because the program panics, the drop detaches the operations.
struct End<'a> {
    comm: &'a Communicator,
    pending: &'a Mutex<Pending>,
}

impl End<'_> {
    /// Removes the last operation from the list and returns it. If the wait for this operation panics, the
    /// other operations are still in the list and can be detached.
    fn next(&self) -> Option<u64> {
        let mut pending = locked(self.pending);
        loop {
            if let Some(id) = pending.ids.pop()? {
                return Some(id);
            }
        }
    }

    fn wait(&self) -> Result<()> {
        let mut failed = None;
        // `next` takes operations from the end of the list. Reverse the list, so that `next` returns them in
        // the order in which they were started (except where an operation has taken the place of an earlier
        // one that had ended). This is allowed because no request uses its place any more.
        locked(self.pending).ids.reverse();
        while let Some(id) = self.next() {
            if let Err(error) = self.comm.endpoint().wait(id, "Communicator::scope") {
                failed = failed.or(Some(error));
            }
            locked(self.pending).release(id);
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
    /// Returns the communicator of the scope.
    pub(crate) fn comm(&self) -> &Communicator {
        &self.comm
    }

    /// Makes room for another operation of the scope, before it starts.
    ///
    /// # Errors
    /// Returns `ErrorKind::NoMemory` if memory runs out.
    pub(crate) fn make_room(&self) -> Result<()> {
        let refused = |_| {
            let detail = "there is no memory for another operation of the scope";
            Error::new(ErrorKind::NoMemory, "memory", detail)
        };
        locked(&self.pending).make_room().map_err(refused)
    }

    pub(crate) fn keep(&self, started: Operation) -> Request<'scope> {
        let mut place = 0;
        if let Operation::Pending(id) = started {
            place = locked(&self.pending).add(id);
        }
        Request { started, place, scope: PhantomData }
    }

    /// Keeps an operation like [`keep`](Self::keep), and `value` until the operation has ended.
    pub(crate) fn keep_with(&self, started: Operation, value: impl Any + Send) -> Request<'scope> {
        if let Operation::Pending(id) = started {
            locked(&self.pending).kept.push((id, Box::new(value)));
        }
        self.keep(started)
    }

    fn forget(&self, place: usize, id: u64) {
        locked(&self.pending).remove(place, id);
    }

    /// Starts a send; see [`Communicator::send_elements`].
    ///
    /// # Errors
    /// Returns the errors of [`Communicator::send_elements`]. If the call returns an error, no operation has started.
    #[doc(alias = "MPI_Isend")]
    pub fn isend_elements<T: NoUninit>(
        &'scope self,
        buf: &'env [T],
        plan: &Plan,
        count: u64,
        dest: usize,
        tag: i32,
    ) -> Result<Request<'scope>> {
        self.isend_elements_at(buf, 0, plan, count, dest, tag)
    }

    /// Starts a send like [`isend_elements`](Self::isend_elements), but places the type's displacement 0 at byte
    /// `origin` of the buffer.
    ///
    /// # Errors
    /// Returns the errors of [`Communicator::send_elements`]. If the call returns an error, no operation has started.
    #[doc(alias = "MPI_Isend")]
    pub fn isend_elements_at<T: NoUninit>(
        &'scope self,
        buf: &'env [T],
        origin: usize,
        plan: &Plan,
        count: u64,
        dest: usize,
        tag: i32,
    ) -> Result<Request<'scope>> {
        let layout = readable(buf, origin, plan, count, "buf")?;
        self.make_room()?;
        // SAFETY: `buf` holds the elements (`readable` has checked this) and is borrowed for 'env, which
        // outlives the scope; the scope ends after the operation is complete or detached.
        let started = unsafe { self.comm.start_send(&layout, dest, tag, self.space)? };
        Ok(self.keep(started))
    }

    /// Starts a receive; see [`Communicator::recv_elements`].
    ///
    /// # Errors
    /// Returns the errors of [`Communicator::recv_elements`]. If the call returns an error, no operation has started.
    #[doc(alias = "MPI_Irecv")]
    pub fn irecv_elements<T: NoUninit + AnyBitPattern>(
        &'scope self,
        buf: &'env mut [T],
        plan: &Plan,
        count: u64,
        source: impl Into<Source>,
        tag: impl Into<Tag>,
    ) -> Result<Request<'scope>> {
        self.irecv_elements_at(buf, 0, plan, count, source, tag)
    }

    /// Starts a receive like [`irecv_elements`](Self::irecv_elements), but places the type's displacement 0 at byte
    /// `origin` of the buffer.
    ///
    /// # Errors
    /// Returns the errors of [`Communicator::recv_elements`]. If the call returns an error, no operation has started.
    #[doc(alias = "MPI_Irecv")]
    pub fn irecv_elements_at<T: NoUninit + AnyBitPattern>(
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
        self.make_room()?;
        // SAFETY: `buf` holds the elements (`writable` has checked this) and is mutably borrowed for 'env,
        // which outlives the scope; the scope ends after the operation is complete or detached.
        let started = unsafe { self.comm.start_receive(&layout, source, tag, self.space)? };
        Ok(self.keep(started))
    }

    /// Waits for one operation.
    ///
    /// # Errors
    /// Returns the error of the operation, or an error of the wait, for example
    /// [`ErrorKind::ProcAborted`](crate::ErrorKind) if a rank has died.
    #[doc(alias = "MPI_Wait")]
    pub fn wait(&'scope self, request: Request<'scope>) -> Result<Status> {
        match request.started {
            Operation::Done(status) => Ok(status),
            Operation::Pending(id) => {
                // The list keeps the operation until the wait is over. So if the wait panics, the scope still
                // detaches the operation.
                let result = self.comm.finish(request.started, "Scope::wait");
                self.forget(request.place, id);
                result
            }
        }
    }

    /// Waits for several operations and returns their statuses in order.
    ///
    /// # Errors
    /// Returns the first error of an operation. When the call returns, all operations have ended, even if one
    /// of them failed.
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

    /// Returns the status of an operation if it is complete, and otherwise `None`. Once the operation is
    /// complete, every later call returns the same status.
    ///
    /// # Errors
    /// Returns the errors of [`wait`](Self::wait). If the call returns an error, the operation has ended.
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
                self.forget(request.place, id);
                request.started = Operation::Done(*status);
            }
            Err(_) => self.forget(request.place, id),
        }
        tested
    }
}

impl fmt::Debug for Scope<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope").field("comm", &self.comm).finish_non_exhaustive()
    }
}
