//! The calls that make committed types. A type is rebuilt when it is committed. A duplicate of a committed type is
//! committed too, and shares the layout.

use super::{Layout, find, insert, is_in_order, plan, remember, remember_order};
use crate::host::{Next, has_devices};
use crate::report::{COUNTS, add};
use std::ffi::c_int;
use std::sync::Arc;
use typepack_capi_datatype::{abi, raw};

/// `MPI_Type_commit`.
///
/// # Safety
///
/// - The arguments are those of a call of `MPI_Type_commit`.
pub unsafe fn commit(next: &'static Next, datatype: *mut raw::Datatype) -> Option<c_int> {
    if datatype.is_null() {
        return None;
    }
    // SAFETY: the pointer is not null, so it is the address of a handle (`# Safety`).
    let code = unsafe { next.MPI_Type_commit(datatype) };
    if code == abi::SUCCESS {
        // SAFETY: as above; the host has accepted the handle.
        take(next, unsafe { *datatype });
    }
    Some(code)
}

/// Rebuilds a committed type, and remembers its layout unless it is contiguous.
fn take(next: &'static Next, datatype: raw::Datatype) {
    // Committing a type again changes nothing.
    if is_in_order(datatype) || find(datatype).is_some() {
        return;
    }
    if has_devices() {
        return add(&COUNTS.left, 1);
    }
    let rebuilt = super::decode::rebuild(next, datatype);
    match rebuilt.and_then(|rebuilt| Some((plan(&rebuilt.tree)?, rebuilt.unit))) {
        None => add(&COUNTS.left, 1),
        Some((plan, _)) if plan.is_contiguous() || plan.element_bytes() == 0 => {
            add(&COUNTS.contiguous, 1);
            remember_order(next, datatype);
        }
        Some((plan, unit)) => remember(next, datatype, Arc::new(Layout::new(next, plan, unit))),
    }
}

/// `MPI_Type_dup`.
///
/// # Safety
///
/// - The arguments are those of a call of `MPI_Type_dup`.
pub unsafe fn dup(
    next: &'static Next,
    oldtype: raw::Datatype,
    newtype: *mut raw::Datatype,
) -> Option<c_int> {
    let layout = find(oldtype);
    if layout.is_none() && (oldtype.0 <= super::LAST_PREDEFINED || !is_in_order(oldtype)) {
        return None;
    }
    if newtype.is_null() {
        return None;
    }
    // SAFETY: the caller passes the arguments of this call (`# Safety`).
    let code = unsafe { next.MPI_Type_dup(oldtype, newtype) };
    if code == abi::SUCCESS {
        // SAFETY: `newtype` is not null, and the host has written a handle there.
        let made = unsafe { *newtype };
        // A host may return the same handle with one more reference. Its layout is known.
        if made != oldtype {
            insert(made, None);
            match layout {
                Some(layout) => remember(next, made, layout),
                None => remember_order(next, made),
            }
        }
    }
    Some(code)
}
