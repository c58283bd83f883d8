//! What another library of typepack needs of this one: `libmpi.so.12` (`runtime/mpich`), which gives programs the functions
//! and values of MPICH's ABI.
//!
//! That library calls the functions here through a table (`entries.rs`). The program's own functions, which this library
//! calls (`callback.rs`), see values of the other ABI. The conversions here make them, and do nothing for a program of
//! the standard ABI.

use crate::abi;
use crate::handle;
use crate::raw;
use std::ffi::{c_char, c_double, c_int, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

include!(concat!(env!("OUT_DIR"), "/declaration.rs"));

/// The conversions of the other library; null if there is none.
static FRONT: AtomicPtr<Front> = AtomicPtr::new(std::ptr::null_mut());

/// Tells this library about the other one.
///
/// # Safety
///
/// - `front` lives as long as the process, and its functions do what their descriptions say.
pub unsafe extern "C" fn begin(front: *const Front) {
    // The other ABI's handles are integers of 32 bits.
    handle::make_narrow();
    FRONT.store(front.cast_mut(), Ordering::Release);
}

#[inline]
fn front() -> Option<&'static Front> {
    // SAFETY: the address is null, or that of a value that lives as long as the process (`begin`).
    unsafe { FRONT.load(Ordering::Acquire).as_ref() }
}

/// Returns the handle that the program's function gets.
#[inline]
pub fn handle(handle: usize) -> usize {
    front().map_or(handle, |front| (front.handle)(handle))
}

/// Returns the error code that the program's function gets.
pub fn code(code: c_int) -> c_int {
    front().map_or(code, |front| (front.theirs)(code))
}

/// Returns the error code of the ABI for one from the program's function.
pub fn returned(code: c_int) -> c_int {
    front().map_or(code, |front| (front.ours)(code))
}

/// Lets the program's function write a status.
pub fn with_status(
    status: &mut raw::Status,
    write: impl FnOnce(*mut raw::Status) -> c_int,
) -> c_int {
    let Some(front) = front() else { return write(status) };
    // SAFETY: the functions convert a status in its place (`begin`).
    unsafe { (front.to_status)(status) };
    let code = write(status);
    // SAFETY: the program's function has got the status in the other form and returns it in that form; the function
    // converts it back in its place (`begin`).
    unsafe { (front.from_status)(status) };
    code
}

/// Returns the number of bytes that the program adds to the size of each message when it computes the size of a buffer.
pub fn overhead() -> u64 {
    front().map_or(abi::BSEND_OVERHEAD as u64, |front| front.overhead)
}

/// Makes the values in the text of an error those of the program.
pub fn show(name: &str, text: &mut String) {
    /// A number of the program may be so much longer than one of the ABI.
    const LONGEST: usize = 12;
    let Some(front) = front() else { return };
    let mut room = vec![0_u8; text.len() * LONGEST];
    // SAFETY: the addresses are those of texts with their lengths, and of so much room (`begin`).
    let length = unsafe {
        let (function, from, to) = (name.as_ptr().cast(), text.as_ptr().cast(), room.as_mut_ptr());
        (front.text)(function, name.len(), from, text.len(), to.cast(), room.len())
    };
    room.truncate(length);
    if let Ok(shown) = String::from_utf8(room) {
        *text = shown;
    }
}
