//! Direct access to the values of a rank in a window, as memory.

use crate::{Error, ErrorKind, Result};
use bytemuck::{AnyBitPattern, NoUninit};
use std::fmt;
use std::marker::PhantomData;

/// The values of a rank in a window, in memory that this process and others share.
///
/// Other ranks may change a value at any time that their epochs permit, so there are no references to the values: a
/// read copies a value, and a write replaces it. Neither is atomic.
///
/// ```
/// use typepack::rma::{LockKind, WindowOf};
/// # let universe = typepack::init()?;
/// # let world = universe.world();
/// let window = WindowOf::<u32>::allocate_shared(&world, 4)?;
/// let cells = window.own();
/// cells.set(1, 5)?;
/// assert_eq!(cells.iter().collect::<Vec<u32>>(), [0, 5, 0, 0]);
/// // Loads directly from the memory of the last rank.
/// let last = window.lock(world.size() - 1, LockKind::Shared)?;
/// assert_eq!(last.cells()?.get(3)?, 0);
/// # last.end()?;
/// # window.free()?;
/// # Ok::<(), typepack::Error>(())
/// ```
#[doc(alias = "MPI_Win_shared_query")]
#[derive(Clone, Copy)]
pub struct Cells<'a, T> {
    base: *mut T,
    len: usize,
    window: PhantomData<&'a T>,
}

impl<T> fmt::Debug for Cells<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cells").field("len", &self.len).finish_non_exhaustive()
    }
}

impl<'a, T: NoUninit + AnyBitPattern> Cells<'a, T> {
    /// Describes `len` values at `base`.
    ///
    /// # Safety
    ///
    /// - During the lifetime `'a`, `base` is a multiple of the alignment of `T`, and `len` values there are readable
    ///   and writable and have been initialised, or `len` is 0.
    pub(super) unsafe fn new(base: *mut T, len: usize) -> Self {
        Self { base, len, window: PhantomData }
    }

    /// Returns the number of values.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the address of the first value. It may be null if there are no values.
    pub fn as_ptr(&self) -> *mut T {
        self.base
    }

    fn place(&self, at: usize, len: usize) -> Result<*mut T> {
        if at.checked_add(len).is_some_and(|end| end <= self.len) {
            return Ok(self.base.wrapping_add(at));
        }
        let detail =
            format!("{len} values from index {at} on do not lie in the {} values", self.len);
        Err(Error::new(ErrorKind::Argument, "at", detail))
    }

    /// Returns the value at index `at`.
    ///
    /// # Errors
    /// Returns [`ErrorKind::Argument`] if there is no such value.
    pub fn get(&self, at: usize) -> Result<T> {
        let place = self.place(at, 1)?;
        // SAFETY: `place` has checked that the value is one of those that `new` describes. Every bit pattern is a `T`,
        // also if another process writes meanwhile.
        Ok(unsafe { place.read_volatile() })
    }

    /// Replaces the value at index `at`.
    ///
    /// # Errors
    /// Returns [`ErrorKind::Argument`] if there is no such value.
    pub fn set(&self, at: usize, value: T) -> Result<()> {
        let place = self.place(at, 1)?;
        // SAFETY: as in `get`. There are no references to the values.
        unsafe { place.write_volatile(value) };
        Ok(())
    }

    /// Copies the values from index `at` on to `values`.
    ///
    /// # Errors
    /// Returns [`ErrorKind::Argument`] if there are too few values.
    pub fn read(&self, values: &mut [T], at: usize) -> Result<()> {
        let place = self.place(at, values.len())?;
        // SAFETY: `place` has checked the range, and the slice is as long. The slice is borrowed mutably, so it does
        // not overlap the values, to which there are no references. Every bit pattern is a `T`.
        unsafe { values.as_mut_ptr().copy_from_nonoverlapping(place, values.len()) };
        Ok(())
    }

    /// Copies `values` to the values from index `at` on.
    ///
    /// # Errors
    /// Returns [`ErrorKind::Argument`] if there are too few values.
    pub fn write(&self, values: &[T], at: usize) -> Result<()> {
        let place = self.place(at, values.len())?;
        // SAFETY: as in `read`.
        unsafe { place.copy_from_nonoverlapping(values.as_ptr(), values.len()) };
        Ok(())
    }

    /// Returns the values in their order. Each is read when the iterator comes to it.
    pub fn iter(self) -> impl ExactSizeIterator<Item = T> + 'a {
        // SAFETY: `at` is less than `len`, so the value is one of those that `new` describes.
        (0..self.len).map(move |at| unsafe { self.base.add(at).read_volatile() })
    }

    /// Returns the values as a slice.
    ///
    /// # Safety
    ///
    /// - As long as the slice is used, no rank writes to the values, by whatever way.
    pub unsafe fn as_slice(self) -> &'a [T] {
        if self.len == 0 {
            return &[];
        }
        // SAFETY: `new` describes aligned and initialised values. The caller guarantees that nobody writes to them.
        unsafe { std::slice::from_raw_parts(self.base, self.len) }
    }

    /// Returns the values as a mutable slice.
    ///
    /// # Safety
    ///
    /// - As long as the slice is used, no rank reads or writes the values by another way.
    pub unsafe fn as_mut_slice(self) -> &'a mut [T] {
        if self.len == 0 {
            return &mut [];
        }
        // SAFETY: `new` describes aligned and initialised values. The caller guarantees that nobody else uses them.
        unsafe { std::slice::from_raw_parts_mut(self.base, self.len) }
    }
}
