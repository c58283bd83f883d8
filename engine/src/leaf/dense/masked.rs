//! Loads and stores of 64 bytes under a mask, and announcements of stores (AVX-512).
//!
//! `short.rs`, `lines.rs` and `gather.rs` use these functions. A mask has one bit per *grain*: a
//! byte, or a word of 4 bytes. Bytes without a bit are not accessed, even if they are not mapped. A
//! store takes two cycles under a byte mask and one cycle under a word mask (measured on Sapphire
//! Rapids with `typepack-bench peers`, d1s2 and particle). So patterns of words have their own
//! instances.

use std::arch::x86_64::*;

/// Bytes of a register, and of a cache line.
pub(super) const LINE: usize = 64;

/// A grain of one byte.
pub(super) const BYTES: usize = 1;

/// A grain of one word of 4 bytes.
pub(super) const WORDS: usize = 4;

/// Loads the grains under `mask`.
///
/// # Safety
///
/// - The grains under `mask` at `from` are valid for reads.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")]
#[inline]
pub(super) unsafe fn load<const GRAIN: usize>(mask: u64, from: *const u8) -> __m512i {
    // SAFETY: the intrinsic reads only the grains under `mask`, which the caller guarantees.
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
    // SAFETY: the intrinsic writes only the grains under `mask`, which the caller guarantees.
    unsafe {
        match GRAIN {
            WORDS => _mm512_mask_storeu_epi32(to.cast(), mask as u16, data),
            _ => _mm512_mask_storeu_epi8(to.cast(), mask, data),
        }
    }
}

/// Converts the byte mask `mask` to grains: one bit per grain. All bytes of a grain are under the
/// mask, or none is.
pub(super) fn in_grains(mask: u64, grain: usize) -> u64 {
    match grain {
        WORDS => (0..16).fold(0, |words, word| words | (mask >> (4 * word) & 1) << word),
        _ => mask,
    }
}

/// Returns a mask of the first `count` bits. `count` is at most 64.
pub(super) fn first(count: usize) -> u64 {
    if count == 0 { 0 } else { u64::MAX >> (64 - count) }
}

/// Distance in bytes between a store and the line that is announced with it.
pub(super) const AHEAD: usize = 512;

/// Announces a write to the line of `address`. If lines come from the second-level cache,
/// unannounced stores wait for them one by one (structs of 13 of 16 bytes, packing 256 KiB: 26 GB/s
/// become 34; 1 byte of 2, unpacking 16 KiB: 27 become 39). Announcing reads costs more than it
/// saves.
#[inline(always)]
pub(super) fn announce(address: *mut u8) {
    // SAFETY: a prefetch is a hint. It accesses no memory in a way that could fault or be seen,
    // whatever the address. The CPU has the instruction: every CPU with AVX-512 has `prefetchw`,
    // and CPUs without it ignore it. (The intrinsic becomes a read hint if the target does not
    // promise `prfchw`.)
    unsafe {
        std::arch::asm!(
            "prefetchw [{address}]",
            address = in(reg) address,
            options(nostack, preserves_flags, readonly)
        );
    }
}
