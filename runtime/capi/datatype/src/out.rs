//! Writing results where C wants them.
//!
//! A null pointer where the standard asks for an address is `MPI_ERR_ARG`, found before anything is
//! changed.

use crate::failure::{Failure, Result};

/// An address that a result is going to be written to.
#[derive(Debug)]
pub struct Out<T>(*mut T);

impl<T> Out<T> {
    /// Checks that there is an address.
    ///
    /// # Errors
    /// `MPI_ERR_ARG` naming `argument`.
    ///
    /// # Safety
    ///
    /// - `address` is null, or valid for writes of a `T` until the call returns.
    #[inline]
    pub unsafe fn new(address: *mut T, argument: &'static str) -> Result<Self> {
        if address.is_null() {
            return Err(Failure::null(argument));
        }
        Ok(Self(address))
    }

    /// Writes the result.
    #[inline]
    pub fn set(&self, value: T) {
        // SAFETY: not null, hence valid for writes, by the promise of `new`; C may not have aligned
        // what it cast.
        unsafe { self.0.write_unaligned(value) };
    }
}

/// Writes `value` unless `address` is null: outputs of functions that are not built.
///
/// # Safety
///
/// - `address` is null, or valid for writes of a `T`.
pub unsafe fn clear<T>(address: *mut T, value: T) {
    if !address.is_null() {
        // SAFETY: not null, so the caller's promise holds.
        unsafe { address.write_unaligned(value) };
    }
}
