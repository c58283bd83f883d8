//! The method of copies for which no caller has asked for one: copies within this process.
//!
//! Runs below [`TIMED`] bytes take vector moves. For longer runs there is one chooser per size class, which
//! times a few real copies with the clock that [`set_clock`] has set. Without a clock, and in runs that
//! [`set_fixed`] has fixed, nothing is timed.

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
    // If another thread holds the chooser, this copy is not worth a wait.
    let Ok(mut chooser) = class.chooser.try_lock() else { return copy(Method::Vector) };
    let Pick { way, timed } = chooser.pick();
    drop(chooser);
    let method = class.methods[usize::from(way)];
    if !timed {
        return copy(method);
    }
    let start = clock();
    copy(method);
    let time = clock().saturating_sub(start);
    if let Ok(mut chooser) = class.chooser.try_lock() {
        // The cost is the time per byte, because the lengths of one class differ.
        chooser.report(way, (time << 20) / bytes as u64);
    }
}

fn class(bytes: usize) -> usize {
    ((bytes / TIMED).max(1).ilog2() as usize).min(CLASSES - 1)
}
