//! Copies by stores that bypass the caches.
//!
//! If the destination does not fit in the caches, such a store saves time, because the old contents of the
//! cache line are not fetched. If the bytes are read soon afterwards, the method is slow, because the reader
//! fetches every line from memory.

/// Returns whether this machine has the method.
pub(super) fn is_available() -> bool {
    cfg!(all(target_arch = "x86_64", not(miri)))
}

/// Copies a run, then waits until its bytes are visible to the other processors.
///
/// # Safety
///
/// - The conditions of [`super::copy`] hold, and `bytes` is at least [`super::LONG`].
pub(super) unsafe fn copy(from: *const u8, to: *mut u8, bytes: usize) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: the caller guarantees the conditions, which are those of all three loops. Each loop is called
    // only if the machine has its instruction set.
    unsafe {
        use crate::isa::Isa;
        match Isa::best() {
            best if best >= Isa::Avx512 => x86::avx512(from, to, bytes),
            best if best >= Isa::Avx2 => x86::avx2(from, to, bytes),
            _ => x86::sse2(from, to, bytes),
        }
        // Streaming stores are not ordered with later stores. The fence orders them, so that another rank
        // that sees a later flag also sees these bytes.
        std::arch::x86_64::_mm_sfence();
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    // SAFETY: the caller guarantees the conditions, and `LONG` is more than 64.
    unsafe {
        super::vector::copy(from, to, bytes);
    }
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod x86 {
    use crate::contiguous::vector::{copy_loop, wide_loops};
    use std::arch::x86_64::*;

    /// Copies with streaming stores of 16 bytes.
    ///
    /// # Safety
    ///
    /// - The conditions of [`copy`](crate::contiguous::copy) hold, and `bytes` is more than 64.
    pub(super) unsafe fn sse2(from: *const u8, to: *mut u8, bytes: usize) {
        // SAFETY: each round starts at an offset below `bytes - 64` and moves 64 bytes; all other moves end
        // at or before the end of the run. The caller guarantees that the run is valid. The streaming
        // stores are at addresses that are multiples of 16, because the first round starts at one and each
        // round moves 64 bytes.
        unsafe {
            copy_loop!(
                16,
                from,
                to,
                bytes,
                |at: *const u8| _mm_loadu_si128(at.cast()),
                |at: *mut u8, value| _mm_storeu_si128(at.cast(), value),
                |at: *mut u8, value| _mm_stream_si128(at.cast(), value)
            );
        }
    }

    wide_loops!(_mm256_stream_si256, _mm512_stream_si512);
}
