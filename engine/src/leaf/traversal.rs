//! The traversal: in which order a nest visits memory, where packed order runs across it.
//!
//! Asked by `mod.rs` for every routine, with the loop over elements as one more level. A level along
//! which neighbours share cache lines (the *near* level: columns of a matrix, elements of a column
//! type, planes of a transposed cube) is often outside the innermost one (the *far* level), and
//! whole columns of lines are gone from the first-level cache before the next column needs them.
//! Then the two are walked in tiles, the levels between them outside:
//!
//! ```text
//! for each position of the levels outside near
//!   for each chunk of near
//!     for each position of the levels between near and far
//!       one tile after the other: transposed in registers (tiles.rs) where elements touch and have
//!       1, 2, 4, 8 or 16 bytes; else part of a row for each iteration of the chunk
//! ```
//!
//! Any level can be near, any leaf in a tile. Packed bytes are what packed order says. Unpacking
//! follows this order only where the leaves are proved disjoint; its far level is never a table.
//! `../pair/crossed.rs` decides by the same rules for two layouts at once.

use super::byteswap::{Swap, Width};
use super::isa::Isa;
use super::tiles::{self, Transpose, Transposer};
use crate::kernel::interpreter::Steps;
use crate::kernel::{Direction, Leaf, Level, Nest};
use std::ops::Range;

/// Bytes of a cache line.
const LINE: u64 = 64;

/// Sets of the first-level cache, and ways that may be counted on.
const CACHE: (u64, u64) = (64, 8);

/// Iterations of the near level between which the levels outside the tile do not move: enough for
/// whole lines, and few enough that the packed lines being filled stay in a cache.
pub(crate) const CHUNK: u64 = 64;

/// Fewest elements on either side of a matrix to transpose in registers.
pub(crate) const SQUARE: u64 = 4;

/// Elements on either side that fill squares of every kind at least half.
const FULL: u64 = 8;

/// Longest distance from one iteration of the near level to the next, in bytes: a line, of which
/// longer ones share nothing.
const NEAR: u64 = LINE - 1;

/// How a nest is walked.
pub(super) struct Traversal {
    near: usize,
    transpose: Option<Transposer>,
    /// Also where lines stay in the first-level cache.
    always: bool,
    /// Memory from the first byte of a leaf to its last.
    span: u64,
}

impl Traversal {
    /// The traversal of `nest`, whose leaf is turned round by `swap`, if packed order is not good
    /// enough for a whole one.
    pub(super) fn of(
        nest: &Nest,
        swap: Option<&Swap>,
        direction: Direction,
        isa: Isa,
    ) -> Option<Self> {
        let near = near_level(nest)?;
        let count = |l: usize| nest.levels[l].count();
        let mut traversal = Self::along(nest, swap, near, isa)?;
        // One by one, stores cost more than loads; loads of longer elements go on at the speed of
        // squares, or at twice that (`stays_in_l1`).
        let one_by_one = direction == Direction::Pack && nest.leaf.bytes() > 2;
        traversal.always = traversal.transpose.is_some() && !one_by_one;
        let full = traversal.always && count(nest.levels.len() - 1) >= FULL;
        (full || !stays_in_l1(inside(nest, near, count))).then_some(traversal)
    }

    /// The traversal of tiles along level `near` and the innermost one.
    fn along(nest: &Nest, swap: Option<&Swap>, near: usize, isa: Isa) -> Option<Self> {
        let (span, transpose) = match &nest.leaf {
            Leaf::Block { bytes } => {
                let dense = stride(&nest.levels[near]) == Some(*bytes as i64)
                    && stride(nest.levels.last()?).is_some();
                let width = swap.map_or(Width::ONE, |swap| swap.width(0));
                let transpose = if dense { tiles::transposer(isa, *bytes, width) } else { None };
                (*bytes, transpose)
            }
            Leaf::Window { runs } => {
                let low = runs.iter().map(|run| run.offset).min()?;
                let high = runs.iter().map(|run| run.offset + run.bytes as i64).max()?;
                ((high - low) as u64, None)
            }
        };
        Some(Self { near, transpose, always: false, span })
    }

    /// The traversal of any nest that has one, however small, where it is allowed.
    #[cfg(test)]
    pub(super) fn forced(
        nest: &Nest,
        swap: Option<&Swap>,
        isa: Isa,
        words: &[u64],
        pack: bool,
    ) -> Option<Self> {
        let traversal = Self::along(nest, swap, near_level(nest)?, isa)?;
        let allowed = pack || disjoint(nest, words, traversal.near, traversal.span);
        allowed.then_some(traversal)
    }

    /// Whether tiles are transposed in registers.
    #[cfg(test)]
    pub(super) fn transposes(&self) -> bool {
        self.transpose.is_some()
    }

    /// Whether this order is better than packed order at these counts, and allowed.
    #[inline]
    pub(super) fn applies<const PACK: bool>(&self, nest: &Nest, words: &[u64]) -> bool {
        let count = |l: usize| words[3 * l];
        let (columns, rows) = (count(self.near), count(nest.levels.len() - 1));
        columns.min(rows) >= 2
            && (self.always && columns.min(rows) >= FULL
                || !stays_in_l1(inside(nest, self.near, count)))
            && (PACK || disjoint(nest, words, self.near, self.span))
    }

    /// Executes a nest tile by tile; `row` executes the innermost level with the given parameters.
    ///
    /// # Safety
    ///
    /// - As for [`Routine::run`](super::Routine::run), for the nest that this was made for.
    /// - When unpacking, the leaves of the near level and the levels inside are disjoint.
    pub(super) unsafe fn run<const PACK: bool>(
        &self,
        nest: &Nest,
        words: &[u64],
        row: impl Fn(*const u64, *mut u8, *mut u8),
        mem: *mut u8,
        packed: *mut u8,
    ) {
        let (near, far) = (self.near, nest.levels.len() - 1);
        if (0..=far).any(|l| words[3 * l] == 0) {
            return;
        }
        // Packed bytes from one iteration of each level to the next.
        let mut pitch = [0; Nest::MAX_DEPTH];
        pitch[far] = nest.leaf.bytes();
        for l in (0..far).rev() {
            pitch[l] = pitch[l + 1] * words[3 * (l + 1)];
        }
        let (columns, rows) = (words[3 * near], words[3 * far]);
        // Below, registers stay empty.
        let transpose = self.transpose.filter(|_| columns.min(rows) >= SQUARE);
        let chunk = if transpose.is_some() && near + 1 == far { columns } else { CHUNK };
        let step = words[3 * near + 1] as isize;
        walk(nest, words, 0..near, &pitch, (mem, packed), |mem, packed| {
            for x in (0..columns).step_by(chunk as usize) {
                let at = mem.wrapping_offset((x as isize).wrapping_mul(step));
                let packed = packed.wrapping_add((x * pitch[near]) as usize);
                let width = chunk.min(columns - x);
                walk(nest, words, near + 1..far, &pitch, (at, packed), |mem, packed| {
                    match transpose {
                        // SAFETY: our contract, for this chunk of near and all of far.
                        Some(transpose) => unsafe {
                            let far = words[3 * far + 1] as isize;
                            transpose(matrix::<PACK>(
                                (mem, far),
                                (packed, pitch[near] as isize),
                                (width, rows),
                            ));
                        },
                        None => {
                            let place = Place { mem, packed, step, pitch: pitch[near], width };
                            parts(nest, words, &place, &row);
                        }
                    }
                });
            }
        });
    }
}

/// The tile as a matrix to transpose: `width` elements side by side in memory, `height` in packed
/// bytes; each side with the bytes from one such line to the next.
fn matrix<const PACK: bool>(
    (mem, far): (*mut u8, isize),
    (packed, across): (*mut u8, isize),
    (width, height): (u64, u64),
) -> Transpose {
    let (width, height) = (width as usize, height as usize);
    if PACK {
        let (from, to) = (mem.cast_const(), packed);
        Transpose { from, from_pitch: far, to, to_pitch: across, width, height }
    } else {
        let (from, to) = (packed.cast_const(), mem);
        Transpose { from, from_pitch: across, to, to_pitch: far, width: height, height: width }
    }
}

/// `width` iterations of the near level from an address on.
struct Place {
    mem: *mut u8,
    packed: *mut u8,
    /// Bytes of memory from one iteration to the next.
    step: isize,
    /// Packed bytes from one to the next.
    pitch: u64,
    width: u64,
}

/// Calls `row` for a part of the innermost level at each iteration of the near level, and then for
/// the next part.
#[inline(always)]
fn parts(nest: &Nest, words: &[u64], place: &Place, row: &impl Fn(*const u64, *mut u8, *mut u8)) {
    let far = nest.levels.len() - 1;
    let [rows, value, scale] = [words[3 * far], words[3 * far + 1], words[3 * far + 2]];
    let (height, entry) = match &nest.levels[far] {
        Level::Loop { stride, .. } => (height(*stride), None),
        Level::Table { entries, .. } => (height(0), Some(entries.width() as u64)),
    };
    for top in (0..rows).step_by(height as usize) {
        let mut params = [height.min(rows - top), value, scale];
        let mut mem = place.mem;
        match entry {
            Some(width) => params[1] += top * width,
            None => mem = mem.wrapping_offset((top as i64).wrapping_mul(value as i64) as isize),
        }
        let mut packed = place.packed.wrapping_add((top * nest.leaf.bytes()) as usize);
        for _ in 0..place.width {
            row(params.as_ptr(), mem, packed);
            mem = mem.wrapping_offset(place.step);
            packed = packed.wrapping_add(place.pitch as usize);
        }
    }
}

/// Rows of a tile whose rows are `stride` bytes apart: they stay in the first-level cache until all
/// their lines are used up.
pub(crate) fn height(stride: i64) -> u64 {
    /// Rows on pages of their own: the rest of the translation buffer is for the other side.
    const PAGES: u64 = 32;
    let lines = (sets(stride) * CACHE.1).min(64);
    match stride.unsigned_abs() {
        0 => lines,
        4096.. => lines.min(PAGES),
        short => lines.max(64 * LINE / short),
    }
}

/// Sets of the first-level cache that lines `stride` bytes apart use: they meet in one when their
/// distance is a multiple of 4096, so strides with many factors of 2 use few.
fn sets(stride: i64) -> u64 {
    CACHE.0.min(4096 >> stride.trailing_zeros().min(12))
}

/// Whether lines are still in the first-level cache when the neighbouring column needs them again,
/// for the lines of a column and the sets that they use. Then packing column by column is the best
/// order of doubles: one stream on the packed side (`typepack-bench commit --size 64K`, "transpose":
/// 1.9 times as fast). Squares in registers are better for bytes and pairs of them (3.4 and 2 times
/// as fast, `examples/orders.rs`, "columns 260"), and when unpacking (1.4 to 5 times).
pub(crate) fn stays_in_l1((lines, sets): (u64, u64)) -> bool {
    lines <= sets * CACHE.1
}

/// The lines of a column of `levels` (count and stride, `None` for a table), and the sets they use.
pub(crate) fn column(levels: impl Iterator<Item = (u64, Option<i64>)>) -> (u64, u64) {
    levels.fold((1, 1), |(lines, used), (count, stride)| {
        let Some(stride) = stride else { return (lines.saturating_mul(count), CACHE.0) };
        let touched = match stride.unsigned_abs() {
            short @ 0..LINE => (count.saturating_mul(short) / LINE).max(1),
            _ => count,
        };
        // One line uses one set, whatever the stride.
        let used = if touched > 1 { used.max(sets(stride)) } else { used };
        (lines.saturating_mul(touched), used)
    })
}

/// [`column`] of the levels inside level `near`, with these counts.
fn inside(nest: &Nest, near: usize, count: impl Fn(usize) -> u64) -> (u64, u64) {
    column((near + 1..nest.levels.len()).map(|l| (count(l), stride(&nest.levels[l]))))
}

fn stride(level: &Level) -> Option<i64> {
    match level {
        Level::Loop { stride, .. } => Some(*stride),
        Level::Table { .. } => None,
    }
}

/// The loop along which lines are shared, outside the innermost level, which jumps further.
fn near_level(nest: &Nest) -> Option<usize> {
    let (far, outer) = nest.levels.split_last()?;
    let far = stride(far).map_or(u64::MAX, i64::unsigned_abs);
    let length = |l: &usize| stride(&outer[*l]).unwrap_or(0).unsigned_abs();
    (0..outer.len())
        .rev()
        .filter(|l| (1..=NEAR).contains(&length(l)) && length(l) < far)
        .min_by_key(length)
}

/// Iterations of the outermost level that fill cache lines together, where they lie side by side.
pub(crate) fn tile_elements(nest: &Nest) -> Option<u64> {
    let traversal =
        Traversal::of(nest, None, Direction::Pack, Isa::Portable).filter(|t| t.near == 0)?;
    if stays_in_l1(inside(nest, 0, |l| nest.levels[l].count())) {
        return None;
    }
    // As many as the near level has in a line; of any leaf, at least two.
    let step = stride(&nest.levels[traversal.near])?.unsigned_abs();
    Some((LINE / step).max(2))
}

/// Whether the leaves, `span` bytes long, of the levels from `near` inwards are known to be
/// disjoint: each level, from the shortest stride to the longest, jumps over all that the shorter
/// ones cover.
fn disjoint(nest: &Nest, words: &[u64], near: usize, span: u64) -> bool {
    let mut levels = [(0, 0); Nest::MAX_DEPTH];
    let levels = &mut levels[near..nest.levels.len()];
    for (l, level) in (near..).zip(levels.iter_mut()) {
        let Level::Loop { stride, .. } = nest.levels[l] else { return false };
        *level = (stride.unsigned_abs(), words[3 * l]);
    }
    apart(levels, span)
}

/// Whether blocks of `span` bytes at all positions of `levels` (stride and count, sorted on the way)
/// are known to be disjoint.
pub(crate) fn apart(levels: &mut [(u64, u64)], span: u64) -> bool {
    levels.sort_unstable();
    let mut span = u128::from(span);
    levels.iter().all(|&(stride, count)| {
        let apart = count <= 1 || u128::from(stride) >= span;
        span = span.saturating_add(u128::from(stride) * u128::from(count.saturating_sub(1)));
        apart
    })
}

/// Calls `each` with the two addresses at every position of `levels`, which have no count of 0.
#[inline(always)]
fn walk(
    nest: &Nest,
    words: &[u64],
    levels: Range<usize>,
    pitch: &[u64; Nest::MAX_DEPTH],
    (mem, packed): (*mut u8, *mut u8),
    each: impl Fn(*mut u8, *mut u8),
) {
    let mut index = [0; Nest::MAX_DEPTH];
    loop {
        let (mut mem, mut packed) = (mem, packed);
        for l in levels.clone() {
            // SAFETY: the parameters of level `l`, an index below its count.
            let shift = unsafe {
                Steps::new(&nest.levels[l], words[3 * l..].as_ptr()).displacement(index[l])
            };
            mem = mem.wrapping_offset(shift as isize);
            packed = packed.wrapping_add((index[l] * pitch[l]) as usize);
        }
        each(mem, packed);
        let next = levels.clone().rev().find(|&l| {
            index[l] += 1;
            let more = index[l] < words[3 * l];
            if !more {
                index[l] = 0;
            }
            more
        });
        if next.is_none() {
            return;
        }
    }
}
