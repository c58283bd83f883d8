//! Pointer arguments of C calls, and what the C caller promises about each of them.
//!
//! An exported function turns every pointer that it gets into one of the types below ([`FromC`]). That is the
//! one step that trusts the C caller. The signature of a function of the C face states which promise it
//! needs: [`Output`] for a result, [`InOut`] for a value that the call reads and replaces, [`Input`] for a
//! value, [`Array`], [`OutArray`] and [`InOutArray`] for arrays, [`Text`], [`TextOutput`] and [`TextBuffer`]
//! for strings, `StatusOutput` (`status.rs`) for a status that may be ignored. After this step, reading and
//! writing are safe, with one exception: the function must know how many entries the standard prescribes for
//! an array.
//!
//! If a pointer is null where the standard requires an address, the call returns `MPI_ERR_ARG`, and the error
//! text names the argument. A function checks its pointers before it changes anything. All accesses are
//! unaligned, because a C program may cast an address that it did not align.
//!
//! Buffers of elements stay raw pointers, because two other arguments, the count and the datatype, describe
//! their contents. Functions with such a buffer are `unsafe`.
//!
//! Values of these types must not outlive the C call. They are kept in local variables only.

mod array;
mod text;

pub use array::{Array, InOutArray, OutArray, Places, room};
pub use text::{Text, TextBuffer, TextOutput, TextPlace};

use crate::failure::{Failure, Result};
use std::ffi::c_void;

/// A parameter of the C face that is made from a pointer of a C call.
pub trait FromC<P> {
    /// Trusts the C caller's promise about `pointer`.
    ///
    /// # Safety
    ///
    /// - Until the C call returns, `pointer` is what the documentation of `Self` asks for.
    unsafe fn from_c(pointer: P) -> Self;
}

/// An address that stays an address: the C caller promises nothing about it.
impl<P> FromC<P> for P {
    #[inline(always)]
    unsafe fn from_c(pointer: P) -> P {
        pointer
    }
}

/// Makes one of the types of this module from the kinds of pointers that C has for it.
macro_rules! from_c {
    ($($name:ident: $($mutability:ident)*;)*) => {
        $($(
            impl<T> FromC<*$mutability T> for $name<T> {
                #[inline(always)]
                unsafe fn from_c(pointer: *$mutability T) -> Self {
                    Self(pointer)
                }
            }
        )*)*
    };
}

from_c! {
    Output: mut;
    InOut: mut;
    Input: const;
    Array: const mut;
    OutArray: mut;
    InOutArray: mut;
}

/// C declares the address of a pointer of any type as `void *`.
impl FromC<*mut c_void> for Output<*mut c_void> {
    #[inline(always)]
    unsafe fn from_c(pointer: *mut c_void) -> Self {
        Self(pointer.cast())
    }
}

/// The address for a result: null, or an address that may be written.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct Output<T>(*mut T);

impl<T> Output<T> {
    /// Checks that the caller passed an address.
    ///
    /// # Errors
    /// Returns `MPI_ERR_ARG` that names `argument` if the pointer is null.
    #[inline]
    pub fn required(self, argument: &'static str) -> Result<Place<T>> {
        if self.0.is_null() {
            return Err(Failure::null(argument));
        }
        Ok(Place(self.0))
    }

    /// Writes `value` if the caller passed an address.
    pub fn write_if_given(self, value: T) {
        if !self.0.is_null() {
            Place(self.0).set(value);
        }
    }
}

/// The address of a value that the call reads and replaces: null, or an address that may be read and written.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct InOut<T>(*mut T);

impl<T: Copy> InOut<T> {
    /// Returns the value, and the place for the new one.
    ///
    /// # Errors
    /// Returns `MPI_ERR_ARG` that names `argument` if the pointer is null.
    #[inline]
    pub fn read(self, argument: &'static str) -> Result<(T, Place<T>)> {
        let place = Output(self.0).required(argument)?;
        // SAFETY: the pointer is not null (`required`), so it may be read (promise of `InOut`).
        Ok((unsafe { self.0.read_unaligned() }, place))
    }
}

/// The address of a value that the call reads: null, or an address that may be read.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct Input<T>(*const T);

impl<T: Copy> Input<T> {
    /// Returns the value.
    ///
    /// # Errors
    /// Returns `MPI_ERR_ARG` that names `argument` if the pointer is null.
    #[inline]
    pub fn read(self, argument: &'static str) -> Result<T> {
        if self.0.is_null() {
            return Err(Failure::null(argument));
        }
        // SAFETY: the pointer is not null, so it may be read (promise of `Input`).
        Ok(unsafe { self.0.read_unaligned() })
    }
}

/// An address of the caller that may be written until the call returns. It is not null.
#[derive(Clone, Copy, Debug)]
pub struct Place<T>(*mut T);

impl<T> Place<T> {
    /// Writes the result.
    #[inline]
    pub fn set(self, value: T) {
        // SAFETY: `self.0` may be written (promise of `Place`).
        unsafe { self.0.write_unaligned(value) };
    }

    /// Returns the address. It may be written.
    #[inline]
    pub(crate) fn address(self) -> *mut T {
        self.0
    }
}
