//! Packing and unpacking in external32 (MPI-5.0 section 5.3): the calls that check buffers.
//!
//! `mod.rs` and `position.rs` have the corresponding calls for the native form; `external32/` moves
//! and converts. Invariant: a call that fails before the first byte changes no position and writes
//! nothing.

use super::position::room as room_at;
use super::room as room_of;
use crate::error::{Error, ErrorKind, Result, counted};
use crate::external32::{
    self, External32, pack_external_raw, pack_external_size, unpack_external_raw,
};
use crate::plan::footprint::check_place;
use bytemuck::{AnyBitPattern, NoUninit};
use std::ops::Range;

/// Packs `count` elements from `src` into `dst` at byte `position` (MPI-5.0 section 5.3). The first
/// byte of `src` is the type's origin. `position` advances by the packed bytes. Successive calls
/// make one packing unit.
///
/// # Errors
///
/// - [`ErrorKind::Buffer`] for `src` if the elements do not lie within it.
/// - [`ErrorKind::Argument`] for `position` if it is beyond the end of `dst`.
/// - [`ErrorKind::Buffer`] for `dst` if there is no room from `position` on.
/// - [`ErrorKind::Overflow`] for `count` if the bytes do not fit 64 bits.
/// - [`ErrorKind::Conversion`] for `src` if a value does not fit its size in external32. Then the
///   bytes of `dst` from `position` on are unspecified.
///
/// A call that returns any error but the last writes nothing. `position` advances only if the call
/// succeeds.
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
    // - the range `room` lies within `dst` and has `bytes` bytes;
    // - `src` and `dst` cannot overlap, since `dst` is borrowed mutably.
    unsafe {
        external32::run_all::<true>(external, count, base, bytes, dst[room.clone()].as_mut_ptr())?
    };
    *position = room.end;
    Ok(())
}

/// Unpacks `count` elements from `src` at byte `position` into `dst` (MPI-5.0 section 5.3). The
/// first byte of `dst` is the type's origin. `position` advances by the used bytes. Bytes of `dst`
/// that the type does not cover keep their values.
///
/// # Errors
///
/// - [`ErrorKind::Argument`] for `position` if it is beyond the end of `src`.
/// - [`ErrorKind::Buffer`] for `src` if it ends before the elements do.
/// - [`ErrorKind::Buffer`] for `dst` if the elements do not lie within it.
/// - [`ErrorKind::Overflow`] for `count` if the bytes do not fit 64 bits.
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
    // - the range `room` lies within `src` and has `bytes` bytes;
    // - `src` and `dst` cannot overlap, since `dst` is borrowed mutably.
    unsafe { external32::run_all::<false>(external, count, base, bytes, ext)? };
    *position = room.end;
    Ok(())
}

/// Packs the bytes `range` of the external32 form of `count` elements into `dst`.
///
/// `origin` is the byte position in `src` of the type's displacement 0. Ranges may come in any
/// order.
///
/// # Errors
///
/// - [`ErrorKind::Buffer`] for `src` if the elements do not lie within it.
/// - [`ErrorKind::Conversion`] for `src` if a value in the range does not fit its size in
///   external32.
/// - [`ErrorKind::Argument`] for `range` if it is not within the packed bytes.
/// - [`ErrorKind::Buffer`] for `dst` if it is not exactly as long as the range.
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
    // - `dst` has the range's length (`check_length`); the walk checks the range itself;
    // - `src` and `dst` cannot overlap, since `dst` is borrowed mutably.
    unsafe { pack_external_raw(external, count, base, range, dst.as_mut_ptr()) }
}

/// Unpacks `src`, the bytes `range` of the external32 form of `count` elements, into `dst`.
///
/// `origin` is the byte position in `dst` of the type's displacement 0. Ranges that cut no elements
/// may come in any order. The parts of a cut element must come in order: an element that changes
/// its format, such as `MPI_LONG`, is converted when its last byte arrives.
///
/// # Errors
///
/// - [`ErrorKind::Buffer`] for `dst` if the elements do not lie within it.
/// - [`ErrorKind::Argument`] for `range` if it is not within the packed bytes.
/// - [`ErrorKind::Buffer`] for `src` if it is not exactly as long as the range.
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
    // - `src` has the range's length (`check_length`); the walk checks the range itself;
    // - `src` and `dst` cannot overlap, since `dst` is borrowed mutably.
    unsafe { unpack_external_raw(external, count, base, range, src.as_ptr()) }
}

/// Returns the place of the packed bytes of `count` elements, from `position` on. `memory` and
/// `packed` each contain the length of one side in bytes and the name of its argument.
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

/// Does what [`room`] does for empty messages, backward strides, and refusals.
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
    // The walk refuses a range that is not within the packed bytes.
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
