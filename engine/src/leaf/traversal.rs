//! The traversal: the order in which a nest visits memory, for nests whose packed order runs across
//! memory lines.
//!
//! `mod.rs` asks for a traversal for every routine; the loop over elements counts as one more level.
//! The *near* level is the level along which neighbours share cache lines (columns of a matrix,
//! elements of a column type, planes of a transposed cube). The near level often lies outside the
//! innermost level, the *far* level. Then the first-level cache drops the lines of a whole column
//! before the next column needs them. In this case the traversal walks the two levels in tiles, and
//! the levels between them outside the tiles:
//!
//! ```text
//! for each position of the levels outside near
//!   for each chunk of near
//!     for each position of the levels between near and far
//!       one tile after the other: transposed in registers (tiles.rs) if elements touch and have
//!       1, 2, 4, 8 or 16 bytes; otherwise a part of a row for each iteration of the chunk
//! ```
//!
//! Any level can be near, and a tile can have any leaf. The packed bytes do not depend on the
//! traversal. Unpacking uses it only where the leaves are proved disjoint; its far level is never a
//! table. `../transfer/transpose.rs` applies the same rules to two layouts at once.

use super::byteswap::{Swap, Width};
use super::isa::Isa;
use super::tiles::{self, Transpose, Transposer};
use crate::kernel::interpreter::Steps;
use crate::kernel::{Direction, Leaf, Level, Nest};
use std::ops::Range;

/// Bytes of a cache line.
const LINE: u64 = 64;

/// Number of sets of the first-level cache, and number of ways per set on which the traversal relies.
const CACHE: (u64, u64) = (64, 8);

/// Iterations of the near level that a tile covers before the levels outside the tile advance:
/// enough for whole lines, and few enough that the packed lines being filled stay in a cache.
pub(crate) const CHUNK: u64 = 64;

/// Minimum number of elements on either side of a matrix that is transposed in registers.
pub(crate) const SQUARE: u64 = 4;

/// If both sides have at least this many elements, squares of every size are at least half full.
const FULL: u64 = 8;

/// Longest distance in bytes between two iterations of the near level. Iterations that are a line or
/// more apart share no line.
const NEAR: u64 = LINE - 1;

/// The order in which a nest is walked.
pub(super) struct Traversal {
    near: usize,
    transpose: Option<Transposer>,
    /// Whether tiles pay even if the lines stay in the first-level cache.
    always: bool,
    /// Bytes of memory from the first byte of a leaf to its last.
    span: u64,
}

impl Traversal {
    /// Returns the traversal of `nest`, or `None` if packed order is fast enough. `swap` describes
    /// the elements of the leaf.
    pub(super) fn of(
        nest: &Nest,
        swap: Option<&Swap>,
        direction: Direction,
        isa: Isa,
    ) -> Option<Self> {
        let near = near_level(nest)?;
        let count = |l: usize| nest.levels[l].count();
        let mut traversal = Self::along(nest, swap, near, isa)?;
        // When elements are moved one by one, stores cost more than loads. Loads of longer elements
        // run at the speed of squares, or at twice that speed (`stays_in_l1`).
        let one_by_one = direction == Direction::Pack && nest.leaf.bytes() > 2;
        traversal.always = traversal.transpose.is_some() && !one_by_one;
        let full = traversal.always && count(nest.levels.len() - 1) >= FULL;
        (full || !stays_in_l1(inside(nest, near, count))).then_some(traversal)
    }

    /// Returns the traversal of tiles along level `near` and the innermost level.
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

    /// Returns the traversal of any nest that has one and for which it is allowed, however small
    /// the nest is.
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

    /// Returns whether tiles are transposed in registers.
    #[cfg(test)]
    pub(super) fn transposes(&self) -> bool {
        self.transpose.is_some()
    }

    /// Returns whether this order is allowed and faster than packed order at the counts in `words`.
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
    /// - The conditions of [`Routine::run`](super::Routine::run) hold, for the nest that this
    ///   traversal was made for.
    /// - When unpacking, the leaves of the near level and of the levels inside it are disjoint.
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
        // With fewer elements, registers stay mostly empty.
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
                        // SAFETY: the matrix is `width` iterations of near and all `rows` of far at
                        // one position of the other levels. The caller guarantees their memory and
                        // their packed bytes, and, when unpacking, that the leaves are disjoint.
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

/// Returns the tile as a matrix to transpose: `width` elements side by side in memory, `height`
/// side by side in the packed bytes. Each side comes with its pitch in bytes.
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

/// `width` iterations of the near level, which begin at one address on either side.
struct Place {
    mem: *mut u8,
    packed: *mut u8,
    /// Bytes of memory from one iteration to the next.
    step: isize,
    /// Packed bytes from one iteration to the next.
    pitch: u64,
    width: u64,
}

/// Calls `row` for a part of the innermost level at each iteration of the near level, and then for
/// the next part of the innermost level.
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

/// Returns the number of rows of a tile whose rows are `stride` bytes apart. The rows stay in the
/// first-level cache until all their lines are used up.
pub(crate) fn height(stride: i64) -> u64 {
    /// Rows that lie on pages of their own. The other side uses the rest of the translation buffer.
    const PAGES: u64 = 32;
    let lines = (sets(stride) * CACHE.1).min(64);
    match stride.unsigned_abs() {
        0 => lines,
        4096.. => lines.min(PAGES),
        short => lines.max(64 * LINE / short),
    }
}

/// Returns the number of sets of the first-level cache that lines `stride` bytes apart use. Lines
/// whose distance is a multiple of 4096 share a set, so strides with many factors of 2 use few
/// sets.
fn sets(stride: i64) -> u64 {
    CACHE.0.min(4096 >> stride.trailing_zeros().min(12))
}

/// Returns whether the first-level cache still holds the lines of a column when the neighbouring
/// column needs them. The argument is the number of the column's lines and the sets that they use.
/// If the lines stay, packing column by column is the fastest order for doubles, with one stream on
/// the packed side (`typepack-bench commit --size 64K`, "transpose": 1.9 times as fast). Squares in
/// registers are faster for elements of 1 and 2 bytes (3.4 and 2 times as fast,
/// `examples/orders.rs`, "columns 260"), and when unpacking (1.4 to 5 times).
pub(crate) fn stays_in_l1((lines, sets): (u64, u64)) -> bool {
    lines <= sets * CACHE.1
}

/// Returns the number of lines in a column of `levels` (count and stride, `None` for a table), and
/// the number of cache sets that they use.
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

/// Returns [`column()`] of the levels inside level `near`, with the counts that `count` returns.
fn inside(nest: &Nest, near: usize, count: impl Fn(usize) -> u64) -> (u64, u64) {
    column((near + 1..nest.levels.len()).map(|l| (count(l), stride(&nest.levels[l]))))
}

fn stride(level: &Level) -> Option<i64> {
    match level {
        Level::Loop { stride, .. } => Some(*stride),
        Level::Table { .. } => None,
    }
}

/// Returns the loop along which neighbours share lines. It lies outside the innermost level and has
/// a shorter stride.
fn near_level(nest: &Nest) -> Option<usize> {
    let (far, outer) = nest.levels.split_last()?;
    let far = stride(far).map_or(u64::MAX, i64::unsigned_abs);
    let length = |l: &usize| stride(&outer[*l]).unwrap_or(0).unsigned_abs();
    (0..outer.len())
        .rev()
        .filter(|l| (1..=NEAR).contains(&length(l)) && length(l) < far)
        .min_by_key(length)
}

/// Returns how many iterations of the outermost level fill cache lines together, if they lie side
/// by side.
pub(crate) fn tile_elements(nest: &Nest) -> Option<u64> {
    let traversal =
        Traversal::of(nest, None, Direction::Pack, Isa::Portable).filter(|t| t.near == 0)?;
    if stays_in_l1(inside(nest, 0, |l| nest.levels[l].count())) {
        return None;
    }
    // The number of iterations of the near level that share a line, but at least two.
    let step = stride(&nest.levels[traversal.near])?.unsigned_abs();
    Some((LINE / step).max(2))
}

/// Returns whether the leaves, `span` bytes long, of the levels from `near` inwards are known to be
/// disjoint: each level, from the shortest stride to the longest, jumps over all bytes that the
/// shorter strides cover.
fn disjoint(nest: &Nest, words: &[u64], near: usize, span: u64) -> bool {
    let mut levels = [(0, 0); Nest::MAX_DEPTH];
    let levels = &mut levels[near..nest.levels.len()];
    for (l, level) in (near..).zip(levels.iter_mut()) {
        let Level::Loop { stride, .. } = nest.levels[l] else { return false };
        *level = (stride.unsigned_abs(), words[3 * l]);
    }
    apart(levels, span)
}

/// Returns whether blocks of `span` bytes at all positions of `levels` are known to be disjoint.
/// `levels` has stride and count; the function sorts it.
pub(crate) fn apart(levels: &mut [(u64, u64)], span: u64) -> bool {
    levels.sort_unstable();
    let mut span = u128::from(span);
    levels.iter().all(|&(stride, count)| {
        let apart = count <= 1 || u128::from(stride) >= span;
        span = span.saturating_add(u128::from(stride) * u128::from(count.saturating_sub(1)));
        apart
    })
}

/// Calls `each` with the memory address and the packed address of every position of `levels`. No
/// level has a count of 0.
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
            // SAFETY: `words[3 * l..]` holds the parameters of level `l`, and `index[l]` is below
            // its count.
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
