//! The entry of every call: whether the library takes part, and panics.

use crate::host::{Next, next};
use crate::say::print;
use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use typepack_capi_datatype::{abi, raw};

/// True from the end of init to finalize, if the library takes part.
static ACTIVE: AtomicBool = AtomicBool::new(false);

/// Returns true if the library takes part.
#[inline(always)]
pub fn is_active() -> bool {
    ACTIVE.load(Ordering::Relaxed)
}

/// Returns the address of the byte that tells whether the library takes part. A shim reads this byte in each call.
pub fn flag() -> *const u8 {
    ACTIVE.as_ptr().cast()
}

/// True if the program has made an error handler of its own.
static HANDLERS: AtomicBool = AtomicBool::new(false);

/// The program makes an error handler.
pub fn handle() {
    HANDLERS.store(true, Ordering::Relaxed);
}

/// Returns whether the program may have an error handler that returns from an error. MPICH 5.0.2 returns no error from a
/// call then.
pub fn has_handlers() -> bool {
    HANDLERS.load(Ordering::Relaxed)
}

/// True if this process may reach ranks that are not interposed.
static MIXED: AtomicBool = AtomicBool::new(true);

/// True if the ranks of the world have agreed at the end of init that all are interposed.
static AGREED: AtomicBool = AtomicBool::new(false);

/// Returns whether the ranks of the world have agreed that all are interposed.
pub fn is_agreed() -> bool {
    AGREED.load(Ordering::Relaxed)
}

/// Sets that the ranks of the world have agreed that all are interposed.
pub fn set_agreed() {
    AGREED.store(true, Ordering::Relaxed);
}

/// Returns whether this process may reach ranks that are not interposed.
pub fn is_mixed() -> bool {
    MIXED.load(Ordering::Relaxed)
}

/// Sets whether this process may reach ranks that are not interposed.
pub fn set_mixed(mixed: bool) {
    MIXED.store(mixed, Ordering::Relaxed);
}

/// Sets whether the library takes part.
pub fn set_active(active: bool) {
    ACTIVE.store(active, Ordering::SeqCst);
}

/// Does a call if the library takes part. Returns `None` if the host must do the call.
#[inline(always)]
pub fn active(name: &'static str, work: impl FnOnce() -> Option<c_int>) -> Option<c_int> {
    if is_active() { always(name, work) } else { None }
}

/// Does a call. Returns `None` if the host must do the call. A panic does not cross into C: the call
/// fails with `MPI_ERR_INTERN`.
#[inline(always)]
pub fn always(name: &'static str, work: impl FnOnce() -> Option<c_int>) -> Option<c_int> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| Some(bug(name)))
}

#[cold]
fn bug(name: &'static str) -> c_int {
    print(&format!("typepack bug in {name}; the message of the panic is above"));
    if is_active() { internal(next()) } else { abi::ERR_INTERN }
}

/// Raises `MPI_ERR_INTERN` with the error handler of `MPI_COMM_SELF`, which gets the errors that belong to no handle
/// (MPI-5.0 section 9.3). Returns the class.
#[cold]
pub fn internal(next: &Next) -> c_int {
    // SAFETY: the communicator and the class are constants of the ABI, and MPI is initialised.
    unsafe { next.PMPI_Comm_call_errhandler(raw::Comm(abi::COMM_SELF), abi::ERR_INTERN) };
    abi::ERR_INTERN
}

/// Returns the class of an error code of the host.
pub fn class(next: &Next, code: c_int) -> c_int {
    let mut class = abi::ERR_UNKNOWN;
    // SAFETY: `class` is writable. The host checks the code.
    unsafe { next.PMPI_Error_class(code, &mut class) };
    class
}
