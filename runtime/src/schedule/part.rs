//! The buffers of collective calls. The caller of a collective call must keep the memory of the buffers
//! valid.

use crate::{Error, ErrorKind, Plan, Result};
use std::ops::Range;

/// `count` elements of a committed type at an address: the data that a rank contributes to a collective
/// call or receives from it.
#[derive(Clone, Copy, Debug)]
pub struct Part<'a> {
    /// Address of displacement 0.
    pub origin: *mut u8,
    /// The committed type.
    pub plan: &'a Plan,
    /// Number of elements.
    pub count: u64,
}

impl<'a> Part<'a> {
    /// Returns the number of packed bytes.
    ///
    /// # Errors
    /// Returns an engine error if the number of bytes does not fit in 63 bits.
    #[inline]
    pub fn bytes(&self) -> Result<u64> {
        Ok(self.plan.packed_bytes(self.count)?)
    }

    /// Returns the elements `range` of these elements.
    #[inline]
    pub(crate) fn elements(&self, range: Range<u64>) -> Self {
        let origin = self.origin.wrapping_offset(self.offset(range.start));
        Self { origin, count: range.end - range.start, ..*self }
    }

    /// Returns the distance in bytes from the first element to element `index`.
    #[inline]
    pub(crate) fn offset(&self, index: u64) -> isize {
        // The elements lie in memory, so the product does not overflow. For a type without bytes the product may wrap
        // around, and nobody accesses the address.
        (self.plan.footprint().extent as isize).wrapping_mul(index as isize)
    }
}

/// Checks the sizes of a copy within rank `rank`, which is this rank. The packed size of the
/// destination (`room`) must equal the packed size of the source (`bytes`).
pub(super) fn check_own(bytes: u64, room: u64, rank: usize) -> Result<()> {
    if bytes > room {
        let detail = format!(
            "this rank's own part has {bytes} bytes, but its destination has room for {room} bytes"
        );
        return Err(Error::new(ErrorKind::Truncated, "count", detail));
    }
    if bytes == room {
        return Ok(());
    }
    let detail = format!(
        "the own part of this rank ({rank}) has {bytes} bytes, but its destination has {room} bytes"
    );
    Err(Error::new(ErrorKind::Count, "count", detail))
}

/// What an error adds that may come from ranks that make different calls, or pass different arguments. The ranks have
/// not told each other which calls they make.
pub(crate) const COMPARE: &str =
    "with TYPEPACK_CHECK_TYPES=1, the error names the calls and arguments of the ranks that differ";

/// Returns the error for two parts whose packed sizes should be equal: `theirs` bytes at rank `rank`,
/// but `ours` bytes at this rank.
#[cold]
pub(super) fn unequal(rank: usize, theirs: u64, ours: u64) -> Error {
    let detail = format!(
        "part sizes differ: rank {rank} has {theirs} bytes, but this rank has {ours} bytes; {COMPARE}"
    );
    Error::new(ErrorKind::Count, "count", detail)
}
