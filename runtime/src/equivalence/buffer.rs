//! The buffers that messages and collective calls take: values, slices, arrays, and elements of a committed datatype.
//!
//! A buffer is a sequence of items. `calls.rs` sends and receives whole sequences. `divide.rs` divides a sequence
//! among the ranks. `array.rs` has the buffers of the crate `ndarray`.
//!
//! Invariant: a [`Sequence`] covers only initialised data of the buffer that made it. The sequence of a [`BufferMut`]
//! covers only data that may have any bytes.

use super::{Equivalence, Single};
use crate::comm::{readable, writable};
use crate::{Error, ErrorKind, Plan, Result, engine};
use bytemuck::{AnyBitPattern, NoUninit};
use std::borrow::Cow;

/// The data of a buffer: `items` items, and each item is `each` elements of a committed type.
#[derive(Debug)]
pub struct Sequence<'a> {
    /// Address of displacement 0 of the first element.
    pub(super) origin: *mut u8,
    pub(super) plan: Cow<'a, Plan>,
    pub(super) items: usize,
    pub(super) each: u64,
    /// True if the buffer's own type guarantees that no two items share a byte. Otherwise, the plan must tell.
    pub(super) apart: bool,
}

impl Sequence<'_> {
    /// Returns the elements of the whole sequence.
    pub(super) fn whole(&self) -> engine::Elements<&Plan> {
        engine::Elements {
            origin: self.origin,
            plan: &self.plan,
            count: self.items as u64 * self.each,
        }
    }

    /// Returns the number of packed bytes of `items` items.
    ///
    /// # Errors
    /// Returns `ErrorKind::Engine` if the number does not fit in 63 bits.
    pub(super) fn bytes(&self, items: usize) -> Result<u64> {
        let count = self.each.saturating_mul(items as u64);
        Ok(self.plan.packed_bytes(count)?)
    }

    /// Checks that no item shares a byte with another item, so that several messages may be received into the
    /// sequence at the same time.
    ///
    /// # Errors
    /// Returns `ErrorKind::Buffer` if items overlap, or if this is not known.
    pub(super) fn check_disjoint(&self, argument: &'static str) -> Result<()> {
        let (place, count) = (self.plan.footprint(), self.items as u64 * self.each);
        let follow =
            place.true_ub.checked_sub(place.true_lb).is_some_and(|data| place.extent >= data);
        if self.apart || follow || count <= 1 || self.plan.is_disjoint(count) {
            return Ok(());
        }
        let detail =
            format!("the {count} elements overlap; a call cannot receive several parts there");
        Err(Error::new(ErrorKind::Buffer, argument, detail))
    }
}

pub(super) mod sealed {
    use super::Sequence;
    use crate::Result;

    /// # Safety
    ///
    /// - While the value is borrowed, the data of the sequence are readable and initialised, and nobody changes them.
    pub unsafe trait Readable<T> {
        /// Returns the data of the buffer. `argument` is the buffer's name in errors.
        fn sequence(&self, argument: &'static str) -> Result<Sequence<'_>>;
    }

    /// # Safety
    ///
    /// - While the value is mutably borrowed, the data of the sequence are readable, writable and initialised, nobody
    ///   else accesses them, and they may get any bytes.
    pub unsafe trait Writable<T> {
        /// Returns the data of the buffer. `argument` is the buffer's name in errors.
        fn sequence_mut(&mut self, argument: &'static str) -> Result<Sequence<'_>>;
    }
}

use sealed::{Readable, Writable};

/// Data that a call reads: values of type `T`. Every buffer is a sequence of items:
///
/// | buffer | items |
/// |---|---|
/// | `[T]`, `[T; N]`, `Vec<T>`, where `T` has a datatype ([`Equivalence`]) | the values |
/// | a number or a struct `T` ([`Single`]) | one item |
/// | [`Elements`] of a slice of `T` | the elements of a committed datatype |
/// | an array or a view of the crate `ndarray` (feature `ndarray`), with any strides | the entries along the first dimension |
/// | `()`, for every `T` | none |
///
/// A call that divides a buffer among the ranks counts in items. So rank `i` of a [`scatter`] of a matrix gets rows.
///
/// Both buffers of a call have values of one type. The compiler refuses a call whose buffers differ:
///
/// ```compile_fail,E0277
/// # let universe = typepack::init()?;
/// # let world = universe.world();
/// let (mine, mut all) = ([1.5f64; 3], vec![0.0f32; 3 * world.size()]);
/// world.all_gather(&mine, &mut all)?;
/// # Ok::<(), typepack::Error>(())
/// ```
///
/// [`scatter`]: crate::Communicator::scatter
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a buffer of values of type `{T}`",
    label = "the trait `Buffer<{T}>` is not implemented for `{Self}`",
    note = "buffers are values of types with a datatype (`Equivalence`), their slices, arrays and vectors, `Elements`, and with the feature `ndarray` arrays and views"
)]
pub trait Buffer<T>: Readable<T> {}

impl<T, B: Readable<T> + ?Sized> Buffer<T> for B {}

/// Data that a call writes. The same types as those of [`Buffer`] are buffers for writing, but [`ElementsMut`] takes
/// the place of [`Elements`]. `()` takes no data.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a buffer that a call can write values of type `{T}` to",
    label = "the trait `BufferMut<{T}>` is not implemented for `{Self}`",
    note = "such buffers are values of types with a datatype (`Equivalence`), their slices, arrays and vectors, `ElementsMut`, and with the feature `ndarray` arrays and mutable views"
)]
pub trait BufferMut<T>: Writable<T> {}

impl<T, B: Writable<T> + ?Sized> BufferMut<T> for B {}

/// Returns the sequence of `items` values of `T` at `origin`.
fn values<T: Equivalence>(origin: *mut T, items: usize) -> Result<Sequence<'static>> {
    let (plan, each) = T::elements()?;
    let (origin, plan) = (origin.cast::<u8>(), Cow::Borrowed(plan));
    Ok(Sequence { origin, plan, items, each, apart: true })
}

// SAFETY: the data of the sequence lie within the value and are initialised (first two conditions of `Equivalence`).
unsafe impl<T: Single> Readable<T> for T {
    fn sequence(&self, _argument: &'static str) -> Result<Sequence<'_>> {
        values((&raw const *self).cast_mut(), 1)
    }
}

// SAFETY: the data of the sequence lie within the value, are initialised, and may get any bytes (the conditions of
// `Equivalence`). The value is mutably borrowed.
unsafe impl<T: Single> Writable<T> for T {
    fn sequence_mut(&mut self, _argument: &'static str) -> Result<Sequence<'_>> {
        values(self, 1)
    }
}

// SAFETY: the data of the sequence lie within the values and are initialised (first two conditions of `Equivalence`).
unsafe impl<T: Equivalence> Readable<T> for [T] {
    fn sequence(&self, _argument: &'static str) -> Result<Sequence<'_>> {
        values(self.as_ptr().cast_mut(), self.len())
    }
}

// SAFETY: the data of the sequence lie within the values, are initialised, and may get any bytes (the conditions of
// `Equivalence`). The slice is mutably borrowed.
unsafe impl<T: Equivalence> Writable<T> for [T] {
    fn sequence_mut(&mut self, _argument: &'static str) -> Result<Sequence<'_>> {
        values(self.as_mut_ptr(), self.len())
    }
}

// SAFETY: the sequence is that of the slice of all values, which is borrowed as long as the array.
unsafe impl<T: Equivalence, const N: usize> Readable<T> for [T; N] {
    fn sequence(&self, argument: &'static str) -> Result<Sequence<'_>> {
        self.as_slice().sequence(argument)
    }
}

// SAFETY: the sequence is that of the slice of all values, which is mutably borrowed as long as the array.
unsafe impl<T: Equivalence, const N: usize> Writable<T> for [T; N] {
    fn sequence_mut(&mut self, argument: &'static str) -> Result<Sequence<'_>> {
        self.as_mut_slice().sequence_mut(argument)
    }
}

// SAFETY: the sequence is that of the slice of all values, which is borrowed as long as the vector.
unsafe impl<T: Equivalence> Readable<T> for Vec<T> {
    fn sequence(&self, argument: &'static str) -> Result<Sequence<'_>> {
        self.as_slice().sequence(argument)
    }
}

// SAFETY: the sequence is that of the slice of all values, which is mutably borrowed as long as the vector.
unsafe impl<T: Equivalence> Writable<T> for Vec<T> {
    fn sequence_mut(&mut self, argument: &'static str) -> Result<Sequence<'_>> {
        self.as_mut_slice().sequence_mut(argument)
    }
}

// SAFETY: the sequence has no data.
unsafe impl<T> Readable<T> for () {
    fn sequence(&self, argument: &'static str) -> Result<Sequence<'_>> {
        <[u8] as Readable<u8>>::sequence(&[], argument)
    }
}

// SAFETY: the sequence has no data.
unsafe impl<T> Writable<T> for () {
    fn sequence_mut(&mut self, argument: &'static str) -> Result<Sequence<'_>> {
        <[u8] as Writable<u8>>::sequence_mut(&mut [], argument)
    }
}

/// Elements of a committed datatype in a slice, for reading. Each element is an item of the buffer.
///
/// The call that takes the elements checks that they lie within the slice, before it sends anything.
///
/// ```
/// use typepack::{Datatype, Elements, Named, commit};
///
/// let universe = typepack::init()?;
/// let world = universe.world();
/// // Every rank has a 4 x 4 matrix. Rank 0 gets the second column of each as one row.
/// let column = commit(&Datatype::vector(4, 1, 4, &Datatype::named(Named::F64))?)?;
/// let matrix: Vec<f64> = (0..16).map(f64::from).collect();
/// let mut rows = vec![0.0; if world.rank() == 0 { 4 * world.size() } else { 0 }];
/// world.gather(&Elements::new(&matrix, &column, 1).at(8), &mut rows, 0)?;
/// for row in rows.chunks(4) {
///     assert_eq!(row, [1.0, 5.0, 9.0, 13.0]);
/// }
/// # Ok::<(), typepack::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Elements<'a, T> {
    slice: &'a [T],
    origin: usize,
    plan: &'a Plan,
    count: u64,
}

impl<'a, T: NoUninit> Elements<'a, T> {
    /// Returns the buffer of `count` elements of `plan`'s type in `slice`. The type's displacement 0 is at the start
    /// of the slice.
    pub fn new(slice: &'a [T], plan: &'a Plan, count: u64) -> Self {
        Self { slice, origin: 0, plan, count }
    }

    /// Places the type's displacement 0 at byte `origin` of the slice.
    pub fn at(self, origin: usize) -> Self {
        Self { origin, ..self }
    }
}

/// Elements of a committed datatype in a slice, for writing. Each element is an item of the buffer.
///
/// The call that takes the elements checks that they lie within the slice, before it sends anything. A call that
/// divides the elements among the ranks also checks that they do not overlap.
#[derive(Debug)]
pub struct ElementsMut<'a, T> {
    slice: &'a mut [T],
    origin: usize,
    plan: &'a Plan,
    count: u64,
}

impl<'a, T: NoUninit + AnyBitPattern> ElementsMut<'a, T> {
    /// Returns the buffer of `count` elements of `plan`'s type in `slice`. The type's displacement 0 is at the start
    /// of the slice.
    pub fn new(slice: &'a mut [T], plan: &'a Plan, count: u64) -> Self {
        Self { slice, origin: 0, plan, count }
    }

    /// Places the type's displacement 0 at byte `origin` of the slice.
    pub fn at(self, origin: usize) -> Self {
        Self { origin, ..self }
    }
}

/// Returns the sequence of some elements.
fn elements<'a>(
    elements: engine::Elements<&'a Plan>,
    argument: &'static str,
) -> Result<Sequence<'a>> {
    let engine::Elements { origin, plan, count } = elements;
    let items = usize::try_from(count).map_err(|_| {
        Error::new(ErrorKind::Count, argument, format!("{count} elements are too many"))
    })?;
    Ok(Sequence { origin, plan: Cow::Borrowed(plan), items, each: 1, apart: false })
}

// SAFETY: the slice has the elements (`readable` has checked this), and is borrowed as long as the value. All bytes of
// a `NoUninit` type are initialised.
unsafe impl<T: NoUninit> Readable<T> for Elements<'_, T> {
    fn sequence(&self, argument: &'static str) -> Result<Sequence<'_>> {
        elements(readable(self.slice, self.origin, self.plan, self.count, argument)?, argument)
    }
}

// SAFETY: the slice has the elements (`writable` has checked this), and is mutably borrowed as long as the value. All
// bytes of a `NoUninit` type are initialised, and an `AnyBitPattern` type may get any bytes.
unsafe impl<T: NoUninit + AnyBitPattern> Writable<T> for ElementsMut<'_, T> {
    fn sequence_mut(&mut self, argument: &'static str) -> Result<Sequence<'_>> {
        elements(writable(self.slice, self.origin, self.plan, self.count, argument)?, argument)
    }
}
