//! Arrays and views of the crate `ndarray` as buffers, with any strides.
//!
//! The data travel in the logical order of the array: the last index varies fastest. An array in standard layout is a
//! sequence of plain values. The layout of any other array becomes a datatype, so a transposed or reversed view needs
//! no copy. `io/array.rs` uses [`strided`] too.

use super::Equivalence;
use super::buffer::Sequence;
use super::buffer::sealed::{Readable, Writable};
use crate::{Datatype, Plan, Result, commit};
use ndarray::{ArrayBase, ArrayView, Data, DataMut, Dimension};
use std::any::TypeId;
use std::borrow::Cow;
use std::sync::{Mutex, PoisonError};

/// Returns the type of an array of elements of `datatype`, whose size is `bytes`. The displacements are relative to the
/// element with all indices 0. `strides` counts in elements, as `ndarray` does.
///
/// # Errors
/// Returns `ErrorKind::Engine` if the type is nested too deeply.
pub(crate) fn strided(
    mut datatype: Datatype,
    bytes: usize,
    shape: &[usize],
    strides: &[isize],
) -> Result<Datatype> {
    for (&length, &stride) in shape.iter().zip(strides).rev() {
        // Lossless: the lengths and strides are those of an array in memory.
        let step = stride as i64 * bytes as i64;
        datatype = Datatype::hvector(length as i64, 1, step, &datatype)?;
    }
    Ok(datatype)
}

/// Maximum number of plans that the library keeps for views.
const KEPT: usize = 64;

/// The plan of an entry along the first dimension of a view, with the type of the values, the shape and the strides.
/// The shape does not count the first dimension.
struct Kept {
    value: TypeId,
    shape: Box<[usize]>,
    strides: Box<[isize]>,
    plan: Plan,
}

/// The plans of the last views, the latest one last. A program that sends the same view again and again uses one plan:
/// what the library learns about a plan (what peers know, whether compiled code pays) is kept with the plan.
static PLANS: Mutex<Vec<Kept>> = Mutex::new(Vec::new());

/// Returns the plan of an entry along the first dimension of a view. The extent of the entry is the distance to the
/// next one.
fn entry<T: Equivalence>(shape: &[usize], strides: &[isize]) -> Result<Plan> {
    let value = TypeId::of::<T>();
    let mut plans = PLANS.lock().unwrap_or_else(PoisonError::into_inner);
    let found = plans.iter().rposition(|kept| {
        kept.value == value && *kept.shape == shape[1..] && *kept.strides == *strides
    });
    let kept = match found {
        Some(place) => plans.remove(place),
        None => {
            let inner = strided(T::datatype()?, size_of::<T>(), &shape[1..], &strides[1..])?;
            let step = strides[0] as i64 * size_of::<T>() as i64;
            let plan = commit(&Datatype::resized(0, step, &inner)?)?;
            if plans.len() >= KEPT {
                plans.remove(0);
            }
            Kept { value, shape: shape[1..].into(), strides: strides.into(), plan }
        }
    };
    let plan = kept.plan.clone();
    plans.push(kept);
    Ok(plan)
}

/// Returns the data of an array at `origin`. `standard` is true if the array is in standard layout.
fn sequence<T: Equivalence>(
    origin: *mut T,
    (shape, strides): (&[usize], &[isize]),
    standard: bool,
) -> Result<Sequence<'static>> {
    let origin = origin.cast::<u8>();
    let (items, inner) = shape.split_first().map_or((1, &[][..]), |(first, inner)| (*first, inner));
    if standard {
        let (plan, each) = T::elements()?;
        // The products fit: `inner` is the shape of a part of an array in memory, or `items` is 0.
        let inner = inner.iter().fold(1, |product: usize, length| product.saturating_mul(*length));
        let each = (inner as u64).saturating_mul(each);
        return Ok(Sequence { origin, plan: Cow::Borrowed(plan), items, each, apart: true });
    }
    let plan = Cow::Owned(entry::<T>(shape, strides)?);
    // Two elements of a view for reading may be the same. A call writes only to arrays without such elements.
    Ok(Sequence { origin, plan, items, each: 1, apart: true })
}

// SAFETY: the sequence has the elements of the array and no other data: a value's type has the size of the value (first
// condition of `Equivalence`), and lengths and strides are those of the array. The elements are initialised values.
// They are borrowed as long as the array.
unsafe impl<T: Equivalence, S: Data<Elem = T>, D: Dimension> Readable<T> for ArrayBase<S, D> {
    fn sequence(&self, _argument: &'static str) -> Result<Sequence<'_>> {
        let view: ArrayView<'_, T, D> = self.view();
        let standard = view.is_standard_layout();
        sequence(view.as_ptr().cast_mut(), (view.shape(), view.strides()), standard)
    }
}

// SAFETY: the sequence has the elements of the array and no other data, as above. The elements are initialised values,
// which may get any bytes (third condition of `Equivalence`). The array is mutably borrowed, and no two of its elements
// share memory (`DataMut`).
unsafe impl<T: Equivalence, S: DataMut<Elem = T>, D: Dimension> Writable<T> for ArrayBase<S, D> {
    fn sequence_mut(&mut self, _argument: &'static str) -> Result<Sequence<'_>> {
        // `view_mut` makes the memory of a shared array unique first, which may change the strides.
        let mut view = self.view_mut();
        let standard = view.is_standard_layout();
        let origin = view.as_mut_ptr();
        sequence(origin, (view.shape(), view.strides()), standard)
    }
}
