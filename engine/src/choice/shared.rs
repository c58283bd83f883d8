//! A chooser that several threads share.
//!
//! No thread waits for another one: if a job has to ask a chooser that another thread is using, the job goes the way that
//! the chooser has found best so far. Of short jobs only some ask; the others go that way, too. The loom models in `contiguous/tests/shared.rs` run two threads in every interleaving.

use super::{Chooser, Pick, cost};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use std::time::Duration;

/// A chooser that several threads share.
pub(crate) trait Shared {
    /// Calls `f` with the chooser. Returns `None` at once if another thread uses the chooser.
    fn attempt<R>(&self, f: impl FnOnce(&mut Chooser) -> R) -> Option<R>;
}

impl Shared for Mutex<Chooser> {
    fn attempt<R>(&self, f: impl FnOnce(&mut Chooser) -> R) -> Option<R> {
        self.try_lock().ok().map(|mut chooser| f(&mut chooser))
    }
}

/// Calls `job` once with the number of a way: the way that the chooser picks, or `best`, the best way that
/// the caller knows, if another thread uses the chooser. `bytes` is the number of bytes that the job moves. `clock` returns the
/// time in nanoseconds since some fixed moment. This thread does not hold the chooser during the call. Returns the way
/// that the chooser has found best so far, or `None` if another thread uses the chooser.
pub(crate) fn choose(
    chooser: &impl Shared,
    best: u8,
    bytes: u64,
    clock: impl Fn() -> u64,
    job: impl FnOnce(u8),
) -> Option<u8> {
    let Some(Pick { way, timed }) = chooser.attempt(Chooser::pick) else {
        job(best);
        return None;
    };
    if !timed {
        job(way);
        return chooser.attempt(|chooser| chooser.best());
    }
    let start = clock();
    job(way);
    let time = Duration::from_nanos(clock().saturating_sub(start));
    // If another thread uses the chooser, this cost is not recorded.
    chooser.attempt(|chooser| {
        chooser.report(way, cost(time, bytes));
        chooser.best()
    })
}

/// A chooser with the way that it has found best so far.
#[derive(Debug)]
pub(crate) struct SharedChooser {
    /// Number of jobs so far. Threads may lose counts, which does no harm.
    jobs: AtomicU32,
    best: AtomicU8,
    chooser: Mutex<Chooser>,
}

impl SharedChooser {
    /// Creates a chooser over the ways `0..len`, of which `first` comes first.
    pub fn new(len: usize, first: u8) -> Self {
        let (jobs, best) = (AtomicU32::new(0), AtomicU8::new(first));
        Self { jobs, best, chooser: Mutex::new(Chooser::new(len, first)) }
    }

    /// Calls `job` once with the number of a way, as [`choose`] does. One job in `turns` asks the chooser.
    #[inline]
    pub fn run(&self, turns: u32, bytes: u64, clock: impl Fn() -> u64, job: impl FnOnce(u8)) {
        let jobs = self.jobs.load(Ordering::Relaxed);
        self.jobs.store(jobs.wrapping_add(1), Ordering::Relaxed);
        if !jobs.is_multiple_of(turns) {
            return job(self.best.load(Ordering::Relaxed));
        }
        let best = self.best.load(Ordering::Relaxed);
        if let Some(best) = choose(&self.chooser, best, bytes, clock, job) {
            self.best.store(best, Ordering::Relaxed);
        }
    }

    /// Returns the best way so far, if there were jobs.
    pub fn used(&self) -> Option<u8> {
        (self.jobs.load(Ordering::Relaxed) > 0).then(|| self.best.load(Ordering::Relaxed))
    }

    /// Returns the best way if it has been compared with all others, and no other thread uses the chooser.
    pub fn compared(&self) -> Option<u8> {
        let compared = |chooser: &mut Chooser| {
            (chooser.ways() > 1 && chooser.is_settled()).then(|| chooser.best())
        };
        self.chooser.attempt(compared)?
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_beside_another_thread_goes_the_best_way() {
        let shared = SharedChooser::new(3, 2);
        let held = shared.chooser.lock().expect("no thread has panicked");
        shared.run(1, 1 << 20, || 0, |way| assert_eq!(way, 2));
        drop(held);
        assert_eq!(shared.used(), Some(2));
    }
}
