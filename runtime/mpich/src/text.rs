//! Strings that are shorter in MPICH than in the ABI, so that a call cannot write them to the program's memory.

use std::ffi::{c_char, c_int};

/// The longest such string in the ABI, with its zero.
const LONGEST: usize = 1024;

/// A string that a call writes.
#[derive(Debug)]
pub struct Out {
    to: *mut c_char,
    room: usize,
    text: [u8; LONGEST],
}

impl Out {
    /// Returns room for a string. `lengths` has its length in the ABI and in MPICH, with the zero.
    pub fn new(to: *mut c_char, lengths: (i64, i64)) -> Self {
        debug_assert!(lengths.0 <= LONGEST as i64, "room for the longest text");
        Self { to, room: lengths.1 as usize, text: [0; LONGEST] }
    }

    /// Returns the address for the call; null if the program passes null.
    pub fn place(&mut self) -> *mut c_char {
        if self.to.is_null() { std::ptr::null_mut() } else { self.text.as_mut_ptr().cast() }
    }

    /// Gives the program as much of the string as it has room for, if the call has succeeded.
    ///
    /// # Safety
    ///
    /// - The program's address is null, or has the room that MPICH says.
    pub unsafe fn store(&self, code: c_int) {
        if code != 0 || self.to.is_null() {
            return;
        }
        let end = self.text.iter().position(|byte| *byte == 0).unwrap_or(LONGEST);
        let length = end.min(self.room - 1);
        // SAFETY: the program has room for so many characters and a zero (`# Safety`).
        unsafe {
            self.to.cast::<u8>().copy_from_nonoverlapping(self.text.as_ptr(), length);
            self.to.add(length).write(0);
        }
    }
}

/// Makes the length of such a string that of the program's.
///
/// # Safety
///
/// - `length` is null, or the address of a number.
pub unsafe fn clip(length: *mut c_int, lengths: (i64, i64)) {
    if !length.is_null() {
        // SAFETY: the address is that of a number (`# Safety`).
        unsafe { *length = (*length).min(lengths.1 as c_int - 1) };
    }
}
