//! Packs to and unpacks from external32 (MPI-5.0 section 5.3). These functions check the buffers.
//!
//! `mod.rs` and `position.rs` contain the corresponding functions for the native form;
//! `external32/` moves and converts the data. Invariant: a call that fails changes no position. It
//! also writes nothing, unless it fails because external32 cannot represent a value.

use super::position::room as room_at;
use super::room as room_of;
use crate::error::{Error, ErrorKind, Result, counted};
use crate::external32::{
    self, External32, pack_external_raw, pack_external_size, unpack_external_raw,
};
use crate::plan::footprint::check_place;
use bytemuck::{AnyBitPattern, NoUninit};
use std::ops::Range;

/// Packs `count` elements from `src` into `dst` at byte `position` (MPI-5.0 section 5.3).
/// Displacement 0 of the first element is at the first byte of `src`. The call advances `position`
/// by the number of packed bytes. Successive calls fill one packing unit.
///
/// # Errors
///
/// - [`ErrorKind::Buffer`] for `src` if the elements do not lie within `src`.
/// - [`ErrorKind::Argument`] for `position` if `position` is beyond the end of `dst`.
/// - [`ErrorKind::Buffer`] for `dst` if there are too few bytes after `position`.
/// - [`ErrorKind::Overflow`] for `count` if the number of bytes does not fit in an `i64`.
/// - [`ErrorKind::Conversion`] for `src` if a value does not fit in its size in external32. In this
///   case the bytes of `dst` from `position` on are unspecified.
///
/// A call that returns any error other than `ErrorKind::Conversion` writes nothing. `position`
/// advances only if the call succeeds.
#[doc(alias = "MPI_Pack_external")]
pub fn pack_external<T: NoUninit>(
    external: &External32,
    count: u64,
    src: &[T],
    dst: &mut [u8],
    position: &mut usize,
) -> Result<()> {
    let (memory, packed) = ((size_of_val(src), "src"), (dst.len(), "dst"));
    let room = room(external, count, memory, *position, packed)?;
    let bytes = room.len() as u64;
    let base = src.as_ptr().cast::<u8>().cast_mut();
    // SAFETY:
    // - `bytes`, the length of the range that `room()` returned, is the external size of `count`
    //   elements;
    // - every element's data lies within `src` (`room()` checked this) and is initialised
    //   (NoUninit);
    // - the range `room` lies within `dst`, and its length is `bytes`;
    // - `src` and `dst` cannot overlap, since `dst` is borrowed mutably.
    unsafe {
        external32::run_all::<true>(external, count, base, bytes, dst[room.clone()].as_mut_ptr())?
    };
    *position = room.end;
    Ok(())
}

/// Unpacks `count` elements from `src` at byte `position` into `dst` (MPI-5.0 section 5.3).
/// Displacement 0 of the first element is at the first byte of `dst`. The call advances `position`
/// by the number of bytes that it unpacks. Bytes of `dst` that the type does not cover keep their
/// values.
///
/// # Errors
///
/// - [`ErrorKind::Argument`] for `position` if `position` is beyond the end of `src`.
/// - [`ErrorKind::Buffer`] for `src` if there are too few bytes after `position`.
/// - [`ErrorKind::Buffer`] for `dst` if the elements do not lie within `dst`.
/// - [`ErrorKind::Overflow`] for `count` if the number of bytes does not fit in an `i64`.
///
/// A call that fails writes nothing and leaves `position` unchanged.
#[doc(alias = "MPI_Unpack_external")]
pub fn unpack_external<T: NoUninit + AnyBitPattern>(
    external: &External32,
    count: u64,
    src: &[u8],
    position: &mut usize,
    dst: &mut [T],
) -> Result<()> {
    let (memory, packed) = ((size_of_val(dst), "dst"), (src.len(), "src"));
    let room = room(external, count, memory, *position, packed)?;
    let bytes = room.len() as u64;
    let (base, ext) = (dst.as_mut_ptr().cast::<u8>(), src[room.clone()].as_ptr().cast_mut());
    // SAFETY:
    // - `bytes`, the length of the range that `room()` returned, is the external size of `count`
    //   elements;
    // - every element's data lies within `dst` (`room()` checked this), is initialised (NoUninit)
    //   and may take any value (AnyBitPattern);
    // - the range `room` lies within `src`, and its length is `bytes`;
    // - `src` and `dst` cannot overlap, since `dst` is borrowed mutably.
    unsafe { external32::run_all::<false>(external, count, base, bytes, ext)? };
    *position = room.end;
    Ok(())
}

/// Packs the bytes `range` of the external32 form of `count` elements into `dst`.
///
/// Displacement 0 of the type is at byte `origin` of `src`. Successive calls may pack ranges in any
/// order.
///
/// # Errors
///
/// - [`ErrorKind::Buffer`] for `src` if the elements do not lie within `src`.
/// - [`ErrorKind::Conversion`] for `src` if a value in the range does not fit in its size in
///   external32.
/// - [`ErrorKind::Argument`] for `range` if the range exceeds the packed form.
/// - [`ErrorKind::Buffer`] for `dst` if `dst` is not exactly as long as the range, or if the range ends
///   before its start.
/// - [`ErrorKind::Overflow`] for `count` if the size of the packed form does not fit in an `i64`.
pub fn pack_external_range<T: NoUninit>(
    external: &External32,
    count: u64,
    src: &[T],
    origin: usize,
    range: Range<u64>,
    dst: &mut [u8],
) -> Result<()> {
    check_place(external.place(), count, origin, size_of_val(src), "src")?;
    check_length(&range, "dst", dst.len())?;
    let base = src.as_ptr().cast::<u8>().wrapping_add(origin);
    // SAFETY:
    // - every element's data lies within `src` (`check_place`) and is initialised (NoUninit);
    // - the length of `dst` is that of the range (`check_length`), and `pack_external_raw` checks
    //   that the range lies within the packed form;
    // - `src` and `dst` cannot overlap, since `dst` is borrowed mutably.
    unsafe { pack_external_raw(external, count, base, range, dst.as_mut_ptr()) }
}

/// Unpacks `src`, which holds the bytes `range` of the external32 form of `count` elements, into
/// `dst`.
///
/// Displacement 0 of the type is at byte `origin` of `dst`. Ranges that cut no basic element may be
/// unpacked in any order. The parts of a cut basic element must be unpacked in order, because a basic
/// element that changes its format, such as `MPI_LONG`, is converted when its last byte arrives.
///
/// # Errors
///
/// - [`ErrorKind::Buffer`] for `dst` if the elements do not lie within `dst`.
/// - [`ErrorKind::Argument`] for `range` if the range exceeds the packed form.
/// - [`ErrorKind::Buffer`] for `src` if `src` is not exactly as long as the range, or if the range ends
///   before its start.
/// - [`ErrorKind::Overflow`] for `count` if the size of the packed form does not fit in an `i64`.
pub fn unpack_external_range<T: NoUninit + AnyBitPattern>(
    external: &External32,
    count: u64,
    src: &[u8],
    range: Range<u64>,
    dst: &mut [T],
    origin: usize,
) -> Result<()> {
    check_place(external.place(), count, origin, size_of_val(dst), "dst")?;
    check_length(&range, "src", src.len())?;
    let base = dst.as_mut_ptr().cast::<u8>().wrapping_add(origin);
    // SAFETY:
    // - every element's data lies within `dst` (`check_place`), is initialised (NoUninit) and may
    //   take any value (AnyBitPattern);
    // - the length of `src` is that of the range (`check_length`), and `unpack_external_raw` checks
    //   that the range lies within the packed form;
    // - `src` and `dst` cannot overlap, since `dst` is borrowed mutably.
    unsafe { unpack_external_raw(external, count, base, range, src.as_ptr()) }
}

/// Returns the range of the packed buffer for `count` elements; the range begins at `position`.
/// `memory` and `packed` each describe a buffer: its length in bytes, and the name of the argument that
/// holds it.
#[inline]
fn room(
    external: &External32,
    count: u64,
    memory: (usize, &'static str),
    position: usize,
    packed: (usize, &'static str),
) -> Result<Range<usize>> {
    let usual = || {
        let element = (external.element_bytes(), external.place()?);
        let left = packed.0.checked_sub(position)?;
        let bytes = room_of(element, count, memory.0, left)?;
        Some(position..position + bytes)
    };
    match usual() {
        Some(room) => Ok(room),
        None => checked_room(external, count, memory, position, packed),
    }
}

/// Does what [`room`] does, for the calls that do not pass its quick test: calls with no elements or no
/// data, types with a negative extent, and calls that return an error.
#[cold]
fn checked_room(
    external: &External32,
    count: u64,
    memory: (usize, &'static str),
    position: usize,
    packed: (usize, &'static str),
) -> Result<Range<usize>> {
    let bytes = pack_external_size(external, count)?;
    let room = room_at(count, bytes, position, packed.0, packed.1)?;
    check_place(external.place(), count, 0, memory.0, memory.1)?;
    Ok(room)
}

fn check_length(range: &Range<u64>, argument: &'static str, length: usize) -> Result<()> {
    // The caller passes the range on to a function that refuses a range outside the packed form. So
    // only the length has to be checked here.
    if range.end.checked_sub(range.start) != Some(length as u64) {
        let detail = format!(
            "the buffer has {}, which is not the length of the range {}..{}",
            counted(length as u64, "byte", "bytes"),
            range.start,
            range.end
        );
        return Err(Error::new(ErrorKind::Buffer, argument, detail));
    }
    Ok(())
}
