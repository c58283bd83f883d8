//! Safe nonblocking collective calls. Each call belongs to a scope, as a nonblocking message does.
//!
//! The buffers are borrowed for `'env`, which is longer than the scope lives, and the scope ends only after all its
//! operations have ended. If the program panics in a scope, the scope detaches its pending operations from their
//! buffers. The ranks that depend on the data of these operations then get an error.

use super::values::{self, Kind, Reduction};
use super::{Collective, Root};
use crate::comm::{Communicator, Request, Scope, writable};
use crate::error::check_memory;
use crate::{Plan, Result};
use bytemuck::{AnyBitPattern, NoUninit};

impl<'scope, 'env> Scope<'scope, 'env> {
    /// Starts a barrier, which completes when every rank has started it. Collective.
    ///
    /// # Errors
    /// Returns the errors of [`Communicator::barrier`](crate::Communicator::barrier).
    #[doc(alias = "MPI_Ibarrier")]
    pub fn ibarrier(&'scope self) -> Result<Request<'scope>> {
        // SAFETY: `Collective::Barrier` names no memory and no operation, so `start_raw` has no condition to keep.
        unsafe { self.start_collective(&Collective::Barrier) }
    }

    /// Starts a broadcast; see [`Communicator::broadcast_elements`](crate::Communicator::broadcast_elements).
    /// Collective.
    ///
    /// ```
    /// # let universe = typepack::init()?;
    /// # let world = universe.world();
    /// let (mut low, mut high) = ([1u64; 4], [2u64; 4]);
    /// world.scope(|scope| -> typepack::Result<()> {
    ///     // Both broadcasts run at the same time.
    ///     scope.ibroadcast(&mut low, 0)?;
    ///     scope.ibroadcast(&mut high, world.size() - 1)?;
    ///     Ok(())
    /// })??;
    /// # Ok::<(), typepack::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns the errors of [`Communicator::broadcast_elements`](crate::Communicator::broadcast_elements).
    #[doc(alias = "MPI_Ibcast")]
    pub fn ibroadcast_elements<T: NoUninit + AnyBitPattern>(
        &'scope self,
        buf: &'env mut [T],
        plan: &Plan,
        count: u64,
        root: impl Into<Root>,
    ) -> Result<Request<'scope>> {
        let part = writable(buf, 0, plan, count, "buf");
        let part = part.inspect_err(|_| self.comm().skip_started())?;
        // SAFETY: `buf` holds the `count` elements (`writable` has checked this) and is mutably borrowed for
        // 'env, which outlives the scope; the scope ends after the operation is complete or detached.
        unsafe { self.start_collective(&Collective::Broadcast { part, root: root.into() }) }
    }

    /// Starts a reduction of `values` to all ranks; see
    /// [`Communicator::all_reduce_in_place`](crate::Communicator::all_reduce_in_place). Collective.
    ///
    /// # Errors
    /// Returns the errors of [`Communicator::all_reduce_in_place`](crate::Communicator::all_reduce_in_place).
    #[doc(alias = "MPI_Iallreduce")]
    pub fn iall_reduce_in_place<T: NoUninit + AnyBitPattern>(
        &'scope self,
        values: &'env mut [T],
        op: impl Reduction<T>,
    ) -> Result<Request<'scope>> {
        self.values(Kind::Allreduce, None, values, op)
    }

    /// Starts a reduction of `send` to all ranks; see
    /// [`Communicator::all_reduce`](crate::Communicator::all_reduce). Collective.
    ///
    /// # Errors
    /// Returns the errors of [`Communicator::all_reduce`](crate::Communicator::all_reduce).
    #[doc(alias = "MPI_Iallreduce")]
    pub fn iall_reduce<T: NoUninit + AnyBitPattern>(
        &'scope self,
        send: &'env [T],
        recv: &'env mut [T],
        op: impl Reduction<T>,
    ) -> Result<Request<'scope>> {
        self.values(Kind::Allreduce, Some(send), recv, op)
    }

    /// Starts a reduction to one rank; see
    /// [`Communicator::reduce`](crate::Communicator::reduce). Collective.
    ///
    /// # Errors
    /// Returns the errors of [`Communicator::reduce`](crate::Communicator::reduce).
    #[doc(alias = "MPI_Ireduce")]
    pub fn ireduce<T: NoUninit + AnyBitPattern>(
        &'scope self,
        send: &'env [T],
        recv: &'env mut [T],
        op: impl Reduction<T>,
        root: usize,
    ) -> Result<Request<'scope>> {
        self.values(Kind::Reduce(root), Some(send), recv, op)
    }

    /// Starts a scan; see
    /// [`Communicator::scan`](crate::Communicator::scan). Collective.
    ///
    /// # Errors
    /// Returns the errors of [`Communicator::scan`](crate::Communicator::scan).
    #[doc(alias = "MPI_Iscan")]
    pub fn iscan<T: NoUninit + AnyBitPattern>(
        &'scope self,
        send: &'env [T],
        recv: &'env mut [T],
        op: impl Reduction<T>,
    ) -> Result<Request<'scope>> {
        self.values(Kind::Scan, Some(send), recv, op)
    }

    /// Starts an exscan; see
    /// [`Communicator::exscan`](crate::Communicator::exscan). Collective.
    ///
    /// # Errors
    /// Returns the errors of [`Communicator::exscan`](crate::Communicator::exscan).
    #[doc(alias = "MPI_Iexscan")]
    pub fn iexscan<T: NoUninit + AnyBitPattern>(
        &'scope self,
        send: &'env [T],
        recv: &'env mut [T],
        op: impl Reduction<T>,
    ) -> Result<Request<'scope>> {
        self.values(Kind::Exscan, Some(send), recv, op)
    }

    /// Starts a reduction whose result is divided among the ranks; see
    /// [`Communicator::reduce_scatter`](crate::Communicator::reduce_scatter). Collective.
    ///
    /// # Errors
    /// Returns the errors of [`Communicator::reduce_scatter`](crate::Communicator::reduce_scatter).
    #[doc(alias = "MPI_Ireduce_scatter")]
    pub fn ireduce_scatter<T: NoUninit + AnyBitPattern>(
        &'scope self,
        send: &'env [T],
        recv: &'env mut [T],
        counts: &[usize],
        op: impl Reduction<T>,
    ) -> Result<Request<'scope>> {
        self.values(Kind::ReduceScatter(counts), Some(send), recv, op)
    }

    /// Starts a reduction whose result is divided into blocks of equal length; see
    /// [`Communicator::reduce_scatter_block`](crate::Communicator::reduce_scatter_block). Collective.
    ///
    /// # Errors
    /// Returns the errors of [`Communicator::reduce_scatter_block`](crate::Communicator::reduce_scatter_block).
    #[doc(alias = "MPI_Ireduce_scatter_block")]
    pub fn ireduce_scatter_block<T: NoUninit + AnyBitPattern>(
        &'scope self,
        send: &'env [T],
        recv: &'env mut [T],
        op: impl Reduction<T>,
    ) -> Result<Request<'scope>> {
        let counts = vec![recv.len(); self.comm().size()];
        self.values(Kind::ReduceScatter(&counts), Some(send), recv, op)
    }

    /// Starts a collective call as an operation of the scope.
    ///
    /// # Safety
    ///
    /// - The conditions of [`Communicator::start_raw`] hold until the operation is complete or detached.
    ///
    /// # Errors
    /// Returns the errors of [`Communicator::start_raw`], and `ErrorKind::NoMemory` if memory is short; then the call
    /// fails on the ranks that depend on the data of this rank, too.
    pub(crate) unsafe fn start_collective(&self, call: &Collective<'_>) -> Result<Request<'scope>> {
        // A rank that has no memory takes part, so that the others do not wait for it.
        if let Err(error) = check_memory().and_then(|()| self.make_room()) {
            // SAFETY: the caller guarantees the conditions of this function, and `refuse_raw` has the same.
            return Err(unsafe { self.comm().refuse_raw(call, error) });
        }
        // SAFETY: the caller guarantees the conditions of `start_raw`: the memory of `call` outlives the scope.
        Ok(self.keep(unsafe { self.comm().start_raw(call)? }))
    }

    /// Starts a reduction of values.
    fn values<T: NoUninit + AnyBitPattern>(
        &'scope self,
        kind: Kind<'_>,
        send: Option<&'env [T]>,
        recv: &'env mut [T],
        op: impl Reduction<T>,
    ) -> Result<Request<'scope>> {
        values::call(self.comm(), kind, send, recv, op, Communicator::skip_started, |call| {
            // SAFETY: `call` uses only the elements of `send` and `recv` (`values::call` checks the lengths of the
            // slices). The slices are borrowed for 'env, which outlives the scope, and `recv` mutably; the scope
            // ends after the operation is complete or detached. The operation is one on values of type `T`.
            unsafe { self.start_collective(call) }
        })
    }
}
