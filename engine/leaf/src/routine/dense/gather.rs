//! Packs the data of several lines of a dense pattern into one register, and stores the whole register
//! at once.
//!
//! `mod.rs` uses this method for calls with many elements if the number of packed bytes per element
//! divides 64 and the elements that fill a register lie in two to four stretches of 64 bytes. Each
//! stretch is loaded under its mask, its data bytes are permuted to their packed positions, and the
//! results are merged. The stores write whole registers and do not overlap each other. So a load
//! never waits for a store to the same offset in another page. `lines.rs`, which moves one line at
//! a time, has overlapping stores, and its loads wait for them: when packing 1 of every 3 bytes (16
//! KiB), it reached 10 to 22 GB/s, depending on the addresses of the buffers. The method of this
//! file reaches 22 GB/s.

use super::Stripe;
use super::masked::{AHEAD, BYTES, LINE, announce, load};
use std::arch::x86_64::*;

/// Maximum number of stretches per register. With this number, the masks of the stretches use all
/// available mask registers.
const MOST: usize = 4;

/// A stretch of 64 bytes of memory.
#[repr(C, align(64))]
#[derive(Clone, Copy)]
struct Part {
    /// For each packed byte, the index of its source byte in the stretch.
    permute: [u8; LINE],
    /// A mask of the bytes of the stretch that are data.
    memory: u64,
    /// A mask of the packed bytes that come from this stretch.
    data: u64,
}

/// A pattern that is packed one register at a time.
pub(super) struct Gather {
    parts: Box<[Part]>,
    /// The number of elements per register is `1 << shift`.
    shift: u32,
    /// Distance in memory from the first element of one register to the first element of the next, in
    /// bytes.
    pitch: usize,
}

impl Gather {
    /// Returns the pattern that repeats `runs` every `stride` bytes; the runs must be in ascending
    /// order. Returns `None` if no whole number of elements fills a register, or if the elements of
    /// a register do not lie in two to four stretches.
    pub(super) fn new(runs: &[Stripe], stride: usize) -> Option<Self> {
        let bytes: usize = runs.iter().map(|run| run.bytes).sum();
        if !bytes.is_power_of_two() || bytes > LINE {
            return None;
        }
        let elements = LINE / bytes;
        let extent = runs.last().map_or(0, Stripe::end);
        let lines = ((elements - 1) * stride + extent).div_ceil(LINE);
        if !(2..=MOST).contains(&lines) {
            return None;
        }
        let mut parts = vec![Part { permute: [0; LINE], memory: 0, data: 0 }; lines];
        let mut packed = 0;
        for element in 0..elements {
            for run in runs {
                for i in 0..run.bytes {
                    let at = element * stride + run.offset + i;
                    let (part, swapped) = (&mut parts[at / LINE], run.swapped(packed, i));
                    part.permute[swapped] = (at % LINE) as u8;
                    part.memory |= 1 << (at % LINE);
                    part.data |= 1 << swapped;
                    packed += 1;
                }
            }
        }
        let shift = elements.trailing_zeros();
        Some(Self { parts: parts.into(), shift, pitch: elements * stride })
    }

    /// Returns the number of stretches per register.
    pub(super) fn parts(&self) -> usize {
        self.parts.len()
    }

    /// Packs as many whole registers as `count` elements fill, and returns the number of elements
    /// packed. `far` is true if the lines are not expected to be in the first-level cache.
    ///
    /// # Safety
    ///
    /// The conditions of [`Short::run`](super::short::Short::run) hold, for packing.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")]
    pub(super) unsafe fn run(
        &self,
        count: usize,
        far: bool,
        mem: *const u8,
        packed: *mut u8,
    ) -> usize {
        let registers = count >> self.shift;
        let announced = if far { registers.saturating_sub(AHEAD / LINE + 1) } else { 0 };
        let rest = registers - announced;
        // SAFETY: `announced + rest` registers hold at most `count` elements, and the caller guarantees
        // that these are valid. The second call starts after the elements of the first `announced`
        // registers.
        unsafe {
            if announced > 0 {
                self.some::<true>(announced, mem, packed);
            }
            let mem = mem.wrapping_add(announced * self.pitch);
            self.some::<false>(rest, mem, packed.wrapping_add(announced * LINE));
        }
        registers << self.shift
    }

    /// Packs the elements that fill `registers` registers. If `FAR` is true, each store comes with the
    /// announcement of a later store ([`announce`]).
    ///
    /// # Safety
    ///
    /// The conditions of [`run`](Self::run) hold, for the elements of `registers` registers.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")]
    unsafe fn some<const FAR: bool>(&self, registers: usize, mem: *const u8, packed: *mut u8) {
        // SAFETY: the caller guarantees that the elements of `registers` registers are valid. Each arm
        // passes all parts of the pattern.
        unsafe {
            match *self.parts {
                [a, b] => held::<FAR, 2>(&[a, b], self.pitch, registers, mem, packed),
                [a, b, c] => held::<FAR, 3>(&[a, b, c], self.pitch, registers, mem, packed),
                [a, b, c, d] => held::<FAR, 4>(&[a, b, c, d], self.pitch, registers, mem, packed),
                _ => unreachable!("`new` has made fewer than two or more than four parts"),
            }
        }
    }
}

/// Packs the elements that fill `registers` registers. The data of each register comes from `PARTS`
/// stretches. The stretches of consecutive registers lie `pitch` bytes apart in memory.
///
/// # Safety
///
/// - The data of all stretches is valid for reads.
/// - `packed` is valid for writes of `registers` times 64 bytes.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")]
#[inline]
unsafe fn held<const FAR: bool, const PARTS: usize>(
    parts: &[Part; PARTS],
    pitch: usize,
    registers: usize,
    mem: *const u8,
    packed: *mut u8,
) {
    let permutes: [__m512i; PARTS] = std::array::from_fn(|i| {
        // SAFETY: `permute` has 64 bytes and is the first field of a `Part`, which is `repr(C)` and
        // aligned to 64 bytes.
        unsafe { _mm512_load_si512(parts[i].permute.as_ptr().cast()) }
    });
    let masks: [(u64, u64); PARTS] = std::array::from_fn(|i| (parts[i].memory, parts[i].data));
    let (mut mem, mut packed) = (mem, packed);
    for _ in 0..registers {
        if FAR {
            announce(packed.wrapping_add(AHEAD));
        }
        // SAFETY: the loop runs `registers` times, so `mem` is where the elements of one of these
        // registers begin, and `packed` is where the 64 packed bytes of these elements begin. The
        // caller guarantees that the elements' data is readable and their packed bytes are writable. A
        // masked load accesses data only.
        unsafe {
            let mut data = _mm512_permutexvar_epi8(permutes[0], load::<BYTES>(masks[0].0, mem));
            for i in 1..PARTS {
                let line = load::<BYTES>(masks[i].0, mem.wrapping_add(i * LINE));
                data = _mm512_mask_permutexvar_epi8(data, masks[i].1, permutes[i], line);
            }
            _mm512_storeu_si512(packed.cast(), data);
        }
        mem = mem.wrapping_add(pitch);
        packed = packed.wrapping_add(LINE);
    }
}
