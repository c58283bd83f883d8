//! `MPI_MINLOC` and `MPI_MAXLOC` on pair types that have no predefined name (MPI-5.0 section 6.9.4). Such a type is a
//! value and an index, and [`Datatype::get_value_index`](crate::Datatype::get_value_index) makes it of any two types.
//! (The C library's `MPI_Type_get_value_index` returns only pair types with a name.)
//!
//! `operator.rs` has the pair types with a name. There are hundreds of other pair types. So [`combine`] makes one
//! closure for all of them: it compares values and indices by functions for their types, and copies their bytes.

use super::LongDouble;
use super::binary128::Quad;
use crate::endpoint::sources::Combine;
use half::f16;
use std::cmp::Ordering;
use typepack_engine::Named;

/// A function that compares the values at two addresses. Returns `None` if one of them is a NaN.
type Compare = unsafe fn(*const u8, *const u8) -> Option<Ordering>;

/// Compares two values.
///
/// # Safety
///
/// - Both pointers are addresses of readable values of type `T`.
unsafe fn compare<T: PartialOrd>(a: *const u8, b: *const u8) -> Option<Ordering> {
    // SAFETY: both addresses are those of readable values (the condition of `# Safety`). The accesses are
    // unaligned, so the addresses may have any alignment.
    unsafe { a.cast::<T>().read_unaligned().partial_cmp(&b.cast::<T>().read_unaligned()) }
}

/// Returns the function that compares values of a named type; `None` if the type has no order.
fn comparison(named: Named) -> Option<Compare> {
    Some(match named {
        Named::REAL2 => compare::<f16>,
        Named::FLOAT | Named::REAL | Named::REAL4 => compare::<f32>,
        Named::DOUBLE | Named::DOUBLE_PRECISION | Named::REAL8 => compare::<f64>,
        Named::REAL16 => compare::<Quad>,
        Named::LONG_DOUBLE => compare::<LongDouble>,
        Named::UNSIGNED_CHAR | Named::UINT8_T => compare::<u8>,
        Named::UNSIGNED_SHORT | Named::UINT16_T => compare::<u16>,
        Named::UNSIGNED | Named::UINT32_T => compare::<u32>,
        Named::UNSIGNED_LONG | Named::UNSIGNED_LONG_LONG | Named::UINT64_T => compare::<u64>,
        // The value and the index of a pair are reals or integers. All integers that are not listed above are signed.
        _ => match named.size() {
            1 => compare::<i8>,
            2 => compare::<i16>,
            4 => compare::<i32>,
            8 => compare::<i64>,
            16 => compare::<i128>,
            _ => return None,
        },
    })
}

/// Returns the operation on pairs of `value` and `index` that lie `extent` bytes apart: `MPI_MAXLOC` if `largest` is
/// true, and `MPI_MINLOC` otherwise. Returns `None` if the values or the indices have no order.
pub(in crate::coll) fn combine(
    value: Named,
    index: Named,
    extent: usize,
    largest: bool,
) -> Option<Combine> {
    let (values, indices) = (comparison(value)?, comparison(index)?);
    let offset = value.size().next_multiple_of(index.align()) as usize;
    let (value, index) = (value.size() as usize, index.size() as usize);
    let wins = if largest { Ordering::Greater } else { Ordering::Less };
    Some(Combine::user(move |lower, upper, _, count| {
        for pair in 0..count as usize {
            let (lower, upper) =
                (lower.wrapping_add(pair * extent), upper.wrapping_add(pair * extent));
            let (at, other) = (lower.wrapping_add(offset), upper.wrapping_add(offset));
            // SAFETY: the caller of the operation passes two vectors of `count` pairs that lie `extent` bytes
            // apart, and `pair < count`. In each pair, the value is at displacement 0 and the index at `offset`.
            // The pairs of the upper vector are writable, and the two vectors do not overlap.
            unsafe {
                let stays = match values(upper, lower) {
                    Some(Ordering::Equal) => indices(other, at) == Some(Ordering::Less),
                    order => order == Some(wins),
                };
                if !stays {
                    std::ptr::copy_nonoverlapping(lower, upper, value);
                    std::ptr::copy_nonoverlapping(at, upper.wrapping_add(offset), index);
                }
            }
        }
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coll::Operator;
    use typepack_engine::Datatype;

    /// Combines one pair by the operation of this file, and returns the result.
    fn run<T: Copy>(value: Named, index: Named, largest: bool, lower: T, upper: T) -> T {
        let combine =
            combine(value, index, size_of::<T>(), largest).expect("both types have an order");
        let mut result = upper;
        // SAFETY: both pointers are addresses of one pair with the extent of `T`.
        unsafe { combine.call((&raw const lower).cast(), (&raw mut result).cast(), 0, 1) };
        result
    }

    #[test]
    fn pairs_are_combined() {
        let (byte, long) = (Named::UINT8_T, Named::INT64_T);
        let run_bytes = |largest, a: (u8, i64), b: (u8, i64)| {
            run(byte, long, largest, [a.0 as i64, a.1], [b.0 as i64, b.1])
        };
        assert_eq!(run_bytes(true, (200, 1), (100, 2)), [200, 1]);
        assert_eq!(run_bytes(false, (200, 1), (100, 2)), [100, 2]);
        assert_eq!(run_bytes(false, (7, -1), (7, 2)), [7, -1]);
        assert_eq!(run_bytes(true, (7, 3), (7, 2)), [7, 2]);
        let signed = |a: i64, b: i64| run(long, byte, false, [a, 1], [b, 2]);
        assert_eq!((signed(-1, 1), signed(1, -1)), ([-1, 1], [-1, 2]));
        let double =
            |a: f64, b: f64| run(Named::REAL8, byte, true, [a.to_bits(), 4], [b.to_bits(), 5]);
        assert_eq!(double(1.5, -2.0), [1.5f64.to_bits(), 4]);
    }

    #[test]
    fn the_operation_of_a_pair_is_found() {
        let (value, index) = (Datatype::named(Named::REAL16), Datatype::named(Named::INTEGER8));
        let pair = Datatype::get_value_index(&value, &index).unwrap().unwrap();
        assert!(Operator::Maxloc.combine(&pair).is_some());
        assert!(Operator::Sum.combine(&pair).is_none());
        assert!(Operator::Sum.combine(&value).is_some());
        assert!(Operator::Maxloc.combine(&value).is_none());
        let derived = Datatype::contiguous(2, &value).unwrap();
        assert!(Operator::Sum.combine(&derived).is_none());
    }
}
