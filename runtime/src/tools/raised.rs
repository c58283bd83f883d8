//! Events that wait for the functions of tools.
//!
//! A place of the library where something happens that a tool may want to know asks `counting.rs` whether anybody does,
//! and only then calls [`raise`]. It may hold locks, so the tool's function cannot run there. The event waits here,
//! with its time, until a thread of the program begins its next call (`event.rs`).

use super::counting::Subject;
use crate::sys::{clock, fork};
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use typepack_engine::attention;

/// The most events that wait. Those after them are dropped, and counted.
const MOST: usize = 4096;

/// Number of kinds of events.
pub(super) const KINDS: usize = 6;

/// The greatest number of values of an event.
pub(crate) const VALUES: usize = 4;

/// Something that has happened.
#[derive(Clone, Copy, Debug)]
pub(super) struct Raised {
    /// The kind, a place in the list of kinds (`event.rs`).
    pub kind: usize,
    /// The time in nanoseconds.
    pub time: u64,
    pub values: [u64; VALUES],
}

#[derive(Debug)]
struct Queue {
    waiting: VecDeque<Raised>,
    /// For each kind, the number of events that have been dropped so far.
    dropped: [u64; KINDS],
}

static QUEUE: Mutex<Queue> = Mutex::new(Queue { waiting: VecDeque::new(), dropped: [0; KINDS] });

fn queue() -> MutexGuard<'static, Queue> {
    QUEUE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the time of an event that happens now, in nanoseconds.
pub(super) fn now() -> u64 {
    clock::monotonic_nanoseconds()
}

/// Adds an event of a subject for which [`is_wanted`](super::counting::is_wanted) has returned true.
#[cold]
#[inline(never)]
pub(crate) fn raise(subject: Subject, values: [u64; VALUES]) {
    // Another thread of the parent may have held the lock at the fork.
    let (Some(kind), false) = (subject.event(), fork::is_child()) else { return };
    let mut queue = queue();
    if queue.waiting.len() == MOST {
        queue.dropped[kind] += 1;
        return;
    }
    // The time is taken under the lock, so that later events have later times.
    queue.waiting.push_back(Raised { kind, time: now(), values });
    attention::set(attention::EVENTS);
}

/// Returns the event that has waited longest.
pub(super) fn take() -> Option<Raised> {
    let mut queue = queue();
    let first = queue.waiting.pop_front();
    if queue.waiting.is_empty() {
        attention::clear(attention::EVENTS);
    }
    first
}

/// Asks the next call to deliver events, although none may wait.
pub(super) fn call_soon() {
    let _queue = queue();
    attention::set(attention::EVENTS);
}

/// Ends what [`call_soon`] has asked for, unless events wait.
pub(super) fn rest() {
    if queue().waiting.is_empty() {
        attention::clear(attention::EVENTS);
    }
}

/// Returns the number of events that wait.
pub(super) fn waiting() -> usize {
    queue().waiting.len()
}

/// Returns the number of events of a kind that have been dropped so far.
pub(super) fn dropped(kind: usize) -> u64 {
    queue().dropped[kind]
}
