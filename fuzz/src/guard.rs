//! Allocates memory with a forbidden page at each end.
//!
//! Each buffer of `check.rs` has exactly the needed length, and touches either the page before it or the
//! page after it. So a kernel that reads or writes one byte beyond that end of the buffer faults at
//! once. Sanitizers do not see the accesses of JIT-compiled code, and guard bytes detect only writes; a
//! forbidden page detects every read and every write.
//!
//! The `region` crate changes the protection of pages, so this crate makes no system calls of its own.
//! The code generator needs `region` anyway.

use region::Protection;

/// An allocation between two pages that must not be touched.
pub struct Guarded {
    allocation: region::Allocation,
    page: usize,
    capacity: usize,
}

/// Selects the forbidden page that a buffer touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The byte before the buffer is forbidden.
    Front,
    /// The byte after the buffer is forbidden.
    Back,
}

impl Guarded {
    /// Allocates memory for buffers of up to `capacity` bytes. Fails if the system denies the memory.
    pub fn new(capacity: usize) -> region::Result<Self> {
        let page = region::page::size();
        let capacity = capacity.next_multiple_of(page).max(page);
        let mut allocation = region::alloc(capacity + 2 * page, Protection::READ_WRITE)?;
        let first = allocation.as_mut_ptr::<u8>();
        // SAFETY: both pages lie inside `allocation`, which was made above. No reference to the two
        // pages exists, and neither `place` nor `whole` gives access to any of their bytes.
        unsafe {
            region::protect(first, page, Protection::NONE)?;
            region::protect(first.add(page + capacity), page, Protection::NONE)?;
        }
        Ok(Self { allocation, page, capacity })
    }

    /// Returns the maximum length of a buffer, in bytes.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Returns the position of a buffer of `length` bytes within [`Guarded::whole`].
    ///
    /// Panics if `length` exceeds the capacity. Callers check the bounds of a case before they place
    /// its buffers.
    pub fn place(&self, length: usize, side: Side) -> std::ops::Range<usize> {
        assert!(length <= self.capacity, "length is {length} bytes; at most {} fit", self.capacity);
        match side {
            Side::Front => 0..length,
            Side::Back => self.capacity - length..self.capacity,
        }
    }

    /// Returns all bytes between the forbidden pages.
    pub fn whole(&mut self) -> &mut [u8] {
        let first = self.allocation.as_mut_ptr::<u8>();
        // SAFETY: the `capacity` bytes after the first page are mapped readable and writable, and the
        // system zeroed them. `self` is borrowed mutably, so no other reference to these bytes exists.
        unsafe { std::slice::from_raw_parts_mut(first.add(self.page), self.capacity) }
    }
}

#[cfg(test)]
mod tests {
    use super::{Guarded, Side};

    #[test]
    fn buffers_touch_the_forbidden_pages() {
        let mut guarded = Guarded::new(5000).expect("memory");
        let front = guarded.place(10, Side::Front);
        let back = guarded.place(10, Side::Back);
        let capacity = guarded.capacity();
        assert_eq!((front.start, back.end), (0, capacity));
        guarded.whole().fill(7);
        let first = guarded.whole().as_ptr();
        let page = region::page::size();
        let protection = |address| region::query(address).expect("mapped").protection();
        assert_eq!(protection(first.wrapping_sub(1)), region::Protection::NONE);
        assert_eq!(protection(first.wrapping_add(capacity)), region::Protection::NONE);
        assert_eq!(protection(first), region::Protection::READ_WRITE);
        assert_eq!(capacity % page, 0);
    }
}
