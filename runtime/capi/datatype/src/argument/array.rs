//! Array arguments.
//!
//! C passes an array as a bare pointer. Its length is another argument of the call, or can be computed from
//! the other arguments. Each function of the C interface passes this length when it accesses the array. The
//! library cannot detect a wrong length. A function that copies an array first allocates the memory for the
//! copy. If there is not enough memory, the function returns an error; the process does not abort.

use super::{FromC, Place};
use crate::abi;
use crate::buffer::is_low;
use crate::failure::{Failure, Result};
use std::ffi::c_void;
use typepack_engine::reserve;

/// Returns an empty vector with capacity for `length` entries.
///
/// # Errors
/// Returns `MPI_ERR_NO_MEM` if there is not enough memory. The error text names `argument`.
pub fn room<T>(length: usize, argument: &'static str) -> Result<Vec<T>> {
    let mut entries = Vec::new();
    let reserved = reserve::fallible(|| entries.try_reserve_exact(length));
    // The object that is made of the entries takes about as much memory again, or twice as much.
    if reserved.is_err() || !reserve::room(2 * entries.capacity().saturating_mul(size_of::<T>())) {
        let detail = format!("cannot allocate memory for a copy of the {length} entries");
        return Err(Failure::new(abi::ERR_NO_MEM, argument, detail));
    }
    Ok(entries)
}

/// An array that the call reads. The pointer is null, or the array is readable for the number of entries that
/// the standard prescribes for the argument.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct Array<T>(pub(super) *const T);

impl<T> Array<T> {
    /// Returns the address, for a comparison with the constants of the standard that may stand in place of
    /// this array.
    pub fn address(self) -> usize {
        self.0 as usize
    }
}

impl<T: Copy> Array<T> {
    /// Returns an iterator over the entries.
    ///
    /// # Errors
    /// Returns `MPI_ERR_ARG` if the pointer is null and `length` is not 0.
    ///
    /// # Safety
    ///
    /// - `length` is at most the number of entries that the standard prescribes for this argument.
    /// - The caller does not use the iterator after the C call returns.
    pub unsafe fn entries(
        self,
        length: usize,
        argument: &'static str,
    ) -> Result<impl Iterator<Item = T>> {
        if is_low(self.0) && length > 0 {
            return Err(Failure::nowhere(argument, self.0 as usize));
        }
        // SAFETY: `i` is less than `length`, so `length` is not 0, and the check above has shown that memory can
        // be at the pointer, which is therefore not null. The array has at least `length` entries (first condition of
        // `# Safety`), and they are readable (promise of `Array`).
        Ok((0..length).map(move |i| unsafe { self.0.add(i).read_unaligned() }))
    }

    /// Returns a copy of the entries.
    ///
    /// # Errors
    /// Returns `MPI_ERR_ARG` if the pointer is null and `length` is not 0, and `MPI_ERR_NO_MEM` if the memory
    /// for the copy cannot be allocated.
    ///
    /// # Safety
    ///
    /// - `length` is at most the number of entries that the standard prescribes for this argument.
    pub unsafe fn copy(self, length: usize, argument: &'static str) -> Result<Vec<T>> {
        // SAFETY: the array has at least `length` entries (condition of `# Safety`). This function reads them
        // before it returns, and therefore before the C call returns.
        let entries = unsafe { self.entries(length, argument)? };
        let mut copy = room(length, argument)?;
        copy.extend(entries);
        Ok(copy)
    }
}

/// An array that the call fills. The pointer is null, or the array is writable for the number of entries that
/// the standard prescribes for the argument.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct OutArray<T>(pub(super) *mut T);

impl<T> OutArray<T> {
    /// The value for an array argument that the C caller did not pass.
    pub const NONE: Self = Self(std::ptr::null_mut());

    /// Returns the address, for a comparison with the constants of the standard that may stand in place of
    /// this array.
    pub fn address(self) -> usize {
        self.0 as usize
    }

    /// Checks that the caller passed an address, and returns the entries for writing.
    ///
    /// # Errors
    /// Returns `MPI_ERR_ARG` if the pointer is null and `length` is not 0.
    ///
    /// # Safety
    ///
    /// - `length` is at most the number of entries that the standard prescribes for this argument.
    pub unsafe fn places(self, length: usize, argument: &'static str) -> Result<Places<T>> {
        if is_low(self.0) && length > 0 {
            return Err(Failure::nowhere(argument, self.0 as usize));
        }
        Ok(Places { array: self.0, length })
    }

    /// Returns the entries of an array that the caller may omit; `None` if the pointer is null.
    ///
    /// # Safety
    ///
    /// - `length` is at most the number of entries that the standard prescribes for this argument.
    pub unsafe fn places_if_given(self, length: usize) -> Option<Places<T>> {
        (!is_low(self.0)).then_some(Places { array: self.0, length })
    }
}

/// An array that the call reads and changes. The pointer is null, or the array is readable and writable for
/// the number of entries that the standard prescribes for the argument.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct InOutArray<T>(pub(super) *mut T);

impl OutArray<u8> {
    /// Returns the array that begins after the first `bytes` bytes of this one.
    pub fn behind(self, bytes: usize) -> Self {
        Self(self.0.wrapping_add(bytes))
    }
}

impl<T> InOutArray<T> {
    /// Returns the same array as an [`Array`], for reading.
    pub fn input(self) -> Array<T> {
        Array(self.0)
    }

    /// Returns the same array as an [`OutArray`], for writing.
    pub fn output(self) -> OutArray<T> {
        OutArray(self.0)
    }
}

/// The entries of an array of the C caller. The library may write them until the C call returns.
#[derive(Clone, Copy, Debug)]
pub struct Places<T> {
    /// Address of entry 0. The array is writable for `length` entries. The address is null only if `length`
    /// is 0.
    array: *mut T,
    length: usize,
}

impl<T> Places<T> {
    /// Returns the address of entry `i`, for writing.
    ///
    /// # Panics
    /// Panics if the array has no entry `i`.
    #[inline]
    pub fn at(&self, i: usize) -> Place<T> {
        assert!(i < self.length, "entry {i} of an array of {} entries", self.length);
        // SAFETY: `i` is less than `length` (checked above), and the array is writable for `length` entries.
        Place(unsafe { self.array.add(i) })
    }

    /// Writes `values`, beginning with entry 0.
    ///
    /// # Panics
    /// Panics if the array has fewer entries than `values`. By then, all entries of the array have been
    /// written.
    pub fn fill(&self, values: impl IntoIterator<Item = T>) {
        for (i, value) in values.into_iter().enumerate() {
            self.at(i).set(value);
        }
    }
}

impl<T> From<Place<T>> for Places<T> {
    /// Returns `place` as an array of one entry.
    fn from(place: Place<T>) -> Self {
        Self { array: place.address(), length: 1 }
    }
}

/// Converts an argument of type `const void *` or `void *` to an array of bytes that the call reads.
impl FromC<*mut c_void> for Array<u8> {
    #[inline(always)]
    unsafe fn from_c(pointer: *mut c_void) -> Self {
        Self(pointer.cast())
    }
}

/// Converts an argument of type `const void *` to an array of bytes that the call reads.
impl FromC<*const c_void> for Array<u8> {
    #[inline(always)]
    unsafe fn from_c(pointer: *const c_void) -> Self {
        Self(pointer.cast())
    }
}

/// Converts an argument of type `void *` to an array of bytes that the call fills.
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
        // SAFETY: the first call reads `one`, an array of one entry. The other calls read nothing: the second
        // cannot allocate memory for its copy, and the last two get a null pointer.
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
