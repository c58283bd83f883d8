//! Packing several lines of a sparse pattern into one whole store.
//!
//! Built and called by `mod.rs` for long calls, where the packed bytes of an element divide 64.
//! Elements that fill a register lie in two to four stretches of 64 bytes; each is loaded under its
//! mask, permuted to where its data belongs and merged. Stores are whole and do not overlap, which
//! also keeps them out of the way of loads at the same place in another page: a line at a time
//! (`lines.rs`), these had to wait for overlapping stores (1 byte of 3, 16 KiB: 10 to 22 GB/s,
//! depending on the buffers; 22 here).

use super::Stripe;
use super::masked::{AHEAD, BYTES, LINE, announce, load};
use std::arch::x86_64::*;

/// Most stretches. Their masks are just the mask registers that there are.
const MOST: usize = 4;

/// A stretch of 64 bytes of memory.
#[repr(align(64))]
#[derive(Clone, Copy)]
struct Part {
    /// Which byte of the stretch goes to each packed byte.
    permute: [u8; LINE],
    /// The data in the stretch.
    memory: u64,
    /// Where it belongs in the packed bytes.
    data: u64,
}

/// A pattern by packed registers.
pub(super) struct Gather {
    parts: Box<[Part]>,
    /// Elements of a register, `1 << shift`.
    shift: u32,
    /// Bytes from one register's elements to the next one's.
    pitch: usize,
}

impl Gather {
    /// The pattern of `runs` (as in `short.rs`) every `stride` bytes, if it is one.
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

    /// Stretches of a register.
    pub(super) fn parts(&self) -> usize {
        self.parts.len()
    }

    /// Packs as many of `count` elements as fill registers; returns their number. `far` as in
    /// `lines.rs`.
    ///
    /// # Safety
    ///
    /// As for [`Short::run`](super::short::Short::run), for packing.
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
        // SAFETY: these registers and then the others, whose elements there are.
        unsafe {
            if announced > 0 {
                self.some::<true>(announced, mem, packed);
            }
            let mem = mem.wrapping_add(announced * self.pitch);
            self.some::<false>(rest, mem, packed.wrapping_add(announced * LINE));
        }
        registers << self.shift
    }

    /// Packs `registers` registers, announcing every store or none.
    ///
    /// # Safety
    ///
    /// As for [`run`](Self::run), for their elements.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")]
    unsafe fn some<const FAR: bool>(&self, registers: usize, mem: *const u8, packed: *mut u8) {
        // SAFETY: our contract; parts by their number.
        unsafe {
            match *self.parts {
                [a, b] => held::<FAR, 2>(&[a, b], self.pitch, registers, mem, packed),
                [a, b, c] => held::<FAR, 3>(&[a, b, c], self.pitch, registers, mem, packed),
                [a, b, c, d] => held::<FAR, 4>(&[a, b, c, d], self.pitch, registers, mem, packed),
                _ => unreachable!("new() makes two to four parts"),
            }
        }
    }
}

/// Packs `registers` registers of `PARTS` stretches each, `pitch` bytes from one to the next.
///
/// # Safety
///
/// - The data of all stretches is valid for reads, `packed` for writes of so many registers.
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
        // SAFETY: a register of the pattern, aligned by its type.
        unsafe { _mm512_load_si512(parts[i].permute.as_ptr().cast()) }
    });
    let masks: [(u64, u64); PARTS] = std::array::from_fn(|i| (parts[i].memory, parts[i].data));
    let (mut mem, mut packed) = (mem, packed);
    for _ in 0..registers {
        if FAR {
            announce(packed.wrapping_add(AHEAD));
        }
        // SAFETY: the stretches of a register that is ours, and its packed bytes.
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
