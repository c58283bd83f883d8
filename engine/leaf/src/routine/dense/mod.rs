//! Dense patterns: short runs close together that repeat at a constant stride. They are moved one
//! register at a time with byte permutes and masks (AVX-512 with VBMI).
//!
//! `routine/mod.rs` builds a pattern for an innermost loop whose elements ascend without overlap, such
//! as structs with gaps or small blocks at small strides. Below, an *element* is one iteration of
//! this loop. Three files share the work:
//!
//! - `short.rs` moves, at any alignment, as many elements at a time as 64 bytes hold. It moves the
//!   elements of short calls, and those at both ends of long calls;
//! - `lines.rs` moves one cache line of memory at a time;
//! - `gather.rs` packs the data of two to four lines into one register. It is used if a whole number
//!   of elements fills the register exactly.
//!
//! With a [`Swap`], the permutes also reverse the bytes of each basic element, at no extra cost. This
//! works only if no basic element lies in two registers ([`can_swap`]).
//!
//! A 64-byte access that crosses a cache line costs as much as two accesses. So, if aligning is
//! worthwhile and the call moves enough elements, `short.rs` first moves a few elements. After
//! these elements, the lines of the pattern begin at cache lines, or as little behind them as the
//! stride allows.
//!
//! Without a swap, a pattern is built only after its loop has moved some data ([`LazyPattern`]),
//! because the loops of many types never move enough data to repay the building.

mod gather;
mod lines;
mod masked;
mod short;

use super::Row;
use super::byteswap::Swap;
use crate::kernel::{Leaf, Level, Nest};
use gather::Gather;
use lines::Lines;
use masked::{BYTES, LINE, WORDS};
use short::Short;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// Maximum number of lines of a period. A period is the stretch of memory after which the pattern
/// of lines repeats. Longer periods arise only from strides of more than 64 bytes. At such a stride, a
/// line holds at most parts of two elements, and moves of 16 bytes are as fast as a pattern.
const STEPS: usize = 64;

/// Minimum number of periods in a call for which aligning to cache lines is worthwhile.
const PERIODS_TO_ALIGN: usize = 8;

/// Minimum number of full registers in a call at which `lines.rs` or `gather.rs` is faster than
/// `short.rs`.
const REGISTERS: usize = 16;

/// Number of moves of up to 16 bytes after which a pattern is built. With fewer moves, building the
/// pattern takes longer than the pattern saves. Programs often make structs of a few members, use
/// them ten times and free them (`typepack-bench peers --only storm`).
const BUILD_AFTER: u32 = 256;

/// Minimum number of periods in a call for which it is worthwhile to load the permutes of a period.
const PERIODS: usize = 4;

/// If the memory and the packed bytes of a call together have at least this many bytes, their lines
/// are expected to be in the second-level cache rather than the first-level cache. A first-level
/// cache of 48 KiB is a little larger than this limit, and one of 32 KiB is a little smaller.
const NEAR: usize = 40 << 10;

/// A pattern that is built on demand. Until its loop has moved enough data, the loop is executed run
/// by run.
pub(super) struct LazyPattern {
    built: OnceLock<Box<Pattern>>,
    /// Number of moves that are left before the pattern is built. If two threads subtract at the same
    /// time, one subtraction may be lost, and the pattern is built a little later. This is harmless.
    left: AtomicU32,
    /// Number of moves of up to 16 bytes that `row` makes per element.
    moves: u32,
    /// The row that executes the level until the pattern is built.
    row: Row,
}

/// A pattern that is ready for use, for one direction.
pub(super) struct Pattern {
    few: Short,
    /// Minimum number of elements in a call for which `long` is used.
    many: usize,
    /// The method for calls with many elements. It is built by the first call that needs it, because
    /// programs often make types with few elements and soon free them.
    long: OnceLock<Long>,
    /// The runs of an element, in ascending order.
    runs: Box<[Stripe]>,
    /// Distance from the start of one element to the start of the next, in bytes.
    stride: usize,
    /// Number of packed bytes per element.
    bytes: usize,
    /// Number of bytes for which one bit of a mask stands.
    grain: usize,
}

/// A run of an element's data.
#[derive(Clone, Copy)]
pub(super) struct Stripe {
    /// Offset from the element's first byte, in bytes.
    pub(super) offset: usize,
    pub(super) bytes: usize,
    /// Number of bytes that are reversed together: a power of two that divides the run's length. If
    /// the width is not 1, it also divides the offset of the run and the stride.
    pub(super) width: usize,
}

impl Stripe {
    /// Returns the offset of one past the last byte.
    pub(super) fn end(&self) -> usize {
        self.offset + self.bytes
    }

    /// Returns the packed position of byte `i` of the run if the bytes of each basic element are
    /// reversed. `nth` is the packed position that this byte has in native order.
    pub(super) fn swapped(&self, nth: usize, i: usize) -> usize {
        let within = i % self.width;
        nth - within + (self.width - 1 - within)
    }
}

/// The method for calls with many elements.
struct Long {
    method: Method,
    /// Number of elements in a period of lines. The number is `1 << shift`.
    elements: usize,
    shift: u32,
    /// The inverse of the number of lines per period, modulo the number of elements per period.
    /// After this many elements, the position within a line has advanced by the smallest possible
    /// step: the greatest power of two that divides the stride.
    inverse: usize,
    /// True if aligning to cache lines is worthwhile.
    aligns: bool,
    /// Minimum number of elements that must remain after the whole periods; `few` moves them. At
    /// least one must remain, so that no line of a whole period reaches past the last element. The
    /// packed bytes of the remaining elements must also fill a register, because the last step of a
    /// period accesses a whole register of packed bytes, which may reach beyond the data of this
    /// step.
    spare: usize,
}

enum Method {
    Lines(Lines),
    Gather(Gather),
}

/// The data from which to decide whether a pattern is faster than moving each run separately.
pub(super) struct Merit {
    /// Number of lines per period.
    lines: usize,
    /// Number of elements per period.
    elements: usize,
    /// Number of moves of up to 16 bytes that the runs of a period take without a pattern.
    moves: usize,
}

impl Merit {
    /// Returns whether a pattern is faster than separate moves. In a pattern, each line costs a load,
    /// a permute and a store; when unpacking, the store has a mask. Without a pattern, a row joins
    /// two blocks of 8 bytes, or four blocks of 4 bytes, into one store, so such blocks take fewer
    /// stores than `moves`. But they still take more stores than `gather.rs`, and more than
    /// `lines.rs` if at least half of each line is data in whole words (`typepack-bench peers`, layouts
    /// `d1s2`, `d1s3`, `f1s2` and `f1s3`: 1 of every 2 or 3 doubles or floats).
    pub(super) fn pays<const PACK: bool>(&self, leaf: &Leaf) -> bool {
        match *leaf {
            Leaf::Block { bytes: 4 | 8 } if PACK => self.moves >= 4 * self.lines,
            Leaf::Block { bytes: bytes @ (4 | 8) } => {
                2 * bytes as usize * self.elements >= LINE * self.lines
            }
            Leaf::Block { bytes } => bytes < 8 && self.moves >= 7 * self.lines,
            Leaf::Window { .. } => self.moves > 4 * self.lines,
        }
    }

    /// Returns whether a row of `count` elements inside other levels is long enough for a pattern.
    /// The call for one row takes as long as a compiled kernel takes for some dozens of blocks
    /// (`typepack-bench peers`, calls of 128 B and 1 KiB).
    pub(super) fn fills_rows(&self, leaf: &Leaf, count: u64) -> bool {
        let least = match leaf {
            Leaf::Block { bytes: ..4 } => 32,
            Leaf::Block { bytes: 4..8 } => 64,
            Leaf::Block { .. } => 256,
            Leaf::Window { .. } => 16,
        };
        count.saturating_mul((self.moves / self.elements) as u64) >= least
    }
}

/// Returns the runs of a leaf as pairs of an offset and a number of bytes.
fn runs(leaf: &Leaf) -> impl Iterator<Item = (i64, u64)> + '_ {
    let (block, window) = match leaf {
        Leaf::Block { bytes } => (Some((0, *bytes)), None),
        Leaf::Window { runs } => (None, Some(runs.iter().map(|r| (r.offset, r.bytes)))),
    };
    block.into_iter().chain(window.into_iter().flatten())
}

/// Returns the [`Merit`] of a pattern for `leaf` on `level`. Returns `None` if there is no pattern:
/// because the level is a table, because its elements do not ascend without overlap, or because a run,
/// the stride or the period is too long.
pub(super) fn merit(level: &Level, leaf: &Leaf) -> Option<Merit> {
    let Level::Loop { stride, .. } = *level else { return None };
    let mut end = 0_i64;
    let mut moves = 0;
    for (offset, bytes) in runs(leaf) {
        if offset < end || bytes > 4096 {
            return None;
        }
        end = offset + bytes as i64;
        moves += bytes.div_ceil(16) as usize;
    }
    if stride < end || stride > Leaf::WINDOW_SPAN {
        return None;
    }
    let stride = stride as usize;
    let elements = period(stride);
    let lines = stride * elements / LINE;
    (lines <= STEPS).then_some(Merit { lines, elements, moves: moves * elements })
}

/// Returns the number of elements, `stride` bytes apart, after which the pattern of lines repeats.
/// The number is a power of two.
fn period(stride: usize) -> usize {
    LINE >> stride.trailing_zeros().min(LINE.trailing_zeros())
}

/// Returns the inverse of the odd number `odd` modulo `power`, a power of two.
fn inverse(odd: usize, power: usize) -> usize {
    // odd * odd is 1 modulo 8, so `odd` is its own inverse in the lowest 3 bits. Each round doubles
    // the number of correct bits, so two rounds give 12 bits. A modulus of at most 64 needs 6.
    let mut inverse = odd;
    for _ in 0..2 {
        inverse = inverse.wrapping_mul(2_usize.wrapping_sub(odd.wrapping_mul(inverse)));
    }
    inverse % power
}

/// [`Pattern::run`] for unpacking and for packing.
static RUN: [unsafe fn(&Pattern, *const u64, *mut u8, *mut u8); 2] =
    [Pattern::run::<false>, Pattern::run::<true>];

type UntilBuilt = unsafe fn(&LazyPattern, &Nest, *const u64, *mut u8, *mut u8);

/// [`LazyPattern::until_built`] for unpacking and for packing.
static UNTIL_BUILT: [UntilBuilt; 2] =
    [LazyPattern::until_built::<false>, LazyPattern::until_built::<true>];

impl LazyPattern {
    /// Makes a pattern that is not built yet. [`merit`] must have returned `merit` for its level and
    /// leaf; `row` is the row for the leaf.
    pub(super) fn new(row: Row, merit: &Merit) -> Self {
        // The cast loses no bits, because a leaf has at most 32 runs of at most 256 moves each.
        let moves = (merit.moves / merit.elements) as u32;
        Self { built: OnceLock::new(), left: AtomicU32::new(BUILD_AFTER), moves, row }
    }

    /// Makes a `LazyPattern` whose pattern is already built.
    pub(super) fn built(window: Pattern) -> Self {
        // `run` always finds the built pattern, so this row is never called.
        let row: Row = |_, _, _, _| unreachable!("`run` has called the row of a built pattern");
        Self { built: OnceLock::from(Box::new(window)), left: AtomicU32::new(0), moves: 0, row }
    }

    /// Moves all elements of one call. `words` are the parameters of the innermost level of `nest`.
    ///
    /// # Safety
    ///
    /// - The conditions of [`Row`] hold for the innermost level and the leaf of `nest`. `self` was
    ///   made for this level, this leaf and the direction `PACK`.
    /// - The CPU has AVX-512 F, BW, VL and VBMI, and BMI2.
    #[inline]
    pub(super) unsafe fn run<const PACK: bool>(
        &self,
        nest: &Nest,
        words: *const u64,
        mem: *mut u8,
        packed: *mut u8,
    ) {
        // SAFETY: the caller guarantees the conditions of `Row` for the innermost level of `nest`,
        // and the CPU's features. The built pattern `window` was made for this level and this
        // direction.
        unsafe {
            match self.built.get() {
                Some(window) => RUN[usize::from(PACK)](window, words, mem, packed),
                None => UNTIL_BUILT[usize::from(PACK)](self, nest, words, mem, packed),
            }
        }
    }

    /// Does the work of [`run`](Self::run) until the pattern is built. Builds the pattern once enough
    /// data has been moved.
    ///
    /// # Safety
    ///
    /// The conditions of [`run`](Self::run) hold.
    #[cold]
    unsafe fn until_built<const PACK: bool>(
        &self,
        nest: &Nest,
        words: *const u64,
        mem: *mut u8,
        packed: *mut u8,
    ) {
        // SAFETY: by the first condition of `Row`, `words` points to the three parameters of the
        // level. The first parameter is the count.
        let count = unsafe { *words };
        let moves = count.saturating_mul(self.moves.into());
        let left = self.left.load(Ordering::Relaxed);
        if moves > left.into() {
            // SAFETY: `build` makes the pattern for the innermost level of `nest` and for this
            // direction. The caller guarantees that the memory of the level is valid and that the CPU
            // has the features.
            return unsafe { self.build::<PACK>(nest).run::<PACK>(words, mem, packed) };
        }
        // The cast loses no bits, because `moves` is at most `left`, which is a 32-bit number.
        self.left.store(left - moves as u32, Ordering::Relaxed);
        let context = match &nest.leaf {
            Leaf::Block { bytes } => std::ptr::without_provenance(*bytes as usize),
            Leaf::Window { runs } => std::ptr::from_ref(runs).cast(),
        };
        // SAFETY: the caller guarantees the conditions of `Row`. `context` is what a row of this leaf
        // expects: the length of the block, or a pointer to the runs.
        unsafe { (self.row)(context, words, mem, packed) };
    }

    /// Returns the pattern for the innermost level and the leaf of `nest`. The first call builds the
    /// pattern.
    pub(super) fn build<const PACK: bool>(&self, nest: &Nest) -> &Pattern {
        self.built.get_or_init(|| {
            let level =
                nest.levels.last().expect("every nest with a pattern has at least one level");
            Box::new(Pattern::new::<PACK>(level, &nest.leaf, None))
        })
    }
}

/// Returns whether all basic elements that are byte-swapped are aligned to their width. If so, no
/// basic element lies in two lines of the pattern.
pub(super) fn can_swap(level: &Level, leaf: &Leaf, swap: &Swap) -> bool {
    let Level::Loop { stride, .. } = *level else { return false };
    runs(leaf).enumerate().all(|(i, (offset, _))| {
        let width = swap.width(i).bytes() as i64;
        offset % width == 0 && stride % width == 0
    })
}

impl Pattern {
    /// Builds the pattern for `leaf` on `level`. [`merit`] must have returned `Some` for `leaf` and
    /// `level`. If there is a swap, [`can_swap`] must have returned `true`.
    pub(super) fn new<const PACK: bool>(level: &Level, leaf: &Leaf, swap: Option<&Swap>) -> Self {
        let stride = match *level {
            Level::Loop { stride, .. } => stride as usize,
            Level::Table { .. } => unreachable!("`merit` has accepted a table"),
        };
        let width = |i| swap.map_or(1, |swap| swap.width(i).bytes());
        let stripe = |(i, (offset, bytes)): (usize, (i64, u64))| Stripe {
            offset: offset as usize,
            bytes: bytes as usize,
            width: width(i),
        };
        let runs: Box<[Stripe]> = runs(leaf).enumerate().map(stripe).collect();
        let bytes: usize = runs.iter().map(|run| run.bytes).sum();
        let in_words =
            runs.iter().all(|run| (run.offset | run.bytes) % WORDS == 0) && stride % WORDS == 0;
        let grain = if in_words { WORDS } else { BYTES };
        let few = Short::new::<PACK>(&runs, stride, grain);
        let registers = (REGISTERS * few.elements()).div_ceil(few.stretches());
        let many = registers.max(PERIODS * period(stride));
        Self { few, many, long: OnceLock::new(), runs, stride, bytes, grain }
    }

    fn long<const PACK: bool>(&self) -> &Long {
        self.long.get_or_init(|| {
            let Self { ref runs, stride, bytes, grain, .. } = *self;
            let elements = period(stride);
            let gather = if PACK { Gather::new(runs, stride) } else { None };
            // When packing, aligning is not worthwhile in two cases: if `Gather` takes the data of a
            // register from two stretches (then aligning saves no time and may cost time), and if
            // `Lines` has a period of one line.
            let aligns =
                !PACK || gather.as_ref().map_or(elements * stride > LINE, |f| f.parts() > 2);
            Long {
                method: match gather {
                    Some(gather) => Method::Gather(gather),
                    None => Method::Lines(Lines::new::<PACK>(runs, stride, elements, grain)),
                },
                elements,
                shift: elements.trailing_zeros(),
                inverse: inverse(stride * elements / LINE, elements),
                aligns,
                spare: LINE.div_ceil(bytes),
            }
        })
    }

    /// Moves the elements of one call. `words` are the parameters of the level; the first parameter
    /// is the count.
    ///
    /// # Safety
    ///
    /// - The conditions of [`Row`] hold, for the level, the leaf and the direction that
    ///   the pattern was made for.
    /// - The CPU has AVX-512 F, BW, VL and VBMI, and BMI2.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")]
    pub(super) unsafe fn run<const PACK: bool>(
        &self,
        words: *const u64,
        mem: *mut u8,
        packed: *mut u8,
    ) {
        // SAFETY: `words` points to the three parameters of the level, by the first condition of
        // `Row`. The first parameter is the count.
        let count = unsafe { *words } as usize;
        // SAFETY: `count` is the count of the level. So the caller guarantees that the memory and the
        // packed bytes of `count` elements are valid, and that the CPU has the features.
        unsafe {
            if count < self.many {
                self.few::<PACK>(count, mem, packed);
            } else {
                self.many::<PACK>(count, mem, packed);
            }
        }
    }

    /// Moves `count` elements with `short.rs`.
    ///
    /// # Safety
    ///
    /// The conditions of [`run`](Self::run) hold, for `count` elements.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")]
    #[inline]
    unsafe fn few<const PACK: bool>(&self, count: usize, mem: *mut u8, packed: *mut u8) {
        // SAFETY: the caller guarantees that `count` elements are valid on both sides. Each arm
        // passes the grain with which `self.few` was made.
        unsafe {
            match self.grain {
                WORDS => self.few.run::<PACK, WORDS>(count, mem, packed),
                _ => self.few.run::<PACK, BYTES>(count, mem, packed),
            }
        }
    }

    /// Moves `count` elements: whole periods with `long`, and the rest with `short.rs`.
    ///
    /// # Safety
    ///
    /// The conditions of [`run`](Self::run) hold, for `count` elements.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")]
    #[inline(never)]
    unsafe fn many<const PACK: bool>(&self, count: usize, mem: *mut u8, packed: *mut u8) {
        let long = self.long::<PACK>();
        let far = count.saturating_mul(self.stride + self.bytes) >= NEAR;
        let after = |elements: usize| {
            let packed = packed.wrapping_add(elements * self.bytes);
            (mem.wrapping_add(elements * self.stride), packed)
        };
        let mut done = 0;
        if long.aligns && count >= PERIODS_TO_ALIGN * long.elements {
            done = long.to_line(mem.addr());
            // SAFETY: `done` is less than the number of elements of a period, and `count` is at least
            // `PERIODS_TO_ALIGN` periods. So `done` is below `count`.
            unsafe { self.few::<PACK>(done, mem, packed) };
        }
        let (from, to) = after(done);
        done += match &long.method {
            // SAFETY: `from` and `to` are the addresses after `done` elements, so `count - done`
            // elements are left.
            Method::Gather(gather) => unsafe { gather.run(count - done, far, from, to) },
            Method::Lines(lines) => {
                let periods = (count - done).saturating_sub(long.spare) >> long.shift;
                // SAFETY: at `from` and `to`, at least `periods` whole periods and `long.spare`
                // further elements are left. The further elements have at least 64 packed bytes.
                unsafe { lines.run::<PACK>(periods, far, from, to) };
                periods << long.shift
            }
        };
        let (from, to) = after(done);
        // SAFETY: `from` and `to` lie after `done` elements of `count`, so `count - done` elements
        // are left.
        unsafe { self.few::<PACK>(count - done, from, to) };
    }
}

impl Long {
    /// Returns how many elements from `address` on come before the first element that begins at the
    /// start of a cache line. If no element begins exactly there, the element that begins closest
    /// after the start of a line counts instead.
    fn to_line(&self, address: usize) -> usize {
        // A unit is the greatest power of two, at most `LINE`, that divides the stride. So a line has
        // as many units as a period has elements.
        let units = (address % LINE) >> (LINE.trailing_zeros() - self.shift);
        ((self.elements - units) * self.inverse) & (self.elements - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Run;

    #[test]
    fn lines_are_reached() {
        for stride in 1..=200_usize {
            let level = Level::Loop { count: 1, stride: stride as i64 };
            let Some(merit) = merit(&level, &Leaf::Block { bytes: 1 }) else { continue };
            let window = Pattern::new::<true>(&level, &Leaf::Block { bytes: 1 }, None);
            let window = window.long::<true>();
            assert_eq!(merit.lines * LINE, window.elements * stride);
            for address in 0..130 {
                let first = window.to_line(address);
                assert!(first < window.elements);
                let unit = LINE / window.elements;
                assert!((address + first * stride) % LINE < unit, "{address} + {first} * {stride}");
            }
        }
    }

    #[test]
    fn what_is_no_window() {
        let level = |stride| Level::Loop { count: 9, stride };
        let runs = |runs: &[(i64, u64)]| Leaf::Window {
            runs: runs.iter().map(|&(offset, bytes)| Run { offset, bytes }).collect(),
        };
        let is = |stride, leaf: &Leaf| merit(&level(stride), leaf).is_some();
        assert!(is(16, &runs(&[(0, 1), (4, 4), (8, 8)])));
        assert!(is(8, &Leaf::Block { bytes: 8 }));
        assert!(!is(7, &Leaf::Block { bytes: 8 }));
        assert!(!is(0, &Leaf::Block { bytes: 8 }));
        assert!(!is(-16, &Leaf::Block { bytes: 8 }));
        assert!(!is(16, &runs(&[(0, 4), (2, 4)])));
        assert!(!is(16, &runs(&[(0, 1), (-4, 4)])));
        assert!(!is(12, &runs(&[(0, 1), (8, 8)])));
        assert!(!is(65, &Leaf::Block { bytes: 1 }));
        assert!(is(4096, &Leaf::Block { bytes: 1 }));
        assert!(!is(4160, &Leaf::Block { bytes: 1 }));
        let table = Level::Table { entries: crate::Table::new(&[0, 5]), scale: 8 };
        assert!(merit(&table, &Leaf::Block { bytes: 8 }).is_none());
    }
}
