//! Which epochs of a window a rank is in: one word, which the threads of the rank change by atomic operations.
//!
//! A call that begins an epoch first enters it in the word, and so excludes the calls of other threads that may not be
//! made at the same time. If the call fails, it takes its entry back.

use std::sync::atomic::{AtomicU32, Ordering};

/// The number of targets that this rank has locked, or for whose locks its threads wait.
const LOCKS: u32 = (1 << 20) - 1;

/// Parts of the phase. Any number of locks may be there with no other part but `POSTED`; `POSTED` may also be there
/// together with `STARTING` or `STARTED`; all other parts exclude each other. An exposure epoch may overlap with access
/// epochs (MPI-5.0 section 12.5), but not with a lock of this rank's own memory, so such a lock adds `OWN_LOCK` too.
pub(in crate::rma) mod part {
    /// The locks of targets.
    pub const LOCKS: u32 = crate::rma::epoch::phase::LOCKS;
    /// A thread is in the call `fence`.
    pub const FENCING: u32 = 1 << 20;
    /// A thread is in the call `start`.
    pub const STARTING: u32 = 1 << 21;
    /// An access epoch that `start` began.
    pub const STARTED: u32 = 1 << 22;
    /// An exposure epoch that `post` began.
    pub const POSTED: u32 = 1 << 23;
    /// A thread is in the call `lock_all` or `unlock_all`.
    pub const LOCKING_ALL: u32 = 1 << 24;
    /// This rank has locked all ranks.
    pub const LOCKED_ALL: u32 = 1 << 25;
    /// This rank has locked all ranks, but has not taken the locks (`NO_CHECK`).
    pub const PROMISED_ALL: u32 = 1 << 26;
    /// One of the locks is that of this rank's own memory.
    pub const OWN_LOCK: u32 = 1 << 27;
}

/// The phase of a rank in a window.
#[derive(Debug, Default)]
pub(in crate::rma) struct Phase(AtomicU32);

impl Phase {
    /// Replaces the phase by `next`, which returns `None` if the change is not permitted. Returns whether it was.
    fn change(&self, next: impl Fn(u32) -> Option<u32>) -> bool {
        self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, next).is_ok()
    }

    /// Adds `added` if the phase has no parts but those of `beside`.
    pub fn begin(&self, added: u32, beside: u32) -> bool {
        self.change(|now| (now & !beside == 0 && now & added == 0).then_some(now | added))
    }

    /// Replaces the part `from` by the parts `to`, which may be none. Returns false if the phase does not have `from`.
    pub fn turn(&self, from: u32, to: u32) -> bool {
        self.change(|now| (now & from != 0).then_some(now & !from | to))
    }

    /// Adds a lock of another rank's memory, if the phase has nothing but locks and an exposure epoch.
    #[inline]
    pub fn add_lock(&self) -> bool {
        let beside = part::POSTED | part::OWN_LOCK;
        self.change(|now| (now & !beside < LOCKS).then_some(now + 1))
    }

    /// Adds the lock of this rank's own memory, if the phase has nothing but locks of other ranks' memory.
    #[inline]
    pub fn add_own_lock(&self) -> bool {
        self.change(|now| (now < LOCKS).then_some((now + 1) | part::OWN_LOCK))
    }

    /// Removes the lock that `add_own_lock` has added.
    #[inline]
    pub fn remove_own_lock(&self) {
        self.0.fetch_sub(1 | part::OWN_LOCK, Ordering::AcqRel);
    }

    /// Removes a lock that `add_lock` has added.
    #[inline]
    pub fn remove_lock(&self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }

    /// Returns whether the phase has one of the parts.
    pub fn has(&self, parts: u32) -> bool {
        self.0.load(Ordering::Acquire) & parts != 0
    }

    /// Returns whether this rank has locked a target by `lock`, or waits for such a lock.
    pub fn has_locks(&self) -> bool {
        self.has(LOCKS)
    }

    /// Returns whether this rank is in no epoch that must end before the window is freed.
    pub fn is_idle(&self) -> bool {
        self.0.load(Ordering::Acquire) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::{Phase, part};

    #[test]
    fn parts_exclude_each_other() {
        let phase = Phase::default();
        assert!(phase.add_lock() && phase.add_lock() && phase.has_locks());
        for part in [part::FENCING, part::STARTING, part::POSTED, part::LOCKING_ALL] {
            assert!(!phase.begin(part, 0));
        }
        assert!(phase.begin(part::POSTED, part::STARTED | part::LOCKS) && phase.add_lock());
        phase.remove_lock();
        assert!(phase.turn(part::POSTED, 0) && phase.has_locks());
        phase.remove_lock();
        phase.remove_lock();
        assert!(phase.is_idle() && phase.begin(part::POSTED, part::STARTED));
        assert!(!phase.begin(part::FENCING, 0) && !phase.begin(part::LOCKING_ALL, 0));
        assert!(phase.begin(part::STARTING, part::POSTED));
        assert!(!phase.begin(part::STARTING, part::POSTED) && !phase.add_lock());
        assert!(!phase.turn(part::STARTED, 0) && phase.turn(part::STARTING, part::STARTED));
        assert!(phase.turn(part::STARTED, 0) && phase.turn(part::POSTED, 0) && phase.is_idle());
    }

    #[test]
    fn a_rank_exposes_or_locks_its_own_memory() {
        let phase = Phase::default();
        let post = || phase.begin(part::POSTED, part::STARTED | part::LOCKS);
        assert!(phase.add_lock() && phase.add_own_lock() && phase.add_lock());
        assert!(!post() && !phase.add_own_lock() && phase.has_locks());
        phase.remove_own_lock();
        assert!(post() && !phase.add_own_lock() && phase.add_lock());
        assert!(phase.turn(part::POSTED, 0));
        (0..3).for_each(|_| phase.remove_lock());
        assert!(phase.is_idle() && phase.add_own_lock());
        for part in [part::FENCING, part::STARTING, part::LOCKING_ALL] {
            assert!(!phase.begin(part, 0));
        }
        phase.remove_own_lock();
        assert!(phase.is_idle());
    }

    /// One thread locks the rank's own memory while another one posts. Never do both succeed.
    #[test]
    fn own_locks_and_posts_of_two_threads_exclude_each_other() {
        use std::sync::atomic::{AtomicU32, Ordering};
        let (phase, inside) = (Phase::default(), AtomicU32::new(0));
        let alone = || {
            assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
            inside.fetch_sub(1, Ordering::SeqCst);
        };
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..100_000 {
                    if phase.add_own_lock() {
                        alone();
                        phase.remove_own_lock();
                    }
                }
            });
            for _ in 0..100_000 {
                if phase.begin(part::POSTED, part::STARTED | part::LOCKS) {
                    alone();
                    assert!(phase.turn(part::POSTED, 0));
                }
            }
        });
        assert!(phase.is_idle());
    }
}
