//! A field over one block of a Cartesian grid. The field has a halo around the block, and owns its memory.
//!
//! `plan.rs` exchanges the halos of fields. `exchange.rs` borrows the fields during an exchange.
//!
//! Invariants:
//! - A field accesses its memory only through a raw pointer, so that messages can read and write the memory
//!   while no Rust reference to the memory exists.
//! - A field returns no reference to its memory while messages are under way. An [`Exchange`] mutably borrows
//!   its fields. If the program leaks the exchange ([`std::mem::forget`]), the field still knows the exchange
//!   and completes it before it returns a reference.
//! - The field and the exchange share the ownership of the memory. If the program leaks an exchange and then
//!   drops the field, the memory that the messages still use stays allocated.
//!
//! [`Exchange`]: super::Exchange

use std::alloc::Layout;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use bytemuck::Pod;
#[cfg(feature = "ndarray")]
use ndarray::IntoDimension;
use typepack_engine::{Datatype, Named};

use super::exchange::Pending;
use super::geometry::Block;
use crate::error::{Error, ErrorKind, Result};
use crate::memory;

/// A type whose values can be cells of a field.
///
/// [`datatype`](Element::datatype) must describe exactly one value: its extent is `size_of::<Self>()`, and it
/// covers no byte outside the value. [`Halo::new`](super::Halo::new) checks both conditions, so a wrong
/// implementation causes an error and no undefined behaviour.
pub trait Element: Pod {
    /// Returns the datatype of one value.
    fn datatype() -> Datatype;
}

macro_rules! elements {
    ($($ty:ty => $named:ident),* $(,)?) => {
        $(impl Element for $ty {
            fn datatype() -> Datatype {
                Datatype::named(Named::$named)
            }
        })*
    };
}

elements! {
    f32 => F32, f64 => F64,
    i8 => I8, i16 => I16, i32 => I32, i64 => I64,
    u8 => U8, u16 => U16, u32 => U32, u64 => U64,
}

/// Zero-initialised memory for values. In a job of several ranks, the other ranks can copy their halos
/// directly from this memory. The memory begins at a multiple of a cache line, because aligned rows pack
/// fastest.
pub(super) struct Storage<T> {
    block: memory::Block,
    values: PhantomData<T>,
}

// SAFETY: a `Storage` is a plain allocation of `T: Send` values. `Field` and `Exchange` control all accesses:
// their accessors need `&self` to read and `&mut self` to write.
unsafe impl<T: Send> Send for Storage<T> {}
// SAFETY: with `&Storage` a thread can only get the address of the memory. `Field` and `Exchange` control all
// accesses.
unsafe impl<T: Sync> Sync for Storage<T> {}

impl<T: Element> Storage<T> {
    /// Allocates `len` zero values. `Block::new` has checked that `len` is not 0 and that the size of `len`
    /// values in bytes fits in `isize`.
    fn new(len: usize) -> Result<Self> {
        let layout = Layout::array::<T>(len).map_err(|_| no_memory(len, ""))?;
        if layout.size() == 0 {
            let detail = "the cell type has 0 bytes; a cell needs at least 1 byte";
            return Err(Error::new(ErrorKind::Argument, "shape", detail));
        }
        let block = memory::Block::new(layout.size(), layout.align(), true)
            .map_err(|error| no_memory(len, &format!(" ({error})")))?;
        Ok(Self { block, values: PhantomData })
    }

    pub(super) fn start(&self) -> *mut T {
        self.block.as_ptr().cast()
    }
}

fn no_memory(len: usize, why: &str) -> Error {
    let cells = if len == 1 { "1 cell".to_owned() } else { format!("{len} cells") };
    Error::new(ErrorKind::NoMemory, "shape", format!("cannot allocate memory for {cells}{why}"))
}

/// A field over a block of cells, with a halo around the block.
///
/// The memory holds `shape[d] + 2 * width` values along dimension `d`, in C order (the last index varies
/// fastest). All values are 0 at first. Slices of the memory include the halo.
pub struct Field<T: Element, const N: usize> {
    block: Block<N>,
    storage: Arc<Storage<T>>,
    /// The last exchange of this field, as long as a later call may still have to complete the exchange or
    /// to report its error.
    pending: Option<Arc<Pending>>,
}

impl<T: Element, const N: usize> Field<T, N> {
    /// Makes a field of zeros with `shape` owned cells and a halo of `width` cells on each side.
    ///
    /// # Errors
    ///
    /// Returns `ErrorKind::Argument` if `N` is 0 or above 8, if a dimension has no cell, if `width` is 0 or
    /// larger than an entry of `shape`, if a value of `T` has 0 bytes, or if the field does not fit in the
    /// address space. Returns `ErrorKind::NoMemory` if memory runs out.
    pub fn new(shape: [usize; N], width: usize) -> Result<Self> {
        let block = Block::new(shape, width, size_of::<T>())?;
        Ok(Self { block, storage: Arc::new(Storage::new(block.len())?), pending: None })
    }

    /// Returns the number of owned cells along each dimension.
    pub fn shape(&self) -> [usize; N] {
        self.block.shape
    }

    /// Returns the width of the halo in cells.
    pub fn width(&self) -> usize {
        self.block.width
    }

    /// Returns the number of values along each dimension of the memory, including the halo.
    pub fn padded_shape(&self) -> [usize; N] {
        self.block.padded()
    }

    /// Returns all values, including the halo. If the guard of an exchange was leaked, this call first
    /// completes the exchange.
    pub fn as_slice(&self) -> &[T] {
        self.complete();
        // SAFETY: the storage holds `block.len()` initialised values. `complete` has ended all messages. No
        // message starts while the result lives, because starting an exchange needs `&mut self`.
        unsafe { std::slice::from_raw_parts(self.storage.start(), self.block.len()) }
    }

    /// Returns all values, including the halo, for writing. If the guard of an exchange was leaked, this call
    /// first completes the exchange.
    pub fn as_mut_slice(&mut self) -> &mut [T] {
        self.complete();
        // SAFETY: the storage holds `block.len()` initialised values, `complete` has ended all messages, and
        // `&mut self` makes the result the only reference.
        unsafe { std::slice::from_raw_parts_mut(self.storage.start(), self.block.len()) }
    }

    /// Returns a view of all values, including the halo.
    ///
    /// ```
    /// # #[cfg(feature = "ndarray")] {
    /// use typepack::{halo::Field, ndarray::s};
    ///
    /// let mut field = Field::<f64, 2>::new([3, 4], 1)?;
    /// field.view_mut().slice_mut(s![1..-1, 1..-1]).fill(1.0); // the owned cells
    /// assert_eq!(field.view().sum(), 12.0);
    /// # }
    /// # Ok::<(), typepack::Error>(())
    /// ```
    #[cfg(feature = "ndarray")]
    pub fn view(&self) -> ndarray::ArrayView<'_, T, <[usize; N] as IntoDimension>::Dim>
    where
        [usize; N]: IntoDimension,
    {
        ndarray::ArrayView::from_shape(self.padded_shape().into_dimension(), self.as_slice())
            .expect("a field has one value for each element of its padded shape")
    }

    /// Returns a view of all values, including the halo, for writing.
    #[cfg(feature = "ndarray")]
    pub fn view_mut(&mut self) -> ndarray::ArrayViewMut<'_, T, <[usize; N] as IntoDimension>::Dim>
    where
        [usize; N]: IntoDimension,
    {
        ndarray::ArrayViewMut::from_shape(self.padded_shape().into_dimension(), self.as_mut_slice())
            .expect("a field has one value for each element of its padded shape")
    }

    /// Returns the position of a cell in [`as_slice`](Field::as_slice). `index` counts from the first owned
    /// cell, so -1 is the halo cell next to cell 0. Returns `None` if the cell is neither an owned cell nor a
    /// halo cell.
    pub fn position(&self, index: [isize; N]) -> Option<usize> {
        let padded = self.block.padded();
        let mut shifted = [0; N];
        for dimension in 0..N {
            shifted[dimension] = index[dimension]
                .checked_add_unsigned(self.block.width)
                .and_then(|i| usize::try_from(i).ok())
                .filter(|&i| i < padded[dimension])?;
        }
        Some(self.block.position(shifted))
    }

    /// Completes an exchange whose guard the program has leaked or dropped, and returns the exchange's
    /// result. A second call for the same exchange returns no error. After [`Exchange::wait`] a program does
    /// not need this call.
    ///
    /// # Errors
    ///
    /// Returns the error of the exchange, for example `ErrorKind::ProcAborted` if another rank has died.
    ///
    /// [`Exchange::wait`]: super::Exchange::wait
    pub fn settle(&mut self) -> Result<()> {
        self.pending.take().map_or(Ok(()), |pending| pending.complete())
    }

    /// Completes the last exchange. After the call, no message accesses the memory.
    fn complete(&self) {
        if let Some(pending) = &self.pending {
            // This function ignores the result. `settle` reports it, and `Halo::start` calls `settle`.
            let _reported_by_settle = pending.complete();
        }
    }

    pub(super) fn block(&self) -> Block<N> {
        self.block
    }

    pub(super) fn storage(&self) -> &Arc<Storage<T>> {
        &self.storage
    }

    pub(super) fn set_pending(&mut self, pending: Option<Arc<Pending>>) {
        self.pending = pending;
    }
}

impl<T: Element, const N: usize> fmt::Debug for Field<T, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Field")
            .field("shape", &self.block.shape)
            .field("width", &self.block.width)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_field_is_zero_and_aligned() {
        let field = Field::<f64, 3>::new([3, 4, 5], 2).expect("a small field");
        assert_eq!(field.padded_shape(), [7, 8, 9]);
        assert_eq!(field.as_slice().len(), 7 * 8 * 9);
        assert!(field.as_slice().iter().all(|&value| value == 0.0));
        assert_eq!(field.as_slice().as_ptr() as usize % 64, 0);
    }

    #[test]
    fn positions_count_from_the_first_owned_cell() {
        let field = Field::<i32, 2>::new([3, 4], 1).expect("a small field");
        assert_eq!(field.position([-1, -1]), Some(0));
        assert_eq!(field.position([0, 0]), Some(7));
        assert_eq!(field.position([3, 4]), Some(29));
        assert_eq!(field.position([4, 0]), None);
        assert_eq!(field.position([-2, 0]), None);
        assert_eq!(field.position([isize::MAX, 0]), None);
    }

    #[test]
    fn fields_can_be_sent_to_and_shared_with_other_threads() {
        fn both<T: Send + Sync>(_: &T) {}
        both(&Field::<f64, 1>::new([1], 1).expect("a small field"));
    }

    #[test]
    fn a_field_larger_than_memory_is_an_error() {
        let error = Field::<f64, 3>::new([1 << 20, 1 << 20, 1 << 10], 1).expect_err("8 PiB");
        assert!(error.to_string().contains("cannot allocate memory"), "{error}");
    }
}
