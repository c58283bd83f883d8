//! Loads and stores of 64 bytes under a mask, and announcing a store (AVX-512).
//!
//! Used by `short.rs`, `lines.rs` and `gather.rs`. A mask has one bit per *grain*: a byte, or a word of 4
//! bytes. Bytes without a bit are not accessed, not even where there is no memory. A store under a
//! mask of bytes takes two cycles, under one of words it takes one, so that patterns of words have
//! their own instances (Sapphire Rapids; `typepack-bench peers`, d1s2, particle).

use std::arch::x86_64::*;

/// Bytes of a register, and of a cache line.
pub(super) const LINE: usize = 64;

/// A grain of bytes.
pub(super) const BYTES: usize = 1;

/// A grain of words of 4 bytes.
pub(super) const WORDS: usize = 4;

/// Loads the grains under `mask`.
///
/// # Safety
///
/// - The grains under `mask` at `from` are valid for reads.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")]
#[inline]
pub(super) unsafe fn load<const GRAIN: usize>(mask: u64, from: *const u8) -> __m512i {
    // SAFETY: our contract; other bytes are not accessed.
    unsafe {
        match GRAIN {
            WORDS => _mm512_maskz_loadu_epi32(mask as u16, from.cast()),
            _ => _mm512_maskz_loadu_epi8(mask, from.cast()),
        }
    }
}

/// Stores the grains under `mask`.
///
/// # Safety
///
/// - The grains under `mask` at `to` are valid for writes.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")]
#[inline]
pub(super) unsafe fn store<const GRAIN: usize>(mask: u64, to: *mut u8, data: __m512i) {
    // SAFETY: our contract; other bytes are not accessed.
    unsafe {
        match GRAIN {
            WORDS => _mm512_mask_storeu_epi32(to.cast(), mask as u16, data),
            _ => _mm512_mask_storeu_epi8(to.cast(), mask, data),
        }
    }
}

/// The mask of bytes `mask` in grains: one bit per grain, of which all bytes are under the mask or
/// none is.
pub(super) fn in_grains(mask: u64, grain: usize) -> u64 {
    match grain {
        WORDS => (0..16).fold(0, |words, word| words | (mask >> (4 * word) & 1) << word),
        _ => mask,
    }
}

/// A mask of the first `count` bits, at most 64.
pub(super) fn first(count: usize) -> u64 {
    if count == 0 { 0 } else { u64::MAX >> (64 - count) }
}

/// How far ahead of a store its line is announced, in bytes.
pub(super) const AHEAD: usize = 512;

/// Says that the line of `address` will be written. Where lines come from the second-level cache,
/// stores otherwise wait for them one by one (structs of 13 of 16 bytes, packing 256 KiB: 26 GB/s
/// become 34; 1 byte of 2, unpacking 16 KiB: 27 become 39). Announcing reads costs more than it
/// brings.
#[inline(always)]
pub(super) fn announce(address: *mut u8) {
    // SAFETY: a hint: no access happens that could fault or be seen, whatever the address. (The
    // intrinsic for it becomes a hint to read where the target does not promise `prfchw`; CPUs
    // without it ignore the instruction, those with AVX-512 have it.)
    unsafe {
        std::arch::asm!(
            "prefetchw [{address}]",
            address = in(reg) address,
            options(nostack, preserves_flags, readonly)
        );
    }
}
