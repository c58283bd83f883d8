//! Memory with a forbidden page on either side.
//!
//! `check.rs` places buffers of the exact length against the front or the back page, so that a
//! kernel that reads or writes one byte too far faults at once. Sanitizers do not see loads of
//! JIT-compiled code, and canaries do not see reads at all; this does both.
//!
//! Memory protection comes from the `region` crate (the code generator brings it anyway), so that
//! this crate makes no system call of its own.

use region::Protection;

/// An allocation between two pages that may not be touched.
pub struct Guarded {
    allocation: region::Allocation,
    page: usize,
    capacity: usize,
}

/// Against which forbidden page a buffer lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The byte before the buffer is forbidden.
    Front,
    /// The byte after the buffer is forbidden.
    Back,
}

impl Guarded {
    /// Memory for buffers of up to `capacity` bytes. Fails when the system denies it.
    pub fn new(capacity: usize) -> region::Result<Self> {
        let page = region::page::size();
        let capacity = capacity.next_multiple_of(page).max(page);
        let mut allocation = region::alloc(capacity + 2 * page, Protection::READ_WRITE)?;
        let first = allocation.as_mut_ptr::<u8>();
        // SAFETY: both pages lie inside the allocation made above, nothing refers to them, and
        // `buffer` never hands them out.
        unsafe {
            region::protect(first, page, Protection::NONE)?;
            region::protect(first.add(page + capacity), page, Protection::NONE)?;
        }
        Ok(Self { allocation, page, capacity })
    }

    /// Largest buffer, in bytes.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Position of a buffer of `length` bytes within [`Guarded::whole`].
    ///
    /// Panics when `length` exceeds the capacity: callers bound their cases first.
    pub fn place(&self, length: usize, side: Side) -> std::ops::Range<usize> {
        assert!(length <= self.capacity, "{length} bytes exceed the guarded {}", self.capacity);
        match side {
            Side::Front => 0..length,
            Side::Back => self.capacity - length..self.capacity,
        }
    }

    /// All bytes between the forbidden pages.
    pub fn whole(&mut self) -> &mut [u8] {
        let first = self.allocation.as_mut_ptr::<u8>();
        // SAFETY: `capacity` bytes after the first page are mapped readable and writable and were
        // zeroed by the system; the unique borrow of `self` makes this the only reference.
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
