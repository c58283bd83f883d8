//! Byte order: moves that reverse the bytes of each element between load and store. `external32/`
//! needs them.
//!
//! Swapping a run of whole elements of 2, 4, 8 or 16 bytes takes one shuffle per register. One
//! shuffle suffices because each move begins at the start of an element, so no element crosses a
//! 16-byte boundary of the register. Therefore [`Swapped`] can implement [`Machine`], as the
//! instruction sets of `moves.rs` do. The loops that are generic over [`Machine`] work in both byte
//! orders: rows in this file, tiles in `tiles.rs`, lists in `lists.rs`. The patterns of `dense/`
//! permute bytes anyway, and their permutation also reverses the bytes. `mod.rs` picks the loop
//! according to the nest's [`Swap`].
//!
//! Invariant: callers pass whole elements only. If a range begins or ends inside an element,
//! `external32/mod.rs` splits the range.

use super::moves::{self, Machine, Portable};
#[cfg(target_arch = "x86_64")]
use super::moves::{Avx2, Avx512, Sse4};
use super::rows::{Listed, Steps, Strided, blocks, long_blocks};
use super::{Isa, Row};
use crate::kernel::interpreter;
use crate::kernel::{Leaf, LevelShape, Run};
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;
use std::marker::PhantomData;
use std::sync::Arc;

/// The width of an element whose bytes are reversed: 2, 4, 8 or 16 bytes. Width 1 means that the
/// order of the bytes does not change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Width(u8);

impl Width {
    /// The width of 1-byte elements, which have no byte order.
    pub const ONE: Self = Self(1);

    /// Returns the width of an element of `bytes` bytes, or `None` if `bytes` is not 1, 2, 4, 8 or 16.
    pub fn new(bytes: usize) -> Option<Self> {
        matches!(bytes, 1 | 2 | 4 | 8 | 16).then_some(Self(bytes as u8))
    }

    /// Returns the width in bytes.
    #[inline]
    pub fn bytes(self) -> usize {
        usize::from(self.0)
    }
}

/// The widths of the elements whose bytes are reversed, for the leaf of a nest.
#[derive(Clone, Debug)]
pub enum Swap {
    /// All elements of the leaf have the same width.
    Same(Width),
    /// Entry `i` is the width of the elements of run `i` of a window.
    Each(Arc<[Width]>),
}

impl Swap {
    /// Returns the width of the elements in run number `i` of the leaf.
    #[inline]
    pub(super) fn width(&self, i: usize) -> Width {
        match self {
            Self::Same(width) => *width,
            Self::Each(widths) => widths[i],
        }
    }

    /// Moves packed bytes `skip..skip + bytes` of a leaf. This range must consist of whole elements.
    ///
    /// # Safety
    ///
    /// - The machine has `isa`; `self` describes the elements of `leaf`.
    /// - The parts of `leaf`'s runs that hold these bytes, relative to `mem`, are valid for reads if
    ///   `PACK` is true, and for writes otherwise. The `bytes` bytes at `packed` are valid for writes
    ///   if `PACK` is true, and for reads otherwise.
    /// - The memory and the packed bytes do not overlap.
    #[inline(always)]
    pub unsafe fn part_of_leaf<const PACK: bool>(
        &self,
        isa: Isa,
        leaf: &Leaf,
        mem: *mut u8,
        packed: *mut u8,
        part: (u64, u64),
    ) {
        type Run = unsafe fn(&Swap, Isa, &Leaf, *mut u8, *mut u8, (u64, u64));
        static RUN: [Run; 2] = [Swap::part::<false>, Swap::part::<true>];
        // SAFETY: the conditions of `part` are those of this function, and the arguments are the same.
        unsafe { RUN[usize::from(PACK)](self, isa, leaf, mem, packed, part) }
    }

    /// # Safety
    ///
    /// The conditions of [`part_of_leaf`](Self::part_of_leaf) hold.
    unsafe fn part<const PACK: bool>(
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
            // SAFETY: `at` and `bytes` describe the part of this run that lies in the range, and
            // `packed` points to its packed bytes. The caller guarantees that both are valid and that
            // the part consists of whole elements of the run's width.
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

/// The instruction set `M`, except that every move reverses the bytes of each element of `W` bytes.
pub(super) struct Swapped<M, const W: usize>(PhantomData<M>);

/// The control bytes of a shuffle that reverses elements of `W` bytes. For each of 64 result bytes,
/// the entry is the index of the source byte within the same group of 16 bytes.
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

/// Reverses the bytes of each element of `W` bytes, without CPU-specific vector instructions.
#[inline(always)]
fn swapped_words<T: Copy, const W: usize>(value: T) -> T {
    let mut value = value;
    let bytes = (&raw mut value).cast::<u8>();
    macro_rules! words {
        ($word:ty, $turn:expr) => {{
            let step = size_of::<$word>();
            let mut at = 0;
            while at + step <= size_of::<T>() {
                // SAFETY: `at + step <= size_of::<T>()`, so the word lies within `value`. Every
                // caller passes a byte array or a vector register as `T`, and any bytes are a valid
                // value of such a type.
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

/// Reinterprets `value` as a register of the same size, calls `turn` with this register, and reinterprets the
/// result as a `T`. A caller has one branch per register size, and each branch calls this function with its
/// own type of register. Only the branch for the size of `T` ever runs.
///
/// # Safety
///
/// - `T` and `R` have the same size, and any bytes are a valid value of either.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn through<T: Copy, R: Copy>(value: T, turn: impl FnOnce(R) -> R) -> T {
    // SAFETY: the caller guarantees that `T` and `R` have the same size and accept any bytes.
    unsafe { std::mem::transmute_copy(&turn(std::mem::transmute_copy(&value))) }
}

#[cfg(target_arch = "x86_64")]
impl<const W: usize> Machine for Swapped<Sse4, W> {
    const WIDEST: usize = Sse4::WIDEST;
    const UNIT: usize = W;

    #[inline(always)]
    unsafe fn swapped<T: Copy>(value: T) -> T {
        let mirror = Mirror::<W>::BYTES.as_ptr();
        // SAFETY: the branch checks that `T` has the 16 bytes of the register, and `mirror` points to 64
        // bytes. The caller guarantees that the CPU has SSSE3, which is part of `Isa::Sse4`.
        unsafe {
            match size_of::<T>() {
                16 => through(value, |v| _mm_shuffle_epi8(v, _mm_loadu_si128(mirror.cast()))),
                _ => swapped_words::<T, W>(value),
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
impl<const W: usize> Machine for Swapped<Avx2, W> {
    const WIDEST: usize = Avx2::WIDEST;
    const UNIT: usize = W;

    #[inline(always)]
    unsafe fn swapped<T: Copy>(value: T) -> T {
        let mirror = Mirror::<W>::BYTES.as_ptr();
        // SAFETY: the branch checks that its register has the size of `T`, and `mirror` points to 64
        // bytes. The caller guarantees that the CPU has AVX2.
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
        // SAFETY: in the first branch, `T` has 64 bytes like the register, and `mirror` points to 64
        // bytes. The caller guarantees that the CPU has AVX-512 BW; such a CPU also has AVX2.
        unsafe {
            match size_of::<T>() {
                64 => through(value, |v| _mm512_shuffle_epi8(v, _mm512_loadu_si512(mirror.cast()))),
                _ => Swapped::<Avx2, W>::swapped(value),
            }
        }
    }
}

/// A function that moves a run of elements that all have the same width. The arguments are `from`,
/// `to` and the number of bytes; this number is not known at compile time.
///
/// # Safety
///
/// - The CPU has the instruction set that the function was made for.
/// - `from` is valid for reads of `bytes` bytes, `to` for writes of `bytes` bytes, and they do not
///   overlap.
/// - `bytes` is a multiple of the width.
pub type Mover = unsafe fn(*const u8, *mut u8, usize);

/// Returns the [`Mover`] for `width`.
#[inline]
pub fn mover(isa: Isa, width: Width) -> Mover {
    if width == Width::ONE {
        return native;
    }
    #[cfg(target_arch = "x86_64")]
    match isa {
        Isa::Avx512 => return avx512::mover(width),
        Isa::Avx2 => return avx2::mover(width),
        Isa::Sse4 => return sse4::mover(width),
        Isa::Portable => {}
    }
    let _ = isa;
    portable::mover(width)
}

/// The [`Mover`] that keeps the order of the bytes.
///
/// # Safety
///
/// The conditions of [`Mover`] hold.
unsafe fn native(from: *const u8, to: *mut u8, bytes: usize) {
    // SAFETY: by the second condition of `Mover`, `from` is readable and `to` writable for `bytes`
    // bytes, and they do not overlap.
    unsafe { crate::contiguous::copy(from, to, bytes) }
}

/// Does what [`moves::run`] does, with four registers per iteration of the loop. All four are loaded before
/// the first is stored, because a load may have to wait for an earlier store to the same offset in another
/// page.
///
/// # Safety
///
/// The conditions of [`moves::run`] hold.
#[inline(always)]
unsafe fn long_run<M: Machine>(from: *const u8, to: *mut u8, bytes: usize) {
    /// Runs of at most this many bytes go to [`moves::run`]. Also the number of bytes of the moves at both ends
    /// of a longer run.
    const SHORT: usize = 64;
    if bytes <= SHORT || M::WIDEST < 32 {
        // SAFETY: the conditions of `moves::run` are those of this function, and the arguments are
        // the same.
        return unsafe { moves::run::<M>(from, to, bytes) };
    }
    // Separate moves cover the first and the last 64 bytes. The stores between them begin at cache
    // lines; `moves::long` explains why.
    let last = bytes - SHORT;
    // SAFETY: `bytes` is more than `SHORT`, so the first `SHORT` bytes are in the run.
    unsafe { moves::block::<M, SHORT>(from, to) };
    let mut at = if to.addr().is_multiple_of(M::UNIT) { 64 - to.addr() % 64 } else { 64 };
    macro_rules! turns {
        ($width:literal) => {
            while at + 4 * $width <= bytes {
                // SAFETY: `at + 4 * $width <= bytes`, so all four registers lie within the run.
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
        // SAFETY: `at` is below `last`, and `last` is `bytes - SHORT`. So the 64 bytes from `at` end
        // before the end of the run.
        unsafe { moves::block::<M, SHORT>(from.add(at), to.add(at)) };
        at += SHORT;
    }
    if at < bytes {
        // SAFETY: `last` is `bytes - SHORT`, so the move covers exactly the last 64 bytes of the run.
        unsafe { moves::block::<M, SHORT>(from.add(last), to.add(last)) };
    }
}

/// Does what [`interpreter::copy`] does, and reverses the bytes of each element of width `width`.
///
/// # Safety
///
/// - The machine has `isa`; `bytes` is a multiple of `width`.
/// - The `bytes` bytes at `mem` are valid for reads if `PACK` is true, and for writes otherwise. The
///   `bytes` bytes at `packed` are valid for writes if `PACK` is true, and for reads otherwise. The
///   two ranges do not overlap.
#[inline]
pub unsafe fn copy<const PACK: bool>(
    isa: Isa,
    width: Width,
    mem: *mut u8,
    packed: *mut u8,
    bytes: usize,
) {
    if width == Width::ONE {
        // SAFETY: the caller guarantees that `mem` and `packed` are valid for `bytes` bytes and do
        // not overlap.
        return unsafe { interpreter::copy::<PACK>(mem, packed, bytes) };
    }
    let (from, to) = if PACK { (mem, packed) } else { (packed, mem) };
    // SAFETY: the caller guarantees that `from` is readable and `to` writable for `bytes` bytes, that
    // `bytes` is a multiple of `width`, and that the machine has `isa`.
    unsafe { mover(isa, width)(from, to, bytes) }
}

/// Returns the row for blocks of `bytes` bytes. The blocks consist of elements of width `width`,
/// which must not be 1.
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
        // Registers of 32 bytes do not help with these lengths.
        Isa::Avx512 | Isa::Avx2
            if matches!(
                (width.bytes(), bytes),
                (2, 2 | 4 | 12 | 24) | (4, 4 | 12 | 20 | 24) | (8, 24)
            ) =>
        {
            return sse4::row::<S, PACK>(bytes, width);
        }
        Isa::Avx512 | Isa::Avx2 => return avx2::row::<S, PACK>(bytes, width),
        Isa::Sse4 => return sse4::row::<S, PACK>(bytes, width),
        Isa::Portable => {}
    }
    let _ = isa;
    portable::row::<S, PACK>(bytes, width)
}

/// The runs of a window and the widths of their elements. The length of each run is a multiple of the
/// run's width. A pointer to a `Window` is the context of the rows that [`windows`] returns.
pub(super) struct Window {
    pub(super) runs: Arc<[Run]>,
    pub(super) swap: Swap,
}

/// Returns the row that moves the runs of each window one by one.
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
        Isa::Sse4 => return window_sse4::<S, PACK>,
        Isa::Portable => {}
    }
    let _ = isa;
    window_portable::<S, PACK>
}

/// Defines a row for [`windows`] that moves one run at a time.
macro_rules! run_by_run {
    ($name:ident, $machine:ident $(, #[$feature:meta])?) => {
        /// # Safety
        ///
        /// - The conditions of [`Row`] hold. The context is a [`Window`] that outlives the call.
        /// - The CPU has the instruction set of `$machine`.
        $(#[$feature])?
        unsafe fn $name<S: Steps, const PACK: bool>(
            context: *const u8,
            words: *const u64,
            mem: *mut u8,
            packed: *mut u8,
        ) {
            // SAFETY: the caller guarantees that `context` points to a `Window` that outlives the
            // call.
            let Window { runs, swap } = unsafe { &*context.cast::<Window>() };
            // SAFETY: by the first condition of `Row`, `words` points to the parameters of a level of
            // kind `S`. The first parameter is the count.
            let (count, steps) = unsafe { (*words as usize, S::new(words)) };
            let (mut cursor, mut packed) = (steps.start(mem), packed);
            for _ in 0..count {
                // SAFETY: the loop runs `count` times, so the cursor is at an existing iteration.
                let at = unsafe { steps.at(mem, cursor, 0) };
                cursor = steps.after(cursor, 1);
                for (r, &Run { offset, bytes }) in runs.iter().enumerate() {
                    let mem = at.wrapping_offset(offset as isize);
                    let (from, to) = if PACK { (mem, packed) } else { (packed, mem) };
                    let bytes = bytes as usize;
                    // SAFETY: `mem` is the address of this run in an existing iteration, and `packed`
                    // points to the packed bytes of the run. Both are valid by the conditions of
                    // `Row`. The run consists of whole elements. The CPU has the instruction set.
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
run_by_run! { window_sse4, Sse4, #[target_feature(enable = "ssse3,sse4.1")] }
#[cfg(target_arch = "x86_64")]
run_by_run! { window_avx2, Avx2, #[target_feature(enable = "avx2")] }

/// A row for [`windows`]. Every run of up to 64 bytes takes one masked move, so no jump depends on
/// the length of such a run or on the width of its elements.
///
/// # Safety
///
/// - The conditions of [`Row`] hold. The context is a [`Window`] that outlives the call.
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
    // SAFETY: `context` points to a `Window` that outlives the call; the caller guarantees this.
    let Window { runs, swap } = unsafe { &*context.cast::<Window>() };
    // SAFETY: the level is of kind `S`, and the caller guarantees that `words` points to its
    // parameters. The first parameter is the count.
    let (count, steps) = unsafe { (*words as usize, S::new(words)) };
    let (mut cursor, mut packed) = (steps.start(mem), packed);
    for _ in 0..count {
        // SAFETY: `count` bounds the loop, so the cursor is at an iteration that the level has.
        let at = unsafe { steps.at(mem, cursor, 0) };
        cursor = steps.after(cursor, 1);
        for (r, &Run { offset, bytes }) in runs.iter().enumerate() {
            let mem = at.wrapping_offset(offset as isize);
            let (width, bytes) = (swap.width(r), bytes as usize);
            if bytes <= 64 {
                let (from, to) = if PACK { (mem, packed) } else { (packed, mem) };
                let mask = _bzhi_u64(u64::MAX, bytes as u32);
                // SAFETY: in memory, the bytes under the mask are this run in an existing iteration;
                // in the packed data, they are the packed bytes of the run. Other bytes are not
                // accessed. `mirror` points to 64 bytes.
                unsafe {
                    let mirror = MIRRORS[width.bytes().trailing_zeros() as usize].as_ptr();
                    let data = _mm512_maskz_loadu_epi8(mask, from.cast());
                    let data = _mm512_shuffle_epi8(data, _mm512_loadu_si512(mirror.cast()));
                    _mm512_mask_storeu_epi8(to.cast(), mask, data);
                }
            } else {
                // SAFETY: `mem` is the address of this run in an existing iteration, and `packed`
                // points to the packed bytes of the run. Both are valid for `bytes` bytes by the
                // conditions of `Row`. `bytes` is a multiple of `width` (see `Window`).
                unsafe { copy::<PACK>(Isa::Avx512, width, mem, packed, bytes) };
            }
            packed = packed.wrapping_add(bytes);
        }
    }
}

/// Defines the movers and the rows of one instruction set: one row for each of the given lengths (`width: lengths;`), one
/// for other lengths below 64 bytes (`$short`), and one for longer blocks.
macro_rules! instances {
    ($name:ident, $machine:ident, $short:ident, [$($width:literal: $($bytes:literal)*;)*] $(, #[$feature:meta])?) => {
        mod $name {
            use super::*;

            // If another crate inlined this function, it would compile the movers.
            #[inline(never)]
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
                    (2, ..64) => $short::<S, PACK, 2>,
                    (4, ..64) => $short::<S, PACK, 4>,
                    (8, ..64) => $short::<S, PACK, 8>,
                    (_, ..64) => $short::<S, PACK, 16>,
                    (2, _) => long::<S, PACK, 2>,
                    (4, _) => long::<S, PACK, 4>,
                    (8, _) => long::<S, PACK, 8>,
                    _ => long::<S, PACK, 16>,
                }
            }

            /// # Safety
            ///
            /// The conditions of [`Mover`] hold.
            $(#[$feature])?
            unsafe fn run<const W: usize>(from: *const u8, to: *mut u8, bytes: usize) {
                // SAFETY: the caller guarantees that source and destination are valid for `bytes`
                // bytes, that `bytes` is a multiple of `W`, and that the CPU has the instruction set.
                unsafe { long_run::<Swapped<$machine, W>>(from, to, bytes) }
            }

            /// # Safety
            ///
            /// - The conditions of [`Row`] hold, for blocks of `B` bytes.
            /// - The CPU has the instruction set of `$machine`.
            $(#[$feature])?
            #[allow(dead_code, reason = "not every instruction set has rows for one length")]
            unsafe fn fixed<S: Steps, const PACK: bool, const W: usize, const B: usize>(
                context: *const u8,
                words: *const u64,
                mem: *mut u8,
                packed: *mut u8,
            ) {
                let _ = context;
                // SAFETY: `blocks` requires the conditions of `Row` for blocks of `B` bytes and the
                // instruction set of `$machine`, and the caller guarantees both. `row` names only
                // lengths `B` that are multiples of `W`.
                unsafe { blocks::<Swapped<$machine, W>, S, PACK, B>(words, mem, packed) }
            }

            /// # Safety
            ///
            /// - The conditions of [`Row`] hold. The context is the block length in bytes, at least
            ///   64 and a multiple of `W`.
            /// - The CPU has the instruction set of `$machine`.
            $(#[$feature])?
            unsafe fn long<S: Steps, const PACK: bool, const W: usize>(
                context: *const u8,
                words: *const u64,
                mem: *mut u8,
                packed: *mut u8,
            ) {
                let bytes = context.addr();
                // SAFETY: `bytes` is the block length, at least 64 and a multiple of `W`. The caller
                // guarantees the conditions of `Row` for blocks of this length.
                unsafe { long_blocks::<Swapped<$machine, W>, S, PACK>(bytes, words, mem, packed) }
            }

            /// # Safety
            ///
            /// - The conditions of [`Row`] hold. The context is the block length in bytes, a multiple
            ///   of `W`.
            /// - The CPU has the instruction set of `$machine`.
            $(#[$feature])?
            #[allow(dead_code, reason = "`$short` may be another row")]
            unsafe fn any<S: Steps, const PACK: bool, const W: usize>(
                context: *const u8,
                words: *const u64,
                mem: *mut u8,
                packed: *mut u8,
            ) {
                let bytes = context.addr();
                // SAFETY: `words` points to the parameters of a level of kind `S`, as the caller
                // guarantees. The first parameter is the count.
                let (count, steps) = unsafe { (*words as usize, S::new(words)) };
                let (mut cursor, mut packed) = (steps.start(mem), packed);
                for _ in 0..count {
                    // SAFETY: the loop runs `count` times, so the cursor is at an existing iteration,
                    // and its block of `bytes` bytes at `at` is valid. `packed` points to the packed
                    // bytes of the block.
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

// An x86-64 processor without SSSE3 is so old that it needs no rows for single lengths.
#[cfg(target_arch = "x86_64")]
instances! { portable, Portable, any, [] }
#[cfg(not(target_arch = "x86_64"))]
instances! { portable, Portable, any, [
    2: 2 4 6 8 12 16 24 32 64;
    4: 4 8 12 16 20 24 32 40 48 64;
    8: 8 16 24 32 40 48 56 64;
    16: 16 32 48 64;
] }
#[cfg(target_arch = "x86_64")]
instances! { sse4, Sse4, any, [
    2: 2 4 6 8 12 16 24 32 64;
    4: 4 8 12 16 20 24 32 40 48 64;
    8: 8 16 24 32 40 48 56 64;
    16: 16 32 48 64;
], #[target_feature(enable = "ssse3,sse4.1")] }
#[cfg(target_arch = "x86_64")]
instances! { avx2, Avx2, any, [
    2: 6 8 16 32 64;
    4: 8 16 32 40 48 64;
    8: 8 16 32 40 48 56 64;
    16: 16 32 48 64;
], #[target_feature(enable = "avx2")] }
// The instance of AVX2 moves shorter blocks.
#[cfg(target_arch = "x86_64")]
instances! { avx512, Avx512, long, [2: 64; 4: 64; 8: 64; 16: 64;],
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")] }
