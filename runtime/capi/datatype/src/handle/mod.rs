//! Handles: numbers that stand for objects.
//!
//! A handle of a user's object is a number above the predefined ones, made of the object's kind, its
//! place in the kind's [`Table`](table::Table), and how often that place has been used. The lower 32
//! bits alone are the handle's integer (`MPI_X_toint`), unique among live handles; the upper 32 bits
//! complete the generation, so that a handle that was freed stays invalid for the next 2^38 uses of
//! its place. Nothing is ever followed: a stale, foreign or null handle is simply not found.
//!
//! ```text
//!   63          32 31    28 27        22 21         0
//!   generation >> 6   kind   generation    place
//! ```
//!
//! `table.rs` finds objects; `thread_cache.rs` finds again, without a lock, what a thread used last.

pub mod table;
pub mod thread_cache;

/// The kinds of objects that users make. Values are part of handles, and never 0.
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
}

/// Bits of a place.
const PLACE_BITS: u32 = 22;
/// Bits of the generation below the kind.
const LOW_BITS: u32 = 6;

/// A handle of a user's object, taken apart.
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

/// The integer of a handle, predefined or not.
pub fn to_int(handle: usize) -> i32 {
    handle as u32 as i32
}
