//! The loops that convert runs of elements between memory and external32. An element here is one value
//! of a named type. The loops are generic functions with one instance per kind of element and
//! instruction set.
//!
//! `mod.rs` calls the converters with runs from the typed program. The loops are written so that the
//! compiler vectorises them and reverses the bytes of the elements with one shuffle per register. The
//! instances for different instruction sets differ only in the width of their registers; [`runs`] picks
//! one at run time. All instances give the same result as converting element by element in typemap
//! order. The compiler has to preserve that order, because the loops use raw pointers, and the elements
//! in memory might overlap each other.

use super::kind::{Encoding, Kind, LARGEST, with_kind};
use crate::ir::typed::Runs;
use crate::named::Named;

/// Length of a cache line, in bytes.
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
    /// Size of an element in memory and in external32, in bytes.
    pub(super) sizes: (usize, usize),
}

/// A function that converts runs of elements. Its conditions are those of [`runs`].
type Converter = unsafe fn(&Runs, *mut u8, *mut u8) -> bool;

/// A function that converts a part of an element. Its arguments are the address of the element in
/// memory, the address of the external bytes, the number of external bytes before the part, and the
/// length of the part. Returns `true` if external32 cannot represent the value (only packing can
/// fail). The conditions are those of [`pack_part`] and [`Kind::unpack_part`].
type Part = unsafe fn(*mut u8, *mut u8, usize, usize) -> bool;

/// Returns the conversion functions for elements of type `named`.
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

/// Packs (if `PACK`) or unpacks `runs`. `ext` is the address of the first element's external form.
/// Returns `true` if external32 cannot represent a value (only packing can fail).
///
/// # Safety
///
/// - `K` is the kind of the runs' named type.
/// - With `origin` as the address of displacement 0, every element's data is valid: for reads if
///   `PACK`, for writes otherwise.
/// - `ext` is valid for the external size of all elements: for writes if `PACK`, for reads
///   otherwise.
/// - The elements and the bytes at `ext` do not overlap.
unsafe fn runs<K: Kind, const PACK: bool>(runs: &Runs, origin: *mut u8, ext: *mut u8) -> bool {
    let mem = origin.wrapping_offset(runs.offset as isize);
    let Runs { blocks, stride, length, .. } = *runs;
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512bw") && is_x86_feature_detected!("avx512vl") {
            // SAFETY: the test above shows that the CPU has AVX-512 BW and VL. The caller
            // guarantees that the elements from `mem` on and their bytes at `ext` are valid.
            return unsafe { sweep_avx512::<K, PACK>(mem, ext, blocks, stride, length) };
        }
        if is_x86_feature_detected!("avx2") {
            // SAFETY: the test above shows that the CPU has AVX2. The caller guarantees that the
            // elements from `mem` on and their bytes at `ext` are valid.
            return unsafe { sweep_avx2::<K, PACK>(mem, ext, blocks, stride, length) };
        }
    }
    // SAFETY: `mem` is the address of the first element. The caller guarantees that all elements
    // there and their bytes at `ext` are valid.
    unsafe { convert::<K, PACK>(mem, ext, blocks, stride, length) }
}

/// Calls [`convert`], compiled for AVX-512, so that the loops use 64-byte registers.
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
    // SAFETY: this function has the conditions of `convert` (and needs AVX-512 besides), and its
    // caller guarantees them for the same arguments.
    unsafe { convert::<K, PACK>(mem, ext, blocks, stride, length) }
}

/// Calls [`convert`], compiled for AVX2, so that the loops use 32-byte registers.
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
    // SAFETY: this function has the conditions of `convert` (and needs AVX2 besides), and its
    // caller guarantees them for the same arguments.
    unsafe { convert::<K, PACK>(mem, ext, blocks, stride, length) }
}

/// Packs (if `PACK`) or unpacks `blocks` blocks of `length` elements. The blocks begin `stride`
/// bytes apart in memory. Returns `true` if external32 cannot represent a value.
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
    // Neither `unit * length` nor `blocks * length * K::EXT` can overflow: the constructors of the
    // datatype have checked that the total size of the elements fits in an `i64`, and elements are no
    // larger in external32 than in memory.
    let dense = stride == unit.wrapping_mul(length as i64);
    if blocks == 1 || dense {
        if K::SAME {
            let (from, to) = if PACK { (mem, ext) } else { (ext, mem) };
            // SAFETY: all `blocks * length` elements are consecutive in memory, and their external
            // form has the same bytes. The caller guarantees that the elements at `mem` and their
            // bytes at `ext` are valid and do not overlap.
            unsafe { crate::contiguous::copy(from, to, (blocks * length) as usize * K::EXT) };
            return false;
        }
        // SAFETY: all `blocks * length` elements are consecutive in memory, so they are one row of
        // elements that begin `unit` bytes apart.
        return unsafe { aligned_row::<K, PACK>(mem, ext, unit, blocks * length) };
    }
    if length == 1 {
        // Pass the step as a multiple of a constant, so that the compiler can load whole registers and
        // drop every other element.
        return if stride == 2 * unit {
            // SAFETY: each block is a single element, and the elements begin `2 * unit == stride`
            // bytes apart.
            unsafe { aligned_row::<K, PACK>(mem, ext, 2 * unit, blocks) }
        } else {
            // SAFETY: each block is a single element, and the elements begin `stride` bytes apart.
            unsafe { row::<K, PACK>(mem, ext, stride, blocks) }
        };
    }
    // SAFETY: every arm converts the caller's `blocks` blocks of `length` elements, which begin
    // `stride` bytes apart. `short_blocks` requires elements without gaps, and `K::WHOLE` says that
    // `K` has none.
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

/// Does what [`convert`] does, for blocks of `N` elements. The function copies each block to a
/// local array and converts it there, so that the compiler can vectorise the conversion. Without
/// local arrays, the compiled code would have to store the first element before it loads the second,
/// because the compiler cannot know that memory and external bytes do not overlap.
///
/// # Safety
///
/// - The conditions of [`convert`] hold for blocks of `N` elements, and all bytes of an element are
///   data (`K::WHOLE`).
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
        // SAFETY: `mem` and `ext` are the addresses of one of the caller's blocks, which has `N`
        // elements without gaps. `from` and `to` each have room for `N` elements of the largest
        // size.
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

/// Does what [`row`] does, with two calls of `row`. The first call stops where the writes reach the
/// start of a cache line. So the whole-register stores of the second call do not cross cache lines,
/// which makes them faster (1.7 times for data in the L1 cache; example `external32`, contiguous
/// doubles). If the destination address is not a multiple of the element's size, no element begins at
/// the start of a cache line; then the first call converts nothing.
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
    // SAFETY: `head` is at most `count`, and the caller guarantees that `count` elements are valid.
    let bad = unsafe { row::<K, PACK>(mem, ext, step, head) };
    let mem = mem.wrapping_offset((head as isize).wrapping_mul(step as isize));
    let ext = ext.wrapping_add(head as usize * K::EXT);
    // SAFETY: `mem` and `ext` have advanced by `head` elements, so `count - head` of the caller's
    // elements are left.
    bad | unsafe { row::<K, PACK>(mem, ext, step, count - head) }
}

/// Packs (if `PACK`) or unpacks `count` elements that begin `step` bytes apart in memory.
///
/// # Safety
///
/// The conditions of [`runs`] hold for these elements, with `mem` as the address of the first
/// element.
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
        // SAFETY: `i` is below `count`, so the caller guarantees that element `i` at `at` and its
        // external bytes at `to` are valid.
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

/// Writes bytes `skip..skip + length` of the external form of the element at `mem` to `ext`.
/// Returns `true` if external32 cannot represent the value.
///
/// # Safety
///
/// - The element's data at `mem` is valid for reads.
/// - `skip + length` is at most `K::EXT`, and `ext` is valid for writes of `length` bytes.
/// - The element and the bytes at `ext` do not overlap.
unsafe fn pack_part<K: Kind>(mem: *mut u8, ext: *mut u8, skip: usize, length: usize) -> bool {
    let mut whole = [0u8; LARGEST];
    // SAFETY: the caller guarantees that the element at `mem` is readable. `whole` has room for the
    // largest external form.
    let bad = unsafe { K::pack(mem, whole.as_mut_ptr()) };
    // SAFETY: `skip + length` is at most `EXT`, so the part lies within `whole`. The caller
    // guarantees `length` writable bytes at `ext`.
    unsafe { std::ptr::copy_nonoverlapping(whole.as_ptr().add(skip), ext, length) };
    bad
}

/// Calls [`Kind::unpack_part`]. This function has the signature of [`Part`] and never returns
/// `true`.
///
/// # Safety
///
/// The conditions of [`Kind::unpack_part`] hold.
unsafe fn unpack_part<K: Kind>(mem: *mut u8, ext: *mut u8, skip: usize, length: usize) -> bool {
    // SAFETY: the caller guarantees the conditions of `Kind::unpack_part` for the same four values.
    unsafe { K::unpack_part(mem, skip, length, ext) };
    false
}

/// Returns the displacement and the value of the first element in `runs` that packing refuses, or `None`
/// if packing refuses none.
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
        // SAFETY: `at` is the displacement of one of the elements of `runs`, the caller guarantees
        // that the elements are valid, and `converters` is for the kind of the elements.
        unsafe { (converters.refused)(origin.wrapping_offset(at as isize)) }
            .map(|value| (at, value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    type Instance = unsafe fn(*mut u8, *mut u8, u64, i64, u64) -> bool;

    /// Returns the pack and the unpack function of every instance of [`convert`] that this CPU can
    /// execute.
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
                    // - `memory` has room for all blocks of the shape. `packed` has room for their
                    //   external form, starting at its second byte. The two are separate allocations.
                    // - This CPU can execute every instance that `instances` returns.
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
