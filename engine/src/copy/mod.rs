//! Leaf kernels: precompiled loops over the inner levels of a nest, picked at run time by
//! instruction set.
//!
//! `plan.rs` asks for the [`Routine`] of a nest and a direction; `exec.rs` calls it with the same
//! parameter block as a compiled kernel. A routine executes the innermost level (`rows.rs`:
//! blocks; `window.rs`: dense patterns), or that and a level along whose iterations memory is
//! contiguous (`tiles.rs`); the levels outside are an odometer here. Lists of unequal runs, which are
//! no nests, are executed by `lists.rs`. `moves.rs` has the moves, `isa.rs` the instruction sets.
//! With a [`Swap`], elements are turned round on the way (`swap.rs`).
//!
//! Packed bytes are what packed order says whatever the order of visits. Unpacking visits in
//! another order only where the blocks are disjoint.

mod isa;
pub(crate) mod lists;
mod moves;
mod rows;
mod swap;
#[cfg(test)]
mod tests;
mod tiles;
#[cfg(target_arch = "x86_64")]
mod window;

pub use isa::{Isa, ParseIsaError};
pub(crate) use swap::{Swap, Width, copy as copy_turned};

use crate::interp::Steps;
use crate::kernel::{Direction, Leaf, Level, LevelShape, Nest, Run};
use std::sync::Arc;
use tiles::{Transpose, Transposer};

/// Executes one level of blocks: context, the level's parameters, base of the described memory,
/// packed bytes.
///
/// # Safety
///
/// - `words` points to the three parameters of the level that the row was picked for, as in
///   `kernel.rs`; entries of a table below the count are readable.
/// - For every iteration the block, relative to `mem` plus its displacement, is valid for reads
///   (pack) or writes (unpack).
/// - `packed` is valid for writes (pack) or reads (unpack) of block length times count.
/// - The two sides do not overlap.
/// - The context is what the row was picked with, the CPU has its instruction set.
type Row = unsafe fn(context: *const u8, words: *const u64, mem: *mut u8, packed: *mut u8);

/// A leaf kernel for a nest and a direction.
pub(crate) struct Routine {
    work: Work,
    isa: Isa,
    /// Rows are long enough for the odometer around them not to show.
    rows_suffice: bool,
}

enum Work {
    /// The innermost level. The context is the block's length.
    Row { row: Row, length: u64 },
    /// The innermost level, of windows, run by run.
    Runs { row: Row, runs: Arc<[Run]> },
    /// The same, with elements turned round.
    TurnedRuns { row: Row, window: Box<swap::Window> },
    /// The innermost level, by patterns of lines.
    #[cfg(target_arch = "x86_64")]
    Window(window::Window),
    /// The innermost level and level `near`. `row` takes over where that does not pay.
    Tile { transpose: Transposer, near: usize, row: Row, length: u64 },
}

impl Routine {
    /// The routine for `nest`, if there is one: windows need byte permutes.
    /// With `swap`, which is about the nest's leaf, elements are turned round.
    pub(crate) fn new(
        nest: &Nest,
        swap: Option<&Swap>,
        direction: Direction,
        isa: Isa,
    ) -> Option<Self> {
        let work = match direction {
            Direction::Pack => Self::work::<true>(nest, swap, isa),
            Direction::Unpack => Self::work::<false>(nest, swap, isa),
        };
        Some(Self { work: work?, isa, rows_suffice: rows_suffice(nest) })
    }

    fn work<const PACK: bool>(nest: &Nest, swap: Option<&Swap>, isa: Isa) -> Option<Work> {
        let inner = nest.levels.last()?;
        #[cfg(target_arch = "x86_64")]
        if isa == Isa::Avx512
            && let Some(merit) = window::merit(inner, &nest.leaf)
            && merit.pays(&nest.leaf)
            && rows_suffice(nest)
            && swap.is_none_or(|swap| window::can_turn(inner, &nest.leaf, swap))
        {
            return Some(Work::Window(window::Window::new::<PACK>(inner, &nest.leaf, swap)));
        }
        let level = match inner {
            Level::Loop { .. } => LevelShape::Loop,
            Level::Table { entries, .. } => LevelShape::of_table(entries),
        };
        let length = match &nest.leaf {
            Leaf::Block { bytes } => *bytes,
            Leaf::Window { runs } => {
                let runs = runs.clone();
                let Some(swap) = swap.cloned() else {
                    return Some(Work::Runs { row: rows::windows::<PACK>(level), runs });
                };
                let window = Box::new(swap::Window { runs, swap });
                return Some(Work::TurnedRuns { row: swap::windows::<PACK>(isa, level), window });
            }
        };
        let width = swap.map_or(Width::ONE, |swap| swap.width(0));
        let row = match width {
            Width::ONE => rows::row::<PACK>(isa, level, length),
            width => swap::row::<PACK>(isa, level, length, width),
        };
        let near = near_level(nest, length);
        if let (Some(near), Some(transpose)) = (near, tiles::transposer(isa, length, width)) {
            return Some(Work::Tile { transpose, near, row, length });
        }
        Some(Work::Row { row, length })
    }

    /// The name that reports print.
    pub(crate) fn name(&self) -> String {
        let kind = match &self.work {
            Work::Row { .. } => "row",
            Work::Runs { .. } | Work::TurnedRuns { .. } => "runs",
            #[cfg(target_arch = "x86_64")]
            Work::Window(_) => "window",
            Work::Tile { .. } => "tile",
        };
        format!("leaf {kind} {}", self.isa)
    }

    /// How many times the compiler's threshold has to be moved before a compiled kernel repays
    /// itself beside this routine; `None` where it never does. It saves the odometer around short
    /// rows, knows the runs of a window that no permute serves, and joins short blocks better
    /// (a quarter of the time at best, for which 100 us of compiling are long).
    pub(crate) fn patience(&self) -> Option<u64> {
        match &self.work {
            Work::Row { length, .. } if self.rows_suffice => (*length <= 8).then_some(32),
            Work::Row { .. } | Work::Runs { .. } | Work::TurnedRuns { .. } => Some(1),
            #[cfg(target_arch = "x86_64")]
            Work::Window(_) => None,
            Work::Tile { .. } => None,
        }
    }

    /// Executes `nest`, for which this routine was made in this direction.
    ///
    /// # Safety
    ///
    /// As for [`Entry`](crate::kernel::Entry), with `words` as `params`.
    #[inline]
    pub(crate) unsafe fn run<const PACK: bool>(
        &self,
        nest: &Nest,
        words: &[u64; Nest::WORDS],
        mem: *mut u8,
        packed: *mut u8,
    ) {
        let inner = nest.levels.len() - 1;
        if let Work::Tile { transpose, near, length, .. } = self.work
            && !stays_in_l1(words[3 * inner], words[3 * inner + 1] as i64)
            && is_tile::<PACK>(nest, words, near, length)
        {
            // SAFETY: our contract; the blocks are disjoint where they are written.
            return unsafe { tile::<PACK>(nest, words, (transpose, near, length), mem, packed) };
        }
        let params = words[3 * inner..].as_ptr();
        let row = |mem, packed| {
            // SAFETY: the innermost level, at one position of the levels outside.
            unsafe { self.row::<PACK>(params, mem, packed) };
        };
        // Mostly the one level outside is the loop over elements, of which there is one.
        let once = matches!(nest.levels[0], Level::Loop { .. }) && words[0] == 1;
        if inner == 0 || inner == 1 && once {
            return row(mem, packed);
        }
        let bytes = words[3 * inner] * nest.leaf.bytes();
        positions(nest, words, usize::MAX, bytes, mem, packed, row);
    }

    /// Executes the innermost level with the parameters `params`.
    ///
    /// # Safety
    ///
    /// As for [`Row`], for the level and leaf of the nest that this routine was made for.
    #[inline(always)]
    unsafe fn row<const PACK: bool>(&self, params: *const u64, mem: *mut u8, packed: *mut u8) {
        // SAFETY: our contract; the contexts are those that the rows were picked with.
        unsafe {
            match &self.work {
                Work::Row { row, length } | Work::Tile { row, length, .. } => {
                    let length = std::ptr::without_provenance(*length as usize);
                    row(length, params, mem, packed);
                }
                Work::Runs { row, runs } => {
                    row(std::ptr::from_ref(runs).cast(), params, mem, packed);
                }
                Work::TurnedRuns { row, window } => {
                    row(std::ptr::from_ref(&**window).cast(), params, mem, packed);
                }
                #[cfg(target_arch = "x86_64")]
                Work::Window(window) => window.run::<PACK>(params, mem, packed),
            }
        }
    }
}

/// Whether the innermost level is long enough for what is outside it not to show. That of a nest of
/// one level is the loop over elements, the count of which comes with the call.
fn rows_suffice(nest: &Nest) -> bool {
    /// Iterations and packed bytes of the innermost level.
    const LONG: (u64, u64) = (16, 512);
    let long = |inner: &Level| {
        let count = inner.count();
        count >= LONG.0 && count.saturating_mul(nest.leaf.bytes()) >= LONG.1
    };
    nest.levels.len() == 1 || nest.levels.last().is_some_and(long)
}

/// The level whose blocks of `length` bytes lie side by side in memory, inside another.
fn near_level(nest: &Nest, length: u64) -> Option<usize> {
    let (far, outer) = nest.levels.split_last()?;
    let &Level::Loop { stride: far, .. } = far else { return None };
    let is_near =
        |level: &Level| matches!(level, Level::Loop { stride, .. } if *stride as u64 == length);
    (far.unsigned_abs() > length).then(|| outer.iter().rposition(is_near)).flatten()
}

/// Iterations of the outermost level that fill cache lines together, where they lie side by side.
pub(crate) fn tile_elements(nest: &Nest) -> Option<u64> {
    let Leaf::Block { bytes } = nest.leaf else { return None };
    let Some(&Level::Loop { count, stride }) = nest.levels.last() else { return None };
    let tiled = near_level(nest, bytes) == Some(0) && matches!(bytes, 1 | 2 | 4 | 8 | 16);
    (tiled && !stays_in_l1(count, stride)).then_some(64 / bytes)
}

/// Whether `count` cache lines `stride` bytes apart stay in the first-level cache until the
/// neighbouring column needs them again; then walking column by column is the best order: one
/// stream on the packed side (`typepack-bench commit --size 64K`, "transpose": 1.8 times as fast).
fn stays_in_l1(count: u64, stride: i64) -> bool {
    /// Sets of 64-byte lines, and ways that may be counted on.
    const CACHE: (u64, u64) = (64, 8);
    // Lines meet in a set when their distance is a multiple of 4096: strides with many factors of 2
    // use few sets.
    let sets = CACHE.0.min(4096 >> stride.trailing_zeros().min(12));
    count <= sets * CACHE.1
}

/// Fewest elements on either side of a tile: below, registers stay empty.
const TILE: u64 = 4;

/// Whether there are tiles at these counts and, when memory is written, another order is allowed.
fn is_tile<const PACK: bool>(
    nest: &Nest,
    words: &[u64; Nest::WORDS],
    near: usize,
    length: u64,
) -> bool {
    let (columns, rows) = (words[3 * near], words[3 * (nest.levels.len() - 1)]);
    columns >= TILE && rows >= TILE && (PACK || disjoint(nest, words, near, length))
}

/// Executes a nest tile by tile.
///
/// # Safety
///
/// - As for [`Routine::run`].
/// - When unpacking, the blocks of level `near` and the levels inside are disjoint.
unsafe fn tile<const PACK: bool>(
    nest: &Nest,
    words: &[u64; Nest::WORDS],
    (transpose, near, length): (Transposer, usize, u64),
    mem: *mut u8,
    packed: *mut u8,
) {
    let inner = nest.levels.len() - 1;
    let (columns, rows) = (words[3 * near] as usize, words[3 * inner] as usize);
    let pitch = words[3 * inner + 1] as isize;
    // Packed bytes from one iteration of the near level to the next.
    let below: u64 = (near + 1..=inner).map(|l| words[3 * l]).product();
    let across = (below * length) as isize;
    positions(nest, words, near, words[3 * inner] * length, mem, packed, |mem, packed| {
        let t = if PACK {
            let (from, to) = (mem.cast_const(), packed);
            Transpose {
                from,
                from_pitch: pitch,
                to,
                to_pitch: across,
                width: columns,
                height: rows,
            }
        } else {
            let (from, to) = (packed.cast_const(), mem);
            Transpose {
                from,
                from_pitch: across,
                to,
                to_pitch: pitch,
                width: rows,
                height: columns,
            }
        };
        // SAFETY: near and innermost level at one position of the others; disjoint on the side that
        // is written: packed bytes are, memory by our contract.
        unsafe { transpose(t) };
    });
}

/// Whether the blocks of the levels from `near` inwards are known to be disjoint: each level, from
/// the shortest stride to the longest, jumps over all that the shorter ones cover.
fn disjoint(nest: &Nest, words: &[u64; Nest::WORDS], near: usize, length: u64) -> bool {
    let mut levels = [(0_u64, 0_u64); Nest::MAX_DEPTH];
    let levels = &mut levels[near..nest.levels.len()];
    for (l, level) in (near..).zip(levels.iter_mut()) {
        let Level::Loop { stride, .. } = nest.levels[l] else { return false };
        *level = (stride.unsigned_abs(), words[3 * l]);
    }
    levels.sort_unstable();
    let mut span = u128::from(length);
    levels.iter().all(|&(stride, count)| {
        let apart = count <= 1 || u128::from(stride) >= span;
        span += u128::from(stride) * u128::from(count.saturating_sub(1));
        apart
    })
}

/// Calls `each` with the two addresses at every position of all levels but the innermost and
/// level `skip`; `bytes` is what the innermost level packs.
///
/// Counts of 0 at any level call nothing.
#[inline(always)]
fn positions(
    nest: &Nest,
    words: &[u64; Nest::WORDS],
    skip: usize,
    bytes: u64,
    mem: *mut u8,
    packed: *mut u8,
    each: impl Fn(*mut u8, *mut u8),
) {
    let inner = nest.levels.len() - 1;
    if (0..=inner).any(|l| words[3 * l] == 0) {
        return;
    }
    // Packed bytes of one iteration of each level.
    let mut pitch = [0; Nest::MAX_DEPTH];
    let mut all = bytes;
    for l in (0..inner).rev() {
        pitch[l] = all;
        all *= words[3 * l];
    }
    // SAFETY: the parameters of level `l`.
    let steps = |l: usize| unsafe { Steps::new(&nest.levels[l], words[3 * l..].as_ptr()) };
    // The last level outside is a plain loop, those before it an odometer.
    let last = inner.wrapping_sub(1);
    let along = |mem: *mut u8, packed: *mut u8| {
        if inner == 0 || last == skip {
            return each(mem, packed);
        }
        let (steps, mut packed) = (steps(last), packed);
        for i in 0..words[3 * last] {
            // SAFETY: an index below the level's count.
            let shift = unsafe { steps.displacement(i) };
            each(mem.wrapping_offset(shift as isize), packed);
            packed = packed.wrapping_add(pitch[last] as usize);
        }
    };
    let outer = inner.saturating_sub(1);
    let mut index = [0; Nest::MAX_DEPTH];
    loop {
        let (mut mem, mut packed) = (mem, packed);
        for l in (0..outer).filter(|&l| l != skip) {
            // SAFETY: an index below the level's count.
            let shift = unsafe { steps(l).displacement(index[l]) };
            mem = mem.wrapping_offset(shift as isize);
            packed = packed.wrapping_add((index[l] * pitch[l]) as usize);
        }
        along(mem, packed);
        let mut l = outer;
        loop {
            if l == 0 {
                return;
            }
            l -= 1;
            if l != skip {
                index[l] += 1;
                if index[l] < words[3 * l] {
                    break;
                }
                index[l] = 0;
            }
        }
    }
}
