//! The epochs of a [`WindowOf`] as guards.
//!
//! A guard ends its epoch when it is dropped. A guard that is leaked (`std::mem::forget`) leaves the epoch open, so
//! that later calls of the window fail; memory stays safe.

use super::{AnyThread, NONE, Target, WindowOf};
use crate::Result;
use crate::comm::Group;
use crate::rma::{Assertions, LockKind, Window};
use bytemuck::{AnyBitPattern, NoUninit};
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::Deref;

/// Defines `end` and `drop` of a guard with the field `window`. `$end` ends the epoch. `$waits` says whether it waits
/// for other ranks. If it does, a thread that panics does not end the epoch, because the other ranks may wait for
/// this rank in another call, and then the job would not end.
macro_rules! ends {
    ($guard:ident, waits: $waits:literal, $doc:literal, |$this:ident| $end:expr) => {
        impl<T: NoUninit + AnyBitPattern> $guard<'_, T> {
            #[doc = $doc]
            ///
            /// # Errors
            /// Returns [`ErrorKind::ProcAborted`](crate::ErrorKind) if a rank has died.
            pub fn end(self) -> Result<()> {
                let this = ManuallyDrop::new(self);
                this.finish()
            }

            fn finish(&self) -> Result<()> {
                let $this = self;
                $end
            }
        }

        impl<T: NoUninit + AnyBitPattern> Drop for $guard<'_, T> {
            fn drop(&mut self) {
                if !($waits && std::thread::panicking()) {
                    // A program that needs the error calls `end`.
                    let _ended = self.finish();
                }
            }
        }
    };
}

/// The values of all ranks in an epoch, for atomic operations of several threads of this rank.
///
/// ```
/// use typepack::Op;
/// use typepack::rma::WindowOf;
///
/// let universe = typepack::init()?;
/// let world = universe.world();
/// let mut window = WindowOf::<u64>::allocate(&world, 1)?;
/// let mut locked = window.lock_all()?;
/// let threads = locked.threads();
/// std::thread::scope(|scope| {
///     for _ in 0..3 {
///         scope.spawn(|| threads.rank(0)?.fetch_and_op(1, 0, Op::Sum));
///     }
/// });
/// assert!(threads.rank(0)?.fetch(0)? >= 3);
/// locked.end()?;
/// window.free()?;
/// # Ok::<(), typepack::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Threads<'a, T> {
    window: &'a Window,
    values: PhantomData<fn() -> T>,
}

impl<'a, T: NoUninit + AnyBitPattern> Threads<'a, T> {
    /// Returns the values of a rank, on which several threads make atomic operations.
    ///
    /// # Errors
    /// Returns [`ErrorKind::Rank`](crate::ErrorKind) if there is no such rank.
    pub fn rank(&self, rank: usize) -> Result<Target<'a, T, AnyThread>> {
        Target::new(self.window, rank)
    }
}

/// Defines `rank` and `threads` of a guard for epochs with several ranks. The guard has borrowed the window mutably, so
/// the window has no other use.
macro_rules! targets {
    ($guard:ident) => {
        impl<T: NoUninit + AnyBitPattern> $guard<'_, T> {
            /// Returns the values of all ranks for atomic operations of several threads. The epoch has no other use as
            /// long as the result lives.
            pub fn threads(&mut self) -> Threads<'_, T> {
                Threads { window: &self.window.window, values: PhantomData }
            }

            /// Returns the values of a rank, on which the epoch permits operations.
            ///
            /// # Errors
            /// Returns [`ErrorKind::Rank`](crate::ErrorKind) if there is no such rank.
            pub fn rank(&self, rank: usize) -> Result<Target<'_, T>> {
                self.window.target(rank)
            }
        }
    };
}

/// A lock of the values of one rank ([`WindowOf::lock`]). The guard has the operations of [`Target`].
#[derive(Debug)]
pub struct Locked<'a, T: NoUninit + AnyBitPattern> {
    window: &'a WindowOf<T>,
    target: Target<'a, T>,
}

impl<'a, T: NoUninit + AnyBitPattern> Locked<'a, T> {
    pub(super) fn begin(window: &'a WindowOf<T>, rank: usize, kind: LockKind) -> Result<Self> {
        let target = window.target(rank)?;
        window.window.lock_raw(kind, rank, NONE)?;
        Ok(Self { window, target })
    }
}

impl<'a, T: NoUninit + AnyBitPattern> Deref for Locked<'a, T> {
    type Target = Target<'a, T>;

    fn deref(&self) -> &Target<'a, T> {
        &self.target
    }
}

ends!(Locked, waits: false, "Unlocks the values of the rank.", |this| {
    this.window.window.unlock_raw(this.target.rank())
});

/// Shared locks of the values of all ranks ([`WindowOf::lock_all`]).
#[derive(Debug)]
pub struct LockedAll<'a, T: NoUninit + AnyBitPattern> {
    window: &'a WindowOf<T>,
}

impl<'a, T: NoUninit + AnyBitPattern> LockedAll<'a, T> {
    pub(super) fn begin(window: &'a mut WindowOf<T>) -> Result<Self> {
        window.window.lock_all_raw(NONE)?;
        Ok(Self { window })
    }
}

targets!(LockedAll);
ends!(LockedAll, waits: false, "Unlocks the values of all ranks.", |this| this.window.window.unlock_all_raw());

/// The epoch that a fence begins ([`WindowOf::fence`]). When the guard ends, it waits until the guards of all ranks
/// end.
#[derive(Debug)]
pub struct Fenced<'a, T: NoUninit + AnyBitPattern> {
    window: &'a WindowOf<T>,
}

impl<'a, T: NoUninit + AnyBitPattern> Fenced<'a, T> {
    pub(super) fn begin(window: &'a mut WindowOf<T>) -> Result<Self> {
        window.window.fence(Assertions::NO_PRECEDE)?;
        Ok(Self { window })
    }

    /// Ends the epoch and begins the next one: waits until all ranks have called `fence`. Collective.
    ///
    /// # Errors
    /// Returns the errors of [`Window::fence`](crate::rma::Window::fence).
    #[doc(alias = "MPI_Win_fence")]
    pub fn fence(&mut self) -> Result<()> {
        self.window.window.fence(NONE)
    }
}

targets!(Fenced);
ends!(Fenced, waits: true, "Ends the epoch, after waiting until all ranks end it. Collective.", |this| {
    this.window.window.fence(Assertions::NO_SUCCEED)
});

/// The epoch that `start` begins ([`WindowOf::start`], [`Exposure::start`]).
#[derive(Debug)]
pub struct Access<'a, T: NoUninit + AnyBitPattern> {
    window: &'a WindowOf<T>,
}

impl<'a, T: NoUninit + AnyBitPattern> Access<'a, T> {
    pub(super) fn begin(window: &'a WindowOf<T>, group: &Group) -> Result<Self> {
        window.window.start(group, NONE)?;
        Ok(Self { window })
    }
}

targets!(Access);
ends!(Access, waits: false, "Ends the epoch, and tells the ranks of its group so.", |this| {
    this.window.window.complete()
});

/// The epoch that `post` begins ([`WindowOf::post`]). When the guard ends, it waits until the ranks of its group have
/// ended their epochs of access.
#[derive(Debug)]
pub struct Exposure<'a, T: NoUninit + AnyBitPattern> {
    window: &'a WindowOf<T>,
}

impl<'a, T: NoUninit + AnyBitPattern> Exposure<'a, T> {
    pub(super) fn begin(window: &'a mut WindowOf<T>, group: &Group) -> Result<Self> {
        window.window.post(group, NONE)?;
        Ok(Self { window })
    }

    /// Begins an epoch of access beside this exposure epoch. It must end before the exposure.
    ///
    /// # Errors
    /// Returns the errors of [`Window::start`](crate::rma::Window::start).
    #[doc(alias = "MPI_Win_start")]
    pub fn start(&mut self, group: &Group) -> Result<Access<'_, T>> {
        Access::begin(self.window, group)
    }

    /// Returns whether all ranks of the group have ended their epochs of access. If they have, the exposure has ended,
    /// otherwise the result has the guard again.
    ///
    /// # Errors
    /// Returns [`ErrorKind::ProcAborted`](crate::ErrorKind) if a rank has died.
    #[doc(alias = "MPI_Win_test")]
    pub fn test(self) -> Result<Option<Self>> {
        if self.window.window.test()? {
            let _ended = ManuallyDrop::new(self);
            return Ok(None);
        }
        Ok(Some(self))
    }
}

ends!(Exposure, waits: true, "Ends the epoch, after waiting until its group has ended its epochs of access.", |this| {
    this.window.window.wait()
});
