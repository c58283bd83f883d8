//! Elements of a committed type in memory: the one form in which all layers name the data of a call, from its arguments
//! to the executors.

use super::{pack_raw, unpack_raw};
use crate::error::Result;
use crate::plan::Plan;
use std::borrow::Borrow;
use std::ops::Range;

/// `count` elements of a committed type in memory: the data of a message, of a collective call, of an access to a
/// window or a file, or one side of a copy.
///
/// `P` is `&Plan` for elements that borrow their type for the time of a call, and [`Plan`] for elements that own a
/// share of the type, so that the program may free the type meanwhile. Neither borrows the memory: `origin` is only an
/// address, which may be any. The unsafe functions that take elements say for how long their memory must be valid, and
/// whether they only read it.
#[derive(Clone, Copy, Debug)]
pub struct Elements<P> {
    /// Address of displacement 0 of the first element. It need not lie inside an allocation.
    pub origin: *mut u8,
    /// The committed type.
    pub plan: P,
    /// Number of elements.
    pub count: u64,
}

// SAFETY: elements are an address and a number beside their plan. Only unsafe functions access the memory at the
// address, and their callers guarantee that the thread may do so.
unsafe impl<P: Send> Send for Elements<P> {}
// SAFETY: a shared reference gives copies of the address, the number and the plan, and changes none of them. Only
// unsafe functions access the memory at the address, and their callers guarantee that no other thread's access
// conflicts.
unsafe impl<P: Sync> Sync for Elements<P> {}

impl<P> Elements<P> {
    /// Returns the `count` elements whose first one has displacement 0 at `origin`. Where they are only read, the
    /// memory may be constant.
    #[inline(always)]
    pub fn new<T>(origin: *const T, plan: P, count: u64) -> Self {
        Self { origin: origin.cast::<u8>().cast_mut(), plan, count }
    }
}

impl Elements<&Plan> {
    /// Makes elements that own a share of the type.
    pub fn keep(&self) -> Elements<Plan> {
        Elements { origin: self.origin, plan: self.plan.clone(), count: self.count }
    }
}

impl<P: Borrow<Plan>> Elements<P> {
    /// Returns the same elements, which borrow the type.
    #[inline]
    pub fn view(&self) -> Elements<&Plan> {
        Elements { origin: self.origin, plan: self.plan.borrow(), count: self.count }
    }

    /// Returns the number of packed bytes.
    ///
    /// # Errors
    /// Returns the errors of [`Plan::packed_bytes`].
    #[inline]
    pub fn bytes(&self) -> Result<u64> {
        self.plan.borrow().packed_bytes(self.count)
    }

    /// Returns the address of the first byte that the first element touches.
    #[inline]
    pub fn first(&self) -> *mut u8 {
        self.origin.wrapping_offset(self.plan.borrow().footprint().true_lb as isize)
    }

    /// Returns the address of the packed bytes if they are one run of memory.
    #[inline]
    pub fn run(&self) -> Option<*mut u8> {
        self.plan.borrow().is_contiguous().then(|| self.first())
    }

    /// Returns the distance in bytes from the first element to element `index`.
    #[inline]
    pub fn offset(&self, index: u64) -> isize {
        // The elements lie in memory, so the product does not overflow. For a type without bytes the product may wrap
        // around, and nobody accesses the address.
        (self.plan.borrow().footprint().extent as isize).wrapping_mul(index as isize)
    }

    /// Returns the elements `range` of these elements.
    #[inline]
    pub fn slice(&self, range: Range<u64>) -> Self
    where
        P: Copy,
    {
        let origin = self.origin.wrapping_offset(self.offset(range.start));
        Self { origin, count: range.end - range.start, ..*self }
    }

    /// Packs the data: writes the packed bytes of `range` to `dst`.
    ///
    /// # Safety
    ///
    /// - `range` lies within the packed bytes of the elements ([`bytes`](Self::bytes)), and these are readable.
    /// - `dst` is writable for `range.end - range.start` bytes.
    /// - The bytes at `dst` do not overlap the elements.
    #[inline]
    pub unsafe fn pack(&self, range: Range<u64>, dst: *mut u8) {
        // SAFETY: the caller guarantees that the range lies within the elements, that the elements are readable, that
        // `dst` has room, and that the two do not overlap (the conditions of `# Safety`; `pack_raw` has no others).
        unsafe { pack_raw(self.plan.borrow(), self.count, self.origin, range, dst) };
    }

    /// Unpacks data: reads the packed bytes of `range` from `src` and writes them to the elements.
    ///
    /// # Safety
    ///
    /// - `range` lies within the packed bytes of the elements ([`bytes`](Self::bytes)), and these are writable (and
    ///   readable under `Settings::verify`).
    /// - `src` is readable for `range.end - range.start` bytes.
    /// - The bytes at `src` do not overlap the elements.
    #[inline]
    pub unsafe fn unpack(&self, range: Range<u64>, src: *const u8) {
        // SAFETY: the caller guarantees that the range lies within the elements, that the elements are writable, that
        // the bytes at `src` are readable, and that the two do not overlap (the conditions of `# Safety`; `unpack_raw`
        // has no others).
        unsafe { unpack_raw(self.plan.borrow(), self.count, self.origin, range, src) };
    }
}
