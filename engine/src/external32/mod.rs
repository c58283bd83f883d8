//! external32, the standard's canonical representation (MPI-5.0 section 14.5.2): pack and unpack
//! with the conversion fused into the copy.
//!
//! ```text
//! Datatype -> typed program in external32 bytes (../ir/typed/) -> External32
//!     every element keeps its width -> byteswap.rs -> ../exec/, ../leaf/
//!     else walk a range of bytes -> runs of one named type -> convert.rs, by kind.rs (binary128.rs)
//! ```
//!
//! - `byteswap.rs`: a plan for the engine's kernels, where all that changes is the byte order
//! - `kind.rs`: what an element of each named type becomes
//! - `convert.rs`: the loops over runs of elements
//! - `binary128.rs`: x87's long double to and from binary128
//!
//! The packed form of `count` elements of a type is one sequence of bytes, and any range of it can
//! be packed or unpacked on its own, in O(depth + log list) and the bytes moved: file views and
//! segments of messages need that. Elements that a range breaks go through a small buffer.
//!
//! ```
//! use typepack_engine::{Datatype, External32, Named, pack_external, unpack_external};
//!
//! let column = Datatype::vector(2, 1, 3, &Datatype::named(Named::INT))?;
//! let external = External32::new(&column)?;
//! let (mut unit, mut position) = ([0u8; 16], 0);
//! pack_external(&external, 1, &[1i32, 0, 0, -2], &mut unit, &mut position)?;
//! assert_eq!((position, &unit[..8]), (8, &[0, 0, 0, 1, 0xff, 0xff, 0xff, 0xfe][..]));
//!
//! let (mut back, mut position) = ([7i32; 4], 0);
//! unpack_external(&external, 1, &unit, &mut position, &mut back)?;
//! assert_eq!(back, [1, 7, 7, -2]);
//! # Ok::<(), typepack_engine::Error>(())
//! ```

mod kind;
// Elsewhere long double is binary128 already.
#[cfg(any(target_arch = "x86_64", target_arch = "x86", test))]
mod binary128;
mod byteswap;
mod convert;

use crate::datatype::Datatype;
use crate::error::{Error, ErrorKind, Result};
use crate::ir::typed::{Runs, Stretch, TypedProgram, Unit};
use crate::kernel::Direction;
use crate::named::Named;
use crate::pack::position;
use crate::pack::{self, check_place};
use crate::plan::Settings;
use crate::plan::footprint::Footprint;
use bytemuck::{AnyBitPattern, NoUninit};
use byteswap::ByteSwapped;
use std::ops::Range;
use std::sync::Arc;

/// Bytes of one element of `named` in external32.
///
/// ```
/// use typepack_engine::{Named, external32};
/// assert_eq!(external32::size_of(Named::LONG), 4);
/// assert_eq!(external32::size_of(Named::LONG_DOUBLE), 16);
/// ```
pub fn size_of(named: Named) -> u64 {
    kind::Encoding::of(named).bytes() as u64
}

/// A datatype prepared for external32. Cloning is one reference count.
#[derive(Clone, Debug)]
pub struct External32(Arc<Prepared>);

#[derive(Debug)]
struct Prepared {
    datatype: Datatype,
    program: TypedProgram,
    /// Where an element lies; `None` without data.
    place: Option<Footprint>,
    byteswapped: Option<ByteSwapped>,
}

impl External32 {
    /// Prepares `datatype`; costs as much as its tree has nodes.
    ///
    /// # Errors
    ///
    /// A type that needs more program nodes than the documented limit (2^28).
    pub fn new(datatype: &Datatype) -> Result<Self> {
        Self::with_settings(datatype, &Settings::default())
    }

    /// As [`External32::new`], with leaf kernels for the instruction set of `settings`, and none if
    /// the interpreter is forced.
    ///
    /// # Errors
    ///
    /// As for [`External32::new`].
    pub fn with_settings(datatype: &Datatype, settings: &Settings) -> Result<Self> {
        let program = TypedProgram::lower(datatype, Unit::External32)?;
        let byteswapped = ByteSwapped::new(datatype, &program, settings)?;
        let place = (datatype.size() > 0).then(|| Footprint::of_datatype(datatype));
        Ok(Self(Arc::new(Prepared { datatype: datatype.clone(), program, place, byteswapped })))
    }

    /// The type that was prepared.
    pub fn datatype(&self) -> &Datatype {
        &self.0.datatype
    }

    /// The typed program, whose positions are bytes of external32.
    pub fn program(&self) -> &TypedProgram {
        &self.0.program
    }

    /// Bytes of one element in external32.
    pub fn element_bytes(&self) -> u64 {
        self.0.program.element_units()
    }

    /// What converts, for people: the leaf kernels of a plan, `memcpy`, or `general` for types with
    /// elements that change more than their byte order.
    pub fn kernel_name(&self, direction: Direction) -> String {
        match &self.0.byteswapped {
            Some(byteswapped) => byteswapped.plan.kernel_name(direction),
            None => "general".into(),
        }
    }
}

/// Bytes of `count` elements in external32; exact.
///
/// # Errors
///
/// The product does not fit `i64`.
#[doc(alias = "MPI_Pack_external_size")]
pub fn pack_external_size(external: &External32, count: u64) -> Result<u64> {
    external.0.program.units(count)
}

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
    unsafe { run_all::<true>(external, count, base, bytes, dst[room.clone()].as_mut_ptr())? };
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
    unsafe { run_all::<false>(external, count, base, bytes, ext)? };
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
    check_place(external.0.place.as_ref(), count, origin, size_of_val(src), "src")?;
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
    check_place(external.0.place.as_ref(), count, origin, size_of_val(dst), "dst")?;
    check_length(&range, "src", src.len())?;
    let base = dst.as_mut_ptr().cast::<u8>().wrapping_add(origin);
    // SAFETY:
    // - check_place: every element's data lies within dst, is initialised (NoUninit) and may take
    //   any bytes (AnyBitPattern);
    // - check_length: src is as long as the range (which the walk checks itself);
    // - src and dst cannot overlap, one being borrowed mutably.
    unsafe { unpack_external_raw(external, count, base, range, src.as_ptr()) }
}

/// Packs the bytes `range` of the external32 form of `count` elements, without looking at buffers.
/// `origin` is the address of displacement 0 (it need not be inside an allocation itself).
///
/// # Errors
///
/// `range`: not within the packed bytes of `count` elements. `src` ([`ErrorKind::Conversion`]): a
/// value in the range does not fit the size it has in external32.
///
/// # Safety
///
/// - Every byte of data of every element of a named type that the range touches is valid for reads.
/// - `dst` is valid for writes of the range's length.
/// - The two sides do not overlap.
pub unsafe fn pack_external_raw(
    external: &External32,
    count: u64,
    origin: *const u8,
    range: Range<u64>,
    dst: *mut u8,
) -> Result<()> {
    // SAFETY: the contracts are the same; the memory side is only read.
    unsafe { run::<true>(external, count, origin.cast_mut(), range, dst) }
}

/// Unpacks `src`, the bytes `range` of the external32 form of `count` elements, without looking at
/// buffers; the parts of a broken element in order, as for [`unpack_external_range`].
///
/// # Errors
///
/// `range`: not within the packed bytes of `count` elements.
///
/// # Safety
///
/// - Every byte of data of every element of a named type that the range touches is valid for
///   writes, and for reads if the range begins inside the element.
/// - `src` is valid for reads of the range's length.
/// - The two sides do not overlap.
pub unsafe fn unpack_external_raw(
    external: &External32,
    count: u64,
    origin: *mut u8,
    range: Range<u64>,
    src: *const u8,
) -> Result<()> {
    // SAFETY: the contracts are the same; the packed side is only read.
    unsafe { run::<false>(external, count, origin, range, src.cast_mut()) }
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
        let element = (external.element_bytes(), external.0.place.as_ref()?);
        let left = packed.0.checked_sub(position)?;
        let bytes = pack::room(element, count, memory.0, left)?;
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
    let room = position::room(count, bytes, position, packed.0, packed.1)?;
    check_place(external.0.place.as_ref(), count, 0, memory.0, memory.1)?;
    Ok(room)
}

/// Moves and converts all `bytes` bytes of `count` elements.
///
/// # Safety
///
/// As for [`run`], with the range of all bytes, of which there are `bytes`.
#[inline]
unsafe fn run_all<const PACK: bool>(
    external: &External32,
    count: u64,
    origin: *mut u8,
    bytes: u64,
    ext: *mut u8,
) -> Result<()> {
    match &external.0.byteswapped {
        // SAFETY: our contract; no element is broken.
        Some(byteswapped) => unsafe { byteswapped.run::<PACK>(count, origin, 0..bytes, ext) },
        // SAFETY: our contract.
        None => return unsafe { convert::<PACK>(external, count, origin, 0..bytes, ext) },
    }
    Ok(())
}

/// Moves and converts the bytes `range`; `ext` is where byte `range.start` is.
///
/// # Safety
///
/// As for [`pack_external_raw`] when `PACK`, for [`unpack_external_raw`] otherwise.
#[inline]
unsafe fn run<const PACK: bool>(
    external: &External32,
    count: u64,
    origin: *mut u8,
    range: Range<u64>,
    ext: *mut u8,
) -> Result<()> {
    let Prepared { program, byteswapped, .. } = &*external.0;
    let all = program.units(count)?;
    let Some(byteswapped) =
        byteswapped.as_ref().filter(|_| range.start <= range.end && range.end <= all)
    else {
        // SAFETY: our contract. The walk refuses a range that is none.
        return unsafe { convert::<PACK>(external, count, origin, range, ext) };
    };
    let whole = if range == (0..all) { range.clone() } else { byteswapped.whole(program, &range) };
    let at = |position: u64| ext.wrapping_add((position - range.start) as usize);
    if range.start < whole.start {
        // SAFETY: our contract, for the rest of an element that the range begins in.
        unsafe { convert::<PACK>(external, count, origin, range.start..whole.start, ext)? };
    }
    // SAFETY: our contract, for whole elements; the plan's bytes are in the same places.
    unsafe { byteswapped.run::<PACK>(count, origin, whole.clone(), at(whole.start)) };
    if whole.end < range.end {
        let (rest, at) = (whole.end..range.end, at(whole.end));
        // SAFETY: our contract, for the beginning of an element that the range ends in.
        unsafe { convert::<PACK>(external, count, origin, rest, at)? };
    }
    Ok(())
}

/// [`run`] for any type and range, run by run.
///
/// # Safety
///
/// As for [`run`].
unsafe fn convert<const PACK: bool>(
    external: &External32,
    count: u64,
    origin: *mut u8,
    range: Range<u64>,
    ext: *mut u8,
) -> Result<()> {
    let mut ext = ext;
    external.0.program.walk(count, range, |piece| {
        let (bad, runs, bytes) = match piece {
            Stretch::Runs(runs) => {
                let converters = convert::converters(runs.named);
                let convert = if PACK { converters.pack } else { converters.unpack };
                // SAFETY: elements of the type map in the range, and their place in its bytes.
                let bad = unsafe { convert(&runs, origin, ext) };
                (bad, runs, runs.blocks * runs.length * converters.sizes.1 as u64)
            }
            Stretch::Part { offset, named, skip, length } => {
                let converters = convert::converters(named);
                let part = if PACK { converters.pack_part } else { converters.unpack_part };
                let mem = origin.wrapping_offset(offset as isize);
                // SAFETY: an element that the range touches, and the bytes it has of it.
                let bad = unsafe { part(mem, ext, skip as usize, length as usize) };
                (bad, Runs { offset, named, blocks: 1, stride: 0, length: 1 }, length)
            }
        };
        if bad {
            // SAFETY: the elements that were just read.
            return Err(unfit(&runs, unsafe { convert::refused(&runs, origin) }));
        }
        ext = ext.wrapping_add(bytes as usize);
        Ok(())
    })
}

#[cold]
fn unfit(runs: &Runs, found: Option<(i64, i128)>) -> Error {
    let (named, bytes) = (runs.named, size_of(runs.named));
    // Nothing is found only if another thread changed the value in between.
    let (at, value) = found.unwrap_or((runs.offset, 0));
    Error::new(
        ErrorKind::Conversion,
        "src",
        format!(
            "the {named} at displacement {at} is {value}: no place in external32's {bytes} bytes"
        ),
    )
}

fn check_length(range: &Range<u64>, argument: &'static str, length: usize) -> Result<()> {
    // A range that is not within the packed bytes is refused by the walk.
    if range.end.checked_sub(range.start) != Some(length as u64) {
        let detail = format!("{length} bytes for the range {}..{}", range.start, range.end);
        return Err(Error::new(ErrorKind::Buffer, argument, detail));
    }
    Ok(())
}
