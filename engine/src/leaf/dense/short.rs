//! A few elements of a dense pattern: as many whole elements as 64 bytes hold, in one load, permute
//! and store, both under masks.
//!
//! Built and called by `mod.rs`, for short calls and for the ends of long ones. There is one
//! permute and one pair of masks for all but the last elements, whose masks are the first bits of
//! these: nothing is aligned or divided, and nothing is touched but data, on either side. Elements
//! longer than 64 bytes take several such moves each.

use super::Stripe;
use super::masked::{LINE, first, in_grains, load, store};
use std::arch::x86_64::*;

/// A stretch of up to 64 bytes of memory and its data.
#[repr(align(64))]
struct Stretch {
    /// Packing: which byte of the stretch goes to each packed byte. Unpacking: which packed byte
    /// goes to each byte of the stretch.
    permute: [u8; LINE],
    /// The data in memory, a bit per grain.
    memory: u64,
    /// The packed data, a bit per grain.
    data: u64,
    /// Offset of the stretch from its element, in bytes.
    offset: usize,
    /// Offset of its data in the element's packed bytes.
    packed: usize,
}

/// A pattern by elements, for one direction.
pub(super) struct Short {
    /// The first stretch, or the only one: reached without another load.
    head: Stretch,
    /// Those that follow, of elements longer than 64 bytes.
    tail: Box<[Stretch]>,
    /// Elements that `head` holds; 1 if there are others.
    elements: usize,
    /// Bytes between elements.
    stride: usize,
    /// Packed bytes of an element.
    bytes: usize,
}

impl Short {
    /// The pattern of `runs` (ascending) every `stride` bytes, moved in grains of `grain` bytes.
    pub(super) fn new<const PACK: bool>(runs: &[Stripe], stride: usize, grain: usize) -> Self {
        let bytes = runs.iter().map(|run| run.bytes).sum();
        let extent = runs.last().map_or(0, Stripe::end);
        // Stretches that begin with so many bytes end with the end of an element.
        let widest = runs.iter().map(|run| run.width).max().unwrap_or(1);
        let elements =
            if extent > LINE { 1 } else { ((LINE - extent) / stride + 1).min(LINE / bytes) };
        let mut stretches: Vec<Stretch> = Vec::new();
        let mut packed = 0;
        for element in 0..elements {
            for run in runs {
                let begin = element * stride + run.offset;
                let (mut at, end) = (begin, begin + run.bytes);
                while at < end {
                    let full = |s: &Stretch| at >= s.offset + LINE;
                    if stretches.last().is_none_or(full) {
                        let (permute, offset) = ([0; LINE], at / widest * widest);
                        stretches.push(Stretch { permute, memory: 0, data: 0, offset, packed });
                    }
                    let stretch = stretches.last_mut().expect("pushed above if there was none");
                    let (from, nth) = (at - stretch.offset, packed - stretch.packed);
                    let part = (end - at).min(LINE - from);
                    for i in 0..part {
                        let swapped = run.swapped(nth + i, at - begin + i);
                        if PACK {
                            stretch.permute[swapped] = (from + i) as u8;
                        } else {
                            stretch.permute[from + i] = swapped as u8;
                        }
                    }
                    stretch.memory |= first(part) << from;
                    stretch.data |= first(part) << nth;
                    at += part;
                    packed += part;
                }
            }
        }
        for stretch in &mut stretches {
            stretch.memory = in_grains(stretch.memory, grain);
            stretch.data = in_grains(stretch.data, grain);
        }
        let mut stretches = stretches.into_iter();
        let head = stretches.next().expect("an element has data");
        Self { head, tail: stretches.collect(), elements, stride, bytes }
    }

    /// Elements that one move takes, 1 if an element takes several.
    pub(super) fn elements(&self) -> usize {
        self.elements
    }

    /// Moves that an element takes, 1 if a move takes several elements.
    pub(super) fn stretches(&self) -> usize {
        1 + self.tail.len()
    }

    /// Moves `count` elements, touching nothing else on either side.
    ///
    /// # Safety
    ///
    /// - The pattern was made for this direction and grain.
    /// - The data of `count` elements from `mem` on is valid, for reads when packing, for writes
    ///   otherwise; so are their packed bytes, the other way round.
    /// - The CPU has AVX-512 F, BW, VL and VBMI, and BMI2.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")]
    #[inline]
    pub(super) unsafe fn run<const PACK: bool, const GRAIN: usize>(
        &self,
        count: usize,
        mem: *mut u8,
        packed: *mut u8,
    ) {
        // A store under an empty mask waits for its page where that is not there.
        if count == 0 {
            return;
        }
        if !self.tail.is_empty() {
            // SAFETY: our contract.
            return unsafe { self.long::<PACK, GRAIN>(count, mem, packed) };
        }
        // Read once: the compiler has to assume that what is written may be this pattern.
        let Self { ref head, elements, stride, bytes, .. } = *self;
        let (memory, data) = (head.memory, head.data);
        let (pitch, packed_pitch) = (elements * stride, elements * bytes);
        let (mut count, mut mem, mut packed) = (count, mem.wrapping_add(head.offset), packed);
        // SAFETY: a register of this pattern, aligned by its type.
        let permute = unsafe { _mm512_load_si512(head.permute.as_ptr().cast()) };
        while count > elements {
            // SAFETY: `elements` elements, all of which there are.
            unsafe { one::<PACK, GRAIN>(permute, memory, data, mem, packed) };
            mem = mem.wrapping_add(pitch);
            packed = packed.wrapping_add(packed_pitch);
            count -= elements;
        }
        // The first `count` elements of as many as there are in a stretch.
        let memory = _bzhi_u64(memory, ((count * stride).min(LINE) / GRAIN) as u32);
        let data = _bzhi_u64(data, (count * bytes / GRAIN) as u32);
        // SAFETY: what is left, at least an element.
        unsafe { one::<PACK, GRAIN>(permute, memory, data, mem, packed) };
    }

    /// [`run`](Self::run) for elements of several stretches.
    ///
    /// # Safety
    ///
    /// As for [`run`](Self::run).
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")]
    #[inline(never)]
    unsafe fn long<const PACK: bool, const GRAIN: usize>(
        &self,
        count: usize,
        mem: *mut u8,
        packed: *mut u8,
    ) {
        for i in 0..count {
            let mem = mem.wrapping_add(i * self.stride);
            let packed = packed.wrapping_add(i * self.bytes);
            for stretch in std::iter::once(&self.head).chain(&self.tail) {
                // SAFETY: the stretch lies in element `i`, which there is; its register is aligned.
                unsafe {
                    let permute = _mm512_load_si512(stretch.permute.as_ptr().cast());
                    let mem = mem.wrapping_add(stretch.offset);
                    let packed = packed.wrapping_add(stretch.packed);
                    one::<PACK, GRAIN>(permute, stretch.memory, stretch.data, mem, packed);
                }
            }
        }
    }
}

/// Moves one stretch.
///
/// # Safety
///
/// - The grains under `memory` at `mem` and those under `data` at `packed` are valid, one for reads
///   and the other for writes, by the direction.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")]
#[inline]
unsafe fn one<const PACK: bool, const GRAIN: usize>(
    permute: __m512i,
    memory: u64,
    data: u64,
    mem: *mut u8,
    packed: *mut u8,
) {
    // SAFETY: our contract.
    unsafe {
        if PACK {
            let bytes = _mm512_permutexvar_epi8(permute, load::<GRAIN>(memory, mem));
            store::<GRAIN>(data, packed, bytes);
        } else {
            let bytes = _mm512_permutexvar_epi8(permute, load::<GRAIN>(data, packed));
            store::<GRAIN>(memory, mem, bytes);
        }
    }
}
