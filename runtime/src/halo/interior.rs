//! What a computation may touch while an exchange is under way.
//!
//! Handed out by `exchange.rs` (owned fields) and `borrowed.rs` (borrowed memory) between start and
//! wait.
//!
//! Invariants:
//! - Messages under way read owned cells less than `width` away from the block's surface, and write
//!   halo cells. Therefore shared references are handed out to owned cells only, and mutable ones
//!   only to cells at least `width` away from the surface.
//! - No reference outlives the borrow of the guard, so none is alive when the guard completes.

use std::fmt;
use std::marker::PhantomData;

use super::exchange::Pending;
use super::field::Element;
use super::geometry::Block;
use crate::error::Result;

/// The owned cells of the fields of an exchange that is under way.
///
/// Cells are counted from the first owned one, fields in the order in which they were given.
pub struct Interior<'a, T: Element, const N: usize> {
    block: Block<N>,
    starts: Vec<*mut T>,
    pending: &'a Pending,
    fields: PhantomData<&'a mut [T]>,
}

impl<'a, T: Element, const N: usize> Interior<'a, T, N> {
    /// # Safety
    ///
    /// - Each of `starts` is the first value of an array of `block.len()` values, no two overlap,
    ///   and all stay valid for `'a`.
    /// - For `'a` nothing but this value and the messages of `pending` touches the arrays.
    /// - Those messages read only owned cells less than `block.width` from the surface, and write
    ///   only halo cells.
    pub(super) unsafe fn new(block: Block<N>, starts: Vec<*mut T>, pending: &'a Pending) -> Self {
        Self { block, starts, pending, fields: PhantomData }
    }

    /// Number of fields.
    pub fn fields(&self) -> usize {
        self.starts.len()
    }

    /// Owned cells along each dimension.
    pub fn shape(&self) -> [usize; N] {
        self.block.shape
    }

    /// `len` owned cells of `field` from `start` along the last dimension.
    ///
    /// # Panics
    ///
    /// When there is no such field, or when the cells are not all owned and in one row.
    #[inline]
    pub fn cells(&self, field: usize, start: [usize; N], len: usize) -> &[T] {
        let address = self.row(field, start, len, 0);
        // SAFETY: `row` checked that the cells lie in one row of the owned part of a valid array;
        // messages only read there, and `cells_mut` needs `&mut self`.
        unsafe { std::slice::from_raw_parts(address, len) }
    }

    /// `len` cells of `field` from `start` along the last dimension, for writing. They must lie at
    /// least the halo's width away from the surface of the block: the others are being sent.
    ///
    /// # Panics
    ///
    /// As [`cells`](Interior::cells), and when a cell is too close to the surface.
    #[inline]
    pub fn cells_mut(&mut self, field: usize, start: [usize; N], len: usize) -> &mut [T] {
        let address = self.row(field, start, len, self.block.width);
        // SAFETY: `row` checked that the cells lie in one row of a valid array and too deep for any
        // message; `&mut self` makes this the only reference.
        unsafe { std::slice::from_raw_parts_mut(address, len) }
    }

    /// Lets the messages go on; worth a call every few thousand cells, since nothing moves them in
    /// the background.
    ///
    /// # Errors
    ///
    /// When another rank has died.
    #[inline]
    pub fn progress(&self) -> Result<()> {
        self.pending.progress()
    }

    /// Address of a checked row whose cells are all at least `depth` away from the surface.
    #[inline]
    fn row(&self, field: usize, start: [usize; N], len: usize, depth: usize) -> *mut T {
        let mut index = start;
        for dimension in 0..N {
            let extent = self.block.shape[dimension];
            let cells = if dimension + 1 == N { len } else { 1 };
            let end = start[dimension].checked_add(cells);
            assert!(
                start[dimension] >= depth
                    && end.is_some_and(|end| end <= extent.saturating_sub(depth)),
                "cells {start:?} + {len} leave the {depth}-deep interior of {:?}",
                self.block.shape
            );
            index[dimension] += self.block.width;
        }
        // SAFETY: the position of an owned cell lies inside the array that starts there.
        unsafe { self.starts[field].add(self.block.position(index)) }
    }
}

impl<T: Element, const N: usize> fmt::Debug for Interior<'_, T, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Interior")
            .field("fields", &self.starts.len())
            .field("shape", &self.block.shape)
            .finish_non_exhaustive()
    }
}
