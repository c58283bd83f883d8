//! Rows: one level of blocks, a whole level per call.
//!
//! Picked by `mod.rs` for the innermost level of a nest; uses `moves.rs`. The level is a loop of
//! constant stride or a table of offsets, the block has a length the code knows (1 to 64 bytes) or
//! a longer one that comes with the call. Blocks are moved in packed order, so that unpacking an
//! overlapping type ends as the typemap says.

use super::Row;
use super::isa::Isa;
#[cfg(target_arch = "x86_64")]
use super::moves::{Avx2, Avx512};
use super::moves::{Machine, Portable, block, long, run};
use crate::kernel::{LeafShape, LevelShape, Run};
use std::sync::Arc;

/// Longest block that has a row of its own, in bytes.
pub(super) const FIXED: usize = LeafShape::FIXED_MAX as usize;

/// Longest block of a row whose blocks are moved several at a time, in bytes: up to here stores of
/// whole registers save more than putting them together costs.
const JOINED: usize = 8;

/// A level's parameters, read once: the compiler has to assume that packed bytes are written over
/// the parameter block, and would read it again for every block.
pub(super) trait Steps: Copy {
    /// # Safety
    ///
    /// `words` points to the parameters of a level of this kind, as in `kernel.rs`.
    unsafe fn new(words: *const u64) -> Self;

    /// Displacement of iteration `i` in bytes.
    ///
    /// # Safety
    ///
    /// Entry `i` of a table is readable.
    unsafe fn displacement(self, i: usize) -> isize;
}

/// Constant stride.
#[derive(Clone, Copy)]
pub(super) struct Strided(isize);

impl Steps for Strided {
    #[inline(always)]
    unsafe fn new(words: *const u64) -> Self {
        // SAFETY: the stride is the second word.
        Self(unsafe { *words.add(1) } as isize)
    }

    #[inline(always)]
    unsafe fn displacement(self, i: usize) -> isize {
        (i as isize).wrapping_mul(self.0)
    }
}

/// A table of entries of type `T`.
#[derive(Clone, Copy)]
pub(super) struct Listed<T> {
    entries: *const T,
    scale: i64,
}

impl<T: Copy + Into<i64>> Steps for Listed<T> {
    #[inline(always)]
    unsafe fn new(words: *const u64) -> Self {
        // SAFETY: address and scale are the second and third word.
        unsafe { Self { entries: *words.add(1) as *const T, scale: *words.add(2) as i64 } }
    }

    #[inline(always)]
    unsafe fn displacement(self, i: usize) -> isize {
        // SAFETY: entry `i` is readable.
        let entry: i64 = unsafe { *self.entries.add(i) }.into();
        entry.wrapping_mul(self.scale) as isize
    }
}

/// The row for blocks of `bytes` bytes (at least 1) on a level of kind `level`.
pub(super) fn row<const PACK: bool>(isa: Isa, level: LevelShape, bytes: u64) -> Row {
    match level {
        LevelShape::Loop => instance::<Strided, PACK>(isa, bytes),
        LevelShape::Table32 => instance::<Listed<i32>, PACK>(isa, bytes),
        LevelShape::Table64 => instance::<Listed<i64>, PACK>(isa, bytes),
    }
}

/// Wider registers serve blocks that fill them; shorter blocks have one instance for all.
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

/// The rows of one instruction set, for blocks of the given lengths and for longer ones.
macro_rules! rows {
    ($name:ident, $machine:ident, $(#[$feature:meta])? $($bytes:literal)*) => {
        mod $name {
            use super::*;

            pub(super) fn row<S: Steps, const PACK: bool>(bytes: usize) -> Row {
                match bytes {
                    $($bytes => blocks::<S, PACK, $bytes>,)*
                    _ => long_blocks::<S, PACK>,
                }
            }

            /// # Safety
            ///
            /// - As for [`Row`].
            /// - The CPU has the instruction set.
            $(#[$feature])?
            unsafe fn blocks<S: Steps, const PACK: bool, const B: usize>(
                context: *const u8,
                words: *const u64,
                mem: *mut u8,
                packed: *mut u8,
            ) {
                let _ = context;
                // SAFETY: our contract.
                unsafe { super::blocks::<$machine, S, PACK, B>(words, mem, packed) }
            }

            /// # Safety
            ///
            /// - As for [`Row`]; the context is the block length in bytes, more than 64.
            /// - The CPU has the instruction set.
            $(#[$feature])?
            unsafe fn long_blocks<S: Steps, const PACK: bool>(
                context: *const u8,
                words: *const u64,
                mem: *mut u8,
                packed: *mut u8,
            ) {
                // SAFETY: our contract.
                unsafe { super::long_blocks::<$machine, S, PACK>(context.addr(), words, mem, packed) }
            }
        }
    };
}

rows! { portable, Portable,
    1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32
    33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63 64
}
#[cfg(target_arch = "x86_64")]
rows! { avx2, Avx2, #[target_feature(enable = "avx2")]
    32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62
    63 64
}
#[cfg(target_arch = "x86_64")]
rows! { avx512, Avx512, #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")] 64 }

/// The row for windows whose runs are the context, one run after the other.
pub(super) fn windows<const PACK: bool>(level: LevelShape) -> Row {
    match level {
        LevelShape::Loop => window::<Strided, PACK>,
        LevelShape::Table32 => window::<Listed<i32>, PACK>,
        LevelShape::Table64 => window::<Listed<i64>, PACK>,
    }
}

/// # Safety
///
/// As for [`Row`]; the context is an `Arc<[Run]>` that outlives the call.
unsafe fn window<S: Steps, const PACK: bool>(
    context: *const u8,
    words: *const u64,
    mem: *mut u8,
    packed: *mut u8,
) {
    // SAFETY: the context is these runs.
    let runs: &[Run] = unsafe { &*context.cast::<Arc<[Run]>>() };
    // SAFETY: the count is the level's first word.
    let (count, steps) = unsafe { (*words as usize, S::new(words)) };
    let mut packed = packed;
    for i in 0..count {
        // SAFETY: `i` is below the count.
        let at = mem.wrapping_offset(unsafe { steps.displacement(i) });
        for &Run { offset, bytes } in runs {
            let mem = at.wrapping_offset(offset as isize);
            let (from, to) = if PACK { (mem, packed) } else { (packed, mem) };
            // SAFETY: a run of this iteration, and its place in the packed bytes.
            unsafe { run::<Portable>(from, to, bytes as usize) };
            packed = packed.wrapping_add(bytes as usize);
        }
    }
}

/// Blocks of `B` bytes.
///
/// # Safety
///
/// As for [`Row`].
#[inline(always)]
pub(super) unsafe fn blocks<M: Machine, S: Steps, const PACK: bool, const B: usize>(
    words: *const u64,
    mem: *mut u8,
    packed: *mut u8,
) {
    // SAFETY: the count is the level's first word.
    let (count, steps) = unsafe { (*words as usize, S::new(words)) };
    let at = |i| {
        // SAFETY: callers pass iterations below the count.
        mem.wrapping_offset(unsafe { steps.displacement(i) })
    };
    let mut i = 0;
    if B <= JOINED && PACK {
        while i + 4 <= count {
            // SAFETY: the blocks of four iterations, and the place of all four in the packed bytes.
            unsafe {
                let four: [[u8; B]; 4] =
                    std::array::from_fn(|k| at(i + k).cast::<[u8; B]>().read());
                packed.add(i * B).cast::<[[u8; B]; 4]>().write(M::turned(four));
            }
            i += 4;
        }
    } else if B <= 32 {
        while i + 4 <= count {
            for k in i..i + 4 {
                // SAFETY: the block of iteration `k`, and its place in the packed bytes.
                unsafe { one::<M, PACK, B>(at(k), packed.add(k * B)) };
            }
            i += 4;
        }
    }
    while i < count {
        // SAFETY: the block of iteration `i`, and its place in the packed bytes.
        unsafe { one::<M, PACK, B>(at(i), packed.add(i * B)) };
        i += 1;
    }
}

/// One block of `B` bytes, in the given direction.
///
/// # Safety
///
/// - `mem` and `packed` are valid for `B` bytes, one for reads, the other for writes, by the
///   direction, and do not overlap.
#[inline(always)]
unsafe fn one<M: Machine, const PACK: bool, const B: usize>(mem: *mut u8, packed: *mut u8) {
    let (from, to) = if PACK { (mem, packed) } else { (packed, mem) };
    // SAFETY: our contract.
    unsafe { block::<M, B>(from, to) }
}

/// Blocks of `bytes` bytes, at least 64.
///
/// # Safety
///
/// As for [`Row`], with blocks of `bytes` bytes.
#[inline(always)]
pub(super) unsafe fn long_blocks<M: Machine, S: Steps, const PACK: bool>(
    bytes: usize,
    words: *const u64,
    mem: *mut u8,
    packed: *mut u8,
) {
    // SAFETY: the count is the level's first word.
    let (count, steps) = unsafe { (*words as usize, S::new(words)) };
    for i in 0..count {
        // SAFETY: `i` is below the count; the block has 64 bytes or more and is valid on both sides.
        unsafe {
            let mem = mem.wrapping_offset(steps.displacement(i));
            let packed = packed.add(i * bytes);
            let (from, to) = if PACK { (mem, packed) } else { (packed, mem) };
            long::<M>(from, to, bytes);
        }
    }
}
