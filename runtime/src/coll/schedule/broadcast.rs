//! Broadcasts along a binomial tree. The root of the call is the root of the tree.

use crate::coll::{Collective, Root};
use crate::comm::{Communicator, writable};
use crate::schedule::program::{Builder, StepId};
use crate::{Plan, Result};
use bytemuck::{AnyBitPattern, NoUninit};
use typepack_engine::Elements;

impl Communicator {
    /// Copies `count` elements of `plan`'s type from `root`'s buffer into the buffers of all ranks. The
    /// layouts of different ranks may differ; their packed sizes must be equal. Collective.
    ///
    /// # Errors
    /// Returns `ErrorKind::Engine` if `buf` does not hold the elements, and the errors of
    /// [`broadcast_raw`](Self::broadcast_raw).
    #[doc(alias = "MPI_Bcast")]
    pub fn broadcast_elements<T: NoUninit + AnyBitPattern>(
        &self,
        buf: &mut [T],
        plan: &Plan,
        count: u64,
        root: impl Into<Root>,
    ) -> Result<()> {
        let part = writable(buf, 0, plan, count, "buf");
        let part = part.inspect_err(|_| self.skip_collective())?;
        // SAFETY: `buf` holds the `count` elements (`writable` has checked this), and is mutably borrowed
        // until the call returns.
        unsafe { self.broadcast_raw(part, root) }
    }

    /// Broadcasts like [`broadcast_elements`](Self::broadcast_elements), but the elements may lie anywhere in memory.
    ///
    /// # Safety
    ///
    /// - Until the call returns, the elements of `part` are readable at the root and writable at the other
    ///   ranks, and nobody else accesses them.
    ///
    /// # Errors
    /// Returns `ErrorKind::Root` if `root` is not a rank of the communicator, `ErrorKind::Truncated` or
    /// `ErrorKind::Count` if this rank's packed size differs from the root's, `ErrorKind::ProcAborted` if a
    /// rank has died, and the errors of [`run_raw`](Self::run_raw) that all collective calls share.
    #[doc(alias = "MPI_Bcast")]
    #[doc(hidden)]
    pub unsafe fn broadcast_raw(&self, part: Elements<&Plan>, root: impl Into<Root>) -> Result<()> {
        // SAFETY: the caller guarantees that, until `run_raw` returns, the elements of `part` are readable
        // at the root and writable at the other ranks, and that nobody else accesses them (condition of
        // `# Safety`). `Collective::Broadcast` names no other memory and no operation.
        unsafe { self.run_raw(&Collective::Broadcast { part, root: root.into() }) }
    }

    /// Adds the steps of a broadcast to the schedule. The root starts to send only after the steps in
    /// `before` are complete.
    #[inline]
    pub(in crate::coll) fn broadcast_steps<'a>(
        &self,
        steps: &mut Builder<'_, 'a>,
        part: &Elements<&'a Plan>,
        root: usize,
        before: &[StepId],
    ) -> Result<()> {
        let size = self.size();
        // In the tree, ranks are numbered from the root, which has number 0. The parent of a rank has the
        // same number with the lowest set bit cleared. Each child of a rank has the rank's number with one
        // more bit set, below the rank's lowest set bit (at the root, any one bit).
        let me = (self.rank() + size - root) % size;
        let real = |relative: usize| self.peer((relative + root) % size);
        let lowest = if me == 0 { size.next_power_of_two() } else { me & me.wrapping_neg() };
        let received = if me == 0 { None } else { Some(steps.receive(part, real(me - lowest)?)?) };
        // The rank sends to its farthest child first, because this child has the largest subtree.
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
