//! `MPIX_Type_describe`, which is outside the standard: what `typepack explain` says about a datatype.

use crate::abi;
use crate::argument::{InOut, TextBuffer};
use crate::error::{Failure, Result};
use crate::raw;
use std::ffi::c_int;
use typepack_capi_datatype::types;
use typepack_explain::{Options, brief};

/// Writes the report about a datatype: one sentence, its text form, its sizes, a drawing, and advice. On entry, the value
/// at `length` is the size of the buffer; on return, it is the size that the whole report needs, with its zero byte.
///
/// # Safety
///
/// - The value at `length` is at most the size of the buffer `text`.
pub unsafe fn describe(datatype: raw::Datatype, text: TextBuffer, length: InOut<c_int>) -> Result {
    let found = types::find(datatype)?;
    let (room, place) = length.read("length")?;
    if room < 0 {
        return Err(Failure::new(abi::ERR_ARG, "length", format!("{room} is negative")));
    }
    let buffer = match room {
        0 => None,
        // SAFETY: `room` is at least 1, and at most the size of the buffer (`# Safety`).
        _ => Some(unsafe { text.required(room, "text")? }),
    };
    let settings = typepack::engine_settings()?.clone();
    let report = brief(found.tree(), &Options { settings, ..Options::default() })?;
    place.set(c_int::try_from(report.len() + 1).unwrap_or(c_int::MAX));
    if let Some(buffer) = buffer {
        buffer.write(report.as_bytes());
    }
    Ok(())
}
