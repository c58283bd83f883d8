//! Leaf kernels: precompiled loops over the inner levels of a nest. Each loop has one instance per
//! instruction set, and the instance is picked at run time.
//!
//! The engine makes a [`Routine`] for a nest and a direction, and calls it with the same parameter block that
//! a compiled kernel takes. A routine has one of two forms:
//!
//! - It executes only the innermost level, with `rows.rs` for blocks and windows, or with `dense/` (AVX-512)
//!   or `shuffle/` (SSE4, AVX2, NEON; packing only) for dense patterns. The code in this file steps through the
//!   outer levels like an odometer.
//! - It executes two levels together, in tiles: the innermost level, and a second level along which
//!   memory is contiguous. `traversal.rs` decides whether tiles are worthwhile, and `tiles.rs`
//!   transposes tiles in registers.
//!
//! A list of runs of unequal length is not a nest; `lists.rs` executes such lists. `moves.rs`
//! contains the moves. If the nest has a [`Swap`], the functions of `byteswap.rs` reverse the bytes of
//! each element between load and store.
//!
//! The packed bytes never depend on the order in which a kernel visits memory. When unpacking, a kernel
//! departs from packed order only if the blocks are disjoint, because the last store to a byte determines its
//! value.

mod byteswap;
#[cfg(target_arch = "x86_64")]
mod dense;
pub mod lists;
mod moves;
mod rows;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod shuffle;
#[cfg(test)]
mod tests;
pub mod tiles;
pub mod traversal;

pub use byteswap::{Mover, Swap, Width, copy as copy_swapped, mover};

use crate::isa::Isa;
use crate::kernel::interpreter::Steps;
use crate::kernel::{Direction, Leaf, Level, LevelShape, Nest, Run};
use std::sync::Arc;
use traversal::Traversal;
pub use traversal::tile_elements;

/// The work of a byte shuffle: it loads `windows` windows of 16 bytes to pack `elements` elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// Number of windows of 16 bytes.
    pub windows: u32,
    /// Number of elements.
    pub elements: u32,
}

/// The kinds of code that can execute a nest, apart from compiled kernels. The engine's cost model
/// has one set of costs per class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Rows of blocks.
    Row,
    /// Rows of windows; each run is moved separately.
    Runs,
    /// Rows of a dense pattern of blocks or windows (`dense/`); one permute moves all data of a
    /// register.
    Window,
    /// Rows of a dense pattern that is packed with byte shuffles. The value is the work of the shuffles.
    Shuffle(Load),
    /// Tiles, which consist of the innermost level and a second level (`tiles.rs`).
    Tile,
    /// The interpreter: one call of `contiguous::copy` per run.
    Interpreter,
}

/// A function that executes one level of a nest. The arguments are the context, the parameters of the
/// level, the address of the described memory, and the address of the packed bytes.
///
/// # Safety
///
/// - `words` points to the three parameters (see `kernel/`) of the level for which the row was
///   picked. If the level is a table, its first `count` entries are readable.
/// - For every iteration, the block or window at `mem` plus the iteration's displacement is valid for
///   reads (pack) or writes (unpack). Of a window, only the runs count.
/// - `packed` is valid for writes (pack) or reads (unpack); its length is the number of packed bytes
///   of a block or window times the count.
/// - The described memory and the packed bytes do not overlap.
/// - The context is the value with which the row was picked, such as the block's length or a pointer
///   to the runs. The CPU has the row's instruction set.
type Row = unsafe fn(context: *const u8, words: *const u64, mem: *mut u8, packed: *mut u8);

/// The leaf kernel of one nest for one direction.
pub struct Routine {
    work: Work,
    /// The order in which the levels are visited. `None` means packed order. A nest has a traversal if
    /// consecutive packed bytes lie so far apart in memory that packed order is slow.
    traversal: Option<Box<Traversal>>,
    isa: Isa,
}

enum Work {
    /// A row that executes the innermost level if the leaf is a block. The context is the length of
    /// the block.
    Row { row: Row, length: u64 },
    /// A row that executes the innermost level, run by run, if the leaf is a window.
    Runs { row: Row, runs: Arc<[Run]> },
    /// A row that executes the innermost level, run by run, if the leaf is a window. The row also reverses
    /// the bytes of each element.
    SwappedRuns { row: Row, window: Box<byteswap::Window> },
    /// Executes the innermost level as a dense pattern.
    #[cfg(target_arch = "x86_64")]
    Dense(dense::LazyPattern),
    /// Packs the innermost level as a dense pattern, with byte shuffles.
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    Shuffled(Box<shuffle::Shuffled>),
}

impl Routine {
    /// Returns the routine for `nest`, or `None` if the nest has no level. The machine must have `isa`.
    /// If `swap` is given, it describes the elements of the nest's leaf, and the routine reverses the
    /// bytes of each element.
    pub fn new(nest: &Nest, swap: Option<&Swap>, direction: Direction, isa: Isa) -> Option<Self> {
        let work = match direction {
            Direction::Pack => Self::work::<true>(nest, swap, isa),
            Direction::Unpack => Self::work::<false>(nest, swap, isa),
        };
        let work = work?;
        let traversal = match work {
            // A dense pattern uses each cache line completely while it moves one row, so it needs no
            // traversal.
            #[cfg(target_arch = "x86_64")]
            Work::Dense(_) => None,
            #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
            Work::Shuffled(_) => None,
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
        #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
        if PACK && swap.is_none() {
            let row = match &nest.leaf {
                Leaf::Block { bytes } => rows::row::<PACK>(isa, LevelShape::Loop, *bytes),
                Leaf::Window { .. } => rows::windows::<PACK>(LevelShape::Loop),
            };
            if let Some(shuffled) = shuffle::Shuffled::new(nest, isa, row) {
                return Some(Work::Shuffled(Box::new(shuffled)));
            }
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

    /// Builds at once the parts of the routine that are otherwise built only after some calls. `nest`
    /// and `direction` must be those for which the routine was made.
    pub fn build(&self, nest: &Nest, direction: Direction) {
        #[cfg(target_arch = "x86_64")]
        if let Work::Dense(lazy) = &self.work {
            match direction {
                Direction::Pack => lazy.build::<true>(nest),
                Direction::Unpack => lazy.build::<false>(nest),
            };
        }
        #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
        if let Work::Shuffled(shuffled) = &self.work {
            shuffled.build();
        }
        let _ = (nest, direction);
    }

    /// Returns the routine's name for reports.
    pub fn name(&self) -> String {
        let kind = match &self.work {
            _ if self.traversal.is_some() => "tile",
            Work::Row { .. } => "row",
            Work::Runs { .. } | Work::SwappedRuns { .. } => "runs",
            #[cfg(target_arch = "x86_64")]
            Work::Dense(_) => "window",
            #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
            Work::Shuffled(_) => "shuffle",
        };
        format!("leaf {kind} {}", self.isa)
    }

    /// Returns the class under which the cost model lists the routine.
    pub fn class(&self) -> Class {
        match &self.work {
            _ if self.traversal.is_some() => Class::Tile,
            Work::Row { .. } => Class::Row,
            Work::Runs { .. } | Work::SwappedRuns { .. } => Class::Runs,
            #[cfg(target_arch = "x86_64")]
            Work::Dense(_) => Class::Window,
            #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
            Work::Shuffled(shuffled) => Class::Shuffle(shuffled.cost()),
        }
    }

    /// Executes `nest`. This routine must have been made for `nest` and for the direction `PACK`.
    ///
    /// # Safety
    ///
    /// The conditions of [`Entry`](crate::kernel::Entry) hold, with `words` as `params`.
    #[inline]
    pub unsafe fn run<const PACK: bool>(
        &self,
        nest: &Nest,
        words: &[u64],
        mem: *mut u8,
        packed: *mut u8,
    ) {
        type Levels = unsafe fn(&Routine, &Nest, &[u64], *mut u8, *mut u8);
        static LEVELS: [Levels; 2] = [Routine::levels::<false>, Routine::levels::<true>];
        let inner = nest.levels.len() - 1;
        // SAFETY: the caller guarantees the conditions of `levels`. If the nest is one row, its memory is that of
        // the innermost level, whose parameters are `words[3 * inner..]`.
        unsafe {
            if self.traversal.is_none() && is_one_row(nest, words) {
                self.row::<PACK>(nest, words[3 * inner..].as_ptr(), mem, packed);
            } else {
                LEVELS[usize::from(PACK)](self, nest, words, mem, packed);
            }
        }
    }

    /// # Safety
    ///
    /// The conditions of [`run`](Self::run) hold.
    unsafe fn levels<const PACK: bool>(
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
                // SAFETY: the traversal passes the parameters of a part of the innermost level, and
                // the memory address and the packed address of one position of the outer levels. The
                // caller guarantees that the memory of the whole nest is valid, so the memory of this
                // part is valid too.
                unsafe { self.row::<PACK>(nest, params, mem, packed) };
            };
            // SAFETY: `applies` returned true for `nest` and `words`, and `row` executes the
            // innermost level. The caller guarantees that the memory of the whole nest is valid.
            return unsafe { traversal.run::<PACK>(nest, words, row, mem, packed) };
        }
        let params = words[3 * inner..].as_ptr();
        let row = |mem, packed| {
            // SAFETY: `params` are the parameters of the innermost level. `positions` passes the memory
            // address and the packed address of one position of the outer levels. The caller guarantees that
            // the memory of the whole nest is valid, so the memory at this position is valid too.
            unsafe { self.row::<PACK>(nest, params, mem, packed) };
        };
        if is_one_row(nest, words) {
            return row(mem, packed);
        }
        let bytes = words[3 * inner] * nest.leaf.bytes();
        positions(nest, words, bytes, mem, packed, row);
    }

    /// Executes the innermost level with the parameters `params`.
    ///
    /// # Safety
    ///
    /// The conditions of [`Row`] hold, for the innermost level and the leaf of the nest for which
    /// this routine was made.
    #[inline(always)]
    unsafe fn row<const PACK: bool>(
        &self,
        nest: &Nest,
        params: *const u64,
        mem: *mut u8,
        packed: *mut u8,
    ) {
        // SAFETY: the caller guarantees the conditions of `Row` except for the context. Each row gets
        // the context for which `work` picked it: the length of the block, the `Arc` of runs, or the
        // window. `work` makes a `Shuffled` only for packing, and picks only rows of an instruction set
        // that the machine has.
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
                #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
                Work::Shuffled(shuffled) => shuffled.run(nest, params, mem, packed),
            }
        }
        // Only the patterns of `dense/` and `shuffle/` use `nest`, and not every target has them.
        let _ = nest;
    }
}

/// Returns whether the parameters `words` describe one call of a row: if there is no outer level, or if the only one
/// is a loop with a count of 1. That is often so, because the loop over elements is the outermost level.
#[inline]
fn is_one_row(nest: &Nest, words: &[u64]) -> bool {
    match &nest.levels[..] {
        [_] => true,
        [Level::Loop { .. }, _] => words[0] == 1,
        _ => false,
    }
}

/// Calls `each` once for every position of the outer levels, with the memory address and the packed
/// address of the position. At each position, the innermost level has `bytes` packed bytes.
///
/// If any level has a count of 0, `each` is not called.
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
    // `pitch[l]` is the number of packed bytes of one iteration of level `l`.
    let mut pitch = [0; Nest::MAX_DEPTH];
    let mut all = bytes;
    for l in (0..inner).rev() {
        pitch[l] = all;
        all *= words[3 * l];
    }
    // SAFETY: `words[3 * l..]` holds the three parameters of level `l`.
    let steps = |l: usize| unsafe { Steps::new(&nest.levels[l], words[3 * l..].as_ptr()) };
    // The innermost of the outer levels is executed as a plain loop. The levels outside that level are
    // counted like the digits of an odometer.
    let last = inner.wrapping_sub(1);
    let along = |mem: *mut u8, packed: *mut u8| {
        if inner == 0 {
            return each(mem, packed);
        }
        let (steps, mut packed) = (steps(last), packed);
        for i in 0..words[3 * last] {
            // SAFETY: `i` is below `words[3 * last]`, the count of level `last`.
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
            // SAFETY: `index[l]` is below `words[3 * l]`, the count of level `l`.
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
