//! Moves of fixed size: functions that copy a block of known length with the registers of an
//! instruction set.
//!
//! `rows.rs`, `lists.rs` and `byteswap.rs` use these functions; `tiles.rs` uses only the
//! instruction sets ([`Machine`]). All moves of a block lie inside the block, so nothing outside
//! the block is read or written. The last move may overlap the move before it; both write the same
//! bytes to the overlap.

/// A marker type for an instruction set. The loops are generic over it.
pub(super) trait Machine {
    /// Number of bytes of the widest move.
    const WIDEST: usize;
    /// Number of bytes of an element. Every move begins and ends at an element boundary. The value is
    /// 1 if the order of the bytes does not change.
    const UNIT: usize = 1;

    /// Returns the value that a move stores for the loaded `value`. Plain moves store the value
    /// unchanged; the implementation in `byteswap.rs` reverses the bytes of each element.
    ///
    /// # Safety
    ///
    /// - The CPU has the instruction set `Self`.
    #[inline(always)]
    unsafe fn swapped<T: Copy>(value: T) -> T {
        value
    }
}

pub(super) struct Portable;

impl Machine for Portable {
    const WIDEST: usize = 16;
}

#[cfg(target_arch = "x86_64")]
pub(super) struct Sse4;

#[cfg(target_arch = "x86_64")]
impl Machine for Sse4 {
    const WIDEST: usize = 16;
}

#[cfg(target_arch = "x86_64")]
pub(super) struct Avx2;

#[cfg(target_arch = "x86_64")]
impl Machine for Avx2 {
    const WIDEST: usize = 32;
}

#[cfg(target_arch = "x86_64")]
pub(super) struct Avx512;

#[cfg(target_arch = "x86_64")]
impl Machine for Avx512 {
    const WIDEST: usize = 64;
}

/// Copies `N` bytes in one move.
///
/// # Safety
///
/// - The CPU has the instruction set `M`.
/// - `from` is valid for reads of `N` bytes, `to` for writes of `N` bytes.
#[inline(always)]
unsafe fn one<M: Machine, const N: usize>(from: *const u8, to: *mut u8) {
    // The code reads the whole value before it writes anything, so that the compiler emits one load
    // and one store of `N` bytes.
    //
    // SAFETY: the caller guarantees that `from` is readable and `to` writable for `N` bytes, and that
    // the CPU has the instruction set `M`. An array of bytes has alignment 1.
    unsafe { to.cast::<[u8; N]>().write(M::swapped(from.cast::<[u8; N]>().read())) }
}

/// Copies a block of `B` bytes.
///
/// # Safety
///
/// - The CPU has the instruction set `M`. `B` is at least 1 and a multiple of `M::UNIT`.
/// - `from` is valid for reads of `B` bytes, `to` for writes of `B` bytes, and they do not overlap.
#[inline(always)]
pub(super) unsafe fn block<M: Machine, const B: usize>(from: *const u8, to: *mut u8) {
    macro_rules! moves {
        ($width:literal) => {{
            let mut at = 0;
            while at + $width <= B {
                one::<M, $width>(from.add(at), to.add(at));
                at += $width;
            }
            at
        }};
    }
    // SAFETY: every move starts at `at` with `at + width <= B`, so it lies within `B` bytes. The
    // caller guarantees that `B` bytes are valid at `from` and at `to`.
    let whole = unsafe {
        if M::WIDEST >= 64 && B >= 64 {
            moves!(64)
        } else if M::WIDEST >= 32 && B >= 32 {
            moves!(32)
        } else if B >= 16 {
            moves!(16)
        } else if B >= 8 {
            moves!(8)
        } else if B >= 4 {
            moves!(4)
        } else if B >= 2 {
            moves!(2)
        } else {
            one::<M, 1>(from, to);
            1
        }
    };
    let rest = B - whole;
    if rest == 0 {
        return;
    }
    // Use the narrowest move that covers the rest. This move may overlap bytes that have already been
    // moved.
    // SAFETY: each move ends at byte `B`. Its width is the least power of two that is at least `rest`.
    // Because `rest` is less than the width of the moves above, this move is no wider than they are,
    // so it starts at or after byte 0.
    unsafe {
        match rest {
            1 => one::<M, 1>(from.add(B - 1), to.add(B - 1)),
            2 => one::<M, 2>(from.add(B - 2), to.add(B - 2)),
            3..=4 => one::<M, 4>(from.add(B - 4), to.add(B - 4)),
            5..=8 => one::<M, 8>(from.add(B - 8), to.add(B - 8)),
            9..=16 => one::<M, 16>(from.add(B - 16), to.add(B - 16)),
            17..=32 => one::<M, 32>(from.add(B - 32), to.add(B - 32)),
            _ => one::<M, 64>(from.add(B - 64), to.add(B - 64)),
        }
    }
}

/// Copies `bytes` bytes.
///
/// # Safety
///
/// - `bytes` is at least 64.
/// - The CPU has the instruction set `M`. `bytes` is a multiple of `M::UNIT`.
/// - `from` is valid for reads of `bytes` bytes, `to` for writes of `bytes` bytes, and they do not
///   overlap.
#[inline(always)]
pub(super) unsafe fn long<M: Machine>(from: *const u8, to: *mut u8, bytes: usize) {
    let last = bytes - 64;
    // SAFETY: the caller guarantees that the run has at least 64 bytes, so bytes 0..64 lie within it.
    unsafe { block::<M, 64>(from, to) };
    // The stores of all moves but the first and the last begin at cache lines, because a store of 64
    // bytes that crosses a line costs as much as two stores. If `to` is not aligned to an element, no
    // element begins at the start of a cache line. Then the second move simply starts at byte 64.
    let mut at = if to.addr().is_multiple_of(M::UNIT) { 64 - (to.addr() % 64) } else { 64 };
    while at < last {
        // SAFETY: `at` is below `last`, so bytes `at..at + 64` end before `last + 64 == bytes`.
        unsafe { block::<M, 64>(from.add(at), to.add(at)) };
        at += 64;
    }
    // SAFETY: `last` is `bytes - 64`, so bytes `last..last + 64` are the last 64 bytes of the run.
    unsafe { block::<M, 64>(from.add(last), to.add(last)) };
}

/// Copies `bytes` bytes; the number is not known at compile time. A short run takes two overlapping
/// moves. A longer run is copied in a loop, one whole register at a time.
///
/// # Safety
///
/// - The CPU has the instruction set `M`. `bytes` is a multiple of `M::UNIT`.
/// - `from` is valid for reads of `bytes` bytes, `to` for writes of `bytes` bytes, and they do not
///   overlap.
#[inline(always)]
pub(super) unsafe fn run<M: Machine>(from: *const u8, to: *mut u8, bytes: usize) {
    macro_rules! two {
        ($width:literal) => {{
            let first = from.cast::<[u8; $width]>().read();
            let last = from.add(bytes - $width).cast::<[u8; $width]>().read();
            to.cast::<[u8; $width]>().write(M::swapped(first));
            to.add(bytes - $width).cast::<[u8; $width]>().write(M::swapped(last));
        }};
    }
    // SAFETY: each arm makes two moves of `width <= bytes` bytes, one from the start and one up to
    // the end. So both moves lie within the `bytes` bytes, and the caller guarantees that these are
    // valid. `long` gets more than 64 bytes.
    unsafe {
        match bytes {
            0 => {}
            1 => two!(1),
            2..4 => two!(2),
            4..8 => two!(4),
            8..16 => two!(8),
            16..=32 => two!(16),
            33..=64 => two!(32),
            _ => long::<M>(from, to, bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<const B: usize>() {
        let from: Vec<u8> = (0..B).map(|i| i as u8 + 1).collect();
        for shift in [0, 1, 3] {
            let mut to = vec![0xee; B + 8];
            // SAFETY: `from` holds `B` bytes, and `to` holds `B + 8` bytes of which `shift` skips at
            // most 3. The two buffers are separate.
            unsafe { block::<Portable, B>(from.as_ptr(), to.as_mut_ptr().add(shift)) };
            assert_eq!(to[shift..shift + B], from);
            assert!(to[..shift].iter().chain(&to[shift + B..]).all(|&b| b == 0xee));
        }
    }

    #[test]
    fn blocks_of_every_kind_of_length() {
        macro_rules! all { ($($b:literal)*) => { $(check::<$b>();)* } }
        all!(1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 20 23 24 31 32 33 40 47 48 49 56 63 64);
    }

    #[test]
    fn runs_of_any_length() {
        for bytes in 0..300 {
            let from: Vec<u8> = (0..bytes).map(|i| i as u8).collect();
            let mut to = vec![0xee; bytes + 1];
            // SAFETY: `from` holds `bytes` bytes and `to` holds one byte more. The two buffers are
            // separate.
            unsafe { run::<Portable>(from.as_ptr(), to.as_mut_ptr(), bytes) };
            assert_eq!(to[..bytes], from);
            assert_eq!(to[bytes], 0xee);
        }
    }
}
