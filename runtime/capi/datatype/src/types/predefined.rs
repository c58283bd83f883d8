//! Predefined datatypes: those that have a number in the ABI, and those that a call returns and the user must
//! not free (Fortran 90 kinds, pairs).
//!
//! The datatypes with a number are found by their number. Each of the others has one handle for the life of
//! the process, however often calls return it.

use super::{TYPES, Type};
use crate::failure::Result;
use crate::raw;
use std::ops::RangeInclusive;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use typepack_engine::{Datatype, Named};

/// The numbers of datatypes in the ABI, and those of the compatibility block's markers.
const NUMBERS: RangeInclusive<usize> = 0x200..=0x2ff;
const MARKERS: RangeInclusive<usize> = 0x1210..=0x1211;

/// The largest number of `NUMBERS` and of the markers. Handles of the user's datatypes are greater.
pub const LAST: usize = *MARKERS.end();

struct Predefined {
    by_value: Vec<Option<Arc<Type>>>,
    markers: [Option<Arc<Type>>; 2],
}

static PREDEFINED: LazyLock<Predefined> = LazyLock::new(|| {
    let make = |value: usize| {
        let named = Named::from_abi_value(value as u32)?;
        Some(Arc::new(Type::new(Datatype::named(named))))
    };
    Predefined {
        by_value: NUMBERS.map(make).collect(),
        markers: [make(*MARKERS.start()), make(*MARKERS.end())],
    }
});

/// Returns the predefined datatype with this number; `None` if there is none.
// Never inlined: `hold` is inlined into functions that have no registers to spare for this function.
#[inline(never)]
pub fn find(datatype: raw::Datatype) -> Option<&'static Arc<Type>> {
    match datatype.0 {
        value if NUMBERS.contains(&value) => PREDEFINED.by_value[value - NUMBERS.start()].as_ref(),
        value if MARKERS.contains(&value) => PREDEFINED.markers[value - MARKERS.start()].as_ref(),
        _ => None,
    }
}

/// Predefined datatypes without a name, and their handles.
static UNNAMED: Mutex<Vec<(Datatype, raw::Datatype)>> = Mutex::new(Vec::new());

/// Returns the handle of a predefined datatype without a name: always the same for the same datatype.
///
/// # Errors
/// Returns `MPI_ERR_OTHER` if no handle is left.
pub fn unnamed(tree: Datatype) -> Result<raw::Datatype> {
    let mut unnamed = UNNAMED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, handle)) = unnamed.iter().find(|(known, _)| known.is_same(&tree)) {
        return Ok(*handle);
    }
    let handle = raw::Datatype(TYPES.insert(Arc::new(Type::new(tree.clone())))?);
    unnamed.push((tree, handle));
    Ok(handle)
}

/// Returns a handle for a datatype that decoding returned: the handle of a predefined datatype, or a new one.
///
/// # Errors
/// Returns `MPI_ERR_OTHER` if no handle is left.
pub fn handle_of(tree: &Datatype) -> Result<raw::Datatype> {
    match tree.as_named() {
        Some(named) => Ok(raw::Datatype(named.abi_value() as usize)),
        None if tree.is_predefined() => unnamed(tree.clone()),
        None => super::insert(tree.clone()),
    }
}
