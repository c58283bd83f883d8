//! Choice buffers by descriptor (`TYPE(*), DIMENSION(..)`).
//!
//! A buffer that is contiguous is an address, as in C. So is a scalar, an element of an array (rank 0), and an
//! assumed-size array (last extent -1). Any other buffer is an array section: a loop nest with byte strides. Where C
//! takes a count and a datatype, the section becomes one datatype (`shape.rs`). Where the order of the elements cannot
//! be said by one datatype, a blocking call gets a contiguous copy.

use crate::descriptor::Descriptor;
use crate::shape::{self, Made};
use crate::{raw, sentinel};
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

/// A buffer whose elements must be contiguous during a blocking call.
pub struct Whole {
    this: *const Descriptor,
    /// The copy of an array section.
    copy: Option<Vec<u8>>,
    /// True if the call writes.
    writes: bool,
}

impl Whole {
    /// Takes a buffer; an array section is copied. `None` if there is no memory for the copy.
    ///
    /// # Safety
    ///
    /// - The descriptor comes from a Fortran compiler, and lives longer than the result.
    #[inline(always)]
    pub unsafe fn new(this: *const Descriptor, writes: bool) -> Option<Self> {
        // SAFETY: a Fortran compiler has made the descriptor (`# Safety`).
        unsafe {
            if Descriptor::is_contiguous(this) {
                return Some(Self { this, copy: None, writes });
            }
            Self::copied(this, writes)
        }
    }

    /// The part of [`Whole::new`] for array sections.
    ///
    /// # Safety
    ///
    /// - As for [`Whole::new`].
    #[cold]
    unsafe fn copied(this: *const Descriptor, writes: bool) -> Option<Self> {
        // SAFETY: a Fortran compiler has made the descriptor (`# Safety`).
        let (dimensions, element) = unsafe { (Descriptor::dimensions(this), (*this).element) };
        let bytes =
            usize::try_from(Descriptor::elements(dimensions)?).ok()?.checked_mul(element)?;
        let mut copy = Vec::<u8>::new();
        copy.try_reserve_exact(bytes).ok()?;
        // SAFETY: the copy has room for all elements, and the section has memory for each of them.
        unsafe {
            let to = copy.as_mut_ptr();
            walk(this, |from, at| std::ptr::copy_nonoverlapping(from, to.add(at), element));
            copy.set_len(bytes);
        }
        Some(Self { this, copy: Some(copy), writes })
    }

    /// Returns the address for C.
    pub fn address(&mut self) -> *mut c_void {
        match &mut self.copy {
            // SAFETY: the descriptor comes from a compiler (condition of `new`).
            None => unsafe { base(self.this) },
            Some(copy) => copy.as_mut_ptr().cast(),
        }
    }

    /// Copies the elements back, if the call writes.
    pub fn give_back(&mut self) {
        if let Some(copy) = self.copy.as_ref().filter(|_| self.writes) {
            // SAFETY: the descriptor comes from a compiler (condition of `new`), and the copy has all elements.
            unsafe {
                let element = (*self.this).element;
                let from = copy.as_ptr();
                walk(self.this, |to, at| std::ptr::copy_nonoverlapping(from.add(at), to, element));
            }
        }
    }
}

/// Calls `each` with the address of every element, and with its place in the copy.
///
/// # Safety
///
/// - The descriptor comes from a Fortran compiler, and no extent is negative.
unsafe fn walk(this: *const Descriptor, mut each: impl FnMut(*mut u8, usize)) {
    // SAFETY: a Fortran compiler has made the descriptor (`# Safety`).
    let (dimensions, base, element) =
        unsafe { (Descriptor::dimensions(this), (*this).base, (*this).element) };
    let mut index = [0_isize; 15];
    let (mut offset, mut at) = (0_isize, 0);
    'elements: loop {
        each(base.cast::<u8>().wrapping_offset(offset), at);
        at += element;
        for (dimension, index) in dimensions.iter().zip(&mut index) {
            *index += 1;
            offset += dimension.stride;
            if *index < dimension.extent {
                continue 'elements;
            }
            offset -= dimension.stride * dimension.extent;
            *index = 0;
        }
        return;
    }
}
