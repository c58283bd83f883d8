//! Periodic windows: dense patterns of short runs moved a register at a time, with byte permutes
//! and masks (AVX-512 with VBMI).
//!
//! Built by `mod.rs` for innermost loops whose elements ascend without overlap: structs with gaps,
//! small blocks at small strides. Three forms share the work:
//!
//! - `short.rs`: as many elements as 64 bytes hold, from wherever they begin; for short calls, and
//!   for the ends of long ones;
//! - `lines.rs`: a cache line of memory at a time;
//! - `gather.rs`: packing two to four lines into one register, where elements fill it.
//!
//! With a [`Swap`] the permutes turn elements round as well, for nothing: as long as no element lies
//! in two of their registers ([`can_swap`]).
//!
//! Where it pays and enough elements are to be moved, elements are taken off the front until lines
//! of the pattern are lines of memory: a 64-byte access that crosses cache lines costs two.
//!
//! A pattern is made once its window has moved a little ([`LazyPattern`]): many types never do.

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

/// Most lines of a period. Longer ones come from odd strides of many bytes, where a line holds few
/// elements and moves of 16 bytes do as well.
const STEPS: usize = 64;

/// Periods that a call must move before it aligns itself.
const PERIODS_TO_ALIGN: usize = 8;

/// Registers that the fewest elements fill for which anything but `short.rs` pays.
const REGISTERS: usize = 16;

/// Moves of up to 16 bytes after which a pattern is made: before, making it takes longer than it
/// could have saved. Structs of a few members are often made, used ten times and freed
/// (`typepack-bench peers --only storm`).
const BUILD_AFTER: u32 = 256;

/// Fewest periods for which their permutes are worth loading.
const PERIODS: usize = 4;

/// Bytes of both sides from which on lines are expected in the second-level cache: most of a first
/// level of 48 KiB, all of one of 32 KiB.
const NEAR: usize = 40 << 10;

/// A window whose pattern is made when it has had something to do; run by run until then.
pub(super) struct LazyPattern {
    built: OnceLock<Box<Pattern>>,
    /// Moves that are left to do before. Threads that pack at the same time may lose what another
    /// has subtracted: then it takes a little longer.
    left: AtomicU32,
    /// Moves of an element.
    moves: u32,
    /// Executes the level until then.
    row: Row,
}

/// A compiled pattern, for one direction.
pub(super) struct Pattern {
    few: Short,
    /// Fewest elements for `long`.
    many: usize,
    /// Made at the first call that needs it: types of few elements are made and freed often.
    long: OnceLock<Long>,
    /// The pattern, ascending.
    runs: Box<[Stripe]>,
    /// Bytes between elements.
    stride: usize,
    /// Packed bytes of an element.
    bytes: usize,
    /// Bytes that masks count in.
    grain: usize,
}

/// A run of an element's data.
#[derive(Clone, Copy)]
pub(super) struct Stripe {
    /// From the element's first byte, in bytes.
    pub(super) offset: usize,
    pub(super) bytes: usize,
    /// Bytes that are turned round together: a power of two that divides the length and, if it is not
    /// 1, the offset and the stride.
    pub(super) width: usize,
}

impl Stripe {
    /// Behind the last byte.
    pub(super) fn end(&self) -> usize {
        self.offset + self.bytes
    }

    /// Where byte `i` of the run, which is packed byte `nth` in native order, is packed.
    pub(super) fn swapped(&self, nth: usize, i: usize) -> usize {
        let within = i % self.width;
        nth - within + (self.width - 1 - within)
    }
}

/// How many elements are moved.
struct Long {
    method: Method,
    /// Elements of a period of lines, `1 << shift`.
    elements: usize,
    shift: u32,
    /// Elements that move the address by the greatest power of two that divides the stride, modulo
    /// a line.
    inverse: usize,
    /// Aligning pays.
    aligns: bool,
    /// Elements that are left to `few` behind whole periods: one, so that gaps behind data are gaps
    /// between data, and as many as fill the register that may reach past a step's own bytes.
    spare: usize,
}

enum Method {
    Lines(Lines),
    Gather(Gather),
}

/// What a window does compared with moving each run by itself.
pub(super) struct Merit {
    /// Lines of a period.
    lines: usize,
    /// Elements of a period.
    elements: usize,
    /// Moves of up to 16 bytes that the runs of a period take.
    moves: usize,
}

impl Merit {
    /// Whether lines beat moves. A line costs a load, a permute and a store, the latter under a mask
    /// when unpacking; blocks of 8 bytes go in pairs otherwise, and blocks of 4 bytes in fours, so
    /// that they take fewer stores than moves, but neither as few as folding takes, nor as few as
    /// lines half full of whole words (`typepack-bench peers`, d1s2, d1s3, f1s2, f1s3).
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

    /// Whether rows of `count` elements are long enough inside other levels: a call for a row costs
    /// what a compiled kernel needs for some dozens of blocks (as above, 128 B and 1 KiB).
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

/// The runs of a leaf as (offset, bytes).
fn runs(leaf: &Leaf) -> impl Iterator<Item = (i64, u64)> + '_ {
    let (block, window) = match leaf {
        Leaf::Block { bytes } => (Some((0, *bytes)), None),
        Leaf::Window { runs } => (None, Some(runs.iter().map(|r| (r.offset, r.bytes)))),
    };
    block.into_iter().chain(window.into_iter().flatten())
}

/// Whether `leaf` at a constant stride is a window, and what that brings.
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

/// Elements `stride` bytes apart until lines repeat: a power of two.
fn period(stride: usize) -> usize {
    LINE >> stride.trailing_zeros().min(LINE.trailing_zeros())
}

/// The inverse of the odd number `odd` modulo `power`, a power of two.
fn inverse(odd: usize, power: usize) -> usize {
    // odd * odd is 1 modulo 8, and each round doubles the number of right bits; 64 need two.
    let mut inverse = odd;
    for _ in 0..2 {
        inverse = inverse.wrapping_mul(2_usize.wrapping_sub(odd.wrapping_mul(inverse)));
    }
    inverse % power
}

impl LazyPattern {
    /// A window for which [`merit`] has said yes, with the row for its leaf.
    pub(super) fn new(row: Row, merit: &Merit) -> Self {
        // A leaf has at most 32 runs of 256 moves.
        let moves = (merit.moves / merit.elements) as u32;
        Self { built: OnceLock::new(), left: AtomicU32::new(BUILD_AFTER), moves, row }
    }

    /// A window whose pattern is there.
    pub(super) fn built(window: Pattern) -> Self {
        // Nothing is left to be moved in another way.
        let row: Row = |_, _, _, _| unreachable!("the pattern is there");
        Self { built: OnceLock::from(Box::new(window)), left: AtomicU32::new(0), moves: 0, row }
    }

    /// Moves elements that the parameters `words` of the innermost level of `nest` describe.
    ///
    /// # Safety
    ///
    /// - As for [`Row`], with the innermost level and the leaf of `nest`, which is what the window was
    ///   made for, as well as the direction.
    /// - The CPU has AVX-512 F, BW, VL and VBMI, and BMI2.
    #[inline]
    pub(super) unsafe fn run<const PACK: bool>(
        &self,
        nest: &Nest,
        words: *const u64,
        mem: *mut u8,
        packed: *mut u8,
    ) {
        // SAFETY: our contract.
        unsafe {
            match self.built.get() {
                Some(window) => window.run::<PACK>(words, mem, packed),
                None => self.until_built::<PACK>(nest, words, mem, packed),
            }
        }
    }

    /// [`run`](Self::run) until the pattern is made.
    ///
    /// # Safety
    ///
    /// As for [`run`](Self::run).
    #[cold]
    unsafe fn until_built<const PACK: bool>(
        &self,
        nest: &Nest,
        words: *const u64,
        mem: *mut u8,
        packed: *mut u8,
    ) {
        // SAFETY: the count is the level's first word.
        let count = unsafe { *words };
        let moves = count.saturating_mul(self.moves.into());
        let left = self.left.load(Ordering::Relaxed);
        if moves > left.into() {
            // SAFETY: our contract.
            return unsafe { self.build::<PACK>(nest).run::<PACK>(words, mem, packed) };
        }
        // No more than what is left, which has 32 bits.
        self.left.store(left - moves as u32, Ordering::Relaxed);
        let context = match &nest.leaf {
            Leaf::Block { bytes } => std::ptr::without_provenance(*bytes as usize),
            Leaf::Window { runs } => std::ptr::from_ref(runs).cast(),
        };
        // SAFETY: our contract; the context is what a row of this leaf takes.
        unsafe { (self.row)(context, words, mem, packed) };
    }

    /// The pattern for the innermost level and the leaf of `nest`.
    pub(super) fn build<const PACK: bool>(&self, nest: &Nest) -> &Pattern {
        self.built.get_or_init(|| {
            let level = nest.levels.last().expect("a nest has a level");
            Box::new(Pattern::new::<PACK>(level, &nest.leaf, None))
        })
    }
}

/// Whether all elements that are turned round are aligned to their width, so that none lies in two
/// lines of the pattern.
pub(super) fn can_swap(level: &Level, leaf: &Leaf, swap: &Swap) -> bool {
    let Level::Loop { stride, .. } = *level else { return false };
    runs(leaf).enumerate().all(|(i, (offset, _))| {
        let width = swap.width(i).bytes() as i64;
        offset % width == 0 && stride % width == 0
    })
}

impl Pattern {
    /// The pattern of `leaf` on `level`, for which [`merit`] has said yes, and [`can_swap`] if there
    /// is a swap.
    pub(super) fn new<const PACK: bool>(level: &Level, leaf: &Leaf, swap: Option<&Swap>) -> Self {
        let stride = match *level {
            Level::Loop { stride, .. } => stride as usize,
            Level::Table { .. } => unreachable!("merit() takes loops only"),
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
            // Packing from two lines gained nothing by aligning these, or lost.
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

    /// Moves elements that the level's parameters `words` describe: count, stride.
    ///
    /// # Safety
    ///
    /// - As for [`Row`](super::Row), with the level and leaf that the window was made of, for the
    ///   direction that it was made for.
    /// - The CPU has AVX-512 F, BW, VL and VBMI, and BMI2.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")]
    pub(super) unsafe fn run<const PACK: bool>(
        &self,
        words: *const u64,
        mem: *mut u8,
        packed: *mut u8,
    ) {
        // SAFETY: the count is the level's first word.
        let count = unsafe { *words } as usize;
        // SAFETY: our contract.
        unsafe {
            if count < self.many {
                self.few::<PACK>(count, mem, packed);
            } else {
                self.many::<PACK>(count, mem, packed);
            }
        }
    }

    /// Moves `count` elements by `short.rs`.
    ///
    /// # Safety
    ///
    /// As for [`run`](Self::run), for so many elements.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")]
    #[inline]
    unsafe fn few<const PACK: bool>(&self, count: usize, mem: *mut u8, packed: *mut u8) {
        // SAFETY: our contract; the grain is the one it was made with.
        unsafe {
            match self.grain {
                WORDS => self.few.run::<PACK, WORDS>(count, mem, packed),
                _ => self.few.run::<PACK, BYTES>(count, mem, packed),
            }
        }
    }

    /// Moves `count` elements, whole periods of which in the method for many.
    ///
    /// # Safety
    ///
    /// As for [`run`](Self::run), for so many elements.
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
            // SAFETY: fewer elements than a period, and no more than there are.
            unsafe { self.few::<PACK>(done, mem, packed) };
        }
        let (from, to) = after(done);
        done += match &long.method {
            // SAFETY: the elements that are left.
            Method::Gather(gather) => unsafe { gather.run(count - done, far, from, to) },
            Method::Lines(lines) => {
                let periods = (count - done).saturating_sub(long.spare) >> long.shift;
                // SAFETY: so many whole periods, with an element and 64 packed bytes after them.
                unsafe { lines.run::<PACK>(periods, far, from, to) };
                periods << long.shift
            }
        };
        let (from, to) = after(done);
        // SAFETY: the rest.
        unsafe { self.few::<PACK>(count - done, from, to) };
    }
}

impl Long {
    /// How many elements from `address` on until one begins a line, as far as elements can.
    fn to_line(&self, address: usize) -> usize {
        // Addresses change by multiples of `unit`, of which a line has as many as a period elements.
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
