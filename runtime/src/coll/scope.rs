//! Safe nonblocking collective calls. Each call belongs to a scope, as a nonblocking message does.
//!
//! A scope borrows the buffers for longer than the scope lives, and ends only after all its operations have
//! ended. If the program panics in a scope, the scope detaches its pending operations from their buffers. The
//! ranks that depend on the data of these operations then get an error.

use super::Collective;
use super::allreduce::{Op, Reducible, combiner};
use crate::comm::{Request, Scope, writable};
use crate::commit::bytes;
use crate::endpoint::sources::Combine;
use crate::schedule::Part;
use crate::{Plan, Result};
use bytemuck::{AnyBitPattern, NoUninit};

impl<'scope, 'env> Scope<'scope, 'env> {
    /// Starts a barrier, which completes when every rank has started it. Collective.
    ///
    /// # Errors
    /// Returns the errors of [`Communicator::barrier`](crate::Communicator::barrier).
    #[doc(alias = "MPI_Ibarrier")]
    pub fn ibarrier(&'scope self) -> Result<Request<'scope>> {
        // SAFETY: `Collective::Barrier` names no memory, so there is nothing to keep valid.
        Ok(self.keep(unsafe { self.comm().start_raw(&Collective::Barrier)? }))
    }

    /// Starts a broadcast; see [`Communicator::broadcast`](crate::Communicator::broadcast). Collective.
    ///
    /// ```
    /// # let universe = typepack::init()?;
    /// # let world = universe.world();
    /// let (mut low, mut high) = ([1u64; 4], [2u64; 4]);
    /// world.scope(|scope| -> typepack::Result<()> {
    ///     // Both broadcasts run at the same time.
    ///     scope.ibroadcast_slice(&mut low, 0)?;
    ///     scope.ibroadcast_slice(&mut high, world.size() - 1)?;
    ///     Ok(())
    /// })??;
    /// # Ok::<(), typepack::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns the errors of [`Communicator::broadcast`](crate::Communicator::broadcast).
    #[doc(alias = "MPI_Ibcast")]
    pub fn ibroadcast<T: NoUninit + AnyBitPattern>(
        &'scope self,
        buf: &'env mut [T],
        plan: &Plan,
        count: u64,
        root: usize,
    ) -> Result<Request<'scope>> {
        let layout = writable(buf, 0, plan, count, "buf");
        let layout = layout.inspect_err(|_| self.comm().skip_collective())?;
        let part = Part { origin: layout.origin, plan, count };
        // SAFETY: `buf` holds the `count` elements (`writable` has checked this) and is mutably borrowed for
        // 'env, which outlives the scope; the scope ends after the operation is complete or detached.
        Ok(self.keep(unsafe { self.comm().start_raw(&Collective::Broadcast { part, root })? }))
    }

    /// Starts a broadcast of a slice of plain values. Collective.
    ///
    /// # Errors
    /// Returns the errors of [`Communicator::broadcast`](crate::Communicator::broadcast).
    #[doc(alias = "MPI_Ibcast")]
    pub fn ibroadcast_slice<T: NoUninit + AnyBitPattern>(
        &'scope self,
        values: &'env mut [T],
        root: usize,
    ) -> Result<Request<'scope>> {
        let count = size_of_val(values) as u64;
        self.ibroadcast(values, bytes()?, count, root)
    }

    /// Starts a reduction of `values` to all ranks; see
    /// [`Communicator::allreduce`](crate::Communicator::allreduce). Collective.
    ///
    /// # Errors
    /// Returns the errors of [`Communicator::allreduce`](crate::Communicator::allreduce).
    #[doc(alias = "MPI_Iallreduce")]
    pub fn iallreduce<T: Reducible>(
        &'scope self,
        values: &'env mut [T],
        op: Op,
    ) -> Result<Request<'scope>> {
        let (plan, combine) = (T::plan()?, Combine::from(combiner::<T>(op)));
        let (recv, count) = (values.as_mut_ptr().cast(), values.len() as u64);
        let call = Collective::Allreduce { send: None, recv, plan, count, combine: &combine };
        // SAFETY: `values` has `count` values of type `T`, the type of `plan` and `combine`. The slice is
        // mutably borrowed for 'env, which outlives the scope; the scope ends after the operation is complete
        // or detached.
        Ok(self.keep(unsafe { self.comm().start_raw(&call)? }))
    }
}
