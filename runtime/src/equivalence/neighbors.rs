//! Exchanges of buffers between neighbours, on communicators with a topology.
//!
//! The neighbours are those of [`Topology::neighbors`](crate::topo::Topology::neighbors): in a grid, two for each
//! dimension, first the one on the lower side. Nothing is sent to a neighbour that does not exist, and its part of
//! `recv` stays as it is.

use super::buffer::{Buffer, BufferMut};
use super::collectives::{one, one_mut, several, several_mut};
use super::divide::Kind;
use crate::Result;
use crate::comm::Communicator;

impl Communicator {
    /// Sends `send` to every neighbour, and receives from source `i` into the `i`th part of `recv`. All ranks pass data
    /// of the same length in `send`. The communicator has a topology. Collective.
    ///
    /// ```
    /// # let universe = typepack::init()?;
    /// # let world = universe.world();
    /// let line = world.cartesian(&[world.size()], &[false])?;
    /// let comm = line.comm();
    /// let mut sides = [usize::MAX; 2]; // stays as it is at the two ends of the line
    /// comm.neighbor_all_gather(&comm.rank(), &mut sides)?;
    /// let (below, above) = line.shift(0, 1)?;
    /// assert_eq!(sides, [below, above].map(|rank| rank.unwrap_or(usize::MAX)));
    /// # Ok::<(), typepack::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`ErrorKind::Topology`](crate::ErrorKind) if the communicator has no topology,
    /// [`ErrorKind::Buffer`](crate::ErrorKind) if `recv` does not have room for the data of all sources, and the errors
    /// of [`run_raw`](Self::run_raw).
    #[doc(alias = "MPI_Neighbor_allgather")]
    pub fn neighbor_all_gather<T, S: Buffer<T> + ?Sized, R: BufferMut<T> + ?Sized>(
        &self,
        send: &S,
        recv: &mut R,
    ) -> Result<()> {
        self.move_now(Kind::NeighborAllGather { counts: None }, || one(send), || one_mut(recv))
    }

    /// Sends `send` to every neighbour, and receives `counts[i]` items from source `i` into the `i`th part of `recv`.
    /// The communicator has a topology. Collective.
    ///
    /// # Errors
    /// Returns [`ErrorKind::Topology`](crate::ErrorKind) if the communicator has no topology,
    /// [`ErrorKind::Argument`](crate::ErrorKind) if the number of counts is not the number of sources,
    /// [`ErrorKind::Buffer`](crate::ErrorKind) if `recv` does not have the length that `counts` says, and the errors of
    /// [`run_raw`](Self::run_raw).
    #[doc(alias = "MPI_Neighbor_allgatherv")]
    pub fn neighbor_all_gather_varcount<T, S: Buffer<T> + ?Sized, R: BufferMut<T> + ?Sized>(
        &self,
        send: &S,
        recv: &mut R,
        counts: &[usize],
    ) -> Result<()> {
        let kind = Kind::NeighborAllGather { counts: Some(counts) };
        self.move_now(kind, || one(send), || one_mut(recv))
    }

    /// Sends the `j`th part of `send` to destination `j`, and receives from source `i` into the `i`th part of `recv`.
    /// All parts of all ranks have the same length. The communicator has a topology. Collective.
    ///
    /// # Errors
    /// Returns [`ErrorKind::Topology`](crate::ErrorKind) if the communicator has no topology,
    /// [`ErrorKind::Buffer`](crate::ErrorKind) if a buffer cannot be divided into equal parts, or if the parts of the
    /// two buffers have different lengths, and the errors of [`run_raw`](Self::run_raw).
    #[doc(alias = "MPI_Neighbor_alltoall")]
    pub fn neighbor_all_to_all<T, S: Buffer<T> + ?Sized, R: BufferMut<T> + ?Sized>(
        &self,
        send: &S,
        recv: &mut R,
    ) -> Result<()> {
        self.move_now(Kind::NeighborAllToAll { counts: None }, || one(send), || one_mut(recv))
    }

    /// Sends the `j`th part of `send`, which has `send_counts[j]` items, to destination `j`. Receives `recv_counts[i]`
    /// items from source `i` into the `i`th part of `recv`. The communicator has a topology. Collective.
    ///
    /// # Errors
    /// Returns [`ErrorKind::Topology`](crate::ErrorKind) if the communicator has no topology,
    /// [`ErrorKind::Argument`](crate::ErrorKind) if the numbers of counts are not those of destinations and sources,
    /// [`ErrorKind::Buffer`](crate::ErrorKind) if a buffer does not have the length that its counts say, and the errors
    /// of [`run_raw`](Self::run_raw).
    #[doc(alias = "MPI_Neighbor_alltoallv")]
    pub fn neighbor_all_to_all_varcount<T, S: Buffer<T> + ?Sized, R: BufferMut<T> + ?Sized>(
        &self,
        send: &S,
        send_counts: &[usize],
        recv: &mut R,
        recv_counts: &[usize],
    ) -> Result<()> {
        let kind = Kind::NeighborAllToAll { counts: Some((send_counts, recv_counts)) };
        self.move_now(kind, || one(send), || one_mut(recv))
    }

    /// Sends the buffer `send[j]` to destination `j`, and receives from source `i` into the buffer `recv[i]`. The
    /// communicator has a topology. Collective.
    ///
    /// The buffers can be faces of a block, as layouts ([`Elements`](super::Elements)) or as views of `ndarray`, so
    /// that one call exchanges a halo.
    ///
    /// # Errors
    /// Returns [`ErrorKind::Topology`](crate::ErrorKind) if the communicator has no topology,
    /// [`ErrorKind::Argument`](crate::ErrorKind) if the numbers of buffers are not those of destinations and sources,
    /// and the errors of [`run_raw`](Self::run_raw).
    #[doc(alias = "MPI_Neighbor_alltoallw")]
    pub fn neighbor_all_to_all_parts<T, S: Buffer<T>, R: BufferMut<T>>(
        &self,
        send: &[S],
        recv: &mut [R],
    ) -> Result<()> {
        let kind = Kind::NeighborAllToAll { counts: None };
        self.move_now(kind, || several(send), || several_mut(recv))
    }
}
