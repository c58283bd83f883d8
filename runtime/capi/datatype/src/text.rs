//! Strings from and to C.
//!
//! Strings are read up to the limit that the standard sets for their kind, and no further: one
//! without an end is an error, not a walk through memory. Results are cut to the limit and
//! terminated. Names of objects are cut, as the standard wants it (MPI-5.0 section 7.8).

use crate::failure::{Failure, Result};
use crate::out::Out;
use std::ffi::{c_char, c_int};

/// The bytes of a C string of at most `limit` bytes with its end.
///
/// # Errors
/// `MPI_ERR_ARG` for a null pointer; `class` for a string that does not end within the limit.
///
/// # Safety
///
/// - `string` is null, or readable up to its end or for `limit` bytes.
pub unsafe fn read(
    string: *const c_char,
    limit: c_int,
    argument: &'static str,
    class: c_int,
) -> Result<Vec<u8>> {
    // SAFETY: passed on.
    let bytes = unsafe { start(string, limit, argument)? };
    if bytes.len() >= limit as usize {
        let detail = format!("longer than {} bytes", limit - 1);
        return Err(Failure::new(class, argument, detail));
    }
    Ok(bytes.to_vec())
}

/// The bytes of a C string, cut to what fits `limit` bytes with its end: names of objects.
///
/// # Errors
/// `MPI_ERR_ARG` for a null pointer.
///
/// # Safety
/// As [`read`].
pub unsafe fn cut(string: *const c_char, limit: c_int, argument: &'static str) -> Result<Vec<u8>> {
    // SAFETY: passed on.
    let bytes = unsafe { start(string, limit, argument)? };
    Ok(bytes[..bytes.len().min(limit as usize - 1)].to_vec())
}

/// # Safety
/// As [`read`]; the bytes are not written while the result is in use.
unsafe fn start<'a>(
    string: *const c_char,
    limit: c_int,
    argument: &'static str,
) -> Result<&'a [u8]> {
    if string.is_null() {
        return Err(Failure::null(argument));
    }
    // SAFETY: readable up to its end or the limit, whichever comes first; `strnlen` reads no
    // further.
    Ok(unsafe {
        let length = libc::strnlen(string, limit as usize);
        std::slice::from_raw_parts(string.cast::<u8>(), length)
    })
}

/// Writes `bytes` and an end to a C buffer of `room` bytes, cut where it does not fit; `length` gets
/// the bytes without the end.
///
/// # Errors
/// `MPI_ERR_ARG` for a null pointer.
///
/// # Safety
///
/// - `target` is null, or writable for `room` bytes, at least 1.
pub unsafe fn write(
    bytes: &[u8],
    target: *mut c_char,
    room: c_int,
    argument: &'static str,
    length: Option<Out<c_int>>,
) -> Result {
    if target.is_null() {
        return Err(Failure::null(argument));
    }
    let bytes = &bytes[..bytes.len().min(room as usize - 1)];
    // SAFETY: at most `room` bytes with the end, which are writable; a result of ours does not lie
    // in the caller's buffer.
    unsafe {
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), target.cast::<u8>(), bytes.len());
        target.add(bytes.len()).write(0);
    }
    if let Some(length) = length {
        length.set(bytes.len() as c_int);
    }
    Ok(())
}
