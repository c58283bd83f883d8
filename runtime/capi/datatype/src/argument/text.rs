//! Strings from C and for C.
//!
//! The library reads a string from C only up to the limit that the standard sets for such strings, for
//! example `MPI_MAX_INFO_KEY` for keys. A string that does not end within the limit is an error. Names of
//! objects are an exception: the library truncates a name that is too long (MPI-5.0 section 7.8). A string
//! for C is truncated to the size of the buffer that the standard prescribes, and ends with a zero byte.

use super::{Array, FromC};
use crate::abi;
use crate::buffer::is_low;
use crate::failure::{Failure, Result};
use std::ffi::{c_char, c_int};

/// A string that the call reads. The pointer is null, or the string is readable up to and including its first
/// zero byte.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct Text(*const c_char);

impl FromC<*const c_char> for Text {
    #[inline(always)]
    unsafe fn from_c(pointer: *const c_char) -> Self {
        Self(pointer)
    }
}

impl Text {
    /// Returns the bytes of the string without the zero byte at its end. The string may have at most `limit`
    /// bytes, including the zero byte.
    ///
    /// # Errors
    /// Returns `MPI_ERR_ARG` if the pointer is null, and an error of class `class` if the string does not end
    /// within `limit` bytes.
    pub fn read(self, limit: c_int, argument: &'static str, class: c_int) -> Result<Vec<u8>> {
        let bytes = self.start(limit, argument)?;
        if bytes.len() >= limit as usize {
            let detail =
                format!("the string is too long; it must have at most {} bytes", limit - 1);
            return Err(Failure::new(class, argument, detail));
        }
        Ok(bytes)
    }

    /// Returns the bytes of the string without the zero byte at its end. If these are more than `limit - 1`
    /// bytes, returns only the first `limit - 1` of them.
    ///
    /// # Errors
    /// Returns `MPI_ERR_ARG` if the pointer is null.
    pub fn cut(self, limit: c_int, argument: &'static str) -> Result<Vec<u8>> {
        let mut bytes = self.start(limit, argument)?;
        bytes.truncate(limit as usize - 1);
        Ok(bytes)
    }

    /// Returns the bytes of the string before its zero byte, but at most the first `limit` bytes.
    fn start(self, limit: c_int, argument: &'static str) -> Result<Vec<u8>> {
        if is_low(self.0) {
            return Err(Failure::nowhere(argument, self.0 as usize));
        }
        // SAFETY: the pointer is not null, so the string is readable up to and including its first zero byte
        // (promise of `Text`). `strnlen` stops at that byte or after `limit` bytes. The slice has only bytes
        // that `strnlen` has read, and nobody writes to the string until the C call returns, because the C
        // caller must prevent such writes.
        let bytes = unsafe {
            let length = libc::strnlen(self.0, limit as usize);
            std::slice::from_raw_parts(self.0.cast::<u8>(), length)
        };
        Ok(bytes.to_vec())
    }
}

/// A list of strings that ends with a null pointer. The pointer is null, or each entry up to the first null pointer is
/// readable and is the address of a string that is readable up to and including its first zero byte.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct TextList(*mut *mut c_char);

impl FromC<*mut *mut c_char> for TextList {
    #[inline(always)]
    unsafe fn from_c(pointer: *mut *mut c_char) -> Self {
        Self(pointer)
    }
}

impl TextList {
    /// The list without strings.
    pub const EMPTY: Self = Self(std::ptr::null_mut());

    /// Returns the strings, each without the zero byte at its end. A null pointer stands for an empty list.
    ///
    /// # Errors
    /// Returns `MPI_ERR_ARG` if the pointer or an entry is neither null nor an address where memory can be, and if a
    /// string or the list does not end within `limit` bytes or entries.
    pub fn read(self, limit: c_int, argument: &'static str) -> Result<Vec<Vec<u8>>> {
        let mut list = Vec::new();
        if self.0.is_null() {
            return Ok(list);
        }
        if is_low(self.0) {
            return Err(Failure::nowhere(argument, self.0 as usize));
        }
        loop {
            // SAFETY: the list is readable up to and including its first null pointer (promise of `TextList`), and no
            // earlier entry was one.
            let entry = unsafe { self.0.add(list.len()).read_unaligned() };
            if entry.is_null() {
                return Ok(list);
            }
            if list.len() >= limit as usize {
                let detail = format!("the list is too long; it must have at most {limit} strings");
                return Err(Failure::new(abi::ERR_ARG, argument, detail));
            }
            list.push(Text(entry).read(limit, argument, abi::ERR_ARG)?);
        }
    }
}

/// An array of strings. The pointer is null, or the array is readable for the number of entries that the standard
/// prescribes for the argument, and each entry is null or what [`Text`] says.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct TextArray(*mut *mut c_char);

impl FromC<*mut *mut c_char> for TextArray {
    #[inline(always)]
    unsafe fn from_c(pointer: *mut *mut c_char) -> Self {
        Self(pointer)
    }
}

impl TextArray {
    /// Returns the strings.
    ///
    /// # Errors
    /// Returns `MPI_ERR_ARG` if the pointer is null and `length` is not 0.
    ///
    /// # Safety
    ///
    /// - `length` is at most the number of entries that the standard prescribes for this argument.
    pub unsafe fn texts(self, length: usize, argument: &'static str) -> Result<Vec<Text>> {
        // SAFETY: the array has at least `length` entries (condition of `# Safety`), and they are readable (promise of
        // `TextArray`).
        let entries = unsafe { Array(self.0.cast_const()).copy(length, argument)? };
        Ok(entries.into_iter().map(|entry| Text(entry)).collect())
    }
}

/// An array of lists of strings. The pointer is null, or the array is readable for the number of entries that the
/// standard prescribes for the argument, and each entry is what [`TextList`] says.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct TextListArray(*mut *mut *mut c_char);

impl FromC<*mut *mut *mut c_char> for TextListArray {
    #[inline(always)]
    unsafe fn from_c(pointer: *mut *mut *mut c_char) -> Self {
        Self(pointer)
    }
}

impl TextListArray {
    /// Returns the lists, or `None` if the pointer is null.
    ///
    /// # Errors
    /// Returns `MPI_ERR_ARG` if the pointer is another constant that stands for no memory.
    ///
    /// # Safety
    ///
    /// - `length` is at most the number of entries that the standard prescribes for this argument.
    pub unsafe fn lists(
        self,
        length: usize,
        argument: &'static str,
    ) -> Result<Option<Vec<TextList>>> {
        if self.0.is_null() {
            return Ok(None);
        }
        // SAFETY: the array has at least `length` entries (condition of `# Safety`), and they are readable (promise of
        // `TextListArray`).
        let entries = unsafe { Array(self.0.cast_const()).copy(length, argument)? };
        Ok(Some(entries.into_iter().map(TextList).collect()))
    }
}

/// The address where the call writes a string. The address is null, or `ROOM` bytes are writable there.
/// `ROOM` is the size of the buffer that the standard prescribes for the argument.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct TextOutput<const ROOM: c_int>(*mut c_char);

impl<const ROOM: c_int> FromC<*mut c_char> for TextOutput<ROOM> {
    #[inline(always)]
    unsafe fn from_c(pointer: *mut c_char) -> Self {
        Self(pointer)
    }
}

impl<const ROOM: c_int> TextOutput<ROOM> {
    /// Checks that the caller passed an address, and returns the buffer to write.
    ///
    /// # Errors
    /// Returns `MPI_ERR_ARG` if the pointer is null. The error text names `argument`.
    pub fn required(self, argument: &'static str) -> Result<TextPlace> {
        const { assert!(ROOM > 0) };
        // SAFETY: the buffer has `ROOM` bytes (promise of `TextOutput`), and `ROOM` is at least 1 (asserted
        // above).
        unsafe { TextBuffer(self.0).required(ROOM, argument) }
    }
}

/// The address where the call writes a string. The address is null, or a buffer is writable there. Another
/// argument of the C call gives the size of the buffer.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct TextBuffer(*mut c_char);

impl FromC<*mut c_char> for TextBuffer {
    #[inline(always)]
    unsafe fn from_c(pointer: *mut c_char) -> Self {
        Self(pointer)
    }
}

impl TextBuffer {
    /// Checks that the caller passed an address, and returns the buffer to write.
    ///
    /// # Errors
    /// Returns `MPI_ERR_ARG` if the pointer is null. The error text names `argument`.
    ///
    /// # Safety
    ///
    /// - `room` is at most the number of bytes that the standard prescribes for this argument.
    /// - `room` is at least 1.
    pub unsafe fn required(self, room: c_int, argument: &'static str) -> Result<TextPlace> {
        if is_low(self.0) {
            return Err(Failure::nowhere(argument, self.0 as usize));
        }
        Ok(TextPlace { buffer: self.0, room: room as usize })
    }
}

/// A buffer of the C caller for a string. The library may write the buffer until the C call returns.
#[derive(Clone, Copy, Debug)]
pub struct TextPlace {
    /// Address of the buffer. It is not null, and `room` bytes are writable there.
    buffer: *mut c_char,
    /// Size of the buffer in bytes, at least 1.
    room: usize,
}

impl TextPlace {
    /// Writes `bytes` and a terminating zero byte. If the buffer is too small, only the first `self.room - 1`
    /// bytes and the zero byte are written. Returns the number of bytes before the zero byte.
    pub fn write(self, bytes: &[u8]) -> c_int {
        let bytes = &bytes[..bytes.len().min(self.room - 1)];
        // SAFETY: `buffer` is writable for `room` bytes. The line above has truncated `bytes`, so that
        // `bytes` and the zero byte have at most `room` bytes together. `bytes` is memory of this library, so
        // it does not overlap the caller's buffer.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.buffer.cast::<u8>(), bytes.len());
            self.buffer.add(bytes.len()).write(0);
        }
        bytes.len() as c_int
    }
}
