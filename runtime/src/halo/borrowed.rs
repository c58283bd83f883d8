//! Exchanges of memory that the caller owns: slices and, with the feature `ndarray`, views.
//!
//! If these calls returned a guard and the program leaked it, the borrow of the memory would end while
//! messages still use the memory. So the calls of this file return no guard. Each call starts the exchange,
//! runs a closure that computes on the [`Interior`], and completes the exchange before it returns.
//!
//! Invariant: the exchange is complete before the call ends, whether by a return, an error or a panic.

use super::exchange::Pending;
use super::field::Element;
use super::interior::Interior;
use super::plan::Halo;
use crate::error::{Error, ErrorKind, Result};

/// A guard that completes an exchange when the guard goes out of scope.
struct Completing<'a>(&'a Pending);

impl Drop for Completing<'_> {
    fn drop(&mut self) {
        // `Pending` keeps the result of the exchange. The caller reads it there, unless `compute` has
        // panicked.
        let _kept = self.0.complete();
    }
}

impl<T: Element, const N: usize> Halo<T, N> {
    /// Exchanges the halos of plain arrays while `compute` works on their interiors.
    ///
    /// Each array holds `shape[d] + 2 * width` values along dimension `d`, in C order.
    ///
    /// # Errors
    ///
    /// Returns `ErrorKind::Argument` if the number of arrays is not the plan's number of fields,
    /// `ErrorKind::Buffer` if an array does not have the plan's length, and `ErrorKind::ProcAborted` if
    /// another rank has died. If the call returns one of the first two errors, it has not called `compute`.
    ///
    /// ```
    /// use typepack::halo::{Halo, Stencil};
    ///
    /// let universe = typepack::init()?;
    /// let line = universe.world().cartesian(&[universe.world().size()], &[true])?;
    /// let halo = Halo::<i32, 1>::new(&line, [3], 1, Stencil::Star, 1)?;
    /// let mut array = [0, 7, 8, 9, 0];
    /// let middle = halo.exchange_slices_with(&mut [&mut array], |inner| inner.cells(0, [1], 1)[0])?;
    /// assert_eq!(middle, 8);
    /// assert_eq!(array, [9, 7, 8, 9, 7]); // a single rank is its own neighbour
    /// # Ok::<(), typepack::Error>(())
    /// ```
    pub fn exchange_slices_with<R>(
        &self,
        arrays: &mut [&mut [T]],
        compute: impl FnOnce(&mut Interior<'_, T, N>) -> R,
    ) -> Result<R> {
        for (number, array) in arrays.iter().enumerate() {
            if array.len() != self.block.len() {
                return Err(Error::new(
                    ErrorKind::Buffer,
                    "arrays",
                    format!(
                        "arrays[{number}] has length {}; the plan needs {} values, shape {:?}",
                        array.len(),
                        self.block.len(),
                        self.block.padded()
                    ),
                ));
            }
        }
        let starts = arrays.iter_mut().map(|array| array.as_mut_ptr()).collect();
        // SAFETY: each array has `block.len()` values (checked above). All arrays are mutably borrowed for
        // the whole call, so they are disjoint and nobody else accesses them.
        unsafe { self.exchange_raw_with(starts, compute) }
    }

    /// Exchanges the halos of `ndarray` views while `compute` works on their interiors.
    ///
    /// # Errors
    ///
    /// Returns `ErrorKind::Argument` if the number of views is not the plan's number of fields. Returns
    /// `ErrorKind::Buffer` if the shape of a view is not `shape + 2 * width`, or if its layout is not
    /// standard (C order without gaps). Returns `ErrorKind::ProcAborted` if another rank has died. If the
    /// call returns one of the first two errors, it has not called `compute`.
    #[cfg(feature = "ndarray")]
    pub fn exchange_with<D: ndarray::Dimension, R>(
        &self,
        views: &mut [ndarray::ArrayViewMut<'_, T, D>],
        compute: impl FnOnce(&mut Interior<'_, T, N>) -> R,
    ) -> Result<R> {
        for (number, view) in views.iter().enumerate() {
            let padded = self.block.padded();
            let wrong = if view.shape() != padded {
                format!("views[{number}] has shape {:?}; the plan needs {padded:?}", view.shape())
            } else if !view.is_standard_layout() {
                format!("views[{number}] is not in standard layout (C order without gaps)")
            } else {
                continue;
            };
            return Err(Error::new(ErrorKind::Buffer, "views", wrong));
        }
        let starts = views.iter_mut().map(|view| view.as_mut_ptr()).collect();
        // SAFETY: each view has the plan's shape in standard layout (checked above), so it has `block.len()`
        // values that begin at its first value. All views are mutably borrowed for the whole call, so they
        // are disjoint and nobody else accesses them.
        unsafe { self.exchange_raw_with(starts, compute) }
    }

    /// Exchanges the halos of arrays while `compute` works on their interiors. The arrays may lie anywhere in
    /// memory.
    ///
    /// # Safety
    ///
    /// - Each of `starts` is the address of the first value of an array of `block.len()` values, and no two
    ///   arrays overlap.
    /// - Until the call ends, nobody else accesses the arrays.
    unsafe fn exchange_raw_with<R>(
        &self,
        starts: Vec<*mut T>,
        compute: impl FnOnce(&mut Interior<'_, T, N>) -> R,
    ) -> Result<R> {
        self.check_fields(starts.len())?;
        // SAFETY: `starts` has one entry per field (checked above), and the caller guarantees that the arrays
        // are valid and disjoint (first condition of `# Safety`). `completing` completes the exchange before
        // this call ends, even if `compute` panics. Until then only `compute` and the messages access the
        // arrays (second condition). `Interior` gives `compute` no cell that a message writes, and no mutable
        // cell that a message reads.
        let pending = unsafe { self.post(&starts)? };
        let completing = Completing(&pending);
        // SAFETY: the arrays are valid, disjoint and used by nobody else (both conditions of `# Safety`). The
        // messages come from `post`: `geometry.rs` places send boxes within `width` cells of the surface and
        // receive boxes in the halo.
        let mut interior = unsafe { Interior::new(self.block, starts, &pending) };
        let result = compute(&mut interior);
        drop(completing);
        pending.complete()?;
        Ok(result)
    }
}
