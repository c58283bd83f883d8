//! The buffers of collective calls, on memory that the caller answers for.

use crate::{Error, ErrorKind, Plan, Result};

/// `count` elements of a committed type at an address: what a rank gives to a collective call, or
/// gets from it.
#[derive(Clone, Copy, Debug)]
pub struct Part<'a> {
    /// Address of displacement 0.
    pub origin: *mut u8,
    /// The committed type.
    pub plan: &'a Plan,
    /// Elements.
    pub count: u64,
}

impl<'a> Part<'a> {
    /// Its packed bytes.
    ///
    /// # Errors
    /// The number does not fit.
    pub fn bytes(&self) -> Result<u64> {
        Ok(self.plan.packed_bytes(self.count)?)
    }
}

/// Whether a rank's own part, of so many bytes, fills its room.
pub(super) fn check_own(bytes: u64, room: u64, rank: usize) -> Result<()> {
    if bytes > room {
        let detail = format!("this rank's own part has {bytes} bytes, the room is {room}");
        return Err(Error::new(ErrorKind::Truncated, "count", detail));
    }
    if bytes == room { Ok(()) } else { Err(unequal(rank, bytes, room)) }
}

/// The error for a rank whose part has another size than ours.
#[cold]
pub(super) fn unequal(rank: usize, theirs: u64, ours: u64) -> Error {
    let detail = format!("rank {rank} takes part with {theirs} bytes, this rank with {ours}");
    Error::new(ErrorKind::Count, "count", detail)
}
