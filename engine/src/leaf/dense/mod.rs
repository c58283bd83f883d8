//! Periodic windows: dense patterns of short runs, moved one register at a time with byte permutes
//! and masks (AVX-512 with VBMI).
//!
//! `leaf/mod.rs` builds a pattern for an innermost loop whose elements ascend without overlap:
//! structs with gaps, small blocks at small strides. Three files share the work:
//!
//! - `short.rs` moves as many elements as 64 bytes hold, at any alignment; for short calls, and for
//!   the ends of long ones;
//! - `lines.rs` moves one cache line of memory at a time;
//! - `gather.rs` packs two to four lines into one register, for elements that fill the register.
//!
//! With a [`Swap`], the permutes also reverse the bytes of the elements, at no extra cost. This
//! works if no element crosses two registers ([`can_swap`]).
//!
//! If aligning pays and the call moves enough elements, `short.rs` first moves elements until lines
//! of the pattern begin at lines of memory: a 64-byte access that crosses cache lines costs as much
//! as two accesses.
//!
//! A pattern is built only after its window has moved some data ([`LazyPattern`]): the windows of
//! many types never do.

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

/// Maximum number of lines of a period. Longer periods come from odd strides of many bytes: then a
/// line holds few elements, and moves of 16 bytes are as fast.
const STEPS: usize = 64;

/// Minimum number of periods in a call for which aligning pays.
const PERIODS_TO_ALIGN: usize = 8;

/// Minimum number of full registers in a call for which the other methods beat `short.rs`.
const REGISTERS: usize = 16;

/// Number of moves of up to 16 bytes after which a pattern is built. Before that, building the
/// pattern takes longer than the pattern could have saved. Programs often make structs of a few
/// members, use them ten times and free them (`typepack-bench peers --only storm`).
const BUILD_AFTER: u32 = 256;

/// Minimum number of periods for which it pays to load their permutes.
const PERIODS: usize = 4;

/// If both sides together have at least this many bytes, lines are expected in the second-level
/// cache. The limit is most of a first-level cache of 48 KiB, or all of a first-level cache of 32
/// KiB.
const NEAR: usize = 40 << 10;

/// A window that moves run by run until it has moved enough data, and then builds its pattern.
pub(super) struct LazyPattern {
    built: OnceLock<Box<Pattern>>,
    /// Moves that are left before the pattern is built. If two threads subtract at the same time, one
    /// subtraction may be lost. Then the pattern is built a little later.
    left: AtomicU32,
    /// Number of moves per element.
    moves: u32,
    /// Executes the level until the pattern is built.
    row: Row,
}

/// A compiled pattern, for one direction.
pub(super) struct Pattern {
    few: Short,
    /// Minimum number of elements for which `long` is used.
    many: usize,
    /// The first call that needs this form builds it, because types with few elements are made and
    /// freed often.
    long: OnceLock<Long>,
    /// The runs of an element, ascending.
    runs: Box<[Stripe]>,
    /// Bytes between elements.
    stride: usize,
    /// Packed bytes of an element.
    bytes: usize,
    /// Bytes per bit of a mask.
    grain: usize,
}

/// A run of an element's data.
#[derive(Clone, Copy)]
pub(super) struct Stripe {
    /// Offset from the element's first byte, in bytes.
    pub(super) offset: usize,
    pub(super) bytes: usize,
    /// Bytes that are reversed together: a power of two that divides the length. If the width is
    /// not 1, it also divides the offset and the stride.
    pub(super) width: usize,
}

impl Stripe {
    /// Returns the offset after the last byte.
    pub(super) fn end(&self) -> usize {
        self.offset + self.bytes
    }

    /// Returns the packed position of byte `i` of the run, whose position in native order is `nth`.
    pub(super) fn swapped(&self, nth: usize, i: usize) -> usize {
        let within = i % self.width;
        nth - within + (self.width - 1 - within)
    }
}

/// The method for many elements.
struct Long {
    method: Method,
    /// Elements of a period of lines, `1 << shift`.
    elements: usize,
    shift: u32,
    /// Number of elements whose total stride, modulo a line, is the greatest power of two that
    /// divides the stride.
    inverse: usize,
    /// Whether aligning pays.
    aligns: bool,
    /// Number of elements that `few` moves after the whole periods. There is at least one such
    /// element, so that a gap after the last whole period lies between elements. These elements
    /// also fill the register that a step may access past its own bytes.
    spare: usize,
}

enum Method {
    Lines(Lines),
    Gather(Gather),
}

/// The benefit of a pattern over moving each run separately.
pub(super) struct Merit {
    /// Lines of a period.
    lines: usize,
    /// Elements of a period.
    elements: usize,
    /// Moves of up to 16 bytes that the runs of a period take.
    moves: usize,
}

impl Merit {
    /// Returns whether lines beat moves. A line costs a load, a permute and a store; when unpacking,
    /// the store has a mask. Without a pattern, rows move blocks of 8 bytes in pairs and blocks of 4
    /// bytes in fours. So these blocks take fewer stores than moves. But they take more stores than
    /// gathering, and more than lines that are half full of whole words (`typepack-bench peers`,
    /// d1s2, d1s3, f1s2, f1s3).
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

    /// Returns whether rows of `count` elements are long enough inside other levels. The call for a
    /// row takes as long as a compiled kernel takes for some dozens of blocks (`typepack-bench
    /// peers`, 128 B and 1 KiB).
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

/// Returns the runs of a leaf as (offset, bytes).
fn runs(leaf: &Leaf) -> impl Iterator<Item = (i64, u64)> + '_ {
    let (block, window) = match leaf {
        Leaf::Block { bytes } => (Some((0, *bytes)), None),
        Leaf::Window { runs } => (None, Some(runs.iter().map(|r| (r.offset, r.bytes)))),
    };
    block.into_iter().chain(window.into_iter().flatten())
}

/// Returns the benefit of a pattern for `leaf` on `level`, or `None` if the two form no window.
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

/// Returns the number of elements, `stride` bytes apart, after which lines repeat: a power of two.
fn period(stride: usize) -> usize {
    LINE >> stride.trailing_zeros().min(LINE.trailing_zeros())
}

/// Returns the inverse of the odd number `odd` modulo `power`, a power of two.
fn inverse(odd: usize, power: usize) -> usize {
    // odd * odd is 1 modulo 8, and each round doubles the number of correct bits. 64 needs two
    // rounds.
    let mut inverse = odd;
    for _ in 0..2 {
        inverse = inverse.wrapping_mul(2_usize.wrapping_sub(odd.wrapping_mul(inverse)));
    }
    inverse % power
}

impl LazyPattern {
    /// Makes a window for which [`merit`] returned `Some`, with the row for its leaf.
    pub(super) fn new(row: Row, merit: &Merit) -> Self {
        // A leaf has at most 32 runs of 256 moves.
        let moves = (merit.moves / merit.elements) as u32;
        Self { built: OnceLock::new(), left: AtomicU32::new(BUILD_AFTER), moves, row }
    }

    /// Makes a window whose pattern is already built.
    pub(super) fn built(window: Pattern) -> Self {
        // `run` always finds the pattern, so it never calls the row.
        let row: Row = |_, _, _, _| unreachable!("`run` has called the row of a built pattern");
        Self { built: OnceLock::from(Box::new(window)), left: AtomicU32::new(0), moves: 0, row }
    }

    /// Moves the elements that `words` describes, the parameters of the innermost level of `nest`.
    ///
    /// # Safety
    ///
    /// - The conditions of [`Row`] hold for the innermost level and the leaf of `nest`. The window
    ///   was made for them and for the direction `PACK`.
    /// - The CPU has AVX-512 F, BW, VL and VBMI, and BMI2.
    #[inline]
    pub(super) unsafe fn run<const PACK: bool>(
        &self,
        nest: &Nest,
        words: *const u64,
        mem: *mut u8,
        packed: *mut u8,
    ) {
        // SAFETY: the caller guarantees the conditions of `Row` for `nest`'s innermost level and
        // the CPU's features; `window` was built for this level and direction.
        unsafe {
            match self.built.get() {
                Some(window) => window.run::<PACK>(words, mem, packed),
                None => self.until_built::<PACK>(nest, words, mem, packed),
            }
        }
    }

    /// Does what [`run`](Self::run) does while there is no pattern.
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
        // SAFETY: `words` points to the level's three parameters (first condition of `Row`), of
        // which the first is the count.
        let count = unsafe { *words };
        let moves = count.saturating_mul(self.moves.into());
        let left = self.left.load(Ordering::Relaxed);
        if moves > left.into() {
            // SAFETY: `build` makes the pattern of `nest`'s innermost level for this direction; the
            // caller guarantees the level's memory and the CPU's features.
            return unsafe { self.build::<PACK>(nest).run::<PACK>(words, mem, packed) };
        }
        // `moves` is at most `left`, which has 32 bits.
        self.left.store(left - moves as u32, Ordering::Relaxed);
        let context = match &nest.leaf {
            Leaf::Block { bytes } => std::ptr::without_provenance(*bytes as usize),
            Leaf::Window { runs } => std::ptr::from_ref(runs).cast(),
        };
        // SAFETY: the caller guarantees the conditions of `Row`; `context` is the value that a row
        // of this leaf takes (the block's length, or the runs).
        unsafe { (self.row)(context, words, mem, packed) };
    }

    /// Returns the pattern for the innermost level and the leaf of `nest`; builds it if necessary.
    pub(super) fn build<const PACK: bool>(&self, nest: &Nest) -> &Pattern {
        self.built.get_or_init(|| {
            let level = nest.levels.last().expect("a nest should have a level");
            Box::new(Pattern::new::<PACK>(level, &nest.leaf, None))
        })
    }
}

/// Returns whether all elements that are byte-swapped are aligned to their width, so that no
/// element lies in two lines of the pattern.
pub(super) fn can_swap(level: &Level, leaf: &Leaf, swap: &Swap) -> bool {
    let Level::Loop { stride, .. } = *level else { return false };
    runs(leaf).enumerate().all(|(i, (offset, _))| {
        let width = swap.width(i).bytes() as i64;
        offset % width == 0 && stride % width == 0
    })
}

impl Pattern {
    /// Builds the pattern of `leaf` on `level`. [`merit`] must have returned `Some` for them, and
    /// with a swap [`can_swap`] must have returned `true`.
    pub(super) fn new<const PACK: bool>(level: &Level, leaf: &Leaf, swap: Option<&Swap>) -> Self {
        let stride = match *level {
            Level::Loop { stride, .. } => stride as usize,
            Level::Table { .. } => unreachable!("merit() has taken a table"),
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
            // If a register is packed from two lines, aligning saves no time or costs time.
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

    /// Moves the elements that `words` describes: the level's count and stride.
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
        // SAFETY: `words` points to the level's three parameters (first condition of `Row`), of
        // which the first is the count.
        let count = unsafe { *words } as usize;
        // SAFETY: `count` is the level's count, so the caller guarantees memory and packed bytes of
        // `count` elements, and the CPU's features.
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
        // SAFETY: the caller guarantees `count` elements on both sides; each arm passes the grain
        // that `self.few` was made with.
        unsafe {
            match self.grain {
                WORDS => self.few.run::<PACK, WORDS>(count, mem, packed),
                _ => self.few.run::<PACK, BYTES>(count, mem, packed),
            }
        }
    }

    /// Moves `count` elements: whole periods with the method for many elements, the rest with
    /// `short.rs`.
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
            // SAFETY: `done` is less than a period, and `count` is at least `PERIODS_TO_ALIGN`
            // periods.
            unsafe { self.few::<PACK>(done, mem, packed) };
        }
        let (from, to) = after(done);
        done += match &long.method {
            // SAFETY: `from` and `to` are the two addresses after `done` of the `count` elements.
            Method::Gather(gather) => unsafe { gather.run(count - done, far, from, to) },
            Method::Lines(lines) => {
                let periods = (count - done).saturating_sub(long.spare) >> long.shift;
                // SAFETY: `periods` whole periods are left from `from` and `to` on, and at least
                // `long.spare` elements after them, whose packed bytes are 64 or more.
                unsafe { lines.run::<PACK>(periods, far, from, to) };
                periods << long.shift
            }
        };
        let (from, to) = after(done);
        // SAFETY: `from` and `to` are the addresses after `done` elements, so `count - done` are
        // left.
        unsafe { self.few::<PACK>(count - done, from, to) };
    }
}

impl Long {
    /// Returns the number of elements from `address` on that lie before the first element at the
    /// start of a line. If no element starts exactly there, the closest one after it counts.
    fn to_line(&self, address: usize) -> usize {
        // Addresses change by multiples of a unit. A line has as many units as a period has
        // elements.
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
