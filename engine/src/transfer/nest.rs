//! Finds the common nest of two layouts: the innermost loops and tables that both layouts have, around a
//! common leaf. A kernel of the transfer executes the nest.
//!
//! `memo.rs` calls [`Nest::of`] once per transfer, and `compiled.rs` executes the nest. The search
//! has three steps:
//!
//! 1. Find a common leaf. The leaf of a side is the block, or the sequence of a few short blocks, inside
//!    its innermost loop. If the leaves of the two sides differ in length, unroll the innermost loops up
//!    to the least common multiple of the lengths (for 24 and 16 bytes, two iterations and three
//!    iterations). If that is not possible, but the longer leaf is a block and its length is a multiple
//!    of the other length, turn that block into a loop. A run of the common leaf ends wherever a run of
//!    either side ends.
//! 2. Find the common levels, from the inside out. Levels with equal counts are common. If one count divides
//!    the other, split the longer loop (100 iterations against 10 x 10). The *row* is the first level that is
//!    not common. If a side has no level left, or if the nest reaches its maximum depth first, the row is the
//!    last common level. One call of the kernel executes as many iterations of the row as both sides have
//!    left.
//! 3. Unroll short innermost loops over short blocks into the leaf.

use super::levels::{SideLevel, SideLevels};
use super::staged::gcd;
use crate::exec::Elements;
use crate::ir::{Node, Op, Program, is_window};
use crate::kernel::{LevelShape, Run, TransferLeaf, TransferRun, TransferShape};
use crate::plan::{Plan, ROW_BYTES, Strategy};
use std::sync::Arc;

/// Maximum number of leaves of one side that may be combined into one leaf of the transfer.
const UNROLL: u64 = 8;

/// Limits for unrolling a short innermost loop into the leaf: the maximum number of runs of the
/// resulting leaf (`SHORT_RUNS`), and the maximum count of the loop (`SHORT_LOOP`).
const SHORT_RUNS: usize = 8;
const SHORT_LOOP: u64 = 4;

/// Minimum mean number of bytes per call of a kernel (if one call does not copy the whole transfer), or per
/// row of the interpreter. With fewer bytes, the kernels of the two plans copy faster through a buffer: a
/// second pass over the bytes then takes less time than walking from row to row. In two measurements, both
/// ways took the same time at these means: 128 bytes (blocks of 8 bytes; rows of 31 and 32 blocks) and 204
/// bytes (blocks of 64 bytes; rows of 5 and 7 blocks).
pub(super) const CALL: f64 = 200.0;

/// Maximum number of levels of a nest.
const DEPTH: usize = TransferShape::MAX_DEPTH;

/// A common nest with its parameters.
pub(super) struct Nest {
    pub(super) shape: TransferShape,
    /// The levels outside the nest, one list per side. The innermost level of each list is the row of
    /// that side.
    pub(super) from: SideLevels,
    pub(super) to: SideLevels,
    /// Number of leaves in one iteration of each level. Level 0 is the row.
    pub(super) below: [u64; DEPTH],
    /// Length of a leaf, in packed bytes.
    pub(super) leaf: u64,
    /// The parameter block of the kernel. It states the row's count as the smaller of the two sides'
    /// counts.
    pub(super) words: [u64; TransferShape::WORDS],
    /// Number of packed bytes of the whole transfer if all levels are common to both sides, so that
    /// `words` describes the whole transfer. Otherwise `None`.
    pub(super) whole: Option<u64>,
}

/// A level that both sides have: the level in the source, and the level in the destination.
type Meeting = [SideLevel; 2];

impl Nest {
    /// Returns the common nest of a transfer. Returns `None` if the sides have no common nest, if its kernel
    /// would not be faster than other executors, or if the settings of one of the plans force the
    /// interpreter. The function does not check whether there is a compiler.
    pub(super) fn of(src: &Elements<&Plan>, dst: &Elements<&Plan>) -> Option<Self> {
        let settings = src.plan.settings();
        let forced = |strategy| {
            settings.strategy == Some(strategy) || dst.plan.settings().strategy == Some(strategy)
        };
        if forced(Strategy::Interpreter) {
            return None;
        }
        let least = if forced(Strategy::Kernel) { 0.0 } else { CALL };
        let (mut from, a) = SideLevels::of(src.plan.program(), src.count)?;
        let (mut to, b) = SideLevels::of(dst.plan.program(), dst.count)?;
        if a.op == Op::Block && b.op == Op::Block && a.bytes.min(b.bytes) > TransferShape::RUN_BYTES
        {
            // Two such long blocks form a common leaf only if their lengths are equal. For blocks of at
            // least `ROW_BYTES` bytes, one call of `contiguous::copy` per block is as fast as a kernel.
            if a.bytes != b.bytes || (a.bytes >= ROW_BYTES && !forced(Strategy::Kernel)) {
                return None;
            }
            return Self::matched(from.close(), to.close(), None, a.bytes, least);
        }
        let (runs, leaf) = leaf(src.plan.program(), a, &mut from, dst.plan.program(), b, &mut to)?;
        Self::matched(from.close(), to.close(), Some(runs), leaf, least)
    }

    /// Executes steps 2 and 3 of the search (see the head of this file). `runs` is `None` if the leaf is a
    /// block whose length is a parameter. Returns `None` if there are too many levels, or if one call of the
    /// kernel does not copy the whole transfer and would copy at most `least` bytes on average.
    fn matched(
        mut from: SideLevels,
        mut to: SideLevels,
        mut runs: Option<Vec<TransferRun>>,
        mut leaf: u64,
        least: f64,
    ) -> Option<Self> {
        // The common levels so far, innermost first.
        let mut met: Vec<Meeting> = Vec::with_capacity(DEPTH);
        let mut row = loop {
            let (a, b) = (from.pop()?, to.pop()?);
            let (few, many) = (a.count().min(b.count()), a.count().max(b.count()));
            let both = if few == many {
                [a, b]
            } else if many.is_multiple_of(few)
                && let Some(a) = split(a, few, &mut from)
                && let Some(b) = split(b, few, &mut to)
            {
                [a, b]
            } else {
                break [a, b];
            };
            if from.is_empty() || to.is_empty() || met.len() + 1 == DEPTH {
                break both;
            }
            met.push(both);
        };
        if let Some(runs) = &mut runs {
            let mut short = 0;
            while let Some(more) = met.get(short).and_then(|level| unrolled(runs, level)) {
                (*runs, leaf) = (more, leaf * met[short][0].count());
                short += 1;
            }
            met.drain(..short);
            // If the whole copy is one short loop, unroll the row as well.
            if met.is_empty()
                && from.is_empty()
                && to.is_empty()
                && row[0].count() == row[1].count()
                && let Some(more) = unrolled(runs, &row)
            {
                (*runs, leaf) = (more, leaf * row[0].count());
                row = [SideLevel::Loop { count: 1, stride: 0 }; 2];
            }
        }
        let meets = from.is_empty() && to.is_empty() && row[0].count() == row[1].count();
        from.push_any(row[0])?;
        to.push_any(row[1])?;
        met.push(row);
        met.reverse();
        let mut words = [0; TransferShape::WORDS];
        for (level, words) in met.iter().zip(words.chunks_exact_mut(5)) {
            words[0] = level[0].count().min(level[1].count());
            words[1..3].copy_from_slice(&level[0].words());
            words[3..].copy_from_slice(&level[1].words());
        }
        if runs.is_none() {
            words[5 * met.len()] = leaf;
        }
        let mut below = [1; DEPTH];
        for l in (1..met.len()).rev() {
            below[l - 1] = below[l] * met[l][0].count();
        }
        let whole = meets.then(|| row[0].count() * below[0] * leaf);
        if !meets && mean(row[0].count(), row[1].count()) * (below[0] * leaf) as f64 <= least {
            return None;
        }
        let shape = TransferShape {
            levels: met.iter().map(|both| both.map(|level| level.shape())).collect(),
            leaf: match runs {
                Some(runs) => TransferLeaf::Runs { runs: Arc::from(runs) },
                None => TransferLeaf::Long,
            },
        };
        Some(Self { shape, from, to, below, leaf, words, whole })
    }

    /// Returns the number of levels.
    pub(super) fn depth(&self) -> usize {
        self.shape.levels.len()
    }

    /// Returns the pair (base shift, table shift) that moves one side (0 source, 1 destination) to
    /// iteration `index` of level `l`, in bytes. For a loop, the caller adds the base shift to the
    /// base, and the table shift is 0. For a table, the caller adds the table shift to the address of
    /// the entries, and the base shift is 0.
    pub(super) fn shift(&self, l: usize, side: usize, index: u64) -> (i64, u64) {
        match self.shape.levels[l][side] {
            LevelShape::Loop => {
                let stride = self.words[5 * l + 1 + 2 * side] as i64;
                ((index as i64).wrapping_mul(stride), 0)
            }
            LevelShape::Table32 => (0, 4 * index),
            LevelShape::Table64 => (0, 8 * index),
        }
    }
}

/// Returns the mean number of iterations that can be copied before a row ends on either side. The
/// rows have `a` iterations on one side and `b` on the other.
pub(super) fn mean(a: u64, b: u64) -> f64 {
    // In `a * b` iterations, there are `a + b - gcd(a, b)` positions at which a row of either side
    // ends.
    a as f64 * b as f64 / (a as f64 + b as f64 - gcd(a, b) as f64)
}

/// Returns `level` itself if it has `count` iterations. Otherwise splits the loop `level` in two: returns the
/// inner loop, which has `count` iterations, and adds the outer loop as the new innermost level of `side`.
/// `count` divides the number of iterations of `level`. Returns `None` if `level` is a table with another
/// count, or if `side` would have too many levels.
fn split(level: SideLevel, count: u64, side: &mut SideLevels) -> Option<SideLevel> {
    if level.count() == count {
        return Some(level);
    }
    let SideLevel::Loop { count: all, stride } = level else { return None };
    let outer = SideLevel::Loop { count: all / count, stride: stride.wrapping_mul(count as i64) };
    side.push(outer)?;
    Some(SideLevel::Loop { count, stride })
}

/// Executes step 1 of the search (see the head of this file). Returns the runs of one leaf of the
/// transfer, and the number of packed bytes of the leaf. Returns `None` if there is no common leaf.
fn leaf(
    src: &Program,
    a: &Node,
    from: &mut SideLevels,
    dst: &Program,
    b: &Node,
    to: &mut SideLevels,
) -> Option<(Vec<TransferRun>, u64)> {
    let (short, long) = (a.bytes.min(b.bytes), a.bytes.max(b.bytes));
    let both = a.bytes.checked_mul(b.bytes / gcd(a.bytes, b.bytes))?;
    let times = (both / a.bytes, both / b.bytes);
    let unroll = |side: &SideLevels, times| times == 1 || unrollable(side, times);
    if times.0 <= UNROLL && times.1 <= UNROLL && unroll(from, times.0) && unroll(to, times.1) {
        let runs = cut(&repeat(src, a, from, times.0)?, &repeat(dst, b, to, times.1)?);
        if let Some(runs) = runs {
            take(from, times.0)?;
            take(to, times.1)?;
            return Some((runs, both));
        }
    }
    let (split, node) = if a.bytes == long { (&mut *from, a) } else { (&mut *to, b) };
    if short == long || node.op != Op::Block || !long.is_multiple_of(short) {
        return None;
    }
    split.push(SideLevel::Loop { count: long / short, stride: short as i64 })?;
    let block = [Run { offset: 0, bytes: short }];
    let runs = if a.bytes == long {
        cut(&block, &runs_of(dst, b)?)
    } else {
        cut(&runs_of(src, a)?, &block)
    };
    Some((runs?, short))
}

/// Returns true if the innermost level is a loop that can be divided into groups of `times`
/// iterations.
fn unrollable(side: &SideLevels, times: u64) -> bool {
    side.last().is_some_and(
        |level| matches!(level, SideLevel::Loop { count, .. } if count.is_multiple_of(times)),
    )
}

/// Returns the runs of `times` consecutive leaves, or `None` if a leaf is neither a block nor a window.
fn repeat(program: &Program, node: &Node, side: &SideLevels, times: u64) -> Option<Vec<Run>> {
    let runs = runs_of(program, node)?;
    let stride = match side.last() {
        Some(SideLevel::Loop { stride, .. }) if times > 1 => *stride,
        _ => 0,
    };
    let copy = |i: u64| {
        runs.iter().map(move |run| Run {
            offset: run.offset.wrapping_add((i as i64).wrapping_mul(stride)),
            bytes: run.bytes,
        })
    };
    Some((0..times).flat_map(copy).collect())
}

/// Combines every `times` iterations of the innermost level into one. `times` divides the count of the
/// level.
fn take(side: &mut SideLevels, times: u64) -> Option<()> {
    if times > 1
        && let Some(SideLevel::Loop { count, stride }) = side.pop()
    {
        let stride = stride.wrapping_mul(times as i64);
        return side.push(SideLevel::Loop { count: count / times, stride });
    }
    Some(())
}

/// Returns the runs of a block or of a window. Returns `None` for other nodes.
fn runs_of(program: &Program, node: &Node) -> Option<Vec<Run>> {
    match &node.op {
        Op::Block => Some(vec![Run { offset: 0, bytes: node.bytes }]),
        Op::Seq { parts } if is_window(program.nodes(), &node.op) => {
            let run = |edge: crate::ir::Edge| Run {
                offset: edge.offset,
                bytes: program.node(edge.node).bytes,
            };
            Some(parts.iter().map(|part| run(part.edge)).collect())
        }
        _ => None,
    }
}

/// Cuts two lists of runs at each other's ends. The lists have the same total number of bytes, and a run
/// of the result ends wherever a run of either list ends. Returns `None` if the result exceeds a limit
/// of [`TransferLeaf::Runs`].
fn cut(from: &[Run], to: &[Run]) -> Option<Vec<TransferRun>> {
    let mut runs: Vec<TransferRun> = Vec::new();
    let (mut from, mut to) = (from.iter(), to.iter());
    let (mut a, mut b) = (*from.next()?, *to.next()?);
    loop {
        let bytes = a.bytes.min(b.bytes);
        match runs.last_mut() {
            // The new run continues the last run on both sides, so extend the last run.
            Some(last)
                if last.from + last.bytes as i64 == a.offset
                    && last.to + last.bytes as i64 == b.offset =>
            {
                last.bytes += bytes;
            }
            _ => runs.push(TransferRun { from: a.offset, to: b.offset, bytes }),
        }
        if !within_limits(&runs) {
            return None;
        }
        let rest = |run: Run, next: Option<&Run>| match run.bytes - bytes {
            0 => next.copied(),
            left => Some(Run { offset: run.offset.wrapping_add(bytes as i64), bytes: left }),
        };
        let a_next = if a.bytes == bytes { from.next() } else { None };
        let b_next = if b.bytes == bytes { to.next() } else { None };
        match (rest(a, a_next), rest(b, b_next)) {
            (Some(next_a), Some(next_b)) => (a, b) = (next_a, next_b),
            _ => return Some(runs),
        }
    }
}

/// Returns true if the number of runs and the last run obey the limits of [`TransferLeaf::Runs`].
fn within_limits(runs: &[TransferRun]) -> bool {
    let span = i128::from(TransferShape::SPAN);
    runs.len() <= TransferShape::RUNS
        && runs.last().is_none_or(|run| {
            let inside =
                |at: i64| i128::from(at) >= -span && i128::from(at) + i128::from(run.bytes) <= span;
            run.bytes <= TransferShape::RUN_BYTES && inside(run.from) && inside(run.to)
        })
}

/// Unrolls a short level: returns the runs of all its iterations. For such a level, loop control would
/// take longer than the copying. Returns `None` if a side of the level is a table, if the level has too
/// many iterations, or if there would be too many runs or runs too far apart.
fn unrolled(runs: &[TransferRun], level: &Meeting) -> Option<Vec<TransferRun>> {
    let [SideLevel::Loop { count, stride: from }, SideLevel::Loop { stride: to, .. }] = *level
    else {
        return None;
    };
    if count > SHORT_LOOP || runs.len() * count as usize > SHORT_RUNS {
        return None;
    }
    let mut all = Vec::with_capacity(runs.len() * count as usize);
    for i in 0..count as i64 {
        for run in runs {
            all.push(TransferRun {
                from: run.from.wrapping_add(i.wrapping_mul(from)),
                to: run.to.wrapping_add(i.wrapping_mul(to)),
                bytes: run.bytes,
            });
            if !within_limits(&all) {
                return None;
            }
        }
    }
    Some(all)
}
