//! Blocking collective calls that move data between buffers. `neighbors.rs` has those between neighbours, and
//! `scope.rs` the nonblocking forms.

use super::buffer::{Buffer, BufferMut};
use super::divide::{self, Buffers, Kind};
use crate::Result;
use crate::coll::Root;
use crate::comm::Communicator;

/// Returns a buffer for sending as one side of a call.
pub(super) fn one<T, S: Buffer<T> + ?Sized>(send: &S) -> Result<Buffers<'_>> {
    send.sequence("send").map(Buffers::One)
}

/// Returns a buffer for receiving as one side of a call.
pub(super) fn one_mut<T, R: BufferMut<T> + ?Sized>(recv: &mut R) -> Result<Buffers<'_>> {
    recv.sequence_mut("recv").map(Buffers::One)
}

/// Returns the buffers of the parts as one side of a call.
pub(super) fn several<T, S: Buffer<T>>(send: &[S]) -> Result<Buffers<'_>> {
    send.iter().map(|part| part.sequence("send")).collect::<Result<_>>().map(Buffers::Parts)
}

/// Returns the buffers of the parts as one side of a call.
pub(super) fn several_mut<T, R: BufferMut<T>>(recv: &mut [R]) -> Result<Buffers<'_>> {
    recv.iter_mut().map(|part| part.sequence_mut("recv")).collect::<Result<_>>().map(Buffers::Parts)
}

impl Communicator {
    /// Makes a blocking call.
    pub(super) fn move_now<'a>(
        &self,
        kind: Kind<'_>,
        send: impl FnOnce() -> Result<Buffers<'a>>,
        recv: impl FnOnce() -> Result<Buffers<'a>>,
    ) -> Result<()> {
        divide::call(self, kind, send, recv, Self::skip_collective, |call| {
            // SAFETY: `call` reads and writes only data of the buffers that `send` and `recv` return, and the written
            // parts do not overlap (`divide::call`). The buffers are borrowed for 'a, and so until this function
            // returns; while they are borrowed, nobody else changes the data for sending or accesses the data for
            // receiving (`Readable`, `Writable`). The call has no operation.
            unsafe { self.run_raw(call) }
        })
    }

    /// Copies `send` of rank `i` into the `i`th part of `recv` of the rank `root`. All ranks pass data of the same
    /// length in `send`. At the root, `recv` has room for the data of all ranks. The other ranks may pass anything as
    /// `recv`, for example `&mut ()`. Collective.
    ///
    /// ```
    /// # let universe = typepack::init()?;
    /// # let world = universe.world();
    /// let mut ranks = vec![0; world.size()];
    /// world.gather(&world.rank(), &mut ranks, 0)?;
    /// # Ok::<(), typepack::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`ErrorKind::Buffer`](crate::ErrorKind) if `recv` has another length at the root, and the errors of
    /// [`run_raw`](Self::run_raw).
    #[doc(alias = "MPI_Gather")]
    pub fn gather<T, S: Buffer<T> + ?Sized, R: BufferMut<T> + ?Sized>(
        &self,
        send: &S,
        recv: &mut R,
        root: impl Into<Root>,
    ) -> Result<()> {
        let kind = Kind::Gather { counts: None, root: root.into() };
        self.move_now(kind, || one(send), || one_mut(recv))
    }

    /// Copies `send` of rank `i` into the `i`th part of `recv` of the rank `root`. At the root, `counts[i]` is the
    /// number of items from rank `i`, and `recv` has the parts one after the other. The other ranks may pass anything
    /// as `recv` and `counts`. Collective.
    ///
    /// ```
    /// # let universe = typepack::init()?;
    /// # let world = universe.world();
    /// // Rank `i` sends `i` values.
    /// let (mine, counts) = (vec![0.5; world.rank()], Vec::from_iter(0..world.size()));
    /// let mut all = vec![0.0; counts.iter().sum()];
    /// world.gather_varcount(&mine, &mut all, &counts, 0)?;
    /// # Ok::<(), typepack::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`ErrorKind::Argument`](crate::ErrorKind) if the number of counts at the root is not the number of
    /// ranks, [`ErrorKind::Buffer`](crate::ErrorKind) if `recv` does not have the length that `counts` says, and the
    /// errors of [`run_raw`](Self::run_raw).
    #[doc(alias = "MPI_Gatherv")]
    pub fn gather_varcount<T, S: Buffer<T> + ?Sized, R: BufferMut<T> + ?Sized>(
        &self,
        send: &S,
        recv: &mut R,
        counts: &[usize],
        root: impl Into<Root>,
    ) -> Result<()> {
        let kind = Kind::Gather { counts: Some(counts), root: root.into() };
        self.move_now(kind, || one(send), || one_mut(recv))
    }

    /// Copies `send` of rank `i` into the buffer `recv[i]` of the rank `root`. The other ranks may pass an empty slice
    /// as `recv`. Collective.
    ///
    /// # Errors
    /// Returns [`ErrorKind::Argument`](crate::ErrorKind) if the number of buffers at the root is not the number of
    /// ranks, [`ErrorKind::Buffer`](crate::ErrorKind) if the root's own buffers have different lengths, and the errors
    /// of [`run_raw`](Self::run_raw).
    #[doc(alias = "MPI_Gatherv")]
    pub fn gather_parts<T, S: Buffer<T> + ?Sized, R: BufferMut<T>>(
        &self,
        send: &S,
        recv: &mut [R],
        root: impl Into<Root>,
    ) -> Result<()> {
        let kind = Kind::Gather { counts: None, root: root.into() };
        self.move_now(kind, || one(send), || several_mut(recv))
    }

    /// Copies the `i`th part of `send` of the rank `root` into `recv` of rank `i`. All parts have the same length.
    /// Ranks other than the root may pass anything as `send`, for example `&()`. Collective.
    ///
    /// ```
    /// # let universe = typepack::init()?;
    /// # let world = universe.world();
    /// let squares: Vec<u64> = match world.rank() {
    ///     0 => (0..world.size() as u64).map(|n| n * n).collect(),
    ///     _ => Vec::new(),
    /// };
    /// let mut mine = 0;
    /// world.scatter(&squares, &mut mine, 0)?;
    /// assert_eq!(mine, (world.rank() * world.rank()) as u64);
    /// # Ok::<(), typepack::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`ErrorKind::Buffer`](crate::ErrorKind) if `send` cannot be divided into equal parts, or if the root's
    /// `recv` does not have the length of a part, and the errors of [`run_raw`](Self::run_raw).
    #[doc(alias = "MPI_Scatter")]
    pub fn scatter<T, S: Buffer<T> + ?Sized, R: BufferMut<T> + ?Sized>(
        &self,
        send: &S,
        recv: &mut R,
        root: impl Into<Root>,
    ) -> Result<()> {
        let kind = Kind::Scatter { counts: None, root: root.into() };
        self.move_now(kind, || one(send), || one_mut(recv))
    }

    /// Copies the `i`th part of `send` of the rank `root` into `recv` of rank `i`. At the root, `counts[i]` is the
    /// number of items for rank `i`. Ranks other than the root may pass anything as `send` and `counts`. Collective.
    ///
    /// # Errors
    /// Returns [`ErrorKind::Argument`](crate::ErrorKind) if the number of counts at the root is not the number of
    /// ranks, [`ErrorKind::Buffer`](crate::ErrorKind) if a buffer of the root does not have the length that `counts`
    /// says, and the errors of [`run_raw`](Self::run_raw).
    #[doc(alias = "MPI_Scatterv")]
    pub fn scatter_varcount<T, S: Buffer<T> + ?Sized, R: BufferMut<T> + ?Sized>(
        &self,
        send: &S,
        counts: &[usize],
        recv: &mut R,
        root: impl Into<Root>,
    ) -> Result<()> {
        let kind = Kind::Scatter { counts: Some(counts), root: root.into() };
        self.move_now(kind, || one(send), || one_mut(recv))
    }

    /// Copies the buffer `send[i]` of the rank `root` into `recv` of rank `i`. Ranks other than the root may pass an
    /// empty slice as `send`. Collective.
    ///
    /// # Errors
    /// Returns [`ErrorKind::Argument`](crate::ErrorKind) if the number of buffers at the root is not the number of
    /// ranks, [`ErrorKind::Buffer`](crate::ErrorKind) if the root's own buffers have different lengths, and the errors
    /// of [`run_raw`](Self::run_raw).
    #[doc(alias = "MPI_Scatterv")]
    pub fn scatter_parts<T, S: Buffer<T>, R: BufferMut<T> + ?Sized>(
        &self,
        send: &[S],
        recv: &mut R,
        root: impl Into<Root>,
    ) -> Result<()> {
        let kind = Kind::Scatter { counts: None, root: root.into() };
        self.move_now(kind, || several(send), || one_mut(recv))
    }

    /// Copies `send` of rank `i` into the `i`th part of `recv` of every rank. All ranks pass data of the same length in
    /// `send`, and `recv` has room for the data of all ranks. Collective.
    ///
    /// # Errors
    /// Returns [`ErrorKind::Buffer`](crate::ErrorKind) if `recv` has another length, and the errors of
    /// [`run_raw`](Self::run_raw).
    #[doc(alias = "MPI_Allgather")]
    pub fn all_gather<T, S: Buffer<T> + ?Sized, R: BufferMut<T> + ?Sized>(
        &self,
        send: &S,
        recv: &mut R,
    ) -> Result<()> {
        self.move_now(Kind::AllGather { counts: None }, || one(send), || one_mut(recv))
    }

    /// Does what [`all_gather`](Self::all_gather) does, but the data of each rank are already in its part of `values`.
    /// Collective.
    ///
    /// # Errors
    /// Returns [`ErrorKind::Buffer`](crate::ErrorKind) if `values` cannot be divided into equal parts, and the errors
    /// of [`run_raw`](Self::run_raw).
    #[doc(alias = "MPI_Allgather")]
    pub fn all_gather_in_place<T, R: BufferMut<T> + ?Sized>(&self, values: &mut R) -> Result<()> {
        self.move_now(Kind::AllGather { counts: None }, || Ok(Buffers::None), || one_mut(values))
    }

    /// Copies `send` of rank `i` into the `i`th part of `recv` of every rank. `counts[i]` is the number of items from
    /// rank `i`, and `recv` has the parts one after the other. Collective.
    ///
    /// # Errors
    /// Returns [`ErrorKind::Argument`](crate::ErrorKind) if the number of counts is not the number of ranks,
    /// [`ErrorKind::Buffer`](crate::ErrorKind) if a buffer does not have the length that `counts` says, and the errors
    /// of [`run_raw`](Self::run_raw).
    #[doc(alias = "MPI_Allgatherv")]
    pub fn all_gather_varcount<T, S: Buffer<T> + ?Sized, R: BufferMut<T> + ?Sized>(
        &self,
        send: &S,
        recv: &mut R,
        counts: &[usize],
    ) -> Result<()> {
        self.move_now(Kind::AllGather { counts: Some(counts) }, || one(send), || one_mut(recv))
    }

    /// Copies `send` of rank `i` into the buffer `recv[i]` of every rank. Collective.
    ///
    /// # Errors
    /// Returns [`ErrorKind::Argument`](crate::ErrorKind) if the number of buffers is not the number of ranks,
    /// [`ErrorKind::Buffer`](crate::ErrorKind) if the buffers of this rank's own data have different lengths, and the
    /// errors of [`run_raw`](Self::run_raw).
    #[doc(alias = "MPI_Allgatherv")]
    pub fn all_gather_parts<T, S: Buffer<T> + ?Sized, R: BufferMut<T>>(
        &self,
        send: &S,
        recv: &mut [R],
    ) -> Result<()> {
        self.move_now(Kind::AllGather { counts: None }, || one(send), || several_mut(recv))
    }

    /// Copies the `j`th part of `send` of rank `i` into the `i`th part of `recv` of rank `j`. All parts of all ranks
    /// have the same length. Collective.
    ///
    /// ```
    /// # let universe = typepack::init()?;
    /// # let world = universe.world();
    /// let (rank, size) = (world.rank(), world.size());
    /// let send: Vec<[usize; 2]> = (0..size).map(|to| [rank, to]).collect();
    /// let mut recv = vec![[0; 2]; size];
    /// world.all_to_all(&send, &mut recv)?;
    /// assert!(recv.iter().enumerate().all(|(from, pair)| *pair == [from, rank]));
    /// # Ok::<(), typepack::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`ErrorKind::Buffer`](crate::ErrorKind) if a buffer cannot be divided into equal parts, or if the parts
    /// of the two buffers have different lengths, and the errors of [`run_raw`](Self::run_raw).
    #[doc(alias = "MPI_Alltoall")]
    pub fn all_to_all<T, S: Buffer<T> + ?Sized, R: BufferMut<T> + ?Sized>(
        &self,
        send: &S,
        recv: &mut R,
    ) -> Result<()> {
        self.move_now(Kind::AllToAll { counts: None }, || one(send), || one_mut(recv))
    }

    /// Does what [`all_to_all`](Self::all_to_all) does, but replaces the parts of `values` by the parts from the other
    /// ranks. Collective.
    ///
    /// # Errors
    /// Returns [`ErrorKind::Buffer`](crate::ErrorKind) if `values` cannot be divided into equal parts, and the errors
    /// of [`run_raw`](Self::run_raw).
    #[doc(alias = "MPI_Alltoall")]
    pub fn all_to_all_in_place<T, R: BufferMut<T> + ?Sized>(&self, values: &mut R) -> Result<()> {
        self.move_now(Kind::AllToAll { counts: None }, || Ok(Buffers::None), || one_mut(values))
    }

    /// Copies the `j`th part of `send` of rank `i` into the `i`th part of `recv` of rank `j`. This rank sends
    /// `send_counts[j]` items to rank `j`, and receives `recv_counts[i]` items from rank `i`. Both buffers have the
    /// parts one after the other. Collective.
    ///
    /// # Errors
    /// Returns [`ErrorKind::Argument`](crate::ErrorKind) if a number of counts is not the number of ranks,
    /// [`ErrorKind::Buffer`](crate::ErrorKind) if a buffer does not have the length that its counts say, or if the two
    /// parts of this rank for itself have different lengths, and the errors of [`run_raw`](Self::run_raw).
    #[doc(alias = "MPI_Alltoallv")]
    pub fn all_to_all_varcount<T, S: Buffer<T> + ?Sized, R: BufferMut<T> + ?Sized>(
        &self,
        send: &S,
        send_counts: &[usize],
        recv: &mut R,
        recv_counts: &[usize],
    ) -> Result<()> {
        let kind = Kind::AllToAll { counts: Some((send_counts, recv_counts)) };
        self.move_now(kind, || one(send), || one_mut(recv))
    }

    /// Copies the buffer `send[j]` of rank `i` into the buffer `recv[i]` of rank `j`. Collective.
    ///
    /// # Errors
    /// Returns [`ErrorKind::Argument`](crate::ErrorKind) if a number of buffers is not the number of ranks,
    /// [`ErrorKind::Buffer`](crate::ErrorKind) if the two buffers of this rank for itself have different lengths, and
    /// the errors of [`run_raw`](Self::run_raw).
    #[doc(alias = "MPI_Alltoallw")]
    pub fn all_to_all_parts<T, S: Buffer<T>, R: BufferMut<T>>(
        &self,
        send: &[S],
        recv: &mut [R],
    ) -> Result<()> {
        self.move_now(Kind::AllToAll { counts: None }, || several(send), || several_mut(recv))
    }
}
