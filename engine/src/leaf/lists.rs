//! Moves the runs of an index list. Each run has its own length.
//!
//! `exec/` calls [`run`] for the whole entries of a list of blocks. A memcpy per entry costs a call
//! and a mispredicted jump on the length, several times the cost of moving a run of a few doubles.
//! So a run of up to one register is one masked move on CPUs with AVX-512, and two overlapping
//! moves of a fixed size on other CPUs. Nothing outside a run is read or written: the memory in the
//! gaps may belong to another thread or may not be mapped.

use super::Isa;
use super::byteswap::{self, Swapped, Width};
use super::moves::{self, Machine, Portable};
#[cfg(target_arch = "x86_64")]
use super::moves::{Avx2, Avx512};
use crate::ir::RaggedList;
use crate::table::entries;
use std::ops::Range;

/// Longest run that the moves of this file handle; longer runs use memcpy.
const SHORT: usize = 64;

/// A list of runs at a memory base: run `i` has `lengths[i] * unit` bytes at `mem + entries[i] *
/// scale`.
#[derive(Clone, Copy)]
pub(crate) struct Runs<'a> {
    pub(crate) list: &'a RaggedList,
    pub(crate) scale: i64,
    pub(crate) unit: u64,
    pub(crate) mem: *mut u8,
    /// Bytes of the elements to byte-swap. `unit` is a multiple of `width`.
    pub(crate) width: Width,
}

/// Moves the whole runs of `range`, in order, and returns the packed address after the last run.
///
/// # Safety
///
/// - The machine has `isa`.
/// - `range` is within the list.
/// - Every run of `range` is valid: for reads if `PACK`, for writes otherwise. `packed` is valid
///   for the opposite access, for the sum of the runs' bytes.
/// - The two sides do not overlap.
pub(crate) unsafe fn run<const PACK: bool>(
    isa: Isa,
    runs: Runs<'_>,
    range: Range<usize>,
    packed: *mut u8,
) -> *mut u8 {
    #[cfg(target_arch = "x86_64")]
    if isa == Isa::Avx512 {
        // SAFETY: the machine has AVX-512, since it has `isa`; the caller guarantees `range`, its
        // runs and the packed bytes.
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
        // SAFETY: the machine has AVX2, since it has `isa`; the other conditions are those of this
        // function, for the same arguments.
        return unsafe { swapped_avx2::<PACK>(runs, range, packed) };
    }
    // SAFETY: the caller guarantees that `range` is in the list, its runs and the packed bytes; the
    // portable loops need no other instruction set.
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

/// Does what [`run`] does, for elements that are byte-swapped in registers of 32 bytes.
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
    // SAFETY: the caller guarantees `range`, its runs and the packed bytes; this function is
    // compiled for AVX2, so the CPU has it.
    unsafe {
        match runs.width.bytes() {
            2 => overlapping::<Swapped<Avx2, 2>, PACK>(Isa::Avx2, runs, range, packed),
            4 => overlapping::<Swapped<Avx2, 4>, PACK>(Isa::Avx2, runs, range, packed),
            8 => overlapping::<Swapped<Avx2, 8>, PACK>(Isa::Avx2, runs, range, packed),
            _ => overlapping::<Swapped<Avx2, 16>, PACK>(Isa::Avx2, runs, range, packed),
        }
    }
}

/// Calls `short(mem, packed, bytes)` for runs of up to [`SHORT`] bytes and memcpy for longer ones.
/// The value is the packed address after the last run.
macro_rules! sweep {
    ($isa:expr, $runs:expr, $range:expr, $packed:expr, $pack:expr, $short:expr) => {{
        let Runs { list, scale, unit, mem, width } = $runs;
        let (mut packed, count) = ($packed, $range.len());
        entries!(&list.lengths, lengths => entries!(&list.entries, places => {
            let runs = lengths.skip($range.start).zip(places.skip($range.start));
            for (length, place) in runs.take(count) {
                let bytes = (length as u64 * unit) as usize;
                let at = mem.wrapping_offset(place.wrapping_mul(scale) as isize);
                // SAFETY: `at` and `bytes` are one run of the range, and `packed` is its place in
                // the packed bytes; the caller of `run` guarantees both, and that the machine has
                // `$isa`.
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
        // SAFETY: the mask has one bit for each of the `bytes` bytes, which the caller guarantees
        // on both sides. Bytes without a bit are not accessed, even if they are not mapped.
        unsafe {
            let data = _mm512_maskz_loadu_epi8(mask, from.cast());
            _mm512_mask_storeu_epi8(to.cast(), mask, M::swapped(data));
        }
    }
    sweep!(Isa::Avx512, runs, range, packed, PACK, short::<M, PACK>)
}

/// Does what [`run`] does, on any CPU.
///
/// # Safety
///
/// The conditions of [`run`] hold.
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
        // SAFETY: the caller guarantees `bytes` readable bytes at `from` and as many writable ones
        // at `to`, a multiple of the element's width.
        unsafe { moves::run::<M>(from, to, bytes) }
    }
    sweep!(isa, runs, range, packed, PACK, short::<M, PACK>)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Table;

    /// Tests runs of every length, in tables of every width, in both directions and with both
    /// loops.
    #[test]
    fn runs_of_all_lengths_and_nothing_beside_them() {
        runs_of(3, 1);
        for width in [2, 4, 8, 16] {
            runs_of(width, width);
        }
    }

    /// Tests runs of whole units of `unit` bytes, byte-swapped in parts of `part` bytes.
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
            let list = RaggedList::new(lengths, places);
            let (scale, range) = (60, 2..88);
            let mut memory: Vec<u8> = (0..541_000u32).map(|i| (i % 251) as u8).collect();
            let mut expected = Vec::new();
            for i in range.clone() {
                let at = list.entries.get(i) as usize * 60;
                expected.extend(&memory[at..at + list.lengths.get(i) as usize * unit]);
            }
            turn(&mut expected);
            let unpacked: Vec<u8> = expected.iter().map(|byte| !byte).collect();
            let mut after = memory.clone();
            let mut next = 0;
            for i in range.clone() {
                let (at, bytes) =
                    (list.entries.get(i) as usize * 60, list.lengths.get(i) as usize * unit);
                after[at..at + bytes].copy_from_slice(&unpacked[next..next + bytes]);
                turn(&mut after[at..at + bytes]);
                next += bytes;
            }
            let before = memory.clone();
            for isa in Isa::ALL.into_iter().filter(|isa| isa.is_available()) {
                memory.copy_from_slice(&before);
                let (mem, width) = (memory.as_mut_ptr(), Width::new(part).unwrap());
                let runs = Runs { list: &list, scale, unit: unit as u64, mem, width };
                let mut packed = vec![0; expected.len() + 64];
                let mut back = unpacked.clone();
                // SAFETY: `memory` holds all runs of `range`, and `packed` and `back` hold the sum
                // of their bytes; three separate buffers.
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
