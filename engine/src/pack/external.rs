//! Packing and unpacking in external32 (MPI-5.0 section 5.3): the calls that check buffers.
//!
//! Beside `mod.rs` and `position.rs`, which do the same for the native form; `external32/` moves and
//! converts. Invariant: an error before the first byte moves no position and writes nothing.

use super::position::room as room_at;
use super::room as room_of;
use crate::error::{Error, ErrorKind, Result};
use crate::external32::{
    self, External32, pack_external_raw, pack_external_size, unpack_external_raw,
};
use crate::plan::footprint::check_place;
use bytemuck::{AnyBitPattern, NoUninit};
use std::ops::Range;

/// Packs `count` elements from `src`, whose first byte is the type's origin, into `dst` at byte
/// `position`, which advances by what was packed (MPI-5.0 section 5.3). Successive calls make one
/// packing unit.
///
/// # Errors
///
/// `src`: the elements do not lie within it. `position`: beyond the end of `dst`. `dst`: no room
/// from `position` on. `count`: the bytes do not fit 64 bits. In all these cases nothing is written.
/// `src` again, with
/// [`ErrorKind::Conversion`]: a value does not fit the size it has in external32; then `dst` from
/// `position` on is unspecified. `position` advances only without an error.
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
    // - the bytes are those of all elements;
    // - room: every element's data lies within src, initialised (NoUninit);
    // - room: as many bytes of dst;
    // - src and dst cannot overlap, one being borrowed mutably.
    unsafe {
        external32::run_all::<true>(external, count, base, bytes, dst[room.clone()].as_mut_ptr())?
    };
    *position = room.end;
    Ok(())
}

/// Unpacks `count` elements from `src` at byte `position`, which advances by what was used, into
/// `dst`, whose first byte is the type's origin (MPI-5.0 section 5.3). Bytes of `dst` that the type
/// does not cover keep their values.
///
/// # Errors
///
/// `position`: beyond the end of `src`. `src`: it ends before the elements do. `dst`: the elements
/// do not lie within it. `count`: the bytes do not fit 64 bits. Nothing is written then, and
/// `position` stays.
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
    // - the bytes are those of all elements;
    // - room: every element's data lies within dst, is initialised (NoUninit) and may take any bytes
    //   (AnyBitPattern);
    // - room: as many bytes of src;
    // - src and dst cannot overlap, one being borrowed mutably.
    unsafe { external32::run_all::<false>(external, count, base, bytes, ext)? };
    *position = room.end;
    Ok(())
}

/// Packs the bytes `range` of the external32 form of `count` elements into `dst`.
///
/// `origin` is the byte position in `src` of the type's displacement 0. Any range may be asked for
/// in any order.
///
/// # Errors
///
/// `src`: the elements do not lie within it, or (conversion) a value in the range does not fit the
/// size it has in external32. `range`: not within the packed bytes. `dst`: not as long as the range.
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
    // - check_place: every element's data lies within src, initialised (NoUninit);
    // - check_length: dst is as long as the range (which the walk checks itself);
    // - src and dst cannot overlap, one being borrowed mutably.
    unsafe { pack_external_raw(external, count, base, range, dst.as_mut_ptr()) }
}

/// Unpacks `src`, the bytes `range` of the external32 form of `count` elements, into `dst`.
///
/// `origin` is the byte position in `dst` of the type's displacement 0. Ranges may come in any
/// order if they do not break elements. The parts of a broken element must come in order (an element
/// that changes its format, such as `MPI_LONG`, is converted when its last byte arrives).
///
/// # Errors
///
/// `dst`: the elements do not lie within it. `range`: not within the packed bytes. `src`: not as
/// long as the range.
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
    // - check_place: every element's data lies within dst, is initialised (NoUninit) and may take
    //   any bytes (AnyBitPattern);
    // - check_length: src is as long as the range (which the walk checks itself);
    // - src and dst cannot overlap, one being borrowed mutably.
    unsafe { unpack_external_raw(external, count, base, range, src.as_ptr()) }
}

/// Where the packed bytes of `count` elements belong, from `position` on; both sides with their
/// length in bytes and the name of their argument.
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

/// [`room`] for empty messages, strides that go backwards, and refusals.
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
    // A range that is not within the packed bytes is refused by the walk.
    if range.end.checked_sub(range.start) != Some(length as u64) {
        let detail = format!("{length} bytes for the range {}..{}", range.start, range.end);
        return Err(Error::new(ErrorKind::Buffer, argument, detail));
    }
    Ok(())
}
