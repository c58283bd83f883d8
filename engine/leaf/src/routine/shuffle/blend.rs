//! Fills whole registers with the data of adjacent loads of 32 bytes (AVX2).
//!
//! `lanes.rs` uses this method if two, three or four loads cover the memory of 32 packed bytes. A load may
//! begin a few bytes early, so that its data falls between the data of the other loads. Then the loads are
//! blended into one register, which holds nothing but data, and a permutation puts the data in order. There
//! are half as many loads as in `lanes.rs`, and fewer shuffles. Two patterns, 1 of every 2 bytes and 2 of
//! every 4 bytes, use special instructions instead, which narrow the elements of two registers to half their
//! width and store them in one register.

use super::{Pattern, Stripe};
use std::arch::x86_64::*;

/// Length of a register in bytes.
const REGISTER: usize = 32;

/// One value for each byte of a register.
type Bytes = [u8; REGISTER];

/// Maximum number of loads.
const LOADS: usize = 4;

/// A pattern that is packed with adjacent loads. The arrays are stored inline, so that a call follows no
/// further pointers; entries beyond the number of loads are 0.
pub(super) struct Blend {
    loads: usize,
    /// Offset of each load from the first byte of its elements, in bytes.
    offsets: [isize; LOADS],
    /// For each load, a mask of its data: bytes of 0xff and 0.
    masks: [Bytes; LOADS],
    order: Order,
}

/// The instructions that put the blended data in order.
enum Order {
    /// Two loads are narrowed instead of blended: each element of twice `bytes` bytes becomes an element of
    /// `bytes` bytes. The data is then already in order.
    Narrowed { bytes: usize },
    /// One permutation of 4-byte words.
    Words { words: [u32; 8] },
    /// A shuffle of the bytes of each half, and a permutation of 4-byte words.
    BytesAndWords { bytes: Bytes, words: [u32; 8] },
    /// Two byte shuffles. For each byte of the result, `same` has the source in the same half of the
    /// register, and `other` the source in the other half. One of the two is [`NONE`](super::NONE).
    Bytes { same: Bytes, other: Bytes },
}

impl Blend {
    /// Returns the number of loads for 32 packed bytes of `pattern`. Returns `None` if the method does not
    /// suit the pattern.
    pub(super) fn loads(pattern: &Pattern) -> Option<usize> {
        let memory = pattern.stride * REGISTER / pattern.bytes;
        let loads = memory / REGISTER;
        let fits = REGISTER.is_multiple_of(pattern.bytes) && memory.is_multiple_of(REGISTER);
        (fits && (2..=LOADS).contains(&loads)).then_some(loads)
    }

    /// Returns the method for `pattern`, or `None` if the method does not suit the pattern.
    pub(super) fn new(pattern: &Pattern) -> Option<Self> {
        let block =
            |bytes| pattern.stride == 2 * bytes && *pattern.runs == [Stripe { offset: 0, bytes }];
        let Some(bytes) = [1, 2].into_iter().find(|&bytes| block(bytes)) else {
            return Self::made(pattern, 0);
        };
        let offsets = [0, REGISTER as isize, 0, 0];
        let order = Order::Narrowed { bytes };
        Some(Self { loads: 2, offsets, masks: [[0; REGISTER]; LOADS], order })
    }

    /// Returns a method for the same registers that loads no byte behind their last byte of data. If the
    /// loads of [`new`](Self::new) reach beyond this byte, all loads of this method begin earlier. So the
    /// method may only be used for a register that another register precedes in memory. Returns `None` if
    /// the method does not suit the pattern.
    pub(super) fn ending(pattern: &Pattern) -> Option<Self> {
        let data = (REGISTER / pattern.bytes - 1) * pattern.stride + pattern.extent;
        let blend = Self::made(pattern, 0)?;
        match blend.reach().saturating_sub(data) {
            0 => Some(blend),
            beyond => Self::made(pattern, beyond),
        }
    }

    /// Makes the method with loads that cover the memory that begins `back` bytes before the first element.
    /// Returns `None` if the method does not suit the pattern.
    fn made(pattern: &Pattern, back: usize) -> Option<Self> {
        let loads = Self::loads(pattern)?;
        let mut sources = pattern.sources(REGISTER / pattern.bytes);
        sources.iter_mut().for_each(|at| *at += back);
        // For each byte of the blended register, the packed byte that lies there.
        let mut blended: [Option<usize>; REGISTER] = [None; REGISTER];
        let mut offsets = [0; LOADS];
        let mut masks = [[0; REGISTER]; LOADS];
        for load in 0..loads {
            let start = load * REGISTER;
            let data: Vec<(usize, usize)> = sources
                .iter()
                .enumerate()
                .filter(|&(_, at)| (start..start + REGISTER).contains(at))
                .map(|(nth, &at)| (nth, at))
                .collect();
            // Find the smallest number of bytes by which the load must begin before `start` so that all its data is
            // in the register and falls on bytes that no earlier load uses.
            let early = (0..REGISTER.min(start + 1)).find(|early| {
                let from = start - early;
                data.iter().all(|(_, at)| *at < from + REGISTER && blended[at - from].is_none())
            })?;
            for (nth, at) in data {
                let byte = at - (start - early);
                (blended[byte], masks[load][byte]) = (Some(nth), 0xff);
            }
            offsets[load] = (start - early) as isize - back as isize;
        }
        // There are as many packed bytes as the register has bytes, and no two lie on the same byte. So every
        // byte of the register holds one packed byte.
        let mut places = [0; REGISTER];
        for (byte, nth) in blended.into_iter().enumerate() {
            places[nth?] = byte;
        }
        Some(Self { loads, offsets, masks, order: Order::of(&places) })
    }

    /// Returns the number of bytes of memory from the first element of a register to the end of its last
    /// load.
    pub(super) fn reach(&self) -> usize {
        (self.offsets[self.loads - 1] + REGISTER as isize) as usize
    }

    /// Packs `registers` registers. `pitch` is the distance in memory from one register's elements to those
    /// of the next.
    ///
    /// # Safety
    ///
    /// - The loads of each register are valid for reads, and 32 bytes per register for writes at `packed`.
    /// - The CPU has AVX2.
    #[target_feature(enable = "avx2")]
    #[inline]
    pub(super) unsafe fn run(
        &self,
        registers: usize,
        pitch: usize,
        mem: *const u8,
        packed: *mut u8,
    ) {
        // SAFETY: the caller guarantees that the loads and the packed bytes of the registers are valid. Each
        // arm passes the number of loads, which `loads` has limited to 2, 3 and 4.
        unsafe {
            match (&self.order, self.loads) {
                (Order::Narrowed { bytes: 1 }, _) => narrowed::<1>(registers, pitch, mem, packed),
                (Order::Narrowed { .. }, _) => narrowed::<2>(registers, pitch, mem, packed),
                (_, 2) => self.loaded::<2>(registers, pitch, mem, packed),
                (_, 3) => self.loaded::<3>(registers, pitch, mem, packed),
                _ => self.loaded::<4>(registers, pitch, mem, packed),
            }
        }
    }

    /// Does what [`run`](Self::run) does, with `N` loads per register.
    ///
    /// # Safety
    ///
    /// - The conditions of [`run`](Self::run) hold, and the pattern has `N` loads.
    #[target_feature(enable = "avx2")]
    #[inline]
    unsafe fn loaded<const N: usize>(
        &self,
        registers: usize,
        pitch: usize,
        mem: *const u8,
        packed: *mut u8,
    ) {
        // SAFETY: the caller guarantees the conditions of `ordered`. Each arm uses instructions of AVX2 only.
        unsafe {
            match self.order {
                Order::Narrowed { .. } => unreachable!("`run` has passed narrowed loads"),
                Order::Words { words } => {
                    let words = register(&words);
                    self.ordered::<N>(registers, pitch, mem, packed, |data| {
                        _mm256_permutevar8x32_epi32(data, words)
                    });
                }
                Order::BytesAndWords { bytes, words } => {
                    let (bytes, words) = (register(&bytes), register(&words));
                    self.ordered::<N>(registers, pitch, mem, packed, |data| {
                        _mm256_permutevar8x32_epi32(_mm256_shuffle_epi8(data, bytes), words)
                    });
                }
                Order::Bytes { same, other } => {
                    let (same, other) = (register(&same), register(&other));
                    self.ordered::<N>(registers, pitch, mem, packed, |data| {
                        let crossed = _mm256_permute4x64_epi64::<0x4e>(data);
                        _mm256_or_si256(
                            _mm256_shuffle_epi8(data, same),
                            _mm256_shuffle_epi8(crossed, other),
                        )
                    });
                }
            }
        }
    }

    /// Packs `registers` registers; `order` puts the blended data of one register in order.
    ///
    /// # Safety
    ///
    /// - The conditions of [`run`](Self::run) hold, and the pattern has `N` loads.
    #[target_feature(enable = "avx2")]
    #[inline]
    unsafe fn ordered<const N: usize>(
        &self,
        registers: usize,
        pitch: usize,
        mem: *const u8,
        packed: *mut u8,
        order: impl Fn(__m256i) -> __m256i,
    ) {
        // `masks[0]` is not used.
        let masks: [__m256i; N] = std::array::from_fn(|n| register(&self.masks[n]));
        let offsets: [isize; N] = std::array::from_fn(|n| self.offsets[n]);
        let (mut mem, mut packed) = (mem, packed);
        for _ in 0..registers {
            // SAFETY: the loop runs `registers` times, so `mem` is where the elements of a register begin. The
            // caller guarantees that all its loads are readable.
            let load =
                |n: usize| unsafe { _mm256_loadu_si256(mem.wrapping_offset(offsets[n]).cast()) };
            let mut data = load(0);
            for (n, &mask) in masks.iter().enumerate().skip(1) {
                data = _mm256_blendv_epi8(data, load(n), mask);
            }
            // SAFETY: `packed` is where the 32 packed bytes of this register begin, and the caller guarantees
            // that these are writable.
            unsafe { _mm256_storeu_si256(packed.cast(), order(data)) };
            mem = mem.wrapping_add(pitch);
            packed = packed.wrapping_add(REGISTER);
        }
    }
}

/// Packs `registers` registers. In memory, elements of twice `BYTES` bytes touch, and the data is the first
/// half of each element.
///
/// # Safety
///
/// - `BYTES` is 1 or 2.
/// - For each register, 64 bytes at `mem` are valid for reads, and 32 bytes at `packed` for writes. From one
///   register to the next, `mem` advances by `pitch` bytes and `packed` by 32 bytes.
/// - The CPU has AVX2.
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn narrowed<const BYTES: usize>(
    registers: usize,
    pitch: usize,
    mem: *const u8,
    packed: *mut u8,
) {
    let (mut mem, mut packed) = (mem, packed);
    for _ in 0..registers {
        // SAFETY: the loop runs `registers` times, so `mem` is where the memory of a register begins. The caller
        // guarantees that 64 bytes are readable there.
        let (low, high) = unsafe {
            let high = mem.wrapping_add(REGISTER);
            (_mm256_loadu_si256(mem.cast()), _mm256_loadu_si256(high.cast()))
        };
        // The packing instructions saturate, so the upper halves must be 0.
        let halves = if BYTES == 1 {
            let mask = _mm256_set1_epi16(0xff);
            _mm256_packus_epi16(_mm256_and_si256(low, mask), _mm256_and_si256(high, mask))
        } else {
            let mask = _mm256_set1_epi32(0xffff);
            _mm256_packus_epi32(_mm256_and_si256(low, mask), _mm256_and_si256(high, mask))
        };
        // The packing instructions work on each half of a register separately. So the second and the third
        // quarter of their result are in the wrong order, and the permutation exchanges them.
        let data = _mm256_permute4x64_epi64::<0xd8>(halves);
        // SAFETY: `packed` is where the 32 packed bytes of this register begin, and the caller guarantees that
        // these are writable.
        unsafe { _mm256_storeu_si256(packed.cast(), data) };
        mem = mem.wrapping_add(pitch);
        packed = packed.wrapping_add(REGISTER);
    }
}

impl Order {
    /// Returns the instructions that put the blended bytes in packed order. `places[i]` is the position of
    /// packed byte `i` in the blended register.
    fn of(places: &[usize; REGISTER]) -> Self {
        let words = |word: usize| &places[4 * word..4 * word + 4];
        let whole = |word: &[usize]| {
            word[0].is_multiple_of(4) && word.windows(2).all(|pair| pair[1] == pair[0] + 1)
        };
        if (0..8).all(|word| whole(words(word))) {
            return Self::Words { words: std::array::from_fn(|word| (words(word)[0] / 4) as u32) };
        }
        let half = REGISTER / 2;
        if (0..8).all(|word| words(word).iter().all(|place| place / half == words(word)[0] / half))
        {
            // In the shuffled register, each half holds the words whose bytes come from this half, in
            // ascending order.
            let mut used = [0; 2];
            let (mut bytes, mut order) = ([0; REGISTER], [0; 8]);
            for (word, at) in order.iter_mut().enumerate() {
                let side = words(word)[0] / half;
                let to = 4 * side + used[side];
                used[side] += 1;
                *at = to as u32;
                for (i, place) in words(word).iter().enumerate() {
                    bytes[4 * to + i] = (place % half) as u8;
                }
            }
            return Self::BytesAndWords { bytes, words: order };
        }
        let source = |same: bool| {
            std::array::from_fn(|nth| {
                let (place, at_home) = (places[nth], places[nth] / half == nth / half);
                if at_home == same { (place % half) as u8 } else { super::NONE }
            })
        };
        Self::Bytes { same: source(true), other: source(false) }
    }
}

/// Loads a register.
#[target_feature(enable = "avx2")]
#[inline]
fn register<T: Copy, const N: usize>(values: &[T; N]) -> __m256i {
    const { assert!(N * size_of::<T>() == REGISTER) };
    // SAFETY: the assertion checks that `values` has 32 bytes.
    unsafe { _mm256_loadu_si256(values.as_ptr().cast()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{Leaf, Level};

    fn blend(bytes: u64, stride: i64) -> Option<Blend> {
        let level = Level::Loop { count: 100, stride };
        Blend::new(&Pattern::of(&level, &Leaf::Block { bytes }).expect("this block is a pattern"))
    }

    #[test]
    fn loads_reach_no_further_than_data_or_one_gap() {
        for (bytes, stride) in
            [(1, 2), (1, 3), (1, 4), (2, 4), (2, 6), (4, 8), (4, 12), (4, 16), (8, 24)]
        {
            let blend = blend(bytes, stride).expect("the method suits this pattern");
            let data = (32 / bytes as usize - 1) * stride as usize + bytes as usize;
            assert!((data..=data + stride as usize).contains(&blend.reach()), "{bytes} {stride}");
        }
        assert!(blend(1, 5).is_none());
        assert!(blend(3, 4).is_none());
        assert!(blend(8, 12).is_none());
    }

    #[test]
    fn endings_reach_no_further_than_data() {
        for bytes in [1, 2, 4, 8] {
            for density in 2..=4 {
                let stride = bytes * density;
                let level = Level::Loop { count: 100, stride: stride as i64 };
                let leaf = Leaf::Block { bytes: bytes as u64 };
                let pattern = Pattern::of(&level, &leaf).expect("this block is a pattern");
                let ending = Blend::ending(&pattern).expect("the method suits this pattern");
                assert!(ending.reach() <= 32 * density - (stride - bytes), "{bytes} {stride}");
                assert!(
                    ending.offsets[..density].iter().all(|&at| at >= -((stride - bytes) as isize))
                );
            }
        }
    }

    #[test]
    fn orders() {
        let order =
            |bytes, stride| blend(bytes, stride).expect("the method suits this pattern").order;
        assert!(matches!(order(8, 16), Order::Words { .. }));
        assert!(matches!(order(4, 12), Order::Words { .. }));
        assert!(matches!(order(1, 2), Order::Narrowed { bytes: 1 }));
        assert!(matches!(order(2, 4), Order::Narrowed { bytes: 2 }));
        assert!(matches!(order(1, 4), Order::BytesAndWords { .. }));
        assert!(matches!(order(2, 8), Order::BytesAndWords { .. }));
        assert!(matches!(order(1, 3), Order::Bytes { .. }));
    }
}
