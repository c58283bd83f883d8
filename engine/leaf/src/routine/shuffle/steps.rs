//! Packs one window after the other, with overlapping stores.
//!
//! `mod.rs` uses this method for patterns in which no two or more elements fill a lane of 16 packed bytes
//! exactly, such as most structs with gaps. A *period* is a small number of elements. A step loads a window
//! of the period, moves its data to the front of the register, and stores the whole register. The next step
//! overwrites the bytes behind the data. The last step reads and writes beyond its data, so a few elements
//! (`spare`) must follow the last period; a row packs these elements.

use super::vector::{Register, Vector};
use super::{Call, Isa, LANE, NONE, Pattern, Window, windows};

/// Maximum number of elements of a period.
const PERIOD: usize = 4;

/// A pattern that is packed window by window.
pub(super) struct Steps {
    steps: Box<[Window]>,
    /// Number of elements per period.
    elements: usize,
    /// Number of elements that must follow the last period.
    spare: usize,
}

impl Steps {
    /// Returns two numbers for the period that has the fewest windows per element: its number of windows, and
    /// its number of elements. Returns `None` if the elements are so long that no shuffle is worthwhile.
    pub(super) fn best(pattern: &Pattern) -> Option<(usize, usize)> {
        if pattern.extent > 16 * LANE {
            return None;
        }
        let mut best: Option<(usize, usize)> = None;
        for elements in 1..=PERIOD {
            let steps = windows(&pattern.sources(elements)).len();
            if best.is_none_or(|(least, of)| steps * of < least * elements) {
                best = Some((steps, elements));
            }
        }
        best
    }

    /// Builds the tables. [`best`](Self::best) must have returned `Some` for the pattern.
    pub(super) fn new(pattern: &Pattern) -> Self {
        let (_, elements) =
            Self::best(pattern).expect("`best` has returned a period for this pattern");
        let sources = pattern.sources(elements);
        let steps: Box<[Window]> = windows(&sources)
            .into_iter()
            .map(|(start, range)| {
                let mut shuffle = [NONE; LANE];
                for (to, &at) in shuffle.iter_mut().zip(&sources[range.clone()]) {
                    *to = (at - start) as u8;
                }
                Window { shuffle, offset: start as isize, packed: range.start }
            })
            .collect();
        let end = steps.last().map_or((0, 0), |step| (step.offset as usize, step.packed));
        // The last step reads 16 bytes of memory and writes 16 packed bytes.
        let memory = pattern.spanning(end.0 + LANE);
        let packed = (end.1 + LANE).div_ceil(pattern.bytes);
        Self { steps, elements, spare: memory.max(packed).saturating_sub(elements) }
    }

    /// Packs whole periods of the `count` elements of `call`, and returns the number of elements packed. The
    /// packed bytes of the other elements may have been overwritten.
    ///
    /// # Safety
    ///
    /// - `self` was made for `pattern`.
    /// - The memory from the first to the last byte of data of `count` elements is valid for reads, apart
    ///   from pages without data. `packed` is valid for writes of the packed bytes of these elements.
    /// - The CPU has the instruction set `isa`, which has byte shuffles.
    pub(super) unsafe fn run(&self, isa: Isa, pattern: &Pattern, call: Call) -> usize {
        let Call { count, mem, packed } = call;
        let periods = count.saturating_sub(self.spare) / self.elements;
        let _ = isa;
        // SAFETY: at least `spare` elements follow `periods` periods, so each step reads within the memory of
        // `count` elements and writes within their packed bytes. The caller guarantees that these are valid,
        // and that the CPU has byte shuffles.
        unsafe {
            #[cfg(target_arch = "x86_64")]
            if isa == Isa::Avx2 {
                self.avx2(pattern, periods, mem, packed);
                return periods * self.elements;
            }
            self.baseline(pattern, periods, mem, packed);
        }
        periods * self.elements
    }

    /// # Safety
    ///
    /// - The conditions of [`sized`](Self::sized) hold.
    #[cfg_attr(target_arch = "x86_64", target_feature(enable = "ssse3"))]
    #[cfg_attr(target_arch = "aarch64", target_feature(enable = "neon"))]
    unsafe fn baseline(&self, pattern: &Pattern, periods: usize, mem: *const u8, packed: *mut u8) {
        // SAFETY: the caller guarantees the conditions of `sized`.
        unsafe { self.sized::<Register>(pattern, periods, mem, packed) }
    }

    /// Does what [`baseline`](Self::baseline) does, with the instructions of AVX2, which have three
    /// operands.
    ///
    /// # Safety
    ///
    /// - The conditions of [`sized`](Self::sized) hold; the CPU has AVX2.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    unsafe fn avx2(&self, pattern: &Pattern, periods: usize, mem: *const u8, packed: *mut u8) {
        // SAFETY: the caller guarantees the conditions of `sized`.
        unsafe { self.sized::<Register>(pattern, periods, mem, packed) }
    }

    /// Packs `periods` periods.
    ///
    /// # Safety
    ///
    /// - The windows of the periods are valid for reads, and the 16 packed bytes from the first packed byte
    ///   of each step on are valid for writes.
    /// - The CPU has the instruction set of `V`.
    #[inline(always)]
    unsafe fn sized<V: Vector>(
        &self,
        pattern: &Pattern,
        periods: usize,
        mem: *const u8,
        packed: *mut u8,
    ) {
        let pitch = (pattern.stride * self.elements, pattern.bytes * self.elements);
        // SAFETY: the caller guarantees the conditions of `held` and of `listed`, which are those of this
        // function. Each arm passes the number of steps.
        unsafe {
            match self.steps.len() {
                1 => held::<V, 1>(&self.steps, pitch, periods, mem, packed),
                2 => held::<V, 2>(&self.steps, pitch, periods, mem, packed),
                3 => held::<V, 3>(&self.steps, pitch, periods, mem, packed),
                4 => held::<V, 4>(&self.steps, pitch, periods, mem, packed),
                _ => listed::<V>(&self.steps, pitch, periods, mem, packed),
            }
        }
    }
}

/// Number of periods that `held` packs per iteration of its loop.
const UNROLLED: usize = 4;

/// Packs `periods` periods of `N` steps, whose shuffles stay in registers. `pitch` is the distance from one
/// period to the next in memory and in the packed bytes.
///
/// # Safety
///
/// - The conditions of [`Steps::sized`] hold for `steps`, which has `N` steps.
#[inline(always)]
unsafe fn held<V: Vector, const N: usize>(
    steps: &[Window],
    pitch: (usize, usize),
    periods: usize,
    mem: *const u8,
    packed: *mut u8,
) {
    // SAFETY: `shuffle` has 16 bytes, and the caller guarantees that the CPU has the instruction set of `V`.
    let shuffles: [V; N] = std::array::from_fn(|n| unsafe { V::load(steps[n].shuffle.as_ptr()) });
    let at: [(isize, usize); N] = std::array::from_fn(|n| (steps[n].offset, steps[n].packed));
    let (mut mem, mut packed) = (mem, packed);
    let period = |mem: *const u8, packed: *mut u8| {
        for n in 0..N {
            // SAFETY: `mem` and `packed` are where one of the periods begins. The caller guarantees that the
            // windows and the packed bytes of its steps are valid, and that the CPU has the instruction set
            // of `V`.
            unsafe {
                let memory = V::load(mem.wrapping_offset(at[n].0));
                memory.shuffled(shuffles[n]).store(packed.wrapping_add(at[n].1));
            }
        }
    };
    for _ in 0..periods / UNROLLED {
        for i in 0..UNROLLED {
            period(mem.wrapping_add(i * pitch.0), packed.wrapping_add(i * pitch.1));
        }
        mem = mem.wrapping_add(UNROLLED * pitch.0);
        packed = packed.wrapping_add(UNROLLED * pitch.1);
    }
    for i in 0..periods % UNROLLED {
        period(mem.wrapping_add(i * pitch.0), packed.wrapping_add(i * pitch.1));
    }
}

/// Packs `periods` periods of any number of steps.
///
/// # Safety
///
/// - The conditions of [`Steps::sized`] hold for `steps`.
#[inline(always)]
unsafe fn listed<V: Vector>(
    steps: &[Window],
    pitch: (usize, usize),
    periods: usize,
    mem: *const u8,
    packed: *mut u8,
) {
    for i in 0..periods {
        let (mem, packed) = (mem.wrapping_add(i * pitch.0), packed.wrapping_add(i * pitch.1));
        for step in steps {
            // SAFETY: `i` is below `periods`, so the caller guarantees that the window and the packed bytes
            // of the step are valid. The CPU has the instruction set of `V`. `shuffle` has 16 bytes.
            unsafe {
                let memory = V::load(mem.wrapping_offset(step.offset));
                let data = memory.shuffled(V::load(step.shuffle.as_ptr()));
                data.store(packed.wrapping_add(step.packed));
            }
        }
    }
}
