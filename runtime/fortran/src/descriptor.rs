//! The descriptor of an array, as Fortran compilers pass it (`CFI_cdesc_t` of Fortran 2018).

use std::ffi::{c_char, c_int, c_void};

/// One dimension of a descriptor.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dimension {
    /// The lower bound.
    lower: isize,
    /// The number of elements.
    pub extent: isize,
    /// The distance of two elements in bytes.
    pub stride: isize,
}

/// The descriptor that a Fortran compiler passes (`CFI_cdesc_t` of Fortran 2018).
#[repr(C)]
#[derive(Debug)]
pub struct Descriptor {
    /// The address of the first element.
    pub base: *mut c_void,
    /// The number of bytes of an element.
    pub element: usize,
    version: c_int,
    rank: u8,
    attribute: u8,
    kind: i16,
    /// As many as `rank` says.
    dimensions: [Dimension; 15],
}

impl Descriptor {
    /// Returns the number of bytes of an element.
    #[inline(always)]
    pub fn length(&self) -> usize {
        self.element
    }

    /// Returns the address of a string.
    #[inline(always)]
    pub fn text(&self) -> *mut c_char {
        self.base.cast()
    }

    /// Returns the dimensions, the fastest first.
    ///
    /// # Safety
    ///
    /// - The descriptor comes from a Fortran compiler. It has as many dimensions as `rank` says; the memory of the
    ///   others may not exist.
    #[inline(always)]
    pub unsafe fn dimensions<'a>(this: *const Self) -> &'a [Dimension] {
        // SAFETY: the descriptor has so many dimensions (`# Safety`).
        unsafe {
            let first = (&raw const (*this).dimensions).cast::<Dimension>();
            std::slice::from_raw_parts(first, usize::from((*this).rank).min(15))
        }
    }

    /// Says whether the elements follow each other without gaps.
    ///
    /// # Safety
    ///
    /// - As for [`Descriptor::dimensions`].
    #[inline(always)]
    pub unsafe fn is_contiguous(this: *const Self) -> bool {
        // SAFETY: the caller promises this (`# Safety`).
        let (dimensions, element, base) =
            unsafe { (Self::dimensions(this), (*this).element, (*this).base) };
        if base.is_null() {
            // An array that is not allocated, in a call that does not use it. Its bounds say nothing.
            return true;
        }
        let mut next = element.cast_signed();
        for dimension in dimensions {
            match dimension.extent {
                // An assumed-size array, or no element at all.
                -1 | 0 => return true,
                1 => {}
                extent if dimension.stride == next => next = next.wrapping_mul(extent),
                // Another dimension may have no element.
                _ => return dimensions.iter().any(|other| other.extent == 0),
            }
        }
        true
    }

    /// Returns the number of elements; `None` if there is no such number.
    pub fn elements(dimensions: &[Dimension]) -> Option<i64> {
        dimensions.iter().try_fold(1_i64, |product, dimension| {
            let extent = i64::try_from(dimension.extent).ok().filter(|extent| *extent >= 0)?;
            product.checked_mul(extent)
        })
    }
}
