//! Strings from C and for C.
//!
//! A string is read up to the limit that the standard sets for its kind, and no further: a string without an
//! end is an error. A result is cut to the size of the buffer that the standard guarantees, and terminated.
//! Names of objects are cut (MPI-5.0 section 7.8).

use super::FromC;
use crate::failure::{Failure, Result};
use std::ffi::{c_char, c_int};

/// A string that the call reads: null, or readable up to and including its first zero byte.
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
    /// Returns the bytes of a string that has at most `limit` bytes, its end included.
    ///
    /// # Errors
    /// Returns `MPI_ERR_ARG` if the pointer is null, and `class` if the string does not end within the limit.
    pub fn read(self, limit: c_int, argument: &'static str, class: c_int) -> Result<Vec<u8>> {
        let bytes = self.start(limit, argument)?;
        if bytes.len() >= limit as usize {
            let detail = format!("longer than {} bytes", limit - 1);
            return Err(Failure::new(class, argument, detail));
        }
        Ok(bytes)
    }

    /// Returns the bytes of a string, cut so that they fit into `limit` bytes together with an end.
    ///
    /// # Errors
    /// Returns `MPI_ERR_ARG` if the pointer is null.
    pub fn cut(self, limit: c_int, argument: &'static str) -> Result<Vec<u8>> {
        let mut bytes = self.start(limit, argument)?;
        bytes.truncate(limit as usize - 1);
        Ok(bytes)
    }

    /// Returns at most `limit` bytes of the string.
    fn start(self, limit: c_int, argument: &'static str) -> Result<Vec<u8>> {
        if self.0.is_null() {
            return Err(Failure::null(argument));
        }
        // SAFETY: the pointer is not null, so the string is readable up to and including its first zero byte
        // (promise of `Text`). `strnlen` stops there or at `limit`; the slice has only bytes that it has
        // seen, and nobody writes to them during the call.
        let bytes = unsafe {
            let length = libc::strnlen(self.0, limit as usize);
            std::slice::from_raw_parts(self.0.cast::<u8>(), length)
        };
        Ok(bytes.to_vec())
    }
}

/// The address for a string: null, or writable for `ROOM` bytes, the buffer size that the standard
/// prescribes.
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
    /// Checks that the caller passed an address.
    ///
    /// # Errors
    /// Returns `MPI_ERR_ARG` that names `argument` if the pointer is null.
    pub fn required(self, argument: &'static str) -> Result<TextPlace> {
        const { assert!(ROOM > 0) };
        // SAFETY: the buffer has `ROOM` bytes (promise of `TextOutput`), at least 1.
        unsafe { TextBuffer(self.0).required(ROOM, argument) }
    }
}

/// The address for a string: null, or writable for as many bytes as another argument says.
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
    /// Checks that the caller passed an address.
    ///
    /// # Errors
    /// Returns `MPI_ERR_ARG` that names `argument` if the pointer is null.
    ///
    /// # Safety
    ///
    /// - `room` is at most the number of bytes that the standard prescribes for this argument.
    /// - `room` is at least 1.
    pub unsafe fn required(self, room: c_int, argument: &'static str) -> Result<TextPlace> {
        if self.0.is_null() {
            return Err(Failure::null(argument));
        }
        Ok(TextPlace { buffer: self.0, room: room as usize })
    }
}

/// A buffer of the caller for a string, to be written until the call returns.
#[derive(Clone, Copy, Debug)]
pub struct TextPlace {
    /// Not null, and writable for `room` bytes.
    buffer: *mut c_char,
    /// At least 1.
    room: usize,
}

impl TextPlace {
    /// Writes `bytes` and a terminating zero byte, cut to `self.room` bytes in total. Returns the number of
    /// bytes before the zero byte.
    pub fn write(self, bytes: &[u8]) -> c_int {
        let bytes = &bytes[..bytes.len().min(self.room - 1)];
        // SAFETY: `buffer` is writable for `room` bytes, and `bytes` with the end has no more. `bytes` is
        // memory of this library, so it does not overlap the caller's buffer.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.buffer.cast::<u8>(), bytes.len());
            self.buffer.add(bytes.len()).write(0);
        }
        bytes.len() as c_int
    }
}
