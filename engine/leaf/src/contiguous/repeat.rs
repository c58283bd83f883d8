//! Copies by `rep movsb`, the block move of x86-64.

/// Returns whether this machine has the method. Every x86-64 processor executes `rep movsb`; the method is
/// offered only where the processor says that the instruction moves whole lines (ERMS, CPUID leaf 7).
pub(super) fn is_available() -> bool {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        use std::sync::OnceLock;
        static ERMS: OnceLock<bool> = OnceLock::new();
        *ERMS.get_or_init(|| {
            use std::arch::x86_64::{__cpuid, __cpuid_count};
            // Leaf 0 of the CPUID instruction gives the number of the highest leaf. Bit 9 of EBX in leaf 7
            // stands for ERMS.
            __cpuid(0).eax >= 7 && __cpuid_count(7, 0).ebx & 1 << 9 != 0
        })
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    false
}

/// Copies a run. The first 64 bytes are moved separately, so that the block move begins at a cache line of
/// the destination.
///
/// # Safety
///
/// - This machine has the method.
/// - The conditions of [`super::copy`] hold, and `bytes` is at least [`super::LONG`].
pub(super) unsafe fn copy(from: *const u8, to: *mut u8, bytes: usize) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        let skip = 64 - to.addr() % 64;
        // SAFETY: `bytes` is at least `LONG`, which is more than 64, so `short` gets 64 valid bytes of each
        // range. `skip` is at most 64, so the block move covers the rest of the run and nothing else. The
        // ABI guarantees that the direction flag is clear. The ranges do not overlap.
        unsafe {
            super::vector::short(from, to, 64);
            std::arch::asm!(
                "rep movsb",
                inout("rsi") from.add(skip) => _,
                inout("rdi") to.add(skip) => _,
                inout("rcx") bytes - skip => _,
                options(nostack, preserves_flags)
            );
        }
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    // SAFETY: the caller guarantees the conditions, and `LONG` is more than 64.
    unsafe {
        super::vector::copy(from, to, bytes);
    }
}
