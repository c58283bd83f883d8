//! Counts of the work of a [`Jit`](crate::Jit). `lib.rs` writes them, reports read them.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts since the [`Jit`](crate::Jit) was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Kernels compiled.
    pub kernels: u64,
    /// Requests answered with a kernel from the cache.
    pub hits: u64,
    /// Requests refused: shapes outside the translator's limits, failures of the code generator,
    /// memory denied. Each repeated request for a refused shape counts again.
    pub refusals: u64,
    /// Time spent compiling, refused shapes included, in nanoseconds.
    pub compile_ns: u64,
    /// Bytes of machine code made.
    pub code_bytes: u64,
}

/// The current counts. The counts are statistics only: they do not order any other memory access.
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

/// Adds to one of the counts.
pub(crate) fn add(counter: &AtomicU64, amount: u64) {
    counter.fetch_add(amount, Ordering::Relaxed);
}
