//! Strings: Fortran pads them with blanks, C ends them with a NUL.

use crate::sentinel;
use smallvec::SmallVec;
use std::ffi::{c_char, c_int, c_void};

/// Returns the bytes of a Fortran string without the blanks at its end.
///
/// # Safety
///
/// - `text` is the address of `length` bytes that nobody changes while the result lives.
unsafe fn trimmed<'a>(text: *const c_char, length: usize) -> &'a [u8] {
    if text.is_null() || length == 0 {
        return &[];
    }
    // SAFETY: the bytes are there (`# Safety`).
    let bytes = unsafe { std::slice::from_raw_parts(text.cast::<u8>(), length) };
    &bytes[..bytes.iter().rposition(|byte| *byte != b' ').map_or(0, |last| last + 1)]
}

/// A string for C.
pub struct In(SmallVec<[u8; 128]>);

impl In {
    /// Takes a Fortran string; with `leading`, without the blanks at its beginning.
    ///
    /// # Safety
    ///
    /// - `text` is the address of `length` bytes.
    pub unsafe fn new(text: *const c_char, length: usize, leading: bool) -> Self {
        // SAFETY: the bytes are there (`# Safety`).
        let bytes = unsafe { trimmed(text, length) };
        let bytes = if leading { bytes.trim_ascii_start() } else { bytes };
        let mut own = SmallVec::from_slice(bytes);
        own.push(0);
        Self(own)
    }

    /// Returns the address of the string.
    pub fn as_ptr(&self) -> *const c_char {
        self.0.as_ptr().cast()
    }
}

/// Room for a string that C writes. The first byte tells whether C has written.
pub struct Out(SmallVec<[u8; 1024]>);

/// No string begins with this byte.
const UNWRITTEN: u8 = 0xff;

impl Out {
    /// Returns room for `room` bytes, at least for one.
    pub fn new(room: c_int) -> Self {
        let room = usize::try_from(room).unwrap_or(0).max(1);
        let mut bytes = SmallVec::from_elem(0, room);
        bytes[0] = UNWRITTEN;
        Self(bytes)
    }

    /// Returns the address of the room.
    pub fn as_mut_ptr(&mut self) -> *mut c_char {
        self.0.as_mut_ptr().cast()
    }

    /// Copies the string to Fortran, if the call succeeded and has written it. What does not fit is cut off.
    ///
    /// # Safety
    ///
    /// - `text` is the address of `length` bytes.
    pub unsafe fn give(&self, code: c_int, text: *mut c_char, length: usize) {
        if code != 0 || self.0[0] == UNWRITTEN || text.is_null() {
            return;
        }
        let end = self.0.iter().position(|byte| *byte == 0).unwrap_or(self.0.len());
        let kept = end.min(length);
        // SAFETY: the bytes are there (`# Safety`), and at most `length` are written.
        unsafe {
            std::ptr::copy_nonoverlapping(self.0.as_ptr(), text.cast::<u8>(), kept);
            std::ptr::write_bytes(text.cast::<u8>().add(kept), b' ', length - kept);
        }
    }
}

/// Several strings for C, as an array of addresses or as an array of such arrays.
pub struct Strings {
    /// The strings; their bytes do not move.
    texts: Vec<Vec<u8>>,
    /// The addresses of the strings; each list ends with a null.
    lists: Vec<Vec<*mut c_char>>,
    /// The addresses of the lists, if C wants several.
    rows: Vec<*mut *mut c_char>,
}

impl Strings {
    const NONE: Self = Self { texts: Vec::new(), lists: Vec::new(), rows: Vec::new() };

    /// Takes the string at `place` into the last list. Returns false if the string is blank.
    ///
    /// # Safety
    ///
    /// - `text` is the address of strings of `length` bytes, of which there are more than `place`.
    unsafe fn take(&mut self, text: *const c_char, length: usize, place: usize) -> bool {
        // SAFETY: the bytes are there (`# Safety`).
        let bytes = unsafe { trimmed(text.add(place * length), length) };
        let mut own = bytes.to_vec();
        own.push(0);
        if let Some(list) = self.lists.last_mut() {
            list.push(own.as_mut_ptr().cast());
        }
        self.texts.push(own);
        !bytes.is_empty()
    }

    /// Ends the last list. Its blank last string goes, if it has one.
    fn end(&mut self, blank: bool) {
        if let Some(list) = self.lists.last_mut() {
            if blank {
                list.pop();
            }
            list.push(std::ptr::null_mut());
        }
    }

    /// The arguments of one program, which a blank string ends; or `MPI_ARGV_NULL`.
    ///
    /// # Safety
    ///
    /// - `text` is `MPI_ARGV_NULL`, or the address of strings of `length` bytes, one of which is blank.
    pub unsafe fn argv(text: *mut c_char, length: usize) -> Self {
        let mut strings = Self::NONE;
        if !sentinel::no_arguments(text) {
            strings.lists.push(Vec::new());
            // SAFETY: the strings up to the first blank one are there (`# Safety`).
            let _blank = (0..).find(|place| unsafe { !strings.take(text, length, *place) });
            strings.end(true);
        }
        strings
    }

    /// `number` strings.
    ///
    /// # Safety
    ///
    /// - `text` is the address of `number` strings of `length` bytes.
    pub unsafe fn list(text: *mut c_char, length: usize, number: i64) -> Self {
        let mut strings = Self { lists: vec![Vec::new()], ..Self::NONE };
        for place in 0..usize::try_from(number).unwrap_or(0) {
            // SAFETY: the strings are there (`# Safety`).
            unsafe { strings.take(text, length, place) };
        }
        strings.end(false);
        strings
    }

    /// The arguments of `number` programs, each in a row of a matrix; or `MPI_ARGVS_NULL`.
    ///
    /// # Safety
    ///
    /// - `text` is `MPI_ARGVS_NULL`, or the address of a matrix of strings of `length` bytes with `number` rows. Each
    ///   row contains a blank string.
    pub unsafe fn argvs(text: *mut c_char, length: usize, number: i64) -> Self {
        let mut strings = Self::NONE;
        if !sentinel::no_arguments(text) {
            let number = usize::try_from(number).unwrap_or(0);
            for row in 0..number {
                strings.lists.push(Vec::new());
                // SAFETY: the strings of the row up to the first blank one are there (`# Safety`).
                let _blank =
                    (0..).find(|at| unsafe { !strings.take(text, length, at * number + row) });
                strings.end(true);
            }
            strings.rows = strings.lists.iter_mut().map(Vec::as_mut_ptr).collect();
        }
        strings
    }

    /// Returns the address for C: null if there are no arguments.
    pub fn as_mut_ptr(&mut self) -> *mut c_void {
        match (self.rows.is_empty(), self.lists.first_mut()) {
            (false, _) => self.rows.as_mut_ptr().cast(),
            (true, Some(list)) => list.as_mut_ptr().cast(),
            (true, None) => std::ptr::null_mut(),
        }
    }
}
