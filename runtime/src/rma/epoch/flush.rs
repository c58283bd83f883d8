//! The calls that complete operations without the end of an epoch (MPI-5.0 section 12.5.4), and the order of this
//! rank's accesses to window memory.

use crate::Result;
use crate::rma::{CALLS_PER_TURN, Window, check_process};
use crate::sys::fork;
use std::sync::atomic::{Ordering, compiler_fence, fence};

impl Window {
    /// Does the work of [`flush`](Self::flush) and [`flush_local`](Self::flush_local), if nothing is under way and this
    /// call owes no turn of progress. Returns whether the call has done this. If not, nothing has happened.
    #[doc(hidden)]
    #[inline(always)]
    pub fn flush_short(&self, target: usize) -> bool {
        // A window whose memory needs requests makes progress in each call.
        if fork::is_child()
            || target >= self.targets.len()
            || !self.epochs.has_locked(target)
            || self.requests.any.load(Ordering::Relaxed)
            || self.needs_progress()
        {
            return false;
        }
        let calls = self.calls.load(Ordering::Relaxed).wrapping_add(1);
        if calls.is_multiple_of(CALLS_PER_TURN) {
            return false;
        }
        self.calls.store(calls, Ordering::Relaxed);
        self.order_stores();
        true
    }

    /// Completes the operations of this rank at rank `target`. This rank must have locked the target.
    ///
    /// # Errors
    /// Returns `ErrorKind::Rank` if there is no such rank, `WindowErrorKind::Synchronization` if this rank has not
    /// locked the target, the error of an operation that the target has refused, and `ErrorKind::ProcAborted` if a rank
    /// has died.
    #[doc(alias = "MPI_Win_flush")]
    pub fn flush(&self, target: usize) -> Result<()> {
        self.check_target(target)?;
        self.epochs.check_locked(target)?;
        self.order_stores();
        self.complete_at(target)?;
        self.make_progress()
    }

    /// Completes the operations of this rank at rank `target` at this rank: the program may then use their buffers.
    ///
    /// # Errors
    /// Returns the errors of [`flush`](Self::flush), except that of an operation that the target has refused.
    #[doc(alias = "MPI_Win_flush_local")]
    pub fn flush_local(&self, target: usize) -> Result<()> {
        self.check_target(target)?;
        self.epochs.check_locked(target)?;
        self.order_stores();
        self.complete_local(target)?;
        self.make_progress()
    }

    /// Completes the operations of this rank at all ranks that it has locked.
    ///
    /// # Errors
    /// Returns `WindowErrorKind::Synchronization` if this rank has locked no rank, the error of an operation that a
    /// target has refused, and `ErrorKind::ProcAborted` if a rank has died.
    #[doc(alias = "MPI_Win_flush_all")]
    pub fn flush_all(&self) -> Result<()> {
        self.epochs.check_any_lock()?;
        self.order_stores();
        self.complete_all()?;
        self.make_progress()
    }

    /// Completes the operations of this rank at all ranks that it has locked, like [`flush_local`](Self::flush_local).
    ///
    /// # Errors
    /// Returns the errors of [`flush_all`](Self::flush_all), except that of an operation that a target has refused.
    #[doc(alias = "MPI_Win_flush_local_all")]
    pub fn flush_local_all(&self) -> Result<()> {
        self.epochs.check_any_lock()?;
        self.order_stores();
        (0..self.size()).try_for_each(|target| self.complete_local(target))?;
        self.make_progress()
    }

    /// Makes the loads and stores of this rank before the call come before its loads and stores after the call.
    ///
    /// # Errors
    /// Returns `ErrorKind::ProcAborted` if a rank has died.
    #[doc(alias = "MPI_Win_sync")]
    pub fn sync(&self) -> Result<()> {
        check_process()?;
        order_accesses();
        self.make_progress()
    }

    /// Orders the stores of this rank's calls to window memory before later accesses, as [`order_accesses`] does. On
    /// x86-64, only a plain store can be late: the processor keeps all other orders, and the locked instruction that
    /// updates an element orders by itself. The old value of an update is not ordered.
    ///
    /// A thread that finds no note ([`note_stores`](Self::note_stores)) has nothing to order. If it has made a note
    /// itself, another thread has removed this note, so the note was visible to all threads. The stores of a processor
    /// become visible in their order, so all stores before the note were visible too.
    #[inline(always)]
    fn order_stores(&self) {
        if cfg!(not(target_arch = "x86_64")) {
            return order_accesses();
        }
        if self.stored.load(Ordering::Acquire) {
            self.stored.store(false, Ordering::Relaxed);
            return order_accesses();
        }
        // Keeps the compiler from moving accesses across the call.
        compiler_fence(Ordering::SeqCst);
    }
}

/// Orders this rank's accesses to window memory before the call and those after the call, as all ranks see them. A copy
/// to mapped memory consists of plain stores, and progress alone does not order them.
pub(in crate::rma) fn order_accesses() {
    fence(Ordering::SeqCst);
}
