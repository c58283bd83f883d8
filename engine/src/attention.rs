//! Why a call of the library has to look before it works. In the common case there is no reason, and each call finds
//! that out by one load and one branch. The reserve of memory sets [`SHORT`]; the other reasons are those of the library
//! on top of the engine, which stand here so that one load finds all of them.

use std::sync::atomic::{AtomicU32, Ordering};

/// The system has refused memory (`reserve.rs`).
pub const SHORT: u32 = 1;
/// The program may not make most calls: MPI is not initialised, or finalised.
pub const CLOSED: u32 = 2;
/// Several threads may be in calls at the same time.
pub const THREADS: u32 = 4;

/// Events wait for functions of tools.
pub const EVENTS: u32 = 8;

static REASONS: AtomicU32 = AtomicU32::new(CLOSED);

/// Returns the reasons, as a sum; 0 if there is none. A caller that finds none also sees everything that came before the
/// last call of [`clear`].
#[inline(always)]
pub fn reasons() -> u32 {
    REASONS.load(Ordering::Acquire)
}

/// Returns whether there is this reason.
#[inline(always)]
pub fn is_for(reason: u32) -> bool {
    reasons() & reason != 0
}

/// Adds a reason.
pub fn set(reason: u32) {
    REASONS.fetch_or(reason, Ordering::AcqRel);
}

/// Removes a reason.
pub fn clear(reason: u32) {
    REASONS.fetch_and(!reason, Ordering::AcqRel);
}
