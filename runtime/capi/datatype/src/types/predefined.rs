//! Predefined datatypes: those with a number in the ABI, and those that a call makes without there
//! being anything to free (Fortran 90 kinds, pairs).
//!
//! The former are found by value. The latter keep one handle for the life of the process, however
//! often they are asked for.

use super::{TYPES, Type};
use crate::failure::Result;
use crate::raw;
use std::ops::RangeInclusive;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use typepack_engine::{Datatype, Named};

/// The numbers of datatypes in the ABI, and those of the compatibility block's markers.
const NUMBERS: RangeInclusive<usize> = 0x200..=0x2ff;
const MARKERS: RangeInclusive<usize> = 0x1210..=0x1211;

/// The last of them: handles of users' types are greater.
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

/// The predefined type of a handle, if it is one: by its value, or made by a call.
// A call of its own: `datatype::hold` stands in functions that have no registers to spare for it.
#[inline(never)]
pub fn find(datatype: raw::Datatype) -> Option<&'static Arc<Type>> {
    match datatype.0 {
        value if NUMBERS.contains(&value) => PREDEFINED.by_value[value - NUMBERS.start()].as_ref(),
        value if MARKERS.contains(&value) => PREDEFINED.markers[value - MARKERS.start()].as_ref(),
        _ => None,
    }
}

/// Types without a name and their handles.
static UNNAMED: Mutex<Vec<(Datatype, raw::Datatype)>> = Mutex::new(Vec::new());

/// The handle of a predefined type without a name: the same one for the same type.
///
/// # Errors
/// No handle is left.
pub fn unnamed(tree: Datatype) -> Result<raw::Datatype> {
    let mut unnamed = UNNAMED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, handle)) = unnamed.iter().find(|(known, _)| known.is_same(&tree)) {
        return Ok(*handle);
    }
    let handle = raw::Datatype(TYPES.insert(Arc::new(Type::new(tree.clone())))?);
    unnamed.push((tree, handle));
    Ok(handle)
}

/// The handle of a type that decoding returned: that of a predefined type, or a new one.
///
/// # Errors
/// No handle is left.
pub fn handle_of(tree: &Datatype) -> Result<raw::Datatype> {
    match tree.as_named() {
        Some(named) => Ok(raw::Datatype(named.abi_value() as usize)),
        None if tree.is_predefined() => unnamed(tree.clone()),
        None => super::insert(tree.clone()),
    }
}
