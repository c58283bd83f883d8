//! Choice buffers by descriptor (`TYPE(*), DIMENSION(..)`).
//!
//! A buffer that is contiguous is an address, as in C. So is a scalar, an element of an array (rank 0), and an
//! assumed-size array (last extent -1). Any other buffer is an array section: a loop nest with byte strides. Where C
//! takes a count and a datatype, the section becomes one datatype (`shape.rs`). A call that takes several blocks from one
//! buffer, or applies an operation to its elements, gets a copy (`loan.rs`).

use crate::descriptor::Descriptor;
use crate::refusal::quietly;
use crate::shape::{self, Made};
use crate::{layout, raw, sentinel};
use std::ffi::{c_int, c_void};
use std::rc::Rc;

/// A buffer with its count and datatype.
pub struct Part {
    /// The address.
    pub address: *mut c_void,
    /// The number of elements of the datatype.
    pub count: i64,
    /// The datatype.
    pub datatype: raw::Datatype,
    /// What the datatype needs to live through the call.
    _made: Option<Rc<Made>>,
}

impl Part {
    /// Returns the part of a section that cannot be used, for a call that several ranks make, and stores why in `refused`.
    /// The call fails without a look at the buffer (`refusal::together`).
    ///
    /// # Safety
    ///
    /// - The descriptor comes from a Fortran compiler.
    #[cold]
    pub unsafe fn refused(
        this: *const Descriptor,
        count: i64,
        datatype: raw::Datatype,
        (why, refused): (c_int, &mut c_int),
    ) -> Self {
        *refused = why;
        // SAFETY: the program got the descriptor from its compiler (`# Safety`).
        Self { address: unsafe { base(this) }, count, datatype, _made: None }
    }
}

/// Returns a buffer of `count` elements of `datatype` for C.
///
/// # Errors
///
/// Returns the error class: the section has fewer elements than that, or a datatype could not be made.
///
/// # Safety
///
/// - The descriptor comes from a Fortran compiler.
#[inline(always)]
pub unsafe fn typed(
    this: *const Descriptor,
    count: i64,
    datatype: raw::Datatype,
) -> Result<Part, c_int> {
    // SAFETY: the descriptor comes from a compiler (`# Safety`).
    unsafe {
        if Descriptor::is_contiguous(this) {
            let address = sentinel::buffer((*this).base);
            return Ok(Part { address, count, datatype, _made: None });
        }
        section(this, count, datatype)
    }
}

/// The part of [`typed`] for array sections.
///
/// # Safety
///
/// - As for [`typed`].
#[cold]
unsafe fn section(
    this: *const Descriptor,
    count: i64,
    datatype: raw::Datatype,
) -> Result<Part, c_int> {
    // SAFETY: the descriptor comes from a compiler (`# Safety`).
    let (dimensions, base, element) =
        unsafe { (Descriptor::dimensions(this), (*this).base, (*this).element) };
    if count <= 0 || datatype == raw::DATATYPE_NULL {
        // Nothing to transfer, or an error that the call finds itself.
        return Ok(Part { address: base, count, datatype, _made: None });
    }
    let made = shape::of(element, dimensions, count, datatype)?;
    Ok(Part { address: base, count: 1, datatype: made.datatype(), _made: Some(made) })
}

/// Returns the address of contiguous memory; `None` if the buffer is an array section.
///
/// # Safety
///
/// - The descriptor comes from a Fortran compiler.
#[inline(always)]
pub unsafe fn memory(this: *const Descriptor) -> Option<*mut c_void> {
    // SAFETY: the descriptor comes from a compiler (`# Safety`).
    unsafe { Descriptor::is_contiguous(this).then(|| base(this)) }
}

/// Returns the address of one element of a datatype; `None` if it does not lie in the first element of the section.
///
/// # Safety
///
/// - The descriptor comes from a Fortran compiler.
#[inline(always)]
pub unsafe fn one(this: *const Descriptor, datatype: raw::Datatype) -> Option<*mut c_void> {
    // SAFETY: the descriptor comes from a compiler (`# Safety`).
    unsafe {
        let fits = || match quietly(|| layout::bounds(datatype)) {
            Ok(bounds) => bounds.low >= 0 && bounds.high <= (*this).element as i64,
            // The call finds the error.
            Err(_) => true,
        };
        (Descriptor::is_contiguous(this) || fits()).then(|| base(this))
    }
}

/// Returns the address of the first element.
///
/// # Safety
///
/// - The descriptor comes from a Fortran compiler.
#[inline(always)]
pub unsafe fn base(this: *const Descriptor) -> *mut c_void {
    // SAFETY: a Fortran compiler has made the descriptor (`# Safety`).
    sentinel::buffer(unsafe { (*this).base })
}

/// Frees the datatypes that this thread has kept.
pub fn forget() {
    shape::forget();
}

/// A choice buffer in one of its two forms.
pub trait Choice {
    /// Returns its address.
    ///
    /// # Safety
    ///
    /// - A descriptor comes from a Fortran compiler.
    unsafe fn address(self) -> *mut c_void;
}

impl Choice for *mut c_void {
    unsafe fn address(self) -> *mut c_void {
        self
    }
}

impl Choice for *const Descriptor {
    unsafe fn address(self) -> *mut c_void {
        // SAFETY: a Fortran compiler has made the descriptor (`# Safety`).
        unsafe { (*self).base }
    }
}

/// Says whether a choice buffer is `MPI_IN_PLACE`.
///
/// # Safety
///
/// - As for [`Choice::address`].
pub unsafe fn in_place(choice: impl Choice) -> bool {
    // SAFETY: the caller promises this (`# Safety`).
    sentinel::buffer(unsafe { choice.address() }).addr() == 1
}
