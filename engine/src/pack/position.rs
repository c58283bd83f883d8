//! Packs into and unpacks from packing units, at a position that advances (MPI-5.0 section 5.2).
//!
//! These functions do what those of `mod.rs` do, but at a given position of the packed buffer.
//! Successive calls, each of which starts at the position that the previous call returned, fill one
//! packing unit; the calls may use different types. The calls that unpack a unit need not have the same
//! counts and types as the calls that packed it. A unit contains nothing but packed data. So
//! [`Plan::packed_bytes`] is the exact result of `MPI_Pack_size`, and a message can be unpacked like a
//! unit.
//!
//! Invariant: a call that fails changes no position and writes nothing. `external.rs` also uses
//! [`room`].
//!
//! ```
//! use typepack_engine::{Datatype, Named, pack_at, unpack_at};
//!
//! let int = Datatype::named(Named::INT).commit()?;
//! let column = Datatype::vector(2, 1, 2, &Datatype::named(Named::DOUBLE))?.commit()?;
//! let (mut unit, mut position) = ([0u8; 100], 0);
//! pack_at(&int, 1, &[7], &mut unit, &mut position)?;
//! pack_at(&column, 1, &[1.0, 0.0, 2.0], &mut unit, &mut position)?;
//! assert_eq!(position, 20);
//!
//! let double = Datatype::named(Named::DOUBLE).commit()?;
//! let (mut n, mut last, mut position) = ([0], [0.0], 0);
//! unpack_at(&int, 1, &unit, &mut position, &mut n)?;
//! unpack_at(&double, 1, &unit, &mut position, &mut last)?;
//! unpack_at(&double, 1, &unit, &mut position, &mut last)?;
//! assert_eq!((n, last, position), ([7], [2.0], 20));
//! # Ok::<(), typepack_engine::Error>(())
//! ```

use crate::error::{Error, ErrorKind, Result, counted};
use crate::exec;
use crate::exec::{pack_raw, unpack_raw};
use crate::plan::Plan;
use crate::plan::footprint::check_bounds;
use bytemuck::{AnyBitPattern, NoUninit};
use std::ops::Range;

/// Packs `count` elements from `src` into `dst` at byte `position`. Displacement 0 of the first
/// element is at the first byte of `src`. The call advances `position` by the number of packed
/// bytes.
///
/// # Errors
///
/// - [`ErrorKind::Buffer`] for `src` if the elements do not lie within `src`.
/// - [`ErrorKind::Argument`] for `position` if `position` is beyond the end of `dst`.
/// - [`ErrorKind::Buffer`] for `dst` if there are too few bytes after `position`.
/// - [`ErrorKind::Overflow`] for `count` if the number of packed bytes does not fit in an `i64`.
///
/// A call that fails writes nothing and leaves `position` unchanged.
#[doc(alias = "MPI_Pack")]
pub fn pack_at<T: NoUninit>(
    plan: &Plan,
    count: u64,
    src: &[T],
    dst: &mut [u8],
    position: &mut usize,
) -> Result<()> {
    check_bounds(plan, count, 0, size_of_val(src), "src")?;
    let bytes = plan.packed_bytes(count)?;
    let room = room(count, bytes, *position, dst.len(), "dst")?;
    // SAFETY:
    // - `0..bytes` is the packed form of `count` elements;
    // - every byte of the type map lies within `src` (`check_bounds`) and is initialised
    //   (NoUninit);
    // - `room` is a range of `dst`, and its length is `bytes`;
    // - `src` and `dst` cannot overlap, since `dst` is borrowed mutably.
    unsafe {
        pack_raw(plan, count, src.as_ptr().cast(), 0..bytes, dst[room.clone()].as_mut_ptr());
    }
    *position = room.end;
    Ok(())
}

/// Unpacks `count` elements from `src` at byte `position` into `dst`. Displacement 0 of the first
/// element is at the first byte of `dst`. The call advances `position` by the number of bytes that
/// it unpacks. Bytes of `dst` that the type does not cover keep their values.
///
/// # Errors
///
/// - [`ErrorKind::Argument`] for `position` if `position` is beyond the end of `src`.
/// - [`ErrorKind::Buffer`] for `src` if there are too few bytes after `position`.
/// - [`ErrorKind::Buffer`] for `dst` if the elements do not lie within `dst`.
/// - [`ErrorKind::Overflow`] for `count` if the number of packed bytes does not fit in an `i64`.
///
/// A call that fails writes nothing and leaves `position` unchanged.
#[doc(alias = "MPI_Unpack")]
pub fn unpack_at<T: NoUninit + AnyBitPattern>(
    plan: &Plan,
    count: u64,
    src: &[u8],
    position: &mut usize,
    dst: &mut [T],
) -> Result<()> {
    check_bounds(plan, count, 0, size_of_val(dst), "dst")?;
    let bytes = plan.packed_bytes(count)?;
    let room = room(count, bytes, *position, src.len(), "src")?;
    // SAFETY:
    // - `0..bytes` is the packed form of `count` elements;
    // - every byte of the type map lies within `dst` (`check_bounds`), is initialised (NoUninit)
    //   and may take any value (AnyBitPattern);
    // - `room` is a range of `src`, and its length is `bytes`;
    // - `src` and `dst` cannot overlap, since `dst` is borrowed mutably.
    unsafe {
        unpack_raw(plan, count, dst.as_mut_ptr().cast(), 0..bytes, src[room.clone()].as_ptr());
    }
    *position = room.end;
    Ok(())
}

/// Does what [`pack_at`] does, with raw pointers. The elements are at `origin`, the address of
/// displacement 0, which need not lie inside an allocation. The packing unit is the `outsize` bytes
/// at `outbuf`.
///
/// # Errors
///
/// - [`ErrorKind::Argument`] for `position` if `position` is greater than `outsize`.
/// - [`ErrorKind::Buffer`] for `outsize` if there are too few bytes after `position`.
/// - [`ErrorKind::Overflow`] for `count` if the number of packed bytes does not fit in an `i64`.
///
/// A call that fails writes nothing and leaves `position` unchanged.
///
/// # Safety
///
/// - Every byte of the type map of `count` elements is valid for reads.
/// - `outbuf` is valid for writes of `outsize` bytes.
/// - The elements and the packed bytes do not overlap.
#[doc(alias = "MPI_Pack")]
// This function is inlined into the C interface, because a function call would take as long as the
// checks.
#[inline(always)]
pub unsafe fn pack_at_raw(
    plan: &Plan,
    count: u64,
    origin: *const u8,
    outbuf: *mut u8,
    outsize: usize,
    position: &mut usize,
) -> Result<()> {
    let start = *position;
    let bytes = match quick_room(plan, count, start, outsize) {
        Some(bytes) => bytes,
        None => checked_room(plan, count, start, (outsize, "outsize"))?,
    };
    // SAFETY:
    // - `bytes` is the packed size of `count` elements (`quick_room` or `checked_room`);
    // - the caller guarantees that every byte of the type map of `count` elements is readable;
    // - the caller guarantees `outsize` writable bytes at `outbuf`, and at least `bytes` of them
    //   follow `start`;
    // - the caller guarantees that the elements and the packed bytes do not overlap.
    unsafe {
        let (memory, packed) = (origin.cast_mut(), outbuf.wrapping_add(start));
        exec::run_all::<true>(plan, count, memory, bytes as u64, packed);
    }
    *position = start + bytes;
    Ok(())
}

/// Does what [`unpack_at`] does, with raw pointers. The packing unit is the `insize` bytes at
/// `inbuf`. The elements are at `origin`, the address of displacement 0, which need not lie inside
/// an allocation.
///
/// # Errors
///
/// - [`ErrorKind::Argument`] for `position` if `position` is greater than `insize`.
/// - [`ErrorKind::Buffer`] for `insize` if there are too few bytes after `position`.
/// - [`ErrorKind::Overflow`] for `count` if the number of packed bytes does not fit in an `i64`.
///
/// A call that fails writes nothing and leaves `position` unchanged.
///
/// # Safety
///
/// - Every byte of the type map of `count` elements is valid for writes (and for reads under
///   `Settings::verify`).
/// - `inbuf` is valid for reads of `insize` bytes.
/// - The elements and the packed bytes do not overlap.
#[doc(alias = "MPI_Unpack")]
// Like `pack_at_raw`, this function is inlined into the C interface: a function call would take as long
// as the checks.
#[inline(always)]
pub unsafe fn unpack_at_raw(
    plan: &Plan,
    count: u64,
    inbuf: *const u8,
    insize: usize,
    position: &mut usize,
    origin: *mut u8,
) -> Result<()> {
    let start = *position;
    let bytes = match quick_room(plan, count, start, insize) {
        Some(bytes) => bytes,
        None => checked_room(plan, count, start, (insize, "insize"))?,
    };
    // SAFETY:
    // - `bytes` is the packed size of `count` elements (`quick_room` or `checked_room`);
    // - the caller guarantees that every byte of the type map of `count` elements is writable;
    // - the caller guarantees `insize` readable bytes at `inbuf`, and at least `bytes` of them
    //   follow `start`;
    // - the caller guarantees that the elements and the packed bytes do not overlap.
    unsafe {
        let packed = inbuf.cast_mut().wrapping_add(start);
        exec::run_all::<false>(plan, count, origin, bytes as u64, packed);
    }
    *position = start + bytes;
    Ok(())
}

/// Returns the number of packed bytes of `count` elements if at least that many bytes follow
/// `position` in a packing unit of `size` bytes. Otherwise returns `None`, and the caller calls
/// [`checked_room`] to get the error.
#[inline]
fn quick_room(plan: &Plan, count: u64, position: usize, size: usize) -> Option<usize> {
    // The caller adds `bytes` to `position`. The sum does not overflow, because the test below ensures
    // that it is at most `size`.
    let bytes = usize::try_from(plan.element_bytes().checked_mul(count)?).ok()?;
    (bytes <= isize::MAX as usize && bytes <= size.checked_sub(position)?).then_some(bytes)
}

/// Does what [`quick_room`] does, but returns an error that gives the reason if there is no room.
#[cold]
fn checked_room(
    plan: &Plan,
    count: u64,
    position: usize,
    (size, argument): (usize, &'static str),
) -> Result<usize> {
    let bytes = plan.packed_bytes(count)?;
    room(count, bytes, position, size, argument).map(|room| room.len())
}

/// Returns the range that the `bytes` packed bytes of `count` elements occupy at `position` of a
/// packing unit of `size` bytes. An error about the size names `argument`.
pub(crate) fn room(
    count: u64,
    bytes: u64,
    position: usize,
    size: usize,
    argument: &'static str,
) -> Result<Range<usize>> {
    let Some(left) = size.checked_sub(position) else {
        let detail = format!(
            "{position} is beyond the end of the packing unit of {}",
            counted(size as u64, "byte", "bytes")
        );
        return Err(Error::new(ErrorKind::Argument, "position", detail));
    };
    if bytes > left as u64 {
        let detail = format!(
            "packing unit too small for {}: {} needed at position {position}; the unit has {}",
            counted(count, "element", "elements"),
            counted(bytes, "byte", "bytes"),
            counted(size as u64, "byte", "bytes")
        );
        return Err(Error::new(ErrorKind::Buffer, argument, detail));
    }
    // `bytes` is at most `left`, so neither the conversion nor the sum overflows.
    Ok(position..position + bytes as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Datatype, Named};

    fn named(named: Named) -> Datatype {
        Datatype::named(named)
    }

    /// Checks that the calls that unpack a packing unit may differ from those that packed it. Packs 7 ints
    /// and 8 doubles with two calls. Then unpacks them 1 to 7 elements at a time, and finally as one
    /// struct.
    #[test]
    fn a_unit_is_unpacked_in_other_parts_than_it_was_packed() {
        let (int, double) = (named(Named::INT).commit().unwrap(), named(Named::DOUBLE));
        let spread = Datatype::vector(4, 2, 3, &double).unwrap().commit().unwrap();
        let double = double.commit().unwrap();
        let ints: Vec<i32> = (0..7).map(|i| i * i - 9).collect();
        let doubles: Vec<f64> = (0..11).map(|i| f64::from(i) / 8.0).collect();
        let sent: Vec<f64> = (0..11).filter(|i| i % 3 < 2).map(|i| doubles[i]).collect();
        let (mut unit, mut position) = ([0xa5; 100], 0);
        pack_at(&int, 7, &ints, &mut unit, &mut position).unwrap();
        assert_eq!(position, 28);
        pack_at(&spread, 1, &doubles, &mut unit, &mut position).unwrap();
        assert_eq!((position, &unit[92..]), (92, &[0xa5; 8][..]));

        for step in 1..=7 {
            let (mut position, mut found, mut numbers) = (0, [0; 7], [0.0; 8]);
            for part in found.chunks_mut(step) {
                unpack_at(&int, part.len() as u64, &unit, &mut position, part).unwrap();
            }
            for part in numbers.chunks_mut(step) {
                unpack_at(&double, part.len() as u64, &unit, &mut position, part).unwrap();
            }
            assert_eq!((found.as_slice(), numbers.as_slice()), (&ints[..], &sent[..]));
            assert_eq!(position, 92);
        }
        // A single struct type unpacks the whole unit.
        let types = [named(Named::INT), named(Named::DOUBLE)];
        let all = Datatype::structured(&[7, 8], &[0, 32], &types).unwrap().commit().unwrap();
        let (mut position, mut words) = (0, [0u64; 12]);
        unpack_at(&all, 1, &unit, &mut position, &mut words).unwrap();
        assert_eq!((position, words[4], words[11]), (92, sent[0].to_bits(), sent[7].to_bits()));
    }

    #[test]
    fn nothing_at_the_end_of_a_unit_is_allowed() {
        let (int, empty) = (named(Named::INT), Datatype::contiguous(0, &named(Named::INT)));
        let (int, empty) = (int.commit().unwrap(), empty.unwrap().commit().unwrap());
        let mut unit = [0u8; 4];
        for position in 0..=4 {
            let mut at = position;
            pack_at(&int, 0, &[0u8; 0], &mut unit, &mut at).unwrap();
            pack_at(&empty, 3, &[0u8; 0], &mut unit, &mut at).unwrap();
            unpack_at(&int, 0, &unit, &mut at, &mut [0u8; 0]).unwrap();
            unpack_at(&empty, u64::MAX, &unit, &mut at, &mut [0u8; 0]).unwrap();
            // SAFETY: both calls move 0 bytes, so they do not access the memory at any of the
            // pointers.
            unsafe {
                pack_at_raw(&int, 0, std::ptr::null(), unit.as_mut_ptr(), 4, &mut at).unwrap();
                unpack_at_raw(&empty, 9, unit.as_ptr(), 4, &mut at, std::ptr::null_mut()).unwrap();
            }
            assert_eq!(at, position);
        }
        pack_at(&int, 0, &[0u8; 0], &mut [], &mut 0).unwrap();
    }

    #[test]
    fn refusals_name_the_argument_write_nothing_and_leave_the_position() {
        let int = named(Named::INT).commit().unwrap();
        let (ints, mut unit) = ([1i32, 2, 3], [7u8; 10]);
        #[track_caller]
        fn check(result: Result<()>, position: usize, before: usize, text: &str) {
            assert_eq!((result.unwrap_err().to_string().as_str(), position), (text, before));
        }
        let huge = "count: 4611686018427387904 elements of 4 bytes each: the product exceeds \
                    2^63 - 1 bytes";
        let cases: [(u64, usize, &str, &str); 6] = [
            (
                3,
                0,
                "",
                "packing unit too small for 3 elements: 12 bytes needed at position 0; the unit \
                 has 10 bytes",
            ),
            (
                1,
                7,
                "",
                "packing unit too small for 1 element: 4 bytes needed at position 7; the unit has \
                 10 bytes",
            ),
            (
                1,
                10,
                "",
                "packing unit too small for 1 element: 4 bytes needed at position 10; the unit \
                 has 10 bytes",
            ),
            (1, 11, "position", "11 is beyond the end of the packing unit of 10 bytes"),
            (0, 11, "position", "11 is beyond the end of the packing unit of 10 bytes"),
            (
                1,
                usize::MAX,
                "position",
                "18446744073709551615 is beyond the end of the packing unit of 10 bytes",
            ),
        ];
        for (count, before, argument, detail) in cases {
            let text = |other: &str| {
                format!("{}: {detail}", if argument.is_empty() { other } else { argument })
            };
            let mut at = before;
            check(pack_at(&int, count, &ints, &mut unit, &mut at), at, before, &text("dst"));
            let mut back = [9i32; 3];
            check(unpack_at(&int, count, &unit, &mut at, &mut back), at, before, &text("src"));
            // SAFETY: both calls fail before they access memory, and the buffers have the stated
            // lengths.
            let [packed, unpacked] = unsafe {
                let (from, to) = (ints.as_ptr().cast(), back.as_mut_ptr().cast());
                [
                    pack_at_raw(&int, count, from, unit.as_mut_ptr(), 10, &mut at),
                    unpack_at_raw(&int, count, unit.as_ptr(), 10, &mut at, to),
                ]
            };
            check(packed, at, before, &text("outsize"));
            check(unpacked, at, before, &text("insize"));
            assert_eq!((unit, back), ([7; 10], [9; 3]));
        }
        // In the following calls, the element buffer is too small or the count is far too large.
        let mut at = 2;
        let few = "src: buffer too small: 2 elements at origin 0 touch bytes 0..8; the buffer has 4 bytes";
        check(pack_at(&int, 2, &ints[..1], &mut unit, &mut at), at, 2, few);
        let few = "dst: buffer too small: 2 elements at origin 0 touch bytes 0..8; the buffer has 4 bytes";
        check(unpack_at(&int, 2, &unit, &mut at, &mut [0i32]), at, 2, few);
        // SAFETY: the call refuses the count before it accesses memory.
        let result = unsafe {
            pack_at_raw(&int, 1 << 62, ints.as_ptr().cast(), unit.as_mut_ptr(), 10, &mut at)
        };
        check(result, at, 2, huge);
        assert_eq!(unit, [7; 10]);
    }
}
