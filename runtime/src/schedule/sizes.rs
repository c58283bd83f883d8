//! Checks of the packed sizes of the elements that collective calls name.

use crate::{Error, ErrorKind, Result};

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
