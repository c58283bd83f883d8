//! The user's functions: the one place where an address from C becomes a function.
//!
//! A callback arrives as an address that may be null or a sentinel (`MPI_X_NULL_COPY_FN`,
//! `MPI_X_DUP_FN`); it is compared with these first, and only what is none of them is called.

use crate::raw::{self, Callback};
use std::ffi::{c_int, c_void};

/// An error handler of the user: all four kinds have this shape, with a pointer to the handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorFunction(Callback);

// SAFETY: an address of code; who registered it with a library that may be called from several
// threads answers for calls from them.
unsafe impl Send for ErrorFunction {}
// SAFETY: as above.
unsafe impl Sync for ErrorFunction {}

impl ErrorFunction {
    /// The function at `callback`; `None` for a null pointer.
    pub fn new(callback: Callback) -> Option<Self> {
        (!callback.is_null()).then_some(Self(callback))
    }

    /// Calls it with the handle of the object and the code; what it leaves there is returned.
    pub fn call(self, handle: usize, code: c_int) -> c_int {
        let (mut handle, mut code) = (handle, code);
        // Variadic in C: a call with two arguments must be made as one.
        type Function = unsafe extern "C" fn(*mut usize, *mut c_int, ...);
        // SAFETY: not null (`new`), and no sentinel exists for error handlers; the user registered
        // it as a function of this type, whose first argument points to a handle, which is as wide
        // as a pointer.
        let function = unsafe { std::mem::transmute::<Callback, Function>(self.0) };
        // SAFETY: both pointers are to locals; the function is the user's promise.
        unsafe { function(&raw mut handle, &raw mut code) };
        code
    }
}

/// How an attribute is copied when its object is duplicated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyFunction {
    /// Not at all (`MPI_X_NULL_COPY_FN`).
    Nothing,
    /// As it is (`MPI_X_DUP_FN`).
    Same,
    /// As the user's function says.
    User(UserCopy),
}

/// The user's copy function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UserCopy(Callback);

// SAFETY: as `ErrorFunction`.
unsafe impl Send for UserCopy {}
// SAFETY: as `ErrorFunction`.
unsafe impl Sync for UserCopy {}

impl CopyFunction {
    /// What `callback` stands for.
    pub fn new(callback: Callback) -> Self {
        match callback as usize {
            crate::abi::COMM_NULL_COPY_FN => Self::Nothing,
            crate::abi::COMM_DUP_FN => Self::Same,
            _ => Self::User(UserCopy(callback)),
        }
    }
}

impl UserCopy {
    /// Calls it: the new value if there is to be one.
    ///
    /// # Errors
    /// The code that the function returned.
    pub fn call(
        self,
        handle: usize,
        keyval: c_int,
        extra: *mut c_void,
        value: *mut c_void,
    ) -> Result<Option<*mut c_void>, c_int> {
        type Function = unsafe extern "C" fn(
            usize,
            c_int,
            *mut c_void,
            *mut c_void,
            *mut c_void,
            *mut c_int,
        ) -> c_int;
        let (mut copy, mut flag) = (std::ptr::null_mut::<c_void>(), 0);
        // SAFETY: neither null nor a sentinel (`CopyFunction::new`); registered as a function of
        // this type, whose first argument is a handle, as wide as a pointer.
        let function = unsafe { std::mem::transmute::<Callback, Function>(self.0) };
        // SAFETY: both results point to locals; the function is the user's promise.
        let code = unsafe {
            function(handle, keyval, extra, value, (&raw mut copy).cast(), &raw mut flag)
        };
        if code != 0 {
            return Err(code);
        }
        Ok((flag != 0).then_some(copy))
    }
}

/// What happens when an attribute is deleted; `None` inside for nothing
/// (`MPI_X_NULL_DELETE_FN`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeleteFunction(Option<Callback>);

// SAFETY: as `ErrorFunction`.
unsafe impl Send for DeleteFunction {}
// SAFETY: as `ErrorFunction`.
unsafe impl Sync for DeleteFunction {}

impl DeleteFunction {
    /// What `callback` stands for.
    pub fn new(callback: Callback) -> Self {
        Self((callback as usize != crate::abi::COMM_NULL_DELETE_FN).then_some(callback))
    }

    /// Calls it.
    ///
    /// # Errors
    /// The code that the function returned.
    pub fn call(
        self,
        handle: usize,
        keyval: c_int,
        value: *mut c_void,
        extra: *mut c_void,
    ) -> Result<(), c_int> {
        type Function = unsafe extern "C" fn(usize, c_int, *mut c_void, *mut c_void) -> c_int;
        let Some(callback) = self.0 else { return Ok(()) };
        // SAFETY: neither null nor a sentinel (`new`); registered as a function of this type, whose
        // first argument is a handle, as wide as a pointer.
        let function = unsafe { std::mem::transmute::<Callback, Function>(callback) };
        // SAFETY: the function is the user's promise.
        match unsafe { function(handle, keyval, value, extra) } {
            0 => Ok(()),
            code => Err(code),
        }
    }
}

/// The user's functions of a generalized request, and the address that they are called with.
#[derive(Clone, Copy, Debug)]
pub struct Generalized {
    query: Callback,
    free: Callback,
    cancel: Callback,
    extra: *mut c_void,
}

// SAFETY: as `ErrorFunction`; the address is the functions' own business.
unsafe impl Send for Generalized {}

impl Generalized {
    /// The functions at these addresses; `None` if one of them is null.
    pub fn new(
        query: Callback,
        free: Callback,
        cancel: Callback,
        extra: *mut c_void,
    ) -> Option<Self> {
        let all = !query.is_null() && !free.is_null() && !cancel.is_null();
        all.then_some(Self { query, free, cancel, extra })
    }

    /// Asks for the status; the code that the function returned.
    pub fn query(self, status: &mut raw::Status) -> c_int {
        type Function = unsafe extern "C" fn(*mut c_void, *mut raw::Status) -> c_int;
        // SAFETY: not null (`new`), and no sentinel exists for these; the user registered it as a
        // function of this type.
        let function = unsafe { std::mem::transmute::<Callback, Function>(self.query) };
        // SAFETY: the status is a reference; the function is the user's promise.
        unsafe { function(self.extra, status) }
    }

    /// Says that the request is gone; the code that the function returned.
    pub fn free(self) -> c_int {
        type Function = unsafe extern "C" fn(*mut c_void) -> c_int;
        // SAFETY: as in `query`.
        let function = unsafe { std::mem::transmute::<Callback, Function>(self.free) };
        // SAFETY: the function is the user's promise.
        unsafe { function(self.extra) }
    }

    /// Says that the request is to be cancelled; the code that the function returned.
    pub fn cancel(self, complete: bool) -> c_int {
        type Function = unsafe extern "C" fn(*mut c_void, c_int) -> c_int;
        // SAFETY: as in `query`.
        let function = unsafe { std::mem::transmute::<Callback, Function>(self.cancel) };
        // SAFETY: the function is the user's promise.
        unsafe { function(self.extra, complete.into()) }
    }
}

// The sentinels of the three kinds of objects are the same numbers, as are those of MPI-1.
const _: () = {
    use crate::abi::*;
    assert!(TYPE_NULL_COPY_FN == COMM_NULL_COPY_FN && WIN_NULL_COPY_FN == COMM_NULL_COPY_FN);
    assert!(TYPE_DUP_FN == COMM_DUP_FN && WIN_DUP_FN == COMM_DUP_FN && DUP_FN == COMM_DUP_FN);
    assert!(TYPE_NULL_DELETE_FN == COMM_NULL_DELETE_FN && NULL_COPY_FN == COMM_NULL_COPY_FN);
    assert!(WIN_NULL_DELETE_FN == COMM_NULL_DELETE_FN && NULL_DELETE_FN == COMM_NULL_DELETE_FN);
    assert!(size_of::<raw::Comm>() == size_of::<usize>());
};
