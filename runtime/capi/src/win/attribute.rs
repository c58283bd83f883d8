//! Attributes of windows (MPI-5.0 sections 7.7.3 and 12.2.6), including the predefined ones. `manage.rs` deletes the
//! attributes before it frees a window.

use super::WINDOWS;
use crate::abi;
use crate::argument::{InOut, Output};
use crate::attribute::{self, Of, Pointer};
use crate::error::{Failure, Result};
use crate::raw::{self, Aint};
use std::ffi::{c_int, c_void};
use typepack::rma::Window;

/// The values of the predefined attributes. Programs get the addresses of these values, and must not write to them.
#[derive(Debug)]
pub struct Values {
    base: Pointer,
    size: Aint,
    unit: c_int,
    flavor: c_int,
    model: c_int,
}

impl Values {
    /// Returns the values for a window.
    pub fn of(window: &Window) -> Self {
        let (base, size, unit) = window.own();
        Self {
            base: Pointer(base.cast()),
            size: Aint::try_from(size).unwrap_or(Aint::MAX),
            unit: c_int::try_from(unit).unwrap_or(abi::UNDEFINED),
            flavor: window.flavor() as c_int,
            model: abi::WIN_UNIFIED,
        }
    }

    /// Returns the value of a predefined attribute; `None` if the key is not predefined.
    fn get(&self, keyval: c_int) -> Option<*mut c_void> {
        let address = |value: *const c_int| value.cast_mut().cast();
        Some(match keyval {
            abi::WIN_BASE => self.base.0,
            abi::WIN_SIZE => (&raw const self.size).cast_mut().cast(),
            abi::WIN_DISP_UNIT => address(&raw const self.unit),
            abi::WIN_CREATE_FLAVOR => address(&raw const self.flavor),
            abi::WIN_MODEL => address(&raw const self.model),
            _ => return None,
        })
    }
}

/// Checks that the program may change the attribute of a key.
fn changeable(values: &Values, keyval: c_int) -> Result {
    if values.get(keyval).is_none() {
        return Ok(());
    }
    let detail = format!("the attribute of key {keyval} is predefined and cannot be changed");
    Err(Failure::new(abi::ERR_KEYVAL, "win_keyval", detail))
}

/// `MPI_Win_create_keyval`.
pub fn create_keyval(
    copy: raw::Callback,
    delete: raw::Callback,
    keyval: Output<c_int>,
    extra: *mut c_void,
) -> Result {
    attribute::create(Of::Win, copy, delete, keyval, extra)
}

/// `MPI_Win_free_keyval`.
pub fn free_keyval(keyval: InOut<c_int>) -> Result {
    attribute::free(Of::Win, keyval)
}

/// `MPI_Win_set_attr`.
pub fn set(win: raw::Win, keyval: c_int, value: *mut c_void) -> Result {
    let found = WINDOWS.find(win.0)?;
    changeable(&found.values, keyval)?;
    found.attributes.set(Of::Win, win.0, keyval, value)
}

/// `MPI_Win_get_attr`.
pub fn get(
    win: raw::Win,
    keyval: c_int,
    value: Output<*mut c_void>,
    flag: Output<c_int>,
) -> Result {
    let found = WINDOWS.find(win.0)?;
    let set = || match found.values.get(keyval) {
        Some(value) => Ok(Some(value)),
        None => found.attributes.get(Of::Win, keyval),
    };
    attribute::answer(set, value, flag)
}

/// `MPI_Win_delete_attr`.
pub fn delete(win: raw::Win, keyval: c_int) -> Result {
    let found = WINDOWS.find(win.0)?;
    changeable(&found.values, keyval)?;
    found.attributes.delete(Of::Win, win.0, keyval)
}
