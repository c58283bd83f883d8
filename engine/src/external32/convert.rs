//! The loops that convert runs of elements: one algorithm, instantiated for each kind of element
//! and each instruction set.
//!
//! `mod.rs` calls the converters with runs from the typed program. The loops are written so that the
//! compiler vectorises them (byte order is one shuffle per register). The instances differ only in
//! the width of their registers; [`runs`] picks the instance at run time. The result is that of a
//! conversion in typemap order: both sides are raw memory, so the compiler must assume that elements
//! may overlap.

use super::kind::{Encoding, Kind, LARGEST, with_kind};
use crate::ir::typed::Runs;
use crate::named::Named;

/// Bytes of a cache line.
const LINE: usize = 64;

/// The conversion functions of one kind of element.
pub(super) struct Converters {
    /// The instance of [`runs`] for packing.
    pub(super) pack: Converter,
    /// The instance of [`runs`] for unpacking.
    pub(super) unpack: Converter,
    pub(super) pack_part: Part,
    pub(super) unpack_part: Part,
    pub(super) refused: unsafe fn(*const u8) -> Option<i128>,
    /// Bytes of an element in memory and in external32.
    pub(super) sizes: (usize, usize),
}

/// Converts runs of elements. The conditions are those of [`runs`].
type Converter = unsafe fn(&Runs, *mut u8, *mut u8) -> bool;

/// Converts a part of an element. The arguments are memory, external bytes, skip and length.
/// Returns `true` if external32 cannot represent the value (packing only). The conditions are those
/// of [`pack_part`] and [`Kind::unpack_part`].
type Part = unsafe fn(*mut u8, *mut u8, usize, usize) -> bool;

/// Returns the functions for elements of `named`.
pub(super) fn converters(named: Named) -> &'static Converters {
    fn of<K: Kind>() -> &'static Converters {
        const {
            &Converters {
                pack: runs::<K, true>,
                unpack: runs::<K, false>,
                pack_part: pack_part::<K>,
                unpack_part: unpack_part::<K>,
                refused: K::refused,
                sizes: (K::MEM, K::EXT),
            }
        }
    }
    with_kind!(Encoding::of(named), of)
}

/// Converts `runs` between memory and external32. `ext` is the address of the first element.
/// Returns `true` if external32 cannot represent a value (packing only).
///
/// # Safety
///
/// - `K` is the kind of the runs' named type.
/// - With `origin` as the address of displacement 0, every element's data is valid: for reads if
///   `PACK`, for writes otherwise.
/// - `ext` is valid for the elements' external bytes: for writes when `PACK`, for reads otherwise.
/// - The two sides do not overlap.
unsafe fn runs<K: Kind, const PACK: bool>(runs: &Runs, origin: *mut u8, ext: *mut u8) -> bool {
    let mem = origin.wrapping_offset(runs.offset as isize);
    let Runs { blocks, stride, length, .. } = *runs;
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512bw") && is_x86_feature_detected!("avx512vl") {
            // SAFETY: the CPU has AVX-512 BW and VL (just tested); the caller guarantees the
            // elements from `mem` on and their bytes at `ext`.
            return unsafe { sweep_avx512::<K, PACK>(mem, ext, blocks, stride, length) };
        }
        if is_x86_feature_detected!("avx2") {
            // SAFETY: the CPU has AVX2 (just tested); the caller guarantees the elements from `mem`
            // on and their bytes at `ext`.
            return unsafe { sweep_avx2::<K, PACK>(mem, ext, blocks, stride, length) };
        }
    }
    // SAFETY: `mem` is the address of the first element; the caller guarantees all elements and
    // their bytes at `ext`.
    unsafe { convert::<K, PACK>(mem, ext, blocks, stride, length) }
}

/// Does what [`convert`] does, with 64-byte registers.
///
/// # Safety
///
/// - The conditions of [`convert`] hold.
/// - The CPU has AVX-512 BW and VL.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512bw,avx512vl")]
unsafe fn sweep_avx512<K: Kind, const PACK: bool>(
    mem: *mut u8,
    ext: *mut u8,
    blocks: u64,
    stride: i64,
    length: u64,
) -> bool {
    // SAFETY: the caller guarantees the elements on both sides; this function only adds AVX-512 to
    // the code of `convert`.
    unsafe { convert::<K, PACK>(mem, ext, blocks, stride, length) }
}

/// Does what [`convert`] does, with 32-byte registers.
///
/// # Safety
///
/// - The conditions of [`convert`] hold.
/// - The CPU has AVX2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn sweep_avx2<K: Kind, const PACK: bool>(
    mem: *mut u8,
    ext: *mut u8,
    blocks: u64,
    stride: i64,
    length: u64,
) -> bool {
    // SAFETY: the caller guarantees the elements on both sides; this function only adds AVX2 to the
    // code of `convert`.
    unsafe { convert::<K, PACK>(mem, ext, blocks, stride, length) }
}

/// Converts `blocks` blocks of `length` elements. The blocks are `stride` bytes apart in memory.
///
/// # Safety
///
/// The conditions of [`runs`] hold, with `mem` as the address of the first element.
#[inline(always)]
unsafe fn convert<K: Kind, const PACK: bool>(
    mem: *mut u8,
    ext: *mut u8,
    blocks: u64,
    stride: i64,
    length: u64,
) -> bool {
    let unit = K::MEM as i64;
    // The sizes of all elements together fit i64 on either side: the datatype's constructors
    // checked it.
    let dense = stride == unit.wrapping_mul(length as i64);
    if blocks == 1 || dense {
        if K::SAME {
            let (from, to) = if PACK { (mem, ext) } else { (ext, mem) };
            // SAFETY: all `blocks * length` elements are consecutive in memory, and their bytes do
            // not change; the caller guarantees both sides, which do not overlap.
            unsafe { std::ptr::copy_nonoverlapping(from, to, (blocks * length) as usize * K::EXT) };
            return false;
        }
        // SAFETY: all `blocks * length` elements are consecutive in memory, so they are one row
        // with step `unit`.
        return unsafe { aligned_row::<K, PACK>(mem, ext, unit, blocks * length) };
    }
    if length == 1 {
        // If the compiler knows the step, it loads whole registers and drops every other element.
        return if stride == 2 * unit {
            // SAFETY: the blocks are single elements, `2 * unit == stride` bytes apart.
            unsafe { aligned_row::<K, PACK>(mem, ext, 2 * unit, blocks) }
        } else {
            // SAFETY: the blocks are single elements, `stride` bytes apart.
            unsafe { row::<K, PACK>(mem, ext, stride, blocks) }
        };
    }
    // SAFETY: every arm passes `blocks` blocks of `length` elements, `stride` bytes apart, which
    // the caller guarantees; `short_blocks` is used only for kinds without gaps.
    unsafe {
        match length {
            2 if K::WHOLE => short_blocks::<K, PACK, 2>(mem, ext, blocks, stride),
            3 if K::WHOLE => short_blocks::<K, PACK, 3>(mem, ext, blocks, stride),
            4 if K::WHOLE => short_blocks::<K, PACK, 4>(mem, ext, blocks, stride),
            8 if K::WHOLE => short_blocks::<K, PACK, 8>(mem, ext, blocks, stride),
            _ => {
                let (mut mem, mut ext, mut bad) = (mem, ext, false);
                for _ in 0..blocks {
                    bad |= row::<K, PACK>(mem, ext, unit, length);
                    mem = mem.wrapping_offset(stride as isize);
                    ext = ext.wrapping_add(length as usize * K::EXT);
                }
                bad
            }
        }
    }
}

/// Does what [`convert`] does for blocks of `N` elements, with the conversion in local arrays.
/// Between buffers that may overlap, the compiler must not load a second element before it has
/// stored the first.
///
/// # Safety
///
/// - The conditions of [`convert`] hold, for blocks of `N` elements.
#[inline(always)]
unsafe fn short_blocks<K: Kind, const PACK: bool, const N: usize>(
    mem: *mut u8,
    ext: *mut u8,
    blocks: u64,
    stride: i64,
) -> bool {
    let (mut mem, mut ext, mut bad) = (mem, ext, false);
    let (mut from, mut to) = ([[0u8; LARGEST]; N], [[0u8; LARGEST]; N]);
    let (from, to) = (from.as_mut_ptr().cast::<u8>(), to.as_mut_ptr().cast::<u8>());
    for _ in 0..blocks {
        // SAFETY: `mem` and `ext` hold one of the caller's blocks: `N` elements without gaps on
        // both sides. `from` and `to` each hold `N` elements of the largest size.
        unsafe {
            if PACK {
                from.copy_from_nonoverlapping(mem, N * K::MEM);
                for i in 0..N {
                    bad |= K::pack(from.add(i * K::MEM), to.add(i * K::EXT));
                }
                ext.copy_from_nonoverlapping(to, N * K::EXT);
            } else {
                from.copy_from_nonoverlapping(ext, N * K::EXT);
                for i in 0..N {
                    K::unpack(from.add(i * K::EXT), to.add(i * K::MEM));
                }
                mem.copy_from_nonoverlapping(to, N * K::MEM);
            }
        }
        mem = mem.wrapping_offset(stride as isize);
        ext = ext.wrapping_add(N * K::EXT);
    }
    bad
}

/// Does what [`row`] does, in two pieces, so that the second piece begins to write at a cache line.
/// Whole registers are stored much faster if they do not cross lines (1.7 times in L1; example
/// `external32`, contiguous doubles).
///
/// # Safety
///
/// The conditions of [`row`] hold.
#[inline(always)]
unsafe fn aligned_row<K: Kind, const PACK: bool>(
    mem: *mut u8,
    ext: *mut u8,
    step: i64,
    count: u64,
) -> bool {
    let (written, bytes) = if PACK { (ext, K::EXT) } else { (mem, K::MEM) };
    let head = (written.addr().wrapping_neg() % LINE / bytes) as u64;
    let head = if written.addr().is_multiple_of(bytes) { head.min(count) } else { 0 };
    // SAFETY: `head` is at most `count`, so the first `head` elements are the caller's.
    let bad = unsafe { row::<K, PACK>(mem, ext, step, head) };
    let mem = mem.wrapping_offset((head as isize).wrapping_mul(step as isize));
    let ext = ext.wrapping_add(head as usize * K::EXT);
    // SAFETY: `mem` and `ext` have advanced by `head` elements, so `count - head` are left.
    bad | unsafe { row::<K, PACK>(mem, ext, step, count - head) }
}

/// Converts `count` elements, `step` bytes apart in memory.
///
/// # Safety
///
/// The conditions of [`runs`] hold for these elements, with `mem` as the address of the first.
#[inline(always)]
unsafe fn row<K: Kind, const PACK: bool>(
    mem: *mut u8,
    ext: *mut u8,
    step: i64,
    count: u64,
) -> bool {
    let mut bad = false;
    for i in 0..count as usize {
        let at = mem.wrapping_offset((i as isize).wrapping_mul(step as isize));
        let to = ext.wrapping_add(i * K::EXT);
        // SAFETY: `i` is below `count`, so the caller guarantees element `i` at `at` and its bytes
        // at `to`.
        unsafe {
            if PACK {
                bad |= K::pack(at, to);
            } else {
                K::unpack(to, at);
            }
        }
    }
    bad
}

/// Packs bytes `skip..skip + length` of one element's external form to `ext`. Returns `true` if
/// external32 cannot represent the value.
///
/// # Safety
///
/// - The element's data at `mem` is valid for reads.
/// - `skip + length` is at most the kind's external bytes, and `ext` is valid for writes of
///   `length` bytes.
/// - The two sides do not overlap.
unsafe fn pack_part<K: Kind>(mem: *mut u8, ext: *mut u8, skip: usize, length: usize) -> bool {
    let mut whole = [0u8; LARGEST];
    // SAFETY: the caller guarantees that the element is readable; `whole` holds the largest
    // external form.
    let bad = unsafe { K::pack(mem, whole.as_mut_ptr()) };
    // SAFETY: `skip + length` is at most `EXT`, so the part lies within `whole`; the caller
    // guarantees `length` writable bytes at `ext`.
    unsafe { std::ptr::copy_nonoverlapping(whole.as_ptr().add(skip), ext, length) };
    bad
}

/// Calls [`Kind::unpack_part`], with the signature of a [`Part`].
///
/// # Safety
///
/// The conditions of [`Kind::unpack_part`] hold.
unsafe fn unpack_part<K: Kind>(mem: *mut u8, ext: *mut u8, skip: usize, length: usize) -> bool {
    // SAFETY: the caller guarantees the conditions of `Kind::unpack_part` for the same four values.
    unsafe { K::unpack_part(mem, skip, length, ext) };
    false
}

/// Returns the displacement of the first element of `runs` that packing refuses, and its value.
///
/// # Safety
///
/// - With `origin` as the address of displacement 0, the data of every element is valid for reads.
#[cold]
pub(super) unsafe fn refused(runs: &Runs, origin: *const u8) -> Option<(i64, i128)> {
    let converters = converters(runs.named);
    let all = (0..runs.blocks).flat_map(|block| (0..runs.length).map(move |i| (block, i)));
    all.map(|(block, i)| {
        let shift = (block as i64).wrapping_mul(runs.stride);
        runs.offset.wrapping_add(shift).wrapping_add(i as i64 * converters.sizes.0 as i64)
    })
    .find_map(|at| {
        // SAFETY: `at` is the displacement of one of the runs' elements, and the function is that
        // of their kind.
        unsafe { (converters.refused)(origin.wrapping_offset(at as isize)) }
            .map(|value| (at, value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    type Instance = unsafe fn(*mut u8, *mut u8, u64, i64, u64) -> bool;

    /// Returns the instances of one kind that this CPU can execute, for both directions.
    fn instances<K: Kind>() -> Vec<[Instance; 2]> {
        #[cfg_attr(not(target_arch = "x86_64"), expect(unused_mut, reason = "there is one"))]
        let mut all: Vec<[Instance; 2]> = vec![[convert::<K, true>, convert::<K, false>]];
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx2") {
                all.push([sweep_avx2::<K, true>, sweep_avx2::<K, false>]);
            }
            if is_x86_feature_detected!("avx512bw") && is_x86_feature_detected!("avx512vl") {
                all.push([sweep_avx512::<K, true>, sweep_avx512::<K, false>]);
            }
        }
        all
    }

    #[test]
    fn every_instruction_set_gives_the_same_answer() {
        for named in Named::all().filter(|named| named.size() > 0) {
            let (mem, ext) = converters(named).sizes;
            let unit = mem as i64;
            let mut shapes = vec![(1, 0, 133), (67, 2 * unit, 1), (67, 3 * unit + 1, 1)];
            shapes.extend((2..=9).map(|length| (9, 10 * unit, length)));
            for (blocks, stride, length) in shapes {
                let room = blocks as usize * stride as usize + 140 * mem;
                let source: Vec<u8> = (0..room).map(|i| (i * 37 % 253) as u8).collect();
                let bytes = (blocks * length) as usize * ext;
                let mut answers = Vec::new();
                for [pack, unpack] in with_kind!(Encoding::of(named), instances) {
                    let (mut memory, mut packed) = (source.clone(), vec![0u8; bytes + 1]);
                    let (at, to) = (memory.as_mut_ptr(), packed.as_mut_ptr());
                    // SAFETY:
                    // - `memory` holds the shape with room to spare, `packed` its external bytes,
                    //   one byte off any alignment; they are two allocations;
                    // - `instances` returned only instances that the CPU can execute.
                    unsafe {
                        let bad = pack(at, to.add(1), blocks, stride, length);
                        unpack(at, to.add(1), blocks, stride, length);
                        answers.push((bad, packed, memory));
                    }
                }
                assert!(answers.windows(2).all(|two| two[0] == two[1]), "{named} {stride}");
            }
        }
    }
}
