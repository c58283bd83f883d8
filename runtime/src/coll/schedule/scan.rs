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
        if recv.bytes()? == 0 {
            return Ok(());
        }
        let passes = rank + 1 < size;
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
                if passes {
                    value.combine(steps, &mut result)?;
                }
            }
            if passes {
                let step = steps.send(&value.part, self.peer(rank + 1)?)?;
                value.read_by(steps, step);
                sent.add(steps, step);
            }
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
