//! The user's callback functions. Only this file turns addresses from C into functions that the library can
//! call.
//!
//! A callback arrives as an address, which may be null or a sentinel (`MPI_X_NULL_COPY_FN`, `MPI_X_DUP_FN`).
//! The constructors here first compare the address with null and the sentinels, and the library calls only an
//! address that equals none of them. Handles, codes and statuses go through `front.rs`, because a program may have another
//! ABI. An exception that leaves a callback ends the process with one line.

use crate::front;
use crate::lifecycle;
use crate::raw::{self, Callback};
use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::io::Write;
use typepack::engine::attention;

const CONVERSION: &str = "a conversion function of a data representation";

/// Calls a function of the user. If an exception leaves the function, ends the process with one line that says so: the
/// code of this library between the function and the program cannot be left in this way.
#[inline(always)]
fn guarded<R>(what: &'static str, call: impl FnOnce() -> R) -> R {
    struct Left(&'static str);
    impl Drop for Left {
        #[cold]
        fn drop(&mut self) {
            let who = lifecycle::who();
            let line = format!(
                "typepack: {who}an exception has left {}; no exception may leave a function that MPI calls\n",
                self.0
            );
            // If standard error is closed, there is nobody to tell.
            let _unseen = std::io::stderr().write_all(line.as_bytes());
            std::process::abort();
        }
    }
    let left = Left(what);
    let result = call();
    std::mem::forget(left);
    result
}

thread_local! {
    /// The number of functions of the user that this thread is in, and in which not every call is allowed.
    static RESTRICTED: Cell<u32> = const { Cell::new(0) };
}

/// Returns whether the calling thread is in a function of the user from which not every call may be made: that of an
/// operation, of a generalized request, of attributes, or of a data representation. The functions of tools for events
/// promise nothing (`MPI_T_CB_REQUIRE_NONE`), so none is called there.
fn is_restricted() -> bool {
    RESTRICTED.with(|restricted| restricted.get() > 0)
}

/// Calls the functions of tools for the events that wait, unless this thread is in a function of the user from which not
/// every call may be made. The caller holds no lock.
#[inline]
pub fn deliver() {
    if attention::is_for(attention::EVENTS) && !is_restricted() {
        typepack::tools::deliver();
    }
}

/// Calls a function of the user like [`guarded`], from which not every call may be made.
#[inline(always)]
fn restricted<R>(what: &'static str, call: impl FnOnce() -> R) -> R {
    RESTRICTED.with(|restricted| restricted.set(restricted.get() + 1));
    let result = guarded(what, call);
    RESTRICTED.with(|restricted| restricted.set(restricted.get() - 1));
    result
}

/// An error handler of the user. The error handlers of communicators, files, windows and sessions all have
/// the same form: their first argument is a pointer to the handle of the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorFunction(Callback);

// SAFETY: the value is the address of code, which any thread may call. The program promises that its error
// handler may run on every thread from which the program calls the library.
unsafe impl Send for ErrorFunction {}
// SAFETY: the address never changes, and the error handler may run on several threads at once (see `Send`).
unsafe impl Sync for ErrorFunction {}

impl ErrorFunction {
    /// Returns the function at `callback`; `None` for a null pointer.
    pub fn new(callback: Callback) -> Option<Self> {
        (!callback.is_null()).then_some(Self(callback))
    }

    /// Calls the function with a pointer to the handle of the object and a pointer to the error code. Returns
    /// the error code, which the function may have changed through its pointer.
    pub fn call(self, handle: usize, code: c_int) -> c_int {
        let (mut handle, mut code) = (front::handle(handle), front::code(code));
        // The function is variadic in C, so the call must have a variadic type, although it passes only two
        // arguments.
        type Function = unsafe extern "C-unwind" fn(*mut usize, *mut c_int, ...);
        // SAFETY: the address is not null (`new`), and error handlers have no sentinels. The program
        // registered the function as an error handler, and error handlers have this type: the first parameter
        // points to a handle, and a handle is as wide as a `usize`.
        let function = unsafe { std::mem::transmute::<Callback, Function>(self.0) };
        // SAFETY: both pointers point to local variables. The program promises that its error handler may be
        // called with a pointer to a handle and a pointer to a code.
        guarded("an error handler", || unsafe { function(&raw mut handle, &raw mut code) });
        front::returned(code)
    }
}

/// How an attribute is copied when its object is duplicated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyFunction {
    /// The attribute is not copied (`MPI_X_NULL_COPY_FN`).
    Nothing,
    /// The value is copied as it is (`MPI_X_DUP_FN`).
    Same,
    /// The user's function decides whether the attribute is copied, and returns the copied value.
    User(UserCopy),
}

/// The user's copy function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UserCopy(Callback);

// SAFETY: the value is the address of code, and the program promises that its copy function may run on each
// thread that duplicates an object.
unsafe impl Send for UserCopy {}
// SAFETY: the value is an address that never changes, and the copy function may run on several threads at
// once (see `Send`).
unsafe impl Sync for UserCopy {}

impl CopyFunction {
    /// Returns the function or the predefined behaviour that `callback` stands for.
    pub fn new(callback: Callback) -> Self {
        match callback as usize {
            crate::abi::COMM_NULL_COPY_FN => Self::Nothing,
            crate::abi::COMM_DUP_FN => Self::Same,
            _ => Self::User(UserCopy(callback)),
        }
    }
}

impl UserCopy {
    /// Calls the copy function. Returns the value for the duplicate, or `None` if the attribute is not to be
    /// copied.
    ///
    /// # Errors
    /// Returns the code that the function returned, if the code is not 0.
    pub fn call(
        self,
        handle: usize,
        keyval: c_int,
        extra: *mut c_void,
        value: *mut c_void,
    ) -> Result<Option<*mut c_void>, c_int> {
        type Function = unsafe extern "C-unwind" fn(
            usize,
            c_int,
            *mut c_void,
            *mut c_void,
            *mut c_void,
            *mut c_int,
        ) -> c_int;
        let (mut copy, mut flag) = (std::ptr::null_mut::<c_void>(), 0);
        let handle = front::handle(handle);
        // SAFETY: `CopyFunction::new` has checked that the address is not a sentinel, and null is one of
        // these sentinels. The program registered the function as a copy function, and copy functions have
        // this type: the first parameter is a handle, and a handle is as wide as a `usize`.
        let function = unsafe { std::mem::transmute::<Callback, Function>(self.0) };
        // SAFETY: the pointers for the results point to the local variables `copy` and `flag`. The program
        // promises that its copy function may be called with `extra` and `value`, because the program itself
        // registered these two values.
        let code = restricted("a copy function of an attribute", || unsafe {
            function(handle, keyval, extra, value, (&raw mut copy).cast(), &raw mut flag)
        });
        if code != 0 {
            return Err(front::returned(code));
        }
        Ok((flag != 0).then_some(copy))
    }
}

/// The function that the library calls when an attribute is deleted; `None` for `MPI_X_NULL_DELETE_FN`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeleteFunction(Option<Callback>);

// SAFETY: the value is the address of code, and the program promises that its delete function may run on each
// thread that deletes an attribute.
unsafe impl Send for DeleteFunction {}
// SAFETY: the address never changes, and the delete function may run on several threads at once (see
// `Send`).
unsafe impl Sync for DeleteFunction {}

impl DeleteFunction {
    /// Returns the function or the predefined behaviour that `callback` stands for.
    pub fn new(callback: Callback) -> Self {
        Self((callback as usize != crate::abi::COMM_NULL_DELETE_FN).then_some(callback))
    }

    /// Calls the delete function, if the key has one.
    ///
    /// # Errors
    /// Returns the code that the function returned, if the code is not 0.
    pub fn call(
        self,
        handle: usize,
        keyval: c_int,
        value: *mut c_void,
        extra: *mut c_void,
    ) -> Result<(), c_int> {
        type Function =
            unsafe extern "C-unwind" fn(usize, c_int, *mut c_void, *mut c_void) -> c_int;
        let Some(callback) = self.0 else { return Ok(()) };
        let handle = front::handle(handle);
        // SAFETY: `new` has checked that the address is not the sentinel, which is null. The program
        // registered the function as a delete function, and delete functions have this type: the first
        // parameter is a handle, and a handle is as wide as a `usize`.
        let function = unsafe { std::mem::transmute::<Callback, Function>(callback) };
        // SAFETY: the program promises that its delete function may be called with `value` and `extra`,
        // because the program itself registered these two values.
        let call = || unsafe { function(handle, keyval, value, extra) };
        match restricted("a delete function of an attribute", call) {
            0 => Ok(()),
            code => Err(front::returned(code)),
        }
    }
}

/// The user's functions of a generalized request, and the pointer that the library passes to them.
#[derive(Clone, Copy, Debug)]
pub struct Generalized {
    query: Callback,
    free: Callback,
    cancel: Callback,
    extra: *mut c_void,
}

// SAFETY: the program promises that its functions may run on each thread that completes the request. The
// library never reads the memory at `extra`; only these functions do.
unsafe impl Send for Generalized {}

impl Generalized {
    /// Returns the three functions at the addresses `query`, `free` and `cancel`. The library will pass
    /// `extra` to each of them.
    ///
    /// # Errors
    /// If one of the addresses is null, returns the name of that argument in the standard.
    pub fn new(
        query: Callback,
        free: Callback,
        cancel: Callback,
        extra: *mut c_void,
    ) -> Result<Self, &'static str> {
        let named = [(query, "query_fn"), (free, "free_fn"), (cancel, "cancel_fn")];
        match named.into_iter().find(|(function, _)| function.is_null()) {
            None => Ok(Self { query, free, cancel, extra }),
            Some((_, name)) => Err(name),
        }
    }

    /// Calls the query function, which fills `status`. Returns the code of the function.
    pub fn query(self, status: &mut raw::Status) -> c_int {
        type Function = unsafe extern "C-unwind" fn(*mut c_void, *mut raw::Status) -> c_int;
        // SAFETY: the address is not null (`new`), and query functions have no sentinels. The program
        // registered the function as a query function, and query functions have this type.
        let function = unsafe { std::mem::transmute::<Callback, Function>(self.query) };
        let query = |status| {
            restricted("the query function of a request", || {
                // SAFETY: `status` comes from a mutable reference, so the query function may write the status. The
                // program promises that its query function may be called with `extra`.
                unsafe { function(self.extra, status) }
            })
        };
        front::returned(front::with_status(status, query))
    }

    /// Calls the free function, for a request that is being freed. Returns the function's return code.
    pub fn free(self) -> c_int {
        type Function = unsafe extern "C-unwind" fn(*mut c_void) -> c_int;
        // SAFETY: the address is not null (`new`), and free functions have no sentinels. The program
        // registered the function as a free function, and free functions have this type.
        let function = unsafe { std::mem::transmute::<Callback, Function>(self.free) };
        // SAFETY: the program promises that its free function may be called with `extra`.
        let code = restricted("the free function of a request", || unsafe { function(self.extra) });
        front::returned(code)
    }

    /// Calls the cancel function and tells it whether the request is complete. Returns the code of the
    /// function.
    pub fn cancel(self, complete: bool) -> c_int {
        type Function = unsafe extern "C-unwind" fn(*mut c_void, c_int) -> c_int;
        // SAFETY: the address is not null (`new`), and cancel functions have no sentinels. The program
        // registered the function as a cancel function, and cancel functions have this type.
        let function = unsafe { std::mem::transmute::<Callback, Function>(self.cancel) };
        // SAFETY: the program promises that its cancel function may be called with `extra` and a flag.
        let call = || unsafe { function(self.extra, complete.into()) };
        front::returned(restricted("the cancel function of a request", call))
    }
}

/// The function of a user's reduction operation.
#[derive(Clone, Copy, Debug)]
pub struct UserReduction {
    function: Callback,
    /// True if the function takes a pointer to an `MPI_Count`, and false if it takes a pointer to a C integer.
    large: bool,
}

// SAFETY: the value is the address of code, and the program promises that its function may run on each thread that
// waits for an operation or tests it.
unsafe impl Send for UserReduction {}
// SAFETY: the address never changes, and the function may run on several threads at once (see `Send`).
unsafe impl Sync for UserReduction {}

impl UserReduction {
    /// Returns the function at `callback`, which takes its count as a C integer; `None` for a null pointer.
    pub fn new(callback: Callback) -> Option<Self> {
        (!callback.is_null()).then_some(Self { function: callback, large: false })
    }

    /// Returns the function at `callback`, which takes its count as an `MPI_Count`; `None` for a null pointer.
    pub fn new_large(callback: Callback) -> Option<Self> {
        (!callback.is_null()).then_some(Self { function: callback, large: true })
    }

    /// Combines two vectors of `elements` elements of `datatype`, which lie `extent` bytes apart: `upper[i] =
    /// lower[i] op upper[i]`. `lower` and `upper` are the addresses of displacement 0 of the first elements.
    pub fn call(
        self,
        lower: *const u8,
        upper: *mut u8,
        elements: u64,
        extent: isize,
        datatype: raw::Datatype,
    ) {
        type Int =
            unsafe extern "C-unwind" fn(*mut c_void, *mut c_void, *mut c_int, *mut raw::Datatype);
        type Large = unsafe extern "C-unwind" fn(
            *mut c_void,
            *mut c_void,
            *mut raw::Count,
            *mut raw::Datatype,
        );
        let most = if self.large { i64::MAX as u64 } else { c_int::MAX as u64 };
        let mut done = 0;
        while done < elements {
            let part = (elements - done).min(most);
            // The elements lie in memory, so their displacements fit in an address.
            let offset = (done as isize).wrapping_mul(extent);
            let input = lower.wrapping_offset(offset).cast_mut().cast::<c_void>();
            let result = upper.wrapping_offset(offset).cast::<c_void>();
            // The function gets pointers to copies of the count and the handle, so it cannot change the originals.
            let mut datatype = raw::Datatype(front::handle(datatype.0));
            if self.large {
                let mut count = part as raw::Count;
                // SAFETY: the address is not null (`new_large`), and functions of operations have no sentinels.
                // The program registered the function by `MPI_Op_create_c`, so the function has this type.
                let function = unsafe { std::mem::transmute::<Callback, Large>(self.function) };
                // SAFETY: the program promises that its function may be called with two vectors of the elements
                // that a reduction of this datatype passes. The last two pointers point to local variables.
                let call = || unsafe { function(input, result, &raw mut count, &raw mut datatype) };
                restricted("the function of an operation", call);
            } else {
                let mut count = part as c_int;
                // SAFETY: the address is not null (`new`), and functions of operations have no sentinels. The
                // program registered the function by `MPI_Op_create`, so the function has this type.
                let function = unsafe { std::mem::transmute::<Callback, Int>(self.function) };
                // SAFETY: the program promises that its function may be called with the two vectors of a
                // reduction of this datatype. The count and the handle are local variables.
                let call = || unsafe { function(input, result, &raw mut count, &raw mut datatype) };
                restricted("the function of an operation", call);
            }
            done += part;
        }
    }
}

/// A function of a tool for events, with the pointer that the tool gets back.
#[derive(Clone, Copy, Debug)]
pub struct EventHappened(Callback, *mut c_void);

// SAFETY: the value has the address of code, and the tool promises that its function may run on each thread that calls
// the library. The library never reads the memory at the other address.
unsafe impl Send for EventHappened {}
// SAFETY: the addresses never change, and the library makes one call at a time (`typepack::tools::deliver`).
unsafe impl Sync for EventHappened {}

impl EventHappened {
    /// Returns the function at `callback`; `None` for a null pointer.
    pub fn new(callback: Callback, data: *mut c_void) -> Option<Self> {
        (!callback.is_null()).then_some(Self(callback, data))
    }

    /// Calls the function with the handles of the event and of the registration.
    pub fn call(self, instance: u64, registration: u64) {
        type Function = unsafe extern "C-unwind" fn(usize, usize, c_int, *mut c_void);
        // SAFETY: the address is not null (`new`), and functions for events have no sentinels. The tool registered the
        // function by `MPI_T_event_register_callback`, so it has this type: a handle is as wide as a `usize`, and a
        // safety level as a C integer.
        let function = unsafe { std::mem::transmute::<Callback, Function>(self.0) };
        let level = crate::abi::T_CB_REQUIRE_NONE;
        // SAFETY: the tool promises that its function may be called for events with the pointer that it has registered.
        let call = || unsafe { function(instance as usize, registration as usize, level, self.1) };
        guarded("a function for events", call);
    }
}

/// A function of a tool for events that have been lost.
#[derive(Clone, Copy, Debug)]
pub struct Dropped(Callback);

// SAFETY: the value is the address of code, and the tool promises that its function may run on each thread that calls
// the library.
unsafe impl Send for Dropped {}
// SAFETY: the address never changes, and the library makes one call at a time (`typepack::tools::deliver`).
unsafe impl Sync for Dropped {}

impl Dropped {
    /// Returns the function at `callback`; `None` for a null pointer.
    pub fn new(callback: Callback) -> Option<Self> {
        (!callback.is_null()).then_some(Self(callback))
    }

    /// Calls the function with the number of lost events, the handle of the registration, and the address that the tool
    /// gets back.
    pub fn call(self, count: u64, registration: u64, data: usize) {
        type Function = unsafe extern "C-unwind" fn(i64, usize, c_int, c_int, *mut c_void);
        // SAFETY: the address is not null (`new`), and such functions have no sentinels. The tool registered the function
        // by `MPI_T_event_set_dropped_handler`, so it has this type, in which a handle is as wide as a `usize`.
        let function = unsafe { std::mem::transmute::<Callback, Function>(self.0) };
        let (count, level) = (count as i64, crate::abi::T_CB_REQUIRE_NONE);
        let data = std::ptr::with_exposed_provenance_mut::<c_void>(data);
        // SAFETY: the tool promises that its function may be called with the pointer that it has registered for the
        // events. The source of all events has the index 0.
        let call = || unsafe { function(count, registration as usize, 0, level, data) };
        guarded("a function for lost events", call);
    }
}

/// A function of a tool that is called when a registration has ended, with the pointer that the tool gets back.
#[derive(Clone, Copy, Debug)]
pub struct EventFreed(Callback, *mut c_void);

// SAFETY: the value has the address of code, and the tool promises that its function may run on each thread that calls
// the library. The library never reads the memory at the other address.
unsafe impl Send for EventFreed {}

impl EventFreed {
    /// Returns the function at `callback`; `None` for a null pointer.
    pub fn new(callback: Callback, data: *mut c_void) -> Option<Self> {
        (!callback.is_null()).then_some(Self(callback, data))
    }

    /// Calls the function with the handle of the registration.
    pub fn call(self, registration: u64) {
        type Function = unsafe extern "C-unwind" fn(usize, c_int, *mut c_void);
        // SAFETY: the address is not null (`new`), and such functions have no sentinels. The tool passed the function to
        // `MPI_T_event_handle_free`, so it has this type.
        let function = unsafe { std::mem::transmute::<Callback, Function>(self.0) };
        let level = crate::abi::T_CB_REQUIRE_NONE;
        // SAFETY: the tool promises that its function may be called with the pointer that it has passed.
        let call = || unsafe { function(registration as usize, level, self.1) };
        guarded("a function for the end of a registration", call);
    }
}

/// The user's functions of a data representation, and the pointer that the library passes to them.
#[derive(Clone, Copy, Debug)]
pub struct Datarep {
    convert: Option<Callback>,
    extra: *mut c_void,
}

// SAFETY: the program promises that its functions may run on each thread that calls the library. The library never
// reads the memory at `extra`; only these functions do.
unsafe impl Send for Datarep {}
// SAFETY: the addresses never change, and the functions may run on several threads at once (see `Send`).
unsafe impl Sync for Datarep {}

impl Datarep {
    /// Returns the function at `callback` with the pointer `extra`. If `callback` is `MPI_CONVERSION_FN_NULL`, the
    /// result has no function. This sentinel is the null pointer.
    pub fn new(callback: Callback, extra: *mut c_void) -> Self {
        let null = callback as usize == crate::abi::CONVERSION_FN_NULL;
        Self { convert: (!null).then_some(callback), extra }
    }

    /// Returns whether there is a function.
    pub fn is_some(self) -> bool {
        self.convert.is_some()
    }

    /// Calls the function as a conversion function. It gets `count` as an `MPI_Count` if `large` is true, and as a C
    /// integer otherwise. Returns the function's return code, or `None` if there is no function.
    pub fn convert(
        self,
        large: bool,
        memory: *mut c_void,
        datatype: raw::Datatype,
        count: i64,
        file: *mut c_void,
        position: i64,
    ) -> Option<c_int> {
        type Large = unsafe extern "C-unwind" fn(
            *mut c_void,
            raw::Datatype,
            i64,
            *mut c_void,
            i64,
            *mut c_void,
        ) -> c_int;
        type Int = unsafe extern "C-unwind" fn(
            *mut c_void,
            raw::Datatype,
            c_int,
            *mut c_void,
            i64,
            *mut c_void,
        ) -> c_int;
        let callback = self.convert?;
        let datatype = raw::Datatype(front::handle(datatype.0));
        if large {
            // SAFETY: the address is not the sentinel (`new`). The program registered the function by
            // `MPI_Register_datarep_c`, so the function has this type.
            let function = unsafe { std::mem::transmute::<Callback, Large>(callback) };
            // SAFETY: the program promises that its function may be called with elements of `datatype` in memory,
            // with a buffer for their form in the file, and with `extra`.
            let call = || unsafe { function(memory, datatype, count, file, position, self.extra) };
            return Some(front::returned(restricted(CONVERSION, call)));
        }
        // SAFETY: the address is not the sentinel (`new`). The program registered the function by
        // `MPI_Register_datarep`, so the function has this type.
        let function = unsafe { std::mem::transmute::<Callback, Int>(callback) };
        let count = c_int::try_from(count).unwrap_or(c_int::MAX);
        // SAFETY: the program promises that its function may be called with elements of `datatype` in memory, with
        // a buffer for their form in the file, and with `extra`.
        let call = || unsafe { function(memory, datatype, count, file, position, self.extra) };
        Some(front::returned(restricted(CONVERSION, call)))
    }

    /// Calls the function as an extent function. Returns the extent in bytes that the function reports for `datatype`
    /// in the file; 0 if there is no function.
    ///
    /// # Errors
    /// Returns the code that the function returned, if the code is not 0.
    pub fn extent(self, datatype: raw::Datatype) -> Result<isize, c_int> {
        type Function =
            unsafe extern "C-unwind" fn(raw::Datatype, *mut isize, *mut c_void) -> c_int;
        let Some(callback) = self.convert else { return Ok(0) };
        let datatype = raw::Datatype(front::handle(datatype.0));
        let mut extent = 0;
        // SAFETY: the address is not null (`new`). The program registered the function as an extent function,
        // and extent functions have this type.
        let function = unsafe { std::mem::transmute::<Callback, Function>(callback) };
        // SAFETY: the pointer points to the local variable `extent`. The program promises that its function may
        // be called with `extra`.
        let call = || unsafe { function(datatype, &raw mut extent, self.extra) };
        match restricted("the extent function of a data representation", call) {
            0 => Ok(extent),
            code => Err(front::returned(code)),
        }
    }
}

/// The moments of a request at which an attached function is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Moment {
    /// The operation of a persistent request is about to start.
    Start = 0,
    /// The operation is complete, and nobody has been told its status.
    Complete = 1,
    /// The request ends. This is the last call.
    End = 2,
}

/// A function that `libmpifort_abi.so.1` has attached to a request, and the pointer that the library passes to it.
#[derive(Debug)]
pub struct Attached {
    function: Callback,
    state: *mut c_void,
}

// SAFETY: the Fortran library promises that its function may be called with `state` on each thread. This library never
// reads the memory at `state`.
unsafe impl Send for Attached {}
// SAFETY: the addresses never change, and the function may run on several threads at once (see `Send`).
unsafe impl Sync for Attached {}

impl Attached {
    /// Returns the function at `function` with the pointer `state`; `None` for a null pointer.
    pub fn new(function: Callback, state: *mut c_void) -> Option<Self> {
        (!function.is_null()).then_some(Self { function, state })
    }

    /// Calls the function.
    pub fn call(&self, moment: Moment) {
        type Function = unsafe extern "C-unwind" fn(*mut c_void, c_int);
        // SAFETY: the address is not null (`new`), and attached functions have no sentinels. The Fortran library has
        // attached the function, and attached functions have this type.
        let function = unsafe { std::mem::transmute::<Callback, Function>(self.function) };
        // SAFETY: the Fortran library promises that its function may be called with `state` until the moment `End`,
        // which only `drop` passes.
        let call = || unsafe { function(self.state, moment as c_int) };
        guarded("a function of the Fortran library", call);
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        self.call(Moment::End);
    }
}

// The code above compares addresses only with the sentinels of communicators. This is correct because the
// sentinels of datatypes, of windows and of MPI-1 have the same values.
const _: () = {
    use crate::abi::*;
    assert!(TYPE_NULL_COPY_FN == COMM_NULL_COPY_FN && WIN_NULL_COPY_FN == COMM_NULL_COPY_FN);
    assert!(TYPE_DUP_FN == COMM_DUP_FN && WIN_DUP_FN == COMM_DUP_FN && DUP_FN == COMM_DUP_FN);
    assert!(TYPE_NULL_DELETE_FN == COMM_NULL_DELETE_FN && NULL_COPY_FN == COMM_NULL_COPY_FN);
    assert!(WIN_NULL_DELETE_FN == COMM_NULL_DELETE_FN && NULL_DELETE_FN == COMM_NULL_DELETE_FN);
    assert!(size_of::<raw::Comm>() == size_of::<usize>());
};
