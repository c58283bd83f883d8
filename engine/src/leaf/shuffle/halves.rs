//! Fills whole registers with the data of adjacent loads of 32 bytes (AVX2).
//!
//! `lanes.rs` uses this method if the period of the pattern divides 16 bytes and 4 or 8 of every 16 bytes
//! are data. All 16-byte halves of memory then have the same shuffle. The data of a half is moved to the
//! place in its half that the number of the load determines. When the register is full, a permutation of
//! its 4-byte words puts the halves' data in order. There are half as many loads as in `lanes.rs`.

use super::{LANE, NONE, Pattern, halves_windows};
use std::arch::x86_64::*;

/// A pattern that is packed with adjacent loads.
pub(super) struct Halves {
    /// For each load, the shuffle of both of its halves.
    shuffles: Box<[[u8; LANE]]>,
    /// For each word of the result, the word of the full register.
    order: [u32; 8],
}

impl Halves {
    /// Returns the method for `pattern`, or `None` if the pattern does not suit it.
    pub(super) fn new(pattern: &Pattern) -> Option<Self> {
        let loads = halves_windows(pattern)?;
        let bytes = LANE / loads;
        let sources = pattern.sources(LANE / pattern.stride);
        let shuffle = |load: usize| {
            let mut shuffle = [NONE; LANE];
            for (nth, &source) in sources.iter().enumerate() {
                shuffle[load * bytes + nth] = source as u8;
            }
            shuffle
        };
        // The data of half `h` of load `l` is number `2 * l + h` in packed order. It has `words` words and
        // lies at word `4 * h + l * words` of the full register.
        let words = bytes / 4;
        let word = |i: usize| {
            let (nth, word) = (i / words, i % words);
            (4 * (nth % 2) + nth / 2 * words + word) as u32
        };
        Some(Self { shuffles: (0..loads).map(shuffle).collect(), order: std::array::from_fn(word) })
    }

    /// Returns the number of bytes of memory that are loaded for a pair of lanes.
    pub(super) fn reach(&self) -> usize {
        2 * LANE * self.shuffles.len()
    }

    /// Packs `pairs` pairs of lanes.
    ///
    /// # Safety
    ///
    /// - [`reach`](Self::reach) bytes per pair are valid for reads at `mem`, and 32 bytes per pair for writes
    ///   at `packed`.
    /// - The CPU has AVX2.
    #[target_feature(enable = "avx2")]
    #[inline]
    pub(super) unsafe fn run(&self, pairs: usize, mem: *const u8, packed: *mut u8) {
        // SAFETY: the caller guarantees that the memory and the packed bytes of `pairs` pairs are valid.
        // Each arm passes the number of loads, which is 2 or 4.
        unsafe {
            match self.shuffles.len() {
                2 => self.loads::<2>(pairs, mem, packed),
                _ => self.loads::<4>(pairs, mem, packed),
            }
        }
    }

    /// Does what [`run`](Self::run) does, with `N` loads per pair.
    ///
    /// # Safety
    ///
    /// - The conditions of [`run`](Self::run) hold, and the pattern has `N` loads.
    #[target_feature(enable = "avx2")]
    #[inline]
    unsafe fn loads<const N: usize>(&self, pairs: usize, mem: *const u8, packed: *mut u8) {
        let shuffles: [__m256i; N] = std::array::from_fn(|n| {
            // SAFETY: a shuffle has 16 bytes.
            _mm256_broadcastsi128_si256(unsafe {
                _mm_loadu_si128(self.shuffles[n].as_ptr().cast())
            })
        });
        // SAFETY: `order` has 8 words of 4 bytes.
        let order = unsafe { _mm256_loadu_si256(self.order.as_ptr().cast()) };
        let (mut mem, mut packed) = (mem, packed);
        for _ in 0..pairs {
            // SAFETY: the loop runs `pairs` times, so `mem` is where the memory of a pair begins. The caller
            // guarantees that `N` times 32 bytes are readable there.
            let part = |n: usize| unsafe {
                let memory = _mm256_loadu_si256(mem.wrapping_add(2 * LANE * n).cast());
                _mm256_shuffle_epi8(memory, shuffles[n])
            };
            let mut data = part(0);
            for n in 1..N {
                data = _mm256_or_si256(data, part(n));
            }
            // SAFETY: `packed` is where the 32 packed bytes of this pair begin, and the caller guarantees
            // that these are writable.
            unsafe {
                _mm256_storeu_si256(packed.cast(), _mm256_permutevar8x32_epi32(data, order));
            }
            mem = mem.wrapping_add(2 * LANE * N);
            packed = packed.wrapping_add(2 * LANE);
        }
    }
}
