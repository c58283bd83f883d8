//! Pointer arguments of C calls, and what the C caller promises about each of them.
//!
//! An exported function turns every pointer that it gets into one of the types below ([`FromC`]). Only this
//! step trusts the C caller. The functions of the C face (`runtime/capi`) implement the MPI calls. The
//! types of their parameters state what the C caller must promise about each pointer: [`Output`] for a
//! result, [`InOut`] for a value that the call reads and replaces, [`Input`] for a value, [`Array`],
//! [`OutArray`] and [`InOutArray`] for arrays, [`Text`], [`TextOutput`] and [`TextBuffer`] for strings, [`TextList`],
//! [`TextArray`] and [`TextListArray`] for several of them, and
//! `StatusOutput` (`status.rs`) for a status that the caller may ignore. After this step, reading and
//! writing are safe Rust, except for arrays: the function must know how many entries the standard
//! prescribes for an array.
//!
//! If a pointer is null where the standard requires an address, or another constant that stands for no memory
//! (`MPI_IN_PLACE`, `MPI_UNWEIGHTED`), the call returns `MPI_ERR_ARG`, and the error text names the argument. A
//! function checks its pointers before it changes anything. All reads and writes
//! are unaligned accesses, because a C program may pass an address that is not aligned for the type.
//!
//! Buffers of elements stay raw pointers, because two other arguments, the count and the datatype, describe
//! their contents. Functions that get such a buffer are `unsafe`.
//!
//! Values of these types must not outlive the C call. The functions of the C face keep them in local
//! variables only.

mod array;
mod text;

pub use array::{Array, InOutArray, OutArray, Places, room};
pub use text::{Text, TextArray, TextBuffer, TextList, TextListArray, TextOutput, TextPlace};

use crate::buffer::is_low;
use crate::failure::{Failure, Result};
use std::ffi::c_void;

/// A parameter type of the functions that implement the MPI calls. An exported function converts a pointer
/// of type `P`, which the C caller passed, to a value of this type.
pub trait FromC<P> {
    /// Returns the parameter for `pointer`. This function trusts what the C caller promises about `pointer`.
    ///
    /// # Safety
    ///
    /// - Until the C call returns, `pointer` has the properties that the documentation of `Self` states.
    unsafe fn from_c(pointer: P) -> Self;
}

/// A pointer that the function uses only as an address, for example to compare it. The C caller promises
/// nothing about the memory there.
impl<P> FromC<P> for P {
    #[inline(always)]
    unsafe fn from_c(pointer: P) -> P {
        pointer
    }
}

/// Implements [`FromC`] for types of this module. The words after a type say whether C passes a `const`
/// pointer for it, a mutable pointer, or, for some arguments, either.
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

/// Converts the address of a result that is itself a pointer of any type. C declares such an address as
/// `void *`.
impl FromC<*mut c_void> for Output<*mut c_void> {
    #[inline(always)]
    unsafe fn from_c(pointer: *mut c_void) -> Self {
        Self(pointer.cast())
    }
}

/// The address where the call writes a result. The address is null, or the library may write a `T` there.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct Output<T>(*mut T);

impl<T> Output<T> {
    /// Checks that the caller passed an address, and returns the `Place` to which the result is written.
    ///
    /// # Errors
    /// Returns `MPI_ERR_ARG` if the pointer is null. The error text names `argument`.
    #[inline]
    pub fn required(self, argument: &'static str) -> Result<Place<T>> {
        if is_low(self.0) {
            return Err(Failure::nowhere(argument, self.0 as usize));
        }
        Ok(Place(self.0))
    }

    /// Writes `value` if the caller passed an address.
    pub fn write_if_given(self, value: T) {
        if !is_low(self.0) {
            Place(self.0).set(value);
        }
    }
}

/// The address of a value that the call reads and replaces. The address is null, or the library may read and
/// write a `T` there.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct InOut<T>(*mut T);

impl<T: Copy> InOut<T> {
    /// Returns the current value, and the `Place` to which the new value is written.
    ///
    /// # Errors
    /// Returns `MPI_ERR_ARG` if the pointer is null. The error text names `argument`.
    #[inline]
    pub fn read(self, argument: &'static str) -> Result<(T, Place<T>)> {
        let place = Output(self.0).required(argument)?;
        // SAFETY: `required` has checked that the pointer is not null, so a `T` is readable there (promise of
        // `InOut`).
        Ok((unsafe { self.0.read_unaligned() }, place))
    }
}

/// The address of a value that the call reads. The address is null, or the library may read a `T` there.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct Input<T>(*const T);

impl<T: Copy> Input<T> {
    /// Returns the value.
    ///
    /// # Errors
    /// Returns `MPI_ERR_ARG` if the pointer is null. The error text names `argument`.
    #[inline]
    pub fn read(self, argument: &'static str) -> Result<T> {
        if is_low(self.0) {
            return Err(Failure::nowhere(argument, self.0 as usize));
        }
        // SAFETY: the pointer is not null (checked above), so a `T` is readable there (promise of `Input`).
        Ok(unsafe { self.0.read_unaligned() })
    }
}

/// A non-null address that the C caller passed. The library may write a `T` there until the C call returns.
#[derive(Clone, Copy, Debug)]
pub struct Place<T>(*mut T);

impl<T> Place<T> {
    /// Writes `value` at this address.
    #[inline]
    pub fn set(self, value: T) {
        // SAFETY: a `T` may be written at `self.0` (promise of `Place`).
        unsafe { self.0.write_unaligned(value) };
    }

    /// Returns the address. The caller of this function may write a `T` there until the C call returns.
    #[inline]
    pub(crate) fn address(self) -> *mut T {
        self.0
    }
}
