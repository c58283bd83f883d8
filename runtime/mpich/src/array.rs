//! Arrays. Those with few entries lie on the stack.

use crate::handle::Handle;
use crate::number::{Pairs, to_ours, to_theirs};
use smallvec::SmallVec;
use std::ffi::c_int;

/// The entries that lie on the stack.
const FEW: usize = 16;

/// An array for one call.
#[derive(Debug)]
pub struct Array<T> {
    entries: SmallVec<[T; FEW]>,
    is_null: bool,
}

/// Returns the length of an array for a count of the program, of which a wrong one stands for none.
#[inline(always)]
pub fn length(number: i64) -> usize {
    usize::try_from(number).unwrap_or(0)
}

impl<T> Array<T> {
    /// Makes an array of `number` entries; `None` for no array, which is null for the call. Returns `None` if there is no
    /// memory.
    #[inline]
    pub fn new(number: Option<usize>, entry: impl Fn(usize) -> T) -> Option<Self> {
        let mut entries = SmallVec::new();
        let (number, is_null) = (number.unwrap_or(0), number.is_none());
        if number > FEW {
            entries.try_reserve_exact(number).ok()?;
        }
        entries.extend((0..number).map(entry));
        Some(Self { entries, is_null })
    }

    /// Returns the entries.
    #[inline]
    pub fn entries(&self) -> &[T] {
        &self.entries
    }

    /// Returns the address for the call.
    #[inline]
    pub fn as_ptr(&self) -> *const T {
        if self.is_null { std::ptr::null() } else { self.entries.as_ptr() }
    }

    /// Returns the address for a call that writes the entries.
    #[inline]
    pub fn as_mut_ptr(&mut self) -> *mut T {
        if self.is_null { std::ptr::null_mut() } else { self.entries.as_mut_ptr() }
    }
}

/// Returns the ABI's handles for an array of the program; `None` if there is no memory.
///
/// # Safety
///
/// - `from` is null, or has `number` handles.
#[inline]
pub unsafe fn handles<H: Handle>(from: *const H::Theirs, number: i64) -> Option<Array<H>> {
    let number = (!from.is_null()).then(|| length(number));
    // SAFETY: the array has so many handles (`# Safety`).
    Array::new(number, |at| H::to_ours(unsafe { from.add(at).read_unaligned() }))
}

/// Handles that a call reads and writes.
#[derive(Debug)]
pub struct Both<H> {
    before: Array<H>,
    after: Array<H>,
}

impl<H> Both<H> {
    /// Returns the address for the call.
    #[inline]
    pub fn as_mut_ptr(&mut self) -> *mut H {
        self.after.as_mut_ptr()
    }
}

/// Returns the ABI's handles for an array of the program that the call writes, too; `None` if there is no memory.
///
/// # Safety
///
/// - `from` is null, or has `number` handles.
#[inline]
pub unsafe fn both<H: Handle>(from: *const H::Theirs, number: i64) -> Option<Both<H>> {
    // SAFETY: the array has so many handles (`# Safety`).
    let before = unsafe { handles::<H>(from, number)? };
    let number = (!from.is_null()).then(|| before.entries().len());
    let after = Array::new(number, |at| before.entries()[at])?;
    Some(Both { before, after })
}

/// Gives the program the handles that a call has changed. Another thread may own the entries of the others.
///
/// # Safety
///
/// - `to` is null, or has as many handles as there are in `handles`.
#[inline]
pub unsafe fn store_changed<H: Handle>(to: *mut H::Theirs, handles: &Both<H>) {
    let all = handles.before.entries().iter().zip(handles.after.entries()).enumerate();
    for (at, (_, new)) in all.filter(|(_, (old, new))| old != new) {
        // SAFETY: the array has so many handles (`# Safety`).
        unsafe { to.add(at).write_unaligned(new.to_theirs()) };
    }
}

/// Returns room for `number` handles that a call writes; `None` if there is no memory.
#[inline]
pub fn handle_room<H: Handle>(to: *const H::Theirs, number: i64) -> Option<Array<H>> {
    Array::new((!to.is_null()).then(|| length(number)), |_| H::NOTHING)
}

/// Gives the program the handles that a call has written or left.
///
/// # Safety
///
/// - `to` is null, or has as many handles as there are in `handles`.
#[inline]
pub unsafe fn store<H: Handle>(to: *mut H::Theirs, handles: &Array<H>) {
    for (at, handle) in handles.entries().iter().enumerate() {
        if *handle != H::NOTHING {
            // SAFETY: the array has so many handles (`# Safety`).
            unsafe { to.add(at).write_unaligned(handle.to_theirs()) };
        }
    }
}

/// Returns the ABI's numbers for an array of the program; `None` if there is no memory.
///
/// # Safety
///
/// - `from` is null, or has `number` numbers.
pub unsafe fn numbers(pairs: &Pairs, from: *const c_int, number: c_int) -> Option<Array<c_int>> {
    let number = (!from.is_null()).then(|| length(number.into()));
    // SAFETY: the array has so many numbers (`# Safety`).
    Array::new(number, |at| to_ours(pairs, unsafe { from.add(at).read_unaligned() }))
}

/// Makes the numbers that a call has written those of the program.
///
/// # Safety
///
/// - `to` is null, or has `number` numbers.
pub unsafe fn numbers_to_theirs(pairs: &Pairs, to: *mut c_int, number: c_int) {
    if to.is_null() {
        return;
    }
    for at in 0..length(number.into()) {
        // SAFETY: the array has so many numbers (`# Safety`).
        unsafe {
            let place = to.add(at);
            place.write_unaligned(to_theirs(pairs, place.read_unaligned()));
        }
    }
}

/// Returns the number behind a pointer, for an array as long as that number says.
///
/// # Safety
///
/// - `number` is null, or the address of a number.
pub unsafe fn room(number: *const c_int) -> i64 {
    // SAFETY: the address is that of a number (`# Safety`) unless it is null.
    if number.is_null() { 0 } else { i64::from(unsafe { number.read_unaligned() }) }
}
