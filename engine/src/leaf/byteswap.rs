//! Byte order: moves that turn elements round on their way, for `external32/`.
//!
//! A run of whole elements of 2, 4, 8 or 16 bytes in the other byte order is one shuffle per
//! register, since no element crosses 16 bytes of a move that begins with one. So [`Swapped`] is an
//! instruction set like those of `moves.rs`, and the loops over them - rows here, tiles in
//! `tiles.rs`, lists in `lists.rs` - are the same for both orders. Patterns of `dense/` need not
//! even that: their permute has the order in it. `mod.rs` picks, by the [`Swap`] of a nest.
//!
//! Invariant: whoever calls passes whole elements only. Ranges that break one are
//! `external32/mod.rs`'s to cut.

use super::moves::{self, Machine, Portable};
#[cfg(target_arch = "x86_64")]
use super::moves::{Avx2, Avx512};
use super::rows::{Listed, Steps, Strided, blocks, long_blocks};
use super::{Isa, Row};
use crate::kernel::interpreter;
use crate::kernel::{Leaf, LevelShape, Run};
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;
use std::marker::PhantomData;
use std::sync::Arc;

/// Bytes of an element whose bytes change their order: 2, 4, 8 or 16; 1 if none does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Width(u8);

impl Width {
    /// Bytes by themselves.
    pub(crate) const ONE: Self = Self(1);

    /// Elements of `bytes` bytes; those of 1 byte stay as they are.
    pub(crate) fn new(bytes: usize) -> Option<Self> {
        matches!(bytes, 1 | 2 | 4 | 8 | 16).then_some(Self(bytes as u8))
    }

    #[inline]
    pub(crate) fn bytes(self) -> usize {
        usize::from(self.0)
    }
}

/// What is turned round in the leaf of a nest.
#[derive(Clone, Debug)]
pub(crate) enum Swap {
    /// All of it, in elements of one width.
    Same(Width),
    /// Each run of a window in elements of a width of its own.
    Each(Arc<[Width]>),
}

impl Swap {
    /// Width of run number `i` of the leaf.
    #[inline]
    pub(super) fn width(&self, i: usize) -> Width {
        match self {
            Self::Same(width) => *width,
            Self::Each(widths) => widths[i],
        }
    }

    /// Moves packed bytes `skip .. skip + bytes` of a leaf, whole elements.
    ///
    /// # Safety
    ///
    /// - The machine has `isa`; this is the leaf's swap.
    /// - The runs of `leaf`, relative to `mem`, are valid as far as these bytes go: for reads when
    ///   `PACK`, for writes otherwise; `packed` is, the other way round, for `bytes` bytes.
    /// - The two sides do not overlap.
    pub(crate) unsafe fn part_of_leaf<const PACK: bool>(
        &self,
        isa: Isa,
        leaf: &Leaf,
        mem: *mut u8,
        packed: *mut u8,
        (skip, bytes): (u64, u64),
    ) {
        let runs = match leaf {
            Leaf::Block { bytes } => &[Run { offset: 0, bytes: *bytes }][..],
            Leaf::Window { runs } => runs,
        };
        let (mut skip, mut left, mut packed) = (skip, bytes, packed);
        for (i, run) in runs.iter().enumerate() {
            if skip >= run.bytes {
                skip -= run.bytes;
                continue;
            }
            let bytes = (run.bytes - skip).min(left);
            let at = mem.wrapping_offset(run.offset as isize).wrapping_add(skip as usize);
            // SAFETY: this part of the run, and its packed bytes.
            unsafe { copy::<PACK>(isa, self.width(i), at, packed, bytes as usize) };
            packed = packed.wrapping_add(bytes as usize);
            left -= bytes;
            skip = 0;
            if left == 0 {
                break;
            }
        }
    }
}

/// The instruction set `M` with elements of `W` bytes turned round in every move.
pub(super) struct Swapped<M, const W: usize>(PhantomData<M>);

/// Where each byte of 64 comes from, counted within 16 bytes, for elements of `W` bytes.
#[cfg(target_arch = "x86_64")]
struct Mirror<const W: usize>;

#[cfg(target_arch = "x86_64")]
impl<const W: usize> Mirror<W> {
    const BYTES: [u8; 64] = {
        let (mut bytes, mut i) = ([0; 64], 0);
        while i < 64 {
            bytes[i] = (i % 16 / W * W + W - 1 - i % W) as u8;
            i += 1;
        }
        bytes
    };
}

/// Turns elements of `W` bytes without vector instructions of a particular machine.
#[inline(always)]
fn swapped_words<T: Copy, const W: usize>(value: T) -> T {
    let mut value = value;
    let bytes = (&raw mut value).cast::<u8>();
    macro_rules! words {
        ($word:ty, $turn:expr) => {{
            let step = size_of::<$word>();
            let mut at = 0;
            while at + step <= size_of::<T>() {
                // SAFETY: a word within the value, which is plain bytes.
                unsafe {
                    let word = bytes.add(at).cast::<$word>();
                    word.write_unaligned($turn(word.read_unaligned()));
                }
                at += step;
            }
        }};
    }
    match W {
        2 => words!(u16, u16::swap_bytes),
        4 => words!(u32, u32::swap_bytes),
        8 => words!(u64, u64::swap_bytes),
        _ => words!(u128, u128::swap_bytes),
    }
    value
}

impl<const W: usize> Machine for Swapped<Portable, W> {
    const WIDEST: usize = Portable::WIDEST;
    const UNIT: usize = W;

    #[inline(always)]
    unsafe fn swapped<T: Copy>(value: T) -> T {
        swapped_words::<T, W>(value)
    }
}

/// A value as a register of the same size, and back; the branches that call it elsewhere are dead.
///
/// # Safety
///
/// - `T` and `R` have one size and any bytes make either.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn through<T: Copy, R: Copy>(value: T, turn: impl FnOnce(R) -> R) -> T {
    // SAFETY: one size, any bytes, by the contract.
    unsafe { std::mem::transmute_copy(&turn(std::mem::transmute_copy(&value))) }
}

#[cfg(target_arch = "x86_64")]
impl<const W: usize> Machine for Swapped<Avx2, W> {
    const WIDEST: usize = Avx2::WIDEST;
    const UNIT: usize = W;

    #[inline(always)]
    unsafe fn swapped<T: Copy>(value: T) -> T {
        let mirror = Mirror::<W>::BYTES.as_ptr();
        // SAFETY: registers of the value's size; the CPU has AVX2, by the contract.
        unsafe {
            match size_of::<T>() {
                16 => through(value, |v| _mm_shuffle_epi8(v, _mm_loadu_si128(mirror.cast()))),
                32 => through(value, |v| _mm256_shuffle_epi8(v, _mm256_loadu_si256(mirror.cast()))),
                _ => swapped_words::<T, W>(value),
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
impl<const W: usize> Machine for Swapped<Avx512, W> {
    const WIDEST: usize = Avx512::WIDEST;
    const UNIT: usize = W;

    #[inline(always)]
    unsafe fn swapped<T: Copy>(value: T) -> T {
        let mirror = Mirror::<W>::BYTES.as_ptr();
        // SAFETY: registers of the value's size; the CPU has AVX-512 BW, by the contract.
        unsafe {
            match size_of::<T>() {
                64 => through(value, |v| _mm512_shuffle_epi8(v, _mm512_loadu_si512(mirror.cast()))),
                _ => Swapped::<Avx2, W>::swapped(value),
            }
        }
    }
}

/// The move for runs of elements of `width` that are not of known length, as a function of the
/// instruction set: `from`, `to`, bytes.
///
/// # Safety
///
/// - The CPU has the instruction set that the function was asked for.
/// - `bytes` bytes at `from` are valid for reads and as many at `to` for writes; they do not overlap.
/// - `bytes` is a multiple of the width.
pub(crate) type Mover = unsafe fn(*const u8, *mut u8, usize);

/// The [`Mover`] for `width`.
#[inline]
pub(crate) fn mover(isa: Isa, width: Width) -> Mover {
    if width == Width::ONE {
        return native;
    }
    #[cfg(target_arch = "x86_64")]
    match isa {
        Isa::Avx512 => return avx512::mover(width),
        Isa::Avx2 => return avx2::mover(width),
        Isa::Portable => {}
    }
    let _ = isa;
    portable::mover(width)
}

/// The [`Mover`] that only moves.
///
/// # Safety
///
/// As for [`Mover`].
unsafe fn native(from: *const u8, to: *mut u8, bytes: usize) {
    // SAFETY: our contract.
    unsafe { std::ptr::copy_nonoverlapping(from, to, bytes) }
}

/// As [`moves::run`], with four registers to a turn of the loop, of which all are loaded before the
/// first is stored: nothing is waited for that lies at the same place of another page.
///
/// # Safety
///
/// As for [`moves::run`].
#[inline(always)]
unsafe fn long_run<M: Machine>(from: *const u8, to: *mut u8, bytes: usize) {
    /// Bytes up to which the loop is not entered.
    const SHORT: usize = 64;
    if bytes <= SHORT || M::WIDEST < 32 {
        // SAFETY: our contract.
        return unsafe { moves::run::<M>(from, to, bytes) };
    }
    // As in `moves::long`: the first and the last 64 bytes by themselves, stores between them begin
    // at cache lines.
    let last = bytes - SHORT;
    // SAFETY: the first bytes of the run.
    unsafe { moves::block::<M, SHORT>(from, to) };
    let mut at = if to.addr().is_multiple_of(M::UNIT) { 64 - to.addr() % 64 } else { 64 };
    macro_rules! turns {
        ($width:literal) => {
            while at + 4 * $width <= bytes {
                // SAFETY: four registers within the run.
                unsafe {
                    let load = |i: usize| from.add(at + i * $width).cast::<[u8; $width]>().read();
                    let (a, b, c, d) = (load(0), load(1), load(2), load(3));
                    let to = to.add(at).cast::<[u8; $width]>();
                    to.write(M::swapped(a));
                    to.add(1).write(M::swapped(b));
                    to.add(2).write(M::swapped(c));
                    to.add(3).write(M::swapped(d));
                }
                at += 4 * $width;
            }
        };
    }
    if M::WIDEST == 64 {
        turns!(64);
    } else {
        turns!(32);
    }
    while at < last {
        // SAFETY: 64 bytes from `at` end before the run does, `at` being below `last`.
        unsafe { moves::block::<M, SHORT>(from.add(at), to.add(at)) };
        at += SHORT;
    }
    if at < bytes {
        // SAFETY: the last 64 bytes of the run.
        unsafe { moves::block::<M, SHORT>(from.add(last), to.add(last)) };
    }
}

/// As [`interpreter::copy`], turning elements of `width`.
///
/// # Safety
///
/// - The machine has `isa`; `bytes` is a multiple of the width.
/// - `mem` is valid for `bytes` bytes: for reads when `PACK`, for writes otherwise; so is `packed`,
///   the other way round. They do not overlap.
#[inline]
pub(crate) unsafe fn copy<const PACK: bool>(
    isa: Isa,
    width: Width,
    mem: *mut u8,
    packed: *mut u8,
    bytes: usize,
) {
    if width == Width::ONE {
        // SAFETY: our contract.
        return unsafe { interpreter::copy::<PACK>(mem, packed, bytes) };
    }
    let (from, to) = if PACK { (mem, packed) } else { (packed, mem) };
    // SAFETY: our contract.
    unsafe { mover(isa, width)(from, to, bytes) }
}

/// The row for blocks of `bytes` bytes of elements of `width`, which is not 1.
pub(super) fn row<const PACK: bool>(isa: Isa, level: LevelShape, bytes: u64, width: Width) -> Row {
    match level {
        LevelShape::Loop => instance::<Strided, PACK>(isa, bytes, width),
        LevelShape::Table32 => instance::<Listed<i32>, PACK>(isa, bytes, width),
        LevelShape::Table64 => instance::<Listed<i64>, PACK>(isa, bytes, width),
    }
}

fn instance<S: Steps, const PACK: bool>(isa: Isa, bytes: u64, width: Width) -> Row {
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    #[cfg(target_arch = "x86_64")]
    match isa {
        Isa::Avx512 if bytes >= 64 => return avx512::row::<S, PACK>(bytes, width),
        Isa::Avx512 | Isa::Avx2 => return avx2::row::<S, PACK>(bytes, width),
        Isa::Portable => {}
    }
    let _ = isa;
    portable::row::<S, PACK>(bytes, width)
}

/// The runs of a window and what is turned in each: the context of the rows of [`windows`].
pub(super) struct Window {
    pub(super) runs: Arc<[Run]>,
    pub(super) swap: Swap,
}

/// The row for windows, run by run.
pub(super) fn windows<const PACK: bool>(isa: Isa, level: LevelShape) -> Row {
    match level {
        LevelShape::Loop => windows_of::<Strided, PACK>(isa),
        LevelShape::Table32 => windows_of::<Listed<i32>, PACK>(isa),
        LevelShape::Table64 => windows_of::<Listed<i64>, PACK>(isa),
    }
}

fn windows_of<S: Steps, const PACK: bool>(isa: Isa) -> Row {
    #[cfg(target_arch = "x86_64")]
    match isa {
        Isa::Avx512 => return masked::<S, PACK>,
        Isa::Avx2 => return window_avx2::<S, PACK>,
        Isa::Portable => {}
    }
    let _ = isa;
    window_portable::<S, PACK>
}

/// The rows of [`windows`] that move run by run.
macro_rules! run_by_run {
    ($name:ident, $machine:ident $(, #[$feature:meta])?) => {
        /// # Safety
        ///
        /// - As for [`Row`]; the context is a [`Window`] that outlives the call.
        /// - The CPU has the instruction set.
        $(#[$feature])?
        unsafe fn $name<S: Steps, const PACK: bool>(
            context: *const u8,
            words: *const u64,
            mem: *mut u8,
            packed: *mut u8,
        ) {
            // SAFETY: the context is a window.
            let Window { runs, swap } = unsafe { &*context.cast::<Window>() };
            // SAFETY: the count is the level's first word.
            let (count, steps) = unsafe { (*words as usize, S::new(words)) };
            let (mut cursor, mut packed) = (steps.start(mem), packed);
            for _ in 0..count {
                // SAFETY: the cursor stands at an iteration below the count.
                let at = unsafe { steps.at(mem, cursor, 0) };
                cursor = steps.after(cursor, 1);
                for (r, &Run { offset, bytes }) in runs.iter().enumerate() {
                    let mem = at.wrapping_offset(offset as isize);
                    let (from, to) = if PACK { (mem, packed) } else { (packed, mem) };
                    let bytes = bytes as usize;
                    // SAFETY: a run of this iteration, and its place in the packed bytes.
                    unsafe {
                        match swap.width(r).bytes() {
                            1 => moves::run::<Portable>(from, to, bytes),
                            2 => moves::run::<Swapped<$machine, 2>>(from, to, bytes),
                            4 => moves::run::<Swapped<$machine, 4>>(from, to, bytes),
                            8 => moves::run::<Swapped<$machine, 8>>(from, to, bytes),
                            _ => moves::run::<Swapped<$machine, 16>>(from, to, bytes),
                        }
                    }
                    packed = packed.wrapping_add(bytes);
                }
            }
        }
    };
}

run_by_run! { window_portable, Portable }
#[cfg(target_arch = "x86_64")]
run_by_run! { window_avx2, Avx2, #[target_feature(enable = "avx2")] }

/// The row of [`windows`] with one masked move per run of up to 64 bytes: no jump depends on a run's
/// length or width.
///
/// # Safety
///
/// - As for [`Row`]; the context is a [`Window`] that outlives the call.
/// - The CPU has [`Isa::Avx512`].
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")]
unsafe fn masked<S: Steps, const PACK: bool>(
    context: *const u8,
    words: *const u64,
    mem: *mut u8,
    packed: *mut u8,
) {
    static MIRRORS: [[u8; 64]; 5] = [
        Mirror::<1>::BYTES,
        Mirror::<2>::BYTES,
        Mirror::<4>::BYTES,
        Mirror::<8>::BYTES,
        Mirror::<16>::BYTES,
    ];
    // SAFETY: the context is a window.
    let Window { runs, swap } = unsafe { &*context.cast::<Window>() };
    // SAFETY: the count is the level's first word.
    let (count, steps) = unsafe { (*words as usize, S::new(words)) };
    let (mut cursor, mut packed) = (steps.start(mem), packed);
    for _ in 0..count {
        // SAFETY: the cursor stands at an iteration below the count.
        let at = unsafe { steps.at(mem, cursor, 0) };
        cursor = steps.after(cursor, 1);
        for (r, &Run { offset, bytes }) in runs.iter().enumerate() {
            let mem = at.wrapping_offset(offset as isize);
            let (width, bytes) = (swap.width(r), bytes as usize);
            if bytes <= 64 {
                let (from, to) = if PACK { (mem, packed) } else { (packed, mem) };
                let mask = _bzhi_u64(u64::MAX, bytes as u32);
                // SAFETY: the bytes under the mask are those of a run of this iteration, and their
                // place in the packed bytes; others are not accessed.
                unsafe {
                    let mirror = MIRRORS[width.bytes().trailing_zeros() as usize].as_ptr();
                    let data = _mm512_maskz_loadu_epi8(mask, from.cast());
                    let data = _mm512_shuffle_epi8(data, _mm512_loadu_si512(mirror.cast()));
                    _mm512_mask_storeu_epi8(to.cast(), mask, data);
                }
            } else {
                // SAFETY: a run of this iteration, and its place in the packed bytes.
                unsafe { copy::<PACK>(Isa::Avx512, width, mem, packed, bytes) };
            }
            packed = packed.wrapping_add(bytes);
        }
    }
}

/// The instances of one instruction set.
macro_rules! instances {
    ($name:ident, $machine:ident, [$($width:literal: $($bytes:literal)*;)*] $(, #[$feature:meta])?) => {
        mod $name {
            use super::*;

            pub(super) fn mover(width: Width) -> Mover {
                match width.bytes() {
                    2 => run::<2>,
                    4 => run::<4>,
                    8 => run::<8>,
                    _ => run::<16>,
                }
            }

            pub(super) fn row<S: Steps, const PACK: bool>(bytes: usize, width: Width) -> Row {
                match (width.bytes(), bytes) {
                    $($(($width, $bytes) => fixed::<S, PACK, $width, $bytes>,)*)*
                    (2, ..64) => any::<S, PACK, 2>,
                    (4, ..64) => any::<S, PACK, 4>,
                    (8, ..64) => any::<S, PACK, 8>,
                    (_, ..64) => any::<S, PACK, 16>,
                    (2, _) => long::<S, PACK, 2>,
                    (4, _) => long::<S, PACK, 4>,
                    (8, _) => long::<S, PACK, 8>,
                    _ => long::<S, PACK, 16>,
                }
            }

            /// # Safety
            ///
            /// As for [`Mover`].
            $(#[$feature])?
            unsafe fn run<const W: usize>(from: *const u8, to: *mut u8, bytes: usize) {
                // SAFETY: our contract.
                unsafe { long_run::<Swapped<$machine, W>>(from, to, bytes) }
            }

            /// # Safety
            ///
            /// - As for [`Row`].
            /// - The CPU has the instruction set.
            $(#[$feature])?
            unsafe fn fixed<S: Steps, const PACK: bool, const W: usize, const B: usize>(
                context: *const u8,
                words: *const u64,
                mem: *mut u8,
                packed: *mut u8,
            ) {
                let _ = context;
                // SAFETY: our contract.
                unsafe { blocks::<Swapped<$machine, W>, S, PACK, B>(words, mem, packed) }
            }

            /// # Safety
            ///
            /// - As for [`Row`]; the context is the block length in bytes, at least 64.
            /// - The CPU has the instruction set.
            $(#[$feature])?
            unsafe fn long<S: Steps, const PACK: bool, const W: usize>(
                context: *const u8,
                words: *const u64,
                mem: *mut u8,
                packed: *mut u8,
            ) {
                let bytes = context.addr();
                // SAFETY: our contract.
                unsafe { long_blocks::<Swapped<$machine, W>, S, PACK>(bytes, words, mem, packed) }
            }

            /// # Safety
            ///
            /// - As for [`Row`]; the context is the block length in bytes.
            /// - The CPU has the instruction set.
            $(#[$feature])?
            unsafe fn any<S: Steps, const PACK: bool, const W: usize>(
                context: *const u8,
                words: *const u64,
                mem: *mut u8,
                packed: *mut u8,
            ) {
                let bytes = context.addr();
                // SAFETY: the count is the level's first word.
                let (count, steps) = unsafe { (*words as usize, S::new(words)) };
                let (mut cursor, mut packed) = (steps.start(mem), packed);
                for _ in 0..count {
                    // SAFETY: the cursor stands at an iteration below the count; the block is valid
                    // on both sides.
                    unsafe {
                        let at = steps.at(mem, cursor, 0);
                        let (from, to) = if PACK { (at, packed) } else { (packed, at) };
                        moves::run::<Swapped<$machine, W>>(from, to, bytes);
                    }
                    (cursor, packed) = (steps.after(cursor, 1), packed.wrapping_add(bytes));
                }
            }
        }
    };
}

instances! { portable, Portable, [
    2: 2 4 6 8 12 16 24 32 64;
    4: 4 8 12 16 20 24 32 40 48 64;
    8: 8 16 24 32 40 48 56 64;
    16: 16 32 48 64;
] }
#[cfg(target_arch = "x86_64")]
instances! { avx2, Avx2, [
    2: 2 4 6 8 12 16 24 32 64;
    4: 4 8 12 16 20 24 32 40 48 64;
    8: 8 16 24 32 40 48 56 64;
    16: 16 32 48 64;
], #[target_feature(enable = "avx2")] }
#[cfg(target_arch = "x86_64")]
instances! { avx512, Avx512, [2: 64; 4: 64; 8: 64; 16: 64;],
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")] }
