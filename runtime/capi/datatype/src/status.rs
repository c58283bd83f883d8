//! Statuses: the results of completed operations (MPI-5.0 sections 3.2.5, 3.8.4, 13.2).
//!
//! The first two words of the field `internal` hold the number of packed bytes of the message. The third word
//! says whether the operation was cancelled. A call that completes one operation does not write the error
//! field; a call that completes several operations may write it.

use crate::abi;
use crate::argument::{FromC, InOut, Input, Output, Place};
use crate::buffer::count;
use crate::count_width::{CountWidth, Large, Number};
use crate::failure::{Failure, Result};
use crate::raw::{self, Status};
use crate::types;
use std::ffi::c_int;

impl Status {
    /// Returns the empty status of the standard: any source, any tag, no error, 0 bytes, not cancelled.
    pub fn empty() -> Self {
        Self { source: abi::ANY_SOURCE, tag: abi::ANY_TAG, ..Self::default() }
    }

    /// Returns the number of packed bytes of the message.
    pub fn bytes(&self) -> u64 {
        u64::from(self.internal[0] as u32) | u64::from(self.internal[1] as u32) << 32
    }

    /// Sets the number of packed bytes of the message.
    pub fn set_bytes(&mut self, bytes: u64) {
        self.internal[0] = bytes as u32 as c_int;
        self.internal[1] = (bytes >> 32) as u32 as c_int;
    }

    /// Sets whether the operation was cancelled.
    pub fn set_cancelled(&mut self, cancelled: bool) {
        self.internal[2] = cancelled.into();
    }

    /// Returns whether the operation was cancelled.
    pub fn cancelled(&self) -> bool {
        self.internal[2] != 0
    }
}

/// The address where the call writes a status. The address is null (`MPI_STATUS_IGNORE`), or the library
/// may write a status there.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct StatusOutput(*mut Status);

impl FromC<*mut Status> for StatusOutput {
    #[inline(always)]
    unsafe fn from_c(pointer: *mut Status) -> Self {
        Self(pointer)
    }
}

impl From<Place<Status>> for StatusOutput {
    fn from(place: Place<Status>) -> Self {
        Self(place.address())
    }
}

impl StatusOutput {
    /// The value for a caller that ignores the status.
    pub const IGNORED: Self = Self(std::ptr::null_mut());

    /// Returns whether the caller ignores the status.
    #[inline]
    pub fn is_ignored(self) -> bool {
        self.0.is_null()
    }

    /// Writes the fields of a status except the error field. A call that completes one operation must leave
    /// the error field as the caller set it.
    #[inline]
    pub fn put(self, status: &Status) {
        if self.0.is_null() {
            return;
        }
        // SAFETY: the pointer is not null (checked above), so a status is writable there (promise of
        // `StatusOutput`). The three fields lie within the status.
        unsafe {
            (&raw mut (*self.0).source).write_unaligned(status.source);
            (&raw mut (*self.0).tag).write_unaligned(status.tag);
            (&raw mut (*self.0).internal).write_unaligned(status.internal);
        }
    }

    /// Writes the empty status, including its error field. A call that finds no active operation returns this
    /// status (MPI-5.0 section 3.7.3).
    pub fn put_empty(self) {
        if !self.0.is_null() {
            // SAFETY: the pointer is not null (checked above), so a whole status is writable there (promise
            // of `StatusOutput`).
            unsafe { self.0.write_unaligned(Status::empty()) };
        }
    }

    /// Writes the error field only.
    pub fn put_error(self, code: c_int) {
        if !self.0.is_null() {
            // SAFETY: the pointer is not null (checked above), so the error field of the status there is
            // writable (promise of `StatusOutput`).
            unsafe { (&raw mut (*self.0).error).write_unaligned(code) };
        }
    }
}

/// Reads a status of the C caller, applies `change` to it, and writes it back.
fn change(status: InOut<Status>, change: impl FnOnce(&mut Status)) -> Result {
    let (mut status, place) = status.read("status")?;
    change(&mut status);
    place.set(status);
    Ok(())
}

/// Writes `value` as a count, or `MPI_UNDEFINED` if `value` is `None` or does not fit in the type of the
/// output argument.
fn set_count<N: Number>(out: Place<N>, value: Option<u64>) {
    let value = value.and_then(|value| i64::try_from(value).ok()).and_then(N::exactly);
    if let Some(value) = value.or_else(|| N::exactly(abi::UNDEFINED.into())) {
        out.set(value);
    }
}

/// `MPI_Get_count`.
pub fn get_count<W: CountWidth>(
    status: Input<Status>,
    datatype: raw::Datatype,
    count: Output<W::Count>,
) -> Result {
    let (status, out) = (status.read("status")?, count.required("count")?);
    set_count(out, types::find(datatype)?.tree().get_count(status.bytes()));
    Ok(())
}

/// `MPI_Get_elements`.
pub fn get_elements<W: CountWidth>(
    status: Input<Status>,
    datatype: raw::Datatype,
    count: Output<W::Count>,
) -> Result {
    let (status, out) = (status.read("status")?, count.required("count")?);
    set_count(out, types::find(datatype)?.tree().get_elements(status.bytes()));
    Ok(())
}

/// `MPI_Get_elements_x`.
pub fn get_elements_x(
    status: Input<Status>,
    datatype: raw::Datatype,
    count: Output<raw::Count>,
) -> Result {
    get_elements::<Large>(status, datatype, count)
}

/// `MPI_Status_set_elements`.
pub fn set_elements<W: CountWidth>(
    status: InOut<Status>,
    datatype: raw::Datatype,
    elements: W::Count,
) -> Result {
    let (elements, found) = (count(elements, "count")?, types::find(datatype)?);
    let bytes = found.tree().elements_bytes(elements).ok_or_else(|| {
        let detail = format!(
            "the datatype has no basic elements, or {elements} of them exceed 2^63 - 1 bytes"
        );
        Failure::new(abi::ERR_COUNT, "count", detail)
    })?;
    change(status, |status| status.set_bytes(bytes))
}

/// `MPI_Status_set_elements_x`.
pub fn set_elements_x(
    status: InOut<Status>,
    datatype: raw::Datatype,
    elements: raw::Count,
) -> Result {
    set_elements::<Large>(status, datatype, elements)
}

/// `MPI_Status_set_cancelled`.
pub fn set_cancelled(status: InOut<Status>, flag: c_int) -> Result {
    change(status, |status| status.set_cancelled(flag != 0))
}

/// `MPI_Test_cancelled`.
pub fn test_cancelled(status: Input<Status>, flag: Output<c_int>) -> Result {
    let (status, out) = (status.read("status")?, flag.required("flag")?);
    out.set(status.cancelled().into());
    Ok(())
}

macro_rules! fields {
    ($($field:ident, $get:ident, $set:ident, $c:literal;)*) => {
        $(
            #[doc = concat!("`MPI_Status_get_", $c, "`.")]
            pub fn $get(status: Input<Status>, value: Output<c_int>) -> Result {
                let (status, out) =
                    (status.read("status")?, value.required($c)?);
                out.set(status.$field);
                Ok(())
            }

            #[doc = concat!("`MPI_Status_set_", $c, "`.")]
            pub fn $set(status: InOut<Status>, value: c_int) -> Result {
                change(status, |status| status.$field = value)
            }
        )*
    };
}

fields! {
    source, get_source, set_source, "source";
    tag, get_tag, set_tag, "tag";
    error, get_error, set_error, "error";
}
