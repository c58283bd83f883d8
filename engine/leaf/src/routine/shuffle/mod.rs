//! Packs dense patterns 16 bytes at a time with byte shuffles: `pshufb` on SSE4 and AVX2, `tbl` on NEON.
//!
//! `routine/mod.rs` makes a [`Shuffled`] for an innermost loop whose elements ascend without overlap, such as
//! small blocks at small strides or structs with gaps, if the machine has byte shuffles but not the masks
//! and permutes of `dense/`. Below, an *element* is one iteration of this loop. Three methods share the
//! work:
//!
//! - `lanes.rs` fills whole registers. A *lane* is 16 packed bytes, and a *window* is 16 bytes of memory. The
//!   data of a lane is shuffled out of a few windows;
//! - `blend.rs` also fills whole registers, on AVX2, if exactly a half, a third or a quarter of the bytes is
//!   data: it blends adjacent loads of 32 bytes into one register, and puts the data in order;
//! - `steps.rs` shuffles the data of one window to the front of a register and stores the whole register. The
//!   next store overwrites the bytes behind the data.
//!
//! A window also reads the gaps between its bytes of data. But no window begins before the first byte of data
//! of a call, or reaches beyond the last byte of data. Gaps are shorter than a page, so every page that is
//! read contains data. Gaps may change while they are read, because they may belong to another thread; the
//! shuffles drop these bytes.
//!
//! There is no unpacking here. Gaps must not be written, so each run needs a store of its own, and the rows
//! of `rows.rs` store single runs just as fast (`typepack-bench pack --isa avx2`).

#[cfg(target_arch = "x86_64")]
mod blend;
mod lanes;
mod steps;
mod vector;

use super::{Isa, Load, Row};
use crate::kernel::{Leaf, Level, Nest};
use lanes::Lanes;
use std::sync::OnceLock;
use steps::Steps;

/// Length of a lane of packed bytes and of a window of memory, in bytes.
const LANE: usize = 16;

/// Maximum distance from one element to the next, in bytes. It is the smallest size of a page, so no gap
/// contains a whole page.
const STRIDE: i64 = 4096;

/// A pattern is dense if at least one byte in this many bytes of memory is data. A window of a sparser
/// pattern could touch cache lines without data.
const DENSE: usize = 4;

/// A run of an element's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stripe {
    /// Offset from the element's first byte, in bytes.
    offset: usize,
    bytes: usize,
}

/// A description of a dense pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Pattern {
    /// The runs of an element, in ascending order.
    runs: Box<[Stripe]>,
    /// Distance from the start of one element to the start of the next, in bytes.
    stride: usize,
    /// Number of packed bytes per element.
    bytes: usize,
    /// Distance from the start of an element to the end of its data, in bytes.
    extent: usize,
}

/// 16 bytes of memory and the shuffle that moves their data.
#[repr(C, align(16))]
#[derive(Clone, Copy, Debug)]
struct Window {
    /// For each byte of the result, the index of its source byte in the window. The value [`NONE`] makes
    /// the byte 0.
    shuffle: [u8; LANE],
    /// Offset of the window from the element where its lane or period begins, in bytes.
    offset: isize,
    /// Offset of the window's data in the packed bytes of its lane or period.
    packed: usize,
}

/// An index that yields the byte 0, with `pshufb` and with `tbl`.
const NONE: u8 = 0x80;

/// Maximum number of windows that fill a lane.
const WINDOWS: usize = 4;

impl Pattern {
    /// Returns the pattern of `leaf` on `level`. Returns `None` if the level is a table, if the elements do
    /// not ascend without overlap, or if they lie so far apart that a gap could contain a page.
    fn of(level: &Level, leaf: &Leaf) -> Option<Self> {
        let Level::Loop { stride, .. } = *level else { return None };
        let runs: Vec<(i64, u64)> = match leaf {
            Leaf::Block { bytes } => vec![(0, *bytes)],
            Leaf::Window { runs } => runs.iter().map(|run| (run.offset, run.bytes)).collect(),
        };
        let mut end = 0;
        for &(offset, bytes) in &runs {
            if offset < end || bytes == 0 || bytes > STRIDE as u64 {
                return None;
            }
            end = offset + bytes as i64;
        }
        if stride < end || stride > STRIDE {
            return None;
        }
        let runs: Box<[Stripe]> = runs
            .into_iter()
            .map(|(offset, bytes)| Stripe { offset: offset as usize, bytes: bytes as usize })
            .collect();
        let bytes = runs.iter().map(|run| run.bytes).sum();
        Some(Self { runs, stride: stride as usize, bytes, extent: end as usize })
    }

    /// Returns the memory offset of each packed byte of `elements` elements.
    fn sources(&self, elements: usize) -> Vec<usize> {
        let element = |e: usize| {
            self.runs
                .iter()
                .flat_map(move |run| (0..run.bytes).map(move |i| e * self.stride + run.offset + i))
        };
        (0..elements).flat_map(element).collect()
    }

    /// Returns the number of moves of up to 16 bytes that the runs of an element take one by one.
    fn moves(&self) -> usize {
        let of = |bytes: usize| match bytes {
            16.. => bytes.div_ceil(LANE),
            _ => bytes.div_ceil(1 << bytes.ilog2()),
        };
        self.runs.iter().map(|run| of(run.bytes)).sum()
    }

    /// Returns the smallest number of elements whose data spans at least `reach` bytes.
    fn spanning(&self, reach: usize) -> usize {
        1 + reach.saturating_sub(self.extent).div_ceil(self.stride)
    }
}

/// Covers `sources` (ascending memory offsets) with windows, from the first source on. Returns two values for
/// each window: the memory offset at which it begins, which is its first source; and the range of its
/// sources, as indices of `sources`.
fn windows(sources: &[usize]) -> Vec<(usize, std::ops::Range<usize>)> {
    let mut list = Vec::new();
    let mut first = 0;
    while first < sources.len() {
        let start = sources[first];
        let end = sources.partition_point(|&at| at < start + LANE);
        list.push((start, first..end));
        first = end;
    }
    list
}

/// The elements of one call of a method.
#[derive(Clone, Copy)]
struct Call {
    count: usize,
    /// Address of the first element.
    mem: *const u8,
    /// Address of the first packed byte.
    packed: *mut u8,
}

/// The way in which a pattern is packed.
#[expect(
    clippy::large_enum_variant,
    reason = "stored inline, so that a call follows no further pointer"
)]
enum Method {
    Lanes(Lanes),
    Steps(Steps),
}

/// The kernel of a dense pattern, for packing.
pub(super) struct Shuffled {
    pattern: Pattern,
    isa: Isa,
    /// The tables of the method. They are built by the first call that has enough elements for them,
    /// because programs often make types with few elements and soon free them.
    method: OnceLock<Method>,
    /// Minimum number of elements in a call for which the method is used.
    least: usize,
    /// The work of the method, for the cost model.
    load: Load,
    /// The row that packs the elements of short calls, and the elements that a method leaves over.
    row: Row,
}

/// Returns whether this folder uses the byte shuffles of `isa`.
pub(super) fn has_shuffles(isa: Isa) -> bool {
    match isa {
        Isa::Portable => cfg!(target_arch = "aarch64"),
        Isa::Sse4 | Isa::Avx2 => true,
        Isa::Avx512 => false,
    }
}

impl Shuffled {
    /// Returns the kernel for packing the innermost level of `nest` with `isa`. Returns `None` if a row is
    /// expected to be as fast. `row` is the row of the level and the leaf.
    pub(super) fn new(nest: &Nest, isa: Isa, row: Row) -> Option<Self> {
        if !has_shuffles(isa) {
            return None;
        }
        let level = nest.levels.last()?;
        let pattern = Pattern::of(level, &nest.leaf)?;
        let (load, least) = Self::load(&pattern, isa)?;
        // A call may have more elements than the nest says if the level is the outermost one.
        if nest.levels.len() > 1 && level.count() < least as u64 {
            return None;
        }
        Some(Self { pattern, isa, method: OnceLock::new(), least, load, row })
    }

    /// Returns the work of the method for `pattern`, and the least number of elements in a call for which
    /// the method pays. Returns `None` if no method pays.
    fn load(pattern: &Pattern, isa: Isa) -> Option<(Load, usize)> {
        if pattern.bytes * DENSE < pattern.stride {
            return None;
        }
        if let Some(elements) = Lanes::elements(pattern) {
            #[cfg(target_arch = "x86_64")]
            let blended = if isa == Isa::Avx2 { blend::Blend::loads(pattern) } else { None };
            #[cfg(not(target_arch = "x86_64"))]
            let (blended, _) = (None::<usize>, isa);
            // A load of `blend.rs` serves two lanes.
            if let Some(loads) = blended {
                let load = Load { windows: loads as u32, elements: 2 * elements as u32 };
                return Some((load, 4 * elements));
            }
            let windows = windows(&pattern.sources(elements)).len();
            // Blocks of 8 bytes take one window each. Even then, windows are faster than rows, because they
            // fill whole registers.
            let pays = windows <= WINDOWS && (windows < elements || windows == 2);
            let load = Load { windows: windows as u32, elements: elements as u32 };
            return pays.then_some((load, 4 * elements));
        }
        let (windows, elements) = Steps::best(pattern)?;
        // A step takes a load, a shuffle and a store, and a move takes a load and a store. The lengths of the
        // moves are known at compile time. If there are few moves, they are as fast as steps.
        let load = Load { windows: windows as u32, elements: elements as u32 };
        (2 * windows <= pattern.moves() * elements).then_some((load, 4 * elements))
    }

    /// Returns the work of the kernel.
    pub(super) fn cost(&self) -> Load {
        self.load
    }

    /// Builds the tables at once.
    pub(super) fn build(&self) {
        self.method.get_or_init(|| self.built());
    }

    fn built(&self) -> Method {
        match Lanes::elements(&self.pattern) {
            Some(_) => Method::Lanes(Lanes::new(&self.pattern)),
            None => Method::Steps(Steps::new(&self.pattern)),
        }
    }

    /// Packs the elements of one call. `words` are the parameters of the innermost level of `nest`.
    ///
    /// # Safety
    ///
    /// - The conditions of [`Row`] hold, for packing the innermost level and the leaf of `nest`, for which
    ///   `self` was made.
    #[inline]
    pub(super) unsafe fn run(
        &self,
        nest: &Nest,
        words: *const u64,
        mem: *const u8,
        packed: *mut u8,
    ) {
        // SAFETY: by the first condition of `Row`, `words` points to the three parameters of the level.
        // The first parameter is the count.
        let count = unsafe { *words } as usize;
        let mut done = 0;
        if count >= self.least {
            let method = self.method.get_or_init(|| self.built());
            let call = Call { count, mem, packed };
            // SAFETY: `count` is the count of the level, so the caller guarantees that the memory and the
            // packed bytes of `count` elements are valid, and that the CPU has `self.isa`. The method was
            // built for this pattern, and `least` is at least what the method asks for.
            done = unsafe {
                match method {
                    Method::Lanes(lanes) => lanes.run(self.isa, &self.pattern, call),
                    Method::Steps(steps) => steps.run(self.isa, &self.pattern, call),
                }
            };
        }
        if done < count {
            let rest = [(count - done) as u64, self.pattern.stride as u64, 0];
            let context = match &nest.leaf {
                Leaf::Block { bytes } => std::ptr::without_provenance(*bytes as usize),
                Leaf::Window { runs } => std::ptr::from_ref(runs).cast(),
            };
            let mem = mem.wrapping_add(done * self.pattern.stride).cast_mut();
            let packed = packed.wrapping_add(done * self.pattern.bytes);
            // SAFETY: `rest` are the parameters of a loop over the elements from `done` on, which lie at
            // `mem` and `packed`; the caller guarantees that these are valid. `context` is what a row of
            // this leaf expects: the length of the block, or a pointer to the runs.
            unsafe { (self.row)(context, rest.as_ptr(), mem, packed) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Run;

    fn pattern(stride: i64, runs: &[(i64, u64)]) -> Option<Pattern> {
        let runs = runs.iter().map(|&(offset, bytes)| Run { offset, bytes }).collect();
        Pattern::of(&Level::Loop { count: 100, stride }, &Leaf::Window { runs })
    }

    #[test]
    fn what_is_a_pattern() {
        assert!(pattern(16, &[(0, 1), (4, 12)]).is_some());
        assert!(pattern(4096, &[(0, 1)]).is_some());
        assert!(pattern(4097, &[(0, 1)]).is_none());
        assert!(pattern(12, &[(0, 1), (8, 8)]).is_none());
        assert!(pattern(16, &[(4, 4), (0, 1)]).is_none());
        assert!(pattern(-16, &[(0, 1)]).is_none());
        assert!(pattern(0, &[(0, 1)]).is_none());
    }

    #[test]
    fn windows_cover_all_sources_and_begin_at_data() {
        for (stride, runs) in [
            (3, &[(0, 1)][..]),
            (6, &[(0, 2)]),
            (12, &[(0, 4)]),
            (16, &[(0, 1), (4, 12)]),
            (56, &[(0, 28), (32, 24)]),
        ] {
            let pattern = pattern(stride, runs).expect("these runs are a pattern");
            let sources = pattern.sources(4);
            let list = windows(&sources);
            let mut next = 0;
            for (start, range) in list {
                assert_eq!(range.start, next);
                assert_eq!(start, sources[range.start]);
                assert!(
                    sources[range.clone()].iter().all(|&at| (start..start + LANE).contains(&at))
                );
                next = range.end;
            }
            assert_eq!(next, sources.len());
            for reach in 1..200 {
                let least = pattern.spanning(reach);
                assert!((least - 1) * pattern.stride + pattern.extent >= reach);
                assert!(least == 1 || (least - 2) * pattern.stride + pattern.extent < reach);
            }
        }
    }

    #[test]
    fn patterns_that_pay() {
        let of = |isa, stride, runs: &[(i64, u64)]| {
            let (load, _) = Shuffled::load(&pattern(stride, runs)?, isa)?;
            Some((load.windows, load.elements))
        };
        let load = |stride, runs: &[(i64, u64)]| of(Isa::Portable, stride, runs);
        assert_eq!(load(2, &[(0, 1)]), Some((2, 16)));
        assert_eq!(load(3, &[(0, 1)]), Some((3, 16)));
        assert_eq!(load(12, &[(0, 4)]), Some((2, 4)));
        assert_eq!(load(7, &[(0, 2)]), Some((3, 8)));
        #[cfg(target_arch = "x86_64")]
        {
            assert_eq!(of(Isa::Sse4, 2, &[(0, 1)]), Some((2, 16)));
            assert_eq!(of(Isa::Sse4, 12, &[(0, 4)]), Some((2, 4)));
            assert_eq!(of(Isa::Avx2, 2, &[(0, 1)]), Some((2, 32)));
            assert_eq!(of(Isa::Avx2, 3, &[(0, 1)]), Some((3, 32)));
            assert_eq!(of(Isa::Avx2, 12, &[(0, 4)]), Some((3, 8)));
            assert_eq!(of(Isa::Avx2, 7, &[(0, 2)]), Some((3, 8)));
        }
        assert_eq!(load(56, &[(0, 28), (32, 24)]), None);
        assert_eq!(load(64, &[(0, 8)]), None);
        assert_eq!(load(16, &[(0, 1), (4, 12)]), Some((1, 1)));
        assert_eq!(load(100, &[(0, 1)]), None);
    }
}
