//! external32, the standard's canonical representation (MPI-5.0 section 14.5.2): pack and unpack
//! with the conversion fused into the copy.
//!
//! ```text
//! Datatype -> typed program in external32 bytes (../ir/typed/) -> External32
//!     every element keeps its width -> byteswap.rs -> ../exec/, ../leaf/
//!     otherwise walk a range of bytes -> runs of one named type -> convert.rs, by kind.rs
//!     (binary128.rs)
//! ```
//!
//! - `byteswap.rs`: a plan for the engine's kernels, for types in which only the byte order changes
//! - `kind.rs`: the external32 form of an element of each named type
//! - `convert.rs`: the loops over runs of elements
//! - `binary128.rs`: x87's long double to and from binary128
//!
//! The packed form of `count` elements of a type is one sequence of bytes. Any range of it can be
//! packed or unpacked on its own, in O(depth + log list) plus the bytes moved: file views and
//! segments of messages need this. Elements that a range cuts go through a small buffer.
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
// On other targets long double is already binary128.
#[cfg(any(target_arch = "x86_64", target_arch = "x86", test))]
mod binary128;
mod byteswap;
mod convert;

use crate::datatype::Datatype;
use crate::error::{Error, ErrorKind, Result};
use crate::ir::typed::{Runs, Stretch, TypedProgram, Unit};
use crate::kernel::Direction;
use crate::named::Named;
use crate::plan::footprint::Footprint;
use crate::plan::kept::Room;
use crate::plan::{Plan, Settings};
use byteswap::ByteSwapped;
use std::ops::Range;
use std::sync::Arc;

/// Returns the bytes of one element of `named` in external32.
///
/// ```
/// use typepack_engine::{Named, external32};
/// assert_eq!(external32::size_of(Named::LONG), 4);
/// assert_eq!(external32::size_of(Named::LONG_DOUBLE), 16);
/// ```
pub fn size_of(named: Named) -> u64 {
    u64::from(named.external32_size())
}

/// A datatype prepared for external32. A clone costs one reference count.
#[derive(Clone, Debug)]
pub struct External32(Arc<Prepared>);

#[derive(Debug)]
struct Prepared {
    datatype: Datatype,
    program: TypedProgram,
    /// The memory that an element covers; `None` without data.
    place: Option<Footprint>,
    byteswapped: Option<ByteSwapped>,
}

impl External32 {
    /// Prepares `datatype`. The cost is proportional to the nodes of its tree.
    ///
    /// # Errors
    ///
    /// Returns [`ErrorKind::Limit`] if the type needs more program nodes than the documented limit
    /// (2^28).
    pub fn new(datatype: &Datatype) -> Result<Self> {
        Self::with_settings(datatype, &Settings::default())
    }

    /// Does what [`External32::new`] does, with leaf kernels for the instruction set of `settings`,
    /// or without leaf kernels if `settings` force the interpreter.
    ///
    /// # Errors
    ///
    /// Returns [`ErrorKind::Limit`] if the type needs more program nodes than the documented limit
    /// (2^28).
    pub fn with_settings(datatype: &Datatype, settings: &Settings) -> Result<Self> {
        let program = TypedProgram::lower(datatype, Unit::External32)?;
        let byteswapped = ByteSwapped::new(datatype, &program, settings)?;
        let place = (datatype.size() > 0).then(|| Footprint::of_datatype(datatype));
        Ok(Self(Arc::new(Prepared { datatype: datatype.clone(), program, place, byteswapped })))
    }

    /// Returns the type that was prepared.
    pub fn datatype(&self) -> &Datatype {
        &self.0.datatype
    }

    /// Returns the typed program, whose positions are bytes of external32.
    pub fn program(&self) -> &TypedProgram {
        &self.0.program
    }

    /// Returns the memory that an element covers; `None` without data.
    #[inline]
    pub(crate) fn place(&self) -> Option<&Footprint> {
        self.0.place.as_ref()
    }

    /// Returns the bytes of one element in external32.
    pub fn element_bytes(&self) -> u64 {
        self.0.program.element_units()
    }

    /// Returns the name of the converter for reports: the leaf kernels of a plan, `memcpy`, or
    /// `general` for types with elements that change more than their byte order.
    pub fn kernel_name(&self, direction: Direction) -> String {
        match &self.0.byteswapped {
            Some(byteswapped) => byteswapped.plan.kernel_name(direction),
            None => "general".into(),
        }
    }
}

impl Plan {
    /// Returns the external32 form of this plan's type. The first call makes it, the plan keeps it.
    ///
    /// ```
    /// use typepack_engine::{Datatype, Named, pack_external};
    ///
    /// let plan = Datatype::named(Named::INT).commit()?;
    /// let (mut unit, mut position) = ([0; 4], 0);
    /// pack_external(plan.external32()?, 1, &[258], &mut unit, &mut position)?;
    /// assert_eq!(unit, [0, 0, 1, 2]);
    /// # Ok::<(), typepack_engine::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// - [`ErrorKind::Type`] for `plan` if the plan was decoded and has no datatype.
    /// - [`ErrorKind::Limit`] if the type needs more program nodes than the documented limit
    ///   (2^28).
    pub fn external32(&self) -> Result<&External32> {
        let ty = self.datatype_for("external32 form")?;
        self.kept(Room::External32, || External32::with_settings(ty, self.settings()))
    }
}

/// Returns the exact number of bytes of `count` elements in external32.
///
/// # Errors
///
/// Returns [`ErrorKind::Overflow`] if the product does not fit `i64`.
#[doc(alias = "MPI_Pack_external_size")]
pub fn pack_external_size(external: &External32, count: u64) -> Result<u64> {
    external.0.program.units(count)
}

/// Packs the bytes `range` of the external32 form of `count` elements, without checks of the
/// buffers. `origin` is the address of displacement 0 (it need not be inside an allocation itself).
///
/// # Errors
///
/// - [`ErrorKind::Argument`] for `range` if it is not within the packed bytes of `count` elements.
/// - [`ErrorKind::Conversion`] for `src` if a value in the range does not fit its size in
///   external32.
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
    // SAFETY: the caller guarantees the conditions of `run` for packing, which only reads from
    // `origin`.
    unsafe { run::<true>(external, count, origin.cast_mut(), range, dst) }
}

/// Unpacks `src`, the bytes `range` of the external32 form of `count` elements, without checks of
/// the buffers. The parts of a cut element must come in order, as for
/// [`unpack_external_range`](crate::unpack_external_range).
///
/// # Errors
///
/// Returns [`ErrorKind::Argument`] for `range` if it is not within the packed bytes of `count`
/// elements.
///
/// # Safety
///
/// - Every byte of data of every element of a named type that the range touches is valid for
///   writes, and also for reads if the range begins inside the element.
/// - `src` is valid for reads of the range's length.
/// - The two sides do not overlap.
pub unsafe fn unpack_external_raw(
    external: &External32,
    count: u64,
    origin: *mut u8,
    range: Range<u64>,
    src: *const u8,
) -> Result<()> {
    // SAFETY: the caller guarantees the conditions of `run` for unpacking, which only reads from
    // `src`.
    unsafe { run::<false>(external, count, origin, range, src.cast_mut()) }
}

/// Moves and converts all `bytes` bytes of `count` elements.
///
/// # Errors
///
/// Returns the errors of [`pack_external_raw`] when `PACK`.
///
/// # Safety
///
/// - The conditions of [`pack_external_raw`] (when `PACK`) or [`unpack_external_raw`] hold, with
///   the range `0..bytes`.
/// - `bytes` is the external size of `count` elements.
#[inline]
pub(crate) unsafe fn run_all<const PACK: bool>(
    external: &External32,
    count: u64,
    origin: *mut u8,
    bytes: u64,
    ext: *mut u8,
) -> Result<()> {
    match &external.0.byteswapped {
        // SAFETY: `0..bytes` is all of `count` elements, so it cuts no element; the caller
        // guarantees both sides.
        Some(byteswapped) => unsafe { byteswapped.run::<PACK>(count, origin, 0..bytes, ext) },
        // SAFETY: the caller guarantees `count` elements at `origin` and `bytes` external bytes at
        // `ext`.
        None => return unsafe { convert::<PACK>(external, count, origin, 0..bytes, ext) },
    }
    Ok(())
}

/// Moves and converts the bytes `range`. `ext` is the address of byte `range.start`.
///
/// # Safety
///
/// The conditions of [`pack_external_raw`] (when `PACK`) or [`unpack_external_raw`] hold.
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
        // SAFETY: the caller guarantees both sides for `range`; the walk refuses a range outside
        // the elements.
        return unsafe { convert::<PACK>(external, count, origin, range, ext) };
    };
    let whole = if range == (0..all) { range.clone() } else { byteswapped.whole(program, &range) };
    let at = |position: u64| ext.wrapping_add((position - range.start) as usize);
    if range.start < whole.start {
        // SAFETY: `range.start..whole.start` is a part of the range, the rest of the element in which
        // the range begins.
        unsafe { convert::<PACK>(external, count, origin, range.start..whole.start, ext)? };
    }
    // SAFETY: `whole` is a part of the range that cuts no element and ends at or before `all`; byte
    // `i` of the plan's packed form is byte `i` of the external32 form.
    unsafe { byteswapped.run::<PACK>(count, origin, whole.clone(), at(whole.start)) };
    if whole.end < range.end {
        let (rest, at) = (whole.end..range.end, at(whole.end));
        // SAFETY: `whole.end..range.end` is a part of the range, the beginning of the element in
        // which the range ends.
        unsafe { convert::<PACK>(external, count, origin, rest, at)? };
    }
    Ok(())
}

/// Does what [`run`] does for any type and range, run by run.
///
/// # Safety
///
/// The conditions of [`run`] hold.
unsafe fn convert<const PACK: bool>(
    external: &External32,
    count: u64,
    origin: *mut u8,
    range: Range<u64>,
    ext: *mut u8,
) -> Result<()> {
    let mut ext = ext;
    external.0.program.walk(count, range, |stretch| {
        let (bad, runs, bytes) = match stretch {
            Stretch::Runs(runs) => {
                let converters = convert::converters(runs.named);
                let convert = if PACK { converters.pack } else { converters.unpack };
                // SAFETY: the converter is that of `runs.named`; the walk's elements lie in the
                // range, and `ext` has advanced to their place.
                let bad = unsafe { convert(&runs, origin, ext) };
                (bad, runs, runs.blocks * runs.length * converters.sizes.1 as u64)
            }
            Stretch::Part { offset, named, skip, length } => {
                let converters = convert::converters(named);
                let part = if PACK { converters.pack_part } else { converters.unpack_part };
                let mem = origin.wrapping_offset(offset as isize);
                // SAFETY: the converter is that of `named`; the range touches the element at `mem`
                // and has `length` of its bytes from `skip` on, whose place is `ext`.
                let bad = unsafe { part(mem, ext, skip as usize, length as usize) };
                (bad, Runs { offset, named, blocks: 1, stride: 0, length: 1 }, length)
            }
        };
        if bad {
            // SAFETY: packing has just read these elements, so their data is readable at `origin`.
            return Err(unfit(&runs, unsafe { convert::refused(&runs, origin) }));
        }
        ext = ext.wrapping_add(bytes as usize);
        Ok(())
    })
}

#[cold]
fn unfit(runs: &Runs, found: Option<(i64, i128)>) -> Error {
    let (named, bytes) = (runs.named, size_of(runs.named));
    // `refused` finds nothing only if another thread has changed the value since.
    let (at, value) = found.unwrap_or((runs.offset, 0));
    Error::new(
        ErrorKind::Conversion,
        "src",
        format!(
            "the {named} at displacement {at} is {value}, which does not fit its {bytes} bytes in external32"
        ),
    )
}
