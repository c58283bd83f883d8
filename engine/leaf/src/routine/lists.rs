//! Moves the runs of a list in which each run has its own length (the engine's `RaggedList`).
//!
//! The engine calls [`run`] for all entries of a list that lie completely in the packed range. A call of
//! `contiguous::copy` per entry would cost a function call and a mispredicted branch on the length, which
//! together take several times as long as moving a run of a few doubles. So, on CPUs with AVX-512, a run that
//! fits in one register takes one masked move; on other CPUs, a short run takes two overlapping moves of a
//! fixed size. Nothing outside a run is read or written, because the memory in the gaps may belong to another
//! thread or may not be mapped.

use super::Isa;
use super::byteswap::{self, Swapped, Width};
use super::moves::{self, Machine, Portable};
#[cfg(target_arch = "x86_64")]
use super::moves::{Avx2, Avx512};
use crate::table::{Table, entries};
use std::ops::Range;

/// Maximum length, in bytes, of a run that the moves of this file handle. Longer runs use `byteswap::copy`.
const SHORT: usize = 64;

/// A list of runs, and the memory address to which their displacements are relative. Run `i` has
/// `lengths[i] * unit` bytes and begins at `mem + entries[i] * scale`.
#[derive(Clone, Copy)]
pub struct Runs<'a> {
    /// Length of each run, in units of `unit` bytes.
    pub lengths: &'a Table,
    /// Position of each run, in units of `scale` bytes.
    pub entries: &'a Table,
    /// Number of bytes per unit of a position.
    pub scale: i64,
    /// Number of bytes per unit of a length.
    pub unit: u64,
    /// The address to which the displacements are relative.
    pub mem: *mut u8,
    /// Width of the elements whose bytes are reversed. `unit` is a multiple of `width`.
    pub width: Width,
}

/// Moves the runs with the indices in `range`, in order. Returns the address after the packed bytes
/// of the last run.
///
/// # Safety
///
/// - The machine has `isa`.
/// - `range` is within the list.
/// - Every run of `range` is valid for reads if `PACK` is true, and for writes otherwise. Let `total`
///   be the sum of the lengths of these runs. `total` bytes at `packed` are valid for writes if
///   `PACK` is true, and for reads otherwise.
/// - The runs and the packed bytes do not overlap.
#[inline(always)]
pub unsafe fn run<const PACK: bool>(
    isa: Isa,
    runs: Runs<'_>,
    range: Range<usize>,
    packed: *mut u8,
) -> *mut u8 {
    type Run = unsafe fn(Isa, Runs<'_>, Range<usize>, *mut u8) -> *mut u8;
    static RUN: [Run; 2] = [instance::<false>, instance::<true>];
    // SAFETY: the conditions of `instance` are those of this function, and the arguments are the same.
    unsafe { RUN[usize::from(PACK)](isa, runs, range, packed) }
}

/// # Safety
///
/// The conditions of [`run`] hold.
unsafe fn instance<const PACK: bool>(
    isa: Isa,
    runs: Runs<'_>,
    range: Range<usize>,
    packed: *mut u8,
) -> *mut u8 {
    #[cfg(target_arch = "x86_64")]
    if isa == Isa::Avx512 {
        // SAFETY: the machine has `isa`, so it has AVX-512. The caller guarantees that `range` is
        // within the list and that its runs and the packed bytes are valid.
        return unsafe {
            match runs.width.bytes() {
                1 => masked::<Avx512, PACK>(runs, range, packed),
                2 => masked::<Swapped<Avx512, 2>, PACK>(runs, range, packed),
                4 => masked::<Swapped<Avx512, 4>, PACK>(runs, range, packed),
                8 => masked::<Swapped<Avx512, 8>, PACK>(runs, range, packed),
                _ => masked::<Swapped<Avx512, 16>, PACK>(runs, range, packed),
            }
        };
    }
    #[cfg(target_arch = "x86_64")]
    if isa == Isa::Avx2 && runs.width != Width::ONE {
        // SAFETY: the machine has `isa`, so it has AVX2. The other conditions are those of this
        // function, for the same arguments.
        return unsafe { swapped_avx2::<PACK>(runs, range, packed) };
    }
    // SAFETY: the caller guarantees that the machine has `isa`, that `range` is within the list, and
    // that its runs and the packed bytes are valid. The portable moves need no further instruction set.
    unsafe {
        match runs.width.bytes() {
            1 => overlapping::<Portable, PACK>(isa, runs, range, packed),
            2 => overlapping::<Swapped<Portable, 2>, PACK>(isa, runs, range, packed),
            4 => overlapping::<Swapped<Portable, 4>, PACK>(isa, runs, range, packed),
            8 => overlapping::<Swapped<Portable, 8>, PACK>(isa, runs, range, packed),
            _ => overlapping::<Swapped<Portable, 16>, PACK>(isa, runs, range, packed),
        }
    }
}

/// Does what [`run`] does, and reverses the bytes of each element in registers of 32 bytes.
///
/// # Safety
///
/// - The conditions of [`run`] hold.
/// - The CPU has [`Isa::Avx2`].
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn swapped_avx2<const PACK: bool>(
    runs: Runs<'_>,
    range: Range<usize>,
    packed: *mut u8,
) -> *mut u8 {
    // SAFETY: the caller guarantees that `range` is within the list and that its runs and the packed
    // bytes are valid. This function is compiled for AVX2, so the CPU has AVX2.
    unsafe {
        match runs.width.bytes() {
            2 => overlapping::<Swapped<Avx2, 2>, PACK>(Isa::Avx2, runs, range, packed),
            4 => overlapping::<Swapped<Avx2, 4>, PACK>(Isa::Avx2, runs, range, packed),
            8 => overlapping::<Swapped<Avx2, 8>, PACK>(Isa::Avx2, runs, range, packed),
            _ => overlapping::<Swapped<Avx2, 16>, PACK>(Isa::Avx2, runs, range, packed),
        }
    }
}

/// Moves the runs: calls `short(mem, packed, bytes)` for each run of up to [`SHORT`] bytes, and
/// `byteswap::copy` for each longer run. Evaluates to the address after the packed bytes of the last
/// run.
macro_rules! sweep {
    ($isa:expr, $runs:expr, $range:expr, $packed:expr, $pack:expr, $short:expr) => {{
        let Runs { lengths, entries, scale, unit, mem, width } = $runs;
        let (mut packed, count) = ($packed, $range.len());
        entries!(lengths, lengths => entries!(entries, places => {
            let runs = lengths.skip($range.start).zip(places.skip($range.start));
            for (length, place) in runs.take(count) {
                let bytes = (length as u64 * unit) as usize;
                let at = mem.wrapping_offset(place.wrapping_mul(scale) as isize);
                // SAFETY: `at` and `bytes` describe one run of the range, and `packed` points to its
                // packed bytes. The caller of `run` guarantees that both are valid and that the
                // machine has `$isa`. `bytes` is a multiple of `width`, because `unit` is one.
                unsafe {
                    if bytes <= SHORT {
                        $short(at, packed, bytes);
                    } else {
                        byteswap::copy::<$pack>($isa, width, at, packed, bytes);
                    }
                }
                packed = packed.wrapping_add(bytes);
            }
        }));
        packed
    }};
}

/// Does what [`run`] does, with one masked move per short run.
///
/// # Safety
///
/// - The conditions of [`run`] hold.
/// - The CPU has [`Isa::Avx512`].
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,bmi2")]
unsafe fn masked<M: Machine, const PACK: bool>(
    runs: Runs<'_>,
    range: Range<usize>,
    packed: *mut u8,
) -> *mut u8 {
    use std::arch::x86_64::{_bzhi_u64, _mm512_mask_storeu_epi8, _mm512_maskz_loadu_epi8};
    /// # Safety
    ///
    /// - The conditions of [`byteswap::copy`] hold, with at most [`SHORT`] bytes.
    /// - The CPU has [`Isa::Avx512`].
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,bmi2")]
    #[inline]
    unsafe fn short<M: Machine, const PACK: bool>(mem: *mut u8, packed: *mut u8, bytes: usize) {
        let (from, to) = if PACK { (mem, packed) } else { (packed, mem) };
        let mask = _bzhi_u64(u64::MAX, bytes as u32);
        // SAFETY: the mask has one bit for each of the `bytes` bytes, and the caller guarantees that
        // these bytes are valid on both sides. Bytes without a bit are not accessed, even if they are
        // not mapped.
        unsafe {
            let data = _mm512_maskz_loadu_epi8(mask, from.cast());
            _mm512_mask_storeu_epi8(to.cast(), mask, M::swapped(data));
        }
    }
    sweep!(Isa::Avx512, runs, range, packed, PACK, short::<M, PACK>)
}

/// Does what [`run`] does, with two overlapping moves per short run.
///
/// # Safety
///
/// - The conditions of [`run`] hold.
/// - The CPU has the instruction set `M`.
#[inline(always)]
unsafe fn overlapping<M: Machine, const PACK: bool>(
    isa: Isa,
    runs: Runs<'_>,
    range: Range<usize>,
    packed: *mut u8,
) -> *mut u8 {
    /// # Safety
    ///
    /// The conditions of [`byteswap::copy`] hold.
    #[inline(always)]
    unsafe fn short<M: Machine, const PACK: bool>(mem: *mut u8, packed: *mut u8, bytes: usize) {
        let (from, to) = if PACK { (mem, packed) } else { (packed, mem) };
        // SAFETY: the caller guarantees that `bytes` bytes are readable at `from` and writable at
        // `to`, and that `bytes` is a multiple of the element's width.
        unsafe { moves::run::<M>(from, to, bytes) }
    }
    sweep!(isa, runs, range, packed, PACK, short::<M, PACK>)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that runs of every length are moved and that nothing outside them is written. The test
    /// uses tables of every width, both directions, and every instruction set of this machine.
    #[test]
    fn runs_of_all_lengths_and_nothing_beside_them() {
        runs_of(3, 1);
        for width in [2, 4, 8, 16] {
            runs_of(width, width);
        }
    }

    /// Checks lists whose runs consist of whole units of `unit` bytes. The moves reverse the bytes of
    /// each group of `part` bytes.
    fn runs_of(unit: usize, part: usize) {
        let turn = |bytes: &mut [u8]| bytes.chunks_mut(part).for_each(|part| part.reverse());
        let counts: Vec<i64> = (0..90).map(|i| i * 7 % 30).collect();
        let places: Vec<i64> = (0..90).map(|i| (89 - i) * 100).collect();
        let wide: Vec<i64> = counts.iter().map(|&count| count + 300).collect();
        for (lengths, places) in [
            (Table::lengths(&counts).unwrap(), Table::new(&places)),
            (Table::new(&counts), Table::Wide(places.as_slice().into())),
            (Table::Wide(wide.as_slice().into()), Table::new(&places)),
        ] {
            let (scale, range) = (60, 2..88);
            let mut memory: Vec<u8> = (0..541_000u32).map(|i| (i % 251) as u8).collect();
            let mut expected = Vec::new();
            for i in range.clone() {
                let at = places.get(i) as usize * 60;
                expected.extend(&memory[at..at + lengths.get(i) as usize * unit]);
            }
            turn(&mut expected);
            let unpacked: Vec<u8> = expected.iter().map(|byte| !byte).collect();
            let mut after = memory.clone();
            let mut next = 0;
            for i in range.clone() {
                let (at, bytes) = (places.get(i) as usize * 60, lengths.get(i) as usize * unit);
                after[at..at + bytes].copy_from_slice(&unpacked[next..next + bytes]);
                turn(&mut after[at..at + bytes]);
                next += bytes;
            }
            let before = memory.clone();
            for isa in Isa::ALL.into_iter().filter(|isa| isa.is_available()) {
                memory.copy_from_slice(&before);
                let (mem, width) = (memory.as_mut_ptr(), Width::new(part).unwrap());
                let runs = Runs {
                    lengths: &lengths,
                    entries: &places,
                    scale,
                    unit: unit as u64,
                    mem,
                    width,
                };
                let mut packed = vec![0; expected.len() + 64];
                let mut back = unpacked.clone();
                // SAFETY: `memory` holds all runs of `range`. `packed` and `back` each hold at least
                // as many bytes as these runs have together. The three buffers are separate.
                let ends = unsafe {
                    let start = packed.as_mut_ptr();
                    let first = run::<true>(isa, runs, range.clone(), start).offset_from(start);
                    let start = back.as_mut_ptr();
                    (first, run::<false>(isa, runs, range.clone(), start).offset_from(start))
                };
                let length = expected.len();
                assert_eq!(ends, (length as isize, length as isize));
                assert!(packed[..length] == expected && packed[length..] == [0; 64]);
                assert!(memory == after && back == unpacked);
            }
        }
    }
}
