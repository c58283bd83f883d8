//! Array arguments.
//!
//! The length of an array is another argument, or follows from another argument. Each function states the
//! length where it reads the array. The library cannot detect a wrong length. Memory for a copy is requested
//! before the array is read, and a lack of memory is an error, not the end of the process.

use super::{FromC, Place};
use crate::abi;
use crate::failure::{Failure, Result};
use std::ffi::c_void;

/// Reserves memory for `length` entries.
///
/// # Errors
/// Returns `MPI_ERR_NO_MEM` if there is not enough memory.
pub fn room<T>(length: usize, argument: &'static str) -> Result<Vec<T>> {
    let mut entries = Vec::new();
    entries.try_reserve_exact(length).map_err(|_| {
        let detail = format!("no memory for a copy of {length} entries");
        Failure::new(abi::ERR_NO_MEM, argument, detail)
    })?;
    Ok(entries)
}

/// An array that the call reads: null, or readable for as many entries as the standard prescribes.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct Array<T>(pub(super) *const T);

impl<T: Copy> Array<T> {
    /// Returns the entries one after the other.
    ///
    /// # Errors
    /// Returns `MPI_ERR_ARG` if the pointer is null and `length` is not 0.
    ///
    /// # Safety
    ///
    /// - `length` is at most the number of entries that the standard prescribes for this argument.
    /// - The iterator is not used after the C call returns.
    pub unsafe fn entries(
        self,
        length: usize,
        argument: &'static str,
    ) -> Result<impl Iterator<Item = T>> {
        if self.0.is_null() && length > 0 {
            return Err(Failure::null(argument));
        }
        // SAFETY: there are entries, so the pointer is not null, and the array has `length` entries
        // (first condition of `# Safety`), of which `i` is one. They are readable (promise of `Array`).
        Ok((0..length).map(move |i| unsafe { self.0.add(i).read_unaligned() }))
    }

    /// Returns a copy of the entries.
    ///
    /// # Errors
    /// Returns `MPI_ERR_ARG` if the pointer is null and `length` is not 0, and `MPI_ERR_NO_MEM` if there is
    /// no memory for the copy.
    ///
    /// # Safety
    ///
    /// - `length` is at most the number of entries that the standard prescribes for this argument.
    pub unsafe fn copy(self, length: usize, argument: &'static str) -> Result<Vec<T>> {
        // SAFETY: the array has `length` entries (condition of `# Safety`); they are read before this
        // returns.
        let entries = unsafe { self.entries(length, argument)? };
        let mut copy = room(length, argument)?;
        copy.extend(entries);
        Ok(copy)
    }
}

/// An array that the call fills: null, or writable for as many entries as the standard prescribes.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct OutArray<T>(pub(super) *mut T);

impl<T> OutArray<T> {
    /// Stands for an array that the caller has not passed.
    pub const NONE: Self = Self(std::ptr::null_mut());

    /// Checks that the caller passed an address.
    ///
    /// # Errors
    /// Returns `MPI_ERR_ARG` if the pointer is null and `length` is not 0.
    ///
    /// # Safety
    ///
    /// - `length` is at most the number of entries that the standard prescribes for this argument.
    pub unsafe fn places(self, length: usize, argument: &'static str) -> Result<Places<T>> {
        if self.0.is_null() && length > 0 {
            return Err(Failure::null(argument));
        }
        Ok(Places { array: self.0, length })
    }

    /// Returns the places of an array that may be ignored; `None` if the pointer is null.
    ///
    /// # Safety
    ///
    /// - `length` is at most the number of entries that the standard prescribes for this argument.
    pub unsafe fn places_if_given(self, length: usize) -> Option<Places<T>> {
        (!self.0.is_null()).then_some(Places { array: self.0, length })
    }
}

/// An array that the call reads and changes: null, or readable and writable for as many entries as the
/// standard prescribes.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct InOutArray<T>(pub(super) *mut T);

impl<T> InOutArray<T> {
    /// Returns the array as one that the call reads.
    pub fn input(self) -> Array<T> {
        Array(self.0)
    }

    /// Returns the array as one that the call fills.
    pub fn output(self) -> OutArray<T> {
        OutArray(self.0)
    }
}

/// The entries of an array of the caller, to be written until the call returns.
#[derive(Clone, Copy, Debug)]
pub struct Places<T> {
    /// Writable for `length` entries; null only if `length` is 0.
    array: *mut T,
    length: usize,
}

impl<T> Places<T> {
    /// Returns the place of entry `i`.
    ///
    /// # Panics
    /// Panics if the array has no entry `i`.
    #[inline]
    pub fn at(&self, i: usize) -> Place<T> {
        assert!(i < self.length, "entry {i} of an array of {} entries", self.length);
        // SAFETY: `i` is less than `length` (checked above), for which the array is writable.
        Place(unsafe { self.array.add(i) })
    }

    /// Writes `values`, beginning with entry 0.
    ///
    /// # Panics
    /// Panics if the array has fewer entries.
    pub fn fill(&self, values: impl IntoIterator<Item = T>) {
        for (i, value) in values.into_iter().enumerate() {
            self.at(i).set(value);
        }
    }
}

impl<T> From<Place<T>> for Places<T> {
    /// Returns the place as an array of one entry.
    fn from(place: Place<T>) -> Self {
        Self { array: place.address(), length: 1 }
    }
}

/// Bytes of a value whose type C does not know.
impl FromC<*mut c_void> for Array<u8> {
    #[inline(always)]
    unsafe fn from_c(pointer: *mut c_void) -> Self {
        Self(pointer.cast())
    }
}

/// The array for the bytes of a value whose type C does not know.
impl FromC<*mut c_void> for OutArray<u8> {
    #[inline(always)]
    unsafe fn from_c(pointer: *mut c_void) -> Self {
        Self(pointer.cast())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_there_is_memory_for_is_an_error() {
        let one = 7_u64;
        // SAFETY: the array has one entry. The other calls end before they read: there is no memory for a
        // copy, or the pointer is null.
        unsafe {
            assert_eq!(Array(&one).copy(1, "a").expect("one entry"), [7]);
            let refused = Array(&one).copy(usize::MAX, "a").expect_err("refused");
            assert_eq!(refused.code(), abi::ERR_NO_MEM);
            let null = Array::<u64>(std::ptr::null());
            assert_eq!(null.copy(1, "a").expect_err("null").code(), abi::ERR_ARG);
            assert!(null.copy(0, "a").expect("nothing").is_empty());
        }
    }

    #[test]
    fn places_are_those_of_the_array_and_no_others() {
        let mut array = [0; 3];
        // SAFETY: the array has 3 entries.
        let places = unsafe { OutArray(array.as_mut_ptr()).places(2, "a") }.expect("an array");
        assert!(std::panic::catch_unwind(|| places.fill([1, 2, 3])).is_err());
        assert_eq!(array, [1, 2, 0]);
    }
}
