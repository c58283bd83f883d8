//! Rows: functions that execute one whole level of a nest per call.
//!
//! `mod.rs` picks a row for the innermost level of a nest, and rows use the moves of `moves.rs`. The
//! level is a loop of constant stride or a table of offsets. There is a row for each length of a block up to
//! 8 bytes, and for each multiple of 4 up to 64 bytes. The other lengths up to 64 bytes share seven rows, and all
//! longer blocks share one; such a row gets the length with the call. Rows move blocks
//! in packed order, so that unpacking an overlapping type gives the result that the typemap defines.

use super::Row;
#[cfg(target_arch = "x86_64")]
use super::moves::{Avx2, Avx512};
use super::moves::{Machine, Portable, block, long, run};
use crate::isa::Isa;
use crate::kernel::{LevelShape, Run};
use std::sync::Arc;

/// Maximum length of a block, in bytes, for which there is a row compiled for exactly this length.
#[cfg(target_arch = "x86_64")]
pub(super) const FIXED: usize = crate::kernel::LeafShape::FIXED_MAX as usize;

/// Maximum length of a block, in bytes, up to which a row joins [`GROUP`] blocks into one store when packing.
/// Up to this length, storing whole registers saves more time than joining the blocks costs.
const JOINED: usize = 8;

/// Number of blocks that a row moves per iteration of its loop.
const GROUP: usize = 4;

/// The parameters of a level, read once before the loop. The compiler must assume that storing packed
/// bytes may overwrite the parameter block. So, without this copy, it would read the parameters again
/// for every block.
///
/// A cursor denotes one iteration and advances by several iterations at once. On a level of constant stride,
/// the distance from the cursor to each block of a group is the same for every group. So, on such a level,
/// computing the address of a block takes an addition and no multiplication. The gain was measured with
/// `typepack-bench peers`, layout `d8s16` (8 of every 16 doubles), at 16 KiB.
pub(super) trait Steps: Copy {
    /// Denotes one iteration of the level: a displacement, or a pointer to a table entry.
    type Cursor: Copy;

    /// Reads the parameters of the level.
    ///
    /// # Safety
    ///
    /// - `words` points to the parameters (see `kernel/`) of a level of the kind that `Self` is for.
    unsafe fn new(words: *const u64) -> Self;

    /// Returns the cursor of iteration 0. The displacements of the level are relative to `mem`.
    fn start(self, mem: *mut u8) -> Self::Cursor;

    /// Returns the memory address of the iteration `k` places after the iteration of `cursor`.
    ///
    /// # Safety
    ///
    /// - The level has this iteration. In particular, if the level is a table, the entry of this
    ///   iteration is readable.
    unsafe fn at(self, mem: *mut u8, cursor: Self::Cursor, k: usize) -> *mut u8;

    /// Returns the cursor advanced by `k` iterations. The caller advances at most to one past the
    /// last iteration.
    fn after(self, cursor: Self::Cursor, k: usize) -> Self::Cursor;
}

/// A level of constant stride. The cursor is a displacement in bytes.
#[derive(Clone, Copy)]
pub(super) struct Strided(isize);

impl Steps for Strided {
    type Cursor = isize;

    #[inline(always)]
    unsafe fn new(words: *const u64) -> Self {
        // SAFETY: the caller guarantees that `words` points to the parameters of a loop. The second
        // parameter is the stride.
        Self(unsafe { *words.add(1) } as isize)
    }

    #[inline(always)]
    fn start(self, _: *mut u8) -> isize {
        0
    }

    #[inline(always)]
    unsafe fn at(self, mem: *mut u8, cursor: isize, k: usize) -> *mut u8 {
        mem.wrapping_offset((k as isize).wrapping_mul(self.0)).wrapping_offset(cursor)
    }

    #[inline(always)]
    fn after(self, cursor: isize, k: usize) -> isize {
        cursor.wrapping_add((k as isize).wrapping_mul(self.0))
    }
}

/// A level with a table of entries of type `T`. The cursor is a pointer to an entry.
#[derive(Clone, Copy)]
pub(super) struct Listed<T> {
    entries: *const T,
    scale: i64,
}

impl<T: Copy + Into<i64>> Steps for Listed<T> {
    type Cursor = *const T;

    #[inline(always)]
    unsafe fn new(words: *const u64) -> Self {
        // SAFETY: the caller guarantees that `words` points to the parameters of a table. The second
        // parameter is the address of the entries, and the third is the scale.
        unsafe { Self { entries: *words.add(1) as *const T, scale: *words.add(2) as i64 } }
    }

    #[inline(always)]
    fn start(self, _: *mut u8) -> *const T {
        self.entries
    }

    #[inline(always)]
    unsafe fn at(self, mem: *mut u8, cursor: *const T, k: usize) -> *mut u8 {
        // SAFETY: the caller guarantees that the level has the iteration `k` places after the cursor,
        // so the entry of this iteration is readable.
        let entry: i64 = unsafe { *cursor.add(k) }.into();
        mem.wrapping_offset(entry.wrapping_mul(self.scale) as isize)
    }

    #[inline(always)]
    fn after(self, cursor: *const T, k: usize) -> *const T {
        cursor.wrapping_add(k)
    }
}

/// Returns the row for blocks of `bytes` bytes (at least 1) on a level of kind `level`.
pub(super) fn row<const PACK: bool>(isa: Isa, level: LevelShape, bytes: u64) -> Row {
    match level {
        LevelShape::Loop => instance::<Strided, PACK>(isa, bytes),
        LevelShape::Table32 => instance::<Listed<i32>, PACK>(isa, bytes),
        LevelShape::Table64 => instance::<Listed<i64>, PACK>(isa, bytes),
    }
}

/// Returns the row for blocks of `bytes` bytes. If the blocks fill a register of `isa` that is wider than
/// 16 bytes, the row uses such registers. For shorter blocks, the row is the portable instance on every
/// machine.
fn instance<S: Steps, const PACK: bool>(isa: Isa, bytes: u64) -> Row {
    let fixed = usize::try_from(bytes).unwrap_or(usize::MAX);
    #[cfg(target_arch = "x86_64")]
    match isa {
        Isa::Avx512 if fixed >= FIXED => return avx512::row::<S, PACK>(fixed),
        Isa::Avx512 | Isa::Avx2 if fixed >= 32 => return avx2::row::<S, PACK>(fixed),
        _ => {}
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = isa;
    portable::row::<S, PACK>(fixed)
}

/// Defines the rows of one instruction set: one row for each of the given block lengths, one for each of the given
/// ranges of lengths, and one for longer blocks. A range `least..=most: whole + last` stands for the lengths of `least`
/// to `most` bytes that have no row of their own. Such a block takes the moves of `whole` bytes, and a move of `last`
/// bytes that ends with the block.
///
/// A row for exactly the length is faster in short calls: by a quarter (1 to 3 ns) in calls of 256 bytes, by a tenth in
/// calls of 1 KiB. In calls of 16 KiB there is no difference at a stride, and up to a tenth with an index list (Zen 4,
/// blocks of 9 to 63 bytes). But blocks of more than 8 bytes whose length is no multiple of 4 are rare.
macro_rules! rows {
    ($name:ident, $machine:ident, [$($bytes:literal)*],
     [$($least:literal..=$most:literal: $whole:literal + $last:literal;)*] $(, #[$feature:meta])?) => {
        mod $name {
            use super::*;

            pub(super) fn row<S: Steps, const PACK: bool>(bytes: usize) -> Row {
                match bytes {
                    $($bytes => blocks::<S, PACK, $bytes>,)*
                    $($least..=$most => {
                        const { assert!($least > $whole && $least >= $last && $most <= $whole + $last) };
                        ranged::<S, PACK, $whole, $last>
                    })*
                    _ => long_blocks::<S, PACK>,
                }
            }

            /// # Safety
            ///
            /// - The conditions of [`Row`] hold.
            /// - The CPU has the instruction set of `$machine`.
            $(#[$feature])?
            unsafe fn blocks<S: Steps, const PACK: bool, const B: usize>(
                context: *const u8,
                words: *const u64,
                mem: *mut u8,
                packed: *mut u8,
            ) {
                let _ = context;
                // SAFETY: the caller guarantees the conditions of `Row`, and that the CPU has
                // `$machine`, whose `UNIT` is 1. The blocks have `B` bytes, because `row` picks this
                // instance for that length only.
                unsafe { super::blocks::<$machine, S, PACK, B>(words, mem, packed) }
            }

            /// # Safety
            ///
            /// - The conditions of [`Row`] hold. The context is the block length in bytes, at least `WHOLE` and at
            ///   least `LAST`.
            /// - The CPU has the instruction set of `$machine`.
            $(#[$feature])?
            #[allow(dead_code, reason = "not every instruction set has ranges")]
            unsafe fn ranged<S: Steps, const PACK: bool, const WHOLE: usize, const LAST: usize>(
                context: *const u8,
                words: *const u64,
                mem: *mut u8,
                packed: *mut u8,
            ) {
                let bytes = context.addr();
                // SAFETY: the caller guarantees the conditions of `Row` for blocks whose length is `context`, and
                // that this length is at least `WHOLE` and `LAST`. The `UNIT` of `$machine` is 1.
                unsafe {
                    super::ranged::<$machine, S, PACK, WHOLE, LAST>(bytes, words, mem, packed);
                }
            }

            /// # Safety
            ///
            /// - The conditions of [`Row`] hold. The context is the block length in bytes, more
            ///   than 64.
            /// - The CPU has the instruction set of `$machine`.
            $(#[$feature])?
            unsafe fn long_blocks<S: Steps, const PACK: bool>(
                context: *const u8,
                words: *const u64,
                mem: *mut u8,
                packed: *mut u8,
            ) {
                // SAFETY: the caller guarantees the conditions of `Row` for blocks whose length is
                // `context`, and that this length exceeds 64 bytes. The `UNIT` of `$machine` is 1.
                unsafe { super::long_blocks::<$machine, S, PACK>(context.addr(), words, mem, packed) }
            }
        }
    };
}

rows! { portable, Portable, [1 2 3 4 5 6 7 8 12 16 20 24 28 32 36 40 44 48 52 56 60 64], [
    9..=15: 8 + 8;
    17..=23: 16 + 8;
    25..=31: 16 + 16;
    33..=39: 32 + 8;
    41..=47: 32 + 16;
    49..=55: 48 + 8;
    57..=63: 48 + 16;
] }
#[cfg(target_arch = "x86_64")]
rows! { avx2, Avx2, [32 36 40 44 48 52 56 60 64], [
    33..=39: 32 + 8;
    41..=47: 32 + 16;
    49..=63: 32 + 32;
], #[target_feature(enable = "avx2")] }
#[cfg(target_arch = "x86_64")]
rows! { avx512, Avx512, [64], [],
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")] }

/// Returns the row for windows. The context points to the runs of the window, and the row moves the
/// runs one by one.
pub(super) fn windows<const PACK: bool>(level: LevelShape) -> Row {
    match level {
        LevelShape::Loop => window::<Strided, PACK>,
        LevelShape::Table32 => window::<Listed<i32>, PACK>,
        LevelShape::Table64 => window::<Listed<i64>, PACK>,
    }
}

/// # Safety
///
/// - The conditions of [`Row`] hold. The context points to an `Arc<[Run]>` that outlives the call.
unsafe fn window<S: Steps, const PACK: bool>(
    context: *const u8,
    words: *const u64,
    mem: *mut u8,
    packed: *mut u8,
) {
    // SAFETY: the caller guarantees that `context` points to an `Arc<[Run]>` that outlives the call.
    let runs: &[Run] = unsafe { &*context.cast::<Arc<[Run]>>() };
    // SAFETY: `words` points to the parameters of a level of kind `S`, by the first condition of
    // `Row`. The first parameter is the count.
    let (count, steps) = unsafe { (*words as usize, S::new(words)) };
    let (mut cursor, mut packed) = (steps.start(mem), packed);
    for _ in 0..count {
        // SAFETY: there are `count` iterations, and the cursor is at one of them.
        let at = unsafe { steps.at(mem, cursor, 0) };
        cursor = steps.after(cursor, 1);
        for &Run { offset, bytes } in runs {
            let mem = at.wrapping_offset(offset as isize);
            let (from, to) = if PACK { (mem, packed) } else { (packed, mem) };
            // SAFETY: `at` is the address of an existing iteration, so the run at `offset` is valid
            // in memory. `packed` has advanced by the bytes of all previous runs, so it points to the
            // packed bytes of this run.
            unsafe { run::<Portable>(from, to, bytes as usize) };
            packed = packed.wrapping_add(bytes as usize);
        }
    }
}

/// Moves blocks of `B` bytes.
///
/// # Safety
///
/// - The conditions of [`Row`] hold, for blocks of `B` bytes.
/// - The CPU has the instruction set `M`. `B` is at least 1 and a multiple of `M::UNIT`.
#[inline(always)]
pub(super) unsafe fn blocks<M: Machine, S: Steps, const PACK: bool, const B: usize>(
    words: *const u64,
    mem: *mut u8,
    packed: *mut u8,
) {
    // SAFETY: by the first condition of `Row`, `words` points to the parameters of a level of kind
    // `S`, and the first parameter is the count.
    let (count, steps) = unsafe { (*words as usize, S::new(words)) };
    let (mut cursor, mut packed, mut left) = (steps.start(mem), packed, count);
    while left >= GROUP {
        // SAFETY: at least `GROUP` iterations are left from the cursor on, and `packed` points to the
        // packed bytes of the cursor's block.
        unsafe { group::<M, S, PACK, B>(steps, mem, cursor, packed) };
        (cursor, packed) = (steps.after(cursor, GROUP), packed.wrapping_add(GROUP * B));
        left -= GROUP;
    }
    while left > 0 {
        // SAFETY: at least 1 iteration is left, so the cursor's block is valid in memory. `packed`
        // points to the packed bytes of this block.
        unsafe { one::<M, PACK, B>(steps.at(mem, cursor, 0), packed) };
        (cursor, packed) = (steps.after(cursor, 1), packed.wrapping_add(B));
        left -= 1;
    }
}

/// Moves [`GROUP`] blocks of `B` bytes, in order, starting with the block at the cursor.
///
/// # Safety
///
/// - The conditions of [`blocks`] hold for the `GROUP` iterations from the cursor on. `packed` points
///   to the packed bytes of the first block.
#[inline(always)]
unsafe fn group<M: Machine, S: Steps, const PACK: bool, const B: usize>(
    steps: S,
    mem: *mut u8,
    cursor: S::Cursor,
    packed: *mut u8,
) {
    // SAFETY: `k` is below `GROUP`, and the caller guarantees that the level has `GROUP` iterations
    // from the cursor on.
    let at = |k| unsafe { steps.at(mem, cursor, k) };
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{__m128i, __m256i, __m512i};
        // SAFETY: the caller guarantees that the four blocks and their `4 * B` packed bytes are
        // valid. The register type of each arm has `B` bytes and belongs to the instruction set of
        // `M` (SSE2 is part of every x86-64).
        unsafe {
            match B {
                16 => return registers::<M, __m128i, PACK>([at(0), at(1), at(2), at(3)], packed),
                32 if M::WIDEST >= 32 => {
                    return registers::<M, __m256i, PACK>([at(0), at(1), at(2), at(3)], packed);
                }
                64 if M::WIDEST >= 64 => {
                    return registers::<M, __m512i, PACK>([at(0), at(1), at(2), at(3)], packed);
                }
                _ => {}
            }
        }
    }
    if B <= JOINED && PACK {
        // SAFETY: the caller guarantees that the four blocks of `B` bytes are readable and that
        // `packed` is writable for all four.
        unsafe {
            let blocks: [[u8; B]; GROUP] = std::array::from_fn(|k| at(k).cast::<[u8; B]>().read());
            packed.cast::<[[u8; B]; GROUP]>().write(M::swapped(blocks));
        }
        return;
    }
    for k in 0..GROUP {
        // SAFETY: `k` is below `GROUP`, and the caller guarantees that all `GROUP` blocks and their
        // packed bytes are valid.
        unsafe { one::<M, PACK, B>(at(k), packed.add(k * B)) };
    }
}

/// Moves four blocks; each block fills one register. All loads come before all stores, so that stores
/// to the same cache line are adjacent. (The gain was measured with `typepack-bench peers`, layouts
/// `z1s2` and `d8s16`.) The code uses four variables because the compiler would keep an array in
/// memory.
///
/// # Safety
///
/// - The CPU has the instruction set `M`, and the register type `V` belongs to it.
/// - `mem` contains the addresses of four blocks that are as long as `V`, and `packed` points to the
///   four packed blocks. When packing, the blocks are valid for reads and the packed bytes for
///   writes; when unpacking, it is the other way round. The blocks and the packed bytes do not
///   overlap.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn registers<M: Machine, V: Copy, const PACK: bool>(mem: [*mut u8; GROUP], packed: *mut u8) {
    let [m0, m1, m2, m3] = mem.map(|at| at.cast::<V>());
    let p: *mut V = packed.cast();
    // SAFETY: every access is one `V` in one of the four blocks or in their packed bytes, and the
    // caller guarantees that these are valid. When unpacking, the stores go in packed order, because
    // the blocks may overlap.
    unsafe {
        if PACK {
            let (a, b) = (m0.read_unaligned(), m1.read_unaligned());
            let (c, d) = (m2.read_unaligned(), m3.read_unaligned());
            p.write_unaligned(M::swapped(a));
            p.add(1).write_unaligned(M::swapped(b));
            p.add(2).write_unaligned(M::swapped(c));
            p.add(3).write_unaligned(M::swapped(d));
        } else {
            let (a, b) = (p.read_unaligned(), p.add(1).read_unaligned());
            let (c, d) = (p.add(2).read_unaligned(), p.add(3).read_unaligned());
            m0.write_unaligned(M::swapped(a));
            m1.write_unaligned(M::swapped(b));
            m2.write_unaligned(M::swapped(c));
            m3.write_unaligned(M::swapped(d));
        }
    }
}

/// Moves one block of `B` bytes in the given direction.
///
/// # Safety
///
/// - The CPU has the instruction set `M`. `B` is at least 1 and a multiple of `M::UNIT`.
/// - When packing, `B` bytes are valid for reads at `mem` and for writes at `packed`; when unpacking,
///   it is the other way round. The two ranges do not overlap.
#[inline(always)]
unsafe fn one<M: Machine, const PACK: bool, const B: usize>(mem: *mut u8, packed: *mut u8) {
    let (from, to) = if PACK { (mem, packed) } else { (packed, mem) };
    // SAFETY: the caller guarantees that `B` bytes are readable at `from` and writable at `to`, that
    // the two ranges do not overlap, that `B` suits `M`, and that the CPU has `M`.
    unsafe { block::<M, B>(from, to) }
}

/// Moves blocks of `bytes` bytes. A block takes the moves of `WHOLE` bytes, and a move of `LAST` bytes that ends with the
/// block.
///
/// # Safety
///
/// - The conditions of [`Row`] hold for blocks of `bytes` bytes. `bytes` is at least `WHOLE`, at least `LAST`, and at
///   most their sum.
/// - The CPU has the instruction set `M`. All three numbers are multiples of `M::UNIT`.
#[inline(always)]
unsafe fn ranged<M: Machine, S: Steps, const PACK: bool, const WHOLE: usize, const LAST: usize>(
    bytes: usize,
    words: *const u64,
    mem: *mut u8,
    packed: *mut u8,
) {
    // SAFETY: the caller guarantees that `words` points to the three parameters of a level of kind `S`. The first is
    // the count.
    let (count, steps) = unsafe { (*words as usize, S::new(words)) };
    let (mut cursor, mut packed) = (steps.start(mem), packed);
    for _ in 0..count {
        // SAFETY: there are `count` iterations, so the block at the cursor exists. It has `bytes` bytes, at least
        // `WHOLE` and at least `LAST`, so both moves lie within it.
        unsafe {
            let at = steps.at(mem, cursor, 0);
            let (from, to) = if PACK { (at, packed) } else { (packed, at) };
            block::<M, WHOLE>(from, to);
            block::<M, LAST>(from.add(bytes - LAST), to.add(bytes - LAST));
        }
        (cursor, packed) = (steps.after(cursor, 1), packed.wrapping_add(bytes));
    }
}

/// Moves blocks of `bytes` bytes.
///
/// # Safety
///
/// - The conditions of [`Row`] hold for blocks of `bytes` bytes. `bytes` is at least 64 and a multiple
///   of `M::UNIT`.
#[inline(always)]
pub(super) unsafe fn long_blocks<M: Machine, S: Steps, const PACK: bool>(
    bytes: usize,
    words: *const u64,
    mem: *mut u8,
    packed: *mut u8,
) {
    // SAFETY: the caller guarantees that `words` points to the parameters of a level of kind `S`. The
    // first of these parameters is the count.
    let (count, steps) = unsafe { (*words as usize, S::new(words)) };
    let (mut cursor, mut packed) = (steps.start(mem), packed);
    for _ in 0..count {
        // SAFETY: the loop runs `count` times, so the cursor is at an existing iteration. Its block
        // at `at` has `bytes` bytes, at least 64, and is valid. `packed` points to the packed bytes
        // of this block.
        unsafe {
            let at = steps.at(mem, cursor, 0);
            let (from, to) = if PACK { (at, packed) } else { (packed, at) };
            stretch::<M>(from, to, bytes);
        }
        (cursor, packed) = (steps.after(cursor, 1), packed.wrapping_add(bytes));
    }
}

/// Copies `bytes` bytes. If `to` is aligned to a cache line, copies whole lines in groups of [`GROUP`].
/// Otherwise calls [`long`], which aligns its stores to cache lines.
///
/// # Safety
///
/// - `bytes` is at least 64.
/// - The CPU has the instruction set `M`. `bytes` is a multiple of `M::UNIT`.
/// - `from` is valid for reads of `bytes` bytes, `to` for writes of `bytes` bytes, and they do not
///   overlap.
#[inline(always)]
unsafe fn stretch<M: Machine>(from: *const u8, to: *mut u8, bytes: usize) {
    if !to.addr().is_multiple_of(64) {
        // SAFETY: `long` has the same conditions as this function, and they hold for the same three
        // arguments.
        return unsafe { long::<M>(from, to, bytes) };
    }
    let last = bytes - 64;
    let mut at = 0;
    while at + 3 * 64 <= last {
        for k in 0..GROUP {
            // SAFETY: `at + 3 * 64 <= last`, and `last` is `bytes - 64`. So all four lines from `at`
            // end at or before byte `bytes`.
            unsafe { block::<M, 64>(from.add(at + 64 * k), to.add(at + 64 * k)) };
        }
        at += GROUP * 64;
    }
    while at < last {
        // SAFETY: `at` is below `last`, and `last` is `bytes - 64`. So the 64 bytes from `at` end
        // before byte `bytes`.
        unsafe { block::<M, 64>(from.add(at), to.add(at)) };
        at += 64;
    }
    if at < bytes {
        // SAFETY: `last` is `bytes - 64`, so the 64 bytes from `last` are the last 64 bytes of the
        // block.
        unsafe { block::<M, 64>(from.add(last), to.add(last)) };
    }
}
