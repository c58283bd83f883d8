//! Moves a few elements of a dense pattern. One move handles as many whole elements as fit in 64
//! bytes; it consists of a masked load, a permute and a masked store.
//!
//! `mod.rs` uses this method for calls with few elements, and for the ends of calls with many
//! elements. All moves but the last use the same permute and the same pair of masks; the last move
//! uses only the first bits of the masks. So this method needs no alignment and no division, and
//! accesses nothing but data on either side. An element longer than 64 bytes needs several moves,
//! each with its own permute and masks.

use super::Stripe;
use super::masked::{LINE, first, in_grains, load, store};
use std::arch::x86_64::*;

/// A stretch of up to 64 bytes of memory and its data.
#[repr(C, align(64))]
struct Stretch {
    /// When packing: for each packed byte, the index of its source byte in the stretch. When
    /// unpacking: for each byte of the stretch, the index of its source among the packed bytes.
    permute: [u8; LINE],
    /// A mask of the data in memory, one bit per grain.
    memory: u64,
    /// A mask of the packed data, one bit per grain.
    data: u64,
    /// Offset of the stretch from the start of its element, in bytes.
    offset: usize,
    /// Offset of the stretch's data in the packed bytes of the element.
    packed: usize,
}

/// A pattern that is moved element by element, for one direction.
pub(super) struct Short {
    /// The first stretch, often the only one. It is stored inline, so that no pointer must be loaded
    /// to reach it.
    head: Stretch,
    /// The other stretches of an element that is longer than 64 bytes.
    tail: Box<[Stretch]>,
    /// Number of elements that `head` covers; 1 if `tail` is not empty.
    elements: usize,
    /// Distance from the start of one element to the start of the next, in bytes.
    stride: usize,
    /// Number of packed bytes per element.
    bytes: usize,
}

impl Short {
    /// Builds the pattern that repeats `runs` every `stride` bytes; the runs must be in ascending
    /// order. A bit of a mask stands for `grain` bytes.
    pub(super) fn new<const PACK: bool>(runs: &[Stripe], stride: usize, grain: usize) -> Self {
        let bytes = runs.iter().map(|run| run.bytes).sum();
        let extent = runs.last().map_or(0, Stripe::end);
        // A stretch begins at a multiple of the greatest width of a basic element. So it also ends
        // at a multiple of this width, and no basic element lies in two stretches.
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
                    let stretch =
                        stretches.last_mut().expect("the lines above push a stretch if needed");
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
        let head =
            stretches.next().expect("every element has data, so there is at least one stretch");
        Self { head, tail: stretches.collect(), elements, stride, bytes }
    }

    /// Returns the number of elements that one move handles; 1 if an element needs several moves.
    pub(super) fn elements(&self) -> usize {
        self.elements
    }

    /// Returns the number of moves that one element needs; 1 if a move handles several elements.
    pub(super) fn stretches(&self) -> usize {
        1 + self.tail.len()
    }

    /// Moves `count` elements and accesses nothing else on either side.
    ///
    /// # Safety
    ///
    /// - The pattern was made for this direction and grain.
    /// - The data of the `count` elements that begin at `mem` is valid for reads when packing, and
    ///   for writes when unpacking. The packed bytes of these elements, at `packed`, are valid for
    ///   writes when packing, and for reads when unpacking.
    /// - The CPU has AVX-512 F, BW, VL and VBMI, and BMI2.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")]
    #[inline]
    pub(super) unsafe fn run<const PACK: bool, const GRAIN: usize>(
        &self,
        count: usize,
        mem: *mut u8,
        packed: *mut u8,
    ) {
        // Return early, because even a store under an empty mask waits for its page if the page is
        // not mapped.
        if count == 0 {
            return;
        }
        if !self.tail.is_empty() {
            // SAFETY: `long` has the same conditions as this function and gets the same arguments.
            return unsafe { self.long::<PACK, GRAIN>(count, mem, packed) };
        }
        // The fields are read once here. The compiler must assume that the stores may overwrite
        // `self`, so it would otherwise read the fields again after every store.
        let Self { ref head, elements, stride, bytes, .. } = *self;
        let (memory, data) = (head.memory, head.data);
        let (pitch, packed_pitch) = (elements * stride, elements * bytes);
        let (mut count, mut mem, mut packed) = (count, mem.wrapping_add(head.offset), packed);
        // SAFETY: `permute` has 64 bytes and is the first field of a `Stretch`. A `Stretch` is
        // `repr(C)` and aligned to 64 bytes.
        let permute = unsafe { _mm512_load_si512(head.permute.as_ptr().cast()) };
        while count > elements {
            // SAFETY: more than `elements` elements are left, so the move accesses only the data of
            // existing elements.
            unsafe { one::<PACK, GRAIN>(permute, memory, data, mem, packed) };
            mem = mem.wrapping_add(pitch);
            packed = packed.wrapping_add(packed_pitch);
            count -= elements;
        }
        // Keep only the bits of the `count` elements that are left.
        let memory = _bzhi_u64(memory, ((count * stride).min(LINE) / GRAIN) as u32);
        let data = _bzhi_u64(data, (count * bytes / GRAIN) as u32);
        // SAFETY: the masks contain only the `count` elements that are left, and `count` is at least
        // 1.
        unsafe { one::<PACK, GRAIN>(permute, memory, data, mem, packed) };
    }

    /// Does what [`run`](Self::run) does for elements that consist of several stretches.
    ///
    /// # Safety
    ///
    /// The conditions of [`run`](Self::run) hold.
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
                // SAFETY: `i` is below `count`, so the caller guarantees that the data of the stretch
                // is valid on both sides. A `Stretch` is `repr(C)` and aligned to 64 bytes, and
                // `permute` is its first field.
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
/// - When packing, the grains under `memory` at `mem` are valid for reads, and those under `data` at
///   `packed` for writes. When unpacking, it is the other way round.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")]
#[inline]
unsafe fn one<const PACK: bool, const GRAIN: usize>(
    permute: __m512i,
    memory: u64,
    data: u64,
    mem: *mut u8,
    packed: *mut u8,
) {
    // SAFETY: the load and the store access only the grains under `memory` at `mem` and those under
    // `data` at `packed`. The caller guarantees that these are valid.
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
