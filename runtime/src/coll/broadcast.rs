//! Broadcast along a binomial tree rooted at the sender.

use super::BROADCAST;
use super::raw::{Batch, Part};
use crate::comm::{Communicator, writable};
use crate::commit::bytes;
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
        let layout = writable(buf, 0, plan, count, "buf")?;
        // SAFETY: the slice holds the elements (checked), and is mutably borrowed until the call
        // returns.
        unsafe { self.broadcast_raw(Part { origin: layout.origin, plan, count }, root) }
    }

    /// [`broadcast`](Self::broadcast) of elements anywhere in memory.
    ///
    /// # Safety
    ///
    /// - The elements of `part` are readable at the root, writable elsewhere, and nobody else's
    ///   until the call returns.
    ///
    /// # Errors
    /// As [`broadcast`](Self::broadcast).
    #[doc(alias = "MPI_Bcast")]
    pub unsafe fn broadcast_raw(&self, part: Part<'_>, root: usize) -> Result<()> {
        self.check_rank(root, "root", ErrorKind::Root)?;
        part.bytes()?;
        let size = self.size();
        // Ranks counted from the root. A rank's parent has its lowest bit cleared; its children
        // add a single bit below that one.
        let me = (self.rank() + size - root) % size;
        let real = |relative: usize| (relative + root) % size;
        let lowest = if me == 0 { size.next_power_of_two() } else { me & me.wrapping_neg() };
        let mut received = Ok(());
        if me != 0 {
            let mut batch = Batch::new(self, BROADCAST);
            // SAFETY: passed on.
            unsafe { batch.receive(&part, real(me - lowest))? };
            received = batch.finish();
        }
        let mut batch = Batch::new(self, BROADCAST);
        // The farthest child first: it has the largest subtree.
        let mut bit = lowest / 2;
        while bit > 0 {
            if me + bit < size {
                match received {
                    // SAFETY: passed on.
                    Ok(()) => unsafe { batch.send(&part, real(me + bit))? },
                    Err(_) => batch.send_void(real(me + bit))?,
                }
            }
            bit /= 2;
        }
        received.and(batch.finish())
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
