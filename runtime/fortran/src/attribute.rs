//! The values of attributes. Fortran sets and reads integers of the width of an address.
//!
//! What C reads for an attribute that Fortran has set is the address of the integer (MPI-5.0 section 19.3.7). So
//! Fortran's integers lie in memory that this library keeps, one place for each value, and an attribute whose value is
//! such a place was set by Fortran. An attribute that C has set is an address, and Fortran reads the address. For a
//! predefined attribute, C gets the address of a number, and Fortran the number itself.

use crate::raw;
use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::sync::{PoisonError, RwLock};

/// The keys whose value is the address of an `int` in C: `MPI_TAG_UB` to `MPI_UNIVERSE_SIZE`, and of windows
/// `MPI_WIN_DISP_UNIT`, `MPI_WIN_CREATE_FLAVOR` and `MPI_WIN_MODEL`.
fn is_number(keyval: c_int) -> bool {
    matches!(keyval, 501..=507 | 602 | 604 | 605)
}

/// `MPI_WIN_SIZE`, whose value is the address of an `MPI_Aint` in C.
const WIN_SIZE: c_int = 603;

/// The places of Fortran's integers: by value, and the values by the addresses of the places.
#[derive(Default)]
struct Places {
    by_value: HashMap<raw::Aint, usize>,
    by_address: HashMap<usize, raw::Aint>,
}

static PLACES: RwLock<Option<Places>> = RwLock::new(None);

/// Returns the C value of an attribute that Fortran sets: the address of a place with the integer.
pub fn value(value: raw::Aint) -> *mut c_void {
    let mut places = PLACES.write().unwrap_or_else(PoisonError::into_inner);
    let places = places.get_or_insert_default();
    let address = *places.by_value.entry(value).or_insert_with(|| {
        let place: *mut raw::Aint = Box::leak(Box::new(value));
        let address = place.expose_provenance();
        places.by_address.insert(address, value);
        address
    });
    std::ptr::with_exposed_provenance_mut(address)
}

/// Returns the Fortran value of an attribute that is not predefined.
pub fn integer(value: *mut c_void) -> raw::Aint {
    let places = PLACES.read().unwrap_or_else(PoisonError::into_inner);
    let own = places.as_ref().and_then(|places| places.by_address.get(&value.addr()));
    own.copied().unwrap_or(value.addr().cast_signed())
}

/// Returns the Fortran value of an attribute.
///
/// # Safety
///
/// - `value` is what the ABI says for the key.
pub unsafe fn shown(keyval: c_int, value: *mut c_void) -> raw::Aint {
    // SAFETY: the value of a predefined key is the address of such a number (`# Safety`).
    unsafe {
        match keyval {
            key if is_number(key) => *value.cast::<c_int>() as raw::Aint,
            WIN_SIZE => *value.cast::<raw::Aint>(),
            _ => integer(value),
        }
    }
}
