//! C functions that call Fortran functions, for objects with an extra state: attributes, generalized requests, data
//! representations. The extra state that C sees contains the Fortran functions and Fortran's extra state.
//!
//! The number `P` of a function is the place of its Fortran function among the callbacks of the call.

use crate::handle::Handle;
use crate::{cast, hand, raw};
use std::ffi::{c_int, c_void};

/// The Fortran functions of an object, and their extra state. It lives as long as the process, because an attribute may
/// outlive its key.
pub struct State {
    functions: [raw::Callback; 3],
    extra: raw::Aint,
}

impl State {
    /// Keeps up to three functions and the extra state.
    pub fn leak(functions: &[raw::Callback], extra: raw::Aint) -> *mut c_void {
        let mut state = Self { functions: [std::ptr::null(); 3], extra };
        state.functions[..functions.len()].copy_from_slice(functions);
        Box::into_raw(Box::new(state)).cast()
    }
}

/// Returns the C function for a Fortran function, or null if the Fortran function is `MPI_CONVERSION_FN_NULL`.
pub fn unless_null(function: raw::Callback, call: raw::Callback) -> raw::Callback {
    if hand::is_no_conversion(function) { std::ptr::null() } else { call }
}

macro_rules! attributes {
    ($($kind:ident $width:ty, $copy:ident $delete:ident;)*) => {
        $(
            /// Calls the Fortran function that copies an attribute.
            ///
            /// # Safety
            ///
            /// - The arguments are those of an object whose extra state is a [`State`].
            pub unsafe extern "C" fn $copy<const P: usize>(
                object: raw::$kind,
                mut keyval: c_int,
                state: *mut State,
                value: *mut c_void,
                copy: *mut *mut c_void,
                flag: *mut c_int,
            ) -> c_int {
                let mut handle = object.to_integer();
                let (mut from, mut to) = (crate::attribute::integer(value) as $width, 0 as $width);
                let mut code = 0;
                // SAFETY: the state has a function of this type (`# Safety`); the other addresses are of local
                // variables and of what C passes.
                unsafe {
                    let mut extra = (*state).extra as $width;
                    let call = cast::copy::<$width>((*state).functions[P]);
                    let handle = &raw mut handle;
                    call(handle, &raw mut keyval, &raw mut extra, &raw mut from, &raw mut to, flag, &raw mut code);
                    if code == 0 && *flag != 0 {
                        *flag = 1;
                        // A value that the function passes on unchanged stays what it was, also if it is a pointer that
                        // C has set.
                        let is_same = to == crate::attribute::integer(value) as $width;
                        *copy = if is_same { value } else { crate::attribute::value(to as raw::Aint) };
                    }
                }
                code
            }

            /// Calls the Fortran function that deletes an attribute.
            ///
            /// # Safety
            ///
            /// - The arguments are those of an object whose extra state is a [`State`].
            pub unsafe extern "C" fn $delete<const P: usize>(
                object: raw::$kind,
                mut keyval: c_int,
                value: *mut c_void,
                state: *mut State,
            ) -> c_int {
                let mut handle = object.to_integer();
                let mut old = crate::attribute::integer(value) as $width;
                let mut code = 0;
                // SAFETY: the state has a function of this type (`# Safety`); the addresses are of local variables.
                unsafe {
                    let mut extra = (*state).extra as $width;
                    let call = cast::delete::<$width>((*state).functions[P]);
                    call(&raw mut handle, &raw mut keyval, &raw mut old, &raw mut extra, &raw mut code);
                }
                code
            }
        )*
    };
}
attributes! {
    Comm raw::Aint, comm_copy_attr_function comm_delete_attr_function;
    Datatype raw::Aint, type_copy_attr_function type_delete_attr_function;
    Win raw::Aint, win_copy_attr_function win_delete_attr_function;
    Comm c_int, copy_function delete_function;
}

/// Calls the Fortran function that describes a generalized request.
///
/// # Safety
///
/// - `state` is a [`State`], and `status` the address of a status.
pub unsafe extern "C" fn grequest_query_function<const P: usize>(
    state: *mut State,
    status: *mut raw::Status,
) -> c_int {
    let mut code = 0;
    // SAFETY: the state has a function of this type (`# Safety`).
    unsafe {
        let call = cast::query((*state).functions[P]);
        call(&raw mut (*state).extra, status, &raw mut code);
    }
    code
}

/// Calls the Fortran function that frees a generalized request, and frees the state.
///
/// # Safety
///
/// - `state` is a [`State`], which is not used any more.
pub unsafe extern "C" fn grequest_free_function<const P: usize>(state: *mut State) -> c_int {
    let mut code = 0;
    // SAFETY: the state has a function of this type, and is ours (`# Safety`).
    unsafe {
        let call = cast::free((*state).functions[P]);
        call(&raw mut (*state).extra, &raw mut code);
        drop(Box::from_raw(state));
    }
    code
}

/// Calls the Fortran function that cancels a generalized request.
///
/// # Safety
///
/// - `state` is a [`State`].
pub unsafe extern "C" fn grequest_cancel_function<const P: usize>(
    state: *mut State,
    complete: c_int,
) -> c_int {
    let (mut code, mut complete) = (0, c_int::from(complete != 0));
    // SAFETY: the state has a function of this type (`# Safety`).
    unsafe {
        let call = cast::cancel((*state).functions[P]);
        call(&raw mut (*state).extra, &raw mut complete, &raw mut code);
    }
    code
}

/// Calls the Fortran function that says how large a datatype is in a file.
///
/// # Safety
///
/// - `state` is a [`State`], and `extent` the address of a number.
pub unsafe extern "C" fn datarep_extent_function<const P: usize>(
    datatype: raw::Datatype,
    extent: *mut raw::Aint,
    state: *mut State,
) -> c_int {
    let (mut code, mut handle) = (0, datatype.to_integer());
    // SAFETY: the state has a function of this type (`# Safety`).
    unsafe {
        let call = cast::extent((*state).functions[P]);
        call(&raw mut handle, extent, &raw mut (*state).extra, &raw mut code);
    }
    code
}

macro_rules! conversions {
    ($($name:ident $count:ty;)*) => {
        $(
            /// Calls the Fortran function that converts data for a file.
            ///
            /// # Safety
            ///
            /// - `state` is a [`State`], and the buffers are what the ABI says.
            pub unsafe extern "C" fn $name<const P: usize>(
                memory: *mut c_void,
                datatype: raw::Datatype,
                mut count: $count,
                file: *mut c_void,
                mut position: raw::Offset,
                state: *mut State,
            ) -> c_int {
                let (mut code, mut handle) = (0, datatype.to_integer());
                // SAFETY: the state has a function of this type (`# Safety`).
                unsafe {
                    let call = cast::conversion::<$count>((*state).functions[P]);
                    let extra = &raw mut (*state).extra;
                    call(memory, &raw mut handle, &raw mut count, file, &raw mut position, extra, &raw mut code);
                }
                code
            }
        )*
    };
}
conversions! {
    datarep_conversion_function c_int;
    datarep_conversion_function_c raw::Count;
}
