//! Periodic windows: dense patterns of short runs moved a cache line at a time, with byte permutes
//! and masked stores (AVX-512 with VBMI).
//!
//! Built by `mod.rs` for innermost loops whose elements ascend without overlap: structs with gaps,
//! small blocks at small strides. The pattern of lines repeats after `lcm(stride, 64)` bytes, a
//! *period*; for each line of it, a [`Step`] says which of its bytes are data. Since elements
//! ascend, the data of a line is consecutive in packed order: packing is one load, one permute and
//! one store that the next step's store overlaps; unpacking is a load, the inverse permute and a
//! store. On the memory side both go under the line's mask: gaps may be another thread's, and are
//! neither read nor written. Ends move under masks on the packed side, too.
//!
//! With a [`Swap`] the permute turns elements round as well, for nothing: as long as each lies in one
//! line of the pattern.
//!
//! Where it pays and enough elements are to be moved, elements are taken off the front until lines
//! of the pattern are lines of memory: a 64-byte access that crosses cache lines costs two.

use super::swap::Swap;
use crate::kernel::{Leaf, Level};
use std::arch::x86_64::*;

/// Bytes of a step's stretch of memory: a cache line and a register.
const LINE: usize = 64;

/// Most lines of a period. Longer ones come from odd strides of many bytes, where a line holds few
/// elements and moves of 16 bytes do as well.
const STEPS: usize = 64;

/// Periods that a call must move before it aligns itself.
const PERIODS_TO_ALIGN: usize = 8;

/// One line of the pattern.
#[repr(align(64))]
struct Step {
    /// Packing: which byte of the line goes to each packed byte. Unpacking: which packed byte goes
    /// to each byte of the line.
    permute: [u8; LINE],
    /// The data bytes of the line.
    mask: u64,
    /// Offset of the line from the period's first element, in bytes.
    mem: u32,
    /// Offset of the line's data in the period's packed bytes.
    packed: u32,
    /// Bytes of data, 1 to 64.
    bytes: u32,
}

/// A compiled pattern, for one direction.
pub(super) struct Window {
    steps: Box<[Step]>,
    /// Elements of a period, `1 << shift`.
    elements: usize,
    shift: u32,
    /// Bytes between elements.
    stride: usize,
    /// Elements that move the address by the greatest power of two that divides the stride, modulo
    /// a line.
    inverse: usize,
    /// Packed bytes of an element.
    bytes: usize,
    /// Most data in a line, rounded up to a register: 16, 32 or 64.
    width: usize,
}

/// What a window does compared with moving each run by itself.
pub(super) struct Merit {
    /// Lines of a period.
    pub(super) lines: usize,
    /// Moves of up to 16 bytes that the runs of a period take.
    pub(super) moves: usize,
}

impl Merit {
    /// Whether lines beat moves. A line costs a load, a permute and a store, the latter under a mask
    /// when unpacking; blocks of 8 bytes go in pairs otherwise, and blocks of 4 bytes in fours, so
    /// that they take fewer stores than moves (`typepack-bench peers`, d1s2, f1s2, f1s3).
    pub(super) fn pays(&self, leaf: &Leaf) -> bool {
        match leaf {
            Leaf::Block { bytes } => *bytes < 8 && self.moves >= 7 * self.lines,
            Leaf::Window { .. } => self.moves > 4 * self.lines,
        }
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
    let elements = LINE / (1 << stride.trailing_zeros().min(LINE.trailing_zeros()));
    let lines = stride * elements / LINE;
    (lines <= STEPS).then_some(Merit { lines, moves: moves * elements })
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

/// Whether no element that is turned round lies in two lines of the pattern.
pub(super) fn can_turn(level: &Level, leaf: &Leaf, swap: &Swap) -> bool {
    let Level::Loop { stride, .. } = *level else { return false };
    runs(leaf).enumerate().all(|(i, (offset, _))| {
        // Aligned in every element; lines hold whole elements then.
        let width = swap.width(i).bytes() as i64;
        offset % width == 0 && stride % width == 0
    })
}

impl Window {
    /// The pattern of `leaf` on `level`, for which [`merit`] has said yes, and [`can_turn`] if there
    /// is a swap.
    pub(super) fn new<const PACK: bool>(level: &Level, leaf: &Leaf, swap: Option<&Swap>) -> Self {
        let stride = match *level {
            Level::Loop { stride, .. } => stride as usize,
            Level::Table { .. } => unreachable!("merit() takes loops only"),
        };
        let elements = LINE / (1 << stride.trailing_zeros().min(LINE.trailing_zeros()));
        let mut steps: Vec<Step> = Vec::with_capacity(stride * elements / LINE);
        let mut packed = 0;
        for element in 0..elements {
            for (run, (offset, bytes)) in runs(leaf).enumerate() {
                let width = swap.map_or(1, |swap| swap.width(run).bytes());
                let begin = element * stride + offset as usize;
                for i in 0..bytes as usize {
                    // Byte `at` of memory and the `mirror`th of what is packed belong together.
                    let (at, mirror) = (begin + i, width - 1 - i % width);
                    let line = (at / LINE * LINE) as u32;
                    if steps.last().is_none_or(|step| step.mem != line) {
                        let permute = [0; LINE];
                        steps.push(Step { permute, mask: 0, mem: line, packed, bytes: 0 });
                    }
                    let step = steps.last_mut().expect("pushed above if there was none");
                    let (byte, nth) = (at % LINE, step.bytes as usize);
                    let turned = nth - i % width + mirror;
                    if PACK {
                        step.permute[turned] = byte as u8;
                    } else {
                        step.permute[byte] = turned as u8;
                    }
                    step.mask |= 1 << byte;
                    step.bytes += 1;
                    packed += 1;
                }
            }
        }
        let widest = steps.iter().map(|step| step.bytes).max().unwrap_or(0) as usize;
        Self {
            steps: steps.into(),
            elements,
            shift: elements.trailing_zeros(),
            stride,
            inverse: inverse(stride * elements / LINE, elements),
            bytes: packed as usize / elements,
            width: widest.next_power_of_two().clamp(16, LINE),
        }
    }

    /// How many elements from `address` on until one begins a line, as far as elements can.
    fn to_line(&self, address: usize) -> usize {
        // Addresses change by multiples of `unit`, of which a line has as many as a period elements.
        let units = (address % LINE) >> (LINE.trailing_zeros() - self.shift);
        ((self.elements - units) * self.inverse) & (self.elements - 1)
    }

    /// Moves elements that the level's parameters `words` describe: count, stride.
    ///
    /// # Safety
    ///
    /// - As for [`Row`](super::Row), with the level and leaf that the window was made of.
    /// - The CPU has AVX-512 F, BW, VL and VBMI.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")]
    pub(super) unsafe fn run<const PACK: bool>(
        &self,
        words: *const u64,
        mem: *mut u8,
        packed: *mut u8,
    ) {
        // SAFETY: the count is the level's first word.
        let mut count = unsafe { *words } as usize;
        let (mut mem, mut packed) = (mem, packed);
        // Packing one line after the other gained nothing by it, or lost (1 and 4 bytes of 2 and 8).
        let pays = !PACK || self.steps.len() > 1;
        if pays && count >= PERIODS_TO_ALIGN * self.elements {
            let first = self.to_line(mem.addr());
            // SAFETY: fewer elements than a period, and no more than there are.
            unsafe { self.part::<PACK>(first, mem, packed) };
            mem = mem.wrapping_add(first * self.stride);
            packed = packed.wrapping_add(first * self.bytes);
            count -= first;
        }
        // What is left for masks: an element, so that gaps behind data are gaps between data, and as
        // many packed bytes as a register may reach past a step's own.
        let rest = (count * self.bytes).saturating_sub(LINE);
        let whole = count.saturating_sub(1) >> self.shift;
        let fast = whole.min(rest / (self.elements * self.bytes));
        // SAFETY: so many whole periods, at least an element and 64 packed bytes after them.
        unsafe {
            match self.width {
                16 => self.periods::<PACK, 16>(fast, mem, packed),
                32 => self.periods::<PACK, 32>(fast, mem, packed),
                _ => self.periods::<PACK, 64>(fast, mem, packed),
            }
        }
        let mut done = fast * self.elements;
        while done < count {
            let part = (count - done).min(self.elements);
            // SAFETY: elements from `done`, no more than there are.
            unsafe {
                let mem = mem.wrapping_add(done * self.stride);
                self.part::<PACK>(part, mem, packed.wrapping_add(done * self.bytes));
            }
            done += part;
        }
    }

    /// Moves `periods` whole periods with accesses of `WIDTH` bytes on the packed side.
    ///
    /// # Safety
    ///
    /// - As for [`run`](Self::run), for so many elements.
    /// - On the packed side `64` bytes after each step's first are valid, too: bytes that are
    ///   overwritten later when packing.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")]
    #[inline]
    unsafe fn periods<const PACK: bool, const WIDTH: usize>(
        &self,
        periods: usize,
        mem: *mut u8,
        packed: *mut u8,
    ) {
        let (pitch, bytes) = (self.elements * self.stride, self.elements * self.bytes);
        if let [step] = &*self.steps {
            // SAFETY: a step of this pattern.
            let permute = unsafe { _mm512_load_si512(step.permute.as_ptr().cast()) };
            let one = |i: usize| {
                let (mem, packed) = (mem.wrapping_add(i * pitch), packed.wrapping_add(i * bytes));
                // SAFETY: period `i` is one of ours.
                unsafe { line::<PACK, WIDTH>(permute, step.mask, mem, packed) };
            };
            let mut i = 0;
            while i + 4 <= periods {
                one(i);
                one(i + 1);
                one(i + 2);
                one(i + 3);
                i += 4;
            }
            while i < periods {
                one(i);
                i += 1;
            }
            return;
        }
        for i in 0..periods {
            let (mem, packed) = (mem.wrapping_add(i * pitch), packed.wrapping_add(i * bytes));
            for step in &self.steps {
                // SAFETY: a step of period `i`, which is one of ours.
                unsafe {
                    let permute = _mm512_load_si512(step.permute.as_ptr().cast());
                    let mem = mem.wrapping_add(step.mem as usize);
                    let packed = packed.wrapping_add(step.packed as usize);
                    line::<PACK, WIDTH>(permute, step.mask, mem, packed);
                }
            }
        }
    }

    /// Moves the first `elements` elements of a period, touching nothing else on either side.
    ///
    /// # Safety
    ///
    /// As for [`run`](Self::run), for so many elements; at most a period.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")]
    unsafe fn part<const PACK: bool>(&self, elements: usize, mem: *mut u8, packed: *mut u8) {
        let end = (elements * self.bytes) as u32;
        for step in self.steps.iter().take_while(|step| step.packed < end) {
            let bytes = step.bytes.min(end - step.packed);
            let data = u64::MAX >> (64 - bytes);
            // The first `bytes` data bytes of the line.
            let mask = _pdep_u64(data, step.mask);
            let mem = mem.wrapping_add(step.mem as usize);
            let packed = packed.wrapping_add(step.packed as usize);
            // SAFETY: bytes under a mask are data of our elements; others are not accessed.
            unsafe {
                let permute = _mm512_load_si512(step.permute.as_ptr().cast());
                if PACK {
                    let line = _mm512_maskz_loadu_epi8(mask, mem.cast());
                    let line = _mm512_permutexvar_epi8(permute, line);
                    _mm512_mask_storeu_epi8(packed.cast(), data, line);
                } else {
                    let line = _mm512_maskz_loadu_epi8(data, packed.cast());
                    let line = _mm512_permutexvar_epi8(permute, line);
                    _mm512_mask_storeu_epi8(mem.cast(), mask, line);
                }
            }
        }
    }
}

/// Moves a line with an access of `WIDTH` bytes on the packed side.
///
/// # Safety
///
/// - The bytes under `mask` at `mem` are valid for reads (packing) or for writes.
/// - `packed` is valid for `WIDTH` bytes: for writes when packing, for reads otherwise.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
#[inline]
unsafe fn line<const PACK: bool, const WIDTH: usize>(
    permute: __m512i,
    mask: u64,
    mem: *mut u8,
    packed: *mut u8,
) {
    // SAFETY: our contract.
    unsafe {
        if PACK {
            let line = _mm512_maskz_loadu_epi8(mask, mem.cast());
            let line = _mm512_permutexvar_epi8(permute, line);
            match WIDTH {
                16 => _mm_storeu_si128(packed.cast(), _mm512_castsi512_si128(line)),
                32 => _mm256_storeu_si256(packed.cast(), _mm512_castsi512_si256(line)),
                _ => _mm512_storeu_si512(packed.cast(), line),
            }
        } else {
            let data = match WIDTH {
                16 => _mm512_castsi128_si512(_mm_loadu_si128(packed.cast())),
                32 => _mm512_castsi256_si512(_mm256_loadu_si256(packed.cast())),
                _ => _mm512_loadu_si512(packed.cast()),
            };
            _mm512_mask_storeu_epi8(mem.cast(), mask, _mm512_permutexvar_epi8(permute, data));
        }
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
            let window = Window::new::<true>(&level, &Leaf::Block { bytes: 1 }, None);
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
