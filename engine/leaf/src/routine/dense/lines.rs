//! Moves whole periods of a dense pattern, one line of memory at a time.
//!
//! `mod.rs` uses this method for calls with many elements. The pattern of 64-byte lines repeats
//! after `lcm(stride, 64)` bytes, a *period*. A [`Step`] describes one line of a period: it says
//! which bytes of the line are data. The addresses of the elements ascend, so the data of a line is
//! consecutive in packed order. Packing a line takes one load, one permute and one store. The store
//! writes a whole register; the store of the next step overwrites the bytes behind the data.
//! Unpacking a line takes one load, the inverse permute and one store. On the memory side, loads
//! and stores use the line's mask: gaps may belong to another thread, so they are neither read nor
//! written. On the packed side, an access of a whole register reaches past the data of its step. So
//! the caller makes sure that enough packed bytes follow the last step, and moves these bytes
//! later.
//!
//! If a period has 1, 3, 5 or 7 lines (the stride is one of these numbers times a power of two of at
//! most 64), its permutes and masks stay in registers.

use super::Stripe;
use super::masked::{AHEAD, BYTES, LINE, WORDS, announce, in_grains, load, store};
use std::arch::x86_64::*;

/// One line of the pattern.
#[repr(C, align(64))]
struct Step {
    /// When packing: for each packed byte, the index of its source byte in the line. When
    /// unpacking: for each byte of the line, the index of its source among the packed bytes.
    permute: [u8; LINE],
    /// A mask of the data of the line, one bit per grain (`masked.rs`).
    mask: u64,
    /// Offset of the line from the first element of the period, in bytes.
    mem: usize,
    /// Offset of the line's data in the packed bytes of the period.
    packed: usize,
}

/// A pattern that is moved line by line, for one direction.
pub(super) struct Lines {
    steps: Box<[Step]>,
    /// Distance in memory from one period to the next, in bytes.
    pitch: usize,
    /// Number of packed bytes per period.
    bytes: usize,
    /// True if no line has more than half a register of data.
    half: bool,
    grain: usize,
}

impl Lines {
    /// Builds the pattern that repeats `runs` every `stride` bytes; the runs must be in ascending
    /// order. `elements` is the number of elements per period.
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
                    let step =
                        steps.last_mut().expect("the statement above pushes a step if needed");
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
        // When packing, the mask applies to loads; a word mask makes stores faster, but not loads.
        let grain = if PACK { BYTES } else { grain };
        for step in &mut steps {
            step.mask = in_grains(step.mask, grain);
        }
        Self { steps: steps.into(), pitch, bytes: packed, half, grain }
    }

    /// Moves `periods` whole periods. `far` is true if the lines are not expected to be in the
    /// first-level cache.
    ///
    /// # Safety
    ///
    /// - The conditions of [`Short::run`](super::short::Short::run) hold, for the elements of these
    ///   periods.
    /// - On the packed side, the 64 bytes that begin at the first packed byte of each step are valid.
    ///   When packing, the bytes after the data of a step are overwritten; the caller must let later
    ///   moves write the final values of these bytes.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")]
    pub(super) unsafe fn run<const PACK: bool>(
        &self,
        periods: usize,
        far: bool,
        mem: *mut u8,
        packed: *mut u8,
    ) {
        let written = if PACK { self.bytes } else { self.pitch };
        // The last periods are moved without announcements, so that only lines that this call will
        // write are announced.
        let announced = if far { periods.saturating_sub(AHEAD / written + 1) } else { 0 };
        let (rest, done) = (periods - announced, announced);
        // SAFETY: `announced + rest == periods`, and the caller guarantees that all periods are
        // valid. The second call starts after the first `announced` periods.
        unsafe {
            if announced > 0 {
                self.some::<PACK, true>(announced, mem, packed);
            }
            let mem = mem.wrapping_add(done * self.pitch);
            self.some::<PACK, false>(rest, mem, packed.wrapping_add(done * self.bytes));
        }
    }

    /// Does what [`run`](Self::run) does. If `FAR` is true, each store comes with the announcement of
    /// a later store ([`announce`]).
    ///
    /// # Safety
    ///
    /// The conditions of [`run`](Self::run) hold.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")]
    unsafe fn some<const PACK: bool, const FAR: bool>(
        &self,
        periods: usize,
        mem: *mut u8,
        packed: *mut u8,
    ) {
        // SAFETY: the caller guarantees that the periods are valid. Each arm passes the grain of the
        // masks. A `WIDTH` of 32 is passed only if no line has more than 32 bytes of data.
        unsafe {
            match (self.half, self.grain) {
                (true, WORDS) => self.sized::<PACK, FAR, 32, WORDS>(periods, mem, packed),
                (false, WORDS) => self.sized::<PACK, FAR, 64, WORDS>(periods, mem, packed),
                (true, _) => self.sized::<PACK, FAR, 32, BYTES>(periods, mem, packed),
                (false, _) => self.sized::<PACK, FAR, 64, BYTES>(periods, mem, packed),
            }
        }
    }

    /// Does what [`some`](Self::some) does, with accesses of `WIDTH` bytes on the packed side.
    ///
    /// # Safety
    ///
    /// - The conditions of [`run`](Self::run) hold.
    /// - No line has more than `WIDTH` bytes of data. A bit of a mask stands for `GRAIN` bytes.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")]
    #[inline]
    unsafe fn sized<const PACK: bool, const FAR: bool, const WIDTH: usize, const GRAIN: usize>(
        &self,
        periods: usize,
        mem: *mut u8,
        packed: *mut u8,
    ) {
        // SAFETY: the caller guarantees that the periods are valid and that `WIDTH` and `GRAIN` suit
        // the pattern. Each arm passes the number of steps that it matched.
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

    /// Does what [`sized`](Self::sized) does for periods of `STEPS` lines. The permutes and masks
    /// of all steps stay in registers.
    ///
    /// # Safety
    ///
    /// - The conditions of [`sized`](Self::sized) hold.
    /// - The pattern has `STEPS` steps.
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
            // SAFETY: `i` is below `STEPS`, the number of steps; `permute` is the first field of a
            // `Step`, which is `repr(C)` and aligned to 64 bytes.
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
                // SAFETY: the loop runs `periods` times, so `mem` and `packed` are the addresses of
                // step `i` of an existing period. The caller guarantees that the step's bytes are
                // valid on both sides.
                unsafe { line::<PACK, WIDTH, GRAIN>(permutes[i], masks[i], mem, packed) };
            }
            mem = mem.wrapping_add(pitch);
            packed = packed.wrapping_add(bytes);
        }
    }

    /// Does what [`sized`](Self::sized) does for periods with any number of lines.
    ///
    /// # Safety
    ///
    /// The conditions of [`sized`](Self::sized) hold.
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
                // SAFETY: `mem` and `packed` are the addresses of this step of period `i`, and `i` is
                // below `periods`. A `Step` is `repr(C)` and aligned to 64 bytes, and `permute` is
                // its first field.
                unsafe {
                    let permute = _mm512_load_si512(step.permute.as_ptr().cast());
                    line::<PACK, WIDTH, GRAIN>(permute, step.mask, mem, packed);
                }
            }
        }
    }
}

/// Moves one line, with an access of `WIDTH` bytes on the packed side.
///
/// # Safety
///
/// - The grains under `mask` at `mem` are valid for reads when packing, and for writes when
///   unpacking.
/// - `WIDTH` bytes at `packed` are valid for writes when packing, and for reads when unpacking.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")]
#[inline]
unsafe fn line<const PACK: bool, const WIDTH: usize, const GRAIN: usize>(
    permute: __m512i,
    mask: u64,
    mem: *mut u8,
    packed: *mut u8,
) {
    // SAFETY: the code accesses memory only under `mask`, and on the packed side only `WIDTH` bytes
    // (32 or 64). The caller guarantees that both are valid.
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
