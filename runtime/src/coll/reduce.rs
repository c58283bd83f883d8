//! Reduction to one rank along a binomial tree of consecutive ranks, in rank order.
//!
//! The tree is rooted at rank 0 whatever the root is, so that every partial result belongs to
//! consecutive ranks and the order of operands is that of the ranks; rank 0 hands the result on.

use super::REDUCE;
use super::operator::Combine;
use super::raw::{Batch, Part};
use crate::comm::Communicator;
use crate::{Error, ErrorKind, Plan, Result};

/// Room for elements at their extent, as in a buffer of the user's.
pub(super) struct Scratch {
    memory: Vec<u128>,
    /// From the memory's start to displacement 0 of the first element, in bytes.
    origin: usize,
}

impl Scratch {
    /// Room for `count` elements of `plan`'s type; displacement 0 is a multiple of 16.
    ///
    /// # Errors
    /// Out of memory.
    pub(super) fn new(plan: &Plan, count: u64) -> Result<Self> {
        let shape = plan.footprint();
        let last = i128::from(shape.extent) * i128::from(count.saturating_sub(1));
        let low = (i128::from(shape.true_lb) + last.min(0)).min(0);
        let high = (i128::from(shape.true_ub) + last.max(0)).max(0);
        // Rounded down to the alignment of the memory.
        let low = low.div_euclid(16) * 16;
        let words = (high - low).div_euclid(16) + 1;
        let refused = || {
            let detail = format!("{} bytes for a partial result were refused", high - low);
            Error::new(ErrorKind::NoMemory, "memory", detail)
        };
        let words = usize::try_from(words).map_err(|_| refused())?;
        let mut memory = Vec::new();
        memory.try_reserve_exact(words).map_err(|_| refused())?;
        memory.resize(words, 0u128);
        Ok(Self { memory, origin: -low as usize })
    }

    /// Address of displacement 0.
    pub(super) fn origin(&mut self) -> *mut u8 {
        self.memory.as_mut_ptr().cast::<u8>().wrapping_add(self.origin)
    }
}

impl Communicator {
    /// Combines the elements at `send` of all ranks, in rank order, into those at `recv` of `root`.
    /// At the root a `send` of `None` says that its elements are at `recv`. Collective.
    ///
    /// # Safety
    ///
    /// - `count` elements of `plan`'s type at `send` are readable, those at `recv` of the root
    ///   writable, and nobody else uses the latter, or changes the former, until the call returns;
    ///   they overlap nowhere.
    /// - `combine` keeps the promises of [`Combine`] for these elements.
    ///
    /// # Errors
    /// No such `root`; `None` elsewhere; another packed size than another rank's;
    /// [`ErrorKind::ProcAborted`] when a rank has died.
    #[doc(alias = "MPI_Reduce")]
    pub unsafe fn reduce_raw(
        &self,
        send: Option<*const u8>,
        recv: *mut u8,
        plan: &Plan,
        count: u64,
        combine: Combine<'_>,
        root: usize,
    ) -> Result<()> {
        self.check_rank(root, "root", ErrorKind::Root)?;
        let (rank, size) = (self.rank(), self.size());
        let at = |origin: *mut u8| Part { origin, plan, count };
        let own = match send {
            Some(send) => at(send.cast_mut()),
            None if rank == root => at(recv),
            None => {
                let detail = "only the root's own elements can be in place";
                return Err(Error::new(ErrorKind::Buffer, "send", detail));
            }
        };
        if own.bytes()? == 0 {
            return Ok(());
        }
        let (mut first, mut second) = (Scratch::new(plan, count)?, Scratch::new(plan, count)?);
        let (mut mine, mut other) = (first.origin(), second.origin());
        // SAFETY: the elements are readable, the scratch memory is ours and has room for them.
        unsafe { own.copy_to(&at(mine), rank)? };
        let mut bit = 1;
        let mut result = Ok(());
        while bit < size && rank & bit == 0 {
            if rank + bit < size {
                let mut batch = Batch::new(self, REDUCE);
                // SAFETY: the scratch memory is ours.
                unsafe { batch.receive(&at(other), rank + bit)? };
                result = result.and(batch.finish());
                if result.is_ok() {
                    // What comes from higher ranks is the upper operand and takes the result.
                    combine(mine, other);
                    std::mem::swap(&mut mine, &mut other);
                }
            }
            bit *= 2;
        }
        let to = if rank != 0 { Some(rank - bit) } else { (root != 0).then_some(root) };
        if let Some(to) = to {
            let mut batch = Batch::new(self, REDUCE);
            match result {
                // SAFETY: the scratch memory is ours.
                Ok(()) => unsafe { batch.send(&at(mine), to)? },
                Err(_) => batch.send_void(to)?,
            }
            result = result.and(batch.finish());
        }
        if rank != root {
            return result;
        }
        if root == 0 {
            result?;
            // SAFETY: the elements at `recv` are writable, and not in our memory.
            return unsafe { at(mine).copy_to(&at(recv), rank) };
        }
        let mut batch = Batch::new(self, REDUCE);
        // SAFETY: passed on.
        unsafe { batch.receive(&at(recv), 0)? };
        result.and(batch.finish())
    }
}
