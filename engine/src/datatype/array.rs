//! Subarrays: a box inside a larger array (MPI-5.0 section 5.1.3).
//!
//! Both `bounds.rs` and `ir/lower.rs` use the strides that this file computes, so that the two cannot
//! disagree.

use super::{Constructor, Datatype};
use crate::error::{Error, ErrorKind, Result, counted};

/// The position of a subarray in its array: sizes, subsizes and starts of all dimensions, in elements.
#[derive(Clone, Debug)]
pub(crate) struct Region(Box<[i64]>);

impl Region {
    /// Joins the three slices, which must have equal lengths.
    fn new(sizes: &[i64], subsizes: &[i64], starts: &[i64]) -> Self {
        Self([sizes, subsizes, starts].concat().into())
    }

    /// Returns the sizes, the subsizes and the starts.
    pub(crate) fn parts(&self) -> [&[i64]; 3] {
        let (sizes, rest) = self.0.split_at(self.0.len() / 3);
        let (subsizes, starts) = rest.split_at(rest.len() / 2);
        [sizes, subsizes, starts]
    }

    /// Returns the sizes of the whole array.
    pub(crate) fn sizes(&self) -> &[i64] {
        self.parts()[0]
    }
}

/// Storage order of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// The last index varies fastest (`MPI_ORDER_C`).
    #[doc(alias = "MPI_ORDER_C")]
    C,
    /// The first index varies fastest (`MPI_ORDER_FORTRAN`).
    #[doc(alias = "MPI_ORDER_FORTRAN")]
    Fortran,
}

impl Order {
    /// Returns the value that the MPI 5 standard ABI assigns to this order.
    pub fn abi_value(self) -> i32 {
        match self {
            Self::C => 12,
            Self::Fortran => 15,
        }
    }

    /// Returns the order to which the MPI 5 standard ABI assigns `value`, or `None` if there is none.
    pub fn from_abi_value(value: i32) -> Option<Self> {
        [Self::C, Self::Fortran].into_iter().find(|order| order.abi_value() == value)
    }
}

/// Returns the indices of the dimensions, from the slowest varying to the fastest varying.
pub(super) fn slowest_first(
    dimensions: usize,
    order: Order,
) -> impl DoubleEndedIterator<Item = usize> {
    (0..dimensions).map(move |i| match order {
        Order::C => i,
        Order::Fortran => dimensions - 1 - i,
    })
}

/// Checks that the array has at least one dimension, and that the number of dimensions fits in an
/// `int`.
pub(super) fn check_dimensions(sizes: &[i64]) -> Result<()> {
    if sizes.is_empty() {
        return Err(Error::new(
            ErrorKind::Argument,
            "sizes",
            "no dimensions are given; at least 1 is needed",
        ));
    }
    if i32::try_from(sizes.len()).is_err() {
        let detail =
            format!("the number of dimensions is {}; it must be at most {}", sizes.len(), i32::MAX);
        return Err(Error::new(ErrorKind::Overflow, "sizes", detail));
    }
    Ok(())
}

/// Returns the number of elements of the whole array, or an error if it does not fit in an `i64`.
pub(crate) fn elements(sizes: &[i64]) -> Result<i128> {
    let mut total = 1i64;
    for &size in sizes {
        total = total.checked_mul(size).ok_or_else(|| {
            Error::new(
                ErrorKind::Overflow,
                "sizes",
                format!("the product of {sizes:?} does not fit in a signed 64-bit integer"),
            )
        })?;
    }
    Ok(i128::from(total))
}

/// Returns the index of each dimension of a dense array, with the stride of this dimension in bytes,
/// from the fastest varying dimension to the slowest varying. The elements of the array lie `extent`
/// bytes apart. Returns an error if the number of elements does not fit in an `i64`.
pub(crate) fn strides(
    sizes: &[i64],
    order: Order,
    extent: i128,
) -> Result<impl Iterator<Item = (usize, i128)> + '_> {
    // The products below fit in 128 bits: `elements` checks here that the number of elements fits in an
    // `i64`, and the extent fits in an `i64` too.
    elements(sizes)?;
    let mut next = extent;
    Ok(slowest_first(sizes.len(), order).rev().map(move |dimension| {
        let stride = next;
        next *= i128::from(sizes[dimension]);
        (dimension, stride)
    }))
}

impl Datatype {
    /// Creates a type for a box inside an array of `sizes` elements. The box has `subsizes` elements
    /// and begins at index `starts`.
    ///
    /// All three slices have one entry per dimension and count in elements of `old`. The new type's
    /// lower bound is 0 and its extent is that of the whole array (MPI-5.0 section 5.1.3).
    ///
    /// # Errors
    ///
    /// Returns `ErrorKind::Argument` if there are no dimensions, if the slices have different lengths,
    /// if a size is below 1, if a subsize is below 1 or above its size, or if the box extends past the
    /// edge of the array. Returns `ErrorKind::Type` if `old` is a bound marker of MPI-1. Returns
    /// `ErrorKind::Overflow` if there are more than `i32::MAX` dimensions, or if the number of elements
    /// of the array, or the size, the extent or a bound of the new type, does not fit in an `i64`.
    #[doc(alias = "MPI_Type_create_subarray")]
    pub fn subarray(
        sizes: &[i64],
        subsizes: &[i64],
        starts: &[i64],
        order: Order,
        old: &Datatype,
    ) -> Result<Self> {
        check_dimensions(sizes)?;
        for (name, slice) in [("subsizes", subsizes), ("starts", starts)] {
            if slice.len() != sizes.len() {
                return Err(Error::new(
                    ErrorKind::Argument,
                    name,
                    format!(
                        "{}, but sizes has {}",
                        counted(slice.len(), "entry", "entries"),
                        counted(sizes.len(), "entry", "entries")
                    ),
                ));
            }
        }
        for dimension in 0..sizes.len() {
            let (size, subsize, start) = (sizes[dimension], subsizes[dimension], starts[dimension]);
            let fail = |name, detail: String| {
                Err(Error::new(
                    ErrorKind::Argument,
                    name,
                    format!("dimension {dimension}: {detail}"),
                ))
            };
            if size < 1 {
                return fail("sizes", format!("{size} is less than 1"));
            }
            if subsize < 1 || subsize > size {
                return fail("subsizes", format!("{subsize} is not between 1 and the size {size}"));
            }
            if start < 0 || start > size - subsize {
                return fail(
                    "starts",
                    format!(
                        "{start} is not between 0 and {} (size {size}, subsize {subsize})",
                        size - subsize
                    ),
                );
            }
        }
        Self::build(Constructor::Subarray {
            region: Region::new(sizes, subsizes, starts),
            order,
            old: old.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::named::Named;

    #[test]
    fn strides_follow_the_order() {
        let of = |order| strides(&[2, 3, 4], order, 8).unwrap().collect::<Vec<_>>();
        assert_eq!(of(Order::C), [(2, 8), (1, 32), (0, 96)]);
        assert_eq!(of(Order::Fortran), [(0, 8), (1, 16), (2, 48)]);
    }

    #[test]
    fn extent_is_the_whole_array() {
        let old = Datatype::named(Named::F64);
        let ty = Datatype::subarray(&[4, 6], &[2, 3], &[1, 2], Order::C, &old).unwrap();
        assert_eq!((ty.lb(), ty.extent(), ty.size()), (0, 4 * 6 * 8, 2 * 3 * 8));
        assert_eq!((ty.true_lb(), ty.true_extent()), ((6 + 2) * 8, (6 + 3) * 8));
    }

    #[test]
    fn refusals_name_argument_and_dimension() {
        let old = Datatype::named(Named::F64);
        let refuse = |sizes: &[i64], subsizes: &[i64], starts: &[i64]| {
            Datatype::subarray(sizes, subsizes, starts, Order::C, &old).unwrap_err().to_string()
        };
        assert_eq!(refuse(&[], &[], &[]), "sizes: no dimensions are given; at least 1 is needed");
        assert_eq!(refuse(&[4, 4], &[1], &[0, 0]), "subsizes: 1 entry, but sizes has 2 entries");
        assert_eq!(
            refuse(&[4], &[5], &[0]),
            "subsizes: dimension 0: 5 is not between 1 and the size 4"
        );
        assert_eq!(
            refuse(&[4, 4], &[1, 2], &[0, 3]),
            "starts: dimension 1: 3 is not between 0 and 2 (size 4, subsize 2)"
        );
        assert!(refuse(&[i64::MAX, 4], &[1, 2], &[0, 0]).contains("does not fit"));
        assert!(refuse(&[i64::MAX / 4], &[1], &[0]).contains("does not fit"));
    }
}
