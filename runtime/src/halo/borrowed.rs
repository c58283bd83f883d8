//! Exchanges of memory that is not ours: plain slices and, with the feature `ndarray`, views.
//!
//! A guard that could be leaked must not hold borrowed memory, so there is none: the exchange lives
//! inside one call, around a closure that works on the [`Interior`].
//!
//! Invariant: the exchange is complete before the call ends in any way, by return, error or panic.

use super::exchange::Pending;
use super::field::Element;
use super::interior::Interior;
use super::plan::Halo;
use crate::error::{Error, ErrorKind, Result};

/// Completes an exchange when it goes out of scope.
struct Completing<'a>(&'a Pending);

impl Drop for Completing<'_> {
    fn drop(&mut self) {
        // The result is kept in the operation; where nobody asks for it, there is a panic to report.
        let _kept = self.0.complete();
    }
}

impl<T: Element, const N: usize> Halo<T, N> {
    /// Exchanges the halos of plain arrays while `compute` works on their interiors.
    ///
    /// Each array holds `shape[d] + 2 * width` values along dimension `d`, C order.
    ///
    /// # Errors
    ///
    /// When the number of arrays or the length of one is not the plan's (`compute` is not called
    /// then), or when another rank has died.
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
    /// assert_eq!(array, [9, 7, 8, 9, 7]); // with one rank its own cells come round
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
                        "array {number} holds {} values, but the plan is for {:?}",
                        array.len(),
                        self.block.padded()
                    ),
                ));
            }
        }
        let starts = arrays.iter_mut().map(|array| array.as_mut_ptr()).collect();
        // SAFETY: each array has the plan's number of values (checked above), and all are borrowed
        // mutably, hence disjoint, for the whole call.
        unsafe { self.exchange_raw_with(starts, compute) }
    }

    /// Exchanges the halos of `ndarray` views while `compute` works on their interiors.
    ///
    /// # Errors
    ///
    /// When the number of views is not the plan's, when the shape of one is not `shape + 2 * width`
    /// or its layout not standard (C order without gaps; `compute` is not called then), or when
    /// another rank has died.
    #[cfg(feature = "ndarray")]
    pub fn exchange_with<D: ndarray::Dimension, R>(
        &self,
        views: &mut [ndarray::ArrayViewMut<'_, T, D>],
        compute: impl FnOnce(&mut Interior<'_, T, N>) -> R,
    ) -> Result<R> {
        for (number, view) in views.iter().enumerate() {
            let padded = self.block.padded();
            let wrong = if view.shape() != padded {
                format!(
                    "view {number} has shape {:?}, but the plan is for {padded:?}",
                    view.shape()
                )
            } else if !view.is_standard_layout() {
                format!("view {number} is not in C order without gaps")
            } else {
                continue;
            };
            return Err(Error::new(ErrorKind::Buffer, "views", wrong));
        }
        let starts = views.iter_mut().map(|view| view.as_mut_ptr()).collect();
        // SAFETY: each view has the plan's shape in standard layout (checked above), and views that
        // exist at once are disjoint; they are borrowed mutably for the whole call.
        unsafe { self.exchange_raw_with(starts, compute) }
    }

    /// # Safety
    ///
    /// - Each of `starts` is the first value of an array of `block.len()` values, and no two
    ///   overlap.
    /// - Until the call ends nobody else touches the arrays.
    unsafe fn exchange_raw_with<R>(
        &self,
        starts: Vec<*mut T>,
        compute: impl FnOnce(&mut Interior<'_, T, N>) -> R,
    ) -> Result<R> {
        self.check_fields(starts.len())?;
        // SAFETY: the arrays are the caller's promise; `completing` completes the exchange before
        // this call ends, also when `compute` panics, and `compute` touches what `Interior` allows.
        let pending = unsafe { self.post(&starts)? };
        let completing = Completing(&pending);
        // SAFETY: the arrays are the caller's promise; the messages are `post`'s, whose boxes
        // `geometry.rs` puts within `width` of the surface and into the halo.
        let mut interior = unsafe { Interior::new(self.block, starts, &pending) };
        let result = compute(&mut interior);
        drop(completing);
        pending.complete()?;
        Ok(result)
    }
}
