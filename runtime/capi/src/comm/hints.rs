//! Hints of communicators (MPI-5.0 sections 7.4.4 and 11.4.3): `MPI_Comm_set_info`, `MPI_Comm_get_info`.
//!
//! Known are the assertions that the standard names. They are kept, because who asks is to hear what
//! was said, and change nothing: no message is faster here for what will never be sent. All else is
//! ignored as the standard wants it, a known key with a value that is neither true nor false too, and
//! what was ignored is not returned. Hints are given to one communicator: none is inherited
//! (`create.rs`).

use super::find;
use crate::argument::Output;
use crate::error::Result;
use crate::info::{self, Entry};
use crate::raw;
use std::sync::{Mutex, PoisonError};

/// The assertions, all of them false where nothing else was said.
const ASSERTIONS: [&str; 5] = [
    "mpi_assert_no_any_tag",
    "mpi_assert_no_any_source",
    "mpi_assert_exact_length",
    "mpi_assert_allow_overtaking",
    "mpi_assert_strict_persistent_collective_ordering",
];

/// The kinds of memory that messages may lie in: what the standard asks for, and no other. It is
/// answered and cannot be set.
const MEMORY: (&str, &str) = ("mpi_memory_alloc_kinds", "mpi,system");

/// What was said about each assertion.
#[derive(Debug, Default)]
pub struct Hints(Mutex<[bool; ASSERTIONS.len()]>);

impl Hints {
    /// Those of `entries` that are known; the others keep their values.
    pub fn set(&self, entries: &[Entry]) {
        let mut hints = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (hint, name) in hints.iter_mut().zip(ASSERTIONS) {
            let said = entries.iter().find(|(key, _)| key == name.as_bytes());
            match said.map(|(_, value)| value.as_slice()) {
                Some(b"true") => *hint = true,
                Some(b"false") => *hint = false,
                _ => {}
            }
        }
    }

    /// All that are known, with their values.
    fn all(&self) -> Vec<Entry> {
        let hints = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let text = |hint| if hint { "true" } else { "false" };
        let assertions = ASSERTIONS.into_iter().zip(hints.map(text));
        let entries = assertions.chain([MEMORY]);
        entries.map(|(key, value)| (key.into(), value.into())).collect()
    }
}

/// `MPI_Comm_set_info`: hints that are not named keep their values.
pub fn set_info(comm: raw::Comm, info: raw::Info) -> Result {
    let (comm, new) = (find(comm)?, info::find(info)?.all());
    comm.hints.set(&new);
    Ok(())
}

/// `MPI_Comm_get_info`: every hint that is known here, with its value.
pub fn get_info(comm: raw::Comm, info_used: Output<raw::Info>) -> Result {
    let comm = find(comm)?;
    let out = info_used.required("info_used")?;
    out.set(info::make(comm.hints.all())?);
    Ok(())
}
