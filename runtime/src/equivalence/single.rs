//! Collective calls of single values, which return their result.

use super::Equivalence;
use crate::Result;
use crate::coll::{Reduction, Root};
use crate::comm::Communicator;
use bytemuck::{AnyBitPattern, NoUninit};

impl Communicator {
    /// Returns the reduction of `value` over all ranks. All ranks get the same bits. Collective.
    ///
    /// ```
    /// # use typepack::Op;
    /// # let universe = typepack::init()?;
    /// # let world = universe.world();
    /// let last = world.all_reduce_value(world.rank(), Op::Max)?;
    /// assert_eq!(last, world.size() - 1);
    /// # Ok::<(), typepack::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns the errors of [`all_reduce_in_place`](Self::all_reduce_in_place).
    #[doc(alias = "MPI_Allreduce")]
    pub fn all_reduce_value<T: NoUninit + AnyBitPattern>(
        &self,
        value: T,
        op: impl Reduction<T>,
    ) -> Result<T> {
        let mut values = [value];
        self.all_reduce_in_place(&mut values, op)?;
        Ok(values[0])
    }

    /// Returns the reduction of `value` over all ranks to `root`, and `None` to the other ranks. Collective.
    ///
    /// # Errors
    /// Returns the errors of [`reduce`](Self::reduce).
    #[doc(alias = "MPI_Reduce")]
    pub fn reduce_value<T: NoUninit + AnyBitPattern>(
        &self,
        value: T,
        op: impl Reduction<T>,
        root: usize,
    ) -> Result<Option<T>> {
        let mut result = [value];
        self.reduce(&[value], &mut result, op, root)?;
        // In an intercommunicator, the root is in the other group.
        Ok((!self.is_inter() && self.rank() == root).then_some(result[0]))
    }

    /// Returns the reduction of `value` over the ranks up to and including this rank. Collective.
    ///
    /// # Errors
    /// Returns the errors of [`scan`](Self::scan).
    #[doc(alias = "MPI_Scan")]
    pub fn scan_value<T: NoUninit + AnyBitPattern>(
        &self,
        value: T,
        op: impl Reduction<T>,
    ) -> Result<T> {
        let mut result = [value];
        self.scan(&[value], &mut result, op)?;
        Ok(result[0])
    }

    /// Returns the reduction of `value` over the ranks below this rank; `None` on rank 0. Collective.
    ///
    /// ```
    /// # use typepack::Op;
    /// # let universe = typepack::init()?;
    /// # let world = universe.world();
    /// // This rank writes `mine` records, after the records of the ranks below it.
    /// let mine = world.rank() + 1;
    /// let first = world.exscan_value(mine, Op::Sum)?.unwrap_or(0);
    /// assert_eq!(first, (0..mine).sum());
    /// # Ok::<(), typepack::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns the errors of [`exscan`](Self::exscan).
    #[doc(alias = "MPI_Exscan")]
    pub fn exscan_value<T: NoUninit + AnyBitPattern>(
        &self,
        value: T,
        op: impl Reduction<T>,
    ) -> Result<Option<T>> {
        let mut result = [value];
        self.exscan(&[value], &mut result, op)?;
        Ok((self.rank() > 0).then_some(result[0]))
    }

    /// Returns the value of `root` to all ranks. Collective.
    ///
    /// # Errors
    /// Returns the errors of [`broadcast`](Self::broadcast).
    #[doc(alias = "MPI_Bcast")]
    pub fn broadcast_value<T: Equivalence>(&self, value: T, root: impl Into<Root>) -> Result<T> {
        let mut values = [value];
        self.broadcast(&mut values, root)?;
        Ok(values[0])
    }

    /// Returns the values of all ranks to `root`, in the order of the ranks, and `None` to the other ranks. Collective.
    ///
    /// # Errors
    /// Returns the errors of [`gather`](Self::gather).
    #[doc(alias = "MPI_Gather")]
    pub fn gather_value<T: Equivalence>(&self, value: T, root: usize) -> Result<Option<Vec<T>>> {
        let is_root = !self.is_inter() && self.rank() == root;
        let mut values = if is_root { vec![value; self.size()] } else { Vec::new() };
        self.gather(&[value], &mut values, root)?;
        Ok(is_root.then_some(values))
    }

    /// Returns the values of all ranks to all ranks, in the order of the ranks. In an intercommunicator, these are the
    /// values of the remote group. Collective.
    ///
    /// ```
    /// # let universe = typepack::init()?;
    /// # let world = universe.world();
    /// // Each rank has some records, and all ranks know how many.
    /// let records = vec![0.5; 10 * world.rank()];
    /// let counts = world.all_gather_value(records.len())?;
    /// let mut all = vec![0.0; counts.iter().sum()];
    /// world.all_gather_varcount(&records, &mut all, &counts)?;
    /// # Ok::<(), typepack::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns the errors of [`all_gather`](Self::all_gather).
    #[doc(alias = "MPI_Allgather")]
    pub fn all_gather_value<T: Equivalence>(&self, value: T) -> Result<Vec<T>> {
        let mut values = vec![value; self.peers().size()];
        self.all_gather(&[value], &mut values)?;
        Ok(values)
    }
}
