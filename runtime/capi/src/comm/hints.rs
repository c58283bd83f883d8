//! Hints of communicators (MPI-5.0 sections 7.4.4 and 11.4.3): `MPI_Comm_set_info`, `MPI_Comm_get_info`.
//!
//! The hints that a program can set are the assertions that the standard names. The communicator keeps their
//! values, because `MPI_Comm_get_info` returns them. The values have no other effect, because the runtime has
//! no optimisation that depends on such an assertion. Unknown keys are ignored and not returned, as the
//! standard prescribes. An assertion whose value is neither `true` nor `false` is ignored too. A new
//! communicator does not inherit the hints of its parent (`create.rs`).

use super::find;
use crate::argument::Output;
use crate::error::Result;
use crate::info::{self, Entry};
use crate::raw;
use std::sync::{Mutex, PoisonError};

/// The names of the assertions. Each assertion is false until the program sets it to true.
const ASSERTIONS: [&str; 5] = [
    "mpi_assert_no_any_tag",
    "mpi_assert_no_any_source",
    "mpi_assert_exact_length",
    "mpi_assert_allow_overtaking",
    "mpi_assert_strict_persistent_collective_ordering",
];

/// The hint that lists the kinds of memory in which messages may lie, and its value. The value lists only the
/// kinds that the standard requires. The program can read this hint but not set it.
const MEMORY: (&str, &str) = ("mpi_memory_alloc_kinds", "mpi,system");

/// The values of the assertions, in the order of `ASSERTIONS`.
#[derive(Debug, Default)]
pub struct Hints(Mutex<[bool; ASSERTIONS.len()]>);

impl Hints {
    /// Sets the assertions that `entries` names. The other assertions keep their values.
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

    /// Returns all known hints with their values.
    fn all(&self) -> Vec<Entry> {
        let hints = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let text = |hint| if hint { "true" } else { "false" };
        let assertions = ASSERTIONS.into_iter().zip(hints.map(text));
        let entries = assertions.chain([MEMORY]);
        entries.map(|(key, value)| (key.into(), value.into())).collect()
    }
}

/// `MPI_Comm_set_info`: hints that `info` does not name keep their values.
pub fn set_info(comm: raw::Comm, info: raw::Info) -> Result {
    let (comm, new) = (find(comm)?, info::find(info)?.all());
    comm.hints.set(&new);
    Ok(())
}

/// `MPI_Comm_get_info`: returns every known hint with its value.
pub fn get_info(comm: raw::Comm, info_used: Output<raw::Info>) -> Result {
    let comm = find(comm)?;
    let out = info_used.required("info_used")?;
    out.set(info::make(comm.hints.all())?);
    Ok(())
}
