//! Packing and unpacking in a communicator (MPI-5.0 section 5.2).
//!
//! The functions here check the communicator and then call the function of the same name in
//! `typepack-capi-datatype`. The calls without a communicator (section 5.3) come from that crate unchanged.

pub use typepack_capi_datatype::pack::{external_size, pack_external, unpack_external};

use crate::argument::{InOut, Output};
use crate::comm;
use crate::count_width::CountWidth;
use crate::error::Result;
use crate::raw;
use std::ffi::c_void;
use typepack_capi_datatype::pack as layer;

/// `MPI_Pack`.
///
/// # Safety
///
/// - `inbuf` is readable for `incount` elements of `datatype`.
/// - `outbuf` is writable for `outsize` bytes, and does not overlap the elements.
// Inlined into the exported function, because each further call between C and the kernel costs measurable
// time.
#[inline(always)]
pub unsafe fn pack<W: CountWidth>(
    inbuf: *const c_void,
    incount: W::Count,
    datatype: raw::Datatype,
    outbuf: *mut c_void,
    outsize: W::Count,
    at: InOut<W::Count>,
    comm: raw::Comm,
) -> Result {
    comm::check(comm)?;
    // SAFETY: the two conditions of `# Safety` are the same as those of `layer::pack`, and the caller
    // guarantees them for `inbuf` and `outbuf`.
    unsafe { layer::pack::<W>(inbuf, incount, datatype, outbuf, outsize, at)? };
    Ok(())
}

/// `MPI_Unpack`.
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
    comm: raw::Comm,
) -> Result {
    comm::check(comm)?;
    // SAFETY: the two conditions of `# Safety` are the same as those of `layer::unpack`, and the caller
    // guarantees them for `inbuf` and `outbuf`.
    unsafe { layer::unpack::<W>(inbuf, insize, at, outbuf, outcount, datatype)? };
    Ok(())
}

/// `MPI_Pack_size`: returns the exact number of bytes that packing writes.
pub fn pack_size<W: CountWidth>(
    incount: W::Count,
    datatype: raw::Datatype,
    comm: raw::Comm,
    size: Output<W::Count>,
) -> Result {
    comm::check(comm)?;
    layer::pack_size::<W>(incount, datatype, size)?;
    Ok(())
}
