//! Executes fused copies that would be slow in packed order: transposes from one layout into the other,
//! and other transfers in which consecutive blocks lie in different cache lines.
//!
//! `memo.rs` calls [`Transposed::of`] for the common nest of a transfer (`nest.rs`). `compiled.rs`
//! calls [`Transposed::run`] instead of a kernel, with the parameters of a kernel. The rules are
//! those of `leaf/src/routine/traversal.rs`, extended to two sides. A level *continues the block* on a side
//! if its stride there equals the length of the block.
//!
//! 1. A level that continues the block on both sides becomes part of the block, wherever the level is.
//! 2. Two levels of at least 4 iterations each are transposed in registers (`leaf/src/routine/tiles.rs`) if one of
//!    them continues the block in the source, the other one continues it in the destination, and packed
//!    order would be slow. Packed order is slow if the levels inside one of these two levels touch more
//!    cache lines than the L1 cache holds.
//! 3. The innermost level is divided into parts if a level A exists whose consecutive iterations share
//!    cache lines on one side, and if the levels inside A touch more lines than the L1 cache holds. Each
//!    part is executed for a chunk of iterations of A. This rule is used only where rule 2 does not
//!    apply, for example because A does not continue the block, or because no transpose in registers
//!    exists for the length of the block.
//!
//! The rules apply only if the blocks of the destination are known to be disjoint. If they
//! overlapped, the order of the writes would change the result.

use super::interpreted::{self, Strides};
use super::nest::Nest;
use crate::kernel::{LevelShape, TransferLeaf, TransferRun, TransferShape};
use typepack_leaf::Isa;
use typepack_leaf::Width;
use typepack_leaf::tiles::{Transpose, Transposer, transposer};
use typepack_leaf::traversal::{CHUNK, SQUARE, apart, column, height, stays_in_l1};

const DEPTH: usize = TransferShape::MAX_DEPTH;

/// An executor for a nest of loops over one block. It visits the blocks in an order other than packed
/// order.
pub(super) struct Transposed {
    depth: usize,
    bytes: u64,
    isa: Isa,
}

impl Transposed {
    /// Returns an executor for `nest` that visits the blocks in a better order. Returns `None` in these
    /// cases:
    ///
    /// - The leaf of `nest` is not a single block at displacement 0 on both sides.
    /// - A level of `nest` is a table in the source or in the destination, or has a count of 0.
    /// - None of the rules at the top of this file changes the order of the blocks.
    /// - The blocks of the destination may overlap.
    pub(super) fn of(nest: &Nest, isa: Isa) -> Option<Self> {
        let depth = nest.depth();
        let bytes = match &nest.shape.leaf {
            TransferLeaf::Long => nest.words[5 * depth],
            TransferLeaf::Runs { runs } => match **runs {
                [TransferRun { from: 0, to: 0, bytes }] => bytes,
                _ => return None,
            },
        };
        if nest.shape.levels.iter().flatten().any(|&level| level != LevelShape::Loop) {
            return None;
        }
        let transposed = Self { depth, bytes, isa };
        let (axes, merged) = transposed.axes(&nest.words)?;
        let mut levels = [(0, 0); DEPTH];
        for (level, axis) in levels.iter_mut().zip(axes.levels()) {
            *level = (axis.to.unsigned_abs(), axis.count);
        }
        let worth = merged || !matches!(axes.order(isa), Order::Packed);
        (worth && apart(&mut levels[..axes.depth], axes.bytes)).then_some(transposed)
    }

    /// Returns the levels that the parameters `words` describe, and whether [`Axes::merge`] merged
    /// a level other than the innermost one. Returns `None` if a count is 0.
    fn axes(&self, words: &[u64; TransferShape::WORDS]) -> Option<(Axes, bool)> {
        let none = Axis { count: 1, from: 0, to: 0 };
        let mut axes = Axes { levels: [none; DEPTH], depth: 0, bytes: self.bytes };
        for words in words.chunks_exact(5).take(self.depth) {
            match words[0] {
                0 => return None,
                1 => {}
                count => {
                    let (from, to) = (words[1] as i64, words[3] as i64);
                    axes.levels[axes.depth] = Axis { count, from, to };
                    axes.depth += 1;
                }
            }
        }
        let merged = axes.merge();
        Some((axes, merged))
    }

    /// Copies the leaves that the parameters `words` describe.
    ///
    /// # Safety
    ///
    /// - The conditions of [`Entry`](crate::kernel::Entry) hold for the transfer for which `self`
    ///   was made.
    /// - The count that `words` states for a level is at most the count of the same level in that
    ///   transfer.
    pub(super) unsafe fn run(
        &self,
        words: &[u64; TransferShape::WORDS],
        source: *mut u8,
        target: *mut u8,
    ) {
        let Some((mut axes, _)) = self.axes(words) else { return };
        let bytes = axes.bytes;
        let order = axes.order(self.isa);
        let [Some(far), near] = [axes.take_far(&order), axes.take_near(&order)] else {
            // All levels have been merged into the block, so the copy is one block.
            let row = Strides { from: 0, to: 0, count: 1 };
            // SAFETY: the caller guarantees that the block of `bytes` bytes is valid on both sides,
            // and `row_of` returns the function for blocks of this length.
            return unsafe { interpreted::row_of(bytes)(source, target, row, bytes as usize) };
        };
        let (row, near) =
            (interpreted::row_of(bytes), near.unwrap_or(Axis { count: 1, from: 0, to: 0 }));
        let tile = |source: *mut u8, target: *mut u8, x: u64, width: u64| {
            let (source, target) = near.at(x, source, target);
            if let Order::Transposed { transpose, .. } = order {
                let t = Transpose {
                    from: source,
                    from_pitch: far.from as isize,
                    to: target,
                    to_pitch: near.to as isize,
                    width: width as usize,
                    height: far.count as usize,
                };
                // SAFETY: the matrix consists of `width` iterations of `near` and all iterations of `far`,
                // at one position of the other levels. `near` continues the block in the source, and `far`
                // does so in the destination. The caller guarantees that all these blocks are valid. The
                // blocks of the destination are disjoint: `of` proved it for counts that are at least as
                // large. `transpose` uses the instruction set of a plan, which this machine has.
                return unsafe { transpose(t) };
            }
            let part = match order {
                Order::Parts { .. } => height(far.from).min(height(far.to)),
                _ => far.count,
            };
            for top in (0..far.count).step_by(part as usize) {
                let (source, target) = far.at(top, source, target);
                let count = part.min(far.count - top);
                for i in 0..width {
                    let (source, target) = near.at(i, source, target);
                    let strides = Strides { from: far.from, to: far.to, count };
                    // SAFETY: the row consists of `count` iterations of `far`, at one iteration of
                    // `near` and one position of the other levels. The caller guarantees that all
                    // iterations of all levels are valid.
                    unsafe { row(source, target, strides, bytes as usize) };
                }
            }
        };
        let whole = matches!(order, Order::Transposed { .. }) && axes.depth == 0;
        let chunk = if whole { near.count } else { CHUNK };
        for x in (0..near.count).step_by(chunk as usize) {
            let width = chunk.min(near.count - x);
            axes.walk(source, target, |source, target| tile(source, target, x, width));
        }
    }
}

/// One level: the number of its iterations, and their distances in bytes in the source (`from`) and
/// in the destination (`to`).
#[derive(Clone, Copy)]
struct Axis {
    count: u64,
    from: i64,
    to: i64,
}

impl Axis {
    /// Returns the addresses of iteration `index` in the source and in the destination.
    #[inline(always)]
    fn at(&self, index: u64, source: *mut u8, target: *mut u8) -> (*mut u8, *mut u8) {
        let shift = |stride: i64| (index as i64).wrapping_mul(stride) as isize;
        (source.wrapping_offset(shift(self.from)), target.wrapping_offset(shift(self.to)))
    }
}

/// The order in which the innermost loops visit the blocks.
#[derive(Clone, Copy)]
enum Order {
    /// Packed order.
    Packed,
    /// Two levels are transposed in registers: `near`, which continues the block in the source, and
    /// `far`, which continues the block in the destination.
    Transposed { near: usize, far: usize, transpose: Transposer },
    /// The innermost level is divided into parts, and each part is executed for a chunk of iterations
    /// of level `near`.
    Parts { near: usize },
}

/// The levels that have at least two iterations, outermost first, over blocks of `bytes` bytes.
struct Axes {
    levels: [Axis; DEPTH],
    depth: usize,
    bytes: u64,
}

impl Axes {
    fn levels(&self) -> &[Axis] {
        &self.levels[..self.depth]
    }

    fn remove(&mut self, index: usize) -> Axis {
        let axis = self.levels[index];
        self.levels.copy_within(index + 1..self.depth, index);
        self.depth -= 1;
        axis
    }

    /// Merges the levels that continue the block on both sides into the block. Returns true if one
    /// of them was not the innermost level.
    fn merge(&mut self) -> bool {
        let mut outside = false;
        let continues = |axis: &Axis, bytes: u64| axis.from == axis.to && axis.from as u64 == bytes;
        while let Some(index) = self.levels().iter().position(|axis| continues(axis, self.bytes)) {
            outside |= index + 1 < self.depth;
            // The product is at most the number of bytes of the copy, so it does not overflow.
            self.bytes *= self.remove(index).count;
        }
        outside
    }

    fn order(&self, isa: Isa) -> Order {
        let Some(last) = self.depth.checked_sub(1) else { return Order::Packed };
        let continues = |stride: i64| stride as u64 == self.bytes;
        let near = self.levels().iter().position(|axis| continues(axis.from));
        let far = self.levels().iter().position(|axis| continues(axis.to));
        // Returns true if the levels inside `level` touch so many cache lines of a side that lines are
        // evicted between two iterations of `level`.
        let lost = |level: usize, side: fn(&Axis) -> i64| {
            let inside = self.levels()[level + 1..].iter();
            !stays_in_l1(column(inside.map(|axis| (axis.count, Some(side(axis))))))
        };
        if let (Some(near), Some(far), Some(transpose)) =
            (near, far, transposer(isa, self.bytes, Width::ONE))
            && (lost(near, |axis| axis.from) || lost(far, |axis| axis.to))
            && self.levels[near].count.min(self.levels[far].count) >= SQUARE
        {
            return Order::Transposed { near, far, transpose };
        }
        let shares = |stride: i64| (1..64).contains(&stride.unsigned_abs());
        let near = (0..last).rev().find(|&level| {
            let axis = &self.levels[level];
            shares(axis.from) && lost(level, |axis| axis.from)
                || shares(axis.to) && lost(level, |axis| axis.to)
        });
        near.map_or(Order::Packed, |near| Order::Parts { near })
    }

    /// Removes and returns the level that becomes the innermost loop. Returns `None` if there are no levels.
    fn take_far(&mut self, order: &Order) -> Option<Axis> {
        match *order {
            Order::Transposed { far, .. } => Some(self.remove(far)),
            _ => Some(self.remove(self.depth.checked_sub(1)?)),
        }
    }

    /// Removes and returns the level that becomes the loop around the innermost loop. Returns `None` if the
    /// blocks are visited in packed order. The caller calls [`take_far`](Self::take_far) first.
    fn take_near(&mut self, order: &Order) -> Option<Axis> {
        match *order {
            Order::Packed => None,
            Order::Parts { near } => Some(self.remove(near)),
            Order::Transposed { near, far, .. } => {
                Some(self.remove(if far < near { near - 1 } else { near }))
            }
        }
    }

    /// Calls `each` once for every combination of iterations of the levels, with the addresses of that
    /// combination in the source and in the destination.
    #[inline(always)]
    fn walk(&self, source: *mut u8, target: *mut u8, each: impl Fn(*mut u8, *mut u8)) {
        let mut index = [0; DEPTH];
        loop {
            let (mut from, mut to) = (source, target);
            for (axis, &index) in self.levels().iter().zip(&index) {
                (from, to) = axis.at(index, from, to);
            }
            each(from, to);
            let next = (0..self.depth).rev().find(|&l| {
                index[l] = (index[l] + 1) % self.levels[l].count;
                index[l] != 0
            });
            if next.is_none() {
                return;
            }
        }
    }
}
