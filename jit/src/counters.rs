//! What a [`Jit`](crate::Jit) has done so far. Written by `lib.rs`, read by reports.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts since the [`Jit`](crate::Jit) was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Kernels compiled.
    pub kernels: u64,
    /// Requests answered with a kernel that was there.
    pub hits: u64,
    /// Requests refused: shapes that the translator does not take, failures of the code
    /// generator, memory denied. Repeated requests for a refused shape count again.
    pub refusals: u64,
    /// Time spent compiling, refused shapes included, in nanoseconds.
    pub compile_ns: u64,
    /// Machine code made, in bytes.
    pub code_bytes: u64,
}

/// The living numbers. Statistics only: no other memory is ordered by them.
#[derive(Debug, Default)]
pub(crate) struct Live {
    pub(crate) kernels: AtomicU64,
    pub(crate) hits: AtomicU64,
    pub(crate) refusals: AtomicU64,
    pub(crate) compile_ns: AtomicU64,
    pub(crate) code_bytes: AtomicU64,
}

impl Live {
    pub(crate) fn read(&self) -> Counters {
        Counters {
            kernels: self.kernels.load(Ordering::Relaxed),
            hits: self.hits.load(Ordering::Relaxed),
            refusals: self.refusals.load(Ordering::Relaxed),
            compile_ns: self.compile_ns.load(Ordering::Relaxed),
            code_bytes: self.code_bytes.load(Ordering::Relaxed),
        }
    }
}

/// Adds to one of the numbers.
pub(crate) fn add(counter: &AtomicU64, amount: u64) {
    counter.fetch_add(amount, Ordering::Relaxed);
}
