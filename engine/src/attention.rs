//! Why a call of the library has to look before it works. In the common case there is no reason, and each call finds
//! that out by one load and one branch.

use std::sync::atomic::{AtomicU32, Ordering};

/// The system has refused memory (`reserve.rs`).
pub const SHORT: u32 = 1;
/// The program may not make most calls: MPI is not initialised, or finalised.
pub const CLOSED: u32 = 2;
/// Several threads may be in calls at the same time.
pub const THREADS: u32 = 4;

static REASONS: AtomicU32 = AtomicU32::new(CLOSED);

/// Returns whether there is any reason. A caller that finds none also sees everything that came before the last call of
/// [`clear`].
#[inline(always)]
pub fn is_needed() -> bool {
    REASONS.load(Ordering::Acquire) != 0
}

/// Returns whether there is this reason.
#[inline(always)]
pub fn is_for(reason: u32) -> bool {
    REASONS.load(Ordering::Acquire) & reason != 0
}

/// Adds a reason.
pub fn set(reason: u32) {
    REASONS.fetch_or(reason, Ordering::AcqRel);
}

/// Removes a reason.
pub fn clear(reason: u32) {
    REASONS.fetch_and(!reason, Ordering::AcqRel);
}
