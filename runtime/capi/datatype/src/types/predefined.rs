//! Predefined datatypes. Some have a number in the ABI. The others (types of Fortran 90 kinds, and pair
//! types) have no number: a program gets their handles from calls, and must not free them.
//!
//! For a datatype with a number, the number is the handle. Each of the other datatypes has one handle for the
//! life of the process, no matter how many calls return the datatype.

use super::{TYPES, Type};
use crate::failure::Result;
use crate::raw;
use std::ops::RangeInclusive;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use typepack_engine::{Datatype, Named};

/// The numbers that the ABI reserves for datatypes.
const NUMBERS: RangeInclusive<usize> = 0x200..=0x2ff;
/// The numbers of the markers `MPI_LB` and `MPI_UB`, which belong to the compatibility block of `mpi.h`.
const MARKERS: RangeInclusive<usize> = 0x1210..=0x1211;

/// The largest number in `NUMBERS` and `MARKERS`. The handles of users' datatypes are greater.
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

/// Returns the predefined datatype with the number `datatype`; `None` if there is none.
// Never inlined: `hold` is inlined into packing calls. With this function inlined too, these calls would need
// more registers and would spill some of them to the stack.
#[inline(never)]
pub fn find(datatype: raw::Datatype) -> Option<&'static Arc<Type>> {
    match datatype.0 {
        value if NUMBERS.contains(&value) => PREDEFINED.by_value[value - NUMBERS.start()].as_ref(),
        value if MARKERS.contains(&value) => PREDEFINED.markers[value - MARKERS.start()].as_ref(),
        _ => None,
    }
}

/// Makes the predefined datatypes, so that a debugger finds them from now on.
pub fn prepare() {
    LazyLock::force(&PREDEFINED);
}

/// Returns whether [`prepare`] or [`find`] has made the predefined datatypes, so that [`find`] waits for no other thread.
pub(super) fn is_ready() -> bool {
    LazyLock::get(&PREDEFINED).is_some()
}

/// The predefined datatypes that have no number and have been given a handle so far, each with its handle.
static UNNAMED: Mutex<Vec<(Datatype, raw::Datatype)>> = Mutex::new(Vec::new());

/// Returns the handle of a predefined datatype that has no number. Every call for the same datatype returns
/// the same handle.
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

/// Returns a handle for a datatype: for a predefined datatype its fixed handle, and for any other datatype a new
/// handle.
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
