//! Packing and unpacking (MPI-5.0 section 5.2), also in external32 (section 5.3).
//!
//! The path from C to a kernel is as short as possible here: a function finds the datatype of the handle,
//! checks the arguments, and calls the engine. The functions take no communicator: the host (the library
//! that uses this crate) checks the communicator of `MPI_Pack`, `MPI_Unpack` and `MPI_Pack_size` before it
//! calls them.

use crate::abi;
use crate::argument::{InOut, Output, Place, Text};
use crate::buffer::{count, is_low, memory, negative};
use crate::count_width::{CountWidth, Number};
use crate::failure::{Failure, Result, no_address};
use crate::raw;
use crate::types;
use std::ffi::c_void;
use typepack_engine::external32::{External32, pack_external_raw, unpack_external_raw};
use typepack_engine::{Elements, pack_at_raw, pack_external_size, unpack_at_raw};

/// Converts an argument that is the size of a buffer, or a position in a buffer, to a `usize`. Returns
/// `MPI_ERR_ARG` if the argument is negative.
#[inline]
fn room(value: impl Number, argument: &'static str) -> Result<usize> {
    let value = value.wide();
    usize::try_from(value).map_err(|_| negative(abi::ERR_ARG, argument, value))
}

/// Returns the place where the call writes the new position, and the current position.
#[inline]
fn position<N: Number>(position: InOut<N>) -> Result<(Place<N>, usize)> {
    let (value, place) = position.read("position")?;
    Ok((place, room(value, "position")?))
}

#[inline]
fn advanced<N: Number>(out: Place<N>, position: usize) -> Result {
    // The conversion does not fail: the position is at most the size of the buffer, and the C caller passed
    // the size in the same type.
    let value = i64::try_from(position).ok().and_then(N::exactly);
    out.set(value.ok_or_else(|| too_far(position))?);
    Ok(())
}

#[cold]
fn too_far(position: usize) -> Failure {
    let detail = format!("{position} does not fit in the type of the argument");
    Failure::new(abi::ERR_VALUE_TOO_LARGE, "position", detail)
}

/// Checks that memory can be at the address of a packed buffer, unless the size of the buffer is 0.
#[inline]
fn packed<T>(address: *const T, size: usize, argument: &'static str) -> Result {
    if is_low(address) && size > 0 {
        let class = if address.is_null() { abi::ERR_ARG } else { abi::ERR_BUFFER };
        return Err(Failure::new(class, argument, no_address(address as usize)));
    }
    Ok(())
}

/// `MPI_Pack`, after the host has checked the communicator.
///
/// # Safety
///
/// - `inbuf` is readable for `incount` elements of `datatype`.
/// - `outbuf` is writable for `outsize` bytes, and does not overlap the elements.
// Inlined into the exported function, because each additional call between C and the kernel costs measurable
// time. For the same reason this function uses no closures: the compiler would turn a closure into a
// separate function, which `MPI_Pack` and `PMPI_Pack` would share. The arguments would then be passed in
// memory, which took 2 of 9 ns when it was measured.
#[inline(always)]
pub unsafe fn pack<W: CountWidth>(
    inbuf: *const c_void,
    incount: W::Count,
    datatype: raw::Datatype,
    outbuf: *mut c_void,
    outsize: W::Count,
    at: InOut<W::Count>,
) -> Result {
    let (elements, size) = (count(incount, "incount")?, room(outsize, "outsize")?);
    packed(outbuf, size, "outbuf")?;
    let (out, mut position) = position(at)?;
    let ty = types::hold(datatype)?;
    let plan = ty.plan()?;
    memory(&Elements::new(inbuf, plan, elements), "inbuf")?;
    // SAFETY: `inbuf` is readable for `elements` elements of the type of `plan` (first condition of
    // `# Safety`; `MPI_BOTTOM` is address 0). `outbuf` is writable for `size` bytes and does not overlap
    // these elements (second condition).
    unsafe { pack_at_raw(plan, elements, inbuf.cast(), outbuf.cast(), size, &mut position)? };
    advanced(out, position)
}

/// `MPI_Unpack`, after the host has checked the communicator.
///
/// # Safety
///
/// - `inbuf` is readable for `insize` bytes.
/// - `outbuf` is writable for `outcount` elements of `datatype`, and they do not overlap `inbuf`.
// Inlined into the exported function, because each further call between C and the kernel costs measurable
// time.
#[inline(always)]
pub unsafe fn unpack<W: CountWidth>(
    inbuf: *const c_void,
    insize: W::Count,
    at: InOut<W::Count>,
    outbuf: *mut c_void,
    outcount: W::Count,
    datatype: raw::Datatype,
) -> Result {
    let (elements, size) = (count(outcount, "outcount")?, room(insize, "insize")?);
    packed(inbuf, size, "inbuf")?;
    let (out, mut position) = position(at)?;
    let ty = types::hold(datatype)?;
    let plan = ty.plan()?;
    memory(&Elements::new(outbuf, plan, elements), "outbuf")?;
    // SAFETY: `inbuf` is readable for `size` bytes (first condition of `# Safety`). `outbuf` is writable for
    // `elements` elements of the type of `plan`, which do not overlap `inbuf` (second condition).
    unsafe { unpack_at_raw(plan, elements, inbuf.cast(), size, &mut position, outbuf.cast())? };
    advanced(out, position)
}

/// `MPI_Pack_size`: returns the exact number of bytes that packing writes.
pub fn pack_size<W: CountWidth>(
    incount: W::Count,
    datatype: raw::Datatype,
    size: Output<W::Count>,
) -> Result {
    let out = size.required("size")?;
    let elements = count(incount, "incount")?;
    // `packed_bytes` fails only if the number of bytes does not fit in 63 bits. `fits` then writes
    // `MPI_UNDEFINED`.
    fits::<W::Count>(out, types::hold(datatype)?.plan()?.packed_bytes(elements).ok());
    Ok(())
}

/// Writes a size, or `MPI_UNDEFINED` if the size does not fit in the type of the output argument (MPI-5.0
/// section 5.2). The program can then use the form of the call whose name ends in `_c`.
fn fits<N: Number>(out: Place<N>, bytes: Option<u64>) {
    let value = bytes.and_then(|bytes| i64::try_from(bytes).ok()).and_then(N::exactly);
    if let Some(value) = value.or_else(|| N::exactly(abi::UNDEFINED.into())) {
        out.set(value);
    }
}

/// Checks that the data representation is external32, the only one that the calls of section 5.3 support.
///
/// # Errors
/// Returns `MPI_ERR_ARG` if the representation has another name or the pointer is null, and
/// `MPI_ERR_UNSUPPORTED_DATAREP` if the name is too long.
fn representation(datarep: Text) -> Result {
    let name = datarep.read(abi::MAX_DATAREP_STRING, "datarep", abi::ERR_UNSUPPORTED_DATAREP)?;
    if name == b"external32" {
        return Ok(());
    }
    let detail = format!(
        "\"{}\" is not supported; it must be \"external32\"",
        String::from_utf8_lossy(&name)
    );
    Err(Failure::new(abi::ERR_ARG, "datarep", detail))
}

/// Returns the position after `bytes` bytes that begin at `position` in a buffer of `size` bytes.
///
/// # Errors
/// Returns `MPI_ERR_ARG` if `position` is greater than `size`, and `MPI_ERR_BUFFER` if fewer than `bytes`
/// bytes are left in the buffer.
fn place(position: usize, bytes: u64, size: usize, argument: &'static str) -> Result<usize> {
    let Some(left) = size.checked_sub(position) else {
        let detail =
            format!("{position} is beyond the end of the buffer, whose size is {size} bytes");
        return Err(Failure::new(abi::ERR_ARG, "position", detail));
    };
    if bytes > left as u64 {
        let detail = format!("{left} bytes of the buffer are left, but {bytes} bytes are needed");
        return Err(Failure::new(abi::ERR_BUFFER, argument, detail));
    }
    Ok(position + bytes as usize)
}

/// The names of the arguments of a call that packs or unpacks in external32.
struct Names {
    /// The names of the arguments for the elements in memory and for their number.
    memory: [&'static str; 2],
    /// The names of the arguments for the packed buffer and for its size.
    packed: [&'static str; 2],
}

/// Checks the arguments of a call that packs or unpacks in external32, calls `copy`, and writes the new
/// position. `copy` gets the datatype's plan for external32, the number of elements, the number of packed
/// bytes, and the position of the first packed byte.
fn external<W: CountWidth>(
    datarep: Text,
    names: Names,
    (origin, elements, datatype): (*const c_void, W::Count, raw::Datatype),
    (buffer, size): (*const c_void, W::Address),
    at: InOut<W::Address>,
    copy: impl FnOnce(&External32, u64, u64, usize) -> typepack_engine::Result<()>,
) -> Result {
    representation(datarep)?;
    let (elements, size) = (count(elements, names.memory[1])?, room(size, names.packed[1])?);
    packed(buffer, size, names.packed[0])?;
    let (out, position) = position(at)?;
    let ty = types::hold(datatype)?;
    let plan = ty.plan()?;
    memory(&Elements::new(origin, plan, elements), names.memory[0])?;
    let external = plan.external32()?;
    let bytes = pack_external_size(external, elements)?;
    let end = place(position, bytes, size, names.packed[1])?;
    copy(external, elements, bytes, position)?;
    advanced(out, end)
}

/// `MPI_Pack_external`.
///
/// # Safety
///
/// - `inbuf` is readable for `incount` elements of `datatype`.
/// - `outbuf` is writable for `outsize` bytes, and does not overlap the elements.
pub unsafe fn pack_external<W: CountWidth>(
    datarep: Text,
    inbuf: *const c_void,
    incount: W::Count,
    datatype: raw::Datatype,
    outbuf: *mut c_void,
    outsize: W::Address,
    at: InOut<W::Address>,
) -> Result {
    let names = Names { memory: ["inbuf", "incount"], packed: ["outbuf", "outsize"] };
    let (elements, buffer) = ((inbuf, incount, datatype), (outbuf.cast_const(), outsize));
    external::<W>(datarep, names, elements, buffer, at, |external, elements, bytes, position| {
        let target = outbuf.cast::<u8>().wrapping_add(position);
        // SAFETY: `inbuf` is readable for `elements` elements of the type of `external` (first condition of
        // `# Safety`). `target` is writable for `bytes` bytes: the function `external` has checked that they
        // lie within the `outsize` bytes of `outbuf`, which do not overlap the elements (second condition).
        unsafe { pack_external_raw(external, elements, inbuf.cast(), 0..bytes, target) }
    })
}

/// `MPI_Unpack_external`.
///
/// # Safety
///
/// - `inbuf` is readable for `insize` bytes.
/// - `outbuf` is writable for `outcount` elements of `datatype`, and they do not overlap `inbuf`.
pub unsafe fn unpack_external<W: CountWidth>(
    datarep: Text,
    inbuf: *const c_void,
    insize: W::Address,
    at: InOut<W::Address>,
    outbuf: *mut c_void,
    outcount: W::Count,
    datatype: raw::Datatype,
) -> Result {
    let names = Names { memory: ["outbuf", "outcount"], packed: ["inbuf", "insize"] };
    let (elements, buffer) = ((outbuf.cast_const(), outcount, datatype), (inbuf, insize));
    external::<W>(datarep, names, elements, buffer, at, |external, elements, bytes, position| {
        let source = inbuf.cast::<u8>().wrapping_add(position);
        // SAFETY: `source` is readable for `bytes` bytes: the function `external` has checked that they lie
        // within the `insize` bytes of `inbuf` (first condition of `# Safety`). `outbuf` is writable for
        // `elements` elements of the type of `external`, which do not overlap `inbuf` (second condition).
        unsafe { unpack_external_raw(external, elements, outbuf.cast(), 0..bytes, source) }
    })
}

/// `MPI_Pack_external_size`.
pub fn external_size<W: CountWidth>(
    datarep: Text,
    incount: W::Count,
    datatype: raw::Datatype,
    size: Output<W::Address>,
) -> Result {
    representation(datarep)?;
    let out = size.required("size")?;
    let elements = count(incount, "incount")?;
    let ty = types::hold(datatype)?;
    fits::<W::Address>(out, pack_external_size(ty.plan()?.external32()?, elements).ok());
    Ok(())
}
