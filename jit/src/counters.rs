//! Counts the work of a [`Jit`](crate::Jit). `lib.rs` increases the counters, and reports read
//! them.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts of the work since the [`Jit`](crate::Jit) was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Number of kernels compiled.
    pub kernels: u64,
    /// Number of requests answered with a kernel from the cache.
    pub hits: u64,
    /// Number of requests that were refused, because the `Jit` refuses every shape, the shape is outside
    /// the translator's limits, the code generator failed, or there was no memory for the code. Each
    /// repeated request for a refused shape counts again.
    pub refusals: u64,
    /// Total time of all compilations, in nanoseconds. It includes the compilations of shapes that were
    /// then refused.
    pub compile_ns: u64,
    /// Number of bytes of machine code made.
    pub code_bytes: u64,
}

/// The counters that threads increase. They are statistics only: no other memory access depends on
/// their order.
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

/// Adds `amount` to a counter.
pub(crate) fn add(counter: &AtomicU64, amount: u64) {
    counter.fetch_add(amount, Ordering::Relaxed);
}
