//! Packs and unpacks with a plan. Rust callers use the safe functions; the C interface uses the raw
//! ones.
//!
//! Each element touches no bytes outside `true_lb..true_lb + true_extent`, relative to the address of
//! its displacement 0. A safe function checks once that this range lies within the slice for every
//! element, and then moves the data without further checks.

pub(crate) mod external;
pub(crate) mod position;
#[cfg(feature = "rayon")]
pub(crate) mod threads;

use crate::error::{Error, ErrorKind, Result, counted};
use crate::exec::{pack_raw, unpack_raw};
use crate::plan::Plan;
use crate::plan::footprint::{Footprint, check_bounds};
use bytemuck::{AnyBitPattern, NoUninit};
use std::ops::Range;

/// Packs `count` elements from `src` to the beginning of `dst`. Returns the number of packed bytes.
/// Displacement 0 of the first element is at the first byte of `src`.
///
/// # Errors
///
/// - [`ErrorKind::Buffer`] for `src` if the elements do not lie within `src`.
/// - [`ErrorKind::Buffer`] for `dst` if `dst` has fewer bytes than the packed form.
/// - [`ErrorKind::Overflow`] for `count` if the number of packed bytes does not fit in an `i64`.
#[doc(alias = "MPI_Pack")]
pub fn pack<T: NoUninit>(plan: &Plan, count: u64, src: &[T], dst: &mut [u8]) -> Result<usize> {
    let bytes = match room(of(plan), count, size_of_val(src), dst.len()) {
        Some(bytes) => bytes,
        None => checked(plan, count, (size_of_val(src), "src"), (dst.len(), "dst"))?,
    };
    // SAFETY: `room` or `checked` showed that `count` elements lie within `src` and that `dst` has
    // at least `bytes` bytes. All bytes of `src` are initialised (NoUninit). `dst` is borrowed
    // mutably, so the slices do not overlap.
    unsafe { pack_raw(plan, count, src.as_ptr().cast(), 0..bytes as u64, dst.as_mut_ptr()) };
    Ok(bytes)
}

/// Unpacks `count` elements from the beginning of `src` into `dst`. Returns the number of bytes of
/// `src` that were unpacked. Displacement 0 of the first element is at the first byte of `dst`.
/// Bytes of `dst` that the type does not cover keep their values.
///
/// # Errors
///
/// - [`ErrorKind::Buffer`] for `src` if `src` has fewer bytes than the packed form.
/// - [`ErrorKind::Buffer`] for `dst` if the elements do not lie within `dst`.
/// - [`ErrorKind::Overflow`] for `count` if the number of packed bytes does not fit in an `i64`.
#[doc(alias = "MPI_Unpack")]
pub fn unpack<T: NoUninit + AnyBitPattern>(
    plan: &Plan,
    count: u64,
    src: &[u8],
    dst: &mut [T],
) -> Result<usize> {
    let bytes = match room(of(plan), count, size_of_val(dst), src.len()) {
        Some(bytes) => bytes,
        None => checked(plan, count, (size_of_val(dst), "dst"), (src.len(), "src"))?,
    };
    // SAFETY: `room` or `checked` showed that `count` elements lie within `dst` and that `src` has
    // at least `bytes` bytes. The bytes of `dst` may take any value (AnyBitPattern). `dst` is
    // borrowed mutably, so the slices do not overlap.
    unsafe { unpack_raw(plan, count, dst.as_mut_ptr().cast(), 0..bytes as u64, src.as_ptr()) };
    Ok(bytes)
}

/// Packs the bytes `range` of the packed form of `count` elements into `dst`.
///
/// Displacement 0 of the type is at byte `origin` of `src`. (A type with a negative `true_lb` has
/// data before that byte.) Successive calls may pack ranges in any order.
///
/// # Errors
///
/// - [`ErrorKind::Buffer`] for `src` if the elements do not lie within `src`.
/// - [`ErrorKind::Argument`] for `range` if its start is greater than its end, or if it exceeds the
///   packed form.
/// - [`ErrorKind::Buffer`] for `dst` if `dst` is not exactly as long as the range.
/// - [`ErrorKind::Overflow`] for `count` if the number of packed bytes does not fit in an `i64`.
pub fn pack_range<T: NoUninit>(
    plan: &Plan,
    count: u64,
    src: &[T],
    origin: usize,
    range: Range<u64>,
    dst: &mut [u8],
) -> Result<()> {
    check_bounds(plan, count, origin, size_of_val(src), "src")?;
    check_range(plan, count, &range, "dst", dst.len())?;
    let base = src.as_ptr().cast::<u8>().wrapping_add(origin);
    // SAFETY:
    // - the range lies within the packed form, whose length fits in `i64`, and the length of `dst`
    //   is that of the range (`check_range`);
    // - every byte of the type map lies within `src` (`check_bounds`) and is initialised
    //   (NoUninit);
    // - `src` and `dst` cannot overlap, since `dst` is borrowed mutably.
    unsafe { pack_raw(plan, count, base, range, dst.as_mut_ptr()) };
    Ok(())
}

/// Unpacks `src`, which holds the bytes `range` of the packed form of `count` elements, into `dst`.
///
/// Displacement 0 of the type is at byte `origin` of `dst`.
///
/// # Errors
///
/// - [`ErrorKind::Buffer`] for `dst` if the elements do not lie within `dst`.
/// - [`ErrorKind::Argument`] for `range` if its start is greater than its end, or if it exceeds the
///   packed form.
/// - [`ErrorKind::Buffer`] for `src` if `src` is not exactly as long as the range.
/// - [`ErrorKind::Overflow`] for `count` if the number of packed bytes does not fit in an `i64`.
pub fn unpack_range<T: NoUninit + AnyBitPattern>(
    plan: &Plan,
    count: u64,
    src: &[u8],
    range: Range<u64>,
    dst: &mut [T],
    origin: usize,
) -> Result<()> {
    check_bounds(plan, count, origin, size_of_val(dst), "dst")?;
    check_range(plan, count, &range, "src", src.len())?;
    let base = dst.as_mut_ptr().cast::<u8>().wrapping_add(origin);
    // SAFETY:
    // - the range lies within the packed form, whose length fits in `i64`, and the length of `src`
    //   is that of the range (`check_range`);
    // - every byte of the type map lies within `dst` (`check_bounds`) and may take any value
    //   (AnyBitPattern);
    // - `src` and `dst` cannot overlap, since `dst` is borrowed mutably.
    unsafe { unpack_raw(plan, count, base, range, src.as_ptr()) };
    Ok(())
}

/// Returns the number of packed bytes of an element, and the memory that an element covers.
#[inline]
fn of(plan: &Plan) -> (u64, &Footprint) {
    (plan.element_bytes(), plan.footprint())
}

/// Returns the number of packed bytes of `count` elements if both buffers have room for them. `bytes`
/// is the number of packed bytes of an element, and `place` is the memory that an element covers.
/// `memory` and `packed` are the lengths of the two buffers. For the usual call, the checks take a few
/// instructions. Returns `None` if a number overflows, if data may lie before the buffer, or if a
/// buffer may be too small; the caller must then make the exact checks, as [`checked`] does.
#[inline]
pub(crate) fn room(
    (bytes, place): (u64, &Footprint),
    count: u64,
    memory: usize,
    packed: usize,
) -> Option<usize> {
    let bytes = bytes.checked_mul(count)?;
    let &Footprint { extent, true_lb, true_ub } = place;
    let last = i64::try_from(count).ok()?.checked_sub(1)?.checked_mul(extent)?;
    let end = last.checked_add(true_ub)?;
    // A slice has at most `i64::MAX` bytes, so the cast of `memory` keeps its value.
    let fits = bytes <= packed as u64 && true_lb >= 0 && last >= 0 && end <= memory as i64;
    fits.then_some(bytes as usize)
}

/// Checks the calls for which [`room`] returned `None`: calls with no elements or no data, types with
/// a negative extent, and calls that must be refused.
#[cold]
fn checked(
    plan: &Plan,
    count: u64,
    (memory, memory_name): (usize, &'static str),
    (packed, packed_name): (usize, &'static str),
) -> Result<usize> {
    let bytes = whole(plan, count, packed_name, packed)?;
    check_bounds(plan, count, 0, memory, memory_name)?;
    Ok(bytes)
}

pub(crate) fn whole(
    plan: &Plan,
    count: u64,
    argument: &'static str,
    length: usize,
) -> Result<usize> {
    let bytes = plan.packed_bytes(count)?;
    if bytes > length as u64 {
        return Err(Error::new(
            ErrorKind::Buffer,
            argument,
            format!(
                "buffer too small for {}: {} needed; the buffer has {}",
                counted(count, "element", "elements"),
                counted(bytes, "packed byte", "packed bytes"),
                counted(length as u64, "byte", "bytes")
            ),
        ));
    }
    Ok(bytes as usize)
}

fn check_range(
    plan: &Plan,
    count: u64,
    range: &Range<u64>,
    argument: &'static str,
    length: usize,
) -> Result<()> {
    let bytes = plan.packed_bytes(count)?;
    if range.start > range.end || range.end > bytes {
        return Err(Error::new(
            ErrorKind::Argument,
            "range",
            format!(
                "{}..{} is not a range of the packed form; the start must not exceed the end, and the \
                 end must not exceed {bytes}",
                range.start, range.end
            ),
        ));
    }
    if range.end - range.start != length as u64 {
        return Err(Error::new(
            ErrorKind::Buffer,
            argument,
            format!(
                "the buffer has {}, but the range has {}; the lengths must be equal",
                counted(length as u64, "byte", "bytes"),
                counted(range.end - range.start, "byte", "bytes")
            ),
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Datatype, Named};

    fn column() -> Plan {
        Datatype::vector(3, 1, 4, &Datatype::named(Named::F64)).unwrap().commit().unwrap()
    }

    #[test]
    fn refusals_name_the_argument_and_write_nothing() {
        let plan = column();
        let (src, mut dst) = ([0f64; 9], [7u8; 24]);
        let text = |r: Result<usize>| r.unwrap_err().to_string();
        assert_eq!(
            text(pack(&plan, 1, &src[..8], &mut dst)),
            "src: buffer too small: 1 element at origin 0 touches bytes 0..72; the buffer has 64 \
             bytes"
        );
        assert_eq!(
            text(pack(&plan, 1, &src, &mut dst[..23])),
            "dst: buffer too small for 1 element: 24 packed bytes needed; the buffer has 23 bytes"
        );
        let mut memory = [0f64; 9];
        assert_eq!(
            text(unpack(&plan, 2, &dst, &mut memory)),
            "src: buffer too small for 2 elements: 48 packed bytes needed; the buffer has 24 bytes"
        );
        let backwards = Datatype::vector(2, 1, -1, &Datatype::named(Named::F64)).unwrap();
        let backwards = backwards.commit().unwrap();
        assert_eq!(
            text(pack(&backwards, 1, &src, &mut dst)),
            "src: data before the buffer: 1 element at origin 0 touches bytes -8..8; the buffer \
             has 72 bytes"
        );
        pack_range(&backwards, 1, &src, 8, 0..16, &mut [0; 16]).unwrap();
        let reversed = Range { start: 9, end: 8 };
        for range in [0..25, reversed] {
            let error = pack_range(&plan, 1, &src, 0, range, &mut dst).unwrap_err();
            assert_eq!(error.argument(), "range");
        }
        assert_eq!(dst, [7u8; 24]);
    }

    #[test]
    fn absurd_counts_are_refused() {
        let plan = column();
        for count in [u64::MAX, u64::MAX / 24, i64::MAX as u64] {
            assert!(check_bounds(&plan, count, usize::MAX, usize::MAX, "src").is_err());
            assert!(pack(&plan, count, &[0f64; 9], &mut [0; 24]).is_err());
        }
        let far = Datatype::resized(0, i64::MIN, &Datatype::named(Named::BYTE)).unwrap();
        let far = far.commit().unwrap();
        assert!(check_bounds(&far, u64::MAX, usize::MAX, 1, "src").is_err());
    }

    /// Checks a type whose body is a list of two nests and a block. Packs and unpacks 1 to 3 elements
    /// as a whole. Then packs them in two pieces, split at each multiple of 37 bytes in turn.
    #[test]
    fn bodies_of_several_nests() {
        let (f64, f32) = (Datatype::named(Named::F64), Datatype::named(Named::F32));
        let wide = Datatype::vector(6, 1, 4, &f64).unwrap();
        let narrow = Datatype::vector(7, 1, 3, &f32).unwrap();
        let block = Datatype::contiguous(700, &f64).unwrap();
        let types = [wide, narrow, block];
        let ty = Datatype::structured(&[1, 1, 1], &[0, 200, 1000], &types).unwrap();
        let plan = ty.commit().unwrap();
        assert_eq!(plan.nests().len(), 2);
        for count in 1..=3 {
            let bytes = plan.packed_bytes(count).unwrap() as usize;
            let length = (ty.extent() * count as i64) as usize;
            let memory: Vec<u8> = (0..length).map(|i| (i * 7 % 251) as u8).collect();
            let expected = crate::typemap::pack(&ty, count, &memory, 0);
            let mut packed = vec![0; bytes];
            assert_eq!(pack(&plan, count, &memory, &mut packed).unwrap(), bytes);
            assert!(packed == expected);
            let mut after = vec![0xee; length];
            crate::typemap::unpack(&ty, count, &expected, &mut after, 0);
            let mut unpacked = vec![0xee; length];
            assert_eq!(unpack(&plan, count, &packed, &mut unpacked).unwrap(), bytes);
            assert!(unpacked == after);
            for cut in (0..bytes).step_by(37) {
                packed.fill(0);
                let (first, second) = packed.split_at_mut(cut);
                pack_range(&plan, count, &memory, 0, 0..cut as u64, first).unwrap();
                pack_range(&plan, count, &memory, 0, cut as u64..bytes as u64, second).unwrap();
                assert!(packed == expected, "cut at {cut}");
            }
        }
    }
}
