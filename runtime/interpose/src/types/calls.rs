//! The calls that make committed types, and the call that frees a type. A type is rebuilt when it is committed. A
//! duplicate of a committed type is committed too, and shares the layout.

use super::{
    LAST_PREDEFINED, Layout, find, free_twins, insert, is_in_order, known, plan, remember,
    remember_order,
};
use crate::entry::is_agreed;
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
    free_twins(next);
    // SAFETY: the pointer is not null, so it is the address of a handle (`# Safety`).
    let code = unsafe { next.MPI_Type_commit(datatype) };
    if code == abi::SUCCESS {
        // SAFETY: the pointer is not null, and the host has accepted the handle there.
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
        return leave(next, datatype);
    }
    let rebuilt = super::decode::rebuild(next, datatype);
    match rebuilt.and_then(|rebuilt| Some((plan(&rebuilt.tree)?, rebuilt.unit))) {
        None => leave(next, datatype),
        Some((plan, _)) if plan.is_contiguous() || plan.element_bytes() == 0 => {
            add(&COUNTS.contiguous, 1);
            remember_order(next, datatype);
        }
        Some((plan, unit)) => remember(next, datatype, Arc::new(Layout::new(next, plan, unit))),
    }
}

/// Leaves a type to the host. If all ranks take part, the type has a layout without kernels, because its messages may
/// come packed.
fn leave(next: &'static Next, datatype: raw::Datatype) {
    add(&COUNTS.left, 1);
    if is_agreed()
        && let Some(layout) = Layout::of_host(next, datatype)
    {
        remember(next, datatype, Arc::new(layout));
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
    if layout.is_none() && (oldtype.0 <= LAST_PREDEFINED || !is_in_order(oldtype)) {
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

/// `MPI_Type_free`. The host frees the type, after this library has freed its own copy. The layout is forgotten when
/// the host tells that the type has ended: other handles may mean the same type (`MPI_Type_get_contents`).
///
/// # Safety
///
/// - The arguments are those of a call of `MPI_Type_free`.
pub unsafe fn free(next: &'static Next, datatype: *mut raw::Datatype) -> Option<c_int> {
    // SAFETY: the pointer is null or the address of a handle (`# Safety`).
    let datatype = unsafe { datatype.as_ref() }?;
    if datatype.0 > LAST_PREDEFINED
        && let Some(layout) = known(*datatype)
    {
        layout.release();
    }
    free_twins(next);
    None
}
