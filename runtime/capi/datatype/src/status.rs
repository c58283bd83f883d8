//! Statuses: what a completed operation says (MPI-5.0 sections 3.2.5, 3.8.4, 13.2).
//!
//! The packed bytes of the message are in the first two internal words, whether it was cancelled in
//! the third. The error field is written only by calls that complete several operations.

use crate::abi;
use crate::count_width::{CountWidth, Large, Number, count};
use crate::failure::{Failure, Result};
use crate::out::Out;
use crate::raw::{self, Status};
use crate::types;
use std::ffi::c_int;

impl Status {
    /// The empty status.
    pub fn empty() -> Self {
        Self { source: abi::ANY_SOURCE, tag: abi::ANY_TAG, ..Self::default() }
    }

    /// Writes the empty status, its error field too, to where C wants it, if it wants it: what calls
    /// say when no operation was active (MPI-5.0 section 3.7.3).
    ///
    /// # Safety
    ///
    /// - `target` is `MPI_STATUS_IGNORE`, or writable.
    pub unsafe fn put_empty(target: *mut Self) {
        if !target.is_null() {
            // SAFETY: writable, as promised; C may have cast what it did not align.
            unsafe { target.write_unaligned(Self::empty()) };
        }
    }

    /// Writes it, but for the error, to where C wants it, if it wants it.
    ///
    /// # Safety
    ///
    /// - `target` is `MPI_STATUS_IGNORE`, or writable.
    pub unsafe fn put(&self, target: *mut Self) {
        if target.is_null() {
            return;
        }
        // SAFETY: writable, as promised; C may have cast what it did not align. The error field of
        // a call that completes one operation is not ours.
        unsafe {
            (&raw mut (*target).source).write_unaligned(self.source);
            (&raw mut (*target).tag).write_unaligned(self.tag);
            (&raw mut (*target).internal).write_unaligned(self.internal);
        }
    }

    /// The packed bytes of the message.
    pub fn bytes(&self) -> u64 {
        u64::from(self.internal[0] as u32) | u64::from(self.internal[1] as u32) << 32
    }

    /// Sets them.
    pub fn set_bytes(&mut self, bytes: u64) {
        self.internal[0] = bytes as u32 as c_int;
        self.internal[1] = (bytes >> 32) as u32 as c_int;
    }

    /// Sets whether the operation was cancelled.
    pub fn set_cancelled(&mut self, cancelled: bool) {
        self.internal[2] = cancelled.into();
    }

    /// Whether the operation was cancelled.
    pub fn cancelled(&self) -> bool {
        self.internal[2] != 0
    }
}

/// A status that is an argument.
///
/// # Errors
/// `MPI_ERR_ARG` for a null pointer, which `MPI_STATUS_IGNORE` is too.
///
/// # Safety
///
/// - `status` is null or readable.
unsafe fn read(status: *const Status) -> Result<Status> {
    if status.is_null() {
        return Err(Failure::null("status"));
    }
    // SAFETY: not null, hence readable; C may have copied it to any place.
    Ok(unsafe { status.read_unaligned() })
}

/// Changes a status.
///
/// # Safety
///
/// - `status` is null, or readable and writable.
unsafe fn change(status: *mut Status, change: impl FnOnce(&mut Status)) -> Result {
    // SAFETY: passed on.
    let mut copy = unsafe { read(status)? };
    change(&mut copy);
    // SAFETY: not null, hence writable.
    unsafe { status.write_unaligned(copy) };
    Ok(())
}

/// A count as a result; `MPI_UNDEFINED` where it does not fit or is none.
fn set_count<N: Number>(out: &Out<N>, value: Option<u64>) {
    let value = value.and_then(|value| i64::try_from(value).ok()).and_then(N::exactly);
    if let Some(value) = value.or_else(|| N::exactly(abi::UNDEFINED.into())) {
        out.set(value);
    }
}

/// `MPI_Get_count`.
///
/// # Safety
/// As the C function.
pub unsafe fn get_count<W: CountWidth>(
    status: *const Status,
    datatype: raw::Datatype,
    count: *mut W::Count,
) -> Result {
    // SAFETY: passed on.
    let (status, out) = unsafe { (read(status)?, Out::new(count, "count")?) };
    set_count(&out, types::find(datatype)?.tree().get_count(status.bytes()));
    Ok(())
}

/// `MPI_Get_elements`.
///
/// # Safety
/// As the C function.
pub unsafe fn get_elements<W: CountWidth>(
    status: *const Status,
    datatype: raw::Datatype,
    count: *mut W::Count,
) -> Result {
    // SAFETY: passed on.
    let (status, out) = unsafe { (read(status)?, Out::new(count, "count")?) };
    set_count(&out, types::find(datatype)?.tree().get_elements(status.bytes()));
    Ok(())
}

/// `MPI_Get_elements_x`.
///
/// # Safety
/// As the C function.
pub unsafe fn get_elements_x(
    status: *const Status,
    datatype: raw::Datatype,
    count: *mut raw::Count,
) -> Result {
    // SAFETY: passed on.
    unsafe { get_elements::<Large>(status, datatype, count) }
}

/// `MPI_Status_set_elements`.
///
/// # Safety
/// As the C function.
pub unsafe fn set_elements<W: CountWidth>(
    status: *mut Status,
    datatype: raw::Datatype,
    elements: W::Count,
) -> Result {
    let (elements, found) = (count(elements, "count")?, types::find(datatype)?);
    let bytes = found.tree().elements_bytes(elements).ok_or_else(|| {
        let detail = format!("{elements} elements of this datatype have no size");
        Failure::new(abi::ERR_COUNT, "count", detail)
    })?;
    // SAFETY: passed on.
    unsafe { change(status, |status| status.set_bytes(bytes)) }
}

/// `MPI_Status_set_elements_x`.
///
/// # Safety
/// As the C function.
pub unsafe fn set_elements_x(
    status: *mut Status,
    datatype: raw::Datatype,
    elements: raw::Count,
) -> Result {
    // SAFETY: passed on.
    unsafe { set_elements::<Large>(status, datatype, elements) }
}

/// `MPI_Status_set_cancelled`.
///
/// # Safety
/// As the C function.
pub unsafe fn set_cancelled(status: *mut Status, flag: c_int) -> Result {
    // SAFETY: passed on.
    unsafe { change(status, |status| status.set_cancelled(flag != 0)) }
}

/// `MPI_Test_cancelled`.
///
/// # Safety
/// As the C function.
pub unsafe fn test_cancelled(status: *const Status, flag: *mut c_int) -> Result {
    // SAFETY: passed on.
    let (status, out) = unsafe { (read(status)?, Out::new(flag, "flag")?) };
    out.set(status.cancelled().into());
    Ok(())
}

macro_rules! fields {
    ($($field:ident, $get:ident, $set:ident, $c:literal;)*) => {
        $(
            #[doc = concat!("`MPI_Status_get_", $c, "`.")]
            ///
            /// # Safety
            /// As the C function.
            pub unsafe fn $get(status: *const Status, value: *mut c_int) -> Result {
                // SAFETY: passed on.
                let (status, out) = unsafe { (read(status)?, Out::new(value, $c)?) };
                out.set(status.$field);
                Ok(())
            }

            #[doc = concat!("`MPI_Status_set_", $c, "`.")]
            ///
            /// # Safety
            /// As the C function.
            pub unsafe fn $set(status: *mut Status, value: c_int) -> Result {
                // SAFETY: passed on.
                unsafe { change(status, |status| status.$field = value) }
            }
        )*
    };
}

fields! {
    source, get_source, set_source, "source";
    tag, get_tag, set_tag, "tag";
    error, get_error, set_error, "error";
}
