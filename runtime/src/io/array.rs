//! Views of `ndarray` as the memory of an access, with any strides.
//!
//! The data goes to the file in the logical order of the array: the last index varies fastest. The layout in
//! memory becomes a datatype, so a transposed or reversed array needs no copy.

use super::access::Access;
use super::file::File;
use crate::equivalence::strided;
use crate::halo::Element;
use crate::{Error, ErrorKind, Plan, Result, commit};
use ndarray::{ArrayView, ArrayViewMut, Dimension};
use typepack_engine::Elements;

/// Returns the committed layout of an array, relative to its element with all indices 0.
fn layout<T: Element>(shape: &[usize], strides: &[isize]) -> Result<Plan> {
    let datatype = T::datatype();
    let bytes = size_of::<T>() as i64;
    let bounds = [datatype.lb(), datatype.extent(), datatype.true_lb(), datatype.true_ub()];
    if bounds[..2] != [0, bytes] || bounds[2] < 0 || bounds[3] > bytes {
        let detail = format!(
            "the datatype has extent {} and covers bytes {}..{}; it must have extent {bytes} and cover bytes \
             in 0..{bytes}, the size of T",
            bounds[1], bounds[2], bounds[3]
        );
        return Err(Error::new(ErrorKind::Argument, "T::datatype", detail));
    }
    commit(&strided(datatype, size_of::<T>(), shape, strides)?)
}

impl File {
    /// Reads an array of any layout, and returns the number of bytes. `access` gives the position, and says
    /// whether all ranks take part; its field `write` has no meaning here.
    ///
    /// ```
    /// use ndarray::{Array2, array};
    /// use typepack::io::{Access, File, Mode};
    /// # let universe = typepack::init()?;
    /// # let world = universe.world();
    /// # let path = std::env::temp_dir().join(format!("typepack-array-{}", std::process::id()));
    /// let file = File::open(&world, &path, Mode::CREATE_READ_WRITE | Mode::DELETE_ON_CLOSE)?;
    /// let matrix = array![[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]];
    /// file.write_array(Access::at(0).together(), matrix.t())?;
    /// let mut turned = Array2::<f64>::zeros((3, 2));
    /// file.read_array(Access::at(0), turned.view_mut())?;
    /// assert_eq!(turned, array![[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]]);
    /// # file.close()?;
    /// # Ok::<(), typepack::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`ErrorKind::Argument`] if the datatype of `T` does not describe one value of `T`, and the
    /// errors of [`access_raw`](Self::access_raw).
    pub fn read_array<T: Element, D: Dimension>(
        &self,
        access: Access,
        mut array: ArrayViewMut<'_, T, D>,
    ) -> Result<usize> {
        let access = Access { write: false, ..access };
        let plan = layout::<T>(array.shape(), array.strides());
        let plan = plan.inspect_err(|error| self.refuse(access, false, error.clone()))?;
        let part = Elements { origin: array.as_mut_ptr().cast(), plan: &plan, count: 1 };
        // SAFETY: `plan` has the elements of the array and no other byte: `layout` has checked that a
        // value's type has the size of the value, and lengths and strides are those of the array. The array is
        // mutably borrowed until the call returns.
        let status = unsafe { self.access_raw(access, &part)? };
        Ok(status.bytes as usize)
    }

    /// Writes an array of any layout. `access` gives the position, and says whether all ranks take part; its
    /// field `write` has no meaning here.
    ///
    /// # Errors
    /// Returns [`ErrorKind::Argument`] if the datatype of `T` does not describe one value of `T`, and the
    /// errors of [`access_raw`](Self::access_raw).
    pub fn write_array<T: Element, D: Dimension>(
        &self,
        access: Access,
        array: ArrayView<'_, T, D>,
    ) -> Result<()> {
        let access = Access { write: true, ..access };
        let plan = layout::<T>(array.shape(), array.strides());
        let plan = plan.inspect_err(|error| self.refuse(access, false, error.clone()))?;
        let part = Elements { origin: array.as_ptr().cast_mut().cast(), plan: &plan, count: 1 };
        // SAFETY: `plan` has the elements of the array and no other byte: `layout` has checked that a
        // value's type has the size of the value, and lengths and strides are those of the array. The array is
        // borrowed until the call returns, and the call only reads it.
        unsafe { self.access_raw(access, &part)? };
        Ok(())
    }
}
