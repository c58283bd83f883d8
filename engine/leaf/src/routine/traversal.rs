//! The traversal: an order, other than packed order, in which a nest visits memory. It is meant for
//! nests whose packed order jumps from cache line to cache line.
//!
//! `mod.rs` tries to make a traversal for every routine that executes no dense pattern. The loop over
//! elements counts as one more level. The *far* level is the innermost level. The *near* level is the
//! level along which neighbouring iterations share cache lines: the columns of a matrix, the elements
//! of a column type, the planes of a transposed cube. The near level often lies outside the far level.
//! Then packed order loses the lines of a column from the first-level cache before the next column
//! needs them. In this case the traversal walks the near and the far level in tiles; the levels
//! between them are outer loops around the tiles:
//!
//! ```text
//! for each position of the levels outside near
//!   for each chunk of near
//!     for each position of the levels between near and far
//!       one tile after the other: transposed in registers (tiles.rs) if far is a loop, the elements
//!       touch and have 1, 2, 4, 8 or 16 bytes, and the tile has at least 4 rows and 4 columns;
//!       otherwise a part of a row for each iteration of the chunk
//! ```
//!
//! Any level can be near, and a tile can have any leaf. The packed bytes do not depend on the
//! traversal. Unpacking uses a traversal only if the leaves are proved to be disjoint; then the far
//! level is not a table. `engine/src/transfer/transpose.rs` applies the same rules to two layouts at once.

use super::byteswap::{Swap, Width};
use super::tiles::{self, Transpose, Transposer};
use crate::isa::Isa;
use crate::kernel::interpreter::Steps;
use crate::kernel::{Direction, Leaf, Level, Nest};
use std::ops::Range;

/// Number of bytes of a cache line.
const LINE: u64 = 64;

/// Geometry of the first-level cache: the number of sets, and the number of ways per set on which the
/// traversal relies.
const CACHE: (u64, u64) = (64, 8);

/// Maximum number of iterations of the near level that a tile covers. This number is large enough to
/// use whole lines, and small enough that the packed lines being filled stay in a cache. A transposed
/// tile covers all iterations if no level lies between the near and the far level.
pub const CHUNK: u64 = 64;

/// Minimum width and height, in elements, of a matrix that is transposed in registers.
pub const SQUARE: u64 = 4;

/// Tiles whose width and height are at least this many elements fill at least half of each side of
/// a square, even of the largest squares (16 by 16 elements).
const FULL: u64 = 8;

/// Maximum distance in bytes from one iteration of the near level to the next. Iterations that lie a
/// cache line or more apart share no cache line.
const NEAR: u64 = LINE - 1;

/// The order in which a nest visits memory.
pub(super) struct Traversal {
    near: usize,
    transpose: Option<Transposer>,
    /// True if tiles are faster even when the lines stay in the first-level cache.
    always: bool,
    /// Number of bytes of memory from the first byte of a leaf to one past its last byte.
    span: u64,
}

impl Traversal {
    /// Returns the traversal of `nest`. Returns `None` if the nest has no near level or if packed order
    /// is fast enough. `swap` describes the elements of the leaf.
    pub(super) fn of(
        nest: &Nest,
        swap: Option<&Swap>,
        direction: Direction,
        isa: Isa,
    ) -> Option<Self> {
        let near = near_level(nest)?;
        let count = |l: usize| nest.levels[l].count();
        let mut traversal = Self::along(nest, swap, near, isa)?;
        // Compare transposing squares with moving elements one by one in packed order. When unpacking
        // one by one, the stores jump in memory. Such stores cost more than loads that jump, so
        // squares are always faster. When packing, only the loads jump. If the lines stay in the
        // first-level cache and elements have more than 2 bytes, such loads are as fast as squares or
        // twice as fast (`stays_in_l1`).
        let one_by_one = direction == Direction::Pack && nest.leaf.bytes() > 2;
        traversal.always = traversal.transpose.is_some() && !one_by_one;
        let full = traversal.always && count(nest.levels.len() - 1) >= FULL;
        (full || !stays_in_l1(inside(nest, near, count))).then_some(traversal)
    }

    /// Returns the traversal whose tiles consist of level `near` and the innermost level.
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

    /// Returns the traversal of `nest` even if the nest is so small that packed order is faster.
    /// Returns `None` if the nest has no near level or if a traversal is not allowed.
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

    /// Returns whether this traversal transposes its tiles in registers.
    #[cfg(test)]
    pub(super) fn transposes(&self) -> bool {
        self.transpose.is_some()
    }

    /// Returns whether, for the counts in `words`, this order is allowed and faster than packed
    /// order.
    #[inline]
    pub(super) fn applies<const PACK: bool>(&self, nest: &Nest, words: &[u64]) -> bool {
        let count = |l: usize| words[3 * l];
        let (columns, rows) = (count(self.near), count(nest.levels.len() - 1));
        columns.min(rows) >= 2
            && (self.always && columns.min(rows) >= FULL
                || !stays_in_l1(inside(nest, self.near, count)))
            && (PACK || disjoint(nest, words, self.near, self.span))
    }

    /// Executes a nest tile by tile. `row` must execute the innermost level, or a part of it, with
    /// the parameters that it gets.
    ///
    /// # Safety
    ///
    /// - The conditions of [`Routine::run`](super::Routine::run) hold for the nest for which this
    ///   traversal was made.
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
        // `pitch[l]` is the number of packed bytes from one iteration of level `l` to the next.
        let mut pitch = [0; Nest::MAX_DEPTH];
        pitch[far] = nest.leaf.bytes();
        for l in (0..far).rev() {
            pitch[l] = pitch[l + 1] * words[3 * (l + 1)];
        }
        let (columns, rows) = (words[3 * near], words[3 * far]);
        // If the tile has fewer than `SQUARE` columns or rows, most of each register would be empty.
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
                        // SAFETY: the matrix consists of `width` iterations of the near level and all
                        // `rows` iterations of the far level, at one position of the other levels.
                        // The caller guarantees that their memory and their packed bytes are valid
                        // and do not overlap and, when unpacking, that the leaves are disjoint. The
                        // machine has the instruction set for which the traversal was made.
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

/// Returns the tile as a matrix to transpose. `width` elements are adjacent in memory, and `height`
/// elements are adjacent in the packed bytes. The memory address and the packed address each come
/// with a pitch in bytes.
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

/// The start of `width` iterations of the near level, in memory and in the packed bytes.
struct Place {
    mem: *mut u8,
    packed: *mut u8,
    /// Bytes of memory from one iteration of the near level to the next.
    step: isize,
    /// Packed bytes from one iteration of the near level to the next.
    pitch: u64,
    width: u64,
}

/// Executes a tile in parts. For each part of the innermost level, calls `row` once for every
/// iteration of the near level.
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

/// Returns the number of rows of a tile whose rows lie `stride` bytes apart. With this many rows, the
/// lines stay in the first-level cache until all their bytes have been used. A `stride` of 0 stands for
/// a table, whose rows may all lie in the same set of the cache.
pub fn height(stride: i64) -> u64 {
    /// Maximum number of rows if each row lies on a page of its own. The packed bytes use the
    /// remaining entries of the translation buffer.
    const PAGES: u64 = 32;
    let lines = (sets(stride) * CACHE.1).min(64);
    match stride.unsigned_abs() {
        0 => lines,
        4096.. => lines.min(PAGES),
        short => lines.max(64 * LINE / short),
    }
}

/// Returns how many sets of the first-level cache are used by lines that lie `stride` bytes apart.
/// Lines whose distance is a multiple of 4096 bytes share a set, so lines at a stride that is
/// divisible by a high power of 2 use few sets.
fn sets(stride: i64) -> u64 {
    CACHE.0.min(4096 >> stride.trailing_zeros().min(12))
}

/// Returns whether the lines of a column are still in the first-level cache when the neighbouring
/// column needs them. The argument is a pair: the number of lines of the column, and the number of
/// cache sets that they use.
///
/// If the lines stay in the cache, the fastest order for packing doubles is column by column, which
/// writes one stream of packed bytes (`typepack-bench commit --size 64K`, "transpose": 1.9 times as
/// fast as tiles). Squares in registers are still faster for elements of 1 and 2 bytes (3.4 and 2
/// times as fast as column by column, `examples/orders.rs`, "columns 260"), and when unpacking (1.4
/// to 5 times as fast).
pub fn stays_in_l1((lines, sets): (u64, u64)) -> bool {
    lines <= sets * CACHE.1
}

/// Returns the number of lines in a column, and the number of cache sets that these lines use.
/// `levels` are the levels of the column: pairs of a count and a stride; the stride of a table is
/// `None`.
pub fn column(levels: impl Iterator<Item = (u64, Option<i64>)>) -> (u64, u64) {
    levels.fold((1, 1), |(lines, used), (count, stride)| {
        let Some(stride) = stride else { return (lines.saturating_mul(count), CACHE.0) };
        let touched = match stride.unsigned_abs() {
            short @ 0..LINE => (count.saturating_mul(short) / LINE).max(1),
            _ => count,
        };
        // A single line uses a single set, whatever the stride is.
        let used = if touched > 1 { used.max(sets(stride)) } else { used };
        (lines.saturating_mul(touched), used)
    })
}

/// Returns [`column()`] for the levels inside level `near`. `count(l)` must return the count of level
/// `l`.
fn inside(nest: &Nest, near: usize, count: impl Fn(usize) -> u64) -> (u64, u64) {
    column((near + 1..nest.levels.len()).map(|l| (count(l), stride(&nest.levels[l]))))
}

fn stride(level: &Level) -> Option<i64> {
    match level {
        Level::Loop { stride, .. } => Some(*stride),
        Level::Table { .. } => None,
    }
}

/// Returns the near level: the loop along which neighbouring iterations share lines. It lies outside
/// the innermost level and has a shorter stride than that level. If several loops qualify, the one
/// with the shortest stride is the near level. Returns `None` if no loop qualifies.
fn near_level(nest: &Nest) -> Option<usize> {
    let (far, outer) = nest.levels.split_last()?;
    let far = stride(far).map_or(u64::MAX, i64::unsigned_abs);
    let length = |l: &usize| stride(&outer[*l]).unwrap_or(0).unsigned_abs();
    (0..outer.len())
        .rev()
        .filter(|l| (1..=NEAR).contains(&length(l)) && length(l) < far)
        .min_by_key(length)
}

/// If the outermost level is the near level and tiles are worthwhile, returns how many iterations
/// of this level share a cache line, but at least 2. Returns `None` otherwise.
pub fn tile_elements(nest: &Nest) -> Option<u64> {
    let traversal =
        Traversal::of(nest, None, Direction::Pack, Isa::Portable).filter(|t| t.near == 0)?;
    if stays_in_l1(inside(nest, 0, |l| nest.levels[l].count())) {
        return None;
    }
    // A tile needs at least two iterations, even if fewer share a line.
    let step = stride(&nest.levels[traversal.near])?.unsigned_abs();
    Some((LINE / step).max(2))
}

/// Returns whether the leaves at all positions of the levels from `near` inwards are known to be
/// disjoint. Each leaf spans `span` bytes. The proof goes through the levels from the shortest stride
/// to the longest. The stride of each level must be at least the number of bytes that the leaf and
/// all levels of shorter stride span together.
fn disjoint(nest: &Nest, words: &[u64], near: usize, span: u64) -> bool {
    let mut levels = [(0, 0); Nest::MAX_DEPTH];
    let levels = &mut levels[near..nest.levels.len()];
    for (l, level) in (near..).zip(levels.iter_mut()) {
        let Level::Loop { stride, .. } = nest.levels[l] else { return false };
        *level = (stride.unsigned_abs(), words[3 * l]);
    }
    apart(levels, span)
}

/// Returns whether blocks of `span` bytes at all positions of `levels` are known to be disjoint. Each
/// entry of `levels` is a stride and a count. The function sorts `levels`.
pub fn apart(levels: &mut [(u64, u64)], span: u64) -> bool {
    levels.sort_unstable();
    let mut span = u128::from(span);
    levels.iter().all(|&(stride, count)| {
        let apart = count <= 1 || u128::from(stride) >= span;
        span = span.saturating_add(u128::from(stride) * u128::from(count.saturating_sub(1)));
        apart
    })
}

/// Calls `each` once for every position of `levels`, with the memory address and the packed address
/// of the position. No level may have a count of 0.
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
            // SAFETY: `words[3 * l..]` holds the parameters of level `l`, and `index[l]` is below the
            // count of this level.
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
