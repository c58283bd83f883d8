//! Handles: numbers that stand for objects.
//!
//! The handle of a user's object is a number above the predefined handles. It consists of the object's kind,
//! the index of the object's place in the table of the kind, and the generation of the place. The generation
//! counts how often the place has been used before. The lower 32 bits of a handle are the integer that
//! `MPI_X_toint` returns. This integer is unique among live handles. The upper 32 bits hold the rest of the
//! generation, so that a freed handle stays invalid for the next 2^38 uses of its place. The library never uses a
//! handle as an address. It looks the handle up in the table of the expected kind. The lookup finds nothing if the
//! handle is null, is stale, or belongs to an object of another kind.
//!
//! ```text
//!   63          32 31    28 27        22 21         0
//!   generation >> 6   kind   generation    place
//! ```
//!
//! `table.rs` has the tables of most objects, each with a lock. `thread_cache.rs` finds the objects that a thread
//! used most recently, without taking a lock. `values.rs` has the tables for objects that live as long as one
//! message.

pub mod table;
pub mod thread_cache;
pub mod values;

use crate::abi;
use crate::failure::{Failure, Result};
use std::sync::atomic::{AtomicU64, Ordering};
use typepack_engine::reserve;

/// The kinds of objects that users make. A handle contains the number of its kind, which is never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Kind {
    /// Datatypes.
    Datatype = 1,
    /// Communicators.
    Comm,
    /// Groups.
    Group,
    /// Requests.
    Request,
    /// Matched messages.
    Message,
    /// Error handlers.
    Errhandler,
    /// Info objects.
    Info,
    /// Operations.
    Op,
    /// Windows.
    Win,
    /// Files.
    File,
    /// Sessions.
    Session,
    /// Requests of a single send or receive.
    PlainRequest,
}

impl Kind {
    /// Returns whether a handle is one of a user's object of this kind. The object may have been freed.
    #[inline]
    pub fn is_of(self, handle: usize) -> bool {
        Parts::of(handle).kind == self as u32
    }
}

/// Number of bits of a place's index, the lowest bits of a handle.
const PLACE_BITS: u32 = 22;
/// Number of bits of the generation that lie in the lower half of a handle, between the place and the kind.
const LOW_BITS: u32 = 6;

/// A table reuses a free place only if it has more than this many free places. The lower half of a handle
/// distinguishes 64 generations, so the integer of a freed handle stays invalid until the table has made at
/// least `64 * REST` further handles. (A full table reuses its places earlier.)
const REST: usize = 1024;

/// The fields of a user's handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Parts {
    kind: u32,
    place: u32,
    generation: u64,
}

impl Parts {
    fn of(handle: usize) -> Self {
        let (low, high) = (handle as u32, handle >> 32);
        Self {
            kind: low >> (PLACE_BITS + LOW_BITS),
            place: low & ((1 << PLACE_BITS) - 1),
            generation: u64::from((low >> PLACE_BITS) & ((1 << LOW_BITS) - 1))
                | ((high as u64) << LOW_BITS),
        }
    }

    fn handle(self) -> usize {
        let low = (self.generation & ((1 << LOW_BITS) - 1)) as u32;
        let low = (self.kind << (PLACE_BITS + LOW_BITS)) | (low << PLACE_BITS) | self.place;
        low as usize | ((self.generation >> LOW_BITS) as usize) << 32
    }
}

/// The bits of a generation that handles have.
static GENERATIONS: AtomicU64 = AtomicU64::new(u64::MAX);

/// Makes all later handles as small as the integers that `MPI_X_toint` returns. A program of an ABI whose handles are such
/// integers then needs no lookup. A freed handle stays invalid for as long as its integer does (`REST`).
pub fn make_narrow() {
    GENERATIONS.store((1 << LOW_BITS) - 1, Ordering::Relaxed);
}

/// Returns the generation of a place after `generation`.
#[inline]
fn next(generation: u64) -> u64 {
    generation.wrapping_add(1) & GENERATIONS.load(Ordering::Relaxed)
}

/// Fails if memory is so short that the library makes no further objects.
///
/// # Errors
/// Returns `MPI_ERR_NO_MEM`.
#[inline(always)]
pub fn check_memory(kind: Kind) -> Result<()> {
    if reserve::is_short() && reserve::refuses() { Err(none_left(kind, 0)) } else { Ok(()) }
}

/// Returns the failure for a table without a free place, which has `places` places.
#[cold]
fn none_left(kind: Kind, places: usize) -> Failure {
    if places < 1 << PLACE_BITS {
        let detail = format!("there is no memory for another handle of kind {kind:?}");
        return Failure::new(abi::ERR_NO_MEM, "handle", detail);
    }
    let detail = format!("all {places} handles of kind {kind:?} are in use");
    Failure::new(abi::ERR_OTHER, "handle", detail)
}

/// Returns the integer that `MPI_X_toint` returns for a handle, predefined or not.
pub fn to_int(handle: usize) -> i32 {
    handle as u32 as i32
}
