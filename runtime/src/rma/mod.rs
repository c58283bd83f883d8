//! One-sided communication (MPI-5.0 chapter 12): windows, and the calls of one rank that read and write the memory
//! of another.
//!
//! A window is memory of every rank of a communicator. Where the memory lies in the heap of a rank, which the other
//! ranks can map, an operation is a copy that the calling rank makes at once, from any layout to any layout: no
//! message, and no help of the target. Such memory comes from the window itself ([`Window::allocate`]) or from
//! `MPI_Alloc_mem`. From other memory, the calling rank gets data by system calls that read the memory of another
//! process, if the system permits this. For all other operations, it sends a request, which the target carries out in
//! its next call that makes progress.
//!
//! - `window/`: windows, their memory, and the words that their ranks share;
//! - `epoch/`: which calls a rank may make now, the calls that begin, complete and end epochs, the lock of a window;
//! - `direct/`: put and get as one copy; `accumulate.rs`, `accumulate/`: the operations that are atomic;
//! - `request/`: operations on memory that the calling rank cannot map;
//! - `typed/`: windows of Rust values, whose epochs are guards.
//!
//! `README.md` lists the files in the order in which to read them.
//!
//! Invariants:
//! - The owner of a window's memory names its bounds when the window is made, and the other ranks check them against
//!   the owner's heap at that time. Nothing that another rank writes later changes the bounds. (In a dynamic window,
//!   the bounds are checked whenever they are used.)
//! - An operation is over when its call returns, except one on memory that the calling rank cannot map: its call only
//!   starts it, and the calls that complete operations wait for it.

mod accumulate;
mod direct;
mod epoch;
mod request;
mod typed;
mod window;

pub use accumulate::Update;
pub use accumulate::atomic::{ElementKind, ElementUpdate, SimpleUpdate};
pub use epoch::epochs::Assertions;
pub use epoch::lock::LockKind;
pub(crate) use request::target::register;
pub use typed::{
    Access, AnyThread, Cells, Exchangeable, Exposure, Fenced, Locked, LockedAll, OneThread, Target,
    Threads, WindowOf,
};
pub use window::create::Flavor;
pub use window::hints::WindowHints;

use crate::comm::{Communicator, Group};
use crate::sys::fork;
use crate::{Error, ErrorKind, Result, WindowErrorKind};
use epoch::epochs::Epochs;
use epoch::wait::Meetings;
use request::replies::Requests;
use request::target::TargetSide;
use request::tries::Tries;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use window::dynamic::Attached;
use window::target::Memory;
use window::words::Words;

/// If this rank serves no requests, the calls that complete operations make progress only once in this number of calls.
/// Most of these calls have nothing to wait for, and cost less than a turn of progress.
const CALLS_PER_TURN: u32 = 64;

/// Memory of every rank of a communicator, which the other ranks read and write by one-sided calls.
///
/// In a forked child of a rank, the calls that access memory, synchronise or use hints return `ErrorKind::State`.
#[doc(alias = "MPI_Win")]
pub struct Window {
    /// This rank in the window.
    rank: usize,
    comm: Communicator,
    flavor: Flavor,
    words: Arc<Words>,
    meetings: Meetings,
    epochs: Epochs,
    hints: Mutex<WindowHints>,
    /// The hint `no_locks`.
    no_locks: AtomicBool,
    targets: Box<[Memory]>,
    /// The memory that the ranks have attached, if the window is dynamic.
    attached: Attached,
    calls: AtomicU32,
    /// Whether puts and gets compare types (`TYPEPACK_CHECK_TYPES=1`).
    check_types: bool,
    /// The addresses of all mapped memory of the window, from the lowest to the highest one: the first address, and the
    /// length.
    mapped: (usize, usize),
    /// Whether this rank may have stored to mapped memory of the window since its accesses were ordered
    /// (`order_accesses`).
    stored: AtomicBool,
    /// The tag of requests to ranks whose memory this rank cannot map.
    tag: i32,
    /// Held while this rank changes memory that it has locked exclusively. Such changes are not atomic, so the threads
    /// of this rank take turns.
    alone: Mutex<()>,
    tries: Tries,
    /// What this rank has asked ranks for whose memory it cannot map.
    requests: Requests,
    /// Serves the requests of other ranks; `None` if this rank has no memory that needs requests.
    target_side: Option<TargetSide>,
}

impl fmt::Debug for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Window")
            .field("flavor", &self.flavor)
            .field("comm", &self.comm)
            .finish_non_exhaustive()
    }
}

impl Window {
    /// Returns how the window was made.
    pub fn flavor(&self) -> Flavor {
        self.flavor
    }

    /// Returns the rank of this process in the window.
    #[inline]
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Returns the number of ranks.
    pub fn size(&self) -> usize {
        self.comm.size()
    }

    /// Returns the group of the window's ranks.
    #[doc(alias = "MPI_Win_get_group")]
    pub fn group(&self) -> &Group {
        self.comm.group()
    }

    /// Returns the address, the length in bytes and the displacement unit of this rank's memory in the window.
    #[doc(alias = "MPI_Win_get_attr")]
    pub fn own(&self) -> (*mut u8, u64, u64) {
        let target = &self.targets[self.rank()];
        (target.base, target.bytes, target.unit)
    }

    /// Returns the address in this process, the length in bytes and the displacement unit of the memory of a rank.
    /// The address is null and the length 0 if this process cannot load from the memory. `None` stands for the
    /// lowest rank with memory, or for rank 0 if no rank has memory.
    ///
    /// # Errors
    /// Returns `ErrorKind::Rank` if there is no such rank, and `WindowErrorKind::Flavor` for a dynamic window.
    #[doc(alias = "MPI_Win_shared_query")]
    pub fn shared_query(&self, rank: Option<usize>) -> Result<(*mut u8, u64, u64)> {
        if self.flavor == Flavor::Dynamic {
            let detail = "a dynamic window has no memory of its own";
            return Err(Error::new(ErrorKind::Window(WindowErrorKind::Flavor), "win", detail));
        }
        let rank = match rank {
            Some(rank) => rank,
            None => self.targets.iter().position(|target| target.bytes > 0).unwrap_or(0),
        };
        self.check_target(rank)?;
        let target = &self.targets[rank];
        Ok(match target.is_mapped {
            true => (target.base, target.bytes, target.unit),
            false => (std::ptr::null_mut(), 0, target.unit),
        })
    }

    fn lock_hints(&self) -> Result<MutexGuard<'_, WindowHints>> {
        check_process()?;
        Ok(self.hints.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the hints that are in force.
    ///
    /// # Errors
    /// Returns `ErrorKind::State` in a forked child.
    #[doc(alias = "MPI_Win_get_info")]
    pub fn hints(&self) -> Result<WindowHints> {
        Ok(self.lock_hints()?.clone())
    }

    /// Sets hints. Hints that `given` does not name keep their values, and so do hints that only a call that makes a
    /// window can set.
    ///
    /// # Errors
    /// Returns `ErrorKind::State` in a forked child.
    #[doc(alias = "MPI_Win_set_info")]
    pub fn set_hints(&self, given: &[(String, String)]) -> Result<()> {
        let mut hints = self.lock_hints()?;
        hints.set(given, false);
        self.no_locks.store(hints.no_locks, Ordering::Relaxed);
        Ok(())
    }

    /// Checks that `target` is a rank of the window.
    #[inline]
    fn check_target(&self, target: usize) -> Result<()> {
        if target < self.targets.len() {
            return Ok(());
        }
        self.comm.check_rank(target, "target_rank", ErrorKind::Rank)
    }

    /// Checks that the program has not promised never to lock this window.
    fn check_locks(&self) -> Result<()> {
        if !self.no_locks.load(Ordering::Relaxed) {
            return Ok(());
        }
        Err(epoch::epochs::outside(
            "the hint no_locks promises that nobody locks this window, so it cannot be locked",
        ))
    }

    /// Waits until all ranks have called this function, and then calls `make_progress`.
    fn meet(&self) -> Result<()> {
        self.meetings.meet(&self.comm, &self.words, self.needs_progress())?;
        self.make_progress()
    }

    /// Returns whether other ranks may wait for this rank to serve their requests.
    #[inline]
    fn needs_progress(&self) -> bool {
        self.target_side.is_some()
    }

    /// Makes a turn of progress: always if this rank serves requests, else once in `CALLS_PER_TURN` calls.
    #[inline]
    fn make_progress(&self) -> Result<()> {
        if self.needs_progress() {
            return self.comm.progress();
        }
        // Threads that make this step at the same time count as one. The count need not be exact.
        let calls = self.calls.load(Ordering::Relaxed).wrapping_add(1);
        self.calls.store(calls, Ordering::Relaxed);
        if !calls.is_multiple_of(CALLS_PER_TURN) {
            return Ok(());
        }
        self.comm.progress()
    }

    /// Returns whether puts and gets compare the types of their data.
    #[inline(always)]
    fn checks_types(&self) -> bool {
        self.check_types
    }

    /// Notes that this thread has stored to mapped memory of the window by plain stores. A thread makes the note after
    /// the stores: whoever sees the note then sees the stores too.
    #[inline(always)]
    fn note_stores(&self) {
        self.stored.store(true, Ordering::Release);
    }

    /// Checks that the window may be freed now ([`free`](Self::free)).
    ///
    /// # Errors
    /// Returns `WindowErrorKind::Synchronization` if this rank is in an epoch.
    pub fn check_free(&self) -> Result<()> {
        self.epochs.check_free()
    }

    /// Frees the window after all ranks have made this call. Collective.
    ///
    /// # Errors
    /// Returns `WindowErrorKind::Synchronization` if this rank or another one is in an epoch, and
    /// `ErrorKind::ProcAborted` if a rank has died. This rank's part in the window ends in both cases.
    #[doc(alias = "MPI_Win_free")]
    pub fn free(self) -> Result<()> {
        let checked = self.check_free();
        let refusing = match self.agree_to_end(checked.is_err())? {
            None => self.end(false)?,
            refusing => refusing,
        };
        checked.and(refusing.map_or(Ok(()), |rank| Err(kept(rank))))
    }

    /// Waits until all ranks have called this function or [`free`](Self::free), also a rank that refuses to free the
    /// window (`refuses`). Returns the lowest rank that refuses; the window then stays as it was. If there is none, all
    /// ranks call [`end`](Self::end). In between, a rank may do what it cannot take back, such as calling the program's
    /// functions. Collective.
    ///
    /// # Errors
    /// Returns `ErrorKind::ProcAborted` if a rank has died.
    #[doc(hidden)]
    pub fn agree_to_end(&self, refuses: bool) -> Result<Option<usize>> {
        let serves = self.needs_progress();
        self.meetings.agree(&self.comm, &self.words, serves, 0, refuses)
    }

    /// Waits until all ranks have called this function after [`agree_to_end`](Self::agree_to_end), also a rank that
    /// refuses to end the window now (`refuses`). Returns the lowest rank that refuses; the window then stays as it
    /// was. Otherwise, the caller must not use the window afterwards; the window's memory stays until the value is
    /// dropped. Collective.
    ///
    /// # Errors
    /// Returns `ErrorKind::ProcAborted` if a rank has died.
    #[doc(hidden)]
    pub fn end(&self, refuses: bool) -> Result<Option<usize>> {
        // An error must not keep this rank from the meeting, where the other ranks wait.
        let late = if refuses { Ok(()) } else { self.await_late() };
        let serves = self.needs_progress();
        let refusing = self.meetings.agree(&self.comm, &self.words, serves, 1, refuses)?;
        self.make_progress()?;
        late.map(|()| refusing)
    }
}

/// Returns the error for a window that stays, because rank `rank` refuses to free it.
#[cold]
#[doc(hidden)]
pub fn kept(rank: usize) -> Error {
    epoch::epochs::outside(&format!(
        "rank {rank} refuses to free the window, for example because it is in an epoch"
    ))
}

/// Checks that this process may use windows. Every call on a window that takes a lock of this process, or accesses
/// memory of the job, makes this check first.
///
/// # Errors
/// Returns `ErrorKind::State` in a forked child: memory of other ranks is not mapped there, and a lock may be held by a
/// thread that does not exist there.
#[inline]
fn check_process() -> Result<()> {
    if fork::is_child() { Err(in_child()) } else { Ok(()) }
}

#[cold]
fn in_child() -> Error {
    let detail = "a forked child of a rank cannot use windows; it may exec or exit";
    Error::new(ErrorKind::State, "process", detail)
}
