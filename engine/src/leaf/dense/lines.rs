//! Whole periods of a dense pattern, a line of memory at a time.
//!
//! Built and called by `mod.rs` for long calls. The pattern of 64-byte lines repeats after
//! `lcm(stride, 64)` bytes, a *period*; for each line of it, a [`Step`] says which of its bytes are
//! data. Since elements ascend, the data of a line is consecutive in packed order: packing is one
//! load, one permute and one store that the next step's store overlaps; unpacking is a load, the
//! inverse permute and a store. On the memory side both go under the line's mask: gaps may be
//! another thread's, and are neither read nor written. On the packed side whole registers go beyond
//! a step's data, and the caller keeps as many bytes for later.
//!
//! Periods of 1, 3, 5 and 7 lines (strides that are that odd number times a power of two) keep
//! their permutes and masks in registers.

use super::Stripe;
use super::masked::{AHEAD, BYTES, LINE, WORDS, announce, in_grains, load, store};
use std::arch::x86_64::*;

/// One line of the pattern.
#[repr(align(64))]
struct Step {
    /// As in `short.rs`.
    permute: [u8; LINE],
    /// The data of the line, a bit per grain.
    mask: u64,
    /// Offset of the line from the period's first element, in bytes.
    mem: usize,
    /// Offset of the line's data in the period's packed bytes.
    packed: usize,
}

/// A pattern by lines, for one direction.
pub(super) struct Lines {
    steps: Box<[Step]>,
    /// Bytes from one period to the next, in memory and packed.
    pitch: usize,
    bytes: usize,
    /// No line has more than half a register of data.
    half: bool,
    grain: usize,
}

impl Lines {
    /// The pattern of `elements` elements, the period of `runs` (as in `short.rs`) every `stride`
    /// bytes.
    pub(super) fn new<const PACK: bool>(
        runs: &[Stripe],
        stride: usize,
        elements: usize,
        grain: usize,
    ) -> Self {
        let pitch = stride * elements;
        let mut steps: Vec<Step> = Vec::with_capacity(pitch / LINE);
        let mut packed = 0;
        for element in 0..elements {
            for run in runs {
                for i in 0..run.bytes {
                    let at = element * stride + run.offset + i;
                    let line = at / LINE * LINE;
                    if steps.last().is_none_or(|step| step.mem != line) {
                        steps.push(Step { permute: [0; LINE], mask: 0, mem: line, packed });
                    }
                    let step = steps.last_mut().expect("pushed above if there was none");
                    let (byte, nth) = (at % LINE, packed - step.packed);
                    let swapped = run.swapped(nth, i);
                    if PACK {
                        step.permute[swapped] = byte as u8;
                    } else {
                        step.permute[byte] = swapped as u8;
                    }
                    step.mask |= 1 << byte;
                    packed += 1;
                }
            }
        }
        let half = steps.iter().all(|step| step.mask.count_ones() as usize <= LINE / 2);
        // Only stores are faster in words.
        let grain = if PACK { BYTES } else { grain };
        for step in &mut steps {
            step.mask = in_grains(step.mask, grain);
        }
        Self { steps: steps.into(), pitch, bytes: packed, half, grain }
    }

    /// Moves `periods` whole periods; `far` where lines are not expected in the first-level cache.
    ///
    /// # Safety
    ///
    /// - As for [`Short::run`](super::short::Short::run), for the elements of these periods.
    /// - On the packed side `64` bytes after each step's first are valid, too: bytes that are
    ///   overwritten later when packing.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")]
    pub(super) unsafe fn run<const PACK: bool>(
        &self,
        periods: usize,
        far: bool,
        mem: *mut u8,
        packed: *mut u8,
    ) {
        let written = if PACK { self.bytes } else { self.pitch };
        // No line is announced that is not ours.
        let announced = if far { periods.saturating_sub(AHEAD / written + 1) } else { 0 };
        let (rest, done) = (periods - announced, announced);
        // SAFETY: these periods and then the others, which are as many as we may move.
        unsafe {
            if announced > 0 {
                self.some::<PACK, true>(announced, mem, packed);
            }
            let mem = mem.wrapping_add(done * self.pitch);
            self.some::<PACK, false>(rest, mem, packed.wrapping_add(done * self.bytes));
        }
    }

    /// [`run`](Self::run), announcing every store or none.
    ///
    /// # Safety
    ///
    /// As for [`run`](Self::run).
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")]
    unsafe fn some<const PACK: bool, const FAR: bool>(
        &self,
        periods: usize,
        mem: *mut u8,
        packed: *mut u8,
    ) {
        // SAFETY: our contract; the grain is that of the masks.
        unsafe {
            match (self.half, self.grain) {
                (true, WORDS) => self.sized::<PACK, FAR, 32, WORDS>(periods, mem, packed),
                (false, WORDS) => self.sized::<PACK, FAR, 64, WORDS>(periods, mem, packed),
                (true, _) => self.sized::<PACK, FAR, 32, BYTES>(periods, mem, packed),
                (false, _) => self.sized::<PACK, FAR, 64, BYTES>(periods, mem, packed),
            }
        }
    }

    /// [`some`](Self::some), with accesses of `WIDTH` bytes on the packed side.
    ///
    /// # Safety
    ///
    /// - As for [`run`](Self::run).
    /// - No line has more than `WIDTH` bytes of data; masks are of `GRAIN` bytes a bit.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")]
    #[inline]
    unsafe fn sized<const PACK: bool, const FAR: bool, const WIDTH: usize, const GRAIN: usize>(
        &self,
        periods: usize,
        mem: *mut u8,
        packed: *mut u8,
    ) {
        // SAFETY: our contract; steps by their number.
        unsafe {
            match self.steps.len() {
                1 => self.held::<PACK, FAR, WIDTH, GRAIN, 1>(periods, mem, packed),
                3 => self.held::<PACK, FAR, WIDTH, GRAIN, 3>(periods, mem, packed),
                5 => self.held::<PACK, FAR, WIDTH, GRAIN, 5>(periods, mem, packed),
                7 => self.held::<PACK, FAR, WIDTH, GRAIN, 7>(periods, mem, packed),
                _ => self.listed::<PACK, FAR, WIDTH, GRAIN>(periods, mem, packed),
            }
        }
    }

    /// [`sized`](Self::sized) for `STEPS` lines a period, in registers.
    ///
    /// # Safety
    ///
    /// - As for [`sized`](Self::sized).
    /// - There are `STEPS` steps.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")]
    #[inline]
    unsafe fn held<
        const PACK: bool,
        const FAR: bool,
        const WIDTH: usize,
        const GRAIN: usize,
        const STEPS: usize,
    >(
        &self,
        periods: usize,
        mem: *mut u8,
        packed: *mut u8,
    ) {
        let permutes: [__m512i; STEPS] = std::array::from_fn(|i| {
            // SAFETY: a register of this pattern, aligned by its type.
            unsafe { _mm512_load_si512(self.steps[i].permute.as_ptr().cast()) }
        });
        let masks: [u64; STEPS] = std::array::from_fn(|i| self.steps[i].mask);
        let at: [(usize, usize); STEPS] =
            std::array::from_fn(|i| (self.steps[i].mem, self.steps[i].packed));
        let (pitch, bytes) = (self.pitch, self.bytes);
        let (mut mem, mut packed) = (mem, packed);
        for _ in 0..periods {
            for i in 0..STEPS {
                let (mem, packed) = (mem.wrapping_add(at[i].0), packed.wrapping_add(at[i].1));
                if FAR {
                    announce((if PACK { packed } else { mem }).wrapping_add(AHEAD));
                }
                // SAFETY: a step of a period that is ours.
                unsafe { line::<PACK, WIDTH, GRAIN>(permutes[i], masks[i], mem, packed) };
            }
            mem = mem.wrapping_add(pitch);
            packed = packed.wrapping_add(bytes);
        }
    }

    /// [`sized`](Self::sized) for any number of lines.
    ///
    /// # Safety
    ///
    /// As for [`sized`](Self::sized).
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")]
    unsafe fn listed<const PACK: bool, const FAR: bool, const WIDTH: usize, const GRAIN: usize>(
        &self,
        periods: usize,
        mem: *mut u8,
        packed: *mut u8,
    ) {
        let (steps, pitch, bytes) = (&*self.steps, self.pitch, self.bytes);
        for i in 0..periods {
            let (mem, packed) = (mem.wrapping_add(i * pitch), packed.wrapping_add(i * bytes));
            for step in steps {
                let (mem, packed) = (mem.wrapping_add(step.mem), packed.wrapping_add(step.packed));
                if FAR {
                    announce((if PACK { packed } else { mem }).wrapping_add(AHEAD));
                }
                // SAFETY: a step of period `i`, which is one of ours; its register is aligned.
                unsafe {
                    let permute = _mm512_load_si512(step.permute.as_ptr().cast());
                    line::<PACK, WIDTH, GRAIN>(permute, step.mask, mem, packed);
                }
            }
        }
    }
}

/// Moves a line with an access of `WIDTH` bytes on the packed side.
///
/// # Safety
///
/// - The grains under `mask` at `mem` are valid for reads (packing) or for writes.
/// - `packed` is valid for `WIDTH` bytes: for writes when packing, for reads otherwise.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")]
#[inline]
unsafe fn line<const PACK: bool, const WIDTH: usize, const GRAIN: usize>(
    permute: __m512i,
    mask: u64,
    mem: *mut u8,
    packed: *mut u8,
) {
    // SAFETY: our contract.
    unsafe {
        if PACK {
            let line = _mm512_permutexvar_epi8(permute, load::<GRAIN>(mask, mem));
            match WIDTH {
                32 => _mm256_storeu_si256(packed.cast(), _mm512_castsi512_si256(line)),
                _ => _mm512_storeu_si512(packed.cast(), line),
            }
        } else {
            let data = match WIDTH {
                32 => _mm512_castsi256_si512(_mm256_loadu_si256(packed.cast())),
                _ => _mm512_loadu_si512(packed.cast()),
            };
            store::<GRAIN>(mask, mem, _mm512_permutexvar_epi8(permute, data));
        }
    }
}
