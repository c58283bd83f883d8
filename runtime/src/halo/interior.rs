//! The cells that a computation may access while an exchange is under way.
//!
//! Between the start of an exchange and its completion, `exchange.rs` (for owned fields) and `borrowed.rs`
//! (for borrowed memory) give an [`Interior`] to the computation.
//!
//! Invariants:
//! - Messages read owned cells that are less than `width` cells away from the block's surface, and write halo
//!   cells. So an [`Interior`] returns shared references only to owned cells, and mutable references only to
//!   cells that are at least `width` cells away from the surface.
//! - Every reference borrows the guard, so no reference exists any more when the guard completes the
//!   exchange.

use std::fmt;
use std::marker::PhantomData;

use super::exchange::Pending;
use super::field::Element;
use super::geometry::Block;
use crate::error::Result;

/// The owned cells of the fields of an exchange that is under way.
///
/// Coordinates count from the first owned cell. The fields are numbered in the order in which the program
/// passed them.
pub struct Interior<'a, T: Element, const N: usize> {
    block: Block<N>,
    starts: Vec<*mut T>,
    pending: &'a Pending,
    fields: PhantomData<&'a mut [T]>,
}

impl<'a, T: Element, const N: usize> Interior<'a, T, N> {
    /// Makes the interior of arrays that messages may access at the same time.
    ///
    /// # Safety
    ///
    /// - Each of `starts` is the address of the first value of an array of `block.len()` values. The arrays
    ///   do not overlap and stay valid for `'a`.
    /// - During `'a`, only this value and the messages of `pending` access the arrays.
    /// - The messages read only owned cells that are less than `block.width` cells away from the surface, and
    ///   write only halo cells.
    pub(super) unsafe fn new(block: Block<N>, starts: Vec<*mut T>, pending: &'a Pending) -> Self {
        Self { block, starts, pending, fields: PhantomData }
    }

    /// Returns the number of fields.
    pub fn fields(&self) -> usize {
        self.starts.len()
    }

    /// Returns the number of owned cells along each dimension.
    pub fn shape(&self) -> [usize; N] {
        self.block.shape
    }

    /// Returns `len` owned cells of field number `field`. The cells begin at `start` and follow each other
    /// along the last dimension.
    ///
    /// # Panics
    ///
    /// Panics if there is no such field, or if the cells are not all owned cells of one row.
    #[inline]
    pub fn cells(&self, field: usize, start: [usize; N], len: usize) -> &[T] {
        let address = self.row(field, start, len, 0);
        // SAFETY: `row` has checked that the cells lie in one row of the owned part of a valid array.
        // Messages only read owned cells, and `cells_mut` needs `&mut self`.
        unsafe { std::slice::from_raw_parts(address, len) }
    }

    /// Returns `len` cells of field number `field` for writing. The cells begin at `start` and follow each
    /// other along the last dimension. Messages read the cells near the surface of the block, so all cells
    /// must be at least the halo's width away from the surface.
    ///
    /// # Panics
    ///
    /// Panics if there is no such field, if the cells are not all owned cells of one row, or if a cell is too
    /// close to the surface.
    #[inline]
    pub fn cells_mut(&mut self, field: usize, start: [usize; N], len: usize) -> &mut [T] {
        let address = self.row(field, start, len, self.block.width);
        // SAFETY: `row` has checked that the cells lie in one row of a valid array, at least `width` cells
        // away from the surface, so no message reads or writes these cells. `&mut self` makes this the only
        // reference.
        unsafe { std::slice::from_raw_parts_mut(address, len) }
    }

    /// Moves some or all of the messages that can move now, and does not wait. No background thread moves
    /// the messages, so a computation should call this function every few thousand cells.
    ///
    /// # Errors
    ///
    /// Returns `ErrorKind::ProcAborted` if another rank has died.
    #[inline]
    pub fn progress(&self) -> Result<()> {
        self.pending.progress()
    }

    /// Returns the address of the first of `len` owned cells that begin at `start` and follow each other
    /// along the last dimension. Panics if one of them is less than `depth` cells away from the surface, or
    /// is not an owned cell.
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
                "start {start:?} with len {len}: the cells must be owned cells of the block {:?}, at least \
                 {depth} cells away from its surface",
                self.block.shape
            );
            index[dimension] += self.block.width;
        }
        // SAFETY: the loop has checked that `index` is an owned cell or, if `len` is 0, at most the halo
        // cell after the last owned cell of a row. The array that starts at `starts[field]` contains both.
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
