//! Copies by loads and stores of vector registers.
//!
//! [`short`] copies up to 64 bytes with at most two moves, which may overlap. [`copy`] copies more than 64
//! bytes with the loop of the best instruction set. A move of this loop has 16, 32 or 64 bytes, and a round
//! has four moves. The stores of a round are aligned to the length of a move. `streaming.rs` uses the same
//! loops with other stores.

use crate::isa::Isa;
use std::sync::OnceLock;

/// A loop over a run of more than 64 bytes.
///
/// # Safety
///
/// - The CPU has the instruction set of the loop.
/// - The conditions of [`super::copy`] hold, and the run has more than 64 bytes.
type Loop = unsafe fn(*const u8, *mut u8, usize);

static LOOP: OnceLock<Loop> = OnceLock::new();

/// Limits the loops to `isa`; see [`super::limit`].
pub(super) fn limit(isa: Isa) {
    LOOP.get_or_init(|| pick(isa));
}

/// Evaluates to the loop of this file for `$isa`, or for the best instruction set below it that this machine has:
/// `x86::avx512`, `x86::avx2` or `portable`.
macro_rules! pick_loop {
    ($isa:ident) => {{
        #[cfg(target_arch = "x86_64")]
        {
            if $isa >= Isa::Avx512 && Isa::Avx512.is_available() {
                return x86::avx512;
            }
            if $isa >= Isa::Avx2 && Isa::Avx2.is_available() {
                return x86::avx2;
            }
        }
        let _ = $isa;
        portable
    }};
}
pub(super) use pick_loop;

/// Returns the loop for `isa`, or for the best instruction set below it that this machine has.
pub(super) fn pick(isa: Isa) -> Loop {
    pick_loop!(isa)
}

/// Copies at most 64 bytes with at most two moves, which may overlap.
///
/// # Safety
///
/// - The conditions of [`super::copy`] hold, and `bytes` is at most 64.
#[inline(always)]
pub(super) unsafe fn short(from: *const u8, to: *mut u8, bytes: usize) {
    macro_rules! two {
        ($width:literal) => {{
            // Both loads come before the stores, so that each move is one register.
            let first = from.cast::<[u8; $width]>().read();
            let last = from.add(bytes - $width).cast::<[u8; $width]>().read();
            to.cast::<[u8; $width]>().write(first);
            to.add(bytes - $width).cast::<[u8; $width]>().write(last);
        }};
    }
    // SAFETY: each `two!` makes two moves of `width <= bytes` bytes, one from the start and one up to the
    // end. So both lie within the run, which the caller guarantees to be valid. With 1 byte, the only move is
    // the whole run. An array of bytes has alignment 1.
    unsafe {
        match bytes {
            0 => {}
            1 => to.write(from.read()),
            2..4 => two!(2),
            4..8 => two!(4),
            8..16 => two!(8),
            16..=32 => two!(16),
            _ => two!(32),
        }
    }
}

/// Copies more than 64 bytes.
///
/// # Safety
///
/// - The conditions of [`super::copy`] hold, and `bytes` is more than 64.
#[inline]
pub(super) unsafe fn copy(from: *const u8, to: *mut u8, bytes: usize) {
    let run = LOOP.get_or_init(|| pick(Isa::best()));
    // SAFETY: `pick` returns only loops whose instruction set this machine has. The caller guarantees the
    // other conditions.
    unsafe { run(from, to, bytes) }
}

/// Copies a run of more than 64 bytes with registers of `$width` bytes: `$load` loads one, `$store` stores
/// one at any address, and `$aligned` stores one at a multiple of the width.
macro_rules! copy_loop {
    ($width:literal, $from:ident, $to:ident, $bytes:ident, $load:expr, $store:expr, $aligned:expr) => {{
        let (load, store, aligned) = ($load, $store, $aligned);
        let end = $bytes - $width;
        // A run of at most four registers: load all its bytes, half of them from the start and half up to
        // the end, then store them. The two halves may overlap.
        if $bytes <= 2 * $width {
            let (a, b) = (load($from), load($from.add(end)));
            store($to, a);
            store($to.add(end), b);
        } else if $bytes <= 4 * $width {
            let (a, b) = (load($from), load($from.add($width)));
            let (c, d) = (load($from.add(end - $width)), load($from.add(end)));
            store($to, a);
            store($to.add($width), b);
            store($to.add(end - $width), c);
            store($to.add(end), d);
        } else {
            // Store the first register, then whole rounds of four registers, which begin at an aligned
            // address, then the last four registers. These may overlap the rounds.
            let head = load($from);
            let last = $bytes - 4 * $width;
            let tail = [
                load($from.add(last)),
                load($from.add(last + $width)),
                load($from.add(last + 2 * $width)),
                load($from.add(last + 3 * $width)),
            ];
            let mut at = $width - $to.addr() % $width;
            store($to, head);
            while at < last {
                let a = load($from.add(at));
                let b = load($from.add(at + $width));
                let c = load($from.add(at + 2 * $width));
                let d = load($from.add(at + 3 * $width));
                aligned($to.add(at), a);
                aligned($to.add(at + $width), b);
                aligned($to.add(at + 2 * $width), c);
                aligned($to.add(at + 3 * $width), d);
                at += 4 * $width;
            }
            store($to.add(last), tail[0]);
            store($to.add(last + $width), tail[1]);
            store($to.add(last + 2 * $width), tail[2]);
            store($to.add(last + 3 * $width), tail[3]);
        }
    }};
}
#[cfg(all(target_arch = "x86_64", not(miri)))]
pub(super) use copy_loop;

/// Defines the loops `avx2` and `avx512`, with `$aligned32` and `$aligned64` as the stores at multiples of 32
/// and 64 bytes.
#[cfg(target_arch = "x86_64")]
macro_rules! wide_loops {
    ($aligned32:ident, $aligned64:ident) => {
        /// Copies with registers of 32 bytes.
        ///
        /// # Safety
        ///
        /// - The CPU has AVX2.
        /// - The conditions of [`copy`](crate::contiguous::copy) hold, and `bytes` is more than 64.
        #[target_feature(enable = "avx2")]
        pub(super) unsafe fn avx2(from: *const u8, to: *mut u8, bytes: usize) {
            // SAFETY: the rounds start below `bytes - 128` and move 128 bytes; all other moves end at or
            // before the end of the run. The caller guarantees that the run is valid. The aligned stores are
            // at multiples of 32, because the rounds start at one and advance by 128.
            unsafe {
                copy_loop!(
                    32,
                    from,
                    to,
                    bytes,
                    |at: *const u8| _mm256_loadu_si256(at.cast()),
                    |at: *mut u8, value| _mm256_storeu_si256(at.cast(), value),
                    |at: *mut u8, value| $aligned32(at.cast(), value)
                );
            }
        }

        /// Copies with registers of 64 bytes.
        ///
        /// # Safety
        ///
        /// - The CPU has AVX-512 F.
        /// - The conditions of [`copy`](crate::contiguous::copy) hold, and `bytes` is more than 64.
        #[target_feature(enable = "avx512f")]
        pub(super) unsafe fn avx512(from: *const u8, to: *mut u8, bytes: usize) {
            // SAFETY: the rounds start below `bytes - 256` and move 256 bytes; all other moves end at or
            // before the end of the run. The caller guarantees that the run is valid. The aligned stores
            // are at multiples of 64, because the rounds start at one and advance by 256.
            unsafe {
                copy_loop!(
                    64,
                    from,
                    to,
                    bytes,
                    |at: *const u8| _mm512_loadu_si512(at.cast()),
                    |at: *mut u8, value| _mm512_storeu_si512(at.cast(), value),
                    |at: *mut u8, value| $aligned64(at.cast(), value)
                );
            }
        }
    };
}
#[cfg(all(target_arch = "x86_64", not(miri)))]
pub(super) use wide_loops;

/// Copies with moves of 16 bytes, which every target has.
///
/// # Safety
///
/// - The conditions of [`super::copy`] hold, and `bytes` is more than 64.
unsafe fn portable(from: *const u8, to: *mut u8, bytes: usize) {
    // SAFETY: the loop moves only bytes of the run. A round starts below `bytes - 64` and moves 64 bytes,
    // and all other moves end at or before the end of the run. The caller guarantees that the run is valid.
    // An array of bytes has alignment 1.
    unsafe {
        copy_loop!(
            16,
            from,
            to,
            bytes,
            |at: *const u8| at.cast::<[u8; 16]>().read(),
            |at: *mut u8, value: [u8; 16]| at.cast::<[u8; 16]>().write(value),
            |at: *mut u8, value: [u8; 16]| at.cast::<[u8; 16]>().write(value)
        );
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    wide_loops!(_mm256_store_si256, _mm512_store_si512);
}
