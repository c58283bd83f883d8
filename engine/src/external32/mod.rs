//! Packs to and unpacks from external32, the canonical data representation that the standard defines
//! (MPI-5.0 section 14.5.2). The conversion is fused into the copy.
//!
//! ```text
//! Datatype -> typed program in external32 bytes (../ir/typed/) -> External32
//!     only the byte order changes: byteswap.rs -> ../exec/, ../../leaf/
//!     otherwise: walk a range of bytes -> runs of one named type -> convert.rs, by kind.rs
//!     (binary128.rs)
//! ```
//!
//! - `byteswap.rs`: makes plans for the engine's kernels, for types whose conversion changes nothing
//!   but the byte order of the elements
//! - `kind.rs`: defines the external32 form of an element of each named type
//! - `convert.rs`: converts runs of elements
//! - `native.rs`: converts positions between the two forms
//! - `binary128.rs`: converts x87's long double to and from binary128
//!
//! The packed form of `count` elements of a type is one sequence of bytes. Any range of that sequence
//! can be packed or unpacked on its own; besides moving the bytes, this takes O(depth + log list
//! length) steps. File views and segments of messages need such ranges. A basic element that is cut by
//! the start or the end of a range is converted by itself.
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
// Other targets need this file only for tests, because their `long double` already has the binary128
// format.
#[cfg(any(target_arch = "x86_64", target_arch = "x86", test))]
mod binary128;
mod byteswap;
mod convert;
mod native;

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
use std::sync::{Arc, OnceLock};

/// Returns the size of one element of `named` in external32, in bytes.
///
/// ```
/// use typepack_engine::{Named, external32};
/// assert_eq!(external32::size_of(Named::LONG), 4);
/// assert_eq!(external32::size_of(Named::LONG_DOUBLE), 16);
/// ```
pub fn size_of(named: Named) -> u64 {
    u64::from(named.external32_size())
}

/// A datatype that is prepared for external32. Cloning the value only increments a reference count.
#[derive(Clone, Debug)]
pub struct External32(Arc<Prepared>);

#[derive(Debug)]
struct Prepared {
    datatype: Datatype,
    program: TypedProgram,
    /// The memory that an element covers; `None` if the type has no data.
    place: Option<Footprint>,
    byteswapped: Option<ByteSwapped>,
    /// The typed program in native bytes, made at the first request (`native.rs`).
    native: OnceLock<TypedProgram>,
}

impl External32 {
    /// Prepares `datatype`. The cost is proportional to the number of nodes of its tree.
    ///
    /// # Errors
    ///
    /// Returns [`ErrorKind::Limit`] if the type needs more program nodes than the documented limit
    /// (2^28).
    pub fn new(datatype: &Datatype) -> Result<Self> {
        Self::with_settings(datatype, &Settings::default())
    }

    /// Prepares `datatype` like [`External32::new`], but with the given settings. The leaf kernels
    /// use the instruction set of `settings`. If `settings` force the interpreter, there are no
    /// leaf kernels.
    ///
    /// # Errors
    ///
    /// Returns [`ErrorKind::Limit`] if the type needs more program nodes than the documented limit
    /// (2^28).
    pub fn with_settings(datatype: &Datatype, settings: &Settings) -> Result<Self> {
        let program = TypedProgram::lower(datatype, Unit::External32)?;
        let byteswapped = ByteSwapped::new(datatype, &program, settings)?;
        let place = (datatype.size() > 0).then(|| Footprint::of_datatype(datatype));
        let (datatype, native) = (datatype.clone(), OnceLock::new());
        Ok(Self(Arc::new(Prepared { datatype, program, place, byteswapped, native })))
    }

    /// Returns the datatype that this value was prepared from.
    pub fn datatype(&self) -> &Datatype {
        &self.0.datatype
    }

    /// Returns the typed program. Its positions are in bytes of external32.
    pub fn program(&self) -> &TypedProgram {
        &self.0.program
    }

    /// Returns the memory that an element covers; `None` if the type has no data.
    #[inline]
    pub(crate) fn place(&self) -> Option<&Footprint> {
        self.0.place.as_ref()
    }

    /// Returns the size of one element in external32, in bytes.
    pub fn element_bytes(&self) -> u64 {
        self.0.program.element_units()
    }

    /// Returns the name of the code that converts, for reports. If the conversion changes only the
    /// byte order of elements, this is the [`Plan::kernel_name`] of the plan that reverses the bytes,
    /// for example the name of a leaf kernel. Otherwise it is `general`; the same holds if the type has
    /// no data, if the settings force the interpreter, and on big-endian machines.
    pub fn kernel_name(&self, direction: Direction) -> String {
        match &self.0.byteswapped {
            Some(byteswapped) => byteswapped.plan.kernel_name(direction),
            None => "general".into(),
        }
    }
}

impl Plan {
    /// Returns this plan's type, prepared for external32. The first call prepares it, and the plan
    /// keeps the result.
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
    /// - Returns [`ErrorKind::Type`] for `plan` if the plan was decoded and has no datatype.
    /// - Returns [`ErrorKind::Limit`] if the type needs more program nodes than the documented
    ///   limit (2^28).
    pub fn external32(&self) -> Result<&External32> {
        let ty = self.datatype_for("external32 form")?;
        self.kept(Room::External32, || External32::with_settings(ty, self.settings()))
    }
}

/// Returns the exact size of `count` elements in external32, in bytes.
///
/// # Errors
///
/// Returns [`ErrorKind::Overflow`] if the size does not fit in `i64`.
#[doc(alias = "MPI_Pack_external_size")]
pub fn pack_external_size(external: &External32, count: u64) -> Result<u64> {
    external.0.program.units(count)
}

/// Packs the bytes `range` of the external32 form of `count` elements, without checking the
/// buffers. `origin` is the address of displacement 0; it need not lie inside an allocation.
///
/// # Errors
///
/// - Returns [`ErrorKind::Argument`] for `range` if the range begins after its end, or exceeds the
///   external32 form of `count` elements.
/// - Returns [`ErrorKind::Conversion`] for `src` if a value in the range does not fit in its size
///   in external32.
/// - Returns [`ErrorKind::Overflow`] for `count` if the external size of `count` elements does not fit
///   in an `i64`.
///
/// # Safety
///
/// - If the range touches any byte of a basic element, all data of that element is valid for reads.
/// - `dst` is valid for writes of the range's length.
/// - The elements and the bytes at `dst` do not overlap.
pub unsafe fn pack_external_raw(
    external: &External32,
    count: u64,
    origin: *const u8,
    range: Range<u64>,
    dst: *mut u8,
) -> Result<()> {
    // SAFETY: the caller guarantees the conditions of `run` for packing. Packing only reads the
    // elements, so the cast to `*mut` is sound.
    unsafe { run::<true>(external, count, origin.cast_mut(), range, dst) }
}

/// Unpacks `src`, which holds the bytes `range` of the external32 form of `count` elements, without
/// checking the buffers. If several calls unpack the parts of one basic element, they must do so in
/// order, as for [`unpack_external_range`](crate::unpack_external_range).
///
/// # Errors
///
/// - Returns [`ErrorKind::Argument`] for `range` if the range begins after its end, or exceeds the
///   external32 form of `count` elements.
/// - Returns [`ErrorKind::Overflow`] for `count` if the external size of `count` elements does not fit
///   in an `i64`.
///
/// # Safety
///
/// - If the range touches any byte of a basic element, all data of that element is valid for
///   writes. If the range begins inside the element, its data is also valid for reads.
/// - `src` is valid for reads of the range's length.
/// - The elements and the bytes at `src` do not overlap.
pub unsafe fn unpack_external_raw(
    external: &External32,
    count: u64,
    origin: *mut u8,
    range: Range<u64>,
    src: *const u8,
) -> Result<()> {
    // SAFETY: the caller guarantees the conditions of `run` for unpacking. Unpacking only reads
    // `src`, so the cast to `*mut` is sound.
    unsafe { run::<false>(external, count, origin, range, src.cast_mut()) }
}

/// Packs (if `PACK`) or unpacks all of `count` elements, whose external form has `bytes` bytes.
///
/// # Errors
///
/// If `PACK`, returns [`ErrorKind::Conversion`] for `src` if a value does not fit in its size in
/// external32. Unpacking returns no error.
///
/// # Safety
///
/// - The conditions of [`pack_external_raw`] (if `PACK`) or [`unpack_external_raw`] hold for the
///   range `0..bytes`.
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
        // SAFETY: the range `0..bytes` is the external form of all `count` elements, so it cuts no
        // basic element. The caller guarantees that the elements at `origin` and the bytes at `ext`
        // are valid.
        Some(byteswapped) => unsafe { byteswapped.run::<PACK>(count, origin, 0..bytes, ext) },
        // SAFETY: the caller guarantees that `count` elements at `origin` and their `bytes`
        // external bytes at `ext` are valid.
        None => return unsafe { convert::<PACK>(external, count, origin, 0..bytes, ext) },
    }
    Ok(())
}

/// Packs (if `PACK`) or unpacks the bytes `range` of the external32 form of `count` elements. `ext`
/// is the address of external byte `range.start`.
///
/// # Safety
///
/// The conditions of [`pack_external_raw`] (if `PACK`) or [`unpack_external_raw`] hold.
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
        // SAFETY: the caller guarantees that, for `range`, the elements at `origin` and the bytes
        // at `ext` are valid. If the range exceeds the elements, the walk returns an error before
        // it converts anything.
        return unsafe { convert::<PACK>(external, count, origin, range, ext) };
    };
    let whole = if range == (0..all) { range.clone() } else { byteswapped.whole(program, &range) };
    let at = |position: u64| ext.wrapping_add((position - range.start) as usize);
    if range.start < whole.start {
        // SAFETY: `range.start..whole.start` is the beginning of the caller's range (the last bytes of
        // the basic element in which the range begins), and the caller guarantees that the whole range
        // is valid.
        unsafe { convert::<PACK>(external, count, origin, range.start..whole.start, ext)? };
    }
    // SAFETY: `whole` is a part of the caller's range, which is valid. `whole` cuts no basic element and
    // ends at or before `all`, the external size of `count` elements. Byte `i` of the plan's packed form
    // is byte `i` of the external32 form.
    unsafe { byteswapped.run::<PACK>(count, origin, whole.clone(), at(whole.start)) };
    if whole.end < range.end {
        let (rest, at) = (whole.end..range.end, at(whole.end));
        // SAFETY: `whole.end..range.end` is the end of the caller's range (the first bytes of the basic
        // element in which the range ends), and the caller guarantees that the whole range is valid.
        unsafe { convert::<PACK>(external, count, origin, rest, at)? };
    }
    Ok(())
}

/// Does what [`run`] does, but without a plan: the function converts each run of basic elements and
/// each part of a cut basic element separately. It works for every type and range.
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
                // SAFETY: `convert` is the converter for elements of `runs.named`. The elements of
                // `runs` lie in the range, and `ext` is the address of their external form.
                let bad = unsafe { convert(&runs, origin, ext) };
                (bad, runs, runs.blocks * runs.length * converters.sizes.1 as u64)
            }
            Stretch::Part { offset, named, skip, length } => {
                let converters = convert::converters(named);
                let part = if PACK { converters.pack_part } else { converters.unpack_part };
                let mem = origin.wrapping_offset(offset as isize);
                // SAFETY: `part` is the converter for elements of `named`. The range contains
                // `length` external bytes of the element at `mem`, from byte `skip` on; `ext` is
                // the address of the first of them.
                let bad = unsafe { part(mem, ext, skip as usize, length as usize) };
                (bad, Runs { offset, named, blocks: 1, stride: 0, length: 1 }, length)
            }
        };
        if bad {
            // SAFETY: only packing sets `bad`, and packing has just read these elements relative to
            // `origin`.
            return Err(unfit(&runs, unsafe { convert::refused(&runs, origin) }));
        }
        ext = ext.wrapping_add(bytes as usize);
        Ok(())
    })
}

#[cold]
fn unfit(runs: &Runs, found: Option<(i64, i128)>) -> Error {
    let (named, bytes) = (runs.named, size_of(runs.named));
    // `refused` returns `None` only if another thread has changed the value in the meantime.
    let (at, value) = found.unwrap_or((runs.offset, 0));
    Error::new(
        ErrorKind::Conversion,
        "src",
        format!(
            "the {named} at displacement {at} is {value}, which does not fit in its {bytes} bytes \
             in external32"
        ),
    )
}
