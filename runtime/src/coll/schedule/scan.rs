//! Scan and exscan along a chain of the ranks. Every result combines the elements in rank order, from the lowest rank
//! on.
//!
//! Each rank receives the value of the rank below, which is the reduction of the elements of all lower ranks. The rank
//! combines this value (the lower operand) with its elements, and sends the result to the rank above. So every rank
//! receives, combines and sends once, and the results are those of a loop over the ranks: `((0 op 1) op 2) op 3`. Long
//! vectors go in pieces, so that the ranks work on different pieces at once.
//!
//! With `n` ranks, recursive doubling needs `n * log2(n)` messages, and this way `n`. If ranks share CPUs, the number
//! of messages decides, and a rank can begin the next call while the ranks above still make this one.

use super::buffers::Buffer;
use crate::coll::Collective;
use crate::comm::Communicator;
use crate::endpoint::sources::Combine;
use crate::schedule::program::{Builder, StepId};
use crate::{Plan, Result};
use typepack_engine::Elements;

/// Minimum number of bytes of a piece.
const PIECE: u64 = 64 << 10;

/// Largest number of pieces.
const MOST_PIECES: u64 = 16;

/// Number of received pieces that a rank keeps at once.
const ROOMS: usize = 2;

/// Returns the pieces of the elements at `all`. All ranks cut alike. Two ranks make one piece, because no rank passes a
/// value on while it receives.
fn pieces(
    all: &Elements<&Plan>,
    size: usize,
) -> Result<impl Iterator<Item = std::ops::Range<u64>> + use<>> {
    let count = all.count;
    let most = if size > 2 { MOST_PIECES } else { 1 };
    let pieces = (all.bytes()? / PIECE).clamp(1, most);
    let each = count.div_ceil(pieces).max(1);
    Ok((0..count.div_ceil(each))
        .map(move |piece| (piece * each).min(count)..((piece + 1) * each).min(count)))
}

/// The messages of a chain between two ranks, in the order of the pieces.
#[derive(Default)]
struct Order {
    last: Option<StepId>,
}

impl Order {
    /// Adds a message, which waits until the message before it is over.
    fn add(&mut self, steps: &mut Builder<'_, '_>, step: StepId) {
        if let Some(last) = self.last.replace(step) {
            steps.follow(step, last);
        }
    }
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
    #[doc(hidden)]
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
    #[doc(hidden)]
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

    pub(in crate::coll) fn scan_steps<'a>(
        &self,
        steps: &mut Builder<'_, 'a>,
        send: Option<*const u8>,
        recv: &Elements<&'a Plan>,
        combine: &Combine,
    ) -> Result<()> {
        let (rank, size) = (self.rank(), self.size());
        if recv.bytes()? == 0 {
            return Ok(());
        }
        steps.operation(combine);
        let (mut received, mut sent) = (Order::default(), Order::default());
        let mut rooms: [Option<Buffer<'a>>; ROOMS] = [None; ROOMS];
        for (index, range) in pieces(recv, size)?.enumerate() {
            let first = range.start;
            let mut result = Buffer::new(recv.slice(range));
            result.first = first;
            if let Some(send) = send {
                let origin = send.wrapping_offset(recv.offset(first)).cast_mut();
                let mut own = Buffer::new(Elements { origin, ..result.part });
                result.copy(steps, &mut own, rank)?;
            }
            if rank > 0 {
                let room = &mut rooms[index % ROOMS];
                let mut lower = match room.take() {
                    Some(room) => room,
                    None => Buffer::scratch(steps, &result.part),
                };
                // The last piece may be shorter than the others.
                lower.part.count = result.part.count;
                let step = steps.receive(&lower.part, self.peer(rank - 1)?)?;
                lower.replaced_by(steps, step);
                received.add(steps, step);
                result.combine(steps, &mut lower)?;
                *room = Some(lower);
            }
            if rank + 1 < size {
                let step = steps.send(&result.part, self.peer(rank + 1)?)?;
                result.read_by(steps, step);
                sent.add(steps, step);
            }
        }
        Ok(())
    }

    pub(in crate::coll) fn exscan_steps<'a>(
        &self,
        steps: &mut Builder<'_, 'a>,
        send: Option<*const u8>,
        recv: &Elements<&'a Plan>,
        combine: &Combine,
    ) -> Result<()> {
        let (rank, size) = (self.rank(), self.size());
        if recv.bytes()? == 0 || size == 1 {
            return Ok(());
        }
        steps.operation(combine);
        let (mut received, mut sent) = (Order::default(), Order::default());
        for range in pieces(recv, size)? {
            let first = range.start;
            let mut result = Buffer::new(recv.slice(range));
            let mut own = match send {
                Some(send) => {
                    let origin = send.wrapping_offset(recv.offset(first)).cast_mut();
                    Buffer::new(Elements { origin, ..result.part })
                }
                None => result,
            };
            // The value for the rank above.
            let mut value = own;
            if rank > 0 {
                let passes = rank + 1 < size;
                if passes {
                    value = Buffer::scratch(steps, &result.part);
                    value.first = first;
                    value.copy(steps, &mut own, rank)?;
                    if send.is_none() {
                        // The received value replaces this rank's elements.
                        result = own;
                    }
                }
                let step = steps.receive(&result.part, self.peer(rank - 1)?)?;
                result.replaced_by(steps, step);
                received.add(steps, step);
                if !passes {
                    continue;
                }
                value.combine(steps, &mut result)?;
            }
            let step = steps.send(&value.part, self.peer(rank + 1)?)?;
            value.read_by(steps, step);
            sent.add(steps, step);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commit::commit;
    use crate::{Datatype, Named};

    #[test]
    fn the_pieces_cover_the_elements() {
        let plan = commit(&Datatype::named(Named::F64)).unwrap();
        for count in [0, 1, 2, 100, 8192, 8193, 50_000, 1 << 20, (1 << 40) + 7] {
            let all = Elements { origin: std::ptr::null_mut(), plan: &plan, count };
            for size in [2, 3, 100] {
                let pieces: Vec<_> = pieces(&all, size).unwrap().collect();
                assert!(pieces.len() as u64 <= if size > 2 { MOST_PIECES } else { 1 });
                let ends = pieces.iter().map(|piece| piece.end);
                assert!(
                    std::iter::once(0)
                        .chain(ends)
                        .eq(pieces.iter().map(|piece| piece.start).chain([count]))
                );
                assert!(pieces.iter().all(|piece| !piece.is_empty()), "{count} {size}");
            }
        }
    }
}
