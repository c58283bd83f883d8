//! Operations on registers of 16 bytes: load, store, byte shuffle, bitwise OR.
//!
//! `lanes.rs` and `steps.rs` are generic over a register ([`Vector`]).

/// A register of 16 bytes.
pub(super) trait Vector: Copy {
    /// Loads 16 bytes.
    ///
    /// # Safety
    ///
    /// - The CPU has the instruction set of the register.
    /// - 16 bytes at `from` are valid for reads.
    unsafe fn load(from: *const u8) -> Self;

    /// Stores 16 bytes.
    ///
    /// # Safety
    ///
    /// - The CPU has the instruction set of the register.
    /// - 16 bytes at `to` are valid for writes.
    unsafe fn store(self, to: *mut u8);

    /// Returns, for each byte of `indices`, the byte of `self` at this index. The index
    /// [`NONE`](super::NONE) yields 0.
    ///
    /// # Safety
    ///
    /// - The CPU has the instruction set of the register.
    unsafe fn shuffled(self, indices: Self) -> Self;

    /// Returns the bitwise OR of the two registers.
    ///
    /// # Safety
    ///
    /// - The CPU has the instruction set of the register.
    unsafe fn or(self, other: Self) -> Self;
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::Vector;
    use std::arch::x86_64::*;

    /// The instruction set is SSSE3.
    impl Vector for __m128i {
        #[inline(always)]
        unsafe fn load(from: *const u8) -> Self {
            // SAFETY: the caller guarantees that 16 bytes are readable. SSE2 is part of every x86-64.
            unsafe { _mm_loadu_si128(from.cast()) }
        }

        #[inline(always)]
        unsafe fn store(self, to: *mut u8) {
            // SAFETY: the caller guarantees that 16 bytes are writable. SSE2 is part of every x86-64.
            unsafe { _mm_storeu_si128(to.cast(), self) }
        }

        #[inline(always)]
        unsafe fn shuffled(self, indices: Self) -> Self {
            // SAFETY: the caller guarantees that the CPU has SSSE3.
            unsafe { _mm_shuffle_epi8(self, indices) }
        }

        #[inline(always)]
        unsafe fn or(self, other: Self) -> Self {
            // SAFETY: the intrinsic needs only SSE2, which is part of every x86-64.
            unsafe { _mm_or_si128(self, other) }
        }
    }
}

#[cfg(target_arch = "aarch64")]
mod neon {
    use super::Vector;
    use std::arch::aarch64::*;

    /// The instruction set is NEON, which is part of every AArch64 target of Rust's standard library.
    impl Vector for uint8x16_t {
        #[inline(always)]
        unsafe fn load(from: *const u8) -> Self {
            // SAFETY: the caller guarantees that 16 bytes are readable and that the CPU has NEON.
            unsafe { vld1q_u8(from) }
        }

        #[inline(always)]
        unsafe fn store(self, to: *mut u8) {
            // SAFETY: the caller guarantees that 16 bytes are writable and that the CPU has NEON.
            unsafe { vst1q_u8(to, self) }
        }

        #[inline(always)]
        unsafe fn shuffled(self, indices: Self) -> Self {
            // SAFETY: the caller guarantees that the CPU has NEON.
            unsafe { vqtbl1q_u8(self, indices) }
        }

        #[inline(always)]
        unsafe fn or(self, other: Self) -> Self {
            // SAFETY: the caller guarantees that the CPU has NEON.
            unsafe { vorrq_u8(self, other) }
        }
    }
}

/// The register of this machine's 16-byte shuffles.
#[cfg(target_arch = "x86_64")]
pub(super) type Register = std::arch::x86_64::__m128i;
/// The register of this machine's 16-byte shuffles.
#[cfg(target_arch = "aarch64")]
pub(super) type Register = std::arch::aarch64::uint8x16_t;
