//! Executes a part of a nest: broken leaves at the ends, boxes of whole leaves between them (`mod.rs`
//! defines both terms).
//!
//! `mod.rs` calls [`nest`] for programs that are one nest. `walk.rs` and `ragged.rs` call [`nest`] for
//! the nests that they reach.

use super::call::call;
use super::stats::{self, Executor};
use super::whole::whole;
use crate::kernel::{Level, Nest};
use crate::plan::{NestPlan, Plan};
use std::ops::Range;
use typepack_leaf::kernel::interpreter;

/// Executes packed bytes `range` of a nest whose outermost level makes `outer` iterations. `mem` is
/// the address of displacement 0 of the nest.
///
/// # Safety
///
/// The conditions of [`run`](super::run) hold for packed bytes `range` of this nest.
#[inline]
pub(super) unsafe fn nest<const PACK: bool>(
    plan: &Plan,
    planned: &NestPlan,
    outer: u64,
    mem: *mut u8,
    range: Range<u64>,
    packed: *mut u8,
) {
    let base = mem.wrapping_offset(planned.nest.base as isize);
    let bytes = range.end - range.start;
    if bytes == outer * planned.below[0].get() * planned.leaf_bytes.get() {
        // SAFETY: the range is all bytes of the nest with `outer` iterations, and the caller
        // guarantees that the range is valid.
        return unsafe { whole::<PACK>(plan, planned, outer, mem, bytes, packed) };
    }
    let inner = planned.nest.levels.len() - 1;
    if let Level::Loop { stride, .. } = planned.nest.levels[inner]
        && (inner == 0 || inner == 1 && outer == 1)
    {
        // If the nest is a single loop, or a loop inside a single iteration of the outermost level,
        // and if the range consists of whole leaves, one call of the kernel executes the range.
        // `plan/segments.rs` proposes such ranges for such nests.
        let (first, skip) = planned.leaf_bytes.divide(range.start);
        let (count, rest) = planned.leaf_bytes.divide(bytes);
        if skip == 0 && rest == 0 {
            let mut words = planned.words;
            words[0] = outer;
            words[3 * inner] = count;
            let at = base.wrapping_offset((first as i64).wrapping_mul(stride) as isize);
            // SAFETY: `words` and `at` describe `count` leaves, beginning with leaf `first`. These
            // leaves are exactly the range.
            return unsafe { call::<PACK>(plan, planned, &words, at, packed, bytes) };
        }
    }
    // SAFETY: `base` is the address of the nest's base. The caller guarantees the conditions of
    // this function, and `partial` gets the same arguments.
    unsafe { partial::<PACK>(plan, planned, outer, base, range, packed) }
}

/// Executes any range of a nest: the broken leaves at the ends, and the boxes between them.
///
/// # Safety
///
/// The conditions of [`nest`] hold, and `base` is the address of the nest's base.
unsafe fn partial<const PACK: bool>(
    plan: &Plan,
    planned: &NestPlan,
    outer: u64,
    base: *mut u8,
    range: Range<u64>,
    packed: *mut u8,
) {
    let leaf = planned.leaf_bytes.get();
    let (item, skip) = planned.leaf_bytes.divide(range.start);
    let mut place = Place::of(planned, outer, item);
    let (mut left, mut packed) = (range.end - range.start, packed);
    let broken = |place: &Place<'_>, skip: u64, bytes: u64, packed: *mut u8| {
        let at = base.wrapping_offset(place.displacement() as isize);
        // SAFETY: `at` is the address of a leaf of the nest. Bytes `skip..skip + bytes` of the leaf
        // are in the range, and the caller guarantees that the range is valid. If the plan swaps
        // bytes, these are whole basic elements, because the range cuts no basic element; `swap`
        // describes this leaf, and this machine has the plan's instruction set.
        unsafe {
            match &planned.swap {
                None => {
                    interpreter::part_of_leaf::<PACK>(&planned.nest.leaf, at, packed, skip, bytes)
                }
                Some(swap) => {
                    let (leaf, part) = (&planned.nest.leaf, (skip, bytes));
                    swap.part_of_leaf::<PACK>(plan.isa(), leaf, at, packed, part);
                }
            }
        }
        stats::add(Executor::Interpreter, bytes);
    };
    if skip != 0 {
        let bytes = (leaf - skip).min(left);
        broken(&place, skip, bytes, packed);
        if bytes == left {
            return;
        }
        packed = packed.wrapping_add(bytes as usize);
        left -= bytes;
        place.advance(planned.nest.levels.len() - 1, 1);
    }
    let (mut items, rest) = planned.leaf_bytes.divide(left);
    let mut words;
    while items > 0 {
        words = planned.words;
        let (shift, level) = place.next_box(items, &mut words);
        let moved = words[3 * level] * planned.below[level].get();
        let at = base.wrapping_offset(shift as isize);
        // SAFETY: `words` and `at` describe the next `moved` leaves. All their bytes are in the
        // range, and their packed size is `moved * leaf`.
        unsafe { call::<PACK>(plan, planned, &words, at, packed, moved * leaf) };
        packed = packed.wrapping_add((moved * leaf) as usize);
        items -= moved;
        place.advance(level, words[3 * level]);
    }
    if rest != 0 {
        broken(&place, 0, rest, packed);
    }
}

/// The position of a leaf in a nest: one index per level. `partial` computes the indices by
/// division only for the first leaf of its range, and increments the indices after each box. With
/// divisions for every box, packing four nested loops in ranges of 8 KiB took longer than now. The
/// difference was 8 % of the time of packing the same loops in one call (`typepack-bench commit`,
/// "nest of 4 loops").
struct Place<'a> {
    planned: &'a NestPlan,
    /// Number of iterations of the outermost level.
    outer: u64,
    indices: [u64; Nest::MAX_DEPTH],
}

impl<'a> Place<'a> {
    /// Returns the position of leaf number `item`.
    fn of(planned: &'a NestPlan, outer: u64, item: u64) -> Self {
        let mut indices = [0; Nest::MAX_DEPTH];
        let (inner, mut rest) = (planned.nest.levels.len() - 1, item);
        for (index, &below) in indices.iter_mut().zip(&planned.below[..inner]) {
            (*index, rest) = below.divide(rest);
        }
        // One iteration of the innermost level is one leaf, so the remainder is the innermost index.
        indices[inner] = rest;
        Self { planned, outer, indices }
    }

    /// Returns the number of iterations of `level`.
    fn count(&self, level: usize) -> u64 {
        if level == 0 { self.outer } else { self.planned.words[3 * level] }
    }

    /// Returns the displacement of the leaf from the nest's base.
    fn displacement(&self) -> i64 {
        let levels = self.planned.nest.levels.iter().zip(&self.indices);
        levels.fold(0, |at: i64, (level, &index)| {
            at.wrapping_add(match level {
                Level::Loop { stride, .. } => (index as i64).wrapping_mul(*stride),
                Level::Table { entries, scale } => entries.get(index as usize).wrapping_mul(*scale),
            })
        })
    }

    /// Finds the largest box of whole iterations that begins at this leaf and has at most `items`
    /// leaves, where `items` is not 0. Changes `words` from the parameters of the whole nest to those
    /// of the box. Returns the displacement of the box's base, and the level whose iterations make up
    /// the box.
    #[inline]
    fn next_box(&self, items: u64, words: &mut [u64; Nest::WORDS]) -> (i64, usize) {
        let planned = self.planned;
        // Find the outermost level that has a whole iteration which begins at this leaf and has at
        // most `items` leaves. The innermost level always has one, because each of its iterations
        // is a single leaf.
        let mut level = planned.nest.levels.len() - 1;
        while level > 0 && self.indices[level] == 0 && planned.below[level - 1].get() <= items {
            level -= 1;
        }
        let mut shift = 0i64;
        for (l, (kind, &index)) in
            planned.nest.levels[..=level].iter().zip(&self.indices).enumerate()
        {
            match kind {
                Level::Loop { stride, .. } => {
                    shift = shift.wrapping_add((index as i64).wrapping_mul(*stride));
                }
                Level::Table { entries, .. } => words[3 * l + 1] += index * entries.width() as u64,
            }
            words[3 * l] = 1;
        }
        let (left, below) = (self.count(level) - self.indices[level], planned.below[level]);
        // The product is at most the number of leaves of the nest, so it cannot overflow.
        words[3 * level] = if left * below.get() <= items { left } else { below.divide(items).0 };
        (shift, level)
    }

    /// Advances the position by `count` iterations of `level`. The level has at least `count`
    /// iterations left.
    fn advance(&mut self, level: usize, count: u64) {
        let mut level = level;
        self.indices[level] += count;
        while level > 0 && self.indices[level] == self.count(level) {
            self.indices[level] = 0;
            level -= 1;
            self.indices[level] += 1;
        }
    }
}
