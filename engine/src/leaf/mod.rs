//! Leaf kernels: precompiled loops over the inner levels of a nest, picked at run time by
//! instruction set.
//!
//! `plan/` asks for the [`Routine`] of a nest and a direction; `exec/` calls it with the same
//! parameter block as a compiled kernel. A routine executes the innermost level (`rows.rs`:
//! blocks; `dense/`: dense patterns, in the forms of `short.rs`, `lines.rs` and `gather.rs`), the
//! levels outside are an odometer here; or that and a level along which memory is contiguous in
//! tiles (`traversal.rs` decides, `tiles.rs` transposes in registers). Lists of unequal runs, which
//! are no nests, are executed by `lists.rs`. `moves.rs` has the moves, `isa.rs` the instruction sets.
//! With a [`Swap`], elements are turned round on the way (`byteswap.rs`).
//!
//! Packed bytes are what packed order says whatever the order of visits. Unpacking visits in
//! another order only where the blocks are disjoint.

mod byteswap;
#[cfg(target_arch = "x86_64")]
mod dense;
mod isa;
pub(crate) mod lists;
mod moves;
mod rows;
#[cfg(test)]
mod tests;
pub(crate) mod tiles;
pub(crate) mod traversal;

pub(crate) use byteswap::{Mover, Swap, Width, copy as copy_swapped, mover};
pub use isa::{Isa, ParseIsaError};

use crate::kernel::interpreter::Steps;
use crate::kernel::{Direction, Leaf, Level, LevelShape, Nest, Run};
use std::sync::Arc;
use traversal::Traversal;
pub(crate) use traversal::tile_elements;

/// What there is besides a compiled kernel: what the cost model of `plan/` tells apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// Rows of blocks.
    Row,
    /// Rows of windows, run by run.
    Runs,
    /// Rows of windows, by lines.
    #[cfg_attr(
        not(any(test, target_arch = "x86_64")),
        expect(dead_code, reason = "made of byte permutes of AVX-512")
    )]
    Window,
    /// Tiles.
    Tile,
    /// One memcpy per run.
    Interpreter,
}

/// Executes one level of blocks: context, the level's parameters, base of the described memory,
/// packed bytes.
///
/// # Safety
///
/// - `words` points to the three parameters of the level that the row was picked for, as in
///   `kernel/`; entries of a table below the count are readable.
/// - For every iteration the block, relative to `mem` plus its displacement, is valid for reads
///   (pack) or writes (unpack).
/// - `packed` is valid for writes (pack) or reads (unpack) of block length times count.
/// - The two sides do not overlap.
/// - The context is what the row was picked with, the CPU has its instruction set.
type Row = unsafe fn(context: *const u8, words: *const u64, mem: *mut u8, packed: *mut u8);

/// A leaf kernel for a nest and a direction.
pub(crate) struct Routine {
    work: Work,
    /// The order of the outer levels where packed order runs across memory.
    traversal: Option<Box<Traversal>>,
    isa: Isa,
}

enum Work {
    /// The innermost level. The context is the block's length.
    Row { row: Row, length: u64 },
    /// The innermost level, of windows, run by run.
    Runs { row: Row, runs: Arc<[Run]> },
    /// The same, with elements turned round.
    SwappedRuns { row: Row, window: Box<byteswap::Window> },
    /// The innermost level, by patterns of lines.
    #[cfg(target_arch = "x86_64")]
    Dense(dense::LazyPattern),
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
        let work = work?;
        let traversal = match work {
            // Lines of a dense pattern are used whole in any order.
            #[cfg(target_arch = "x86_64")]
            Work::Dense(_) => None,
            _ => Traversal::of(nest, swap, direction, isa).map(Box::new),
        };
        Some(Self { work, traversal, isa })
    }

    fn work<const PACK: bool>(nest: &Nest, swap: Option<&Swap>, isa: Isa) -> Option<Work> {
        let inner = nest.levels.last()?;
        #[cfg(target_arch = "x86_64")]
        if isa == Isa::Avx512
            && let Some(merit) = dense::merit(inner, &nest.leaf)
            && merit.pays::<PACK>(&nest.leaf)
            && (nest.levels.len() == 1 || merit.fills_rows(&nest.leaf, inner.count()))
            && swap.is_none_or(|swap| dense::can_swap(inner, &nest.leaf, swap))
        {
            if swap.is_some() {
                let window = dense::Pattern::new::<PACK>(inner, &nest.leaf, swap);
                return Some(Work::Dense(dense::LazyPattern::built(window)));
            }
            let row = match &nest.leaf {
                Leaf::Block { bytes } => rows::row::<PACK>(isa, LevelShape::Loop, *bytes),
                Leaf::Window { .. } => rows::windows::<PACK>(LevelShape::Loop),
            };
            return Some(Work::Dense(dense::LazyPattern::new(row, &merit)));
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
                let window = Box::new(byteswap::Window { runs, swap });
                return Some(Work::SwappedRuns {
                    row: byteswap::windows::<PACK>(isa, level),
                    window,
                });
            }
        };
        let row = match swap.map_or(Width::ONE, |swap| swap.width(0)) {
            Width::ONE => rows::row::<PACK>(isa, level, length),
            width => byteswap::row::<PACK>(isa, level, length, width),
        };
        Some(Work::Row { row, length })
    }

    /// Makes at once what would be made after the first calls. `nest` and `direction` are those that
    /// the routine was made for.
    pub(crate) fn build(&self, nest: &Nest, direction: Direction) {
        #[cfg(target_arch = "x86_64")]
        if let Work::Dense(lazy) = &self.work {
            match direction {
                Direction::Pack => lazy.build::<true>(nest),
                Direction::Unpack => lazy.build::<false>(nest),
            };
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = (nest, direction);
    }

    /// The name that reports print.
    pub(crate) fn name(&self) -> String {
        let kind = match &self.work {
            _ if self.traversal.is_some() => "tile",
            Work::Row { .. } => "row",
            Work::Runs { .. } | Work::SwappedRuns { .. } => "runs",
            #[cfg(target_arch = "x86_64")]
            Work::Dense(_) => "window",
        };
        format!("leaf {kind} {}", self.isa)
    }

    /// What the routine is to the cost model (`plan/cost/`).
    pub(crate) fn class(&self) -> Class {
        match &self.work {
            _ if self.traversal.is_some() => Class::Tile,
            Work::Row { .. } => Class::Row,
            Work::Runs { .. } | Work::SwappedRuns { .. } => Class::Runs,
            #[cfg(target_arch = "x86_64")]
            Work::Dense(_) => Class::Window,
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
        words: &[u64],
        mem: *mut u8,
        packed: *mut u8,
    ) {
        let inner = nest.levels.len() - 1;
        if let Some(traversal) = &self.traversal
            && traversal.applies::<PACK>(nest, words)
        {
            let row = |params: *const u64, mem, packed| {
                // SAFETY: a part of the innermost level, at one position of the levels outside.
                unsafe { self.row::<PACK>(nest, params, mem, packed) };
            };
            // SAFETY: our contract; the traversal applies.
            return unsafe { traversal.run::<PACK>(nest, words, row, mem, packed) };
        }
        let params = words[3 * inner..].as_ptr();
        let row = |mem, packed| {
            // SAFETY: the innermost level, at one position of the levels outside.
            unsafe { self.row::<PACK>(nest, params, mem, packed) };
        };
        // Mostly the one level outside is the loop over elements, of which there is one.
        let once = matches!(nest.levels[0], Level::Loop { .. }) && words[0] == 1;
        if inner == 0 || inner == 1 && once {
            return row(mem, packed);
        }
        let bytes = words[3 * inner] * nest.leaf.bytes();
        positions(nest, words, bytes, mem, packed, row);
    }

    /// Executes the innermost level with the parameters `params`.
    ///
    /// # Safety
    ///
    /// As for [`Row`], for the level and leaf of the nest that this routine was made for.
    #[inline(always)]
    unsafe fn row<const PACK: bool>(
        &self,
        nest: &Nest,
        params: *const u64,
        mem: *mut u8,
        packed: *mut u8,
    ) {
        // SAFETY: our contract; the contexts are those that the rows were picked with.
        unsafe {
            match &self.work {
                Work::Row { row, length } => {
                    let length = std::ptr::without_provenance(*length as usize);
                    row(length, params, mem, packed);
                }
                Work::Runs { row, runs } => {
                    row(std::ptr::from_ref(runs).cast(), params, mem, packed);
                }
                Work::SwappedRuns { row, window } => {
                    row(std::ptr::from_ref(&**window).cast(), params, mem, packed);
                }
                #[cfg(target_arch = "x86_64")]
                Work::Dense(lazy) => lazy.run::<PACK>(nest, params, mem, packed),
            }
        }
        // Only a lazy window asks it.
        #[cfg(not(target_arch = "x86_64"))]
        let _ = nest;
    }
}

/// Calls `each` with the two addresses at every position of all levels but the innermost, of which
/// `bytes` is what it packs.
///
/// Counts of 0 at any level call nothing.
#[inline(always)]
fn positions(
    nest: &Nest,
    words: &[u64],
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
        if inner == 0 {
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
        for l in 0..outer {
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
            index[l] += 1;
            if index[l] < words[3 * l] {
                break;
            }
            index[l] = 0;
        }
    }
}
