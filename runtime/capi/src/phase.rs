//! Before, between, after: which calls are allowed when (MPI-5.0 section 11.4.1).
//!
//! `door.rs` asks on every call; `env.rs` moves on.

use std::sync::atomic::{AtomicU8, Ordering};

/// Where the process stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// `MPI_Init` has not been called.
    Before,
    /// Between the two.
    Inside,
    /// `MPI_Finalize` has been called.
    After,
}

static PHASE: AtomicU8 = AtomicU8::new(0);

/// The phase.
#[inline]
pub fn phase() -> Phase {
    match PHASE.load(Ordering::Acquire) {
        0 => Phase::Before,
        1 => Phase::Inside,
        _ => Phase::After,
    }
}

/// The world model has been initialised.
pub fn begin() {
    PHASE.store(1, Ordering::Release);
}

/// It has been finalized.
pub fn end() {
    PHASE.store(2, Ordering::Release);
}
