//! Packing and unpacking (MPI-5.0 section 5.2), also in external32 (section 5.3).
//!
//! The shortest way from C to a kernel: handle, checks, the engine's call. Whether the communicator of
//! `MPI_Pack` and its like is one, the host has checked before.

use crate::abi;
use crate::buffer::memory;
use crate::count_width::{CountWidth, Number, count, negative};
use crate::failure::{Failure, Result};
use crate::out::Out;
use crate::raw;
use crate::text;
use crate::types;
use std::ffi::{c_char, c_void};
use typepack_engine::external32::{pack_external_raw, unpack_external_raw};
use typepack_engine::{pack_at_raw, pack_external_size, unpack_at_raw};

/// Largest size of a buffer: what an address can count.
#[inline]
fn room(value: impl Number, argument: &'static str) -> Result<usize> {
    let value = value.wide();
    usize::try_from(value).map_err(|_| negative(abi::ERR_ARG, argument, value))
}

/// The position in a packing unit, and where to write it back.
///
/// # Safety
///
/// - `position` is null, or readable and writable.
#[inline]
unsafe fn position<N: Number>(position: *mut N) -> Result<(Out<N>, usize)> {
    // SAFETY: passed on.
    let out = unsafe { Out::new(position, "position")? };
    // SAFETY: not null, so readable.
    let value = unsafe { position.read_unaligned() };
    Ok((out, room(value, "position")?))
}

#[inline]
fn advanced<N: Number>(out: &Out<N>, position: usize) -> Result {
    // It lies within the buffer, whose size came in the same type.
    let value = i64::try_from(position).ok().and_then(N::exactly);
    out.set(value.ok_or_else(|| too_far(position))?);
    Ok(())
}

#[cold]
fn too_far(position: usize) -> Failure {
    Failure::new(abi::ERR_VALUE_TOO_LARGE, "position", format!("{position} bytes"))
}

/// A buffer on the packed side: not null if there are bytes.
#[inline]
fn packed<T>(address: *const T, size: usize, argument: &'static str) -> Result {
    if address.is_null() && size > 0 {
        return Err(Failure::null(argument));
    }
    Ok(())
}

/// `MPI_Pack` in a communicator that has been checked.
///
/// # Safety
/// As the C function.
// Into the entry, whose panics it shares: every further call between C and the kernel is felt. No
// closures: one that two functions share (`MPI_Pack` and `PMPI_Pack`) is a function of its own, whose
// arguments go through memory, and are waited for there; that was 2 ns of 9.
#[inline(always)]
pub unsafe fn pack<W: CountWidth>(
    inbuf: *const c_void,
    incount: W::Count,
    datatype: raw::Datatype,
    outbuf: *mut c_void,
    outsize: W::Count,
    at: *mut W::Count,
) -> Result {
    let (elements, size) = (count(incount, "incount")?, room(outsize, "outsize")?);
    packed(outbuf, size, "outbuf")?;
    // SAFETY: passed on.
    let (out, mut position) = unsafe { position(at)? };
    let ty = types::hold(datatype)?;
    let plan = ty.plan()?;
    memory(inbuf, plan, elements, "inbuf")?;
    // SAFETY: the caller promises memory for the elements (`MPI_BOTTOM` is address 0) and for
    // `outsize` bytes, which do not overlap.
    unsafe { pack_at_raw(plan, elements, inbuf.cast(), outbuf.cast(), size, &mut position)? };
    advanced(&out, position)
}

/// `MPI_Unpack` in a communicator that has been checked.
///
/// # Safety
/// As the C function.
// Into the entry, whose panics it shares: every further call between C and the kernel is felt.
#[inline(always)]
pub unsafe fn unpack<W: CountWidth>(
    inbuf: *const c_void,
    insize: W::Count,
    at: *mut W::Count,
    outbuf: *mut c_void,
    outcount: W::Count,
    datatype: raw::Datatype,
) -> Result {
    let (elements, size) = (count(outcount, "outcount")?, room(insize, "insize")?);
    packed(inbuf, size, "inbuf")?;
    // SAFETY: passed on.
    let (out, mut position) = unsafe { position(at)? };
    let ty = types::hold(datatype)?;
    let plan = ty.plan()?;
    memory(outbuf, plan, elements, "outbuf")?;
    // SAFETY: the caller promises memory for the elements and `insize` bytes, which do not overlap.
    unsafe { unpack_at_raw(plan, elements, inbuf.cast(), size, &mut position, outbuf.cast())? };
    advanced(&out, position)
}

/// `MPI_Pack_size`: exactly what packing takes.
///
/// # Safety
/// As the C function.
pub unsafe fn pack_size<W: CountWidth>(
    incount: W::Count,
    datatype: raw::Datatype,
    size: *mut W::Count,
) -> Result {
    // SAFETY: passed on.
    let out = unsafe { Out::new(size, "size")? };
    let elements = count(incount, "incount")?;
    // What fits no number is the one way in which this fails.
    let bytes =
        types::with::<_, Failure>(datatype, |ty| Ok(ty.plan()?.packed_bytes(elements).ok()))?;
    fits::<W::Count>(&out, bytes);
    Ok(())
}

/// A size as a result; `MPI_UNDEFINED` where it does not fit (MPI-5.0 section 5.2), which leaves it to
/// the program to take the call that ends in `_c`.
fn fits<N: Number>(out: &Out<N>, bytes: Option<u64>) {
    let value = bytes.and_then(|bytes| i64::try_from(bytes).ok()).and_then(N::exactly);
    if let Some(value) = value.or_else(|| N::exactly(abi::UNDEFINED.into())) {
        out.set(value);
    }
}

/// # Safety
///
/// - `datarep` is null or a C string, or readable for the longest name.
unsafe fn representation(datarep: *const c_char) -> Result {
    // SAFETY: passed on.
    let name = unsafe {
        text::read(datarep, abi::MAX_DATAREP_STRING, "datarep", abi::ERR_UNSUPPORTED_DATAREP)?
    };
    if name == b"external32" {
        return Ok(());
    }
    let detail = format!("\"{}\" is not \"external32\"", String::from_utf8_lossy(&name));
    Err(Failure::new(abi::ERR_ARG, "datarep", detail))
}

/// Where `bytes` lie in a buffer of `size` bytes from `position` on.
fn place(position: usize, bytes: u64, size: usize, argument: &'static str) -> Result<usize> {
    let Some(left) = size.checked_sub(position) else {
        let detail = format!("{position} is beyond the {size} bytes of the buffer");
        return Err(Failure::new(abi::ERR_ARG, "position", detail));
    };
    if bytes > left as u64 {
        let detail = format!("{bytes} bytes, {left} are left");
        return Err(Failure::new(abi::ERR_BUFFER, argument, detail));
    }
    Ok(position + bytes as usize)
}

/// `MPI_Pack_external`.
///
/// # Safety
/// As the C function.
pub unsafe fn pack_external<W: CountWidth>(
    datarep: *const c_char,
    inbuf: *const c_void,
    incount: W::Count,
    datatype: raw::Datatype,
    outbuf: *mut c_void,
    outsize: W::Address,
    at: *mut W::Address,
) -> Result {
    // SAFETY: passed on.
    unsafe { representation(datarep)? };
    let (elements, size) = (count(incount, "incount")?, room(outsize, "outsize")?);
    packed(outbuf, size, "outbuf")?;
    // SAFETY: passed on.
    let (out, position) = unsafe { position(at)? };
    let end = types::with::<_, Failure>(datatype, |ty| {
        let plan = ty.plan()?;
        memory(inbuf, plan, elements, "inbuf")?;
        let external = plan.external32()?;
        let bytes = pack_external_size(external, elements)?;
        let end = place(position, bytes, size, "outsize")?;
        let target = outbuf.cast::<u8>().wrapping_add(position);
        // SAFETY: the caller promises memory for the elements and for `outsize` bytes, in which
        // the range lies (`place`), and that they do not overlap.
        unsafe { pack_external_raw(external, elements, inbuf.cast(), 0..bytes, target)? };
        Ok(end)
    })?;
    advanced(&out, end)
}

/// `MPI_Unpack_external`.
///
/// # Safety
/// As the C function.
pub unsafe fn unpack_external<W: CountWidth>(
    datarep: *const c_char,
    inbuf: *const c_void,
    insize: W::Address,
    at: *mut W::Address,
    outbuf: *mut c_void,
    outcount: W::Count,
    datatype: raw::Datatype,
) -> Result {
    // SAFETY: passed on.
    unsafe { representation(datarep)? };
    let (elements, size) = (count(outcount, "outcount")?, room(insize, "insize")?);
    packed(inbuf, size, "inbuf")?;
    // SAFETY: passed on.
    let (out, position) = unsafe { position(at)? };
    let end = types::with::<_, Failure>(datatype, |ty| {
        let plan = ty.plan()?;
        memory(outbuf, plan, elements, "outbuf")?;
        let external = plan.external32()?;
        let bytes = pack_external_size(external, elements)?;
        let end = place(position, bytes, size, "insize")?;
        let source = inbuf.cast::<u8>().wrapping_add(position);
        // SAFETY: as in `pack_external`, in the other direction.
        unsafe { unpack_external_raw(external, elements, outbuf.cast(), 0..bytes, source)? };
        Ok(end)
    })?;
    advanced(&out, end)
}

/// `MPI_Pack_external_size`.
///
/// # Safety
/// As the C function.
pub unsafe fn external_size<W: CountWidth>(
    datarep: *const c_char,
    incount: W::Count,
    datatype: raw::Datatype,
    size: *mut W::Address,
) -> Result {
    // SAFETY: passed on.
    unsafe { representation(datarep)? };
    // SAFETY: passed on.
    let out = unsafe { Out::new(size, "size")? };
    let elements = count(incount, "incount")?;
    let bytes = types::with::<_, Failure>(datatype, |ty| {
        Ok(pack_external_size(ty.plan()?.external32()?, elements).ok())
    })?;
    fits::<W::Address>(&out, bytes);
    Ok(())
}
