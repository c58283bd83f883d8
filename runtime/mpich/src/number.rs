//! Numbers that are constants, or that may be.

use std::ffi::c_int;

/// Constants of one kind: in the standard ABI, and in MPICH.
#[derive(Debug)]
pub struct Pairs(pub &'static [(c_int, c_int)]);

/// A number of the program that is no constant in MPICH, but would be one in the ABI, becomes the sum of itself and this.
/// The sum is wrong wherever a constant may stand.
const WRONG: c_int = -1_000_000_000;
/// The largest distance of a constant from 0.
const FAR: c_int = 100_000;
/// An error code of the program that is none in MPICH, but would be one in the ABI, becomes the sum of itself and this.
pub const STRANGE_CODE: c_int = c_int::MIN;
/// `MPI_ERR_LASTCODE` in MPICH.
pub const LAST_CODE: c_int = 0x3fff_ffff;
/// A bit that no mode of the ABI has. It marks the bits of a mode of the program that is wrong.
const WRONG_BITS: c_int = 1 << 30;

/// Returns the program's number for a number that stands for it because it is wrong in MPICH.
pub fn strange(number: c_int) -> Option<c_int> {
    if number < STRANGE_CODE + LAST_CODE {
        return Some(number - STRANGE_CODE);
    }
    (WRONG - FAR..=WRONG + FAR).contains(&number).then(|| number - WRONG)
}

/// Returns the ABI's number for one of the program.
#[inline]
pub fn to_ours(pairs: &Pairs, number: c_int) -> c_int {
    match pairs.0.iter().find(|(_, theirs)| *theirs == number) {
        Some((ours, _)) => *ours,
        None if pairs.0.iter().any(|(ours, _)| *ours == number) => WRONG + number,
        None => number,
    }
}

/// Returns the program's number for one of the ABI.
#[inline]
pub fn to_theirs(pairs: &Pairs, number: c_int) -> c_int {
    let found = pairs.0.iter().find(|(ours, _)| *ours == number);
    found.map_or(number, |(_, theirs)| *theirs)
}

/// Returns the ABI's rank or tag for one of the program.
#[inline(always)]
pub fn sentinel_to_ours(pairs: &Pairs, number: c_int) -> c_int {
    if number >= 0 { number } else { to_ours(pairs, number) }
}

/// Returns the program's rank or tag for one of the ABI.
#[inline(always)]
pub fn sentinel_to_theirs(pairs: &Pairs, number: c_int) -> c_int {
    if number >= 0 { number } else { to_theirs(pairs, number) }
}

/// Returns the ABI's mode for one of the program. A mode with a bit that MPICH does not have stays wrong. One with a bit
/// that no library has stays as it is.
#[inline]
pub fn bits_to_ours(pairs: &Pairs, bits: c_int) -> c_int {
    let all = pairs.0.iter().fold(0, |all, (_, theirs)| all | theirs);
    if bits & !all != 0 {
        return if bits < 0 { bits } else { WRONG_BITS | bits };
    }
    let set = pairs.0.iter().filter(|(_, theirs)| bits & theirs != 0);
    set.fold(0, |all, (ours, _)| all | ours)
}

/// Returns the program's mode for one of the ABI, or for one that stands for a wrong one.
#[inline]
pub fn bits_to_theirs(pairs: &Pairs, bits: c_int) -> c_int {
    if bits < 0 {
        return bits;
    }
    if bits & WRONG_BITS != 0 {
        return bits & !WRONG_BITS;
    }
    let set = pairs.0.iter().filter(|(ours, _)| bits & ours != 0);
    set.fold(0, |all, (_, theirs)| all | theirs)
}

/// Returns the ABI's displacement for one of the program. `current` is `MPI_DISPLACEMENT_CURRENT` in both.
#[inline]
pub fn displacement(displacement: i64, current: (i64, i64)) -> i64 {
    let (ours, theirs) = current;
    match displacement {
        _ if displacement == theirs => ours,
        // A wrong one in MPICH.
        _ if displacement == ours => ours + i64::from(WRONG),
        _ => displacement,
    }
}

/// How an argument is converted.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// Not at all.
    Same,
    /// A constant may stand there.
    Number(&'static Pairs),
    /// A set of bits.
    Bits(&'static Pairs),
}

impl Kind {
    /// Returns the program's number for one of the ABI.
    pub fn to_theirs(self, number: c_int) -> c_int {
        match self {
            Self::Same => number,
            Self::Number(pairs) => to_theirs(pairs, number),
            Self::Bits(pairs) => bits_to_theirs(pairs, number),
        }
    }
}

/// What a call has not written.
const UNWRITTEN: c_int = c_int::MIN + 0x5170;

/// A number behind a pointer.
#[derive(Debug)]
pub struct At {
    to: *mut c_int,
    old: c_int,
    new: c_int,
}

impl At {
    /// Returns a place for a number that the call writes.
    #[inline(always)]
    pub fn new(to: *mut c_int) -> Self {
        Self { to, old: UNWRITTEN, new: UNWRITTEN }
    }

    /// Returns a place with the number at `to`.
    ///
    /// # Safety
    ///
    /// - `to` is null, or the address of a number.
    #[inline(always)]
    pub unsafe fn of(to: *mut c_int, convert: impl FnOnce(c_int) -> c_int) -> Self {
        // SAFETY: the address is that of a number (`# Safety`) unless it is null.
        let old = if to.is_null() { UNWRITTEN } else { convert(unsafe { to.read_unaligned() }) };
        Self { to, old, new: old }
    }

    /// Returns the address for the call; null if the program passes null.
    #[inline(always)]
    pub fn place(&mut self) -> *mut c_int {
        if self.to.is_null() { std::ptr::null_mut() } else { &raw mut self.new }
    }

    /// Gives the program the number, if the call has written one.
    ///
    /// # Safety
    ///
    /// - The program's address is null or writable.
    #[inline(always)]
    pub unsafe fn store(&self, convert: impl FnOnce(c_int) -> c_int) {
        if self.new != self.old {
            // SAFETY: the call has written a number, so the address is not null; it is writable (`# Safety`).
            unsafe { self.to.write_unaligned(convert(self.new)) };
        }
    }
}
