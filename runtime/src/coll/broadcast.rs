//! Broadcast along a binomial tree rooted at the sender.

use super::Collective;
use crate::comm::{Communicator, writable};
use crate::commit::bytes;
use crate::schedule::Part;
use crate::schedule::program::{Builder, StepId};
use crate::{Plan, Result};
use bytemuck::{AnyBitPattern, NoUninit};

impl Communicator {
    /// Copies `count` elements of `plan`'s type from `root`'s buffer into everybody's. Layouts may
    /// differ between ranks; packed sizes may not. Collective.
    ///
    /// # Errors
    /// No such `root`; a buffer that does not hold the elements; another packed size than the
    /// root's; [`ErrorKind::ProcAborted`](crate::ErrorKind) when a rank has died.
    #[doc(alias = "MPI_Bcast")]
    pub fn broadcast<T: NoUninit + AnyBitPattern>(
        &self,
        buf: &mut [T],
        plan: &Plan,
        count: u64,
        root: usize,
    ) -> Result<()> {
        let layout = writable(buf, 0, plan, count, "buf");
        let layout = layout.inspect_err(|_| self.skip_collective())?;
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
        // SAFETY: the one part is the caller's promise, as it is asked for here.
        unsafe { self.run_raw(&Collective::Broadcast { part, root }) }
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

    /// The steps of a broadcast; at the root it comes after those `before`.
    #[inline]
    pub(super) fn broadcast_steps<'a>(
        &self,
        steps: &mut Builder<'_, 'a>,
        part: &Part<'a>,
        root: usize,
        before: &[StepId],
    ) -> Result<()> {
        let size = self.size();
        // Ranks counted from the root. A rank's parent has its lowest bit cleared; its children
        // add a single bit below that one.
        let me = (self.rank() + size - root) % size;
        let real = |relative: usize| self.peer((relative + root) % size);
        let lowest = if me == 0 { size.next_power_of_two() } else { me & me.wrapping_neg() };
        let received = if me == 0 { None } else { Some(steps.receive(part, real(me - lowest)?)?) };
        // The farthest child first: it has the largest subtree.
        let mut bit = lowest / 2;
        while bit > 0 {
            if me + bit < size {
                let sent = steps.send(part, real(me + bit)?)?;
                for step in received.iter().chain(before) {
                    steps.after(sent, *step);
                }
            }
            bit /= 2;
        }
        Ok(())
    }
}
