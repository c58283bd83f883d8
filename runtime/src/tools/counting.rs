//! What the library counts only while somebody asks for it: a handle of the tool interface, or `TYPEPACK_REPORT`.
//!
//! The places that count come long before the other files of this folder, so this file stands low in the order of the
//! layers. Each place first asks [`is_wanted`], which costs one test of a word that nobody writes meanwhile, and one
//! branch. Only then it counts, with an instruction that is atomic, because several threads may count.
//!
//! Other counters cost nothing extra, because the library keeps them for itself: `performance.rs` lists all of them.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// A group of counters, and of events, that is switched on as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Subject {
    Collectives,
    Windows,
    Files,
    Waits,
    Partitions,
    // The kinds of events.
    MessageMatched,
    MessageUnexpected,
    ProtocolChosen,
    KernelCompiled,
    WaitBegun,
    WaitEnded,
}

/// Number of subjects.
const SUBJECTS: usize = Subject::WaitEnded as usize + 1;

impl Subject {
    /// Returns the place in the list of kinds of events, if this is one.
    pub fn event(self) -> Option<usize> {
        (self as usize).checked_sub(Self::MessageMatched as usize)
    }
}

/// A bit for each subject that is switched on.
static WANTED: AtomicU32 = AtomicU32::new(0);

/// For each subject, the number of those who have asked for it.
static ASKED: Mutex<[u64; SUBJECTS]> = Mutex::new([0; SUBJECTS]);

/// Counts a one-sided call, if somebody asks for that.
#[inline(always)]
pub(crate) fn count_access(counter: Counter) {
    if is_wanted(Subject::Windows) {
        counter.add(1);
    }
}

/// Counts a partition of a send that is ready, and its `bytes`, if somebody asks for that.
#[inline]
pub(crate) fn count_ready(bytes: u64) {
    if is_wanted(Subject::Partitions) {
        Counter::PARTITIONS_READY.add(1);
        Counter::PARTITION_BYTES.add(bytes);
    }
}

/// Counts partitions of a receive that have arrived, if somebody asks for that.
#[inline]
pub(crate) fn count_arrived(partitions: u32) {
    if is_wanted(Subject::Partitions) {
        Counter::PARTITIONS_ARRIVED.add(partitions.into());
    }
}

/// Returns the time at which a thread goes to sleep in a call, if somebody asks for that.
#[inline]
pub(crate) fn begin_sleep() -> Option<Instant> {
    is_wanted(Subject::Waits).then(Instant::now)
}

/// Counts a sleep that began at a time that [`begin_sleep`] has returned.
#[inline]
pub(crate) fn end_sleep(since: Option<Instant>) {
    if let Some(since) = since {
        Counter::SLEEPS.add(1);
        Counter::ASLEEP.add(u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX));
    }
}

/// Returns whether somebody has asked for this subject.
#[inline(always)]
pub(crate) fn is_wanted(subject: Subject) -> bool {
    WANTED.load(Ordering::Relaxed) & (1 << subject as u32) != 0
}

/// Switches a subject on, until each caller of this function has called [`release`].
pub(crate) fn want(subject: Subject) {
    change(subject, |count| count + 1);
}

/// Ends one call of [`want`].
pub(crate) fn release(subject: Subject) {
    change(subject, |count| count.saturating_sub(1));
}

fn change(subject: Subject, to: impl FnOnce(u64) -> u64) {
    let mut asked = ASKED.lock().unwrap_or_else(PoisonError::into_inner);
    let count = &mut asked[subject as usize];
    *count = to(*count);
    match *count {
        0 => WANTED.fetch_and(!(1 << subject as u32), Ordering::Relaxed),
        _ => WANTED.fetch_or(1 << subject as u32, Ordering::Relaxed),
    };
}

/// A counter. The value is its place in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Counter(usize);

/// Names of the kinds of collective calls in the counters, in the order of [`CallKind`]. Tools know the counters by these
/// names, so the name of [`CallKind::Flags`] stays `cells`: `collective_allreduce_cells`, for example.
pub(crate) const CALL_KINDS: [&str; 4] = ["cells", "messages", "nonblocking", "persistent"];

/// How a collective call moves its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallKind {
    /// A blocking call through memory that the ranks share.
    Flags,
    /// A blocking call by messages.
    Messages,
    /// A nonblocking call.
    Nonblocking,
    /// A start of a persistent operation.
    Persistent,
}

/// Number of collective operations (`settings.rs` has their names).
const OPERATIONS: usize = 13;

/// Number of counters that do not belong to collective calls.
const PLAIN: usize = 13;

impl Counter {
    pub const PUTS: Self = Self(0);
    pub const GETS: Self = Self(1);
    pub const ACCUMULATES: Self = Self(2);
    pub const READS: Self = Self(3);
    pub const WRITES: Self = Self(4);
    pub const BYTES_READ: Self = Self(5);
    pub const BYTES_WRITTEN: Self = Self(6);
    pub const MAPPED: Self = Self(7);
    pub const SLEEPS: Self = Self(8);
    /// Time asleep in nanoseconds.
    pub const ASLEEP: Self = Self(9);
    pub const PARTITIONS_READY: Self = Self(10);
    pub const PARTITION_BYTES: Self = Self(11);
    pub const PARTITIONS_ARRIVED: Self = Self(12);

    /// Returns the counter of the calls of an operation, whose number is that of its `CollectiveName`, of one kind.
    #[inline]
    pub fn of_collective(operation: usize, kind: CallKind) -> Self {
        Self(PLAIN + operation * CALL_KINDS.len() + kind as usize)
    }

    /// Adds `amount`.
    #[cold]
    pub fn add(self, amount: u64) {
        COUNTS[self.0].fetch_add(amount, Ordering::Relaxed);
    }

    /// Returns the count since the process began.
    pub fn get(self) -> u64 {
        COUNTS[self.0].load(Ordering::Relaxed)
    }
}

static COUNTS: [AtomicU64; PLAIN + OPERATIONS * CALL_KINDS.len()] =
    [const { AtomicU64::new(0) }; PLAIN + OPERATIONS * CALL_KINDS.len()];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_is_on_as_long_as_somebody_asks_for_it() {
        // No other test of this program asks for waits.
        assert!(!is_wanted(Subject::Waits));
        want(Subject::Waits);
        want(Subject::Waits);
        release(Subject::Waits);
        assert!(is_wanted(Subject::Waits) && !is_wanted(Subject::Files));
        release(Subject::Waits);
        release(Subject::Waits);
        assert!(!is_wanted(Subject::Waits));
        want(Subject::Waits);
        assert!(is_wanted(Subject::Waits));
        release(Subject::Waits);
    }

    #[test]
    fn every_operation_has_its_own_counters() {
        let all: std::collections::BTreeSet<usize> = (0..OPERATIONS)
            .flat_map(|operation| {
                [CallKind::Flags, CallKind::Messages, CallKind::Nonblocking, CallKind::Persistent]
                    .map(|kind| Counter::of_collective(operation, kind).0)
            })
            .collect();
        assert_eq!(all.len(), OPERATIONS * CALL_KINDS.len());
        assert_eq!(all.last(), Some(&(COUNTS.len() - 1)));
        assert_eq!(all.first(), Some(&PLAIN));
    }
}
