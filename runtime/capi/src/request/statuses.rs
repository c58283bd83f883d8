//! The statuses that the calls of `complete.rs` write, and the results of these calls.

use super::Outcome;
use crate::abi;
use crate::argument::{OutArray, Places};
use crate::error::{Failure, Result};
use crate::raw::Status;
use crate::status::StatusOutput;
use std::ffi::c_int;

/// The statuses of several operations, and the result of the call that completes them.
pub(super) struct Statuses {
    /// The places of the statuses; `None` if the C caller passed `MPI_STATUSES_IGNORE`.
    places: Option<Places<Status>>,
    /// Number of operations whose results have been added. Their statuses have been written, unless the caller
    /// ignores statuses.
    count: usize,
    /// The error code of each of these operations; empty until an operation has failed.
    codes: Vec<c_int>,
    /// The failure of the first operation that has failed.
    failure: Option<Failure>,
}

impl Statuses {
    /// Prepares to write the statuses of at most `length` operations to `array`.
    ///
    /// # Safety
    ///
    /// - The C caller ignores the statuses, or `length` is at most the number of statuses that the standard
    ///   prescribes for `array`.
    pub(super) unsafe fn new(array: OutArray<Status>, length: usize) -> Self {
        // SAFETY: the array is null, or has at least `length` statuses (condition of `# Safety`).
        let places = unsafe { array.places_if_given(length) };
        Self { places, count: 0, codes: Vec::new(), failure: None }
    }

    /// Writes the next status, which is that of an operation that has succeeded.
    #[inline]
    pub(super) fn push_success(&mut self, status: &Status) {
        if self.failure.is_some() {
            return self.push(Some(Outcome { status: *status, failure: None }));
        }
        if let Some(places) = self.places {
            StatusOutput::from(places.at(self.count)).put(status);
        }
        self.count += 1;
    }

    /// Writes the next status. `outcome` is `None` if the handle was null or the request was inactive.
    pub(super) fn push(&mut self, outcome: Option<Outcome>) {
        let next = self.count;
        let target = self.places.map_or(StatusOutput::IGNORED, |places| places.at(next).into());
        let failure = put(outcome, target);
        if failure.is_some() || self.failure.is_some() {
            self.codes.resize(next, abi::SUCCESS);
            self.codes.push(failure.as_ref().map_or(abi::SUCCESS, |failure| failure.code));
            if let Some(failure) = failure {
                failure.gather(&mut self.failure);
            }
        }
        self.count += 1;
    }

    /// Returns the result of the call. If an operation failed, this is `MPI_ERR_IN_STATUS` with the text of
    /// the first failure, and the function first writes the error fields of all statuses.
    pub(super) fn end(&mut self) -> Result {
        let Some(mut first) = self.failure.take() else { return Ok(()) };
        if let Some(places) = self.places {
            for (at, code) in self.codes.drain(..).enumerate() {
                StatusOutput::from(places.at(at)).put_error(code);
            }
        }
        first.code = abi::ERR_IN_STATUS;
        Err(first)
    }
}

/// Writes the status of an operation, and returns the failure of the operation. If there was no operation,
/// writes the empty status, including its error field (MPI-5.0 section 3.7.3).
fn put(outcome: Option<Outcome>, status: StatusOutput) -> Option<Failure> {
    match &outcome {
        Some(outcome) => status.put(&outcome.status),
        None => status.put_empty(),
    }
    outcome?.failure
}

/// Writes the status of the only operation of a call. Returns the failure of the operation as an error.
pub(super) fn single(outcome: Option<Outcome>, status: StatusOutput) -> Result {
    put(outcome, status).map_or(Ok(()), Err)
}
