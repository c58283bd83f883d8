//! Reduce-scatter in two ways. Each rank gets the reduction of one block of the elements, in rank order.
//!
//! The direct way sends every block to the rank that gets it. That rank combines the blocks of all ranks, from the
//! highest rank to the lowest. So all ranks combine at once, and each byte moves once.
//!
//! The other way, for short blocks, reduces all elements to rank 0, which then sends the blocks. It needs far fewer
//! messages.
//!
//! Reductions of long vectors to one rank or to all ranks also begin with the direct way: `reduce.rs` and
//! `allreduce.rs` have the ways of short vectors. The way depends only on the number of ranks and on the number and
//! the type of the elements, so the order of combinations, and with it every bit of a sum, is the same in every run.

use super::buffers::Buffer;
use crate::comm::Communicator;
use crate::endpoint::sources::Combine;
use crate::schedule::program::{Builder, StepId};
use crate::{Error, ErrorKind, Plan, Result};
use typepack_engine::Elements;

/// Blocks whose mean size in bytes is less than this travel through rank 0 if there are more than two ranks. With `n`
/// ranks, the direct way has `n * (n - 1)` messages, and the way through rank 0 has `2 * (n - 1)`.
const SHORT: u64 = 4 << 10;

/// Minimum mean size in bytes of the blocks of a reduction in blocks. Such a reduction has more messages than a tree,
/// but each rank has fewer bytes to copy and to combine.
const LONG_BLOCK: u64 = 64 << 10;

/// Largest number of ranks that reduce long vectors in blocks. There, each rank sends its elements of a block to the
/// rank of the block, so the number of messages grows with the square of the number of ranks.
const MOST_BLOCKS: u64 = 64;

/// Number of blocks of other ranks that a rank receives at once in the direct way.
const ROOMS: usize = 3;

/// Returns the number of elements of all blocks of a reduce-scatter. `counts` has the number of elements of each block.
///
/// # Errors
/// Returns `ErrorKind::Count` if the number does not fit in 64 bits.
pub(in crate::coll) fn total(counts: &[u64]) -> Result<u64> {
    let total = counts.iter().try_fold(0u64, |sum, count| sum.checked_add(*count));
    total.ok_or_else(|| {
        let detail = "the sum of the counts does not fit in 64 bits";
        Error::new(ErrorKind::Count, "counts", detail)
    })
}

impl Communicator {
    pub(in crate::coll) fn reduce_scatter_steps<'a>(
        &self,
        steps: &mut Builder<'_, 'a>,
        send: Option<*const u8>,
        recv: &Elements<&'a Plan>,
        counts: &[u64],
        combine: &Combine,
    ) -> Result<()> {
        let (rank, size) = (self.rank(), self.size());
        let all = self.all_blocks(send, recv, counts.len(), total(counts)?)?;
        if all.bytes()? == 0 {
            return Ok(());
        }
        let block = Elements { count: counts[rank], ..*recv };
        // A rank without others reduces nothing. The direct way would copy elements in place twice, for other ranks.
        if size == 1 {
            if send.is_some() {
                steps.copy(&all, &block, rank)?;
            }
            return Ok(());
        }
        if self.scatters_from_first(&all)? {
            return self.reduce_then_scatter_steps(steps, &all, &block, counts, combine);
        }
        self.reduce_directly_steps(steps, &all, &block, counts, combine)
    }

    /// Returns this rank's elements of all `blocks` blocks, which have `total` elements together.
    pub(in crate::coll) fn all_blocks<'a>(
        &self,
        send: Option<*const u8>,
        recv: &Elements<&'a Plan>,
        blocks: usize,
        total: u64,
    ) -> Result<Elements<&'a Plan>> {
        let size = self.size();
        if blocks != size {
            let detail = format!(
                "the slice has length {blocks}; its length must be the number of ranks, {size}"
            );
            return Err(Error::new(ErrorKind::Argument, "counts", detail));
        }
        let origin = send.map_or(recv.origin, <*const u8>::cast_mut);
        Ok(Elements { origin, count: total, ..*recv })
    }

    /// Returns whether the elements of a reduce-scatter are combined in the order of a reduce to rank 0, because they
    /// go that way by messages. `all` has the elements of all blocks. All ranks give the same answer.
    #[inline]
    pub(in crate::coll) fn scatters_from_first(&self, all: &Elements<&Plan>) -> Result<bool> {
        let size = self.size();
        Ok(size > 2 && all.bytes()? / (size as u64) < SHORT)
    }

    /// Adds the steps of the way through rank 0. `all` has this rank's elements, and `block` gets the result.
    fn reduce_then_scatter_steps<'a>(
        &self,
        steps: &mut Builder<'_, 'a>,
        all: &Elements<&'a Plan>,
        block: &Elements<&'a Plan>,
        counts: &[u64],
        combine: &Combine,
    ) -> Result<()> {
        let rank = self.rank();
        if rank != 0 {
            let last = self.reduce_steps(steps, Some(all.origin), all, combine, 0)?;
            if block.count > 0 {
                let received = steps.receive(block, self.peer(0)?)?;
                if let Some(last) = last {
                    // In place, the block replaces elements that an earlier step sends.
                    steps.follow(received, last);
                }
            }
            return Ok(());
        }
        let reduced = Elements { origin: steps.scratch(all.plan, all.count), ..*all };
        let made = self.reduce_steps(steps, Some(all.origin), &reduced, combine, 0)?;
        for (to, part) in blocks(&reduced, counts).enumerate() {
            if part.count == 0 {
                continue;
            }
            let step = match to {
                0 => steps.copy(&part, block, rank)?,
                _ => steps.send(&part, self.peer(to)?)?,
            };
            if let Some(made) = made {
                steps.after(step, made);
            }
        }
        Ok(())
    }

    /// Adds the steps of the direct way. `all` has this rank's elements, and `block` gets the result.
    fn reduce_directly_steps<'a>(
        &self,
        steps: &mut Builder<'_, 'a>,
        all: &Elements<&'a Plan>,
        block: &Elements<&'a Plan>,
        counts: &[u64],
        combine: &Combine,
    ) -> Result<()> {
        let rank = self.rank();
        let in_place = all.origin == block.origin;
        let parts: Vec<Elements<&'a Plan>> = blocks(all, counts).collect();
        steps.operation(combine);
        let mut reduced = self.reduce_blocks(steps, &parts, (!in_place).then_some(*block))?;
        if in_place && block.count > 0 {
            let mut target = Buffer::new(*block);
            target.copy(steps, &mut reduced.result, rank)?;
            // The block lies where elements for other ranks lie, which must be sent before.
            for sent in reduced.sent.into_iter().flatten() {
                target.follows(steps, sent);
            }
        }
        Ok(())
    }

    /// Adds the steps of the direct way. `parts` has this rank's elements of each block. The result of this rank's
    /// block goes to `target`, which must not overlap the parts, or to scratch memory if `target` is `None`.
    pub(in crate::coll) fn reduce_blocks<'a>(
        &self,
        steps: &mut Builder<'_, 'a>,
        parts: &[Elements<&'a Plan>],
        target: Option<Elements<&'a Plan>>,
    ) -> Result<Reduced<'a>> {
        let (rank, size) = (self.rank(), self.size());
        let (mut sent, mut received) = (vec![None; size], vec![None; size]);
        // Each rank begins with another partner, so that the ranks do not all send to one rank at once.
        for to in (1..size).map(|distance| (rank + distance) % size) {
            if parts[to].count > 0 {
                sent[to] = Some(steps.send(&parts[to], self.peer(to)?)?);
            }
        }
        let mut own = Buffer::new(parts[rank]);
        let mut result = match target {
            Some(target) => Buffer::new(target),
            None => Buffer::scratch(steps, &parts[rank]),
        };
        result.first = parts[..rank].iter().map(|part| part.count).sum();
        if parts[rank].count == 0 {
            return Ok(Reduced { result, sent, received });
        }
        let highest = size - 1;
        if rank == highest {
            result.copy(steps, &mut own, rank)?;
        } else {
            let step = steps.receive(&result.part, self.peer(highest)?)?;
            result.replaced_by(steps, step);
            received[highest] = Some(step);
        }
        let mut rooms: [Option<Buffer<'a>>; ROOMS] = [None; ROOMS];
        let mut used = 0;
        for from in (0..highest).rev() {
            if from == rank {
                result.combine(steps, &mut own)?;
                continue;
            }
            let mut room = match rooms[used % ROOMS] {
                Some(room) => room,
                None => Buffer::scratch(steps, &parts[rank]),
            };
            let step = steps.receive(&room.part, self.peer(from)?)?;
            room.replaced_by(steps, step);
            received[from] = Some(step);
            result.combine(steps, &mut room)?;
            rooms[used % ROOMS] = Some(room);
            used += 1;
        }
        Ok(Reduced { result, sent, received })
    }

    /// Adds the steps of a reduction of long vectors: the direct way reduces one block on each rank, and then every
    /// rank sends the result of its block to the ranks that need it. `root` is the only such rank; `None` stands for
    /// all ranks. Only these ranks access the memory at `recv`.
    pub(in crate::coll) fn reduce_in_blocks_steps<'a>(
        &self,
        steps: &mut Builder<'_, 'a>,
        send: Option<*const u8>,
        recv: &Elements<&'a Plan>,
        combine: &Combine,
        root: Option<usize>,
    ) -> Result<()> {
        let (rank, size) = (self.rank(), self.size());
        let counts: Vec<u64> = (0..size as u64)
            .map(|block| recv.count / size as u64 + u64::from(block < recv.count % size as u64))
            .collect();
        let own = Elements { origin: send.map_or(recv.origin, <*const u8>::cast_mut), ..*recv };
        let parts: Vec<Elements<&'a Plan>> = blocks(&own, &counts).collect();
        let targets: Vec<Elements<&'a Plan>> = blocks(recv, &counts).collect();
        let receives = root.is_none_or(|root| root == rank);
        steps.operation(combine);
        let at_once = (receives && send.is_some()).then_some(targets[rank]);
        let Reduced { mut result, sent, received } = self.reduce_blocks(steps, &parts, at_once)?;
        for to in (1..size).map(|distance| (rank + distance) % size) {
            if root.is_none_or(|root| root == to) {
                let step = steps.send(&result.part, self.peer(to)?)?;
                if let Some(writer) = result.writer() {
                    steps.after(step, writer);
                }
            }
        }
        if !receives {
            return Ok(());
        }
        if at_once.is_none() {
            Buffer::new(targets[rank]).copy(steps, &mut result, rank)?;
        }
        for from in (1..size).map(|distance| (rank + size - distance) % size) {
            let step = steps.receive(&targets[from], self.peer(from)?)?;
            // The other rank sends its elements of this rank's block before its result. So the receives match the
            // right messages if the receive of the elements is over before this one begins.
            if let Some(before) = received[from] {
                steps.follow(step, before);
            }
            // In place, the result replaces elements that an earlier step sends.
            if let Some(before) = sent[from].filter(|_| send.is_none()) {
                steps.follow(step, before);
            }
        }
        Ok(())
    }

    /// Returns whether a reduction goes in blocks (see [`reduce_in_blocks_steps`](Self::reduce_in_blocks_steps)).
    /// All ranks give the same answer.
    #[inline]
    pub(in crate::coll) fn reduces_in_blocks(&self, all: &Elements<&Plan>) -> Result<bool> {
        let size = self.size() as u64;
        let blocks = (2..=MOST_BLOCKS).contains(&size) && all.count >= size;
        // With at most `MOST_BLOCKS` ranks, the product does not overflow.
        Ok(blocks && all.bytes()? >= LONG_BLOCK * size)
    }
}

/// What the direct way leaves for the steps after it.
pub(in crate::coll) struct Reduced<'a> {
    /// The buffer with the result of this rank's block.
    pub result: Buffer<'a>,
    /// For each other rank, the step that sends this rank's elements to that rank.
    pub sent: Vec<Option<StepId>>,
    /// For each other rank, the step that receives the elements of that rank.
    pub received: Vec<Option<StepId>>,
}

/// Returns the blocks of the elements of `all`, one for each rank.
pub(in crate::coll) fn blocks<'a>(
    all: &Elements<&'a Plan>,
    counts: &[u64],
) -> impl Iterator<Item = Elements<&'a Plan>> {
    let (all, mut first) = (*all, 0u64);
    counts.iter().map(move |&count| {
        let block = all.slice(first..first + count);
        first += count;
        block
    })
}
