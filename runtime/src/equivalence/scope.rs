//! Safe nonblocking messages and collective calls of buffers. Each call belongs to a scope.
//!
//! A scope borrows the buffers for `'env`, as `comm/scope.rs` says. So a view of `ndarray` or [`Elements`] must be a
//! variable that the program has made before the scope.
//!
//! [`Elements`]: super::Elements

use super::buffer::{Buffer, BufferMut};
use super::collectives::{one, one_mut, several, several_mut};
use super::divide::{self, Buffers, Kind};
use crate::Result;
use crate::coll::{Collective, Root};
use crate::comm::{Communicator, Request, Scope, Source, Space, Tag};

impl<'scope, 'env> Scope<'scope, 'env> {
    /// Starts a send; see [`Communicator::send`].
    ///
    /// ```
    /// # let universe = typepack::init()?;
    /// # let world = universe.world();
    /// let (mine, mut theirs) = (world.rank(), 0);
    /// let (next, previous) = ((mine + 1) % world.size(), (mine + world.size() - 1) % world.size());
    /// world.scope(|scope| -> typepack::Result<()> {
    ///     scope.irecv(&mut theirs, previous, 0)?;
    ///     scope.isend(&mine, next, 0)?;
    ///     Ok(())
    /// })??;
    /// assert_eq!(theirs, previous);
    /// # Ok::<(), typepack::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns the errors of [`Communicator::send`]. If the call returns an error, no operation has started.
    #[doc(alias = "MPI_Isend")]
    pub fn isend<T, S: Buffer<T> + ?Sized>(
        &'scope self,
        values: &'env S,
        dest: usize,
        tag: i32,
    ) -> Result<Request<'scope>> {
        let sequence = values.sequence("values")?;
        self.make_room()?;
        // SAFETY: the data of the sequence are readable, initialised and unchanged while the buffer is borrowed
        // (`Readable`). It is borrowed for 'env, which outlives the scope; the scope ends after the operation is
        // complete or detached.
        let started = unsafe { self.comm().start_send(&sequence.whole(), dest, tag, Space::User)? };
        Ok(self.keep(started))
    }

    /// Starts a receive; see [`Communicator::recv`]. The status of the request has the number of bytes.
    ///
    /// # Errors
    /// Returns the errors of [`Communicator::recv`]. If the call returns an error, no operation has started.
    #[doc(alias = "MPI_Irecv")]
    pub fn irecv<T, R: BufferMut<T> + ?Sized>(
        &'scope self,
        values: &'env mut R,
        source: impl Into<Source>,
        tag: impl Into<Tag>,
    ) -> Result<Request<'scope>> {
        let sequence = values.sequence_mut("values")?;
        let (source, tag) = (source.into(), tag.into());
        self.make_room()?;
        // SAFETY: the data of the sequence are writable, may get any bytes, and nobody else accesses them while the
        // buffer is mutably borrowed (`Writable`). It is borrowed for 'env, which outlives the scope; the scope ends
        // after the operation is complete or detached.
        let started =
            unsafe { self.comm().start_receive(&sequence.whole(), source, tag, Space::User)? };
        Ok(self.keep(started))
    }

    /// Starts a broadcast; see [`Communicator::broadcast`]. Collective.
    ///
    /// # Errors
    /// Returns the errors of [`Communicator::broadcast`].
    #[doc(alias = "MPI_Ibcast")]
    pub fn ibroadcast<T, R: BufferMut<T> + ?Sized>(
        &'scope self,
        values: &'env mut R,
        root: impl Into<Root>,
    ) -> Result<Request<'scope>> {
        let sequence = values.sequence_mut("values");
        let sequence = sequence.inspect_err(|_| self.comm().skip_started())?;
        let call = Collective::Broadcast { part: sequence.whole(), root: root.into() };
        // SAFETY: the data of the part are readable, writable and initialised, may get any bytes, and nobody else
        // accesses them while the buffer is mutably borrowed (`Writable`). It is borrowed for 'env, which outlives the
        // scope; the scope ends after the operation is complete or detached. The plan needs to live only until the call
        // returns.
        unsafe { self.start_collective(&call) }
    }

    /// Starts a collective call.
    fn move_later(
        &'scope self,
        kind: Kind<'_>,
        send: impl FnOnce() -> Result<Buffers<'env>>,
        recv: impl FnOnce() -> Result<Buffers<'env>>,
    ) -> Result<Request<'scope>> {
        divide::call(self.comm(), kind, send, recv, Communicator::skip_started, |call| {
            // SAFETY: `call` reads and writes only data of the buffers that `send` and `recv` return, and the written
            // parts do not overlap (`divide::call`). The buffers are borrowed for 'env, which outlives the scope; the
            // scope ends after the operation is complete or detached. While they are borrowed, nobody else changes the
            // data for sending or accesses the data for receiving (`Readable`, `Writable`). The call has no operation.
            unsafe { self.start_collective(call) }
        })
    }

    /// Starts a gather; see [`Communicator::gather`]. Collective.
    ///
    /// # Errors
    /// Returns the errors of [`Communicator::gather`].
    #[doc(alias = "MPI_Igather")]
    pub fn igather<T, S: Buffer<T> + ?Sized, R: BufferMut<T> + ?Sized>(
        &'scope self,
        send: &'env S,
        recv: &'env mut R,
        root: impl Into<Root>,
    ) -> Result<Request<'scope>> {
        let kind = Kind::Gather { counts: None, root: root.into() };
        self.move_later(kind, || one(send), || one_mut(recv))
    }

    /// Starts a gather of parts of different lengths; see [`Communicator::gather_varcount`]. Collective.
    ///
    /// # Errors
    /// Returns the errors of [`Communicator::gather_varcount`].
    #[doc(alias = "MPI_Igatherv")]
    pub fn igather_varcount<T, S: Buffer<T> + ?Sized, R: BufferMut<T> + ?Sized>(
        &'scope self,
        send: &'env S,
        recv: &'env mut R,
        counts: &[usize],
        root: impl Into<Root>,
    ) -> Result<Request<'scope>> {
        let kind = Kind::Gather { counts: Some(counts), root: root.into() };
        self.move_later(kind, || one(send), || one_mut(recv))
    }

    /// Starts a gather into one buffer for each rank; see [`Communicator::gather_parts`]. Collective.
    ///
    /// # Errors
    /// Returns the errors of [`Communicator::gather_parts`].
    #[doc(alias = "MPI_Igatherv")]
    pub fn igather_parts<T, S: Buffer<T> + ?Sized, R: BufferMut<T>>(
        &'scope self,
        send: &'env S,
        recv: &'env mut [R],
        root: impl Into<Root>,
    ) -> Result<Request<'scope>> {
        let kind = Kind::Gather { counts: None, root: root.into() };
        self.move_later(kind, || one(send), || several_mut(recv))
    }

    /// Starts a scatter; see [`Communicator::scatter`]. Collective.
    ///
    /// # Errors
    /// Returns the errors of [`Communicator::scatter`].
    #[doc(alias = "MPI_Iscatter")]
    pub fn iscatter<T, S: Buffer<T> + ?Sized, R: BufferMut<T> + ?Sized>(
        &'scope self,
        send: &'env S,
        recv: &'env mut R,
        root: impl Into<Root>,
    ) -> Result<Request<'scope>> {
        let kind = Kind::Scatter { counts: None, root: root.into() };
        self.move_later(kind, || one(send), || one_mut(recv))
    }

    /// Starts a scatter of parts of different lengths; see [`Communicator::scatter_varcount`]. Collective.
    ///
    /// # Errors
    /// Returns the errors of [`Communicator::scatter_varcount`].
    #[doc(alias = "MPI_Iscatterv")]
    pub fn iscatter_varcount<T, S: Buffer<T> + ?Sized, R: BufferMut<T> + ?Sized>(
        &'scope self,
        send: &'env S,
        counts: &[usize],
        recv: &'env mut R,
        root: impl Into<Root>,
    ) -> Result<Request<'scope>> {
        let kind = Kind::Scatter { counts: Some(counts), root: root.into() };
        self.move_later(kind, || one(send), || one_mut(recv))
    }

    /// Starts a scatter of one buffer for each rank; see [`Communicator::scatter_parts`]. Collective.
    ///
    /// # Errors
    /// Returns the errors of [`Communicator::scatter_parts`].
    #[doc(alias = "MPI_Iscatterv")]
    pub fn iscatter_parts<T, S: Buffer<T>, R: BufferMut<T> + ?Sized>(
        &'scope self,
        send: &'env [S],
        recv: &'env mut R,
        root: impl Into<Root>,
    ) -> Result<Request<'scope>> {
        let kind = Kind::Scatter { counts: None, root: root.into() };
        self.move_later(kind, || several(send), || one_mut(recv))
    }

    /// Starts a gather to all ranks; see [`Communicator::all_gather`]. Collective.
    ///
    /// # Errors
    /// Returns the errors of [`Communicator::all_gather`].
    #[doc(alias = "MPI_Iallgather")]
    pub fn iall_gather<T, S: Buffer<T> + ?Sized, R: BufferMut<T> + ?Sized>(
        &'scope self,
        send: &'env S,
        recv: &'env mut R,
    ) -> Result<Request<'scope>> {
        let kind = Kind::AllGather { counts: None };
        self.move_later(kind, || one(send), || one_mut(recv))
    }

    /// Starts a gather to all ranks, in place; see [`Communicator::all_gather_in_place`]. Collective.
    ///
    /// # Errors
    /// Returns the errors of [`Communicator::all_gather_in_place`].
    #[doc(alias = "MPI_Iallgather")]
    pub fn iall_gather_in_place<T, R: BufferMut<T> + ?Sized>(
        &'scope self,
        values: &'env mut R,
    ) -> Result<Request<'scope>> {
        let kind = Kind::AllGather { counts: None };
        self.move_later(kind, || Ok(Buffers::None), || one_mut(values))
    }

    /// Starts a gather of parts of different lengths to all ranks; see [`Communicator::all_gather_varcount`].
    /// Collective.
    ///
    /// # Errors
    /// Returns the errors of [`Communicator::all_gather_varcount`].
    #[doc(alias = "MPI_Iallgatherv")]
    pub fn iall_gather_varcount<T, S: Buffer<T> + ?Sized, R: BufferMut<T> + ?Sized>(
        &'scope self,
        send: &'env S,
        recv: &'env mut R,
        counts: &[usize],
    ) -> Result<Request<'scope>> {
        let kind = Kind::AllGather { counts: Some(counts) };
        self.move_later(kind, || one(send), || one_mut(recv))
    }

    /// Starts a gather to all ranks into one buffer for each rank; see [`Communicator::all_gather_parts`]. Collective.
    ///
    /// # Errors
    /// Returns the errors of [`Communicator::all_gather_parts`].
    #[doc(alias = "MPI_Iallgatherv")]
    pub fn iall_gather_parts<T, S: Buffer<T> + ?Sized, R: BufferMut<T>>(
        &'scope self,
        send: &'env S,
        recv: &'env mut [R],
    ) -> Result<Request<'scope>> {
        let kind = Kind::AllGather { counts: None };
        self.move_later(kind, || one(send), || several_mut(recv))
    }

    /// Starts an exchange of equal parts between all ranks; see [`Communicator::all_to_all`]. Collective.
    ///
    /// # Errors
    /// Returns the errors of [`Communicator::all_to_all`].
    #[doc(alias = "MPI_Ialltoall")]
    pub fn iall_to_all<T, S: Buffer<T> + ?Sized, R: BufferMut<T> + ?Sized>(
        &'scope self,
        send: &'env S,
        recv: &'env mut R,
    ) -> Result<Request<'scope>> {
        let kind = Kind::AllToAll { counts: None };
        self.move_later(kind, || one(send), || one_mut(recv))
    }

    /// Starts an exchange of equal parts between all ranks, in place; see [`Communicator::all_to_all_in_place`].
    /// Collective.
    ///
    /// # Errors
    /// Returns the errors of [`Communicator::all_to_all_in_place`].
    #[doc(alias = "MPI_Ialltoall")]
    pub fn iall_to_all_in_place<T, R: BufferMut<T> + ?Sized>(
        &'scope self,
        values: &'env mut R,
    ) -> Result<Request<'scope>> {
        let kind = Kind::AllToAll { counts: None };
        self.move_later(kind, || Ok(Buffers::None), || one_mut(values))
    }

    /// Starts an exchange of parts of different lengths between all ranks; see [`Communicator::all_to_all_varcount`].
    /// Collective.
    ///
    /// # Errors
    /// Returns the errors of [`Communicator::all_to_all_varcount`].
    #[doc(alias = "MPI_Ialltoallv")]
    pub fn iall_to_all_varcount<T, S: Buffer<T> + ?Sized, R: BufferMut<T> + ?Sized>(
        &'scope self,
        send: &'env S,
        send_counts: &[usize],
        recv: &'env mut R,
        recv_counts: &[usize],
    ) -> Result<Request<'scope>> {
        let kind = Kind::AllToAll { counts: Some((send_counts, recv_counts)) };
        self.move_later(kind, || one(send), || one_mut(recv))
    }

    /// Starts an exchange between all ranks, of one buffer for each rank; see [`Communicator::all_to_all_parts`].
    /// Collective.
    ///
    /// # Errors
    /// Returns the errors of [`Communicator::all_to_all_parts`].
    #[doc(alias = "MPI_Ialltoallw")]
    pub fn iall_to_all_parts<T, S: Buffer<T>, R: BufferMut<T>>(
        &'scope self,
        send: &'env [S],
        recv: &'env mut [R],
    ) -> Result<Request<'scope>> {
        let kind = Kind::AllToAll { counts: None };
        self.move_later(kind, || several(send), || several_mut(recv))
    }

    /// Starts a gather from the neighbours; see [`Communicator::neighbor_all_gather`]. Collective.
    ///
    /// # Errors
    /// Returns the errors of [`Communicator::neighbor_all_gather`].
    #[doc(alias = "MPI_Ineighbor_allgather")]
    pub fn ineighbor_all_gather<T, S: Buffer<T> + ?Sized, R: BufferMut<T> + ?Sized>(
        &'scope self,
        send: &'env S,
        recv: &'env mut R,
    ) -> Result<Request<'scope>> {
        let kind = Kind::NeighborAllGather { counts: None };
        self.move_later(kind, || one(send), || one_mut(recv))
    }

    /// Starts a gather of parts of different lengths from the neighbours; see
    /// [`Communicator::neighbor_all_gather_varcount`]. Collective.
    ///
    /// # Errors
    /// Returns the errors of [`Communicator::neighbor_all_gather_varcount`].
    #[doc(alias = "MPI_Ineighbor_allgatherv")]
    pub fn ineighbor_all_gather_varcount<T, S: Buffer<T> + ?Sized, R: BufferMut<T> + ?Sized>(
        &'scope self,
        send: &'env S,
        recv: &'env mut R,
        counts: &[usize],
    ) -> Result<Request<'scope>> {
        let kind = Kind::NeighborAllGather { counts: Some(counts) };
        self.move_later(kind, || one(send), || one_mut(recv))
    }

    /// Starts an exchange of equal parts with the neighbours; see [`Communicator::neighbor_all_to_all`]. Collective.
    ///
    /// # Errors
    /// Returns the errors of [`Communicator::neighbor_all_to_all`].
    #[doc(alias = "MPI_Ineighbor_alltoall")]
    pub fn ineighbor_all_to_all<T, S: Buffer<T> + ?Sized, R: BufferMut<T> + ?Sized>(
        &'scope self,
        send: &'env S,
        recv: &'env mut R,
    ) -> Result<Request<'scope>> {
        let kind = Kind::NeighborAllToAll { counts: None };
        self.move_later(kind, || one(send), || one_mut(recv))
    }

    /// Starts an exchange of parts of different lengths with the neighbours; see
    /// [`Communicator::neighbor_all_to_all_varcount`]. Collective.
    ///
    /// # Errors
    /// Returns the errors of [`Communicator::neighbor_all_to_all_varcount`].
    #[doc(alias = "MPI_Ineighbor_alltoallv")]
    pub fn ineighbor_all_to_all_varcount<T, S: Buffer<T> + ?Sized, R: BufferMut<T> + ?Sized>(
        &'scope self,
        send: &'env S,
        send_counts: &[usize],
        recv: &'env mut R,
        recv_counts: &[usize],
    ) -> Result<Request<'scope>> {
        let kind = Kind::NeighborAllToAll { counts: Some((send_counts, recv_counts)) };
        self.move_later(kind, || one(send), || one_mut(recv))
    }

    /// Starts an exchange with the neighbours, of one buffer for each; see [`Communicator::neighbor_all_to_all_parts`].
    /// Collective.
    ///
    /// # Errors
    /// Returns the errors of [`Communicator::neighbor_all_to_all_parts`].
    #[doc(alias = "MPI_Ineighbor_alltoallw")]
    pub fn ineighbor_all_to_all_parts<T, S: Buffer<T>, R: BufferMut<T>>(
        &'scope self,
        send: &'env [S],
        recv: &'env mut [R],
    ) -> Result<Request<'scope>> {
        let kind = Kind::NeighborAllToAll { counts: None };
        self.move_later(kind, || several(send), || several_mut(recv))
    }
}
