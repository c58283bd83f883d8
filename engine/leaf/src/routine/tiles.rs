//! Tiles: kernels that execute two levels at once. They visit memory line by line even if packed
//! order runs across the lines, as in a column type with count > 1 or in a transpose.
//!
//! `traversal.rs` and `engine/src/transfer/transpose.rs` pick a tile kernel for a nest with two special
//! levels. Along the *near* level, the blocks lie side by side in memory; the innermost level, the
//! *far* level, has a longer stride. Packing and unpacking are the same problem:
//!
//! ```text
//! to[x * to_pitch + y * B] = from[y * from_pitch + x * B]     for x < width, y < height
//! ```
//!
//! When packing, x counts along the near level; when unpacking, x counts along the far level. The
//! kernels transpose squares of elements, in registers if the instruction set can do it. When a
//! square touches a line of `from` or `to`, it uses 16 to 64 neighbouring bytes of the line at once. So
//! a pitch that is a power of two does little harm, although it puts all rows of a square into few
//! cache sets. The written blocks must be disjoint. The caller must prove this before it picks a tile
//! kernel.

use super::byteswap::{Swapped, Width};
#[cfg(target_arch = "x86_64")]
use super::moves::{Avx2, Avx512, Sse4};
use super::moves::{Machine, Portable};
use crate::isa::Isa;

/// A matrix of elements to transpose, as the documentation of this module describes. Pitches are in
/// bytes.
#[derive(Clone, Copy, Debug)]
pub struct Transpose {
    /// Address of the first element of the source.
    pub from: *const u8,
    /// Distance between rows of the source.
    pub from_pitch: isize,
    /// Address of the first element of the destination.
    pub to: *mut u8,
    /// Distance between rows of the destination.
    pub to_pitch: isize,
    /// Number of elements that are contiguous in `from`, that is, the length of one of its rows.
    pub width: usize,
    /// Number of elements that are contiguous in `to`, that is, the length of one of its rows.
    pub height: usize,
}

/// A function that transposes a matrix. Each function is made for one element size.
///
/// # Safety
///
/// - Every element of `from` is valid for reads, every element of `to` for writes. No byte of `to`
///   is a byte of `from` or of another element of `to`.
/// - The CPU has the instruction set for which the function was made.
pub type Transposer = unsafe fn(Transpose);

/// The types that implement the instruction sets for one byte order. The loops are generic over them
/// ([`Machine`]).
trait Order {
    type Portable: Machine;
    #[cfg(target_arch = "x86_64")]
    type Sse4: Machine;
    #[cfg(target_arch = "x86_64")]
    type Avx2: Machine;
    #[cfg(target_arch = "x86_64")]
    type Avx512: Machine;
}

/// The byte order of this machine. Moves keep the bytes of an element in order.
struct Native;

impl Order for Native {
    type Portable = Portable;
    #[cfg(target_arch = "x86_64")]
    type Sse4 = Sse4;
    #[cfg(target_arch = "x86_64")]
    type Avx2 = Avx2;
    #[cfg(target_arch = "x86_64")]
    type Avx512 = Avx512;
}

/// The opposite byte order. Moves reverse every `W` bytes of an element.
struct Other<const W: usize>;

impl<const W: usize> Order for Other<W> {
    type Portable = Swapped<Portable, W>;
    #[cfg(target_arch = "x86_64")]
    type Sse4 = Swapped<Sse4, W>;
    #[cfg(target_arch = "x86_64")]
    type Avx2 = Swapped<Avx2, W>;
    #[cfg(target_arch = "x86_64")]
    type Avx512 = Swapped<Avx512, W>;
}

/// Returns the transposer for elements of `bytes` bytes. The transposer reverses every `width` bytes
/// of an element; `width` must divide `bytes`. Returns `None` if `bytes` is not 1, 2, 4, 8 or 16.
pub fn transposer(isa: Isa, bytes: u64, width: Width) -> Option<Transposer> {
    match width.bytes() {
        1 => instance::<Native>(isa, bytes),
        2 => instance::<Other<2>>(isa, bytes),
        4 => instance::<Other<4>>(isa, bytes),
        8 => instance::<Other<8>>(isa, bytes),
        _ => instance::<Other<16>>(isa, bytes),
    }
}

fn instance<O: Order>(isa: Isa, bytes: u64) -> Option<Transposer> {
    #[cfg(target_arch = "x86_64")]
    match (isa, bytes) {
        (Isa::Avx512, 8) => return Some(x86::avx512_8::<O::Avx512>),
        (Isa::Avx512, 4) => return Some(x86::avx512_4::<O::Avx512>),
        (Isa::Avx2, 8) => return Some(x86::avx2_8::<O::Avx2>),
        (Isa::Avx2, 4) => return Some(x86::avx2_4::<O::Avx2>),
        (Isa::Avx512, 2) => return Some(x86::avx512_2::<O::Avx512>),
        (Isa::Avx512, 1) => return Some(x86::avx512_1),
        (Isa::Avx2, 2) => return Some(x86::avx2_2::<O::Avx2>),
        (Isa::Avx2, 1) => return Some(x86::avx2_1),
        (Isa::Sse4, 8) => return Some(x86::sse4_8::<O::Sse4>),
        (Isa::Sse4, 4) => return Some(x86::sse4_4::<O::Sse4>),
        (Isa::Sse4, 2) => return Some(x86::sse4_2::<O::Sse4>),
        (_, 8) => return Some(x86::sse_8::<O::Portable>),
        (_, 4) => return Some(x86::sse_4::<O::Portable>),
        (_, 2) => return Some(x86::sse_2::<O::Portable>),
        (_, 1) => return Some(x86::sse_1),
        _ => {}
    }
    let _ = isa;
    match bytes {
        1 => Some(portable::<O::Portable, 1, 16>),
        2 => Some(portable::<O::Portable, 2, 16>),
        4 => Some(portable::<O::Portable, 4, 16>),
        8 => Some(portable::<O::Portable, 8, 8>),
        16 => Some(portable::<O::Portable, 16, 4>),
        _ => None,
    }
}

/// Transposes elements of `B` bytes, one element at a time, in squares of `N` by `N` elements.
///
/// # Safety
///
/// The conditions of [`Transposer`] hold.
unsafe fn portable<M: Machine, const B: usize, const N: usize>(t: Transpose) {
    // SAFETY: `squares` passes only matrices that are parts of `t`. The caller guarantees the
    // conditions of `Transposer` for `t`, so they hold for each part.
    let part = |t| unsafe { scalar::<M, B>(t) };
    squares::<B, N>(t, part, part);
}

/// Calls `square` for every full square of `t` and `edge` for the rest. The squares are visited in
/// blocks of [`BLOCK`] by [`BLOCK`] elements, so that the pages of `from` and `to` stay in the
/// first-level translation buffer.
///
/// Both functions transpose their argument and may rely on the conditions of [`Transposer`]. `square`
/// gets a matrix of `N` by `N` elements. `edge` gets a matrix that is less than `N` wide or less than
/// `N` high.
#[inline(always)]
fn squares<const B: usize, const N: usize>(
    t: Transpose,
    square: impl Fn(Transpose),
    edge: impl Fn(Transpose),
) {
    let part = |x: usize, y: usize, width: usize, height: usize| {
        let from = t.from.wrapping_offset(y as isize * t.from_pitch).wrapping_add(x * B);
        let to = t.to.wrapping_offset(x as isize * t.to_pitch).wrapping_add(y * B);
        Transpose { from, to, width, height, ..t }
    };
    let (width, height) = (t.width / N * N, t.height / N * N);
    for left in (0..width).step_by(BLOCK) {
        for top in (0..height).step_by(BLOCK) {
            for x in (left..width.min(left + BLOCK)).step_by(N) {
                for y in (top..height.min(top + BLOCK)).step_by(N) {
                    square(part(x, y, N, N));
                }
            }
        }
    }
    // The edges are the columns to the right of the squares and the rows below the squares.
    if width < t.width {
        edge(part(width, 0, t.width - width, height));
    }
    if height < t.height {
        edge(part(0, height, t.width, t.height - height));
    }
}

/// Cuts an edge (the part of a matrix that the full squares do not cover) into parts of at most `N`
/// by `N` elements and calls `part` for each. `part` may rely on the conditions of [`Transposer`].
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn parts_of<const B: usize, const N: usize>(t: Transpose, part: impl Fn(Transpose)) {
    for x in (0..t.width).step_by(N) {
        for y in (0..t.height).step_by(N) {
            let from = t.from.wrapping_offset(y as isize * t.from_pitch).wrapping_add(x * B);
            let to = t.to.wrapping_offset(x as isize * t.to_pitch).wrapping_add(y * B);
            let (width, height) = ((t.width - x).min(N), (t.height - y).min(N));
            part(Transpose { from, to, width, height, ..t });
        }
    }
}

/// Number of elements along each side of a block of squares.
const BLOCK: usize = 32;

/// Transposes elements of `B` bytes one by one. The inner loop runs along the shorter side of the
/// matrix.
///
/// # Safety
///
/// The conditions of [`Transposer`] hold, for elements of `B` bytes.
#[inline(always)]
unsafe fn scalar<M: Machine, const B: usize>(t: Transpose) {
    let one = |x: usize, y: usize| {
        let from = t.from.wrapping_offset(y as isize * t.from_pitch).wrapping_add(x * B);
        let to = t.to.wrapping_offset(x as isize * t.to_pitch).wrapping_add(y * B);
        // SAFETY: `x < t.width` and `y < t.height`, so both addresses belong to elements of the
        // matrix. The caller guarantees that these are valid.
        unsafe { to.cast::<[u8; B]>().write(M::swapped(from.cast::<[u8; B]>().read())) };
    };
    if t.width < t.height {
        for y in 0..t.height {
            for x in 0..t.width {
                one(x, y);
            }
        }
    } else {
        for x in 0..t.width {
            for y in 0..t.height {
                one(x, y);
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    //! Transposes squares in registers with the well-known networks of interleave steps. The steps
    //! interleave single elements, then pairs, then groups of four and of eight.

    use super::{Machine, Portable, Transpose, parts_of, scalar, squares};
    use std::arch::x86_64::*;

    /// The address of row `$i` of a square.
    macro_rules! row {
        ($base:expr, $i:expr, $pitch:expr) => {
            $base.wrapping_offset($i as isize * $pitch)
        };
    }

    /// Makes a function that transposes an edge of at most `$n` by `$n` elements. `$load` and
    /// `$store` access a row under a mask of type `$mask`; `$network` takes `$n` rows and returns the
    /// columns.
    macro_rules! masked_edge {
        ($machine:ident, $n:literal $mask:ident, $network:ident, $load:ident, $store:ident) => {
            |t: Transpose| {
                let width = $mask::MAX >> ($n - t.width);
                let height = $mask::MAX >> ($n - t.height);
                // SAFETY: the masks have `t.width` and `t.height` bits, so only elements of the edge
                // are accessed. A load of a row at or beyond `t.height` has an empty mask.
                unsafe {
                    let columns = $network(std::array::from_fn(|i| {
                        let mask = if i < t.height { width } else { 0 };
                        $machine::swapped($load(mask, row!(t.from, i, t.from_pitch).cast()))
                    }));
                    for (i, &column) in columns.iter().enumerate().take(t.width) {
                        $store(row!(t.to, i, t.to_pitch).cast(), height, column);
                    }
                }
            }
        };
    }

    /// Makes an array of 16 values: evaluates an expression in `i` for each `i` from 0 to 15.
    macro_rules! each_of_16 {
        (|$i:ident| $value:expr) => {
            each_of_16!($i $value; 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15)
        };
        ($i:ident $value:expr; $($number:literal)*) => {
            [$({
                const $i: usize = $number;
                $value
            }),*]
        };
    }

    /// Transposes 8-byte elements in squares of 8 by 8.
    ///
    /// # Safety
    ///
    /// The conditions of [`Transposer`](super::Transposer) hold; the CPU has the features that the
    /// `target_feature` attribute below names.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    pub(super) unsafe fn avx512_8<M: Machine>(t: Transpose) {
        let square = |t: Transpose| {
            // SAFETY: `squares` passes squares of 8 by 8 elements of `t`. Each load or store
            // accesses one row of 8 elements.
            unsafe {
                let columns = network_8(std::array::from_fn(|i| {
                    M::swapped(_mm512_loadu_si512(row!(t.from, i, t.from_pitch).cast()))
                }));
                for (i, &column) in columns.iter().enumerate() {
                    _mm512_storeu_si512(row!(t.to, i, t.to_pitch).cast(), column);
                }
            }
        };
        let edge =
            masked_edge!(M, 8 u8, network_8, _mm512_maskz_loadu_epi64, _mm512_mask_storeu_epi64);
        squares::<8, 8>(t, square, |t| parts_of::<8, 8>(t, edge));
    }

    /// Transposes 8 rows of 8 elements in registers and returns the columns.
    #[target_feature(enable = "avx512f")]
    #[inline]
    fn network_8(r: [__m512i; 8]) -> [__m512i; 8] {
        // p[2k] holds the even elements (0, 2, 4, 6) of rows 2k and 2k+1; p[2k + 1] holds the odd
        // elements (1, 3, 5, 7) of the same rows.
        let p: [__m512i; 8] = std::array::from_fn(|i| {
            let (a, b) = (r[i & 6], r[i | 1]);
            if i % 2 == 0 { _mm512_unpacklo_epi64(a, b) } else { _mm512_unpackhi_epi64(a, b) }
        });
        // Each 128-bit lane of p[2k + c] holds one column of rows 2k and 2k+1; the four lanes hold
        // the columns c, c+2, c+4 and c+6.
        let (even, odd) = (quarters(p[0], p[2], p[4], p[6]), quarters(p[1], p[3], p[5], p[7]));
        std::array::from_fn(|i| if i % 2 == 0 { even[i / 2] } else { odd[i / 2] })
    }

    /// Transposes a matrix of 4 by 4 lanes of 128 bits: the four registers are the rows, and the
    /// result is the columns.
    #[target_feature(enable = "avx512f")]
    #[inline]
    fn quarters(a: __m512i, b: __m512i, c: __m512i, d: __m512i) -> [__m512i; 4] {
        let ab_low = _mm512_shuffle_i64x2::<0x44>(a, b);
        let ab_high = _mm512_shuffle_i64x2::<0xee>(a, b);
        let cd_low = _mm512_shuffle_i64x2::<0x44>(c, d);
        let cd_high = _mm512_shuffle_i64x2::<0xee>(c, d);
        [
            _mm512_shuffle_i64x2::<0x88>(ab_low, cd_low),
            _mm512_shuffle_i64x2::<0xdd>(ab_low, cd_low),
            _mm512_shuffle_i64x2::<0x88>(ab_high, cd_high),
            _mm512_shuffle_i64x2::<0xdd>(ab_high, cd_high),
        ]
    }

    /// Transposes 4-byte elements in squares of 16 by 16.
    ///
    /// # Safety
    ///
    /// The conditions of [`Transposer`](super::Transposer) hold; the CPU has the features that the
    /// `target_feature` attribute below names.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    pub(super) unsafe fn avx512_4<M: Machine>(t: Transpose) {
        let square = |t: Transpose| {
            // SAFETY: `squares` passes squares of 16 by 16 elements of `t`. Each load or store
            // accesses one row of 16 elements.
            unsafe {
                let columns = network_16(each_of_16!(|I| M::swapped(_mm512_loadu_si512(
                    row!(t.from, I, t.from_pitch).cast()
                ))));
                for (i, &column) in columns.iter().enumerate() {
                    _mm512_storeu_si512(row!(t.to, i, t.to_pitch).cast(), column);
                }
            }
        };
        let edge =
            masked_edge!(M, 16 u16, network_16, _mm512_maskz_loadu_epi32, _mm512_mask_storeu_epi32);
        squares::<4, 16>(t, square, |t| parts_of::<4, 16>(t, edge));
    }

    /// Transposes 16 rows of 16 elements in registers and returns the columns.
    #[target_feature(enable = "avx512f")]
    #[inline]
    fn network_16(r: [__m512i; 16]) -> [__m512i; 16] {
        // Transpose four rows at a time within each 128-bit lane. The four lanes of q[4k + c] hold
        // rows 4k to 4k+3 of the columns c, c+4, c+8 and c+12.
        let q: [__m512i; 16] = each_of_16!(|I| {
            let k = I & 12;
            let (low, high) = if I % 4 < 2 {
                (_mm512_unpacklo_epi32(r[k], r[k + 1]), _mm512_unpacklo_epi32(r[k + 2], r[k + 3]))
            } else {
                (_mm512_unpackhi_epi32(r[k], r[k + 1]), _mm512_unpackhi_epi32(r[k + 2], r[k + 3]))
            };
            if I.is_multiple_of(2) {
                _mm512_unpacklo_epi64(low, high)
            } else {
                _mm512_unpackhi_epi64(low, high)
            }
        });
        let lane = |c: usize| quarters(q[c], q[4 + c], q[8 + c], q[12 + c]);
        let lanes = [lane(0), lane(1), lane(2), lane(3)];
        each_of_16!(|I| lanes[I % 4][I / 4])
    }

    /// Transposes 8-byte elements in squares of 4 by 4.
    ///
    /// # Safety
    ///
    /// The conditions of [`Transposer`](super::Transposer) hold; the CPU has AVX2.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn avx2_8<M: Machine>(t: Transpose) {
        // SAFETY: `squares` passes only parts of `t`. A full square has 4 by 4 elements, and each
        // load or store accesses one row of four 8-byte elements. `scalar` handles the edges.
        unsafe {
            squares::<8, 4>(
                t,
                |Transpose { from, from_pitch, to, to_pitch, .. }| {
                    let r: [__m256i; 4] = std::array::from_fn(|i| {
                        M::swapped(_mm256_loadu_si256(row!(from, i, from_pitch).cast()))
                    });
                    let (a, b) =
                        (_mm256_unpacklo_epi64(r[0], r[1]), _mm256_unpackhi_epi64(r[0], r[1]));
                    let (c, d) =
                        (_mm256_unpacklo_epi64(r[2], r[3]), _mm256_unpackhi_epi64(r[2], r[3]));
                    let columns = [
                        _mm256_permute2x128_si256::<0x20>(a, c),
                        _mm256_permute2x128_si256::<0x20>(b, d),
                        _mm256_permute2x128_si256::<0x31>(a, c),
                        _mm256_permute2x128_si256::<0x31>(b, d),
                    ];
                    for (i, &column) in columns.iter().enumerate() {
                        _mm256_storeu_si256(row!(to, i, to_pitch).cast(), column);
                    }
                },
                |t| scalar::<M, 8>(t),
            );
        }
    }

    /// Transposes 4-byte elements in squares of 8 by 8.
    ///
    /// # Safety
    ///
    /// The conditions of [`Transposer`](super::Transposer) hold; the CPU has AVX2.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn avx2_4<M: Machine>(t: Transpose) {
        // SAFETY: `squares` passes only parts of `t`. A full square has 8 by 8 elements, and each
        // load or store accesses one row of eight 4-byte elements. `scalar` handles the edges.
        unsafe {
            squares::<4, 8>(
                t,
                |Transpose { from, from_pitch, to, to_pitch, .. }| {
                    let r: [__m256i; 8] = std::array::from_fn(|i| {
                        M::swapped(_mm256_loadu_si256(row!(from, i, from_pitch).cast()))
                    });
                    let q: [__m256i; 8] = std::array::from_fn(|i| {
                        let k = i & 4;
                        let (low, high) = if i % 4 < 2 {
                            (
                                _mm256_unpacklo_epi32(r[k], r[k + 1]),
                                _mm256_unpacklo_epi32(r[k + 2], r[k + 3]),
                            )
                        } else {
                            (
                                _mm256_unpackhi_epi32(r[k], r[k + 1]),
                                _mm256_unpackhi_epi32(r[k + 2], r[k + 3]),
                            )
                        };
                        if i % 2 == 0 {
                            _mm256_unpacklo_epi64(low, high)
                        } else {
                            _mm256_unpackhi_epi64(low, high)
                        }
                    });
                    for c in 0..4 {
                        let (low, high) = (
                            _mm256_permute2x128_si256::<0x20>(q[c], q[4 + c]),
                            _mm256_permute2x128_si256::<0x31>(q[c], q[4 + c]),
                        );
                        _mm256_storeu_si256(row!(to, c, to_pitch).cast(), low);
                        _mm256_storeu_si256(row!(to, 4 + c, to_pitch).cast(), high);
                    }
                },
                |t| scalar::<M, 4>(t),
            );
        }
    }

    /// Transposes 8-byte elements in squares of 4 by 4, each as four squares of 2 by 2.
    ///
    /// # Safety
    ///
    /// The conditions of [`Transposer`](super::Transposer) hold.
    #[inline(always)]
    pub(super) unsafe fn sse_8<M: Machine>(t: Transpose) {
        // SAFETY: `squares` passes only parts of `t`. A full square has 4 by 4 elements, and each load or
        // store accesses two of the four elements of a row. `scalar` handles the edges. SSE2 is part of
        // every x86-64.
        unsafe {
            squares::<8, 4>(
                t,
                |Transpose { from, from_pitch, to, to_pitch, .. }| {
                    for x in [0, 2] {
                        for y in [0, 2] {
                            let load = |i: usize| {
                                let at: *const __m128i = row!(from, y + i, from_pitch).cast();
                                M::swapped(_mm_loadu_si128(at.byte_add(8 * x)))
                            };
                            let (a, b) = (load(0), load(1));
                            let store = |i: usize, column: __m128i| {
                                let at: *mut __m128i = row!(to, x + i, to_pitch).cast();
                                _mm_storeu_si128(at.byte_add(8 * y), column);
                            };
                            store(0, _mm_unpacklo_epi64(a, b));
                            store(1, _mm_unpackhi_epi64(a, b));
                        }
                    }
                },
                |t| scalar::<M, 8>(t),
            );
        }
    }

    /// Transposes 4-byte elements in squares of 4 by 4.
    ///
    /// # Safety
    ///
    /// The conditions of [`Transposer`](super::Transposer) hold.
    #[inline(always)]
    pub(super) unsafe fn sse_4<M: Machine>(t: Transpose) {
        // SAFETY: `squares` passes only parts of `t`. A full square has 4 by 4 elements, and each load or
        // store accesses one row of four 4-byte elements. `scalar` handles the edges. SSE2 is part of every
        // x86-64.
        unsafe {
            squares::<4, 4>(
                t,
                |Transpose { from, from_pitch, to, to_pitch, .. }| {
                    let mut r: [__m128i; 4] = std::array::from_fn(|i| {
                        M::swapped(_mm_loadu_si128(row!(from, i, from_pitch).cast()))
                    });
                    // A perfect shuffle interleaves rows i and i + 2. Two such rounds transpose the square.
                    for _ in 0..2 {
                        r = std::array::from_fn(|i| {
                            let (a, b) = (r[i / 2], r[i / 2 + 2]);
                            if i % 2 == 0 {
                                _mm_unpacklo_epi32(a, b)
                            } else {
                                _mm_unpackhi_epi32(a, b)
                            }
                        });
                    }
                    for (i, &column) in r.iter().enumerate() {
                        _mm_storeu_si128(row!(to, i, to_pitch).cast(), column);
                    }
                },
                |t| scalar::<M, 4>(t),
            );
        }
    }

    /// Transposes 2-byte elements in squares of 8 by 8.
    ///
    /// # Safety
    ///
    /// The conditions of [`Transposer`](super::Transposer) hold.
    #[inline(always)]
    pub(super) unsafe fn sse_2<M: Machine>(t: Transpose) {
        // SAFETY: `squares` passes only parts of `t`. A full square has 8 by 8 elements, and each
        // load or store accesses one row of eight 2-byte elements. `scalar` handles the edges. SSE2
        // is part of every x86-64.
        unsafe {
            squares::<2, 8>(
                t,
                |Transpose { from, from_pitch, to, to_pitch, .. }| {
                    let mut r: [__m128i; 8] = std::array::from_fn(|i| {
                        M::swapped(_mm_loadu_si128(row!(from, i, from_pitch).cast()))
                    });
                    // A perfect shuffle interleaves rows i and i + 4. Three such rounds transpose the
                    // square.
                    for _ in 0..3 {
                        r = std::array::from_fn(|i| {
                            let (a, b) = (r[i / 2], r[i / 2 + 4]);
                            if i % 2 == 0 {
                                _mm_unpacklo_epi16(a, b)
                            } else {
                                _mm_unpackhi_epi16(a, b)
                            }
                        });
                    }
                    for (i, &column) in r.iter().enumerate() {
                        _mm_storeu_si128(row!(to, i, to_pitch).cast(), column);
                    }
                },
                |t| scalar::<M, 2>(t),
            );
        }
    }

    /// Does one round of a perfect shuffle: interleaves the bytes of rows i and i + 8. Four rounds
    /// transpose the square.
    #[inline(always)]
    fn shuffled(r: [__m128i; 16]) -> [__m128i; 16] {
        // SAFETY: the intrinsics need only SSE2, and every x86-64 has SSE2.
        unsafe {
            each_of_16!(|I| {
                let (a, b) = (r[I / 2], r[I / 2 + 8]);
                if I.is_multiple_of(2) { _mm_unpacklo_epi8(a, b) } else { _mm_unpackhi_epi8(a, b) }
            })
        }
    }

    /// Transposes 1-byte elements in squares of 16 by 16.
    ///
    /// # Safety
    ///
    /// The conditions of [`Transposer`](super::Transposer) hold.
    #[inline(always)]
    pub(super) unsafe fn sse_1(t: Transpose) {
        // SAFETY: `squares` passes only parts of `t`. A full square has 16 by 16 elements, and each
        // load or store accesses one row of 16 bytes. `scalar` handles the edges. SSE2 is part of
        // every x86-64.
        unsafe {
            squares::<1, 16>(
                t,
                |Transpose { from, from_pitch, to, to_pitch, .. }| {
                    // The macro writes out the 16 loads. With a loop over the array, the compiler
                    // would keep the array in memory.
                    let r = each_of_16!(|I| _mm_loadu_si128(row!(from, I, from_pitch).cast()));
                    let r = shuffled(shuffled(shuffled(shuffled(r))));
                    for (i, &column) in r.iter().enumerate() {
                        _mm_storeu_si128(row!(to, i, to_pitch).cast(), column);
                    }
                },
                |t| scalar::<Portable, 1>(t),
            );
        }
    }

    /// Defines functions that compile `$body` again for a newer instruction set. SSSE3 has byte
    /// shuffles, with which [`Machine::swapped`] reverses bytes. AVX2 and AVX-512 have instructions
    /// with three operands, and AVX-512 has 32 registers instead of 16.
    macro_rules! wider {
        ($($name:ident $(<$machine:ident>)? $body:ident $features:literal)*) => {
            $(
                /// # Safety
                ///
                /// The conditions of [`Transposer`](super::Transposer) hold; the CPU has
                /// `$features`.
                #[target_feature(enable = $features)]
                pub(super) unsafe fn $name$(<$machine: Machine>)?(t: Transpose) {
                    // SAFETY: the body requires the conditions of `Transposer`, and the caller
                    // guarantees them for `t`.
                    unsafe { $body$(::<$machine>)?(t) }
                }
            )*
        };
    }
    wider! {
        sse4_8<M> sse_8 "ssse3,sse4.1"
        sse4_4<M> sse_4 "ssse3,sse4.1"
        sse4_2<M> sse_2 "ssse3,sse4.1"
        avx2_1 sse_1 "avx2"
        avx2_2<M> sse_2 "avx2"
        avx512_1 sse_1 "avx512f,avx512bw,avx512vl"
        avx512_2<M> sse_2 "avx512f,avx512bw,avx512vl"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pairs: the number of bytes per element, and the number of bytes that are reversed together.
    const PARTS: [(usize, usize); 15] = [
        (1, 1),
        (2, 1),
        (4, 1),
        (8, 1),
        (16, 1),
        (2, 2),
        (4, 2),
        (8, 2),
        (16, 2),
        (4, 4),
        (8, 4),
        (16, 4),
        (8, 8),
        (16, 8),
        (16, 16),
    ];

    /// Compares every transposer with the definition, for matrices whose width and height are close
    /// to multiples of the side of a square.
    #[test]
    fn every_instance_transposes_and_touches_nothing_else() {
        for isa in Isa::ALL.into_iter().filter(|isa| isa.is_available()) {
            for (bytes, part) in PARTS {
                let swapped = Width::new(part).unwrap();
                let transpose = transposer(isa, bytes as u64, swapped).unwrap();
                for (width, height) in
                    [(0, 5), (1, 1), (3, 40), (16, 16), (17, 33), (40, 18), (8, 24)]
                {
                    for gap in [0, bytes, 7] {
                        let (from_pitch, to_pitch) = (width * bytes + gap, height * bytes + gap);
                        let from: Vec<u8> =
                            (0..height * from_pitch).map(|i| (i * 7 + i / 251) as u8).collect();
                        let mut to = vec![0xee_u8; width * to_pitch + 1];
                        let mut expected = to.clone();
                        for x in 0..width {
                            for y in 0..height {
                                let to = &mut expected[x * to_pitch + y * bytes..][..bytes];
                                to.copy_from_slice(&from[y * from_pitch + x * bytes..][..bytes]);
                                to.chunks_mut(part).for_each(|part| part.reverse());
                            }
                        }
                        let t = Transpose {
                            from: from.as_ptr(),
                            from_pitch: from_pitch as isize,
                            to: to.as_mut_ptr(),
                            to_pitch: to_pitch as isize,
                            width,
                            height,
                        };
                        // SAFETY: `from` and `to` are separate buffers. `from` holds `height` lines
                        // and `to` holds `width` lines of the given pitches. The instruction set is
                        // available.
                        unsafe { transpose(t) };
                        assert!(to == expected, "{isa} {bytes} {part} {width}x{height} gap {gap}");
                    }
                }
            }
        }
    }
}
