//! Broadcast along a binomial tree rooted at the sender.

use super::{BROADCAST, bytes, unequal};
use crate::comm::{Communicator, Space};
use crate::{ErrorKind, Plan, Result};
use bytemuck::{AnyBitPattern, NoUninit};

impl Communicator {
    /// Copies `count` elements of `plan`'s type from `root`'s buffer into everybody's. Layouts may
    /// differ between ranks; packed sizes may not. Collective.
    ///
    /// # Errors
    /// No such `root`; a buffer that does not hold the elements; another packed size than the
    /// root's; [`ErrorKind::ProcAborted`] when a rank has died.
    #[doc(alias = "MPI_Bcast")]
    pub fn broadcast<T: NoUninit + AnyBitPattern>(
        &self,
        buf: &mut [T],
        plan: &Plan,
        count: u64,
        root: usize,
    ) -> Result<()> {
        self.check_rank(root, "root", ErrorKind::Root)?;
        let (size, ours) = (self.size(), plan.packed_bytes(count)?);
        // Ranks counted from the root. A rank's parent has its lowest bit cleared; its children
        // add a single bit below that one.
        let me = (self.rank() + size - root) % size;
        let real = |relative: usize| (relative + root) % size;
        let lowest = if me == 0 { size.next_power_of_two() } else { me & me.wrapping_neg() };
        if me != 0 {
            let parent = real(me - lowest);
            let status = self.scope_in(Space::Collective, |scope| {
                scope.wait(scope.irecv(&mut *buf, plan, count, parent, BROADCAST)?)
            })??;
            if status.bytes != ours {
                return Err(unequal("count", parent, status.bytes, ours));
            }
        }
        let buf = &*buf;
        self.scope_in(Space::Collective, |scope| -> Result<()> {
            // The farthest child first: it has the largest subtree.
            let mut bit = lowest / 2;
            while bit > 0 {
                if me + bit < size {
                    scope.isend(buf, plan, count, real(me + bit), BROADCAST)?;
                }
                bit /= 2;
            }
            Ok(())
        })?
    }

    /// [`broadcast`](Self::broadcast) of a slice of plain values.
    ///
    /// # Errors
    /// As [`broadcast`](Self::broadcast).
    #[doc(alias = "MPI_Bcast")]
    pub fn broadcast_slice<T: NoUninit + AnyBitPattern>(
        &self,
        values: &mut [T],
        root: usize,
    ) -> Result<()> {
        let count = size_of_val(values) as u64;
        self.broadcast(values, bytes()?, count, root)
    }
}
