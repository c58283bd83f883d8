//! Numbers that are constants, or that may be.

use std::ffi::c_int;

/// Constants of one kind: in the standard ABI, and in MPICH.
#[derive(Debug)]
pub struct Pairs(pub &'static [(c_int, c_int)]);

/// What a number of the program becomes that is no constant in MPICH, but would be one in the ABI. It is wrong wherever a
/// constant may stand.
pub const WRONG: c_int = -999_999;

/// Returns the ABI's number for one of the program.
#[inline]
pub fn to_ours(pairs: &Pairs, number: c_int) -> c_int {
    match pairs.0.iter().find(|(_, theirs)| *theirs == number) {
        Some((ours, _)) => *ours,
        None if pairs.0.iter().any(|(ours, _)| *ours == number) => WRONG,
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

/// Returns the ABI's mode for one of the program. A bit that MPICH does not have stays wrong.
#[inline]
pub fn bits_to_ours(pairs: &Pairs, bits: c_int) -> c_int {
    let all = pairs.0.iter().fold(0, |all, (_, theirs)| all | theirs);
    let wrong = if bits & !all == 0 { 0 } else { 1 << 30 };
    let set = pairs.0.iter().filter(|(_, theirs)| bits & theirs != 0);
    set.fold(wrong, |all, (ours, _)| all | ours)
}

/// Returns the program's mode for one of the ABI.
#[inline]
pub fn bits_to_theirs(pairs: &Pairs, bits: c_int) -> c_int {
    let set = pairs.0.iter().filter(|(ours, _)| bits & ours != 0);
    set.fold(0, |all, (_, theirs)| all | theirs)
}

/// Returns the ABI's displacement for one of the program. `current` is `MPI_DISPLACEMENT_CURRENT` in both.
#[inline]
pub fn displacement(displacement: i64, current: (i64, i64)) -> i64 {
    let (ours, theirs) = current;
    if displacement == theirs { ours } else { displacement }
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
