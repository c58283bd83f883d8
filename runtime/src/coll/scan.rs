//! Scan and exscan by recursive doubling. Every result combines the elements in rank order.
//!
//! Before round `k`, the ranks form blocks of `2^k` consecutive ranks, and every rank holds the value of its block: the
//! reduction of the elements of the block's ranks. In the round, each rank of a block exchanges values with one rank of
//! the neighbouring block. The rank in the upper block combines the received value with its result; the received value
//! is the lower operand. Both ranks compute the value of the joined block. A rank does not send or compute a value that
//! nobody uses later.

use super::Collective;
use super::buffers::Buffer;
use crate::comm::Communicator;
use crate::endpoint::sources::Combine;
use crate::schedule::Part;
use crate::schedule::program::Builder;
use crate::{Plan, Result};

/// Returns whether the block value that `rank` holds after a round is used in a later round. `bit` is 2^k for round
/// `k`.
fn is_used(rank: usize, bit: usize, size: usize) -> bool {
    let mut next = bit * 2;
    while next < size {
        let partner = rank ^ next;
        // A partner in the upper block always uses the value, for its result.
        if partner < size && (partner > rank || is_used(partner, next, size)) {
            return true;
        }
        next *= 2;
    }
    false
}

impl Communicator {
    /// Combines, in rank order, the elements at `send` of the ranks up to and including this rank, and writes the
    /// result to `recv`. A rank that passes `None` as `send` already has its elements at `recv`. Collective.
    ///
    /// # Safety
    ///
    /// - Until the call returns, `count` elements of `plan`'s type at `send` are readable and nobody
    ///   changes them.
    /// - Until the call returns, `count` elements of `plan`'s type at `recv` are readable and writable, and
    ///   nobody else accesses them.
    /// - The elements at `send` and at `recv` do not overlap.
    /// - `combine` keeps the promises of [`Combine`] for these elements.
    ///
    /// # Errors
    /// Returns `ErrorKind::Comm` if this is an intercommunicator, `ErrorKind::Truncated` or `ErrorKind::Count` if the
    /// ranks' elements have different packed sizes, `ErrorKind::NoMemory` if memory runs out, `ErrorKind::ProcAborted`
    /// if a rank has died, and the errors of [`run_raw`](Self::run_raw) that all collective calls share.
    #[doc(alias = "MPI_Scan")]
    pub unsafe fn scan_raw(
        &self,
        send: Option<*const u8>,
        recv: *mut u8,
        plan: &Plan,
        count: u64,
        combine: &Combine,
    ) -> Result<()> {
        // SAFETY: the caller guarantees that, until `run_raw` returns, the elements at `send` are readable and
        // unchanged, the elements at `recv` are readable and writable and nobody else accesses them, the two do not
        // overlap, and `combine` keeps its promises for these elements (the four conditions of `# Safety`, in this
        // order).
        unsafe { self.run_raw(&Collective::Scan { send, recv, plan, count, combine }) }
    }

    /// Combines, in rank order, the elements at `send` of the ranks below this rank, and writes the result to
    /// `recv`. The call writes nothing on rank 0. A rank that passes `None` as `send` already has its elements at
    /// `recv`. Collective.
    ///
    /// # Safety
    ///
    /// - The conditions of [`scan_raw`](Self::scan_raw) hold.
    ///
    /// # Errors
    /// Returns the errors of [`scan_raw`](Self::scan_raw).
    #[doc(alias = "MPI_Exscan")]
    pub unsafe fn exscan_raw(
        &self,
        send: Option<*const u8>,
        recv: *mut u8,
        plan: &Plan,
        count: u64,
        combine: &Combine,
    ) -> Result<()> {
        // SAFETY: the caller guarantees the conditions of `scan_raw`, which are those of `run_raw` for this call:
        // valid memory at `send` and at `recv` until `run_raw` returns, which nobody else uses and which does not
        // overlap, and an operation that fits these elements.
        unsafe { self.run_raw(&Collective::Exscan { send, recv, plan, count, combine }) }
    }

    pub(super) fn scan_steps<'a>(
        &self,
        steps: &mut Builder<'_, 'a>,
        send: Option<*const u8>,
        recv: &Part<'a>,
        combine: &Combine,
    ) -> Result<()> {
        let (rank, size) = (self.rank(), self.size());
        if recv.bytes()? == 0 {
            return Ok(());
        }
        let mut result = Buffer::new(*recv);
        if let Some(send) = send {
            let mut own = Buffer::new(Part { origin: send.cast_mut(), ..*recv });
            result.copy(steps, &mut own, rank)?;
        }
        steps.operation(combine);
        // The value of the block. `None` while `result` has the same value.
        let mut value: Option<Buffer<'a>> = None;
        // A buffer that an earlier round has used, and a later round may use again.
        let mut spare: Option<Buffer<'a>> = None;
        let mut bit = 1;
        while bit < size {
            let (partner, used) = (rank ^ bit, is_used(rank, bit, size));
            if partner > rank && partner < size {
                let peer = self.peer(partner)?;
                let mine = value.as_mut().unwrap_or(&mut result);
                let sent = steps.send(&mine.part, peer)?;
                mine.read_by(steps, sent);
                if used {
                    let mut upper = match spare.take() {
                        Some(spare) => spare,
                        None => Buffer::scratch(steps, recv)?,
                    };
                    let received = steps.receive(&upper.part, peer)?;
                    upper.replaced_by(steps, received);
                    upper.combine(steps, mine)?;
                    spare = value.replace(upper);
                }
            } else if partner < rank {
                let peer = self.peer(partner)?;
                if is_used(partner, bit, size) {
                    let mine = value.as_mut().unwrap_or(&mut result);
                    let sent = steps.send(&mine.part, peer)?;
                    mine.read_by(steps, sent);
                }
                let mut lower = match spare.take() {
                    Some(spare) => spare,
                    None => Buffer::scratch(steps, recv)?,
                };
                let received = steps.receive(&lower.part, peer)?;
                lower.replaced_by(steps, received);
                result.combine(steps, &mut lower)?;
                if let Some(value) = value.as_mut().filter(|_| used) {
                    value.combine(steps, &mut lower)?;
                }
                spare = Some(lower);
            }
            bit *= 2;
        }
        Ok(())
    }

    pub(super) fn exscan_steps<'a>(
        &self,
        steps: &mut Builder<'_, 'a>,
        send: Option<*const u8>,
        recv: &Part<'a>,
        combine: &Combine,
    ) -> Result<()> {
        let (rank, size) = (self.rank(), self.size());
        if recv.bytes()? == 0 || size == 1 {
            return Ok(());
        }
        steps.operation(combine);
        let mut result = Buffer::new(*recv);
        let mut value = result;
        if let Some(send) = send {
            value = Buffer::new(Part { origin: send.cast_mut(), ..*recv });
        } else if rank > 0 {
            // The first received value replaces this rank's elements at `recv`.
            value = Buffer::scratch(steps, recv)?;
            value.copy(steps, &mut result, rank)?;
        }
        // True while `value` is the caller's memory, which must not be written.
        let mut is_own = send.is_some() || rank == 0;
        let mut is_empty = true;
        let mut bit = 1;
        while bit < size {
            let (partner, used) = (rank ^ bit, is_used(rank, bit, size));
            if partner > rank && partner < size {
                let peer = self.peer(partner)?;
                let sent = steps.send(&value.part, peer)?;
                value.read_by(steps, sent);
                if used {
                    let mut upper = Buffer::scratch(steps, recv)?;
                    let received = steps.receive(&upper.part, peer)?;
                    upper.replaced_by(steps, received);
                    upper.combine(steps, &mut value)?;
                    (value, is_own) = (upper, false);
                }
            } else if partner < rank {
                let peer = self.peer(partner)?;
                if is_used(partner, bit, size) {
                    let sent = steps.send(&value.part, peer)?;
                    value.read_by(steps, sent);
                }
                let mut scratch = if is_empty { None } else { Some(Buffer::scratch(steps, recv)?) };
                let lower = scratch.as_mut().unwrap_or(&mut result);
                let received = steps.receive(&lower.part, peer)?;
                lower.replaced_by(steps, received);
                if used {
                    if is_own {
                        let mut copy = Buffer::scratch(steps, recv)?;
                        copy.copy(steps, &mut value, rank)?;
                        (value, is_own) = (copy, false);
                    }
                    value.combine(steps, lower)?;
                }
                if let Some(lower) = &mut scratch {
                    result.combine(steps, lower)?;
                }
                is_empty = false;
            }
            bit *= 2;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::is_used;

    #[test]
    fn values_are_used_by_somebody_above() {
        // With two ranks, the value of both ranks has no use.
        assert!(!is_used(0, 1, 2) && !is_used(1, 1, 2));
        // With three ranks, rank 0 sends the value of ranks 0 and 1 to rank 2.
        assert!(is_used(0, 1, 3) && !is_used(1, 1, 3) && !is_used(2, 1, 3));
        // With four ranks, each of the ranks 0 and 1 sends the value to a rank of the upper half.
        assert!(is_used(0, 1, 4) && is_used(1, 1, 4) && !is_used(2, 1, 4) && !is_used(3, 1, 4));
        // With six ranks, rank 4 needs the value of ranks 0 to 3, and so rank 0 needs that of ranks 2 and 3.
        assert!(is_used(2, 1, 6) && is_used(0, 2, 6) && !is_used(2, 2, 6));
    }
}
