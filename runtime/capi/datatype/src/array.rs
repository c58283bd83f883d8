//! Array arguments: as many entries as C says there are, or an error.
//!
//! A count that lies cannot be found out, but memory for a copy is asked for before the array is
//! read, and its lack is an error and not the end of the process.

use crate::abi;
use crate::failure::{Failure, Result};

/// Room for `length` entries.
///
/// # Errors
/// `MPI_ERR_NO_MEM`.
pub fn room<T>(length: usize, argument: &'static str) -> Result<Vec<T>> {
    let mut entries = Vec::new();
    entries.try_reserve_exact(length).map_err(|_| {
        let detail = format!("no memory for a copy of {length} entries");
        Failure::new(abi::ERR_NO_MEM, argument, detail)
    })?;
    Ok(entries)
}

/// The entries of an array.
///
/// # Errors
/// `MPI_ERR_ARG` for a null pointer where there are entries; `MPI_ERR_NO_MEM`.
///
/// # Safety
///
/// - `array` is null or readable for `length` entries.
pub unsafe fn read<T: Copy>(
    array: *const T,
    length: usize,
    argument: &'static str,
) -> Result<Vec<T>> {
    if length == 0 {
        return Ok(Vec::new());
    }
    if array.is_null() {
        return Err(Failure::null(argument));
    }
    let mut entries = room(length, argument)?;
    // SAFETY: not null, hence readable for so many entries; C may not have aligned what it cast.
    entries.extend((0..length).map(|i| unsafe { array.add(i).read_unaligned() }));
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_there_is_memory_for_is_an_error() {
        let one = 7_u64;
        // SAFETY: the one entry is readable; the other calls end before they read.
        unsafe {
            assert_eq!(read(&one, 1, "a").expect("one entry"), [7]);
            assert_eq!(read(&one, usize::MAX, "a").expect_err("refused").code(), abi::ERR_NO_MEM);
            assert_eq!(
                read::<u64>(std::ptr::null(), 1, "a").expect_err("null").code(),
                abi::ERR_ARG
            );
            assert!(read::<u64>(std::ptr::null(), 0, "a").expect("nothing").is_empty());
        }
    }
}
