//! The method of copies for which no caller has asked for one: copies within this process.
//!
//! Runs below [`TIMED`] bytes take vector moves. For longer runs there is one chooser per size class, which
//! times a few real copies with the clock that [`set_clock`] has set. Without a clock, and in runs that
//! [`set_fixed`] has fixed, nothing is timed.
//!
//! All threads of the process share the choosers. No thread waits for another one: while a thread picks or
//! reports, the copies of other threads take vector moves. The loom models in `contiguous/tests/shared.rs` run two threads
//! in every interleaving.

use super::{Method, available, copy_by, vector};
use crate::choice::{Chooser, Pick};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{LazyLock, Mutex, OnceLock};

/// Length in bytes from which copies are timed. Two readings of a clock take some 50 ns; a copy of this
/// length takes at least 1 us.
const TIMED: usize = 128 << 10;

/// Number of size classes. The first begins at [`TIMED`] bytes, each later one at twice the length of the one
/// before it. The last has no upper end.
const CLASSES: usize = 12;

/// Returns the time in nanoseconds since some fixed moment.
pub type Clock = fn() -> u64;

static CLOCK: OnceLock<Clock> = OnceLock::new();

/// The value of [`FIXED`] that fixes no method.
const FREE: u8 = u8::MAX;

static FIXED: AtomicU8 = AtomicU8::new(FREE);

/// Sets the clock. Only the first call has an effect. Without a clock, all copies take vector moves unless
/// their caller asks for another method.
pub fn set_clock(clock: Clock) {
    let _first = CLOCK.set(clock);
}

/// Fixes the method of all long copies for which no caller asks for one. With `None`, the method is chosen by
/// measurement again.
pub fn set_fixed(method: Option<Method>) {
    FIXED.store(method.map_or(FREE, Method::code), Ordering::Relaxed);
}

/// A chooser that several threads share.
pub(super) trait Shared {
    /// Calls `f` with the chooser. Returns `None` at once if another thread uses the chooser.
    fn attempt<R>(&self, f: impl FnOnce(&mut Chooser) -> R) -> Option<R>;
}

impl Shared for Mutex<Chooser> {
    fn attempt<R>(&self, f: impl FnOnce(&mut Chooser) -> R) -> Option<R> {
        self.try_lock().ok().map(|mut chooser| f(&mut chooser))
    }
}

/// Does a job for `bytes` bytes: calls `job` once, with the number of the way that the chooser picks, or with 0 (the
/// static choice) if another thread uses the chooser. No thread has the chooser during the call.
pub(super) fn choose(
    chooser: &impl Shared,
    bytes: usize,
    clock: impl Fn() -> u64,
    job: impl FnOnce(u8),
) {
    let Some(Pick { way, timed }) = chooser.attempt(Chooser::pick) else { return job(0) };
    if !timed {
        return job(way);
    }
    let start = clock();
    job(way);
    let time = clock().saturating_sub(start);
    // The cost is the time per byte, because the lengths of one class differ. If another thread uses the
    // chooser, this time is lost, which does no harm.
    let cost = (time << 20) / (bytes as u64).max(1);
    let _lost = chooser.attempt(|chooser| chooser.report(way, cost));
}

/// One size class.
struct Class {
    chooser: Mutex<Chooser>,
    methods: Vec<Method>,
}

static TABLE: LazyLock<Vec<Class>> = LazyLock::new(|| {
    let methods: Vec<Method> = available().collect();
    let class =
        || Class { chooser: Mutex::new(Chooser::new(methods.len(), 0)), methods: methods.clone() };
    (0..CLASSES).map(|_| class()).collect()
});

/// Copies a long run.
///
/// # Safety
///
/// - The conditions of [`super::copy`] hold, and `bytes` is at least [`super::LONG`].
#[inline]
pub(super) unsafe fn copy(from: *const u8, to: *mut u8, bytes: usize) {
    if bytes < TIMED && FIXED.load(Ordering::Relaxed) == FREE {
        // SAFETY: the caller guarantees the conditions, and `LONG` is more than 64.
        return unsafe { vector::copy(from, to, bytes) };
    }
    // SAFETY: the caller guarantees the conditions.
    unsafe { chosen(from, to, bytes) }
}

/// Copies a run whose method is fixed or chosen by measurement.
///
/// # Safety
///
/// - The conditions of [`copy`] hold.
#[cold]
unsafe fn chosen(from: *const u8, to: *mut u8, bytes: usize) {
    // SAFETY: each call has the caller's ranges, for which the caller guarantees the conditions.
    let copy = |method| unsafe { copy_by(method, from, to, bytes) };
    if let Some(fixed) = Method::from_code(FIXED.load(Ordering::Relaxed)) {
        return copy(fixed);
    }
    let Some(clock) = CLOCK.get() else { return copy(Method::Vector) };
    let class = &TABLE[class(bytes)];
    // Method 0 is vector moves. `way` is less than the number of methods, so the default is never used.
    let method = |way: u8| class.methods.get(usize::from(way)).copied().unwrap_or(Method::Vector);
    choose(&class.chooser, bytes, clock, |way| copy(method(way)));
}

fn class(bytes: usize) -> usize {
    ((bytes / TIMED).max(1).ilog2() as usize).min(CLASSES - 1)
}
