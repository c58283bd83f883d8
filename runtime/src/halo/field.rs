//! A field over a block of a Cartesian grid, with its halo, in memory of its own.
//!
//! `plan.rs` exchanges the halos of fields; while that is under way `exchange.rs` holds them.
//!
//! Invariants:
//! - The memory is reached only through a raw pointer, so that the messages of an exchange that is
//!   under way may read and write it without meeting a reference.
//! - No reference to the memory is handed out while messages are under way. An [`Exchange`] borrows
//!   its fields mutably; if it is leaked ([`std::mem::forget`]) the field still knows the
//!   operation and completes it before it hands out anything.
//! - The memory is shared with the operation: a field dropped after such a leak frees nothing that
//!   a message still needs.
//!
//! [`Exchange`]: super::Exchange

use std::alloc::Layout;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use bytemuck::Pod;
use typepack_engine::{Datatype, Named};

use super::exchange::Pending;
use super::geometry::Block;
use crate::error::{Error, ErrorKind, Result};
use crate::memory;

/// A type whose values can be cells of a field.
///
/// [`datatype`](Element::datatype) must describe exactly one value: its extent is
/// `size_of::<Self>()` and it covers no byte outside. [`Halo::new`](super::Halo::new) checks that,
/// so a wrong implementation is an error and never unsound.
pub trait Element: Pod {
    /// The datatype of one value.
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

/// Zero-initialised memory for values, aligned to a cache line, as rows pack best; other ranks copy
/// their halos straight out of it.
pub(super) struct Storage<T> {
    block: memory::Block,
    values: PhantomData<T>,
}

// SAFETY: a `Storage` is an allocation without any aliasing rule of its own; who may touch it when
// is decided by `Field` and `Exchange`, whose accessors follow the rules of `&` and `&mut`.
unsafe impl<T: Send> Send for Storage<T> {}
// SAFETY: as above; a shared `Storage` only gives its address away.
unsafe impl<T: Sync> Sync for Storage<T> {}

impl<T: Element> Storage<T> {
    /// `len` is not 0 and its bytes fit `isize`: `Block::new` made sure.
    fn new(len: usize) -> Result<Self> {
        let layout = Layout::array::<T>(len).map_err(|_| no_memory(len, ""))?;
        if layout.size() == 0 {
            return Err(Error::new(ErrorKind::Argument, "shape", "has cells of 0 bytes"));
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
    Error::new(ErrorKind::NoMemory, "shape", format!("no memory for {len} cells{why}"))
}

/// A field over a block of cells with a halo around it.
///
/// The memory holds `shape[d] + 2 * width` values along dimension `d`, C order (the last dimension
/// is the fastest), and starts as all zeros. References to it include the halo.
pub struct Field<T: Element, const N: usize> {
    block: Block<N>,
    storage: Arc<Storage<T>>,
    /// The last exchange, unless its guard has completed it and told how it went.
    pending: Option<Arc<Pending>>,
}

impl<T: Element, const N: usize> Field<T, N> {
    /// A field of zeros with `shape` owned cells and a halo of `width` cells on each side.
    ///
    /// # Errors
    ///
    /// When a dimension has no cell, when `width` is 0 or larger than an extent, or when there is
    /// not enough memory.
    pub fn new(shape: [usize; N], width: usize) -> Result<Self> {
        let block = Block::new(shape, width, size_of::<T>())?;
        Ok(Self { block, storage: Arc::new(Storage::new(block.len())?), pending: None })
    }

    /// Owned cells along each dimension.
    pub fn shape(&self) -> [usize; N] {
        self.block.shape
    }

    /// Cells of the halo on each side.
    pub fn width(&self) -> usize {
        self.block.width
    }

    /// Values along each dimension of the memory, halo included.
    pub fn padded_shape(&self) -> [usize; N] {
        self.block.padded()
    }

    /// All values, halo included. An exchange whose guard was leaked is completed first.
    pub fn as_slice(&self) -> &[T] {
        self.complete();
        // SAFETY: the storage holds `len` initialised values. No message is under way (above), and
        // none starts while the result lives: that takes `&mut self`.
        unsafe { std::slice::from_raw_parts(self.storage.start(), self.block.len()) }
    }

    /// All values, halo included, for writing. An exchange whose guard was leaked is completed
    /// first.
    pub fn as_mut_slice(&mut self) -> &mut [T] {
        self.complete();
        // SAFETY: as in `as_slice`, and `&mut self` makes this the only reference.
        unsafe { std::slice::from_raw_parts_mut(self.storage.start(), self.block.len()) }
    }

    /// Position of a cell in [`as_slice`](Field::as_slice); `index` counts owned cells, so -1 is
    /// the halo cell next to cell 0. `None` outside the halo.
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

    /// Completes an exchange whose guard was leaked, and reports one whose guard was dropped and
    /// that failed, once. There is nothing to settle after [`Exchange::wait`].
    ///
    /// # Errors
    ///
    /// The error of the exchange, for example that another rank has died.
    ///
    /// [`Exchange::wait`]: super::Exchange::wait
    pub fn settle(&mut self) -> Result<()> {
        self.pending.take().map_or(Ok(()), |pending| pending.complete())
    }

    /// Afterwards no message touches the memory.
    fn complete(&self) {
        if let Some(pending) = &self.pending {
            // Whether it went well is for `settle`, which `Halo::start` calls.
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
        assert!(error.to_string().contains("no memory"), "{error}");
    }
}
