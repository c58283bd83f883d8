//! C functions that call Fortran functions, for objects without an extra state: operations and error handlers.
//!
//! C tells such a function nothing about its object. So there are 64 C functions of each kind, and each calls the
//! Fortran function in its slot. A Fortran function gets one slot, however many objects are made with it, and keeps it.

use crate::handle::Handle;
use crate::raw;
use std::ffi::{c_int, c_void};
use std::mem::transmute;
use std::sync::atomic::{AtomicPtr, Ordering};

/// The number of slots of each kind.
const SLOTS: usize = 64;

/// The Fortran functions of one kind.
type Functions = [AtomicPtr<c_void>; SLOTS];

/// Returns the slot of a Fortran function; `None` if all slots have other functions.
fn slot(functions: &Functions, function: raw::Callback) -> Option<usize> {
    let function = function.cast_mut();
    functions.iter().position(|slot| {
        let empty = std::ptr::null_mut();
        match slot.compare_exchange(empty, function, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => true,
            Err(taken) => taken == function,
        }
    })
}

/// Returns an array of the functions `$call::<0>` to `$call::<63>`.
macro_rules! all {
    ($call:ident as $kind:ty) => {
        all!($call $kind:
            0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15
            16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31
            32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47
            48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63
        )
    };
    ($call:ident $kind:ty: $($number:literal)*) => { [$($call::<$number> as $kind),*] };
}

macro_rules! operations {
    ($($name:ident $call:ident $count:ty;)*) => {
        $(
            /// Returns the C function for a Fortran function; `None` if there are too many Fortran functions.
            pub fn $name(function: raw::Callback) -> Option<raw::Callback> {
                static FUNCTIONS: Functions = [const { AtomicPtr::new(std::ptr::null_mut()) }; SLOTS];
                type C = unsafe extern "C" fn(*mut c_void, *mut c_void, *mut $count, *mut raw::Datatype);
                type Function = unsafe extern "C" fn(*mut c_void, *mut c_void, *mut $count, *mut c_int);
                unsafe extern "C" fn $call<const S: usize>(
                    from: *mut c_void,
                    to: *mut c_void,
                    count: *mut $count,
                    datatype: *mut raw::Datatype,
                ) {
                    // SAFETY: the slot got its function before C got this one, and C passes what the ABI says.
                    unsafe {
                        let mut handle = (*datatype).to_integer();
                        let call: Function = transmute(FUNCTIONS[S].load(Ordering::Acquire));
                        call(from, to, count, &raw mut handle);
                    }
                }
                static CALLS: [C; SLOTS] = all!($call as C);
                Some(CALLS[slot(&FUNCTIONS, function)?] as raw::Callback)
            }
        )*
    };
}
operations! {
    user_function operation c_int;
    user_function_c large_operation raw::Count;
}

macro_rules! error_handlers {
    ($($name:ident $kind:ident;)*) => {
        $(
            /// Returns the C function for a Fortran function; `None` if there are too many Fortran functions.
            pub fn $name(function: raw::Callback) -> Option<raw::Callback> {
                static FUNCTIONS: Functions = [const { AtomicPtr::new(std::ptr::null_mut()) }; SLOTS];
                type C = unsafe extern "C" fn(*mut raw::$kind, *mut c_int);
                type Function = unsafe extern "C" fn(*mut c_int, *mut c_int);
                unsafe extern "C" fn handler<const S: usize>(object: *mut raw::$kind, code: *mut c_int) {
                    // SAFETY: the slot got its function before C got this one, and C passes what the ABI says.
                    unsafe {
                        let mut handle = (*object).to_integer();
                        let call: Function = transmute(FUNCTIONS[S].load(Ordering::Acquire));
                        call(&raw mut handle, code);
                    }
                }
                static CALLS: [C; SLOTS] = all!(handler as C);
                Some(CALLS[slot(&FUNCTIONS, function)?] as raw::Callback)
            }
        )*
    };
}
error_handlers! {
    comm_errhandler_function Comm;
    file_errhandler_function File;
    win_errhandler_function Win;
    session_errhandler_function Session;
}
