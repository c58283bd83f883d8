//! Reduce-scatter through cells: each rank combines the elements of one block.
//!
//! In each step, a rank publishes some elements of every block, one range of elements behind the other, and then reads
//! those of its own block from all other ranks. All ranks pass the same lengths of all blocks, so they cut alike. A
//! reader must not trust this: with other lengths and the same sum, it would read elements of another block. So the
//! head of each cell has a hash of the lengths ([`head`]). `fold.rs` combines the elements, in the order of
//! `reduce_scatter.rs`.

use super::block::SHORT;
use super::fold::{Operands, Order};
use super::heads::{FAILURES, check};
use super::piece::{range, steps};
use super::turn::{LONGEST, Turn};
use crate::coll::schedule::reduce_scatter::total;
use crate::endpoint::sources::Combine;
use crate::message::payload::copy_layout;
use crate::schedule::program::{room_for, take_room};
use crate::{Error, ErrorKind, Plan, Result};
use std::ops::Range;
use typepack_engine::Elements;

/// Number of low bits in the head of a cell for the number of bytes that a rank passes on in the call. The bits above
/// are for the hash of the counts.
const BYTES_BITS: u32 = 36;

/// Number of bits of the hash. The bits above are for the marks of `turn.rs`.
const HASH_BITS: u32 = 26;

const _: () = assert!(LONGEST < 1 << BYTES_BITS && BYTES_BITS + HASH_BITS <= 62);

/// The blocks of a reduce-scatter, and how they are cut.
#[derive(Clone, Copy)]
struct Blocks<'a> {
    counts: &'a [u64],
    /// Number of elements of a block in a step.
    each: u64,
    element: u64,
}

/// The elements of one block in a step.
struct Piece {
    /// The rank of the block.
    rank: usize,
    /// The elements, as a part of the block.
    range: Range<u64>,
    /// Index of the first of the elements in the whole reduction.
    first: u64,
    /// The offset of the elements in the data of the step, in bytes.
    offset: u64,
}

impl Blocks<'_> {
    /// Returns the elements of each block in step `index`.
    fn pieces(self, index: u64) -> impl Iterator<Item = Piece> {
        let (mut before, mut offset) = (0, 0);
        self.counts.iter().enumerate().map(move |(rank, count)| {
            let range = range(*count, self.each, index);
            let piece = Piece { rank, first: before + range.start, offset, range };
            before += count;
            offset += (piece.range.end - piece.range.start) * self.element;
            piece
        })
    }

    /// Returns the number of bytes of all elements in step `index`.
    fn bytes(self, index: u64) -> u64 {
        self.pieces(index).map(|piece| piece.range.end - piece.range.start).sum::<u64>()
            * self.element
    }

    /// Returns the number of steps.
    fn steps(self) -> u64 {
        steps(self.counts.iter().copied().max().unwrap_or(0), self.each)
    }
}

/// Returns the number of elements of all blocks of a reduce-scatter, which have these numbers of elements, if the call
/// can go through cells.
///
/// # Errors
/// Returns `ErrorKind::Count` if the number does not fit in 64 bits.
#[inline]
pub(super) fn fitting(plan: &Plan, counts: &[u64]) -> Result<Option<u64>> {
    let (size, all) = (counts.len() as u64, total(counts)?);
    let fits = plan.element_bytes().saturating_mul(size) <= SHORT
        && plan.packed_bytes(all)?.saturating_mul(size) <= LONGEST;
    Ok(fits.then_some(all))
}

/// Returns the number of elements of each of `size` blocks in a step of `piece` bytes. An element has `element` bytes.
fn share(piece: u64, size: u64, element: u64) -> u64 {
    (piece / (size * element).max(1)).max(1)
}

/// Returns the head of the cells of a call of `bytes` bytes, at most [`LONGEST`], whose blocks have these numbers of
/// elements.
fn head(bytes: u64, counts: &[u64]) -> u64 {
    let mix = |hash: u64, count: &u64| {
        // An odd factor and a shift can be undone, so lists of the same length that differ in one count have different
        // hashes before the last line.
        let mixed = (hash ^ count).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed ^ mixed >> 32
    };
    let hash = counts.iter().fold(0, mix);
    (hash >> (u64::BITS - HASH_BITS)) << BYTES_BITS | bytes
}

/// Checks the head of the cell of rank `from`. `expected` is the head of this rank's cells in the call.
fn check_counts(from: usize, head: u64, expected: u64) -> Result<()> {
    if head == expected {
        return Ok(());
    }
    let bytes = |head: u64| head & ((1 << BYTES_BITS) - 1);
    check(from, if head >= FAILURES { head } else { bytes(head) }, bytes(expected))?;
    let detail = format!(
        "the counts differ: those of rank {from} have the same sum as those of this rank, but the blocks have other \
         lengths"
    );
    Err(Error::new(ErrorKind::Count, "counts", detail))
}

impl Turn<'_> {
    /// Makes a reduce-scatter. `all` has this rank's elements of all blocks, and the result of this rank's block goes
    /// to the address `result`.
    ///
    /// # Safety
    ///
    /// - The elements of `all` are readable, and those of the result are writable, and nobody else accesses them until
    ///   the function returns. They do not overlap, unless both begin at the same address.
    /// - `counts` has the number of elements of the block of each rank. Together they are the elements of `all`.
    /// - `combine` keeps the promises of [`Combine`] for these elements.
    pub(super) unsafe fn reduce_scatter(
        &mut self,
        all: &Elements<&Plan>,
        result: *mut u8,
        counts: &[u64],
        combine: &Combine,
    ) -> Result<()> {
        let (rank, size, bytes) = (self.rank, self.size, all.bytes()?);
        if bytes == 0 {
            // If other ranks have elements, by mistake, they need not wait.
            self.leave();
            return Ok(());
        }
        let order = match self.comm.scatters_from_first(all)? {
            true => Order::Tree,
            false => Order::Chain,
        };
        self.combines(combine);
        let element = all.plan.element_bytes();
        let each = match bytes {
            ..=SHORT => all.count,
            _ => share(self.piece(bytes), size as u64, element),
        };
        let blocks = Blocks { counts, each, element };
        let mine = Elements { origin: result, count: counts[rank], ..*all };
        let mut scratch = Vec::new();
        let mut target = mine;
        if all.origin == result {
            // The block lies where elements of other blocks lie, which other ranks may still need.
            scratch = self.cells.scratch.pop().unwrap_or_default();
            target.origin = take_room(&mut scratch, room_for(all.plan, mine.count)?)?;
        }
        let last = blocks.steps();
        let head = head(bytes, counts);
        // SAFETY: the elements of `all` are readable (condition of `# Safety`).
        unsafe { self.put_blocks(0, all, blocks, head)? };
        for index in 0..last {
            self.begin(index);
            if index + 1 < last {
                // SAFETY: the elements of `all` are readable (condition of `# Safety`), and nobody changes them: no
                // result lies where elements of `all` lie.
                unsafe { self.put_blocks(index + 1, all, blocks, head)? };
            }
            self.meet()?;
            for from in (0..size).filter(|from| *from != rank) {
                check_counts(from, self.head(from), head)?;
            }
            let Some(piece) =
                blocks.pieces(index).nth(rank).filter(|piece| !piece.range.is_empty())
            else {
                continue;
            };
            let elements = Operands {
                own: all.origin.wrapping_offset(all.offset(piece.first)),
                result: target.slice(piece.range),
                first: piece.first,
                published: blocks.bytes(index),
                offset: piece.offset,
            };
            // SAFETY: this rank's elements are readable, the result is writable or scratch memory, and `combine` keeps
            // its promises (conditions of `# Safety`). The cells of all ranks have arrived (`meet`), and all ranks cut
            // alike (`check_counts`).
            unsafe { self.fold(&elements, combine, order)? };
        }
        if all.origin == result {
            // SAFETY: both have the same packed size, the scratch memory holds the result of all elements, and all
            // ranks have read this rank's elements into their memory or have them in this rank's ring.
            unsafe { copy_layout(&target, &mine, blocks.element * mine.count) };
            if scratch.len() <= super::fold::KEPT {
                self.cells.scratch.push(scratch);
            }
        }
        Ok(())
    }

    /// Publishes this rank's elements of all blocks in step `index`, with the head that [`head`] returns for the call.
    /// The place of this rank's own block stays as it is, because no other rank reads it.
    ///
    /// # Safety
    ///
    /// - The elements of `all` are readable, and nobody changes them until the function returns.
    unsafe fn put_blocks(
        &mut self,
        index: u64,
        all: &Elements<&Plan>,
        blocks: Blocks<'_>,
        head: u64,
    ) -> Result<()> {
        let rank = self.rank;
        self.put_with((index, self.next()), blocks.bytes(index), head, |target| {
            for piece in blocks.pieces(index).filter(|piece| piece.rank != rank) {
                let count = piece.range.end - piece.range.start;
                let part = all.slice(piece.first..piece.first + count);
                let target = target.wrapping_add(piece.offset as usize);
                // SAFETY: the elements are readable (condition of `# Safety`). `target` is the place of their packed
                // bytes in memory for the elements of all blocks, which nobody else accesses (`put_with`).
                unsafe { part.pack(0..count * blocks.element, target) };
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coll::flags::MOST;
    use crate::shm::cells::STEPS;

    #[test]
    fn counts_with_the_same_sum_have_different_heads() {
        let lists: [&[u64]; 6] = [&[3, 1], &[1, 3], &[2, 2], &[4, 0], &[0, 4], &[4, 0, 0]];
        for a in lists {
            assert!(check_counts(1, head(32, a), head(32, a)).is_ok());
            for b in lists.iter().filter(|b| **b != a) {
                let error = check_counts(1, head(32, b), head(32, a)).unwrap_err();
                assert_eq!((error.kind(), error.argument()), (ErrorKind::Count, "counts"));
            }
        }
        // Of 40,000 pairs of neighbouring counts, none has the same hash.
        let heads = (0..40_000).map(|first| head(LONGEST, &[first, 40_000 - first]));
        let mut heads: Vec<u64> = heads.collect();
        heads.dedup();
        assert_eq!(heads.len(), 40_000);
        assert!(heads.iter().all(|head| *head < 1 << 62));
        let kind = |theirs: u64| check_counts(1, theirs, head(32, &[3, 1])).unwrap_err().kind();
        assert_eq!(kind(head(40, &[4, 1])), ErrorKind::Truncated);
        assert_eq!(kind(head(24, &[2, 1])), ErrorKind::Count);
        assert_eq!(kind(u64::MAX), ErrorKind::Other);
    }

    #[test]
    fn the_pieces_cover_the_blocks() {
        for counts in [&[3, 0, 7][..], &[1], &[0, 0, 5, 1], &[10, 10]] {
            let blocks = Blocks { counts, each: 3, element: 8 };
            let mut seen = vec![0; counts.iter().sum::<u64>() as usize];
            for index in 0..blocks.steps() {
                let mut end = 0;
                for piece in blocks.pieces(index) {
                    assert_eq!(piece.offset, end);
                    let count = piece.range.end - piece.range.start;
                    end += 8 * count;
                    (piece.first..piece.first + count).for_each(|at| seen[at as usize] += 1);
                    let before: u64 = counts[..piece.rank].iter().sum();
                    assert_eq!(piece.first, before + piece.range.start);
                }
                assert_eq!(blocks.bytes(index), end);
            }
            assert!(seen.iter().all(|times| *times == 1), "{counts:?}");
        }
    }

    #[test]
    fn the_steps_of_the_longest_calls_can_be_numbered() {
        for size in 2..=MOST as u64 {
            for element in [1, 8, 13, SHORT / size] {
                let each = share(SHORT, size, element);
                assert!(each * element * size <= SHORT);
                // One block may have all elements.
                assert!(steps(LONGEST / size / element, each) <= STEPS, "{size} {element}");
            }
        }
    }
}
