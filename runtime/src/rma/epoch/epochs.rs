//! The epochs of a window: which calls this rank may make now, and the calls that begin and end epochs
//! (MPI-5.0 section 12.5).
//!
//! Three kinds of epochs let a rank access the memory of others: those between two fences, those between start and
//! complete, and those under locks. A call outside such an epoch fails with
//! [`WindowErrorKind::Synchronization`](crate::WindowErrorKind). A rank checks only its own epochs. It does not check
//! whether the target has an exposure epoch.
//!
//! Most operations copy at once. The calls that complete operations wait for requests to ranks whose memory this rank
//! cannot map (`requests.rs`); the ranks of an epoch also meet. A fence opens an epoch even if the program makes no
//! operation in it. Such an unused epoch ends when the rank begins an epoch of another kind.
//!
//! Before a call waits, it enters in the phase (`phase.rs`) which epoch it begins, so that another thread cannot
//! begin an epoch that excludes this one. No thread holds the lock of [`State`] while it waits for another rank.

use super::flush::order_accesses;
use super::lock::LockKind;
use super::phase::{Phase, part};
use super::wait;
use crate::comm::Group;
use crate::rma::window::words::Word;
use crate::rma::{Window, check_process};
use crate::{Error, ErrorKind, Result, WindowErrorKind};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Promises of the program about an epoch (MPI-5.0 section 12.5.5). The bits are those of the standard's ABI.
#[doc(alias = "MPI_MODE_NOCHECK")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Assertions(u32);

impl Assertions {
    /// No promise.
    pub const NONE: Self = Self(0);
    /// The call need not wait: the matching calls have been made, or nobody holds a conflicting lock.
    #[doc(alias = "MPI_MODE_NOCHECK")]
    pub const NO_CHECK: Self = Self(1024);
    /// No operation of this rank precedes the fence. All ranks promise the same.
    #[doc(alias = "MPI_MODE_NOPRECEDE")]
    pub const NO_PRECEDE: Self = Self(2048);
    /// No rank puts or accumulates into the memory of this rank until the next fence.
    #[doc(alias = "MPI_MODE_NOPUT")]
    pub const NO_PUT: Self = Self(4096);
    /// This rank has not stored to its memory since the last synchronisation.
    #[doc(alias = "MPI_MODE_NOSTORE")]
    pub const NO_STORE: Self = Self(8192);
    /// No operation of this rank follows the fence. All ranks promise the same.
    #[doc(alias = "MPI_MODE_NOSUCCEED")]
    pub const NO_SUCCEED: Self = Self(16384);

    /// Returns the promises with these bits of the ABI.
    pub fn from_bits(bits: u32) -> Self {
        Self(bits)
    }

    /// Returns the bits of the ABI.
    pub const fn bits(self) -> u32 {
        self.0
    }

    fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    fn check(self, allowed: &[Self]) -> Result<()> {
        let allowed = allowed.iter().fold(0, |all, one| all | one.0);
        if self.0 & !allowed == 0 {
            return Ok(());
        }
        let detail = format!("{:#x} has bits that are no assertions of this call", self.0);
        Err(Error::new(ErrorKind::Window(WindowErrorKind::Assert), "assert", detail))
    }
}

impl std::ops::BitOr for Assertions {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// What this rank may do at one other rank.
mod at {
    /// Nothing, unless an epoch with all ranks is open.
    pub const NOTHING: u8 = 0;
    /// A thread of this rank waits for the lock of the other rank.
    pub const WAITING: u8 = 1;
    /// The other rank is in the group of `start`.
    pub const STARTED: u8 = 2;
    pub const SHARED: u8 = 3;
    pub const EXCLUSIVE: u8 = 4;
    /// Like the two above, but this rank has not taken the lock (`NO_CHECK`).
    pub const SHARED_BY_PROMISE: u8 = 5;
    pub const EXCLUSIVE_BY_PROMISE: u8 = 6;
}

/// What this rank may do at all other ranks, as bits.
mod with_all {
    /// A fence has opened an epoch.
    pub const FENCE: u8 = 1;
    /// This rank has made an operation in the epoch that the fence opened.
    pub const USED: u8 = 2;
    /// This rank has locked all ranks.
    pub const LOCKED: u8 = 4;
}

/// The epochs of a window at this rank.
#[derive(Debug)]
pub(in crate::rma) struct Epochs {
    /// For each rank of the window, one of the values in [`at`].
    at: Box<[AtomicU8]>,
    /// The bits in [`with_all`].
    all: AtomicU8,
    phase: Phase,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// The ranks of the access epoch between start and complete.
    started: Vec<usize>,
    /// The ranks of the exposure epoch between post and wait.
    posted: Vec<usize>,
    /// For each rank, how often this rank has called `start` with a group that contains that rank.
    starts: Box<[u64]>,
    /// For each rank, how often this rank has called `post` with a group that contains that rank.
    posts: Box<[u64]>,
}

impl Epochs {
    pub fn new(ranks: usize) -> Self {
        Self {
            at: (0..ranks).map(|_| AtomicU8::new(at::NOTHING)).collect(),
            all: AtomicU8::new(0),
            phase: Phase::default(),
            state: Mutex::new(State {
                started: Vec::new(),
                posted: Vec::new(),
                starts: vec![0; ranks].into(),
                posts: vec![0; ranks].into(),
            }),
        }
    }

    /// Locks the state. All calls that begin and end epochs come through here, and no other code locks the state.
    ///
    /// # Errors
    /// Returns `ErrorKind::State` in a forked child. A child must not even try the lock, because another thread of the
    /// parent may have held it at the fork.
    fn lock(&self) -> Result<MutexGuard<'_, State>> {
        check_process()?;
        // The state is a few independent values, and no change of it can panic halfway.
        Ok(self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Checks that this rank may access the memory of `target`. Returns true if no other rank may access that memory at
    /// the same time.
    ///
    /// # Errors
    /// Returns `WindowErrorKind::Synchronization` if no epoch permits the access.
    #[inline]
    pub fn check_access(&self, target: usize) -> Result<bool> {
        // The memory of other ranks is not mapped in a forked child.
        check_process()?;
        match self.at.get(target).map(|at| at.load(Ordering::Relaxed)) {
            Some(at::STARTED | at::SHARED | at::SHARED_BY_PROMISE) => return Ok(false),
            Some(at::EXCLUSIVE | at::EXCLUSIVE_BY_PROMISE) => return Ok(true),
            _ => {}
        }
        if permits_all(&self.all) {
            return Ok(false);
        }
        Err(outside("the rank is in no epoch that lets it access this target"))
    }

    /// Checks that this rank has locked `target`.
    ///
    /// # Errors
    /// Returns `WindowErrorKind::Synchronization` if it has not.
    #[inline]
    pub fn check_locked(&self, target: usize) -> Result<()> {
        check_process()?;
        if self.has_locked(target) {
            return Ok(());
        }
        Err(outside("the rank has not locked this target"))
    }

    /// Checks that this rank has locked at least one rank.
    ///
    /// # Errors
    /// Returns `WindowErrorKind::Synchronization` if it has not.
    pub fn check_any_lock(&self) -> Result<()> {
        check_process()?;
        if self.has_locked_all() || self.phase.has_locks() {
            return Ok(());
        }
        Err(outside("the rank has locked no target"))
    }

    /// Returns whether this rank may access the memory of `target`. If not, [`check_access`](Self::check_access)
    /// decides: the first access after a fence needs a note.
    #[inline(always)]
    pub fn permits(&self, target: usize) -> bool {
        self.at.get(target).is_some_and(|at| at.load(Ordering::Relaxed) >= at::STARTED)
            || self.permits_noted()
    }

    /// Returns whether this rank may access the memory of `target` together with other ranks; see
    /// [`permits`](Self::permits).
    #[inline(always)]
    pub fn permits_shared(&self, target: usize) -> bool {
        match self.at.get(target).map(|at| at.load(Ordering::Relaxed)) {
            Some(at::STARTED | at::SHARED | at::SHARED_BY_PROMISE) => true,
            Some(at::EXCLUSIVE | at::EXCLUSIVE_BY_PROMISE) => false,
            _ => self.permits_noted(),
        }
    }

    /// Returns whether this rank may access all ranks, and needs no note.
    #[inline(always)]
    fn permits_noted(&self) -> bool {
        self.all.load(Ordering::Relaxed) & (with_all::LOCKED | with_all::USED) != 0
    }

    /// Returns whether this rank has locked `target`.
    #[inline(always)]
    pub fn has_locked(&self, target: usize) -> bool {
        self.at.get(target).is_some_and(|at| at.load(Ordering::Relaxed) >= at::SHARED)
            || self.has_locked_all()
    }

    #[inline(always)]
    fn has_locked_all(&self) -> bool {
        self.all.load(Ordering::Relaxed) & with_all::LOCKED != 0
    }

    /// Checks that this rank has made no operation since the last fence, and ends the epoch of that fence. A call that
    /// begins an epoch of another kind calls this function first.
    fn leave_fence(&self) -> Result<()> {
        if self.all.load(Ordering::Relaxed) == 0 {
            return Ok(());
        }
        let unused =
            self.all.compare_exchange(with_all::FENCE, 0, Ordering::Relaxed, Ordering::Relaxed);
        match unused {
            Err(bits) if bits & with_all::USED != 0 => Err(unfenced()),
            _ => Ok(()),
        }
    }

    /// Checks that this rank is in no epoch, so that the window may be freed.
    pub fn check_free(&self) -> Result<()> {
        check_process()?;
        if !self.phase.is_idle() {
            return Err(outside("the rank is in an epoch, which must end first"));
        }
        let is_used = self.all.load(Ordering::Relaxed) & with_all::USED != 0;
        if is_used { Err(unfenced()) } else { Ok(()) }
    }

    fn set(&self, rank: usize, value: u8) {
        if let Some(at) = self.at.get(rank) {
            at.store(value, Ordering::Relaxed);
        }
    }
}

#[cold]
fn unfenced() -> Error {
    outside("a fence must end the epoch in which the rank has made operations")
}

/// Returns whether the bits of [`with_all`] let this rank access all ranks. If a fence does, notes that the rank
/// makes an operation in the epoch of the fence.
#[inline]
fn permits_all(all: &AtomicU8) -> bool {
    let mut bits = all.load(Ordering::Relaxed);
    // Another thread may end the epoch at this moment. Then the note must not stay behind, because it would permit
    // accesses outside of epochs.
    while bits == with_all::FENCE {
        let used = with_all::FENCE | with_all::USED;
        match all.compare_exchange_weak(bits, used, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => return true,
            Err(now) => bits = now,
        }
    }
    bits != 0
}

/// Returns the error for a call outside the epoch that it needs.
#[cold]
pub(in crate::rma) fn outside(detail: &str) -> Error {
    Error::new(ErrorKind::Window(WindowErrorKind::Synchronization), "win", detail)
}

impl Window {
    /// Checks that this rank has locked `target`. Calls that return a request require this (MPI-5.0 section 12.3.5).
    ///
    /// # Errors
    /// Returns `ErrorKind::Rank` if there is no such rank, and `WindowErrorKind::Synchronization` if this rank has not
    /// locked it.
    #[doc(hidden)]
    pub fn check_passive(&self, target: usize) -> Result<()> {
        self.check_target(target)?;
        self.epochs.check_locked(target)
    }

    /// Waits until all ranks have called `fence`, and ends the epoch that the last fence began. All operations of the
    /// ranks before the fence are visible after it. If `NO_PRECEDE` and `NO_SUCCEED` are both promised, the call does
    /// not wait. Unless `NO_SUCCEED` is promised, a new epoch begins, in which each rank may access the memory of all
    /// ranks. Collective.
    ///
    /// # Errors
    /// Returns `WindowErrorKind::Synchronization` if this rank is in an epoch of another kind,
    /// `WindowErrorKind::Assert` if `assert` has bits that this call does not take, and `ErrorKind::ProcAborted` if a
    /// rank has died.
    #[doc(alias = "MPI_Win_fence")]
    pub fn fence(&self, assert: Assertions) -> Result<()> {
        use Assertions as A;
        assert.check(&[A::NO_STORE, A::NO_PUT, A::NO_PRECEDE, A::NO_SUCCEED])?;
        check_process()?;
        if !self.epochs.phase.begin(part::FENCING, 0) {
            return Err(outside(
                "the rank is in an epoch of another kind, which must end first, or another thread is in a fence",
            ));
        }
        // With `NO_PRECEDE` alone, the ranks still meet: the accesses of the next epoch must come after the stores
        // that their target has made before the fence.
        let need_not_meet = assert.has(A::NO_PRECEDE) && assert.has(A::NO_SUCCEED);
        // An error of an operation must not keep this rank from the meeting, where the other ranks wait.
        let completed = self.complete_all();
        self.prefer_instructions_everywhere();
        let synchronised = if need_not_meet { Ok(()) } else { self.meet() };
        if synchronised.is_ok() {
            let next = if assert.has(A::NO_SUCCEED) { 0 } else { with_all::FENCE };
            self.epochs.all.store(next, Ordering::Relaxed);
        }
        self.epochs.phase.turn(part::FENCING, 0);
        synchronised.and(completed)
    }

    /// Returns the rank in the window of each member of `group`.
    fn ranks_of(&self, group: &Group) -> Result<Vec<usize>> {
        (0..group.size())
            .map(|member| {
                let world = group.world_rank(member);
                world.and_then(|world| self.comm.group().rank_of(world)).ok_or_else(|| {
                    let detail =
                        format!("member {member} of the group is not a rank of the window");
                    Error::new(ErrorKind::Group, "group", detail)
                })
            })
            .collect()
    }

    /// Begins an exposure epoch, in which the ranks of `group` may access the memory of this rank.
    ///
    /// # Errors
    /// Returns `WindowErrorKind::Synchronization` if such an epoch is open already, if this rank has locked its own
    /// memory or all ranks, or if it has made operations since the last fence, `ErrorKind::Group` if the group has
    /// members that the window does not have, and `WindowErrorKind::Assert` if `assert` has bits that this call does
    /// not take.
    #[doc(alias = "MPI_Win_post")]
    pub fn post(&self, group: &Group, assert: Assertions) -> Result<()> {
        use Assertions as A;
        assert.check(&[A::NO_CHECK, A::NO_STORE, A::NO_PUT])?;
        let ranks = self.ranks_of(group)?;
        let mut state = self.epochs.lock()?;
        if self.epochs.phase.has(part::POSTED) {
            return Err(outside("the rank has posted already, and must wait first"));
        }
        let beside = part::STARTING | part::STARTED | part::LOCKS;
        if !self.epochs.phase.begin(part::POSTED, beside) {
            return Err(outside(match self.epochs.phase.has(part::OWN_LOCK) {
                true => "the rank has locked its own memory, which it cannot expose too",
                false => "the rank is in an epoch of another kind, which must end first",
            }));
        }
        if let Err(error) = self.epochs.leave_fence() {
            self.epochs.phase.turn(part::POSTED, 0);
            return Err(error);
        }
        for &rank in &ranks {
            state.posts[rank] += 1;
            // The stores of this rank before the call come before the accesses of the other ranks.
            wait::announce(
                self.words.get(rank, Word::Posted(self.comm.rank()))?,
                state.posts[rank],
            );
        }
        for &rank in &ranks {
            wait::ring(&self.comm, rank)?;
        }
        state.posted = ranks;
        Ok(())
    }

    /// Begins an epoch in which this rank may access the memory of the ranks of `group`. Waits until these ranks
    /// have posted, unless `NO_CHECK` is promised.
    ///
    /// # Errors
    /// Returns `WindowErrorKind::Synchronization` if another access epoch is open, `ErrorKind::Group` if the
    /// group has members that the window does not have, `WindowErrorKind::Assert` if `assert` has bits that this call
    /// does not take, and `ErrorKind::ProcAborted` if a rank has died.
    #[doc(alias = "MPI_Win_start")]
    pub fn start(&self, group: &Group, assert: Assertions) -> Result<()> {
        assert.check(&[Assertions::NO_CHECK])?;
        let ranks = self.ranks_of(group)?;
        let mut state = self.epochs.lock()?;
        if !self.epochs.phase.begin(part::STARTING, part::POSTED) {
            return Err(outside("the rank is in an access epoch, which must end first"));
        }
        if let Err(error) = self.epochs.leave_fence() {
            self.epochs.phase.turn(part::STARTING, 0);
            return Err(error);
        }
        let counts: Vec<u64> = ranks
            .iter()
            .map(|&rank| {
                state.starts[rank] += 1;
                state.starts[rank]
            })
            .collect();
        drop(state);
        let await_posts = || -> Result<()> {
            for (&rank, &count) in ranks.iter().zip(&counts) {
                if !assert.has(Assertions::NO_CHECK) {
                    let word = self.words.get(self.comm.rank(), Word::Posted(rank))?;
                    let awaited = ("Window::start", Some(rank));
                    let serves = self.needs_progress();
                    wait::until(&self.comm, awaited, serves, || wait::has_come(word, count))?;
                }
            }
            Ok(())
        };
        if let Err(error) = await_posts() {
            self.epochs.phase.turn(part::STARTING, 0);
            return Err(error);
        }
        for &rank in &ranks {
            self.epochs.set(rank, at::STARTED);
        }
        self.epochs.lock()?.started = ranks;
        self.epochs.phase.turn(part::STARTING, part::STARTED);
        Ok(())
    }

    /// Ends the epoch that `start` began.
    ///
    /// # Errors
    /// Returns `WindowErrorKind::Synchronization` if there is no such epoch, the error of an operation that a target
    /// has refused, and `ErrorKind::ProcAborted` if a rank has died.
    #[doc(alias = "MPI_Win_complete")]
    pub fn complete(&self) -> Result<()> {
        let mut state = self.epochs.lock()?;
        if !self.epochs.phase.turn(part::STARTED, part::STARTING) {
            return Err(outside("the rank has not started an access epoch"));
        }
        // `starts` counts this rank's epochs with a target, so it also numbers their ends.
        let ranks = std::mem::take(&mut state.started);
        let ranks: Vec<(usize, u64)> =
            ranks.into_iter().map(|rank| (rank, state.starts[rank])).collect();
        drop(state);
        let mut ended = Ok(());
        for &(rank, count) in &ranks {
            self.epochs.set(rank, at::NOTHING);
            ended = ended.and(self.complete_at(rank));
            self.prefer_instructions(rank);
            // The accesses of this rank come before the end. The target waits for the end, even after an error.
            let word = self.words.get(rank, Word::Completed(self.comm.rank()));
            ended = ended.and(word.map(|word| wait::announce(word, count)));
            ended = ended.and(wait::ring(&self.comm, rank));
        }
        self.epochs.phase.turn(part::STARTING, 0);
        ended
    }

    /// Ends the epoch that `post` began, after all ranks of its group have completed.
    ///
    /// # Errors
    /// Returns `WindowErrorKind::Synchronization` if there is no such epoch, and `ErrorKind::ProcAborted` if a rank
    /// has died.
    #[doc(alias = "MPI_Win_wait")]
    pub fn wait(&self) -> Result<()> {
        for (rank, count) in self.awaited()? {
            let word = self.words.get(self.comm.rank(), Word::Completed(rank))?;
            let (awaited, serves) = (("Window::wait", Some(rank)), self.needs_progress());
            wait::until(&self.comm, awaited, serves, || wait::has_come(word, count))?;
        }
        self.epochs.phase.turn(part::POSTED, 0);
        Ok(())
    }

    /// Ends the epoch that `post` began if all ranks of its group have completed. Returns whether they have.
    ///
    /// # Errors
    /// Returns the errors of [`wait`](Self::wait).
    #[doc(alias = "MPI_Win_test")]
    pub fn test(&self) -> Result<bool> {
        let awaited = self.awaited()?;
        self.comm.progress()?;
        for (rank, count) in awaited {
            let word = self.words.get(self.comm.rank(), Word::Completed(rank))?;
            if !wait::has_come(word, count) {
                return Ok(false);
            }
        }
        self.epochs.phase.turn(part::POSTED, 0);
        Ok(true)
    }

    /// Returns the ranks for which this rank has posted, each with the number of epochs that this other rank must have
    /// completed.
    fn awaited(&self) -> Result<Vec<(usize, u64)>> {
        let state = self.epochs.lock()?;
        if !self.epochs.phase.has(part::POSTED) {
            return Err(outside("the rank has not posted"));
        }
        Ok(state.posted.iter().map(|&rank| (rank, state.posts[rank])).collect())
    }

    /// Locks the memory of rank `target`, and begins an epoch in which this rank may access it. Waits until no other
    /// rank holds a lock that excludes this one, unless `NO_CHECK` is promised: the call then takes no lock.
    ///
    /// # Errors
    /// Returns `ErrorKind::Rank` if there is no such rank, `WindowErrorKind::Synchronization` if this rank has
    /// locked the target already, is in an epoch of another kind, or has promised never to lock the window
    /// (`no_locks`), `WindowErrorKind::Assert` if `assert` has bits that this call does not take, and
    /// `ErrorKind::ProcAborted` if a rank has died.
    #[doc(alias = "MPI_Win_lock")]
    pub fn lock_raw(&self, kind: LockKind, target: usize, assert: Assertions) -> Result<()> {
        self.check_target(target)?;
        assert.check(&[Assertions::NO_CHECK])?;
        self.check_locks()?;
        check_process()?;
        let holds = !assert.has(Assertions::NO_CHECK);
        self.add_lock(target)?;
        let begun = self.begin_lock(kind, target, holds);
        if begun.is_err() {
            self.remove_lock(target);
        }
        begun
    }

    /// Adds a lock of the memory of rank `target` to the phase.
    #[inline]
    fn add_lock(&self, target: usize) -> Result<()> {
        let phase = &self.epochs.phase;
        let is_own = target == self.rank();
        let added = if is_own { phase.add_own_lock() } else { phase.add_lock() };
        if added {
            return Ok(());
        }
        Err(outside(if is_own && phase.has(part::OWN_LOCK) {
            "this rank has locked the target already"
        } else if is_own && phase.has(part::POSTED) {
            "the rank exposes its own memory, which it cannot lock too"
        } else {
            "the rank is in an epoch of another kind, which must end first"
        }))
    }

    /// Removes a lock of the memory of rank `target` from the phase.
    #[inline]
    fn remove_lock(&self, target: usize) {
        let phase = &self.epochs.phase;
        if target == self.rank() { phase.remove_own_lock() } else { phase.remove_lock() }
    }

    /// Does the part of [`lock_raw`](Self::lock_raw) after the phase has the lock.
    fn begin_lock(&self, kind: LockKind, target: usize, holds: bool) -> Result<()> {
        let epochs = &self.epochs;
        let (order, at) = (Ordering::Relaxed, &epochs.at[target]);
        if at.compare_exchange(at::NOTHING, at::WAITING, order, order).is_err() {
            return Err(outside("this rank has locked the target already"));
        }
        let locked = epochs.leave_fence().and_then(|()| match holds {
            true => wait::lock(&self.comm, &self.words, target, kind, self.needs_progress()),
            false => Ok(()),
        });
        if let Err(error) = locked {
            at.store(at::NOTHING, order);
            return Err(error);
        }
        at.store(
            match (kind, holds) {
                (LockKind::Shared, true) => at::SHARED,
                (LockKind::Shared, false) => at::SHARED_BY_PROMISE,
                (LockKind::Exclusive, true) => at::EXCLUSIVE,
                (LockKind::Exclusive, false) => at::EXCLUSIVE_BY_PROMISE,
            },
            order,
        );
        Ok(())
    }

    /// Unlocks the memory of rank `target`, and ends the epoch that the lock began. The operations of the epoch are
    /// then complete at the target.
    ///
    /// # Errors
    /// Returns `ErrorKind::Rank` if there is no such rank, `WindowErrorKind::Synchronization` if this rank has
    /// not locked the target, and `ErrorKind::ProcAborted` if a rank has died.
    #[doc(alias = "MPI_Win_unlock")]
    pub fn unlock_raw(&self, target: usize) -> Result<()> {
        self.check_target(target)?;
        self.make_progress()?;
        check_process()?;
        let (order, at) = (Ordering::Relaxed, &self.epochs.at[target]);
        let was = at.load(order);
        let ended =
            was >= at::SHARED && at.compare_exchange(was, at::NOTHING, order, order).is_ok();
        if !ended {
            return Err(outside("the rank has not locked this target"));
        }
        // An error of an operation must not keep the lock.
        let completed = self.complete_at(target);
        self.prefer_instructions(target);
        let unlocked = match was {
            at::SHARED => wait::unlock(&self.comm, &self.words, target, LockKind::Shared),
            at::EXCLUSIVE => wait::unlock(&self.comm, &self.words, target, LockKind::Exclusive),
            _ => {
                order_accesses();
                Ok(())
            }
        };
        self.remove_lock(target);
        unlocked.and(completed)
    }

    /// Takes a shared lock of the memory of every rank, and begins an epoch in which this rank may access the memory of
    /// all ranks. If `NO_CHECK` is promised, the call takes no lock.
    ///
    /// # Errors
    /// Returns the errors of [`lock_raw`](Self::lock_raw) except `ErrorKind::Rank`.
    #[doc(alias = "MPI_Win_lock_all")]
    pub fn lock_all_raw(&self, assert: Assertions) -> Result<()> {
        assert.check(&[Assertions::NO_CHECK])?;
        self.check_locks()?;
        check_process()?;
        let holds = !assert.has(Assertions::NO_CHECK);
        if !self.epochs.phase.begin(part::LOCKING_ALL, 0) {
            return Err(outside("the rank is in another epoch, which must end first"));
        }
        let locked = self.epochs.leave_fence().and_then(|()| match holds {
            true => self.take_all_locks(),
            false => Ok(()),
        });
        if let Err(error) = locked {
            self.epochs.phase.turn(part::LOCKING_ALL, 0);
            return Err(error);
        }
        self.epochs.all.store(with_all::LOCKED, Ordering::Relaxed);
        let all = if holds { part::LOCKED_ALL } else { part::PROMISED_ALL };
        self.epochs.phase.turn(part::LOCKING_ALL, all);
        Ok(())
    }

    /// Takes the shared locks of all ranks. If one fails, releases those that the call has taken.
    fn take_all_locks(&self) -> Result<()> {
        for target in 0..self.comm.size() {
            let (kind, serves) = (LockKind::Shared, self.needs_progress());
            if let Err(error) = wait::lock(&self.comm, &self.words, target, kind, serves) {
                for taken in 0..target {
                    // The error of the lock counts; a release fails only if there is no such lock.
                    let _released = wait::unlock(&self.comm, &self.words, taken, LockKind::Shared);
                }
                return Err(error);
            }
        }
        Ok(())
    }

    /// Unlocks the memory of all ranks, and ends the epoch that `MPI_Win_lock_all` began.
    ///
    /// # Errors
    /// Returns `WindowErrorKind::Synchronization` if this rank has not locked all ranks, and `ErrorKind::ProcAborted`
    /// if a rank has died.
    #[doc(alias = "MPI_Win_unlock_all")]
    pub fn unlock_all_raw(&self) -> Result<()> {
        self.make_progress()?;
        check_process()?;
        let phase = &self.epochs.phase;
        let holds = phase.turn(part::LOCKED_ALL, part::LOCKING_ALL);
        if !holds && !phase.turn(part::PROMISED_ALL, part::LOCKING_ALL) {
            return Err(outside("the rank has not locked all ranks"));
        }
        self.epochs.all.store(0, Ordering::Relaxed);
        let mut unlocked = self.complete_all();
        self.prefer_instructions_everywhere();
        if holds {
            for target in 0..self.comm.size() {
                let one = wait::unlock(&self.comm, &self.words, target, LockKind::Shared);
                unlocked = unlocked.and(one);
            }
        } else {
            order_accesses();
        }
        phase.turn(part::LOCKING_ALL, 0);
        unlocked
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that a forked child gets an error, and does not wait for a lock that nobody in the child releases.
    #[test]
    fn a_child_does_not_wait_for_the_state() {
        assert!(crate::sys::fork::watch());
        let epochs = Epochs::new(2);
        let held = epochs.lock().unwrap();
        // SAFETY: the child makes checks that fail before they take a lock, and ends with `_exit`.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // SAFETY: `alarm` accesses no memory. If a check waits, the signal ends the child.
            unsafe { libc::alarm(100) };
            let refused = |result: Result<()>| result.is_err_and(|e| e.kind() == ErrorKind::State);
            let all = refused(epochs.lock().map(drop))
                && refused(epochs.check_any_lock())
                && refused(epochs.check_free())
                && refused(epochs.check_locked(0))
                && refused(epochs.check_access(0).map(drop));
            // SAFETY: `_exit` ends the child process and accesses no memory.
            unsafe { libc::_exit(i32::from(!all)) };
        }
        assert!(child > 0, "fork");
        let mut status = 0;
        // SAFETY: `child` is a child of this process, and `status` is writable.
        let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
        assert_eq!((waited, status), (child, 0));
        drop(held);
        assert!(epochs.check_free().is_ok());
    }

    #[test]
    fn operations_are_noted_only_in_the_epoch_of_a_fence() {
        let check = |before: u8, permits: bool, after: u8| {
            let all = AtomicU8::new(before);
            assert_eq!((permits_all(&all), all.load(Ordering::Relaxed)), (permits, after));
        };
        check(0, false, 0);
        check(with_all::FENCE, true, with_all::FENCE | with_all::USED);
        check(with_all::LOCKED, true, with_all::LOCKED);
    }

    /// One thread makes operations while another one begins and ends the epochs of fences. No note may stay behind.
    #[test]
    fn no_note_of_an_operation_stays_behind() {
        let all = AtomicU8::new(0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..200_000 {
                    permits_all(&all);
                }
            });
            for _ in 0..200_000 {
                all.store(with_all::FENCE, Ordering::Relaxed);
                all.store(0, Ordering::Relaxed);
                std::hint::spin_loop();
                assert_eq!(all.load(Ordering::Relaxed), 0);
            }
        });
    }
}
