//! The hand-written loops: what a good programmer writes instead of a datatype.
//!
//! The usual block sizes are compile-time constants; counts and strides are run-time arguments, except in
//! the loops of the kind [`FIXED`](kind::FIXED), which have constant strides, too. A loop over blocks of a
//! usual size, or over structs, checks its bounds once, before it starts. A loop over a list, or over blocks
//! of any other size, checks every block, as safe Rust does. Memory and packed bytes are slices, so that the
//! compiler knows that they do not overlap. Nothing is unrolled or vectorised by hand.
//!
//! There are three builds of these loops: a shared object, a copy inside `typepack-bench`, and C code.
//! `scripts/bench` builds this crate separately as the shared object, for this machine
//! (`-C target-cpu=native`); `typepack-bench peers` and `guidelines` load it
//! (`../../src/competitor/hand.rs`). If the object is missing, and for `typepack-bench pack`, the copy inside
//! `typepack-bench` runs. The copy is compiled for any machine, for AVX-512 with VBMI, and for each
//! [`Level`]. `../hand.c` has the same loops in C.

use std::slice::{from_raw_parts, from_raw_parts_mut};

/// If `$block` is one of the block lengths listed below, calls `$f` with this length as the compile-time
/// constant `B`. Evaluates `$other` for any other length.
macro_rules! with_block {
    ($block:expr, $f:ident($($argument:expr),*), $other:expr) => {
        match $block {
            1 => $f::<1>($($argument),*),
            2 => $f::<2>($($argument),*),
            4 => $f::<4>($($argument),*),
            8 => $f::<8>($($argument),*),
            12 => $f::<12>($($argument),*),
            16 => $f::<16>($($argument),*),
            24 => $f::<24>($($argument),*),
            32 => $f::<32>($($argument),*),
            40 => $f::<40>($($argument),*),
            64 => $f::<64>($($argument),*),
            _ => $other,
        }
    };
}

/// Calls `$f::<B, S>` if the block length and the stride are one of the pairs of [`FIXED`]. Panics for any
/// other pair.
macro_rules! with_pattern {
    ($block:expr, $stride:expr, $f:ident($($argument:expr),*)) => {
        match ($block, $stride) {
            (1, 2) => $f::<1, 2>($($argument),*),
            (1, 3) => $f::<1, 3>($($argument),*),
            (1, 4) => $f::<1, 4>($($argument),*),
            (2, 4) => $f::<2, 4>($($argument),*),
            (2, 6) => $f::<2, 6>($($argument),*),
            (4, 8) => $f::<4, 8>($($argument),*),
            (4, 12) => $f::<4, 12>($($argument),*),
            (8, 16) => $f::<8, 16>($($argument),*),
            (8, 24) => $f::<8, 24>($($argument),*),
            (12, 16) => $f::<12, 16>($($argument),*),
            (block, stride) => panic!("no loop for blocks of {block} bytes at stride {stride}"),
        }
    };
}

/// The pairs of a block length and a stride, in bytes, for which there are loops of the kind
/// [`FIXED`](kind::FIXED).
pub const FIXED: [(usize, usize); 10] =
    [(1, 2), (1, 3), (1, 4), (2, 4), (2, 6), (4, 8), (4, 12), (8, 16), (8, 24), (12, 16)];

/// The values of [`Nest::kind`].
pub mod kind {
    /// `counts[2]` blocks of `block` bytes, `strides[2]` bytes apart.
    pub const COLUMN: u32 = 0;
    /// Three nested loops over blocks; entry 0 of `counts` and `strides` belongs to the outermost loop.
    pub const BOX: u32 = 1;
    /// `entries` structs `{ char c; int i; double d; }`.
    pub const CHAR_INT_DOUBLE: u32 = 2;
    /// `entries` structs `{ double x[3]; int kind; double v[3]; }`.
    pub const PARTICLE: u32 = 3;
    /// `entries` blocks of `block` bytes, at the byte offsets in `offsets`.
    pub const OFFSETS: u32 = 4;
    /// `entries` runs of bytes, with their byte offsets in `offsets` and their lengths in `lengths`.
    pub const RUNS: u32 = 5;
    /// The same as `COLUMN`, with the stride as a compile-time constant, so that compilers can vectorise the
    /// loop. The block length and the stride are one of the pairs of [`FIXED`](super::FIXED).
    pub const FIXED: u32 = 6;
}

/// One nest of loops. [`Nest::kind`] determines which other fields are used. `hand.c` has the same struct.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Nest {
    /// One of the constants in [`kind`].
    pub kind: u32,
    /// The number of bytes of a block. Used for `COLUMN`, `FIXED`, `BOX` and `OFFSETS`.
    pub block: usize,
    /// The number of bytes from the origin of memory to the first block or struct. The entries of `offsets`
    /// count from this position.
    pub start: usize,
    /// The number of bytes from the start of the packed buffer to the packed bytes of this nest.
    pub packed: usize,
    /// The number of iterations of each loop, at least 1. Used for `BOX`; `COLUMN` and `FIXED` use only entry 2.
    pub counts: [usize; 3],
    /// The number of bytes by which each loop advances in memory per iteration. Used like `counts`.
    pub strides: [usize; 3],
    /// The number of structs, or the number of entries in `offsets`.
    pub entries: usize,
    /// The byte offset of each block or run. Used for `OFFSETS` and `RUNS`.
    pub offsets: *const usize,
    /// The length of each run in bytes. Used for `RUNS`.
    pub lengths: *const usize,
}

impl Nest {
    /// Returns the lists to which `offsets` and `lengths` point. A list that the kind does not use is
    /// empty.
    ///
    /// # Safety
    ///
    /// * If the kind is `OFFSETS` or `RUNS`, `offsets` points to `entries` numbers. If the kind is
    ///   `RUNS`, `lengths` points to `entries` numbers, too. The numbers stay valid and unchanged for
    ///   `'a`.
    unsafe fn lists<'a>(&self) -> [&'a [usize]; 2] {
        let has = [matches!(self.kind, kind::OFFSETS | kind::RUNS), self.kind == kind::RUNS];
        let list = |has: bool, from: *const usize| match has {
            // SAFETY: `has` is true, so `from` is a list that the kind uses. The caller guarantees that
            // such a list has `entries` numbers, which stay valid and unchanged for `'a` (`# Safety`).
            true => unsafe { from_raw_parts(from, self.entries) },
            false => &[],
        };
        [list(has[0], self.offsets), list(has[1], self.lengths)]
    }
}

/// The signature of [`typepack_hand_pack`], which `hand.c` exports, too.
pub type PackCall = unsafe extern "C" fn(*const Nest, usize, *const u8, usize, *mut u8, usize);
/// The signature of [`typepack_hand_unpack`], which `hand.c` exports, too.
pub type UnpackCall = unsafe extern "C" fn(*const Nest, usize, *const u8, usize, *mut u8, usize);

/// Defines a function that copies `nests` from `$from` to `$to`. `$sides` is a pair of subslices: the part
/// of `$from` and the part of `$to` that begin where the data of `$nest` begins. `$copy` copies one nest
/// between these parts; `$lists` are the lists of the nest.
macro_rules! exported {
    (
        $(#[$doc:meta])*
        $name:ident:
        $from:ident, $from_bytes:ident => $to:ident, $to_bytes:ident; |$nest:ident| $sides:expr;
        |$lists:ident| $copy:expr
    ) => {
        $(#[$doc])*
        ///
        /// # Safety
        ///
        /// * `nests` points to `parts` nests, and each nest has the lists that its kind requires.
        #[doc = concat!("* `", stringify!($from), "` is readable for `", stringify!($from_bytes), "`,")]
        #[doc = concat!("  `", stringify!($to), "` writable for `", stringify!($to_bytes), "`,")]
        ///   and they overlap neither each other nor the nests and their lists.
        pub unsafe extern "C" fn $name(
            nests: *const Nest,
            parts: usize,
            $from: *const u8,
            $from_bytes: usize,
            $to: *mut u8,
            $to_bytes: usize,
        ) {
            // SAFETY: the caller guarantees that `nests` points to `parts` nests, that `$from` is readable
            // for `$from_bytes` bytes and that `$to` is writable for `$to_bytes` bytes, all until this
            // function returns, and that they do not overlap (`# Safety`).
            let (nests, $from, $to) = unsafe {
                (
                    from_raw_parts(nests, parts),
                    from_raw_parts($from, $from_bytes),
                    from_raw_parts_mut($to, $to_bytes),
                )
            };
            for $nest in nests {
                // SAFETY: the caller guarantees that each nest has the lists that its kind requires, and
                // that they do not overlap `$to` (`# Safety`). This function writes only to `$to`, so the
                // lists stay unchanged until it returns.
                let $lists = unsafe { $nest.lists() };
                let ($from, $to) = $sides;
                $copy;
            }
        }
    };
}

exported! {
    /// Packs `nests` one after the other from `memory` (`memory_bytes` bytes) to `packed` (`packed_bytes`
    /// bytes). Panics, which ends the process, if a nest does not fit into `memory` or `packed`, if a loop
    /// has count 0, if the structs of a `CHAR_INT_DOUBLE` nest are not aligned, or if a `FIXED` nest has a
    /// block length and a stride that are no pair of [`FIXED`]. On a CPU that has AVX-512 with VBMI, the
    /// loops are those that are compiled for it.
    #[unsafe(no_mangle)]
    typepack_hand_pack:
    memory, memory_bytes => packed, packed_bytes;
    |nest| (&memory[nest.start..], &mut packed[nest.packed..]);
    |lists| best_pack(nest, lists, memory, packed)
}

exported! {
    /// Unpacks `nests` one after the other from `packed` (`packed_bytes` bytes) to `memory`
    /// (`memory_bytes` bytes). Panics, which ends the process, if a nest does not fit into `memory` or
    /// `packed`, if a loop has count 0, if the structs of a `CHAR_INT_DOUBLE` nest are not aligned, or if a
    /// `FIXED` nest has a block length and a stride that are no pair of [`FIXED`]. On a CPU that has AVX-512
    /// with VBMI, the loops are those that are compiled for it.
    #[unsafe(no_mangle)]
    typepack_hand_unpack:
    packed, packed_bytes => memory, memory_bytes;
    |nest| (&packed[nest.packed..], &mut memory[nest.start..]);
    |lists| best_unpack(nest, lists, packed, memory)
}

/// A level: a set of CPU features for which the loops are compiled, and the loops that are compiled for it.
#[derive(Clone, Copy, Debug)]
pub struct Level {
    /// The name that compilers give to the level in `-march=`.
    pub name: &'static str,
    /// The packing loops. The CPU must have the level.
    pub pack: PackCall,
    /// The unpacking loops. The CPU must have the level.
    pub unpack: UnpackCall,
    available: fn() -> bool,
}

impl Level {
    /// Returns the level with this name if this machine has the level.
    pub fn named(name: &str) -> Option<Self> {
        LEVELS.into_iter().find(|level| level.name == name && (level.available)())
    }
}

/// Compiles all loops again, for the given CPU features. The module has the functions of [`Level`]. All
/// loops are inlined into `pack_nest` and `unpack_nest`.
macro_rules! level {
    ($module:ident: $($features:tt),*) => {
        #[cfg(target_arch = "x86_64")]
        mod $module {
            use super::{Nest, from_raw_parts, from_raw_parts_mut, pack_any, unpack_any};

            #[inline]
            pub(super) fn available() -> bool {
                $(is_x86_feature_detected!($features))&&*
            }

            $(#[target_feature(enable = $features)])*
            pub(super) fn pack_nest(
                nest: &Nest,
                lists: [&[usize]; 2],
                memory: &[u8],
                packed: &mut [u8],
            ) {
                pack_any(nest, lists, memory, packed);
            }

            $(#[target_feature(enable = $features)])*
            pub(super) fn unpack_nest(
                nest: &Nest,
                lists: [&[usize]; 2],
                packed: &[u8],
                memory: &mut [u8],
            ) {
                unpack_any(nest, lists, packed, memory);
            }

            exported! {
                /// Packs like `typepack_hand_pack`. Panics if the CPU lacks a feature of this level.
                pack:
                memory, memory_bytes => packed, packed_bytes;
                |nest| (&memory[nest.start..], &mut packed[nest.packed..]);
                |lists| {
                    assert!(available(), "this machine lacks a feature of these loops");
                    // SAFETY: `available` has found that the CPU has all features for which `pack_nest` is
                    // compiled.
                    unsafe { pack_nest(nest, lists, memory, packed) }
                }
            }

            exported! {
                /// Unpacks like `typepack_hand_unpack`. Panics if the CPU lacks a feature of this level.
                unpack:
                packed, packed_bytes => memory, memory_bytes;
                |nest| (&packed[nest.packed..], &mut memory[nest.start..]);
                |lists| {
                    assert!(available(), "this machine lacks a feature of these loops");
                    // SAFETY: `available` has found that the CPU has all features for which `unpack_nest` is
                    // compiled.
                    unsafe { unpack_nest(nest, lists, packed, memory) }
                }
            }
        }
    };
}

level!(v2: "ssse3", "sse4.1", "sse4.2", "popcnt", "cmpxchg16b");
level!(v3: "avx2", "fma", "f16c", "bmi1", "bmi2", "lzcnt", "movbe");
level!(v4: "avx2", "bmi2", "avx512f", "avx512vl", "avx512bw", "avx512dq", "avx512cd");
level!(vbmi: "avx2", "bmi2", "avx512f", "avx512vl", "avx512bw", "avx512dq", "avx512vbmi");

exported! {
    /// Packs like [`typepack_hand_pack`], with the loops that run on every CPU of the target.
    pack_baseline:
    memory, memory_bytes => packed, packed_bytes;
    |nest| (&memory[nest.start..], &mut packed[nest.packed..]);
    |lists| pack_any(nest, lists, memory, packed)
}

exported! {
    /// Unpacks like [`typepack_hand_unpack`], with the loops that run on every CPU of the target.
    unpack_baseline:
    packed, packed_bytes => memory, memory_bytes;
    |nest| (&packed[nest.packed..], &mut memory[nest.start..]);
    |lists| unpack_any(nest, lists, packed, memory)
}

/// The levels of this target.
#[cfg(target_arch = "x86_64")]
const LEVELS: [Level; 5] = [
    Level { name: "x86-64", pack: pack_baseline, unpack: unpack_baseline, available: || true },
    Level { name: "x86-64-v2", pack: v2::pack, unpack: v2::unpack, available: v2::available },
    Level { name: "x86-64-v3", pack: v3::pack, unpack: v3::unpack, available: v3::available },
    Level { name: "x86-64-v4", pack: v4::pack, unpack: v4::unpack, available: v4::available },
    Level {
        name: "x86-64-v4 with VBMI",
        pack: vbmi::pack,
        unpack: vbmi::unpack,
        available: vbmi::available,
    },
];

/// The levels of this target.
#[cfg(not(target_arch = "x86_64"))]
const LEVELS: [Level; 1] =
    [Level { name: "native", pack: pack_baseline, unpack: unpack_baseline, available: || true }];

/// Packs with the loops for AVX-512 with VBMI if the CPU has it, and otherwise with the loops for any CPU. In
/// the copy of the loops inside `typepack-bench`, the loops for AVX-512 are nearly as fast as the loops in
/// the shared object, which is built for this machine (`-C target-cpu=native`). In the shared object, the
/// loops for AVX-512 and those for any CPU do not differ.
fn best_pack(nest: &Nest, lists: [&[usize]; 2], memory: &[u8], packed: &mut [u8]) {
    #[cfg(target_arch = "x86_64")]
    if vbmi::available() {
        // SAFETY: `available` has found that the CPU has all features for which `pack_nest` is compiled.
        return unsafe { vbmi::pack_nest(nest, lists, memory, packed) };
    }
    pack_any(nest, lists, memory, packed);
}

/// Unpacks like [`best_pack`] packs.
fn best_unpack(nest: &Nest, lists: [&[usize]; 2], packed: &[u8], memory: &mut [u8]) {
    #[cfg(target_arch = "x86_64")]
    if vbmi::available() {
        // SAFETY: `available` has found that the CPU has all features for which `unpack_nest` is compiled.
        return unsafe { vbmi::unpack_nest(nest, lists, packed, memory) };
    }
    unpack_any(nest, lists, packed, memory);
}

#[inline(always)]
fn pack_any(nest: &Nest, lists: [&[usize]; 2], memory: &[u8], packed: &mut [u8]) {
    let Nest { kind, block, counts, strides, entries, .. } = *nest;
    let [offsets, lengths] = lists;
    match kind {
        kind::COLUMN => with_block!(
            block,
            pack_column(memory, counts[2], strides[2], packed),
            pack_rows(memory, block, counts, strides, packed)
        ),
        kind::FIXED => {
            with_pattern!(block, strides[2], pack_fixed(memory, counts[2], packed));
        }
        kind::BOX => with_block!(
            block,
            pack_box(memory, counts, strides, packed),
            pack_rows(memory, block, counts, strides, packed)
        ),
        kind::CHAR_INT_DOUBLE => pack_records(memory, entries, packed),
        kind::PARTICLE => pack_particles(memory, entries, packed),
        kind::OFFSETS => with_block!(
            block,
            pack_list(memory, offsets, packed),
            for (out, &offset) in packed.chunks_exact_mut(block).zip(offsets) {
                out.copy_from_slice(&memory[offset..offset + block]);
            }
        ),
        _ => {
            let mut rest = packed;
            for (&offset, &length) in offsets.iter().zip(lengths) {
                let out;
                (out, rest) = rest.split_at_mut(length);
                out.copy_from_slice(&memory[offset..offset + length]);
            }
        }
    }
}

#[inline(always)]
fn unpack_any(nest: &Nest, lists: [&[usize]; 2], packed: &[u8], memory: &mut [u8]) {
    let Nest { kind, block, counts, strides, entries, .. } = *nest;
    let [offsets, lengths] = lists;
    match kind {
        kind::COLUMN => with_block!(
            block,
            unpack_column(packed, counts[2], strides[2], memory),
            unpack_rows(packed, block, counts, strides, memory)
        ),
        kind::FIXED => {
            with_pattern!(block, strides[2], unpack_fixed(packed, counts[2], memory));
        }
        kind::BOX => with_block!(
            block,
            unpack_box(packed, counts, strides, memory),
            unpack_rows(packed, block, counts, strides, memory)
        ),
        kind::CHAR_INT_DOUBLE => unpack_records(packed, entries, memory),
        kind::PARTICLE => unpack_particles(packed, entries, memory),
        kind::OFFSETS => with_block!(
            block,
            unpack_list(packed, offsets, memory),
            for (data, &offset) in packed.chunks_exact(block).zip(offsets) {
                memory[offset..offset + block].copy_from_slice(data);
            }
        ),
        _ => {
            let mut rest = packed;
            for (&offset, &length) in offsets.iter().zip(lengths) {
                let data;
                (data, rest) = rest.split_at(length);
                memory[offset..offset + length].copy_from_slice(data);
            }
        }
    }
}

/// Returns the span of three nested loops: the number of bytes from the start of the first block to the
/// end of the last block.
fn reach(block: usize, counts: [usize; 3], strides: [usize; 3]) -> usize {
    let last: usize = counts.iter().zip(strides).map(|(count, stride)| (count - 1) * stride).sum();
    last + block
}

fn check(block: usize, counts: [usize; 3], strides: [usize; 3], memory: usize, packed: usize) {
    let blocks: usize = counts.iter().product();
    assert!(counts.iter().all(|&count| count > 0), "a loop has count 0");
    assert!(reach(block, counts, strides) <= memory, "memory is too short");
    assert!(blocks * block <= packed, "the packed bytes are too short");
}

#[inline(always)]
fn pack_column<const B: usize>(memory: &[u8], count: usize, stride: usize, packed: &mut [u8]) {
    check(B, [1, 1, count], [0, 0, stride], memory.len(), packed.len());
    let (memory, packed) = (memory.as_ptr(), packed.as_mut_ptr());
    for i in 0..count {
        // SAFETY: `check` has found that the last of the `count` blocks lies within `memory` and within
        // `packed`. No block extends beyond the last one, so all blocks lie within both slices. The two
        // slices do not overlap.
        unsafe { memory.add(i * stride).copy_to_nonoverlapping(packed.add(i * B), B) };
    }
}

#[inline(always)]
fn unpack_column<const B: usize>(packed: &[u8], count: usize, stride: usize, memory: &mut [u8]) {
    check(B, [1, 1, count], [0, 0, stride], memory.len(), packed.len());
    let (memory, packed) = (memory.as_mut_ptr(), packed.as_ptr());
    for i in 0..count {
        // SAFETY: `check` has found that the last block lies within `packed` and within `memory`, and
        // therefore every block does. `memory` is borrowed mutably and does not overlap `packed`.
        unsafe { packed.add(i * B).copy_to_nonoverlapping(memory.add(i * stride), B) };
    }
}

/// Packs `count` blocks of `B` bytes, `S` bytes apart.
#[inline(always)]
fn pack_fixed<const B: usize, const S: usize>(memory: &[u8], count: usize, packed: &mut [u8]) {
    pack_column::<B>(memory, count, S, packed);
}

/// Unpacks `count` blocks of `B` bytes, `S` bytes apart.
#[inline(always)]
fn unpack_fixed<const B: usize, const S: usize>(packed: &[u8], count: usize, memory: &mut [u8]) {
    unpack_column::<B>(packed, count, S, memory);
}

#[inline(always)]
fn pack_box<const B: usize>(
    memory: &[u8],
    counts: [usize; 3],
    strides: [usize; 3],
    packed: &mut [u8],
) {
    check(B, counts, strides, memory.len(), packed.len());
    let (memory, mut packed) = (memory.as_ptr(), packed.as_mut_ptr());
    for field in 0..counts[0] {
        for plane in 0..counts[1] {
            let start = field * strides[0] + plane * strides[1];
            for row in 0..counts[2] {
                // SAFETY: `check` has found that the last block, and therefore every block, lies within
                // `memory`, and that `packed` has room for all blocks. The two slices do not overlap. The
                // pointer `packed` moves by one block per iteration, so it always points into the slice
                // or to its end.
                unsafe {
                    memory.add(start + row * strides[2]).copy_to_nonoverlapping(packed, B);
                    packed = packed.add(B);
                }
            }
        }
    }
}

#[inline(always)]
fn unpack_box<const B: usize>(
    packed: &[u8],
    counts: [usize; 3],
    strides: [usize; 3],
    memory: &mut [u8],
) {
    check(B, counts, strides, memory.len(), packed.len());
    let (memory, mut packed) = (memory.as_mut_ptr(), packed.as_ptr());
    for field in 0..counts[0] {
        for plane in 0..counts[1] {
            let start = field * strides[0] + plane * strides[1];
            for row in 0..counts[2] {
                // SAFETY: `check` has found that every block of the three loops lies within `memory` and
                // that `packed` is long enough for all of them. The pointer `packed` moves by one block
                // per iteration, so it always points into the slice or to its end. `memory` is borrowed
                // mutably and does not overlap `packed`.
                unsafe {
                    packed.copy_to_nonoverlapping(memory.add(start + row * strides[2]), B);
                    packed = packed.add(B);
                }
            }
        }
    }
}

/// Packs rows whose length is not a compile-time constant. Copies each row with one `copy_from_slice`.
#[inline(always)]
fn pack_rows(
    memory: &[u8],
    row_bytes: usize,
    counts: [usize; 3],
    strides: [usize; 3],
    packed: &mut [u8],
) {
    check(row_bytes, counts, strides, memory.len(), packed.len());
    let mut rows = packed.chunks_exact_mut(row_bytes);
    for field in 0..counts[0] {
        for plane in 0..counts[1] {
            let start = field * strides[0] + plane * strides[1];
            for (row, out) in (0..counts[2]).zip(&mut rows) {
                let from = start + row * strides[2];
                out.copy_from_slice(&memory[from..from + row_bytes]);
            }
        }
    }
}

#[inline(always)]
fn unpack_rows(
    packed: &[u8],
    row_bytes: usize,
    counts: [usize; 3],
    strides: [usize; 3],
    memory: &mut [u8],
) {
    check(row_bytes, counts, strides, memory.len(), packed.len());
    let mut rows = packed.chunks_exact(row_bytes);
    for field in 0..counts[0] {
        for plane in 0..counts[1] {
            let start = field * strides[0] + plane * strides[1];
            for (row, data) in (0..counts[2]).zip(&mut rows) {
                let to = start + row * strides[2];
                memory[to..to + row_bytes].copy_from_slice(data);
            }
        }
    }
}

/// `struct { char c; int i; double d; }` with the memory layout that C gives it.
#[repr(C)]
struct CharIntDouble {
    c: u8,
    i: u32,
    d: f64,
}

const RECORD: usize = size_of::<CharIntDouble>();
const RECORD_DATA: usize = 13;

#[inline(always)]
fn pack_records(memory: &[u8], count: usize, packed: &mut [u8]) {
    assert!(count * RECORD <= memory.len(), "memory is too short");
    assert!(count * RECORD_DATA <= packed.len(), "the packed bytes are too short");
    let records = memory.as_ptr().cast::<CharIntDouble>();
    assert!(records.is_aligned(), "the structs are not aligned");
    let packed = packed.as_mut_ptr();
    for i in 0..count {
        // SAFETY: the assertions have found `count` whole, aligned structs within `memory` and `count`
        // times 13 bytes within `packed`. Any bytes are valid `u8`, `u32` and `f64`. The slices do not
        // overlap. The fields in `packed` are not aligned, so the code writes them with `write_unaligned`.
        unsafe {
            let record = &*records.add(i);
            let out = packed.add(i * RECORD_DATA);
            out.write(record.c);
            out.add(1).cast::<u32>().write_unaligned(record.i);
            out.add(5).cast::<f64>().write_unaligned(record.d);
        }
    }
}

#[inline(always)]
fn unpack_records(packed: &[u8], count: usize, memory: &mut [u8]) {
    assert!(count * RECORD <= memory.len(), "memory is too short");
    assert!(count * RECORD_DATA <= packed.len(), "the packed bytes are too short");
    let records = memory.as_mut_ptr().cast::<CharIntDouble>();
    assert!(records.is_aligned(), "the structs are not aligned");
    let packed = packed.as_ptr();
    for i in 0..count {
        // SAFETY: the assertions have found `count` whole, aligned structs within `memory` and `count`
        // times 13 bytes within `packed`. The fields in `packed` are not aligned, so the code reads them
        // with `read_unaligned`. `memory` is borrowed mutably, and any bits are a valid value of each
        // field.
        unsafe {
            let record = &mut *records.add(i);
            let data = packed.add(i * RECORD_DATA);
            record.c = data.read();
            record.i = data.add(1).cast::<u32>().read_unaligned();
            record.d = data.add(5).cast::<f64>().read_unaligned();
        }
    }
}

/// Packs blocks of `B` bytes from the listed offsets. Slicing `memory` checks the bounds at each offset.
#[inline(always)]
fn pack_list<const B: usize>(memory: &[u8], offsets: &[usize], packed: &mut [u8]) {
    let (blocks, _) = packed.as_chunks_mut::<B>();
    assert!(offsets.len() <= blocks.len(), "the packed bytes are too short");
    for (out, &offset) in blocks.iter_mut().zip(offsets) {
        out.copy_from_slice(&memory[offset..offset + B]);
    }
}

/// Unpacks blocks of `B` bytes to the listed offsets. Slicing `memory` checks the bounds at each offset.
#[inline(always)]
fn unpack_list<const B: usize>(packed: &[u8], offsets: &[usize], memory: &mut [u8]) {
    let (blocks, _) = packed.as_chunks::<B>();
    assert!(offsets.len() <= blocks.len(), "the packed bytes are too short");
    for (data, &offset) in blocks.iter().zip(offsets) {
        memory[offset..offset + B].copy_from_slice(data);
    }
}

const PARTICLE: usize = 56;
const PARTICLE_DATA: usize = 52;

/// Packs particles: `struct { double x[3]; int kind; double v[3]; }`. In memory, a particle is 28 bytes of
/// data, a gap of 4 bytes, and 24 bytes of data.
#[inline(always)]
fn pack_particles(memory: &[u8], count: usize, packed: &mut [u8]) {
    let (particles, _) = memory.as_chunks::<PARTICLE>();
    let (out, _) = packed.as_chunks_mut::<PARTICLE_DATA>();
    assert!(count <= particles.len(), "memory is too short");
    assert!(count <= out.len(), "the packed bytes are too short");
    for (particle, out) in particles[..count].iter().zip(out) {
        out[..28].copy_from_slice(&particle[..28]);
        out[28..].copy_from_slice(&particle[32..]);
    }
}

/// Unpacks particles. Leaves the gap of 4 bytes in each particle unchanged.
#[inline(always)]
fn unpack_particles(packed: &[u8], count: usize, memory: &mut [u8]) {
    let (particles, _) = memory.as_chunks_mut::<PARTICLE>();
    let (data, _) = packed.as_chunks::<PARTICLE_DATA>();
    assert!(count <= particles.len(), "memory is too short");
    assert!(count <= data.len(), "the packed bytes are too short");
    for (particle, data) in particles[..count].iter_mut().zip(data) {
        particle[..28].copy_from_slice(&data[..28]);
        particle[32..].copy_from_slice(&data[28..]);
    }
}
