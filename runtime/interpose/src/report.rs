//! Counts of this process, and the table that `TYPEPACK_REPORT=1` prints at finalize.

use crate::say::print;
use crate::settings::{jit, settings};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use typepack_engine::stats;

/// The counts.
pub struct Counts {
    /// Committed types whose layout this library knows.
    pub types: AtomicU64,
    /// Committed types that are contiguous, so that the host does them.
    pub contiguous: AtomicU64,
    /// Committed types that this library could not rebuild.
    pub left: AtomicU64,
    /// Calls that this library did.
    pub taken: AtomicU64,
    /// Calls with a known layout that went straight to the host.
    pub passed: AtomicU64,
    /// Bytes that this library packed or unpacked.
    pub ours: AtomicU64,
    /// Bytes that the host packed or unpacked in measurements.
    pub host: AtomicU64,
    /// Nanoseconds saved in the calls whose time both ways is known.
    pub saved_ns: AtomicI64,
}

/// The counts of this process.
pub static COUNTS: Counts = Counts {
    types: AtomicU64::new(0),
    contiguous: AtomicU64::new(0),
    left: AtomicU64::new(0),
    taken: AtomicU64::new(0),
    passed: AtomicU64::new(0),
    ours: AtomicU64::new(0),
    host: AtomicU64::new(0),
    saved_ns: AtomicI64::new(0),
};

/// Adds to a count. Nothing is counted without `TYPEPACK_REPORT=1`, because a count that all threads share costs
/// time.
#[inline]
pub fn add(count: &AtomicU64, number: u64) {
    if settings().report {
        count.fetch_add(number, Ordering::Relaxed);
    }
}

/// Prints the table of this process, which has rank `rank`.
pub fn report(rank: i32) {
    let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
    let (bytes, counters) = (stats::bytes(), jit().counters());
    let rows = [
        ("types taken over", read(&COUNTS.types)),
        ("types left to the host: contiguous", read(&COUNTS.contiguous)),
        ("types left to the host: not rebuilt", read(&COUNTS.left)),
        ("calls done by typepack", read(&COUNTS.taken)),
        ("calls passed to the host", read(&COUNTS.passed)),
        ("bytes packed by typepack", read(&COUNTS.ours)),
        ("  by compiled kernels", bytes.kernel),
        ("  by leaf kernels", bytes.leaf),
        ("  by rows", bytes.rows),
        ("  by the interpreter", bytes.interpreter),
        ("bytes packed by the host, in measurements", read(&COUNTS.host)),
        ("kernels compiled", counters.kernels),
    ];
    print(&format!("rank {rank}"));
    for (what, number) in rows {
        print(&format!("{what:<44}{number:>16}"));
    }
    let saved = COUNTS.saved_ns.load(Ordering::Relaxed);
    print(&format!("{:<44}{:>16.3}", "milliseconds saved (sampled)", saved as f64 / 1e6));
}
