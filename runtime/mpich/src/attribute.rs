//! The values of predefined attributes that are constants.

use crate::number::{Pairs, to_ours, to_theirs};
use crate::{code, raw, values};
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicI32, Ordering};

/// The constants of windows in MPICH, each at its place.
static SMALL: [c_int; 5] = [0, 1, 2, 3, 4];
/// The sentinels of ranks in MPICH, each at the place of its number without the sign.
static SENTINELS: [c_int; 4] = [0, -1, -2, -3];
/// The value of `MPI_LASTUSEDCODE`.
static LAST_USED: AtomicI32 = AtomicI32::new(0);

/// Returns a constant that a pointer of the program may point to.
fn constant(pairs: &Pairs, value: c_int, all: &'static [c_int]) -> Option<*const c_int> {
    let theirs = to_theirs(pairs, value);
    all.iter().find(|constant| **constant == theirs).map(std::ptr::from_ref)
}

/// Replaces the value of an attribute, which is a pointer, if what it points to has another number in MPICH.
///
/// # Safety
///
/// - The call has succeeded. `place` and `flag` are the addresses that it has written.
pub unsafe fn show(keyval: c_int, place: *mut c_void, flag: *const c_int) {
    let key = to_ours(&values::KEYVAL, keyval);
    let wanted = [raw::IO, raw::HOST, raw::LASTUSEDCODE, raw::WIN_CREATE_FLAVOR, raw::WIN_MODEL];
    // SAFETY: the call has succeeded, so the addresses are those of its results (`# Safety`). The value of such a key is
    // the address of a number.
    unsafe {
        if !wanted.contains(&key) || flag.read_unaligned() == 0 {
            return;
        }
        let place = place.cast::<*const c_int>();
        let value = *place.read_unaligned();
        let shown = match key {
            raw::IO | raw::HOST => constant(&values::RANK, value, &SENTINELS),
            raw::WIN_CREATE_FLAVOR => constant(&values::FLAVOR, value, &SMALL),
            raw::WIN_MODEL => constant(&values::MODEL, value, &SMALL),
            _ => {
                LAST_USED.store(code::to_theirs(value), Ordering::Relaxed);
                Some(LAST_USED.as_ptr().cast_const())
            }
        };
        if let Some(shown) = shown {
            place.write_unaligned(shown);
        }
    }
}
